/* ctc_cpu.h: the kernels of ctc_loss and its backward. */
#ifndef CN_BLOCK_CTC_CPU_H
#define CN_BLOCK_CTC_CPU_H

#include "cairn/op.h"

typedef struct cn__ctc_sample {
    const int64_t *label;          /* of each state */
    int64_t states, width, frames; /* width: of a row in memory */
    int64_t place;                 /* widths of the samples before */
} cn__ctc_sample;

/* What a call works on. */
typedef struct cn__ctc {
    int64_t steps, classes, stride; /* stride: from a step to the next */
    bool zero_infinity;
    cn__ctc_sample *samples;
    double *levels; /* (N, T): what was taken away from rows; backward only */
    void *rows;
} cn__ctc;

/* Each for f32 and f64, over samples. */
typedef struct cn__ctc_kernels {
    cn_body forward[2], backward[2];
} cn__ctc_kernels;

#endif

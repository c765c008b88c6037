/* ctc_cpu.h: the CPU kernels of ctc_loss and its backward operator. */
#ifndef CN_BLOCK_CTC_CPU_H
#define CN_BLOCK_CTC_CPU_H

#include "cairn/op.h"

typedef struct cn__ctc_sample {
    const int64_t *label;          /* of each state */
    int64_t states, width, frames; /* width: elements of a row */
    int64_t place;                 /* the sum of the widths of the samples before */
} cn__ctc_sample;

/* One call: sizes, samples and scratch. */
typedef struct cn__ctc {
    int64_t steps, classes, stride; /* stride: elements of log_probs from one step to the next */
    bool zero_infinity;
    cn__ctc_sample *samples;
    double *levels; /* (N, T): the levels subtracted from rows; backward only */
    void *rows;
} cn__ctc;

/* Each for f32 and f64. A part is a sample. */
typedef struct cn__ctc_kernels {
    cn_body forward[2], backward[2];
} cn__ctc_kernels;

#endif

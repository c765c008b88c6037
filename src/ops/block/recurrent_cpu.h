/* recurrent_cpu.h: the CPU kernels of recurrent layers and their backward operator. */
#ifndef CN_BLOCK_RECURRENT_CPU_H
#define CN_BLOCK_RECURRENT_CPU_H

#include "cairn/op.h"
#include "cpu/gemm.h"

/* One call: sizes, weights and scratch. */
typedef struct cn__recurrent {
    int64_t kind, gates, steps, batch, width;
    bool reverse;
    const cn__gemm_kernel *gemm;
    const void *packed; /* w, forward its transpose, shared by all threads; NULL: w is not packed */
    char *scratch;
    size_t scratch_step; /* bytes a thread */
} cn__recurrent;

/* The time of step number s. */
static inline int64_t cn__recurrent_step(const cn__recurrent *r, int64_t s)
{
    return r->reverse ? r->steps - 1 - s : s;
}

/* Each for f32 and f64. A part is a row of the batch. */
typedef struct cn__recurrent_kernels {
    cn_body forward[2], backward[2];
} cn__recurrent_kernels;

#endif

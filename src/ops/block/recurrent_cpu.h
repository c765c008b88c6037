/* recurrent_cpu.h: the kernels of recurrent layers and their backward. */
#ifndef CN_BLOCK_RECURRENT_CPU_H
#define CN_BLOCK_RECURRENT_CPU_H

#include "cairn/op.h"
#include "cpu/gemm.h"

/* What a call works on. */
typedef struct cn__recurrent {
    int64_t kind, gates, steps, batch, width;
    bool reverse;
    const cn__gemm_kernel *gemm;
    const void *packed; /* w, or for the forward its transpose, for all threads; NULL: as it lies */
    char *scratch;
    size_t scratch_step; /* of a thread */
} cn__recurrent;

/* Which step of time comes s-th. */
static inline int64_t cn__recurrent_step(const cn__recurrent *r, int64_t s) { return r->reverse ? r->steps - 1 - s : s; }

/* Each for f32 and f64, over rows of the batch. */
typedef struct cn__recurrent_kernels {
    cn_body forward[2], backward[2];
} cn__recurrent_kernels;

#endif

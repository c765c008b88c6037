/* max_pool_cpu.h: the kernels of max pooling and its backward. */
#ifndef CN_WINDOW_MAX_POOL_CPU_H
#define CN_WINDOW_MAX_POOL_CPU_H

#include "cairn/op.h"

/* Elements of a plane, and of a pooled one: what the backward works on. The forward works on a cn__pool. */
typedef struct cn__plane_sizes {
    int64_t in, out;
} cn__plane_sizes;

/* Each for f32 and f64: forward over rows of the result, backward over planes. */
typedef struct cn__max_pool_kernels {
    cn_body forward[2], backward[2];
} cn__max_pool_kernels;

#endif

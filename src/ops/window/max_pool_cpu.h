/* max_pool_cpu.h: the CPU kernels of max pooling and its backward operator. */
#ifndef CN_WINDOW_MAX_POOL_CPU_H
#define CN_WINDOW_MAX_POOL_CPU_H

#include "cairn/op.h"

/* Elements of a plane or volume of the operand and of the result. backward gets this struct, forward a cn__pool. */
typedef struct cn__pool_sizes {
    int64_t in, out;
} cn__pool_sizes;

/* forward by dtype, backward for f32 and f64. A part is a row of the result (forward), a plane or volume (backward). */
typedef struct cn__max_pool_kernels {
    cn_body forward[CN_DTYPES], backward[2];
} cn__max_pool_kernels;

#endif

/* cross_entropy_cpu.h: the CPU kernels of cross_entropy and its backward operator. */
#ifndef CN_BLOCK_CROSS_ENTROPY_CPU_H
#define CN_BLOCK_CROSS_ENTROPY_CPU_H

#include "ops/block/block.h"

/* One call: operands, weights and scratch. */
typedef struct cn__cross_entropy {
    cn__columns c; /* the logits, along the axis of classes */
    const cn__loss_attrs *a;
    cn_dtype target_dtype;
    const void *target;
    double smoothing, weight_sum; /* weight_sum: over all classes */
    double total;                 /* the divisor of the loss */
    double *each;                 /* the loss of every sample, in scratch; NULL without a reduction */
    bool none, faults;            /* none: no reduction; faults: a class out of range is an error */
} cn__cross_entropy;

/* The class of a sample; -1 if the sample is ignored. */
static inline int64_t cn__target_of(const cn_kernel *k, const cn__cross_entropy *l, int64_t sample)
{
    const int64_t t =
        l->target_dtype == CN_I64 ? ((const int64_t *)l->target)[sample] : ((const int32_t *)l->target)[sample];
    if (l->a->has_ignore && t == l->a->ignore_index) return -1;
    if (t >= 0 && t < l->c.n) return t;
    if (l->faults) cn_kernel_fault(k, t, l->c.n);
    return -1;
}

/* Each for f32 and f64. A part is a block of columns. */
typedef struct cn__cross_entropy_kernels {
    cn_body forward[2], backward[2];
} cn__cross_entropy_kernels;

#endif

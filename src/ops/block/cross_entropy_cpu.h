/* cross_entropy_cpu.h: the kernels of cross_entropy and its backward. */
#ifndef CN_BLOCK_CROSS_ENTROPY_CPU_H
#define CN_BLOCK_CROSS_ENTROPY_CPU_H

#include "ops/block/block.h"

/* What a call works on. */
typedef struct cn__cross_entropy {
    cn__columns c; /* logits along their classes */
    const cn__loss_attrs *a;
    cn_dtype target_dtype;
    const void *target;
    double smoothing, weight_sum; /* of all classes */
    double total;                 /* what sums are divided by */
    double *each;                 /* loss of every sample, before it is summed; NULL: no reduction */
    bool none, faults;            /* faults: a class out of range is an error */
} cn__cross_entropy;

/* The class of a sample; -1: the sample does not count. */
static inline int64_t cn__target_of(const cn_kernel *k, const cn__cross_entropy *l, int64_t sample)
{
    const int64_t t =
        l->target_dtype == CN_I64 ? ((const int64_t *)l->target)[sample] : ((const int32_t *)l->target)[sample];
    if (l->a->has_ignore && t == l->a->ignore_index) return -1;
    if (t >= 0 && t < l->c.n) return t;
    if (l->faults) cn_kernel_fault(k, t, l->c.n);
    return -1;
}

/* Each for f32 and f64, over blocks of columns. */
typedef struct cn__cross_entropy_kernels {
    cn_body forward[2], backward[2];
} cn__cross_entropy_kernels;

#endif

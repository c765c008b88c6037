/* shared.h: what operators use of each other beyond the public ones. */
#ifndef CN_OPS_SHARED_H
#define CN_OPS_SHARED_H

#include "cairn/op_cases.h"
#include "core/core.h"

/* Creation: what to make. */
typedef struct cn__shape_attrs {
    int64_t dtype, ndim, shape[CN_MAX_DIMS];
} cn__shape_attrs;

/* ops/reduce */
typedef struct cn__reduce_attrs {
    int64_t begin, end, keepdim;   /* axes [begin, end) */
} cn__reduce_attrs;

/* ops/map: a number as the other operand of x; takes x's dtype where it can. */
cn_tensor *cn__weak(cn_tensor *x, double value);
/* ops/map: gives the handle x the value y (NULL: an error stands). What in-place forms end with. */
bool cn__rebind(cn_tensor *x, cn_tensor *y);

/* Of rows [begin, end) of n elements those before `done` are final, and those before `told` have been told of: a tail gets
   some at a time, since each call costs it something. Returns up to where it has been told now. */
static inline int64_t cn__rows_done(const cn_kernel *k, int64_t told, int64_t done, int64_t end, int64_t n, int thread)
{
    enum { ELEMENTS = 2048 };
    if (done < end && (done - told) * n < ELEMENTS) return told;
    cn_kernel_done(k, told * n, done * n, thread);
    return done;
}

/* cpu/cpu.c: for a kernel that says only at its end that its first result is final: cn_kernel_done by all threads. */
void cn__kernel_done_all(const cn_kernel *k);

/* Small helpers for wrappers and shape rules. */
static inline const cn_layout *cn__layout(const cn_tensor *t) { return &cn__result_of(t)->meta.layout; }
static inline cn_dtype cn__dtype(const cn_tensor *t) { return cn__result_of(t)->meta.dtype; }

#endif

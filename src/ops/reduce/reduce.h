/* reduce.h: what reductions share: axes as a set, shape rules, steps of composites. */
#ifndef CN_OPS_REDUCE_H
#define CN_OPS_REDUCE_H

#include "ops/shared.h"

/* Attributes of composites, which accept any axes: bit d of axes is axis d. */
typedef struct cn__axis_set_attrs {
    int64_t axes, keepdim;
} cn__axis_set_attrs;

extern const cn_op cn__op_sum, cn__op_max, cn__op_min, cn__op_argmax, cn__op_argmin;

/* axes.c */
bool cn__axes(const char *who, const cn_tensor *x, cn_dims axes, int64_t *set); /* an empty list: all axes */
cn_tensor *cn__reduce(const cn_op *op, cn_tensor *x, int64_t set, bool keepdim);
cn_tensor *cn__reduce_axes(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim);
cn_tensor *cn__reduce_composite(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim, double number);
int64_t cn__reduced_count(const cn_tensor *x, int64_t set);          /* number of elements for each result */
/* y, a reduction of x, in the shape it has with keepdim */
cn_tensor *cn__keepdims(cn_tensor *y, const cn_tensor *x, const cn__reduce_attrs *a);

bool cn__infer_reduce(cn_infer *i, cn_dtype dtype);
bool cn__infer_reduce_some(cn_infer *i, cn_dtype dtype);             /* fails if the reduced axes have no elements */

/* Composites compute halves in f32 and round once. */
cn_tensor *cn__wide(cn_tensor *x);                                   /* halves as f32 */
cn_tensor *cn__as(cn_tensor *y, cn_dtype t);                         /* y itself if it has this dtype */
cn_tensor *cn__wide_float(const char *who, cn_tensor *x);            /* the same; fails for whole numbers */

/* norms.c */
cn_tensor *cn__root(cn_tensor *v, double p); /* v^(1/p); where v is 0 the gradient is 0, not inf */

#endif

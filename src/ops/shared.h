/* shared.h: attributes and functions that several families of operators share. */
#ifndef CN_OPS_SHARED_H
#define CN_OPS_SHARED_H

#include "cairn/cairn.h"
#include "cairn/op_cases.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/layout.h"
#include "core/util.h"
#include "cpu/kernel.h"

/* Operators that create a tensor: its dtype and shape. */
typedef struct cn__shape_attrs {
    int64_t dtype, ndim, shape[CN_MAX_DIMS];
} cn__shape_attrs;

/* ops/create: a plain number as a tensor without axes. */
cn_tensor *cn__filled(cn_tensor *number);

/* ops/reduce: sums x over broadcast axes to the shape of `to`; x itself if the shapes agree. */
cn_tensor *cn__sum_to(cn_tensor *x, const cn_layout *to);

/* ops/reduce */
typedef struct cn__reduce_attrs {
    int64_t begin, end, keepdim; /* axes [begin, end) */
} cn__reduce_attrs;

/* Operators along one axis: unsqueeze, select, cat, cummax, .. */
typedef struct cn__axis_attrs {
    int64_t axis;
} cn__axis_attrs;

/* slice, slice_backward, slice_add, slice_assign: `length` elements along the axis, `step` apart. args[0].i: the start
   of the slice. args[1].i of slice_add is not 0 if the operand is zero there. */
typedef struct cn__slice_attrs {
    int64_t axis, length, step;
} cn__slice_attrs;

/* ops/map: a number as the second operand of an operator on x. It has the dtype of x, or a wider one if that cannot
   hold it. */
cn_tensor *cn__weak(cn_tensor *x, double value);
/* ops/map: fails if the number `what` of an operator does not fit t. */
bool cn__check_fits(cn_ctx *ctx, const char *who, const char *what, cn_dtype t, double value);
/* ops/index: y, for which evaluation fails if it contains a 0; probabilities, for which it fails outside of [0, 1]. */
cn_tensor *cn__divisor(cn_tensor *y);
cn_tensor *cn__probability(cn_tensor *p);
cn_tensor *cn__level(cn_tensor *q);   /* the same for levels of quantiles */
cn_tensor *cn__weights(cn_tensor *w); /* the same for weights of categories: finite, not negative */
/* ops/join: a call with several tensors, whose context is that of the first. Without a tensor there is none. */
cn__call cn__enter_list(cn_tensor *const *x, int n, const char *who);
/* ops/map: gives the handle x the value y, for in-place forms. False after an error, or if y is NULL. */
bool cn__rebind(cn_tensor *x, cn_tensor *y);

/* Small helpers for wrappers and shape rules. */
static inline const cn_layout *cn__layout(const cn_tensor *t) { return &cn__result_of(t)->meta->layout; }
static inline cn_dtype cn__dtype(const cn_tensor *t) { return cn__result_of(t)->meta->dtype; }

#endif

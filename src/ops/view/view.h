/* view.h: attributes of the view operators, and what their files and those of join/ share. */
#ifndef CN_OPS_VIEW_VIEW_H
#define CN_OPS_VIEW_VIEW_H

#include "ops/shared.h"

/* view, reshape, expand: sizes; permute: axes. */
typedef struct cn__list_attrs {
    int64_t n, v[CN_MAX_DIMS];
} cn__list_attrs;

/* squeeze, flip: bit d stands for axis d. */
typedef struct cn__mask_attrs {
    int64_t axes;
} cn__mask_attrs;

/* transpose: the two axes; flatten: the first and the last axis. */
typedef struct cn__axis_pair_attrs {
    int64_t a, b;
} cn__axis_pair_attrs;

/* args[0].i: start */
typedef struct cn__narrow_attrs {
    int64_t axis, length;
} cn__narrow_attrs;

typedef struct cn__diagonal_attrs {
    int64_t offset, axis1, axis2;
} cn__diagonal_attrs;

typedef struct cn__diagonal_backward_attrs {
    cn__diagonal_attrs of;
    int64_t size1, size2; /* of the axes that the diagonal was taken from */
} cn__diagonal_backward_attrs;

typedef struct cn__unfold_attrs {
    int64_t axis, size, step;
} cn__unfold_attrs;

typedef struct cn__unfold_backward_attrs {
    cn__unfold_attrs of;
    int64_t length; /* of the axis that was unfolded */
} cn__unfold_backward_attrs;

/* pixel_shuffle, pixel_unshuffle: the factor; channel_shuffle: the number of groups. */
typedef struct cn__shuffle_attrs {
    int64_t n;
} cn__shuffle_attrs;

/* Operators that others here are built on. */
extern const cn_op cn__op_copy; /* ops/map */
extern const cn_op cn__op_slice, cn__op_permute, cn__op_flip;
extern const cn_op cn__op_slice_backward, cn__op_slice_add, cn__op_diagonal_backward, cn__op_unfold_backward;

/* axes.c */
int64_t cn__from_front(int64_t axis, int ndim);           /* counted from the front; unchanged if out of range */
bool cn__infer_axis(cn_infer *i, int64_t axis, int ndim); /* fails unless axis is in [0, ndim) */
bool cn__list(cn_ctx *ctx, const char *who, cn_dims dims, cn__list_attrs *list);
const char *cn__list_text(const cn__list_attrs *list, char *buf, size_t size);

/* detach.c */
bool cn__infer_same(cn_infer *i); /* for a VIEW with the layout of its first operand */

/* slice_grad.c: adds a piece to the gradient of the only operand. The piece belongs to the slice `a`, where a->length
   is the operand's size along the axis. */
void cn__add_piece(cn_grad_call *g, cn_tensor *piece, const cn__slice_attrs *a);

#endif

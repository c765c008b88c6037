/* window.h: the attributes of pooling and resizing, and which elements of a plane each window covers. */
#ifndef CN_OPS_WINDOW_H
#define CN_OPS_WINDOW_H

#include "cairn/kernel.h"
#include "ops/shared.h"

/* The first `axes` numbers of each array count: height and width, or depth, height and width. One-dimensional pooling
   has height 1. */
typedef struct cn__pool_attrs {
    int64_t axes;    /* 2: planes; 3: volumes */
    int64_t kernel[3], stride[3], padding[3], dilation[3], ceil_mode, exclude_padding;
    int64_t divisor; /* of every average; 0: the number of elements */
    int64_t in[3];   /* backward: the size of the planes that were pooled */
    int64_t out[3];  /* adaptive: the size of the result, which decides the windows; other fields but `in` are 0 */
} cn__pool_attrs;
#define CN__POOL(...) .attrs = &(const cn__pool_attrs){ __VA_ARGS__ } /* of a case */

typedef struct cn__resize_attrs {
    int64_t size[2], align_corners;  /* height and width of the result */
} cn__resize_attrs;

typedef struct cn__nearest_attrs {
    int64_t axes, size[3];           /* the new sizes of the last `axes` axes */
} cn__nearest_attrs;

/* interpolate: the new sizes of the last `axes` axes. */
typedef struct cn__interpolate_attrs {
    int64_t mode, axes, size[3], align_corners, antialias;
    double scale[3];                 /* scale_factor; 0: the quotient of the sizes */
} cn__interpolate_attrs;

/* max_unpool: the size of the result. */
typedef struct cn__unpool_attrs {
    int64_t axes, size[3];
} cn__unpool_attrs;

/* im2col and col2im. size: height and width of the result of col2im. */
typedef struct cn__block_attrs {
    int64_t kernel[2], dilation[2], padding[2], stride[2], size[2];
} cn__block_attrs;

/* local_response_norm: the number of channels. */
typedef struct cn__response_attrs {
    int64_t size;
} cn__response_attrs;

typedef struct cn__grid_attrs {
    int64_t mode, padding, align_corners;
} cn__grid_attrs;

/* affine_grid: height and width, or depth, height and width, of the grid. */
typedef struct cn__affine_attrs {
    int64_t axes, size[3], align_corners;
} cn__affine_attrs;

/* The elements lo, lo + step, ... < hi of one axis. */
typedef struct cn__span {
    int64_t lo, hi, step, count;     /* count: the divisor of an average */
} cn__span;

/* Volumes of (id, ih, iw) pooled to (od, oh, ow); planes are volumes of depth 1. */
typedef struct cn__pool {
    int64_t volumes, id, ih, iw, od, oh, ow;
    const cn__span *slabs, *rows, *cols;
    double work;                     /* about how many elements are read for a row of results */
} cn__pool;

/* Where a row of results lies, counted over all volumes. */
typedef struct cn__pool_row {
    int64_t volume, d, h;
} cn__pool_row;
static inline cn__pool_row cn__pool_row_of(const cn__pool *p, int64_t row)
{
    return (cn__pool_row){ row / p->oh / p->od, row / p->oh % p->od, row % p->oh };
}
static inline void cn__pool_next(const cn__pool *p, cn__pool_row *at)
{
    if (++at->h < p->oh) return;
    at->h = 0;
    if (++at->d < p->od) return;
    at->d = 0;
    at->volume++;
}

size_t cn__pool_scratch(const cn_kernel *k, int threads);
/* big: the planes or volumes that are pooled; small: the result of pooling. */
cn__pool cn__pool_of(const cn_kernel *k, const cn_array *big, const cn_array *small);

/* On the GPU: adds the parameters of pool.wgsl and returns the value of its hole {{windows}}. */
const char *cn__pool_windows(cn_gpu_call *c, const cn_array *big, const cn_array *small);

/* Shape rules for (N, C, ...) or (C, ...). forward: the pooled shape; backward: the last sizes are attrs.in. */
bool cn__infer_pool(cn_infer *i);
bool cn__infer_pool_backward(cn_infer *i);
bool cn__has_windows(cn_infer *i, int axes);
/* Sets the result's shape: that of the operand with the last `axes` sizes replaced. */
bool cn__infer_sizes(cn_infer *i, int axes, const int64_t *size);

/* For wrappers: fills the attributes from a descriptor of `axes` axes. Returns false and sets an error if a field is
   out of range. */
bool cn__pool_attrs_of(const char *who, const cn_tensor *x, const cn_pool_desc *desc, int axes, bool average,
                       cn__pool_attrs *a);
/* The attributes of adaptive pooling to these sizes; false, with an error, unless there is one for each of `axes`. */
bool cn__pool_adaptive(const char *who, const cn_tensor *x, cn_dims size, int axes, cn__pool_attrs *a);
/* Applies op and returns the first result only, so that no handle keeps the others alive. */
cn_tensor *cn__pool_apply(const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);
bool cn__are_lines(const char *who, cn_tensor *x); /* false, with an error, unless x is (N, C, L) or (C, L) */
/* Applies an operator for planes to (N, C, L) or (C, L). */
cn_tensor *cn__pool_lines(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);

/* resize.c: the weights of the four elements around a point, which lies at t between the second and the third. */
void cn__cubic_weights(cn_tensor *t, cn_tensor *weight[4]);

#endif

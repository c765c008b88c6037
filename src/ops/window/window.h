/* window.h: the attributes of pooling and resizing, and which elements of a plane each window covers. */
#ifndef CN_OPS_WINDOW_H
#define CN_OPS_WINDOW_H

#include "cairn/kernel.h"
#include "ops/shared.h"

/* [0] is the height, [1] the width; one-dimensional pooling has height 1. */
typedef struct cn__pool_attrs {
    int64_t kernel[2], stride[2], padding[2], dilation[2], ceil_mode, exclude_padding;
    int64_t in[2];   /* backward: the size of the planes that were pooled */
    int64_t out[2];  /* adaptive: the size of the result, which decides the windows; other fields except `in` are 0 */
} cn__pool_attrs;

typedef struct cn__resize_attrs {
    int64_t size[2], align_corners;  /* height and width of the result */
} cn__resize_attrs;

typedef struct cn__nearest_attrs {
    int64_t axes, size[2];           /* the new sizes of the last `axes` axes */
} cn__nearest_attrs;

/* The elements lo, lo + step, ... < hi of one axis. */
typedef struct cn__span {
    int64_t lo, hi, step, count;     /* count: the divisor of an average */
} cn__span;

/* Planes of (ih, iw) pooled to (oh, ow). */
typedef struct cn__pool {
    int64_t planes, ih, iw, oh, ow;
    const cn__span *rows, *cols;
    double work;                     /* about how many elements are read for a row of results */
} cn__pool;

size_t cn__pool_scratch(const cn_kernel *k, int threads);
/* big: the planes that are pooled; small: the result of pooling. */
cn__pool cn__pool_of(const cn_kernel *k, const cn_array *big, const cn_array *small);

/* On the GPU: adds the parameters of pool.wgsl and returns the value of its hole {{windows}}. */
const char *cn__pool_windows(cn_gpu_call *c, const cn_array *big, const cn_array *small);

/* Shape rules for (N, C, H, W) or (C, H, W). forward: the pooled shape; backward: the last two sizes are attrs.in. */
bool cn__infer_pool(cn_infer *i);
bool cn__infer_pool_backward(cn_infer *i);
bool cn__is_planes(cn_infer *i);
/* Sets the result's shape: that of the operand with the last two sizes replaced. */
bool cn__infer_planes(cn_infer *i, const int64_t size[2]);

/* For wrappers: fills the attributes from a descriptor of `axes` axes. Returns false and sets an error if a field is
   out of range. */
bool cn__pool_attrs_of(const char *who, const cn_tensor *x, const cn_pool_desc *desc, int axes, bool average,
                       cn__pool_attrs *a);
/* Applies op and returns the first result only, so that no handle keeps the others alive. */
cn_tensor *cn__pool_apply(const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);
/* Applies an operator for planes to (N, C, L) or (C, L). */
cn_tensor *cn__pool_lines(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);

#endif

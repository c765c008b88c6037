/* window.h: what pooling operators share: which elements of a plane each window covers. */
#ifndef CN_OPS_WINDOW_H
#define CN_OPS_WINDOW_H

#include "cairn/kernel.h"
#include "ops/shared.h"

/* [0] is the height, [1] the width; one-dimensional pooling has height 1. */
typedef struct cn__pool_attrs {
    int64_t kernel[2], stride[2], padding[2], dilation[2], ceil_mode, exclude_padding;
    int64_t in[2];   /* backward: the size of what was pooled */
    int64_t out[2];  /* adaptive: the size of the result, which decides the windows; the rest but `in` is 0 */
} cn__pool_attrs;

typedef struct cn__resize_attrs {
    int64_t size[2], align_corners;  /* height and width of the result */
} cn__resize_attrs;

typedef struct cn__nearest_attrs {
    int64_t axes, size[2];           /* of the last axes */
} cn__nearest_attrs;

/* The elements lo, lo + step, ... < hi of one axis. */
typedef struct cn__span {
    int64_t lo, hi, step, count;     /* count: what an average divides by */
} cn__span;

/* Planes of (ih, iw) pooled to (oh, ow). */
typedef struct cn__pool {
    int64_t planes, ih, iw, oh, ow;
    const cn__span *rows, *cols;
    double work;                     /* elements looked at for a row of results, about */
} cn__pool;

size_t cn__pool_scratch(const cn_kernel *k, int threads);
/* big: what is or was pooled; small: the result of that. */
cn__pool cn__pool_of(const cn_kernel *k, const cn_array *big, const cn_array *small);

/* On the GPU: adds the parameters of pool.wgsl and returns the value of its hole {{windows}}. */
const char *cn__pool_windows(cn_gpu_call *c, const cn_array *big, const cn_array *small);

/* Shape rules: (N, C, H, W) or (C, H, W). forward: the pooled shape; backward: attrs.in for the last two. */
bool cn__infer_pool(cn_infer *i);
bool cn__infer_pool_backward(cn_infer *i);
bool cn__is_planes(cn_infer *i);
/* The operand's shape with its last two sizes replaced. */
bool cn__infer_planes(cn_infer *i, const int64_t size[2]);

/* A wrapper's part: attributes from a description of `axes` axes; false and an error if it makes no sense. */
bool cn__pool_attrs_of(const char *who, const cn_tensor *x, const cn_pool_desc *desc, int axes, bool average,
                       cn__pool_attrs *a);
/* The first result only, so that no handle holds the others. */
cn_tensor *cn__pool_apply(const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);
/* (N, C, L) or (C, L) by way of the operator for planes. */
cn_tensor *cn__pool_lines(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a);

#endif

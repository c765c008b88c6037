/* scan.h: operators along one axis: attributes, geometry, and what their gradients share. */
#ifndef CN_OPS_SCAN_H
#define CN_OPS_SCAN_H

#include "cairn/kernel.h"
#include "ops/shared.h"

typedef struct cn__scan_attrs {
    int64_t axis, reverse;
} cn__scan_attrs;

typedef struct cn__sort_attrs {
    int64_t axis, descending;
} cn__sort_attrs;

typedef struct cn__topk_attrs {
    int64_t axis, k, largest;
} cn__topk_attrs;

typedef struct cn__search_attrs {
    int64_t right, int32;
} cn__search_attrs;

typedef struct cn__quantile_attrs {
    int64_t axis, keepdim, how, leave_out; /* axis -1: all elements; how: a cn_quantile_mode; leave_out: of NaN */
} cn__quantile_attrs;

/* A contiguous tensor as (outer, n, inner) with the axis in the middle. */
typedef struct cn__lines {
    int64_t outer, n, inner;
} cn__lines;
cn__lines cn__lines_of(const cn_array *x, int64_t axis);
int64_t cn__grain(int64_t work);                    /* the grain for cn_parallel, from the work of one unit */

/* The WGSL function of gpu/library.wgsl that maps the words of elements to whole numbers of the same order. */
const char *cn__gpu_key(cn_dtype t);

/* A scan along an axis on the GPU. `shader` has the part `scan`: see lines.wgsl. */
typedef struct cn__gpu_scan {
    const char *shader;
    const cn_gpu_hole *holes;
    bool reverse;
} cn__gpu_scan;
bool cn__gpu_scan_lines(cn_gpu_call *c, cn__lines l, const cn__gpu_scan *s);

bool cn__scan_axis(const char *who, const cn_tensor *x, int64_t *axis); /* makes *axis ≥ 0; false after an error */
bool cn__infer_scan(cn_infer *i);  /* every result has the shape of operand 0; attrs begin with the axis */
/* The gradient of operators with results (values, indices): the gradient of the values, scattered to the indices. */
cn_tensor *cn__scatter_back(cn_grad_call *g, int64_t axis);

/* linear_scan: h[i] = a[i] h[i-1] + b[i]; reverse: h[i] = a[i+1] h[i+1] + b[i]. h starts as b; a[0] is not used. */
cn_tensor *cn__linear_scan(cn_tensor *a, cn_tensor *b, int64_t axis, bool reverse);
cn_tensor *cn__cumprod_backward(cn_tensor *x, cn_tensor *y, cn_tensor *gy, int64_t axis); /* y = cumprod(x) */

#endif

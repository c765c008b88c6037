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

/* A contiguous tensor as (outer, n, inner) with the axis in the middle. */
typedef struct cn__lines {
    int64_t outer, n, inner;
} cn__lines;
cn__lines cn__lines_of(const cn_array *x, int64_t axis);
int64_t cn__grain(int64_t work);                    /* how many units of so much work make a chunk */

/* On the GPU: the function of the library that turns words into whole numbers in the order of a dtype's elements. */
const char *cn__gpu_key(cn_dtype t);

/* A scan along an axis on the GPU: the text of a shader file that has the part `scan`, as lines.wgsl asks for it. */
typedef struct cn__gpu_scan {
    const char *shader;
    const cn_gpu_hole *holes;
    bool reverse;
} cn__gpu_scan;
bool cn__gpu_scan_lines(cn_gpu_call *c, cn__lines l, const cn__gpu_scan *s);

bool cn__scan_axis(const char *who, const cn_tensor *x, int64_t *axis); /* made non-negative; false: error set */
bool cn__infer_scan(cn_infer *i);                   /* every result like operand 0; attrs begin with the axis */
/* Of operators that give (values, indices): the values' gradient, put where they came from. */
cn_tensor *cn__scatter_back(cn_grad_call *g, int64_t axis);

/* linear_scan: h[i] = a[i] h[i-1] + b[i]; reverse: h[i] = a[i+1] h[i+1] + b[i]. h starts as b; a[0] is not used. */
cn_tensor *cn__linear_scan(cn_tensor *a, cn_tensor *b, int64_t axis, bool reverse);
cn_tensor *cn__cumprod_backward(cn_tensor *x, cn_tensor *y, cn_tensor *gy, int64_t axis); /* y = cumprod(x) */

#endif

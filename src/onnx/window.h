/* onnx/window.h: where windows of convolutions and pooling lie: attributes of ONNX, resolved for one input. */
#ifndef CN_ONNX_WINDOW_H
#define CN_ONNX_WINDOW_H

#include "onnx/rules.h"

typedef struct onnx_windows {
    int n; /* axes after (N, C) */
    int64_t kernel[6], stride[6], dilation[6];
    int64_t before[6], after[6]; /* the border */
    int64_t out[6];              /* how many windows */
    int64_t extra[6];            /* what the last window needs beyond the border (ceil_mode) */
} onnx_windows;

/* Reads kernel_shape (or takes the weight's), strides, dilations, pads, auto_pad, ceil_mode. False: an error. */
bool cn__onnx_windows(onnx_call *c, cn_tensor *x, cn_tensor *weight, onnx_windows *w);
/* Whether the border is the same on both sides, and at most half a kernel if `half`. */
bool cn__onnx_symmetric(const onnx_windows *w, bool half);
/* x with its border, and what ceil_mode adds, filled with numbers. */
cn_tensor *cn__onnx_bordered(onnx_call *c, cn_tensor *x, const onnx_windows *w, double value, double extra);
/* The windows of x (N, C, ...) as new axes at the end: (N, C, out..., kernel...). x has its border. */
cn_tensor *cn__onnx_unfolded(cn_tensor *x, const onnx_windows *w);
/* The last n axes, as cn_dims. */
cn_dims cn__onnx_last(int n);

/* rules_shape.c: x with a border of `before` and `after` elements along an axis; fewer where negative. */
cn_tensor *cn__onnx_padded(onnx_call *c, cn_tensor *x, int axis, int64_t before, int64_t after, const char *mode,
                           cn_tensor *value);
/* rules_conv.c: a convolution by windows, with any border. */
cn_tensor *cn__onnx_convolved(onnx_call *c, cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const onnx_windows *w,
                              int64_t groups);

#endif

/* Windows of convolutions and pooling. */
#include "onnx/window.h"

enum { LARGEST = INT32_MAX }; /* of kernels, strides and borders: no product below overflows */

static bool read_list(onnx_call *c, const char *name, int n, int64_t usual, int64_t least, int64_t *out)
{
    onnx_ints v;
    if (!cn__onnx_attr_ints(c, name, &v)) return false;
    if (v.n > 0 && v.n != n) return FAIL(CN_BAD_ARGUMENT, "%s must have %d numbers, got %d", name, n, v.n);
    for (int i = 0; i < n; i++) {
        out[i] = v.n > 0 ? v.v[i] : usual;
        if (out[i] < least || out[i] > LARGEST)
            return FAIL(CN_BAD_ARGUMENT, "%s must be ≥ %lld, got %lld", name, (long long)least, (long long)out[i]);
    }
    return true;
}

static void auto_pad(onnx_windows *w, const char *mode, const int64_t *size)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t out = (size[i] + w->stride[i] - 1) / w->stride[i];
        int64_t total = (out - 1) * w->stride[i] + span - size[i];
        if (total < 0 || !strcmp(mode, "VALID")) total = 0;
        w->before[i] = !strcmp(mode, "SAME_LOWER") ? total - total / 2 : total / 2;
        w->after[i] = total - w->before[i];
    }
}

bool cn__onnx_windows(onnx_call *c, cn_tensor *x, cn_tensor *weight, onnx_windows *w)
{
    *w = (onnx_windows){ .n = cn_ndim(x) - 2 };
    if (w->n < 1 || w->n > 3 || (weight && cn_ndim(weight) != cn_ndim(x)))
        return FAIL(CN_UNSUPPORTED, "the input must be (N, C, ...) with one to three further axes, got %d axes",
                    cn_ndim(x));
    int64_t size[3], pads[6];
    for (int i = 0; i < w->n; i++) size[i] = cn_size(x, i + 2);
    if (!read_list(c, "kernel_shape", w->n, 1, 1, w->kernel) || !read_list(c, "strides", w->n, 1, 1, w->stride) ||
        !read_list(c, "dilations", w->n, 1, 1, w->dilation) || !read_list(c, "pads", 2 * w->n, 0, -LARGEST, pads))
        return false;
    for (int i = 0; i < w->n; i++) {
        if (weight) w->kernel[i] = cn_size(weight, i + 2);
        if (w->kernel[i] > LARGEST || size[i] > LARGEST)
            return FAIL(CN_UNSUPPORTED, "axis %d is too large for a window", i + 2);
        w->before[i] = pads[i];
        w->after[i] = pads[i + w->n];
    }
    const char *mode = TEXT("auto_pad", "NOTSET");
    if (*mode && strcmp(mode, "NOTSET")) auto_pad(w, mode, size);
    for (int i = 0; i < w->n; i++) {
        const int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t room = size[i] + w->before[i] + w->after[i] - span;
        if (room < 0)
            return FAIL(CN_BAD_SHAPE, "axis %d of size %lld is smaller than the window of %lld", i + 2,
                        (long long)size[i], (long long)span);
        const bool up = INT("ceil_mode", 0) && room % w->stride[i];
        w->out[i] = room / w->stride[i] + 1 + up;
        if (up && (w->out[i] - 1) * w->stride[i] >= size[i] + w->before[i]) w->out[i]--;
        const int64_t need = (w->out[i] - 1) * w->stride[i] + span - (size[i] + w->before[i] + w->after[i]);
        w->extra[i] = need > 0 ? need : 0;
    }
    return true;
}

bool cn__onnx_symmetric(const onnx_windows *w, bool half)
{
    for (int i = 0; i < w->n; i++)
        if (w->before[i] != w->after[i] || w->before[i] < 0 || (half && w->before[i] > w->kernel[i] / 2)) return false;
    return true;
}

cn_tensor *cn__onnx_bordered(onnx_call *c, cn_tensor *x, const onnx_windows *w, double value, double extra)
{
    if (!x) return NULL;
    cn_tensor *fill = cn_full(c->ctx, cn_type(x), CN_SCALAR, value),
              *more = cn_full(c->ctx, cn_type(x), CN_SCALAR, extra);
    for (int i = 0; i < w->n; i++) x = cn__onnx_padded(c, x, i + 2, w->before[i], w->after[i], "constant", fill);
    for (int i = 0; i < w->n; i++) x = cn__onnx_padded(c, x, i + 2, 0, w->extra[i], "constant", more);
    return x;
}

cn_tensor *cn__onnx_unfolded(cn_tensor *x, const onnx_windows *w)
{
    for (int i = 0; i < w->n && x; i++) {
        x = cn_unfold(x, i + 2, (w->kernel[i] - 1) * w->dilation[i] + 1, w->stride[i]);
        if (w->dilation[i] > 1) x = cn_slice(x, -1, 0, INT64_MAX, w->dilation[i]);
        if (x && cn_size(x, i + 2) > w->out[i]) x = cn_narrow(x, i + 2, 0, w->out[i]);
    }
    return x;
}

cn_dims cn__onnx_last(int n)
{
    cn_dims d = { .n = n };
    for (int i = 0; i < n; i++) d.v[i] = i - n;
    return d;
}

/* Rules of quantised operators: whole numbers, with a scale and a zero point. */
#include "onnx/window.h"

/* A scale or zero point for x: one number, a number for each slice along an axis, or one for each block of it. */
static cn_tensor *fitted(onnx_call *c, cn_tensor *v, cn_tensor *x, int64_t at, int64_t block)
{
    if (!v || !x) return NULL;
    if (cn_numel(v) == 1 && cn_ndim(v) <= 1) return cn_reshape(v, CN_SCALAR);
    const int axis = cn__onnx_axis(c, at, cn_ndim(x));
    if (axis < 0) return NULL;
    if (cn_ndim(v) == 1 && !block) {
        cn_dims shape = { .n = cn_ndim(x) };
        for (int d = 0; d < shape.n; d++) shape.v[d] = d == axis ? cn_numel(v) : 1;
        return cn_reshape(v, shape);
    }
    if (!block || cn_ndim(v) != cn_ndim(x)) return v;
    cn_tensor *wide = cn_repeat_interleave(v, block, axis);
    return wide && cn_size(wide, axis) > cn_size(x, axis) ? cn_narrow(wide, axis, 0, cn_size(x, axis)) : wide;
}

static bool limits(onnx_call *c, cn_dtype t, double *low, double *high)
{
    switch (t) {
    case CN_U8: *low = 0, *high = 255; return true;
    case CN_I8: *low = -128, *high = 127; return true;
    case CN_I16: *low = -32768, *high = 32767; return true;
    case CN_I32: *low = 0, *high = 65535; return true; /* uint16 is i32 here */
    default: return FAIL(CN_UNSUPPORTED, "quantised numbers of type %s are not supported", cn_dtype_name(t));
    }
}

bool cn__onnx_quantize_linear(onnx_call *c)
{
    cn_tensor *x = IN(0), *scale = IN(1), *zero = IN(2);
    cn_dtype t = zero ? cn_type(zero) : CN_U8;
    double low, high;
    if (!x || !scale || (!zero && INT("output_dtype", 0) && !cn__onnx_cast_to(c, INT("output_dtype", 2), &t)) ||
        !limits(c, t, &low, &high))
        return false;
    const int64_t axis = INT("axis", 1), block = INT("block_size", 0);
    scale = fitted(c, scale, x, axis, block);
    if (!scale) return false;
    if (cn_type(x) != cn_type(scale)) x = cn_cast(x, cn_type(scale));
    cn_tensor *y = cn_round(cn_div(x, scale));
    if (zero) y = cn_add(y, cn_cast(fitted(c, zero, x, axis, block), cn_type(scale)));
    return GIVE(cn_cast(cn_clamp(y, low, high), t));
}

bool cn__onnx_dequantize_linear(onnx_call *c)
{
    cn_tensor *x = IN(0), *scale = IN(1), *zero = IN(2);
    if (!x || !scale) return false;
    const int64_t axis = INT("axis", 1), block = INT("block_size", 0);
    cn_dtype t = cn_type(scale);
    if (INT("output_dtype", 0) && !cn__onnx_cast_to(c, INT("output_dtype", 1), &t)) return false;
    const cn_dtype wide = cn_type(scale) == CN_F64 ? CN_F64 : CN_F32;
    cn_tensor *y = cn_cast(x, wide);
    if (zero) y = cn_sub(y, cn_cast(fitted(c, zero, x, axis, block), wide));
    return GIVE(cn_cast(cn_mul(y, cn_cast(fitted(c, scale, x, axis, block), wide)), t));
}

bool cn__onnx_dynamic_quantize_linear(onnx_call *c)
{
    cn_tensor *x = IN(0);
    cn_tensor *high = cn_maximum_s(cn_max(x, CN_ALL, false), 0), *low = cn_minimum_s(cn_min(x, CN_ALL, false), 0);
    cn_tensor *span = cn_sub(high, low);
    cn_tensor *scale = cn_div_s(cn_where(cn_eq_s(span, 0), cn_ones_like(span), span), 255);
    cn_tensor *zero = cn_round(cn_clamp(cn_neg(cn_div(low, scale)), 0, 255));
    cn_tensor *y = cn_clamp(cn_add(cn_round(cn_div(x, scale)), zero), 0, 255);
    return GIVE(cn_cast(y, CN_U8)) && GIVE_AT(1, scale) && GIVE_AT(2, cn_cast(zero, CN_U8));
}

/* ---- products of whole numbers, exactly: sums of up to 256 products of two bytes fit into f32 ---- */

static cn_tensor *centred(cn_tensor *x, cn_tensor *zero)
{
    x = cn_cast(x, CN_F32);
    return zero ? cn_sub(x, cn_cast(zero, CN_F32)) : x;
}

static cn_tensor *whole_product(onnx_call *c, cn_tensor *a, cn_tensor *b)
{
    if (!a || !b) return NULL;
    const int64_t k = cn_size(a, -1), rows = cn_ndim(b) > 1 ? -2 : -1;
    cn_tensor *sum = NULL;
    for (int64_t at = 0; at < k || !sum; at += 256) {
        const int64_t n = k - at < 256 ? k - at : 256;
        cn_tensor *part = cn_cast(cn_matmul(cn_narrow(a, -1, at, n), cn_narrow(b, rows, at, n)), CN_I32);
        sum = sum ? cn_add(sum, part) : part;
        if (!sum || !cn__onnx_work(c->run, 1)) return NULL;
    }
    return sum;
}

/* A zero point of rows of a, or columns of b, as it broadcasts. */
static cn_tensor *of_rows(cn_tensor *zero)
{
    return zero && cn_ndim(zero) == 1 && cn_numel(zero) > 1 ? cn_unsqueeze(zero, 1) : zero;
}

bool cn__onnx_mat_mul_integer(onnx_call *c)
{
    return GIVE(whole_product(c, centred(IN(0), of_rows(IN(2))), centred(IN(1), IN(3))));
}

/* y = round(sum · scale) + zero, within the type of zero */
static bool requantised(onnx_call *c, cn_tensor *sum, cn_tensor *scale, cn_tensor *zero, cn_dtype t)
{
    double low, high;
    if (!sum || !limits(c, t, &low, &high)) return false;
    cn_tensor *y = cn_mul(cn_cast(sum, CN_F32), scale);
    if (zero) y = cn_add(y, cn_cast(zero, CN_F32));
    return GIVE(cn_cast(cn_clamp(cn_round(y), low, high), t));
}

static cn_tensor *wide_scale(cn_tensor *s) { return s ? cn_cast(s, CN_F32) : NULL; }

bool cn__onnx_qlinear_mat_mul(onnx_call *c)
{
    cn_tensor *a = IN(0), *zero = IN(7);
    if (!a) return false;
    cn_tensor *scale = cn_div(cn_mul(of_rows(wide_scale(IN(1))), wide_scale(IN(4))), wide_scale(IN(6)));
    cn_tensor *sum = whole_product(c, centred(a, of_rows(IN(2))), centred(IN(3), IN(5)));
    return requantised(c, sum, scale, zero, zero ? cn_type(zero) : cn_type(a));
}

/* A number for each output channel of a convolution with n axes in its weight. */
static cn_tensor *of_channels(cn_tensor *v, int n)
{
    if (!v || cn_numel(v) == 1) return v ? cn_reshape(v, CN_SCALAR) : NULL;
    cn_dims shape = { .n = n };
    for (int d = 0; d < n; d++) shape.v[d] = d ? 1 : cn_numel(v);
    return cn_reshape(v, shape);
}

static cn_tensor *whole_convolution(onnx_call *c, cn_tensor *x, cn_tensor *x_zero, cn_tensor *w, cn_tensor *w_zero)
{
    onnx_windows at;
    if (!x || !w || !cn__onnx_windows(c, x, w, &at)) return NULL;
    cn_tensor *a = centred(x, x_zero ? cn_reshape(x_zero, CN_SCALAR) : NULL);
    cn_tensor *b = centred(w, of_channels(w_zero, cn_ndim(w)));
    int64_t taps = cn_size(w, 1);
    for (int d = 2; d < cn_ndim(w); d++) taps *= cn_size(w, d);
    if (taps > 256) a = cn_cast(a, CN_F64), b = cn_cast(b, CN_F64);
    return cn_cast(cn__onnx_convolved(c, a, b, NULL, &at, INT("group", 1)), CN_I32);
}

bool cn__onnx_conv_integer(onnx_call *c) { return GIVE(whole_convolution(c, IN(0), IN(2), IN(1), IN(3))); }

bool cn__onnx_qlinear_conv(onnx_call *c)
{
    cn_tensor *x = IN(0), *w = IN(3), *zero = IN(7), *bias = IN(8);
    cn_tensor *sum = whole_convolution(c, x, IN(2), w, IN(5));
    if (!sum) return false;
    const int n = cn_ndim(w) - 1;
    if (bias) sum = cn_add(sum, of_channels(bias, n));
    cn_tensor *scale = cn_div(cn_mul(wide_scale(IN(1)), of_channels(wide_scale(IN(4)), n)), wide_scale(IN(6)));
    return requantised(c, sum, scale, zero, zero ? cn_type(zero) : cn_type(x));
}

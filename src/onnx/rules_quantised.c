/* Rules of quantised operators: whole numbers, with a scale and a zero point. */
#include "core/handle.h"
#include "onnx/window.h"
#include "ops/contract/contract.h"

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

/* ---- products of whole numbers, exactly ---- */

static cn_tensor *centred(cn_tensor *x, cn_tensor *zero, cn_dtype t)
{
    x = cn_cast(x, t);
    return zero ? cn_sub(x, cn_cast(zero, t)) : x;
}

/* A zero point of rows of a, or columns of b, as it broadcasts. */
static cn_tensor *of_rows(cn_tensor *zero)
{
    return zero && cn_ndim(zero) == 1 && cn_numel(zero) > 1 ? cn_unsqueeze(zero, 1) : zero;
}

static cn_tensor *whole_product(onnx_call *c, cn_tensor *a, cn_tensor *a_zero, cn_tensor *b, cn_tensor *b_zero)
{
    cn_tensor *from[] = { b, b_zero }, *weight = cn__onnx_derived_from(c, 0, from, 2);
    if (!weight) weight = cn__onnx_derive(c, 0, from, 2, centred(b, b_zero, CN_I32));
    return cn_matmul(centred(a, of_rows(a_zero), CN_I32), weight);
}

bool cn__onnx_mat_mul_integer(onnx_call *c) { return GIVE(whole_product(c, IN(0), IN(2), IN(1), IN(3))); }

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
    cn_tensor *sum = whole_product(c, a, IN(2), IN(3), IN(5));
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

/* Whether sums of products with the weight b are exact in f32: the largest sum of an output channel is below 2^24. A
   weight that the model keeps is looked at once; of others only the number of taps is known. */
static bool fits_f32(onnx_call *c, cn_tensor *w, cn_tensor *b)
{
    const double largest = 255, most = 1 << 24;
    const double taps = cn_size(w, 0) ? (double)cn_numel(w) / (double)cn_size(w, 0) : 0;
    if (taps * largest * largest < most) return true;
    if (!c->run->folds || w->kept == 0 || c->ctx != c->run->model->ctx || !cn_numel(w)) return false;
    cn_tensor *sums = cn_sum(cn_reshape(cn_abs(b), CN_DIMS(cn_size(w, 0), -1)), CN_DIMS(1), false);
    return cn_item(cn_max(sums, CN_ALL, false)) * largest < most;
}

/* The weight without its zero point, in the type in which products are exact. */
static cn_tensor *whole_weight(onnx_call *c, cn_tensor *w, cn_tensor *zero)
{
    cn_tensor *from[] = { w, zero }, *b = cn__onnx_derived_from(c, 0, from, 2);
    if (b) return b;
    b = centred(w, of_channels(zero, cn_ndim(w)), CN_F32);
    if (b && !fits_f32(c, w, b)) b = cn_cast(b, CN_F64);
    return cn__onnx_derive(c, 0, from, 2, b);
}

/* A convolution whose sums are plain: Winograd's squares are not exact. */
static cn_tensor *plain_sums(onnx_call *c, cn_tensor *x, cn_tensor *w, const onnx_windows *at)
{
    const int first = 3 - at->n;
    cn__conv_attrs a = { { 1, 1, 1 }, { 0 }, { 1, 1, 1 }, INT("group", 1), { 0 } };
    cn_dims out = { .n = at->n + 2, .v = { cn_size(x, 0), cn_size(w, 0) } };
    a.size[0] = CN__CONV_PLAIN;
    for (int i = 0; i < at->n; i++) {
        a.stride[first + i] = at->stride[i];
        a.padding[first + i] = at->before[i];
        a.dilation[first + i] = at->dilation[i];
        out.v[2 + i] = at->out[i];
    }
    for (int i = 0; i < first; i++) x = cn_unsqueeze(x, 2), w = cn_unsqueeze(w, 2);
    return cn_reshape(cn_apply(&cn__op_conv, (cn_tensor *[]){ x, w }, 2, &a, NULL), out);
}

static cn_tensor *whole_convolution(onnx_call *c, cn_tensor *x, cn_tensor *x_zero, cn_tensor *w, cn_tensor *w_zero)
{
    onnx_windows at;
    if (!x || !w || !cn__onnx_windows(c, x, w, &at)) return NULL;
    cn_tensor *b = whole_weight(c, w, w_zero);
    if (!b) return NULL;
    cn_tensor *a = centred(x, x_zero ? cn_reshape(x_zero, CN_SCALAR) : NULL, cn_type(b));
    if (!cn__onnx_symmetric(&at, false)) {
        a = cn__onnx_bordered(c, a, &at, 0, 0);
        for (int i = 0; i < at.n; i++) at.before[i] = at.after[i] = 0;
    }
    return cn_cast(plain_sums(c, a, b, &at), CN_I32);
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

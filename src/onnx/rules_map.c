/* Rules of elementwise operators that have attributes, or whose types differ from Cairn's. */
#include "onnx/rules.h"

typedef cn_tensor *two(cn_tensor *x, cn_tensor *y);

static bool is_whole(cn_tensor *x) { return x && !cn_dtype_is_float(cn_type(x)); }

/* Whole numbers are divided towards 0. */
bool cn__onnx_div(onnx_call *c)
{
    cn_tensor *x = IN(0), *y = IN(1);
    if (!is_whole(x)) return GIVE(cn_div(x, y));
    return GIVE(cn_floor_div(cn_sub(x, cn_fmod(x, y)), y));
}

bool cn__onnx_mod(onnx_call *c) { return GIVE(INT("fmod", 0) ? cn_fmod(IN(0), IN(1)) : cn_remainder(IN(0), IN(1))); }

/* The result has the type of the base. */
bool cn__onnx_pow(onnx_call *c)
{
    cn_tensor *x = IN(0), *y = IN(1);
    if (!x || !y) return false;
    const cn_dtype t = cn_type(x);
    onnx_floats power = { .n = 0 };
    if (c->in[1]->known && cn_numel(y) == 1 && cn_ndim(y) <= cn_ndim(x) && !is_whole(x)) {
        if (!cn__onnx_floats(c, 1, &power)) return false;
        return GIVE(cn_pow_s(x, power.v[0]));
    }
    if (is_whole(x) && !is_whole(y)) return GIVE(cn_cast(cn_pow(cn_cast(x, CN_F64), cn_cast(y, CN_F64)), t));
    return GIVE(cn_pow(x, cn_cast(y, t)));
}

static cn_tensor *folded(onnx_call *c, two *op)
{
    cn_tensor *y = IN(0);
    for (int i = 1; i < c->n_in; i++) y = op(y, IN(i));
    return y;
}
bool cn__onnx_max(onnx_call *c) { return GIVE(folded(c, cn_maximum)); }
bool cn__onnx_min(onnx_call *c) { return GIVE(folded(c, cn_minimum)); }
bool cn__onnx_sum(onnx_call *c) { return GIVE(folded(c, cn_add)); }
bool cn__onnx_mean(onnx_call *c) { return GIVE(cn_div_s(folded(c, cn_add), c->n_in)); }

bool cn__onnx_bit_shift(onnx_call *c)
{
    const bool left = !strcmp(TEXT("direction", "LEFT"), "LEFT");
    return GIVE(left ? cn_shift_left(IN(0), IN(1)) : cn_shift_right(IN(0), IN(1)));
}

/* ---- activations ---- */

bool cn__onnx_selu(onnx_call *c)
{
    const double alpha = FLOAT("alpha", 1.67326319217681884765625), gamma = FLOAT("gamma", 1.05070102214813232421875);
    return GIVE(cn_mul_s(cn_elu(IN(0), alpha), gamma));
}
bool cn__onnx_gelu(onnx_call *c)
{
    return GIVE(strcmp(TEXT("approximate", "none"), "tanh") ? cn_gelu(IN(0)) : cn_gelu_tanh(IN(0)));
}
bool cn__onnx_hard_sigmoid(onnx_call *c)
{
    return GIVE(cn_clamp(cn_add_s(cn_mul_s(IN(0), FLOAT("alpha", 0.2)), FLOAT("beta", 0.5)), 0, 1));
}
bool cn__onnx_elu(onnx_call *c) { return GIVE(cn_elu(IN(0), FLOAT("alpha", 1))); }
bool cn__onnx_celu(onnx_call *c) { return GIVE(cn_celu(IN(0), FLOAT("alpha", 1))); }
bool cn__onnx_leaky_relu(onnx_call *c) { return GIVE(cn_leaky_relu(IN(0), FLOAT("alpha", 0.01))); }
bool cn__onnx_softplus(onnx_call *c) { return GIVE(cn_softplus(IN(0), 1, 20)); }
bool cn__onnx_thresholded_relu(onnx_call *c)
{
    cn_tensor *x = IN(0);
    return GIVE(cn_where(cn_gt_s(x, FLOAT("alpha", 1)), x, cn_zeros_like(x)));
}
bool cn__onnx_prelu(onnx_call *c)
{
    cn_tensor *x = IN(0);
    return GIVE(cn_where(cn_gt_s(x, 0), x, cn_mul(x, IN(1))));
}
bool cn__onnx_shrink(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const double lambda = FLOAT("lambd", 0.5), bias = FLOAT("bias", 0);
    if (!x) return false;
    cn_tensor *y = cn_where(cn_lt_s(x, -lambda), cn_add_s(x, bias), cn_zeros_like(x));
    return GIVE(cn_cast(cn_where(cn_gt_s(x, lambda), cn_sub_s(x, bias), y), cn_type(x)));
}
bool cn__onnx_swish(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const double alpha = FLOAT("alpha", 1);
    return GIVE(alpha == 1 ? cn_silu(x) : cn_mul(x, cn_sigmoid(cn_mul_s(x, alpha))));
}
bool cn__onnx_swiglu(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const double alpha = FLOAT("alpha", 1);
    return GIVE(cn_mul(alpha == 1 ? cn_silu(x) : cn_mul(x, cn_sigmoid(cn_mul_s(x, alpha))), IN(1)));
}

/* ---- limits and tests ---- */

bool cn__onnx_clip(onnx_call *c)
{
    cn_tensor *x = IN(0);
    if (c->version < 11) return GIVE(cn_clamp(x, FLOAT("min", -INFINITY), FLOAT("max", INFINITY)));
    const bool known = (!HAS(1) || c->in[1]->known) && (!HAS(2) || c->in[2]->known);
    if (known && !is_whole(x)) {
        onnx_floats low, high;
        if (!cn__onnx_floats(c, 1, &low) || !cn__onnx_floats(c, 2, &high)) return false;
        return GIVE(cn_clamp(x, low.n > 0 ? low.v[0] : -INFINITY, high.n > 0 ? high.v[0] : INFINITY));
    }
    if (HAS(1)) x = cn_maximum(x, IN(1));
    if (HAS(2)) x = cn_minimum(x, IN(2));
    return GIVE(x);
}

bool cn__onnx_is_inf(onnx_call *c)
{
    const bool negative = INT("detect_negative", 1) != 0, positive = INT("detect_positive", 1) != 0;
    cn_tensor *x = IN(0);
    if (negative && positive) return GIVE(cn_isinf(x));
    if (negative || positive) return GIVE(positive ? cn_isposinf(x) : cn_isneginf(x));
    return GIVE(x ? cn_zeros(c->ctx, CN_BOOL, cn_shape(x)) : NULL);
}

/* ---- types ---- */

bool cn__onnx_identity(onnx_call *c) { return cn__onnx_give_value(c, 0, *c->in[0]); }

bool cn__onnx_cast(onnx_call *c)
{
    cn_dtype t;
    return cn__onnx_cast_to(c, INT("to", 0), &t) && GIVE(cn_cast(IN(0), t));
}

bool cn__onnx_cast_like(onnx_call *c)
{
    cn_tensor *like = IN(1);
    return like && GIVE(cn_cast(IN(0), cn_type(like)));
}

/* The same bytes as another type of this size. */
bool cn__onnx_bit_cast(onnx_call *c)
{
    cn_dtype t;
    cn_tensor *x = IN(0);
    if (!x || !cn__onnx_cast_to(c, INT("to", 0), &t)) return false;
    if (cn_dtype_size(t) != cn_dtype_size(cn_type(x)))
        return FAIL(CN_BAD_DTYPE, "a type of %zu bytes is asked for, the input's has %zu", cn_dtype_size(t),
                    cn_dtype_size(cn_type(x)));
    const size_t bytes = (size_t)cn_numel(x) * cn_dtype_size(t);
    void *copy = cn__onnx_run_new(c->run, bytes, 1);
    return copy && cn_read(x, copy, bytes) && GIVE(cn_from(c->ctx, t, cn_shape(x), copy));
}

/* Rules of random draws: their numbers are the context's, so a seed of the file does not give another library's. */
#include "onnx/rules.h"

static bool type_and_shape(onnx_call *c, bool like, cn_dtype *t, cn_dims *shape)
{
    cn_tensor *x = like ? IN(0) : NULL;
    onnx_ints sizes;
    if (like && !x) return false;
    *t = x && cn_dtype_is_float(cn_type(x)) ? cn_type(x) : CN_F32;
    if (x) *shape = cn_shape(x);
    else if (!cn__onnx_attr_ints(c, "shape", &sizes) || !cn__onnx_dims(c, &sizes, shape)) return false;
    return !cn__onnx_attr(c, "dtype") || cn__onnx_cast_to(c, INT("dtype", 1), t);
}

static bool normal(onnx_call *c, bool like)
{
    cn_dtype t;
    cn_dims shape;
    if (!type_and_shape(c, like, &t, &shape)) return false;
    return GIVE(cn_add_s(cn_mul_s(cn_randn(c->ctx, t, shape), FLOAT("scale", 1)), FLOAT("mean", 0)));
}
bool cn__onnx_random_normal(onnx_call *c) { return normal(c, false); }
bool cn__onnx_random_normal_like(onnx_call *c) { return normal(c, true); }

static bool uniform(onnx_call *c, bool like)
{
    cn_dtype t;
    cn_dims shape;
    const double low = FLOAT("low", 0), high = FLOAT("high", 1);
    if (!type_and_shape(c, like, &t, &shape)) return false;
    return GIVE(cn_add_s(cn_mul_s(cn_rand(c->ctx, t, shape), high - low), low));
}
bool cn__onnx_random_uniform(onnx_call *c) { return uniform(c, false); }
bool cn__onnx_random_uniform_like(onnx_call *c) { return uniform(c, true); }

bool cn__onnx_bernoulli(onnx_call *c)
{
    cn_tensor *x = IN(0);
    cn_dtype t = x ? cn_type(x) : CN_F32;
    if (!x || (cn__onnx_attr(c, "dtype") && !cn__onnx_cast_to(c, INT("dtype", 1), &t))) return false;
    return GIVE(cn_cast(cn_bernoulli(x), t));
}

bool cn__onnx_multinomial(onnx_call *c)
{
    cn_dtype t;
    if (!cn__onnx_cast_to(c, INT("dtype", 6), &t)) return false;
    return GIVE(cn_cast(cn_multinomial(cn_softmax(IN(0), -1), INT("sample_size", 1), true), t));
}

/* ternary.c: the operators of ternary.def: loops, gradients, records, functions. */
#include "ops/shared.h"

#include "classes.h"
#include "dispatch.h"
#include "elementary.h"
#include "whole.h"

/* ---- loops ---- */

#define DEFINE(name, R, expression)                          \
    BODY(LOOP(name))                                         \
    {                                                        \
        const T *a = l->in[0], *b = l->in[1], *c = l->in[2]; \
        R *out = l->out;                                     \
        const P p0 = PLAIN(P, l->args[0].f);                 \
        (void)p0;                                            \
        INDEPENDENT                                          \
        for (int64_t i = 0, n = l->n; i < n; i++) {                 \
            E x = (E)a[i], y = (E)b[i], z = (E)c[i];         \
            out[i] = (R)(expression);                        \
        }                                                    \
    }                                                        \
    DISPATCH(LOOP(name))
#define TERNARY(name, class, cost, doc, real, whole, ...) ROW_LOOP(name, class, real, whole)
#define ROWS "ternary.def"
#include "loops.h"
#undef TERNARY

/* ---- gradients ---- */

static cn_tensor *apply(const cn_op *op, cn_tensor *x, cn_tensor *y, cn_tensor *z, double p0)
{
    return cn_apply(op, (cn_tensor *[]){ x, y, z }, 3, NULL, (cn_arg[CN_MAX_ARGS]){ { .f = p0 } });
}

static cn_tensor *otherwise_none(cn_tensor *condition, cn_tensor *g) { return cn_where(condition, g, cn__weak(g, 0)); }

/* g z (x - y)/(x (1 - x)), the divisor not below 1e-12 (in f32): PyTorch's, which goes on where the logarithm stops */
static cn_tensor *bce_grad_of_input(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z)
{
    cn_tensor *spread = cn_clamp(cn_mul(cn_rsub_s(x, 1), x), 1e-12f, INFINITY);
    return cn_div(cn_mul(cn_mul(g, z), cn_sub(x, y)), spread);
}
static cn_tensor *bce_log(cn_tensor *log) { return cn_clamp(log, -100, 0); }

extern const cn_op cn__op_binary_cross_entropy;

#define TERNARY(name, class, cost, doc, real, whole, wgsl, of_x, of_y, of_z, ...)                          \
    static void name##_grad(cn_grad_call *c)                                                               \
    {                                                                                                      \
        cn_tensor *g = c->out_grad[0], *x = c->in[0], *y = c->in[1], *z = c->in[2];                        \
        double p0 = c->args[0].f;                                                                          \
        (void)x, (void)y, (void)p0;                                                                        \
        if (c->needs[0]) c->in_grad[0] = (of_x);                                                           \
        if (c->needs[1]) c->in_grad[1] = (of_y);                                                           \
        if (c->needs[2]) c->in_grad[2] = (of_z);                                                           \
    }
#include "ternary.def"
#undef TERNARY

/* ---- records ---- */

#define CALL_clamp_t              "clamp_t(Tensor input, Tensor min, Tensor max) -> Tensor"
#define CALL_lerp                 "lerp(Tensor input, Tensor end, Tensor weight) -> Tensor"
#define CALL_addcmul              "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, float value=1) -> Tensor"
#define CALL_addcdiv              "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, float value=1) -> Tensor"
#define CALL_binary_cross_entropy "_binary_cross_entropy(Tensor input, Tensor target, Tensor weight) -> Tensor"
#define THREE(...) { CN_IN(CN_S(__VA_ARGS__), CN_S(__VA_ARGS__), CN_S(__VA_ARGS__)), CN_ARGS({ .f = 2 }) }
static const cn_case cases[] = {
    THREE(2, 3, 4), THREE(7), THREE(3, 0), THREE(65, 67),
    { CN_IN(CN_S(2, 1, 4), CN_S(3, 1), CN_S(1)), CN_ARGS({ .f = 2 }) },
};
#define TERNARY(name_, class, cost, doc_, real, whole, wgsl_, of_x, of_y, of_z, onnx_, xl, xh, yl, yh, zl, zh)        \
    const cn_op cn__op_##name_ = {                                                                                    \
        .call = CALL_##name_,                                                                                         \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 3, .n_out = 1, .cheap = cost, DTYPES_##class,        \
        .infer = INFER_##class, GRAD_##class(name_), .loops = { LOOPS_##class(name_) },                               \
        .wgsl = wgsl_, .onnx = onnx_,                                                                                 \
        CN_CASES_OF(cases), .ranges = (const float[]){ xl, xh, yl, yh, zl, zh },                                      \
    };
#include "ternary.def"
#undef TERNARY

/* ---- functions ---- */

cn_tensor *cn_clamp_t(cn_tensor *x, cn_tensor *low, cn_tensor *high) { return apply(&cn__op_clamp_t, x, low, high, 0); }

cn_tensor *cn_lerp(cn_tensor *start, cn_tensor *end, cn_tensor *weight)
{
    return apply(&cn__op_lerp, start, end, weight, 0);
}

cn_tensor *cn_addcmul(cn_tensor *x, cn_tensor *a, cn_tensor *b, double value)
{
    if (!x || !a || !b) return NULL;
    cn_dtype t = cn__result_dtype(&cn__op_addcmul, (cn_tensor *[]){ x, a, b }, 3);
    if (!cn_dtype_is_float(t) && value != floor(value)) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "addcmul: %g times a product of %s is not whole", value, cn_dtype_name(t));
        return NULL;
    }
    return apply(&cn__op_addcmul, x, a, b, value);
}

cn_tensor *cn_addcdiv(cn_tensor *x, cn_tensor *a, cn_tensor *b, double value)
{
    return apply(&cn__op_addcdiv, x, a, b, value);
}

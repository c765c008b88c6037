/* ternary.c: the operators of ternary.def: gradients, records, functions. Their loops are in ternary_cpu.c. */
#include "ops/shared.h"

#include <math.h>

#include "classes.h"
#include "ops/kernels.h"

/* ---- gradients ---- */

static cn_tensor *apply(const cn_op *op, cn_tensor *x, cn_tensor *y, cn_tensor *z, double p0)
{
    return cn_apply(op, (cn_tensor *[]){ x, y, z }, 3, NULL, (cn_arg[CN_MAX_ARGS]){ { .f = p0 } });
}

static cn_tensor *otherwise_none(cn_tensor *condition, cn_tensor *g) { return cn_where(condition, g, cn__weak(g, 0)); }

/* The gradients of clamp_t are PyTorch's. Where x equals a limit, both get g/2; but x gets g if the limits are equal.
   */
static cn_tensor *clamp_halves(cn_tensor *equal, cn_tensor *min, cn_tensor *max, cn_tensor *g, cn_tensor *otherwise)
{
    return cn_where(cn_logical_and(cn_lt(min, max), equal), cn_mul_s(g, 0.5), otherwise);
}
static cn_tensor *clamp_grad_of_x(cn_tensor *g, cn_tensor *x, cn_tensor *min, cn_tensor *max)
{
    cn_tensor *outside = cn_logical_or(cn_lt(x, min), cn_gt(x, max)), *at = cn_logical_or(cn_eq(x, min), cn_eq(x, max));
    return clamp_halves(at, min, max, g, cn_where(outside, cn__weak(g, 0), g));
}
static cn_tensor *clamp_grad_of_min(cn_tensor *g, cn_tensor *x, cn_tensor *min, cn_tensor *max)
{
    cn_tensor *below = cn_logical_and(cn_le(min, max), cn_lt(x, min));
    return clamp_halves(cn_eq(x, min), min, max, g, otherwise_none(below, g));
}
/* Where the limits cross, the result is max, whatever x is. */
static cn_tensor *clamp_grad_of_max(cn_tensor *g, cn_tensor *x, cn_tensor *min, cn_tensor *max)
{
    cn_tensor *above = cn_logical_and(cn_le(min, max), cn_gt(x, max));
    return clamp_halves(cn_eq(x, max), min, max, g, otherwise_none(cn_logical_or(cn_lt(max, min), above), g));
}

/* g z (x - y)/(x (1 - x)), with a divisor ≥ 1e-12 (in f32). This is PyTorch's gradient: it ignores that the logarithm
   is limited to -100. */
static cn_tensor *bce_grad_of_input(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z)
{
    cn_tensor *spread = cn_clamp(cn_mul(cn_rsub_s(x, 1), x), 1e-12f, INFINITY);
    return cn_div(cn_mul(cn_mul(g, z), cn_sub(x, y)), spread);
}
static cn_tensor *bce_log(cn_tensor *log) { return cn_clamp(log, -100, 0); }

extern const cn_op cn__op_binary_cross_entropy;

typedef cn_tensor *(*gradient_fn)(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z, double p0);

static void gradients(cn_grad_call *c, gradient_fn of_x, gradient_fn of_y, gradient_fn of_z)
{
    const gradient_fn of[] = { of_x, of_y, of_z };
    for (int i = 0; i < 3; i++)
        if (c->needs[i]) c->in_grad[i] = of[i](c->out_grad[0], c->in[0], c->in[1], c->in[2], c->args[0].f);
}

#define GRADIENT_OF(name, expression)                                                                                  \
    static cn_tensor *name(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z, double p0)                          \
    {                                                                                                                  \
        return (void)x, (void)y, (void)z, (void)p0, (expression);                                                      \
    }
#define TERNARY(name, class, cost, doc, real, whole, wgsl, of_x, of_y, of_z, ...)                                      \
    GRADIENT_OF(name##_grad_of_x, of_x)                                                                                \
    GRADIENT_OF(name##_grad_of_y, of_y)                                                                                \
    GRADIENT_OF(name##_grad_of_z, of_z)                                                                                \
    static void name##_grad(cn_grad_call *c)                                                                           \
    {                                                                                                                  \
        gradients(c, name##_grad_of_x, name##_grad_of_y, name##_grad_of_z);                                            \
    }
#include "ternary.def"
#undef TERNARY

/* ---- records ---- */

#define THREE(...) { CN_IN(CN_S(__VA_ARGS__), CN_S(__VA_ARGS__), CN_S(__VA_ARGS__)), CN_ARGS({ .f = 2 }) }
static const cn_case cases[] = {
    THREE(2, 3, 4), THREE(7), THREE(3, 0), THREE(65, 67),
    { CN_IN(CN_S(2, 1, 4), CN_S(3, 1), CN_S(1)), CN_ARGS({ .f = 2 }) },
};
#define TERNARY(name_, class, cost, doc_, real, whole, wgsl_, of_x, of_y, of_z, onnx_, xl, xh, yl, yh, zl, zh, call_) \
    const cn_op cn__op_##name_ = {                                                                                    \
        .call = call_,                                                                                                \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 3, .n_out = 1, .cheap = cost, DTYPES_##class,        \
        .any_order = true, .infer = INFER_##class, GRAD_##class(name_), .kernels_at = CN__AT(ternary, name_),                             \
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
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !cn__of_context(x->ctx, a, __func__, "tensor1") || !cn__of_context(x->ctx, b, __func__, "tensor2"))
        return NULL;
    cn_dtype t = cn__result_dtype(&cn__op_addcmul, (cn_tensor *[]){ x, a, b }, 3);
    if (!cn_dtype_is_float(t)) {
        if (!cn__check_fits(x->ctx, "addcmul", "value", t, value)) return NULL;
        value = trunc(value); /* as in PyTorch */
    }
    return apply(&cn__op_addcmul, x, a, b, value);
}

cn_tensor *cn_addcdiv(cn_tensor *x, cn_tensor *a, cn_tensor *b, double value)
{
    return apply(&cn__op_addcdiv, x, a, b, value);
}

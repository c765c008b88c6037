/* unary.c: the operators of unary.def: gradients, records, functions. Their loops are in unary_cpu.c. */
#include "ops/shared.h"

#include "classes.h"
#include "ops/kernels.h"
#include "slope.h"

#define LN2              0.69314718055994530942
#define LN10             2.30258509299404568402
#define PI               3.14159265358979323846
#define TWO_OVER_SQRT_PI 1.12837916709551257390
#define SELU_SCALE       1.0507009873554804934193349852946
#define SELU_ALPHA       1.6732632423543772848170429916717

/* ---- gradients that take more than one line ---- */

static cn_tensor *zero(cn_tensor *g) { return cn__weak(g, 0); }
static cn_tensor *unless(cn_tensor *condition, cn_tensor *g) { return cn_where(condition, zero(g), g); }
static cn_tensor *within(cn_tensor *x, double low, double high)
{
    return cn_logical_and(cn_gt_s(x, low), cn_lt_s(x, high));
}

/* y + λα = λα e^x where x < 0 */
static cn_tensor *selu_grad_of(cn_tensor *g, cn_tensor *y)
{
    cn_tensor *left = cn_add_s(y, SELU_SCALE * SELU_ALPHA);
    return cn_mul(g, cn_where(cn_gt_s(y, 0), cn__weak(left, SELU_SCALE), left));
}

/* with t = tanh(softplus(x)): t + x(1 - t²) sigmoid(x) */
static cn_tensor *mish_grad_of(cn_tensor *g, cn_tensor *x)
{
    cn_tensor *t = cn_tanh(cn_softplus(x, 1, 20));
    return cn_mul(g, cn_add(t, cn_mul(cn_mul(x, cn_sigmoid(x)), cn_rsub_s(cn_square(t), 1))));
}

/* 0 below -3, x/3 + 1/2, 1 from 3 */
static cn_tensor *hardswish_grad_of(cn_tensor *g, cn_tensor *x)
{
    cn_tensor *middle = cn_mul(g, cn_add_s(cn_mul_s(x, 1.0 / 3), 0.5));
    return cn_where(cn_ge_s(x, 3), g, unless(cn_le_s(x, -3), middle));
}

/* (cos(πx) - y)/x; near 0, where these cancel, the series -π²x(1/3 - z/30 + z²/840 - ..) with z = (πx)² */
static cn_tensor *sinc_grad_of(cn_tensor *g, cn_tensor *x, cn_tensor *y)
{
    static const double series[] = { 1.0 / 3991680, -1.0 / 45360, 1.0 / 840, -1.0 / 30, 1.0 / 3 };
    cn_tensor *near = cn_lt_s(cn_abs(x), 0.05), *safe = cn_where(near, cn__weak(x, 1), x);
    cn_tensor *slope = cn_div(cn_sub(cn_cos(cn_mul_s(x, PI)), y), safe);
    cn_tensor *z = cn_square(cn_mul_s(x, PI)), *sum = cn_mul_s(z, series[0]);
    for (int k = 1; k < 4; k++) sum = cn_mul(cn_add_s(sum, series[k]), z);
    return cn_mul(g, cn_where(near, cn_mul(cn_mul_s(x, -PI * PI), cn_add_s(sum, series[4])), slope));
}

#define GRADIENT(name, expression)                                                                                     \
    static cn_tensor *name##_grad_of_x(cn_tensor *g, cn_tensor *x, cn_tensor *y)                                       \
    {                                                                                                                  \
        return (void)g, (void)x, (void)y, (expression);                                                                \
    }                                                                                                                  \
    static void name##_grad(cn_grad_call *c)                                                                           \
    {                                                                                                                  \
        c->in_grad[0] = name##_grad_of_x(c->out_grad[0], c->in[0], c->out[0]);                                         \
    }
#define GRADIENT_REAL(name, expression)   GRADIENT(name, expression)
#define GRADIENT_FLOAT(name, expression)  GRADIENT(name, expression)
#define GRADIENT_NUMBER(name, expression) GRADIENT(name, expression)
#define GRADIENT_ANY(name, expression)    GRADIENT(name, expression)
#define GRADIENT_TEST(name, expression)
#define GRADIENT_BITS(name, expression)
#define UNARY(name, class, cost, doc, real, whole, wgsl, grad, onnx, low, high) GRADIENT_##class(name, grad)
#include "unary.def"
#undef UNARY

/* ---- records ---- */

static const cn_case cases[] = {
    { CN_IN(CN_S(2, 3, 4)) }, { CN_IN(CN_S(7)) }, { CN_IN(CN_S0) }, { CN_IN(CN_S(3, 0)) }, { CN_IN(CN_S(65, 67)) },
};
#define UNARY(name_, class, cost, doc_, real, whole, wgsl_, grad_, onnx_, low, high)                            \
    const cn_op cn__op_##name_ = {                                                                              \
        .call = #name_ "(Tensor input) -> Tensor",                                                              \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 1, .n_out = 1, .cheap = cost, DTYPES_##class,  \
        .any_order = true, .infer = INFER_##class, GRAD_##class(name_), .kernels_at = CN__AT(unary, name_),                        \
        .wgsl = wgsl_, .onnx = onnx_,                                                                           \
        CN_CASES_OF(cases), .ranges = (const float[]){ low, high },                                             \
    };
#include "unary.def"
#undef UNARY

/* ---- functions ---- */

/* As in PyTorch, the square of a bool is an i64. */
static cn_tensor *apply(const cn_op *op, cn_tensor *x)
{
    if (op == &cn__op_square && cn__alive_in(x, op->name) && cn__dtype(x) == CN_BOOL) x = cn_cast(x, CN_I64);
    return cn_apply(op, &x, 1, NULL, NULL);
}

#define UNARY(name, class, cost, doc, real, whole, wgsl, grad, onnx, low, high) \
    cn_tensor *cn_##name(cn_tensor *x) { return apply(&cn__op_##name, x); }     \
    bool cn_##name##_(cn_tensor *x)                                             \
    {                                                                           \
        CN__CALL call = cn__call_tensor(x);                                     \
        return call.ctx && cn__rebind(x, cn_##name(x));                         \
    }
#include "unary.def"
#undef UNARY

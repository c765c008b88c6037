/* slope.c: the operators of slope.def: loops, gradients, records. */
#include "slope.h"

#include "classes.h"
#include "dispatch.h"
#include "elementary.h"
#include "ops/shared.h"

#define GELU_A    0.79788456080286535588 /* √(2/π) */
#define GELU_B    0.044715
#define SQRT_HALF 0.70710678118654752440

/* ---- slopes that take more than one line: of f32 in vector.h and gelu.h ---- */

#define OF(slope, v) _Generic((v), float: cn__f32_##slope, double: slope##_f64)(v, fused)

/* s(1 + v(1 - s)) with s = sigmoid(v) */
static inline double silu_slope_f64(double v, bool fused)
{
    (void)fused;
    double s = sigmoid_f64(v);
    return s * (1 + v * (1 - s));
}

/* Φ(v) + vφ(v) */
static inline double gelu_slope_f64(double v, bool fused)
{
    (void)fused;
    return 0.5 * (1 + erf(v * SQRT_HALF)) + v * exp(-0.5 * v * v) * (0.5 * GELU_A);
}

/* s(1 + 2v(1 - s)u') with s = sigmoid(2u) = (1 + tanh(u))/2, u = a(v + bv³) */
static inline double gelu_tanh_slope_f64(double v, bool fused)
{
    (void)fused;
    double square = v * v, s = sigmoid_f64(2 * GELU_A * v * (1 + GELU_B * square));
    return s * (1 + 2 * v * (1 - s) * (GELU_A * (1 + 3 * GELU_B * square)));
}

/* ---- loops ---- */

#define DEFINE(name, R, expression)                  \
    BODY(LOOP(name))                                 \
    {                                                \
        const T *arrived = l->in[0], *at = l->in[1]; \
        R *out = l->out;                             \
        INDEPENDENT                                  \
        for (int64_t i = 0, n = l->n; i < n; i++) {  \
            E g = (E)arrived[i], v = (E)at[i];       \
            out[i] = (R)(expression);                \
        }                                            \
    }                                                \
    DISPATCH(LOOP(name))
#define SLOPE(name, doc, expression, ...) ROW_LOOP(name, REAL, expression, NONE)
#define ROWS                              "slope.def"
#include "loops.h"
#undef SLOPE

/* ---- second derivatives ---- */

/* s(1 - s)(2 + v(1 - 2s)) with s = sigmoid(v) */
static cn_tensor *silu_bend(cn_tensor *v)
{
    cn_tensor *s = cn_sigmoid(v);
    cn_tensor *last = cn_add_s(cn_mul(v, cn_add_s(cn_mul_s(s, -2), 1)), 2);
    return cn_mul(cn_mul(s, cn_rsub_s(s, 1)), last);
}

/* φ(v)(2 - v²) */
static cn_tensor *gelu_bend(cn_tensor *v)
{
    cn_tensor *square = cn_square(v);
    return cn_mul(cn_mul_s(cn_exp(cn_mul_s(square, -0.5)), 0.5 * GELU_A), cn_rsub_s(square, 2));
}

/* r u' + v/2 (r u'' - 2t r u'²) with t = tanh(u), r = 1 - t², u = a(v + bv³) */
static cn_tensor *gelu_tanh_bend(cn_tensor *v)
{
    cn_tensor *square = cn_square(v);
    cn_tensor *t = cn_tanh(cn_mul(v, cn_add_s(cn_mul_s(square, GELU_A * GELU_B), GELU_A)));
    cn_tensor *first = cn_add_s(cn_mul_s(square, 3 * GELU_A * GELU_B), GELU_A); /* u' */
    cn_tensor *second = cn_mul_s(v, 6 * GELU_A * GELU_B);                       /* u'' */
    cn_tensor *bent = cn_sub(second, cn_mul(cn_mul_s(t, 2), cn_square(first)));
    return cn_mul(cn_rsub_s(cn_square(t), 1), cn_add(first, cn_mul(cn_mul_s(v, 0.5), bent)));
}

#define SLOPE(name, doc, expression, wgsl, of_v)                                \
    static void name##_grad(cn_grad_call *c)                                    \
    {                                                                           \
        cn_tensor *h = c->out_grad[0], *g = c->in[0], *v = c->in[1];            \
        (void)g;                                                                \
        (void)v;                                                                \
        if (c->needs[0]) c->in_grad[0] = cn__slope(&cn__op_##name, h, v);       \
        if (c->needs[1]) c->in_grad[1] = (of_v);                                \
    }
#include "slope.def"
#undef SLOPE

/* ---- records ---- */

#define SLOPE(name_, doc_, expression, wgsl_, of_v)                                                              \
    const cn_op cn__op_##name_ = {                                                                               \
        .call = "_" #name_ "(Tensor grad, Tensor v) -> Tensor",                                                  \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 2, .n_out = 1, DTYPES_REAL, .infer = INFER_REAL, \
        GRAD_REAL(name_), .loops = { LOOPS_REAL(name_) }, .wgsl = wgsl_,                                         \
        CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4)) }, { CN_IN(CN_S(7), CN_S(7)) },                     \
                 { CN_IN(CN_S(3, 0), CN_S(3, 0)) }, { CN_IN(CN_S0, CN_S0) },                               \
                 { CN_IN(CN_RANGE(-3, 3, 65, 67), CN_RANGE(-6, 6, 65, 67)) }),                                \
    };
#include "slope.def"
#undef SLOPE

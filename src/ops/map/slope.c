/* slope.c: the operators of slope.def: gradients, records. Their loops are in slope_cpu.c. */
#include "slope.h"

#include "classes.h"
#include "ops/kernels.h"
#include "ops/shared.h"

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
    return cn_mul(cn_mul_s(cn_exp(cn_mul_s(square, -0.5)), 0.5 * CN__GELU_SLOPE), cn_rsub_s(square, 2));
}

/* r u' + v/2 (r u'' - 2t r u'²) with t = tanh(u), r = 1 - t², u = a(v + bv³) */
static cn_tensor *gelu_tanh_bend(cn_tensor *v)
{
    cn_tensor *square = cn_square(v);
    cn_tensor *t = cn_tanh(cn_mul(v, cn_add_s(cn_mul_s(square, CN__GELU_SLOPE * CN__GELU_CUBE), CN__GELU_SLOPE)));
    cn_tensor *first = cn_add_s(cn_mul_s(square, 3 * CN__GELU_SLOPE * CN__GELU_CUBE), CN__GELU_SLOPE); /* u' */
    cn_tensor *second = cn_mul_s(v, 6 * CN__GELU_SLOPE * CN__GELU_CUBE);                       /* u'' */
    cn_tensor *bent = cn_sub(second, cn_mul(cn_mul_s(t, 2), cn_square(first)));
    return cn_mul(cn_rsub_s(cn_square(t), 1), cn_add(first, cn_mul(cn_mul_s(v, 0.5), bent)));
}

typedef cn_tensor *(*gradient_fn)(cn_tensor *h, cn_tensor *g, cn_tensor *v);

static void gradients(cn_grad_call *c, const cn_op *op, gradient_fn of_v)
{
    if (c->needs[0]) c->in_grad[0] = cn__slope(op, c->out_grad[0], c->in[1]);
    if (c->needs[1]) c->in_grad[1] = of_v(c->out_grad[0], c->in[0], c->in[1]);
}

#define SLOPE(name, cost, doc, expression, wgsl, of_v)                                                                 \
    static cn_tensor *name##_grad_of_v(cn_tensor *h, cn_tensor *g, cn_tensor *v) { return (void)v, (of_v); }           \
    static void name##_grad(cn_grad_call *c) { gradients(c, &cn__op_##name, name##_grad_of_v); }
#include "slope.def"
#undef SLOPE

/* ---- records ---- */

static const cn_case cases[] = {
    { CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4)) },
    { CN_IN(CN_S(7), CN_S(7)) },
    { CN_IN(CN_S(3, 0), CN_S(3, 0)) },
    { CN_IN(CN_S0, CN_S0) },
    { CN_IN(CN_RANGE(-3, 3, 65, 67), CN_RANGE(-6, 6, 65, 67)) },
};
#define SLOPE(name_, cost, doc_, expression, wgsl_, of_v)                                                        \
    const cn_op cn__op_##name_ = {                                                                               \
        .call = "_" #name_ "(Tensor grad, Tensor v) -> Tensor",                                                  \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 2, .n_out = 1, DTYPES_REAL, .infer = INFER_REAL, \
        .any_order = true, GRAD_REAL(name_), .kernels_at = CN__AT(slope, name_), .wgsl = wgsl_,                  \
        CN_CASES_OF(cases),                                                                                      \
    };
#include "slope.def"
#undef SLOPE

/* param.c: the operators of param.def: gradients, records, functions. Their loops are in param_cpu.c. */
#include "ops/shared.h"

#include <math.h>

#include "classes.h"
#include "ops/kernels.h"

/* ---- gradients ---- */

/* Whether low < x < high. A limit that is infinite limits nothing: infinite x pass it. */
static cn_tensor *between(cn_tensor *x, double low, double high)
{
    if (low == -INFINITY && high == INFINITY) return cn_eq(x, x); /* all but NaN */
    if (low == -INFINITY) return cn_lt_s(x, high);
    if (high == INFINITY) return cn_gt_s(x, low);
    return cn_logical_and(cn_gt_s(x, low), cn_lt_s(x, high));
}

/* 1/(x(1 - x)); outside of the limits it is 0 if there is an eps, else NaN */
static cn_tensor *logit_grad_of(cn_tensor *g, cn_tensor *x, double eps)
{
    double low = eps < 0 ? 0 : eps, outside = eps < 0 ? NAN : 0;
    cn_tensor *inside = cn_logical_and(cn_ge_s(x, low), cn_le_s(x, 1 - low));
    return cn_where(inside, cn_div(g, cn_mul(x, cn_rsub_s(x, 1))), cn__weak(g, outside));
}

typedef cn_tensor *(*gradient_fn)(cn_tensor *g, cn_tensor *x, cn_tensor *y, double p0, double p1);

static void gradient(cn_grad_call *c, gradient_fn of_x)
{
    c->in_grad[0] = of_x(c->out_grad[0], c->in[0], c->out[0], c->args[0].f, c->args[1].f);
}

#define PARAM(name, class, cost, doc, real, whole, wgsl, grad, ...)                                                    \
    static cn_tensor *name##_grad_of_x(cn_tensor *g, cn_tensor *x, cn_tensor *y, double p0, double p1)                 \
    {                                                                                                                  \
        return (void)y, (void)p1, (grad);                                                                              \
    }                                                                                                                  \
    static void name##_grad(cn_grad_call *c) { gradient(c, name##_grad_of_x); }
#include "param.def"
#undef PARAM

/* ---- records ---- */

#define CASE(low, high, a, b, ...) { CN_IN(CN_RANGE(low, high, __VA_ARGS__)), CN_ARGS({ .f = a }, { .f = b }) }
#define PARAM(name_, class, cost, doc_, real, whole, wgsl_, grad_, onnx_, low, high, a, b, call_)               \
    const cn_op cn__op_##name_ = {                                                                              \
        .call = call_,                                                                                          \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 1, .n_out = 1, .cheap = cost, DTYPES_##class,  \
        .any_order = true, .infer = INFER_##class, GRAD_##class(name_), .kernels_at = CN__AT(param, name_),                         \
        .wgsl = wgsl_, .onnx = onnx_,                                                                           \
        CN_CASES(CASE(low, high, a, b, 2, 3, 4), CASE(low, high, a, b, 7), CASE(low, high, a, b, 3, 0),         \
                 CASE(low, high, a, b, 1), CASE(low, high, a, b, 65, 67)),                                      \
    };
#include "param.def"
#undef PARAM

/* ---- functions ---- */

static cn_tensor *apply(const cn_op *op, cn_tensor *x, double p0, double p1)
{
    return cn_apply(op, &x, 1, NULL, (cn_arg[CN_MAX_ARGS]){ { .f = p0 }, { .f = p1 } });
}

cn_tensor *cn_leaky_relu(cn_tensor *x, double slope) { return apply(&cn__op_leaky_relu, x, slope, 0); }

cn_tensor *cn_elu(cn_tensor *x, double alpha) { return apply(&cn__op_elu, x, alpha, 0); }

cn_tensor *cn_celu(cn_tensor *x, double alpha)
{
    if (x && alpha == 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "celu: alpha must not be 0, got 0");
        return NULL;
    }
    return apply(&cn__op_celu, x, alpha, 0);
}

cn_tensor *cn_softplus(cn_tensor *x, double beta, double threshold)
{
    return apply(&cn__op_softplus, x, beta, threshold);
}

/* Limits of floats must fit their dtype; of whole numbers, at least one must be within them. */
static bool check_limits(cn_ctx *ctx, const cn_op *op, cn_dtype t, double low, double high)
{
    static const double least[] = { 0, 0, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN };
    static const double most[] = { 1, UINT8_MAX, INT8_MAX, INT16_MAX, INT32_MAX, 0x1p63 };
    if (cn_dtype_is_float(t))
        return cn__check_fits(ctx, op->name, "the lower limit", t, low) &&
               cn__check_fits(ctx, op->name, "the upper limit", t, high);
    if (!(low > most[t] || high < least[t])) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be a %s within the limits, got %g and %g", op->name,
                    cn_dtype_name(t), low, high);
}

/* A limit that is NaN makes every element NaN, and every gradient 0. */
static cn_tensor *limit(const cn_op *op, cn_tensor *x, double low, double high)
{
    cn_tensor *y = apply(op, x, low, high);
    return isnan(low) || isnan(high) ? cn_add_s(y, NAN) : y;
}

/* Whether a limit lets whole numbers stay what they are; `none` is the infinite one that is no limit. */
static bool whole(double v, double none) { return v == none || (v == floor(v) && cn__fits(CN_I64, v)); }

/* If x has whole numbers and a limit is a fraction, the result is a float, as in other operators with a number; of
   bools it is a whole number. An infinite limit is none. */
cn_tensor *cn_clamp(cn_tensor *x, double low, double high)
{
    if (!cn__alive(x)) return NULL;
    cn_dtype t = cn__dtype(x);
    if (!cn_dtype_is_float(t))
        t = !whole(low, -INFINITY) || !whole(high, INFINITY) ? CN_F32 : t == CN_BOOL ? CN_I64 : t;
    if (!check_limits(x->ctx, &cn__op_clamp, t, low, high)) return NULL;
    return limit(&cn__op_clamp, t == cn__dtype(x) ? x : cn_cast(x, t), low, high);
}

/* Unlike clamp, whole numbers stay what they are, and a fraction of a limit is cut off. */
cn_tensor *cn_hardtanh(cn_tensor *x, double low, double high)
{
    if (!cn__alive(x)) return NULL;
    if (low > high) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "hardtanh: min_val must be ≤ max_val, got %g and %g", low, high);
        return NULL;
    }
    if (!cn_dtype_is_float(cn__dtype(x))) low = trunc(low), high = trunc(high);
    if (!check_limits(x->ctx, &cn__op_hardtanh, cn__dtype(x), low, high)) return NULL;
    return limit(&cn__op_hardtanh, x, low, high);
}

/* The kernel's eps is below 0 if there is none. */
cn_tensor *cn_logit(cn_tensor *x, double eps) { return apply(&cn__op_logit, x, isnan(eps) ? -1 : eps, 0); }

cn_tensor *cn_polygamma(int64_t n, cn_tensor *x)
{
    if (!cn__alive(x)) return NULL;
    if (n >= 0) return n ? apply(&cn__op_polygamma, x, (double)n, 0) : cn_digamma(x);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "polygamma: n must be ≥ 0, got %lld", (long long)n);
    return NULL;
}

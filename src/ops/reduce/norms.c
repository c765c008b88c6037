/* norm and logsumexp: composites of reductions. */
#include <math.h>

#include "ops/reduce/reduce.h"

cn_tensor *cn__root(cn_tensor *v, double p)
{
    cn_tensor *zero = cn_eq_s(v, 0), *safe = cn_masked_fill(v, zero, 1);
    return cn_masked_fill(p == 2 ? cn_sqrt(safe) : cn_pow_s(safe, 1 / p), zero, p > 0 ? 0 : INFINITY);
}

/* |x|^p. For p < 1 its slope at 0 is infinite; as in PyTorch, the gradient there is 0. */
static cn_tensor *power(cn_tensor *x, double p)
{
    if (p == 1) return cn_abs(x);
    if (p == 2) return cn_square(x);
    if (p > 1) return cn_pow_s(cn_abs(x), p);
    cn_tensor *zero = cn_eq_s(x, 0), *safe = cn_masked_fill(cn_abs(x), zero, 1);
    return cn_masked_fill(cn_pow_s(safe, p), zero, p > 0 ? 0 : INFINITY);
}

static cn_tensor *norm(cn_tensor *x, double p, const cn__axis_set_attrs *a)
{
    /* of one element, where a power could overflow */
    if (p != 0 && !isnan(p) && cn__reduced_count(x, a->axes) == 1) p = INFINITY;
    if (isinf(p)) return cn__reduce(p > 0 ? &cn__op_max : &cn__op_min, cn_abs(x), a->axes, a->keepdim);
    /* p = 0 counts elements that are not 0; computed from x, so that x gets a gradient, of 0 */
    cn_tensor *terms = p == 0 ? cn_masked_fill(cn_mul_s(x, 0), cn_ne_s(x, 0), 1) : power(x, p);
    cn_tensor *sum = cn__reduce(&cn__op_sum, terms, a->axes, a->keepdim);
    return p == 0 || p == 1 ? sum : cn__root(sum, p);
}

static cn_tensor *compose_norm(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    cn_tensor *x = cn__wide_float("norm", in[0]);
    if (x && args[0].f < 0 && cn__reduced_count(x, ((const cn__axis_set_attrs *)attrs)->axes) == 0) {
        cn__fail(ctx, CN_BAD_SHAPE, "norm: an order below 0 needs elements, got order %g over none", args[0].f);
        return NULL;
    }
    return x ? cn__as(norm(x, args[0].f, attrs), cn__dtype(in[0])) : NULL;
}

/* log Σ exp(x - m) + m, where m is the largest x if that is finite, else 0: a row of -inf gives -inf. */
static cn_tensor *logsumexp(cn_tensor *x, const cn__axis_set_attrs *a)
{
    if (cn_numel(x) == 0) return cn_log(cn__reduce(&cn__op_sum, cn_exp(x), a->axes, a->keepdim));
    cn_tensor *top = cn_detach(cn__reduce(&cn__op_max, x, a->axes, true));
    top = cn_masked_fill(top, cn_isinf(top), 0);
    cn_tensor *sum = cn__reduce(&cn__op_sum, cn_exp(cn_sub(x, top)), a->axes, a->keepdim);
    if (!sum) return NULL;
    return cn_add(cn_log(sum), a->keepdim ? top : cn_reshape(top, cn_shape(sum)));
}

static cn_tensor *compose_logsumexp(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    cn_dtype t = cn__dtype(in[0]);
    if (!cn_dtype_is_float(t)) t = CN_F32;
    cn_tensor *x = cn__as(in[0], t == CN_F64 ? CN_F64 : CN_F32);
    return x ? cn__as(logsumexp(x, attrs), t) : NULL;
}

const cn_op cn__op_norm = {
    .call = "norm(Tensor input, float p=2, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "norm", .doc = "(sum |x|^p)^(1/p) over axes; p may be 0 (a count), infinity (the largest) or -infinity.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__axis_set_attrs), .compose = compose_norm,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 2})},
        {CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__axis_set_attrs){5, 1}, CN_ARGS({.f = 2})},
        {CN_IN(CN_S(4, 5)), .attrs = &(const cn__axis_set_attrs){1, 0}, CN_ARGS({.f = 1})},
        {CN_IN(CN_S(4, 5)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 0})},
        {CN_IN(CN_RANGE(0.5, 2, 4, 5)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 3})},
        {CN_IN(CN_RANGE(0.5, 2, 4, 5)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 0.5})},
        {CN_IN(CN_DISTINCT(3, 7)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = INFINITY})},
        {CN_IN(CN_DISTINCT(3, 7)), .attrs = &(const cn__axis_set_attrs){3, 1}, CN_ARGS({.f = -INFINITY})},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 2})},
        {CN_IN(CN_RANGE(0.5, 2, 1)), .attrs = &(const cn__axis_set_attrs){1, 0}, CN_ARGS({.f = 2})},
        {CN_IN(CN_S(3, 1100)), .attrs = &(const cn__axis_set_attrs){3, 0}, CN_ARGS({.f = 2})}),
};

const cn_op cn__op_logsumexp = {
    .call = "logsumexp(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
    .name = "logsumexp", .doc = "log(sum(exp(x))) over axes without overflow.", .kind = CN_COMPOSITE,
    .n_in = 1, .n_out = 1, .dtypes = CN_FLOATS, .ints_to_float = true, .attr_size = sizeof(cn__axis_set_attrs),
    .compose = compose_logsumexp, .onnx = "ReduceLogSumExp",
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}},
        {CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__axis_set_attrs){5, 1}},
        {CN_IN(CN_RANGE(900, 1000, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_set_attrs){2, 0}},
        {CN_IN(CN_S0), .attrs = &(const cn__axis_set_attrs){0, 0}},
        {CN_IN(CN_S(3, 1100)), .attrs = &(const cn__axis_set_attrs){3, 0}}),
};

cn_tensor *cn_norm(cn_tensor *x, double p, cn_dims axes, bool keepdim)
{
    return cn__reduce_composite(&cn__op_norm, x, axes, keepdim, p);
}

cn_tensor *cn_logsumexp(cn_tensor *x, cn_dims axes, bool keepdim)
{
    return cn__reduce_composite(&cn__op_logsumexp, x, axes, keepdim, 0);
}

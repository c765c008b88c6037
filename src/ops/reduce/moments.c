/* mean, var and std: composites of sum. */
#include "ops/reduce/reduce.h"

static cn_tensor *mean(cn_tensor *x, int64_t axes, bool keepdim)
{
    return cn_div_s(cn__reduce(&cn__op_sum, x, axes, keepdim), (double)cn__reduced_count(x, axes));
}

/* Two passes: sum (x - mean)^2 / max(0, count - correction). The gradient is 2 (x - mean)/(count - correction), also
   where that is not > 0. The gradient through the mean adds up to 0; for an infinite gradient it is left out, because
   the sum would be NaN. */
static cn_tensor *var(cn_tensor *x, const cn__axis_set_attrs *a, double correction)
{
    int64_t count = cn__reduced_count(x, a->axes);
    double freedom = count ? (double)count - correction : 0; /* of nothing: NaN */
    cn_tensor *middle = mean(x, a->axes, true);
    if (freedom == 0) middle = cn_detach(middle);
    cn_tensor *sum = cn__reduce(&cn__op_sum, cn_square(cn_sub(x, middle)), a->axes, a->keepdim);
    cn_tensor *v = cn_div_s(sum, freedom);
    return freedom < 0 ? cn_add(v, cn_detach(cn_sub(cn_div_s(sum, 0), v))) : v;
}

static cn_tensor *compose_mean(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    const cn__axis_set_attrs *a = attrs;
    cn_tensor *x = cn__wide_float("mean", in[0]);
    return x ? cn__as(mean(x, a->axes, a->keepdim), cn__dtype(in[0])) : NULL;
}

static cn_tensor *compose_var(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    cn_tensor *x = cn__wide_float("var", in[0]);
    return x ? cn__as(var(x, attrs, args[0].f), cn__dtype(in[0])) : NULL;
}

static cn_tensor *compose_std(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    cn_tensor *x = cn__wide_float("std", in[0]);
    return x ? cn__as(cn__root(var(x, attrs, args[0].f), 2), cn__dtype(in[0])) : NULL;
}

const cn_op cn__op_mean = {
    .call = "mean(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "mean", .doc = "Mean over axes.", .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1,
    .attr_size = sizeof(cn__axis_set_attrs), .compose = compose_mean, .onnx = "ReduceMean",
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}},
        {CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__axis_set_attrs){5, 0}},
        {CN_IN(CN_S(2, 3, 2, 5)), .attrs = &(const cn__axis_set_attrs){13, 1}},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_set_attrs){2, 0}},
        {CN_IN(CN_S0), .attrs = &(const cn__axis_set_attrs){0, 0}},
        {CN_IN(CN_S(3, 1100)), .attrs = &(const cn__axis_set_attrs){3, 0}}),
};

const cn_op cn__op_var = {
    .call = "var(Tensor input, int[] dim=None, *, float correction=1, bool keepdim=False) -> Tensor",
    .name = "var", .doc = "Variance over axes; the divisor is the number of elements minus the correction.",
    .kind = CN_COMPOSITE,
    .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__axis_set_attrs), .compose = compose_var,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 1})},
        {CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__axis_set_attrs){5, 1}, CN_ARGS({.f = 0})},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 1})},
        {CN_IN(CN_S0), .attrs = &(const cn__axis_set_attrs){0, 0}, CN_ARGS({.f = 0})},
        {CN_IN(CN_S(1, 3)), .attrs = &(const cn__axis_set_attrs){1, 0}, CN_ARGS({.f = 1}),
         .no_gradient_check = true /* of one element: NaN */},
        {CN_IN(CN_S(2, 3)), .attrs = &(const cn__axis_set_attrs){1, 0}, CN_ARGS({.f = 3}),
         .no_gradient_check = true /* more correction than elements: infinite */},
        {CN_IN(CN_S(3, 1100)), .attrs = &(const cn__axis_set_attrs){3, 0}, CN_ARGS({.f = 1})}),
};

const cn_op cn__op_std = {
    .call = "std(Tensor input, int[] dim=None, *, float correction=1, bool keepdim=False) -> Tensor",
    .name = "std", .doc = "Standard deviation over axes: the root of var.", .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1,
    .attr_size = sizeof(cn__axis_set_attrs), .compose = compose_std,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 1})},
        {CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__axis_set_attrs){5, 1}, CN_ARGS({.f = 0})},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_set_attrs){2, 0}, CN_ARGS({.f = 1})},
        {CN_IN(CN_S(3, 1100)), .attrs = &(const cn__axis_set_attrs){3, 0}, CN_ARGS({.f = 1})}),
};

cn_tensor *cn_mean(cn_tensor *x, cn_dims axes, bool keepdim)
{
    return cn__reduce_composite(&cn__op_mean, x, axes, keepdim, 0);
}

cn_tensor *cn_var(cn_tensor *x, cn_dims axes, double correction, bool keepdim)
{
    return cn__reduce_composite(&cn__op_var, x, axes, keepdim, correction);
}

cn_tensor *cn_std(cn_tensor *x, cn_dims axes, double correction, bool keepdim)
{
    return cn__reduce_composite(&cn__op_std, x, axes, keepdim, correction);
}

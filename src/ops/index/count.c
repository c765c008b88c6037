/* bincount and histc: how many elements fall into each bin. */
#include <math.h>

#include "ops/index/index.h"

/* The number of bins: the largest element + 1, at least minlength. -1 after an error. */
static int64_t bins_of(cn_ctx *ctx, cn_tensor *x, int64_t least)
{
    if (cn_numel(x) == 0) return least;
    const int64_t smallest = cn_item_i64(cn_min(x, CN_ALL, false)), largest = cn_item_i64(cn_max(x, CN_ALL, false));
    if (cn_failed(ctx)) return -1;
    if (smallest >= 0 && largest < INT64_MAX) return largest + 1 > least ? largest + 1 : least;
    cn__fail(ctx, CN_BAD_INDEX, "bincount: elements must be from 0 to %lld, got %lld to %lld",
             (long long)(INT64_MAX - 1), (long long)smallest, (long long)largest);
    return -1;
}

static bool check_bincount(cn_ctx *ctx, const cn_tensor *x, const cn_tensor *weights, int64_t least)
{
    const cn_layout *l = cn__layout(x);
    const cn_dtype t = cn__dtype(x);
    char s[96], u[96];
    if (cn_dtype_is_float(t) || t == CN_BOOL)
        return cn__fail(ctx, CN_BAD_DTYPE, "bincount: x must be whole numbers, got %s", cn_dtype_name(t));
    if (l->ndim != 1 || (weights && !cn__same_shape(l, cn__layout(weights))))
        return cn__fail(ctx, CN_BAD_SHAPE, "bincount: x must have one axis and weights the same, got %s and %s",
                        cn__shape_text(l, s, sizeof s),
                        weights ? cn__shape_text(cn__layout(weights), u, sizeof u) : "no weights");
    return least >= 0 || cn__fail(ctx, CN_BAD_ARGUMENT, "bincount: minlength must be ≥ 0, got %lld", (long long)least);
}

static cn_tensor *compose_bincount(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const int64_t least = ((const cn__bincount_attrs *)attrs)->minlength;
    cn_tensor *x = in[0], *weights = in[1];
    if (!check_bincount(ctx, x, weights, least)) return NULL;
    const int64_t bins = bins_of(ctx, x, least);
    if (bins < 0) return NULL;
    if (!weights || cn_numel(x) == 0) weights = cn_ones(ctx, CN_I64, cn_shape(x));
    else if (cn__dtype(weights) != CN_F32) weights = cn_cast(weights, CN_F64);
    return cn_scatter_add(cn_zeros(ctx, cn_type(weights), CN_DIMS(bins)), 0, cn_cast(x, CN_I64), cn_detach(weights));
}

const cn_op cn__op_bincount = {
    .call = "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor",
    .name = "bincount",
    .doc = "How often each whole number from 0 on occurs in x, or the sum of its weights; evaluates x.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .optional = 2,
    .free_dtype = 3,
    .not_differentiable = 3,
    .no_grad = "PyTorch's has none",
    .attr_size = sizeof(cn__bincount_attrs),
    .compose = compose_bincount,
    CN_CASES({ CN_IN(CN_IDX(5, 9), CN_ABSENT), .attrs = &(const cn__bincount_attrs){ 0 } },
             { CN_IN(CN_IDX(5, 9), CN_ABSENT), .attrs = &(const cn__bincount_attrs){ 8 } },
             { CN_IN(CN_IDX(5, 0), CN_ABSENT), .attrs = &(const cn__bincount_attrs){ 3 } },
             { CN_IN(CN_IDX(100, 4000), CN_ABSENT), .attrs = &(const cn__bincount_attrs){ 0 } }),
};

cn_tensor *cn_bincount(cn_tensor *x, cn_tensor *weights, int64_t minlength)
{
    return cn_apply(&cn__op_bincount, (cn_tensor *[]){ x, weights }, 2, &(cn__bincount_attrs){ minlength }, NULL);
}

/* Limits that are equal stand for the smallest and the largest element; if those are equal too, for one less and one
   more. */
static bool limits_of(cn_ctx *ctx, cn_tensor *x, double *low, double *high)
{
    if (*low == *high && cn_numel(x)) {
        *low = cn_item(cn_min(x, CN_ALL, false));
        *high = cn_item(cn_max(x, CN_ALL, false));
        if (cn_failed(ctx)) return false;
    }
    if (*low == *high) *low -= 1, *high += 1;
    return (isfinite(*low) && isfinite(*high) && *low < *high) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "histc: min must be < max and both finite, got %g and %g", *low, *high);
}

/* Elements outside of the limits, and NaN, count nowhere; the largest counts in the last bin. */
static cn_tensor *compose_histc(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const int64_t bins = ((const cn__histc_attrs *)attrs)->bins;
    double low = args[0].f, high = args[1].f;
    const cn_dtype t = cn__dtype(in[0]);
    if (!cn_dtype_is_float(t) || bins < 1) {
        cn__fail(ctx, bins < 1 ? CN_BAD_ARGUMENT : CN_BAD_DTYPE,
                 "histc: x must be of a floating type and bins > 0, got %s and %lld bins", cn_dtype_name(t),
                 (long long)bins);
        return NULL;
    }
    cn_tensor *x = cn_reshape(in[0], CN_DIMS(cn_numel(in[0])));
    if (t != CN_F64) x = cn_cast(x, CN_F32);
    if (!x || !limits_of(ctx, x, &low, &high)) return NULL;
    x = cn_detach(x);
    cn_tensor *inside = cn_logical_and(cn_ge_s(x, low), cn_le_s(x, high));
    cn_tensor *place = cn_div_s(cn_mul_s(cn_sub_s(x, low), (double)bins), high - low);
    cn_tensor *bin = cn_clamp(cn_floor(cn_where(inside, place, cn_zeros_like(place))), 0, (double)(bins - 1));
    cn_tensor *none = cn_zeros(ctx, cn_type(x), CN_DIMS(bins));
    return cn_cast(cn_scatter_add(none, 0, cn_cast(bin, CN_I64), cn_cast(inside, cn_type(x))), t);
}

const cn_op cn__op_histc = {
    .call = "histc(Tensor input, int bins=100, float min=0, float max=0) -> Tensor",
    .name = "histc",
    .doc = "How many elements fall into each of several equal intervals from min to max; equal limits mean x's own.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .not_differentiable = 1,
    .no_grad = "a number of elements",
    .attr_size = sizeof(cn__histc_attrs),
    .compose = compose_histc,
    CN_CASES({ CN_IN(CN_S(3, 4)), .attrs = &(const cn__histc_attrs){ 4 }, CN_ARGS({ .f = -1 }, { .f = 1 }) },
             { CN_IN(CN_S(7)), .attrs = &(const cn__histc_attrs){ 3 }, CN_ARGS({ .f = 0 }, { .f = 0 }) },
             { CN_IN(CN_S0), .attrs = &(const cn__histc_attrs){ 2 }, CN_ARGS({ .f = 0 }, { .f = 0 }) },
             { CN_IN(CN_S(0)), .attrs = &(const cn__histc_attrs){ 2 }, CN_ARGS({ .f = 0 }, { .f = 3 }) },
             { CN_IN(CN_S(60, 70)), .attrs = &(const cn__histc_attrs){ 50 }, CN_ARGS({ .f = -3 }, { .f = 1.5 }) }),
};

cn_tensor *cn_histc(cn_tensor *x, int64_t bins, double min, double max)
{
    cn_arg args[CN_MAX_ARGS] = { { .f = min }, { .f = max } };
    return cn_apply(&cn__op_histc, &x, 1, &(cn__histc_attrs){ bins }, args);
}

/* multinomial: categories drawn with probabilities that are proportional to weights. With replacement, a random number
   is looked up among the running sums of the weights. Without, each category waits for a time that is exponential with
   its weight as the rate: the first to come are drawn. */
#include "create.h"

extern const cn_op cn__op_rand;

/* args: seed, stream */
static cn_tensor *uniform(cn_ctx *ctx, cn_dtype t, cn_dims shape, const cn_arg *args)
{
    cn__shape_attrs a = cn__shaped(t, shape);
    return cn_apply_in(ctx, &cn__op_rand, &a, args);
}

/* Sums of categories with weight 0 are those before them, so such a category is never drawn, however sums are rounded.
   A product that is rounded up to the whole sum is of the last category with a weight. */
static cn_tensor *with_replacement(cn_tensor *w, cn_dims drawn, const cn_arg *args)
{
    const int64_t n = cn_size(w, -1);
    cn_tensor *sums = cn_cummax(cn_where(cn_gt_s(w, 0), cn_cumsum(w, -1), cn_zeros_like(w)), -1, NULL);
    cn_tensor *sum = cn_narrow(sums, -1, n - 1, 1);
    cn_tensor *at = cn_searchsorted(sums, cn_mul(uniform(w->ctx, cn_type(w), drawn, args), sum), false, true, NULL);
    return cn_minimum(at, cn_searchsorted(sums, sum, false, false, NULL));
}

static cn_tensor *without_replacement(cn_tensor *w, int64_t samples, const cn_arg *args)
{
    cn_tensor *wait = cn_neg(cn_log1p(cn_neg(uniform(w->ctx, cn_type(w), cn_shape(w), args)))), *at = NULL;
    cn_tensor *rate = cn_where(cn_gt_s(w, 0), cn_div(w, wait), cn_full_like(w, -1));
    cn_topk(rate, samples, -1, true, &at);
    return at;
}

static bool check_call(cn_ctx *ctx, const cn_tensor *w, const cn__multinomial_attrs *a)
{
    const cn_layout *l = cn__layout(w);
    char s[96];
    if (!cn_dtype_is_float(cn__dtype(w)))
        return cn__fail(ctx, CN_BAD_DTYPE, "multinomial: weights must be of a floating type, got %s",
                        cn_dtype_name(cn__dtype(w)));
    if (l->ndim < 1 || l->ndim > 2 || l->shape[l->ndim - 1] < 1)
        return cn__fail(ctx, CN_BAD_SHAPE, "multinomial: weights must be (categories) or (rows, categories), got %s",
                        cn__shape_text(l, s, sizeof s));
    const int64_t n = l->shape[l->ndim - 1];
    if (a->samples < 1 || (!a->replacement && a->samples > n))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "multinomial: num_samples must be > 0, and at most the %lld categories without replacement, "
                        "got %lld",
                        (long long)n, (long long)a->samples);
    return true;
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const cn__multinomial_attrs *a = attrs;
    if (!check_call(ctx, in[0], a)) return NULL;
    cn_tensor *w = cn_detach(in[0]);
    if (cn__dtype(in[0]) != CN_F64) w = cn_cast(w, CN_F32);
    cn_tensor *above = cn_sum(cn_gt_s(w, 0), CN_DIMS(-1), true);
    cn_tensor *enough = cn_ge_s(above, a->replacement ? 1 : (double)a->samples);
    w = cn__weights(cn_where(enough, w, cn_full_like(w, -1))); /* a weight of -1 is not allowed */
    if (!w) return NULL;
    cn_dims drawn = cn_shape(w);
    drawn.v[drawn.n - 1] = a->samples;
    return a->replacement ? with_replacement(w, drawn, args) : without_replacement(w, a->samples, args);
}

#define DRAW(samples, replacement, seed) \
    .attrs = &(const cn__multinomial_attrs){ samples, replacement }, CN_ARGS({ .u = seed }, { .u = 3 })

const cn_op cn__op_multinomial = {
    .call = "multinomial(Tensor input, int num_samples, bool replacement=False) -> Tensor",
    .name = "multinomial",
    .doc = "Categories drawn at random from each row of weights, with or without replacement.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__multinomial_attrs),
    .no_grad = "a draw does not change gradually with its weight",
    .compose = compose,
    .onnx = "Multinomial",
    CN_CASES({ CN_IN(CN_RANGE(1, 3, 7)), DRAW(4, 0, 1) }, { CN_IN(CN_RANGE(1, 3, 3, 5)), DRAW(9, 1, 2) },
             { CN_IN(CN_RANGE(1, 3, 1)), DRAW(1, 0, 3) }, { CN_IN(CN_RANGE(1, 3, 0, 4)), DRAW(2, 1, 4) },
             { CN_IN(CN_RANGE(1, 3, 2, 6)), DRAW(6, 0, 5) }, { CN_IN(CN_RANGE(1, 3, 20, 50)), DRAW(100, 1, 6) }),
};

cn_tensor *cn_multinomial(cn_tensor *weights, int64_t samples, bool replacement)
{
    CN__CALL call = cn__call_tensor(weights);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = weights->ctx;
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ } };
    return cn_apply(&cn__op_multinomial, &weights, 1, &(cn__multinomial_attrs){ samples, replacement }, args);
}

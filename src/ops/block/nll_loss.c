/* nll_loss: minus the log-probability of each target. Also cross_entropy with probabilities as target, and the checks
   and definitions that losses over classes share. */
#include "ops/block/block.h"

/* The shape of the target: that of x without the axis of classes. */
static cn_layout without_classes(const cn_layout *x)
{
    cn_layout l = { .ndim = 0 };
    for (int d = 0; d < x->ndim; d++)
        if (d != cn__class_axis(x->ndim)) l.shape[l.ndim++] = x->shape[d];
    return l;
}

static bool reduces(cn_ctx *ctx, const char *who, const cn__loss_attrs *a)
{
    return (a->reduction >= CN_MEAN && a->reduction <= CN_NONE) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "%s: reduction must be CN_MEAN, CN_SUM or CN_NONE, got %lld", who,
                    (long long)a->reduction);
}

bool cn__loss_fits(cn_ctx *ctx, const char *who, const cn__loss_attrs *a, const cn_meta *x, const cn_meta *target,
                   const cn_meta *weight)
{
    char s[96], t[96];
    cn__shape_text(&x->layout, s, sizeof s);
    const cn_layout samples = without_classes(&x->layout);
    if (!reduces(ctx, who, a)) return false;
    if (x->layout.ndim < 1)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: the input must have an axis of classes, got shape []", who);
    if (target->dtype != CN_I32 && target->dtype != CN_I64)
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: target must be i32 or i64, got %s", who, cn_dtype_name(target->dtype));
    if (!cn__same_shape(&samples, &target->layout))
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: target must have the shape of the input %s without its classes, got %s",
                        who, s, cn__shape_text(&target->layout, t, sizeof t));
    const int64_t classes = x->layout.shape[cn__class_axis(x->layout.ndim)];
    if (weight && (weight->layout.ndim != 1 || weight->layout.shape[0] != classes))
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: weight must have shape [%lld], one element a class, got %s", who,
                        (long long)classes, cn__shape_text(&weight->layout, t, sizeof t));
    return true;
}

/* ---- in simpler operators */

cn_tensor *cn__ignored(cn_tensor *target, const cn__loss_attrs *a)
{
    return a->has_ignore ? cn_eq_s(target, (double)a->ignore_index) : NULL;
}
cn_tensor *cn__zero_where(cn_tensor *x, cn_tensor *mask) { return mask ? cn_masked_fill(x, mask, 0) : x; }

/* The weight of each target; 0 for an ignored target. */
cn_tensor *cn__target_weights(cn_tensor *x, cn_tensor *target, cn_tensor *weight, cn_tensor *skip)
{
    cn_tensor *safe = cn__zero_where(target, skip), *w;
    if (weight) w = cn_reshape(cn_index_select(weight, 0, cn_reshape(safe, CN_DIMS(-1))), cn_shape(target));
    else w = cn_ones(x->ctx, cn__dtype(x), cn_shape(target));
    return cn__zero_where(w, skip);
}

cn_tensor *cn__class_weights(cn_tensor *weight, cn_tensor *x)
{
    return cn_ndim(x) > 1 ? cn__per_channel("cross_entropy", weight, x) : weight;
}

/* -(1 - s) w_t logp_t - s / C · sum over c of w_c logp_c, reduced */
cn_tensor *cn__nll(cn_tensor *logp, cn_tensor *target, cn_tensor *weight, const cn__loss_attrs *a, double smoothing)
{
    const int axis = cn__class_axis(cn_ndim(logp));
    cn_tensor *skip = cn__ignored(target, a), *w = cn__target_weights(logp, target, weight, skip);
    cn_tensor *at = cn_unsqueeze(cn__zero_where(target, skip), axis);
    cn_tensor *each = cn_mul(cn_squeeze(cn_gather(logp, axis, at), CN_DIMS(axis)), cn_mul_s(w, smoothing - 1));
    if (smoothing > 0) {
        cn_tensor *all = cn_sum(weight ? cn_mul(logp, cn__class_weights(weight, logp)) : logp, CN_DIMS(axis), false);
        each = cn_sub(each, cn__zero_where(cn_mul_s(all, smoothing / (double)cn_size(logp, axis)), skip));
    }
    each = cn__zero_where(each, skip);
    if (a->reduction == CN_NONE) return each;
    cn_tensor *sum = cn_sum(each, CN_ALL, false);
    return a->reduction == CN_SUM ? sum : cn_div(sum, cn_sum(w, CN_ALL, false));
}

#define LOSS(smoothing, ...) .attrs = &(const cn__loss_attrs){ __VA_ARGS__ }, CN_ARGS({ smoothing })

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn_meta *m[3] = { cn__result_of(in[0])->meta, cn__result_of(in[1])->meta,
                            in[2] ? cn__result_of(in[2])->meta : NULL };
    return cn__loss_fits(ctx, "nll_loss", attrs, m[0], m[1], m[2]) ? cn__nll(in[0], in[1], in[2], attrs, 0) : NULL;
}

const cn_op cn__op_nll_loss = {
    .call = "nll_loss(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
            "mean|sum|none reduction=mean) -> Tensor",
    .name = "nll_loss",
    .doc = "-x[target], weighted and reduced.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .optional = 4,
    .free_dtype = 2,
    .not_differentiable = 6,
    .attr_size = sizeof(cn__loss_attrs),
    .compose = compose,
    .onnx = "NegativeLogLikelihoodLoss",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(5, 4), CN_ABSENT), LOSS(0, CN_MEAN, 0, 0) },
             { CN_IN(CN_S(6, 3), CN_IDX(3, 6), CN_RANGE(0.5, 2, 3)), LOSS(0, CN_MEAN, 1, 1) },
             { CN_IN(CN_S(2, 4, 3), CN_IDX(4, 2, 3), CN_RANGE(0.5, 2, 4)), LOSS(0, CN_NONE, 1, 0) },
             { CN_IN(CN_S(5), CN_IDX0(5), CN_ABSENT), LOSS(0, CN_SUM, 0, 0) },
             { CN_IN(CN_S(0, 5), CN_IDX(5, 0), CN_ABSENT), LOSS(0, CN_SUM, 0, 0) },
             { CN_IN(CN_S(3, 6, 5, 31), CN_IDX(6, 3, 5, 31), CN_RANGE(0.5, 2, 6)), LOSS(0, CN_MEAN, 1, 2) }),
};

cn_tensor *cn_nll_loss(cn_tensor *log_probs, cn_tensor *target, const cn_loss_desc *desc)
{
    const cn_loss_desc usual = { .reduction = CN_MEAN };
    if (!desc) desc = &usual;
    const int64_t ignored = desc->has_ignore ? desc->ignore_index : -100; /* PyTorch's default */
    const cn__loss_attrs a = { desc->reduction, true, ignored };
    return cn_apply(&cn__op_nll_loss, (cn_tensor *[]){ log_probs, target, desc->weight }, 3, &a, NULL);
}

/* ---- probabilities as target: -sum over c of w_c t_c logp_c, t smoothed; mean: over samples */

static cn_tensor *soft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const cn__loss_attrs *a = attrs;
    const cn_layout *x = cn__layout(in[0]);
    const int axis = cn__class_axis(x->ndim);
    char s[96], t[96];
    if (!reduces(ctx, "cross_entropy", a)) return NULL;
    if (a->has_ignore || x->ndim < 1 || !cn__same_shape(x, cn__layout(in[1]))) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "cross_entropy: with probabilities, target must have the input's shape %s and there must be no "
                 "ignore_index, got %s%s",
                 cn__shape_text(x, t, sizeof t), cn__shape_text(cn__layout(in[1]), s, sizeof s),
                 a->has_ignore ? " and an ignore_index" : "");
        return NULL;
    }
    const double classes = (double)x->shape[axis];
    cn_tensor *weights = in[1];
    if (args[0].f > 0) weights = cn_add_s(cn_mul_s(weights, 1 - args[0].f), args[0].f / classes);
    if (in[2]) weights = cn_mul(weights, cn__class_weights(in[2], in[0]));
    cn_tensor *each = cn_neg(cn_sum(cn_mul(cn_log_softmax(in[0], axis), weights), CN_DIMS(axis), false));
    if (a->reduction == CN_NONE) return each;
    cn_tensor *sum = cn_sum(each, CN_ALL, false);
    return a->reduction == CN_SUM ? sum : cn_div_s(sum, (double)cn_numel(each));
}

const cn_op cn__op_cross_entropy_soft = {
    .call = "_cross_entropy_soft(Tensor input, Tensor target, Tensor? weight, mean|sum|none reduction, "
            "float label_smoothing) -> Tensor",
    .name = "cross_entropy_soft",
    .doc = "cross_entropy with probabilities as target.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .optional = 4,
    .not_differentiable = 4,
    .attr_size = sizeof(cn__loss_attrs),
    .compose = soft_compose,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_RANGE(0, 1, 4, 5), CN_ABSENT), LOSS(0, CN_MEAN, 0, 0) },
             { CN_IN(CN_S(2, 4, 3), CN_RANGE(0, 1, 2, 4, 3), CN_RANGE(0.5, 2, 4)), LOSS(0.2, CN_NONE, 0, 0) },
             { CN_IN(CN_S(5), CN_RANGE(0, 1, 5), CN_ABSENT), LOSS(0.1, CN_SUM, 0, 0) },
             { CN_IN(CN_S(0, 5), CN_RANGE(0, 1, 0, 5), CN_ABSENT), LOSS(0, CN_SUM, 0, 0) },
             { CN_IN(CN_S(7, 11, 31), CN_RANGE(0, 1, 7, 11, 31), CN_RANGE(0.5, 2, 11)), LOSS(0.1, CN_MEAN, 0, 0) }),
};

/* Losses of samples that have several classes. */
#include "nn/loss.h"

cn_tensor *cn_multilabel_soft_margin_loss(cn_tensor *input, cn_tensor *target, const cn_multilabel_desc *desc)
{
    cn__loss l;
    const cn_multilabel_desc d = desc ? *desc : (cn_multilabel_desc){ .reduction = CN_MEAN };
    if (!cn__loss_begin(&l, "multilabel_soft_margin_loss", input, target, d.reduction)) return NULL;
    if (!cn__loss_alike(&l, input, target, "target") || !cn__loss_spreads(&l, input, d.weight, "weight"))
        return cn__loss_end(&l, NULL);
    if (cn_ndim(input) == 0) {
        cn__fail(l.ctx, CN_BAD_SHAPE, "%s: input must have an axis of classes, got a single number", l.who);
        return cn__loss_end(&l, NULL);
    }
    cn_tensor *yes = cn_mul(target, cn_log_sigmoid(input)),
              *no = cn_mul(cn_rsub_s(target, 1), cn_log_sigmoid(cn_neg(input)));
    cn_tensor *each = cn_neg(cn_add(yes, no));
    if (d.weight) each = cn_mul(each, d.weight);
    return cn__loss_end(&l, cn_mean(each, CN_DIMS(-1), false));
}

/* Every pair of a class t of the sample and a class c that is none of them, as an axis each: (N, T, C). */
static cn_tensor *pairs(cn_tensor *x, cn_tensor *target)
{
    const int64_t classes = cn_size(x, -1);
    cn_tensor *given = cn_cumprod(cn_cast(cn_ge_s(target, 0), CN_I64), -1); /* up to the first negative index */
    cn_tensor *at = cn_mul(target, given);
    cn_tensor *own = cn_gt_s(cn_scatter_add(cn_zeros_like(given), -1, at, given), 0);
    cn_tensor *short_of = cn_rsub_s(cn_sub(cn_unsqueeze(cn_gather(x, -1, at), -1), cn_unsqueeze(x, -2)), 1);
    cn_tensor *counts = cn_logical_and(cn_unsqueeze(cn_gt_s(given, 0), -1), cn_unsqueeze(cn_logical_not(own), -2));
    counts = cn_logical_and(counts, cn_gt_s(short_of, 0)); /* NaN does not count, as in PyTorch */
    cn_tensor *sum = cn_sum(cn_where(counts, short_of, cn__weak(short_of, 0)), CN_DIMS(-2, -1), false);
    return cn_div_s(sum, (double)classes);
}

cn_tensor *cn_multilabel_margin_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc)
{
    cn__loss l;
    if (!cn__loss_begin(&l, "multilabel_margin_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    if (!cn__loss_alike(&l, input, target, "target")) return cn__loss_end(&l, NULL);
    char s[96];
    if (cn_ndim(input) > 2 || (cn_ndim(input) && cn_size(input, -1) == 0)) {
        cn__fail(l.ctx, CN_BAD_SHAPE, "%s: input must be (N, C), (C) or () with C ≥ 1, got %s", l.who,
                 cn__shape_text(cn__layout(input), s, sizeof s));
        return cn__loss_end(&l, NULL);
    }
    if (cn__dtype(target) != CN_I64) {
        cn__fail(l.ctx, CN_BAD_DTYPE, "%s: target must be i64, got %s", l.who, cn_dtype_name(cn__dtype(target)));
        return cn__loss_end(&l, NULL);
    }
    const cn_dims line = CN_DIMS(1);
    if (cn_ndim(input) == 0) input = cn_reshape(input, line), target = cn_reshape(target, line);
    return cn__loss_end(&l, pairs(input, target));
}

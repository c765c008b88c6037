/* Metrics that are a quotient of two sums: means, mean differences, perplexity. */
#include <math.h>

#include "metric/metric.h"

/* The state is (2): the two sums. */
static cn_tensor *add_to(cn_metric *m, cn_tensor *above, cn_tensor *below)
{
    return cn_add(m->state, cn_stack(CN_TENSORS(cn_cast(above, CN_F64), cn_cast(below, CN_F64)), 0));
}

static cn_tensor *total(cn_tensor *t) { return cn_sum(t, CN_ALL, false); }

/* Halves are too small for sums. */
static cn_tensor *wide(cn_tensor *t)
{
    const cn_dtype d = cn_type(t);
    return d == CN_F32 || d == CN_F64 ? t : cn_cast(t, CN_F32);
}

static cn_tensor *number(cn_metric *m, int64_t n) { return cn_scalar(m->object.ctx, CN_F64, (double)n); }

static bool quotient(cn_metric *m, const double *state, double *out)
{
    *out = (m->carried[0] + state[0]) / (m->carried[1] + state[1]);
    return m->carried[1] + state[1] != 0;
}

static cn_metric *summing(cn_ctx *ctx, const cn__metric_kind *kind, const cn_metric_desc *desc)
{
    cn_metric *m = cn__metric_new(ctx, kind, desc);
    if (!m) return NULL;
    m->dtype = CN_F64;
    m->shape = CN_DIMS(2);
    return m;
}

static cn_tensor *update_mean(cn_metric *m, cn_tensor *values, cn_tensor *weights)
{
    if (!weights) return add_to(m, total(wide(values)), number(m, cn_numel(values)));
    if (!cn__metric_same_shape(m, values, weights)) return NULL;
    return add_to(m, total(cn_mul(wide(values), wide(weights))), total(wide(weights)));
}

cn_metric *cn_metric_mean(cn_ctx *ctx)
{
    static const cn__metric_kind kind = {
        .name = "metric_mean", .update = update_mean, .values = quotient, .optional_targets = true
    };
    return summing(ctx, &kind, NULL);
}

static cn_tensor *difference(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    if (!cn__metric_same_shape(m, predictions, targets)) return NULL;
    return cn_sub(wide(predictions), wide(targets));
}

static cn_tensor *update_mse(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    cn_tensor *d = difference(m, predictions, targets);
    return d ? add_to(m, total(cn_square(d)), number(m, cn_numel(d))) : NULL;
}

cn_metric *cn_metric_mse(cn_ctx *ctx)
{
    static const cn__metric_kind kind = { .name = "metric_mse", .update = update_mse, .values = quotient };
    return summing(ctx, &kind, NULL);
}

static cn_tensor *update_mae(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    cn_tensor *d = difference(m, predictions, targets);
    return d ? add_to(m, total(cn_abs(d)), number(m, cn_numel(d))) : NULL;
}

cn_metric *cn_metric_mae(cn_ctx *ctx)
{
    static const cn__metric_kind kind = { .name = "metric_mae", .update = update_mae, .values = quotient };
    return summing(ctx, &kind, NULL);
}

/* ---- perplexity */

static cn_tensor *update_perplexity(cn_metric *m, cn_tensor *logits, cn_tensor *targets)
{
    const int n = cn_ndim(logits);
    bool fits = n >= 1 && n == cn_ndim(targets) + 1;
    for (int i = 0; i + 1 < n && fits; i++) fits = cn_size(logits, i) == cn_size(targets, i);
    if (!fits) {
        cn__fail(m->object.ctx, CN_BAD_SHAPE,
                 "metric_update: perplexity needs logits (..., classes) and targets (...), got %d and %d axes", n,
                 cn_ndim(targets));
        return NULL;
    }
    if (!cn__metric_whole(m, targets)) return NULL;
    const cn_loss_desc loss = { .ignore_index = m->desc.ignore_index, .has_ignore = true, .reduction = CN_SUM };
    cn_tensor *rows = cn_reshape(wide(logits), CN_DIMS(-1, cn_size(logits, -1)));
    return add_to(m, cn_cross_entropy(rows, cn_reshape(cn_cast(targets, CN_I64), CN_DIMS(-1)), &loss),
                  total(cn__metric_counts(m, targets)));
}

static bool perplexity(cn_metric *m, const double *state, double *out)
{
    const bool any = quotient(m, state, out);
    *out = exp(*out);
    return any;
}

cn_metric *cn_metric_perplexity(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = { .name = "metric_perplexity",
                                          .update = update_perplexity,
                                          .values = perplexity };
    return summing(ctx, &kind, desc);
}

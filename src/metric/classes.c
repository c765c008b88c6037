/* Metrics that count classes: accuracy, precision, recall, F1 and the confusion matrix. */
#include "metric/metric.h"

enum { HITS, PREDICTED, WANTED, ROWS };

static int64_t classes_of(const cn_metric *m) { return m->desc.classes ? m->desc.classes : 2; }

/* Numbers of classes, flat; a number that is no class is an error when it is computed. */
static cn_tensor *class_numbers(const cn_metric *m, cn_tensor *t)
{
    t = cn_reshape(cn_cast(t, CN_I64), CN_DIMS(-1));
    return cn_gather(cn_arange(m->object.ctx, CN_I64, 0, (double)classes_of(m), 1), 0, t);
}

/* The predicted class of each item (n), and in *hit whether the target (n) is it, or among the top k. */
static cn_tensor *predicted(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets, cn_tensor *wanted,
                            cn_tensor **hit)
{
    const bool scores = cn_dtype_is_float(cn_type(predictions));
    cn_tensor *p;
    if (m->desc.classes && (scores || cn_ndim(predictions) != cn_ndim(targets) || m->desc.top_k > 1)) {
        cn_tensor *rows = cn__metric_scores(m, predictions, targets); /* (n, classes) */
        if (m->desc.top_k > 1) {
            cn_tensor *best; /* (n, k) */
            if (!cn_topk(rows, m->desc.top_k, -1, true, &best)) return NULL;
            *hit = cn_any(cn_eq(best, cn_unsqueeze(wanted, 1)), CN_DIMS(1), false);
            return cn_select(best, 1, 0);
        }
        p = cn_argmax(rows, CN_DIMS(1), false);
    } else {
        if (!cn__metric_same_shape(m, predictions, targets)) return NULL;
        p = class_numbers(m, scores ? cn_gt_s(predictions, m->desc.threshold) : predictions);
    }
    *hit = cn_eq(p, wanted);
    return p;
}

/* Targets (n), with 0 in place of those that do not count; *counts (n): 1 or 0. */
static cn_tensor *targets_of(const cn_metric *m, cn_tensor *targets, cn_tensor **counts)
{
    if (!cn__metric_whole(m, targets)) return NULL;
    *counts = cn_reshape(cn_cast(cn__metric_counts(m, targets), CN_I64), CN_DIMS(-1));
    return class_numbers(m, cn_mul(cn_reshape(cn_cast(targets, CN_I64), CN_DIMS(-1)), *counts));
}

/* State (ROWS, classes): of each class its hits, its predictions, its targets. */
static cn_tensor *update_counts(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    const int64_t n = classes_of(m);
    cn_tensor *counts = NULL, *hit = NULL, *t = targets_of(m, targets, &counts);
    cn_tensor *p = t ? predicted(m, predictions, targets, t, &hit) : NULL;
    if (!p) return NULL;
    cn_tensor *places = cn_cat(CN_TENSORS(t, cn_add_s(p, (double)n), cn_add_s(t, (double)(2 * n))), 0);
    cn_tensor *add = cn_cat(CN_TENSORS(cn_mul(cn_cast(hit, CN_I64), counts), counts, counts), 0);
    return cn_reshape(cn_scatter_add(cn_reshape(m->state, CN_DIMS(-1)), 0, places, add), CN_DIMS(ROWS, n));
}

static double of_targets(double hits, double predicted, double wanted)
{
    (void)predicted;
    return wanted ? hits / wanted : 0;
}
static double of_predictions(double hits, double predicted, double wanted)
{
    (void)wanted;
    return predicted ? hits / predicted : 0;
}
static double of_both(double hits, double predicted, double wanted)
{
    return predicted + wanted ? 2 * hits / (predicted + wanted) : 0;
}

static bool values_of_counts(cn_metric *m, const double *state, double *out)
{
    const int64_t n = classes_of(m);
    const double *row[ROWS] = { state, state + n, state + 2 * n };
    double sum[ROWS] = { 0 }, weighted = 0, weights = 0;
    for (int r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < n; c++) sum[r] += row[r][c];
    if (!sum[WANTED]) return false;
    const bool accuracy = !strcmp(m->kind->name, "metric_accuracy");
    for (int64_t c = 0; c < n; c++) {
        const double v = m->kind->of_class(row[HITS][c], row[PREDICTED][c], row[WANTED][c]);
        const bool there = m->desc.top_k > 1 ? row[WANTED][c] > 0 : row[PREDICTED][c] + row[WANTED][c] > 0;
        const double weight = m->desc.average == CN_WEIGHTED ? row[WANTED][c] : there;
        weighted += weight * v;
        weights += weight;
        if (m->desc.average == CN_PER_CLASS) out[c] = v;
    }
    if (m->desc.average == CN_PER_CLASS) return true;
    if (!m->desc.classes && !accuracy) *out = m->kind->of_class(row[HITS][1], row[PREDICTED][1], row[WANTED][1]);
    else if (m->desc.average == CN_MICRO) *out = m->kind->of_class(sum[HITS], sum[PREDICTED], sum[WANTED]);
    else *out = weighted / weights;
    return true;
}

static cn_metric *counting(cn_ctx *ctx, const cn__metric_kind *kind, const cn_metric_desc *desc)
{
    cn_metric *m = cn__metric_new(ctx, kind, desc);
    if (!m) return NULL;
    if (m->desc.top_k > 1 && strcmp(kind->name, "metric_accuracy")) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: top_k is for accuracy only, got %lld", kind->name,
                 (long long)m->desc.top_k);
        cn__object_free(m);
        return NULL;
    }
    m->dtype = CN_I64;
    m->shape = CN_DIMS(ROWS, classes_of(m));
    if (m->desc.average == CN_PER_CLASS) m->count = m->desc.classes;
    return m;
}

cn_metric *cn_metric_accuracy(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = {
        .name = "metric_accuracy", .update = update_counts, .values = values_of_counts, .of_class = of_targets
    };
    return counting(ctx, &kind, desc);
}

cn_metric *cn_metric_precision(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = {
        .name = "metric_precision", .update = update_counts, .values = values_of_counts, .of_class = of_predictions
    };
    return counting(ctx, &kind, desc);
}

cn_metric *cn_metric_recall(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = {
        .name = "metric_recall", .update = update_counts, .values = values_of_counts, .of_class = of_targets
    };
    return counting(ctx, &kind, desc);
}

cn_metric *cn_metric_f1(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = {
        .name = "metric_f1", .update = update_counts, .values = values_of_counts, .of_class = of_both
    };
    return counting(ctx, &kind, desc);
}

/* ---- confusion matrix */

static cn_tensor *update_confusion(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    const int64_t n = classes_of(m);
    cn_tensor *counts = NULL, *hit = NULL, *t = targets_of(m, targets, &counts);
    cn_tensor *p = t ? predicted(m, predictions, targets, t, &hit) : NULL;
    if (!p) return NULL;
    cn_tensor *places = cn_add(cn_mul_s(t, (double)n), p);
    return cn_reshape(cn_scatter_add(cn_reshape(m->state, CN_DIMS(-1)), 0, places, counts), CN_DIMS(n, n));
}

static bool values_of_confusion(cn_metric *m, const double *state, double *out)
{
    memcpy(out, state, (size_t)m->count * sizeof *out);
    return true;
}

cn_metric *cn_metric_confusion(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = { .name = "metric_confusion",
                                          .update = update_confusion,
                                          .values = values_of_confusion };
    if (desc && desc->classes > 1 << 13) {
        CN__CALL call = cn__enter(ctx, __func__);
        if (call.ctx)
            cn__fail(ctx, CN_BAD_ARGUMENT, "metric_confusion: classes must be at most 2^13, got %lld",
                     (long long)desc->classes);
        return NULL;
    }
    cn_metric *m = counting(ctx, &kind, desc);
    if (!m) return NULL;
    m->shape = CN_DIMS(classes_of(m), classes_of(m));
    m->count = classes_of(m) * classes_of(m);
    return m;
}

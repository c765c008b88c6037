/* The area under the ROC curve, exactly, from all scores: the share of pairs (item of the class, other item) in which
   the item of the class has the higher score; equal scores count one half (Mann and Whitney). */
#include <math.h>
#include <stdlib.h>

#include "metric/metric.h"

typedef struct scored {
    double score;
    bool positive;
} scored;

static bool add_seen(cn_metric *m, cn_tensor *t)
{
    cn_ctx *ctx = m->object.ctx;
    if (!t) return false;
    if (!cn__push(&ctx->memory, &m->seen, &t, sizeof t)) return cn__no_memory(ctx, m->kind->name);
    cn__keep(t);
    return true;
}

static cn_tensor *update(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    if (!cn__metric_whole(m, targets)) return NULL;
    cn_tensor *scores = NULL;
    if (m->desc.classes) scores = cn__metric_scores(m, predictions, targets);
    else if (cn__metric_same_shape(m, predictions, targets)) scores = cn_reshape(predictions, CN_DIMS(-1, 1));
    cn_tensor *t = scores ? cn_reshape(targets, CN_DIMS(-1)) : NULL;
    if (!t || !add_seen(m, cn_clone(scores))) return NULL;
    if (add_seen(m, cn_clone(t))) return t;
    cn__release(((cn_tensor **)m->seen.v)[--m->seen.n]);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* NaN: one of the two kinds is missing. */
static double area(scored *v, int64_t n)
{
    double positives = 0, others = 0, won = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(v[i].score)) return NAN;
        positives += v[i].positive;
    }
    qsort(v, (size_t)n, sizeof *v, compare);
    for (int64_t i = 0, end; i < n; i = end) { /* a run of equal scores */
        double p = 0, o = 0;
        for (end = i; end < n && v[end].score == v[i].score; end++) {
            p += v[end].positive;
            o += !v[end].positive;
        }
        won += p * (others + o / 2);
        others += o;
    }
    return positives > 0 && others > 0 ? won / (positives * others) : (double)NAN;
}

typedef struct seen {
    double *score, *target; /* (n, columns), (n) */
    int64_t n, columns;
} seen;

/* All scores and targets that count, read back; n becomes their number. */
static bool gather(const cn_metric *m, seen *s)
{
    cn_tensor *const *t = m->seen.v;
    int64_t n = 0;
    for (size_t i = 0; i < m->seen.n; i += 2) {
        const int64_t rows = cn_numel(t[i + 1]);
        double *to = s->score + n * s->columns;
        if (!cn_read_f64(t[i], to, rows * s->columns) || !cn_read_f64(t[i + 1], s->target + n, rows)) return false;
        for (int64_t r = 0, first = n; r < rows; r++) {
            const double target = s->target[first + r];
            if (cn__metric_is_ignored(m, target)) continue;
            if (target < 0 || target >= (double)(m->desc.classes ? m->desc.classes : 2))
                return cn__fail(m->object.ctx, CN_BAD_INDEX, "%s: target %g is no class", m->kind->name, target);
            memmove(s->score + n * s->columns, to + r * s->columns, (size_t)s->columns * sizeof(double));
            s->target[n++] = target;
        }
    }
    s->n = n;
    return true;
}

static void areas(const cn_metric *m, const seen *s, scored *v, double *out)
{
    double sum = 0, weights = 0;
    for (int64_t c = 0; c < s->columns; c++) {
        double positives = 0;
        for (int64_t i = 0; i < s->n; i++) {
            v[i] = (scored){ s->score[i * s->columns + c], s->target[i] == (double)(m->desc.classes ? c : 1) };
            positives += v[i].positive;
        }
        const double a = area(v, s->n), weight = m->desc.average == CN_WEIGHTED ? positives : 1;
        if (m->desc.average == CN_PER_CLASS) out[c] = a;
        if (isnan(a)) continue;
        sum += weight * a;
        weights += weight;
    }
    if (m->desc.average != CN_PER_CLASS) *out = weights > 0 ? sum / weights : (double)NAN;
}

static bool values(cn_metric *m, const double *state, double *out)
{
    (void)state;
    cn_ctx *ctx = m->object.ctx;
    seen s = { .columns = m->desc.classes ? m->desc.classes : 1 };
    for (size_t i = 1; i < m->seen.n; i += 2) s.n += cn_numel(((cn_tensor **)m->seen.v)[i]);
    const size_t n = (size_t)s.n, scores = n * (size_t)s.columns * sizeof(double);
    s.score = cn__alloc(ctx, scores);
    s.target = cn__alloc(ctx, n * sizeof *s.target);
    scored *v = cn__alloc(ctx, n * sizeof *v);
    bool ok = s.score && s.target && v && gather(m, &s);
    if (ok && s.n) areas(m, &s, v, out);
    cn__free(ctx, s.score, scores);
    cn__free(ctx, s.target, n * sizeof *s.target);
    cn__free(ctx, v, n * sizeof *v);
    return ok && s.n > 0;
}

cn_metric *cn_metric_auc(cn_ctx *ctx, const cn_metric_desc *desc)
{
    static const cn__metric_kind kind = { .name = "metric_auc", .update = update, .values = values };
    cn_metric *m = cn__metric_new(ctx, &kind, desc);
    if (m && m->desc.average == CN_PER_CLASS) m->count = m->desc.classes;
    return m;
}

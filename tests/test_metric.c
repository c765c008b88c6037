/* Metrics against plain counts, over batches of unequal sizes; torchmetrics' rules for classes that do not occur. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

enum { N = 60, C = 5, BATCHES = 4 };
static const int64_t batch_end[BATCHES] = { 7, 8, 37, 60 };

static double scores[N][C]; /* class 3 is never a target, class 4 neither a target nor predicted */
static int64_t target[N], guess[N];

static void make_data(void)
{
    static const int64_t named[3] = { 0, 1, 2 };
    for (int64_t i = 0; i < N; i++) {
        target[i] = named[(i * 7 + i / 9) % 3];
        for (int64_t c = 0; c < C; c++) scores[i][c] = c == 4 ? -1 : (double)((i * 31 + c * 57) % 83) / 128;
        scores[i][target[i]] += 0.25; /* exact in f32, too */
        guess[i] = 0;
        for (int64_t c = 1; c < C; c++)
            if (scores[i][c] > scores[i][guess[i]]) guess[i] = c;
    }
}

static cn_tensor *rows_of(cn_ctx *cn, int64_t from, int64_t to)
{
    return cn_from(cn, CN_F64, CN_DIMS(to - from, C), scores[from]);
}

static cn_tensor *numbers(cn_ctx *cn, const int64_t *v, int64_t from, int64_t to)
{
    return cn_from(cn, CN_I64, CN_DIMS(to - from), v + from);
}

/* Batches of scores, or of the numbers of classes. */
static cn_metric *fed(cn_ctx *cn, cn_metric *m, bool by_number)
{
    int64_t from = 0;
    for (int b = 0; b < BATCHES; from = batch_end[b++]) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *p = by_number ? numbers(cn, guess, from, batch_end[b]) : rows_of(cn, from, batch_end[b]);
        check(cn_metric_update(m, p, numbers(cn, target, from, batch_end[b])), "batch %d: %s", b, cn_error(cn));
        cn_scope_end(cn, s);
    }
    return m;
}

typedef struct table {
    double hit[C], predicted[C], wanted[C];
} table;

static table count(int64_t k, int64_t ignored)
{
    table t = { 0 };
    for (int64_t i = 0; i < N; i++) {
        if (target[i] == ignored) continue;
        int64_t above = 0;
        for (int64_t c = 0; c < C; c++) above += scores[i][c] > scores[i][target[i]];
        t.hit[target[i]] += above < k;
        t.predicted[guess[i]]++;
        t.wanted[target[i]]++;
    }
    return t;
}

/* which: 0 accuracy and recall, 1 precision, 2 F1 */
static double of_class(int which, double hit, double predicted, double wanted)
{
    double below = which == 0 ? wanted : which == 1 ? predicted : (predicted + wanted) / 2;
    return below > 0 ? hit / below : 0;
}

static double expected(const table *t, int which, cn_metric_average average, int64_t k)
{
    double hit = 0, predicted = 0, wanted = 0, macro = 0, classes = 0, weighted = 0;
    for (int c = 0; c < C; c++) {
        double v = of_class(which, t->hit[c], t->predicted[c], t->wanted[c]);
        bool there = k > 1 ? t->wanted[c] > 0 : t->wanted[c] > 0 || t->predicted[c] > 0;
        hit += t->hit[c];
        predicted += t->predicted[c];
        wanted += t->wanted[c];
        macro += there ? v : 0;
        classes += there;
        weighted += v * t->wanted[c];
    }
    if (average == CN_MICRO) return of_class(which, hit, predicted, wanted);
    return average == CN_MACRO ? macro / classes : weighted / wanted;
}

static void counts_of_classes(cn_ctx *cn)
{
    cn_metric *(*const make[4])(cn_ctx *, const cn_metric_desc *) = { cn_metric_accuracy, cn_metric_recall,
                                                                      cn_metric_precision, cn_metric_f1 };
    static const int which[4] = { 0, 0, 1, 2 };
    for (int i = 0; i < 4; i++)
        for (int average = CN_MICRO; average <= CN_PER_CLASS; average++)
            for (int variant = 0; variant < 4; variant++) { /* scores, numbers, top 2, an ignored class */
                const int64_t k = variant == 2 ? 2 : 1, ignored = variant == 3 ? 1 : -7;
                if (k == 2 && i) continue;
                const cn_metric_desc desc = { .classes = C,
                                              .average = (cn_metric_average)average,
                                              .top_k = k,
                                              .ignore_index = ignored,
                                              .has_ignore = true };
                const table t = count(k, ignored);
                cn_metric *m = fed(cn, make[i](cn, &desc), variant == 1);
                double got[C], off = 0;
                if (average == CN_PER_CLASS) {
                    check(cn_metric_count(m) == C && cn_metric_values(m, got, C), "%s", cn_error(cn));
                    for (int c = 0; c < C; c++)
                        off = fmax(off, fabs(got[c] - of_class(which[i], t.hit[c], t.predicted[c], t.wanted[c])));
                } else off = fabs(cn_metric_value(m) - expected(&t, which[i], (cn_metric_average)average, k));
                check(off < 1e-12, "metric %d, average %d, variant %d: off by %g", i, average, variant, off);
                cn_metric_free(m);
            }
}

static void confusion(cn_ctx *cn)
{
    double want[C * C] = { 0 }, got[C * C];
    for (int i = 0; i < N; i++) want[target[i] * C + guess[i]]++;
    cn_metric *m = fed(cn, cn_metric_confusion(cn, &(cn_metric_desc){ .classes = C }), false);
    check(cn_metric_count(m) == C * C && cn_metric_values(m, got, C * C) && !memcmp(want, got, sizeof want),
          "confusion: %s", cn_error(cn));
    check(isnan(cn_metric_value(m)) && strstr(cn_error(cn), "has 25 values"), "several values: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_metric_values(m, got, C) && strstr(cn_error(cn), "room for 25 values"), "words: %s", cn_error(cn));
    cn_error_clear(cn);
}

/* Images: (n, classes, h, w) and (n, h, w). */
static void more_axes(cn_ctx *cn)
{
    const float x[2][3][2] = { { { 1, 0 }, { 0, 2 }, { 0, 1 } }, { { 0, 0 }, { 1, 0 }, { 3, 1 } } };
    const int64_t y[2][2] = { { 0, 1 }, { 1, 2 } };
    cn_metric *m = cn_metric_accuracy(cn, &(cn_metric_desc){ .classes = 3 });
    cn_metric_update(m, cn_from(cn, CN_F32, CN_DIMS(2, 3, 1, 2), x), cn_from(cn, CN_I64, CN_DIMS(2, 1, 2), y));
    check(cn_metric_value(m) == 0.75, "pixels: %g %s", cn_metric_value(m), cn_error(cn));
}

static void binary(cn_ctx *cn)
{
    const float p[6] = { 0.1f, 0.6f, 0.5f, 0.9f, 0.4f, 0.8f };
    const int64_t y[6] = { 0, 1, 1, 1, 0, 0 }; /* predicted 0 1 0 1 0 1 */
    cn_metric *(*const make[4])(cn_ctx *, const cn_metric_desc *) = { cn_metric_accuracy, cn_metric_precision,
                                                                      cn_metric_recall, cn_metric_f1 };
    static const double want[4] = { 4. / 6, 2. / 3, 2. / 3, 2. / 3 }, above[4] = { 4. / 6, 1, 1. / 3, 0.5 };
    for (int i = 0; i < 4; i++) {
        cn_metric *m = make[i](cn, NULL);
        cn_metric_update(m, cn_from(cn, CN_F32, CN_DIMS(2, 3), p), cn_from(cn, CN_I64, CN_DIMS(2, 3), y));
        check(fabs(cn_metric_value(m) - want[i]) < 1e-12, "binary %d: %g", i, cn_metric_value(m));
        m = make[i](cn, &(cn_metric_desc){ .threshold = 0.85 });
        cn_metric_update(m, cn_from(cn, CN_F32, CN_DIMS(6), p), cn_from(cn, CN_I64, CN_DIMS(6), y));
        check(fabs(cn_metric_value(m) - above[i]) < 1e-12, "binary %d above 0.85: %g", i, cn_metric_value(m));
    }
}

/* Every pair of an item of the class and another one. */
static double pairs(int64_t c, int64_t ignored)
{
    double won = 0, n = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            if (target[i] != c || target[k] == c || target[i] == ignored || target[k] == ignored) continue;
            won += scores[i][c] > scores[k][c] ? 1 : scores[i][c] == scores[k][c] ? 0.5 : 0;
            n++;
        }
    return n > 0 ? won / n : (double)NAN;
}

static void areas(cn_ctx *cn)
{
    const table t = count(1, -7);
    double got[C], mean = 0, weighted = 0;
    for (int c = 0; c < 3; c++) {
        mean += pairs(c, -7) / 3;
        weighted += pairs(c, -7) * t.wanted[c] / N;
    }
    cn_metric *m = fed(cn, cn_metric_auc(cn, &(cn_metric_desc){ .classes = C }), false);
    check(fabs(cn_metric_value(m) - mean) < 1e-12, "auc: %g for %g", cn_metric_value(m), mean);
    m = fed(cn, cn_metric_auc(cn, &(cn_metric_desc){ .classes = C, .average = CN_WEIGHTED }), false);
    check(fabs(cn_metric_value(m) - weighted) < 1e-12, "weighted auc: %g for %g", cn_metric_value(m), weighted);
    m = fed(cn,
            cn_metric_auc(
                cn, &(cn_metric_desc){ .classes = C, .average = CN_PER_CLASS, .ignore_index = 2, .has_ignore = true }),
            false);
    check(cn_metric_values(m, got, C) && fabs(got[0] - pairs(0, 2)) < 1e-12 && fabs(got[1] - pairs(1, 2)) < 1e-12 &&
              isnan(got[2]) && isnan(got[4]),
          "auc of classes: %g %g %g %g", got[0], got[1], got[2], got[4]);

    const float p[6] = { 0.1f, 0.6f, 0.5f, 0.9f, 0.5f, 0.8f };
    const int64_t y[6] = { 0, 1, 1, 1, 0, 0 };
    m = cn_metric_auc(cn, NULL);
    for (int b = 0; b < 3; b++)
        cn_metric_update(m, cn_from(cn, CN_F32, CN_DIMS(2), p + 2 * b), cn_from(cn, CN_I64, CN_DIMS(2), y + 2 * b));
    check(fabs(cn_metric_value(m) - 6.5 / 9) < 1e-12, "binary auc: %g", cn_metric_value(m));
    const int64_t seven[2] = { 7, 0 };
    cn_metric_update(m, cn_from(cn, CN_F32, CN_DIMS(2), p), cn_from(cn, CN_I64, CN_DIMS(2), seven));
    check(isnan(cn_metric_value(m)) && strstr(cn_error(cn), "target 7 is no class"), "%s", cn_error(cn));
    cn_error_clear(cn);
}

static void perplexity(cn_ctx *cn)
{
    double sum = 0;
    int n = 0;
    cn_metric *m = cn_metric_perplexity(cn, NULL);
    for (int b = 0; b < 3; b++) {
        const int64_t first = 10 * b, rows = 2 + 2 * b;
        int64_t y[6];
        for (int64_t i = 0; i < rows; i++) {
            y[i] = i == 1 ? -100 : target[first + i];
            if (y[i] < 0) continue;
            double norm = 0;
            for (int c = 0; c < C; c++) norm += exp(scores[first + i][c]);
            sum += log(norm) - scores[first + i][y[i]];
            n++;
        }
        cn_tensor *x = cn_from(cn, CN_F64, CN_DIMS(2, rows / 2, C), scores[first]);
        cn_metric_update(m, b == 1 ? cn_cast(x, CN_F32) : x, cn_from(cn, CN_I64, CN_DIMS(2, rows / 2), y));
    }
    check(fabs(cn_metric_value(m) - exp(sum / n)) < 1e-6, "perplexity: %g for %g", cn_metric_value(m), exp(sum / n));
}

static void sums(cn_ctx *cn)
{
    const float a[5] = { 1, 2, 3, 4, 5 }, b[5] = { 1, 0, 3, 8, 4 }, w[5] = { 1, 0, 2, 1, 4 };
    cn_metric *mean = cn_metric_mean(cn), *weighted = cn_metric_mean(cn), *mse = cn_metric_mse(cn),
              *mae = cn_metric_mae(cn);
    for (int i = 0; i < 2; i++) { /* 4 items, then 1 */
        const int64_t n = i ? 1 : 4, at = i ? 4 : 0;
        cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(n), a + at), *y = cn_from(cn, CN_F32, CN_DIMS(n), b + at);
        cn_metric_update(mean, x, NULL);
        cn_metric_update(weighted, x, cn_from(cn, CN_F32, CN_DIMS(n), w + at));
        cn_metric_update(mse, x, y);
        cn_metric_update(mae, x, y);
    }
    check(cn_metric_value(mean) == 3, "mean: %g", cn_metric_value(mean));
    check(cn_metric_value(weighted) == 31. / 8, "weighted mean: %g", cn_metric_value(weighted));
    check(cn_metric_value(mse) == 21. / 5 && fabs(cn_metric_value(mae) - 7. / 5) < 1e-12, "differences: %g and %g",
          cn_metric_value(mse), cn_metric_value(mae));
}

/* Ten thousand batches, and nothing is read or piles up in between. */
static void many_batches(cn_ctx *cn)
{
    cn_metric *m = cn_metric_mean(cn);
    cn_tensor *tenth = cn_keep(cn_full(cn, CN_F32, CN_DIMS(1), 0.1));
    for (int i = 0; i < 10000; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_metric_update(m, cn_mul_s(tenth, i % 2 ? 3 : 1), NULL);
        cn_scope_end(cn, s);
    }
    check(fabs(cn_metric_value(m) - 0.2) < 1e-6, "mean of many: %.12g", cn_metric_value(m));
    cn_release(tenth);
}

static void reset_and_gradients(cn_ctx *cn)
{
    cn_metric *m = cn_metric_mse(cn);
    cn_tensor *w = cn_param(cn_ones(cn, CN_F32, CN_DIMS(2))), *y = cn_zeros(cn, CN_F32, CN_DIMS(2));
    check(isnan(cn_metric_value(m)) && strstr(cn_error(cn), "nothing was seen"), "empty: %s", cn_error(cn));
    cn_error_clear(cn);
    check(cn_metric_update(m, cn_mul_s(w, 2), y) && cn_metric_value(m) == 4, "a parameter: %s", cn_error(cn));
    check(cn_metric_reset(m) && isnan(cn_metric_value(m)) && cn_failed(cn), "reset");
    cn_error_clear(cn);
    check(cn_metric_update(m, w, y) && cn_metric_value(m) == 1 && cn_metric_value(m) == 1, "after reset");
    m = cn_metric_auc(cn, NULL);
    cn_metric_update(m, w, cn_from(cn, CN_I64, CN_DIMS(2), (int64_t[]){ 0, 1 }));
    check(cn_metric_value(m) == 0.5 && cn_metric_reset(m) && isnan(cn_metric_value(m)), "scores are forgotten");
    cn_error_clear(cn);
    m = cn_metric_accuracy(cn, &(cn_metric_desc){ .classes = C, .ignore_index = 1, .has_ignore = true });
    cn_metric_update(m, rows_of(cn, 0, 1), cn_full(cn, CN_I64, CN_DIMS(1), 1));
    check(isnan(cn_metric_value(m)) && strstr(cn_error(cn), "nothing was seen"), "all ignored: %s", cn_error(cn));
    cn_error_clear(cn);
}

static void refused(cn_ctx *cn, cn_metric *m, cn_tensor *p, cn_tensor *t, const char *words)
{
    check(!cn_metric_update(m, p, t) && strstr(cn_error(cn), words), "%s: %s", words, cn_error(cn));
    cn_error_clear(cn);
}

static void mistakes(cn_ctx *cn)
{
    const cn_metric_desc five = { .classes = C };
    cn_metric *m = cn_metric_accuracy(cn, &five);
    cn_tensor *y = numbers(cn, target, 0, 4);
    refused(cn, m, rows_of(cn, 0, 5), y, "got predictions (5,5) and targets (4)");
    refused(cn, m, rows_of(cn, 0, 4), cn_cast(y, CN_F32), "whole numbers, got f32");
    refused(cn, m, cn_full(cn, CN_F32, CN_DIMS(4), 1), y, "predictions must be scores");
    refused(cn, m, rows_of(cn, 0, 4), NULL, "targets must not be NULL");
    refused(cn, cn_metric_mse(cn), rows_of(cn, 0, 4), y, "must have one shape");
    refused(cn, cn_metric_perplexity(cn, NULL), y, y, "logits (..., classes)");
    cn_metric_update(m, rows_of(cn, 0, 1), cn_full(cn, CN_I64, CN_DIMS(1), C));
    check(isnan(cn_metric_value(m)) && cn_error_code(cn) == CN_BAD_INDEX, "no such class: %s", cn_error(cn));
    cn_error_clear(cn);
    const struct {
        cn_metric_desc desc;
        const char *words;
    } bad[] = { { { .classes = 1 }, "classes must be" },
                { { .classes = -3 }, "classes must be" },
                { { .average = CN_PER_CLASS }, "average must be" },
                { { .classes = 3, .top_k = 3 }, "top_k must be" },
                { { .threshold = NAN }, "threshold must be" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check(!cn_metric_accuracy(cn, &bad[i].desc) && strstr(cn_error(cn), bad[i].words), "%s", cn_error(cn));
        cn_error_clear(cn);
    }
    check(!cn_metric_f1(cn, &(cn_metric_desc){ .classes = 3, .top_k = 2 }) && strstr(cn_error(cn), "for accuracy only"),
          "%s", cn_error(cn));
    cn_error_clear(cn);
}

int main(void)
{
    make_data();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    counts_of_classes(cn);
    confusion(cn);
    more_axes(cn);
    binary(cn);
    areas(cn);
    perplexity(cn);
    sums(cn);
    many_batches(cn);
    reset_and_gradients(cn);
    mistakes(cn);
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}

/* Rules of text, as far as it is whole numbers: how often n-grams of a pool occur. It evaluates its input. */
#include "onnx/rules.h"

typedef struct pool {
    const onnx_attr *ids, *starts, *columns, *weights; /* starts[n - 1]: where n-grams begin among the ids */
    int64_t width;                                     /* columns of the result */
} pool;

static bool open_pool(onnx_call *c, pool *p)
{
    *p = (pool){ cn__onnx_attr(c, "pool_int64s"), cn__onnx_attr(c, "ngram_counts"), cn__onnx_attr(c, "ngram_indexes"),
                 cn__onnx_attr(c, "weights"), 0 };
    if (!p->ids || !p->starts || !p->columns) return FAIL(CN_UNSUPPORTED, "it needs a pool of whole numbers");
    int64_t at = 0, grams = 0;
    for (int n = 1; n <= p->starts->n_ints; n++) {
        const int64_t from = p->starts->ints[n - 1], to = n < p->starts->n_ints ? p->starts->ints[n] : p->ids->n_ints;
        if (from != at || to < from || to > p->ids->n_ints || (to - from) % n)
            return FAIL(CN_BAD_ARGUMENT, "ngram_counts do not fit the pool");
        grams += (to - from) / n;
        at = to;
    }
    if (grams != p->columns->n_ints || (p->weights && p->weights->n_floats && p->weights->n_floats != grams))
        return FAIL(CN_BAD_ARGUMENT, "ngram_indexes and weights must have a number for each n-gram of the pool");
    for (int i = 0; i < p->columns->n_ints; i++) {
        const int64_t column = p->columns->ints[i];
        if (column < 0 || column > 1 << 24) return FAIL(CN_BAD_ARGUMENT, "a column of %lld", (long long)column);
        if (column >= p->width) p->width = column + 1;
    }
    return true;
}

/* Adds the n-grams at places i, i + step, .. of one row to their counts. */
static void count_gram(const pool *p, int n, const int64_t *row, int64_t step, float *counts, int64_t first)
{
    const int64_t from = p->starts->ints[n - 1], to = n < p->starts->n_ints ? p->starts->ints[n] : p->ids->n_ints;
    for (int64_t at = from; at < to; at += n) {
        int k = 0;
        while (k < n && row[k * step] == p->ids->ints[at + k]) k++;
        if (k == n) counts[first + (at - from) / n]++;
    }
}

static void count_row(onnx_call *c, const pool *p, const int64_t *row, int64_t length, float *counts)
{
    const int64_t least = INT("min_gram_length", 1), most = INT("max_gram_length", 1), skips = INT("max_skip_count", 0);
    int64_t first = 0;
    for (int n = 1; n <= p->starts->n_ints; n++) {
        const int64_t to = n < p->starts->n_ints ? p->starts->ints[n] : p->ids->n_ints;
        for (int64_t step = 1; step <= skips + 1 && n >= least && n <= most && (n > 1 || step == 1); step++)
            for (int64_t i = 0; i + (n - 1) * step < length; i++) count_gram(p, n, row + i, step, counts, first);
        first += (to - p->starts->ints[n - 1]) / n;
    }
}

bool cn__onnx_tf_idf_vectorizer(onnx_call *c)
{
    cn_tensor *x = IN(0);
    pool p;
    if (!x || !open_pool(c, &p)) return false;
    const bool matrix = cn_ndim(x) == 2;
    const int64_t rows = matrix ? cn_size(x, 0) : 1, length = rows ? cn_numel(x) / rows : 0;
    if (cn_ndim(x) < 1 || cn_ndim(x) > 2 || cn_dtype_is_float(cn_type(x)) || INT("max_skip_count", 0) > 1 << 16)
        return FAIL(CN_UNSUPPORTED, "the input must be a vector or matrix of whole numbers");
    int64_t *ids = cn__onnx_run_new(c->run, (size_t)cn_numel(x), sizeof *ids);
    float *counts = cn__onnx_run_new(c->run, (size_t)p.columns->n_ints, sizeof *counts);
    float *out = cn__onnx_run_new(c->run, (size_t)(rows * p.width), sizeof *out);
    if (!ids || !counts || !out || !cn_read(cn_cast(x, CN_I64), ids, sizeof *ids * (size_t)cn_numel(x))) return false;
    const char *mode = TEXT("mode", "TF");
    for (int64_t r = 0; r < rows; r++) {
        memset(counts, 0, sizeof *counts * (size_t)p.columns->n_ints);
        count_row(c, &p, ids + r * length, length, counts);
        for (int i = 0; i < p.columns->n_ints; i++) {
            const float weight = p.weights && p.weights->n_floats ? p.weights->floats[i] : 1;
            const float value = !strcmp(mode, "TF")    ? counts[i]
                                : !strcmp(mode, "IDF") ? (counts[i] > 0) * weight
                                                       : counts[i] * weight;
            out[r * p.width + p.columns->ints[i]] += value;
        }
    }
    return GIVE(cn_from(c->ctx, CN_F32, matrix ? CN_DIMS(rows, p.width) : CN_DIMS(p.width), out));
}

/* layer_norm and rms_norm for one T, on (rows, n). */
#include "ops/block/rows_body.h"

static row_scale NAME(scale_of)(const T *x, int64_t n, const norm *j)
{
    const double mean = j->centred ? NAME(row_sum)(x, n) / (double)n : 0;
    return (row_scale){ mean, 1 / sqrt(NAME(row_squares)(x, mean, n) / (double)n + j->eps) };
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const norm *j = user;
    const T *w = k->in[1].data, *b = j->centred ? k->in[2].data : NULL;
    for (int64_t row = begin; row < end; row++) {
        const T *x = (const T *)k->in[0].data + row * j->n;
        T *y = (T *)k->out[0].data + row * j->n;
        const row_scale s = NAME(scale_of)(x, j->n, j);
        const T mean = (T)s.mean, r = (T)s.r;
        for (int64_t i = 0; i < j->n; i++) y[i] = (x[i] - mean) * r;
        if (w)
            for (int64_t i = 0; i < j->n; i++) y[i] *= w[i];
        if (b)
            for (int64_t i = 0; i < j->n; i++) y[i] += b[i];
    }
}

/* dx = r (gw - mean(gw) - h mean(gw h)), h = (x - mean) r. dx holds gw on the way. */
static void NAME(backward_rows)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const norm *j = user;
    const int64_t n = j->n;
    const T *w = k->in[2].data;
    for (int64_t row = begin; row < end; row++) {
        const T *g = (const T *)k->in[0].data + row * n, *x = (const T *)k->in[1].data + row * n;
        T *dx = (T *)k->out[0].data + row * n;
        const row_scale s = j->rows[row] = NAME(scale_of)(x, n, j);
        for (int64_t i = 0; i < n; i++) dx[i] = w ? g[i] * w[i] : g[i];
        const double sum = NAME(row_sum)(dx, n), dot = (NAME(row_dot)(dx, x, n) - s.mean * sum) * s.r;
        const T mean = (T)s.mean, r = (T)s.r, c1 = j->centred ? (T)(sum / (double)n) : 0, c2 = (T)(dot / (double)n);
        for (int64_t i = 0; i < n; i++) dx[i] = r * (dx[i] - c1 - (x[i] - mean) * r * c2);
    }
}

/* dweight = sum over rows of g h, dbias = sum over rows of g; for columns [begin, end) at a time */
static void NAME(backward_columns)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const norm *j = user;
    T *dw = k->out[1].numel ? k->out[1].data : NULL, *db = k->n_out > 2 && k->out[2].numel ? k->out[2].data : NULL;
    for (int64_t at = begin; at < end; at += CN__COLUMNS) {
        const int width = (int)(end - at < CN__COLUMNS ? end - at : CN__COLUMNS);
        double sum[CN__COLUMNS] = { 0 }, dot[CN__COLUMNS] = { 0 };
        for (int64_t row = 0; row < j->n_rows; row++) {
            const T *g = (const T *)k->in[0].data + row * j->n + at, *x = (const T *)k->in[1].data + row * j->n + at;
            const row_scale s = j->rows[row];
            for (int i = 0; i < width; i++) {
                sum[i] += g[i];
                dot[i] += g[i] * ((x[i] - s.mean) * s.r);
            }
        }
        for (int i = 0; i < width && dw; i++) dw[at + i] = (T)dot[i];
        for (int i = 0; i < width && db; i++) db[at + i] = (T)sum[i];
    }
}

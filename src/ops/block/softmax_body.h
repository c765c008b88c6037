/* Template: softmax, log_softmax and their backward operators for one element type T. softmax_cpu.c includes it through
   cpu/each_type.h, which defines T, NAME, EXP and EXP_DOWN. There are two versions of each: for a row (the last axis,
   step 1), and for `width` neighbouring columns with elements `step` apart. */
#include "ops/block/rows_body.h"

/* x: the operand; of backward operators the gradient g. y: the second operand of backward operators. */
typedef void NAME(part)(const T *x, const T *y, T *out, int64_t n, int64_t step, int width);

/* exp(x - max) / sum */
static void NAME(softmax_row)(const T *x, const T *y, T *out, int64_t n, int64_t step, int width)
{
    (void)y, (void)step, (void)width;
    NAME(row_exp_down)(x, NAME(row_max)(x, n), out, n);
    const T scale = (T)(1 / NAME(row_sum)(out, n));
    for (int64_t i = 0; i < n; i++) out[i] *= scale;
}

static void NAME(softmax_columns)(const T *x, const T *y, T *out, int64_t n, int64_t step, int width)
{
    (void)y;
    T max[CN__COLUMNS], scale[CN__COLUMNS];
    double sum[CN__COLUMNS] = { 0 };
    NAME(columns_max)(x, n, step, width, max);
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < width; j++) out[i * step + j] = EXP_DOWN(x[i * step + j] - max[j]);
        for (int j = 0; j < width; j++) sum[j] += out[i * step + j];
    }
    for (int j = 0; j < width; j++) scale[j] = (T)(1 / sum[j]);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) out[i * step + j] *= scale[j];
}

/* (x - max) - log(sum of exp(x - max)) */
static void NAME(log_softmax_row)(const T *x, const T *y, T *out, int64_t n, int64_t step, int width)
{
    (void)y, (void)step, (void)width;
    const T max = NAME(row_max)(x, n), log_sum = (T)log(NAME(row_sum_exp)(x, max, n));
    for (int64_t i = 0; i < n; i++) out[i] = x[i] - max - log_sum;
}

static void NAME(log_softmax_columns)(const T *x, const T *y, T *out, int64_t n, int64_t step, int width)
{
    (void)y;
    T max[CN__COLUMNS], log_sum[CN__COLUMNS];
    double sum[CN__COLUMNS];
    NAME(columns_max)(x, n, step, width, max);
    NAME(columns_sum_exp)(x, n, step, width, max, sum);
    for (int j = 0; j < width; j++) log_sum[j] = (T)log(sum[j]);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) out[i * step + j] = x[i * step + j] - max[j] - log_sum[j];
}

/* y (g - sum of g y) */
static void NAME(softmax_backward_row)(const T *g, const T *y, T *dx, int64_t n, int64_t step, int width)
{
    (void)step, (void)width;
    const T dot = (T)NAME(row_dot)(g, y, n);
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (g[i] - dot);
}

static void NAME(softmax_backward_columns)(const T *g, const T *y, T *dx, int64_t n, int64_t step, int width)
{
    double dot[CN__COLUMNS] = { 0 };
    T rounded[CN__COLUMNS];
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) dot[j] += (double)g[i * step + j] * y[i * step + j];
    for (int j = 0; j < width; j++) rounded[j] = (T)dot[j];
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) dx[i * step + j] = y[i * step + j] * (g[i * step + j] - rounded[j]);
}

/* g - exp(y) (sum of g) */
static void NAME(log_softmax_backward_row)(const T *g, const T *y, T *dx, int64_t n, int64_t step, int width)
{
    (void)step, (void)width;
    const T sum = (T)NAME(row_sum)(g, n);
    for (int64_t i = 0; i < n; i++) dx[i] = g[i] - EXP(y[i]) * sum;
}

static void NAME(log_softmax_backward_columns)(const T *g, const T *y, T *dx, int64_t n, int64_t step, int width)
{
    double sum[CN__COLUMNS] = { 0 };
    T rounded[CN__COLUMNS];
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) sum[j] += g[i * step + j];
    for (int j = 0; j < width; j++) rounded[j] = (T)sum[j];
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < width; j++) dx[i * step + j] = g[i * step + j] - EXP(y[i * step + j]) * rounded[j];
}

typedef struct NAME(job) {
    cn__columns c;
    NAME(part) * part;
} NAME(job);

static void NAME(parts)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const NAME(job) *job = user;
    const cn__columns *c = &job->c;
    for (int64_t i = begin, reported = begin; i < end; i++) {
        int width;
        int64_t at = cn__columns_at(c, i, &width);
        const T *y = k->n_in > 1 ? (const T *)k->in[1].data + at : NULL;
        job->part((const T *)k->in[0].data + at, y, (T *)k->out[0].data + at, c->n, c->inner, width);
        if (c->blocks == 1) reported = cn__rows_done(k, reported, i + 1, end, c->n * c->inner, thread);
    }
}

static void NAME(run)(const cn_kernel *k, NAME(part) * row, NAME(part) * columns)
{
    const cn__softmax_attrs *a = k->attrs;
    NAME(job) job = { .c = cn__columns_of(k->in[0].ndim, k->in[0].shape, a->axis) };
    if (k->in[0].numel == 0) return;
    job.part = job.c.inner == 1 ? row : columns;
    const int64_t width = job.c.inner < CN__COLUMNS ? job.c.inner : CN__COLUMNS;
    cn_parallel(k, job.c.outer * job.c.blocks, cn__grain_of((double)job.c.n * (double)width), NAME(parts), &job);
    if (job.c.blocks > 1) cn__kernel_done_all(k); /* a finished block of columns is not contiguous */
}

static void NAME(softmax)(const cn_kernel *k) { NAME(run)(k, NAME(softmax_row), NAME(softmax_columns)); }
static void NAME(log_softmax)(const cn_kernel *k) { NAME(run)(k, NAME(log_softmax_row), NAME(log_softmax_columns)); }
static void NAME(softmax_backward)(const cn_kernel *k)
{
    NAME(run)(k, NAME(softmax_backward_row), NAME(softmax_backward_columns));
}
static void NAME(log_softmax_backward)(const cn_kernel *k)
{
    NAME(run)(k, NAME(log_softmax_backward_row), NAME(log_softmax_backward_columns));
}

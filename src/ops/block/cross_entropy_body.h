/* Template: cross_entropy for one element type T, on logits (N, C, S); a part is a block of columns, one column a
   sample. cross_entropy_cpu.c includes it through cpu/each_type.h, which defines T, NAME, EXP and EXP_DOWN. */
#include "ops/block/rows_body.h"

/* For `width` columns: lse = log(sum of exp(x)), and with label smoothing smooth = sum of w x. */
static void NAME(columns)(const cn__cross_entropy *l, const T *x, const T *w, int width, double *lse, double *smooth)
{
    const int64_t classes = l->c.n, step = l->c.inner;
    T max[CN__COLUMNS];
    if (step == 1) {
        lse[0] = NAME(row_lse)(x, classes);
    } else {
        NAME(columns_max)(x, classes, step, width, max);
        NAME(columns_sum_exp)(x, classes, step, width, max, lse);
        for (int j = 0; j < width; j++) lse[j] = max[j] == (T)-INFINITY ? max[j] : max[j] + log(lse[j]);
    }
    for (int j = 0; j < width; j++) smooth[j] = 0;
    if (l->smoothing <= 0) return;
    if (step == 1) {
        smooth[0] = w ? NAME(row_dot)(x, w, classes) : NAME(row_sum)(x, classes);
        return;
    }
    for (int64_t i = 0; i < classes; i++)
        for (int j = 0; j < width; j++) smooth[j] += (double)x[i * step + j] * (w ? w[i] : 1);
}

/* (1 - s) w_t (lse - x_t) + s / C · sum over c of w_c (lse - x_c) */
static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__cross_entropy *l = user;
    const T *w = k->in[2].data;
    for (int64_t part = begin; part < end; part++) {
        int width;
        const int64_t at = cn__columns_at(&l->c, part, &width), first = sample_of(l, part);
        const T *x = (const T *)k->in[0].data + at;
        double lse[CN__COLUMNS], smooth[CN__COLUMNS];
        const bool counts = l->c.inner > 1 || cn__target_of(k, l, first) >= 0; /* an ignored row is not read */
        if (counts) NAME(columns)(l, x, w, width, lse, smooth);
        for (int j = 0; j < width; j++) {
            const int64_t t = cn__target_of(k, l, first + j);
            double value = 0;
            if (t >= 0) {
                value = (1 - l->smoothing) * (w ? w[t] : 1) * (lse[j] - x[t * l->c.inner + j]);
                if (l->smoothing > 0) value += l->smoothing / (double)l->c.n * (l->weight_sum * lse[j] - smooth[j]);
            }
            ((T *)k->out[1].data)[first + j] = t >= 0 ? (T)lse[j] : 0;
            if (l->each) l->each[first + j] = value;
            else ((T *)k->out[0].data)[first + j] = (T)value;
        }
    }
}

/* dx of a sample with target t: P p_scale - soft w_c - hard [c = t] */
static void NAME(backward_column)(const cn__cross_entropy *l, const T *x, const T *w, double lse, int64_t t,
                                  double scale, T *dx)
{
    const int64_t step = l->c.inner;
    const double hard = scale * (1 - l->smoothing) * (w ? w[t] : 1), soft = scale * l->smoothing / (double)l->c.n;
    const T p_scale = (T)(hard + soft * l->weight_sum), shift = (T)lse;
    for (int64_t c = 0; c < l->c.n; c++) dx[c * step] = EXP(x[c * step] - shift) * p_scale;
    for (int64_t c = 0; c < l->c.n && soft != 0; c++) dx[c * step] -= (T)(soft * (w ? w[c] : 1));
    dx[t * step] -= (T)hard;
}

/* dx = g ((1 - s) w_t (P - [c = t]) + s / C · (P sum of w - w_c)) */
static void NAME(backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__cross_entropy *l = user;
    const T *g = k->in[0].data, *w = k->in[3].data, *lse = k->in[4].data;
    for (int64_t part = begin; part < end; part++) {
        int width;
        const int64_t at = cn__columns_at(&l->c, part, &width), first = sample_of(l, part);
        for (int j = 0; j < width; j++) {
            const T *x = (const T *)k->in[1].data + at + j;
            T *dx = (T *)k->out[0].data + at + j;
            const int64_t t = cn__target_of(k, l, first + j);
            const double scale = g[l->none ? first + j : 0] / l->total;
            if (t >= 0) NAME(backward_column)(l, x, w, lse[first + j], t, scale, dx);
            else
                for (int64_t c = 0; c < l->c.n; c++) dx[c * l->c.inner] = 0;
        }
    }
}

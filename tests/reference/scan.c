/* Operators along one axis, straight from their definitions: take each line out, compute, put it back. */
#include <math.h>
#include <stdlib.h>

#include "ops/scan/scan.h"
#include "support/reference.h"

/* x, y: a line of each operand (y may be absent); v, at: n_out lines of values and indices to fill. */
typedef void (*line_fn)(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at);

static int64_t along(const ref_tensor *t, int64_t axis) { return t->ndim ? t->shape[axis] : 1; }

static void each_line(const ref_call *c, line_fn fn)
{
    int64_t axis = *(const int64_t *)c->attrs, n = along(&c->in[0], axis), m = along(&c->out[0], axis), inner = 1;
    for (int d = (int)axis + 1; d < c->in[0].ndim; d++) inner *= c->in[0].shape[d];
    double *line = calloc((size_t)n * 4 + 1, sizeof *line);
    if (!line) abort();
    double *x = line, *y = line + n, *v = line + 2 * n, *at = line + 3 * n;
    for (int64_t l = 0; n && l < c->in[0].numel / n; l++) {
        int64_t from = l / inner * n * inner + l % inner, to = l / inner * m * inner + l % inner;
        for (int64_t i = 0; i < n; i++) {
            x[i] = c->in[0].v[from + i * inner];
            if (c->n_in > 1) y[i] = c->in[1].v[from + i * inner];
        }
        fn(c, x, y, n, v, at);
        for (int64_t i = 0; i < m; i++) {
            c->out[0].v[to + i * inner] = v[i];
            if (c->n_out > 1) c->out[1].v[to + i * inner] = at[i];
        }
    }
    free(line);
}

static void cumsum_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)y, (void)at;
    bool reverse = ((const cn__scan_attrs *)c->attrs)->reverse;
    for (int64_t i = 0; i < n; i++) {
        v[i] = 0;
        for (int64_t k = reverse ? i : 0; k < (reverse ? n : i + 1); k++) v[i] += x[k];
    }
}

static void cumprod_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)c, (void)y, (void)at;
    for (int64_t i = 0; i < n; i++) {
        v[i] = 1;
        for (int64_t k = 0; k <= i; k++) v[i] *= x[k];
    }
}

static void linear_scan_line(const ref_call *c, const double *a, const double *b, int64_t n, double *h, double *at)
{
    (void)at;
    if (((const cn__scan_attrs *)c->attrs)->reverse)
        for (int64_t i = n - 1; i >= 0; i--) h[i] = i == n - 1 ? b[i] : a[i + 1] * h[i + 1] + b[i];
    else
        for (int64_t i = 0; i < n; i++) h[i] = i == 0 ? b[i] : a[i] * h[i - 1] + b[i];
}

static void cummax_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)c, (void)y;
    for (int64_t i = 0; i < n; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k <= i; k++)
            if (isnan(x[k]) || x[k] >= x[best]) best = k;
        v[i] = x[best];
        at[i] = (double)best;
    }
}

static void cummin_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)c, (void)y;
    for (int64_t i = 0; i < n; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k <= i; k++)
            if (isnan(x[k]) || x[k] <= x[best]) best = k;
        v[i] = x[best];
        at[i] = (double)best;
    }
}

static void logcumsumexp_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *more)
{
    (void)c, (void)y, (void)more;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k <= i; k++) sum += exp(x[k] - x[0]);
        v[i] = x[0] + log(sum);
    }
}

static bool greater(double a, double b) { return a > b || (isnan(a) && !isnan(b)); }

/* An element's place: how many come before it, counting equals on its left. */
static void in_order(const double *x, int64_t n, bool descending, double *v, double *at)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t place = 0;
        for (int64_t k = 0; k < n; k++) {
            bool before = descending ? greater(x[k], x[i]) : greater(x[i], x[k]);
            bool equal = !greater(x[k], x[i]) && !greater(x[i], x[k]);
            place += before || (equal && k < i);
        }
        v[place] = x[i];
        at[place] = (double)i;
    }
}

static void sort_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)y;
    in_order(x, n, ((const cn__sort_attrs *)c->attrs)->descending, v, at);
}

static void argsort_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    sort_line(c, x, y, n, at, v);
}

static void topk_line(const ref_call *c, const double *x, const double *y, int64_t n, double *v, double *at)
{
    (void)y;
    in_order(x, n, ((const cn__topk_attrs *)c->attrs)->largest, v, at);
}

/* How many elements come before the first that is greater than the value, or not less, by halving: the sequence of a
   case need not be sorted. */
static int64_t place_of(const double *x, int64_t n, double v, bool right)
{
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (right ? x[middle] > v : x[middle] >= v) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void searchsorted(const ref_call *c)
{
    const ref_tensor *x = &c->in[0], *v = &c->in[1];
    const int64_t n = x->shape[x->ndim - 1], m = v->ndim ? v->shape[v->ndim - 1] : 1;
    for (int64_t i = 0; i < v->numel; i++) {
        const int64_t row = x->ndim == 1 ? 0 : i / m * n;
        c->out[0].v[i] = (double)place_of(x->v + row, n, v->v[i], ((const cn__search_attrs *)c->attrs)->right);
    }
}

static void bucketize(const ref_call *c)
{
    for (int64_t i = 0; i < c->in[0].numel; i++)
        c->out[0].v[i] = (double)place_of(c->in[1].v, c->in[1].numel, c->in[0].v[i],
                                          ((const cn__search_attrs *)c->attrs)->right);
}

/* The element of rank k among x[0], x[step], .. */
static double ranked(const double *x, int64_t n, int64_t step, int64_t k)
{
    double *line = calloc((size_t)n * 3 + 1, sizeof *line);
    if (!line) abort();
    for (int64_t i = 0; i < n; i++) line[i] = x[i * step];
    in_order(line, n, false, line + n, line + 2 * n);
    const double v = line[n + k];
    free(line);
    return v;
}

static void median(const ref_call *c)
{
    const int64_t n = c->in[0].numel;
    c->out[0].v[0] = ranked(c->in[0].v, n, 1, (n - 1) / 2);
}

/* Levels are multiplied in the dtype of x, so that ranks are rounded as there. */
static void quantile(const ref_call *c)
{
    const cn__quantile_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0];
    const int64_t axis = a->axis < 0 ? 0 : a->axis, n = a->axis < 0 ? x->numel : along(x, axis);
    int64_t inner = 1;
    for (int d = (int)axis + 1; d < x->ndim && a->axis >= 0; d++) inner *= x->shape[d];
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        const int64_t lines = x->numel / n, l = i % lines, from = l / inner * n * inner + l % inner;
        const double q = c->in[1].v[i / lines];
        const double rank = x->dtype != CN_F64 ? (double)((float)q * (float)(n - 1)) : q * (double)(n - 1);
        const double low = ranked(x->v + from, n, inner, (int64_t)floor(rank));
        const double high = ranked(x->v + from, n, inner, (int64_t)ceil(rank));
        const double part = a->how == CN_QUANTILE_LINEAR     ? rank - floor(rank)
                            : a->how == CN_QUANTILE_LOWER    ? 0
                            : a->how == CN_QUANTILE_HIGHER   ? 1
                            : a->how == CN_QUANTILE_MIDPOINT ? 0.5
                                                             : nearbyint(rank) - floor(rank);
        c->out[0].v[i] = low + part * (high - low);
    }
}

static void cumsum(const ref_call *c) { each_line(c, cumsum_line); }
static void cumprod(const ref_call *c) { each_line(c, cumprod_line); }
static void linear_scan(const ref_call *c) { each_line(c, linear_scan_line); }
static void cummax(const ref_call *c) { each_line(c, cummax_line); }
static void cummin(const ref_call *c) { each_line(c, cummin_line); }
static void logcumsumexp(const ref_call *c) { each_line(c, logcumsumexp_line); }
static void sort(const ref_call *c) { each_line(c, sort_line); }
static void argsort(const ref_call *c) { each_line(c, argsort_line); }
static void topk(const ref_call *c) { each_line(c, topk_line); }

const ref_entry ref_scan[] = {
    {"cumsum", cumsum}, {"cumprod", cumprod}, {"linear_scan", linear_scan}, {"cummax", cummax},
    {"cummin", cummin}, {"logcumsumexp", logcumsumexp},
    {"sort", sort}, {"argsort", argsort}, {"topk", topk}, {"searchsorted", searchsorted},
    {"bucketize", bucketize}, {"median", median}, {"nanmedian", median}, {"quantile", quantile},
    {"nanquantile", quantile}, {NULL, NULL},
};

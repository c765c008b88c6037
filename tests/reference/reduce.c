/* Reductions, straight from their definitions: collect what goes into each result, then compute it. */
#include <math.h>
#include <stdlib.h>

#include "ops/reduce/reduce.h"
#include "support/reference.h"

typedef double (*over_fn)(const double *x, int64_t n, double number);

/* Where element `at` of x ends up in the result: its coordinates along the axes that stay, row-major. */
static int64_t result_index(const ref_tensor *x, int64_t set, int64_t at)
{
    int64_t index = 0, step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        int64_t coordinate = at % x->shape[d];
        at /= x->shape[d];
        if (set >> d & 1) continue;
        index += coordinate * step;
        step *= x->shape[d];
    }
    return index;
}

static void over_set(const ref_call *c, int64_t set, over_fn fn)
{
    const ref_tensor *x = &c->in[0];
    int64_t count = 1;
    for (int d = 0; d < x->ndim; d++)
        if (set >> d & 1) count *= x->shape[d];
    int64_t results = c->out[0].numel;
    double *part = calloc((size_t)(results * count) + 1, sizeof *part);
    int64_t *filled = calloc((size_t)results + 1, sizeof *filled);
    if (!part || !filled) abort();
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t o = result_index(x, set, i);
        part[o * count + filled[o]++] = x->v[i];
    }
    for (int64_t o = 0; o < results; o++) c->out[0].v[o] = fn(part + o * count, count, c->args ? c->args[0].f : 0);
    free(part);
    free(filled);
}

static void over_range(const ref_call *c, over_fn fn)
{
    const cn__reduce_attrs *a = c->attrs;
    int64_t set = 0;
    for (int64_t d = a->begin; d < a->end; d++) set |= INT64_C(1) << d;
    over_set(c, set, fn);
}

static void over_axes(const ref_call *c, over_fn fn) { over_set(c, ((const cn__axis_set_attrs *)c->attrs)->axes, fn); }

static double sum_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i];
    return s;
}

static double prod_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    double p = 1;
    for (int64_t i = 0; i < n; i++) p *= x[i];
    return p;
}

static double argmax_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) return (double)i;
        if (x[i] > x[best]) best = i;
    }
    return (double)best;
}

static double argmin_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) return (double)i;
        if (x[i] < x[best]) best = i;
    }
    return (double)best;
}

static double max_of(const double *x, int64_t n, double unused) { return x[(int64_t)argmax_of(x, n, unused)]; }
static double min_of(const double *x, int64_t n, double unused) { return x[(int64_t)argmin_of(x, n, unused)]; }

static double any_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0) return 1;
    return 0;
}

static double all_of(const double *x, int64_t n, double unused)
{
    (void)unused;
    for (int64_t i = 0; i < n; i++)
        if (x[i] == 0) return 0;
    return 1;
}

static double mean_of(const double *x, int64_t n, double unused) { return sum_of(x, n, unused) / (double)n; }

static double var_of(const double *x, int64_t n, double correction)
{
    double mean = mean_of(x, n, 0), s = 0;
    for (int64_t i = 0; i < n; i++) s += (x[i] - mean) * (x[i] - mean);
    return s / fmax(0, (double)n - correction);
}

static double std_of(const double *x, int64_t n, double correction) { return sqrt(var_of(x, n, correction)); }

static double norm_of(const double *x, int64_t n, double p)
{
    double s = 0, most = 0, least = INFINITY;
    int64_t nonzero = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = fabs(x[i]);
        s += pow(a, p);
        most = fmax(most, a);
        least = fmin(least, a);
        nonzero += a != 0;
    }
    if (p == 0) return (double)nonzero;
    return p == INFINITY ? most : p == -INFINITY ? least : pow(s, 1 / p);
}

static double logsumexp_of(const double *x, int64_t n, double unused)
{
    if (n == 0) return -INFINITY;
    double most = max_of(x, n, unused), s = 0;
    if (isinf(most)) return most;
    for (int64_t i = 0; i < n; i++) s += exp(x[i] - most);
    return most + log(s);
}

static void sum(const ref_call *c) { over_range(c, sum_of); }
static void prod(const ref_call *c) { over_range(c, prod_of); }
static void max(const ref_call *c) { over_range(c, max_of); }
static void min(const ref_call *c) { over_range(c, min_of); }
static void argmax(const ref_call *c) { over_range(c, argmax_of); }
static void argmin(const ref_call *c) { over_range(c, argmin_of); }
static void any(const ref_call *c) { over_range(c, any_of); }
static void all(const ref_call *c) { over_range(c, all_of); }
static void mean(const ref_call *c) { over_axes(c, mean_of); }
static void var(const ref_call *c) { over_axes(c, var_of); }
static void std(const ref_call *c) { over_axes(c, std_of); }
static void norm(const ref_call *c) { over_axes(c, norm_of); }
static void logsumexp(const ref_call *c) { over_axes(c, logsumexp_of); }

const ref_entry ref_reduce[] = {
    {"sum", sum}, {"prod", prod}, {"max", max}, {"min", min}, {"argmax", argmax}, {"argmin", argmin},
    {"any", any}, {"all", all}, {"mean", mean}, {"var", var}, {"std", std}, {"norm", norm},
    {"logsumexp", logsumexp}, {NULL, NULL},
};

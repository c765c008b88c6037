/* References of resizing by any rule, of sampling at the points of a grid, and of blocks as columns. */
#include <math.h>

#include "support/reference.h"

#include "ops/window/window.h"

/* ---- interpolate: how much element i of `in` counts for result o of `out` along an axis ---- */

typedef struct axis {
    int64_t in, out;
    double ratio;
    const cn__interpolate_attrs *a;
} axis;

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

static double centre(const axis *x, int64_t o)
{
    return x->a->align_corners ? (double)o * x->ratio : ((double)o + 0.5) * x->ratio - 0.5;
}

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

static double nearest_weight(const axis *x, int64_t o, int64_t i)
{
    const float r = (float)x->ratio;
    float at = x->a->mode == CN_INTERPOLATE_NEAREST ? (float)o * r : fmaxf(((float)o + 0.5f) * r - 0.5f, 0) + 0.5f;
    return within((int64_t)floorf(at), x->in) == i;
}

static double linear_weight(const axis *x, int64_t o, int64_t i)
{
    const double at = x->in == x->out ? (double)o : fmin(fmax(centre(x, o), 0), (double)(x->in - 1));
    return fmax(0, 1 - fabs(at - (double)i));
}

/* Elements beyond an end are the last ones. */
static double cubic_weight(const axis *x, int64_t o, int64_t i)
{
    const double at = centre(x, o);
    double sum = 0;
    for (int64_t k = (int64_t)floor(at) - 1; k <= (int64_t)floor(at) + 2; k++)
        if (within(k, x->in) == i) sum += cubic(at - (double)k, -0.75);
    return sum;
}

static double filtered(const axis *x, int64_t o, int64_t i)
{
    const double at = ((double)i + 0.5 - ((double)o + 0.5) * x->ratio) / fmax(x->ratio, 1);
    return x->a->mode == CN_INTERPOLATE_BICUBIC ? cubic(at, -0.5) : fmax(0, 1 - fabs(at));
}

static double antialias_weight(const axis *x, int64_t o, int64_t i)
{
    double sum = 0;
    for (int64_t k = 0; k < x->in; k++) sum += filtered(x, o, k);
    return filtered(x, o, i) / sum;
}

static double area_weight(const axis *x, int64_t o, int64_t i)
{
    const double in = (double)x->in, out = (double)x->out;
    const double begin = floor((double)o * in / out), end = ceil((double)(o + 1) * in / out);
    return (double)i >= begin && (double)i < end ? 1 / (end - begin) : 0;
}

static double weight(const axis *x, int64_t o, int64_t i)
{
    switch (x->a->mode) {
    case CN_INTERPOLATE_NEAREST:
    case CN_INTERPOLATE_NEAREST_EXACT: return nearest_weight(x, o, i);
    case CN_INTERPOLATE_AREA: return area_weight(x, o, i);
    case CN_INTERPOLATE_BICUBIC: return x->a->antialias ? antialias_weight(x, o, i) : cubic_weight(x, o, i);
    default: return x->a->antialias ? antialias_weight(x, o, i) : linear_weight(x, o, i);
    }
}

void ref_interpolate(const ref_call *r)
{
    const cn__interpolate_attrs *a = r->attrs;
    axis x[3] = { { 1, 1, 1, a }, { 1, 1, 1, a }, { 1, 1, 1, a } };
    int64_t outs = 1, ins = 1;
    for (int d = 0; d < a->axes; d++) {
        axis *l = &x[3 - a->axes + d];
        l->in = r->in[0].shape[2 + d], l->out = r->out[0].shape[2 + d];
        l->ratio = a->scale[d] != 0 ? 1 / a->scale[d] : (double)l->in / (double)l->out;
        if (a->align_corners) l->ratio = l->out > 1 ? (double)(l->in - 1) / (double)(l->out - 1) : 0;
        outs *= l->out, ins *= l->in;
    }
    for (int64_t p = 0; p < r->out[0].numel; p++) {
        const int64_t o[3] = { p % outs / x[2].out / x[1].out, p / x[2].out % x[1].out, p % x[2].out };
        r->out[0].v[p] = 0;
        for (int64_t q = 0; q < ins; q++) {
            const int64_t i[3] = { q / x[2].in / x[1].in, q / x[2].in % x[1].in, q % x[2].in };
            double part = 1;
            for (int d = 3 - (int)a->axes; d < 3; d++) part *= weight(&x[d], o[d], i[d]);
            if (part != 0) r->out[0].v[p] += part * r->in[0].v[p / outs * ins + q];
        }
    }
}

/* ---- grid_sample ---- */

static double reflect(double x, double low, double high)
{
    if (low == high) return low;
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
    return x;
}

static double pad(const cn__grid_attrs *a, double x, int64_t n)
{
    const double last = (double)(n - 1);
    if (a->padding == CN_GRID_ZEROS) return x;
    if (a->padding == CN_GRID_REFLECTION) x = a->align_corners ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    return fmin(fmax(x, 0), last);
}

/* How much element i of n counts for a point at x. */
static double grid_weight(const cn__grid_attrs *a, double x, int64_t n, int64_t i)
{
    double sum = 0;
    x = a->align_corners ? (x + 1) / 2 * (double)(n - 1) : ((x + 1) * (double)n - 1) / 2;
    if (a->mode == CN_GRID_NEAREST) return nearbyint(pad(a, x, n)) == (double)i;
    if (a->mode == CN_GRID_BILINEAR) return fmax(0, 1 - fabs(pad(a, x, n) - (double)i));
    for (double k = floor(x) - 1; k <= floor(x) + 2; k++)
        if (pad(a, k, n) == (double)i) sum += cubic(x - k, -0.75);
    return sum;
}

void ref_grid_sample(const ref_call *r)
{
    const ref_tensor *x = &r->in[0], *grid = &r->in[1], *y = &r->out[0];
    const int axes = x->ndim - 2;
    int64_t points = 1, elements = 1;
    for (int d = 2; d < x->ndim; d++) points *= y->shape[d], elements *= x->shape[d];
    for (int64_t p = 0; p < y->numel; p++) {
        const double *at = grid->v + (p / points / y->shape[1] * points + p % points) * axes;
        y->v[p] = 0;
        for (int64_t q = 0; q < elements; q++) {
            int64_t rest = q;
            double part = 1;
            for (int d = 0; d < axes; d++) { /* x is the last axis */
                const int64_t n = x->shape[x->ndim - 1 - d];
                part *= grid_weight(r->attrs, at[d], n, rest % n);
                rest /= n;
            }
            y->v[p] += part * x->v[p / points * elements + q];
        }
    }
}

void ref_affine_grid(const ref_call *r)
{
    const cn__affine_attrs *a = r->attrs;
    const int axes = (int)a->axes;
    for (int64_t p = 0; p < r->out[0].numel; p++) {
        int64_t rest = p / axes;
        const int64_t row = p % axes;
        double at[4] = { 0 };
        for (int d = 0; d < axes; rest /= a->size[axes - 1 - d++]) {
            const double n = (double)a->size[axes - 1 - d], i = (double)(rest % a->size[axes - 1 - d]);
            at[d] = n == 1 ? 0 : a->align_corners ? 2 * i / (n - 1) - 1 : (2 * i + 1) / n - 1;
        }
        at[axes] = 1;
        r->out[0].v[p] = 0;
        for (int k = 0; k <= axes; k++) r->out[0].v[p] += r->in[0].v[(rest * axes + row) * (axes + 1) + k] * at[k];
    }
}

/* ---- blocks ---- */

/* Pairs of an element of planes (N, C, H, W) and its place in the columns. */
static void pairs(const ref_call *r, const ref_tensor *planes, const ref_tensor *columns, bool add)
{
    const cn__block_attrs *a = r->attrs;
    const int64_t h = planes->shape[planes->ndim - 2], w = planes->shape[planes->ndim - 1];
    const int64_t count = columns->shape[columns->ndim - 1];
    const int64_t across = (w + 2 * a->padding[1] - a->dilation[1] * (a->kernel[1] - 1) - 1) / a->stride[1] + 1;
    for (int64_t p = 0; p < columns->numel; p++) {
        const int64_t block = p % count, row = p / count, v = row % a->kernel[1], u = row / a->kernel[1] % a->kernel[0];
        const int64_t plane = row / a->kernel[1] / a->kernel[0];
        const int64_t i = block / across * a->stride[0] + u * a->dilation[0] - a->padding[0];
        const int64_t j = block % across * a->stride[1] + v * a->dilation[1] - a->padding[1];
        const bool inside = i >= 0 && i < h && j >= 0 && j < w;
        if (!add) columns->v[p] = inside ? planes->v[(plane * h + i) * w + j] : 0;
        else if (inside) planes->v[(plane * h + i) * w + j] += columns->v[p];
    }
}

void ref_im2col(const ref_call *r) { pairs(r, &r->in[0], &r->out[0], false); }

void ref_col2im(const ref_call *r)
{
    for (int64_t p = 0; p < r->out[0].numel; p++) r->out[0].v[p] = 0;
    pairs(r, &r->out[0], &r->in[0], true);
}

/* References of pooling and resizing, straight from their definitions. */
#include <math.h>

#include "support/reference.h"

#include "ops/window/window.h"

/* The last three axes; planes are volumes of depth 1, lines are planes of height 1. */
typedef struct volumes {
    int64_t n, size[3];
} volumes;

static volumes volumes_of(const ref_tensor *t, int axes)
{
    volumes v = { 1, { 1, 1, 1 } };
    for (int d = 0; d < t->ndim - axes; d++) v.n *= t->shape[d];
    for (int d = 0; d < axes; d++) v.size[3 - axes + d] = t->shape[t->ndim - axes + d];
    return v;
}

static int64_t volume(const volumes *v) { return v->size[0] * v->size[1] * v->size[2]; }

/* One element that a window covers. */
typedef struct visit {
    const ref_call *r;
    int64_t from, to;       /* positions: of the element, of the window in the pooled tensor */
    int64_t place;          /* of the element in its volume */
    double count;           /* what an average divides by */
} visit;

/* Adaptive windows: [first, last). */
static int64_t first(int64_t o, int64_t in, int64_t out)
{
    return (int64_t)floor((double)o * (double)in / (double)out);
}

static int64_t last(int64_t o, int64_t in, int64_t out)
{
    return (int64_t)ceil((double)(o + 1) * (double)in / (double)out);
}

/* Along axis d of (D, H, W): whether position u of window o lies in the input, and where. */
static bool covers(const cn__pool_attrs *a, int d, int64_t in, int64_t out, int64_t o, int64_t u, int64_t *at)
{
    const int64_t k = d - 3 + a->axes; /* < 0: the depth of planes */
    *at = k < 0 ? 0 : a->kernel[0] == 0 ? first(o, in, out) + u : o * a->stride[k] - a->padding[k] + u * a->dilation[k];
    return *at >= 0 && *at < in && (k < 0 || a->kernel[0] != 0 || *at < last(o, in, out));
}

static int64_t reach(const cn__pool_attrs *a, int d, int64_t in)
{
    const int64_t k = d - 3 + a->axes;
    return k >= 0 && a->kernel[0] ? a->kernel[k] : in;
}

/* Along axis d: positions of window o in the input, or in input and padding. */
static double divisor(const cn__pool_attrs *a, int d, int64_t in, int64_t out, int64_t o)
{
    double count = 0;
    int64_t at;
    const int64_t padding = d - 3 + a->axes < 0 ? 0 : a->padding[d - 3 + a->axes];
    for (int64_t u = 0; u < reach(a, d, in); u++) {
        bool inside = covers(a, d, in, out, o, u, &at);
        count += inside || (a->kernel[0] && !a->exclude_padding && at >= -padding && at < in + padding);
    }
    return count;
}

/* Calls fn for each element of window (o[0], o[1], o[2]) of volume n. */
static void visit_window(const ref_call *r, const volumes *x, const volumes *y, int64_t n, const int64_t *o,
                         void (*fn)(const visit *v))
{
    const cn__pool_attrs *a = r->attrs;
    int64_t u[3], at[3];
    visit v = { .r = r, .count = 1, .to = ((n * y->size[0] + o[0]) * y->size[1] + o[1]) * y->size[2] + o[2] };
    for (int d = 0; d < 3; d++) v.count *= divisor(a, d, x->size[d], y->size[d], o[d]);
    if (a->divisor) v.count = (double)a->divisor;
    for (u[0] = 0; u[0] < reach(a, 0, x->size[0]); u[0]++)
        for (u[1] = 0; u[1] < reach(a, 1, x->size[1]); u[1]++)
            for (u[2] = 0; u[2] < reach(a, 2, x->size[2]); u[2]++) {
                bool inside = true;
                for (int d = 0; d < 3; d++) inside &= covers(a, d, x->size[d], y->size[d], o[d], u[d], &at[d]);
                if (!inside) continue;
                v.place = (at[0] * x->size[1] + at[1]) * x->size[2] + at[2];
                v.from = n * volume(x) + v.place;
                fn(&v);
            }
}

static void pool(const ref_call *r, const ref_tensor *big, const ref_tensor *small, int axes,
                 void (*fn)(const visit *v))
{
    const volumes x = volumes_of(big, axes), y = volumes_of(small, axes);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t i = 0; i < volume(&y); i++) {
            const int64_t o[3] = { i / y.size[2] / y.size[1], i / y.size[2] % y.size[1], i % y.size[2] };
            visit_window(r, &x, &y, n, o, fn);
        }
}

static int axes_of(const ref_call *r) { return (int)((const cn__pool_attrs *)r->attrs)->axes; }

static void fill(const ref_tensor *t, double v)
{
    for (int64_t p = 0; p < t->numel; p++) t->v[p] = v;
}

static void take_max(const visit *v)
{
    const ref_call *r = v->r;
    double x = r->in[0].v[v->from], *best = &r->out[0].v[v->to];
    if (!(x > *best) && !isnan(x)) return;
    *best = x;
    if (r->n_out > 1) r->out[1].v[v->to] = (double)v->place;
}

static void max_of(const ref_call *r, int axes)
{
    fill(&r->out[0], -INFINITY);
    pool(r, &r->in[0], &r->out[0], axes, take_max);
}
static void max_nd(const ref_call *r) { max_of(r, axes_of(r)); }
static void max_1d(const ref_call *r) { max_of(r, 1); }

static void max_backward(const ref_call *r)
{
    const volumes x = volumes_of(&r->out[0], axes_of(r)), g = volumes_of(&r->in[0], axes_of(r));
    fill(&r->out[0], 0);
    for (int64_t p = 0; p < r->in[0].numel; p++)
        r->out[0].v[p / volume(&g) * volume(&x) + (int64_t)r->in[1].v[p]] += r->in[0].v[p];
}

static void unpool(const ref_call *r)
{
    const int axes = (int)((const cn__unpool_attrs *)r->attrs)->axes;
    const volumes y = volumes_of(&r->out[0], axes), x = volumes_of(&r->in[0], axes);
    fill(&r->out[0], 0);
    for (int64_t p = 0; p < r->in[0].numel; p++)
        r->out[0].v[p / volume(&x) * volume(&y) + (int64_t)r->in[1].v[p]] = r->in[0].v[p];
}

static void add_share(const visit *v) { v->r->out[0].v[v->to] += v->r->in[0].v[v->from] / v->count; }
static void spread_share(const visit *v) { v->r->out[0].v[v->from] += v->r->in[0].v[v->to] / v->count; }

static void average_of(const ref_call *r, int axes)
{
    fill(&r->out[0], 0);
    pool(r, &r->in[0], &r->out[0], axes, add_share);
}
static void average_nd(const ref_call *r) { average_of(r, axes_of(r)); }
static void average_1d(const ref_call *r) { average_of(r, 1); }

static void average_backward(const ref_call *r)
{
    fill(&r->out[0], 0);
    pool(r, &r->out[0], &r->in[0], axes_of(r), spread_share);
}

/* (Σ x^p)^(1/p). The mean over a partial window counts for as many elements as a whole one has. */
static void add_power(const visit *v)
{
    const cn__pool_attrs *a = v->r->attrs;
    const double p = v->r->args[0].f, x = v->r->in[0].v[v->from];
    double *y = &v->r->out[0].v[v->to], whole = 1;
    for (int d = 0; d < a->axes; d++) whole *= (double)a->kernel[d];
    if (isinf(p)) *y = fmax(*y, fabs(x));
    else *y += pow(x, p) / v->count * whole;
}

static void lp_of(const ref_call *r, int axes)
{
    fill(&r->out[0], 0);
    pool(r, &r->in[0], &r->out[0], axes, add_power);
    for (int64_t i = 0; i < r->out[0].numel && !isinf(r->args[0].f); i++)
        r->out[0].v[i] = pow(r->out[0].v[i], 1 / r->args[0].f);
}
static void lp_nd(const ref_call *r) { lp_of(r, axes_of(r)); }
static void lp_1d(const ref_call *r) { lp_of(r, 1); }

static void response_norm(const ref_call *r)
{
    const ref_tensor *x = &r->in[0];
    const int64_t size = ((const cn__response_attrs *)r->attrs)->size, channels = x->shape[1];
    int64_t inner = 1;
    for (int d = 2; d < x->ndim; d++) inner *= x->shape[d];
    for (int64_t p = 0; p < x->numel; p++) {
        const int64_t c = p / inner % channels;
        double squares = 0;
        for (int64_t k = c - size / 2; k < c - size / 2 + size; k++) {
            const double v = k >= 0 && k < channels ? x->v[p + (k - c) * inner] : 0;
            squares += v * v;
        }
        r->out[0].v[p] = x->v[p] / pow(r->args[2].f + r->args[0].f * squares / (double)size, r->args[1].f);
    }
}

/* Where the centre of result o lies among in elements whose centres are at 0, 1, ... */
static double source_of(int64_t o, int64_t in, int64_t out, bool align_corners)
{
    if (align_corners) return out == 1 ? 0 : (double)o * ((double)(in - 1) / (double)(out - 1));
    return ((double)o + 0.5) * ((double)in / (double)out) - 0.5;
}

/* How much element e counts for a result at `at`: a tent of width 1, with the outermost elements going on for ever. */
static double tent(int64_t e, double at, int64_t in)
{
    at = fmin(fmax(at, 0), (double)(in - 1));
    return fmax(0, 1 - fabs(at - (double)e));
}

static void resize_with(const ref_call *r, bool backward)
{
    const cn__resize_attrs *a = r->attrs;
    const ref_tensor *big = backward ? &r->out[0] : &r->in[0], *small = backward ? &r->in[0] : &r->out[0];
    const volumes x = volumes_of(big, 2), y = volumes_of(small, 2);
    const int64_t xh = x.size[1], xw = x.size[2], yh = y.size[1], yw = y.size[2];
    fill(&r->out[0], 0);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t i = 0; i < yh; i++)
            for (int64_t j = 0; j < yw; j++)
                for (int64_t h = 0; h < xh; h++)
                    for (int64_t w = 0; w < xw; w++) {
                        double part = tent(h, source_of(i, xh, yh, a->align_corners), xh) *
                                      tent(w, source_of(j, xw, yw, a->align_corners), xw);
                        int64_t from = (n * xh + h) * xw + w, to = (n * yh + i) * yw + j;
                        if (part != 0 && backward) r->out[0].v[from] += part * r->in[0].v[to];
                        if (part != 0 && !backward) r->out[0].v[to] += part * r->in[0].v[from];
                    }
}

static void bilinear(const ref_call *r) { resize_with(r, false); }
static void bilinear_backward(const ref_call *r) { resize_with(r, true); }

static int64_t nearest_of(int64_t o, int64_t in, int64_t out)
{
    int64_t at = (int64_t)floorf((float)o * ((float)in / (float)out));
    return at < in - 1 ? at : in - 1;
}

static void nearest(const ref_call *r)
{
    const int axes = (int)((const cn__nearest_attrs *)r->attrs)->axes;
    const volumes x = volumes_of(&r->in[0], axes), y = volumes_of(&r->out[0], axes);
    for (int64_t p = 0; p < r->out[0].numel; p++) {
        int64_t from = p / volume(&y), rest = p % volume(&y), o[3];
        for (int d = 2; d >= 0; rest /= y.size[d--]) o[d] = rest % y.size[d];
        for (int d = 0; d < 3; d++) from = from * x.size[d] + nearest_of(o[d], x.size[d], y.size[d]);
        r->out[0].v[p] = r->in[0].v[from];
    }
}

const ref_entry ref_window[] = {
    { "max_pool1d", max_1d },
    { "max_pool2d", max_nd },
    { "max_pool3d", max_nd },
    { "max_pool_backward", max_backward },
    { "adaptive_max_pool1d", max_1d },
    { "adaptive_max_pool2d", max_nd },
    { "adaptive_max_pool3d", max_nd },
    { "max_unpool1d", unpool },
    { "max_unpool2d", unpool },
    { "max_unpool3d", unpool },
    { "avg_pool1d", average_1d },
    { "avg_pool2d", average_nd },
    { "avg_pool3d", average_nd },
    { "avg_pool_backward", average_backward },
    { "adaptive_avg_pool1d", average_1d },
    { "adaptive_avg_pool2d", average_nd },
    { "adaptive_avg_pool3d", average_nd },
    { "adaptive_avg_pool_backward", average_backward },
    { "lp_pool1d", lp_1d },
    { "lp_pool2d", lp_nd },
    { "lp_pool3d", lp_nd },
    { "local_response_norm", response_norm },
    { "im2col", ref_im2col },
    { "col2im", ref_col2im },
    { "interpolate", ref_interpolate },
    { "interpolate_bilinear", bilinear },
    { "interpolate_bilinear_backward", bilinear_backward },
    { "interpolate_nearest", nearest },
    { "grid_sample", ref_grid_sample },
    { "affine_grid", ref_affine_grid },
    { NULL, NULL },
};

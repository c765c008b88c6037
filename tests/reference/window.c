/* References of pooling and resizing, straight from their definitions. */
#include <math.h>

#include "support/reference.h"

#include "ops/window/window.h"

/* The last two axes; lines are planes of height 1. */
typedef struct planes {
    int64_t n, h, w;
} planes;

static planes planes_of(const ref_tensor *t, bool lines)
{
    int leading = t->ndim - (lines ? 1 : 2);
    planes p = { 1, lines ? 1 : t->shape[leading], t->shape[t->ndim - 1] };
    for (int d = 0; d < leading; d++) p.n *= t->shape[d];
    return p;
}

/* One element that a window covers. */
typedef struct visit {
    const ref_call *r;
    int64_t from, to;       /* positions: of the element, of the window in the pooled tensor */
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

/* Along axis d: whether position u of window o lies in the input, and where. */
static bool covers(const cn__pool_attrs *a, int d, int64_t in, int64_t out, int64_t o, int64_t u, int64_t *at)
{
    if (a->kernel[0] == 0) *at = first(o, in, out) + u;
    else *at = o * a->stride[d] - a->padding[d] + u * a->dilation[d];
    return *at >= 0 && *at < in && (a->kernel[0] != 0 || *at < last(o, in, out));
}

static int64_t reach(const cn__pool_attrs *a, int d, int64_t in) { return a->kernel[0] ? a->kernel[d] : in; }

/* Along axis d: positions of window o in the input, or in input and padding. */
static double divisor(const cn__pool_attrs *a, int d, int64_t in, int64_t out, int64_t o)
{
    double count = 0;
    int64_t at;
    for (int64_t u = 0; u < reach(a, d, in); u++) {
        bool inside = covers(a, d, in, out, o, u, &at);
        bool padding = a->kernel[0] && !a->exclude_padding && at >= -a->padding[d] && at < in + a->padding[d];
        count += inside || padding;
    }
    return count;
}

static void pool(const ref_call *r, const ref_tensor *big, const ref_tensor *small, bool lines,
                 void (*fn)(const visit *v))
{
    const cn__pool_attrs *a = r->attrs;
    planes x = planes_of(big, lines), y = planes_of(small, lines);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t i = 0; i < y.h; i++)
            for (int64_t j = 0; j < y.w; j++)
                for (int64_t u = 0; u < reach(a, 0, x.h); u++)
                    for (int64_t v = 0; v < reach(a, 1, x.w); v++) {
                        int64_t h, w;
                        if (!covers(a, 0, x.h, y.h, i, u, &h) || !covers(a, 1, x.w, y.w, j, v, &w)) continue;
                        double count = divisor(a, 0, x.h, y.h, i) * divisor(a, 1, x.w, y.w, j);
                        fn(&(visit){ r, (n * x.h + h) * x.w + w, (n * y.h + i) * y.w + j, count });
                    }
}

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
    const ref_tensor *big = &r->in[0];
    if (r->n_out > 1) r->out[1].v[v->to] = (double)(v->from % (big->shape[big->ndim - 1] * big->shape[big->ndim - 2]));
}

static void max_2d(const ref_call *r)
{
    fill(&r->out[0], -INFINITY);
    pool(r, &r->in[0], &r->out[0], false, take_max);
}

static void max_1d(const ref_call *r)
{
    fill(&r->out[0], -INFINITY);
    pool(r, &r->in[0], &r->out[0], true, take_max);
}

static void max_backward(const ref_call *r)
{
    planes x = planes_of(&r->out[0], false), g = planes_of(&r->in[0], false);
    fill(&r->out[0], 0);
    for (int64_t n = 0; n < g.n; n++)
        for (int64_t p = 0; p < g.h * g.w; p++)
            r->out[0].v[n * x.h * x.w + (int64_t)r->in[1].v[n * g.h * g.w + p]] += r->in[0].v[n * g.h * g.w + p];
}

static void add_share(const visit *v) { v->r->out[0].v[v->to] += v->r->in[0].v[v->from] / v->count; }
static void spread_share(const visit *v) { v->r->out[0].v[v->from] += v->r->in[0].v[v->to] / v->count; }

static void average_2d(const ref_call *r)
{
    fill(&r->out[0], 0);
    pool(r, &r->in[0], &r->out[0], false, add_share);
}

static void average_1d(const ref_call *r)
{
    fill(&r->out[0], 0);
    pool(r, &r->in[0], &r->out[0], true, add_share);
}

static void average_backward(const ref_call *r)
{
    fill(&r->out[0], 0);
    pool(r, &r->out[0], &r->in[0], false, spread_share);
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
    planes x = planes_of(big, false), y = planes_of(small, false);
    fill(&r->out[0], 0);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t i = 0; i < y.h; i++)
            for (int64_t j = 0; j < y.w; j++)
                for (int64_t h = 0; h < x.h; h++)
                    for (int64_t w = 0; w < x.w; w++) {
                        double part = tent(h, source_of(i, x.h, y.h, a->align_corners), x.h) *
                                      tent(w, source_of(j, x.w, y.w, a->align_corners), x.w);
                        int64_t from = (n * x.h + h) * x.w + w, to = (n * y.h + i) * y.w + j;
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
    bool lines = ((const cn__nearest_attrs *)r->attrs)->axes == 1;
    planes x = planes_of(&r->in[0], lines), y = planes_of(&r->out[0], lines);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t i = 0; i < y.h; i++)
            for (int64_t j = 0; j < y.w; j++)
                r->out[0].v[(n * y.h + i) * y.w + j] =
                    r->in[0].v[(n * x.h + nearest_of(i, x.h, y.h)) * x.w + nearest_of(j, x.w, y.w)];
}

const ref_entry ref_window[] = {
    { "max_pool1d", max_1d },
    { "max_pool2d", max_2d },
    { "max_pool2d_backward", max_backward },
    { "adaptive_max_pool1d", max_1d },
    { "adaptive_max_pool2d", max_2d },
    { "avg_pool1d", average_1d },
    { "avg_pool2d", average_2d },
    { "avg_pool2d_backward", average_backward },
    { "adaptive_avg_pool1d", average_1d },
    { "adaptive_avg_pool2d", average_2d },
    { "adaptive_avg_pool2d_backward", average_backward },
    { "interpolate_bilinear", bilinear },
    { "interpolate_bilinear_backward", bilinear_backward },
    { "interpolate_nearest", nearest },
    { NULL, NULL },
};

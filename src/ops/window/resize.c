/* interpolate: resizes the axes after (N, C), one axis at a time. Along an axis every element of the result is a weighted
   sum of elements of x: of 1 (nearest), 2 (linear) or 4 (cubic), which are selected by their indices. With antialias
   their number depends on the scale; then it is a product with the matrix of all weights. */
#include <math.h>

#include "ops/window/window.h"

extern const cn_op cn__op_interpolate_bilinear, cn__op_adaptive_avg_pool1d, cn__op_adaptive_avg_pool2d,
    cn__op_adaptive_avg_pool3d;

/* One axis: d of the last a->axes axes of x. */
typedef struct line {
    cn_ctx *ctx;
    cn_dtype dtype; /* of coordinates and weights */
    int axis;       /* counted from the end */
    int64_t in, out;
    double ratio; /* elements of x for an element of the result */
    bool align_corners, cubic;
} line;

static line line_of(cn_ctx *ctx, cn_tensor *x, const cn__interpolate_attrs *a, int d)
{
    line l = { ctx,
               cn__dtype(x) == CN_F64 ? CN_F64 : CN_F32,
               d - (int)a->axes,
               cn_size(x, d - (int)a->axes),
               a->size[d],
               0,
               a->align_corners != 0,
               a->mode == CN_INTERPOLATE_BICUBIC };
    if (l.align_corners) l.ratio = l.out > 1 ? (double)(l.in - 1) / (double)(l.out - 1) : 0;
    else l.ratio = a->scale[d] > 0 ? 1 / a->scale[d] : (double)l.in / (double)l.out;
    if (l.dtype == CN_F32) l.ratio = (float)l.ratio;
    return l;
}

/* Where the centre of each element of the result lies, if the centres of x lie at 0, 1, ... */
static cn_tensor *coordinates(const line *l)
{
    cn_tensor *o = cn_arange(l->ctx, l->dtype, 0, (double)l->out, 1);
    if (l->align_corners) return cn_mul_s(o, l->ratio);
    cn_tensor *at = cn_sub_s(cn_mul_s(cn_add_s(o, 0.5), l->ratio), 0.5);
    return l->cubic ? at : cn_maximum_s(at, 0);
}

/* The elements of x along the axis with these numbers; those beyond an end are the last ones. */
static cn_tensor *pick(const line *l, cn_tensor *x, cn_tensor *number)
{
    return cn_index_select(x, l->axis, cn_cast(cn_clamp(number, 0, (double)(l->in - 1)), CN_I64));
}

/* Weights (out) in a shape that broadcasts along the axis. */
static cn_tensor *along(const line *l, cn_tensor *weight)
{
    cn_dims shape = { .n = -l->axis, .v = { l->out } };
    for (int d = 1; d < shape.n; d++) shape.v[d] = 1;
    return cn_reshape(weight, shape);
}

/* floor(o · ratio), and with `exact` the element that contains the centre; in f32 for every dtype, as in PyTorch. */
static cn_tensor *nearest(line l, cn_tensor *x, bool exact)
{
    l.dtype = CN_F32;
    l.ratio = (float)l.ratio;
    if (l.in == l.out && l.ratio == 1) return x;
    cn_tensor *o = cn_arange(l.ctx, CN_F32, 0, (double)l.out, 1);
    return pick(&l, x, cn_floor(exact ? cn_add_s(coordinates(&l), 0.5) : cn_mul_s(o, l.ratio)));
}

static cn_tensor *linear(const line *l, cn_tensor *x)
{
    if (l->in == l->out) return x;
    cn_tensor *at = coordinates(l), *low = cn_minimum_s(cn_floor(at), (double)(l->in - 1));
    cn_tensor *right = along(l, cn_clamp(cn_sub(at, low), 0, 1)), *left = cn_rsub_s(right, 1);
    return cn_add(cn_mul(left, pick(l, x, low)), cn_mul(right, pick(l, x, cn_add_s(low, 1))));
}

/* Keys' cubic kernel: 1 - (a + 3)x² + (a + 2)x³ up to 1, a(x³ - 5x² + 8x - 4) up to 2. */
static cn_tensor *cubic_near(cn_tensor *x, double a)
{
    return cn_add_s(cn_mul(cn_sub_s(cn_mul_s(x, a + 2), a + 3), cn_square(x)), 1);
}
static cn_tensor *cubic_far(cn_tensor *x, double a)
{
    return cn_mul_s(cn_sub_s(cn_mul(cn_add_s(cn_mul(cn_sub_s(x, 5), x), 8), x), 4), a);
}

void cn__cubic_weights(cn_tensor *t, cn_tensor *weight[4])
{
    const double a = -0.75;
    weight[0] = cubic_far(cn_add_s(t, 1), a);
    weight[1] = cubic_near(t, a);
    weight[2] = cubic_near(cn_rsub_s(t, 1), a);
    weight[3] = cubic_far(cn_rsub_s(t, 2), a);
}

static cn_tensor *cubic(const line *l, cn_tensor *x)
{
    if (l->in == l->out && l->ratio == 1) return x;
    cn_tensor *at = coordinates(l), *low = cn_minimum_s(cn_floor(at), (double)(l->in - 1)), *weight[4], *y = NULL;
    cn__cubic_weights(cn_clamp(cn_sub(at, low), 0, 1), weight);
    for (int k = 0; k < 4; k++) {
        cn_tensor *part = cn_mul(along(l, weight[k]), pick(l, x, cn_add_s(low, k - 1)));
        y = k ? cn_add(y, part) : part;
    }
    return y;
}

/* The weights (out, in): the filter, as wide as an element of the result or of x, with sums of 1. */
static cn_tensor *filter(const line *l)
{
    const double a = -0.5;
    cn_tensor *o = cn_arange(l->ctx, l->dtype, 0, (double)l->out, 1),
              *i = cn_arange(l->ctx, l->dtype, 0, (double)l->in, 1);
    cn_tensor *centre = cn_unsqueeze(cn_mul_s(cn_add_s(o, 0.5), l->ratio), 1);
    cn_tensor *x = cn_mul_s(cn_abs(cn_sub(cn_add_s(i, 0.5), centre)), l->ratio > 1 ? 1 / l->ratio : 1), *w;
    if (l->cubic) {
        cn_tensor *far = cn_masked_fill(cubic_far(x, a), cn_ge_s(x, 2), 0);
        w = cn_where(cn_lt_s(x, 1), cubic_near(x, a), far);
    } else {
        w = cn_relu(cn_rsub_s(x, 1));
    }
    return cn_div(w, cn_sum(w, CN_DIMS(1), true));
}

static cn_tensor *antialiased(const line *l, cn_tensor *x)
{
    if (l->in == l->out && l->ratio == 1) return x;
    return l->axis == -1 ? cn_matmul(x, cn_transpose(filter(l), 0, 1)) : cn_matmul(filter(l), x);
}

static cn_tensor *area(cn_tensor *x, const cn__interpolate_attrs *a)
{
    if (a->axes == 1)
        return cn_apply(&cn__op_adaptive_avg_pool1d, &x, 1, &(cn__pool_attrs){ .axes = 2, .out = { 1, a->size[0] } },
                        NULL);
    const cn__pool_attrs p = { .axes = a->axes, .out = { a->size[0], a->size[1], a->size[2] } };
    return cn_apply(a->axes == 3 ? &cn__op_adaptive_avg_pool3d : &cn__op_adaptive_avg_pool2d, &x, 1, &p, NULL);
}

/* Whether coordinates follow from the sizes alone: then there is a kernel for bilinear. */
static bool by_sizes(cn_tensor *x, const cn__interpolate_attrs *a)
{
    bool is = true;
    for (int d = 0; d < a->axes; d++) {
        const double wanted = (double)cn_size(x, d - (int)a->axes) * a->scale[d];
        is &= a->scale[d] == 0 || a->align_corners || wanted == (double)a->size[d];
    }
    return is;
}

static cn_tensor *resized(cn_ctx *ctx, cn_tensor *x, const cn__interpolate_attrs *a)
{
    if (a->mode == CN_INTERPOLATE_AREA) return area(x, a);
    if (a->mode == CN_INTERPOLATE_BILINEAR && !a->antialias && by_sizes(x, a)) {
        const cn__resize_attrs r = { { a->size[0], a->size[1] }, a->align_corners };
        return cn_apply(&cn__op_interpolate_bilinear, &x, 1, &r, NULL);
    }
    for (int d = 0; d < a->axes && x; d++) {
        const line l = line_of(ctx, x, a, d);
        if (a->mode == CN_INTERPOLATE_NEAREST || a->mode == CN_INTERPOLATE_NEAREST_EXACT)
            x = nearest(l, x, a->mode == CN_INTERPOLATE_NEAREST_EXACT);
        else if (a->antialias) x = antialiased(&l, x);
        else x = l.cubic ? cubic(&l, x) : linear(&l, x);
    }
    return x;
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__interpolate_attrs *a = attrs;
    const cn_dtype t = cn__dtype(in[0]);
    const bool half = (t == CN_F16 || t == CN_BF16) && a->mode != CN_INTERPOLATE_NEAREST &&
                      a->mode != CN_INTERPOLATE_NEAREST_EXACT; /* mixed in f32, rounded once */
    cn_tensor *y = resized(ctx, half ? cn_cast(in[0], CN_F32) : in[0], a);
    return half ? cn_cast(y, t) : y == in[0] ? cn_clone(y) : y;
}

#define RESIZE(...) \
    .attrs = &(const cn__interpolate_attrs) { __VA_ARGS__ }

const cn_op cn__op_interpolate = {
    .call = "interpolate(Tensor input, int[3] size=None, float? scale_factor=None, "
            "nearest|linear|bilinear|bicubic|trilinear|area|nearest_exact mode=nearest, bool align_corners=False, "
            "bool recompute_scale_factor=False, bool antialias=False) -> Tensor",
    .name = "interpolate",
    .doc = "Resizes the axes after (N, C): by copies, by mixtures of neighbours, or by means of areas.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__interpolate_attrs),
    .compose = compose,
    .onnx = "Resize",
    CN_CASES({ CN_IN(CN_S(2, 3, 5)), RESIZE(CN_INTERPOLATE_NEAREST, 1, { 8 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 3, 4, 2)), RESIZE(CN_INTERPOLATE_NEAREST, 3, { 4, 3, 5 }, 0, 0, { 1.5, 0, 2.5 }) },
             { CN_IN(CN_S(2, 2, 5, 4)), RESIZE(CN_INTERPOLATE_NEAREST_EXACT, 2, { 7, 3 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(2, 3, 5)), RESIZE(CN_INTERPOLATE_LINEAR, 1, { 8 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(2, 3, 5)), RESIZE(CN_INTERPOLATE_LINEAR, 1, { 6 }, 0, 0, { 1.3 }) },
             { CN_IN(CN_S(2, 3, 5)), RESIZE(CN_INTERPOLATE_LINEAR, 1, { 9 }, 1, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 4, 5)), RESIZE(CN_INTERPOLATE_BILINEAR, 2, { 6, 7 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 4, 5)), RESIZE(CN_INTERPOLATE_BILINEAR, 2, { 6, 3 }, 0, 0, { 1.6, 0.7 }) },
             { CN_IN(CN_S(1, 2, 6, 7)), RESIZE(CN_INTERPOLATE_BILINEAR, 2, { 3, 9 }, 0, 1, { 0 }) },
             { CN_IN(CN_S(1, 2, 4, 5)), RESIZE(CN_INTERPOLATE_BICUBIC, 2, { 6, 3 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 4, 5)), RESIZE(CN_INTERPOLATE_BICUBIC, 2, { 6, 9 }, 1, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 7, 6)), RESIZE(CN_INTERPOLATE_BICUBIC, 2, { 3, 9 }, 0, 1, { 0 }) },
             { CN_IN(CN_S(1, 2, 3, 4, 2)), RESIZE(CN_INTERPOLATE_TRILINEAR, 3, { 4, 2, 3 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 3, 4, 2)), RESIZE(CN_INTERPOLATE_TRILINEAR, 3, { 5, 4, 1 }, 1, 0, { 0 }) },
             { CN_IN(CN_S(2, 2, 7)), RESIZE(CN_INTERPOLATE_AREA, 1, { 3 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 5, 4)), RESIZE(CN_INTERPOLATE_AREA, 2, { 3, 6 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(1, 2, 5, 4, 3)), RESIZE(CN_INTERPOLATE_AREA, 3, { 3, 2, 2 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(0, 2, 5, 4)), RESIZE(CN_INTERPOLATE_BICUBIC, 2, { 3, 6 }, 0, 0, { 0 }) },
             { CN_IN(CN_S(2, 3, 13, 17)), RESIZE(CN_INTERPOLATE_BICUBIC, 2, { 26, 31 }, 0, 0, { 0 }) }),
};

/* ---- the public function: checks, and the sizes ---- */

static bool check_mode(cn_tensor *x, const cn_interpolate_desc *desc, int axes)
{
    static const int needs[] = { [CN_INTERPOLATE_LINEAR] = 1,
                                 [CN_INTERPOLATE_BILINEAR] = 2,
                                 [CN_INTERPOLATE_BICUBIC] = 2,
                                 [CN_INTERPOLATE_TRILINEAR] = 3,
                                 [CN_INTERPOLATE_NEAREST_EXACT] = 0 };
    const int mode = (int)desc->mode;
    char s[96];
    if (mode < 0 || mode > CN_INTERPOLATE_NEAREST_EXACT)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "interpolate: mode must be one of cn_interpolate_mode, got %d", mode);
    if (axes < 1 || axes > 3 || (needs[mode] && needs[mode] != axes))
        return cn__fail(x->ctx, CN_BAD_SHAPE, "interpolate: input must have %d to %d axes in this mode, got %s",
                        needs[mode] ? needs[mode] + 2 : 3, needs[mode] ? needs[mode] + 2 : 5,
                        cn__shape_text(cn__layout(x), s, sizeof s));
    const bool copies = mode == CN_INTERPOLATE_NEAREST || mode == CN_INTERPOLATE_NEAREST_EXACT;
    if (!copies && !cn_dtype_is_float(cn__dtype(x)))
        return cn__fail(x->ctx, CN_BAD_DTYPE, "interpolate: input must be of a floating type in this mode, got %s",
                        cn_dtype_name(cn__dtype(x)));
    if (desc->align_corners && !needs[mode])
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "interpolate: align_corners must be false unless the mode is linear, bilinear, bicubic or "
                        "trilinear, got true");
    if (desc->antialias && mode != CN_INTERPOLATE_BILINEAR && mode != CN_INTERPOLATE_BICUBIC)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "interpolate: antialias must be false unless the mode is bilinear or bicubic, got true");
    return true;
}

static bool is_set(const cn_interpolate_desc *desc, int axes)
{
    bool size = false, scale = false, size_beyond = false, scale_beyond = false;
    for (int d = 0; d < 3; d++) {
        size |= desc->size[d] != 0, scale |= desc->scale_factor[d] != 0;
        if (d >= axes) size_beyond |= desc->size[d] != 0, scale_beyond |= desc->scale_factor[d] != 0;
    }
    return size != scale && !size_beyond && !scale_beyond && !(size && desc->recompute_scale_factor);
}

static bool set_size(cn_tensor *x, const cn_interpolate_desc *desc, int d, cn__interpolate_attrs *a)
{
    const int64_t in = cn_size(x, d + 2);
    const bool all = desc->scale_factor[1] == 0 && desc->scale_factor[2] == 0;
    double scale = desc->scale_factor[all ? 0 : d];
    a->size[d] = desc->size[d];
    if (desc->size[0] == 0) {
        const double wanted = floor((double)in * scale);
        if (!(scale > 0) || !(wanted >= 1 && wanted <= INT32_MAX))
            return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                            "interpolate: size times scale_factor must be from 1 to %d, got %lld times %g", INT32_MAX,
                            (long long)in, scale);
        a->size[d] = (int64_t)wanted;
        a->scale[d] = desc->recompute_scale_factor ? 0 : scale;
    }
    return (a->size[d] >= 1 && in >= 1) ||
           cn__fail(x->ctx, CN_BAD_SHAPE, "interpolate: sizes must be ≥ 1, got %lld to be resized to %lld",
                    (long long)in, (long long)a->size[d]);
}

cn_tensor *cn_interpolate(cn_tensor *x, const cn_interpolate_desc *desc)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_interpolate_desc none = { 0 };
    const int axes = cn_ndim(x) - 2;
    if (!desc) desc = &none;
    if (!check_mode(x, desc, axes)) return NULL;
    if (!is_set(desc, axes)) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT,
                 "interpolate: either size or scale_factor must be set, for the %d axes after (N, C); "
                 "recompute_scale_factor needs scale_factor",
                 axes);
        return NULL;
    }
    cn__interpolate_attrs a = { .mode = desc->mode, .axes = axes, .align_corners = desc->align_corners };
    a.antialias = desc->antialias;
    for (int d = 0; d < axes; d++)
        if (!set_size(x, desc, d, &a)) return NULL;
    return cn_apply(&cn__op_interpolate, &x, 1, &a, NULL);
}

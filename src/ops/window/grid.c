/* grid_sample: elements of planes or volumes at the points of a grid. affine_grid: the grid of an affine map.

   Elements are read as rows (N·H·W, C), so that all channels of a point share one index. Every point reads 1, 4 or 16
   rows (in volumes 1, 8 or 64) and adds them with weights that depend on its coordinates. Gradients of any order follow. */
#include "ops/window/window.h"

enum { MAX_AXES = 3 };

/* One call. Axes are in the order of coordinates: width, height, depth. */
typedef struct sampler {
    const cn__grid_attrs *a;
    int axes;
    int64_t size[MAX_AXES];
    cn_tensor *rows;         /* (N·D·H·W, C) */
    cn_tensor *first;        /* (N, 1): the row where each sample begins */
    cn_tensor *at[MAX_AXES]; /* (N, points): coordinates; the centres of elements lie at 0, 1, ... */
} sampler;

/* -1 and 1 become the centres of the outermost elements (align_corners), or their outer edges. */
static cn_tensor *unnormalized(const sampler *s, cn_tensor *x, int d)
{
    const double size = (double)s->size[d];
    if (s->a->align_corners) return cn_mul_s(cn_div_s(cn_add_s(x, 1), 2), size - 1);
    return cn_div_s(cn_sub_s(cn_mul_s(cn_add_s(x, 1), size), 1), 2);
}

/* Reflects x at low and low + span until it lies between them. */
static cn_tensor *reflected(cn_tensor *x, double low, double span)
{
    cn_tensor *distance = cn_abs(cn_sub_s(x, low)), *rest = cn_fmod_s(distance, span);
    cn_tensor *odd = cn_eq_s(cn_remainder_s(cn_floor(cn_div_s(distance, span)), 2), 1);
    return cn_add_s(cn_where(odd, cn_rsub_s(rest, span), rest), low);
}

/* Coordinates outside of the plane, by the rule of padding_mode. */
static cn_tensor *padded(const sampler *s, cn_tensor *x, int d)
{
    const double size = (double)s->size[d], last = size - 1;
    if (s->a->padding == CN_GRID_ZEROS) return x;
    if (s->a->padding == CN_GRID_REFLECTION) {
        if (!s->a->align_corners) x = reflected(x, -0.5, size);
        else if (last > 0) x = reflected(x, 0, last);
    }
    return cn_clamp(x, 0, last);
}

/* The rows at whole positions, times a weight; 0 where a position is outside. position and weight (N, points). */
static cn_tensor *tap(const sampler *s, cn_tensor *const *position, cn_tensor *weight)
{
    cn_tensor *row = NULL, *outside = NULL;
    for (int d = s->axes - 1; d >= 0; d--) {
        cn_tensor *inside = cn_logical_and(cn_ge_s(position[d], 0), cn_le_s(position[d], (double)(s->size[d] - 1)));
        cn_tensor *out = cn_logical_not(inside), *whole = cn_cast(cn_masked_fill(position[d], out, 0), CN_I64);
        row = row ? cn_add(cn_mul_s(row, (double)s->size[d]), whole) : whole;
        outside = outside ? cn_logical_or(outside, out) : out;
    }
    cn_tensor *picked = cn_index_select(s->rows, 0, cn_reshape(cn_add(row, s->first), CN_DIMS(-1)));
    cn_tensor *part = cn_mul(picked, cn_reshape(weight, CN_DIMS(-1, 1)));
    return cn_masked_fill(part, cn_reshape(outside, CN_DIMS(-1, 1)), 0);
}

static cn_tensor *sum(cn_tensor *y, cn_tensor *part) { return y ? cn_add(y, part) : part; }

/* The weight does not depend on the coordinates; written so, their gradient is 0 and not absent. */
static cn_tensor *nearest(const sampler *s)
{
    cn_tensor *position[MAX_AXES], *weight = NULL;
    for (int d = 0; d < s->axes; d++) {
        position[d] = cn_round(padded(s, s->at[d], d));
        weight = sum(weight, cn_mul_s(s->at[d], 0));
    }
    return tap(s, position, cn_add_s(weight, 1));
}

static cn_tensor *linear(const sampler *s)
{
    cn_tensor *low[MAX_AXES], *right[MAX_AXES], *y = NULL;
    for (int d = 0; d < s->axes; d++) {
        cn_tensor *at = padded(s, s->at[d], d);
        low[d] = cn_detach(cn_floor(at));
        right[d] = cn_sub(at, low[d]);
    }
    for (int corner = 0; corner < 1 << s->axes; corner++) { /* bit d: the right neighbour along axis d */
        cn_tensor *position[MAX_AXES], *weight = NULL;
        for (int d = 0; d < s->axes; d++) {
            const bool is_right = corner >> d & 1;
            cn_tensor *w = is_right ? right[d] : cn_rsub_s(right[d], 1);
            position[d] = is_right ? cn_add_s(low[d], 1) : low[d];
            weight = weight ? cn_mul(weight, w) : w;
        }
        y = sum(y, tap(s, position, weight));
    }
    return y;
}

/* Padding applies to the positions around a point, not to the point. */
static cn_tensor *cubic(const sampler *s)
{
    cn_tensor *position[MAX_AXES][4], *weights[MAX_AXES][4], *y = NULL;
    for (int d = 0; d < s->axes; d++) {
        cn_tensor *low = cn_detach(cn_floor(s->at[d]));
        cn__cubic_weights(cn_sub(s->at[d], low), weights[d]);
        for (int k = 0; k < 4; k++) position[d][k] = padded(s, cn_add_s(low, k - 1), d);
    }
    for (int k = 0; k < 1 << 2 * s->axes; k++) { /* two bits for each axis */
        cn_tensor *at[MAX_AXES], *weight = NULL;
        for (int d = 0; d < s->axes; d++) {
            const int i = k >> 2 * d & 3;
            at[d] = position[d][i];
            weight = weight ? cn_mul(weight, weights[d][i]) : weights[d][i];
        }
        y = sum(y, tap(s, at, weight));
    }
    return y;
}

static bool check(cn_ctx *ctx, cn_tensor *x, cn_tensor *grid)
{
    const cn_layout *l = cn__layout(x), *g = cn__layout(grid);
    const int axes = l->ndim - 2;
    char s[96], t[96];
    bool fits = (axes == 2 || axes == 3) && g->ndim == l->ndim && g->shape[g->ndim - 1] == axes;
    fits = fits && g->shape[0] == l->shape[0];
    for (int d = 0; d < axes && fits; d++) fits = l->shape[2 + d] > 0;
    if (!fits)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "grid_sample: input and grid must be (N, C, H, W) and (N, h, w, 2), or (N, C, D, H, W) and (N, "
                        "d, h, w, 3), got %s and %s",
                        cn__shape_text(l, s, sizeof s), cn__shape_text(g, t, sizeof t));
    if (cn__dtype(x) != cn__dtype(grid) || !cn_dtype_is_float(cn__dtype(x)))
        return cn__fail(ctx, CN_BAD_DTYPE, "grid_sample: input and grid must be of one floating type, got %s and %s",
                        cn_dtype_name(cn__dtype(x)), cn_dtype_name(cn__dtype(grid)));
    return true;
}

static cn_tensor *sampled(cn_ctx *ctx, cn_tensor *x, cn_tensor *grid, const cn__grid_attrs *a)
{
    const cn_dims shape = cn_shape(x), points = cn_shape(grid);
    sampler s = { .a = a, .axes = shape.n - 2 };
    cn_dims last = { .n = shape.n }, first = { .n = shape.n }, result = points; /* channels last, and first again */
    int64_t elements = 1, count = 1;
    for (int d = 0; d < s.axes; d++) {
        s.size[s.axes - 1 - d] = shape.v[2 + d];
        elements *= shape.v[2 + d], count *= points.v[1 + d];
        last.v[1 + d] = 2 + d, first.v[2 + d] = 1 + d;
    }
    last.v[shape.n - 1] = 1, first.v[1] = shape.n - 1, result.v[shape.n - 1] = shape.v[1];
    s.rows = cn_reshape(cn_permute(x, last), CN_DIMS(shape.v[0] * elements, shape.v[1]));
    s.first = cn_reshape(cn_mul_s(cn_arange(ctx, CN_I64, 0, (double)shape.v[0], 1), (double)elements), CN_DIMS(-1, 1));
    for (int d = 0; d < s.axes; d++)
        s.at[d] = unnormalized(&s, cn_reshape(cn_select(grid, -1, d), CN_DIMS(shape.v[0], count)), d);
    cn_tensor *y = a->mode == CN_GRID_NEAREST ? nearest(&s) : a->mode == CN_GRID_BICUBIC ? cubic(&s) : linear(&s);
    return cn_permute(cn_reshape(y, result), first);
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    if (!check(ctx, in[0], in[1])) return NULL;
    const cn_dtype t = cn__dtype(in[0]);
    if (t == CN_F32 || t == CN_F64) return sampled(ctx, in[0], in[1], attrs);
    return cn_cast(sampled(ctx, cn_cast(in[0], CN_F32), cn_cast(in[1], CN_F32), attrs), t);
}

#define GRID(mode, padding, corners) \
    .attrs = &(const cn__grid_attrs) { CN_GRID_##mode, CN_GRID_##padding, corners }
/* Points that lie outside of the plane too; none is where the gradient jumps. */
#define AT(...) CN_RANGE(-1.37f, 1.41f, __VA_ARGS__)

const cn_op cn__op_grid_sample = {
    .call = "grid_sample(Tensor input, Tensor grid, bilinear|nearest|bicubic mode=bilinear, "
            "zeros|border|reflection padding_mode=zeros, bool align_corners=False) -> Tensor",
    .name = "grid_sample",
    .doc = "Elements of planes or volumes at the points of a grid, where -1 and 1 are the borders of an axis.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__grid_attrs),
    .compose = compose,
    .onnx = "GridSample",
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 5), AT(2, 3, 2, 2)), GRID(BILINEAR, ZEROS, 0) },
             { CN_IN(CN_S(1, 2, 4, 5), AT(1, 3, 2, 2)), GRID(BILINEAR, BORDER, 1) },
             { CN_IN(CN_S(1, 2, 4, 5), AT(1, 3, 2, 2)), GRID(BILINEAR, REFLECTION, 0) },
             { CN_IN(CN_S(1, 2, 4, 3), AT(1, 3, 2, 2)), GRID(BILINEAR, REFLECTION, 1) },
             { CN_IN(CN_S(2, 2, 4, 5), AT(2, 3, 4, 2)), GRID(NEAREST, ZEROS, 0) },
             { CN_IN(CN_S(1, 2, 4, 5), AT(1, 3, 4, 2)), GRID(NEAREST, BORDER, 1) },
             { CN_IN(CN_S(1, 2, 5, 4), AT(1, 2, 2, 2)), GRID(BICUBIC, ZEROS, 0) },
             { CN_IN(CN_S(1, 2, 5, 4), AT(1, 2, 2, 2)), GRID(BICUBIC, BORDER, 1) },
             { CN_IN(CN_S(1, 2, 5, 4), AT(1, 2, 2, 2)), GRID(BICUBIC, REFLECTION, 0) },
             { CN_IN(CN_S(1, 2, 3, 4, 3), AT(1, 2, 1, 2, 3)), GRID(BILINEAR, ZEROS, 0) },
             { CN_IN(CN_S(2, 1, 3, 2, 3), AT(2, 2, 1, 2, 3)), GRID(NEAREST, REFLECTION, 1) },
             { CN_IN(CN_S(1, 1, 2, 3, 2), AT(1, 1, 1, 2, 3)), GRID(BICUBIC, BORDER, 0) },
             { CN_IN(CN_S(0, 2, 3, 4), AT(0, 2, 2, 2)), GRID(BILINEAR, ZEROS, 0) },
             { CN_IN(CN_S(2, 3, 9, 11), AT(2, 13, 8, 2)), GRID(BILINEAR, BORDER, 0) }),
};

cn_tensor *cn_grid_sample(cn_tensor *x, cn_tensor *grid, cn_grid_mode mode, cn_grid_padding padding, bool align_corners)
{
    CN__CALL call = cn__call_tensor(x ? x : grid);
    if (!call.ctx || !cn__of_context(call.ctx, x, __func__, "the input") ||
        !cn__of_context(call.ctx, grid, __func__, "the grid"))
        return NULL;
    const cn__grid_attrs a = { mode, padding, align_corners };
    if (a.mode >= CN_GRID_BILINEAR && a.mode <= CN_GRID_BICUBIC && a.padding >= CN_GRID_ZEROS &&
        a.padding <= CN_GRID_REFLECTION)
        return cn_apply(&cn__op_grid_sample, (cn_tensor *[]){ x, grid }, 2, &a, NULL);
    cn__fail(call.ctx, CN_BAD_ARGUMENT,
             "grid_sample: mode must be one of cn_grid_mode and padding_mode one of cn_grid_padding, got %d and %d",
             (int)mode, (int)padding);
    return NULL;
}

/* ---- affine_grid ---- */

/* Coordinates of the centres of n elements, shaped so that they vary along one axis of (N, ..., axes). */
static cn_tensor *centres(cn_ctx *ctx, cn_dtype t, int64_t n, bool align_corners, int after)
{
    cn_dims shape = { .n = after + 1, .v = { n } };
    for (int d = 1; d < shape.n; d++) shape.v[d] = 1;
    if (n == 1) return cn_zeros(ctx, t, shape);
    cn_tensor *x = cn_reshape(cn_linspace(ctx, t, -1, 1, n), shape);
    return align_corners ? x : cn_mul_s(x, (double)(n - 1) / (double)n);
}

/* Each point is theta · (x, y, 1) or theta · (x, y, z, 1). */
static cn_tensor *compose_affine(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__affine_attrs *a = attrs;
    const int axes = (int)a->axes;
    cn_dims column = { .n = axes + 2 }, shape = { .n = axes + 2 };
    column.v[0] = shape.v[0] = cn_size(in[0], 0);
    for (int d = 0; d < axes; d++) column.v[1 + d] = 1, shape.v[1 + d] = a->size[d];
    column.v[axes + 1] = shape.v[axes + 1] = axes;
    cn_tensor *y = cn_reshape(cn_select(in[0], 2, axes), column);
    for (int d = 0; d < axes; d++) { /* 0: x, which varies along the last axis of points */
        cn_tensor *at = centres(ctx, cn__dtype(in[0]), a->size[axes - 1 - d], a->align_corners != 0, d + 1);
        y = cn_add(y, cn_mul(cn_reshape(cn_select(in[0], 2, d), column), at));
    }
    return cn_expand(y, shape);
}

#define AFFINE(...) \
    .attrs = &(const cn__affine_attrs) { __VA_ARGS__ }

const cn_op cn__op_affine_grid = {
    .call = "affine_grid(Tensor theta, int[] size, bool align_corners=False) -> Tensor",
    .name = "affine_grid",
    .doc = "The grid for grid_sample of affine maps x (N, 2, 3) or (N, 3, 4).",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__affine_attrs),
    .compose = compose_affine,
    .onnx = "AffineGrid",
    CN_CASES({ CN_IN(CN_S(2, 2, 3)), AFFINE(2, { 3, 4 }, 0) }, { CN_IN(CN_S(1, 2, 3)), AFFINE(2, { 1, 5 }, 1) },
             { CN_IN(CN_S(2, 3, 4)), AFFINE(3, { 2, 3, 4 }, 0) }, { CN_IN(CN_S(1, 3, 4)), AFFINE(3, { 3, 1, 2 }, 1) },
             { CN_IN(CN_S(3, 2, 3)), AFFINE(2, { 20, 30 }, 0) }),
};

cn_tensor *cn_affine_grid(cn_tensor *theta, cn_dims size, bool align_corners)
{
    CN__CALL call = cn__call_tensor(theta);
    if (!call.ctx) return NULL;
    const cn_layout *l = cn__layout(theta);
    cn__affine_attrs a = { .axes = size.n - 2, .align_corners = align_corners };
    bool fits = (size.n == 4 || size.n == 5) && l->ndim == 3 && l->shape[0] == size.v[0] && l->shape[1] == a.axes &&
                l->shape[2] == a.axes + 1;
    for (int d = 0; d < size.n && fits; d++) fits = size.v[d] > 0;
    char s[96];
    if (!fits) {
        cn__fail(call.ctx, CN_BAD_SHAPE,
                 "affine_grid: theta must be (N, 2, 3) and size (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W), all "
                 "sizes > 0, got theta %s and %d sizes",
                 cn__shape_text(l, s, sizeof s), size.n);
        return NULL;
    }
    if (!cn_dtype_is_float(cn__dtype(theta))) {
        cn__fail(call.ctx, CN_BAD_DTYPE, "affine_grid: theta must be of a floating type, got %s",
                 cn_dtype_name(cn__dtype(theta)));
        return NULL;
    }
    for (int d = 0; d < a.axes; d++) a.size[d] = size.v[2 + d];
    return cn_apply(&cn__op_affine_grid, &theta, 1, &a, NULL);
}

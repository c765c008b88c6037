/* Rules of resizing, sampling and boxes. */
#include <stdlib.h>

#include "onnx/rules.h"

/* ---- Resize: each axis by itself. An element of the result is a weighted sum of elements of x along the axis ---- */

typedef struct axis_map {
    int64_t in, out;
    double scale; /* of the coordinates */
    double roi_start, roi_end;
} axis_map;

typedef struct resizing {
    const char *mode, *coordinates, *nearest;
    double cubic, outside; /* cubic_coeff_a, extrapolation_value */
    bool exclude_outside, antialias;
} resizing;

/* The coordinate in x of element i of the result, as the file's numbers have it. */
static double coordinate(const resizing *r, const axis_map *m, int64_t i)
{
    const double x = (double)i, in = (double)m->in, length = m->scale * in;
    const char *how = r->coordinates;
    if (!strcmp(how, "align_corners")) return length == 1 ? 0 : x * (in - 1) / (length - 1);
    if (!strcmp(how, "asymmetric")) return x / m->scale;
    if (!strcmp(how, "tf_half_pixel_for_nn")) return (x + 0.5) / m->scale;
    if (!strcmp(how, "tf_crop_and_resize")) {
        const double span = (m->roi_end - m->roi_start) * (in - 1);
        return m->roi_start * (in - 1) + (length == 1 ? span / 2 : x * span / (length - 1));
    }
    if (!strcmp(how, "pytorch_half_pixel")) return m->out == 1 ? 0 : (x + 0.5) / m->scale - 0.5;
    const double centre = (x + 0.5) / m->scale - 0.5;
    if (strcmp(how, "half_pixel_symmetric")) return centre;
    return in / 2 * (1 - (double)m->out / length) + centre;
}

/* The same within what whole numbers can count: a region may be anything, NaN too. */
static double source(const resizing *r, const axis_map *m, int64_t i)
{
    const double x = coordinate(r, m, i);
    return x > -1e12 ? fmin(x, 1e12) : -1e12;
}

static int64_t nearest(const char *how, double x)
{
    const double down = floor(x);
    if (!strcmp(how, "floor")) return (int64_t)down;
    if (!strcmp(how, "ceil")) return (int64_t)ceil(x);
    const double part = x - down;
    const bool up = !strcmp(how, "round_prefer_ceil") ? part >= 0.5 : part > 0.5;
    return (int64_t)down + up;
}

static double cubic(double a, double x)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Row i of the matrix (out, in): what each element of x counts for element i. */
static void weigh(const resizing *r, const axis_map *m, int64_t i, double *row)
{
    const double x = source(r, m, i), stretch = r->antialias && m->scale < 1 ? m->scale : 1;
    const bool is_cubic = *r->mode == 'c';
    const double reach = (is_cubic ? 2 : 1) / stretch;
    double sum = 0;
    for (int64_t k = (int64_t)floor(x - reach); k <= (int64_t)ceil(x + reach); k++) {
        const double d = fabs(x - (double)k) * stretch;
        const double w = is_cubic ? cubic(r->cubic, d) : d < 1 ? 1 - d : 0;
        const bool inside = k >= 0 && k < m->in;
        if (w == 0 || (!inside && r->exclude_outside)) continue;
        sum += w;
        row[k < 0 ? 0 : k >= m->in ? m->in - 1 : k] += w;
    }
    for (int64_t k = 0; k < m->in && sum != 0 && (r->exclude_outside || r->antialias); k++) row[k] /= sum;
}

static bool beyond(const resizing *r, const axis_map *m, int64_t i)
{
    const double x = source(r, m, i);
    return !strcmp(r->coordinates, "tf_crop_and_resize") && (x < 0 || x > (double)(m->in - 1));
}

static cn_tensor *chosen(onnx_call *c, cn_tensor *x, int axis, const resizing *r, const axis_map *m)
{
    int64_t *index = cn__onnx_run_new(c->run, (size_t)m->out, sizeof *index);
    if (!index) return NULL;
    for (int64_t i = 0; i < m->out; i++) {
        const int64_t k = nearest(r->nearest, source(r, m, i));
        index[i] = k < 0 ? 0 : k >= m->in ? m->in - 1 : k;
    }
    return cn_index_select(x, axis, cn_from(c->ctx, CN_I64, CN_DIMS(m->out), index));
}

static cn_tensor *mixed(onnx_call *c, cn_tensor *x, int axis, const resizing *r, const axis_map *m)
{
    if (m->out > INT32_MAX / (m->in ? m->in : 1)) return FAIL(CN_UNSUPPORTED, "an axis is too large"), NULL;
    double *matrix = cn__onnx_run_new(c->run, (size_t)(m->out * m->in), sizeof *matrix);
    if (!matrix) return NULL;
    for (int64_t i = 0; i < m->out; i++) weigh(r, m, i, matrix + i * m->in);
    cn_tensor *w = cn__onnx_real(c, cn_type(x) == CN_F64 ? CN_F64 : CN_F32, CN_DIMS(m->out, m->in), matrix);
    cn_tensor *wide = cn__onnx_wide(x);
    const int last = cn_ndim(x) - 1;
    if (axis == last - 1) return cn_matmul(w, wide);
    cn_tensor *turned = axis == last ? wide : cn_transpose(wide, axis, last);
    cn_tensor *y = cn_matmul(turned, cn_transpose(w, 0, 1));
    return axis == last ? y : cn_transpose(y, axis, last);
}

/* Elements of the result that come from beyond x are a number. */
static cn_tensor *outside(onnx_call *c, cn_tensor *y, int axis, const resizing *r, const axis_map *m)
{
    bool *inside = cn__onnx_run_new(c->run, (size_t)m->out, sizeof *inside), all = true;
    if (!inside || !y) return NULL;
    for (int64_t i = 0; i < m->out; i++) all &= inside[i] = !beyond(r, m, i);
    if (all) return y;
    cn_dims shape = { .n = cn_ndim(y) };
    for (int d = 0; d < shape.n; d++) shape.v[d] = d == axis ? m->out : 1;
    return cn_where(cn_from(c->ctx, CN_BOOL, shape, inside), y, cn_full_like(y, r->outside));
}

static cn_tensor *resized(onnx_call *c, cn_tensor *x, int axis, const resizing *r, const axis_map *m)
{
    if (m->in == m->out && m->scale == 1 && strcmp(r->coordinates, "tf_crop_and_resize")) return x;
    if (m->in == 0 && m->out) return FAIL(CN_BAD_SHAPE, "an axis without elements cannot be resized"), NULL;
    return *r->mode == 'n' ? chosen(c, x, axis, r, m) : mixed(c, x, axis, r, m);
}

/* Planes by half pixels, as cn_interpolate computes them without a matrix. */
static bool is_bilinear(const resizing *r, cn_tensor *x, const axis_map *m)
{
    if (*r->mode != 'l' || r->antialias || r->exclude_outside || cn_ndim(x) != 4) return false;
    for (int d = 0; d < 2; d++)
        if (m[d].in != m[d].out) return false;
    for (int d = 2; d < 4; d++)
        if (m[d].scale != (double)m[d].out / (double)m[d].in || m[d].out < 2) return false;
    return !strcmp(r->coordinates, "half_pixel") || !strcmp(r->coordinates, "pytorch_half_pixel") ||
           !strcmp(r->coordinates, "align_corners");
}

static cn_tensor *resize_all(onnx_call *c, cn_tensor *x, const resizing *r, const axis_map *m)
{
    const int n = cn_ndim(x);
    if (is_bilinear(r, x, m)) return cn_interpolate_bilinear(x, m[2].out, m[3].out, *r->coordinates == 'a');
    cn_tensor *y = x;
    const bool picks = *r->mode == 'n'; /* the last axis first, while there are fewer lines of it */
    for (int d = 0; d < n && y; d++) y = resized(c, y, picks ? n - 1 - d : d, r, &m[picks ? n - 1 - d : d]);
    for (int d = 0; d < n && y; d++) y = outside(c, y, d, r, &m[d]);
    return cn_cast(y, cn_type(x));
}

/* Sizes and scales of the axes; with a policy one scale for all. */
static bool axis_sizes(onnx_call *c, cn_tensor *x, const onnx_ints *axes, const onnx_floats *scales,
                       const onnx_ints *sizes, axis_map *m)
{
    const int n = axes->n >= 0 ? axes->n : cn_ndim(x);
    const char *policy = TEXT("keep_aspect_ratio_policy", "stretch");
    double same = 0;
    for (int i = 0; i < cn_ndim(x); i++)
        m[i] = (axis_map){ .in = cn_size(x, i), .out = cn_size(x, i), .scale = 1, .roi_end = 1 };
    if ((scales->n > 0 ? scales->n : sizes->n) != n)
        return FAIL(CN_BAD_ARGUMENT, "it needs %d scales or sizes, got %d and %d", n, scales->n, sizes->n);
    for (int i = 0; i < n; i++) {
        const int axis = cn__onnx_axis(c, axes->n >= 0 ? axes->v[i] : i, cn_ndim(x));
        if (axis < 0) return false;
        const double scale = scales->n > 0 ? scales->v[i] : (double)sizes->v[i] / (double)m[axis].in;
        if (!(scale >= 0 && scale * (double)m[axis].in < 1e9)) return FAIL(CN_BAD_ARGUMENT, "a scale of %g", scale);
        m[axis].scale = scale;
        m[axis].out = scales->n > 0 ? (int64_t)floor(scale * (double)m[axis].in) : sizes->v[i];
        const bool larger = !strcmp(policy, "not_smaller");
        if (i == 0 || (larger ? scale > same : scale < same)) same = scale;
    }
    if (scales->n > 0 || !strcmp(policy, "stretch")) return true;
    for (int i = 0; i < n; i++) {
        axis_map *a = &m[cn__onnx_axis(c, axes->n >= 0 ? axes->v[i] : i, cn_ndim(x))];
        a->scale = same;
        a->out = (int64_t)floor(same * (double)a->in + 0.5);
    }
    return true;
}

bool cn__onnx_resize(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const bool old = c->version < 11;
    onnx_floats scales, roi = { .n = -1 };
    onnx_ints sizes = { .n = -1 }, axes;
    axis_map m[CN_MAX_DIMS];
    if (!x || !cn__onnx_floats(c, old ? 1 : 2, &scales) || (!old && !cn__onnx_floats(c, 1, &roi)) ||
        (!old && !cn__onnx_ints(c, 3, &sizes)) || !cn__onnx_attr_ints(c, "axes", &axes) ||
        !axis_sizes(c, x, &axes, &scales, &sizes, m))
        return false;
    const resizing r = { TEXT("mode", "nearest"),
                         TEXT("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
                         TEXT("nearest_mode", old ? "floor" : "round_prefer_floor"),
                         FLOAT("cubic_coeff_a", -0.75),
                         FLOAT("extrapolation_value", 0),
                         INT("exclude_outside", 0) != 0,
                         INT("antialias", 0) != 0 };
    const int n = axes.n >= 0 ? axes.n : cn_ndim(x);
    for (int i = 0; i < n && roi.n == 2 * n; i++) {
        axis_map *a = &m[cn__onnx_axis(c, axes.n >= 0 ? axes.v[i] : i, cn_ndim(x))];
        a->roi_start = roi.v[i];
        a->roi_end = roi.v[i + n];
    }
    return GIVE(resize_all(c, x, &r, m));
}

bool cn__onnx_upsample(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_floats scales = { .n = 0 };
    const onnx_attr *a = cn__onnx_attr(c, "scales");
    axis_map m[CN_MAX_DIMS];
    if (!x || (c->version >= 9 && !cn__onnx_floats(c, 1, &scales))) return false;
    for (; c->version < 9 && a && scales.n < a->n_floats && scales.n < CN_MAX_DIMS; scales.n++)
        scales.v[scales.n] = (double)a->floats[scales.n];
    if (!axis_sizes(c, x, &(onnx_ints){ .n = -1 }, &scales, &(onnx_ints){ .n = -1 }, m)) return false;
    const resizing r = { .mode = TEXT("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor" };
    return GIVE(resize_all(c, x, &r, m));
}

/* ---- sampling ---- */

bool cn__onnx_grid_sample(onnx_call *c)
{
    const char *mode = TEXT("mode", c->version < 20 ? "bilinear" : "linear"), *padding = TEXT("padding_mode", "zeros");
    const cn_grid_mode how = strstr(mode, "cubic") ? CN_GRID_BICUBIC
                             : *mode == 'n'        ? CN_GRID_NEAREST
                                                   : CN_GRID_BILINEAR;
    const cn_grid_padding border = *padding == 'b'   ? CN_GRID_BORDER
                                   : *padding == 'r' ? CN_GRID_REFLECTION
                                                     : CN_GRID_ZEROS;
    return GIVE(cn_grid_sample(IN(0), IN(1), how, border, INT("align_corners", 0) != 0));
}

bool cn__onnx_affine_grid(onnx_call *c)
{
    onnx_ints sizes;
    cn_dims shape;
    if (!cn__onnx_ints(c, 1, &sizes) || !cn__onnx_dims(c, &sizes, &shape)) return false;
    return GIVE(cn_affine_grid(IN(0), shape, INT("align_corners", 0) != 0));
}

/* ---- boxes: their numbers are read, so these evaluate their inputs ---- */

static double *numbers(onnx_call *c, int i)
{
    cn_tensor *t = IN(i);
    double *v = t ? cn__onnx_run_new(c->run, (size_t)cn_numel(t), sizeof *v) : NULL;
    return v && cn_read_f64(t, v, cn_numel(t)) ? v : NULL;
}

/* One axis of a region: where its samples lie, and how much the two elements around each count. */
typedef struct samples {
    int64_t bins, grid, *low, *high;
    double *part; /* of `high`; `low` has the rest */
    bool *inside;
} samples;

static bool place_samples(onnx_call *c, samples *s, double start, double length, int64_t bins, int64_t ratio,
                          int64_t size)
{
    const double bin = length / (double)bins, grid = ratio > 0 ? (double)ratio : ceil(bin);
    if (!(grid < 1e6)) return FAIL(CN_BAD_ARGUMENT, "a region is too large");
    *s = (samples){ .bins = bins, .grid = grid > 0 ? (int64_t)grid : 0 };
    const size_t n = (size_t)(bins * s->grid);
    if (!(s->low = cn__onnx_run_new(c->run, n, sizeof *s->low)) ||
        !(s->high = cn__onnx_run_new(c->run, n, sizeof *s->high)) ||
        !(s->part = cn__onnx_run_new(c->run, n, sizeof *s->part)) ||
        !(s->inside = cn__onnx_run_new(c->run, n, sizeof *s->inside)))
        return false;
    for (size_t i = 0; i < n; i++) {
        const int64_t in_bin = (int64_t)i % s->grid;
        double at = start + (double)((int64_t)i / s->grid) * bin + ((double)in_bin + 0.5) * bin / (double)s->grid;
        s->inside[i] = at >= -1 && at <= (double)size;
        if (!s->inside[i]) continue;
        if (at < 0) at = 0;
        s->low[i] = (int64_t)at;
        if (s->low[i] >= size - 1) at = (double)(s->low[i] = size - 1);
        s->high[i] = s->low[i] + (s->low[i] < size - 1);
        s->part[i] = at - (double)s->low[i];
    }
    return true;
}

/* The four corners of every sample of a region: places in the plane, and weights; (bins y, bins x, samples, 4). */
static cn_tensor *region(onnx_call *c, cn_tensor *plane, const samples *y, const samples *x, int64_t width,
                         bool average)
{
    const int64_t each = y->grid * x->grid * 4, all = y->bins * x->bins * each;
    int64_t *place = cn__onnx_run_new(c->run, (size_t)all, sizeof *place);
    double *weight = cn__onnx_run_new(c->run, (size_t)all, sizeof *weight);
    if (!place || !weight) return NULL;
    for (int64_t i = 0, at = 0; i < y->bins * x->bins; i++)
        for (int64_t k = 0; k < y->grid * x->grid; k++, at += 4) {
            const int64_t j = i / x->bins * y->grid + k / x->grid, l = i % x->bins * x->grid + k % x->grid;
            for (int corner = 0; corner < 4 && y->inside[j] && x->inside[l]; corner++) {
                place[at + corner] =
                    (corner & 2 ? y->high[j] : y->low[j]) * width + (corner & 1 ? x->high[l] : x->low[l]);
                weight[at + corner] =
                    (corner & 2 ? y->part[j] : 1 - y->part[j]) * (corner & 1 ? x->part[l] : 1 - x->part[l]);
            }
        }
    cn_tensor *read = cn_index_select(plane, 1, cn_from(c->ctx, CN_I64, CN_DIMS(all), place));
    cn_tensor *w = cn__onnx_real(c, cn_type(plane), CN_DIMS(all), weight);
    read = cn_reshape(cn_mul(read, w), CN_DIMS(cn_size(plane, 0), y->bins, x->bins, each));
    const double count = each > 4 ? (double)(each / 4) : 1;
    return average ? cn_div_s(cn_sum(read, CN_DIMS(-1), false), count) : cn_max(read, CN_DIMS(-1), false);
}

bool cn__onnx_roi_align(onnx_call *c)
{
    cn_tensor *x = IN(0), *rois = IN(1);
    const double *box = numbers(c, 1), *batch = box ? numbers(c, 2) : NULL;
    if (!x || !batch) return false;
    if (cn_ndim(x) != 4 || cn_ndim(rois) != 2 || cn_size(rois, 1) != 4 || cn_numel(IN(2)) != cn_size(rois, 0))
        return FAIL(CN_BAD_SHAPE, "it needs planes (N, C, H, W), regions (n, 4) and n batch indices");
    const int64_t n = cn_size(rois, 0), h = INT("output_height", 1), w = INT("output_width", 1),
                  ratio = INT("sampling_ratio", 0);
    const double scale = FLOAT("spatial_scale", 1);
    const bool half = c->version >= 16 && !strcmp(TEXT("coordinate_transformation_mode", "half_pixel"), "half_pixel");
    if (h < 1 || w < 1 || h > 4096 || w > 4096 || ratio > 4096)
        return FAIL(CN_BAD_ARGUMENT, "output_height, output_width or sampling_ratio is out of range");
    if (n == 0) return GIVE(cn_zeros(c->ctx, cn_type(x), CN_DIMS(0, cn_size(x, 1), h, w)));
    cn_tensor **out = cn__onnx_run_new(c->run, (size_t)n, sizeof *out);
    for (int64_t i = 0; i < n && out; i++) {
        if (!cn__onnx_work(c->run, 1)) return false;
        double start[2], length[2];
        samples s[2];
        if (!(batch[i] >= 0 && batch[i] < (double)cn_size(x, 0)))
            return FAIL(CN_BAD_INDEX, "a batch index is out of range");
        for (int d = 0; d < 2; d++) {
            start[d] = box[i * 4 + d] * scale - (half ? 0.5 : 0);
            length[d] = box[i * 4 + 2 + d] * scale - (half ? 0.5 : 0) - start[d];
            if (!half && length[d] < 1) length[d] = 1;
            if (!place_samples(c, &s[d], start[d], length[d], d ? h : w, ratio, cn_size(x, d ? 2 : 3))) return false;
        }
        cn_tensor *plane = cn_reshape(cn_select(x, 0, (int64_t)batch[i]), CN_DIMS(cn_size(x, 1), -1));
        out[i] = region(c, plane, &s[1], &s[0], cn_size(x, 3), strcmp(TEXT("mode", "avg"), "max") != 0);
        if (!out[i]) return false;
    }
    return out && GIVE(cn_stack(out, (int)n, 0));
}

typedef struct scored {
    double score;
    int64_t box;
} scored;

static int best_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

/* Whether two boxes share more than a part of their area. A box is two corners (y, x), or a centre and a size. */
static bool overlap(const double *a, const double *b, bool centre, double part)
{
    double low[2][2], high[2][2], area[2] = { 1, 1 }, shared = 1;
    const double *box[] = { a, b };
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < 2; d++) {
            const double p = box[i][d], q = box[i][d + 2];
            low[i][d] = centre ? p - q / 2 : fmin(p, q);
            high[i][d] = centre ? p + q / 2 : fmax(p, q);
            area[i] *= high[i][d] - low[i][d];
        }
    for (int d = 0; d < 2; d++) {
        const double side = fmin(high[0][d], high[1][d]) - fmax(low[0][d], low[1][d]);
        if (side <= 0) return false;
        shared *= side;
    }
    const double whole = area[0] + area[1] - shared;
    return area[0] > 0 && area[1] > 0 && whole > 0 && shared / whole > part;
}

/* Chooses boxes of one class: the best, then each that overlaps none before it. */
static int64_t suppress(const double *boxes, const double *scores, int64_t n, scored *order, bool centre, int64_t most,
                        double part, double least, int64_t *kept)
{
    int64_t candidates = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (scores[i] > least) order[candidates++] = (scored){ scores[i], i };
    qsort(order, (size_t)candidates, sizeof *order, best_first);
    for (int64_t i = 0; i < candidates && count < most; i++) {
        bool free = true;
        for (int64_t k = 0; k < count && free; k++)
            free = !overlap(boxes + order[i].box * 4, boxes + kept[k] * 4, centre, part);
        if (free) kept[count++] = order[i].box;
    }
    return count;
}

bool cn__onnx_non_max_suppression(onnx_call *c)
{
    cn_tensor *boxes = IN(0), *scores = IN(1);
    onnx_ints most;
    onnx_floats part, least;
    const double *box = numbers(c, 0), *score = box ? numbers(c, 1) : NULL;
    if (!score || !cn__onnx_ints(c, 2, &most) || !cn__onnx_floats(c, 3, &part) || !cn__onnx_floats(c, 4, &least))
        return false;
    if (cn_ndim(boxes) != 3 || cn_ndim(scores) != 3 || cn_size(boxes, 2) != 4 ||
        cn_size(boxes, 0) != cn_size(scores, 0) || cn_size(boxes, 1) != cn_size(scores, 2))
        return FAIL(CN_BAD_SHAPE, "it needs boxes (N, n, 4) and scores (N, classes, n)");
    const int64_t batches = cn_size(scores, 0), classes = cn_size(scores, 1), n = cn_size(boxes, 1);
    scored *order = cn__onnx_run_new(c->run, (size_t)n, sizeof *order);
    int64_t *kept = cn__onnx_run_new(c->run, (size_t)n, sizeof *kept), count = 0;
    int64_t *out = cn__onnx_run_new(c->run, (size_t)cn_numel(scores) * 3, sizeof *out);
    if (!order || !kept || !out) return false;
    for (int64_t i = 0; i < batches * classes; i++) {
        const int64_t found = suppress(box + i / classes * n * 4, score + i * n, n, order,
                                       INT("center_point_box", 0) != 0, most.n > 0 ? most.v[0] : 0,
                                       part.n > 0 ? part.v[0] : 0, least.n > 0 ? least.v[0] : -INFINITY, kept);
        for (int64_t k = 0; k < found; k++, count++) {
            out[count * 3] = i / classes;
            out[count * 3 + 1] = i % classes;
            out[count * 3 + 2] = kept[k];
        }
    }
    return GIVE(cn_from(c->ctx, CN_I64, CN_DIMS(count, 3), out));
}

/* Steps that augment images: colours, blur, affine maps, perspective, RandAugment; as torchvision's functions of
   tensors. */
#include <math.h>

#include "data/steps.h"

typedef cn__transform_step step;
typedef cn__job job;

/* ---- run */

static bool run_grey(const step *s, job *j)
{
    const int64_t area = j->x.height * j->x.width;
    cn__image out = j->x;
    if (j->x.channels != 1 && j->x.channels != 3)
        return cn__fetch_fail(j->f, CN_BAD_SHAPE, "grayscale: an image must have 1 or 3 channels, got %lld",
                              (long long)j->x.channels);
    if (!cn_draw_chance(j->random, s->v[0])) return true;
    cn__image_grey(&j->x);
    const int64_t channels = s->channels ? s->channels : j->x.channels;
    if (channels > j->x.channels && !cn__image_new(&j->f->arena, channels, j->x.height, j->x.width, &out))
        return cn__fetch_no_memory(j->f);
    out.channels = channels;
    for (int64_t c = out.data == j->x.data; c < channels; c++)
        memcpy(out.data + c * area, j->x.data, (size_t)area * sizeof *out.data);
    j->x = out;
    return true;
}

static bool run_invert(const step *s, job *j)
{
    if (cn_draw_chance(j->random, s->v[0])) cn__image_invert(&j->x, s->v[1]);
    return true;
}

static bool run_posterize(const step *s, job *j)
{
    if (cn_draw_chance(j->random, s->v[0])) cn__image_posterize(&j->x, (int)s->extra);
    return true;
}

static bool run_autocontrast(const step *s, job *j)
{
    if (cn_draw_chance(j->random, s->v[0])) cn__image_autocontrast(&j->x);
    return true;
}

static bool run_equalize(const step *s, job *j)
{
    if (cn_draw_chance(j->random, s->v[0])) cn__image_equalize(&j->x);
    return true;
}

static bool run_sharpness(const step *s, job *j)
{
    if (!cn_draw_chance(j->random, s->v[0])) return true;
    return cn__image_sharpness(&j->f->arena, &j->x, s->v[1]) || cn__fetch_no_memory(j->f);
}

static bool run_blur(const step *s, job *j)
{
    const int64_t h = (int64_t)s->v[2], w = (int64_t)s->v[3];
    if (h / 2 >= j->x.height || w / 2 >= j->x.width)
        return cn__fetch_fail(j->f, CN_BAD_SHAPE,
                              "gaussian_blur: a window of %lld by %lld for an image of %lld by %lld", (long long)h,
                              (long long)w, (long long)j->x.height, (long long)j->x.width);
    const double sigma = cn_draw_uniform(j->random, s->v[0], s->v[1]);
    return cn__image_blur(&j->f->arena, &j->x, h, w, sigma) || cn__fetch_no_memory(j->f);
}

static bool warped(job *j, const double *map, bool nearest, double fill)
{
    cn__image out;
    if (!cn__image_new(&j->f->arena, j->x.channels, j->x.height, j->x.width, &out)) return cn__fetch_no_memory(j->f);
    cn__image_warp(&j->x, map, nearest, fill, &out);
    j->x = out;
    return true;
}

/* About the middle of the image. */
static bool moved(job *j, cn__affine a, bool nearest, double fill)
{
    double map[8];
    cn__affine_map(&a, (double)j->x.width / 2, (double)j->x.height / 2, map);
    return warped(j, map, nearest, fill);
}

static bool run_rotation(const step *s, job *j)
{
    const double degrees = cn_draw_uniform(j->random, s->v[0], s->v[1]);
    return moved(j, (cn__affine){ .degrees = -degrees, .scale = 1 }, false, 0);
}

static bool run_affine(const step *s, job *j)
{
    const cn_affine_desc *d = &s->affine;
    const double across = d->translate[0] * (double)j->x.width, down = d->translate[1] * (double)j->x.height;
    cn__affine a = { .degrees = cn_draw_uniform(j->random, -d->degrees, d->degrees) };
    a.x = nearbyint(cn_draw_uniform(j->random, -across, across));
    a.y = nearbyint(cn_draw_uniform(j->random, -down, down));
    a.scale = cn_draw_uniform(j->random, d->scale[0], d->scale[1]);
    a.shear_x = cn_draw_uniform(j->random, d->shear[0], d->shear[1]);
    a.shear_y = cn_draw_uniform(j->random, d->shear[2], d->shear[3]);
    return moved(j, a, d->nearest, d->fill);
}

static bool run_perspective(const step *s, job *j)
{
    const int64_t w = j->x.width, h = j->x.height;
    const int64_t across = (int64_t)(s->v[1] * (double)(w / 2)), down = (int64_t)(s->v[1] * (double)(h / 2));
    const double right = (double)(w - 1), bottom = (double)(h - 1);
    const double from[8] = { 0, 0, right, 0, right, bottom, 0, bottom };
    double to[8], map[8];
    if (!cn_draw_chance(j->random, s->v[0])) return true;
    for (int i = 0; i < 4; i++) {
        const double x = (double)cn_draw_below(j->random, across + 1), y = (double)cn_draw_below(j->random, down + 1);
        to[2 * i] = from[2 * i] > 0 ? right - x : x;
        to[2 * i + 1] = from[2 * i + 1] > 0 ? bottom - y : y;
    }
    if (!cn__perspective_map(from, to, map)) return true; /* corners on one line */
    return warped(j, map, false, s->v[2]);
}

/* ---- RandAugment: the operations and strengths of torchvision, with 31 magnitudes */

enum { MAGNITUDES = 31 };

static bool sheared(job *j, double x, double y) /* about the upper left corner */
{
    double map[8];
    const cn__affine a = { .scale = 1, .shear_x = x, .shear_y = y };
    cn__affine_map(&a, 0, 0, map);
    return warped(j, map, true, 0);
}

static bool augment(job *j, int64_t op, double share)
{
    static const bool is_signed[14] = { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const double sign = is_signed[op] && cn_draw_below(j->random, 2) ? -1 : 1, degree = 180 / 3.14159265358979323846;
    const double lean = atan(sign * 0.3 * share) * degree, factor = 1 + sign * 0.9 * share;
    const double far = 150.0 / 331 * share;
    switch (op) {
    case 1: return sheared(j, lean, 0);
    case 2: return sheared(j, 0, lean);
    case 3: return moved(j, (cn__affine){ .scale = 1, .x = sign * trunc(far * (double)j->x.width) }, true, 0);
    case 4: return moved(j, (cn__affine){ .scale = 1, .y = sign * trunc(far * (double)j->x.height) }, true, 0);
    case 5: return moved(j, (cn__affine){ .scale = 1, .degrees = -sign * 30 * share }, true, 0);
    case 6: cn__image_brightness(&j->x, factor); break;
    case 7: cn__image_saturation(&j->x, factor); break;
    case 8: cn__image_contrast(&j->x, factor); break;
    case 9: return cn__image_sharpness(&j->f->arena, &j->x, factor) || cn__fetch_no_memory(j->f);
    case 10: cn__image_posterize(&j->x, 8 - (int)nearbyint(4 * share)); break;
    case 11: cn__image_invert(&j->x, 1 - share); break;
    case 12: cn__image_autocontrast(&j->x); break;
    case 13: cn__image_equalize(&j->x); break;
    default: break; /* 0: nothing */
    }
    return true;
}

static bool run_rand_augment(const step *s, job *j)
{
    for (int64_t i = 0; i < s->extra; i++)
        if (!augment(j, cn_draw_below(j->random, 14), s->v[0] / (MAGNITUDES - 1))) return false;
    return true;
}

/* ---- add */

bool cn_transform_grayscale(cn_transform *t, int channels)
{
    if (channels != 1 && channels != 3)
        return cn__transform_refuse(t, "transform_grayscale: channels must be 1 or 3, got %d", channels);
    return cn__transform_add(t, "transform_grayscale", &(step){ .run = run_grey, .channels = channels, .v = { 1 } });
}

bool cn_transform_random_grayscale(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_grayscale", (step){ .run = run_grey, .v = { p } });
}

bool cn_transform_random_invert(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_invert",
                                         (step){ .run = run_invert, .v = { p, -(double)INFINITY } });
}

bool cn_transform_random_solarize(cn_transform *t, double threshold, double p)
{
    if (!isfinite(threshold))
        return cn__transform_refuse(t, "transform_random_solarize: threshold must be finite, got %g", threshold);
    return cn__transform_add_with_chance(t, "transform_random_solarize",
                                         (step){ .run = run_invert, .v = { p, threshold } });
}

bool cn_transform_random_posterize(cn_transform *t, int bits, double p)
{
    if (bits < 1 || bits > 8)
        return cn__transform_refuse(t, "transform_random_posterize: bits must be 1 to 8, got %d", bits);
    return cn__transform_add_with_chance(t, "transform_random_posterize",
                                         (step){ .run = run_posterize, .extra = bits, .v = { p } });
}

bool cn_transform_random_autocontrast(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_autocontrast",
                                         (step){ .run = run_autocontrast, .v = { p } });
}

bool cn_transform_random_equalize(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_equalize", (step){ .run = run_equalize, .v = { p } });
}

bool cn_transform_random_sharpness(cn_transform *t, double factor, double p)
{
    if (!(factor >= 0 && isfinite(factor)))
        return cn__transform_refuse(t, "transform_random_sharpness: factor must be ≥ 0, got %g", factor);
    return cn__transform_add_with_chance(t, "transform_random_sharpness",
                                         (step){ .run = run_sharpness, .v = { p, factor } });
}

static bool is_window(int64_t size) { return size >= 1 && size <= 1 << 15 && size % 2 == 1; }

bool cn_transform_gaussian_blur(cn_transform *t, int64_t kernel_height, int64_t kernel_width, double low, double high)
{
    if (!is_window(kernel_height) || !is_window(kernel_width) || !(low > 0 && low <= high && isfinite(high)))
        return cn__transform_refuse(t,
                                    "transform_gaussian_blur: the window must have odd sides and 0 < low <= high, got "
                                    "%lld by %lld, %g and %g",
                                    (long long)kernel_height, (long long)kernel_width, low, high);
    return cn__transform_add(
        t, "transform_gaussian_blur",
        &(step){ .run = run_blur, .v = { low, high, (double)kernel_height, (double)kernel_width } });
}

bool cn_transform_random_rotation(cn_transform *t, double from, double to)
{
    if (!isfinite(from) || !isfinite(to) || from > to)
        return cn__transform_refuse(
            t, "transform_random_rotation: the angles must be finite and from <= to, got %g and %g", from, to);
    return cn__transform_add(t, "transform_random_rotation", &(step){ .run = run_rotation, .v = { from, to } });
}

static bool is_range(const double *v) { return isfinite(v[0]) && isfinite(v[1]) && v[0] <= v[1]; }

bool cn_transform_random_affine(cn_transform *t, const cn_affine_desc *desc)
{
    cn_affine_desc d = desc ? *desc : (cn_affine_desc){ 0 };
    for (int i = 0; i < 2; i++)
        if (d.scale[i] == 0) d.scale[i] = 1;
    const bool shifts = d.translate[0] >= 0 && d.translate[0] <= 1 && d.translate[1] >= 0 && d.translate[1] <= 1;
    if (!(d.degrees >= 0 && isfinite(d.degrees)) || !shifts || !is_range(d.scale) || d.scale[0] <= 0)
        return cn__transform_refuse(t,
                                    "transform_random_affine: degrees must be ≥ 0, translate 0 to 1 and scale a range "
                                    "above 0; got %g, %g and %g, %g to %g",
                                    d.degrees, d.translate[0], d.translate[1], d.scale[0], d.scale[1]);
    if (!is_range(d.shear) || !is_range(d.shear + 2) || !isfinite(d.fill))
        return cn__transform_refuse(
            t, "transform_random_affine: shears must be ranges and fill finite; got %g to %g, %g to %g and %g",
            d.shear[0], d.shear[1], d.shear[2], d.shear[3], d.fill);
    return cn__transform_add(t, "transform_random_affine", &(step){ .run = run_affine, .affine = d });
}

bool cn_transform_random_perspective(cn_transform *t, double distortion, double p, double fill)
{
    if (!(distortion >= 0 && distortion <= 1) || !isfinite(fill))
        return cn__transform_refuse(
            t, "transform_random_perspective: distortion must be 0 to 1 and fill finite, got %g and %g", distortion,
            fill);
    return cn__transform_add_with_chance(t, "transform_random_perspective",
                                         (step){ .run = run_perspective, .v = { p, distortion, fill } });
}

bool cn_transform_rand_augment(cn_transform *t, int ops, int magnitude)
{
    if (ops < 0 || ops > 100 || magnitude < 0 || magnitude >= MAGNITUDES)
        return cn__transform_refuse(t,
                                    "transform_rand_augment: ops must be 0 to 100 and magnitude 0 to %d, got %d and %d",
                                    MAGNITUDES - 1, ops, magnitude);
    return cn__transform_add(
        t, "transform_rand_augment",
        &(step){ .run = run_rand_augment, .extra = ops ? ops : 2, .v = { magnitude ? magnitude : 9 } });
}

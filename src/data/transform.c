/* Transforms of images: a list of steps. Each step is a function of the image and of the item's random numbers. The
   steps here change geometry; augment.c has more. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/handle.h"
#include "core/host.h"
#include "data/steps.h"

#define MAX_SIDE ((int64_t)1 << 15)

typedef cn__transform_step step;
typedef cn__job job;

struct cn_transform {
    cn__object object;
    cn__vec steps;
    bool to_u8;
};

static bool resized(job *j, const cn__image *in, int64_t height, int64_t width)
{
    cn__image out;
    if (!cn__image_new(&j->f->arena, in->channels, height, width, &out) || !cn__image_resize(&j->f->arena, in, &out))
        return cn__fetch_no_memory(j->f);
    j->x = out;
    return true;
}

static bool cropped(job *j, int64_t top, int64_t left, int64_t height, int64_t width)
{
    cn__image out;
    if (!cn__image_new(&j->f->arena, j->x.channels, height, width, &out)) return cn__fetch_no_memory(j->f);
    cn__image_crop(&j->x, top, left, &out);
    j->x = out;
    return true;
}

/* ---- steps */

static bool run_normalize(const step *s, job *j)
{
    int64_t area = j->x.height * j->x.width;
    if (j->x.channels != s->extra)
        return cn__fetch_fail(j->f, CN_BAD_SHAPE, "normalize: there are %lld means for an image of %lld channels",
                              (long long)s->extra, (long long)j->x.channels);
    for (int64_t c = 0; c < j->x.channels; c++)
        for (int64_t i = 0; i < area; i++) j->x.data[c * area + i] = (j->x.data[c * area + i] - s->mean[c]) / s->std[c];
    return true;
}

static bool run_resize(const step *s, job *j) { return resized(j, &j->x, s->height, s->width); }

/* Where a centred crop begins. The crop may be larger than the image; an odd difference pads more at the end. */
static int64_t centred(int64_t have, int64_t want)
{
    return want > have ? -((want - have) / 2) : (int64_t)nearbyint((double)(have - want) / 2);
}

static bool run_center_crop(const step *s, job *j)
{
    return cropped(j, centred(j->x.height, s->height), centred(j->x.width, s->width), s->height, s->width);
}

static bool run_random_crop(const step *s, job *j)
{
    int64_t down = j->x.height + 2 * s->extra - s->height, across = j->x.width + 2 * s->extra - s->width;
    if (down < 0 || across < 0)
        return cn__fetch_fail(j->f, CN_BAD_SHAPE,
                              "random_crop: %lld by %lld is larger than the image of %lld by %lld, padded by %lld",
                              (long long)s->height, (long long)s->width, (long long)j->x.height, (long long)j->x.width,
                              (long long)s->extra);
    int64_t top = cn_draw_below(j->random, down + 1), left = cn_draw_below(j->random, across + 1);
    return cropped(j, top - s->extra, left - s->extra, s->height, s->width);
}

/* Draws the size of a rectangle that fits into the image: its area, and its ratio of height to width. False: ten draws
   did not fit. */
static bool draw_box(job *j, double low, double high, double narrow, double wide, int64_t *h, int64_t *w)
{
    double area = (double)(j->x.height * j->x.width);
    for (int i = 0; i < 10; i++) {
        double size = area * cn_draw_uniform(j->random, low, high);
        double ratio = exp(cn_draw_uniform(j->random, log(narrow), log(wide)));
        *h = (int64_t)nearbyint(sqrt(size * ratio));
        *w = (int64_t)nearbyint(sqrt(size / ratio));
        if (*h > 0 && *w > 0 && *h <= j->x.height && *w <= j->x.width) return true;
    }
    return false;
}

static bool run_random_resized_crop(const step *s, job *j)
{
    int64_t h, w;
    if (draw_box(j, 0.08, 1, 3.0 / 4, 4.0 / 3, &h, &w)) {
        int64_t top = cn_draw_below(j->random, j->x.height - h + 1),
                left = cn_draw_below(j->random, j->x.width - w + 1);
        return cropped(j, top, left, h, w) && resized(j, &j->x, s->height, s->width);
    }
    double ratio = (double)j->x.width / (double)j->x.height; /* the largest centred crop with an allowed ratio */
    h = ratio < 3.0 / 4 ? (int64_t)nearbyint((double)j->x.width * 4 / 3) : j->x.height;
    w = ratio > 4.0 / 3 ? (int64_t)nearbyint((double)j->x.height * 4 / 3) : j->x.width;
    return cropped(j, (j->x.height - h) / 2, (j->x.width - w) / 2, h, w) && resized(j, &j->x, s->height, s->width);
}

static bool run_flip(const step *s, job *j)
{
    if (cn_draw_chance(j->random, s->v[0])) cn__image_flip(&j->x, s->extra);
    return true;
}

static bool run_jitter(const step *s, job *j)
{
    int64_t order[4] = { 0, 1, 2, 3 };
    double factor[4];
    cn__shuffle(j->random, order, 4);
    for (int i = 0; i < 4; i++) {
        double low = i == 3 ? -s->v[3] : fmax(0, 1 - s->v[i]), high = i == 3 ? s->v[3] : 1 + s->v[i];
        factor[i] = cn_draw_uniform(j->random, low, high);
    }
    static void (*const adjust[4])(cn__image *, double) = { cn__image_brightness, cn__image_contrast,
                                                            cn__image_saturation, cn__image_hue };
    for (int i = 0; i < 4; i++)
        if (s->v[order[i]] > 0) adjust[order[i]](&j->x, factor[order[i]]);
    return true;
}

static bool run_erasing(const step *s, job *j)
{
    int64_t h, w;
    if (!cn_draw_chance(j->random, s->v[0]) || !draw_box(j, 0.02, 0.33, 0.3, 3.3, &h, &w)) return true;
    int64_t top = cn_draw_below(j->random, j->x.height - h + 1), left = cn_draw_below(j->random, j->x.width - w + 1);
    cn__image_fill(&j->x, top, left, h, w, (float)s->v[1]);
    return true;
}

static bool run_cutout(const step *s, job *j)
{
    int64_t row = cn_draw_below(j->random, j->x.height), col = cn_draw_below(j->random, j->x.width);
    cn__image_fill(&j->x, row - s->extra / 2, col - s->extra / 2, s->extra, s->extra, 0);
    return true;
}

/* ---- add steps */

static void destroy(void *self)
{
    cn_transform *t = self;
    cn__vec_free(&t->object.ctx->memory, &t->steps, sizeof(step));
}

const cn__object_type cn__transform_type = { "transform", destroy };

cn_transform *cn_transform_new(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    return call.ctx ? cn__object_new(ctx, sizeof(cn_transform), &cn__transform_type) : NULL;
}
void cn_transform_free(cn_transform *t) { cn__free_by_program(t, &cn__transform_type, __func__); }

static bool may_change(cn_transform *t)
{
    return t->object.uses == 0 ||
           cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "transform: cannot change a transform that is in use by a dataset");
}

bool cn__transform_add(cn_transform *t, const char *who, const step *s)
{
    CN__CALL call = cn__enter_object(t, &cn__transform_type, who, true);
    if (!call.ctx || !may_change(t)) return false;
    cn_ctx *ctx = t->object.ctx;
    return cn__push(&ctx->memory, &t->steps, s, sizeof *s) || cn__no_memory(ctx, who);
}

bool cn__transform_refuse(const cn_transform *t, const char *message, ...)
{
    CN__CALL call = cn__call_object(t, &cn__transform_type);
    if (!call.ctx) return false;
    char text[256];
    va_list list;
    va_start(list, message);
    vsnprintf(text, sizeof text, message, list);
    va_end(list);
    return cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "%s", text);
}

bool cn_transform_to_u8(cn_transform *t)
{
    CN__CALL call = cn__call_object(t, &cn__transform_type);
    if (!call.ctx || !may_change(t)) return false;
    t->to_u8 = true;
    return true;
}

bool cn_transform_normalize(cn_transform *t, const float *mean, const float *std, int channels)
{
    step s = { .run = run_normalize, .extra = channels };
    if (!mean || !std || channels < 1 || channels > CN__MAX_CHANNELS)
        return cn__transform_refuse(t, "transform_normalize: mean and std must have 1 to %d channels, got %d%s",
                                    CN__MAX_CHANNELS, channels, mean && std ? "" : " and NULL");
    for (int i = 0; i < channels; i++) {
        s.mean[i] = mean[i];
        s.std[i] = std[i];
        if (!isfinite(mean[i]) || !isfinite(std[i]) || std[i] == 0)
            return cn__transform_refuse(
                t, "transform_normalize: mean and std must be finite, std not 0; got %g and %g in channel %d", mean[i],
                std[i], i);
    }
    return cn__transform_add(t, "transform_normalize", &s);
}

static bool is_side(int64_t side) { return side > 0 && side <= MAX_SIDE; }

static bool add_sized(cn_transform *t, const char *who, step s)
{
    if (!is_side(s.height) || !is_side(s.width) || s.extra < 0 || s.extra > MAX_SIDE)
        return cn__transform_refuse(
            t, "%s: height and width must be 1 to %lld and padding 0 to %lld, got %lld, %lld and %lld", who,
            (long long)MAX_SIDE, (long long)MAX_SIDE, (long long)s.height, (long long)s.width, (long long)s.extra);
    return cn__transform_add(t, who, &s);
}

bool cn_transform_resize(cn_transform *t, int64_t height, int64_t width)
{
    return add_sized(t, "transform_resize", (step){ .run = run_resize, .height = height, .width = width });
}

bool cn_transform_center_crop(cn_transform *t, int64_t height, int64_t width)
{
    return add_sized(t, "transform_center_crop", (step){ .run = run_center_crop, .height = height, .width = width });
}

bool cn_transform_random_crop(cn_transform *t, int64_t height, int64_t width, int64_t padding)
{
    return add_sized(t, "transform_random_crop",
                     (step){ .run = run_random_crop, .height = height, .width = width, .extra = padding });
}

bool cn_transform_random_resized_crop(cn_transform *t, int64_t height, int64_t width)
{
    return add_sized(t, "transform_random_resized_crop",
                     (step){ .run = run_random_resized_crop, .height = height, .width = width });
}

bool cn__transform_add_with_chance(cn_transform *t, const char *who, step s)
{
    if (!(s.v[0] >= 0 && s.v[0] <= 1)) return cn__transform_refuse(t, "%s: p must be 0 to 1, got %g", who, s.v[0]);
    return cn__transform_add(t, who, &s);
}

bool cn_transform_random_hflip(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_hflip",
                                         (step){ .run = run_flip, .extra = 1, .v = { p } });
}

bool cn_transform_random_vflip(cn_transform *t, double p)
{
    return cn__transform_add_with_chance(t, "transform_random_vflip", (step){ .run = run_flip, .v = { p } });
}

bool cn_transform_color_jitter(cn_transform *t, double brightness, double contrast, double saturation, double hue)
{
    bool ok = brightness >= 0 && contrast >= 0 && saturation >= 0 && hue >= 0 && hue <= 0.5 && isfinite(brightness) &&
              isfinite(contrast) && isfinite(saturation);
    if (!ok)
        return cn__transform_refuse(
            t,
            "transform_color_jitter: brightness, contrast and saturation must be ≥ 0 and hue 0 to 0.5, got "
            "%g, %g, %g and %g",
            brightness, contrast, saturation, hue);
    return cn__transform_add(t, "transform_color_jitter",
                             &(step){ .run = run_jitter, .v = { brightness, contrast, saturation, hue } });
}

bool cn_transform_random_erasing(cn_transform *t, double p, double value)
{
    if (!isfinite(value))
        return cn__transform_refuse(t, "transform_random_erasing: value must be finite, got %g", value);
    return cn__transform_add_with_chance(t, "transform_random_erasing",
                                         (step){ .run = run_erasing, .v = { p, value } });
}

bool cn_transform_cutout(cn_transform *t, int64_t side)
{
    if (!is_side(side))
        return cn__transform_refuse(t, "transform_cutout: side must be 1 to %lld, got %lld", (long long)MAX_SIDE,
                                    (long long)side);
    return cn__transform_add(t, "transform_cutout", &(step){ .run = run_cutout, .extra = side });
}

/* ---- run */

static const step *step_at(const cn_transform *t, size_t i) { return (const step *)t->steps.v + i; }

cn_field cn_transform_field(const cn_transform *t, cn_field in)
{
    CN__CALL call = cn__call_object(t, &cn__transform_type);
    if (!call.ctx) return in;
    for (size_t i = 0; i < t->steps.n; i++) {
        if (step_at(t, i)->channels) in.shape.v[0] = step_at(t, i)->channels;
        if (!step_at(t, i)->height) continue;
        in.shape.v[1] = step_at(t, i)->height;
        in.shape.v[2] = step_at(t, i)->width;
    }
    in.dtype = t->to_u8 ? CN_U8 : CN_F32;
    return in;
}

static bool run(const cn_transform *t, cn__fetch *f, cn_draw *random, cn_dtype dtype, cn_dims shape, const void *in,
                cn__image *out)
{
    job j = { .f = f, .random = random };
    if (shape.n != 3 || shape.v[0] < 1 || shape.v[1] < 1 || shape.v[2] < 1 || (dtype != CN_U8 && dtype != CN_F32))
        return cn__fetch_fail(f, CN_BAD_SHAPE,
                              "transform: an image must have 3 axes, none empty, and u8 or f32; got %d axes of %s",
                              shape.n, cn_dtype_name(dtype));
    if (!cn__image_new(&f->arena, shape.v[0], shape.v[1], shape.v[2], &j.x)) return cn__fetch_no_memory(f);
    int64_t n = shape.v[0] * shape.v[1] * shape.v[2];
    const uint8_t *bytes = in;
    if (dtype == CN_F32) memcpy(j.x.data, in, (size_t)n * sizeof(float));
    else
        for (int64_t i = 0; i < n; i++) j.x.data[i] = (float)bytes[i] / 255;
    for (size_t i = 0; i < t->steps.n; i++)
        if (!step_at(t, i)->run(step_at(t, i), &j)) return false;
    *out = j.x;
    return true;
}

static void store(const cn__image *x, cn_dtype dtype, void *out)
{
    int64_t n = x->channels * x->height * x->width;
    uint8_t *bytes = out;
    if (dtype == CN_F32) memcpy(out, x->data, (size_t)n * sizeof(float));
    else
        for (int64_t i = 0; i < n; i++) bytes[i] = (uint8_t)lrintf(fminf(fmaxf(x->data[i] * 255, 0), 255));
}

/* Copies a field that is not the image. */
static bool pass_on(const cn_map_call *call, int field)
{
    const cn_field *f = &call->in_field[field];
    if (!cn__field_varies(f)) {
        memcpy(call->out[field], call->in[field], cn__field_bytes(f));
        return true;
    }
    const cn_room *from = call->in[field];
    void *to = cn_room_take(call->out[field], from->shape);
    if (to) memcpy(to, from->data, cn__shape_bytes(f->dtype, from->shape));
    return to;
}

bool cn_transform_map(void *transform, const cn_map_call *call)
{
    const cn_transform *t = transform;
    if (!t || !call || !call->from) return false;
    cn__fetch *f = call->from;
    const cn_field *in = &call->in_field[0], *out = &call->out_field[0];
    const cn_room *room = cn__field_varies(in) ? call->in[0] : NULL;
    cn__image x;
    if (call->in_fields != call->out_fields)
        return cn__fetch_fail(f, CN_BAD_SHAPE,
                              "transform: the result must have as many fields as the source (%d), got %d",
                              call->in_fields, call->out_fields);
    if (!run(t, f, call->random, in->dtype, room ? room->shape : in->shape, room ? room->data : call->in[0], &x))
        return false;
    cn_dims shape = CN_DIMS(x.channels, x.height, x.width);
    cn_room fixed = { .field = *out, .data = call->out[0], .bytes = SIZE_MAX };
    void *to = cn_room_take(cn__field_varies(out) ? call->out[0] : &fixed, shape);
    if (!to || (out->dtype != CN_U8 && out->dtype != CN_F32))
        return cn__fetch_fail(f, CN_BAD_SHAPE,
                              "transform: the image does not fit the declared field 0, or out of memory");
    store(&x, out->dtype, to);
    for (int i = 1; i < call->out_fields; i++)
        if (!pass_on(call, i)) return cn__fetch_no_memory(f);
    return true;
}

cn_dataset *cn_dataset_transform(cn_dataset *d, cn_transform *t)
{
    CN__CALL call = cn__enter(d ? d->object.ctx : t ? t->object.ctx : NULL, __func__);
    if (!call.ctx || !cn__object_of(call.ctx, d, &cn__dataset_type, __func__) ||
        !cn__object_of(call.ctx, t, &cn__transform_type, __func__))
        return NULL;
    if (d->field[0].shape.n != 3 || (d->field[0].dtype != CN_U8 && d->field[0].dtype != CN_F32)) {
        cn__fail(d->object.ctx, CN_BAD_SHAPE,
                 "dataset_transform: field 0 must have 3 axes of u8 or f32, got %d axes of %s", d->field[0].shape.n,
                 cn_dtype_name(d->field[0].dtype));
        return NULL;
    }
    cn_map_desc desc = { .fn = cn_transform_map, .user = t, .fields = d->fields };
    memcpy(desc.field, d->field, (size_t)d->fields * sizeof *d->field);
    desc.field[0] = cn_transform_field(t, d->field[0]);
    return cn_dataset_map(d, &desc);
}

cn_tensor *cn_transform_apply(cn_transform *t, cn_tensor *image, uint64_t seed)
{
    CN__CALL call = cn__enter(t ? t->object.ctx : image ? image->ctx : NULL, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !cn__object_of(ctx, t, &cn__transform_type, __func__) ||
        !cn__of_context(ctx, image, __func__, "the image"))
        return NULL;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *c = cn_contiguous(image), *result = NULL;
    cn__host h = { 0 };
    cn__fetch f = { .random = cn__item_draw(seed, 0, 0) };
    cn__image x;
    if (c && cn__host_open(c, &h) && run(t, &f, &f.random, cn_type(c), cn_shape(c), h.data, &x)) {
        void *out = cn__arena_alloc(&f.arena, (size_t)(x.channels * x.height * x.width) * sizeof(float));
        if (out) store(&x, t->to_u8 ? CN_U8 : CN_F32, out);
        else cn__fetch_no_memory(&f);
        if (out) result = cn_from(ctx, t->to_u8 ? CN_U8 : CN_F32, CN_DIMS(x.channels, x.height, x.width), out);
    }
    if (f.code) cn__fail(ctx, f.code, "transform_apply: %s", f.error);
    cn__arena_free(&f.arena);
    cn__host_close(&h);
    return cn_scope_return(ctx, s, result);
}

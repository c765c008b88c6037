/* Images in other sizes. An output pixel is a weighted sum of the input pixels near its place. Where the image shrinks,
   the filter is stretched, so that every input pixel counts. Bytes are computed in fixed point, as Pillow does it. */
#include <math.h>

#include "cairn/image.h"
#include "core/handle.h"
#include "core/host.h"
#include "data/data.h"

#define PI   3.14159265358979323846
#define BITS 22 /* of a weight after the point: 8 more for the pixel and 2 for sums of weights above 1 fit 32 */

/* ---- filters: the weight of a pixel by its distance, in pixels of the output where the image shrinks */

static double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

static double triangle(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

static double hamming(double x)
{
    x = fabs(x) * PI;
    return x == 0 ? 1 : x >= PI ? 0 : sin(x) / x * (0.54 + 0.46 * cos(x));
}

static double cubic(double x) /* Keys' with a = -1/2 */
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) { return x == 0 ? 1 : sin(x * PI) / (x * PI); }

static double lanczos(double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct {
    double reach;
    double (*weight)(double x); /* NULL: the nearest pixel */
} filters[] = {
    [CN_FILTER_BILINEAR] = { 1, triangle }, [CN_FILTER_NEAREST] = { 0, NULL },  [CN_FILTER_BOX] = { 0.5, box },
    [CN_FILTER_HAMMING] = { 1, hamming },   [CN_FILTER_BICUBIC] = { 2, cubic }, [CN_FILTER_LANCZOS] = { 3, lanczos },
};

/* ---- taps: the input pixels that make up each of n output pixels */

typedef struct taps {
    int64_t most;   /* taps of one output pixel */
    int64_t *first; /* (n) */
    int64_t *count; /* (n) */
    float *weight;  /* (n, most): their sum is 1 */
    int32_t *fixed; /* (n, most): the same in units of 2^-BITS */
} taps;

/* Weights of output pixel i, and their sum. */
static double weigh(taps *t, int64_t i, double scale, int64_t from, cn_image_filter filter, double *w)
{
    const double stretch = scale > 1 ? scale : 1, reach = filters[filter].reach * stretch;
    const double centre = ((double)i + 0.5) * scale, shrink = 1 / stretch;
    const int64_t low = (int64_t)fmax(centre - reach + 0.5, 0);
    const int64_t high = (int64_t)fmin(centre + reach + 0.5, (double)from);
    double sum = 0;
    t->first[i] = low;
    t->count[i] = high - low;
    for (int64_t k = low; k < high; k++)
        sum += w[k - low] = filters[filter].weight(((double)k - centre + 0.5) * shrink);
    return sum;
}

static bool make_taps(cn__arena *a, int64_t from, int64_t to, cn_image_filter filter, taps *t)
{
    const double scale = (double)from / (double)to;
    t->most = (int64_t)ceil(filters[filter].reach * (scale > 1 ? scale : 1)) * 2 + 1;
    t->first = cn__arena_alloc(a, (size_t)to * sizeof *t->first);
    t->count = cn__arena_alloc(a, (size_t)to * sizeof *t->count);
    t->weight = cn__arena_alloc(a, (size_t)(to * t->most) * sizeof *t->weight);
    t->fixed = cn__arena_alloc(a, (size_t)(to * t->most) * sizeof *t->fixed);
    double *w = cn__arena_alloc(a, (size_t)t->most * sizeof *w);
    if (!t->first || !t->count || !t->weight || !t->fixed || !w) return false;
    for (int64_t i = 0; i < to; i++) {
        const double sum = weigh(t, i, scale, from, filter, w);
        for (int64_t k = 0; k < t->count[i]; k++) {
            const double share = sum != 0 ? w[k] / sum : w[k];
            t->weight[i * t->most + k] = (float)share;
            t->fixed[i * t->most + k] = (int32_t)(share * (1 << BITS) + (share < 0 ? -0.5 : 0.5));
        }
    }
    return true;
}

/* ---- floats */

static void float_row(const taps *t, const float *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *w = t->weight + i * t->most, *x = in + t->first[i];
        float sum = 0;
        for (int64_t k = 0; k < t->count[i]; k++) sum += w[k] * x[k];
        out[i] = sum;
    }
}

static void float_column(const taps *t, int64_t i, const float *in, int64_t width, float *out)
{
    const float *w = t->weight + i * t->most, *x = in + t->first[i] * width;
    for (int64_t c = 0; c < width; c++) out[c] = w[0] * x[c];
    for (int64_t k = 1; k < t->count[i]; k++)
        for (int64_t c = 0; c < width; c++) out[c] += w[k] * x[k * width + c];
}

bool cn__image_resize(cn__arena *a, const cn__image *in, cn__image *out)
{
    taps across, down;
    cn__image half; /* (c, h, new w) */
    if (!make_taps(a, in->width, out->width, CN_FILTER_BILINEAR, &across) ||
        !make_taps(a, in->height, out->height, CN_FILTER_BILINEAR, &down) ||
        !cn__image_new(a, in->channels, in->height, out->width, &half))
        return false;
    for (int64_t r = 0; r < in->channels * in->height; r++)
        float_row(&across, in->data + r * in->width, out->width, half.data + r * out->width);
    for (int64_t c = 0; c < in->channels; c++)
        for (int64_t r = 0; r < out->height; r++)
            float_column(&down, r, half.data + c * in->height * out->width, out->width,
                         out->data + (c * out->height + r) * out->width);
    return true;
}

/* ---- bytes: each direction rounds to bytes */

static uint8_t byte_of(int32_t sum)
{
    const int32_t v = sum >> BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void byte_row(const taps *t, const uint8_t *in, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t *w = t->fixed + i * t->most;
        const uint8_t *x = in + t->first[i];
        int32_t sum = 1 << (BITS - 1);
        for (int64_t k = 0; k < t->count[i]; k++) sum += w[k] * x[k];
        out[i] = byte_of(sum);
    }
}

static void byte_column(const taps *t, int64_t i, const uint8_t *in, int64_t width, int32_t *sums, uint8_t *out)
{
    const int32_t *w = t->fixed + i * t->most;
    const uint8_t *x = in + t->first[i] * width;
    for (int64_t c = 0; c < width; c++) sums[c] = 1 << (BITS - 1);
    for (int64_t k = 0; k < t->count[i]; k++)
        for (int64_t c = 0; c < width; c++) sums[c] += w[k] * x[k * width + c];
    for (int64_t c = 0; c < width; c++) out[c] = byte_of(sums[c]);
}

static bool resize_across(cn__arena *a, const cn__picture *in, cn_image_filter filter, cn__picture *out)
{
    taps t;
    if (!make_taps(a, in->width, out->width, filter, &t)) return false;
    for (int64_t r = 0; r < in->channels * in->height; r++)
        byte_row(&t, in->data + r * in->width, out->width, out->data + r * out->width);
    return true;
}

static bool resize_down(cn__arena *a, const cn__picture *in, cn_image_filter filter, cn__picture *out)
{
    taps t;
    int32_t *sums = cn__arena_alloc(a, (size_t)out->width * sizeof *sums);
    if (!sums || !make_taps(a, in->height, out->height, filter, &t)) return false;
    for (int64_t c = 0; c < in->channels; c++)
        for (int64_t r = 0; r < out->height; r++)
            byte_column(&t, r, in->data + c * in->height * in->width, in->width, sums,
                        out->data + (c * out->height + r) * out->width);
    return true;
}

/* A direction whose size stays is left alone. Rounding makes the order of the two matter: it is that of Pillow 13. */
static bool resize_bytes(cn__arena *a, const cn__picture *in, cn_image_filter filter, cn__picture *out)
{
    if (in->height == out->height) return resize_across(a, in, filter, out);
    if (in->width == out->width) return resize_down(a, in, filter, out);
    const int64_t rows = in->height - out->height, columns = in->width - out->width;
    const bool down_first = rows > 0 && rows > 2 * columns;
    cn__picture half = { in->channels, down_first ? out->height : in->height, down_first ? in->width : out->width, NULL };
    half.data = cn__arena_alloc(a, (size_t)(half.channels * half.height * half.width));
    if (!half.data) return false;
    return down_first ? resize_down(a, in, filter, &half) && resize_across(a, &half, filter, out)
                      : resize_across(a, in, filter, &half) && resize_down(a, &half, filter, out);
}

/* The pixel under the middle of each of n output pixels. Places are added up, as Pillow does: at a border between two
   pixels rounding decides. */
static void nearest(int64_t from, int64_t n, int64_t *out)
{
    const double scale = (double)from / (double)n;
    double place = scale * 0.5;
    for (int64_t i = 0; i < n; i++, place += scale) out[i] = place < (double)from ? (int64_t)place : from - 1;
}

static bool pick_bytes(cn__arena *a, const cn__picture *in, cn__picture *out)
{
    int64_t *across = cn__arena_alloc(a, (size_t)out->width * sizeof *across);
    int64_t *down = cn__arena_alloc(a, (size_t)out->height * sizeof *down);
    if (!across || !down) return false;
    nearest(in->width, out->width, across);
    nearest(in->height, out->height, down);
    for (int64_t c = 0; c < in->channels; c++)
        for (int64_t r = 0; r < out->height; r++) {
            const uint8_t *x = in->data + (c * in->height + down[r]) * in->width;
            uint8_t *y = out->data + (c * out->height + r) * out->width;
            for (int64_t i = 0; i < out->width; i++) y[i] = x[across[i]];
        }
    return true;
}

bool cn__picture_resize(cn__arena *a, const cn__picture *in, cn_image_filter filter, cn__picture *out)
{
    if (in->height == out->height && in->width == out->width) {
        memcpy(out->data, in->data, (size_t)(in->channels * in->height * in->width));
        return true;
    }
    return filter == CN_FILTER_NEAREST ? pick_bytes(a, in, out) : resize_bytes(a, in, filter, out);
}

/* ---- of tensors */

#define MAX_SIDE ((int64_t)1 << 24)

/* The size of the input, (planes, height, width), and the shape of the result. */
static bool describe(cn_ctx *ctx, cn_tensor *image, int64_t height, int64_t width, cn__picture *in, cn_dims *shape)
{
    *shape = cn_shape(image);
    const int n = shape->n;
    if (cn_type(image) != CN_U8 || n < 2)
        return cn__fail(ctx, cn_type(image) == CN_U8 ? CN_BAD_SHAPE : CN_BAD_DTYPE,
                        "image_resize: an image must be u8 (..., height, width), got %d axes of %s", n,
                        cn_dtype_name(cn_type(image)));
    *in = (cn__picture){ 1, shape->v[n - 2], shape->v[n - 1], NULL };
    const int64_t least = in->height < in->width ? in->height : in->width;
    const int64_t most = in->height > in->width ? in->height : in->width;
    if (least < 1 || most > MAX_SIDE || height < 1 || width < 1 || height > MAX_SIDE || width > MAX_SIDE)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "image_resize: sides must be 1 to 2^24, got %lld by %lld, to become %lld by %lld",
                        (long long)in->height, (long long)in->width, (long long)height, (long long)width);
    for (int i = 0; i < n - 2; i++) in->channels *= shape->v[i];
    shape->v[n - 2] = height;
    shape->v[n - 1] = width;
    if (cn__shape_bytes(CN_U8, *shape) > SIZE_MAX / 4)
        return cn__fail(ctx, CN_BAD_SHAPE, "image_resize: %lld images of %lld by %lld are too large",
                        (long long)in->channels, (long long)height, (long long)width);
    return true;
}

cn_tensor *cn_image_resize(cn_tensor *image, int64_t height, int64_t width, cn_image_filter filter)
{
    CN__CALL call = cn__call_tensor(image);
    cn_ctx *ctx = call.ctx;
    if (!ctx || cn_failed(ctx)) return NULL;
    if ((unsigned)filter >= sizeof filters / sizeof *filters) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "image_resize: filter must be 0 to %d, got %d",
                 (int)(sizeof filters / sizeof *filters) - 1, (int)filter);
        return NULL;
    }
    cn__picture in, out;
    cn_dims shape;
    if (!describe(ctx, image, height, width, &in, &shape)) return NULL;
    out = (cn__picture){ in.channels, height, width, NULL };
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *c = cn_contiguous(image), *result = NULL;
    cn__host h = { 0 };
    cn__arena a = { 0 };
    if (c && cn__host_open(c, &h)) {
        in.data = (uint8_t *)(uintptr_t)h.data; /* is only read */
        out.data = cn__arena_alloc(&a, cn__shape_bytes(CN_U8, shape));
        if (out.data && (in.channels == 0 || cn__picture_resize(&a, &in, filter, &out))) result = cn_from(ctx, CN_U8, shape, out.data);
        else cn__no_memory(ctx, "image_resize");
        cn__host_close(&h);
    }
    cn__arena_free(&a);
    return cn_scope_return(ctx, s, result);
}

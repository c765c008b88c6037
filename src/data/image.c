/* Geometry of images: resize, crop, fill, flip. */
#include <math.h>

#include "data/data.h"

bool cn__image_new(cn__arena *a, int64_t channels, int64_t height, int64_t width, cn__image *out)
{
    size_t bytes = cn__shape_bytes(CN_F32, CN_DIMS(channels, height, width));
    *out = (cn__image){ channels, height, width, bytes == SIZE_MAX ? NULL : cn__arena_alloc(a, bytes) };
    return out->data;
}

/* ---- resize: bilinear. Where the image shrinks, the triangle filter of an output pixel is wider, so that every input
   pixel counts. */

/* The input pixels that make up each of n output pixels. */
typedef struct taps {
    int64_t most;   /* taps of one output pixel */
    int64_t *first; /* (n) */
    int64_t *count; /* (n) */
    float *weight;  /* (n, most) */
} taps;

static double triangle(double distance, double reach) { return fmax(0, 1 - fabs(distance) / reach); }

static bool make_taps(cn__arena *a, int64_t from, int64_t to, taps *t)
{
    double scale = (double)from / (double)to, reach = scale > 1 ? scale : 1;
    t->most = (int64_t)ceil(reach) * 2 + 1;
    t->first = cn__arena_alloc(a, (size_t)to * sizeof *t->first);
    t->count = cn__arena_alloc(a, (size_t)to * sizeof *t->count);
    t->weight = cn__arena_alloc(a, (size_t)(to * t->most) * sizeof *t->weight);
    if (!t->first || !t->count || !t->weight) return false;
    for (int64_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0;
        int64_t low = (int64_t)fmax(centre - reach + 0.5, 0), high = (int64_t)fmin(centre + reach + 0.5, (double)from);
        t->first[i] = low;
        t->count[i] = high - low;
        for (int64_t k = low; k < high; k++) sum += triangle((double)k - centre + 0.5, reach);
        for (int64_t k = low; k < high; k++)
            t->weight[i * t->most + k - low] = (float)(triangle((double)k - centre + 0.5, reach) / sum);
    }
    return true;
}

static void resize_row(const taps *t, const float *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *w = t->weight + i * t->most, *x = in + t->first[i];
        float sum = 0;
        for (int64_t k = 0; k < t->count[i]; k++) sum += w[k] * x[k];
        out[i] = sum;
    }
}

static void resize_column(const taps *t, int64_t i, const float *in, int64_t width, float *out)
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
    if (!make_taps(a, in->width, out->width, &across) || !make_taps(a, in->height, out->height, &down) ||
        !cn__image_new(a, in->channels, in->height, out->width, &half))
        return false;
    for (int64_t r = 0; r < in->channels * in->height; r++)
        resize_row(&across, in->data + r * in->width, out->width, half.data + r * out->width);
    for (int64_t c = 0; c < in->channels; c++)
        for (int64_t r = 0; r < out->height; r++)
            resize_column(&down, r, half.data + c * in->height * out->width, out->width,
                          out->data + (c * out->height + r) * out->width);
    return true;
}

/* ---- crop and fill */

/* Pixels outside of the input are 0. */
void cn__image_crop(const cn__image *in, int64_t top, int64_t left, cn__image *out)
{
    int64_t skip = left < 0 ? -left : 0, end = in->width - left; /* columns [skip, end) of out lie inside in */
    if (end > out->width) end = out->width;
    for (int64_t c = 0; c < out->channels; c++) {
        for (int64_t r = 0; r < out->height; r++) {
            float *to = out->data + (c * out->height + r) * out->width;
            memset(to, 0, (size_t)out->width * sizeof *to);
            if (r + top < 0 || r + top >= in->height || skip >= end) continue;
            const float *from = in->data + (c * in->height + r + top) * in->width + left;
            memcpy(to + skip, from + skip, (size_t)(end - skip) * sizeof *to);
        }
    }
}

void cn__image_fill(cn__image *x, int64_t top, int64_t left, int64_t height, int64_t width, float value)
{
    for (int64_t c = 0; c < x->channels; c++)
        for (int64_t r = top < 0 ? 0 : top; r < top + height && r < x->height; r++)
            for (int64_t i = left < 0 ? 0 : left; i < left + width && i < x->width; i++)
                x->data[(c * x->height + r) * x->width + i] = value;
}

/* ---- flip */

static void swap(float *a, float *b)
{
    float t = *a;
    *a = *b;
    *b = t;
}

void cn__image_flip(cn__image *x, bool horizontal)
{
    int64_t h = x->height, w = x->width;
    for (int64_t c = 0; c < x->channels; c++) {
        float *p = x->data + c * h * w;
        for (int64_t r = 0; r < (horizontal ? h : h / 2); r++)
            for (int64_t i = 0; i < (horizontal ? w / 2 : w); i++)
                swap(&p[r * w + i], horizontal ? &p[r * w + w - 1 - i] : &p[(h - 1 - r) * w + i]);
    }
}

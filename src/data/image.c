/* Geometry of images: crop, fill, flip. */
#include <math.h>

#include "data/data.h"

bool cn__image_new(cn__arena *a, int64_t channels, int64_t height, int64_t width, cn__image *out)
{
    size_t bytes = cn__shape_bytes(CN_F32, CN_DIMS(channels, height, width));
    *out = (cn__image){ channels, height, width, bytes == SIZE_MAX ? NULL : cn__arena_alloc(a, bytes) };
    return out->data;
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

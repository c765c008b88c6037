/* Images through a window: blur and sharpness, as torchvision's functions of tensors. */
#include <math.h>

#include "data/data.h"

/* An index outside of 0 .. n - 1, reflected at the first and the last pixel. */
static int64_t reflected(int64_t i, int64_t n)
{
    if (i < 0) i = -i;
    return i >= n ? 2 * (n - 1) - i : i;
}

static void blur_lines(const float *in, int64_t lines, int64_t step, int64_t n, int64_t stride, const double *weight,
                       int64_t size, float *out)
{
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = 0; k < size; k++)
                sum += weight[k] * in[line * step + reflected(i + k - size / 2, n) * stride];
            out[line * step + i * stride] = (float)sum;
        }
}

static double *gaussian(cn__arena *a, int64_t size, double sigma)
{
    double *weight = cn__arena_alloc(a, (size_t)size * sizeof *weight), sum = 0;
    for (int64_t k = 0; k < size && weight; k++) {
        const double x = (double)(k - size / 2) / sigma;
        sum += weight[k] = exp(-0.5 * x * x);
    }
    for (int64_t k = 0; k < size && weight; k++) weight[k] /= sum;
    return weight;
}

bool cn__image_blur(cn__arena *a, cn__image *x, int64_t kernel_height, int64_t kernel_width, double sigma)
{
    const int64_t h = x->height, w = x->width;
    const double *down = gaussian(a, kernel_height, sigma), *across = gaussian(a, kernel_width, sigma);
    cn__image half;
    if (!down || !across || !cn__image_new(a, x->channels, h, w, &half)) return false;
    blur_lines(x->data, x->channels * h, w, w, 1, across, kernel_width, half.data);
    for (int64_t c = 0; c < x->channels; c++)
        blur_lines(half.data + c * h * w, w, 1, h, w, down, kernel_height, x->data + c * h * w);
    return true;
}

/* Toward a picture that is smoothed with (1 1 1, 1 5 1, 1 1 1) / 13, except at its border, or away from it. */
bool cn__image_sharpness(cn__arena *a, cn__image *x, double factor)
{
    const int64_t h = x->height, w = x->width;
    cn__image from;
    if (h <= 2 || w <= 2) return true;
    if (!cn__image_new(a, x->channels, h, w, &from)) return false;
    memcpy(from.data, x->data, (size_t)(x->channels * h * w) * sizeof *x->data);
    for (int64_t c = 0; c < x->channels; c++)
        for (int64_t r = 0; r < h; r++)
            for (int64_t i = 0; i < w; i++) {
                const float *p = from.data + (c * h + r) * w + i;
                double smooth = *p;
                if (r > 0 && r < h - 1 && i > 0 && i < w - 1) {
                    double sum = 4 * (double)*p;
                    for (int64_t k = -1; k <= 1; k++) sum += (double)p[k * w - 1] + p[k * w] + p[k * w + 1];
                    smooth = sum / 13;
                }
                const double v = factor * *p + (1 - factor) * smooth;
                x->data[(c * h + r) * w + i] = (float)(v < 0 ? 0 : v > 1 ? 1 : v);
            }
    return true;
}

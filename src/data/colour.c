/* Adjustments of colours as in torchvision: brightness, contrast, saturation, hue, levels. Values are from 0 to 1. */
#include <math.h>

#include "data/data.h"

static float limit(double v) { return (float)(v < 0 ? 0 : v > 1 ? 1 : v); }

static int64_t area_of(const cn__image *x) { return x->height * x->width; }

/* Luminance of a pixel. A grey image is its own luminance. */
static double grey(const cn__image *x, int64_t i)
{
    int64_t area = area_of(x);
    if (x->channels != 3) return x->data[i];
    return 0.2989 * x->data[i] + 0.587 * x->data[area + i] + 0.114 * x->data[2 * area + i];
}

void cn__image_brightness(cn__image *x, double factor)
{
    for (int64_t i = 0; i < x->channels * area_of(x); i++) x->data[i] = limit(factor * x->data[i]);
}

void cn__image_contrast(cn__image *x, double factor)
{
    double mean = 0;
    for (int64_t i = 0; i < area_of(x); i++) mean += grey(x, i);
    mean /= (double)area_of(x);
    for (int64_t i = 0; i < x->channels * area_of(x); i++)
        x->data[i] = limit(factor * x->data[i] + (1 - factor) * mean);
}

void cn__image_saturation(cn__image *x, double factor)
{
    int64_t area = area_of(x);
    for (int64_t i = 0; i < area && x->channels == 3; i++) {
        double g = grey(x, i);
        for (int c = 0; c < 3; c++) x->data[c * area + i] = limit(factor * x->data[c * area + i] + (1 - factor) * g);
    }
}

/* A hue of 0 is red, 1/3 green, 2/3 blue. */
static void to_hsv(const double *rgb, double *hsv)
{
    double high = fmax(rgb[0], fmax(rgb[1], rgb[2])), low = fmin(rgb[0], fmin(rgb[1], rgb[2])), range = high - low;
    double hue = 0;
    if (range > 0) {
        if (high == rgb[0]) hue = (rgb[1] - rgb[2]) / range;
        else if (high == rgb[1]) hue = 2 + (rgb[2] - rgb[0]) / range;
        else hue = 4 + (rgb[0] - rgb[1]) / range;
    }
    hsv[0] = hue / 6 - floor(hue / 6);
    hsv[1] = high > 0 ? range / high : 0;
    hsv[2] = high;
}

static void to_rgb(const double *hsv, double *rgb)
{
    double sixth = floor(hsv[0] * 6), f = hsv[0] * 6 - sixth, s = hsv[1], v = hsv[2];
    double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
    const double table[6][3] = { { v, t, p }, { q, v, p }, { p, v, t }, { p, q, v }, { t, p, v }, { v, p, q } };
    memcpy(rgb, table[(int)sixth % 6], 3 * sizeof *rgb);
}

void cn__image_hue(cn__image *x, double turn)
{
    int64_t area = area_of(x);
    for (int64_t i = 0; i < area && x->channels == 3; i++) {
        double rgb[3] = { limit(x->data[i]), limit(x->data[area + i]), limit(x->data[2 * area + i]) }, hsv[3];
        to_hsv(rgb, hsv);
        hsv[0] += turn;
        hsv[0] -= floor(hsv[0]);
        to_rgb(hsv, rgb);
        for (int c = 0; c < 3; c++) x->data[c * area + i] = limit(rgb[c]);
    }
}

/* ---- as bytes, or by channel */

void cn__image_grey(cn__image *x)
{
    for (int64_t i = 0; i < area_of(x) && x->channels == 3; i++) x->data[i] = (float)grey(x, i);
}

void cn__image_invert(cn__image *x, double threshold)
{
    for (int64_t i = 0; i < x->channels * area_of(x); i++)
        if (x->data[i] >= (float)threshold) x->data[i] = 1 - x->data[i];
}

static uint8_t byte_of(float v) { return (uint8_t)lrintf(255 * limit(v)); }

void cn__image_posterize(cn__image *x, int bits)
{
    for (int64_t i = 0; i < x->channels * area_of(x); i++)
        x->data[i] = (float)(byte_of(x->data[i]) & (0xff00 >> bits)) / 255;
}

void cn__image_autocontrast(cn__image *x)
{
    for (int64_t c = 0; c < x->channels; c++) {
        float *p = x->data + c * area_of(x), low = p[0], high = p[0];
        for (int64_t i = 0; i < area_of(x); i++) {
            low = fminf(low, p[i]);
            high = fmaxf(high, p[i]);
        }
        for (int64_t i = 0; i < area_of(x) && high > low; i++) p[i] = limit((p[i] - low) / (high - low));
    }
}

/* Levels of 256 become shares of the pixels that are darker. */
void cn__image_equalize(cn__image *x)
{
    for (int64_t c = 0; c < x->channels; c++) {
        float *p = x->data + c * area_of(x);
        int64_t count[256] = { 0 }, last = 255, below = 0;
        for (int64_t i = 0; i < area_of(x); i++) count[byte_of(p[i])]++;
        while (!count[last]) last--;
        const int64_t step = (area_of(x) - count[last]) / 255;
        if (step == 0) continue;
        float level[256];
        for (int k = 0; k < 256; below += count[k++]) {
            const int64_t v = k ? (below + step / 2) / step : 0;
            level[k] = (float)(v > 255 ? 255 : v) / 255;
        }
        for (int64_t i = 0; i < area_of(x); i++) p[i] = level[byte_of(p[i])];
    }
}

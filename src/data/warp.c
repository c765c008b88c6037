/* Images through a projection: rotation, affine maps, perspective. Coordinates are pixels from the upper left corner;
   the middle of the first pixel is 0.5. */
#include <math.h>

#include "data/data.h"

static double radians(double degrees) { return degrees * 3.14159265358979323846 / 180; }

/* Removes rounding errors from whole positions, so that a quarter turn copies pixels exactly. */
static double snap(double v)
{
    double whole = nearbyint(v);
    return fabs(v - whole) < 1e-9 ? whole : v;
}

static double pixel(const float *x, int64_t height, int64_t width, int64_t row, int64_t col, double fill)
{
    return row >= 0 && row < height && col >= 0 && col < width ? x[row * width + col] : fill;
}

/* The value at pixel (y, x), which need not be whole. */
static double sample(const float *p, int64_t h, int64_t w, double y, double x, bool nearest, double fill)
{
    if (!(fabs(x) < 1e9 && fabs(y) < 1e9)) return fill;
    if (nearest) return pixel(p, h, w, (int64_t)nearbyint(y), (int64_t)nearbyint(x), fill);
    const double left = floor(x), top = floor(y), fx = x - left, fy = y - top;
    const int64_t a = (int64_t)top, b = (int64_t)left;
    const double upper = pixel(p, h, w, a, b, fill) * (1 - fx) + pixel(p, h, w, a, b + 1, fill) * fx,
                 lower = pixel(p, h, w, a + 1, b, fill) * (1 - fx) + pixel(p, h, w, a + 1, b + 1, fill) * fx;
    return upper * (1 - fy) + lower * fy;
}

void cn__image_warp(const cn__image *in, const double *m, bool nearest, double fill, cn__image *out)
{
    const int64_t h = in->height, w = in->width;
    for (int64_t r = 0; r < h; r++) {
        for (int64_t i = 0; i < w; i++) {
            const double x = (double)i + 0.5, y = (double)r + 0.5, below = m[6] * x + m[7] * y + 1;
            const double from_x = snap((m[0] * x + m[1] * y + m[2]) / below - 0.5),
                         from_y = snap((m[3] * x + m[4] * y + m[5]) / below - 0.5);
            for (int64_t c = 0; c < in->channels; c++)
                out->data[(c * h + r) * w + i] =
                    (float)sample(in->data + c * h * w, h, w, from_y, from_x, nearest, fill);
        }
    }
}

/* torchvision's _get_inverse_affine_matrix. */
void cn__affine_map(const cn__affine *a, double center_x, double center_y, double *m)
{
    const double turn = radians(a->degrees), sx = radians(a->shear_x), sy = radians(a->shear_y);
    const double p = cos(turn - sy) / cos(sy), q = -p * tan(sx) - sin(turn), s = sin(turn - sy) / cos(sy),
                 t = -s * tan(sx) + cos(turn);
    const double x = center_x + a->x, y = center_y + a->y;
    const double linear[4] = { t / a->scale, -q / a->scale, -s / a->scale, p / a->scale };
    m[0] = linear[0];
    m[1] = linear[1];
    m[2] = center_x - linear[0] * x - linear[1] * y;
    m[3] = linear[2];
    m[4] = linear[3];
    m[5] = center_y - linear[2] * x - linear[3] * y;
    m[6] = m[7] = 0;
}

/* Gauss's elimination with the largest pivot: a (8, 9) becomes the solution in its last column. */
static bool solve(double a[8][9])
{
    for (int k = 0; k < 8; k++) {
        int best = k;
        for (int r = k + 1; r < 8; r++)
            if (fabs(a[r][k]) > fabs(a[best][k])) best = r;
        if (fabs(a[best][k]) < 1e-12) return false;
        for (int c = 0; c < 9; c++) {
            const double t = a[k][c];
            a[k][c] = a[best][c];
            a[best][c] = t;
        }
        for (int r = 0; r < 8; r++) {
            const double factor = a[r][k] / a[k][k];
            for (int c = k; c < 9 && r != k; c++) a[r][c] -= factor * a[k][c];
        }
    }
    for (int k = 0; k < 8; k++) a[k][8] /= a[k][k];
    return true;
}

bool cn__perspective_map(const double *from, const double *to, double *m)
{
    double a[8][9];
    for (int i = 0; i < 4; i++) {
        const double x = to[2 * i], y = to[2 * i + 1];
        for (int axis = 0; axis < 2; axis++) {
            const double want = from[2 * i + axis];
            const double row[9] = { axis ? 0 : x, axis ? 0 : y, !axis,     axis ? x : 0, axis ? y : 0,
                                    axis,         -want * x,    -want * y, want };
            memcpy(a[2 * i + axis], row, sizeof row);
        }
    }
    if (!solve(a)) return false;
    for (int i = 0; i < 8; i++) m[i] = a[i][8];
    return true;
}

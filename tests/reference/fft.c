/* Fourier transforms by their definition, Σ x[t] e^(∓2πi kt/n), one element at a time. */
#include <math.h>
#include <stdlib.h>

#include "ops/fft/fft.h"
#include "support/reference.h"

#define PI 3.14159265358979323846

typedef struct samples { /* elements of one signal, `stride` apart; NULL: zeros */
    const double *re, *im;
    int64_t size, stride;
} samples;

/* Σ over t < n of x[t] e^(sign 2πi kt/n); what lies behind the end of the signal is 0. */
static void element(const samples *x, int64_t n, int64_t k, double sign, double *re, double *im)
{
    *re = *im = 0;
    for (int64_t t = 0; t < n && t < x->size; t++) {
        const double angle = sign * 2 * PI * (double)(k * t % n) / (double)n;
        const double a = x->re[t * x->stride], b = x->im ? x->im[t * x->stride] : 0;
        *re += a * cos(angle) - b * sin(angle);
        *im += a * sin(angle) + b * cos(angle);
    }
}

/* The real element t of the signal of n elements whose spectrum begins with x. */
static double real_element(const samples *x, int64_t n, int64_t t)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t from = 2 * k <= n ? k : n - k;
        if (from >= x->size) continue;
        const double angle = 2 * PI * (double)(k * t % n) / (double)n, a = x->re[from * x->stride];
        double b = x->im[from * x->stride] * (2 * k <= n ? 1 : -1);
        if (k == 0 || 2 * k == n) b = 0;
        sum += a * cos(angle) - b * sin(angle);
    }
    return sum;
}

static double factor(int64_t n, int64_t norm, bool inverse)
{
    if (norm == CN_FFT_ORTHO) return 1 / sqrt((double)n);
    return (norm == CN_FFT_FORWARD) != inverse ? 1 / (double)n : 1;
}

typedef enum form { COMPLEX, REAL_IN, REAL_OUT } form;

/* Along an axis of signals: in[0] (outer, size, inner[, 2]) → out[0] (outer, size', inner[, 2]). */
static void along(const ref_call *c, int axis, int64_t n, double sign, double scale, form f)
{
    const ref_tensor *x = &c->in[0], *y = &c->out[0];
    const int ndim = x->ndim - (f != REAL_IN);
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < ndim; d++) {
        if (d < axis) outer *= x->shape[d];
        if (d > axis) inner *= x->shape[d];
    }
    const int64_t size = x->shape[axis], made = y->shape[axis], in_parts = f == REAL_IN ? 1 : 2;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const double *at = x->v + (o * size * inner + i) * in_parts;
            const samples s = { at, f == REAL_IN ? NULL : at + 1, size, inner * in_parts };
            for (int64_t k = 0; k < made; k++) {
                double *to = y->v + (o * made * inner + k * inner + i) * (f == REAL_OUT ? 1 : 2);
                if (f == REAL_OUT) to[0] = real_element(&s, n, k) * scale;
                else {
                    element(&s, n, k, sign, &to[0], &to[1]);
                    to[0] *= scale, to[1] *= scale;
                }
            }
        }
}

static void c2c(const ref_call *c)
{
    const int axis = c->in[0].ndim - 2;
    along(c, axis, c->in[0].shape[axis], ((const cn__fft_c2c_attrs *)c->attrs)->inverse ? 1 : -1, 1, COMPLEX);
}
static void r2c(const ref_call *c)
{
    const int axis = c->in[0].ndim - 1;
    along(c, axis, c->in[0].shape[axis], -1, 1, REAL_IN);
}
static void c2r(const ref_call *c)
{
    along(c, c->in[0].ndim - 2, ((const cn__fft_c2r_attrs *)c->attrs)->n, 1, 1, REAL_OUT);
}

static void general(const ref_call *c, form f, bool inverse)
{
    const cn__fft_attrs *a = c->attrs;
    const int ndim = c->in[0].ndim - (f != REAL_IN), axis = (int)(a->dim < 0 ? a->dim + ndim : a->dim);
    const int64_t size = c->in[0].shape[axis], n = a->n ? a->n : f == REAL_OUT ? 2 * (size - 1) : size;
    along(c, axis, n, inverse ? 1 : -1, factor(n, a->norm, inverse), f);
}
static void fft(const ref_call *c) { general(c, COMPLEX, false); }
static void ifft(const ref_call *c) { general(c, COMPLEX, true); }
static void rfft(const ref_call *c) { general(c, REAL_IN, false); }
static void irfft(const ref_call *c) { general(c, REAL_OUT, true); }

/* ---- frames ---- */

static double window_at(const ref_call *c, const cn__stft_attrs *a, int64_t t)
{
    const int64_t length = a->win_length ? a->win_length : a->n_fft, left = (a->n_fft - length) / 2;
    if (t < left || t >= left + length) return 0;
    return c->in[1].v ? c->in[1].v[t - left] : 1;
}

static int64_t hop_of(const cn__stft_attrs *a) { return a->hop_length ? a->hop_length : a->n_fft / 4; }

/* x[t] with reflected or repeated ends */
static double padded(const double *x, int64_t n, int64_t t, int64_t mode)
{
    if (mode == CN_STFT_REFLECT) t = t < 0 ? -t : t >= n ? 2 * (n - 1) - t : t;
    else t = t < 0 ? 0 : t >= n ? n - 1 : t;
    return x[t];
}

static void stft(const ref_call *c)
{
    const cn__stft_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t length = x->shape[x->ndim - 1], batch = x->numel / length, n = a->n_fft;
    const int64_t frequencies = y->shape[y->ndim - 3], frames = y->shape[y->ndim - 2];
    double *frame = calloc((size_t)n, sizeof *frame);
    if (!frame) abort();
    for (int64_t b = 0; b < batch; b++)
        for (int64_t f = 0; f < frames; f++) {
            for (int64_t t = 0; t < n; t++)
                frame[t] = window_at(c, a, t) * padded(x->v + b * length, length,
                                                       f * hop_of(a) + t - (a->no_center ? 0 : n / 2), a->pad_mode);
            for (int64_t k = 0; k < frequencies; k++) {
                double *to = y->v + ((b * frequencies + k) * frames + f) * 2,
                       scale = a->normalized ? 1 / sqrt((double)n) : 1;
                element(&(samples){ frame, NULL, n, 1 }, n, k, -1, &to[0], &to[1]);
                to[0] *= scale, to[1] *= scale;
            }
        }
    free(frame);
}

static void istft(const ref_call *c)
{
    const cn__stft_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t n = a->n_fft, frequencies = x->shape[x->ndim - 3], frames = x->shape[x->ndim - 2];
    const int64_t length = y->shape[y->ndim - 1], batch = y->numel / length, hop = hop_of(a);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < length; i++) {
            const int64_t at = i + (a->no_center ? 0 : n / 2);
            double sum = 0, squares = 0;
            for (int64_t f = 0; f < frames; f++) {
                const int64_t t = at - f * hop;
                if (t < 0 || t >= n) continue;
                const double *from = x->v + (b * frequencies * frames + f) * 2, w = window_at(c, a, t);
                const samples s = { from, from + 1, frequencies, frames * 2 };
                sum += w * real_element(&s, n, t) * (a->normalized ? 1 / sqrt((double)n) : 1 / (double)n);
                squares += w * w;
            }
            y->v[b * length + i] = squares == 0 ? 0 : sum / squares; /* 0: behind the last frame */
        }
}

const ref_entry ref_fft[] = {
    { "fft_c2c", c2c }, { "fft_r2c", r2c }, { "fft_c2r", c2r }, { "fft", fft },     { "ifft", ifft },
    { "rfft", rfft },   { "irfft", irfft }, { "stft", stft },   { "istft", istft }, { NULL, NULL },
};

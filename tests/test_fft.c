/* Fourier transforms of every small length and of a few large ones: against the definition, there and back, real against
   complex, one signal against many, and in f32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

#define PI 3.14159265358979323846

static cn_ctx *cn;

/* The largest difference of two tensors, divided by the largest element of the second. */
static double distance(cn_tensor *a, cn_tensor *b)
{
    if (!a || !b) return INFINITY;
    double far = cn_item(cn_max(cn_abs(cn_sub(a, b)), CN_ALL, false));
    return far / cn_item(cn_max(cn_abs(b), CN_ALL, false));
}

/* The spectrum of x (n, 2) by its definition. */
static cn_tensor *definition(cn_tensor *x, int64_t n)
{
    double *in = calloc((size_t)n * 4, sizeof *in), *out = in ? in + 2 * n : NULL;
    if (!in || !cn_read_f64(x, in, (size_t)n * 2)) return NULL;
    for (int64_t k = 0; k < n; k++)
        for (int64_t t = 0; t < n; t++) {
            const double angle = 2 * PI * (double)(k * t % n) / (double)n, c = cos(angle), s = sin(angle);
            out[2 * k] += in[2 * t] * c + in[2 * t + 1] * s;
            out[2 * k + 1] += in[2 * t + 1] * c - in[2 * t] * s;
        }
    cn_tensor *y = cn_from(cn, CN_F64, CN_DIMS(n, 2), out);
    free(in);
    return y;
}

static void check_length(int64_t n, bool by_definition)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F64, CN_DIMS(3, n, 2)));
    cn_tensor *y = cn_fft(x, 0, 1, CN_FFT_BACKWARD);
    if (by_definition)
        check(distance(cn_select(y, 0, 1), definition(cn_select(x, 0, 1), n)) < 1e-12, "fft of %lld elements",
              (long long)n);
    check(distance(cn_ifft(y, 0, 1, CN_FFT_BACKWARD), x) < 1e-13, "ifft of fft of %lld elements", (long long)n);

    cn_tensor *real = cn_select(x, -1, 0), *zero = cn_zeros_like(real);
    cn_tensor *half = cn_rfft(real, 0, -1, CN_FFT_ORTHO);
    cn_tensor *whole = cn_fft(cn_stack((cn_tensor *[]){ real, zero }, 2, -1), 0, 1, CN_FFT_ORTHO);
    check(distance(half, cn_narrow(whole, 1, 0, n / 2 + 1)) < 1e-13, "rfft of %lld elements", (long long)n);
    check(distance(cn_irfft(half, n, -1, CN_FFT_ORTHO), real) < 1e-13, "irfft of %lld elements", (long long)n);

    /* a signal's spectrum does not depend on the signals beside it */
    cn_tensor *alone = cn_fft(cn_narrow(x, 0, 2, 1), 0, 1, CN_FFT_BACKWARD);
    check(cn_item(cn_all(cn_eq(alone, cn_narrow(y, 0, 2, 1)), CN_ALL, false)) == 1, "one of %lld elements alone",
          (long long)n);

    cn_tensor *single = cn_cast(cn_fft(cn_cast(x, CN_F32), 0, 1, CN_FFT_BACKWARD), CN_F64);
    check(distance(single, y) < 1e-6, "f32, %lld elements: %g", (long long)n, distance(single, y));
    cn_release(x);
    cn_scope_end(cn, s);
}

/* Frames that overlap enough give the signal back. */
static void check_frames(void)
{
    cn_tensor *x = cn_randn(cn, CN_F64, CN_DIMS(2, 1000));
    cn_tensor *window = cn_add_s(cn_rand(cn, CN_F64, CN_DIMS(60)), 0.5);
    const cn_stft_desc d = { .hop_length = 13, .win_length = 60, .window = window, .normalized = true };
    cn_tensor *y = cn_stft(x, 64, &d);
    cn_dims shape = cn_shape(y);
    check(shape.n == 4 && shape.v[1] == 33 && shape.v[2] == 1 + 1000 / 13 && shape.v[3] == 2, "shape of stft");
    const int64_t length = cn_size(cn_istft(y, 64, &d), 1);
    check(distance(cn_istft(y, 64, &d), cn_narrow(x, 1, 0, length)) < 1e-13, "istft of stft");
}

static void check_several_axes(void)
{
    cn_tensor *x = cn_randn(cn, CN_F64, CN_DIMS(3, 5, 4, 2));
    cn_tensor *one_by_one = cn_fft(cn_fft(x, 0, 0, CN_FFT_FORWARD), 0, 2, CN_FFT_FORWARD);
    check(distance(cn_fftn(x, CN_DIMS(0, 2), CN_FFT_FORWARD), one_by_one) < 1e-14, "fftn");
    check(distance(cn_ifftn(cn_fftn(x, CN_ALL, CN_FFT_ORTHO), CN_ALL, CN_FFT_ORTHO), x) < 1e-14, "ifftn of fftn");
    check(distance(cn_ifftshift(cn_fftshift(x, CN_ALL), CN_ALL), x) == 0, "ifftshift of fftshift");
    double f[5];
    cn_read_f64(cn_fftfreq(cn, CN_F64, 5, 0.5), f, 5);
    check(f[0] == 0 && f[2] == 0.8 && f[3] == -0.8 && f[4] == -0.4, "fftfreq");
}

static void check_error(cn_tensor *result, const char *words)
{
    check(!result && cn_failed(cn) && strstr(cn_error(cn), words), "'%s' should contain '%s'", cn_error(cn), words);
    cn_error_clear(cn);
}

static void check_errors(void)
{
    cn_tensor *x = cn_zeros(cn, CN_F32, CN_DIMS(4, 2)), *line = cn_zeros(cn, CN_F32, CN_DIMS(9));
    check_error(cn_fft(line, 0, -1, CN_FFT_BACKWARD), "fft: a complex input has a last axis of 2");
    check_error(cn_fft(x, 0, 1, CN_FFT_BACKWARD), "fft: dim must be from -1 to 0");
    check_error(cn_ifft(x, -1, 0, CN_FFT_BACKWARD), "ifft: n must be ≥ 0, got -1");
    check_error(cn_rfft(line, 0, 0, (cn_fft_norm)7), "rfft: norm must be one of cn_fft_norm, got 7");
    check_error(cn_rfft(cn_zeros(cn, CN_F32, CN_DIMS(3, 0)), 0, -1, CN_FFT_ORTHO),
                "rfft: a signal must have at least 1");
    check_error(cn_irfft(cn_zeros(cn, CN_F32, CN_DIMS(1, 2)), 0, -1, CN_FFT_ORTHO),
                "irfft: a signal must have at least 1");
    check_error(cn_fftn(x, CN_DIMS(0, 0), CN_FFT_ORTHO), "fftn: dim must list different axes");
    check_error(cn_rfftn(line, CN_DIMS(4), CN_FFT_ORTHO), "rfftn: dim must list different axes");
    check_error(cn_fftfreq(cn, CN_F32, 0, 1), "fftfreq: n must be ≥ 1");
    check_error(cn_stft(line, 64, &(cn_stft_desc){ .no_center = true }),
                "stft: input must have the shape [length] or [batch,length]");
    check_error(cn_stft(line, 4, &(cn_stft_desc){ .win_length = 5 }), "win_length from 1 to n_fft");
    check_error(cn_stft(line, 4, &(cn_stft_desc){ .window = line }),
                "stft: window must have the shape [win_length], [4]");
    check_error(cn_istft(x, 4, NULL), "istft: input must have the shape [3,frames,2]");
    check_error(cn_istft(cn_zeros(cn, CN_F32, CN_DIMS(3, 1, 2)), 4, NULL),
                "istft: 1 frames in steps of 1 give no signal");
}

int main(void)
{
    static const int64_t large[] = { 400,  441,  480,  512,   997,   1000,  1009, 1024,
                                     2310, 4096, 3721, 10007, 16384, 30030, 65536 };
    cn = cn_open(&(cn_desc){ .seed = 4 });
    for (int64_t n = 1; n <= 130; n += test_is_quick() && n > 16 ? 7 : 1) check_length(n, true);
    const int count = (int)(sizeof large / sizeof *large);
    for (int i = 0; i < count; i += test_is_quick() ? 4 : 1) check_length(large[i], false);
    check_frames();
    check_several_axes();
    check(!cn_failed(cn), "%s", cn_error(cn));
    check_errors();
    cn_close(cn);
    return finish();
}

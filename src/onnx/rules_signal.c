/* Rules of Fourier transforms and windows. A complex tensor has a last axis of 2; a real one has a last axis of 1. */
#include "core/host.h"
#include "onnx/rules.h"

static cn_tensor *complex_of(cn_tensor *x)
{
    if (!x || cn_size(x, -1) == 2) return x;
    cn_tensor *part[] = { x, cn_zeros_like(x) };
    return cn_cat(part, 2, -1);
}

static cn_tensor *transform(cn_tensor *x, int64_t n, int axis, bool inverse, bool half)
{
    const int axes = cn_ndim(x) - 1;
    cn_tensor *y;
    if (inverse && half) return cn_unsqueeze(cn_irfft(complex_of(x), n, axis, CN_FFT_BACKWARD), axes);
    if (inverse) return cn_ifft(complex_of(x), n, axis, CN_FFT_BACKWARD);
    if (half && cn_size(x, -1) == 1) return cn_rfft(cn_select(x, axes, 0), n, axis, CN_FFT_BACKWARD);
    y = cn_fft(complex_of(x), n, axis, CN_FFT_BACKWARD);
    return half && y ? cn_narrow(y, axis, 0, cn_size(y, axis) / 2 + 1) : y;
}

/* Small spectra are computed in f64 on the CPU: frequencies that are not there are then 0, not 1e-6. */
static cn_tensor *transformed(cn_tensor *x, int64_t n, int axis, bool inverse, bool half)
{
    if (inverse || cn_type(x) == CN_F64 || cn_numel(x) > 1 << 16 || !cn__host_device(cn_context(x)))
        return transform(x, n, axis, inverse, half);
    cn_tensor *y = transform(cn_cast(x, CN_F64), n, axis, inverse, half);
    return y ? cn_cast(y, cn_type(x)) : NULL;
}

bool cn__onnx_dft(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints length, at = { .n = -1 };
    if (!x || !cn__onnx_ints(c, 1, &length) || (c->version >= 20 && !cn__onnx_ints(c, 2, &at))) return false;
    const int axis = cn__onnx_axis(c, c->version < 20 ? INT("axis", 1) : at.n > 0 ? at.v[0] : -2, cn_ndim(x));
    if (axis < 0) return false;
    if (axis == cn_ndim(x) - 1 || (cn_size(x, -1) != 1 && cn_size(x, -1) != 2) || (length.n > 0 && length.v[0] < 1))
        return FAIL(CN_BAD_SHAPE,
                    "the last axis must have size 1 or 2, and is not transformed; dft_length must be ≥ 1");
    return GIVE(transformed(x, length.n > 0 ? length.v[0] : 0, axis, INT("inverse", 0) != 0, INT("onesided", 0) != 0));
}

bool cn__onnx_stft(onnx_call *c)
{
    cn_tensor *x = IN(0), *window = IN(2);
    onnx_ints step, length;
    if (!x || !cn__onnx_ints(c, 1, &step) || !cn__onnx_ints(c, 3, &length)) return false;
    if (cn_ndim(x) == 2) x = cn_unsqueeze(x, 2);
    if (!x || cn_ndim(x) != 3 || step.n != 1 || step.v[0] < 1)
        return FAIL(CN_BAD_SHAPE, "the signal must be (N, L, 1) or (N, L, 2), and frame_step ≥ 1");
    const int64_t n = length.n > 0 ? length.v[0] : window ? cn_numel(window) : cn_size(x, 1);
    cn_tensor *frames = cn_transpose(cn_unfold(x, 1, n, step.v[0]), 2, 3); /* (N, frames, n, 1 or 2) */
    if (window && frames) {
        const int64_t missing = n - cn_numel(window);
        if (missing > 0) window = cn_pad(window, CN_DIMS(missing / 2, missing - missing / 2), CN_PAD_CONSTANT, 0);
        frames = cn_mul(frames, cn_reshape(window, CN_DIMS(n, 1)));
    }
    return frames && GIVE(transformed(frames, 0, 2, false, INT("onesided", 1) != 0));
}

/* ---- windows ---- */

/* a - b cos(2πi/N) + d cos(4πi/N) */
static bool window(onnx_call *c, double a, double b, double d)
{
    onnx_ints size;
    cn_dtype t;
    if (!cn__onnx_ints(c, 0, &size) || !cn__onnx_cast_to(c, INT("output_datatype", 1), &t)) return false;
    const int64_t n = size.n == 1 ? size.v[0] : -1;
    if (n < 0 || n > INT32_MAX) return FAIL(CN_BAD_ARGUMENT, "size must be one number ≥ 0");
    double *v = cn__onnx_run_new(c->run, (size_t)n, sizeof *v);
    const double turn = 2 * 3.14159265358979323846 / (double)(INT("periodic", 1) ? n : n - 1);
    for (int64_t i = 0; i < n && v; i++) v[i] = a - b * cos((double)i * turn) + d * cos(2 * (double)i * turn);
    return v && GIVE(cn__onnx_real(c, t, CN_DIMS(n), v));
}
bool cn__onnx_hann_window(onnx_call *c) { return window(c, 0.5, 0.5, 0); }
bool cn__onnx_hamming_window(onnx_call *c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
bool cn__onnx_blackman_window(onnx_call *c) { return window(c, 0.42, 0.5, 0.08); }

static double to_mel(double hertz) { return 2595 * log1p(hertz / 700) / log(10); }
static double to_hertz(double mel) { return 700 * expm1(mel / 2595 * log(10)); }

/* Triangles over frequencies, evenly spaced in mel. */
bool cn__onnx_mel_weight_matrix(onnx_call *c)
{
    onnx_ints bins, length, rate;
    onnx_floats low, high;
    cn_dtype t;
    if (!cn__onnx_ints(c, 0, &bins) || !cn__onnx_ints(c, 1, &length) || !cn__onnx_ints(c, 2, &rate) ||
        !cn__onnx_floats(c, 3, &low) || !cn__onnx_floats(c, 4, &high) ||
        !cn__onnx_cast_to(c, INT("output_datatype", 1), &t))
        return false;
    if (bins.n != 1 || length.n != 1 || rate.n != 1 || low.n != 1 || high.n != 1 || bins.v[0] < 0 ||
        bins.v[0] > 65536 || length.v[0] < 0 || length.v[0] > 1 << 20 || rate.v[0] < 1)
        return FAIL(CN_BAD_ARGUMENT, "the numbers are out of range");
    const int64_t n = bins.v[0], lines = length.v[0] / 2 + 1;
    const double first = to_mel(low.v[0]), step = (to_mel(high.v[0]) - first) / (double)(n + 2);
    int64_t *edge = cn__onnx_run_new(c->run, (size_t)n + 2, sizeof *edge);
    double *v = cn__onnx_run_new(c->run, (size_t)(lines * n), sizeof *v);
    if (!edge || !v) return false;
    for (int64_t i = 0; i < n + 2; i++) {
        const double at = floor((double)(length.v[0] + 1) * to_hertz((double)i * step + first) / (double)rate.v[0]);
        edge[i] = at >= 0 && at < (double)lines ? (int64_t)at : at < 0 ? 0 : lines - 1;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = edge[i], centre = edge[i + 1], to = edge[i + 2];
        if (from == centre) v[centre * n + i] = 1;
        for (int64_t j = from; j <= centre && from < centre; j++)
            v[j * n + i] = (double)(j - from) / (double)(centre - from);
        for (int64_t j = centre; j < to; j++) v[j * n + i] = (double)(to - j) / (double)(to - centre);
    }
    return GIVE(cn__onnx_real(c, t, CN_DIMS(lines, n), v));
}

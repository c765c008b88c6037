/* stft and istft: spectra of overlapping frames, and signals from them. */
#include <math.h>

#include "ops/fft/fft.h"
#include "ops/view/view.h"

/* Zeros in the attributes become PyTorch's defaults. Returns false after an error. */
static bool complete(cn_ctx *ctx, const char *who, cn__stft_attrs *a, cn_tensor *window)
{
    if (a->hop_length == 0) a->hop_length = cn__larger(a->n_fft / 4, 1);
    if (a->win_length == 0) a->win_length = a->n_fft;
    if (a->n_fft < 1 || a->hop_length < 1 || a->win_length < 1 || a->win_length > a->n_fft) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "%s: n_fft and hop_length must be ≥ 1 and win_length from 1 to n_fft, got %lld, %lld and %lld", who,
                 (long long)a->n_fft, (long long)a->hop_length, (long long)a->win_length);
        return false;
    }
    if (window && (cn_ndim(window) != 1 || cn_size(window, 0) != a->win_length)) {
        char s[96];
        cn__fail(ctx, CN_BAD_SHAPE, "%s: window must have the shape [win_length], [%lld], got %s", who,
                 (long long)a->win_length, cn__shape_text(cn__layout(window), s, sizeof s));
        return false;
    }
    if (a->pad_mode >= CN_STFT_REFLECT && a->pad_mode <= CN_STFT_CIRCULAR) return true;
    cn__fail(ctx, CN_BAD_ARGUMENT, "%s: pad_mode must be one of cn_stft_pad_mode, got %lld", who,
             (long long)a->pad_mode);
    return false;
}

/* The window with n_fft elements: a shorter one has zeros on both sides. */
static cn_tensor *whole_window(cn_ctx *ctx, const cn__stft_attrs *a, cn_tensor *window, cn_dtype dtype)
{
    if (!window) window = cn_ones(ctx, dtype, CN_DIMS(a->win_length));
    const int64_t left = (a->n_fft - a->win_length) / 2, right = a->n_fft - a->win_length - left;
    return left || right ? cn_pad(window, CN_DIMS(left, right), CN_PAD_CONSTANT, 0) : window;
}

static cn_tensor *stft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    static const cn_pad_mode modes[] = { CN_PAD_REFLECT, CN_PAD_CONSTANT, CN_PAD_REPLICATE, CN_PAD_CIRCULAR };
    (void)n_in, (void)args;
    cn__stft_attrs a = *(const cn__stft_attrs *)attrs;
    cn_tensor *x = in[0];
    if (!complete(ctx, "stft", &a, in[1])) return NULL;
    const int ndim = cn_ndim(x);
    const int64_t border = a.no_center ? 0 : a.n_fft / 2;
    char s[96];
    if (ndim < 1 || ndim > 2 || cn_size(x, -1) + 2 * border < a.n_fft) {
        cn__fail(ctx, CN_BAD_SHAPE,
                 "stft: input must have the shape [length] or [batch,length] with length ≥ %lld, got %s",
                 (long long)(a.n_fft - 2 * border), cn__shape_text(cn__layout(x), s, sizeof s));
        return NULL;
    }
    if (ndim == 1) x = cn_unsqueeze(x, 0);
    if (border) { /* (1, batch, length): three axes, which every mode of pad accepts */
        x = cn_pad(cn_unsqueeze(x, 0), CN_DIMS(border, border), modes[a.pad_mode], 0);
        x = cn_squeeze(x, CN_DIMS(0));
    }
    if (!x) return NULL;
    cn_tensor *frames = cn_mul(cn_unfold(x, 1, a.n_fft, a.hop_length), whole_window(ctx, &a, in[1], cn__dtype(x)));
    const cn_fft_norm norm = a.normalized ? CN_FFT_ORTHO : CN_FFT_BACKWARD;
    cn_tensor *y;
    if (a.two_sided && frames)
        y = cn_fft(cn_stack((cn_tensor *[]){ frames, cn_zeros_like(frames) }, 2, -1), 0, -1, norm);
    else y = cn_rfft(frames, 0, -1, norm);
    y = cn_transpose(y, 1, 2);
    return ndim == 1 ? cn_squeeze(y, CN_DIMS(0)) : y;
}

/* Frames (batch, frames, n_fft) added up where they lie in the signal. */
static cn_tensor *overlapped(cn_tensor *frames, const cn__stft_attrs *a)
{
    if (!frames) return NULL;
    const int64_t length = a->n_fft + a->hop_length * (cn_size(frames, 1) - 1);
    const cn__unfold_backward_attrs u = { { 1, a->n_fft, a->hop_length }, length };
    return cn_apply(&cn__op_unfold_backward, &frames, 1, &u, NULL);
}

static cn_tensor *istft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    cn__stft_attrs a = *(const cn__stft_attrs *)attrs;
    cn_tensor *x = in[0];
    if (!complete(ctx, "istft", &a, in[1])) return NULL;
    const int ndim = cn_ndim(x);
    const int64_t frequencies = a.two_sided ? a.n_fft : a.n_fft / 2 + 1;
    char s[96];
    if (ndim < 3 || ndim > 4 || cn_size(x, -1) != 2 || cn_size(x, -2) < 1 || cn_size(x, -3) != frequencies) {
        cn__fail(ctx, CN_BAD_SHAPE, "istft: input must have the shape [%lld,frames,2] or [batch,%lld,frames,2], got %s",
                 (long long)frequencies, (long long)frequencies, cn__shape_text(cn__layout(x), s, sizeof s));
        return NULL;
    }
    if (ndim == 3) x = cn_unsqueeze(x, 0);
    const int64_t n_frames = cn_size(x, 2);
    const cn_fft_norm norm = a.normalized ? CN_FFT_ORTHO : CN_FFT_BACKWARD;
    x = cn_transpose(x, 1, 2);
    x = cn_irfft(x, a.n_fft, -1, norm); /* of a whole spectrum, the first half is used */
    if (!x) return NULL;

    cn_tensor *window = whole_window(ctx, &a, in[1], cn__dtype(x));
    cn_tensor *squares = cn_expand(cn_square(window), CN_DIMS(1, n_frames, a.n_fft));
    const int64_t whole = a.n_fft + a.hop_length * (n_frames - 1), begin = a.no_center ? 0 : a.n_fft / 2;
    const int64_t end = cn__smaller(a.length ? begin + a.length : whole - begin, whole);
    if (end <= begin) {
        cn__fail(ctx, CN_BAD_SHAPE,
                 "istft: %lld frames in steps of %lld give no signal, because half a frame is cut off "
                 "at both ends",
                 (long long)n_frames, (long long)a.hop_length);
        return NULL;
    }
    cn_tensor *y = cn_div(cn_slice(overlapped(cn_mul(x, window), &a), 1, begin, end, 1),
                          cn_slice(overlapped(cn_contiguous(squares), &a), 1, begin, end, 1));
    if (a.length > end - begin) y = cn_pad(y, CN_DIMS(0, a.length - (end - begin)), CN_PAD_CONSTANT, 0);
    return ndim == 3 ? cn_squeeze(y, CN_DIMS(0)) : y;
}

const cn_op cn__op_stft = {
    .call = "stft(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
            "bool center=True, reflect|constant|replicate|circular pad_mode=reflect, bool normalized=False, "
            "bool onesided=True) -> Tensor",
    .name = "stft",
    .doc = "The spectra of overlapping frames of real signals (L) or (B, L): (.., frequencies, frames, 2).",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .optional = 2,
    .attr_size = sizeof(cn__stft_attrs),
    .compose = stft_compose,
    .onnx = "STFT",
    CN_CASES({ CN_IN(CN_S(20), CN_ABSENT), .attrs = &(const cn__stft_attrs){ .n_fft = 8 } },
             { CN_IN(CN_S(2, 23), CN_S(6)),
               .attrs = &(const cn__stft_attrs){ .n_fft = 9, .hop_length = 3, .win_length = 6, .normalized = 1 } },
             { CN_IN(CN_S(2, 16), CN_S(5)),
               .attrs = &(const cn__stft_attrs){ .n_fft = 5, .hop_length = 7, .no_center = 1, .two_sided = 1 } },
             { CN_IN(CN_S(3, 12), CN_ABSENT),
               .attrs = &(const cn__stft_attrs){ .n_fft = 6, .pad_mode = CN_STFT_REPLICATE } },
             { CN_IN(CN_S(3, 700), CN_S(64)), .attrs = &(const cn__stft_attrs){ .n_fft = 64, .hop_length = 16 } }),
};

const cn_op cn__op_istft = {
    .call = "istft(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
            "bool center=True, bool normalized=False, bool onesided=True, int? length=None) -> Tensor",
    .name = "istft",
    .doc =
        "Real signals from the spectra of their frames: the inverse of stft, by weighted sums of overlapping frames.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .optional = 2,
    .attr_size = sizeof(cn__stft_attrs),
    .compose = istft_compose,
    CN_CASES({ CN_IN(CN_S(5, 6, 2), CN_ABSENT), .attrs = &(const cn__stft_attrs){ .n_fft = 8 } },
             { CN_IN(CN_S(2, 5, 7, 2), CN_RANGE(0.5, 1, 6)),
               .attrs = &(const cn__stft_attrs){ .n_fft = 9, .hop_length = 2, .win_length = 6, .normalized = 1 } },
             { CN_IN(CN_S(2, 5, 4, 2), CN_RANGE(0.5, 1, 5)),
               .attrs = &(const cn__stft_attrs){ .n_fft = 5, .hop_length = 3, .no_center = 1, .two_sided = 1 } },
             { CN_IN(CN_S(4, 3, 2), CN_ABSENT), .attrs = &(const cn__stft_attrs){ .n_fft = 6, .length = 14 } },
             { CN_IN(CN_S(2, 33, 41, 2), CN_RANGE(0.5, 1, 64)),
               .attrs = &(const cn__stft_attrs){ .n_fft = 64, .hop_length = 16 } }),
};

static cn_tensor *framed(const cn_op *op, cn_tensor *x, int64_t n_fft, const cn_stft_desc *desc)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    const cn_stft_desc d = desc ? *desc : (cn_stft_desc){ 0 };
    const int64_t numbers[] = { n_fft, d.hop_length, d.win_length, d.length };
    bool ok = n_fft >= 1;
    for (int i = 0; i < 4; i++) ok = ok && numbers[i] >= 0 && numbers[i] <= INT32_MAX;
    if (!ok) {
        cn__fail(
            x->ctx, CN_BAD_ARGUMENT,
            "%s: n_fft must be from 1 to %d, hop_length, win_length and length from 0, got %lld, %lld, %lld and %lld",
            op->name, INT32_MAX, (long long)n_fft, (long long)d.hop_length, (long long)d.win_length,
            (long long)d.length);
        return NULL;
    }
    const cn__stft_attrs a = { n_fft,      d.hop_length, d.win_length, d.no_center,
                               d.pad_mode, d.normalized, d.two_sided,  d.length };
    return cn_apply(op, (cn_tensor *[]){ x, d.window }, 2, &a, NULL);
}

cn_tensor *cn_stft(cn_tensor *x, int64_t n_fft, const cn_stft_desc *desc)
{
    return framed(&cn__op_stft, x, n_fft, desc);
}
cn_tensor *cn_istft(cn_tensor *x, int64_t n_fft, const cn_stft_desc *desc)
{
    return framed(&cn__op_istft, x, n_fft, desc);
}

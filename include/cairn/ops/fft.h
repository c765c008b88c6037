/* cairn/ops/fft.h: discrete Fourier transforms; PyTorch's torch.fft.

       cn_tensor *spectrum = cn_rfft(signal, 0, -1, CN_FFT_BACKWARD);               (.., n) → (.., n/2 + 1, 2)
       cn_tensor *again = cn_irfft(spectrum, n, -1, CN_FFT_BACKWARD);               (.., n/2 + 1, 2) → (.., n)

   A complex tensor has a last axis of 2: real and imaginary part, as torch.view_as_real gives. `dim` counts the axes
   before it: -1 is the axis next to it. n: signals are cut, or filled with zeros, to n elements; 0: they are used as they
   are. Any length is allowed; lengths with large prime factors cost a few times more. */
#ifndef CAIRN_OPS_FFT_H
#define CAIRN_OPS_FFT_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What divides by n: the inverse transforms, the others, or both by √n. */
typedef enum cn_fft_norm { CN_FFT_BACKWARD, CN_FFT_FORWARD, CN_FFT_ORTHO } cn_fft_norm;

/* The spectrum of complex signals along an axis: Σ x[t] e^(-2πi kt/n). */
CN_PURE cn_tensor *cn_fft(cn_tensor *input, int64_t n, int64_t dim, cn_fft_norm norm);

/* Complex signals from their spectrum: the inverse of fft. */
CN_PURE cn_tensor *cn_ifft(cn_tensor *input, int64_t n, int64_t dim, cn_fft_norm norm);

/* The first n/2 + 1 elements of the spectrum of real signals along an axis; the others mirror them. */
CN_PURE cn_tensor *cn_rfft(cn_tensor *input, int64_t n, int64_t dim, cn_fft_norm norm);

/* Real signals of n elements from the first half of their spectrum; n 0: 2(size - 1). */
CN_PURE cn_tensor *cn_irfft(cn_tensor *input, int64_t n, int64_t dim, cn_fft_norm norm);

/* ---- over several axes; CN_ALL: all ---- */

/* fft along each of the axes. */
CN_PURE cn_tensor *cn_fftn(cn_tensor *input, cn_dims dim, cn_fft_norm norm);

/* ifft along each of the axes. */
CN_PURE cn_tensor *cn_ifftn(cn_tensor *input, cn_dims dim, cn_fft_norm norm);

/* rfft along the last of the axes, then fft along the others. */
CN_PURE cn_tensor *cn_rfftn(cn_tensor *input, cn_dims dim, cn_fft_norm norm);

/* ---- frequencies ---- */

/* The frequencies of the elements of a spectrum of n samples that are d apart: 0, 1, .., -2, -1 over n·d. */
CN_PURE cn_tensor *cn_fftfreq(cn_ctx *ctx, cn_dtype dtype, int64_t n, double d);

/* The frequencies of the first half of a spectrum: 0, 1, .., n/2 over n·d. */
CN_PURE cn_tensor *cn_rfftfreq(cn_ctx *ctx, cn_dtype dtype, int64_t n, double d);

/* Moves frequency 0 to the middle of the axes (of all axes of the tensor, the last one of a complex tensor included). */
CN_PURE cn_tensor *cn_fftshift(cn_tensor *input, cn_dims dim);

/* The inverse of fftshift. */
CN_PURE cn_tensor *cn_ifftshift(cn_tensor *input, cn_dims dim);

/* ---- short-time transforms ---- */

typedef enum cn_stft_pad_mode {
    CN_STFT_REFLECT,
    CN_STFT_CONSTANT,
    CN_STFT_REPLICATE,
    CN_STFT_CIRCULAR
} cn_stft_pad_mode;

typedef struct cn_stft_desc {
    int64_t hop_length;        /* from one frame to the next; 0: n_fft / 4 */
    int64_t win_length;        /* 0: n_fft */
    cn_tensor *window;         /* (win_length), or NULL: ones */
    bool no_center;            /* frame t begins at t · hop_length instead of having its centre there */
    cn_stft_pad_mode pad_mode; /* what stands before and after the signal if frames are centred (stft) */
    bool normalized;           /* divided by √n_fft */
    bool two_sided;            /* the whole spectrum, not only its first half */
    int64_t length;            /* istft: elements of the signal; 0: as many as the frames give */
} cn_stft_desc;

/* The spectra of overlapping frames of real signals (L) or (B, L): (.., frequencies, frames, 2). */
CN_PURE cn_tensor *cn_stft(cn_tensor *input, int64_t n_fft, const cn_stft_desc *desc);

/* Real signals from the spectra of their frames: the inverse of stft, by weighted sums of overlapping frames. The sum
   of the squared windows must not vanish anywhere. */
CN_PURE cn_tensor *cn_istft(cn_tensor *input, int64_t n_fft, const cn_stft_desc *desc);

#ifdef __cplusplus
}
#endif
#endif

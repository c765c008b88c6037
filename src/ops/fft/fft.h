/* fft.h: discrete Fourier transforms. A complex tensor has a last axis of 2: real and imaginary part. */
#ifndef CN_OPS_FFT_H
#define CN_OPS_FFT_H

#include "cairn/kernel.h"
#include "ops/shared.h"

/* fft_c2c */
typedef struct cn__fft_c2c_attrs {
    int64_t inverse;
} cn__fft_c2c_attrs;

/* fft_c2r: elements of a real signal */
typedef struct cn__fft_c2r_attrs {
    int64_t n;
} cn__fft_c2r_attrs;

/* fft, ifft, rfft, irfft */
typedef struct cn__fft_attrs {
    int64_t n;    /* elements of a signal; 0: as many as there are */
    int64_t dim;  /* among the axes of signals, which do not include the last one of a complex tensor */
    int64_t norm; /* a cn_fft_norm */
} cn__fft_attrs;

/* stft, istft; fields as in cn_stft_desc */
typedef struct cn__stft_attrs {
    int64_t n_fft, hop_length, win_length;
    int64_t no_center, pad_mode, normalized, two_sided;
    int64_t length; /* istft: 0: what the frames give */
} cn__stft_attrs;

extern const cn_op cn__op_fft_c2c, cn__op_fft_r2c, cn__op_fft_c2r, cn__op_fft, cn__op_ifft, cn__op_rfft, cn__op_irfft,
    cn__op_stft, cn__op_istft;

#endif

/* fft_cpu.h: the CPU kernel of discrete Fourier transforms. */
#ifndef CN_FFT_CPU_H
#define CN_FFT_CPU_H

#include "cairn/op.h"

#define CN__FFT_MOST_RADICES 64

typedef enum cn__fft_kind {
    CN__FFT_COMPLEX,  /* (rows, n, 2) → (rows, n, 2) */
    CN__FFT_REAL_IN,  /* (rows, n) → (rows, n/2 + 1, 2) */
    CN__FFT_REAL_OUT, /* (rows, n/2 + 1, 2) → (rows, n), inverse */
} cn__fft_kind;

/* How one call is computed. All of it follows from the shapes. */
typedef struct cn__fft_job {
    cn__fft_kind kind;
    bool inverse;
    int64_t rows, n;  /* signals, and elements of a signal */
    bool halved;      /* two neighbouring real elements are one complex element */
    int64_t length;   /* of the complex transform: n, or n/2 if halved; with Bluestein's method a power of 2 */
    bool chirped;     /* Bluestein's method: a convolution of `length` replaces the transform */
    int64_t together; /* signals that are transformed side by side */
    int radices;
    int64_t radix[CN__FFT_MOST_RADICES];
} cn__fft_job;

cn__fft_job cn__fft_job_of(const cn_kernel *k, cn__fft_kind kind, int64_t n, bool inverse);
/* Elements of the tables that all threads read, and of one thread's memory. */
int64_t cn__fft_table_size(const cn__fft_job *j);
int64_t cn__fft_thread_size(const cn__fft_job *j);

/* For f32 and f64. */
typedef struct cn__fft_kernels {
    void (*run[2])(const cn_kernel *k, const cn__fft_job *j);
} cn__fft_kernels;

#endif

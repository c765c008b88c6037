/* taps_cpu.h: the kernels of convolution by taps. */
#ifndef CN_CONTRACT_TAPS_CPU_H
#define CN_CONTRACT_TAPS_CPU_H

#include "cairn/op.h"

/* Each for f32 and f64, over parts of a cn__taps. */
typedef struct cn__taps_kernels {
    cn_body pack[2], convolve[2]; /* weights into tiles; the convolution */
    cn_body weigh[2], merge[2];   /* the gradient of the weights; the sums of its parts together */
} cn__taps_kernels;

#endif

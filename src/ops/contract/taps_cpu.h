/* taps_cpu.h: the CPU kernels of convolution by taps. */
#ifndef CN_CONTRACT_TAPS_CPU_H
#define CN_CONTRACT_TAPS_CPU_H

#include "cairn/op.h"

/* Each for f32 and f64. A part is a unit of a cn__taps. */
typedef struct cn__taps_kernels {
    cn_body pack[2], convolve[2]; /* packing of the weights; convolution */
    cn_body weigh[2], merge[2];   /* the gradient of the weights; the sum of its parts */
} cn__taps_kernels;

#endif

/* depthwise_cpu.h: the CPU kernels of depthwise convolution. */
#ifndef CN_CONTRACT_DEPTHWISE_CPU_H
#define CN_CONTRACT_DEPTHWISE_CPU_H

#include "cairn/op.h"

/* For f32 and f64. A part is a unit of a cn__depthwise: a band of a plane. */
typedef struct cn__depthwise_kernels {
    cn_body convolve[2];
} cn__depthwise_kernels;

#endif

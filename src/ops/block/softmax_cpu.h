/* softmax_cpu.h: the CPU kernels of softmax, log_softmax and their backward operators. */
#ifndef CN_BLOCK_SOFTMAX_CPU_H
#define CN_BLOCK_SOFTMAX_CPU_H

#include "cairn/op.h"

/* Each for f32 and f64. */
typedef struct cn__softmax_kernels {
    void (*softmax[2])(const cn_kernel *k), (*softmax_backward[2])(const cn_kernel *k);
    void (*log_softmax[2])(const cn_kernel *k), (*log_softmax_backward[2])(const cn_kernel *k);
} cn__softmax_kernels;

#endif

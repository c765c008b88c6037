/* dropout_cpu.h: the CPU loops of dropout_mask. */
#ifndef CN_BLOCK_DROPOUT_CPU_H
#define CN_BLOCK_DROPOUT_CPU_H

#include "ops/loops.h"

typedef struct cn__dropout_kernels {
    cn__loops mask;
} cn__dropout_kernels;

#endif

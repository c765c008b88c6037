/* extremes_cpu.h: the reducers of max, min, argmax and argmin. */
#ifndef CN_REDUCE_EXTREMES_CPU_H
#define CN_REDUCE_EXTREMES_CPU_H

#include "ops/loops.h"

typedef struct cn__extremes_kernels {
    cn__reducers max, min, argmax, argmin;
} cn__extremes_kernels;

#endif

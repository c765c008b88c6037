/* folds_cpu.h: the reducers of sum and prod. */
#ifndef CN_REDUCE_FOLDS_CPU_H
#define CN_REDUCE_FOLDS_CPU_H

#include "ops/loops.h"

typedef struct cn__folds_kernels {
    cn__reducers sum, prod;
} cn__folds_kernels;

#endif

/* optim_cpu.h: the loops of the optimizer steps. */
#ifndef CN_OPTIM_OPTIM_CPU_H
#define CN_OPTIM_OPTIM_CPU_H

#include "ops/loops.h"

typedef struct cn__optim_kernels {
    cn__loops sgd_step, momentum_step;
    cn__loops adam_step, amsgrad_step;
    cn__loops moment_step, adamax_step, lion_step;
    cn__loops rmsprop_step, rmsprop_momentum_step, rmsprop_centered_step, rmsprop_centered_momentum_step;
    cn__loops adadelta_step;
} cn__optim_kernels;

#endif

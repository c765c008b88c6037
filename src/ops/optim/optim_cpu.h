/* optim_cpu.h: the loops of the optimizer steps. */
#ifndef CN_OPTIM_OPTIM_CPU_H
#define CN_OPTIM_OPTIM_CPU_H

#include "ops/loops.h"

CN__ROWS(optim)
CN__ROW(cn__loops, optim, sgd_step)
CN__ROW(cn__loops, optim, momentum_step)
CN__ROW(cn__loops, optim, adam_step)
CN__ROW(cn__loops, optim, amsgrad_step)
CN__ROW(cn__loops, optim, moment_step)
CN__ROW(cn__loops, optim, adamax_step)
CN__ROW(cn__loops, optim, lion_step)
CN__ROW(cn__loops, optim, rmsprop_step)
CN__ROW(cn__loops, optim, rmsprop_momentum_step)
CN__ROW(cn__loops, optim, rmsprop_centered_step)
CN__ROW(cn__loops, optim, rmsprop_centered_momentum_step)
CN__ROW(cn__loops, optim, adadelta_step)
CN__ROWS_END(optim)

#endif

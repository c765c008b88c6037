/* The loops of the optimizer steps; their formulas stand above the records, in sgd.c, adam.c, moment.c and rms.c. */
#include "ops/optim/optim_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/optim/optim.h"

#define TEMPLATE "ops/optim/sgd_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/adam_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/moment_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/rms_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

const cn__optim_kernels CN__FOR_ISA(cn__optim_kernels) = {
    .sgd_step = { LOOPS_REAL(sgd_step) },
    .momentum_step = { LOOPS_REAL(momentum_step) },
    .adam_step = { LOOPS_REAL(adam_step) },
    .amsgrad_step = { LOOPS_REAL(amsgrad_step) },
    .moment_step = { LOOPS_REAL(moment_step) },
    .adamax_step = { LOOPS_REAL(adamax_step) },
    .lion_step = { LOOPS_REAL(lion_step) },
    .rmsprop_step = { LOOPS_REAL(rmsprop_step) },
    .rmsprop_momentum_step = { LOOPS_REAL(rmsprop_momentum_step) },
    .rmsprop_centered_step = { LOOPS_REAL(rmsprop_centered_step) },
    .rmsprop_centered_momentum_step = { LOOPS_REAL(rmsprop_centered_momentum_step) },
    .adadelta_step = { LOOPS_REAL(adadelta_step) },
};

/* The loops of the optimizer steps. Their formulas are in sgd.c, adam.c, moment.c and rms.c. */
#include "ops/optim/optim_cpu.h"

#include "ops/map/elementary.h"
#include "ops/optim/optim.h"

/* Memory limits the speed of these loops: 512-bit vectors would gain nothing. */
#define STEP_TYPES CN__UP_TO_AVX2(CN__FLOAT_TYPES)
#if CN__ONLY_F32
#define STEP_LOOPS(n) 0
#else
#define STEP_LOOPS(n) [CN_F32] = n##_loop_f32, [CN_F64] = CN__F64_ENTRY(n##_loop_f64)
#endif

#define TEMPLATE "ops/optim/sgd_body.h"
#define TYPES    STEP_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/adam_body.h"
#define TYPES    STEP_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/moment_body.h"
#define TYPES    STEP_TYPES
#include "cpu/each_type.h"

#define TEMPLATE "ops/optim/rms_body.h"
#define TYPES    STEP_TYPES
#include "cpu/each_type.h"

CN__TABLE(optim)
CN__FILL(cn__loops, optim, sgd_step, STEP_LOOPS(sgd_step))
CN__FILL(cn__loops, optim, momentum_step, STEP_LOOPS(momentum_step))
CN__FILL(cn__loops, optim, adam_step, STEP_LOOPS(adam_step))
CN__FILL(cn__loops, optim, amsgrad_step, STEP_LOOPS(amsgrad_step))
CN__FILL(cn__loops, optim, moment_step, STEP_LOOPS(moment_step))
CN__FILL(cn__loops, optim, adamax_step, STEP_LOOPS(adamax_step))
CN__FILL(cn__loops, optim, lion_step, STEP_LOOPS(lion_step))
CN__FILL(cn__loops, optim, rmsprop_step, STEP_LOOPS(rmsprop_step))
CN__FILL(cn__loops, optim, rmsprop_momentum_step, STEP_LOOPS(rmsprop_momentum_step))
CN__FILL(cn__loops, optim, rmsprop_centered_step, STEP_LOOPS(rmsprop_centered_step))
CN__FILL(cn__loops, optim, rmsprop_centered_momentum_step, STEP_LOOPS(rmsprop_centered_momentum_step))
CN__FILL(cn__loops, optim, adadelta_step, STEP_LOOPS(adadelta_step))
CN__TABLE_END

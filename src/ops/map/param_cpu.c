/* The loops of the elementwise operators of one operand and plain numbers (param.def). */
#include "ops/map/param_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/special.h"
#include "ops/map/whole.h"

#define TEMPLATE "ops/map/param_body.h"
#define TYPES    MAP_TYPES
#include "cpu/each_type.h"

#define PARAM(name, class, cost, ...) .name = { LOOPS_##cost(class, name) },
const cn__param_kernels CN__FOR_ISA(cn__param_kernels) = {
#include "ops/map/param.def"
};
#undef PARAM

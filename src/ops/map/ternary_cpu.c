/* The loops of the elementwise operators of three operands (ternary.def). */
#include "ops/map/ternary_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/whole.h"

#define TEMPLATE "ops/map/ternary_body.h"
#define TYPES    MAP_TYPES
#include "cpu/each_type.h"

#define TERNARY(name, class, cost, ...) .name = { LOOPS_##cost(class, name) },
const cn__ternary_kernels CN__FOR_ISA(cn__ternary_kernels) = {
#include "ops/map/ternary.def"
};
#undef TERNARY

/* The loops of the elementwise operators of one operand and plain numbers (param.def). */
#include "ops/map/param_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/special.h"
#include "ops/map/whole.h"

#define TEMPLATE "ops/map/param_body.h"
#define TYPES    MAP_TYPES
#include "cpu/each_type.h"

#define PARAM(name, class, cost, ...) CN__FILL(cn__loops, param, name, LOOPS_##cost(class, name))
CN__TABLE(param)
#include "ops/map/param.def"
CN__TABLE_END
#undef PARAM

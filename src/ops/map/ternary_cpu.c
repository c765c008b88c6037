/* The loops of the elementwise operators of three operands (ternary.def). */
#include "ops/map/ternary_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/whole.h"

#define TEMPLATE "ops/map/ternary_body.h"
#define TYPES    MAP_TYPES
#include "cpu/each_type.h"

#define TERNARY(name, class, cost, ...) CN__FILL(cn__loops, ternary, name, LOOPS_##cost(class, name))
CN__TABLE(ternary)
#include "ops/map/ternary.def"
CN__TABLE_END
#undef TERNARY

/* The loops of the elementwise operators of two operands (binary.def). */
#include "ops/map/binary_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/whole.h"

#define TEMPLATE "ops/map/binary_body.h"
#define TYPES    MAP_TYPES
#include "cpu/each_type.h"

#define BINARY(name, class, cost, ...) CN__FILL(cn__loops, binary, name, LOOPS_##cost(class, name))
CN__TABLE(binary)
#include "ops/map/binary.def"
CN__TABLE_END
#undef BINARY

/* binary_cpu.h: the loops of the operators of binary.def. */
#ifndef CN_MAP_BINARY_CPU_H
#define CN_MAP_BINARY_CPU_H

#include "ops/loops.h"

CN__ROWS(binary)
#define BINARY(name, ...) CN__ROW(cn__loops, binary, name)
#include "ops/map/binary.def"
#undef BINARY
CN__ROWS_END(binary)

#endif

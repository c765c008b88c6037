/* unary_cpu.h: the loops of the operators of unary.def. */
#ifndef CN_MAP_UNARY_CPU_H
#define CN_MAP_UNARY_CPU_H

#include "ops/loops.h"

CN__ROWS(unary)
#define UNARY(name, ...) CN__ROW(cn__loops, unary, name)
#include "ops/map/unary.def"
#undef UNARY
CN__ROWS_END(unary)

#endif

/* ternary_cpu.h: the loops of the operators of ternary.def. */
#ifndef CN_MAP_TERNARY_CPU_H
#define CN_MAP_TERNARY_CPU_H

#include "ops/loops.h"

CN__ROWS(ternary)
#define TERNARY(name, ...) CN__ROW(cn__loops, ternary, name)
#include "ops/map/ternary.def"
#undef TERNARY
CN__ROWS_END(ternary)

#endif

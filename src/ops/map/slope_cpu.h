/* slope_cpu.h: the loops of the operators of slope.def. */
#ifndef CN_MAP_SLOPE_CPU_H
#define CN_MAP_SLOPE_CPU_H

#include "ops/loops.h"

CN__ROWS(slope)
#define SLOPE(name, ...) CN__ROW(cn__loops, slope, name)
#include "ops/map/slope.def"
#undef SLOPE
CN__ROWS_END(slope)

#endif

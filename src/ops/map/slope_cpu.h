/* slope_cpu.h: the loops of the operators of slope.def. */
#ifndef CN_MAP_SLOPE_CPU_H
#define CN_MAP_SLOPE_CPU_H

#include "ops/loops.h"

typedef struct cn__slope_kernels {
#define SLOPE(name, ...) cn__loops name;
#include "ops/map/slope.def"
#undef SLOPE
} cn__slope_kernels;

#endif

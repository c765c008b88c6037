/* ternary_cpu.h: the loops of the operators of ternary.def. */
#ifndef CN_MAP_TERNARY_CPU_H
#define CN_MAP_TERNARY_CPU_H

#include "ops/loops.h"

typedef struct cn__ternary_kernels {
#define TERNARY(name, ...) cn__loops name;
#include "ops/map/ternary.def"
#undef TERNARY
} cn__ternary_kernels;

#endif

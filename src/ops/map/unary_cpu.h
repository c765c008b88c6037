/* unary_cpu.h: the loops of the operators of unary.def. */
#ifndef CN_MAP_UNARY_CPU_H
#define CN_MAP_UNARY_CPU_H

#include "ops/loops.h"

typedef struct cn__unary_kernels {
#define UNARY(name, ...) cn__loops name;
#include "ops/map/unary.def"
#undef UNARY
} cn__unary_kernels;

#endif

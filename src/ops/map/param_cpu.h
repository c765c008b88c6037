/* param_cpu.h: the loops of the operators of param.def. */
#ifndef CN_MAP_PARAM_CPU_H
#define CN_MAP_PARAM_CPU_H

#include "ops/loops.h"

typedef struct cn__param_kernels {
#define PARAM(name, ...) cn__loops name;
#include "ops/map/param.def"
#undef PARAM
} cn__param_kernels;

#endif

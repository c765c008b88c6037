/* param_cpu.h: the loops of the operators of param.def. */
#ifndef CN_MAP_PARAM_CPU_H
#define CN_MAP_PARAM_CPU_H

#include "ops/loops.h"

CN__ROWS(param)
#define PARAM(name, ...) CN__ROW(cn__loops, param, name)
#include "ops/map/param.def"
#undef PARAM
CN__ROWS_END(param)

#endif

/* select_cpu.h: the loops of where. */
#ifndef CN_MAP_SELECT_CPU_H
#define CN_MAP_SELECT_CPU_H

#include "ops/loops.h"

typedef struct cn__select_kernels {
    cn__loops where;
} cn__select_kernels;

#endif

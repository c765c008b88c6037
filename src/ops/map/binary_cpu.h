/* binary_cpu.h: the loops of the operators of binary.def. */
#ifndef CN_MAP_BINARY_CPU_H
#define CN_MAP_BINARY_CPU_H

#include "ops/loops.h"

typedef struct cn__binary_kernels {
#define BINARY(name, ...) cn__loops name;
#include "ops/map/binary.def"
#undef BINARY
} cn__binary_kernels;

#endif

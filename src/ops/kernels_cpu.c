/* The list of kernel tables of one instruction set, from which kernels.c fills the context's table. */
#include "cpu/isa.h"
#include "ops/kernels.h"

#define CN__KERNELS(name) extern const cn__##name##_kernels CN__FOR_ISA(cn__##name##_kernels);
#include "ops/kernels.def"
#undef CN__KERNELS

extern const void *const CN__FOR_ISA(cn__kernel_tables)[];
const void *const CN__FOR_ISA(cn__kernel_tables)[] = {
#define CN__KERNELS(name) &CN__FOR_ISA(cn__##name##_kernels),
#include "ops/kernels.def"
#undef CN__KERNELS
};

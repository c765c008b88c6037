/* cpu/processor.h: the instruction sets that kernels are compiled for, and which of them this processor has. */
#ifndef CN_CPU_PROCESSOR_H
#define CN_CPU_PROCESSOR_H

/* From slow to fast: tables of kernels are filled in this order, each over the one before. On processors with one
   instruction set (NEON, WASM SIMD), the baseline is that instruction set. */
typedef enum cn__isa { CN__BASELINE, CN__AVX2, CN__AVX512, CN__ISAS } cn__isa;

const char *cn__isa_name(cn__isa isa);

/* The fastest instruction set that the processor has and the library was compiled for. */
cn__isa cn__isa_best(void);

/* The instruction set called `name`, or CN__ISAS if no instruction set has this name. */
cn__isa cn__isa_named(const char *name);

#endif

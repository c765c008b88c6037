/* cpu/processor.h: which instruction sets there are, and which one this processor may use. */
#ifndef CN_CPU_PROCESSOR_H
#define CN_CPU_PROCESSOR_H

/* In the order in which tables are laid over one another. On a processor that has just one of them (NEON, WASM SIMD),
   that one is the baseline. */
typedef enum cn__isa { CN__BASELINE, CN__AVX2, CN__AVX512, CN__ISAS } cn__isa;

const char *cn__isa_name(cn__isa isa);

/* The fastest instruction set that the processor has and the library was compiled for. */
cn__isa cn__isa_best(void);

/* The instruction set called `name`, or CN__ISAS if there is none of this name. */
cn__isa cn__isa_named(const char *name);

#endif

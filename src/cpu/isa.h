/* cpu/isa.h: what a kernel file knows of the instruction set it is compiled for.

   A kernel file is an ordinary C file whose name ends in _cpu.c. The build compiles it once for each instruction set
   (cmake/kernels.cmake lists them with their flags). Each object defines one table of pointers, named by CN__FOR_ISA:

       const cn__softmax_kernels CN__FOR_ISA(cn__softmax_kernels) = { .forward = { softmax_f32, softmax_f64 }, ... };

   When a context opens, it fills its own table (ops/kernels.h) with the portable entries and then writes the entries of
   every faster instruction set that the processor has over them. An entry that is NULL leaves the entry below as it is:
   a kernel file may leave out, for some instruction sets, what is not worth another copy.

   Compilers do not fuse multiplications and additions by themselves (-ffp-contract=off). Only the elementary functions
   do, where CN__FUSED is true. So on one machine and with one instruction set, a value always has the same bits. */
#ifndef CN_CPU_ISA_H
#define CN_CPU_ISA_H

#define CN__PASTE_(a, b) a##_##b
#define CN__PASTE(a, b)  CN__PASTE_(a, b)

/* The name of an object for this instruction set: cn__softmax_kernels_avx2. CN__ISA comes from the build. */
#define CN__FOR_ISA(name) CN__PASTE(name, CN__ISA)

/* Whether the instruction set multiplies and adds in one instruction. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define CN__FUSED true
#else
#define CN__FUSED false
#endif

/* Iterations do not depend on each other: a result may share memory with an operand, but element for element. */
#if defined(__wasm__) /* for f32 alone: other types are compiled for size (each_type.h). TYPE: outside of a template */
#define CN__INDEPENDENT     CN__PASTE(CN__INDEPENDENT, TYPE)
#define CN__INDEPENDENT_f32 _Pragma("clang loop vectorize(assume_safety)")
#define CN__INDEPENDENT_f64
#define CN__INDEPENDENT_u8
#define CN__INDEPENDENT_i8
#define CN__INDEPENDENT_i16
#define CN__INDEPENDENT_i32
#define CN__INDEPENDENT_i64
#define CN__INDEPENDENT_b8
#define CN__INDEPENDENT_TYPE
#elif defined(__clang__) || !defined(__GNUC__)
#define CN__INDEPENDENT
#else
#define CN__INDEPENDENT _Pragma("GCC ivdep")
#endif

/* In front of a loop with few iterations, whose number is constant after inlining: all of them are written out. clang
   writes out early enough for an array to become registers only if it is told that all are wanted. */
#if defined(__clang__)
#define CN__UNROLL _Pragma("clang loop unroll(full)")
#else
#define CN__UNROLL _Pragma("GCC unroll 24")
#endif

#define CN__INLINE static inline __attribute__((always_inline))

/* 1 in the baseline, which has all entries. */
#define CN__IS_BASELINE_baseline 1
#define CN__IS_BASELINE          CN__PASTE(CN__IS_BASELINE, CN__ISA)

/* 1 for AVX-512, where only f32 kernels get a copy of their own (each_type.h). */
#define CN__ONLY_F32_avx512 1
#define CN__ONLY_F32        CN__PASTE(CN__ONLY_F32, CN__ISA)

/* 1 for the page's rooms (cmake/web.cmake), which never compute in f64. */
#define CN__NO_F64_rooms 1
#define CN__NO_F64       CN__PASTE(CN__NO_F64, CN__ISA)

/* An entry of a table, or NULL where the instruction set has no copy of its own. */
#if CN__ONLY_F32
#define CN__UP_TO_AVX2_ENTRY(f) 0
#else
#define CN__UP_TO_AVX2_ENTRY(f) f
#endif
#if CN__IS_BASELINE
#define CN__BASELINE_ENTRY(f) f
#else
#define CN__BASELINE_ENTRY(f) 0
#endif

#if CN__NO_F64
#define CN__F64_ENTRY(f) 0
#else
#define CN__F64_ENTRY(f) f
#endif

/* A table's entries for f32 and f64: TYPES is CN__FLOAT_TYPES. */
#define CN__F32_F64(f) { f##_f32, CN__UP_TO_AVX2_ENTRY(CN__F64_ENTRY(f##_f64)) }

/* The same where f64 is compiled for the baseline alone, because it is seldom used or because faster vectors would not
   help it: most of its time passes in exp or log of the C library. TYPES is CN__F32_TYPE | CN__COLD(CN__F64_TYPE). */
#define CN__F32_COLD_F64(f) { f##_f32, CN__BASELINE_ENTRY(f##_f64) }

/* The same where 512-bit vectors are not faster: TYPES is CN__UP_TO_AVX2(CN__FLOAT_TYPES). */
#define CN__F32_F64_UP_TO_AVX2(f) { CN__UP_TO_AVX2_ENTRY(f##_f32), CN__UP_TO_AVX2_ENTRY(CN__F64_ENTRY(f##_f64)) }

#endif

/* The kernels of matrix products. This file defines the register tile and the vector instructions of each instruction
   set; gemm_body.h holds the code. */
#include "cpu/gemm_cpu.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
/* 32 registers hold 24 accumulators, two vectors of B and one of A. */
#define BYTES             64
#define ROWS              12
#define VECTORS           2
#define LOW_f32           0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_f32          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_f64           0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_f64          4, 12, 5, 13, 6, 14, 7, 15
#define FMA_f32(x, y, z)  _mm512_fmadd_ps(x, y, z)
#define FMA_f64(x, y, z)  _mm512_fmadd_pd(x, y, z)
#elif defined(__AVX2__) && defined(__FMA__)
/* 16 registers hold 12 accumulators, two vectors of B and one of A. */
#define BYTES             32
#define ROWS              6
#define VECTORS           2
#define LOW_f32           0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_f32          4, 12, 5, 13, 6, 14, 7, 15
#define LOW_f64           0, 4, 1, 5
#define HIGH_f64          2, 6, 3, 7
#define FMA_f32(x, y, z)  _mm256_fmadd_ps(x, y, z)
#define FMA_f64(x, y, z)  _mm256_fmadd_pd(x, y, z)
#else
#define BYTES             16
#define LOW_f32           0, 4, 1, 5
#define HIGH_f32          2, 6, 3, 7
#define LOW_f64           0, 2
#define HIGH_f64          1, 3
#if defined(__aarch64__)
#define ROWS              8
#define VECTORS           3
#define FMA_f32(x, y, z)  vfmaq_f32(z, x, y)
#define FMA_f64(x, y, z)  vfmaq_f64(z, x, y)
#elif defined(__wasm__)
/* A browser's compiler has 15 registers. 8 accumulators, two vectors of B, one of A and one product leave it some; with
   more, or with k unrolled, it spills. */
#define ROWS              4
#define VECTORS           2
#define UNROLLED          1
#define FMA_f32(x, y, z)  ((x) * (y) + (z))
#define FMA_f64(x, y, z)  ((x) * (y) + (z))
#else
#define ROWS              6
#define VECTORS           2
#define FMA_f32(x, y, z)  ((x) * (y) + (z))
#define FMA_f64(x, y, z)  ((x) * (y) + (z))
#endif
#endif

#define TEMPLATE "cpu/gemm_body.h"
#define TYPES    CN__FLOAT_TYPES | CN__F64_ALWAYS
#include "cpu/each_type.h"

const cn__gemm_kernels CN__FOR_ISA(cn__gemm_kernels) = { { &kernel_f32, CN__F64_ENTRY(&kernel_f64) } };

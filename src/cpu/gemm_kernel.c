/* gemm_kernel.c: the arithmetic of gemm_body.h for each element type and instruction set, and the choice among them. */
#include "gemm_kernel.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Any processor: vectors of 16 bytes. 16 registers hold 12 accumulators, two of B and one of A; aarch64 has 32. */
#if defined(__aarch64__)
#define PLAIN_ROWS         8
#define PLAIN_VECTORS      3
#define PLAIN_F32(x, y, z) vfmaq_f32(z, x, y)
#define PLAIN_F64(x, y, z) vfmaq_f64(z, x, y)
#else
#define PLAIN_ROWS         6
#define PLAIN_VECTORS      2
#define PLAIN_F32(x, y, z) ((x) * (y) + (z))
#define PLAIN_F64(x, y, z) ((x) * (y) + (z))
#endif

#define SCALAR  float
#define BYTES   16
#define ROWS    PLAIN_ROWS
#define VECTORS PLAIN_VECTORS
#define LOW     0, 4, 1, 5
#define HIGH    2, 6, 3, 7
#define TARGET
#define FMA(x, y, z) PLAIN_F32(x, y, z)
#define NAME(x)      x##_f32
#include "gemm_body.h"

#define SCALAR  double
#define BYTES   16
#define ROWS    PLAIN_ROWS
#define VECTORS PLAIN_VECTORS
#define LOW     0, 2
#define HIGH    1, 3
#define TARGET
#define FMA(x, y, z) PLAIN_F64(x, y, z)
#define NAME(x)      x##_f64
#include "gemm_body.h"

#if defined(__x86_64__)
#define SCALAR       float
#define BYTES        32
#define ROWS         6
#define VECTORS      2
#define LOW          0, 8, 1, 9, 2, 10, 3, 11
#define HIGH         4, 12, 5, 13, 6, 14, 7, 15
#define TARGET       __attribute__((target("avx2,fma")))
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#define NAME(x)      x##_f32_avx2
#include "gemm_body.h"

#define SCALAR       double
#define BYTES        32
#define ROWS         6
#define VECTORS      2
#define LOW          0, 4, 1, 5
#define HIGH         2, 6, 3, 7
#define TARGET       __attribute__((target("avx2,fma")))
#define FMA(x, y, z) _mm256_fmadd_pd(x, y, z)
#define NAME(x)      x##_f64_avx2
#include "gemm_body.h"

#define SCALAR       float
#define BYTES        64
#define ROWS         12
#define VECTORS      2
#define LOW          0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define TARGET       __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
#define NAME(x)      x##_f32_avx512
#include "gemm_body.h"

#define SCALAR       double
#define BYTES        64
#define ROWS         12
#define VECTORS      2
#define LOW          0, 8, 1, 9, 2, 10, 3, 11
#define HIGH         4, 12, 5, 13, 6, 14, 7, 15
#define TARGET       __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#define FMA(x, y, z) _mm512_fmadd_pd(x, y, z)
#define NAME(x)      x##_f64_avx512
#include "gemm_body.h"
#endif

const cn__gemm_kernel *cn__gemm_kernel_for(bool f64)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return f64 ? &kernel_f64_avx512 : &kernel_f32_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return f64 ? &kernel_f64_avx2 : &kernel_f32_avx2;
#endif
    return f64 ? &kernel_f64 : &kernel_f32;
}

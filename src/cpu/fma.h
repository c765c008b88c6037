/* cpu/fma.h: x·y + z for vectors, rounded once where the instruction set has such an instruction. BYTES is the size of a
   vector: 32 also where there are larger ones. */
#ifndef CN_CPU_FMA_H
#define CN_CPU_FMA_H

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define BYTES            32
#define FMA_f32(x, y, z) _mm256_fmadd_ps(x, y, z)
#define FMA_f64(x, y, z) _mm256_fmadd_pd(x, y, z)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define BYTES            16
#define FMA_f32(x, y, z) vfmaq_f32(z, x, y)
#define FMA_f64(x, y, z) vfmaq_f64(z, x, y)
#else
#define BYTES            16
#define FMA_f32(x, y, z) ((x) * (y) + (z))
#define FMA_f64(x, y, z) ((x) * (y) + (z))
#endif

#endif

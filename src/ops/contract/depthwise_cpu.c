/* The CPU kernels of depthwise convolution (see depthwise.h), with the vector size of each instruction set. */
#include "ops/contract/depthwise_cpu.h"

#include <string.h>

#include "cpu/isa.h"
#include "ops/contract/depthwise.h"

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

/* Nothing for AVX-512: a tap reads a vector for each multiplication, and two of 32 bytes are read as fast as one of
   64. */
#define TEMPLATE "ops/contract/depthwise_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__FLOAT_TYPES)
#include "cpu/each_type.h"

const cn__depthwise_kernels CN__FOR_ISA(cn__depthwise_kernels) = { .convolve = CN__F32_F64_UP_TO_AVX2(convolve) };

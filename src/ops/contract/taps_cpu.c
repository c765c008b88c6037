/* The kernels of convolution by taps (taps.h): the vectors of each instruction set. */
#include "ops/contract/taps_cpu.h"

#include <string.h>

#include "ops/contract/taps_cells.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define BYTES            32
#define FMA_f32(x, y, z) _mm256_fmadd_ps(x, y, z)
#define FMA_f64(x, y, z) _mm256_fmadd_pd(x, y, z)
#else
#define BYTES            16
#define FMA_f32(x, y, z) ((x) * (y) + (z))
#define FMA_f64(x, y, z) ((x) * (y) + (z))
#endif

#if !CN__ONLY_F32 /* longer vectors would sum gradients of weights in another order */
#define TEMPLATE "ops/contract/taps_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"
#endif

const cn__taps_kernels CN__FOR_ISA(cn__taps_kernels) = {
#if !CN__ONLY_F32
    .pack = CN__F32_F64(pack),
    .convolve = CN__F32_F64(convolve),
    .weigh = CN__F32_F64(weigh),
    .merge = CN__F32_F64(merge),
#else
    .pack = { 0 },
#endif
};

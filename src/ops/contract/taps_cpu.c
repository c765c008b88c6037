/* The CPU kernels of convolution by taps (see taps.h), with the vector size of each instruction set. */
#include "ops/contract/taps_cpu.h"

#include <string.h>

#include "cpu/fma.h"
#include "ops/contract/taps_cells.h"

/* Nothing for AVX-512: vectors of 64 bytes would sum the gradients of weights in another order. */
#define TEMPLATE "ops/contract/taps_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__FLOAT_TYPES)
#include "cpu/each_type.h"

const cn__taps_kernels CN__FOR_ISA(cn__taps_kernels) = {
    .pack = CN__F32_F64_UP_TO_AVX2(pack),
    .convolve = CN__F32_F64_UP_TO_AVX2(convolve),
    .weigh = CN__F32_F64_UP_TO_AVX2(weigh),
    .merge = CN__F32_F64_UP_TO_AVX2(merge),
};

/* The CPU kernels of max pooling and its backward operator. */
#include "ops/window/max_pool_cpu.h"

#include <math.h>

#include "cpu/isa.h"
#include "cpu/kernel.h"
#include "ops/window/window.h"

enum { TILE = 64 }; /* windows that are processed at a time */
typedef enum way { EACH, TOGETHER, SQUARES } way; /* how windows are processed */

#define TEMPLATE "ops/window/max_pool_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__F32_TYPE) | CN__COLD(CN__F64_TYPE | CN__WHOLE_TYPES) /* 512-bit vectors are slower */
#include "cpu/each_type.h"

const cn__max_pool_kernels CN__FOR_ISA(cn__max_pool_kernels) = {
    .forward = { [CN_F32] = CN__UP_TO_AVX2_ENTRY(max_f32),
                 [CN_F64] = CN__BASELINE_ENTRY(max_f64),
                 [CN_U8] = CN__BASELINE_ENTRY(max_u8),
                 [CN_I8] = CN__BASELINE_ENTRY(max_i8),
                 [CN_I16] = CN__BASELINE_ENTRY(max_i16),
                 [CN_I32] = CN__BASELINE_ENTRY(max_i32),
                 [CN_I64] = CN__BASELINE_ENTRY(max_i64) },
    .backward = { CN__UP_TO_AVX2_ENTRY(max_backward_f32), CN__BASELINE_ENTRY(max_backward_f64) },
};

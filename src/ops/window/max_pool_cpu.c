/* The kernels of max pooling and its backward. */
#include "ops/window/max_pool_cpu.h"

#include <math.h>

#include "cpu/isa.h"
#include "cpu/kernel.h"
#include "ops/window/window.h"

enum { TILE = 64 }; /* windows worked on side by side */

#define TEMPLATE "ops/window/max_pool_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__max_pool_kernels CN__FOR_ISA(cn__max_pool_kernels) = {
    .forward = CN__F32_COLD_F64(max),
    .backward = CN__F32_COLD_F64(max_backward),
};

/* The CPU kernels of recurrent layers and their backward operator. */
#include "ops/block/recurrent_cpu.h"

#include "ops/block/recurrent.h"
#include "ops/map/elementary.h"

#define TEMPLATE "ops/block/recurrent_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__recurrent_kernels CN__FOR_ISA(cn__recurrent_kernels) = {
    .forward = CN__F32_COLD_F64(forward),
    .backward = CN__F32_COLD_F64(backward),
};

/* The CPU kernels of ctc_loss and its backward operator. */
#include "ops/block/ctc_cpu.h"

#include "ops/block/block.h"
#include "ops/map/elementary.h"

#define TEMPLATE "ops/block/ctc_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__ctc_kernels CN__FOR_ISA(cn__ctc_kernels) = {
    .forward = CN__F32_COLD_F64(forward),
    .backward = CN__F32_COLD_F64(backward),
};

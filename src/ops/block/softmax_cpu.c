/* The CPU kernels of softmax, log_softmax and their backward operators. */
#include "ops/block/softmax_cpu.h"

#include "ops/block/block.h"
#include "ops/map/elementary.h"

#define TEMPLATE "ops/block/softmax_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__softmax_kernels CN__FOR_ISA(cn__softmax_kernels) = {
    .softmax = CN__F32_COLD_F64(softmax),
    .softmax_backward = CN__F32_COLD_F64(softmax_backward),
    .log_softmax = CN__F32_COLD_F64(log_softmax),
    .log_softmax_backward = CN__F32_COLD_F64(log_softmax_backward),
};

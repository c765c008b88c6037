/* The CPU kernels of layer_norm, rms_norm and their backward operators. */
#include "ops/block/layer_norm_cpu.h"

#include "ops/block/block.h"
#include "ops/map/elementary.h"

/* Rows of a block: shares of dweight and dbias are summed in T within a block, in f64 over the blocks. */
enum { BLOCK_ROWS = 32 };

#define TEMPLATE "ops/block/layer_norm_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

const cn__layer_norm_kernels CN__FOR_ISA(cn__layer_norm_kernels) = {
    .forward = CN__F32_F64(forward),
    .backward = CN__F32_F64(backward_parts),
    .merge = CN__F32_F64(merge_parts),
};

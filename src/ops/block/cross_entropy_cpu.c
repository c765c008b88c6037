/* The CPU kernels of cross_entropy and its backward operator. */
#include "ops/block/cross_entropy_cpu.h"

#include "ops/map/elementary.h"

/* The number of the first sample of a block of columns. */
static int64_t sample_of(const cn__cross_entropy *l, int64_t part)
{
    return part / l->c.blocks * l->c.inner + part % l->c.blocks * CN__COLUMNS;
}

#define TEMPLATE "ops/block/cross_entropy_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__cross_entropy_kernels CN__FOR_ISA(cn__cross_entropy_kernels) = {
    .forward = CN__F32_COLD_F64(forward),
    .backward = CN__F32_COLD_F64(backward),
};

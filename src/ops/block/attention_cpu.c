/* The CPU kernels of scaled_dot_product_attention and its backward operator. */
#include "ops/block/attention_cpu.h"

#include "core/dtype.h"
#include "ops/map/elementary.h"

static void *product_scratch(const cn__attention *a, int thread)
{
    return a->gemm_scratch + (size_t)thread * a->gemm_step;
}

static const char *mask_at(const cn__attention *a, int64_t head, int64_t i)
{
    int64_t at = i * a->mask_row;
    for (int d = a->outer - 1; d >= 0; head /= a->size[d--]) at += head % a->size[d] * a->mask_stride[d];
    return a->mask + at * (int64_t)cn_dtype_size(a->mask_dtype);
}

/* The offset of a head; heads are counted over all axes but the last `own`. */
static int64_t head_offset(const cn_array *x, int64_t head, int own)
{
    int64_t at = 0;
    for (int d = x->ndim - own - 1; d >= 0; head /= x->shape[d--]) at += head % x->shape[d] * x->stride[d];
    return at;
}

#define TEMPLATE "ops/block/attention_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__attention_kernels CN__FOR_ISA(cn__attention_kernels) = {
    .forward = CN__F32_COLD_F64(forward),
    .backward = CN__F32_COLD_F64(backward),
};

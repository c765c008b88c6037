/* The CPU kernel of cached_attention. */
#include "ops/block/cached_attention_cpu.h"

#include "ops/block/block.h"
#include "ops/map/elementary.h"

#define TEMPLATE "ops/block/cached_attention_body.h"
#define TYPES    CN__F32_TYPE | CN__COLD(CN__F64_TYPE)
#include "cpu/each_type.h"

const cn__cached_attention_kernels CN__FOR_ISA(cn__cached_attention_kernels) = { .cached = CN__F32_COLD_F64(cached) };

/* cached_attention_cpu.h: the CPU kernel of cached_attention. */
#ifndef CN_BLOCK_CACHED_ATTENTION_CPU_H
#define CN_BLOCK_CACHED_ATTENTION_CPU_H

#include "cairn/op.h"
#include "cpu/gemm.h"

enum { CN__CACHED_ROWS = 48 }; /* query rows of a block */

/* One call: sizes and scratch. */
typedef struct cn__cached {
    int64_t batch, t, heads, group, e; /* group: query heads for each key head */
    int64_t used, blocks, ld;          /* ld: elements from one row of scores to the next */
    double scale;
    const cn__gemm_kernel *gemm;
    char *scratch, *gemm_scratch;
    size_t step, gemm_step; /* bytes a thread */
} cn__cached;

/* For f32 and f64. A part is a block of query rows. */
typedef struct cn__cached_attention_kernels {
    cn_body cached[2];
} cn__cached_attention_kernels;

#endif

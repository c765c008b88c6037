/* attention_cpu.h: the CPU kernels of scaled_dot_product_attention and its backward operator. */
#ifndef CN_BLOCK_ATTENTION_CPU_H
#define CN_BLOCK_ATTENTION_CPU_H

#include "cpu/gemm.h"
#include "ops/block/block.h"

enum {
    CN__ATTENTION_ROWS = 48,    /* query rows of a block: a multiple of the tiles of the matrix product */
    CN__ATTENTION_PADDING = 16, /* loops over rows of scores run over multiples of this many elements */
};

/* One call: sizes, mask, and scratch. */
typedef struct cn__attention {
    int64_t heads, kv_heads, group; /* of the whole batch; group: query heads for each key head */
    int64_t tq, tk, e, ev;
    int64_t blocks, ld; /* blocks: of query rows, a head; ld: elements from one row of scores to the next */
    bool causal;
    double scale;
    cn__dropout drop;
    const char *mask; /* NULL: none */
    cn_dtype mask_dtype;
    int outer;                                                                /* axes before Tq */
    int64_t size[CN_MAX_DIMS], mask_stride[CN_MAX_DIMS], mask_row, mask_step; /* strides 0 where broadcast */
    const cn__gemm_kernel *gemm;
    char *scratch, *gemm_scratch, *packed;
    size_t scratch_step, gemm_step, packed_step; /* bytes a thread; packed_step 0: nothing is packed */
} cn__attention;

/* How many keys query i sees. */
static inline int64_t cn__keys_seen(const cn__attention *a, int64_t i)
{
    return a->causal && i + 1 < a->tk ? i + 1 : a->tk;
}

static inline int64_t cn__attention_padded(int64_t n)
{
    return (n + CN__ATTENTION_PADDING - 1) / CN__ATTENTION_PADDING * CN__ATTENTION_PADDING;
}

/* Each for f32 and f64. A part is a block of query rows (forward), a key head (backward). */
typedef struct cn__attention_kernels {
    cn_body forward[2], backward[2];
} cn__attention_kernels;

#endif

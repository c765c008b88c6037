/* attention_cpu.h: the kernels of scaled_dot_product_attention and its backward. */
#ifndef CN_BLOCK_ATTENTION_CPU_H
#define CN_BLOCK_ATTENTION_CPU_H

#include "cpu/gemm.h"
#include "ops/block/block.h"

enum {
    CN__ATTENTION_ROWS = 48,    /* query rows whose scores are in scratch at a time: whole tiles of the product */
    CN__ATTENTION_PADDING = 16, /* rows of scores are worked on in such pieces */
};

/* What a call works on. */
typedef struct cn__attention {
    int64_t heads, kv_heads, group; /* over the whole batch; group: query heads a key head */
    int64_t tq, tk, e, ev;
    int64_t blocks, ld; /* of query rows a head; elements from one row of scores to the next */
    bool causal;
    double scale;
    cn__dropout drop;
    const char *mask; /* NULL: none */
    cn_dtype mask_dtype;
    int outer;                                                                /* axes before Tq */
    int64_t size[CN_MAX_DIMS], mask_stride[CN_MAX_DIMS], mask_row, mask_step; /* strides 0 where broadcast */
    const cn__gemm_kernel *gemm;
    char *scratch, *gemm_scratch, *packed;
    size_t scratch_step, gemm_step, packed_step; /* of a thread; packed_step 0: nothing is packed */
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

/* Each for f32 and f64: forward over blocks of query rows, backward over heads of keys. */
typedef struct cn__attention_kernels {
    cn_body forward[2], backward[2];
} cn__attention_kernels;

#endif

/* The CPU loops of dropout_mask. */
#include "ops/block/dropout_cpu.h"

#include "cpu/random_words.h"
#include "ops/block/block.h"

/* Nothing for AVX-512: random words take most of the time. */
#define TEMPLATE "ops/block/dropout_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__FLOAT_TYPES)
#include "cpu/each_type.h"

#if !CN__ONLY_F32
static void mask_f32(const cn_loop *l)
{
    const cn__dropout d = cn__dropout_of_args(l->args);
    dropout_fill_f32(l->out, (uint64_t)l->start, l->n, &d);
}
#endif

#if !CN__ONLY_F32 && !CN__NO_F64
static void mask_f64(const cn_loop *l)
{
    const cn__dropout d = cn__dropout_of_args(l->args);
    dropout_fill_f64(l->out, (uint64_t)l->start, l->n, &d);
}
#endif

#if CN__ONLY_F32
#define MASK_LOOPS 0
#else
#define MASK_LOOPS [CN_F32] = mask_f32, [CN_F64] = CN__F64_ENTRY(mask_f64)
#endif

CN__TABLE(dropout)
CN__FILL(cn__loops, dropout, mask, MASK_LOOPS)
CN__TABLE_END

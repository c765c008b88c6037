/* randperm.c: a random order (Fisher and Yates): each place, from the last on, swaps with one not after it. */
#include "create.h"
#include "core/philox.h"
#include "draw.h"

static bool infer(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    return a->ndim == 1 ? cn__infer_created(i) : cn_infer_fail(i, CN_BAD_SHAPE, "a permutation has 1 dimension");
}

/* Place i draws words 2i and 2i + 1. */
static void cpu(const cn_kernel *k)
{
    int64_t *out = k->out[0].data, n = k->out[0].numel;
    uint32_t words[2 * CN__PIECE];
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t end = n, begin; end > 0; end = begin) {
        begin = end > CN__PIECE ? end - CN__PIECE : 0;
        cn__random_words(k->args[0].u, k->args[1].u, 2 * (uint64_t)begin, 2 * (end - begin), words);
        for (int64_t i = end - 1; i >= begin; i--) {
            const uint32_t *w = words + 2 * (i - begin);
            int64_t j = (int64_t)cn__below((uint64_t)i + 1, w[0], w[1]), swap = out[i];
            out[i] = out[j];
            out[j] = swap;
        }
    }
}

#define CASE(n, seed) { .attrs = CN__SHAPE(CN_I64, n), .args = { { .u = seed }, { .u = 3 } } }

const cn_op cn__op_randperm = {
    .name = "randperm", .doc = "The numbers from 0 to n - 1 in random order.", .kind = CN_SORT,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_BIT(CN_I64), .attr_size = sizeof(cn__shape_attrs), .infer = infer, .cpu = cpu,
    .no_grad = "it has no operands",
    CN_CASES(CASE(7, 1), CASE(0, 2), CASE(1, 3), CASE(4097, 4)),
};

cn_tensor *cn_randperm(cn_ctx *ctx, int64_t n)
{
    if (!ctx) return NULL;
    cn__shape_attrs a = cn__shaped(CN_I64, CN_DIMS(n));
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ } };
    return cn_apply_in(ctx, &cn__op_randperm, &a, args);
}

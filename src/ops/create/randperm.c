/* randperm.c: a random permutation by Fisher and Yates: each element, from the last to the first, is swapped with a
   random one that is not after it. */
#include "create.h"
#include "draw.h"
#include "cairn/kernel.h"
#include "gpu/shaders.h"
#include "ops/kernels.h"

static bool infer(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    return a->ndim == 1 ? cn__infer_created(i)
                        : cn_infer_fail(i, CN_BAD_SHAPE, "a permutation has 1 dimension, got %lld", (long long)a->ndim);
}

/* Element i uses words 2i and 2i + 1. */
static void cpu(const cn_kernel *k)
{
    int64_t *out = k->out[0].data, n = k->out[0].numel;
    uint32_t words[2 * CN__PIECE];
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t end = n, begin; end > 0; end = begin) {
        begin = end > CN__PIECE ? end - CN__PIECE : 0;
        k->kernels->random.words(k->args[0].u, k->args[1].u, 2 * (uint64_t)begin, 2 * (end - begin), words);
        for (int64_t i = end - 1; i >= begin; i--) {
            const uint32_t *w = words + 2 * (i - begin);
            int64_t j = (int64_t)cn__below((uint64_t)i + 1, w[0], w[1]), swap = out[i];
            out[i] = out[j];
            out[j] = swap;
        }
    }
}

/* ---- on the GPU: randperm.wgsl says how. Scratch memory in words: 2n of pairs, 2n of pairs or of what is made of
   them, 16 counts for each chunk, their sums. ---- */

enum { DIGIT = 4, CHUNK = 64, SUMMED = 128 };

typedef struct layout {
    int64_t n, chunks, blocks; /* blocks of SUMMED counts */
    int64_t from, to, table, sums;
} layout;

static bool each(cn_gpu_call *c, const layout *l, int shift, int64_t count, const char *kernel)
{
    const int64_t numbers[] = { l->n, l->chunks, l->from, l->to, l->table, l->sums, shift, l->blocks };
    cn_gpu_params_clear(c);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) cn_gpu_param(c, numbers[k]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_randperm, .kernel = kernel, .each = count });
}

static bool sort_digit(cn_gpu_call *c, const layout *l, int shift)
{
    return each(c, l, shift, l->chunks, "count") && each(c, l, shift, l->blocks, "sum") &&
           each(c, l, shift, 1, "before") && each(c, l, shift, l->blocks, "spread") &&
           each(c, l, shift, l->chunks, "move");
}

static bool follow(cn_gpu_call *c, const layout *l)
{
    return each(c, l, 0, l->n, "clear") && each(c, l, 0, l->n, "link") && each(c, l, 0, l->n, "look");
}

static bool gpu(cn_gpu_call *c)
{
    layout l = { .n = c->out[0].numel };
    l.chunks = (l.n + CHUNK - 1) / CHUNK;
    l.blocks = (16 * l.chunks + SUMMED - 1) / SUMMED;
    l.to = 2 * l.n;
    l.table = 4 * l.n;
    l.sums = l.table + 16 * l.chunks;
    cn_gpu_scratch(c, l.sums + l.blocks);
    bool ok = each(c, &l, 0, l.n, "draw");
    for (int shift = 0; ok && (l.n - 1) >> shift > 0; shift += DIGIT) {
        ok = sort_digit(c, &l, shift);
        int64_t swap = l.from;
        l.from = l.to;
        l.to = swap;
    }
    return ok && follow(c, &l);
}

#define CASE(n, seed) { .attrs = CN__SHAPE(CN_I64, n), CN_ARGS({ .u = seed }, { .u = 3 }) }

const cn_op cn__op_randperm = {
    .call = "randperm(int n) -> Tensor",
    .name = "randperm", .doc = "The numbers from 0 to n - 1 in random order.", .kind = CN_SORT,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_BIT(CN_I64), .attr_size = sizeof(cn__shape_attrs), .infer = infer, .cpu = cpu, .gpu = gpu,
    .no_grad = "it has no operands",
    CN_CASES(CASE(7, 1), CASE(0, 2), CASE(1, 3), CASE(4097, 4)),
};

cn_tensor *cn_randperm(cn_ctx *ctx, int64_t n)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    cn__shape_attrs a = cn__shaped(CN_I64, CN_DIMS(n));
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ } };
    return cn_apply_in(ctx, &cn__op_randperm, &a, args);
}

/* randperm.c: a random order (Fisher and Yates): each place, from the last on, swaps with one not after it. */
#include "create.h"
#include "core/philox.h"
#include "draw.h"
#include "gpu/kernel.h"
#include "ops/scan/order.h"

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

/* The same order without the swaps. Place i takes what lies at j(i) ≤ i when its turn comes: whatever the last swap with
   j(i) before it, the one of the smallest k > i with j(k) = j(i), has left there: what lay at k at k's turn; without such
   a k, j(i) itself. So a place either has its number or another's start, and what lies at k at k's turn is found by going
   from k to the smallest m > k with j(m) = k, from there on, to the end (a few steps: such chains are as long as log n).
   The pairs (j(k), k) put in order have both answers side by side.

   Scratch memory: 2n words of pairs; n of where to start, marked by the highest bit, or the number itself; n of where to
   go from each place, or NONE. */
static bool gpu(cn__gpu_call *c)
{
    const int64_t n = c->out[0].numel;
    const cn__order by_place = {
        .lines = 1,
        .n = n,
        .load = "fn load(line: u32, i: u32) -> vec2<u32> {\n"
                "    let w = random_pair(argu(0u), argh(0u), argu(1u), argh(1u), i);\n"
                "    return vec2<u32>(below(vec2<u32>(i + 1u, 0u), w).x, i);\n}\n",
    };
    cn__gpu_scratch(c, 4 * n);
    if (!cn__gpu_order(c, &by_place)) return false;
    cn__gpu_params_clear(c);
    cn__gpu_param(c, (uint32_t)n);
    return cn__gpu_each(c, n, "fn each(i: u32) { set_tmp(3u * par(0u) + i, 0xffffffffu); }") &&
           cn__gpu_each(c, n,
                        "fn each(i: u32) {\n    let n = par(0u); let j = tmp(2u * i); let k = tmp(2u * i + 1u);\n"
                        "    var next = 0xffffffffu;\n"
                        "    if (i + 1u < n && tmp(2u * i + 2u) == j) { next = tmp(2u * i + 3u); }\n"
                        "    var start = j;\n"
                        "    if (j == k) { start = k | 0x80000000u; } else if (next != 0xffffffffu) { start = next | 0x80000000u; }\n"
                        "    set_tmp(2u * n + k, start);\n"
                        "    var leads = i == 0u;\n    if (i > 0u) { leads = tmp(2u * i - 2u) != j; }\n"
                        "    if (leads) { set_tmp(3u * n + j, select(k, next, j == k)); }\n}\n") &&
           cn__gpu_each(c, n,
                        "fn each(i: u32) {\n    let n = par(0u); let start = tmp(2u * n + i);\n"
                        "    var k = start & 0x7fffffffu;\n"
                        "    if (start != k) {\n        var m = tmp(3u * n + k);\n"
                        "        while (m != 0xffffffffu) { k = m; m = tmp(3u * n + k); }\n    }\n"
                        "    out0(i, i32(k));\n}\n");
}

#define CASE(n, seed) { .attrs = CN__SHAPE(CN_I64, n), .args = { { .u = seed }, { .u = 3 } } }

const cn_op cn__op_randperm = {
    .name = "randperm", .doc = "The numbers from 0 to n - 1 in random order.", .kind = CN_SORT,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_BIT(CN_I64), .attr_size = sizeof(cn__shape_attrs), .infer = infer, .cpu = cpu, .gpu = gpu,
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

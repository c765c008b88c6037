/* randperm.c: a random order (Fisher and Yates): each place, from the last on, swaps with one not after it. */
#include "create.h"
#include "draw.h"
#include "gpu/kernel.h"
#include "ops/kernels.h"

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
        k->kernels->random.words(k->args[0].u, k->args[1].u, 2 * (uint64_t)begin, 2 * (end - begin), words);
        for (int64_t i = end - 1; i >= begin; i--) {
            const uint32_t *w = words + 2 * (i - begin);
            int64_t j = (int64_t)cn__below((uint64_t)i + 1, w[0], w[1]), swap = out[i];
            out[i] = out[j];
            out[j] = swap;
        }
    }
}

/* ---- on the GPU: the same order without the swaps ----

   Place i takes what lies at j(i) ≤ i when its turn comes. The last swap with j(i) before that was the one of the smallest
   k > i with j(k) = j(i), and has left there what lay at k at k's turn; without such a k, it is j(i) itself. What lies at k
   at k's turn is found by going from k to the smallest m > k with j(m) = k, and on from there: a few steps, such chains are
   as long as log n. Both are neighbours among the pairs (j(k), k) put in order, by digits of 4 bits: an invocation counts
   the digits of its CHUNK pairs, counts are summed up in front of each, and the pairs go to their places, equals in turn.

   Scratch memory in words: 2n of pairs, 2n of pairs or of what is made of them, 16 counts for each chunk, their sums. */
enum { DIGIT = 4, CHUNK = 64, SUMMED = 128 };

typedef struct layout {
    int64_t n, chunks, blocks; /* blocks of SUMMED counts */
    int64_t from, to, table, sums;
} layout;

/* par(0).. */
static bool each(cn__gpu_call *c, const layout *l, int shift, int64_t count, const char *code)
{
    const int64_t numbers[] = { l->n, l->chunks, l->from, l->to, l->table, l->sums, shift, l->blocks };
    cn__gpu_params_clear(c);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) cn__gpu_param(c, (uint32_t)numbers[k]);
    return cn__gpu_each(c, count, code);
}

static bool sort_digit(cn__gpu_call *c, const layout *l, int shift)
{
    static const char count[] =
        "fn each(i: u32) {\n    var counts: array<u32, 16>;\n"
        "    for (var k = i * 64u; k < min(par(0u), i * 64u + 64u); k++) {\n"
        "        counts[(tmp(par(2u) + 2u * k) >> par(6u)) & 15u] += 1u;\n    }\n"
        "    for (var d = 0u; d < 16u; d++) { set_tmp(par(4u) + d * par(1u) + i, counts[d]); }\n}\n";
    static const char sum[] =
        "fn each(i: u32) {\n    var s = 0u;\n"
        "    for (var k = i * 128u; k < min(16u * par(1u), i * 128u + 128u); k++) { s += tmp(par(4u) + k); }\n"
        "    set_tmp(par(5u) + i, s);\n}\n";
    static const char before[] =
        "fn each(i: u32) {\n    var s = 0u;\n"
        "    for (var k = 0u; k < par(7u); k++) { let x = tmp(par(5u) + k); set_tmp(par(5u) + k, s); s += x; }\n}\n";
    static const char spread[] =
        "fn each(i: u32) {\n    var s = tmp(par(5u) + i);\n"
        "    for (var k = i * 128u; k < min(16u * par(1u), i * 128u + 128u); k++) {\n"
        "        let x = tmp(par(4u) + k); set_tmp(par(4u) + k, s); s += x;\n    }\n}\n";
    static const char move[] =
        "fn each(i: u32) {\n    var at: array<u32, 16>;\n"
        "    for (var d = 0u; d < 16u; d++) { at[d] = tmp(par(4u) + d * par(1u) + i); }\n"
        "    for (var k = i * 64u; k < min(par(0u), i * 64u + 64u); k++) {\n"
        "        let j = tmp(par(2u) + 2u * k); let d = (j >> par(6u)) & 15u; let to = par(3u) + 2u * at[d];\n"
        "        set_tmp(to, j); set_tmp(to + 1u, tmp(par(2u) + 2u * k + 1u));\n        at[d] += 1u;\n    }\n}\n";
    return each(c, l, shift, l->chunks, count) && each(c, l, shift, l->blocks, sum) && each(c, l, shift, 1, before) &&
           each(c, l, shift, l->blocks, spread) && each(c, l, shift, l->chunks, move);
}

/* Of each place: its number, or, marked by the highest bit, where to start; and where to go from there, or NONE. */
static bool follow(cn__gpu_call *c, const layout *l)
{
    static const char clear[] = "fn each(i: u32) { set_tmp(par(3u) + par(0u) + i, 0xffffffffu); }";
    static const char link[] =
        "fn each(i: u32) {\n    let n = par(0u); let p = par(2u) + 2u * i; let j = tmp(p); let k = tmp(p + 1u);\n"
        "    var next = 0xffffffffu; var leads = i == 0u;\n"
        "    if (i + 1u < n && tmp(p + 2u) == j) { next = tmp(p + 3u); }\n"
        "    if (i > 0u) { leads = tmp(p - 2u) != j; }\n"
        "    var start = j;\n"
        "    if (j == k) { start = k | 0x80000000u; }\n"
        "    else if (next != 0xffffffffu) { start = next | 0x80000000u; }\n"
        "    set_tmp(par(3u) + k, start);\n"
        "    if (leads) { set_tmp(par(3u) + n + j, select(k, next, j == k)); }\n}\n";
    static const char look[] =
        "fn each(i: u32) {\n    let next = par(3u) + par(0u); let start = tmp(par(3u) + i);\n"
        "    var k = start & 0x7fffffffu;\n"
        "    if (start != k) {\n        var m = tmp(next + k);\n"
        "        while (m != 0xffffffffu) { k = m; m = tmp(next + k); }\n    }\n"
        "    out0(i, i32(k));\n}\n";
    return each(c, l, 0, l->n, clear) && each(c, l, 0, l->n, link) && each(c, l, 0, l->n, look);
}

static bool gpu(cn__gpu_call *c)
{
    layout l = { .n = c->out[0].numel };
    l.chunks = (l.n + CHUNK - 1) / CHUNK;
    l.blocks = (16 * l.chunks + SUMMED - 1) / SUMMED;
    l.to = 2 * l.n;
    l.table = 4 * l.n;
    l.sums = l.table + 16 * l.chunks;
    cn__gpu_scratch(c, l.sums + l.blocks);
    bool ok = each(c, &l, 0, l.n,
                   "fn each(i: u32) {\n    let w = random_pair(argu(0u), argh(0u), argu(1u), argh(1u), i);\n"
                   "    set_tmp(2u * i, below(vec2<u32>(i + 1u, 0u), w).x); set_tmp(2u * i + 1u, i);\n}\n");
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
    if (!ctx) return NULL;
    cn__shape_attrs a = cn__shaped(CN_I64, CN_DIMS(n));
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ } };
    return cn_apply_in(ctx, &cn__op_randperm, &a, args);
}

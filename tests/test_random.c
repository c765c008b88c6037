/* Random numbers by position: many at once are those drawn one by one, wherever a run or a tile begins and however long it
   is; every instruction set gives the same bits, normal numbers too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "cpu/cpu.h"
#include "ops/create/create.h"
#include "ops/kernels.h"
#include "ops/map/wide.h"
#include "support/check.h"

extern const cn_op cn__op_rand, cn__op_randn, cn__op_randint, cn__op_bernoulli, cn__op_dropout_mask;

#define SEED   0x9876543210abcdef
#define STREAM 0x1234567800000007

/* The kernels of one instruction set after the other, of those that the processor has. */
static cn__kernels kernels;
static const char *isa;

/* ---- words ---- */

typedef void (*words_fn)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words);

/* Also that nothing is written past the end. */
static void run_of_words(words_fn generator, uint64_t first, int64_t n, uint32_t *words)
{
    const uint32_t untouched = 0xa5a5a5a5;
    int64_t wrong = 0;
    for (int64_t i = 0; i < n + 32; i++) words[i] = untouched;
    generator(SEED, STREAM, first, n, words);
    for (int64_t i = 0; i < n; i++) wrong += words[i] != cn__random_u32(SEED, STREAM, first + (uint64_t)i);
    for (int64_t i = n; i < n + 32; i++) wrong += words[i] != untouched;
    check(wrong == 0, "%s: %lld of %lld words from %llu on are wrong", generator == cn__random_words ? "core" : isa, (long long)wrong,
          (long long)n, (unsigned long long)first);
}

/* The low word of the block counter runs over at element 2^34. */
static void short_runs(words_fn generator, uint32_t *words)
{
    static const uint64_t bases[] = { 0, (1ULL << 34) - 45, (1ULL << 62) - 45, UINT64_MAX - 300 };
    check_group("short runs");
    for (int base = 0; base < 4; base++)
        for (uint64_t offset = 0; offset < 40; offset++)
            for (int64_t n = 0; n < 103; n++) run_of_words(generator, bases[base] + offset, n, words);
}

static void long_runs(words_fn generator, uint32_t *words, int64_t longest)
{
    check_group("long runs");
    for (int64_t k = 0; k < 16; k++)
        run_of_words(generator, (uint64_t)(k * 1000003) + (k % 2 ? 1ULL << 34 : 0), longest - 37 * k, words);
}

/* ---- operators: in tiles of odd lengths, against the whole ---- */

enum { N = 40009 };

typedef struct draw {
    const cn_op *op;
    cn_dtype dtype;
    cn_arg args[CN_MAX_ARGS];
} draw;

#define PLACE { .u = SEED }, { .u = STREAM }
static const draw draws[] = {
    { &cn__op_rand, CN_F16, { PLACE } },
    { &cn__op_rand, CN_BF16, { PLACE } },
    { &cn__op_rand, CN_F32, { PLACE } },
    { &cn__op_rand, CN_F64, { PLACE } },
    { &cn__op_randn, CN_F16, { PLACE } },
    { &cn__op_randn, CN_BF16, { PLACE } },
    { &cn__op_randn, CN_F32, { PLACE } },
    { &cn__op_randn, CN_F64, { PLACE } },
    { &cn__op_randint, CN_I64, { PLACE, { .i = -70 }, { .u = 1000003 } } },
    { &cn__op_randint, CN_U8, { PLACE, { .i = 3 }, { .u = 200 } } },
    { &cn__op_bernoulli, CN_F32, { PLACE } },
    { &cn__op_bernoulli, CN_F64, { PLACE } },
    { &cn__op_dropout_mask, CN_F32, { { .f = 0.3 }, PLACE } },
    { &cn__op_dropout_mask, CN_F64, { { .f = 0.3 }, PLACE } },
};

static void tile(const draw *d, const void *probability, int64_t start, int64_t n, void *out)
{
    const cn__shape_attrs attrs = { .dtype = d->dtype, .ndim = 1, .shape = { N } };
    const size_t size = cn_dtype_size(d->dtype);
    cn__cpu_loop(&kernels, d->op, d->dtype)(&(cn_loop){ .out = (char *)out + (size_t)start * size,
                                                        .in = { (const char *)probability + (size_t)start * size },
                                                        .n = n,
                                                        .start = start,
                                                        .attrs = &attrs,
                                                        .args = d->args });
}

static void any_tiles(const draw *d)
{
    static double probability[N], whole[N], parts[N]; /* room for any element */
    static const int64_t lengths[] = { 1, 2, 3, 5, 31, 33, 255, 257, 300, 1021 };
    if (d->dtype == CN_F32)
        for (int i = 0; i < N; i++) ((float *)probability)[i] = (float)i / N;
    else
        for (int i = 0; i < N; i++) probability[i] = (double)i / N;
    tile(d, probability, 0, N, whole);
    memset(parts, 0x5a, sizeof parts);
    for (int64_t start = 0, n, k = 0; start < N; start += n, k++) {
        n = lengths[k % 10] < N - start ? lengths[k % 10] : N - start;
        tile(d, probability, start, n, parts);
    }
    check(memcmp(whole, parts, N * cn_dtype_size(d->dtype)) == 0, "%s: %s of %s depends on how it is cut", isa,
          d->op->name, cn_dtype_name(d->dtype));
}

static const draw *draw_of(const cn_op *op, cn_dtype dtype)
{
    const draw *d = draws;
    while (d->op != op || d->dtype != dtype) d++;
    return d;
}

/* ---- operators: against their definitions, one by one ---- */

static float uniform(int64_t i) { return cn__unit_f32(cn__random_u32(SEED, STREAM, (uint64_t)i)); }

/* This file is compiled without AVX2 and calls for nothing fused. */
static float normal(int64_t i)
{
    float u = 1 - uniform(2 * i), v = uniform(2 * i + 1);
    return sqrtf(-2 * cn__f32_log(u, false)) * cn__f32_cos(6.28318530717958647692f * v, false);
}

static float mask(int64_t i) { return uniform(i) < 0.3f ? 0 : (float)(1 / (1 - 0.3)); }

static void as_defined(const cn_op *op, float (*define)(int64_t i))
{
    static float out[N];
    int wrong = 0;
    tile(draw_of(op, CN_F32), out, 0, N, out);
    for (int i = 0; i < N; i++) {
        const float expected = define(i);
        wrong += memcmp(&out[i], &expected, sizeof expected) != 0;
    }
    check(wrong == 0, "%s: %d elements of %s have other bits than one by one", isa, wrong, op->name);
}

static void one_instruction_set(uint32_t *words, int64_t longest)
{
    short_runs(kernels.random.words, words);
    long_runs(kernels.random.words, words, longest);
    check_group("tiles");
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) any_tiles(&draws[i]);
    check_group("definitions");
    as_defined(&cn__op_rand, uniform);
    as_defined(&cn__op_randn, normal);
    as_defined(&cn__op_dropout_mask, mask);
}

int main(void)
{
    const int64_t longest = test_is_quick() ? 10007 : 131101;
    uint32_t *words = malloc((size_t)(longest + 32) * sizeof *words);
    if (!words) return 1;
    short_runs(cn__random_words, words);
    long_runs(cn__random_words, words, longest);
    for (cn__isa best = cn__isa_best(), i = CN__BASELINE; i <= best; i++) {
        cn__kernels_fill(&kernels, i);
        isa = cn__isa_name(i);
        one_instruction_set(words, longest);
    }
    free(words);
    return finish();
}

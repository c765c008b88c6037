/* The loops of rand, randn, randint and bernoulli: each element from its own place in a stream of random words.
   Arguments: seed, stream, and what the operator adds. Where an element takes two words, they are those at 2·position
   and 2·position + 1. */
#include "ops/create/random_cpu.h"

#include "cpu/random_words.h"
#include "ops/create/create.h"
#include "ops/create/draw.h"
#include "ops/map/wide.h"

/* Elements [from, from + n) of the tile; w: their words. */
typedef void (*block_fn)(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n);

CN__INLINE void in_blocks(const cn_loop *l, int words_each, block_fn block)
{
    uint32_t words[2 * CN__PIECE];
    for (int64_t i = 0, n; i < l->n; i += n) {
        n = l->n - i < CN__PIECE ? l->n - i : CN__PIECE;
        cn__draw_words(l->args[0].u, l->args[1].u, (uint64_t)((l->start + i) * words_each), n * words_each, words);
        block(l, words, i, n);
    }
}

/* ---- randn: √(-2 log u)·cos(2πv), u in (0, 1], v in [0, 1) (Box and Muller) ---- */

/* Nothing is fused, whatever the instruction set: the same numbers everywhere. */
CN__INLINE void normal_f32(const uint32_t *w, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        float u = 1 - cn__unit_f32(w[2 * i]), v = cn__unit_f32(w[2 * i + 1]);
        out[i] = sqrtf(-2 * cn__f32_log(u, false)) * cn__f32_cos(6.28318530717958647692f * v, false);
    }
}

CN__INLINE void randn_block_f32(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    normal_f32(w, n, (float *)l->out + from);
}

static void randn_f32(const cn_loop *l) { in_blocks(l, 2, randn_block_f32); }

#if !CN__ONLY_F32

CN__INLINE void randn_block_f64(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    double *out = (double *)l->out + from;
    for (int64_t i = 0; i < n; i++) {
        double u = ((double)w[2 * i] + 1) * 0x1p-32, v = (double)w[2 * i + 1] * 0x1p-32;
        out[i] = sqrt(-2 * log(u)) * cos(6.28318530717958647692 * v);
    }
}

CN__INLINE void randn_block_half(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    const cn__shape_attrs *a = l->attrs;
    float f32[CN__PIECE];
    normal_f32(w, n, f32);
    cn__convert((cn_dtype)a->dtype, (uint16_t *)l->out + from, CN_F32, f32, n);
}

static void randn_half(const cn_loop *l) { in_blocks(l, 2, randn_block_half); }
static void randn_f64(const cn_loop *l) { in_blocks(l, 2, randn_block_f64); }

/* ---- rand: as many bits as the type holds, so that nothing is rounded up to 1 ---- */

CN__INLINE void rand_block_f16(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    uint16_t *out = (uint16_t *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__f32_to_f16((float)(int32_t)(w[i] >> 21) * 0x1p-11f);
}

CN__INLINE void rand_block_bf16(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    uint16_t *out = (uint16_t *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__f32_to_bf16((float)(int32_t)(w[i] >> 24) * 0x1p-8f);
}

CN__INLINE void rand_block_f32(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    float *out = (float *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__unit_f32(w[i]);
}

CN__INLINE void rand_block_f64(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    double *out = (double *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__unit_f64(w[2 * i], w[2 * i + 1]);
}

static void rand_f16(const cn_loop *l) { in_blocks(l, 1, rand_block_f16); }
static void rand_bf16(const cn_loop *l) { in_blocks(l, 1, rand_block_bf16); }
static void rand_f32(const cn_loop *l) { in_blocks(l, 1, rand_block_f32); }
static void rand_f64(const cn_loop *l) { in_blocks(l, 2, rand_block_f64); }

/* ---- randint: arguments 2 and 3 are the lowest number and how many there are ---- */

CN__INLINE void randint_block(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    const cn__shape_attrs *a = l->attrs;
    cn_dtype t = (cn_dtype)a->dtype;
    int64_t i64[CN__PIECE];
    for (int64_t i = 0; i < n; i++)
        i64[i] = (int64_t)((uint64_t)l->args[2].i + cn__below(l->args[3].u, w[2 * i], w[2 * i + 1]));
    cn__convert(t, (char *)l->out + (size_t)from * cn_dtype_size(t), CN_I64, i64, n);
}

static void randint_loop(const cn_loop *l) { in_blocks(l, 2, randint_block); }

/* ---- bernoulli: whether rand < p; never for NaN ---- */

CN__INLINE void bernoulli_block_f32(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    const float *p = (const float *)l->in[0] + from;
    float *out = (float *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__unit_f32(w[i]) < p[i];
}

CN__INLINE void bernoulli_block_f64(const cn_loop *l, const uint32_t *w, int64_t from, int64_t n)
{
    const double *p = (const double *)l->in[0] + from;
    double *out = (double *)l->out + from;
    for (int64_t i = 0; i < n; i++) out[i] = cn__unit_f64(w[2 * i], w[2 * i + 1]) < p[i];
}

static void bernoulli_f32(const cn_loop *l) { in_blocks(l, 1, bernoulli_block_f32); }
static void bernoulli_f64(const cn_loop *l) { in_blocks(l, 2, bernoulli_block_f64); }

#endif

/* 512-bit vectors speed up the logarithms and cosines of randn; the other loops are bound by their random words. */
#if CN__ONLY_F32
const cn__random_kernels CN__FOR_ISA(cn__random_kernels) = { 0 };
CN__TABLE(draws)
CN__FILL(cn__loops, draws, randn, [CN_F32] = randn_f32)
CN__TABLE_END
#else
const cn__random_kernels CN__FOR_ISA(cn__random_kernels) = { .words = cn__draw_words };
CN__TABLE(draws)
CN__FILL(cn__loops, draws, rand, [CN_F16] = rand_f16, [CN_BF16] = rand_bf16, [CN_F32] = rand_f32, [CN_F64] = rand_f64)
CN__FILL(cn__loops, draws, randn, [CN_F16] = randn_half, [CN_BF16] = randn_half, [CN_F32] = randn_f32,
         [CN_F64] = randn_f64)
CN__FILL(cn__loops, draws, randint, CN__EVERY_DTYPE(randint_loop))
CN__FILL(cn__loops, draws, bernoulli, [CN_F32] = bernoulli_f32, [CN_F64] = bernoulli_f64)
CN__TABLE_END
#endif

/* philox.c: random words in bulk: one block of four after the other, or on AVX2 eight blocks at a time. */
#include "core/philox.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { AT_ONCE = 8, MOST_WORDS = 4 * AT_ONCE };

/* The words of one group of blocks, of which `block` is the first. */
typedef void (*group_fn)(uint64_t seed, uint64_t stream, uint64_t block, uint32_t *words);

/* Whole groups go straight to their place; the first and the last may be wanted in part. */
INLINE void in_groups(group_fn group, int64_t size, uint64_t seed, uint64_t stream, uint64_t first, int64_t n,
                      uint32_t *words)
{
    uint64_t block = first / 4;
    for (int64_t skip = (int64_t)(first % 4), taken; n > 0; skip = 0) {
        if (skip == 0 && n >= size) {
            group(seed, stream, block, words);
            taken = size;
        } else {
            uint32_t all[MOST_WORDS];
            group(seed, stream, block, all);
            taken = size - skip < n ? size - skip : n;
            memcpy(words, all + skip, (size_t)taken * sizeof *words);
        }
        words += taken, n -= taken, block += (uint64_t)size / 4;
    }
}

INLINE void one_block(uint64_t seed, uint64_t stream, uint64_t block, uint32_t *words)
{
    cn__philox_out four = cn__philox(seed, stream, block);
    memcpy(words, four.v, sizeof four.v);
}

void cn__random_words_portable(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    in_groups(one_block, 4, seed, stream, first, n, words);
}

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* c[k]: word k of four counters, each in the low half of its lane. What the high halves hold does not matter: a product
   takes the low ones alone. */
typedef struct four_counters {
    __m256i c[4];
} four_counters;

AVX2 INLINE __m256i every(uint64_t value) { return _mm256_set1_epi64x((long long)value); }

AVX2 INLINE four_counters counters_from(uint64_t block, uint64_t stream)
{
    __m256i blocks = _mm256_add_epi64(every(block), _mm256_setr_epi64x(0, 1, 2, 3));
    return (four_counters){ { blocks, _mm256_srli_epi64(blocks, 32), every(stream), every(stream >> 32) } };
}

/* cn__philox_round */
AVX2 INLINE four_counters round_of_four(four_counters f, __m256i key0, __m256i key1)
{
    __m256i p0 = _mm256_mul_epu32(f.c[0], every(CN__PHILOX_M0)), p1 = _mm256_mul_epu32(f.c[2], every(CN__PHILOX_M1));
    return (four_counters){ {
        _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(f.c[1], key0)),
        p1,
        _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(f.c[3], key1)),
        p0,
    } };
}

/* Two words of each counter side by side. */
AVX2 INLINE __m256i pairs(__m256i low, __m256i high)
{
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}

/* The words of a counter one after the other, counter after counter. */
AVX2 INLINE void store_four(four_counters f, uint32_t *words)
{
    __m256i a = pairs(f.c[0], f.c[1]), b = pairs(f.c[2], f.c[3]);
    __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b); /* counters 0 and 2, 1 and 3 */
    _mm256_storeu_si256((__m256i *)words, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(words + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

/* Two times four, so that one's products are made while the other's are waited for. */
AVX2 INLINE void eight_blocks(uint64_t seed, uint64_t stream, uint64_t block, uint32_t *words)
{
    __m256i key0 = every(seed), key1 = every(seed >> 32);
    four_counters a = counters_from(block, stream), b = counters_from(block + 4, stream);
    for (int round = 0; round < CN__PHILOX_ROUNDS; round++) {
        a = round_of_four(a, key0, key1);
        b = round_of_four(b, key0, key1);
        key0 = _mm256_add_epi32(key0, every(CN__PHILOX_W0));
        key1 = _mm256_add_epi32(key1, every(CN__PHILOX_W1));
    }
    store_four(a, words);
    store_four(b, words + 16);
}

AVX2 static void words_avx2(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    in_groups(eight_blocks, MOST_WORDS, seed, stream, first, n, words);
}

void cn__random_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    (__builtin_cpu_supports("avx2") ? words_avx2 : cn__random_words_portable)(seed, stream, first, n, words);
}

#else

void cn__random_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    cn__random_words_portable(seed, stream, first, n, words);
}

#endif

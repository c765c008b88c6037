/* cpu/random_words.h: random words in bulk, for kernel files (cpu/isa.h). cn__draw_words returns the same words as
   cn__random_words (core/philox.h). With AVX2 it computes eight blocks of four words at a time. */
#ifndef CN_CPU_RANDOM_WORDS_H
#define CN_CPU_RANDOM_WORDS_H

#include "core/philox.h"
#include "cpu/isa.h"

#if !defined(__AVX2__)

CN__INLINE void cn__draw_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    cn__random_words(seed, stream, first, n, words);
}

#else

#include <immintrin.h>
#include <string.h>

enum { CN__GROUP_BLOCKS = 8, CN__GROUP_WORDS = 4 * CN__GROUP_BLOCKS };

/* c[k] holds word k of four counters, each in the low half of a 64-bit lane. The high halves may hold anything:
   multiplication reads the low halves only. */
typedef struct cn__four_counters {
    __m256i c[4];
} cn__four_counters;

CN__INLINE __m256i cn__every_lane(uint64_t value) { return _mm256_set1_epi64x((long long)value); }

CN__INLINE cn__four_counters cn__counters_from(uint64_t block, uint64_t stream)
{
    __m256i blocks = _mm256_add_epi64(cn__every_lane(block), _mm256_setr_epi64x(0, 1, 2, 3));
    return (cn__four_counters){ { blocks, _mm256_srli_epi64(blocks, 32), cn__every_lane(stream),
                                  cn__every_lane(stream >> 32) } };
}

/* cn__philox_round */
CN__INLINE cn__four_counters cn__round_of_four(cn__four_counters f, __m256i key0, __m256i key1)
{
    __m256i p0 = _mm256_mul_epu32(f.c[0], cn__every_lane(CN__PHILOX_M0));
    __m256i p1 = _mm256_mul_epu32(f.c[2], cn__every_lane(CN__PHILOX_M1));
    return (cn__four_counters){ {
        _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(f.c[1], key0)),
        p1,
        _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(f.c[3], key1)),
        p0,
    } };
}

/* Lanes with two words of each counter: low, high. */
CN__INLINE __m256i cn__word_pairs(__m256i low, __m256i high)
{
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}

/* Stores the four words of the first counter, then those of the second, and so on. */
CN__INLINE void cn__store_four(cn__four_counters f, uint32_t *words)
{
    __m256i a = cn__word_pairs(f.c[0], f.c[1]), b = cn__word_pairs(f.c[2], f.c[3]);
    __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b); /* counters 0 and 2, 1 and 3 */
    _mm256_storeu_si256((__m256i *)words, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(words + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

/* The words of the eight blocks from `block` on. They are two sets of four, so that the processor multiplies for one
   set while it waits for the products of the other. */
CN__INLINE void cn__eight_blocks(uint64_t seed, uint64_t stream, uint64_t block, uint32_t *words)
{
    __m256i key0 = cn__every_lane(seed), key1 = cn__every_lane(seed >> 32);
    cn__four_counters a = cn__counters_from(block, stream), b = cn__counters_from(block + 4, stream);
    for (int round = 0; round < CN__PHILOX_ROUNDS; round++) {
        a = cn__round_of_four(a, key0, key1);
        b = cn__round_of_four(b, key0, key1);
        key0 = _mm256_add_epi32(key0, cn__every_lane(CN__PHILOX_W0));
        key1 = _mm256_add_epi32(key1, cn__every_lane(CN__PHILOX_W1));
    }
    cn__store_four(a, words);
    cn__store_four(b, words + 16);
}

/* Whole sets of eight blocks are written to `words` directly; of the first and the last, a part may be needed. */
static __attribute__((noinline, unused)) void cn__draw_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n,
                                                             uint32_t *words)
{
    uint64_t block = first / 4;
    for (int64_t skip = (int64_t)(first % 4), taken; n > 0; skip = 0) {
        if (skip == 0 && n >= CN__GROUP_WORDS) {
            cn__eight_blocks(seed, stream, block, words);
            taken = CN__GROUP_WORDS;
        } else {
            uint32_t all[CN__GROUP_WORDS];
            cn__eight_blocks(seed, stream, block, all);
            taken = CN__GROUP_WORDS - skip < n ? CN__GROUP_WORDS - skip : n;
            memcpy(words, all + skip, (size_t)taken * sizeof *words);
        }
        words += taken, n -= taken, block += CN__GROUP_BLOCKS;
    }
}

#endif
#endif

/* core/philox.h: random numbers by position: Philox4x32-10
   (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).

       float u = cn__unit_f32(cn__random_u32(seed, stream, i));
       cn__random_words(seed, stream, i, 256, words);

   A number depends on (seed, stream, element) alone, not on order, threads or device. Element i is word i & 3 of block
   i >> 2. Drawing many elements at once is several times as fast as drawing them one by one. */
#ifndef CAIRN_CORE_PHILOX_H
#define CAIRN_CORE_PHILOX_H

#include <stdint.h>

/* M0 and M1 multiply c[0] and c[2]; W0 and W1 are added to the key after each round. */
#define CN__PHILOX_M0 0xD2511F53u
#define CN__PHILOX_M1 0xCD9E8D57u
#define CN__PHILOX_W0 0x9E3779B9u
#define CN__PHILOX_W1 0xBB67AE85u
enum { CN__PHILOX_ROUNDS = 10 };

typedef struct {
    uint32_t v[4];
} cn__philox_out;

static inline cn__philox_out cn__philox_round(cn__philox_out c, uint32_t key0, uint32_t key1)
{
    uint64_t p0 = (uint64_t)CN__PHILOX_M0 * c.v[0], p1 = (uint64_t)CN__PHILOX_M1 * c.v[2];
    return (cn__philox_out){ {
        (uint32_t)(p1 >> 32) ^ c.v[1] ^ key0,
        (uint32_t)p1,
        (uint32_t)(p0 >> 32) ^ c.v[3] ^ key1,
        (uint32_t)p0,
    } };
}

/* The key is the seed; the counter is block and stream. Low words come first. */
static inline cn__philox_out cn__philox(uint64_t seed, uint64_t stream, uint64_t block)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    cn__philox_out c = { { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) } };
    for (int round = 0; round < CN__PHILOX_ROUNDS; round++) {
        c = cn__philox_round(c, key0, key1);
        key0 += CN__PHILOX_W0;
        key1 += CN__PHILOX_W1;
    }
    return c;
}

static inline uint32_t cn__random_u32(uint64_t seed, uint64_t stream, uint64_t element)
{
    return cn__philox(seed, stream, element >> 2).v[element & 3];
}

/* The words of elements [first, first + n). Kernels use cn__draw_words of cpu/random_words.h, which is faster. */
void cn__random_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words);

/* [0, 1) in steps of 2^-24 */
static inline float cn__unit_f32(uint32_t bits) { return (float)(int32_t)(bits >> 8) * 0x1p-24f; }

/* [0, 1) in steps of 2^-53 */
static inline double cn__unit_f64(uint32_t hi, uint32_t lo)
{
    return (double)(int64_t)(((uint64_t)hi << 32 | lo) >> 11) * 0x1p-53;
}

#endif

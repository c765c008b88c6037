/* The CPU kernels of products of whole numbers: see whole_cpu.h. */
#include "ops/contract/whole_cpu.h"

#include <string.h>

#include "cpu/isa.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512BW__)
typedef __m512i vec;
enum { PARTS = 1 }; /* vectors of a panel's sums */
CN__INLINE vec load_bytes(const int8_t *from) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)from)); }
CN__INLINE vec load_words(const int16_t *from) { return _mm512_loadu_si512(from); }
CN__INLINE vec spread(int32_t pair) { return _mm512_set1_epi32(pair); }
CN__INLINE vec add_products(vec sum, vec a, vec b) { return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
CN__INLINE void store(int32_t *to, vec sum) { _mm512_storeu_si512(to, sum); }
#elif defined(__AVX2__)
typedef __m256i vec;
enum { PARTS = 2 };
CN__INLINE vec load_bytes(const int8_t *from) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)from)); }
CN__INLINE vec load_words(const int16_t *from) { return _mm256_loadu_si256((const __m256i *)(const void *)from); }
CN__INLINE vec spread(int32_t pair) { return _mm256_set1_epi32(pair); }
CN__INLINE vec add_products(vec sum, vec a, vec b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
CN__INLINE void store(int32_t *to, vec sum) { _mm256_storeu_si256((__m256i *)(void *)to, sum); }
#endif

#if defined(__AVX2__)
/* Inlined with constant rows, panels and bytes, so that sums lie in registers. */
CN__INLINE void tile(int32_t *sums, const int16_t *a, const void *b, int64_t pairs, const int rows, const int panels,
                     const int bytes)
{
    enum { STEP = 2 * CN__WHOLE_WIDTH / PARTS }; /* elements of a vector of B */
    const int8_t *at = b;
    const int64_t panel = pairs * 2 * CN__WHOLE_WIDTH * bytes;
    vec sum[CN__WHOLE_ROWS * CN__WHOLE_PANELS * PARTS];
    const int across = panels * PARTS;
    CN__UNROLL
    for (int n = 0; n < rows * across; n++) sum[n] = spread(0);
    for (int64_t p = 0; p < pairs; p++, at += 2 * CN__WHOLE_WIDTH * bytes) {
        vec y[CN__WHOLE_PANELS * PARTS];
        CN__UNROLL
        for (int n = 0; n < across; n++) {
            const int8_t *const from = at + n / PARTS * panel + n % PARTS * STEP * bytes;
            y[n] = bytes == 1 ? load_bytes(from) : load_words((const int16_t *)(const void *)from);
        }
        CN__UNROLL
        for (int n = 0; n < rows * across; n++) {
            int32_t pair;
            memcpy(&pair, a + (n / across * pairs + p) * 2, sizeof pair);
            sum[n] = add_products(sum[n], spread(pair), y[n % across]);
        }
    }
    CN__UNROLL
    for (int n = 0; n < rows * across; n++) store(sums + n * (CN__WHOLE_WIDTH / PARTS), sum[n]);
}

CN__INLINE void tile_of(int32_t *sums, const int16_t *a, const void *b, int64_t pairs, int64_t rows, const int panels,
                        const int bytes)
{
    switch (rows) {
    case 1: tile(sums, a, b, pairs, 1, panels, bytes); break;
    case 2: tile(sums, a, b, pairs, 2, panels, bytes); break;
    case 3: tile(sums, a, b, pairs, 3, panels, bytes); break;
    default: tile(sums, a, b, pairs, 4, panels, bytes); break;
    }
}

static void multiply(int32_t *sums, const int16_t *a, const void *b, int64_t pairs, int64_t rows, int64_t panels,
                     int bytes)
{
    if (panels == 1 && bytes == 1) tile_of(sums, a, b, pairs, rows, 1, 1);
    else if (panels == 1) tile_of(sums, a, b, pairs, rows, 1, 2);
    else if (bytes == 1) tile_of(sums, a, b, pairs, rows, 2, 1);
    else tile_of(sums, a, b, pairs, rows, 2, 2);
}
#else
static void multiply(int32_t *sums, const int16_t *a, const void *b, int64_t pairs, int64_t rows, int64_t panels,
                     int bytes)
{
    for (int64_t i = 0; i < rows * panels; i++) {
        const int16_t *const row = a + i / panels * pairs * 2;
        const int64_t first = i % panels * pairs * 2 * CN__WHOLE_WIDTH;
        uint32_t sum[CN__WHOLE_WIDTH] = { 0 };
        for (int64_t p = 0; p < pairs; p++)
            for (int64_t q = 0; q < 2 * CN__WHOLE_WIDTH; q++) {
                const int64_t at = first + p * 2 * CN__WHOLE_WIDTH + q;
                const int32_t y = bytes == 1 ? ((const int8_t *)b)[at] : ((const int16_t *)b)[at];
                sum[q / 2] += (uint32_t)(row[p * 2 + q % 2] * y);
            }
        memcpy(sums + i * CN__WHOLE_WIDTH, sum, sizeof sum);
    }
}
#endif

static bool pack(void *to, const int32_t *b, int64_t k, int64_t n, int64_t row, int64_t column, int bytes)
{
    const int64_t pairs = (k + 1) / 2;
    int32_t wrong = 0;
    memset(to, 0, (size_t)(pairs * 2 * CN__WHOLE_WIDTH * bytes));
    for (int64_t q = 0; q < n; q++)
        for (int64_t p = 0; p < k; p++) {
            const int64_t at = (p / 2 * CN__WHOLE_WIDTH + q) * 2 + p % 2;
            const int32_t x = b[p * row + q * column];
            wrong |= bytes == 1 ? x ^ (int8_t)x : x ^ (int16_t)x;
            if (bytes == 1) ((int8_t *)to)[at] = (int8_t)x;
            else ((int16_t *)to)[at] = (int16_t)x;
        }
    return wrong == 0;
}

static bool narrow(int16_t *to, const int32_t *a, int64_t k, int64_t step)
{
    int32_t wrong = 0;
    for (int64_t i = 0; i < k; i++) {
        const int32_t x = a[i * step];
        wrong |= x ^ (int16_t)x;
        to[i] = (int16_t)x;
    }
    if (k % 2) to[k] = 0;
    return wrong == 0;
}

const cn__whole_kernels CN__FOR_ISA(cn__whole_kernels) = { multiply, pack, narrow };

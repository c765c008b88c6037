/* Copies of boxes. Only the size of an element matters. Where rows lie side by side in memory (row is 1), squares are
   turned in registers, so that each line of the cache is read whole. */
#include "cpu/gather_cpu.h"

#include <stdbool.h>
#include <string.h>

#include "cpu/isa.h"

/* Shuffles of two vectors: ONE_ interleaves elements within each 16 bytes, TWO_ pairs of elements, HALF_ joins halves.
   EVENS picks elements 0, 2, 4, .. of a vector and of the one that begins at its last element. */
#if defined(__AVX2__)
#define BYTES      32
#define ONE_LOW_4  0, 8, 1, 9, 4, 12, 5, 13
#define ONE_HIGH_4 2, 10, 3, 11, 6, 14, 7, 15
#define TWO_LOW_4  0, 1, 8, 9, 4, 5, 12, 13
#define TWO_HIGH_4 2, 3, 10, 11, 6, 7, 14, 15
#define HALF_LOW_4 0, 1, 2, 3, 8, 9, 10, 11
#define HALF_UP_4  4, 5, 6, 7, 12, 13, 14, 15
#define EVENS_4    0, 2, 4, 6, 9, 11, 13, 15
#define ONE_LOW_8  0, 4, 2, 6
#define ONE_HIGH_8 1, 5, 3, 7
#define HALF_LOW_8 0, 1, 4, 5
#define HALF_UP_8  2, 3, 6, 7
#define EVENS_8    0, 2, 5, 7
#else
#define BYTES      16
#define ONE_LOW_4  0, 4, 1, 5
#define ONE_HIGH_4 2, 6, 3, 7
#define TWO_LOW_4  0, 1, 4, 5
#define TWO_HIGH_4 2, 3, 6, 7
#define EVENS_4    0, 2, 5, 7
#define ONE_LOW_8  0, 2
#define ONE_HIGH_8 1, 3
#define EVENS_8    0, 3
#endif

#define SIZE 4
#define T    uint32_t
#include "cpu/gather_body.h"
#undef SIZE
#undef T

#define SIZE 8
#define T    uint64_t
#include "cpu/gather_body.h"
#undef SIZE
#undef T

#if CN__IS_BASELINE
static void box_1(const cn__box *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const uint8_t *from = (const uint8_t *)b->from + i * b->row;
        uint8_t *to = (uint8_t *)b->to + i * b->to_row;
        if (b->step == 1) memcpy(to, from, (size_t)b->n);
        else
            for (int64_t k = 0; k < b->n; k++) to[k] = from[k * b->step];
    }
}

static void box_2(const cn__box *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const uint16_t *from = (const uint16_t *)b->from + i * b->row;
        uint16_t *to = (uint16_t *)b->to + i * b->to_row;
        if (b->step == 1) memcpy(to, from, (size_t)b->n * 2);
        else
            for (int64_t k = 0; k < b->n; k++) to[k] = from[k * b->step];
    }
}
#endif

const cn__gather_kernels CN__FOR_ISA(cn__gather_kernels) = {
    .box = { CN__BASELINE_ENTRY(box_1), CN__BASELINE_ENTRY(box_2), CN__UP_TO_AVX2_ENTRY(box_4),
             CN__UP_TO_AVX2_ENTRY(box_8) },
};

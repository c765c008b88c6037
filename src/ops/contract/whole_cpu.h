/* whole_cpu.h: the CPU kernels of products of whole numbers that fit into 16 bits.

   A panel is CN__WHOLE_WIDTH columns of B, in pairs of rows: (k / 2, columns, 2), as bytes or as 16-bit numbers. Rows of A
   are 16-bit numbers. Both end with a zero if k is odd. Two products are multiplied and added in one instruction, and
   sums are modulo 2^32, as those of 32-bit numbers are. */
#ifndef CN_CONTRACT_WHOLE_CPU_H
#define CN_CONTRACT_WHOLE_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum { CN__WHOLE_WIDTH = 16, CN__WHOLE_ROWS = 4, CN__WHOLE_PANELS = 2 };

typedef struct cn__whole_kernels {
    /* Sums of a tile, (rows, panels, width): rows of `pairs` pairs, and panels that follow each other. bytes: of an
       element of B, 1 or 2 */
    void (*multiply)(int32_t *sums, const int16_t *a, const void *b, int64_t pairs, int64_t rows, int64_t panels,
                     int bytes);
    /* Packs n columns of B, up to a panel; to[i] = a[i·step]. False: a number does not fit. */
    bool (*pack)(void *to, const int32_t *b, int64_t k, int64_t n, int64_t row, int64_t column, int bytes);
    bool (*narrow)(int16_t *to, const int32_t *a, int64_t k, int64_t step);
} cn__whole_kernels;

#endif

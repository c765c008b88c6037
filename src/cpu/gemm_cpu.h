/* cpu/gemm_cpu.h: the arithmetic of a matrix product on one core, for one element type and one instruction set.
 *
 * A(m,k) is packed into tiles of (k,rows), B(k,n) into panels of (k,width), in the order in which a register tile reads
 * them. The last tile and panel may have places without a row or column; they never contribute to a result. */
#ifndef CN_CPU_GEMM_CPU_H
#define CN_CPU_GEMM_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "core/util.h"

/* C(m,n) = A(m,k)·B(k,n), or += if `add`; k is summed in ascending order from zero. */
typedef struct cn__gemm_block {
    int64_t m, n, k;
    const void *a;
    int64_t a_tile, a_row, a_col; /* strides: between tiles; within a tile */
    const void *b;
    int64_t b_panel, b_row; /* strides: between panels; between rows of a panel, whose columns are contiguous */
    void *b_to;             /* not NULL: each panel is packed to it while its first tile is multiplied */
    void *c;
    int64_t c_row, c_col;
    bool add;
} cn__gemm_block;

/* C(m,n) = A(m,runs·k)·B(runs·k,n), or += if `add`, for one packed panel of B. The elements of a row of A are a_col
 * apart within a run of k; runs begin a_run apart. C has room for `lanes` columns if n ≤ lanes, else for `width`. */
typedef struct cn__gemm_runs {
    int64_t m, n, k, runs;
    const void *a;
    int64_t a_row, a_col, a_run;
    const void *b;
    void *c;
    int64_t c_row;
    bool add;
} cn__gemm_runs;

/* C(m,n) = the sum of `count` matrices (m,n), `step` apart, or += if `add`; they are added one after the other. */
typedef struct cn__gemm_sum {
    int64_t m, n, count;
    const void *from;
    int64_t from_row, step; /* columns are contiguous */
    void *c;
    int64_t c_row, c_col;
    bool add;
} cn__gemm_sum;

/* Winograd's transforms of small squares for convolutions of 3x3 (ops/contract/winograd.h): a square M becomes L·M·Lᵀ. */
typedef enum cn__square_form {
    CN__SQUARE_SOURCE,   /* 4x4 pixels to 4x4 */
    CN__SQUARE_WEIGHT,   /* 3x3 taps to 4x4 */
    CN__SQUARE_RESULT,   /* 4x4 to 2x2 positions */
    CN__SQUARE_GRADIENT, /* 2x2 positions to 4x4 */
    CN__SQUARE_SUMS,     /* 4x4 to 3x3 taps */
} cn__square_form;

/* `count` squares one after the other. An element of a square stands for n contiguous ones, with n ≥ lanes. */
typedef struct cn__gemm_squares {
    cn__square_form form;
    int64_t n, count;
    const void *from;
    int64_t from_y, from_x, from_next; /* strides: between lines and elements of a square, and between squares */
    void *to;
    int64_t to_y, to_x, to_next;
} cn__gemm_squares;

typedef struct cn__gemm_kernel {
    int size;               /* bytes of an element */
    int rows, width, lanes; /* rows and columns of a register tile; elements of a vector */
    void (*pack_a)(void *to, const void *a, int64_t rows, int64_t k, int64_t a_row, int64_t a_col);
    void (*pack_b)(void *to, const void *b, int64_t k, int64_t cols, int64_t b_row, int64_t b_col);
    /* Every panel of B has `width` columns that may be read, even the last. */
    void (*multiply)(const cn__gemm_block *g);
    void (*multiply_runs)(const cn__gemm_runs *g);
    /* to[place[q] + i] = from[i,q] for (rows,cols) elements, and to[q,i] = from[i,q]: between planes of pixels and pixels
     * whose channels are contiguous. */
    void (*spread)(void *to, const int32_t *place, const void *from, int64_t from_row, int64_t rows, int64_t cols);
    void (*collect)(void *to, int64_t to_row, const void *from, int64_t from_row, int64_t rows, int64_t cols);
    bool (*squares)(const cn__gemm_squares *s); /* false: a position or a tap is not finite */
    /* For m = 1, n ≥ lanes, and contiguous columns of B that are b_panel apart: nothing is packed. */
    void (*multiply_row)(const cn__gemm_block *g);
    /* The dot products of the first `count` columns of two panels (k,width). */
    void (*multiply_lanes)(void *sums, const void *a, const void *b, int64_t k, int64_t count);
    void (*sum)(const cn__gemm_sum *s);
} cn__gemm_kernel;

typedef struct cn__gemm_kernels {
    const cn__gemm_kernel *of[2]; /* f32, f64 */
} cn__gemm_kernels;

#endif

/* cpu/gemm_body.h: the functions of a cn__gemm_kernel for one element type. A template for cpu/each_type.h. Besides T
 * and NAME(f) it needs these macros:
 *
 *     BYTES                   size of a vector register
 *     ROWS, VECTORS           the rows of a register tile, and its width in vectors
 *     UNROLLED                iterations over k that a tile with all rows writes out; 4 if it is not defined
 *     NAME(LOW), NAME(HIGH)   lane numbers that interleave the lower / upper halves of two vectors
 *     NAME(FMA)(x, y, z)      x·y + z for vectors */

typedef T NAME(vec) __attribute__((vector_size(BYTES)));
typedef T NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
enum {
    NAME(lanes) = BYTES / sizeof(T),
    NAME(width) = VECTORS * NAME(lanes),                   /* columns of a tile */
    NAME(reach) = NAME(lanes) > ROWS ? NAME(lanes) : ROWS, /* rows of A that the whole vectors of a tile cover */
    NAME(over) = NAME(reach) - NAME(lanes),
    NAME(hop) = NAME(over) > 0 && NAME(over) <= NAME(lanes) ? NAME(over) : NAME(lanes), /* between these vectors */
    NAME(most) = ROWS * VECTORS,                                                        /* accumulators */
    NAME(ahead) = 12,   /* rows: how far ahead of reading a prefetch is */
    NAME(further) = 32, /* the same in a panel */
};

/* Panels of B that a single row of A is multiplied by at once. On the web, where bytes of code count, few rows have no
   loops of their own. */
#if defined(__wasm__)
enum { NAME(beside) = 1 };
#else
enum { NAME(beside) = 2 };
#endif

/* C(rows,width) = A(rows,k)·B(k,width), or += if `add`. Rows of B and C are contiguous. */
typedef struct NAME(job) {
    int64_t k;
    const T *a;
    int64_t a_row, a_col;
    const T *b;
    int64_t b_row;
    T *b_to; /* the panel of B is packed to it */
    T *c;
    int64_t c_row;
    bool add;
    int64_t runs, a_run; /* for in_runs: how many runs of k, and the stride between them in A */
} NAME(job);

/* Which operands are packed. packing: this tile packs the panel of B for the tiles that follow. in_runs: B is packed,
   and k has several runs. */
typedef enum NAME(form) {
    NAME(both_packed),
    NAME(b_packed),
    NAME(in_runs),
    NAME(none_packed),
    NAME(packing)
} NAME(form);

/* The register tile, three times: for tiles with all rows, for tiles with fewer rows, and for tiles of one vector. There
   are many of the latter two, so their loops over k are not unrolled. */
#ifndef UNROLLED
#define UNROLLED 4
#endif
#define TILE         tile
#define TILE_STEPS   UNROLLED
#define TILE_VECTORS VECTORS
#include "cpu/gemm_tile.h"
#define TILE         short_tile
#define TILE_STEPS   1
#define TILE_VECTORS VECTORS
#include "cpu/gemm_tile.h"
#define TILE         narrow_tile
#define TILE_STEPS   1
#define TILE_VECTORS 1
#include "cpu/gemm_tile.h"

static __attribute__((noinline)) void NAME(whole_tile)(const NAME(job) * j) { NAME(tile)(j, ROWS, NAME(both_packed)); }

static __attribute__((noinline)) void NAME(rows_tile)(const NAME(job) * j) { NAME(tile)(j, ROWS, NAME(b_packed)); }

static __attribute__((noinline)) void NAME(packing_tile)(const NAME(job) * j) { NAME(tile)(j, ROWS, NAME(packing)); }

static void NAME(tile_of)(const NAME(job) * j, int64_t rows)
{
    switch (rows) {
    case 1: NAME(tile)(j, 1, NAME(none_packed)); break;
    case 2: NAME(tile)(j, 2, NAME(none_packed)); break;
    case 3: NAME(tile)(j, 3, NAME(none_packed)); break;
    case 4: NAME(short_tile)(j, 4, NAME(none_packed)); break;
    case 5: NAME(short_tile)(j, 5, NAME(none_packed)); break;
#if ROWS > 6
    case 6: NAME(short_tile)(j, 6, NAME(none_packed)); break;
    case 7: NAME(short_tile)(j, 7, NAME(none_packed)); break;
#endif
#if ROWS > 8
    case 8: NAME(short_tile)(j, 8, NAME(none_packed)); break;
    case 9: NAME(short_tile)(j, 9, NAME(none_packed)); break;
    case 10: NAME(short_tile)(j, 10, NAME(none_packed)); break;
    case 11: NAME(short_tile)(j, 11, NAME(none_packed)); break;
#endif
    default: NAME(short_tile)(j, ROWS, NAME(none_packed)); break;
    }
}

/* Tiles for k in runs: of all vectors, and of one. */
static void NAME(runs_of)(const NAME(job) * j, int64_t rows)
{
    switch (rows) {
    case 1: NAME(short_tile)(j, 1, NAME(in_runs)); break;
    case 2: NAME(short_tile)(j, 2, NAME(in_runs)); break;
    case 3: NAME(short_tile)(j, 3, NAME(in_runs)); break;
    case 4: NAME(short_tile)(j, 4, NAME(in_runs)); break;
    case 5: NAME(short_tile)(j, 5, NAME(in_runs)); break;
#if ROWS > 6
    case 6: NAME(short_tile)(j, 6, NAME(in_runs)); break;
    case 7: NAME(short_tile)(j, 7, NAME(in_runs)); break;
#endif
#if ROWS > 8
    case 8: NAME(short_tile)(j, 8, NAME(in_runs)); break;
    case 9: NAME(short_tile)(j, 9, NAME(in_runs)); break;
    case 10: NAME(short_tile)(j, 10, NAME(in_runs)); break;
    case 11: NAME(short_tile)(j, 11, NAME(in_runs)); break;
#endif
    default: NAME(short_tile)(j, ROWS, NAME(in_runs)); break;
    }
}

static void NAME(narrow_runs_of)(const NAME(job) * j, int64_t rows)
{
    switch (rows) {
    case 1: NAME(narrow_tile)(j, 1, NAME(in_runs)); break;
    case 2: NAME(narrow_tile)(j, 2, NAME(in_runs)); break;
    case 3: NAME(narrow_tile)(j, 3, NAME(in_runs)); break;
    case 4: NAME(narrow_tile)(j, 4, NAME(in_runs)); break;
    case 5: NAME(narrow_tile)(j, 5, NAME(in_runs)); break;
#if ROWS > 6
    case 6: NAME(narrow_tile)(j, 6, NAME(in_runs)); break;
    case 7: NAME(narrow_tile)(j, 7, NAME(in_runs)); break;
#endif
#if ROWS > 8
    case 8: NAME(narrow_tile)(j, 8, NAME(in_runs)); break;
    case 9: NAME(narrow_tile)(j, 9, NAME(in_runs)); break;
    case 10: NAME(narrow_tile)(j, 10, NAME(in_runs)); break;
    case 11: NAME(narrow_tile)(j, 11, NAME(in_runs)); break;
#endif
    default: NAME(narrow_tile)(j, ROWS, NAME(in_runs)); break;
    }
}

/* If C cannot be written in whole vectors, the tile is computed in a buffer. */
static void NAME(tile_apart)(const NAME(job) * j, int64_t rows, int64_t cols, int64_t c_col)
{
    T out[ROWS * NAME(width)];
    NAME(job) apart = *j;
    apart.c = out;
    apart.c_row = NAME(width);
    apart.add = false;
    NAME(tile_of)(&apart, rows);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = 0; q < cols; q++) {
            T *c = j->c + i * j->c_row + q * c_col;
            const T x = out[i * NAME(width) + q];
            *c = j->add ? *c + x : x;
        }
    }
}

/* Loads a transposed square of lanes x lanes. Each of log2(lanes) rounds interleaves the first half of the rows with
 * the second. */
CN__INLINE void NAME(turn)(NAME(vec) * x, const T *from, int64_t from_row)
{
    enum { LANES = NAME(lanes) };
    NAME(vec) y[LANES];
    for (int i = 0; i < LANES; i++) x[i] = *(const NAME(loose) *)(from + i * from_row);
    for (int round = 1; round < LANES; round *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + LANES / 2], NAME(LOW));
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + LANES / 2], NAME(HIGH));
        }
        for (int i = 0; i < LANES; i++) x[i] = y[i];
    }
}

CN__INLINE void NAME(transpose)(T *to, int64_t to_row, const T *from, int64_t from_row)
{
    NAME(vec) x[NAME(lanes)];
    NAME(turn)(x, from, from_row);
    for (int i = 0; i < NAME(lanes); i++) *(NAME(loose) *)(to + i * to_row) = x[i];
}

/* Packs some rows of A element by element. */
static void NAME(pack_a_ragged)(T *to, const T *a, int64_t rows, int64_t k, int64_t a_row, int64_t a_col)
{
    for (int64_t p = 0; p < k; p++) {
        for (int64_t i = 0; i < rows; i++) to[p * ROWS + i] = a[p * a_col + i * a_row];
    }
}

/* Packs A(rows,k) with contiguous columns, several tiles at a time, so that a cache line of A is read once. A vector
 * longer than the tile spills into the place of the next p, which is written later. The last p has no next one. */
static void NAME(pack_a_cols)(T *to, const T *a, int64_t rows, int64_t k, int64_t a_col)
{
    const int64_t group = 8 * ROWS;
    for (int64_t begin = 0; begin < rows; begin += group) {
        int64_t whole = begin; /* tiles before this row are copied by vectors */
        while (whole < begin + group && rows - whole >= NAME(reach)) whole += ROWS;
        for (int64_t p = 0; p < k - 1; p++) {
            for (int64_t r = begin; r < whole; r += 64 / (int)sizeof(T))
                __builtin_prefetch(a + (p + NAME(ahead)) * a_col + r);
            for (int64_t r = begin; r < whole; r += ROWS) {
                for (int i = 0; i + NAME(lanes) <= NAME(reach); i += NAME(hop)) {
                    *(NAME(loose) *)(to + r * k + p * ROWS + i) = *(const NAME(loose) *)(a + p * a_col + r + i);
                }
            }
        }
        for (int64_t r = begin; r < cn__smaller(rows, begin + group); r += ROWS) {
            const int64_t p = r < whole ? k - 1 : 0;
            NAME(pack_a_ragged)
            (to + r * k + p * ROWS, a + p * a_col + r, cn__smaller(rows - r, ROWS), k - p, 1, a_col);
        }
    }
}

/* Packs a tile of A with contiguous rows; A must have `reach` rows. Vectors spill as above, into the tile that is
 * packed next. */
static void NAME(pack_a_rows)(T *to, const T *a, int64_t k, int64_t a_row)
{
    int64_t p = 0;
    for (; p + NAME(lanes) <= k; p += NAME(lanes)) {
        for (int i = 0; i + NAME(lanes) <= NAME(reach); i += NAME(hop)) {
            NAME(transpose)(to + p * ROWS + i, ROWS, a + p + i * a_row, a_row);
        }
    }
    NAME(pack_a_ragged)(to + p * ROWS, a + p, ROWS, k - p, a_row, 1);
}

/* Packs A(rows,k) into tiles of (k,ROWS), one after the other. */
static void NAME(pack_a)(void *packed, const void *from, int64_t rows, int64_t k, int64_t a_row, int64_t a_col)
{
    T *to = packed;
    const T *a = from;
    if (a_row == 1) {
        NAME(pack_a_cols)(to, a, rows, k, a_col);
        return;
    }
    for (int64_t r = 0; r < rows; r += ROWS, to += ROWS * k, a += ROWS * a_row) {
        if (rows - r >= NAME(reach) && a_col == 1) NAME(pack_a_rows)(to, a, k, a_row);
        else NAME(pack_a_ragged)(to, a, cn__smaller(rows - r, ROWS), k, a_row, a_col);
    }
}

/* Packs a panel element by element, in the order of memory. Columns beyond `cols` are filled with zeros. */
static void NAME(pack_b_ragged)(T *to, const T *b, int64_t k, int64_t cols, int64_t b_row, int64_t b_col)
{
    if (cols < NAME(width)) {
        for (int64_t i = 0; i < k * NAME(width); i++) to[i] = 0;
    }
    for (int64_t q = 0; b_row == 1 && q < cols; q++) {
        for (int64_t p = 0; p < k; p++) to[p * NAME(width) + q] = b[p + q * b_col];
    }
    for (int64_t p = 0; b_row != 1 && p < k; p++) {
        for (int64_t q = 0; q < cols; q++) to[p * NAME(width) + q] = b[p * b_row + q * b_col];
    }
}

/* Packs whole panels of a B with contiguous rows, all at once, so that each row is read in one go. */
static void NAME(pack_b_rows)(T *to, const T *b, int64_t k, int64_t panels, int64_t b_row)
{
    for (int64_t p = 0; p < k; p++, to += NAME(width), b += b_row) {
        for (int64_t q = 0; q < panels; q++) {
            __builtin_prefetch(b + NAME(ahead) * b_row + q * NAME(width));
            T *const panel = to + q * k * NAME(width);
            const T *const row = b + q * NAME(width);
            for (int v = 0; v < NAME(width); v += NAME(lanes))
                *(NAME(loose) *)(panel + v) = *(const NAME(loose) *)(row + v);
        }
    }
}

/* Packs a whole panel of a B with contiguous columns. */
static void NAME(pack_b_cols)(T *to, const T *b, int64_t k, int64_t b_col)
{
    int64_t p = 0;
    for (; p + NAME(lanes) <= k; p += NAME(lanes)) {
        for (int v = 0; v < NAME(width); v += NAME(lanes)) {
            NAME(transpose)(to + p * NAME(width) + v, NAME(width), b + p + v * b_col, b_col);
        }
    }
    NAME(pack_b_ragged)(to + p * NAME(width), b + p, k - p, NAME(width), 1, b_col);
}

/* Packs B(k,cols) into panels of (k,width), one after the other. */
static void NAME(pack_b)(void *packed, const void *from, int64_t k, int64_t cols, int64_t b_row, int64_t b_col)
{
    const int64_t width = NAME(width), whole = cols / width, rest = cols % width;
    T *to = packed;
    const T *b = from;
    if (b_col == 1) {
        NAME(pack_b_rows)(to, b, k, whole, b_row);
    } else {
        for (int64_t q = 0; q < whole; q++) {
            if (b_row == 1) NAME(pack_b_cols)(to + q * width * k, b + q * width * b_col, k, b_col);
            else NAME(pack_b_ragged)(to + q * width * k, b + q * width * b_col, k, width, b_row, b_col);
        }
    }
    if (!rest) return;
    to += whole * width * k;
    b += whole * width * b_col;
    /* Rows that can be read in whole vectors, because these end before the last row does. */
    const int64_t over = b_row > 0 ? (width - rest + b_row - 1) / b_row : k;
    const int64_t rows = b_col == 1 && over < k ? k - over : 0;
    NAME(pack_b_rows)(to, b, rows, 1, b_row);
    NAME(pack_b_ragged)(to + rows * width, b + rows * b_row, k - rows, rest, b_row, b_col);
}

/* C(m,cols) = A(m,k)·B(k,cols), or += , with at most `width` columns. */
static void NAME(panel)(const cn__gemm_block *g, NAME(job) * j, int64_t cols)
{
    const bool vectors = cols == NAME(width) && g->c_col == 1, a_packed = g->a_row == 1 && g->a_col == ROWS;
    const bool two = NAME(beside) > 1 && vectors && !a_packed && !g->b_to && ROWS < g->m &&
                     g->m < 2 * ROWS; /* tiles, of equal height */
    const int64_t tall = two ? (g->m + 1) / 2 : ROWS, a_tile = two ? tall * g->a_row : g->a_tile;
    for (int64_t r = 0; r < g->m; r += tall, j->a += a_tile, j->c += tall * g->c_row) {
        const int64_t rows = cn__smaller(g->m - r, tall);
        const bool whole = vectors && rows == ROWS, b_packed = j->b_row == NAME(width);
        if (whole && r == 0 && g->b_to) {
            NAME(packing_tile)(j);
            j->b = g->b_to;
            j->b_row = NAME(width);
        } else if (whole && b_packed && a_packed) NAME(whole_tile)(j);
        else if (whole && b_packed) NAME(rows_tile)(j);
        else if (NAME(beside) > 1 && vectors && b_packed && r > 0)
            NAME(runs_of)(j, rows); /* the first tile prefetches B */
        else if (vectors) NAME(tile_of)(j, rows);
        else NAME(tile_apart)(j, rows, cols, g->c_col);
    }
}

enum { NAME(strip) = 4096 / (int)sizeof(T), NAME(line) = 64 / BYTES ? 64 / BYTES : 1 };

/* Adds the product of A and rows [p, p + rows) of B to sum, for a strip of n columns, one cache line at a time. The
   next rows are prefetched: a strip is too short for the processor to predict them. */
CN__INLINE void NAME(strip_rows)(const cn__gemm_block *g, const T *b, T *sum, int64_t n, int64_t p, const int rows)
{
    const T *a = (const T *)g->a + p * g->a_col;
    b += p * g->b_row;
    const bool more = p + 2 * rows <= g->k;
    for (int64_t q = 0; q < n; q += NAME(line) * NAME(lanes)) {
        NAME(vec) acc[NAME(line)];
        for (int v = 0; v < NAME(line); v++) acc[v] = *(NAME(loose) *)(sum + q + v * NAME(lanes));
        for (int i = 0; i < rows; i++) {
            const NAME(vec) x = a[i * g->a_col] - (NAME(vec)){ 0 };
            if (more) __builtin_prefetch(b + (rows + i) * g->b_row + q);
            for (int v = 0; v < NAME(line); v++)
                acc[v] = NAME(FMA)(x, *(const NAME(loose) *)(b + i * g->b_row + q + v * NAME(lanes)), acc[v]);
        }
        for (int v = 0; v < NAME(line); v++) *(NAME(loose) *)(sum + q + v * NAME(lanes)) = acc[v];
    }
}

/* One row of A times n columns of B, a whole number of cache lines. B is read row by row, as it lies in memory. Sums
   are formed in the same order as in a register tile. */
static void NAME(multiply_rows)(const cn__gemm_block *g, const T *b, T *c, int64_t n)
{
    T sum[NAME(strip)];
    for (int64_t first = 0, cols; first < n; first += cols) {
        cols = cn__smaller(n - first, NAME(strip));
        for (int64_t q = 0; q < cols; q++) sum[q] = 0;
        int64_t p = 0;
        for (; p + 8 <= g->k; p += 8) NAME(strip_rows)(g, b + first, sum, cols, p, 8);
        for (; p < g->k; p++) NAME(strip_rows)(g, b + first, sum, cols, p, 1);
        for (int64_t q = 0; q < cols; q++) c[first + q] = g->add ? c[first + q] + sum[q] : sum[q];
    }
}

/* One row of A times neighbouring panels of B: a row times one panel would wait for its own sums. */
static void NAME(one_row)(const cn__gemm_block *g, const T *b, T *c)
{
    enum { COUNT = NAME(beside) * VECTORS };
    const T *a = g->a;
    const int64_t panel = g->b_panel, a_col = g->a_col;
    NAME(vec) acc[COUNT];
    CN__UNROLL
    for (int n = 0; n < COUNT; n++) acc[n] = (NAME(vec)){ 0 };
#pragma GCC unroll 4
    for (int64_t p = 0; p < g->k; p++, a += a_col, b += NAME(width)) {
        const NAME(vec) x = a[0] - (NAME(vec)){ 0 };
        CN__UNROLL
        for (int n = 0; n < COUNT; n++)
            acc[n] = NAME(FMA)(x, *(const NAME(loose) *)(b + n / VECTORS * panel + n % VECTORS * NAME(lanes)), acc[n]);
    }
    CN__UNROLL
    for (int n = 0; n < COUNT; n++) {
        if (g->add) acc[n] = *(const NAME(loose) *)(c + n * NAME(lanes)) + acc[n];
        *(NAME(loose) *)(c + n * NAME(lanes)) = acc[n];
    }
}

static void NAME(multiply)(const cn__gemm_block *g)
{
    int64_t cols = 0;
    for (int64_t q = 0; q < g->n; q += cols) {
        const int64_t lines = (g->n - q) / (NAME(line) * NAME(lanes)) * (NAME(line) * NAME(lanes));
        const bool wide = g->m == 1 && g->b_panel == NAME(width) && g->c_col == 1 && lines >= 8 * NAME(lanes);
        const bool few = NAME(beside) > 1 && g->m == 1 && g->b_row == NAME(width) && g->b_panel != NAME(width) &&
                         g->c_col == 1 && !g->b_to && g->n - q >= NAME(beside) * NAME(width);
        cols = few ? NAME(beside) * NAME(width) : wide ? lines : cn__smaller(g->n - q, NAME(width));
        NAME(job)
        j = { .k = g->k,
              .a = g->a,
              .a_row = g->a_row,
              .a_col = g->a_col,
              .b = (const T *)g->b + (g->b_panel == NAME(width) ? q : q / NAME(width) * g->b_panel),
              .b_row = g->b_row,
              .b_to = g->b_to,
              .c = (T *)g->c + q * g->c_col,
              .c_row = g->c_row,
              .add = g->add,
              .runs = 1 };
        if (few) NAME(one_row)(g, j.b, j.c);
        else if (wide) NAME(multiply_rows)(g, j.b, j.c, cols);
        else NAME(panel)(g, &j, cols);
    }
}

/* Tiles have about as many rows each: those of few rows are slow. */
static void NAME(multiply_runs)(const cn__gemm_runs *g)
{
    const int64_t tiles = cn__divide_up(g->m, ROWS);
    NAME(job)
    j = { .k = g->k,
          .a_row = g->a_row,
          .a_col = g->a_col,
          .b = g->b,
          .c_row = g->c_row,
          .add = g->add,
          .runs = g->runs,
          .a_run = g->a_run };
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t row = g->m * i / tiles, end = g->m * (i + 1) / tiles;
        j.a = (const T *)g->a + row * g->a_row;
        j.c = (T *)g->c + row * g->c_row;
        if (g->n > NAME(lanes)) NAME(runs_of)(&j, end - row);
        else NAME(narrow_runs_of)(&j, end - row);
    }
}

/* Squares are whole: the last ones of a line and of a column overlap those before them. */
static void NAME(spread)(void *to, const int32_t *place, const void *from, int64_t from_row, int64_t rows, int64_t cols)
{
    enum { LANES = NAME(lanes) };
    T *const out = to;
    const T *const in = from;
    if (rows < LANES || cols < LANES) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t q = 0; q < cols; q++) out[place[q] + i] = in[i * from_row + q];
        return;
    }
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t q = 0; q < cols; q += LANES) {
            const int64_t row = cn__smaller(i, rows - LANES), col = cn__smaller(q, cols - LANES);
            NAME(vec) x[LANES];
            NAME(turn)(x, in + row * from_row + col, from_row);
            for (int l = 0; l < LANES; l++) *(NAME(loose) *)(out + place[col + l] + row) = x[l];
        }
}

static void NAME(collect)(void *to, int64_t to_row, const void *from, int64_t from_row, int64_t rows, int64_t cols)
{
    enum { LANES = NAME(lanes) };
    T *const out = to;
    const T *const in = from;
    if (rows < LANES || cols < LANES) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t q = 0; q < cols; q++) out[q * to_row + i] = in[i * from_row + q];
        return;
    }
    for (int64_t q = 0; q < cols; q += LANES)
        for (int64_t i = 0; i < rows; i += LANES) {
            const int64_t row = cn__smaller(i, rows - LANES), col = cn__smaller(q, cols - LANES);
            NAME(transpose)(out + col * to_row + row, to_row, in + row * from_row + col, from_row);
        }
}

/* L·x for a column x of a square. Each has the L of its form. */
CN__INLINE void NAME(column_of)(const cn__square_form form, NAME(vec) * y, const NAME(vec) * x, const int step)
{
    const NAME(vec) a = x[0], b = x[step], c = x[form == CN__SQUARE_GRADIENT ? 0 : 2 * step],
                    d = x[form == CN__SQUARE_GRADIENT || form == CN__SQUARE_WEIGHT ? 0 : 3 * step];
    const T half = (T)0.5;
    switch (form) {
    case CN__SQUARE_SOURCE: y[0] = a - c, y[1] = b + c, y[2] = c - b, y[3] = b - d; break;
    case CN__SQUARE_WEIGHT: y[0] = a, y[1] = half * (a + c + b), y[2] = half * (a + c - b), y[3] = c; break;
    case CN__SQUARE_RESULT: y[0] = a + b + c, y[1] = b - c - d; break;
    case CN__SQUARE_GRADIENT: y[0] = a, y[1] = a + b, y[2] = a - b, y[3] = -b; break;
    case CN__SQUARE_SUMS: y[0] = a + half * (b + c), y[1] = half * (b - c), y[2] = half * (b + c) + d; break;
    }
}

/* Transforms (in,in) to (out,out): columns first, then lines. False: one of fewer than 4x4 results is not finite. */
CN__INLINE bool NAME(squares_of)(const cn__gemm_squares *s, const cn__square_form form, const int in, const int out)
{
    NAME(vec) zero = { 0 }; /* until something is not finite */
    for (int64_t q = 0; q < s->count; q++)
        for (int64_t i = 0; i < s->n; i += NAME(lanes)) {
            const int64_t at = cn__smaller(i, s->n - NAME(lanes)); /* the last vector overlaps the one before it */
            const T *const from = (const T *)s->from + q * s->from_next + at;
            T *const to = (T *)s->to + q * s->to_next + at;
            NAME(vec) x[4], half[16], y[4]; /* half: (in,out) */
            CN__UNROLL
            for (int u = 0; u < in; u++) {
                CN__UNROLL
                for (int v = 0; v < in; v++) x[v] = *(const NAME(loose) *)(from + v * s->from_y + u * s->from_x);
                NAME(column_of)(form, half + 4 * u, x, 1);
            }
            CN__UNROLL
            for (int v = 0; v < out; v++) {
                NAME(column_of)(form, y, half + v, 4);
                CN__UNROLL
                for (int u = 0; u < out; u++) {
                    *(NAME(loose) *)(to + v * s->to_y + u * s->to_x) = y[u];
                    if (out < 4) zero += y[u] - y[u];
                }
            }
        }
    T sum = 0;
    for (int l = 0; l < NAME(lanes); l++) sum += zero[l];
    return sum == 0;
}

static bool NAME(squares)(const cn__gemm_squares *s)
{
    switch (s->form) {
    case CN__SQUARE_SOURCE: return NAME(squares_of)(s, CN__SQUARE_SOURCE, 4, 4);
    case CN__SQUARE_WEIGHT: return NAME(squares_of)(s, CN__SQUARE_WEIGHT, 3, 4);
    case CN__SQUARE_RESULT: return NAME(squares_of)(s, CN__SQUARE_RESULT, 4, 2);
    case CN__SQUARE_GRADIENT: return NAME(squares_of)(s, CN__SQUARE_GRADIENT, 2, 4);
    case CN__SQUARE_SUMS: break;
    }
    return NAME(squares_of)(s, CN__SQUARE_SUMS, 4, 3);
}

/* One row of A times `vectors` x lanes columns of B, which are contiguous: squares of B are transposed in registers. */
CN__INLINE void NAME(row_columns)(const cn__gemm_block *g, int64_t q, T *out, const int vectors)
{
    const T *a = g->a, *b = (const T *)g->b + q * g->b_panel;
    NAME(vec) acc[4] = { { 0 } }, y[NAME(lanes)] = { { 0 } };
    int64_t p = 0;
    for (; p + NAME(lanes) <= g->k; p += NAME(lanes)) {
        for (int v = 0; v < vectors; v++) {
            if (p % (64 / (int)sizeof(T)) == 0)
                for (int l = 0; l < NAME(lanes); l++)
                    __builtin_prefetch(b + p + (v * NAME(lanes) + l) * g->b_panel + 512 / sizeof(T));
            NAME(turn)(y, b + p + v * NAME(lanes) * g->b_panel, g->b_panel);
            for (int i = 0; i < NAME(lanes); i++)
                acc[v] = NAME(FMA)(a[(p + i) * g->a_col] - (NAME(vec)){ 0 }, y[i], acc[v]);
        }
    }
    for (; p < g->k; p++) {
        for (int v = 0; v < vectors; v++) {
            for (int l = 0; l < NAME(lanes); l++) y[0][l] = b[p + (v * NAME(lanes) + l) * g->b_panel];
            acc[v] = NAME(FMA)(a[p * g->a_col] - (NAME(vec)){ 0 }, y[0], acc[v]);
        }
    }
    for (int v = 0; v < vectors; v++) *(NAME(loose) *)(out + v * NAME(lanes)) = acc[v];
}

/* The last vector begins with columns that were computed before, so that it is whole. This needs n ≥ lanes. */
static void NAME(multiply_row)(const cn__gemm_block *g)
{
    T out[4 * NAME(lanes)];
    for (int64_t q = 0; q < g->n;) {
        const bool four = g->n - q >= 4 * NAME(lanes);
        const int64_t cols = cn__smaller(g->n - q, four ? 4 * NAME(lanes) : NAME(lanes)),
                      spare = four ? 0 : NAME(lanes) - cols;
        if (four) NAME(row_columns)(g, q, out, 4);
        else NAME(row_columns)(g, q - spare, out, 1);
        for (int64_t i = 0; i < cols; i++) {
            T *c = (T *)g->c + (q + i) * g->c_col;
            *c = g->add ? *c + out[spare + i] : out[spare + i];
        }
        q += cols;
    }
}

static void NAME(multiply_lanes)(void *sums, const void *a, const void *b, int64_t k, int64_t count)
{
    const T *x = a, *y = b;
    NAME(vec) acc[VECTORS] = { { 0 } };
    T out[NAME(width)];
    for (int64_t p = 0; p < k; p++, x += NAME(width), y += NAME(width)) {
        for (int v = 0; v < VECTORS; v++)
            acc[v] = NAME(FMA)(*(const NAME(loose) *)(x + v * NAME(lanes)), *(const NAME(loose) *)(y + v * NAME(lanes)),
                               acc[v]);
    }
    for (int v = 0; v < VECTORS; v++) *(NAME(loose) *)(out + v * NAME(lanes)) = acc[v];
    for (int64_t q = 0; q < count; q++) ((T *)sums)[q] = out[q];
}

/* Sums n columns of a row. In the main loop n is constant, so that `out` lies in registers. */
CN__INLINE void NAME(sum_columns)(const cn__gemm_sum *s, const T *from, T *c, const int64_t n)
{
    T out[4 * NAME(lanes)];
    for (int64_t i = 0; i < n; i++) out[i] = s->add ? c[i * s->c_col] + from[i] : from[i];
    for (int64_t at = 1; at < s->count; at++) {
        from += s->step;
        for (int64_t i = 0; i < n; i++) out[i] += from[i];
    }
    for (int64_t i = 0; i < n; i++) c[i * s->c_col] = out[i];
}

static void NAME(sum)(const cn__gemm_sum *s)
{
    enum { MANY = 4 * NAME(lanes) };
    const bool joined = s->from_row == s->n && s->c_row == s->n && s->c_col == 1; /* rows follow each other */
    const int64_t rows = joined ? 1 : s->m, cols = joined ? s->m * s->n : s->n;
    for (int64_t i = 0; i < rows; i++) {
        const T *from = (const T *)s->from + i * s->from_row;
        T *c = (T *)s->c + i * s->c_row;
        int64_t q = 0;
        for (; q + MANY <= cols; q += MANY) NAME(sum_columns)(s, from + q, c + q * s->c_col, MANY);
        if (q < cols) NAME(sum_columns)(s, from + q, c + q * s->c_col, cols - q);
    }
}

static const cn__gemm_kernel NAME(kernel) = { .size = sizeof(T),
                                              .rows = ROWS,
                                              .width = NAME(width),
                                              .lanes = NAME(lanes),
                                              .pack_a = NAME(pack_a),
                                              .pack_b = NAME(pack_b),
                                              .multiply = NAME(multiply),
                                              .multiply_runs = NAME(multiply_runs),
                                              .spread = NAME(spread),
                                              .collect = NAME(collect),
                                              .squares = NAME(squares),
                                              .multiply_row = NAME(multiply_row),
                                              .multiply_lanes = NAME(multiply_lanes),
                                              .sum = NAME(sum) };

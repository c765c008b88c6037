/* gemm_body.h: one block of a matrix product for one element type and one instruction set.
 * Included by gemm.c once for each, with these parameters:
 *
 *     SCALAR      element type
 *     BYTES       size of a vector register
 *     LOW, HIGH   lane numbers that interleave the lower / upper halves of two vectors
 *     TARGET      attribute that lets a function use the instruction set
 *     FMA(x,y,z)  x·y + z for vectors
 *     NAME(x)     x with a suffix of its own
 *
 * No include guard, and the parameters are undefined at the end: both on purpose. */

typedef SCALAR NAME(vec) __attribute__((vector_size(BYTES)));
typedef SCALAR NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(SCALAR)), may_alias));
enum {
    NAME(lanes) = BYTES / sizeof(SCALAR),
    NAME(width) = 2 * NAME(lanes),                                   /* columns of a tile */
    NAME(reach) = NAME(lanes) > TILE_ROWS ? NAME(lanes) : TILE_ROWS, /* rows that whole vectors of a tile of A cover */
};

/* C(rows,width) = or += A(rows,k)·B(k,width); rows of B and C are contiguous. */
typedef struct NAME(job) {
    int64_t k;
    const SCALAR *a;
    int64_t a_row, a_col;
    const SCALAR *b;
    int64_t b_row;
    SCALAR *c;
    int64_t c_row;
    bool add;
} NAME(job);

/* The register tile: rows and vectors are constants where this is inlined, so that acc lives in registers. */
TARGET static inline __attribute__((always_inline)) void NAME(tile)(const NAME(job) * j, const int rows,
                                                                    const int vectors)
{
    const SCALAR *const a = j->a, *const b = j->b;
    const int64_t k = j->k, a_row = j->a_row, a_col = j->a_col, b_row = j->b_row;
    NAME(vec) acc[ACCUMULATORS], y[ACCUMULATORS];
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) acc[i * vectors + v] = (NAME(vec)){ 0 };
        __builtin_prefetch(j->c + i * j->c_row, 1);
    }
    for (int64_t p = 0; p < k; p++) {
        for (int v = 0; v < vectors; v++) y[v] = *(const NAME(loose) *)(b + p * b_row + v * NAME(lanes));
        for (int i = 0; i < rows; i++) {
            const NAME(vec) x = a[p * a_col + i * a_row] - (NAME(vec)){ 0 }; /* - 0 is exact, + 0 is not */
            for (int v = 0; v < vectors; v++) acc[i * vectors + v] = FMA(x, y[v], acc[i * vectors + v]);
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) {
            NAME(loose) *c = (NAME(loose) *)(j->c + i * j->c_row + v * NAME(lanes));
            if (j->add) acc[i * vectors + v] = *c + acc[i * vectors + v];
            *c = acc[i * vectors + v];
        }
    }
}

TARGET static void NAME(tile_of)(const NAME(job) * j, int64_t rows)
{
    switch (rows) {
    case 1: NAME(tile)(j, 1, 2); break;
    case 2: NAME(tile)(j, 2, 2); break;
    case 3: NAME(tile)(j, 3, 2); break;
    case 4: NAME(tile)(j, 4, 2); break;
    case 5: NAME(tile)(j, 5, 2); break;
    default: NAME(tile)(j, TILE_ROWS, 2); break;
    }
}

/* A tile that C cannot take as whole vectors goes through a buffer. */
TARGET static void NAME(tile_apart)(const NAME(job) * j, int64_t rows, int64_t cols, int64_t c_col)
{
    SCALAR out[TILE_ROWS * NAME(width)];
    NAME(job) apart = *j;
    apart.c = out;
    apart.c_row = NAME(width);
    apart.add = false;
    NAME(tile_of)(&apart, rows);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = 0; q < cols; q++) {
            SCALAR *c = j->c + i * j->c_row + q * c_col;
            const SCALAR x = out[i * NAME(width) + q];
            *c = j->add ? *c + x : x;
        }
    }
}

/* A square of lanes x lanes, transposed: log2(lanes) rounds that interleave the first half of the rows with the
 * second. */
TARGET static inline __attribute__((always_inline)) void NAME(transpose)(SCALAR *to, int64_t to_row, const SCALAR *from,
                                                                         int64_t from_row)
{
    enum { LANES = NAME(lanes) };
    NAME(vec) x[LANES], y[LANES];
    for (int i = 0; i < LANES; i++) x[i] = *(const NAME(loose) *)(from + i * from_row);
    for (int round = 1; round < LANES; round *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + LANES / 2], LOW);
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + LANES / 2], HIGH);
        }
        for (int i = 0; i < LANES; i++) x[i] = y[i];
    }
    for (int i = 0; i < LANES; i++) *(NAME(loose) *)(to + i * to_row) = x[i];
}

/* Some rows of A, element by element. */
TARGET static void NAME(pack_a_ragged)(SCALAR *to, const SCALAR *a, int64_t rows, int64_t k, int64_t a_row,
                                       int64_t a_col)
{
    for (int64_t p = 0; p < k; p++) {
        for (int64_t i = 0; i < rows; i++) to[p * TILE_ROWS + i] = a[p * a_col + i * a_row];
    }
}

/* A(rows,k) with contiguous columns. Some tiles at once, so that a cache line of A is fetched once. A vector longer
 * than the tile spills into the place of the next p, which is written after it; hence not for the last p. */
TARGET static void NAME(pack_a_cols)(SCALAR *to, const SCALAR *a, int64_t rows, int64_t k, int64_t a_col)
{
    const int64_t group = 8 * TILE_ROWS;
    for (int64_t begin = 0; begin < rows; begin += group) {
        int64_t whole = begin; /* tiles before this row are copied by vectors */
        while (whole < begin + group && rows - whole >= NAME(reach)) whole += TILE_ROWS;
        for (int64_t p = 0; p < k - 1; p++) {
            for (int64_t r = begin; r < whole; r += TILE_ROWS) {
                for (int i = 0; i + NAME(lanes) <= NAME(reach); i += 2) {
                    *(NAME(loose) *)(to + r * k + p * TILE_ROWS + i) = *(const NAME(loose) *)(a + p * a_col + r + i);
                }
            }
        }
        for (int64_t r = begin; r < smaller(rows, begin + group); r += TILE_ROWS) {
            const int64_t p = r < whole ? k - 1 : 0;
            NAME(pack_a_ragged)
            (to + r * k + p * TILE_ROWS, a + p * a_col + r, smaller(rows - r, TILE_ROWS), k - p, 1, a_col);
        }
    }
}

/* A tile of A with contiguous rows; needs `reach` rows in A. Spills as above, into the tile that is written
 * next. */
TARGET static void NAME(pack_a_rows)(SCALAR *to, const SCALAR *a, int64_t k, int64_t a_row)
{
    int64_t p = 0;
    for (; p + NAME(lanes) <= k; p += NAME(lanes)) {
        for (int i = 0; i + NAME(lanes) <= NAME(reach); i += 2) {
            NAME(transpose)(to + p * TILE_ROWS + i, TILE_ROWS, a + p + i * a_row, a_row);
        }
    }
    NAME(pack_a_ragged)(to + p * TILE_ROWS, a + p, TILE_ROWS, k - p, a_row, 1);
}

/* A(rows,k) to tiles of (k,TILE_ROWS), one after the other. */
TARGET static void NAME(pack_a)(SCALAR *to, const SCALAR *a, int64_t rows, int64_t k, int64_t a_row, int64_t a_col)
{
    if (a_row == 1) {
        NAME(pack_a_cols)(to, a, rows, k, a_col);
        return;
    }
    for (int64_t r = 0; r < rows; r += TILE_ROWS, to += TILE_ROWS * k) {
        const SCALAR *const from = a + r * a_row;
        if (rows - r >= NAME(reach) && a_col == 1) NAME(pack_a_rows)(to, from, k, a_row);
        else NAME(pack_a_ragged)(to, from, smaller(rows - r, TILE_ROWS), k, a_row, a_col);
    }
}

/* Element by element, with zeros for the columns that are not there. */
TARGET static void NAME(pack_b_ragged)(SCALAR *to, const SCALAR *b, int64_t k, int64_t cols, int64_t b_row,
                                       int64_t b_col)
{
    for (int64_t p = 0; p < k; p++, to += NAME(width)) {
        for (int64_t q = 0; q < cols; q++) to[q] = b[p * b_row + q * b_col];
        for (int64_t q = cols; q < NAME(width); q++) to[q] = 0;
    }
}

/* B(k,cols) to (k,width). */
TARGET static void NAME(pack_b)(SCALAR *to, const SCALAR *b, int64_t k, int64_t cols, int64_t b_row, int64_t b_col)
{
    const int lanes = NAME(lanes), width = NAME(width);
    if (cols == width && b_col == 1) {
        for (int64_t p = 0; p < k; p++, to += width, b += b_row) {
            *(NAME(loose) *)to = *(const NAME(loose) *)b;
            *(NAME(loose) *)(to + lanes) = *(const NAME(loose) *)(b + lanes);
        }
    } else if (cols == width && b_row == 1) {
        int64_t p = 0;
        for (; p + lanes <= k; p += lanes) {
            NAME(transpose)(to + p * width, width, b + p, b_col);
            NAME(transpose)(to + p * width + lanes, width, b + p + lanes * b_col, b_col);
        }
        NAME(pack_b_ragged)(to + p * width, b + p, k - p, cols, b_row, b_col);
    } else {
        NAME(pack_b_ragged)(to, b, k, cols, b_row, b_col);
    }
}

/* C(m,cols) = or += A(m,k)·B(k,cols) with at most width columns. a_tile: from a tile of A to the next, by row. */
TARGET static void NAME(panel)(const block *g, NAME(job) * j, int64_t a_tile, int64_t cols)
{
    const SCALAR *const a = j->a;
    SCALAR *const c = j->c;
    const bool whole = cols == NAME(width) && g->c_col == 1;
    for (int64_t r = 0; r < g->m; r += TILE_ROWS) {
        const int64_t rows = smaller(g->m - r, TILE_ROWS);
        j->a = a + r * a_tile;
        j->c = c + r * g->c_row;
        if (whole) NAME(tile_of)(j, rows);
        else NAME(tile_apart)(j, rows, cols, g->c_col);
    }
}

/* The block for k in [k0, k0 + k). */
TARGET static void NAME(slice)(const block *g, int64_t k0, int64_t k, bool add)
{
    SCALAR *const a_pack = g->a_pack, *const b_pack = g->b_pack;
    const SCALAR *a = (const SCALAR *)g->a + k0 * g->a_col;
    const bool pack_a = g->n > A_REUSE * NAME(width), pack_b = g->m > B_REUSE * TILE_ROWS || g->b_col != 1;
    if (pack_a) {
        NAME(pack_a)(a_pack, a, g->m, k, g->a_row, g->a_col);
        a = a_pack;
    }
    int64_t cols = 0;
    for (int64_t q = 0; q < g->n; q += cols) {
        /* A single row has accumulators to spare, and reads more of B at a time. */
        const bool wide = g->m == 1 && !pack_b && g->c_col == 1 && g->n - q >= 4 * NAME(width);
        cols = smaller(g->n - q, wide ? 4 * NAME(width) : NAME(width));
        const SCALAR *b = (const SCALAR *)g->b + k0 * g->b_row + q * g->b_col;
        const bool copy = pack_b || cols < NAME(width);
        if (copy) NAME(pack_b)(b_pack, b, k, cols, g->b_row, g->b_col);
        NAME(job)
        j = { .k = k,
              .a = a,
              .a_row = pack_a ? 1 : g->a_row,
              .a_col = pack_a ? TILE_ROWS : g->a_col,
              .b = copy ? b_pack : b,
              .b_row = copy ? NAME(width) : g->b_row,
              .c = (SCALAR *)g->c + q * g->c_col,
              .c_row = g->c_row,
              .add = add };
        if (wide) NAME(tile)(&j, 1, 8);
        else NAME(panel)(g, &j, pack_a ? k : g->a_row, cols);
    }
}

TARGET static void NAME(block)(const block *g)
{
    const int64_t step = k_step(g->k);
    int64_t k0 = 0;
    do {
        NAME(slice)(g, k0, smaller(step, g->k - k0), g->accumulate || k0 > 0);
        k0 += step;
    } while (k0 < g->k);
}

#undef SCALAR
#undef BYTES
#undef LOW
#undef HIGH
#undef TARGET
#undef FMA
#undef NAME

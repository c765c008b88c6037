/* cpu/gemm_tile.h: the register tile of gemm_body.h, as a function NAME(TILE) whose loop over k is unrolled TILE_STEPS
 * times. It has TILE_VECTORS vectors in a row. */

/* It is inlined with all parameters but j constant, so that acc lies in registers. */
CN__INLINE void NAME(TILE)(const NAME(job) * j, const int rows, const NAME(form) form)
{
    const T *a = j->a, *b = j->b;
    T *const c = j->c;
    const int64_t k = j->k, c_row = j->c_row, runs = form == NAME(in_runs) ? j->runs : 1;
    const int64_t a_row = form == NAME(both_packed) ? 1 : j->a_row, a_col = form == NAME(both_packed) ? ROWS : j->a_col;
    const int64_t b_row = form >= NAME(none_packed) ? j->b_row : NAME(width);
    T *to = j->b_to;
    const int64_t far = (b_row == NAME(width) ? NAME(further) : NAME(ahead)) * b_row;
    NAME(vec) acc[NAME(most)], y[TILE_VECTORS];
    /* One loop over all accumulators is unrolled early, so that acc becomes registers. Nested loops would leave a copy
       on the stack. */
    const int count = rows * TILE_VECTORS;
    enum { STEPS = TILE_STEPS }; /* a pragma accepts the name of a constant, but not of a macro */
    CN__UNROLL
    for (int n = 0; n < count; n++) acc[n] = (NAME(vec)){ 0 };
    for (int i = 0; i < rows; i++) __builtin_prefetch(c + i * c_row, 1);
    for (int64_t run = 0; run < runs; run++, a += form == NAME(in_runs) ? j->a_run - k * a_col : 0) {
#pragma GCC unroll STEPS
        for (int64_t p = 0; p < k; p++, a += a_col, b += b_row) {
            CN__UNROLL
            for (int v = 0; v < TILE_VECTORS && form >= NAME(none_packed); v += 64 / BYTES)
                __builtin_prefetch(b + far + v * NAME(lanes)); /* each line of the cache */
            CN__UNROLL
            for (int v = 0; v < TILE_VECTORS; v++) {
                y[v] = *(const NAME(loose) *)(b + v * NAME(lanes));
                if (form == NAME(packing)) *(NAME(loose) *)(to + v * NAME(lanes)) = y[v];
            }
            if (form == NAME(packing)) to += NAME(width);
            CN__UNROLL
            for (int n = 0; n < count; n++) {
                const NAME(vec) x = a[n / TILE_VECTORS * a_row] - (NAME(vec)){ 0 }; /* - 0 is exact, + 0 is not */
                acc[n] = NAME(FMA)(x, y[n % TILE_VECTORS], acc[n]);
            }
        }
    }
    if (j->add) {
        CN__UNROLL
        for (int n = 0; n < count; n++)
            acc[n] = *(NAME(loose) *)(c + n / TILE_VECTORS * c_row + n % TILE_VECTORS * NAME(lanes)) + acc[n];
    }
    CN__UNROLL
    for (int n = 0; n < count; n++)
        *(NAME(loose) *)(c + n / TILE_VECTORS * c_row + n % TILE_VECTORS * NAME(lanes)) = acc[n];
}

#undef TILE
#undef TILE_STEPS
#undef TILE_VECTORS

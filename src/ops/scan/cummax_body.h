/* cummax_body.h: cummax or cummin of columns [from, to) of one outer row, for elements of type T; included by cummax.c
   through cpu/each_type.h. A later equal element replaces an earlier one; after a NaN all results are NaN. */
static void FOLDED(const void *data, void *values, int64_t *at, const cn__lines *l, int64_t from, int64_t to)
{
    const T *x = data;
    T *v = values;
    for (int64_t c = from; c < to; c++) v[c] = x[c], at[c] = 0;
    for (int64_t i = 1; i < l->n; i++) {
        const T *now = x + i * l->inner, *best = v + (i - 1) * l->inner;
        for (int64_t c = from; c < to; c++) {
            bool take = IS_NAN(now[c]) || BEATS(now[c], best[c]);
            v[i * l->inner + c] = take ? now[c] : best[c];
            at[i * l->inner + c] = take ? i : at[(i - 1) * l->inner + c];
        }
    }
}

/* gather_body.h: copies of boxes with elements of SIZE bytes; included by gather_cpu.c, which defines T, an unsigned
   type of that size, and the numbers of shuffles. */
#define NAMED(f) CN__PASTE(f, SIZE)
#define LANES    (BYTES / SIZE)
#define VEC      NAMED(vec)

#if !CN__ONLY_F32
typedef T VEC __attribute__((vector_size(BYTES), aligned(SIZE), may_alias));

CN__INLINE VEC NAMED(load)(const T *p) { return *(const VEC *)p; }
CN__INLINE void NAMED(store)(T *p, VEC v) { *(VEC *)p = v; }

/* A vector in place of the last elements may write some of them twice. */
static void NAMED(copy)(T *to, const T *from, int64_t n)
{
    if (n >= 64 * LANES) {
        memcpy(to, from, (size_t)n * SIZE);
        return;
    }
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) NAMED(store)(to + k, NAMED(load)(from + k));
    if (k < n && n >= LANES) NAMED(store)(to + n - LANES, NAMED(load)(from + n - LANES));
    else
        for (; k < n; k++) to[k] = from[k];
}

static void NAMED(fill)(T *to, T value, int64_t n)
{
    int64_t k = 0;
    const VEC v = (VEC){ 0 } + value;
    for (; k + LANES <= n; k += LANES) NAMED(store)(to + k, v);
    if (k < n && n >= LANES) NAMED(store)(to + n - LANES, v);
    else
        for (; k < n; k++) to[k] = value;
}

static void NAMED(copy_evens)(T *to, const T *from, int64_t n)
{
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        const T *p = from + 2 * k;
        NAMED(store)(to + k, __builtin_shufflevector(NAMED(load)(p), NAMED(load)(p + LANES - 1), NAMED(EVENS)));
    }
    for (; k < n; k++) to[k] = from[2 * k];
}

static void NAMED(copy_steps)(T *to, const T *from, int64_t step, int64_t n)
{
    for (int64_t k = 0; k < n; k++) to[k] = from[k * step];
}

/* Turns a square: from[k * step + i] becomes to[i * to_row + k]. */
CN__INLINE void NAMED(turn)(T *to, int64_t to_row, const T *from, int64_t step)
{
    VEC a[LANES], b[LANES];
    for (int k = 0; k < LANES; k++) a[k] = NAMED(load)(from + k * step);
    for (int k = 0; k < LANES; k += 2) { /* rows 2k and 2k + 1: elements 0 and 2 (mod 4), 1 and 3 */
        b[k] = __builtin_shufflevector(a[k], a[k + 1], NAMED(ONE_LOW));
        b[k + 1] = __builtin_shufflevector(a[k], a[k + 1], NAMED(ONE_HIGH));
    }
#if SIZE == 4
    for (int k = 0; k < LANES; k += 4) { /* a[k + i] has element i of each 16 bytes, of four rows */
        a[k] = __builtin_shufflevector(b[k], b[k + 2], TWO_LOW_4);
        a[k + 1] = __builtin_shufflevector(b[k], b[k + 2], TWO_HIGH_4);
        a[k + 2] = __builtin_shufflevector(b[k + 1], b[k + 3], TWO_LOW_4);
        a[k + 3] = __builtin_shufflevector(b[k + 1], b[k + 3], TWO_HIGH_4);
    }
#else
    for (int k = 0; k < LANES; k++) a[k] = b[k];
#endif
#if BYTES == 32
    for (int k = 0; k < LANES / 2; k++) {
        b[k] = __builtin_shufflevector(a[k], a[k + LANES / 2], NAMED(HALF_LOW));
        b[k + LANES / 2] = __builtin_shufflevector(a[k], a[k + LANES / 2], NAMED(HALF_UP));
    }
#else
    for (int k = 0; k < LANES; k++) b[k] = a[k];
#endif
    for (int k = 0; k < LANES; k++) NAMED(store)(to + k * to_row, b[k]);
}

static void NAMED(turn_box)(const cn__box *b)
{
    T *to = b->to;
    const T *from = b->from;
    const int64_t whole = b->rows / LANES * LANES;
    int64_t k = 0;
    for (; k + LANES <= b->n; k += LANES)
        for (int64_t i = 0; i < whole; i += LANES)
            NAMED(turn)(to + i * b->to_row + k, b->to_row, from + k * b->step + i, b->step);
    for (; k < b->n; k++)
        for (int64_t i = 0; i < whole; i++) to[i * b->to_row + k] = from[k * b->step + i];
    for (int64_t i = whole; i < b->rows; i++) NAMED(copy_steps)(to + i * b->to_row, from + i, b->step, b->n);
}

static void NAMED(box)(const cn__box *b)
{
    T *to = b->to;
    const T *from = b->from;
    if (b->row == 1 && b->rows >= LANES && b->step != 0 && b->step != 1) {
        NAMED(turn_box)(b);
        return;
    }
    if (b->step == 1) {
        for (int64_t i = 0; i < b->rows; i++, to += b->to_row, from += b->row) NAMED(copy)(to, from, b->n);
        return;
    }
    for (int64_t i = 0; i < b->rows; i++, to += b->to_row, from += b->row) {
        if (b->step == 0) NAMED(fill)(to, *from, b->n);
        else if (b->step == 2) NAMED(copy_evens)(to, from, b->n);
        else NAMED(copy_steps)(to, from, b->step, b->n);
    }
}
#endif

#undef NAMED
#undef LANES
#undef VEC

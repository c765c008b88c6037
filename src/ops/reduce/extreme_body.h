/* extreme_body.h: reducers of max and argmax, or min and argmin, for elements of type T; included by extremes_cpu.c.
   BEATS(x, y) is whether x is better than y; WORST is the initial value. A NaN is better than any number. */
static void DIRECTED(begin)(void *state, int64_t n)
{
    T *s = state;
    for (int64_t i = 0; i < n; i++) s[i] = WORST;
}

/* One expression without branches, so that it vectorises. Without restrict: gcc 12 loses writes to two parts of one
   array. */
CN__INLINE void DIRECTED(absorb)(T *s, const T *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) s[i] = (BEATS(x[i], s[i]) | IS_NAN(x[i])) ? x[i] : s[i];
}

static void DIRECTED(columns)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    DIRECTED(absorb)(state, data, n);
}

/* Vectors have a fixed size, because compilers split a loop over lanes. */
#define WIDTH (VECTOR / (int)sizeof(T))
typedef T DIRECTED(lanes) __attribute__((vector_size(VECTOR)));
typedef T DIRECTED(loose) __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));

CN__INLINE void DIRECTED(absorb_lanes)(DIRECTED(lanes) *s, const void *x)
{
    const DIRECTED(loose) v = *(const DIRECTED(loose) *)x;
    typedef __typeof__(v > *s) bits;
    bits better = BEATS(v, *s);
#if IS_FLOAT
    better |= v != v;
#endif
    *s = (DIRECTED(lanes))(((bits)v & better) | ((bits)*s & ~better));
}

static void DIRECTED(row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    const T *x = data;
    T best = *(T *)state;
    int64_t i = 0;
    if (n >= WIDTH) {
        DIRECTED(lanes) a = *(const DIRECTED(loose) *)x, b = a;
        for (i = WIDTH; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
            DIRECTED(absorb_lanes)(&a, x + i);
            DIRECTED(absorb_lanes)(&b, x + i + WIDTH);
        }
        for (; i + WIDTH <= n; i += WIDTH) DIRECTED(absorb_lanes)(&a, x + i);
        DIRECTED(absorb_lanes)(&a, &b);
        T lane[WIDTH];
        memcpy(lane, &a, sizeof lane);
        for (int w = WIDTH / 2; w > 0; w /= 2) DIRECTED(absorb)(lane, lane + w, w);
        DIRECTED(absorb)(&best, lane, 1);
    }
    for (; i < n; i++) DIRECTED(absorb)(&best, x + i, 1);
    *(T *)state = best;
}
#undef WIDTH

static void DIRECTED(rows)(void *state, const void *data, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < count; i++) DIRECTED(row)((T *)state + i, (const T *)data + i * n, n, 0);
}

static void DIRECTED(block)(void *state, const void *data, int64_t n, int64_t count, int64_t position)
{
    (void)position;
    for (int64_t i = 0; i < count; i++) DIRECTED(absorb)(state, (const T *)data + i * n, n);
}

static void DIRECTED(merge)(void *state, const void *later, int64_t n) { DIRECTED(absorb)(state, later, n); }
static void DIRECTED(end)(const void *state, void *out, int64_t n) { memcpy(out, state, sizeof(T) * (size_t)n); }

static const cn_reducer DIRECTED(reducer) = {
    sizeof(T), DIRECTED(begin), DIRECTED(row), DIRECTED(columns), DIRECTED(merge), DIRECTED(end),
    DIRECTED(rows), DIRECTED(block), 0,
};

typedef struct DIRECTED(place) {
    int64_t index; /* -1: no element so far */
    T value;
} DIRECTED(place);

static void DIRECTED(arg_begin)(void *state, int64_t n)
{
    DIRECTED(place) *s = state;
    for (int64_t i = 0; i < n; i++) s[i] = (DIRECTED(place)){-1, 0};
}

/* Only a strictly better element replaces the best: the first of equal elements stays. */
static inline bool DIRECTED(arg_better)(const DIRECTED(place) *s, T x)
{
    return s->index < 0 || BEATS(x, s->value) || (IS_NAN(x) && !IS_NAN(s->value));
}

static inline void DIRECTED(arg_take)(DIRECTED(place) *s, T x, int64_t index)
{
    if (DIRECTED(arg_better)(s, x)) *s = (DIRECTED(place)){index, x};
}

/* First finds the best value, which vectorises, and searches its index only if the value improved. */
static void DIRECTED(arg_row)(void *state, const void *data, int64_t n, int64_t position)
{
    const T *x = data;
    DIRECTED(place) *s = state;
    T best = WORST;
    DIRECTED(row)(&best, x, n, position);
    if (!DIRECTED(arg_better)(s, best)) return;
    int64_t i = 0;
    while (i < n && x[i] != best && !IS_NAN(x[i])) i++;
    if (i < n) *s = (DIRECTED(place)){position + i, best};
}

static void DIRECTED(arg_columns)(void *state, const void *data, int64_t n, int64_t position)
{
    const T *x = data;
    for (int64_t i = 0; i < n; i++) DIRECTED(arg_take)((DIRECTED(place) *)state + i, x[i], position);
}

static void DIRECTED(arg_merge)(void *state, const void *later, int64_t n)
{
    const DIRECTED(place) *t = later;
    for (int64_t i = 0; i < n; i++)
        if (t[i].index >= 0) DIRECTED(arg_take)((DIRECTED(place) *)state + i, t[i].value, t[i].index);
}

static void DIRECTED(arg_end)(const void *state, void *out, int64_t n)
{
    const DIRECTED(place) *s = state;
    int64_t *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = s[i].index;
}

static const cn_reducer DIRECTED(arg_reducer) = {
    sizeof(DIRECTED(place)), DIRECTED(arg_begin), DIRECTED(arg_row), DIRECTED(arg_columns), DIRECTED(arg_merge),
    DIRECTED(arg_end), 0, 0, 0,
};

/* fold_body.h: a reducer that folds elements of type T with FOLD, from the initial value UNIT; included by folds_cpu.c.
   Inside a block it has independent lanes of type LANE; between blocks the state has type STATE. */
#if IS_FLOAT
#define ELEMENT T
#define STATE   double
#else
#define ELEMENT U
#define STATE   uint64_t
#endif

static void FOLDED(begin)(void *state, int64_t n)
{
    STATE *s = state;
    for (int64_t i = 0; i < n; i++) s[i] = UNIT;
}

/* Vectors have a fixed size, because compilers split a loop over lanes. */
#define WIDTH (VECTOR / (int)sizeof(LANE))
typedef LANE FOLDED(lanes) __attribute__((vector_size(VECTOR)));
typedef T FOLDED(loose) __attribute__((vector_size(WIDTH * sizeof(T)), aligned(sizeof(T)), may_alias));

#define LOADED(x) __builtin_convertvector(*(const FOLDED(loose) *)(x), FOLDED(lanes))

/* Four vectors of lanes are merged in pairs; the lanes of one are merged in STATE. */
static STATE FOLDED(piece)(const T *x, int64_t n)
{
    STATE s = UNIT;
    int64_t i = 0;
    if (n >= WIDTH) {
        FOLDED(lanes) a = (FOLDED(lanes)){ 0 } + UNIT, b = a, c = a, d = a;
        for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
            a = FOLD(a, LOADED(x + i));
            b = FOLD(b, LOADED(x + i + WIDTH));
            c = FOLD(c, LOADED(x + i + 2 * WIDTH));
            d = FOLD(d, LOADED(x + i + 3 * WIDTH));
        }
        for (; i + WIDTH <= n; i += WIDTH) a = FOLD(a, LOADED(x + i));
        a = FOLD(FOLD(a, b), FOLD(c, d));
        STATE part[WIDTH / 2];
        for (int l = 0; l < WIDTH / 2; l++) part[l] = FOLD((STATE)a[l], (STATE)a[l + WIDTH / 2]);
        for (int w = WIDTH / 4; w > 0; w /= 2)
            for (int l = 0; l < w; l++) part[l] = FOLD(part[l], part[l + w]);
        s = part[0];
    }
    for (; i < n; i++) s = FOLD(s, (STATE)x[i]);
    return s;
}

CN__INLINE STATE FOLDED(of_row)(STATE s, const T *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK) s = FOLD(s, FOLDED(piece)(x + i, n - i < BLOCK ? n - i : BLOCK));
    return s;
}

static void FOLDED(row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    *(STATE *)state = FOLDED(of_row)(*(STATE *)state, data, n);
}

static void FOLDED(rows)(void *state, const void *data, int64_t n, int64_t count)
{
    STATE *s = state;
    const T *x = data;
    for (int64_t i = 0; i < count; i++) s[i] = FOLDED(of_row)(s[i], x + i * n, n);
}

static void FOLDED(columns)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    STATE *s = state;
    const T *x = data;
    for (int64_t i = 0; i < n; i++) s[i] = FOLD(s[i], (STATE)x[i]);
}

/* Eight positions are folded as lanes, and their sum into the state. */
#define PAIR(x, y)                         FOLD((LANE)(x), (LANE)(y))
#define OF_EIGHT(a, b, c, d, e, f, g, h) FOLD(FOLD(PAIR(a, b), PAIR(c, d)), FOLD(PAIR(e, f), PAIR(g, h)))

static void FOLDED(eight)(void *state, const void *const rows[8], int64_t n, int64_t position)
{
    (void)position;
    STATE *restrict s = state;
    const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const T *e = rows[4], *f = rows[5], *g = rows[6], *h = rows[7];
    for (int64_t i = 0; i < n; i++)
        s[i] = FOLD(s[i], (STATE)OF_EIGHT(a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]));
}

static void FOLDED(block)(void *state, const void *data, int64_t n, int64_t count, int64_t position)
{
    STATE *s = state;
    const T *x = data;
    for (; count >= 8; count -= 8, x += 8 * n)
        for (int64_t i = 0; i < n; i++)
            s[i] = FOLD(s[i], (STATE)OF_EIGHT(x[i], x[n + i], x[2 * n + i], x[3 * n + i], x[4 * n + i], x[5 * n + i],
                                              x[6 * n + i], x[7 * n + i]));
    for (; count > 0; count--, x += n) FOLDED(columns)(s, x, n, position);
}

static void FOLDED(merge)(void *state, const void *later, int64_t n)
{
    STATE *s = state;
    const STATE *t = later;
    for (int64_t i = 0; i < n; i++) s[i] = FOLD(s[i], t[i]);
}

static void FOLDED(end)(const void *state, void *out, int64_t n)
{
    const STATE *s = state;
    T *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (T)s[i];
}

static const cn_reducer FOLDED(reducer) = {
    sizeof(STATE), FOLDED(begin), FOLDED(row), FOLDED(columns), FOLDED(merge), FOLDED(end), FOLDED(rows), FOLDED(block),
    FOLDED(eight),
};

#undef WIDTH
#undef PAIR
#undef OF_EIGHT
#undef LOADED
#undef ELEMENT
#undef STATE

/* fold_body.h: a reducer that folds elements of type T with FOLD, from the initial value UNIT; included by folds_cpu.c.
   Inside a block it has LANES independent lanes of type LANE; between blocks the state has type STATE. */
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

static STATE FOLDED(block)(const T *x, int64_t n)
{
    STATE s = UNIT;
    int64_t i = 0;
    if (n >= LANES) {
        LANE lane[LANES];
        for (int l = 0; l < LANES; l++) lane[l] = UNIT;
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] = FOLD(lane[l], (LANE)x[i + l]);
        for (int l = 0; l < LANES; l++) s = FOLD(s, (STATE)lane[l]);
    }
    for (; i < n; i++) s = FOLD(s, (STATE)x[i]);
    return s;
}

static void FOLDED(row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    const T *x = data;
    STATE s = *(STATE *)state;
    for (int64_t i = 0; i < n; i += BLOCK) s = FOLD(s, FOLDED(block)(x + i, n - i < BLOCK ? n - i : BLOCK));
    *(STATE *)state = s;
}

static void FOLDED(columns)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    STATE *s = state;
    const T *x = data;
    for (int64_t i = 0; i < n; i++) s[i] = FOLD(s[i], (STATE)x[i]);
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
    sizeof(STATE), FOLDED(begin), FOLDED(row), FOLDED(columns), FOLDED(merge), FOLDED(end),
};

#undef ELEMENT
#undef STATE

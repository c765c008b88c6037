/* A reducer that folds with FOLD from UNIT: elements T, independent lanes LANE inside a block, state STATE between. */
static void NAME(begin)(void *state, int64_t n)
{
    STATE *s = state;
    for (int64_t i = 0; i < n; i++) s[i] = UNIT;
}

static STATE NAME(block)(const T *x, int64_t n)
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

static void NAME(row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    const T *x = data;
    STATE s = *(STATE *)state;
    for (int64_t i = 0; i < n; i += BLOCK) s = FOLD(s, NAME(block)(x + i, n - i < BLOCK ? n - i : BLOCK));
    *(STATE *)state = s;
}

COLUMNS_BODY(NAME(columns))
{
    STATE *s = state;
    const T *x = data;
    for (int64_t i = 0; i < n; i++) s[i] = FOLD(s[i], (STATE)x[i]);
}
COLUMNS(NAME(columns))

static void NAME(merge)(void *state, const void *later, int64_t n)
{
    STATE *s = state;
    const STATE *t = later;
    for (int64_t i = 0; i < n; i++) s[i] = FOLD(s[i], t[i]);
}

static void NAME(end)(const void *state, void *out, int64_t n)
{
    const STATE *s = state;
    T *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (T)s[i];
}

static const cn_reducer NAME(reducer) = {sizeof(STATE), NAME(begin), NAME(row), NAME(columns), NAME(merge), NAME(end)};

#undef T
#undef LANE
#undef STATE
#undef NAME

/* truth_body.h: reducers of any and all for elements of type T; included by truth.c through cpu/each_type.h. An element
   that is not 0 is true, also NaN. */
static void NAME(any_row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    const T *x = data;
    uint8_t found = *(uint8_t *)state;
    for (int64_t i = 0; i < n; i++) found |= x[i] != 0;
    *(uint8_t *)state = found;
}

static void NAME(any_columns)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    uint8_t *s = state;
    const T *x = data;
    for (int64_t i = 0; i < n; i++) s[i] |= x[i] != 0;
}

static void NAME(all_row)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    const T *x = data;
    uint8_t held = *(uint8_t *)state;
    for (int64_t i = 0; i < n; i++) held &= x[i] != 0;
    *(uint8_t *)state = held;
}

static void NAME(all_columns)(void *state, const void *data, int64_t n, int64_t position)
{
    (void)position;
    uint8_t *s = state;
    const T *x = data;
    for (int64_t i = 0; i < n; i++) s[i] &= x[i] != 0;
}

static const cn_reducer NAME(any) = {1, any_begin, NAME(any_row), NAME(any_columns), any_merge, truth_end, 0, 0, 0};
static const cn_reducer NAME(all) = {1, all_begin, NAME(all_row), NAME(all_columns), all_merge, truth_end, 0, 0, 0};

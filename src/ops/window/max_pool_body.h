/* Template: max pooling for one element type T. max_pool_cpu.c includes it through cpu/each_type.h, which defines T and
   NAME. As in PyTorch, NaN is larger than everything, and of equal elements the first counts. */

/* The index of the element of a volume where a window begins. */
static int64_t NAME(begin)(const cn__pool *p, cn__span s, cn__span r, cn__span c)
{
    const int64_t d = s.lo < p->id ? s.lo : p->id - 1, h = r.lo < p->ih ? r.lo : p->ih - 1;
    return (d * p->ih + h) * p->iw + (c.lo < p->iw ? c.lo : p->iw - 1);
}

/* Results [first, first + n) of a row, one window after the other. */
static void NAME(each)(const cn__pool *p, const T *volume, cn__span s, cn__span r, int64_t first, int64_t n, T *y,
                       int64_t *at)
{
    for (int64_t j = 0; j < n; j++) {
        cn__span c = p->cols[first + j];
        T best = (T)LEAST;
        int64_t place = NAME(begin)(p, s, r, c);
        for (int64_t d = s.lo; d < s.hi; d += s.step) {
            for (int64_t h = d * p->ih + r.lo; h < d * p->ih + r.hi; h += r.step) {
                for (int64_t w = c.lo; w < c.hi; w += c.step) {
                    T v = volume[h * p->iw + w];
                    if (!(v > best) && !IS_NAN(v)) continue;
                    best = v;
                    place = h * p->iw + w;
                }
            }
        }
        y[j] = best;
        at[j] = place;
    }
}

#if IS_FLOAT
static inline void NAME(larger)(const T *restrict x, int32_t here, int32_t stride, int64_t n, T *restrict best,
                                int32_t *restrict place)
{
    for (int64_t j = 0; j < n; j++) {
        int32_t step = (int32_t)j * stride, old = place[j];
        T v = x[step], b = best[j];
        bool is = (v > b) | (v != v);
        best[j] = is ? v : b;
        place[j] = is ? here + step : old;
    }
}

/* One row of the volume, for n windows from the first on. */
static inline void NAME(one_row)(const cn__pool *p, const cn__pool_attrs *a, const T *volume, int64_t row,
                                 int64_t first, int64_t n, T *best, int32_t *place)
{
    const int64_t last = a->axes - 1, stride = a->stride[last];
    for (int64_t u = 0; u < a->kernel[last]; u++) {
        int64_t w = first * stride - a->padding[last] + u * a->dilation[last];
        int64_t skip = w < 0 ? (-w + stride - 1) / stride : 0, end = w < p->iw ? (p->iw - 1 - w) / stride + 1 : 0;
        if (end > n) end = n;
        if (skip >= end) continue;
        int64_t here = row * p->iw + w + skip * stride;
        if (stride == 1) NAME(larger)(volume + here, (int32_t)here, 1, end - skip, best + skip, place + skip);
        else if (stride == 2) NAME(larger)(volume + here, (int32_t)here, 2, end - skip, best + skip, place + skip);
        else NAME(larger)(volume + here, (int32_t)here, (int32_t)stride, end - skip, best + skip, place + skip);
    }
}

/* Results [first, first + n) of a row, n <= TILE. The outer loops run over the elements of a window, the inner loop
   over the windows: no branch depends on data, so compilers vectorise it. */
static void NAME(together)(const cn__pool *p, const cn__pool_attrs *a, const T *volume, cn__span s, cn__span r,
                           int64_t first, int64_t n, T *y, int64_t *at)
{
    T best[TILE];
    int32_t place[TILE];
    for (int64_t j = 0; j < n; j++) best[j] = (T)LEAST, place[j] = (int32_t)NAME(begin)(p, s, r, p->cols[first + j]);
    for (int64_t d = s.lo; d < s.hi; d += s.step)
        for (int64_t h = r.lo; h < r.hi; h += r.step)
            NAME(one_row)(p, a, volume, d * p->ih + h, first, n, best, place);
    for (int64_t j = 0; j < n; j++) y[j] = best[j], at[j] = place[j];
}

/* The same for neighbouring windows of 2 by 2, from `here` in the plane on. Not inlined: compilers would unroll a fixed
   n into branches on data. */
static __attribute__((noinline)) void NAME(squares)(const T *restrict x, int64_t here, int64_t width, int64_t n,
                                                    T *restrict y, int64_t *restrict at)
{
    const T *restrict up = x + here, *restrict down = up + width;
    const int32_t from = (int32_t)here, below = (int32_t)width;
    for (int64_t j = 0; j < n; j++) {
        const T a = up[2 * j], b = up[2 * j + 1], c = down[2 * j], d = down[2 * j + 1];
        T best = a;
        int32_t place = 0;
        bool is = (b > best) | (b != b);
        best = is ? b : best, place = is ? 1 : place;
        is = (c > best) | (c != c);
        best = is ? c : best, place = is ? below : place;
        is = (d > best) | (d != d);
        y[j] = is ? d : best;
        at[j] = from + 2 * (int32_t)j + (is ? below + 1 : place);
    }
}

/* A row of such windows, as whole vectors; the last vector may repeat some windows. */
static void NAME(square_row)(const T *x, int64_t here, int64_t width, int64_t n, T *y, int64_t *at)
{
    const int64_t step = n < 8 ? 4 : 8, whole = n - n % step, last = n - step;
    NAME(squares)(x, here, width, whole ? whole : n, y, at);
    if (whole && whole < n) NAME(squares)(x, here + 2 * last, width, step, y + last, at + last);
}

static bool NAME(is_squares)(const cn__pool *p, const cn__pool_attrs *a)
{
    bool is = p->ih / 2 >= p->oh && p->iw / 2 >= p->ow; /* every window lies inside the plane */
    is &= a->axes == 2 || a->kernel[0] == 1;
    for (int64_t d = a->axes - 2; d < a->axes; d++)
        is &= a->kernel[d] == 2 && a->stride[d] == 2 && a->padding[d] == 0 && a->dilation[d] == 1;
    return is;
}

/* Results [first, first + n) of a row, n <= TILE. */
static void NAME(some)(const cn__pool *p, const cn__pool_attrs *a, way by, const T *volume, cn__span s, cn__span r,
                       int64_t first, int64_t n, T *y, int64_t *at)
{
    if (by == SQUARES) NAME(square_row)(volume, (s.lo * p->ih + r.lo) * p->iw + 2 * first, p->iw, n, y, at);
    else if (by == TOGETHER) NAME(together)(p, a, volume, s, r, first, n, y, at);
    else NAME(each)(p, volume, s, r, first, n, y, at);
}

static way NAME(fastest)(const cn__pool *p, const cn__pool_attrs *a)
{
    const bool narrow = a->kernel[0] && a->kernel[a->axes - 1] <= TILE && p->id * p->ih * p->iw <= INT32_MAX;
    return !narrow ? EACH : NAME(is_squares)(p, a) ? SQUARES : TOGETHER;
}
#else
/* Whole numbers are pooled seldom: they have the plainest way only. */
static void NAME(some)(const cn__pool *p, const cn__pool_attrs *a, way by, const T *volume, cn__span s, cn__span r,
                       int64_t first, int64_t n, T *y, int64_t *at)
{
    (void)a, (void)by;
    NAME(each)(p, volume, s, r, first, n, y, at);
}

static way NAME(fastest)(const cn__pool *p, const cn__pool_attrs *a) { return (void)p, (void)a, EACH; }
#endif

static void NAME(max)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    const cn__pool_attrs *a = k->attrs;
    const way by = NAME(fastest)(p, a);
    cn__pool_row here = cn__pool_row_of(p, begin);
    for (int64_t row = begin; row < end; row++, cn__pool_next(p, &here)) {
        const T *volume = (const T *)k->in[0].data + here.volume * p->id * p->ih * p->iw;
        cn__span s = p->slabs[here.d], r = p->rows[here.h];
        for (int64_t j = 0; j < p->ow; j += TILE) {
            int64_t n = p->ow - j < TILE ? p->ow - j : TILE;
            T *y = (T *)k->out[0].data + row * p->ow + j;
            int64_t *at = (int64_t *)k->out[1].data + row * p->ow + j;
            NAME(some)(p, a, by, volume, s, r, j, n, y, at);
        }
    }
}

#if IS_FLOAT
static void NAME(max_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__pool_sizes *s = user;
    for (int64_t plane = begin, reported = begin; plane < end; plane++) {
        T *x = (T *)k->out[0].data + plane * s->in;
        const T *g = (const T *)k->in[0].data + plane * s->out;
        const int64_t *at = (const int64_t *)k->in[1].data + plane * s->out;
        for (int64_t i = 0; i < s->in; i++) x[i] = 0;
        for (int64_t i = 0; i < s->out; i++)
            if (at[i] >= 0 && at[i] < s->in) x[at[i]] += g[i];
        reported = cn__rows_done(k, reported, plane + 1, end, s->in, thread);
    }
}
#endif

/* Template: copies an image to columns and back, and multiplies without columns, for one element type T. columns.c
   includes it through cpu/each_type.h, which defines T and NAME. columns.c defines lane numbers for shuffles of two
   16-byte vectors:

       NAME(EVENS)  every other element of two vectors, the second of which begins with the last element of the first
       NAME(LOW)    the lower half of the first vector, each element followed by one of the second vector
       NAME(HIGH)   the same for the upper half */

typedef T NAME(vec) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
enum { NAME(lanes) = 16 / sizeof(T) };

/* to[i] = from[i·step] for step 1 or 2. Lines are short: a call of memcpy would cost more than the copy. */
CN__INLINE void NAME(load_near)(T *restrict to, const T *restrict from, int64_t n, const int step)
{
    enum { LANES = NAME(lanes) };
    const int64_t last = n - LANES;
    for (int64_t i = 0;; i = i + LANES < last ? i + LANES : last) { /* the last vector ends with the line */
        const T *p = from + i * step;
        NAME(vec) v = *(const NAME(vec) *)p;
        if (step == 2) v = __builtin_shufflevector(v, *(const NAME(vec) *)(p + LANES - 1), NAME(EVENS));
        *(NAME(vec) *)(to + i) = v;
        if (i == last) return;
    }
}

/* to[i] = from[i·step] */
CN__INLINE void NAME(load_line)(T *restrict to, const T *restrict from, int64_t n, int64_t step)
{
    if (n >= NAME(lanes) && step == 1) NAME(load_near)(to, from, n, 1);
    else if (n >= NAME(lanes) && step == 2) NAME(load_near)(to, from, n, 2);
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
}

/* to[i·step] += from[i] */
CN__INLINE void NAME(add_line)(T *restrict to, const T *restrict from, int64_t n, int64_t step)
{
    enum { LANES = NAME(lanes) };
    const NAME(vec) none = { 0 };
    int64_t i = 0;
    if (step == 1)
        for (; i + LANES <= n; i += LANES) *(NAME(vec) *)(to + i) += *(const NAME(vec) *)(from + i);
    if (step == 2)
        for (; i + LANES < n; i += LANES) { /* another element follows, so the last lane may be written */
            const NAME(vec) v = *(const NAME(vec) *)(from + i);
            *(NAME(vec) *)(to + 2 * i) += __builtin_shufflevector(v, none, NAME(LOW));
            *(NAME(vec) *)(to + 2 * i + LANES) += __builtin_shufflevector(v, none, NAME(HIGH));
        }
    for (; i < n; i++) to[i * step] += from[i];
}

static void NAME(gather_row)(const cn__conv *c, walk w, T *to, const T *x)
{
    const int64_t step = c->a->stride[2], line = c->a->stride[1] * c->s.in[2];
    for (lines l; walk_next(c, &w, &l);)
        for (int64_t y = 0; y < l.lines; y++, to += l.run) {
            for (int64_t i = 0; i < l.skip; i++) to[i] = 0;
            if (l.count) NAME(load_line)(to + l.skip, x + l.pixel + y * line, l.count, step);
            for (int64_t i = l.skip + l.count; i < l.run; i++) to[i] = 0;
        }
}

static void NAME(scatter_row)(const cn__conv *c, walk w, const T *from, T *x)
{
    const int64_t step = c->a->stride[2], line = c->a->stride[1] * c->s.in[2];
    for (lines l; walk_next(c, &w, &l); from += l.lines * l.run)
        for (int64_t y = 0; y < l.lines && l.count; y++)
            NAME(add_line)(x + l.pixel + y * line, from + y * l.run + l.skip, l.count, step);
}

static void NAME(gather)(const cn__conv *c, T *to, const T *image, int64_t channels, int64_t at, int64_t len)
{
    walk begun[WALKS];
    for (int64_t tap = 0, n; tap < c->volume; tap += n) {
        n = walks_begin(c, begun, tap, at, len);
        for (int64_t ch = 0; ch < channels; ch++)
            for (int64_t i = 0; i < n; i++)
                NAME(gather_row)(c, begun[i], to + (ch * c->volume + tap + i) * len, image + ch * c->pixels);
    }
}

static void NAME(scatter)(const cn__conv *c, T *from, T *image, int64_t channels, int64_t at, int64_t len)
{
    walk begun[WALKS];
    for (int64_t tap = 0, n; tap < c->volume; tap += n) {
        n = walks_begin(c, begun, tap, at, len);
        for (int64_t ch = 0; ch < channels; ch++)
            for (int64_t i = 0; i < n; i++)
                NAME(scatter_row)(c, begun[i], from + (ch * c->volume + tap + i) * len, image + ch * c->pixels);
    }
}

/* Writes zeros to a row of columns where the shifted pixel belongs to another line than the position. */
static void NAME(clear_edges)(const cn__conv *c, const moved *m, T *row, int64_t at, int64_t len)
{
    const int64_t width = c->s.in[2], end = at + len;
    for (int64_t gap = 0; gap < m->gap; gap++)
        for (int64_t p = at - at % width + m->edge + gap; p < end; p += width)
            if (p >= at) row[p - at] = 0;
}

static void NAME(gather_moved)(const cn__conv *c, T *to, const T *image, int64_t channels, int64_t at, int64_t len)
{
    for (int64_t ch = 0; ch < channels; ch++, image += c->pixels)
        for (int64_t tap = 0; tap < c->volume; tap++, to += len) {
            const moved m = moved_by(c, tap, at, len);
            const int64_t before = m.first - at, count = m.last - m.first;
            for (int64_t i = 0; i < before; i++) to[i] = 0;
            if (count) memcpy(to + before, image + m.first + m.offset, (size_t)count * sizeof(T));
            for (int64_t i = before + count; i < len; i++) to[i] = 0;
            NAME(clear_edges)(c, &m, to, at, len);
        }
}

static void NAME(scatter_moved)(const cn__conv *c, T *from, T *image, int64_t channels, int64_t at, int64_t len)
{
    for (int64_t ch = 0; ch < channels; ch++, image += c->pixels)
        for (int64_t tap = 0; tap < c->volume; tap++, from += len) {
            const moved m = moved_by(c, tap, at, len);
            NAME(clear_edges)(c, &m, from, at, len);
            if (m.first == m.last) continue;
            T *restrict x = image + m.first + m.offset;
            const T *restrict inside = from + (m.first - at);
            for (int64_t i = 0; i < m.last - m.first; i++) x[i] += inside[i];
        }
}

/* y(len) = weight(row) · columns(row, len) */
static void NAME(thin_y)(const cn__conv *c, T *y, const T *image, const T *weight, int64_t at, int64_t len)
{
    const int64_t step = c->a->stride[2], line = c->a->stride[1] * c->s.in[2];
    for (int64_t i = 0; i < len; i++) y[i] = 0;
    for (int64_t r = 0; r < c->row; r++) {
        const T *x = image + r / c->volume * c->pixels, w = weight[r];
        T *to = y;
        walk at_tap = walk_begin(c, r % c->volume, at, len);
        for (lines l; walk_next(c, &at_tap, &l); to += l.lines * l.run)
            for (int64_t h = 0; h < l.lines && l.count; h++) {
                T *restrict inside = to + h * l.run + l.skip;
                const T *seen = x + l.pixel + h * line;
                if (step == 1)
                    for (int64_t i = 0; i < l.count; i++) inside[i] += w * seen[i];
                else
                    for (int64_t i = 0; i < l.count; i++) inside[i] += w * seen[i * step];
            }
    }
}

/* image += scatter of weight(row)ᵀ · y(positions) */
static void NAME(thin_x)(const cn__conv *c, const T *y, T *image, const T *weight, int64_t channels)
{
    const int64_t step = c->a->stride[2], line = c->a->stride[1] * c->s.in[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        T *x = image + r / c->volume * c->pixels, w = weight[r];
        const T *from = y;
        walk at_tap = walk_begin(c, r % c->volume, 0, c->positions);
        for (lines l; walk_next(c, &at_tap, &l); from += l.lines * l.run)
            for (int64_t h = 0; h < l.lines && l.count; h++) {
                const T *restrict inside = from + h * l.run + l.skip;
                T *seen = x + l.pixel + h * line;
                if (step == 1)
                    for (int64_t i = 0; i < l.count; i++) seen[i] += w * inside[i];
                else
                    for (int64_t i = 0; i < l.count; i++) seen[i * step] += w * inside[i];
            }
    }
}

/* weight(row) += columns(row, positions) · y(positions), in several partial sums: a single sum would not be
   vectorised. */
static void NAME(thin_w)(const cn__conv *c, const T *y, const T *image, T *weight, int64_t channels)
{
    enum { LANES = 8 };
    const int64_t step = c->a->stride[2], line = c->a->stride[1] * c->s.in[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        const T *x = image + r / c->volume * c->pixels, *from = y;
        T sum[LANES] = { 0 };
        walk at_tap = walk_begin(c, r % c->volume, 0, c->positions);
        for (lines l; walk_next(c, &at_tap, &l); from += l.lines * l.run)
            for (int64_t h = 0; h < l.lines && l.count; h++) {
                const T *p = x + l.pixel + h * line, *q = from + h * l.run + l.skip;
                int64_t i = 0;
                for (; step == 1 && i + LANES <= l.count; i += LANES)
                    for (int k = 0; k < LANES; k++) sum[k] += p[i + k] * q[i + k];
                for (; i < l.count; i++) sum[i % LANES] += p[i * step] * q[i];
            }
        for (int k = 0; k < LANES; k++) weight[r] += sum[k];
    }
}

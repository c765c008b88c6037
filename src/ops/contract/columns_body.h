/* columns_body.h: an image to columns and back, and products without columns, for one element type. Included by
   columns.c, once for each.

       T        element type
       NAME(x)  x with a suffix of its own

   No include guard, and the parameters are undefined at the end: both on purpose. */

static void NAME(gather)(const cn__conv *c, T *to, const T *image, int64_t channels, int64_t at, int64_t len)
{
    const int64_t step = c->a->stride[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        const T *x = image + r / c->volume * c->pixels;
        walk w = walk_begin(c, r % c->volume, at, len);
        for (line l; walk_line(c, &w, &l); to += l.run) {
            T *restrict inside = to + l.skip;
            for (int64_t i = 0; i < l.skip; i++) to[i] = 0;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) inside[i] = x[l.pixel + i];
            else for (int64_t i = 0; i < l.count; i++) inside[i] = x[l.pixel + i * step];
            for (int64_t i = l.skip + l.count; i < l.run; i++) to[i] = 0;
        }
    }
}

static void NAME(scatter)(const cn__conv *c, T *from, T *image, int64_t channels, int64_t at, int64_t len)
{
    const int64_t step = c->a->stride[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        T *x = image + r / c->volume * c->pixels;
        walk w = walk_begin(c, r % c->volume, at, len);
        for (line l; walk_line(c, &w, &l); from += l.run) {
            const T *restrict inside = from + l.skip;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) x[l.pixel + i] += inside[i];
            else for (int64_t i = 0; i < l.count; i++) x[l.pixel + i * step] += inside[i];
        }
    }
}

/* Zeros in a row of columns where the pixel is of another line than the position. */
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
    const int64_t step = c->a->stride[2];
    for (int64_t i = 0; i < len; i++) y[i] = 0;
    for (int64_t r = 0; r < c->row; r++) {
        const T *x = image + r / c->volume * c->pixels, w = weight[r];
        T *to = y;
        walk at_tap = walk_begin(c, r % c->volume, at, len);
        for (line l; walk_line(c, &at_tap, &l); to += l.run) {
            T *restrict inside = to + l.skip;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) inside[i] += w * x[l.pixel + i];
            else for (int64_t i = 0; i < l.count; i++) inside[i] += w * x[l.pixel + i * step];
        }
    }
}

/* image += scatter of weight(row)ᵀ · y(positions) */
static void NAME(thin_x)(const cn__conv *c, const T *y, T *image, const T *weight, int64_t channels)
{
    const int64_t step = c->a->stride[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        T *x = image + r / c->volume * c->pixels, w = weight[r];
        const T *from = y;
        walk at_tap = walk_begin(c, r % c->volume, 0, c->positions);
        for (line l; walk_line(c, &at_tap, &l); from += l.run) {
            const T *restrict inside = from + l.skip;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) x[l.pixel + i] += w * inside[i];
            else for (int64_t i = 0; i < l.count; i++) x[l.pixel + i * step] += w * inside[i];
        }
    }
}

/* weight(row) += columns(row, positions) · y(positions); lanes, because one sum would be added up one by one. */
static void NAME(thin_w)(const cn__conv *c, const T *y, const T *image, T *weight, int64_t channels)
{
    enum { LANES = 8 };
    const int64_t step = c->a->stride[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        const T *x = image + r / c->volume * c->pixels, *from = y;
        T sum[LANES] = { 0 };
        walk at_tap = walk_begin(c, r % c->volume, 0, c->positions);
        for (line l; walk_line(c, &at_tap, &l); from += l.run) {
            const T *p = x + l.pixel, *q = from + l.skip;
            int64_t i = 0;
            for (; step == 1 && i + LANES <= l.count; i += LANES)
                for (int k = 0; k < LANES; k++) sum[k] += p[i + k] * q[i + k];
            for (; i < l.count; i++) sum[i % LANES] += p[i * step] * q[i];
        }
        for (int k = 0; k < LANES; k++) weight[r] += sum[k];
    }
}

#undef T
#undef NAME

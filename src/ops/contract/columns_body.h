/* columns_body.h: an image to columns and back, for one element type. Included by columns.c, once for each.

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
            T *inside = to + l.skip;
            for (int64_t i = 0; i < l.skip; i++) to[i] = 0;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) inside[i] = x[l.pixel + i];
            else for (int64_t i = 0; i < l.count; i++) inside[i] = x[l.pixel + i * step];
            for (int64_t i = l.skip + l.count; i < l.run; i++) to[i] = 0;
        }
    }
}

static void NAME(scatter)(const cn__conv *c, const T *from, T *image, int64_t channels, int64_t at, int64_t len)
{
    const int64_t step = c->a->stride[2];
    for (int64_t r = 0; r < channels * c->volume; r++) {
        T *x = image + r / c->volume * c->pixels;
        walk w = walk_begin(c, r % c->volume, at, len);
        for (line l; walk_line(c, &w, &l); from += l.run) {
            const T *inside = from + l.skip;
            if (step == 1) for (int64_t i = 0; i < l.count; i++) x[l.pixel + i] += inside[i];
            else for (int64_t i = 0; i < l.count; i++) x[l.pixel + i * step] += inside[i];
        }
    }
}

#undef T
#undef NAME

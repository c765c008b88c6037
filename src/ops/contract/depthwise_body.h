/* Template: depthwise convolution for one element type T. depthwise_cpu.c includes it through cpu/each_type.h, which
   defines T and NAME. depthwise_cpu.c defines

       BYTES               the size of a vector register
       NAME(FMA)(x, y, z)  x·y + z for vectors */

typedef T NAME(vec) __attribute__((vector_size(BYTES)));
typedef T NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
enum { NAME(lanes) = BYTES / sizeof(T) };

/* to[i] = from[i·step] */
CN__INLINE void NAME(every)(T *restrict to, const T *restrict from, int64_t n, const int64_t step)
{
    for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
}

/* One line of a phase: cell i is pixel i·stride + first, or 0 if there is none. */
static void NAME(line)(const cn__depth_axis *a, T *to, const T *from, int64_t cells, int64_t first)
{
    const int64_t step = a->stride, room = a->in - 1 - first;
    const int64_t low = first < 0 ? (-first + step - 1) / step : 0, high = room < 0 ? 0 : room / step + 1;
    const int64_t begin = low < cells ? low : cells, end = high < begin ? begin : high < cells ? high : cells;
    for (int64_t i = 0; i < begin; i++) to[i] = 0;
    const T *const at = from + begin * step + first;
    if (step == 1) NAME(every)(to + begin, at, end - begin, 1);
    else if (step == 2) NAME(every)(to + begin, at, end - begin, 2);
    else NAME(every)(to + begin, at, end - begin, step);
    for (int64_t i = end; i < cells; i++) to[i] = 0;
}

/* Copies what a band sees, from line y and column x of the result on. */
static void NAME(spread)(const cn__depthwise *d, const T *plane, int64_t y, int64_t x, T *cells)
{
    const int64_t lines = d->lines + d->y.reach;
    for (int64_t i = 0; i < d->y.stride * d->x.stride; i++) {
        const int64_t down = i / d->x.stride, right = i % d->x.stride;
        for (int64_t l = 0; l < lines; l++) {
            const int64_t row = (y + l) * d->y.stride + down - d->y.padding;
            T *const to = cells + i * d->phase + l * d->pitch;
            if (row < 0 || row >= d->y.in) memset(to, 0, (size_t)d->pitch * sizeof(T));
            else NAME(line)(&d->x, to, plane + row * d->x.in, d->pitch, x * d->x.stride + right - d->x.padding);
        }
    }
}

/* Where the cells lie that each tap sees from position 0. */
static void NAME(find_offsets)(const cn__depthwise *d, int64_t *offset)
{
    for (int64_t v = 0; v < d->y.taps; v++)
        for (int64_t u = 0; u < d->x.taps; u++) {
            const int64_t down = v * d->y.dilation, right = u * d->x.dilation;
            const int64_t phase = down % d->y.stride * d->x.stride + right % d->x.stride;
            *offset++ = phase * d->phase + down / d->y.stride * d->pitch + right / d->x.stride;
        }
}

/* Some vectors of positions. */
CN__INLINE void NAME(sum)(const T *cells, const int64_t *offset, const T *weight, int64_t taps, T *to,
                          const int vectors)
{
    NAME(vec) acc[4];
    CN__UNROLL
    for (int v = 0; v < vectors; v++) acc[v] = (NAME(vec)){ 0 };
    for (int64_t t = 0; t < taps; t++) {
        const NAME(vec) w = weight[t] - (NAME(vec)){ 0 };
        const T *const at = cells + offset[t];
        CN__UNROLL
        for (int v = 0; v < vectors; v++) acc[v] = NAME(FMA)(w, *(const NAME(loose) *)(at + v * NAME(lanes)), acc[v]);
    }
    CN__UNROLL
    for (int v = 0; v < vectors; v++) *(NAME(loose) *)(to + v * NAME(lanes)) = acc[v];
}

static void NAME(multiply)(const T *cells, const int64_t *offset, const T *weight, int64_t taps, T *to, int64_t n)
{
    enum { LANES = NAME(lanes) };
    int64_t p = 0;
    for (; p + 3 * LANES < n; p += 4 * LANES) NAME(sum)(cells + p, offset, weight, taps, to + p, 4);
    for (; p < n; p += LANES) NAME(sum)(cells + p, offset, weight, taps, to + p, 1);
}

static void NAME(convolve)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__depthwise *d = user;
    const int64_t taps = d->y.taps * d->x.taps;
    int64_t offset[CN__DEPTHWISE_TAPS];
    char *const own = (char *)k->scratch + (size_t)thread * (d->cells + d->result);
    T *const cells = (T *)(void *)own, *const result = (T *)(void *)(own + d->cells);
    NAME(find_offsets)(d, offset);
    memset(own, 0, d->cells);
    for (int64_t i = begin; i < end; i++) {
        const int64_t strip = i % d->strips, band = i / d->strips % d->bands, plane = i / d->strips / d->bands;
        const int64_t y = band * d->lines, x = strip * d->columns;
        const int64_t lines = d->y.out - y < d->lines ? d->y.out - y : d->lines;
        const int64_t columns = d->x.out - x < d->columns ? d->x.out - x : d->columns;
        const T *const weight = (const T *)k->in[1].data + plane % d->channels * taps;
        const int64_t first = (plane * d->y.out + y) * d->x.out + x;
        NAME(spread)(d, (const T *)k->in[0].data + plane * d->y.in * d->x.in, y, x, cells);
        NAME(multiply)(cells, offset, weight, taps, result, (lines - 1) * d->pitch + columns);
        for (int64_t l = 0; l < lines; l++)
            memcpy((T *)k->out[0].data + first + l * d->x.out, result + l * d->pitch, (size_t)columns * sizeof(T));
        cn_kernel_done(k, first, first + lines * columns, thread);
    }
}

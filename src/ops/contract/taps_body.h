/* Template: convolution by taps for one element type T. taps_cpu.c includes it through cpu/each_type.h, which defines T
   and NAME. taps_cpu.c defines

       BYTES               the size of a vector register
       NAME(FMA)(x, y, z)  x·y + z for vectors */

typedef T NAME(vec) __attribute__((vector_size(BYTES)));
typedef T NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef __typeof__((NAME(vec)){ 0 } < (NAME(vec)){ 0 }) NAME(bits); /* whole numbers of the same size */
enum { NAME(lanes) = BYTES / sizeof(T) };

/* ---- between memory and cells ---- */

/* Lines are short: calling memcpy would cost more than the copy. */
static inline void NAME(copy)(T *to, const T *from, int64_t n)
{
    enum { LANES = NAME(lanes) };
    if (n >= LANES) {
        for (int64_t i = 0; i + LANES <= n; i += LANES) *(NAME(loose) *)(to + i) = *(const NAME(loose) *)(from + i);
        *(NAME(loose) *)(to + n - LANES) = *(const NAME(loose) *)(from + n - LANES);
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
    }
}

/* Fills all copies of some channels, from cell `from` on, with zeros where there is no pixel. */
static void NAME(spread)(const cn__taps *t, const T *source, int64_t channels, int64_t from, T *cells)
{
    const int64_t pitch = t->copies * t->span;
    memset(cells, 0, (size_t)(channels * pitch) * sizeof(T));
    for (int64_t copy = 0; copy < t->copies; copy++, cells += t->span) {
        cn__tap_walk w = cn__tap_walk_begin(t, copy, from, t->chunk + t->reach);
        for (cn__tap_run r; cn__tap_walk_next(&w, &r);)
            for (int64_t c = 0; c < channels && r.count; c++)
                NAME(copy)(cells + c * pitch + r.at, source + c * t->pixels + r.pixel, r.count);
    }
}

/* ---- result = weight · cells ---- */

/* Packs the weights in the order in which a tile of rows reads them: (channels·taps, rows), tile after tile. */
static void NAME(pack)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const cn__taps *t = user;
    const int64_t products = t->channels * t->volume;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / t->tiles, tile = i % t->tiles, row = cn__tap_tile_row(t, tile),
                      end_row = row + cn__tap_tile_rows(t, tile);
        const T *weight = (const T *)t->weight + group * t->rows * products + row * t->weight_row;
        T *to = (T *)cn__taps_after_offsets(t) + (group * t->rows + row) * products;
        for (int64_t c = 0; c < t->channels; c++)
            for (int64_t v = 0; v < t->volume; v++)
                for (int64_t r = 0; r < end_row - row; r++)
                    *to++ = weight[r * t->weight_row + c * t->weight_channel + (t->reversed ? t->volume - 1 - v : v)];
    }
}

typedef struct NAME(job) {
    const T *weight, *cells; /* weight (products, rows); cells from the first position on */
    const int64_t *offset;
    int64_t products;
    T *result;
    int64_t width; /* the stride between rows of the result */
    bool add;
} NAME(job);

/* The register tile. rows and vectors are constants after inlining, so that acc stays in registers. */
CN__INLINE void NAME(tile)(const NAME(job) * j, const int rows, const int vectors)
{
    enum { LANES = NAME(lanes) };
    const T *weight = j->weight, *const cells = j->cells;
    const int64_t *const offset = j->offset, products = j->products;
    NAME(vec) acc[2 * CN__TAPS_TILE_ROWS], x[8];
    for (int i = 0; i < rows * vectors; i++) acc[i] = (NAME(vec)){ 0 };
    for (int64_t k = 0; k < products; k++, weight += rows) {
        const T *const from = cells + offset[k];
        for (int v = 0; v < vectors; v++) x[v] = *(const NAME(loose) *)(from + v * LANES);
        for (int i = 0; i < rows; i++) {
            const NAME(vec) w = weight[i] - (NAME(vec)){ 0 }; /* - 0 is exact, + 0 is not */
            for (int v = 0; v < vectors; v++) acc[i * vectors + v] = NAME(FMA)(w, x[v], acc[i * vectors + v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            NAME(loose) *to = (NAME(loose) *)(j->result + i * j->width + v * LANES);
            if (j->add) acc[i * vectors + v] = *to + acc[i * vectors + v];
            *to = acc[i * vectors + v];
        }
}

/* How many vectors of positions a tile has: more if there are few rows. */
static int NAME(vectors)(const cn__taps *t) { return t->rows == 1 ? 8 : t->rows <= 3 ? 4 : 2; }

static void NAME(tile_of)(const NAME(job) * j, int64_t rows, int vectors)
{
    switch (rows * 8 + (vectors > 2)) {
    case 1 * 8 + 1: NAME(tile)(j, 1, 8); break;
    case 2 * 8 + 1: NAME(tile)(j, 2, 4); break;
    case 3 * 8 + 1: NAME(tile)(j, 3, 4); break;
    case 3 * 8: NAME(tile)(j, 3, 2); break;
    case 4 * 8: NAME(tile)(j, 4, 2); break;
    case 5 * 8: NAME(tile)(j, 5, 2); break;
    default: NAME(tile)(j, CN__TAPS_TILE_ROWS, 2); break;
    }
}

/* A tile of which only the first `columns` columns are stored. */
static void NAME(tile_apart)(const NAME(job) * j, int64_t rows, int vectors, int64_t columns)
{
    T out[2 * CN__TAPS_TILE_ROWS * NAME(lanes)];
    NAME(job) apart = *j;
    apart.result = out;
    apart.width = vectors * NAME(lanes);
    apart.add = false;
    NAME(tile_of)(&apart, rows, vectors);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < columns; p++) {
            T *to = j->result + i * j->width + p;
            *to = j->add ? *to + out[i * apart.width + p] : out[i * apart.width + p];
        }
}

/* Adds a slice of channels, from `channel` on, to n positions of the rows of tiles [first, last). */
static void NAME(multiply)(const cn__taps *t, int64_t group, int64_t channel, int64_t n, int64_t first, int64_t last,
                           const T *cells, T *result)
{
    const int64_t channels = cn__smaller(t->slice, t->channels - channel), products = t->channels * t->volume;
    const int vectors = NAME(vectors)(t), panel = vectors * NAME(lanes);
    const T *const packed = (const T *)cn__taps_after_offsets(t) + group * t->rows * products;
    NAME(job) j = { .offset = t->k->scratch, .products = channels * t->volume, .add = channel > 0 };
    j.width = t->positions;
    for (int64_t p = 0; p < n; p += panel) {
        j.cells = cells + p;
        j.weight = packed + cn__tap_tile_row(t, first) * products;
        j.result = result + p;
        for (int64_t tile = first, rows; tile < last; tile++, j.weight += rows * products, j.result += rows * j.width) {
            rows = cn__tap_tile_rows(t, tile);
            NAME(job) one = j;
            one.weight += channel * t->volume * rows;
            if (n - p >= panel) NAME(tile_of)(&one, rows, vectors);
            else NAME(tile_apart)(&one, rows, vectors, n - p);
        }
    }
}

static void NAME(convolve_unit)(const cn__taps *t, int64_t index, int thread)
{
    const int64_t block = index % t->blocks, chunk = index / t->blocks % t->chunks, at = index / t->blocks / t->chunks;
    const int64_t first = t->tiles * block / t->blocks, last = t->tiles * (block + 1) / t->blocks;
    const int64_t row = cn__tap_tile_row(t, first), from = chunk * t->chunk;
    const int64_t n = cn__smaller(t->chunk, t->positions - from);
    const T *source = (const T *)t->source + at * t->channels * t->pixels;
    T *result = (T *)t->result + (at * t->rows + row) * t->positions + from;
    T *cells = (T *)cn__taps_own_scratch(t, thread);
    for (int64_t s = 0, c = 0; s < t->slices; s++, c += t->slice) {
        NAME(spread)(t, source + c * t->pixels, cn__smaller(t->slice, t->channels - c), from, cells);
        NAME(multiply)(t, at % t->groups, c, n, first, last, cells, result);
    }
    if (t->k->op->epilogue) cn__taps_done(t, at, row, cn__tap_tile_row(t, last), from, n, thread);
}

static void NAME(convolve)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    for (int64_t i = begin; i < end; i++) NAME(convolve_unit)(user, i, thread);
}

/* ---- weight = sum over positions of result · cells ---- */

/* Some positions of some images: whole vectors in y, and one vector `rest`, filled up with zeros. */
typedef struct NAME(stretch) {
    int64_t n, images;
    const T *y, *rest; /* both of the first row */
    int64_t y_row, y_image, rest_image;
    const T *cells;
    int64_t cells_image;
    NAME(bits) some; /* which lanes of the last vector count */
} NAME(stretch);

/* sums[i, j] += y[i] · cells[offset[j]], over the positions of the stretch; the lanes of vectors are positions. */
CN__INLINE void NAME(dot)(const NAME(stretch) * s, const int64_t *offset, T *sums, int64_t sums_row, const int rows,
                          const int taps)
{
    enum { LANES = NAME(lanes) };
    NAME(vec) acc[CN__TAPS_DOT_ROWS * 4], u[CN__TAPS_DOT_ROWS];
    const int64_t whole = s->n - s->n % LANES, y_row = s->y_row;
    for (int i = 0; i < rows * taps; i++) acc[i] = (NAME(vec)){ 0 };
    for (int64_t image = 0; image < s->images; image++) {
        const T *const y = s->y + image * s->y_image, *x[4];
        for (int j = 0; j < taps; j++) x[j] = s->cells + image * s->cells_image + offset[j];
        for (int64_t p = 0; p < whole; p += LANES) {
            for (int i = 0; i < rows; i++) u[i] = *(const NAME(loose) *)(y + i * y_row + p);
            for (int j = 0; j < taps; j++) {
                const NAME(vec) v = *(const NAME(loose) *)(x[j] + p);
                for (int i = 0; i < rows; i++) acc[i * taps + j] = NAME(FMA)(u[i], v, acc[i * taps + j]);
            }
        }
        if (whole == s->n) continue;
        for (int i = 0; i < rows; i++) u[i] = *(const NAME(loose) *)(s->rest + image * s->rest_image + i * LANES);
        for (int j = 0; j < taps; j++) {
            const NAME(vec) v = *(const NAME(loose) *)(x[j] + whole);
            const NAME(vec) x_rest = (NAME(vec))((NAME(bits))v & s->some); /* other cells may be infinite */
            for (int i = 0; i < rows; i++) acc[i * taps + j] = NAME(FMA)(u[i], x_rest, acc[i * taps + j]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < taps; j++) {
            T half[LANES];
            *(NAME(loose) *)half = acc[i * taps + j];
            for (int l = LANES / 2; l > 0; l /= 2)
                for (int m = 0; m < l; m++) half[m] += half[m + l];
            sums[i * sums_row + j] += half[0];
        }
}

static void NAME(dot_of)(const NAME(stretch) * s, const int64_t *offset, T *sums, int64_t row, int64_t rows,
                         int64_t taps)
{
    switch (rows * 8 + taps) {
    case 1 * 8 + 2: NAME(dot)(s, offset, sums, row, 1, 2); break;
    case 1 * 8 + 3: NAME(dot)(s, offset, sums, row, 1, 3); break;
    case 1 * 8 + 4: NAME(dot)(s, offset, sums, row, 1, 4); break;
    case 2 * 8 + 2: NAME(dot)(s, offset, sums, row, 2, 2); break;
    case 2 * 8 + 3: NAME(dot)(s, offset, sums, row, 2, 3); break;
    case 2 * 8 + 4: NAME(dot)(s, offset, sums, row, 2, 4); break;
    case 3 * 8 + 2: NAME(dot)(s, offset, sums, row, 3, 2); break;
    case 3 * 8 + 3: NAME(dot)(s, offset, sums, row, 3, 3); break;
    case 3 * 8 + 4: NAME(dot)(s, offset, sums, row, 3, 4); break;
    case 4 * 8 + 2: NAME(dot)(s, offset, sums, row, 4, 2); break;
    default: NAME(dot)(s, offset, sums, row, 4, 3); break;
    }
}

/* Where the sums of a part are stored for a group: the result itself, or scratch. */
static T *NAME(sums_of)(const cn__taps *t, int64_t part, int64_t group)
{
    T *sums = t->parts > 1 ? (T *)cn__taps_after_offsets(t) + part * cn__taps_numel(t) : (T *)t->weight;
    return sums + group * t->rows * t->weight_row;
}

typedef struct NAME(unit) {
    int64_t group, first, last, row, rows; /* tiles [first, last); rows [row, row + rows) */
    int64_t channel, channels;
    T *sums; /* from the unit's first row and channel on */
} NAME(unit);

/* Adds a stretch to the sums of all weights of the unit. */
static void NAME(weigh_stretch)(const cn__taps *t, const NAME(unit) * u, const NAME(stretch) * given)
{
    const int64_t products = u->channels * t->volume, most = t->rows >= CN__TAPS_DOT_ROWS ? 3 : 4;
    NAME(stretch) s = *given;
    T *sums = u->sums;
    for (int64_t tile = u->first, rows; tile < u->last; tile++) {
        rows = cn__tap_tile_rows(t, tile);
        for (int64_t k = 0, taps; k < products; k += taps) {
            const int64_t left = products - k;
            taps = left > most ? left == most + 1 ? 2 : most : left; /* never leaves a single tap */
            NAME(dot_of)(&s, (const int64_t *)t->k->scratch + k, sums + k, t->weight_row, rows, taps);
        }
        s.y += rows * s.y_row;
        s.rest += rows * NAME(lanes);
        sums += rows * t->weight_row;
    }
}

/* Copies the last positions of each row, which do not fill a vector, and fills up with zeros. */
static void NAME(fill_rest)(const NAME(stretch) * s, int64_t rows, T *rest)
{
    const int64_t some = s->n % NAME(lanes);
    for (int64_t i = 0; i < s->images * rows; i++, rest += NAME(lanes)) {
        const T *y = s->y + i / rows * s->y_image + i % rows * s->y_row + s->n - some;
        for (int64_t l = 0; l < NAME(lanes); l++) rest[l] = l < some ? y[l] : 0;
    }
}

/* Adds positions [from, from + n) of `images` images, from `image` on. */
static void NAME(weigh_chunk)(const cn__taps *t, const NAME(unit) * u, int64_t image, int64_t images, int64_t from,
                              int64_t n, int thread)
{
    const int64_t x_image = t->groups * t->channels * t->pixels;
    T *cells = (T *)cn__taps_own_scratch(t, thread), *rest = (T *)(cn__taps_own_scratch(t, thread) + t->cells);
    const T *x = (const T *)t->source + image * x_image + (u->group * t->channels + u->channel) * t->pixels;
    NAME(stretch) s = { .n = n, .images = images, .rest = rest, .cells = cells };
    s.cells_image = t->slice * t->copies * t->span, s.rest_image = u->rows * NAME(lanes);
    s.y_row = t->positions, s.y_image = t->groups * t->rows * t->positions;
    s.y = (const T *)t->result + image * s.y_image + (u->group * t->rows + u->row) * t->positions + from;
    for (int l = 0; l < NAME(lanes); l++) s.some[l] = l < n % NAME(lanes) ? -1 : 0;
    NAME(fill_rest)(&s, u->rows, rest);
    for (int64_t i = 0; i < images; i++) NAME(spread)(t, x + i * x_image, u->channels, from, cells + i * s.cells_image);
    NAME(weigh_stretch)(t, u, &s);
}

static void NAME(weigh_unit)(const cn__taps *t, int64_t index, int thread)
{
    const int64_t block = index / t->slices % t->blocks, part = index / t->slices / t->blocks / t->groups;
    const int64_t begin = t->n * part / t->parts, end = t->n * (part + 1) / t->parts;
    NAME(unit) u = { .channel = index % t->slices * t->slice, .group = index / t->slices / t->blocks % t->groups };
    u.channels = cn__smaller(t->slice, t->channels - u.channel);
    u.first = t->tiles * block / t->blocks, u.last = t->tiles * (block + 1) / t->blocks;
    u.row = cn__tap_tile_row(t, u.first), u.rows = cn__tap_tile_row(t, u.last) - u.row;
    u.sums = NAME(sums_of)(t, part, u.group) + u.row * t->weight_row + u.channel * t->weight_channel;
    for (int64_t r = 0; r < u.rows; r++)
        memset(u.sums + r * t->weight_row, 0, (size_t)(u.channels * t->volume) * sizeof(T));
    for (int64_t image = begin; image < end; image += t->run)
        for (int64_t from = 0; from < t->positions; from += t->chunk)
            NAME(weigh_chunk)
            (t, &u, image, cn__smaller(t->run, end - image), from, cn__smaller(t->chunk, t->positions - from), thread);
}

static void NAME(weigh)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    for (int64_t i = begin; i < end; i++) NAME(weigh_unit)(user, i, thread);
}

/* Adds the sums of the parts, in order. */
static void NAME(merge)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const cn__taps *t = user;
    const T *sums = NAME(sums_of)(t, 0, 0);
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int64_t p = 0; p < t->parts; p++) sum += sums[p * cn__taps_numel(t) + i];
        ((T *)t->weight)[i] = (T)sum;
    }
}

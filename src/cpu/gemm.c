/* Matrix products: gemm_plan.h says how a product is divided; here it is packed, multiplied, and shared among threads.
 * The arithmetic is in gemm_body.h. */
#include "gemm_plan.h"

#include "core/dtype.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SMALL = 16,        /* rows, columns and k of a product that is not planned */
    SMALL_PANEL = 256, /* bytes that a row of a panel has at most */
};

typedef struct run {
    const cn__gemm_plan *p;
    char *scratch;
    int64_t first, count;         /* slices of this round */
    int64_t first_col, col_count; /* blocks of columns of this round */
} run;

/* Reports final rows of the folded product, which are rows of several batch items as given. */
static void call_done(const cn__gemm_plan *p, int64_t item, int64_t begin, int64_t end, int thread)
{
    const int64_t m = p->transposed ? p->g.n : p->g.m, first = item * (m / p->fold);
    while (begin < end) {
        const int64_t at = begin / p->fold, base = at * p->fold, stop = cn__smaller(end, base + p->fold);
        p->g.done(p->g.user, first + at, begin - base, stop - base, thread);
        begin = stop;
    }
}

/* Called after each block. The last block of some rows of C as given makes them final. */
static void finish_block(const run *r, int64_t item, int64_t row, int64_t col, int thread)
{
    const cn__gemm_plan *p = r->p;
    if (!p->g.done) return;
    const int64_t at = p->transposed ? col : row, size = p->transposed ? p->cols : p->rows;
    if (p->counters) {
        const int64_t across = p->transposed ? p->row_blocks : p->col_blocks;
        const int64_t along = p->transposed ? p->col_blocks : p->row_blocks;
        atomic_int *finished = (atomic_int *)(void *)r->scratch + (item * along + at);
        if (atomic_fetch_add_explicit(finished, 1, memory_order_acq_rel) + 1 < across) return;
    }
    const int64_t m = p->transposed ? p->g.n : p->g.m;
    call_done(p, item, at * size, cn__smaller(m, (at + 1) * size), thread);
}

/* The offsets of a batch item in A, B and C, in elements. */
typedef struct place {
    int64_t a, b, c;
} place;

static place place_of(const cn__gemm *g, int64_t item)
{
    place at = { 0, 0, 0 };
    for (int d = g->batch_dims - 1; d >= 0; d--) {
        const int64_t x = item % g->batch_shape[d];
        item /= g->batch_shape[d];
        at.a += x * g->a_batch[d];
        at.b += x * g->b_batch[d];
        at.c += x * g->c_batch[d];
    }
    return at;
}

/* ---- packing ---- */

static size_t shared_bytes(const cn__gemm_plan *p) { return p->counters + p->a_shared + p->b_shared + p->sums; }

static size_t own_bytes(const cn__gemm_plan *p) { return p->a_own + p->b_own + p->widened; }

static char *own_scratch(const run *r, int thread)
{
    const cn__gemm_plan *p = r->p;
    return r->scratch + shared_bytes(p) + (size_t)thread * own_bytes(p);
}

static float *widened(const run *r, int thread)
{
    return (float *)(void *)(own_scratch(r, thread) + r->p->a_own + r->p->b_own);
}

/* Converts (outer,inner) halves, with any strides, to contiguous rows of `inner` floats. */
static void widen(float *to, cn__gemm_storage storage, const uint16_t *from, int64_t outer, int64_t inner,
                  int64_t outer_step, int64_t inner_step)
{
    for (int64_t i = 0; i < outer; i++, to += inner, from += outer_step) {
        if (inner_step == 1) {
            cn__convert(CN_F32, to, storage == CN__GEMM_F16 ? CN_F16 : CN_BF16, from, inner);
            continue;
        }
        for (int64_t q = 0; q < inner; q++) {
            const uint16_t half = from[q * inner_step];
            to[q] = storage == CN__GEMM_F16 ? cn__f16_to_f32(half) : cn__bf16_to_f32(half);
        }
    }
}

/* Packs rows of A, from `offset` on, into tiles. */
static void pack_a(const run *r, char *to, int64_t offset, int64_t rows, int64_t k, int thread)
{
    const cn__gemm_plan *p = r->p;
    const cn__gemm *g = &p->g;
    const char *const a = (const char *)g->a + offset * p->a_size;
    if (!g->a_storage) {
        p->kernel->pack_a(to, a, rows, k, g->a_row, g->a_col);
        return;
    }
    float *const wide = widened(r, thread);
    const int64_t step = CN__GEMM_WIDENED / k / p->kernel->rows * p->kernel->rows;
    const bool by_columns = g->a_row == 1;
    for (int64_t i = 0; i < rows; i += step) {
        const int64_t some = cn__smaller(step, rows - i);
        const uint16_t *const from = (const uint16_t *)(const void *)a + i * g->a_row;
        if (by_columns) widen(wide, g->a_storage, from, k, some, g->a_col, g->a_row);
        else widen(wide, g->a_storage, from, some, k, g->a_row, g->a_col);
        p->kernel->pack_a(to + i * k * p->size, wide, some, k, by_columns ? 1 : k, by_columns ? some : 1);
    }
}

/* Packs (k,cols) elements, with any strides, into panels. */
static void pack_panels(const run *r, char *to, const char *from, cn__gemm_storage storage, int64_t k, int64_t cols,
                        int64_t row_step, int64_t col_step, int thread)
{
    const cn__gemm_plan *p = r->p;
    if (!storage) {
        p->kernel->pack_b(to, from, k, cols, row_step, col_step);
        return;
    }
    float *const wide = widened(r, thread);
    const int64_t step = CN__GEMM_WIDENED / k / p->kernel->width * p->kernel->width;
    const bool by_columns = row_step == 1;
    for (int64_t q = 0; q < cols; q += step) {
        const int64_t some = cn__smaller(step, cols - q);
        const uint16_t *const halves = (const uint16_t *)(const void *)from + q * col_step;
        if (by_columns) widen(wide, storage, halves, some, k, col_step, row_step);
        else widen(wide, storage, halves, k, some, row_step, col_step);
        p->kernel->pack_b(to + q * k * p->size, wide, k, some, by_columns ? 1 : some, by_columns ? k : 1);
    }
}

/* Packs columns of B, from `offset` on, into panels. */
static void pack_b(const run *r, char *to, int64_t offset, int64_t k, int64_t cols, int thread)
{
    const cn__gemm *g = &r->p->g;
    pack_panels(r, to, (const char *)g->b + offset * r->p->b_size, g->b_storage, k, cols, g->b_row, g->b_col, thread);
}

/* What is packed once lies slice by slice of k; the tiles or panels of a slice follow each other. */
enum { PACK_ROWS = 8, PACK_PANELS = 4 }; /* tiles of A, or panels of B, that a part packs */

static char *shared_a(const run *r, int64_t item, int64_t k0)
{
    const cn__gemm_plan *p = r->p;
    const int64_t at = item * cn__gemm_round_rows(p) + k0 - r->first * cn__gemm_step(p->g.k);
    return r->scratch + p->counters + at * p->a_tiles * p->kernel->rows * p->size;
}

static char *shared_b(const run *r, int64_t item, int64_t k0)
{
    const cn__gemm_plan *p = r->p;
    const int64_t at = item * cn__gemm_round_rows(p) + k0 - r->first * cn__gemm_step(p->g.k);
    return r->scratch + p->counters + p->a_shared + at * p->b_panels * p->kernel->width * p->size;
}

/* The first column of this round, and the first behind it. */
static int64_t first_column(const run *r) { return r->first_col * r->p->cols; }
static int64_t end_column(const run *r) { return cn__smaller(r->p->g.n, (r->first_col + r->col_count) * r->p->cols); }

/* The first round of columns packs A, for all of them. */
static int64_t a_parts(const run *r)
{
    return r->p->a == CN__PACKED_ONCE && r->first_col == 0 ? cn__divide_up(r->p->a_tiles, PACK_ROWS) : 0;
}

static int64_t b_parts(const run *r)
{
    const int64_t cols = PACK_PANELS * r->p->kernel->width;
    return r->p->b == CN__PACKED_ONCE ? cn__divide_up(end_column(r) - first_column(r), cols) : 0;
}

static void pack_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const cn__gemm_plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t in_slice = a_parts(r) + b_parts(r), step = cn__gemm_step(g->k);
    const int64_t item = part / in_slice / r->count, k0 = (r->first + part / in_slice % r->count) * step;
    const int64_t at = part % in_slice;
    const int64_t k = cn__smaller(step, g->k - k0);
    const place from = place_of(g, item);
    if (at < a_parts(r)) {
        const int64_t row = at * PACK_ROWS * p->kernel->rows;
        pack_a(r, shared_a(r, item, k0) + row * k * p->size, from.a + row * g->a_row + k0 * g->a_col,
               cn__smaller(PACK_ROWS * p->kernel->rows, g->m - row), k, thread);
    } else {
        const int64_t in = (at - a_parts(r)) * PACK_PANELS * p->kernel->width, col = first_column(r) + in;
        pack_b(r, shared_b(r, item, k0) + in * k * p->size, from.b + k0 * g->b_row + col * g->b_col, k,
               cn__smaller(PACK_PANELS * p->kernel->width, end_column(r) - col), thread);
    }
}

/* ---- blocks ---- */

/* A block that a thread computes. */
typedef struct turn {
    const run *r;
    int thread;
    int64_t item, row, col; /* batch item, first row and first column of the block */
    place at;
    char *a_own, *b_own;
    cn__gemm_block b; /* with all rows and columns of the block */
} turn;

/* Multiplies columns [q, q + n) of the block, in one slice of k. */
static void multiply(const turn *t, int64_t q, int64_t n, const char *b, int64_t b_panel, int64_t b_row, char *b_to)
{
    const cn__gemm_plan *p = t->r->p;
    cn__gemm_block some = t->b;
    some.n = n;
    some.b = b;
    some.b_panel = b_panel;
    some.b_row = b_row;
    some.b_to = b_to;
    some.c = (char *)t->b.c + q * t->b.c_col * p->size;
    p->kernel->multiply(&some);
}

static void use_b(const turn *t, int64_t k0)
{
    const cn__gemm_plan *p = t->r->p;
    const cn__gemm *g = &p->g;
    const int width = p->kernel->width;
    const int64_t k = t->b.k, n = t->b.n;
    if (p->b == CN__GIVEN_PACKED) { /* a panel holds all rows of B */
        const int64_t first = t->col * g->b_packed + k0 * width;
        multiply(t, 0, n, (const char *)g->b + first * p->size, width * g->b_packed, width, NULL);
        return;
    }
    if (p->b == CN__PACKED_ONCE) {
        const int64_t in = t->col - first_column(t->r);
        multiply(t, 0, n, shared_b(t->r, t->item, k0) + in * k * p->size, width * k, width, NULL);
        return;
    }
    const int64_t offset = t->at.b + k0 * g->b_row + t->col * g->b_col;
    const char *const b = (const char *)g->b + offset * p->b_size;
    if (g->m == 1 && !g->b_storage && g->b_row == 1 && g->b_col != 1 && n >= p->kernel->lanes) {
        cn__gemm_block row = t->b;
        row.b = b;
        row.b_panel = g->b_col;
        p->kernel->multiply_row(&row);
        return;
    }
    int64_t done = p->b <= CN__PACKED_ON_THE_WAY ? n / width * width : 0;
    if (done) multiply(t, 0, done, b, width, g->b_row, p->b == CN__PACKED_ON_THE_WAY ? t->b_own : NULL);
    for (int64_t cols = 0; done < n; done += cols) {
        cols = cn__smaller(CN__GEMM_GROUP * width, n - done);
        pack_b(t->r, t->b_own, offset + done * g->b_col, k, cols, t->thread);
        multiply(t, done, cols, t->b_own, width * k, width, NULL);
    }
}

static void use_a(turn *t, int64_t k0)
{
    const cn__gemm_plan *p = t->r->p;
    const cn__gemm *g = &p->g;
    const int rows = p->kernel->rows;
    const int64_t k = t->b.k;
    const int64_t offset = t->at.a + t->row * g->a_row + k0 * g->a_col;
    if (p->a == CN__IN_PLACE) {
        t->b.a = (const char *)g->a + offset * p->a_size;
        t->b.a_tile = rows * g->a_row;
        t->b.a_row = g->a_row;
        t->b.a_col = g->a_col;
        return;
    }
    if (p->a == CN__PACKED_BY_BLOCK) pack_a(t->r, t->a_own, offset, t->b.m, k, t->thread);
    t->b.a = p->a == CN__PACKED_ONCE ? shared_a(t->r, t->item, k0) + t->row * k * p->size : t->a_own;
    t->b.a_tile = rows * k;
    t->b.a_row = 1;
    t->b.a_col = rows;
}

/* For k = 0: C is zero. */
static void clear(const cn__gemm_block *b, int64_t size)
{
    for (int64_t i = 0; i < b->m; i++) {
        for (int64_t q = 0; q < b->n; q++) memset((char *)b->c + (i * b->c_row + q * b->c_col) * size, 0, (size_t)size);
    }
}

static turn begin_block(const run *r, int64_t item, int64_t row_block, int64_t col_block, int thread)
{
    const cn__gemm_plan *p = r->p;
    const cn__gemm *g = &p->g;
    char *const own = own_scratch(r, thread);
    turn t = { .r = r,
               .thread = thread,
               .item = item,
               .row = row_block * p->rows,
               .col = col_block * p->cols,
               .at = place_of(g, item),
               .a_own = own,
               .b_own = own + p->a_own };
    t.b = (cn__gemm_block){ .m = cn__smaller(p->rows, g->m - t.row),
                            .n = cn__smaller(p->cols, g->n - t.col),
                            .c = (char *)g->c + (t.at.c + t.row * g->c_row + t.col * g->c_col) * p->size,
                            .c_row = g->c_row,
                            .c_col = g->c_col };
    return t;
}

static void multiply_slice(turn *t, int64_t slice, bool add)
{
    const int64_t k = t->r->p->g.k, step = cn__gemm_step(k), k0 = slice * step;
    t->b.k = cn__smaller(step, k - k0);
    t->b.add = add;
    use_a(t, k0);
    use_b(t, k0);
}

static void run_block(const run *r, int64_t item, int64_t row_block, int64_t col_block, int thread)
{
    const cn__gemm_plan *p = r->p;
    turn t = begin_block(r, item, row_block, col_block, thread);
    for (int64_t slice = r->first; slice < r->first + r->count; slice++)
        multiply_slice(&t, slice, p->g.accumulate || slice > 0);
    if (p->g.k == 0 && !p->g.accumulate) clear(&t.b, p->size);
    if (r->first + r->count == cn__gemm_slices(p)) finish_block(r, item, row_block, col_block, thread);
}

static int64_t round_parts(const run *r)
{
    return cn__divide_up(r->p->items * r->p->row_blocks * r->col_count, r->p->group);
}

static void run_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const cn__gemm_plan *p = r->p;
    const int64_t in_item = p->row_blocks * r->col_count, begin = part * p->group;
    const int64_t end = cn__smaller(begin + p->group, p->items * in_item);
    for (int64_t at = begin; at < end; at++) {
        const int64_t in = at % in_item;
        run_block(r, at / in_item, in / r->col_count, r->first_col + in % r->col_count, thread);
    }
}

/* ---- slices apart ---- */

/* The product of a slice of this round, for one batch item: (m,n), contiguous. */
static char *sum_of(const run *r, int64_t slice, int64_t item)
{
    const cn__gemm_plan *p = r->p;
    return r->scratch + shared_bytes(p) - p->sums + (slice * p->items + item) * p->g.m * p->g.n * p->size;
}

/* For C of one element: slices [slice, slice + count) of this round, all of length k. Each slice is packed as a column
 * of A and of B. */
static void multiply_lanes(const run *r, int64_t slice, int64_t count, int64_t k, int thread)
{
    const cn__gemm_plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t k0 = (r->first + slice) * cn__gemm_step(g->k);
    char *const a = own_scratch(r, thread), *const b = a + p->a_own;
    pack_panels(r, a, (const char *)g->a + k0 * g->a_col * p->a_size, g->a_storage, k, count, g->a_col, k * g->a_col,
                thread);
    pack_panels(r, b, (const char *)g->b + k0 * g->b_row * p->b_size, g->b_storage, k, count, g->b_row, k * g->b_row,
                thread);
    p->kernel->multiply_lanes(sum_of(r, slice, 0), a, b, k, count);
}

static void multiply_dot(const run *r, int64_t begin, int64_t end, int thread)
{
    const int64_t k = r->p->g.k, step = cn__gemm_step(k), whole = cn__smaller(end, k / step - r->first);
    if (begin < whole) multiply_lanes(r, begin, whole - begin, step, thread);
    if (whole < end) multiply_lanes(r, whole, 1, k % step, thread);
}

static void multiply_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const cn__gemm_plan *p = r->p;
    const int64_t begin = part * p->group, end = cn__smaller(begin + p->group, r->count * cn__gemm_blocks(p));
    if (p->dot) {
        multiply_dot(r, begin, end, thread);
        return;
    }
    for (int64_t at = begin; at < end; at++) {
        const int64_t slice = at / cn__gemm_blocks(p), block = at % cn__gemm_blocks(p);
        turn t = begin_block(r, block / p->row_blocks, block % p->row_blocks, 0, thread);
        t.b.c = sum_of(r, slice, t.item) + t.row * p->g.n * p->size;
        t.b.c_row = p->g.n;
        t.b.c_col = 1;
        multiply_slice(&t, r->first + slice, false);
    }
}

static int64_t lines(const cn__gemm_plan *p) { return p->transposed ? p->g.n : p->g.m; }

/* Adds all slices of this round to some rows of C as given. */
static void add_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const cn__gemm_plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t in_item = cn__divide_up(lines(p), p->lines), item = part / in_item, begin = part % in_item * p->lines;
    const int64_t end = cn__smaller(begin + p->lines, lines(p)), row = p->transposed ? 0 : begin,
                  col = p->transposed ? begin : 0;
    const char *const from = sum_of(r, 0, item) + (row * g->n + col) * p->size;
    char *const c = (char *)g->c + (place_of(g, item).c + row * g->c_row + col * g->c_col) * p->size;
    cn__gemm_sum sum = { .m = p->transposed ? g->m : end - begin,
                         .n = p->transposed ? end - begin : g->n,
                         .count = r->count,
                         .from = from,
                         .from_row = g->n,
                         .step = p->items * g->m * g->n,
                         .c = c,
                         .c_row = g->c_row,
                         .c_col = g->c_col,
                         .add = g->accumulate || r->first > 0 };
    p->kernel->sum(&sum);
    if (g->done && r->first + r->count == cn__gemm_slices(p)) call_done(p, item, begin, end, thread);
}

static void run_apart(run *r, cn__workers *w)
{
    const cn__gemm_plan *p = r->p;
    for (r->first = 0; r->first < cn__gemm_slices(p); r->first += r->count) {
        r->count = cn__smaller(p->round, cn__gemm_slices(p) - r->first);
        cn__workers_run(w, cn__divide_up(r->count * cn__gemm_blocks(p), p->group), multiply_part, r);
        cn__workers_run(w, p->items * cn__divide_up(lines(p), p->lines), add_part, r);
    }
}

static int64_t pack_parts(const run *r) { return r->p->items * r->count * (a_parts(r) + b_parts(r)); }

/* k = 0 takes one round, without a slice. */
static void run_rounds(run *r, cn__workers *w)
{
    const cn__gemm_plan *p = r->p;
    do {
        r->count = cn__smaller(p->round, cn__gemm_slices(p) - r->first);
        for (r->first_col = 0; r->first_col < p->col_blocks; r->first_col += r->col_count) {
            r->col_count = cn__smaller(p->round_cols, p->col_blocks - r->first_col);
            if (pack_parts(r)) cn__workers_run(w, pack_parts(r), pack_part, r);
            cn__workers_run(w, round_parts(r), run_part, r);
        }
        r->first += r->count;
    } while (r->first < cn__gemm_slices(p));
}

/* A product so small that planning it would take longer than computing it: one panel of B, packed on the stack. */
static bool is_small(const cn__gemm *g)
{
    return g->kernel->width * g->kernel->size <= SMALL_PANEL && g->batch_dims == 0 && !g->a_storage && !g->b_storage &&
           !g->b_packed && 0 < g->m && g->m <= SMALL && 0 < g->n && g->n <= cn__smaller(SMALL, g->kernel->width) &&
           0 < g->k && g->k <= SMALL;
}

static void run_small(const cn__gemm *g)
{
    const cn__gemm_kernel *kernel = g->kernel;
    _Alignas(64) char panel[SMALL * SMALL_PANEL];
    kernel->pack_b(panel, g->b, g->k, g->n, g->b_row, g->b_col);
    kernel->multiply(&(cn__gemm_block){ .m = g->m,
                                        .n = g->n,
                                        .k = g->k,
                                        .a = g->a,
                                        .a_tile = kernel->rows * g->a_row,
                                        .a_row = g->a_row,
                                        .a_col = g->a_col,
                                        .b = panel,
                                        .b_row = kernel->width,
                                        .c = g->c,
                                        .c_row = g->c_row,
                                        .c_col = g->c_col,
                                        .add = g->accumulate });
    if (g->done) g->done(g->user, 0, 0, g->m, 0);
}

size_t cn__gemm_scratch(const cn__gemm *g, int threads)
{
    cn__gemm_plan p;
    if (!cn__gemm_make_plan(&p, g, false)) return 0;
    return shared_bytes(&p) + (size_t)cn__larger(threads, 1) * own_bytes(&p);
}

void cn__gemm_run(const cn__gemm *g, cn__workers *w, void *scratch)
{
    if (is_small(g)) {
        run_small(g);
        return;
    }
    cn__gemm_plan p;
    if (!cn__gemm_make_plan(&p, g, false)) return;
    if (g->done) memset(scratch, 0, p.counters);
    run r = { .p = &p, .scratch = scratch };
    if (p.apart) run_apart(&r, w);
    else run_rounds(&r, w);
}

size_t cn__gemm_alone_scratch(const cn__gemm_kernel *kernel)
{
    const int64_t rows = cn__round_up(CN__GEMM_BLOCK_BYTES / (CN__GEMM_SLICE * kernel->size), kernel->rows);
    return (size_t)((rows + CN__GEMM_GROUP * kernel->width) * CN__GEMM_SLICE * kernel->size) +
           CN__GEMM_WIDENED * sizeof(float); /* each term is a multiple of 64 bytes */
}

void cn__gemm_run_alone(const cn__gemm *g, void *scratch)
{
    cn__gemm_plan p;
    if (!cn__gemm_make_plan(&p, g, true)) return;
    p.g.done = NULL;
    run r = { .p = &p, .scratch = scratch, .count = cn__gemm_slices(&p), .col_count = p.col_blocks };
    for (int64_t part = 0; part < round_parts(&r); part++) run_part(&r, part, 0);
}

size_t cn__gemm_pack_bytes(const cn__gemm_kernel *kernel, int64_t k, int64_t n)
{
    return (size_t)cn__round_up(k * cn__round_up(n, kernel->width) * kernel->size, 64);
}

void cn__gemm_pack_b(const cn__gemm_kernel *kernel, void *to, int64_t k, int64_t n, const void *b, int64_t b_row,
                     int64_t b_col)
{
    kernel->pack_b(to, b, k, n, b_row, b_col);
}

void cn__gemm_run_packed(const cn__gemm *g)
{
    const cn__gemm_kernel *kernel = g->kernel;
    const int64_t step = cn__gemm_step(g->k), size = kernel->size;
    cn__gemm_block b = { .m = g->m,
                         .n = cn__round_up(g->n, kernel->width),
                         .a_tile = kernel->rows * g->a_row,
                         .a_row = g->a_row,
                         .a_col = g->a_col,
                         .b_panel = kernel->width * g->b_packed,
                         .b_row = kernel->width,
                         .c = g->c,
                         .c_row = g->c_row,
                         .c_col = g->c_col };
    for (int64_t k0 = 0; k0 < g->k; k0 += step) {
        b.k = cn__smaller(step, g->k - k0);
        b.a = (const char *)g->a + k0 * g->a_col * size;
        b.b = (const char *)g->b + k0 * kernel->width * size;
        b.add = g->accumulate || k0 > 0;
        kernel->multiply(&b);
    }
}

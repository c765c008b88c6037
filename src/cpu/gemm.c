/* Matrix products: how a product is divided into blocks, what is packed, and which thread does it. The arithmetic is in
 * gemm_body.h.
 *
 * Sizes alone decide how a product is divided. C is divided into blocks of rows and columns. k is divided into slices
 * so short that what a register tile reads of B stays in the L1 cache. An operand that several blocks read is packed
 * once, by all threads, before the first block begins. An operand that one block reads is packed by that block, just
 * before use or during its first use. An operand that is used too seldom to repay packing is read in place. If what is
 * packed once would take much memory, a round packs and multiplies some slices of k and some columns at a time.
 *
 * If C is too small for enough blocks and k is long, slices of k are multiplied apart: each into a matrix of its own.
 * Then these matrices are added to C in the order of the slices, so the bits are the same. */
#include "gemm.h"

#include "core/dtype.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SLICE = 384,           /* longest slice of k: a panel of B is 24 KB */
    BLOCK_BYTES = 1 << 18, /* of a slice of A that a block reads: half of the L2 cache */
    LEAST_ROWS = 48,       /* blocks do not get smaller than this when they are halved to share the work */
    LEAST_COLS = 64,
    FEWER_COLS = 32,      /* the same if B is packed during its first use */
    LONG_COLS = 192,      /* the same if B is read once, row by row: shorter pieces read slowly */
    GOOD_ROWS = 96,       /* as long as columns can be halved, blocks keep this many rows */
    A_REUSE = 4,          /* A is packed if it is multiplied by more panels of B than this */
    A_ROW_REUSE = 16,     /* the same if the rows of A are contiguous */
    FEW_ROWS = 256,       /* up to this many rows of A are read in place by several blocks of columns */
    B_REUSE = 4,          /* B is packed if it is multiplied by more tiles of A than this */
    GROUP = 4,            /* panels of B that a block packs at a time for itself */
    READING = 8,          /* rows: fewer take no less time, because reading an element of B takes as long */
    WIDENED = 1 << 14,    /* halves that are widened at a time, before they are packed */
    LEAST_SLICES = 4,     /* fewer slices are not multiplied apart */
    LEAST_WORK = 1 << 18, /* multiplications in a part */
    LEAST_SUMS = 1 << 15, /* additions in a part */
    ROUND_SLICES = 4,     /* slices of k in a round; with fewer, C would be read and written too often */
    ROUND_BLOCKS = 4,     /* blocks of columns in a round, so that threads have enough to share */
    SMALL = 16,           /* rows, columns and k of a product that is not planned */
    SMALL_PANEL = 256,    /* bytes that a row of a panel has at most */
};

#ifndef APART_BYTES
#define APART_BYTES (1 << 22) /* of the matrices of slices that exist at a time; tests define less */
#endif

#ifndef SHARED_BYTES
#define SHARED_BYTES (1 << 24) /* of an operand that is packed once: what a round packs of it; tests define less */
#endif

/* The length of a slice of k. The last slice may be shorter. */
static int64_t k_step(int64_t k) { return k <= SLICE ? cn__larger(k, 1) : cn__divide_up(k, cn__divide_up(k, SLICE)); }

/* Where blocks read an operand. ON_THE_WAY: packed during its first use. */
typedef enum source { IN_PLACE, PACKED_ON_THE_WAY, PACKED_BY_BLOCK, PACKED_ONCE, GIVEN_PACKED } source;

/* How a product is divided. Sizes and strides alone decide it. */
typedef struct plan {
    cn__gemm g; /* as computed: with the batch folded into rows, perhaps transposed */
    const cn__gemm_kernel *kernel;
    int64_t size; /* of an element of C, and of packed A and B */
    int64_t a_size, b_size;
    int64_t fold;       /* rows of the product as given; g.m is a multiple of it */
    bool transposed;    /* g computes C' = B'·A' */
    bool alone;         /* run by one thread, with little scratch */
    int64_t items;      /* batch items of g */
    int64_t rows, cols; /* of a block */
    int64_t row_blocks, col_blocks;
    int64_t group;      /* blocks in a part */
    bool apart;         /* slices of k are multiplied apart */
    bool dot;           /* C is a single element; each lane of a panel computes one slice */
    int64_t round;      /* slices of k that are packed, or multiplied apart, at a time */
    int64_t round_cols; /* blocks of columns that are multiplied at a time */
    int64_t lines;      /* rows of C as given to which a part adds the slices */
    source a, b;
    int64_t a_tiles, b_panels;                 /* of a batch item in a round, if packed once */
    size_t counters, a_shared, b_shared, sums; /* bytes of scratch that threads share */
    size_t a_own, b_own, widened;              /* bytes of scratch for each thread */
} plan;

typedef struct run {
    const plan *p;
    char *scratch;
    int64_t first, count;         /* slices of this round */
    int64_t first_col, col_count; /* blocks of columns of this round */
} run;

static void swap_sizes(int64_t *a, int64_t *b)
{
    const int64_t t = *a;
    *a = *b;
    *b = t;
}

static void remove_batch_dim(cn__gemm *g, int dim)
{
    g->batch_dims--;
    for (int i = dim; i < g->batch_dims; i++) {
        g->batch_shape[i] = g->batch_shape[i + 1];
        g->a_batch[i] = g->a_batch[i + 1];
        g->b_batch[i] = g->b_batch[i + 1];
        g->c_batch[i] = g->c_batch[i + 1];
    }
}

/* Batch items that share B and follow each other in A and C are rows of one product: (b,m,k)·(k,n) -> (b·m,n). */
static void fold_batch(cn__gemm *g)
{
    for (int i = g->batch_dims - 1; i >= 0; i--) {
        if (g->batch_shape[i] == 1) remove_batch_dim(g, i);
    }
    for (int i = g->batch_dims - 1; i >= 0; i--) {
        const bool a_follows = g->a_batch[i] == g->m * g->a_row, c_follows = g->c_batch[i] == g->m * g->c_row;
        if (g->b_batch[i] != 0 || !a_follows || !c_follows) return;
        g->m *= g->batch_shape[i];
        g->batch_dims = i;
    }
}

/* Computes C' = B'·A' if vectors fit the columns of C better than its rows: there are more rows, or columns are
 * contiguous. */
static bool transpose(cn__gemm *g, int width)
{
    if (g->b_packed) return false;
    const int64_t as_rows = cn__smaller(g->m, width) * 4 + (g->c_row == 1),
                  as_cols = cn__smaller(g->n, width) * 4 + (g->c_col == 1);
    if (as_rows <= as_cols) return false;
    const void *a = g->a;
    g->a = g->b;
    g->b = a;
    const cn__gemm_storage storage = g->a_storage;
    g->a_storage = g->b_storage;
    g->b_storage = storage;
    swap_sizes(&g->m, &g->n);
    swap_sizes(&g->a_row, &g->b_col);
    swap_sizes(&g->a_col, &g->b_row);
    swap_sizes(&g->c_row, &g->c_col);
    for (int i = 0; i < g->batch_dims; i++) swap_sizes(&g->a_batch[i], &g->b_batch[i]);
    return true;
}

/* How many blocks suffice to share a product: up to 4 for a small product, up to 16 for a large one. */
static int64_t enough_blocks(double work)
{
    const double few = work / (1 << 20) < 4 ? work / (1 << 20) : 4,
                 many = work / (1 << 21) < 16 ? work / (1 << 21) : 16;
    return (int64_t)(few > many ? few : many);
}

/* Whether A is worth packing. Halves always are, because packing widens them. */
static bool packs_a(const plan *p)
{
    return p->g.a_storage || p->g.n > (p->g.a_col == 1 ? A_ROW_REUSE : A_REUSE) * p->kernel->width;
}

static bool packs_b(const plan *p) { return p->g.b_storage || p->g.m > B_REUSE * p->kernel->rows || p->g.b_col != 1; }

/* Whether panels of B can be packed during their first use. This pays if there is one block of rows. */
static bool packs_on_the_way(const plan *p)
{
    const cn__gemm *g = &p->g;
    return packs_b(p) && !g->b_storage && g->b_col == 1 && g->c_col == 1 && g->m >= p->kernel->rows;
}

static int64_t slices(const plan *p) { return cn__divide_up(p->g.k, k_step(p->g.k)); }

static int64_t blocks(const plan *p) { return p->items * p->row_blocks * p->col_blocks; }

static void set_blocks(plan *p, int64_t rows, int64_t cols)
{
    p->rows = cn__round_up(rows, p->kernel->rows);
    p->cols = cn__round_up(cols, p->kernel->width);
    p->row_blocks = cn__divide_up(p->g.m, p->rows);
    p->col_blocks = cn__divide_up(p->g.n, p->cols);
}

/* Rows of a block that fit the L2 cache, so that all blocks have about as many. */
static int64_t rows_that_fit(const plan *p)
{
    const int64_t most = BLOCK_BYTES / (SLICE * p->size);
    return cn__divide_up(p->g.m, cn__divide_up(p->g.m, most));
}

/* Blocks are as large as the caches allow, then halved until there are enough. Rows are halved first, so that one
 * thread alone reads a block of A and finishes whole rows of C. Columns are halved first if A is small and not packed,
 * or if B can be packed during its first use, so that less is packed in advance. */
static void cut_blocks(plan *p)
{
    const cn__gemm *g = &p->g;
    const double rows_work = (double)p->items * (double)cn__larger(g->m, READING);
    const double work = rows_work * (double)g->n * (double)cn__larger(g->k, 1);
    const int64_t enough = enough_blocks(work);
    const int64_t uncut = rows_that_fit(p);
    const bool on_the_way = uncut == g->m && packs_on_the_way(p);
    const int64_t good_rows = on_the_way || (!packs_a(p) && g->m <= FEW_ROWS) ? g->m : GOOD_ROWS;
    const int64_t least_cols = g->m <= READING ? LONG_COLS : on_the_way ? FEWER_COLS : LEAST_COLS;
    int64_t rows = uncut, cols = g->n;
    for (;;) {
        set_blocks(p, rows, cols);
        if (blocks(p) >= enough) break;
        const bool can_rows = rows >= 2 * LEAST_ROWS, can_cols = cols >= 2 * least_cols;
        if (!can_rows && !can_cols) break;
        if (rows >= 2 * good_rows || !can_cols) rows = cn__divide_up(rows, 2);
        else cols = cn__divide_up(cols, 2);
    }
    const double narrow = (double)p->kernel->width / (double)cn__smaller(g->n, p->kernel->width);
    p->apart = 2 * blocks(p) <= enough_blocks(work * narrow) && slices(p) >= LEAST_SLICES;
    if (p->apart) set_blocks(p, uncut, g->n);
    p->dot = p->apart && p->items == 1 && g->m == 1 && g->n == 1;
}

/* How many blocks, or slices of blocks, form one part of the work. */
static void cut_parts(plan *p)
{
    const cn__gemm *g = &p->g;
    const double work = (double)cn__larger(cn__smaller(p->rows, g->m), READING) * (double)p->cols *
                        (double)(p->apart ? k_step(g->k) : cn__larger(g->k, 1));
    p->group = p->dot ? p->kernel->width : work < LEAST_WORK ? (int64_t)(LEAST_WORK / work) : 1;
    if (!p->apart) return;
    const int64_t lines = p->transposed ? g->n : g->m, line = p->transposed ? g->m : g->n;
    p->round = cn__smaller(slices(p), cn__larger(1, APART_BYTES / p->size / (p->items * g->m * g->n)));
    p->lines = cn__smaller(lines, cn__round_up(cn__divide_up(LEAST_SUMS, line * p->round), p->kernel->lanes));
}

static size_t bytes(const plan *p, int64_t elements) { return (size_t)cn__round_up(elements * p->size, 64); }

/* Rows of B that a round packs. */
static int64_t round_rows(const plan *p) { return cn__smaller(p->g.k, p->round * k_step(p->g.k)); }

/* Bytes of A and of B that a round packs once. */
static void count_shared(plan *p)
{
    const int64_t rows = p->items * round_rows(p);
    p->a_tiles = cn__divide_up(p->g.m, p->kernel->rows);
    p->b_panels = cn__smaller(cn__divide_up(p->g.n, p->kernel->width), p->round_cols * (p->cols / p->kernel->width));
    p->a_shared = p->a == PACKED_ONCE ? bytes(p, rows * p->a_tiles * p->kernel->rows) : 0;
    p->b_shared = p->b == PACKED_ONCE ? bytes(p, rows * p->b_panels * p->kernel->width) : 0;
}

/* Rounds short enough for SHARED_BYTES: first of fewer slices, then of fewer columns. */
static void shorten_rounds(plan *p)
{
    const int64_t slice = (int64_t)cn__larger((int64_t)p->a_shared, (int64_t)p->b_shared) / cn__larger(slices(p), 1);
    if (slice * slices(p) <= SHARED_BYTES) return;
    p->round = cn__smaller(slices(p), cn__larger(ROUND_SLICES, SHARED_BYTES / slice));
    count_shared(p);
    if (p->b_shared <= SHARED_BYTES) return;
    const int64_t cols = SHARED_BYTES / (ROUND_BLOCKS * p->items * round_rows(p) * p->size);
    set_blocks(p, p->rows, cn__smaller(p->cols, cn__larger(cols, GROUP * p->kernel->width)));
    p->round_cols = ROUND_BLOCKS;
    count_shared(p);
}

static void choose_sources(plan *p)
{
    const cn__gemm *g = &p->g;
    const int width = p->kernel->width;
    const int64_t k = k_step(g->k);
    const bool alone = p->alone || p->apart; /* then nothing is packed in advance */
    p->a = !packs_a(p) ? IN_PLACE : p->col_blocks > 1 && !alone ? PACKED_ONCE : PACKED_BY_BLOCK;
    p->b = !packs_b(p) ? IN_PLACE : p->row_blocks > 1 && !alone ? PACKED_ONCE : PACKED_BY_BLOCK;
    if (p->b == PACKED_BY_BLOCK && packs_on_the_way(p)) p->b = PACKED_ON_THE_WAY;
    if (g->b_packed) p->b = GIVEN_PACKED;
    p->round_cols = p->col_blocks;
    if (!p->apart) p->round = slices(p);
    count_shared(p);
    if (!alone) shorten_rounds(p);
    p->a_own = p->dot ? bytes(p, width * k) : p->a == PACKED_BY_BLOCK ? bytes(p, p->rows * k) : 0;
    p->b_own = p->b >= PACKED_ONCE ? 0 : bytes(p, GROUP * width * k); /* in place: the last columns are packed */
    p->sums = p->apart ? bytes(p, p->round * p->items * g->m * g->n) : 0;
    p->widened = g->a_storage || g->b_storage ? bytes(p, WIDENED) : 0;
}

/* False: C is empty. */
static bool make_plan(plan *p, const cn__gemm *g, bool alone)
{
    *p = (plan){ .g = *g, .kernel = g->kernel, .fold = g->m, .alone = alone, .items = 1 };
    p->size = g->kernel->size;
    for (int i = 0; i < g->batch_dims; i++) p->items *= g->batch_shape[i];
    if (p->items == 0 || g->m == 0 || g->n == 0) return false;
    fold_batch(&p->g);
    p->items /= p->g.m / p->fold;
    p->transposed = transpose(&p->g, p->kernel->width);
    p->a_size = p->g.a_storage ? sizeof(uint16_t) : (size_t)p->size;
    p->b_size = p->g.b_storage ? sizeof(uint16_t) : (size_t)p->size;
    if (alone) {
        set_blocks(p, rows_that_fit(p), p->g.n);
        p->group = 1;
    } else {
        cut_blocks(p);
        cut_parts(p);
    }
    choose_sources(p);
    const bool shared_rows = (p->transposed ? p->row_blocks : p->col_blocks) > 1;
    const int64_t row_groups = p->items * (p->transposed ? p->col_blocks : p->row_blocks);
    p->counters =
        shared_rows && !alone && !p->apart ? (size_t)cn__round_up(row_groups * (int64_t)sizeof(atomic_int), 64) : 0;
    return true;
}

/* Reports final rows of the folded product, which are rows of several batch items as given. */
static void call_done(const plan *p, int64_t item, int64_t begin, int64_t end, int thread)
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
    const plan *p = r->p;
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

static size_t shared_bytes(const plan *p) { return p->counters + p->a_shared + p->b_shared + p->sums; }

static size_t own_bytes(const plan *p) { return p->a_own + p->b_own + p->widened; }

static char *own_scratch(const run *r, int thread)
{
    const plan *p = r->p;
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
    const plan *p = r->p;
    const cn__gemm *g = &p->g;
    const char *const a = (const char *)g->a + offset * p->a_size;
    if (!g->a_storage) {
        p->kernel->pack_a(to, a, rows, k, g->a_row, g->a_col);
        return;
    }
    float *const wide = widened(r, thread);
    const int64_t step = WIDENED / k / p->kernel->rows * p->kernel->rows;
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
    const plan *p = r->p;
    if (!storage) {
        p->kernel->pack_b(to, from, k, cols, row_step, col_step);
        return;
    }
    float *const wide = widened(r, thread);
    const int64_t step = WIDENED / k / p->kernel->width * p->kernel->width;
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
    const plan *p = r->p;
    const int64_t at = item * round_rows(p) + k0 - r->first * k_step(p->g.k);
    return r->scratch + p->counters + at * p->a_tiles * p->kernel->rows * p->size;
}

static char *shared_b(const run *r, int64_t item, int64_t k0)
{
    const plan *p = r->p;
    const int64_t at = item * round_rows(p) + k0 - r->first * k_step(p->g.k);
    return r->scratch + p->counters + p->a_shared + at * p->b_panels * p->kernel->width * p->size;
}

/* The first column of this round, and the first behind it. */
static int64_t first_column(const run *r) { return r->first_col * r->p->cols; }
static int64_t end_column(const run *r) { return cn__smaller(r->p->g.n, (r->first_col + r->col_count) * r->p->cols); }

/* The first round of columns packs A, for all of them. */
static int64_t a_parts(const run *r)
{
    return r->p->a == PACKED_ONCE && r->first_col == 0 ? cn__divide_up(r->p->a_tiles, PACK_ROWS) : 0;
}

static int64_t b_parts(const run *r)
{
    const int64_t cols = PACK_PANELS * r->p->kernel->width;
    return r->p->b == PACKED_ONCE ? cn__divide_up(end_column(r) - first_column(r), cols) : 0;
}

static void pack_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t in_slice = a_parts(r) + b_parts(r), step = k_step(g->k);
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
    const plan *p = t->r->p;
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
    const plan *p = t->r->p;
    const cn__gemm *g = &p->g;
    const int width = p->kernel->width;
    const int64_t k = t->b.k, n = t->b.n;
    if (p->b == GIVEN_PACKED) { /* a panel holds all rows of B */
        const int64_t first = t->col * g->b_packed + k0 * width;
        multiply(t, 0, n, (const char *)g->b + first * p->size, width * g->b_packed, width, NULL);
        return;
    }
    if (p->b == PACKED_ONCE) {
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
    int64_t done = p->b <= PACKED_ON_THE_WAY ? n / width * width : 0;
    if (done) multiply(t, 0, done, b, width, g->b_row, p->b == PACKED_ON_THE_WAY ? t->b_own : NULL);
    for (int64_t cols = 0; done < n; done += cols) {
        cols = cn__smaller(GROUP * width, n - done);
        pack_b(t->r, t->b_own, offset + done * g->b_col, k, cols, t->thread);
        multiply(t, done, cols, t->b_own, width * k, width, NULL);
    }
}

static void use_a(turn *t, int64_t k0)
{
    const plan *p = t->r->p;
    const cn__gemm *g = &p->g;
    const int rows = p->kernel->rows;
    const int64_t k = t->b.k;
    const int64_t offset = t->at.a + t->row * g->a_row + k0 * g->a_col;
    if (p->a == IN_PLACE) {
        t->b.a = (const char *)g->a + offset * p->a_size;
        t->b.a_tile = rows * g->a_row;
        t->b.a_row = g->a_row;
        t->b.a_col = g->a_col;
        return;
    }
    if (p->a == PACKED_BY_BLOCK) pack_a(t->r, t->a_own, offset, t->b.m, k, t->thread);
    t->b.a = p->a == PACKED_ONCE ? shared_a(t->r, t->item, k0) + t->row * k * p->size : t->a_own;
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
    const plan *p = r->p;
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
    const int64_t k = t->r->p->g.k, step = k_step(k), k0 = slice * step;
    t->b.k = cn__smaller(step, k - k0);
    t->b.add = add;
    use_a(t, k0);
    use_b(t, k0);
}

static void run_block(const run *r, int64_t item, int64_t row_block, int64_t col_block, int thread)
{
    const plan *p = r->p;
    turn t = begin_block(r, item, row_block, col_block, thread);
    for (int64_t slice = r->first; slice < r->first + r->count; slice++)
        multiply_slice(&t, slice, p->g.accumulate || slice > 0);
    if (p->g.k == 0 && !p->g.accumulate) clear(&t.b, p->size);
    if (r->first + r->count == slices(p)) finish_block(r, item, row_block, col_block, thread);
}

static int64_t round_parts(const run *r)
{
    return cn__divide_up(r->p->items * r->p->row_blocks * r->col_count, r->p->group);
}

static void run_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const plan *p = r->p;
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
    const plan *p = r->p;
    return r->scratch + shared_bytes(p) - p->sums + (slice * p->items + item) * p->g.m * p->g.n * p->size;
}

/* For C of one element: slices [slice, slice + count) of this round, all of length k. Each slice is packed as a column
 * of A and of B. */
static void multiply_lanes(const run *r, int64_t slice, int64_t count, int64_t k, int thread)
{
    const plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t k0 = (r->first + slice) * k_step(g->k);
    char *const a = own_scratch(r, thread), *const b = a + p->a_own;
    pack_panels(r, a, (const char *)g->a + k0 * g->a_col * p->a_size, g->a_storage, k, count, g->a_col, k * g->a_col,
                thread);
    pack_panels(r, b, (const char *)g->b + k0 * g->b_row * p->b_size, g->b_storage, k, count, g->b_row, k * g->b_row,
                thread);
    p->kernel->multiply_lanes(sum_of(r, slice, 0), a, b, k, count);
}

static void multiply_dot(const run *r, int64_t begin, int64_t end, int thread)
{
    const int64_t k = r->p->g.k, step = k_step(k), whole = cn__smaller(end, k / step - r->first);
    if (begin < whole) multiply_lanes(r, begin, whole - begin, step, thread);
    if (whole < end) multiply_lanes(r, whole, 1, k % step, thread);
}

static void multiply_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const plan *p = r->p;
    const int64_t begin = part * p->group, end = cn__smaller(begin + p->group, r->count * blocks(p));
    if (p->dot) {
        multiply_dot(r, begin, end, thread);
        return;
    }
    for (int64_t at = begin; at < end; at++) {
        const int64_t slice = at / blocks(p), block = at % blocks(p);
        turn t = begin_block(r, block / p->row_blocks, block % p->row_blocks, 0, thread);
        t.b.c = sum_of(r, slice, t.item) + t.row * p->g.n * p->size;
        t.b.c_row = p->g.n;
        t.b.c_col = 1;
        multiply_slice(&t, r->first + slice, false);
    }
}

static int64_t lines(const plan *p) { return p->transposed ? p->g.n : p->g.m; }

/* Adds all slices of this round to some rows of C as given. */
static void add_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const plan *p = r->p;
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
    if (g->done && r->first + r->count == slices(p)) call_done(p, item, begin, end, thread);
}

static void run_apart(run *r, cn__workers *w)
{
    const plan *p = r->p;
    for (r->first = 0; r->first < slices(p); r->first += r->count) {
        r->count = cn__smaller(p->round, slices(p) - r->first);
        cn__workers_run(w, cn__divide_up(r->count * blocks(p), p->group), multiply_part, r);
        cn__workers_run(w, p->items * cn__divide_up(lines(p), p->lines), add_part, r);
    }
}

static int64_t pack_parts(const run *r) { return r->p->items * r->count * (a_parts(r) + b_parts(r)); }

/* k = 0 takes one round, without a slice. */
static void run_rounds(run *r, cn__workers *w)
{
    const plan *p = r->p;
    do {
        r->count = cn__smaller(p->round, slices(p) - r->first);
        for (r->first_col = 0; r->first_col < p->col_blocks; r->first_col += r->col_count) {
            r->col_count = cn__smaller(p->round_cols, p->col_blocks - r->first_col);
            if (pack_parts(r)) cn__workers_run(w, pack_parts(r), pack_part, r);
            cn__workers_run(w, round_parts(r), run_part, r);
        }
        r->first += r->count;
    } while (r->first < slices(p));
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
    plan p;
    if (!make_plan(&p, g, false)) return 0;
    return shared_bytes(&p) + (size_t)cn__larger(threads, 1) * own_bytes(&p);
}

void cn__gemm_run(const cn__gemm *g, cn__workers *w, void *scratch)
{
    if (is_small(g)) {
        run_small(g);
        return;
    }
    plan p;
    if (!make_plan(&p, g, false)) return;
    if (g->done) memset(scratch, 0, p.counters);
    run r = { .p = &p, .scratch = scratch };
    if (p.apart) run_apart(&r, w);
    else run_rounds(&r, w);
}

size_t cn__gemm_alone_scratch(const cn__gemm_kernel *kernel)
{
    const int64_t rows = cn__round_up(BLOCK_BYTES / (SLICE * kernel->size), kernel->rows);
    return (size_t)((rows + GROUP * kernel->width) * SLICE * kernel->size) +
           WIDENED * sizeof(float); /* each term is a multiple of 64 bytes */
}

void cn__gemm_run_alone(const cn__gemm *g, void *scratch)
{
    plan p;
    if (!make_plan(&p, g, true)) return;
    p.g.done = NULL;
    run r = { .p = &p, .scratch = scratch, .count = slices(&p), .col_count = p.col_blocks };
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
    const int64_t step = k_step(g->k), size = kernel->size;
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

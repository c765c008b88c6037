/* Divides products; gemm_plan.h explains it. */
#include "gemm_plan.h"

#include <stdatomic.h>

enum {
    LEAST_ROWS = 48, /* blocks do not get smaller than this when they are halved to share the work */
    LEAST_COLS = 64,
    FEWER_COLS = 32,      /* the same if B is packed during its first use */
    LONG_COLS = 192,      /* the same if B is read once, row by row: shorter pieces read slowly */
    GOOD_ROWS = 96,       /* as long as columns can be halved, blocks keep this many rows */
    A_REUSE = 4,          /* A is packed if it is multiplied by more panels of B than this */
    A_ROW_REUSE = 16,     /* the same if the rows of A are contiguous */
    FEW_ROWS = 256,       /* up to this many rows of A are read in place by several blocks of columns */
    GIVEN_ROWS = 64,      /* up to this many rows of A are read in place if B was packed before */
    B_REUSE = 4,          /* B is packed if it is multiplied by more tiles of A than this */
    READING = 8,          /* rows: fewer take no less time, because reading an element of B takes as long */
    LEAST_SLICES = 4,     /* fewer slices are not multiplied apart */
    LEAST_WORK = 1 << 18, /* multiplications in a part */
    LEAST_SUMS = 1 << 15, /* additions in a part */
    ROUND_SLICES = 4,     /* slices of k in a round; with fewer, C would be read and written too often */
    ROUND_BLOCKS = 4,     /* blocks of columns in a round, so that threads have enough to share */
};

#ifndef APART_BYTES
#define APART_BYTES (1 << 22) /* of the matrices of slices that exist at a time; tests define less */
#endif

#ifndef SHARED_BYTES
#define SHARED_BYTES (1 << 24) /* of an operand that is packed once: what a round packs of it; tests define less */
#endif

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
static bool packs_a(const cn__gemm_plan *p)
{
    return p->g.a_storage || p->g.n > (p->g.a_col == 1 ? A_ROW_REUSE : A_REUSE) * p->kernel->width;
}

static bool packs_b(const cn__gemm_plan *p)
{
    return p->g.b_storage || p->g.m > B_REUSE * p->kernel->rows || p->g.b_col != 1;
}

/* Whether panels of B can be packed during their first use. This pays if there is one block of rows. */
static bool packs_on_the_way(const cn__gemm_plan *p)
{
    const cn__gemm *g = &p->g;
    return packs_b(p) && !g->b_storage && g->b_col == 1 && g->c_col == 1 && g->m >= p->kernel->rows;
}

static void set_blocks(cn__gemm_plan *p, int64_t rows, int64_t cols)
{
    p->rows = cn__round_up(rows, p->kernel->rows);
    p->cols = cn__round_up(cols, p->kernel->width);
    p->row_blocks = cn__divide_up(p->g.m, p->rows);
    p->col_blocks = cn__divide_up(p->g.n, p->cols);
}

/* Rows of a block that fit the L2 cache, so that all blocks have about as many. */
static int64_t rows_that_fit(const cn__gemm_plan *p)
{
    const int64_t most = CN__GEMM_BLOCK_BYTES / (CN__GEMM_SLICE * p->size);
    return cn__divide_up(p->g.m, cn__divide_up(p->g.m, most));
}

/* Blocks are as large as the caches allow, then halved until there are enough. Rows are halved first, so that one
 * thread alone reads a block of A and finishes whole rows of C. Columns are halved first if A is small and not packed,
 * or if B can be packed during its first use, so that less is packed in advance. */
static void cut_blocks(cn__gemm_plan *p)
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
        if (cn__gemm_blocks(p) >= enough) break;
        const bool can_rows = rows >= 2 * LEAST_ROWS, can_cols = cols >= 2 * least_cols;
        if (!can_rows && !can_cols) break;
        if (rows >= 2 * good_rows || !can_cols) rows = cn__divide_up(rows, 2);
        else cols = cn__divide_up(cols, 2);
    }
    const double narrow = (double)p->kernel->width / (double)cn__smaller(g->n, p->kernel->width);
    p->apart = 2 * cn__gemm_blocks(p) <= enough_blocks(work * narrow) && cn__gemm_slices(p) >= LEAST_SLICES;
    if (p->apart) set_blocks(p, uncut, g->n);
    p->dot = p->apart && p->items == 1 && g->m == 1 && g->n == 1;
}

/* How many blocks, or slices of blocks, form one part of the work. */
static void cut_parts(cn__gemm_plan *p)
{
    const cn__gemm *g = &p->g;
    const double work = (double)cn__larger(cn__smaller(p->rows, g->m), READING) * (double)p->cols *
                        (double)(p->apart ? cn__gemm_step(g->k) : cn__larger(g->k, 1));
    p->group = p->dot ? p->kernel->width : work < LEAST_WORK ? (int64_t)(LEAST_WORK / work) : 1;
    if (!p->apart) return;
    const int64_t lines = p->transposed ? g->n : g->m, line = p->transposed ? g->m : g->n;
    p->round = cn__smaller(cn__gemm_slices(p), cn__larger(1, APART_BYTES / p->size / (p->items * g->m * g->n)));
    p->lines = cn__smaller(lines, cn__round_up(cn__divide_up(LEAST_SUMS, line * p->round), p->kernel->lanes));
}

static size_t bytes(const cn__gemm_plan *p, int64_t elements) { return (size_t)cn__round_up(elements * p->size, 64); }

/* Bytes of A and of B that a round packs once. */
static void count_shared(cn__gemm_plan *p)
{
    const int64_t rows = p->items * cn__gemm_round_rows(p);
    p->a_tiles = cn__divide_up(p->g.m, p->kernel->rows);
    p->b_panels = cn__smaller(cn__divide_up(p->g.n, p->kernel->width), p->round_cols * (p->cols / p->kernel->width));
    p->a_shared = p->a == CN__PACKED_ONCE ? bytes(p, rows * p->a_tiles * p->kernel->rows) : 0;
    p->b_shared = p->b == CN__PACKED_ONCE ? bytes(p, rows * p->b_panels * p->kernel->width) : 0;
}

/* Rounds short enough for SHARED_BYTES: first of fewer slices, then of fewer columns. */
static void shorten_rounds(cn__gemm_plan *p)
{
    const int64_t slice =
        (int64_t)cn__larger((int64_t)p->a_shared, (int64_t)p->b_shared) / cn__larger(cn__gemm_slices(p), 1);
    if (slice * cn__gemm_slices(p) <= SHARED_BYTES) return;
    p->round = cn__smaller(cn__gemm_slices(p), cn__larger(ROUND_SLICES, SHARED_BYTES / slice));
    count_shared(p);
    if (p->b_shared <= SHARED_BYTES) return;
    const int64_t cols = SHARED_BYTES / (ROUND_BLOCKS * p->items * cn__gemm_round_rows(p) * p->size);
    set_blocks(p, p->rows, cn__smaller(p->cols, cn__larger(cols, CN__GEMM_GROUP * p->kernel->width)));
    p->round_cols = ROUND_BLOCKS;
    count_shared(p);
}

static void choose_sources(cn__gemm_plan *p)
{
    const cn__gemm *g = &p->g;
    const int width = p->kernel->width;
    const int64_t k = cn__gemm_step(g->k);
    const bool alone = p->alone || p->apart; /* then nothing is packed in advance */
    const bool few = g->b_packed && !g->a_storage && g->m <= GIVEN_ROWS;
    p->a = few || !packs_a(p) ? CN__IN_PLACE : p->col_blocks > 1 && !alone ? CN__PACKED_ONCE : CN__PACKED_BY_BLOCK;
    p->b = !packs_b(p) ? CN__IN_PLACE : p->row_blocks > 1 && !alone ? CN__PACKED_ONCE : CN__PACKED_BY_BLOCK;
    if (p->b == CN__PACKED_BY_BLOCK && packs_on_the_way(p)) p->b = CN__PACKED_ON_THE_WAY;
    if (g->b_packed) p->b = CN__GIVEN_PACKED;
    p->round_cols = p->col_blocks;
    if (!p->apart) p->round = cn__gemm_slices(p);
    count_shared(p);
    if (!alone) shorten_rounds(p);
    p->a_own = p->dot ? bytes(p, width * k) : p->a == CN__PACKED_BY_BLOCK ? bytes(p, p->rows * k) : 0;
    p->b_own =
        p->b >= CN__PACKED_ONCE ? 0 : bytes(p, CN__GEMM_GROUP * width * k); /* in place: the last columns are packed */
    p->sums = p->apart ? bytes(p, p->round * p->items * g->m * g->n) : 0;
    p->widened = g->a_storage || g->b_storage ? bytes(p, CN__GEMM_WIDENED) : 0;
}

bool cn__gemm_make_plan(cn__gemm_plan *p, const cn__gemm *g, bool alone)
{
    *p = (cn__gemm_plan){ .g = *g, .kernel = g->kernel, .fold = g->m, .alone = alone, .items = 1 };
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

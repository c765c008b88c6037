/* gemm.c: what to multiply in which order, and who does it; the arithmetic is in gemm_body.h.
 *
 * A product is cut into blocks of at most BLOCK_ROWS rows, by its sizes alone. A block goes through k in slices: the
 * rows of A are packed (L2), then each panel of B a register tile wide is packed (L1) and meets every tile of A.
 * Operands that are used too seldom to repay packing are read where they are. */
#include "gemm.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    TILE_ROWS = 6, /* with two vectors of columns: 12 accumulators, two of B and one of A leave one of 16 registers */
    ACCUMULATORS = 12,
    TILE_COLS = 16,   /* widest tile of any instruction set: blocks are cut the same way for all of them */
    SLICE = 256,      /* longest slice of k: a panel of B is 16 KB */
    BLOCK_ROWS = 288, /* most rows in a block: a packed slice of A is 288 KB in f32 */
    LEAST_ROWS = 48,  /* blocks are not cut smaller than this for the sake of sharing the work */
    LEAST_COLS = 64,
    A_REUSE = 4, /* A is packed when it meets more panels of B than this */
    B_REUSE = 4, /* B is packed when it meets more tiles of A than this */
};

/* One block: C(m,n) = or += A(m,k)·B(k,n). */
typedef struct block {
    bool accumulate;
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    void *c;
    int64_t c_row, c_col;
    void *a_pack, *b_pack;
} block;

typedef void (*block_kernel)(const block *g);

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int64_t round_up(int64_t a, int64_t unit) { return divide_up(a, unit) * unit; }

/* The slices of k are equal, but for the last. */
static int64_t k_step(int64_t k) { return k <= SLICE ? larger(k, 1) : divide_up(k, divide_up(k, SLICE)); }

#define SCALAR float
#define BYTES  16
#define LOW    0, 4, 1, 5
#define HIGH   2, 6, 3, 7
#define TARGET
#define FMA(x, y, z) ((x) * (y) + (z))
#define NAME(x)      x##_f32
#include "gemm_body.h"

#define SCALAR double
#define BYTES  16
#define LOW    0, 2
#define HIGH   1, 3
#define TARGET
#define FMA(x, y, z) ((x) * (y) + (z))
#define NAME(x)      x##_f64
#include "gemm_body.h"

#if defined(__x86_64__)
#define SCALAR       float
#define BYTES        32
#define LOW          0, 8, 1, 9, 2, 10, 3, 11
#define HIGH         4, 12, 5, 13, 6, 14, 7, 15
#define TARGET       __attribute__((target("avx2,fma")))
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#define NAME(x)      x##_f32_avx2
#include "gemm_body.h"

#define SCALAR       double
#define BYTES        32
#define LOW          0, 4, 1, 5
#define HIGH         2, 6, 3, 7
#define TARGET       __attribute__((target("avx2,fma")))
#define FMA(x, y, z) _mm256_fmadd_pd(x, y, z)
#define NAME(x)      x##_f64_avx2
#include "gemm_body.h"
#endif

static block_kernel choose_kernel(bool f64)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return f64 ? block_f64_avx2 : block_f32_avx2;
#endif
    return f64 ? block_f64 : block_f32;
}

/* How a product is cut: by sizes and strides alone. */
typedef struct plan {
    cn__gemm g;         /* as it is computed: batch folded into rows, perhaps transposed */
    int64_t fold;       /* rows of the product as given: g has a multiple of it */
    bool transposed;    /* computes C' = B'·A' */
    int64_t items;      /* batch items of g */
    int64_t rows, cols; /* of a block */
    int64_t row_blocks, col_blocks;
    int64_t group; /* blocks in a part */
    int64_t parts;
    size_t counters, a_bytes, b_bytes; /* scratch: once; for each thread */
} plan;

typedef struct run {
    const plan *p;
    block_kernel kernel;
    char *scratch;
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

/* C' = B'·A' where the rows of C suit vectors better than its columns: more of them, or contiguous. */
static bool transpose(cn__gemm *g)
{
    const int64_t as_rows = smaller(g->m, TILE_COLS) * 4 + (g->c_row == 1),
                  as_cols = smaller(g->n, TILE_COLS) * 4 + (g->c_col == 1);
    if (as_rows <= as_cols) return false;
    const void *a = g->a;
    g->a = g->b;
    g->b = a;
    swap_sizes(&g->m, &g->n);
    swap_sizes(&g->a_row, &g->b_col);
    swap_sizes(&g->a_col, &g->b_row);
    swap_sizes(&g->c_row, &g->c_col);
    for (int i = 0; i < g->batch_dims; i++) swap_sizes(&g->a_batch[i], &g->b_batch[i]);
    return true;
}

/* Blocks as large as the caches allow, then halved until there are enough of them for the amount of work. */
static void cut_blocks(plan *p)
{
    const cn__gemm *g = &p->g;
    const double work = (double)p->items * (double)g->m * (double)g->n * (double)larger(g->k, 1);
    const double few = work / (1 << 19) < 4 ? work / (1 << 19) : 4,
                 many = work / (1 << 23) < 16 ? work / (1 << 23) : 16;
    const double enough = few > many ? few : many;
    int64_t rows = divide_up(g->m, divide_up(g->m, BLOCK_ROWS)), cols = g->n;
    for (;;) {
        p->rows = round_up(rows, TILE_ROWS);
        p->cols = round_up(cols, TILE_COLS);
        p->row_blocks = divide_up(g->m, p->rows);
        p->col_blocks = divide_up(g->n, p->cols);
        if ((double)p->row_blocks * (double)p->col_blocks * (double)p->items >= enough) break;
        const bool can_rows = rows >= 2 * LEAST_ROWS, can_cols = cols >= 2 * LEAST_COLS;
        if (!can_rows && !can_cols) break;
        if (can_cols && (cols >= rows || !can_rows)) cols = divide_up(cols, 2);
        else rows = divide_up(rows, 2);
    }
    const double block_work = (double)p->rows * (double)p->cols * (double)larger(g->k, 1);
    const int64_t blocks = p->items * p->row_blocks * p->col_blocks;
    p->group = block_work < (1 << 18) ? (int64_t)((1 << 18) / block_work) : 1;
    p->parts = divide_up(blocks, p->group);
}

/* False where there is nothing to do. */
static bool make_plan(plan *p, const cn__gemm *g)
{
    p->g = *g;
    p->fold = g->m;
    p->items = 1;
    for (int i = 0; i < g->batch_dims; i++) p->items *= g->batch_shape[i];
    if (p->items == 0 || g->m == 0 || g->n == 0) return false;
    fold_batch(&p->g);
    p->items /= p->g.m / p->fold;
    p->transposed = transpose(&p->g);
    cut_blocks(p);

    const size_t size = g->f64 ? sizeof(double) : sizeof(float), k = (size_t)k_step(g->k);
    const bool shared_rows = (p->transposed ? p->row_blocks : p->col_blocks) > 1;
    const int64_t row_groups = p->items * (p->transposed ? p->col_blocks : p->row_blocks);
    p->counters = shared_rows ? (size_t)round_up(row_groups * (int64_t)sizeof(atomic_int), 64) : 0;
    p->a_bytes = (size_t)round_up(p->rows * (int64_t)(k * size), 64);
    p->b_bytes = (size_t)round_up(TILE_COLS * (int64_t)(k * size), 64);
    return true;
}

/* Rows of the folded product are rows of several batch items as given. */
static void call_done(const plan *p, int64_t item, int64_t begin, int64_t end, int thread)
{
    const int64_t m = p->transposed ? p->g.n : p->g.m, first = item * (m / p->fold);
    while (begin < end) {
        const int64_t at = begin / p->fold, base = at * p->fold, stop = smaller(end, base + p->fold);
        p->g.done(p->g.user, first + at, begin - base, stop - base, thread);
        begin = stop;
    }
}

/* After the last block of some rows of C as given: those rows are final. */
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
    call_done(p, item, at * size, smaller(m, (at + 1) * size), thread);
}

static void run_block(const run *r, int64_t item, int64_t row, int64_t col, int thread)
{
    const plan *p = r->p;
    const cn__gemm *g = &p->g;
    const int64_t size = g->f64 ? sizeof(double) : sizeof(float), i = row * p->rows, q = col * p->cols;
    int64_t a = i * g->a_row, b = q * g->b_col, c = i * g->c_row + q * g->c_col, rest = item;
    for (int d = g->batch_dims - 1; d >= 0; d--) {
        const int64_t x = rest % g->batch_shape[d];
        rest /= g->batch_shape[d];
        a += x * g->a_batch[d];
        b += x * g->b_batch[d];
        c += x * g->c_batch[d];
    }
    char *const pack = r->scratch + p->counters + (size_t)thread * (p->a_bytes + p->b_bytes);
    char *const c_at = (char *)g->c + c * size;
    const bool empty = g->k == 0; /* A and B may be NULL then: point somewhere */
    const block one = { .accumulate = g->accumulate,
                        .m = smaller(p->rows, g->m - i),
                        .n = smaller(p->cols, g->n - q),
                        .k = g->k,
                        .a = empty ? c_at : (const char *)g->a + a * size,
                        .a_row = empty ? 0 : g->a_row,
                        .a_col = g->a_col,
                        .b = empty ? c_at : (const char *)g->b + b * size,
                        .b_row = g->b_row,
                        .b_col = empty ? 0 : g->b_col,
                        .c = c_at,
                        .c_row = g->c_row,
                        .c_col = g->c_col,
                        .a_pack = pack,
                        .b_pack = pack + p->a_bytes };
    if (!empty || !g->accumulate) r->kernel(&one);
    finish_block(r, item, row, col, thread);
}

static void run_part(void *user, int64_t part, int thread)
{
    const run *r = user;
    const plan *p = r->p;
    const int64_t in_item = p->row_blocks * p->col_blocks, begin = part * p->group;
    const int64_t end = smaller(begin + p->group, p->items * in_item);
    for (int64_t at = begin; at < end; at++) {
        const int64_t in = at % in_item;
        run_block(r, at / in_item, in / p->col_blocks, in % p->col_blocks, thread);
    }
}

size_t cn__gemm_scratch(const cn__gemm *g, int threads)
{
    plan p;
    if (!make_plan(&p, g)) return 0;
    return p.counters + (size_t)larger(threads, 1) * (p.a_bytes + p.b_bytes);
}

void cn__gemm_run(const cn__gemm *g, cn__workers *w, void *scratch)
{
    plan p;
    if (!make_plan(&p, g)) return;
    if (g->done) memset(scratch, 0, p.counters);
    run r = { .p = &p, .kernel = choose_kernel(g->f64), .scratch = scratch };
    cn__workers_run(w, p.parts, run_part, &r);
}

size_t cn__gemm_alone_scratch(bool f64)
{
    const size_t size = f64 ? sizeof(double) : sizeof(float), rows = (size_t)round_up(BLOCK_ROWS, TILE_ROWS);
    return (rows + TILE_COLS) * SLICE * size; /* each term is a multiple of 64 bytes */
}

void cn__gemm_run_alone(const cn__gemm *g, void *scratch)
{
    plan p;
    if (!make_plan(&p, g)) return;
    p.counters = 0;
    p.g.done = NULL;
    const run r = { .p = &p, .kernel = choose_kernel(g->f64), .scratch = scratch };
    for (int64_t part = 0; part < p.parts; part++) run_part((void *)&r, part, 0);
}

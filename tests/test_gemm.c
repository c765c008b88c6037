/* The matrix product: every kernel that this processor can run, also those chosen on other processors only, on all
   shapes where its paths begin and end. The bits are compared with the rule that gemm.h states, computed plainly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "core/dtype.h"

/* The source itself, because tests look at its plans and make it multiply in several rounds. */
#define APART_BYTES  (1 << 12)
#define SHARED_BYTES (1 << 16)
#include "cpu/gemm.c"
#include "cpu/gemm_plan.c"

#include "cpu/isa.h"
#include "ops/kernels.h"

/* The tiles of other processors in plain vector code: 12 rows of 2 vectors of 64 bytes, 8 rows of 3 vectors of 16. */
#define PLAIN(x, y, z) ((x) * (y) + (z))
#undef NAME
#define NAME(f) CN__PASTE(CN__PASTE(f, TYPE), SHAPE)

#define SHAPE         wide
#define BYTES         64
#define ROWS          12
#define VECTORS       2
#define LOW_f32_wide  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_f32_wide 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_f64_wide  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_f64_wide 4, 12, 5, 13, 6, 14, 7, 15
#define FMA_f32_wide  PLAIN
#define FMA_f64_wide  PLAIN
#define TEMPLATE      "cpu/gemm_body.h"
#define TYPES         CN__FLOAT_TYPES
#include "cpu/each_type.h"
#undef SHAPE
#undef BYTES
#undef ROWS
#undef VECTORS

#define SHAPE         tall
#define BYTES         16
#define ROWS          8
#define VECTORS       3
#define LOW_f32_tall  0, 4, 1, 5
#define HIGH_f32_tall 2, 6, 3, 7
#define LOW_f64_tall  0, 2
#define HIGH_f64_tall 1, 3
#define FMA_f32_tall  PLAIN
#define FMA_f64_tall  PLAIN
#define TEMPLATE      "cpu/gemm_body.h"
#define TYPES         CN__FLOAT_TYPES
#include "cpu/each_type.h"

/* ---- a product, and what it must give ---- */

typedef struct trial {
    int64_t m, n, k;
    int64_t batch;   /* 0: none */
    bool b_shared;   /* one B for all batch items */
    bool at, bt, ct; /* stored the other way round */
    int64_t gap;     /* elements skipped between those of a row */
    bool accumulate;
    cn__gemm_storage a_half, b_half;
    bool apart;    /* slices of k are expected to be multiplied apart */
    bool rounds;   /* several rounds of slices, and of columns, are expected */
    int64_t c_gap; /* rows skipped between the items of C, though not between those of A */
} trial;

typedef struct buffer {
    char *data;
    size_t bytes;
} buffer;

static uint32_t noise = 1;

static double next_number(void)
{
    noise = noise * 1664525 + 1013904223;
    return (double)(noise >> 8) / (1 << 23) - 1;
}

static buffer new_buffer(int64_t n, cn_dtype t)
{
    const size_t bytes = (size_t)n * cn_dtype_size(t);
    buffer b = { aligned_alloc(64, bytes / 64 * 64 + 64), bytes };
    if (!b.data) abort();
    for (int64_t i = 0; i < n; i++) cn__store_f64(t, b.data + (size_t)i * cn_dtype_size(t), next_number());
    return b;
}

static cn_dtype type_of(bool f64, cn__gemm_storage s)
{
    return s == CN__GEMM_F16 ? CN_F16 : s == CN__GEMM_BF16 ? CN_BF16 : f64 ? CN_F64 : CN_F32;
}

typedef struct matrix {
    int64_t row, col, item; /* strides */
    int64_t size;
} matrix;

static matrix lay_out(int64_t rows, int64_t cols, bool turned, int64_t gap, int64_t batch)
{
    const int64_t near = 1 + gap;
    matrix x = turned ? (matrix){ near, rows * near, 0, 0 } : (matrix){ cols * near, near, 0, 0 };
    x.item = rows * cols * near;
    x.size = x.item * (batch ? batch : 1);
    return x;
}

/* How often each row was finished, and what it was then. */
typedef struct rows_seen {
    unsigned char *seen;
    const cn__gemm *g;
    char *then;
} rows_seen;

static size_t element_size(const cn__gemm *g) { return (size_t)g->kernel->size; }

static size_t element_at(const cn__gemm *g, int64_t item, int64_t i, int64_t q)
{
    return (size_t)(item * g->c_batch[0] + i * g->c_row + q * g->c_col) * element_size(g);
}

static void note_rows(void *user, int64_t batch, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const rows_seen *r = user;
    for (int64_t i = begin; i < end; i++) {
        r->seen[batch * r->g->m + i]++;
        for (int64_t q = 0; q < r->g->n; q++) {
            const size_t at = element_at(r->g, batch, i, q);
            memcpy(r->then + at, (const char *)r->g->c + at, element_size(r->g));
        }
    }
}

/* Rows that were not finished once, or changed after that. */
static int64_t rows_missed(const rows_seen *r, int64_t items)
{
    int64_t missed = 0;
    for (int64_t row = 0; r->g->n && row < items * r->g->m; row++) {
        bool right = r->seen[row] == 1;
        for (int64_t q = 0; right && q < r->g->n; q++) {
            const size_t at = element_at(r->g, row / r->g->m, row % r->g->m, q);
            right = memcmp(r->then + at, (const char *)r->g->c + at, element_size(r->g)) == 0;
        }
        missed += !right;
    }
    return missed;
}

/* The rule: k in equal slices, a slice from zero in ascending order, slices added in ascending order. */
static double expected(const trial *t, bool f64, bool fused, double old, const double *a, const double *b)
{
    const int64_t step = cn__gemm_step(t->k);
    double c = t->accumulate ? old : 0;
    for (int64_t k0 = 0; k0 < t->k; k0 += step) {
        double sum = 0;
        for (int64_t p = k0; p < cn__smaller(k0 + step, t->k); p++) {
            if (f64) sum = fused ? fma(a[p], b[p], sum) : a[p] * b[p] + sum;
            else if (fused) sum = fmaf((float)a[p], (float)b[p], (float)sum);
            else sum = (float)a[p] * (float)b[p] + (float)sum;
        }
        c = k0 == 0 && !t->accumulate ? sum : f64 ? c + sum : (double)((float)c + (float)sum);
    }
    return c;
}

/* Summed in f64 without regard to order: within k roundings of what was computed. */
static bool near_sum(const trial *t, bool f64, double old, const double *a, const double *b, double got)
{
    double sum = t->accumulate ? old : 0, size = fabs(sum);
    for (int64_t p = 0; p < t->k; p++) sum += a[p] * b[p], size += fabs(a[p] * b[p]);
    return fabs(got - sum) <= size * (double)(t->k + 1) * (f64 ? 1e-15 : 1e-7);
}

typedef struct kernel_row {
    const char *name;
    const cn__gemm_kernel *kernel;
    bool f64, fused;
} kernel_row;

/* (rows,cols) as row-major doubles. */
static double *as_doubles(cn_dtype t, const void *data, int64_t first, int64_t rows, int64_t cols, int64_t row,
                          int64_t col)
{
    double *x = malloc(sizeof(double) * (size_t)(rows * cols + 1));
    if (!x) abort();
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = 0; q < cols; q++) {
            const size_t at = (size_t)(first + i * row + q * col) * cn_dtype_size(t);
            x[i * cols + q] = cn__load_f64(t, (const char *)data + at);
        }
    }
    return x;
}

static bool compare_item(const kernel_row *row, const trial *t, const cn__gemm *g, const buffer *old, int64_t item)
{
    const cn_dtype tc = row->f64 ? CN_F64 : CN_F32;
    double *a = as_doubles(type_of(row->f64, t->a_half), g->a, item * g->a_batch[0], t->m, t->k, g->a_row, g->a_col);
    double *b = as_doubles(type_of(row->f64, t->b_half), g->b, item * g->b_batch[0], t->n, t->k, g->b_col, g->b_row);
    double *before = as_doubles(tc, old->data, item * g->c_batch[0], t->m, t->n, g->c_row, g->c_col);
    double *after = as_doubles(tc, g->c, item * g->c_batch[0], t->m, t->n, g->c_row, g->c_col);
    bool ok = true;
    for (int64_t at = 0; ok && at < t->m * t->n; at++) {
        const int64_t i = at / t->n, q = at % t->n;
        const double want = expected(t, row->f64, row->fused, before[at], a + i * t->k, b + q * t->k);
        ok = after[at] == want && near_sum(t, row->f64, before[at], a + i * t->k, b + q * t->k, after[at]);
        if (!ok)
            check(false, "%s: (%lld,%lld)·(%lld,%lld) element %lld,%lld of item %lld: %.17g, not %.17g", row->name,
                  (long long)t->m, (long long)t->k, (long long)t->k, (long long)t->n, (long long)i, (long long)q,
                  (long long)item, after[at], want);
    }
    free(a), free(b), free(before), free(after);
    return ok;
}

static void compare(const kernel_row *row, const trial *t, const cn__gemm *g, const buffer *old)
{
    bool ok = true;
    for (int64_t item = 0; ok && item < (t->batch ? t->batch : 1); item++) ok = compare_item(row, t, g, old, item);
    if (ok) check(true, "%s", row->name);
}

static void run_trial(const kernel_row *row, const trial *t, cn__workers *const *pools, int n_pools)
{
    const matrix a = lay_out(t->m, t->k, t->at, t->gap, t->batch);
    matrix c = lay_out(t->m, t->n, t->ct, t->gap, t->batch);
    c.item += t->c_gap * c.row;
    c.size += t->c_gap * c.row * t->batch;
    const matrix b = lay_out(t->k, t->n, t->bt, t->gap, t->b_shared ? 0 : t->batch);
    buffer abuf = new_buffer(a.size, type_of(row->f64, t->a_half));
    buffer bbuf = new_buffer(b.size, type_of(row->f64, t->b_half));
    buffer old = new_buffer(c.size, row->f64 ? CN_F64 : CN_F32);
    buffer got = new_buffer(c.size, row->f64 ? CN_F64 : CN_F32), first = new_buffer(c.size, row->f64 ? CN_F64 : CN_F32);
    const int64_t items = t->batch ? t->batch : 1;
    rows_seen seen = { .seen = calloc((size_t)(items * t->m + 1), 1), .then = malloc(got.bytes + 1) };
    cn__gemm g = { .kernel = row->kernel,
                   .a_storage = t->a_half,
                   .b_storage = t->b_half,
                   .accumulate = t->accumulate,
                   .m = t->m,
                   .n = t->n,
                   .k = t->k,
                   .a = abuf.data,
                   .a_row = a.row,
                   .a_col = a.col,
                   .b = bbuf.data,
                   .b_row = b.row,
                   .b_col = b.col,
                   .c = got.data,
                   .c_row = c.row,
                   .c_col = c.col,
                   .batch_dims = t->batch > 0,
                   .batch_shape = { t->batch },
                   .a_batch = { a.item },
                   .b_batch = { t->b_shared ? 0 : b.item },
                   .c_batch = { c.item },
                   .done = note_rows,
                   .user = &seen };
    seen.g = &g;
    cn__gemm_plan p;
    check(!t->apart || (cn__gemm_make_plan(&p, &g, false) && p.apart), "%s: %lldx%lldx%lld is not cut along k",
          row->name, (long long)t->m, (long long)t->k, (long long)t->n);
    check(!t->rounds || (cn__gemm_make_plan(&p, &g, false) && !p.apart && p.round < cn__gemm_slices(&p) &&
                         p.round_cols < p.col_blocks),
          "%s: %lldx%lldx%lld takes one round", row->name, (long long)t->m, (long long)t->k, (long long)t->n);
    for (int i = 0; seen.seen && seen.then && i <= n_pools; i++) { /* the last time: alone */
        memcpy(got.data, old.data, got.bytes);
        memset(seen.seen, 0, (size_t)(items * t->m));
        size_t bytes =
            i < n_pools ? cn__gemm_scratch(&g, cn__workers_count(pools[i])) : cn__gemm_alone_scratch(row->kernel);
        bytes = bytes / 64 * 64 + 64;
        char *scratch = aligned_alloc(64, bytes);
        if (!scratch) abort();
        memset(scratch, 0xff, bytes); /* NaN */
        if (i < n_pools) cn__gemm_run(&g, pools[i], scratch);
        else cn__gemm_run_alone(&g, scratch);
        free(scratch);
        if (i == 0) compare(row, t, &g, &old);
        if (i == 0) memcpy(first.data, got.data, got.bytes);
        else
            check(memcmp(first.data, got.data, got.bytes) == 0, "%s: %lldx%lldx%lld differs with %d threads", row->name,
                  (long long)t->m, (long long)t->k, (long long)t->n, i < n_pools ? cn__workers_count(pools[i]) : 0);
        const int64_t unfinished = i < n_pools ? rows_missed(&seen, items) : 0;
        check(unfinished == 0, "%s: %lldx%lldx%lld: %lld rows are not finished once", row->name, (long long)t->m,
              (long long)t->k, (long long)t->n, (long long)unfinished);
    }
    free(seen.seen), free(seen.then);
    free(abuf.data), free(bbuf.data), free(old.data), free(got.data), free(first.data);
}

/* Few rows and columns, and so much of k that its slices are multiplied apart. */
static void run_long_trials(const kernel_row *row, cn__workers *const *pools, int n_pools)
{
    static const trial trials[] = {
        { .m = 24, .n = 40, .k = 2200 },             /* one slice fills a round */
        { .m = 9, .n = 12, .k = 20000 },             /* several do */
        { .m = 9, .n = 12, .k = 20000, .bt = true }, /* the last columns lie one by one */
        { .m = 3, .n = 70, .k = 10500, .at = true }, /* wide */
        { .m = 70, .n = 3, .k = 10500, .ct = true }, /* tall: computed as its transpose, or not */
        { .m = 70, .n = 3, .k = 10500 },
        { .m = 1, .n = 80, .k = 26500, .bt = true },  /* one row times columns */
        { .m = 171, .n = 20, .k = 3700, .at = true }, /* several blocks of rows */
        { .m = 30, .n = 30, .k = 2500, .gap = 2 },
        { .m = 1, .n = 1, .k = 530000 },               /* slices in lanes */
        { .m = 1, .n = 1, .k = 384 * 1400, .gap = 1 }, /* all of the same length */
        { .batch = 2, .m = 20, .n = 24, .k = 4400, .at = true, .bt = true },
        { .batch = 2, .m = 20, .n = 24, .k = 4400, .ct = true },
        { .batch = 3, .m = 8, .n = 30, .k = 3000, .b_shared = true },
        { .batch = 2, .m = 1, .n = 1, .k = 530000 },
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        if (test_is_quick() && i != 1) continue;
        trial t = trials[i];
        t.apart = true;
        t.accumulate = i % 2;
        run_trial(row, &t, pools, n_pools);
        if (row->f64) continue;
        t.accumulate = !t.accumulate;
        t.a_half = (cn__gemm_storage)(i % 3);
        t.b_half = (cn__gemm_storage)((i + 1) % 3);
        run_trial(row, &t, pools, n_pools);
    }
}

/* So much of B that it is packed and multiplied in rounds: of slices of k, and of columns. */
static void run_large_trials(const kernel_row *row, cn__workers *const *pools, int n_pools)
{
    static const trial trials[] = {
        { .m = 260, .n = 700, .k = 2200 },             /* two rounds of slices, the second shorter */
        { .m = 401, .n = 523, .k = 1921, .bt = true }, /* odd */
        { .m = 300, .n = 700, .k = 3100, .ct = true, .gap = 1 },
        { .batch = 2, .m = 200, .n = 600, .k = 2000, .at = true },
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        if (test_is_quick() && i % 3) continue;
        trial t = trials[i];
        t.rounds = true;
        t.accumulate = i % 2;
        if (!row->f64) t.b_half = (cn__gemm_storage)(i % 3);
        run_trial(row, &t, pools, n_pools);
    }
}

/* ---- B packed once ---- */

static void run_filled(const cn__gemm *g)
{
    const size_t bytes = cn__gemm_alone_scratch(g->kernel) / 64 * 64 + 64;
    char *scratch = aligned_alloc(64, bytes);
    if (!scratch) abort();
    memset(scratch, 0xff, bytes); /* NaN */
    cn__gemm_run_alone(g, scratch);
    free(scratch);
}

/* The packed (t->k,t->n) matrix b, used up to k rows and n columns, against the same product with b as it lies. */
static void use_packed(const kernel_row *row, const trial *t, const matrix *b, const void *bdata, const void *packed,
                       int64_t k, int64_t n)
{
    const matrix a = lay_out(t->m, k, t->at, t->gap, 0), c = lay_out(t->m, n, t->ct, t->gap, 0);
    const cn_dtype type = row->f64 ? CN_F64 : CN_F32;
    buffer abuf = new_buffer(a.size, type), want = new_buffer(c.size, type), got = new_buffer(c.size, type);
    memcpy(got.data, want.data, got.bytes);
    cn__gemm g = { .kernel = row->kernel,
                   .accumulate = t->accumulate,
                   .m = t->m,
                   .n = n,
                   .k = k,
                   .a = abuf.data,
                   .a_row = a.row,
                   .a_col = a.col,
                   .b = bdata,
                   .b_row = b->row,
                   .b_col = b->col,
                   .c = want.data,
                   .c_row = c.row,
                   .c_col = c.col };
    run_filled(&g);
    g.b = packed, g.b_packed = t->k, g.b_row = g.b_col = INT64_MIN / 64; /* not looked at */
    g.c = got.data;
    run_filled(&g);
    check(memcmp(want.data, got.data, got.bytes) == 0, "%s: packed (%lld,%lld), %lldx%lldx%lld of it differs",
          row->name, (long long)t->k, (long long)t->n, (long long)t->m, (long long)k, (long long)n);
    free(abuf.data), free(want.data), free(got.data);
}

static void run_packed_trial(const kernel_row *row, const trial *t)
{
    const matrix b = lay_out(t->k, t->n, t->bt, t->gap, 0);
    buffer bbuf = new_buffer(b.size, row->f64 ? CN_F64 : CN_F32);
    const size_t bytes = cn__gemm_pack_bytes(row->kernel, t->k, t->n);
    char *packed = aligned_alloc(64, bytes + 64);
    if (!packed) abort();
    memset(packed, 0xff, bytes + 64); /* NaN */
    cn__gemm_pack_b(row->kernel, packed, t->k, t->n, bbuf.data, b.row, b.col);
    bool beyond = false;
    for (size_t i = 0; i < 64; i++) beyond |= (unsigned char)packed[bytes + i] != 0xff;
    check(bytes % 64 == 0 && !beyond, "%s: (%lld,%lld) is packed into more than pack_bytes", row->name, (long long)t->k,
          (long long)t->n);
    use_packed(row, t, &b, bbuf.data, packed, t->k, t->n);
    use_packed(row, t, &b, bbuf.data, packed, t->k, (t->n + 1) / 2);
    use_packed(row, t, &b, bbuf.data, packed, t->k * 2 / 3 + 1, t->n);
    use_packed(row, t, &b, bbuf.data, packed, 1, 1);
    use_packed(row, t, &b, bbuf.data, packed, 0, t->n);
    free(bbuf.data), free(packed);
}

/* Odd sizes, k of one slice and of several, more rows than one block takes; every way to lay things out. */
static void run_packed_trials(const kernel_row *row)
{
    static const int64_t sizes[][3] = {
        /* m, n, k */
        { 1, 1, 1 },    { 1, 70, 33 },   { 1, 200, 1 },  { 5, 3, 2 },     { 6, 16, 8 },    { 13, 33, 17 },
        { 49, 31, 57 }, { 48, 300, 32 }, { 200, 3, 64 }, { 180, 65, 40 }, { 37, 41, 600 }, { 16, 100, 1155 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int turned = 0; turned < 8; turned++) {
            trial t = { .m = sizes[i][0],
                        .n = sizes[i][1],
                        .k = sizes[i][2],
                        .at = turned & 1,
                        .bt = turned & 2,
                        .ct = turned & 4,
                        .gap = (int64_t)((i + (size_t)turned) % 3 == 2) * 2,
                        .accumulate = (i + (size_t)turned) % 2 };
            run_packed_trial(row, &t);
        }
    }
}

/* ---- k in runs ---- */

/* A(m,runs·k) with gaps between runs, rows or columns contiguous, against the same product without gaps. */
static void run_in_runs(const kernel_row *row, int64_t m, int64_t n, int64_t k, int64_t runs, bool by_columns, bool add)
{
    const int64_t width = row->kernel->width, all = runs * k,
                  written = n > row->kernel->lanes ? width : row->kernel->lanes;
    const cn_dtype type = row->f64 ? CN_F64 : CN_F32;
    const size_t size = cn_dtype_size(type);
    const int64_t a_col = by_columns ? m + 1 : 1, a_run = (k + 2) * a_col, a_row = by_columns ? 1 : runs * a_run + 3;
    buffer a = new_buffer((m + 1) * (runs + 1) * (k + 3) * 2, type), joined = new_buffer(m * all, type);
    buffer b = new_buffer(all * n, type), want = new_buffer(m * width, type), got = new_buffer(m * width, type);
    buffer packed = new_buffer(all * width, type);
    memcpy(got.data, want.data, got.bytes);
    for (int64_t i = 0; i < m * all; i++) {
        const int64_t from = i / all * a_row + i % all / k * a_run + i % k * a_col;
        memcpy(joined.data + (size_t)i * size, a.data + (size_t)from * size, size);
    }
    cn__gemm_pack_b(row->kernel, packed.data, all, n, b.data, n, 1);
    cn__gemm_run_packed(&(cn__gemm){ .kernel = row->kernel,
                                     .accumulate = add,
                                     .m = m,
                                     .n = n,
                                     .k = all,
                                     .a = joined.data,
                                     .a_row = all,
                                     .a_col = 1,
                                     .b = packed.data,
                                     .b_packed = all,
                                     .c = want.data,
                                     .c_row = width,
                                     .c_col = 1 });
    buffer old = new_buffer(m * width, type);
    memcpy(old.data, got.data, got.bytes);
    row->kernel->multiply_runs(&(cn__gemm_runs){ .m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .runs = runs,
                                                 .a = a.data,
                                                 .a_row = a_row,
                                                 .a_col = a_col,
                                                 .a_run = a_run,
                                                 .b = packed.data,
                                                 .c = got.data,
                                                 .c_row = width,
                                                 .add = add });
    bool same = true;
    for (int64_t i = 0; i < m * width; i++) {
        const char *as = i % width < n ? want.data : i % width < written ? got.data : old.data;
        same &= memcmp(as + (size_t)i * size, got.data + (size_t)i * size, size) == 0;
    }
    check(same, "%s: %lldx%lldx%lld in %lld runs differs", row->name, (long long)m, (long long)k, (long long)n,
          (long long)runs);
    free(a.data), free(joined.data), free(b.data), free(want.data), free(got.data), free(packed.data), free(old.data);
}

static void run_run_trials(const kernel_row *row)
{
    const int width = row->kernel->width, lanes = row->kernel->lanes, rows = row->kernel->rows;
    const int64_t columns[] = { 1, lanes, lanes + 1, width };
    for (int64_t m = 1; m <= 2 * rows + 1; m++)
        for (int i = 0; i < 4; i++) {
            run_in_runs(row, m, columns[i], 7, 3, i % 2, m % 2);
            run_in_runs(row, m, columns[i], 96, 1, m % 2, i % 2);
            run_in_runs(row, m, columns[i], 1, 9, m % 2, i % 2);
        }
}

/* ---- planes and pixels ---- */

static void turn_planes(const kernel_row *row, int64_t rows, int64_t cols)
{
    const cn_dtype type = row->f64 ? CN_F64 : CN_F32;
    const size_t size = cn_dtype_size(type);
    const int64_t line = cols + 2, pixel = rows + 1;
    buffer from = new_buffer(rows * line, type), to = new_buffer(2 * cols * pixel, type);
    buffer back = new_buffer(rows * line, type);
    int32_t *place = malloc(sizeof *place * (size_t)cols);
    if (!place) abort();
    for (int64_t q = 0; q < cols; q++) place[q] = (int32_t)((q + q / 3) * pixel); /* a gap after every third */
    row->kernel->spread(to.data, place, from.data, line, rows, cols);
    bool right = true;
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t at = place[i % cols] + i / cols;
        right &=
            memcmp(to.data + (size_t)at * size, from.data + (size_t)(i / cols * line + i % cols) * size, size) == 0;
    }
    row->kernel->collect(to.data, pixel, from.data, line, rows, cols);
    row->kernel->collect(back.data, line, to.data, pixel, cols, rows);
    for (int64_t i = 0; i < rows * cols; i++) {
        const size_t at = (size_t)(i / cols * line + i % cols) * size;
        right &= memcmp(to.data + (size_t)(i % cols * pixel + i / cols) * size, from.data + at, size) == 0;
        right &= memcmp(back.data + at, from.data + at, size) == 0;
    }
    check(right, "%s: (%lld,%lld) is turned wrongly", row->name, (long long)rows, (long long)cols);
    free(from.data), free(to.data), free(back.data), free(place);
}

static void run_turn_trials(const kernel_row *row)
{
    const int64_t lanes = row->kernel->lanes, sizes[] = { 1, lanes - 1, lanes, lanes + 1, 2 * lanes, 3 * lanes + 2 };
    for (int i = 0; i < 36; i++)
        if (sizes[i / 6] && sizes[i % 6]) turn_planes(row, sizes[i / 6], sizes[i % 6]);
}

static void run_trials(const kernel_row *row, cn__workers *const *pools, int n_pools)
{
    static const int64_t sizes[][3] = {
        /* m, n, k */
        { 1, 1, 1 },      { 1, 7, 5 },      { 1, 70, 33 },   { 1, 200, 300 }, { 5, 3, 2 },     { 6, 16, 8 },
        { 7, 17, 9 },     { 12, 32, 16 },   { 13, 33, 17 },  { 24, 65, 40 },  { 25, 64, 40 },  { 49, 31, 257 },
        { 100, 100, 30 }, { 64, 260, 21 },  { 200, 3, 64 },  { 3, 200, 64 },  { 0, 4, 3 },     { 4, 0, 3 },
        { 4, 5, 0 },      { 130, 130, 70 }, { 97, 300, 50 }, { 300, 97, 50 }, { 37, 41, 600 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int turned = 0; turned < 8; turned++) {
            trial t = { .m = sizes[i][0],
                        .n = sizes[i][1],
                        .k = sizes[i][2],
                        .at = turned & 1,
                        .bt = turned & 2,
                        .ct = turned & 4 };
            t.gap = (int64_t)((i + (size_t)turned) % 5 == 4) * 2;
            t.accumulate = (i + (size_t)turned) % 3 == 1;
            if (test_is_quick() && (i + (size_t)turned) % 4) continue;
            run_trial(row, &t, pools, n_pools);
            if (!row->f64) {
                t.a_half = (cn__gemm_storage)((i + 1) % 3);
                t.b_half = (cn__gemm_storage)((i + (size_t)turned) % 3);
                run_trial(row, &t, pools, n_pools);
            }
        }
    }
    static const trial batches[] = {
        { .batch = 3, .m = 9, .n = 20, .k = 11 },
        { .batch = 5, .m = 7, .n = 40, .k = 13, .b_shared = true },
        { .batch = 5, .m = 7, .n = 40, .k = 13, .b_shared = true, .c_gap = 3 },
        { .batch = 2, .m = 100, .n = 90, .k = 80, .bt = true },
        { .batch = 40, .m = 6, .n = 5, .k = 4, .ct = true },
        { .batch = 4, .m = 1, .n = 50, .k = 30, .bt = true },
        { .batch = 3, .m = 150, .n = 100, .k = 60, .at = true },
        { .batch = 3, .m = 60, .n = 70, .k = 40, .b_shared = true, .gap = 1 },
        { .batch = 1, .m = 3, .n = 3, .k = 3 },
    };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) run_trial(row, &batches[i], pools, n_pools);
    if (test_is_quick()) return;
    static const trial large[] = { { .m = 300, .n = 280, .k = 270 },
                                   { .m = 290, .n = 500, .k = 100, .bt = true },
                                   { .m = 600, .n = 130, .k = 100, .at = true } };
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) run_trial(row, &large[i], pools, n_pools);
}

/* The kernels that a context uses when it is told to use this instruction set. */
static int add_kernels(kernel_row *rows, int n, cn__isa isa)
{
    static char names[2 * CN__ISAS][32];
    static cn__kernels tables[CN__ISAS];
    bool fused = isa > CN__BASELINE;
#if defined(__aarch64__)
    fused = true;
#endif
    cn__kernels_fill(&tables[isa], isa);
    for (int f64 = 0; f64 < 2; f64++, n++) {
        char *name = names[2 * (int)isa + f64];
        snprintf(name, sizeof names[0], "%s %s", f64 ? "f64" : "f32", cn__isa_name(isa));
        rows[n] = (kernel_row){ name, tables[isa].gemm.of[f64], f64, fused };
        check(rows[n].kernel && rows[n].kernel->size == (f64 ? 8 : 4), "%s has a kernel", name);
        check(isa == CN__BASELINE || rows[n].kernel != tables[isa - 1].gemm.of[f64], "%s has one of its own", name);
    }
    return n;
}

int main(void)
{
    kernel_row rows[4 + 2 * CN__ISAS] = { { "f32, 12 rows of 2 vectors of 64 bytes", &kernel_f32_wide, false, false },
                                          { "f64, 12 rows of 2 vectors of 64 bytes", &kernel_f64_wide, true, false },
                                          { "f32, 8 rows of 3 vectors of 16 bytes", &kernel_f32_tall, false, false },
                                          { "f64, 8 rows of 3 vectors of 16 bytes", &kernel_f64_tall, true, false } };
    int n = 4;
    const int best = (int)cn__isa_best();
    for (int isa = test_is_quick() ? best : CN__BASELINE; isa <= best; isa++) n = add_kernels(rows, n, (cn__isa)isa);
    cn__workers *pools[3] = { cn__workers_open(1), cn__workers_open(2), cn__workers_open(3) };
    if (!pools[0] || !pools[1] || !pools[2]) abort();
    for (int i = 0; i < n; i++) {
        if (test_is_quick() && i < 4 && rows[i].f64) continue;
        check_group(rows[i].name);
        run_trials(&rows[i], pools, 3);
        run_long_trials(&rows[i], pools, 3);
        run_large_trials(&rows[i], pools, 3);
        run_packed_trials(&rows[i]);
        run_run_trials(&rows[i]);
        run_turn_trials(&rows[i]);
    }
    for (int i = 0; i < 3; i++) cn__workers_close(pools[i]);
    printf("%d kernels\n", n);
    return finish();
}

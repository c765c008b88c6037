/* Products of whole numbers (see whole.h): packs, shares columns among threads. */
#include "ops/contract/whole.h"

#include <stdatomic.h>

#include "ops/kernels.h"

enum {
    LEAST_ROWS = 8,         /* for which B is packed, if it is not kept */
    LEAST_WEIGHT = 1 << 10, /* elements of B */
    LEAST_WORK = 1 << 16,   /* products of a part */
    HEAD = 64               /* bytes before the panels of a kept form: whether all numbers fit */
};

typedef struct product {
    const cn_kernel *k;
    const cn__gemm *g;
    const cn__whole_kernels *kernels;
    int64_t rows, pairs, panels; /* rows of all batch items */
    int16_t *a;
    char *b;
    int bytes; /* of an element of b */
    atomic_bool wrong;
} product;

static int64_t rows_of(const cn__gemm *g)
{
    int64_t rows = g->m;
    for (int d = 0; d < g->batch_dims; d++) rows *= g->batch_shape[d];
    return rows;
}

static bool suits(const cn__gemm *g)
{
    for (int d = 0; d < g->batch_dims; d++)
        if (g->b_batch[d] != 0 && g->batch_shape[d] != 1) return false;
    return g->n * g->k >= LEAST_WEIGHT && g->n >= CN__WHOLE_WIDTH && rows_of(g) > 0;
}

static int64_t pairs_of(const cn__gemm *g) { return cn__divide_up(g->k, 2); }
static int64_t panels_of(const cn__gemm *g) { return cn__divide_up(g->n, CN__WHOLE_WIDTH); }
static size_t a_bytes(const cn__gemm *g)
{
    return cn__round_up_bytes((size_t)(rows_of(g) * pairs_of(g)) * 2 * sizeof(int16_t), 64);
}
static size_t b_bytes(const cn__gemm *g, int bytes)
{
    return (size_t)(panels_of(g) * pairs_of(g) * 2 * CN__WHOLE_WIDTH * bytes);
}

size_t cn__whole_scratch(const cn__gemm *g)
{
    if (!suits(g)) return 0;
    return a_bytes(g) + (rows_of(g) >= LEAST_ROWS ? b_bytes(g, sizeof(int16_t)) : 0);
}

static void place_of(const cn__gemm *g, int64_t row, int64_t *a, int64_t *c)
{
    int64_t item = row / g->m;
    *a = row % g->m * g->a_row, *c = row % g->m * g->c_row;
    for (int d = g->batch_dims - 1; d >= 0; d--) {
        const int64_t x = item % g->batch_shape[d];
        item /= g->batch_shape[d];
        *a += x * g->a_batch[d];
        *c += x * g->c_batch[d];
    }
}

static void narrow_rows(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    product *p = user;
    for (int64_t i = begin; i < end; i++) {
        int64_t a, c;
        place_of(p->g, i, &a, &c);
        if (!p->kernels->narrow(p->a + i * p->pairs * 2, (const int32_t *)p->g->a + a, p->g->k, p->g->a_col))
            atomic_store(&p->wrong, true);
    }
}

static void pack_panels(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    product *p = user;
    const cn__gemm *g = p->g;
    for (int64_t i = begin; i < end; i++) {
        char *const to = p->b + i * p->pairs * 2 * CN__WHOLE_WIDTH * p->bytes;
        const int64_t first = i * CN__WHOLE_WIDTH;
        if (!p->kernels->pack(to, (const int32_t *)g->b + first * g->b_col, g->k,
                              cn__smaller(CN__WHOLE_WIDTH, g->n - first), g->b_row, g->b_col, p->bytes))
            atomic_store(&p->wrong, true);
    }
}

/* All rows times some panels. */
static void multiply(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const product *p = user;
    const cn__gemm *g = p->g;
    int32_t sums[CN__WHOLE_ROWS * CN__WHOLE_PANELS * CN__WHOLE_WIDTH];
    for (int64_t at = begin * CN__WHOLE_PANELS, panels; at < cn__smaller(end * CN__WHOLE_PANELS, p->panels);
         at += panels) {
        panels = cn__smaller(CN__WHOLE_PANELS, p->panels - at);
        const int64_t first = at * CN__WHOLE_WIDTH, n = cn__smaller(panels * CN__WHOLE_WIDTH, g->n - first);
        for (int64_t row = 0, rows; row < p->rows; row += rows) {
            rows = cn__smaller(CN__WHOLE_ROWS, p->rows - row);
            p->kernels->multiply(sums, p->a + row * p->pairs * 2,
                                 p->b + at * p->pairs * 2 * CN__WHOLE_WIDTH * p->bytes, p->pairs, rows, panels,
                                 p->bytes);
            for (int64_t i = 0; i < rows; i++) {
                int64_t a, c;
                place_of(g, row + i, &a, &c);
                int32_t *const to = (int32_t *)g->c + c + first * g->c_col;
                for (int64_t q = 0; q < n; q++) to[q * g->c_col] = sums[i * panels * CN__WHOLE_WIDTH + q];
            }
        }
    }
}

/* Panels that are kept for the next runs. False: there are none, or numbers do not fit. */
static bool keep_panels(product *p, int bytes)
{
    bool made;
    char *const form =
        cn__kernel_form(p->k, 1, CN__FORM_WHOLE, (uint64_t)bytes, HEAD + b_bytes(p->g, bytes), &made);
    if (!form) return false;
    p->b = form + HEAD;
    p->bytes = bytes;
    if (!made) {
        cn_parallel(p->k, p->panels, 4, pack_panels, p);
        *form = !atomic_load(&p->wrong);
        atomic_store(&p->wrong, false);
    }
    return *form;
}

static bool find_panels(product *p)
{
    if (keep_panels(p, sizeof(int8_t)) || keep_panels(p, sizeof(int16_t))) return true;
    if (p->rows < LEAST_ROWS) return false;
    p->b = (char *)p->k->scratch + a_bytes(p->g);
    p->bytes = sizeof(int16_t);
    cn_parallel(p->k, p->panels, 4, pack_panels, p);
    return !atomic_load(&p->wrong);
}

bool cn__whole_product(const cn_kernel *k, const cn__gemm *g)
{
    if (!suits(g)) return false;
    product p = { .k = k, .g = g, .kernels = &k->kernels->whole, .rows = rows_of(g), .pairs = pairs_of(g) };
    p.panels = panels_of(g);
    p.a = k->scratch;
    cn_parallel(k, p.rows, cn__divide_up(1 << 14, cn__larger(g->k, 1)), narrow_rows, &p);
    if (atomic_load(&p.wrong) || !find_panels(&p)) return false;
    const double work = (double)p.rows * (double)g->k * CN__WHOLE_PANELS * CN__WHOLE_WIDTH;
    cn_parallel(k, cn__divide_up(p.panels, CN__WHOLE_PANELS), work < LEAST_WORK ? (int64_t)(LEAST_WORK / work) + 1 : 1,
                multiply, &p);
    return true;
}

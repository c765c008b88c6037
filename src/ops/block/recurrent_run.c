/* recurrent and its backward operator on the CPU: which thread computes what.

   A step is a product, h·wᵀ or backward of_h·w, and the gates of its result. Rows of the batch do not depend on each
   other: each thread takes some rows through all steps. If there are too few rows, threads share the units: a thread
   has the columns of w for its units in its own cache, and after each step it waits for the others, since a product
   needs all units of the step before. Both give the same bits: an element of a product depends on its row, its column
   and k alone. */
#include <string.h>

#include "cpu/kernel.h"
#include "ops/block/recurrent.h"
#include "ops/kernels.h"

enum {
    FEW_ROWS = 16,  /* rows that go through the steps together; more if w has more than LARGE elements, */
    MANY_ROWS = 32, /* since every step reads w again */
    LARGE = 1 << 17,
    LEAST_ROWS = 2,       /* for each thread: one row alone takes as long as two, since it waits for its own sums */
    LEAST_UNITS = 8,      /* in a part */
    LEAST_WORK = 1 << 13, /* multiplications in a part of a step: waiting for others takes as long as some thousands */
    LEAST_SHARED = 1 << 16, /* multiplications in all steps of a chunk of rows */
    PACKED_AT_A_TIME = 4,   /* panels */
};

typedef struct call {
    const cn_kernel *k;
    cn__recurrent r;
    bool backward;
    int64_t rows;    /* that go through the steps together */
    int64_t inner;   /* elements of a row that a product reads: H; backward G·H */
    int64_t columns; /* of the product for a unit: G; backward 1 */
    const cn_array *w;
    cn_array given; /* lengths */
    cn__recurrent_body gates;
    cn__gemm whole;          /* the product of a single step, which is not worth packing w */
    char *panels, *gemm;     /* scratch: rows of w on their way into a panel, for each thread; of `whole` */
    void *lengths, *no_bias; /* scratch: as i64; zeros */
    size_t bytes;            /* of scratch */
} call;

static int64_t steps_of(const call *c) { return c->r.steps + c->backward; }

static int64_t units_of(const cn__recurrent *r, int64_t part)
{
    return cn__recurrent_unit(r, part + 1) - cn__recurrent_unit(r, part);
}

/* Divides the work: chunks of rows, as many for each thread; or all rows, and parts of the units. */
static void cut(call *c, int threads)
{
    cn__recurrent *r = &c->r;
    const int64_t weights = r->gates * r->width * r->width, most = weights > LARGE ? MANY_ROWS : FEW_ROWS;
    const int64_t chunks = cn__round_up(cn__larger(cn__divide_up(r->batch, most), 1), threads);
    const int64_t least = cn__divide_up(LEAST_SHARED, cn__larger(weights * r->steps, 1));
    r->parts = 1;
    c->rows = cn__larger(cn__divide_up(r->batch, chunks), cn__larger(least, LEAST_ROWS));
    if (r->steps == 1 || r->batch >= LEAST_ROWS * threads) return;
    c->rows = r->batch;
    const int64_t parts = cn__smaller(cn__smaller(threads, CN__MOST_STEP_PARTS), r->width / LEAST_UNITS);
    r->parts = cn__larger(1, cn__smaller(parts, r->batch * weights / LEAST_WORK));
}

/* The next part of scratch memory; NULL while its size is only counted. */
static char *take(call *c, int64_t bytes)
{
    char *const at = c->k->scratch ? (char *)c->k->scratch + c->bytes : NULL;
    c->bytes += cn__round_up_bytes((size_t)bytes, 64);
    return at;
}

/* Divides scratch memory. */
static void place(call *c, int threads)
{
    cn__recurrent *r = &c->r;
    const cn__gemm_kernel *gemm = r->gemm;
    const int64_t size = gemm->size;
    const int64_t most = cn__divide_up(r->width, r->parts) * c->columns;
    r->state_row = cn__round_up(c->inner, 32) + 16; /* rows do not meet in the same places of a cache */
    r->product_row = cn__round_up(most, gemm->width);
    r->state = take(c, 2 * r->batch * r->state_row * size);
    if (!c->backward) c->no_bias = take(c, r->gates * r->width * size);
    c->lengths = take(c, c->given.numel * (int64_t)sizeof(int64_t));
    r->product = take(c, r->parts * r->batch * r->product_row * size);
    if (r->steps == 1) {
        c->whole = (cn__gemm){ .kernel = gemm,
                               .m = r->batch,
                               .n = c->columns * r->width,
                               .k = c->inner,
                               .a = r->state,
                               .a_row = r->state_row,
                               .a_col = 1,
                               .b = c->w->data,
                               .b_row = c->backward ? r->width : 1,
                               .b_col = c->backward ? 1 : r->width,
                               .c = r->product,
                               .c_row = r->product_row,
                               .c_col = 1 };
        c->gemm = take(c, (int64_t)cn__gemm_scratch(&c->whole, threads));
        return;
    }
    r->packed_step = (int64_t)cn__gemm_pack_bytes(gemm, c->inner, most);
    r->packed = take(c, r->packed_step * r->parts);
    if (!c->backward) c->panels = take(c, gemm->width * r->width * threads * size);
}

/* y: any array (T,B,H) */
static call call_of(const cn_kernel *k, const cn_array *y, const cn_array *w, bool backward, int threads)
{
    const cn__recurrent_attrs *a = k->attrs;
    const int64_t gates = cn__recurrent_gates(a->kind), width = y->shape[2];
    call c = { .k = k,
               .backward = backward,
               .w = w,
               .given = k->in[backward ? 4 : 5],
               .inner = backward ? gates * width : width,
               .columns = backward ? 1 : gates,
               .r = { .kind = a->kind,
                      .gates = gates,
                      .steps = y->shape[0],
                      .batch = y->shape[1],
                      .width = width,
                      .reverse = a->reverse,
                      .gemm = cn__kernel_gemm(k, y->dtype) } };
    const cn__recurrent_kernels *kernels = &k->kernels->recurrent;
    c.gates = (backward ? kernels->backward : kernels->forward)[cn__f64_entry(y->dtype)];
    cut(&c, threads);
    place(&c, threads);
    return c;
}

/* ---- packing w ---- */

/* Packs columns [q, q + n) of wᵀ, of a part. They are rows of w: gate by gate, the units of the part. */
static void pack_rows(const call *c, char *to, int64_t part, int64_t q, int64_t n, int thread)
{
    const cn__recurrent *r = &c->r;
    const int64_t row = r->width * r->gemm->size, first = cn__recurrent_unit(r, part), units = units_of(r, part);
    char *const rows = c->panels + thread * row * r->gemm->width;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = (q + i) / units * r->width + first + (q + i) % units;
        memcpy(rows + i * row, (const char *)c->w->data + from * row, (size_t)row);
    }
    cn__gemm_pack_b(r->gemm, to, r->width, n, rows, 1, r->width);
}

static int64_t panels_of(const call *c) { return c->r.product_row / c->r.gemm->width; }

/* Packs panels [begin, end), counted through all parts. */
static void pack(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const call *c = user;
    const cn__recurrent *r = &c->r;
    const int64_t width = r->gemm->width, size = r->gemm->size;
    for (int64_t panel = begin; panel < end; panel++) {
        const int64_t part = panel / panels_of(c), q = panel % panels_of(c) * width;
        const int64_t n = cn__smaller(width, units_of(r, part) * c->columns - q);
        char *const to = r->packed + r->packed_step * part + q * c->inner * size;
        const char *const columns = (const char *)c->w->data + (cn__recurrent_unit(r, part) + q) * size;
        if (n <= 0) continue;
        if (c->backward) cn__gemm_pack_b(r->gemm, to, c->inner, n, columns, r->width, 1);
        else pack_rows(c, to, part, q, n, thread);
    }
}

/* ---- steps ---- */

/* The rows of [begin, end) before which all rows lie that the product of step number s needs. */
static int64_t last_row(const call *c, int64_t s, int64_t begin, int64_t end)
{
    const int64_t t = cn__recurrent_step(&c->r, c->backward ? c->r.steps - s : s);
    while (end > begin && !cn__recurrent_has(&c->r, t, end - 1)) end--;
    return end;
}

static void run_step(const call *c, int64_t s, int64_t part, int64_t begin, int64_t end)
{
    const cn__recurrent *r = &c->r;
    const int64_t size = r->gemm->size;
    if (!c->backward || s > 0) { /* the gradient of what follows the last step is 0 */
        const int64_t last = last_row(c, s, begin, end);
        char *const to = r->product + (part * r->batch + begin) * r->product_row * size;
        const cn__gemm g = { .kernel = r->gemm,
                             .m = last - begin,
                             .n = units_of(r, part) * c->columns,
                             .k = c->inner,
                             .a = r->state + (s % 2 * r->batch + begin) * r->state_row * size,
                             .a_row = r->state_row,
                             .a_col = 1,
                             .b = r->packed + r->packed_step * part,
                             .b_packed = c->inner,
                             .c = to,
                             .c_row = r->product_row,
                             .c_col = 1 };
        cn__gemm_run_packed(&g);
        memset(to + (last - begin) * r->product_row * size, 0, (size_t)((end - last) * r->product_row * size));
    }
    c->gates(c->k, r, s, part, begin, end);
}

/* All steps of rows [begin, end). */
static void run_rows(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const call *c = user;
    (void)k, (void)thread;
    for (int64_t s = 0; s < steps_of(c); s++) run_step(c, s, 0, begin, end);
}

static void run_units(void *user, int64_t s, int64_t part, int thread)
{
    const call *c = user;
    (void)thread;
    run_step(c, s, part, 0, c->r.batch);
}

/* The gates of a single step. */
static void run_gates(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const call *c = user;
    (void)thread;
    c->gates(k, &c->r, 0, 0, begin, end);
}

static void run_gates_after(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const call *c = user;
    (void)thread;
    c->gates(k, &c->r, 1, 0, begin, end);
}

/* A single step. Backward, the state that its product reads is the one that the gates wrote. */
static void run_one(call *c)
{
    const cn__recurrent *r = &c->r;
    const int64_t grain = 1 + 4096 / r->width;
    if (c->backward) {
        cn_parallel(c->k, r->batch, grain, run_gates, c);
        c->whole.a = r->state + r->batch * r->state_row * r->gemm->size;
    }
    cn__gemm_run(&c->whole, cn__kernel_workers(c->k), c->gemm);
    cn_parallel(c->k, r->batch, grain, c->backward ? run_gates_after : run_gates, c);
}

/* Reads lengths. The forward operator reports a length out of range. */
static void read_lengths(call *c)
{
    int64_t *const lengths = c->lengths, steps = c->r.steps;
    if (!c->given.data) return;
    for (int64_t i = 0; i < c->r.batch; i++) {
        lengths[i] =
            c->given.dtype == CN_I64 ? ((const int64_t *)c->given.data)[i] : ((const int32_t *)c->given.data)[i];
        if (!c->backward && (lengths[i] < 1 || lengths[i] > steps)) cn_kernel_fault(c->k, lengths[i], steps);
    }
    c->r.lengths = lengths;
}

static void run(call *c)
{
    const cn__recurrent *r = &c->r;
    read_lengths(c);
    if (r->batch * r->width == 0) return;
    if (r->steps == 1) {
        run_one(c);
        return;
    }
    bool made;
    char *const kept = c->backward ? NULL
                                   : cn__kernel_form(c->k, 1, CN__FORM_GATES, (uint64_t)r->parts,
                                                     (size_t)(r->packed_step * r->parts), &made);
    if (kept) c->r.packed = kept;
    if (!kept || !made) cn_parallel(c->k, r->parts * panels_of(c), PACKED_AT_A_TIME, pack, c);
    if (r->parts > 1) cn__workers_run_steps(cn__kernel_workers(c->k), steps_of(c), r->parts, run_units, c);
    else cn_parallel(c->k, r->batch, c->rows, run_rows, c);
}

/* in: x, w, b, h0, c0, lengths */
void cn__recurrent_cpu(const cn_kernel *k)
{
    call c = call_of(k, &k->out[0], &k->in[1], false, cn_threads(k));
    const cn__recurrent *r = &c.r;
    const int64_t size = r->gemm->size, row = r->width * size;
    c.r.bias = k->in[2].data ? k->in[2].data : memset(c.no_bias, 0, (size_t)(r->gates * row));
    for (int64_t i = 0; i < r->batch; i++)
        memcpy(r->state + i * r->state_row * size, (const char *)k->in[3].data + i * row, (size_t)row);
    run(&c);
}

/* in: g, gc, w, first, lengths, y, c, saved */
void cn__recurrent_backward_cpu(const cn_kernel *k)
{
    call c = call_of(k, &k->in[0], &k->in[2], true, cn_threads(k));
    run(&c);
}

size_t cn__recurrent_scratch(const cn_kernel *k, int threads)
{
    return call_of(k, &k->out[0], &k->in[1], false, threads).bytes;
}

size_t cn__recurrent_backward_scratch(const cn_kernel *k, int threads)
{
    return call_of(k, &k->in[0], &k->in[2], true, threads).bytes;
}

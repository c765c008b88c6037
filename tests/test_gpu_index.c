/* Indices, joins, scans and sorts on the GPU, beyond the operators' cases: sizes that need several launches, indices
   out of range, results written in place. Results are compared with the CPU's.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static cn_ctx *cpu, *gpu;

/* ---- numbers that are the same everywhere ---- */

static uint32_t state;
static uint32_t next_number(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static cn_tensor *reals(cn_ctx *ctx, cn_dims shape, uint32_t seed)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.v[d];
    float *v = malloc(sizeof *v * (size_t)(n + 1));
    if (!v) abort();
    state = seed;
    for (int64_t i = 0; i < n; i++) v[i] = (float)next_number() / 8388608.0f - 1;
    cn_tensor *t = cn_from(ctx, CN_F32, shape, v);
    free(v);
    return t;
}

/* In [0, high); a third of them below 10, so that many are equal. */
static cn_tensor *indices(cn_ctx *ctx, cn_dims shape, uint32_t high, uint32_t seed)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.v[d];
    int64_t *v = malloc(sizeof *v * (size_t)(n + 1));
    if (!v) abort();
    state = seed;
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = next_number();
        v[i] = (x >> 4) % (x % 3 == 0 && high > 10 ? 10 : high);
    }
    cn_tensor *t = cn_from(ctx, CN_I64, shape, v);
    free(v);
    return t;
}

/* ---- one program on both devices ---- */

typedef cn_tensor *(*program)(cn_ctx *ctx);

static void *result_of(cn_ctx *ctx, program p, size_t *bytes, cn_dtype *dtype)
{
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *t = p(ctx);
    *bytes = t ? (size_t)cn_numel(t) * cn_dtype_size(cn_type(t)) : 0;
    *dtype = t ? cn_type(t) : CN_F32;
    void *v = malloc(*bytes + 1);
    if (!v) abort();
    bool ok = t && cn_read(t, v, *bytes);
    cn_scope_end(ctx, s);
    if (ok) return v;
    free(v);
    return NULL;
}

/* Compares bit for bit, or relative to the largest value. */
static void same(const char *name, program p, double room)
{
    size_t n, m;
    cn_dtype t, u;
    int64_t before = cn_gpu_counted(gpu).fallbacks;
    void *x = result_of(cpu, p, &n, &t), *y = result_of(gpu, p, &m, &u);
    check(x && !cn_failed(cpu), "%s on the CPU: %s", name, cn_error(cpu));
    check(y && !cn_failed(gpu), "%s on the GPU: %s", name, cn_error(gpu));
    check(cn_gpu_counted(gpu).fallbacks == before, "%s: a step ran on the CPU", name);
    if (x && y && check(n == m && t == u, "%s: shapes or dtypes differ", name)) {
        if (room == 0) {
            check(memcmp(x, y, n) == 0, "%s: the GPU's is different", name);
        } else {
            const float *a = x, *b = y;
            float most = 0, worst = 0;
            for (size_t i = 0; i < n / sizeof *a; i++) {
                most = fmaxf(most, fabsf(a[i]));
                if (!(fabsf(a[i] - b[i]) <= worst)) worst = fabsf(a[i] - b[i]);
            }
            check(worst <= room * most, "%s: differs by %g of %g", name, worst, most);
        }
    }
    cn_error_clear(cpu);
    cn_error_clear(gpu);
    free(x);
    free(y);
}

/* ---- writing by index ---- */

static cn_tensor *embedding_gradient(cn_ctx *ctx)
{
    cn_tensor *w = cn_param(reals(ctx, CN_DIMS(5000, 24), 1)), *g = reals(ctx, CN_DIMS(64, 64, 24), 2);
    cn_backward(cn_sum(cn_mul(cn_embedding(w, indices(ctx, CN_DIMS(64, 64), 5000, 3)), g), CN_ALL, false));
    cn_tensor *all = cn_clone(cn_grad_of(w));
    cn_eval(all);
    cn_release(w);
    return all;
}

static cn_tensor *long_scatter(cn_ctx *ctx)
{
    return cn_scatter(reals(ctx, CN_DIMS(3, 4000), 4), 1, indices(ctx, CN_DIMS(3, 3000), 4000, 5),
                      reals(ctx, CN_DIMS(3, 3000), 6));
}

static cn_tensor *long_scatter_add(cn_ctx *ctx)
{
    return cn_scatter_add(reals(ctx, CN_DIMS(700, 5, 3), 7), 0, indices(ctx, CN_DIMS(2500, 4, 3), 700, 8),
                          reals(ctx, CN_DIMS(2600, 5, 3), 9));
}

static cn_tensor *long_index_add(cn_ctx *ctx)
{
    return cn_index_add(reals(ctx, CN_DIMS(4, 90, 7), 10), 1, indices(ctx, CN_DIMS(1500), 90, 11),
                        reals(ctx, CN_DIMS(4, 1500, 7), 12));
}

static cn_tensor *whole_sums(cn_ctx *ctx)
{
    return cn_scatter_add(indices(ctx, CN_DIMS(50), 100, 13), 0, indices(ctx, CN_DIMS(20), 50, 14),
                          indices(ctx, CN_DIMS(20), 1000000, 15));
}

/* ---- joining and padding ---- */

static cn_tensor *many_joined(cn_ctx *ctx)
{
    cn_tensor *part[100];
    for (int k = 0; k < 100; k++) {
        part[k] = reals(ctx, CN_DIMS(5, k % 7 + 1, 3), (uint32_t)k);
        if (k % 10 == 3) part[k] = cn_transpose(reals(ctx, CN_DIMS(3, k % 7 + 1, 5), (uint32_t)k), 0, 2);
        if (k % 10 == 8) part[k] = cn_flip(part[k], CN_DIMS(1));
    }
    return cn_cat(part, 100, 1);
}

static cn_tensor *padded_whole(cn_ctx *ctx)
{
    return cn_pad(indices(ctx, CN_DIMS(3, 4), 1000, 16), CN_DIMS(1, 2, 0, 1), CN_PAD_CONSTANT, 16777217);
}

static cn_tensor *padded_negative(cn_ctx *ctx)
{
    return cn_pad(indices(ctx, CN_DIMS(3, 4), 1000, 16), CN_DIMS(1, -2, 0, 1), CN_PAD_CONSTANT, -2147483647.0);
}

/* ---- scans ---- */

static cn_tensor *long_sum(cn_ctx *ctx) { return cn_cumsum(indices(ctx, CN_DIMS(2, 50000), 1000, 17), 1); }
static cn_tensor *many_sums(cn_ctx *ctx) { return cn_cumsum(indices(ctx, CN_DIMS(100, 70, 30), 1000, 18), 1); }
static cn_tensor *real_sum(cn_ctx *ctx) { return cn_cumsum(reals(ctx, CN_DIMS(3, 20000), 19), 1); }

/* The backward scan multiplies factors whose product overflows, but no result uses the product. */
static cn_tensor *product_gradient(cn_ctx *ctx)
{
    cn_tensor *x = cn_param(cn_full(ctx, CN_F32, CN_DIMS(500), 10));
    cn_backward(cn_sum(cn_slice(cn_cumprod(x, 0), 0, 0, 3, 1), CN_ALL, false));
    cn_tensor *all = cn_clone(cn_grad_of(x));
    cn_eval(all);
    cn_release(x);
    return cn_slice(all, 0, 0, 3, 1); /* later results overflow f32 on the CPU as well */
}

/* Equal values, both zeros, infinities and NaN. */
static cn_tensor *odd_numbers(cn_ctx *ctx, int64_t n)
{
    static const float odd[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 1e-40f };
    float *v = malloc(sizeof *v * (size_t)n);
    if (!v) abort();
    state = 20;
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = next_number();
        v[i] = x % 10 == 0 ? odd[(x >> 8) % 8] : x % 10 < 4 ? (float)((x >> 4) % 100) : (float)x / 4096.0f - 2048;
    }
    cn_tensor *t = cn_from(ctx, CN_F32, CN_DIMS(n), v);
    free(v);
    return t;
}

static cn_tensor *cummax_values(cn_ctx *ctx)
{
    return cn_cummax(cn_reshape(odd_numbers(ctx, 6000), CN_DIMS(3, 2000)), 0, NULL);
}
static cn_tensor *cummax_places(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_cummax(reals(ctx, CN_DIMS(3, 5000), 21), 1, &at);
    return at;
}

/* ---- sorts ---- */

static cn_tensor *sorted(cn_ctx *ctx) { return cn_sort(odd_numbers(ctx, 100000), 0, false, NULL); }

static cn_tensor *sorted_places(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_sort(odd_numbers(ctx, 100000), 0, false, &at);
    return at;
}

static cn_tensor *descending_places(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_sort(odd_numbers(ctx, 100000), 0, true, &at);
    return at;
}

static cn_tensor *columns_sorted(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_sort(indices(ctx, CN_DIMS(3, 2500, 2), 1000, 22), 1, true, &at);
    return at;
}

static cn_tensor *short_lines_sorted(cn_ctx *ctx)
{
    return cn_sort(indices(ctx, CN_DIMS(1000, 11), 8, 23), 1, false, NULL);
}

static cn_tensor *few_of_many(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_topk(cn_reshape(odd_numbers(ctx, 100000), CN_DIMS(2, 50000)), 50, 1, true, &at);
    return at;
}

static cn_tensor *more_of_many(cn_ctx *ctx)
{
    cn_tensor *at;
    cn_topk(odd_numbers(ctx, 20000), 3000, 0, false, &at);
    return at;
}

static cn_tensor *sort_gradient(cn_ctx *ctx)
{
    cn_tensor *x = cn_param(reals(ctx, CN_DIMS(2, 3000), 24));
    cn_backward(cn_sum(cn_mul(cn_sort(x, 1, false, NULL), reals(ctx, CN_DIMS(2, 3000), 25)), CN_ALL, false));
    cn_tensor *all = cn_clone(cn_grad_of(x));
    cn_eval(all);
    cn_release(x);
    return all;
}

/* ---- masks ---- */

static cn_tensor *selected(cn_ctx *ctx)
{
    cn_tensor *x = reals(ctx, CN_DIMS(40, 50), 26);
    return cn_masked_select(x, cn_gt_s(x, 0.5));
}

static cn_tensor *nonzero_of_view(cn_ctx *ctx)
{
    return cn_nonzero(cn_transpose(cn_gt_s(reals(ctx, CN_DIMS(40, 50), 26), 0.5), 0, 1));
}

/* ---- results in place ---- */

/* A cache is written row by row, as in sampling. */
static cn_tensor *cache(cn_ctx *ctx)
{
    cn_tensor *c = cn_keep(reals(ctx, CN_DIMS(2, 30, 4), 27));
    cn_eval(c);
    for (int k = 0; k < 12; k++) {
        cn_slice_assign_(c, 1, 2 * k, 2 * k + 2, 1, reals(ctx, CN_DIMS(2, 2, 4), (uint32_t)(100 + k)));
        cn_eval(c);
    }
    cn_release(c);
    return c;
}

/* The old value is still needed, so it must not be overwritten. */
static cn_tensor *both_values(cn_ctx *ctx)
{
    cn_tensor *x = reals(ctx, CN_DIMS(6, 5), 28);
    cn_eval(x);
    cn_tensor *y = cn_slice_assign(x, 0, 1, 6, 2, reals(ctx, CN_DIMS(3, 5), 29));
    return cn_cat(CN_TENSORS(x, y), 0);
}

/* Intermediate values, whose memory is taken over. */
static cn_tensor *chain(cn_ctx *ctx)
{
    cn_tensor *x = cn_cumsum(reals(ctx, CN_DIMS(6, 5), 30), 0);
    x = cn_slice_assign(x, 1, 1, 3, 1, reals(ctx, CN_DIMS(6, 2), 31));
    x = cn_slice_assign(x, 0, 4, 6, 1, reals(ctx, CN_DIMS(2, 5), 32));
    return cn_neg(x);
}

/* The gradient of slices: the first is added to zeros, the others to that. */
static cn_tensor *pieces(cn_ctx *ctx)
{
    cn_tensor *x = cn_param(reals(ctx, CN_DIMS(9, 8), 33)), *loss = NULL;
    for (int k = 0; k < 3; k++) {
        cn_tensor *part = cn_sum(cn_square(cn_slice(x, 1, k, k + 5, k + 1)), CN_ALL, false);
        loss = loss ? cn_add(loss, part) : part;
    }
    cn_backward(loss);
    cn_tensor *all = cn_clone(cn_grad_of(x));
    cn_eval(all);
    cn_release(x);
    return all;
}

static void test_programs(void)
{
    check_group("indices");
    same("the gradient of an embedding", embedding_gradient, 0);
    same("scatter along 3000", long_scatter, 0);
    same("scatter_add along 2500 into parts", long_scatter_add, 0);
    same("index_add of 1500", long_index_add, 0);
    same("scatter_add of whole numbers", whole_sums, 0);
    check_group("joining");
    same("cat of 100", many_joined, 0);
    same("pad with a large whole number", padded_whole, 0);
    same("pad with a negative one", padded_negative, 0);
    check_group("scans");
    same("cumsum of 50,000", long_sum, 0);
    same("cumsum of 3000 lines", many_sums, 0);
    same("cumsum of reals", real_sum, 1e-5);
    same("the gradient of cumprod", product_gradient, 1e-6);
    same("cummax", cummax_values, 0);
    same("places of cummax", cummax_places, 0);
    check_group("sorts");
    same("sort of 100,000", sorted, 0);
    same("its places", sorted_places, 0);
    same("descending", descending_places, 0);
    same("sort along a middle axis", columns_sorted, 0);
    same("sort of 1000 short lines", short_lines_sorted, 0);
    same("topk: 50 of 50,000", few_of_many, 0);
    same("topk: 3000 of 20,000", more_of_many, 0);
    same("the gradient of sort", sort_gradient, 0);
    check_group("masks");
    same("masked_select", selected, 0);
    same("nonzero of a view", nonzero_of_view, 0);
    check_group("in place");
    same("a cache", cache, 0);
    same("old and new value", both_values, 0);
    same("a chain", chain, 1e-6);
    same("a gradient in pieces", pieces, 1e-6);
}

/* ---- indices out of range ---- */

static cn_tensor *bad_gather(cn_ctx *ctx)
{
    return cn_gather(reals(ctx, CN_DIMS(4, 5), 1), 1, cn_full(ctx, CN_I64, CN_DIMS(4, 2), 5));
}
static cn_tensor *bad_select(cn_ctx *ctx)
{
    return cn_index_select(reals(ctx, CN_DIMS(4, 5), 1), 0, cn_full(ctx, CN_I64, CN_DIMS(3), -1));
}
static cn_tensor *bad_embedding(cn_ctx *ctx)
{
    return cn_embedding(reals(ctx, CN_DIMS(4, 5), 1), cn_full(ctx, CN_I64, CN_DIMS(3), 4));
}
static cn_tensor *bad_take(cn_ctx *ctx)
{
    return cn_take(reals(ctx, CN_DIMS(4, 5), 1), cn_full(ctx, CN_I64, CN_DIMS(3), -21));
}

static cn_tensor *bad_scatter(cn_ctx *ctx)
{
    return cn_scatter(reals(ctx, CN_DIMS(4, 5), 1), 1, cn_full(ctx, CN_I64, CN_DIMS(4, 2), 7),
                      reals(ctx, CN_DIMS(4, 2), 2));
}

static cn_tensor *bad_scatter_add(cn_ctx *ctx)
{
    return cn_scatter_add(reals(ctx, CN_DIMS(40), 1), 0, cn_full(ctx, CN_I64, CN_DIMS(60), -3),
                          reals(ctx, CN_DIMS(60), 2));
}

static cn_tensor *bad_index_add(cn_ctx *ctx)
{
    return cn_index_add(cn_zeros(ctx, CN_F32, CN_DIMS(0, 5)), 0, cn_full(ctx, CN_I64, CN_DIMS(2), 0),
                        reals(ctx, CN_DIMS(2, 5), 2));
}

static void refuse(program p, const char *words)
{
    cn_scope s = cn_scope_begin(gpu);
    float v[256];
    cn_tensor *t = p(gpu);
    bool read = t && cn_read(t, v, (size_t)cn_numel(t) * sizeof *v);
    cn_item(cn_sum(reals(gpu, CN_DIMS(3), 1), CN_ALL, false)); /* the next read reports it */
    check(!read || cn_numel(t) == 0, "%s: was read", words);
    check(cn_error_code(gpu) == CN_BAD_INDEX && !strcmp(cn_error(gpu), words), "says \"%s\", not \"%s\"", cn_error(gpu),
          words);
    cn_error_clear(gpu);
    check(cn_item(cn_sum(cn_ones(gpu, CN_F32, CN_DIMS(3)), CN_ALL, false)) == 3 && !cn_failed(gpu), "after %s: %s",
          words, cn_error(gpu));
    cn_error_clear(gpu);
    cn_scope_end(gpu, s);
}

static void test_refusals(void)
{
    check_group("out of range");
    refuse(bad_gather, "gather: index 5 is out of range for size 5");
    refuse(bad_select, "index_select: index -1 is out of range for size 4");
    refuse(bad_embedding, "embedding: index 4 is out of range for size 4");
    refuse(bad_take, "wrap_index: index -21 is out of range for size 20");
    refuse(bad_scatter, "scatter: index 7 is out of range for size 5");
    refuse(bad_scatter_add, "scatter_add: index -3 is out of range for size 40");
    refuse(bad_index_add, "index_add: index 0 is out of range for size 0");
}

/* A training step with a bad index in its batch leaves the parameters as they were. */
typedef struct model {
    cn_tensor *table, *other, *rows, *source;
} model;

static void train(const model *m, int64_t index)
{
    cn_scope s = cn_scope_begin(gpu);
    cn_tensor *at = cn_full(gpu, CN_I64, CN_DIMS(2), (double)index);
    cn_backward(cn_sum(cn_mul(cn_embedding(m->table, at), m->other), CN_ALL, false));
    cn_assign(m->table, cn_sub(m->table, cn_grad_of(m->table)));
    cn_assign(m->other, cn_sub(m->other, cn_grad_of(m->other)));
    cn_slice_assign_(m->rows, 0, 1, 3, 1, cn_embedding(m->source, at));
    cn_zero_grad(m->table);
    cn_zero_grad(m->other);
    cn_scope_end(gpu, s);
}

typedef struct numbers {
    float table[12], other[3], rows[12];
} numbers;

static bool read_all(const model *m, numbers *n)
{
    return cn_read(m->table, n->table, sizeof n->table) && cn_read(m->other, n->other, sizeof n->other) &&
           cn_read(m->rows, n->rows, sizeof n->rows);
}

static void test_updates(void)
{
    check_group("updates");
    cn_scope s = cn_scope_begin(gpu);
    model m = { cn_param(reals(gpu, CN_DIMS(4, 3), 1)), cn_param(reals(gpu, CN_DIMS(3), 2)),
                cn_keep(reals(gpu, CN_DIMS(4, 3), 3)), cn_keep(reals(gpu, CN_DIMS(4, 3), 4)) };
    cn_scope_end(gpu, s);
    numbers first, good, after;
    check(read_all(&m, &first), "before: %s", cn_error(gpu));
    train(&m, 2);
    check(read_all(&m, &good), "a good batch: %s", cn_error(gpu));
    check(good.other[0] == first.other[0] - 2 * first.table[6] &&
              good.table[6] == first.table[6] - 2 * first.other[0] && good.rows[0] == first.rows[0] &&
              good.rows[3] != first.rows[3] && good.rows[3] == good.rows[6],
          "a good batch is learned from");
    for (int round = 0; round < 2; round++) {
        train(&m, round ? 4 : -1);
        check(!read_all(&m, &after) && cn_error_code(gpu) == CN_BAD_INDEX && strstr(cn_error(gpu), "embedding: index"),
              "a bad batch: %s", cn_error(gpu));
        cn_error_clear(gpu);
        check(read_all(&m, &after) && !memcmp(&after, &good, sizeof good), "a bad batch left traces");
    }
    train(&m, 2);
    check(read_all(&m, &after) && after.other[0] == good.other[0] - 2 * good.table[6], "and then a good one: %s",
          cn_error(gpu));
    cn_error_clear(gpu);
    cn_release(m.table);
    cn_release(m.other);
    cn_release(m.rows);
    cn_release(m.source);
}

int main(void)
{
    cpu = cn_open(&(cn_desc){ .device = "cpu" });
    gpu = cn_open(&(cn_desc){ .device = "gpu" });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    } else {
        check(!cn_failed(gpu), "open: %s", cn_error(gpu));
        cn_error_clear(gpu);
        test_programs();
        test_refusals();
        test_updates();
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

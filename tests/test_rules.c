/* The rules that keep laziness honest, each by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "core/context.h"
#include "core/handle.h"
#include "support/check.h"

static cn_ctx *open_lazy(void) { return cn_open(&(cn_desc){ .seed = 7, .threads = 2 }); }

static cn_tensor *numbers(cn_ctx *cn, cn_dims shape, float first)
{
    float v[4096];
    int64_t n = 1;
    for (int i = 0; i < shape.n; i++) n *= shape.v[i];
    for (int64_t i = 0; i < n; i++) v[i] = first + 0.25f * (float)((i * 7) % 13) - 1.5f;
    return cn_from(cn, CN_F32, shape, v);
}

static bool equal_bytes(cn_tensor *a, cn_tensor *b)
{
    size_t n = (size_t)cn_numel(a) * cn_dtype_size(cn_type(a));
    void *x = malloc(n + 1), *y = malloc(n + 1);
    bool same = cn_numel(a) == cn_numel(b) && cn_type(a) == cn_type(b) && cn_read(a, x, n) && cn_read(b, y, n) &&
                !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

/* ---- a two-layer network to try the rules on ---- */

typedef struct net {
    cn_tensor *w1, *b1, *w2, *b2;
} net;

static net net_new(cn_ctx *cn)
{
    return (net){ cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(3, 8)), 0.5)),
                  cn_param(cn_zeros(cn, CN_F32, CN_DIMS(8))),
                  cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(8, 2)), 0.5)),
                  cn_param(cn_zeros(cn, CN_F32, CN_DIMS(2))) };
}

static cn_tensor *net_forward(const net *m, cn_tensor *x)
{
    return cn_add(cn_matmul(cn_tanh(cn_add(cn_matmul(x, m->w1), m->b1)), m->w2), m->b2);
}

static cn_tensor *net_loss(const net *m, cn_tensor *x, cn_tensor *y)
{
    return cn_mean(cn_square(cn_sub(net_forward(m, x), y)), CN_ALL, false);
}

static bool net_step(cn_ctx *cn, net *m, double lr)
{
    cn_tensor *all[4] = { m->w1, m->b1, m->w2, m->b2 };
    cn_no_grad_begin(cn);
    for (int i = 0; i < 4; i++) {
        if (!cn_grad_of(all[i])) continue;
        cn_assign(all[i], cn_sub(all[i], cn_mul_s(cn_grad_of(all[i]), lr)));
        cn_zero_grad(all[i]);
    }
    cn_no_grad_end(cn);
    return cn_eval_all(cn);
}

static void one_step(cn_ctx *cn, net *m, double lr)
{
    cn_scope s = cn_scope_begin(cn);
    cn_backward(net_loss(m, numbers(cn, CN_DIMS(5, 3), 0), numbers(cn, CN_DIMS(5, 2), 1)));
    net_step(cn, m, lr);
    cn_scope_end(cn, s);
}

/* ---- the rules ---- */

static void rule_1_values_never_change(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *p = cn_param(numbers(cn, CN_DIMS(2, 3), 0));
    cn_tensor *before = cn_keep(cn_mul_s(p, 2)), *view = cn_keep(cn_transpose(p, 0, 1));
    double old = cn_get(p, CN_DIMS(1, 2));
    cn_assign(p, cn_add_s(p, 100));
    cn_tensor *after = cn_mul_s(p, 2);
    check(cn_get(after, CN_DIMS(1, 2)) == 2 * (old + 100), "a node made after an assignment means the new value");
    check(cn_get(before, CN_DIMS(1, 2)) == 2 * old, "a node made before an assignment means the old value");
    check(cn_get(view, CN_DIMS(2, 1)) == old, "a view taken before an assignment keeps the old value");
    cn_no_grad_begin(cn);
    cn_add_s_(p, 1);
    cn_no_grad_end(cn);
    check(cn_get(p, CN_DIMS(1, 2)) == old + 101 && cn_get(view, CN_DIMS(2, 1)) == old,
          "in-place forms rebind the handle alone");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

static void rule_2_when_never_changes_what(void)
{
    cn_ctx *lazy = open_lazy(), *eager = cn_open(&(cn_desc){ .seed = 7, .threads = 1, .eager = true });
    net a = net_new(lazy), b = net_new(eager);
    for (int i = 0; i < 20; i++) one_step(lazy, &a, 0.1), one_step(eager, &b, 0.1);
    check(equal_bytes(a.w1, b.w1) && equal_bytes(a.b1, b.b1) && equal_bytes(a.w2, b.w2) && equal_bytes(a.b2, b.b2),
          "20 training steps, evaluated one operation at a time and one step at a time, give the same bits");
    check(cn_count(eager).kernels > cn_count(lazy).kernels, "and the lazy ones in fewer kernels (%lld, %lld)",
          (long long)cn_count(lazy).kernels, (long long)cn_count(eager).kernels);
    cn_close(lazy);
    cn_close(eager);
}

static void rule_3_mistakes_surface_at_the_call(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *a = numbers(cn, CN_DIMS(3, 4), 0), *b = numbers(cn, CN_DIMS(5, 6), 0);
    check(!cn_matmul(a, b), "shapes that do not fit give NULL at once");
    check(strstr(cn_error(cn), "matmul") && strstr(cn_error(cn), "[3,4]") && strstr(cn_error(cn), "[5,6]"),
          "the error names operator and shapes: %s", cn_error(cn));
    check(!cn_add(cn_relu(NULL), a) && strstr(cn_error(cn), "matmul"),
          "NULL in gives NULL out, and the first error stays");
    cn_error_clear(cn);
    check(cn_add(a, a) && !cn_failed(cn), "the context stays usable");
    check(!cn_add(a, b) && strstr(cn_error(cn), "broadcast"), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_sum(a, CN_DIMS(2), false) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_bitwise_and(a, a) && cn_error_code(cn) == CN_BAD_DTYPE, "%s", cn_error(cn));
    cn_close(cn);
}

static void rule_4_the_pending_graph_is_bounded(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .pending_limit = 500 });
    cn_tensor *x = cn_keep(cn_zeros(cn, CN_F32, CN_DIMS(4)));
    int64_t most = 0;
    for (int i = 0; i < 20000; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_assign(x, cn_add_s(x, 1));
        if (cn_count(cn).pending > most) most = cn_count(cn).pending;
        cn_scope_end(cn, s);
    }
    check(most <= 501, "a loop that never reads has at most %lld pending nodes", (long long)most);
    check(cn_get(x, CN_DIMS(3)) == 20000, "and counts right: %g", cn_get(x, CN_DIMS(3)));
    cn_close(cn);
}

static void rule_5_scalars_are_arguments(void)
{
    cn_ctx *cn = open_lazy();
    net m = net_new(cn);
    cn_tensor *table = cn_keep(numbers(cn, CN_DIMS(40, 3), 0));
    int64_t misses = 0;
    for (int i = 0; i < 20; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_narrow(table, 0, i, 5);
        x = cn_dropout(x, 0.1 + 0.01 * i, true);
        cn_backward(net_loss(&m, x, numbers(cn, CN_DIMS(5, 2), (float)i)));
        net_step(cn, &m, 0.1 / (i + 1));
        cn_scope_end(cn, s);
        if (i == 1) misses = cn_count(cn).plan_misses;
    }
    check(cn_count(cn).plan_misses == misses,
          "learning rates, probabilities, random counters and slice offsets rebuild no plan: %lld new",
          (long long)(cn_count(cn).plan_misses - misses));
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

static int64_t contractions_of_a_step(bool look)
{
    cn_ctx *cn = open_lazy();
    net m = net_new(cn);
    cn_eval_all(cn);
    int64_t before = cn_count(cn).contractions;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *loss = net_loss(&m, numbers(cn, CN_DIMS(5, 3), 0), numbers(cn, CN_DIMS(5, 2), 1));
    if (look) cn_item(loss);
    cn_backward(loss);
    net_step(cn, &m, 0.1);
    cn_scope_end(cn, s);
    int64_t n = cn_count(cn).contractions - before;
    cn_close(cn);
    return n;
}

static void rule_6_looking_does_not_cost(void)
{
    int64_t plain = contractions_of_a_step(false), looked = contractions_of_a_step(true);
    check(plain == 5, "two layers forward, three products backward: %lld contractions", (long long)plain);
    check(looked == plain, "reading the loss before backward adds none: %lld", (long long)looked);
}

static void rule_7_a_hit_is_proved(void)
{
    cn_ctx *cn = open_lazy();
    cn->hash_mask = 0; /* every graph has the same hash */
    float v[3] = { 2, 3, 5 }, w[3] = { 7, 11, 13 };
    for (int i = 0; i < 3; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(3), v), *y = cn_from(cn, CN_F32, CN_DIMS(3), w);
        check(cn_get(cn_mul(x, x), CN_DIMS(1)) == 9, "x*x");
        check(cn_get(cn_mul(x, y), CN_DIMS(1)) == 33, "x*y does not take the plan of x*x");
        check(cn_get(cn_sub(x, y), CN_DIMS(1)) == -8, "x-y");
        check(cn_get(cn_sub(y, x), CN_DIMS(1)) == 8, "y-x");
        check(cn_item(cn_sum(x, CN_ALL, false)) == 10, "sum");
        check(cn_get(cn_mul(cn_transpose(cn_expand(x, CN_DIMS(2, 3)), 0, 1), cn_full(cn, CN_F32, CN_DIMS(3, 2), 2)),
                     CN_DIMS(2, 1)) == 10,
              "views");
        cn_scope_end(cn, s);
    }
    check(cn_count(cn).plan_hits > 0 && cn_count(cn).plans >= 5, "plans are found among %lld that collide",
          (long long)cn_count(cn).plans);
    cn_close(cn);
}

/* cn_checkpoint computes a node a second time as another variant. The graph is the same otherwise, the plan is not. */
static void rule_7_variants_are_part_of_the_key(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *a = cn_keep(numbers(cn, CN_DIMS(4, 4), 0));
    cn_eval(a);
    static const uint32_t variants[][2] = { { 0, 0 }, { 0, 1 }, { 1, 1 }, { 1, 2 }, { 0, 0 }, { 2, 3 }, { 3, 3 } };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        cn_scope s = cn_scope_begin(cn);
        const int64_t before = cn_count(cn).contractions;
        cn->variant = variants[i][0];
        cn_tensor *first = cn_matmul(a, a);
        cn->variant = variants[i][1];
        cn_tensor *second = cn_matmul(a, a);
        cn->variant = 0;
        cn_item(cn_sum(cn_add(first, second), CN_ALL, false));
        check(cn_count(cn).contractions - before == 1 + (variants[i][0] != variants[i][1]),
              "round %zu: computed %lld times", i, (long long)(cn_count(cn).contractions - before));
        cn_scope_end(cn, s);
    }
    check(cn_count(cn).plans == 4, "four plans, however variants are counted: %lld", (long long)cn_count(cn).plans);
    cn_close(cn);
}

static void rule_8_all_or_nothing(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *table = cn_param(numbers(cn, CN_DIMS(6, 4), 0)), *other = cn_param(numbers(cn, CN_DIMS(4), 1));
    cn_tensor *was_table = cn_keep(cn_clone(table)), *was_other = cn_keep(cn_clone(other));
    cn_eval_all(cn);
    int64_t good[3] = { 0, 5, 2 }, bad[3] = { 0, 6, 2 };
    for (int round = 0; round < 3; round++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *e = cn_embedding(table, cn_from(cn, CN_I64, CN_DIMS(3), round == 1 ? bad : good));
        cn_backward(cn_sum(cn_square(cn_mul(e, other)), CN_ALL, false));
        cn_no_grad_begin(cn);
        cn_assign(table, cn_sub(table, cn_mul_s(cn_grad_of(table), round ? 0.1 : 0)));
        cn_assign(other, cn_sub(other, cn_mul_s(cn_grad_of(other), round ? 0.1 : 0)));
        cn_no_grad_end(cn);
        cn_zero_grad(table);
        cn_zero_grad(other);
        bool ok = cn_eval_all(cn);
        cn_scope_end(cn, s);
        if (round == 1) {
            check(!ok && cn_error_code(cn) == CN_BAD_INDEX && strstr(cn_error(cn), "embedding") &&
                      strstr(cn_error(cn), "6"),
                  "an index out of range: %s", cn_error(cn));
            cn_error_clear(cn);
        } else {
            check(ok, "round %d: %s", round, cn_error(cn));
        }
        if (round < 2)
            check(equal_bytes(table, was_table) && equal_bytes(other, was_other),
                  "round %d leaves every parameter as it was", round);
    }
    check(!equal_bytes(table, was_table) && !equal_bytes(other, was_other), "and the next step works");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

static void rule_8_memory(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 7, .threads = 1, .memory_limit = 64 * 1024 });
    net m = net_new(cn);
    cn_tensor *was = cn_keep(cn_clone(m.w1));
    cn_eval_all(cn);
    one_step(cn, &m, 0);
    check(!cn_failed(cn) && equal_bytes(m.w1, was), "a step within the limit: %s", cn_error(cn));
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *big = cn_sum(cn_matmul(cn_randn(cn, CN_F32, CN_DIMS(200, 8)),
                                      cn_transpose(cn_matmul(cn_randn(cn, CN_F32, CN_DIMS(200, 3)), m.w1), 0, 1)),
                            CN_ALL, false);
    cn_backward(big);
    check(!net_step(cn, &m, 0.1) && cn_error_code(cn) == CN_NO_MEMORY, "a step past the limit is an error: %s",
          cn_error(cn));
    cn_scope_end(cn, s);
    cn_error_clear(cn);
    check(equal_bytes(m.w1, was), "that changes no parameter");
    one_step(cn, &m, 0.1);
    check(!cn_failed(cn) && !equal_bytes(m.w1, was), "and the next step works: %s", cn_error(cn));
    cn_close(cn);
}

/* ---- what an evaluation computes ---- */

static void what_is_let_go(void)
{
    cn_ctx *cn = open_lazy();
    net m = net_new(cn);
    cn_eval_all(cn); /* initial weights that are still pending could be drawn again */
    for (int i = 0; i < 3; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = numbers(cn, CN_DIMS(5, 3), 0), *y = numbers(cn, CN_DIMS(5, 2), 1);
        cn_tensor *logits = cn_name(net_forward(&m, x), "logits");
        cn_tensor *hidden = cn_keep(cn_relu(logits)), *metric = cn_max(logits, CN_ALL, false);
        cn_tensor *loss = cn_mean(cn_square(cn_sub(logits, y)), CN_ALL, false);
        cn_backward(loss);
        net_step(cn, &m, 0.1);
        int64_t kernels = cn_count(cn).kernels;
        check(isfinite(cn_item(loss)) && isfinite(cn_item(metric)),
              "a loss and a metric read after the step have their value");
        check(isfinite(cn_get(hidden, CN_DIMS(0, 0))), "and so has a kept temporary");
        check(cn_count(cn).kernels == kernels, "none of them was computed again");
        check(isnan(cn_get(logits, CN_DIMS(0, 0))) && cn_error_code(cn) == CN_LET_GO, "a let-go temporary is an error");
        check(strstr(cn_error(cn), "`logits`") && strstr(cn_error(cn), "cn_keep"), "that says what to do: %s",
              cn_error(cn));
        cn_error_clear(cn);
        cn_release(hidden);
        cn_scope_end(cn, s);
    }
    cn_tensor *a = numbers(cn, CN_DIMS(4, 4), 0), *b = cn_mul_s(a, 3), *c = cn_sum(b, CN_ALL, false);
    cn_item(c);
    check(cn_get(b, CN_DIMS(0, 0)) == 3 * cn_get(a, CN_DIMS(0, 0)),
          "a let-go temporary whose sources are there is computed again");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

static void parameters_are_updated_in_place(void)
{
    cn_ctx *cn = open_lazy();
    net m = net_new(cn);
    for (int i = 0; i < 2; i++) one_step(cn, &m, 0.1);
    const void *at = cn_data(m.w1);
    int64_t live = cn_count(cn).live_bytes;
    for (int i = 0; i < 3; i++) one_step(cn, &m, 0.1);
    check(cn_data(m.w1) == at, "a parameter's old buffer becomes its new one");
    check(cn_count(cn).live_bytes == live, "and memory does not grow");
    cn_tensor *old = cn_keep(cn_detach(m.w1));
    double v = cn_get(old, CN_DIMS(0, 0));
    one_step(cn, &m, 0.1);
    check(cn_data(m.w1) != at && cn_get(old, CN_DIMS(0, 0)) == v, "unless a kept handle means the old value");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

/* An assignment in one part of the graph, a kept reader of the old value in another. */
static void kept_readers_are_computed_before_an_overwrite(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *p = cn_param(numbers(cn, CN_DIMS(8), 0));
    cn_eval_all(cn);
    cn_assign(p, cn_add_s(p, 1));
    cn_eval_all(cn);
    double v = cn_get(p, CN_DIMS(3));
    cn_tensor *reader = cn_keep(cn_mul_s(p, 10));
    cn_assign(p, cn_add_s(p, 1));
    cn_eval(p);
    check(cn_get(p, CN_DIMS(3)) == v + 1 && cn_get(reader, CN_DIMS(3)) == (float)(10 * v),
          "the reader has its value: %g", cn_get(reader, CN_DIMS(3)));
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

/* Adam's shape: two states and a parameter that read each other's old and new values. */
static void updates_that_read_each_other(void)
{
    cn_ctx *cn = open_lazy(), *eager = cn_open(&(cn_desc){ .seed = 7, .threads = 1, .eager = true });
    cn_tensor *result[2];
    for (int e = 0; e < 2; e++) {
        cn_ctx *c = e ? eager : cn;
        cn_tensor *p = cn_keep(numbers(c, CN_DIMS(30, 40), 1)), *m = cn_keep(cn_zeros_like(p)),
                  *v = cn_keep(cn_ones_like(p));
        for (int i = 0; i < 5; i++) {
            cn_scope s = cn_scope_begin(c);
            cn_tensor *g = cn_sin(p), *m2 = cn_add(cn_mul_s(m, 0.9), cn_mul_s(g, 0.1)),
                      *v2 = cn_add(cn_mul_s(v, 0.99), cn_mul_s(cn_square(g), 0.01));
            cn_tensor *p2 = cn_sub(p, cn_div(m2, cn_add_s(cn_sqrt(v2), 0.1)));
            cn_assign(m, m2);
            cn_assign(v, cn_add(v2, cn_mul_s(cn_transpose(cn_reshape(m, CN_DIMS(40, 30)), 0, 1), 0.001)));
            cn_assign(p, p2);
            cn_eval_all(c);
            cn_scope_end(c, s);
        }
        result[e] = cn_keep(cn_add(cn_add(p, m), v));
    }
    check(equal_bytes(result[0], result[1]), "in place and one by one give the same bits");
    check(!cn_failed(cn) && !cn_failed(eager), "no error: %s%s", cn_error(cn), cn_error(eager));
    cn_close(cn);
    cn_close(eager);
}

/* A cache of which a row is written each time: in its own memory, after everything that reads the old rows. */
static void slices_are_written_in_place(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    cn_tensor *cache = cn_keep(cn_zeros(cn, CN_F32, CN_DIMS(6, 3))), *kept = NULL;
    cn_eval(cache);
    int64_t misses = 0;
    const void *memory = NULL;
    for (int step = 0; step < 6; step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *before = cn_sum(cache, CN_ALL, false); /* reads the old value */
        if (step == 5) kept = cn_keep(cn_slice(cache, 0, 0, 2, 1));
        cn_tensor *row = cn_full(cn, CN_F32, CN_DIMS(1, 3), step + 1);
        check(cn_slice_assign_(cache, 0, step, step + 1, 1, row), "row %d: %s", step, cn_error(cn));
        cn_tensor *after = step % 2 ? NULL : cn_sum(cache, CN_ALL, false); /* made later: means the new one */
        check(cn_item(before) == 3.0 * step * (step + 1) / 2, "before row %d: %g", step, cn_item(before));
        if (after) check(cn_item(after) == 3.0 * (step + 1) * (step + 2) / 2, "after row %d: %g", step, cn_item(after));
        cn_scope_end(cn, s);
        check(step == 5 || step % 2 == 0 || cn_data(cache) == memory, "row %d: memory moved", step);
        memory = cn_data(cache);
    }
    for (int i = 0; i < 6; i++)
        check(cn_get(cache, CN_DIMS(i, 1)) == i + 1, "row %d is %g", i, cn_get(cache, CN_DIMS(i, 1)));
    check(cn_get(kept, CN_DIMS(1, 2)) == 2 && cn_get(kept, CN_DIMS(0, 0)) == 1, "a kept view has the old value");
    cn_write(cache, (float[18]){ 0 }, 18 * sizeof(float));
    for (int step = 0; step < 4; step++) { /* where the row is does not decide the plan */
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *before = cn_sum(cache, CN_ALL, false);
        cn_slice_assign_(cache, 0, step, step + 1, 1, cn_add_s(cn_ones(cn, CN_F32, CN_DIMS(1, 3)), step));
        cn_item(before);
        cn_scope_end(cn, s);
        if (step == 1) misses = cn_count(cn).plan_misses;
    }
    check(cn_count(cn).plan_misses == misses, "%lld new plans", (long long)(cn_count(cn).plan_misses - misses));
    check(!cn_slice_assign_(cache, 0, 5, 7, 1, cn_ones(cn, CN_F32, CN_DIMS(2, 3))) && cn_failed(cn),
          "too many rows: %s", cn_error(cn));
    cn_close(cn);
}

static void micro_batches_take_one_batch_of_memory(void)
{
    int64_t arena[2];
    for (int many = 0; many < 2; many++) {
        cn_ctx *cn = open_lazy();
        net m = net_new(cn);
        cn_eval_all(cn);
        for (int i = 0; i < (many ? 16 : 4); i++) {
            cn_scope s = cn_scope_begin(cn);
            cn_backward(net_loss(&m, cn_randn(cn, CN_F32, CN_DIMS(200, 3)), cn_randn(cn, CN_F32, CN_DIMS(200, 2))));
            cn_scope_end(cn, s);
        }
        net_step(cn, &m, 0.1);
        check(!cn_failed(cn), "no error: %s", cn_error(cn));
        arena[many] = cn_count(cn).arena_bytes;
        cn_close(cn);
    }
    check(arena[0] == arena[1], "accumulating 16 micro-batches takes the memory of 4: %lld, %lld", (long long)arena[1],
          (long long)arena[0]);
}

static void the_cache_is_bounded(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .plan_limit = 8 });
    for (int i = 1; i < 60; i++) {
        cn_scope s = cn_scope_begin(cn);
        check(cn_item(cn_sum(cn_ones(cn, CN_F32, CN_DIMS(i)), CN_ALL, false)) == i, "sum of %d ones", i);
        cn_scope_end(cn, s);
    }
    check(cn_count(cn).plans == 8, "the least recently used plans go: %lld kept", (long long)cn_count(cn).plans);
    cn_close(cn);
}

static void the_plan_used_last_stays(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .plan_limit = 4 });
    static const int sizes[] = { 1, 2, 3, 4, 1, 5, 1, 3 }; /* 5 takes the place of 2 */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cn_scope s = cn_scope_begin(cn);
        const int64_t hits = cn_count(cn).plan_hits;
        cn_item(cn_sum(cn_ones(cn, CN_F32, CN_DIMS(sizes[i])), CN_ALL, false));
        const bool known = cn_count(cn).plan_hits > hits;
        check(known == (i == 4 || i >= 6), "use %zu, a sum of %d: the plan was %s", i, sizes[i],
              known ? "found" : "built");
        cn_scope_end(cn, s);
    }
    cn_close(cn);
}

/* An update that reads its old value in another order than it writes it: larger than what is computed at a time. */
static void updates_that_read_themselves_elsewhere(void)
{
    enum { SIDE = 90, N = SIDE * SIDE };
    static double old[N], got[N];
    for (int how = 0; how < 3; how++) {
        cn_ctx *cn = open_lazy();
        cn_tensor *p = cn_param(cn_cast(cn_reshape(cn_arange(cn, CN_F32, 0, N, 1), CN_DIMS(SIDE, SIDE)), CN_F32));
        cn_eval_all(cn);
        cn_no_grad_begin(cn);
        for (int round = 0; round < 3; round++) {
            cn_read_f64(p, old, N);
            cn_scope s = cn_scope_begin(cn);
            cn_tensor *other = how == 0   ? cn_transpose(p, 0, 1)
                               : how == 1 ? cn_flip(p, CN_DIMS(0, 1))
                                          : cn_expand(cn_slice(p, 0, 1, 2, 1), CN_DIMS(SIDE, SIDE));
            cn_assign(p, cn_mul_s(cn_add(p, other), 0.5));
            cn_eval_all(cn);
            cn_scope_end(cn, s);
            cn_read_f64(p, got, N);
            int wrong = 0;
            for (int i = 0; i < N; i++) {
                const int from = how == 0 ? i % SIDE * SIDE + i / SIDE : how == 1 ? N - 1 - i : SIDE + i % SIDE;
                wrong += got[i] != (double)(float)((float)(old[i] + old[from]) * 0.5f);
            }
            check(wrong == 0, "way %d, round %d: %d of %d numbers are wrong", how, round, wrong, N);
        }
        cn_no_grad_end(cn);
        cn_close(cn);
    }
}

static void unrelated_work_is_left_alone(void)
{
    cn_ctx *cn = open_lazy();
    cn_tensor *a = numbers(cn, CN_DIMS(4), 0), *b = cn_exp(numbers(cn, CN_DIMS(9), 0));
    cn_item(cn_sum(cn_mul_s(a, 2), CN_ALL, false));
    check(cn_count(cn).pending == 1 && !cn__result_of(b)->storage, "asking for one graph does not compute another");
    cn_close(cn);
}

int main(void)
{
    rule_1_values_never_change();
    rule_2_when_never_changes_what();
    rule_3_mistakes_surface_at_the_call();
    rule_4_the_pending_graph_is_bounded();
    rule_5_scalars_are_arguments();
    rule_6_looking_does_not_cost();
    rule_7_a_hit_is_proved();
    rule_7_variants_are_part_of_the_key();
    rule_8_all_or_nothing();
    rule_8_memory();
    what_is_let_go();
    parameters_are_updated_in_place();
    kept_readers_are_computed_before_an_overwrite();
    updates_that_read_each_other();
    slices_are_written_in_place();
    micro_batches_take_one_batch_of_memory();
    updates_that_read_themselves_elsewhere();
    the_cache_is_bounded();
    the_plan_used_last_stays();
    unrelated_work_is_left_alone();
    return finish();
}

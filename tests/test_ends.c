/* Counters at their ends, and long graphs: what an attacker reaches with patience or with many nodes. A test of a
   counter begins just before the end that a counter of 32 bits would have. */
#include <stdlib.h>

#include "cairn/cairn.h"
#include "core/context.h"
#include "core/handle.h"
#include "support/check.h"

static cn_tensor *kept(cn_ctx *cn, float a, float b)
{
    return cn_keep(cn_from(cn, CN_F32, CN_DIMS(2), (float[]){ a, b }));
}

static double first(cn_tensor *t)
{
    float v[2] = { 0 };
    cn_read(t, v, sizeof v);
    return v[0];
}

/* An old leaf carries the number of the evaluation in which it was numbered. That number must not come round again: the
   leaf would be taken for another. */
static void evaluations(void)
{
    check_group("evaluations");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *a = kept(cn, 3, 5), *b = kept(cn, 7, 11), *c = kept(cn, 100, 200);
    check(first(cn_sub(a, b)) == -4, "before the end");
    const uint64_t then = cn->stamp; /* a is leaf 0 of this evaluation */
    cn->stamp = UINT32_MAX - 1;
    for (int i = 0; (uint32_t)(cn->stamp + 1) != (uint32_t)then; i++)
        check(i < 100 && first(cn_sub(c, b)) == 93, "on the way, evaluation %d", i);
    const double got = first(cn_sub(c, a));
    check(got == 97, "2^32 evaluations later 100 - 3 is %g", got);
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* A storage remembers its component and the epoch of that number. An epoch that comes round again would join a graph to
   whatever has the number now. */
static void epochs(void)
{
    check_group("epochs");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *p = cn_param(cn_from(cn, CN_F32, CN_DIMS(2), (float[]){ 1, 2 })), *x = kept(cn, 3, 4);
    cn_assign(p, cn_add_s(p, 1));
    cn_eval_all(cn);
    const uint64_t then = cn->component_epoch;
    cn_eval(cn_mul(p, p)); /* p has component 0 of this epoch */
    cn->component_epoch = UINT32_MAX;
    for (int i = 0; (uint32_t)cn->component_epoch != (uint32_t)then && check(i < 100, "the epoch comes round"); i++)
        cn_eval(cn_mul(x, x));
    cn_tensor *other = cn_mul(x, x); /* component 0 of the new epoch */
    cn_eval(cn_add(p, p));
    check(other->ref.node->state == CN__PENDING, "a graph that was not asked for is evaluated");
    check(first(p) == 2 && !cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* Numbers of components are used up while a node stays pending. */
static void components(void)
{
    check_group("components");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *x = kept(cn, 1, 2), *left = cn_keep(cn_mul(x, x)), *y = kept(cn, 3, 4);
    for (int i = 0; i < 100000; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_eval(cn_neg(cn_add(y, y)));
        cn_scope_end(cn, s);
    }
    check(left->ref.node->state == CN__PENDING, "the node was evaluated");
    check(cn->components.n <= CN__COMPONENTS + 2, "%zu components for 1 pending node", cn->components.n);
    check(first(left) == 1, "the pending value is %g", first(left));
    cn_close(cn);
}

static cn_tensor *squared_product(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_square(cn_matmul(in[0], in[1]));
}

/* What a step of a program with a checkpoint costs. */
static cn_counters checkpoint_step(cn_ctx *cn, cn_tensor *w, cn_tensor *x)
{
    cn_counters before = cn_count(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *y = cn_checkpoint(squared_product, NULL, (cn_tensor *[]){ x, w }, 2);
    cn_backward(cn_sum(y, CN_ALL, false));
    check(first(cn_grad_of(w)) == 8, "the gradient is %g", first(cn_grad_of(w)));
    cn_zero_grad(w);
    cn_scope_end(cn, s);
    cn_counters after = cn_count(cn);
    return (cn_counters){ .plan_misses = after.plan_misses - before.plan_misses,
                          .contractions = after.contractions - before.contractions };
}

/* A checkpoint computes a second time as a variant. The numbers of variants go on while a node stays pending: the plan
   must be found all the same, and the second run must stay one of its own when the numbers begin again. */
static void variants(void)
{
    check_group("variants");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *w = cn_param(cn_from(cn, CN_F32, CN_DIMS(2, 1), (float[]){ 1, 0 }));
    cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(1, 2), (float[]){ 2, 0 }));
    cn_tensor *y = kept(cn, 1, 2), *left = cn_keep(cn_mul(y, y));
    const cn_counters usual = checkpoint_step(cn, w, x);
    cn->next_variant = UINT16_MAX - 2;
    for (int i = 0; i < 6; i++) {
        cn_counters step = checkpoint_step(cn, w, x);
        check(step.contractions == usual.contractions, "step %d computes %d products, not %d", i,
              (int)step.contractions, (int)usual.contractions);
        check(step.plan_misses == 0, "step %d builds %d plans", i, (int)step.plan_misses);
    }
    cn->next_variant = UINT32_MAX - 2;
    for (int i = 0; i < 6; i++) {
        cn_counters step = checkpoint_step(cn, w, x);
        check(step.contractions == usual.contractions && step.plan_misses == 0, "step %d over the end: %d products", i,
              (int)step.contractions);
    }
    check(left->ref.node->state == CN__PENDING && !cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

static void references(void)
{
    check_group("references");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *x = kept(cn, 1, 2);
    const int before = x->refs;
    x->refs = INT32_MAX - 2;
    x->kept = INT32_MAX - 3;
    for (int i = 0; i < 2; i++) check(cn_keep(x) == x, "keep %d", i);
    for (int i = 0; i < 2; i++) {
        check(!cn_keep(x) && cn_error_code(cn) == CN_UNSUPPORTED && x->refs == INT32_MAX, "a keep too many");
        cn_error_clear(cn);
        check(!cn_scope_return(cn, cn_scope_begin(cn), x) && cn_failed(cn), "a return too many");
        cn_error_clear(cn);
    }
    for (int i = 0; i < 2; i++) cn_release(x);
    check(x->kept == INT32_MAX - 3 && x->refs == INT32_MAX - 2, "%d keeps are left", x->kept);
    x->refs = before;
    x->kept = before - 1;
    cn->no_grad = INT32_MAX;
    cn_no_grad_begin(cn);
    check(cn->no_grad > 0, "cn_no_grad_begin");
    cn_no_grad_end(cn);
    cn->no_grad = 0;
    check(first(x) == 1 && !cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* ---- long graphs ---- */

typedef struct meter {
    size_t live, peak;
} meter;

static void *metered(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    meter *m = user;
    m->live += new_bytes - old_bytes;
    if (m->live > m->peak) m->peak = m->live;
    if (new_bytes) return realloc(p, new_bytes);
    free(p);
    return NULL;
}

static cn_tensor *next_product(cn_tensor *y, cn_tensor *w) { return cn_matmul(y, w); }
static cn_tensor *next_tanh(cn_tensor *y, cn_tensor *w) { return (void)w, cn_tanh(y); }
static cn_tensor *next_scaled(cn_tensor *y, cn_tensor *w) { return (void)w, cn_mul_s(y, 0.999); }

/* Bytes for each operator of a chain, forward and backward. */
static double bytes_each(cn_tensor *(*next)(cn_tensor *y, cn_tensor *w), int n, int64_t pending_limit)
{
    meter m = { 0, 0 };
    cn_ctx *cn =
        cn_open(&(cn_desc){ .seed = 1, .threads = 1, .pending_limit = pending_limit, .allocator = { metered, &m } });
    cn_tensor *w = cn_param(cn_eye(cn, CN_F32, 4, 4)), *x = cn_param(cn_ones(cn, CN_F32, CN_DIMS(4))), *y = x;
    for (int i = 0; i < n; i++) y = next(y, w);
    cn_backward(cn_sum(y, CN_ALL, false));
    check(cn_eval(cn_grad_of(x)), "%s", cn_error(cn));
    cn_close(cn);
    check(m.live == 0, "%zu bytes are left", m.live);
    return (double)m.peak / n;
}

static void long_chains(void)
{
    check_group("long chains");
    static const struct {
        const char *name;
        cn_tensor *(*next)(cn_tensor *y, cn_tensor *w);
        int64_t pending_limit;
        int most; /* bytes */
    } rows[] = {
        { "products", next_product, 0, 2400 },
        { "tanh", next_tanh, 0, 1400 },
        { "mul_s", next_scaled, 0, 1900 },
        { "tanh, one plan", next_tanh, INT64_MAX, 2300 },
        { "mul_s, one plan", next_scaled, INT64_MAX, 2200 },
    };
    /* A short chain shows what a context takes; debug builds keep every handle. */
    const bool bounded = REUSES_HANDLES && !test_is_quick();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double each = bytes_each(rows[i].next, bounded ? 100000 : 20000, rows[i].pending_limit);
        check(!bounded || each < rows[i].most, "%s: %.0f bytes for each operator, at most %d", rows[i].name, each,
              rows[i].most);
    }
}

int main(void)
{
    evaluations();
    epochs();
    components();
    variants();
    references();
    long_chains();
    return finish();
}

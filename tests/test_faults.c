/* Memory that runs out: every allocation of a training step is made to fail once, and nothing worse than an error happens.
   And a long run: nothing grows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

/* ---- a two-layer network with an embedding, momentum and a checkpointed part ---- */

enum { PARAMS = 5 };
typedef struct net {
    cn_tensor *p[PARAMS], *velocity[PARAMS];
} net;

static bool net_new(cn_ctx *cn, net *m)
{
    const cn_dims shape[PARAMS] = { CN_DIMS(7, 4), CN_DIMS(4, 8), CN_DIMS(8), CN_DIMS(8, 3), CN_DIMS(3) };
    for (int i = 0; i < PARAMS; i++) {
        m->p[i] = cn_param(cn_mul_s(cn_randn(cn, CN_F32, shape[i]), 0.4));
        m->velocity[i] = cn_keep(cn_zeros(cn, CN_F32, shape[i]));
        if (!m->p[i] || !m->velocity[i]) return false;
    }
    return true;
}

static cn_tensor *hidden(void *user, cn_tensor *const *in, int n_in)
{
    const net *m = user;
    (void)n_in;
    return cn_tanh(cn_add(cn_matmul(in[0], m->p[1]), m->p[2]));
}

/* False if recording it failed; then assignments made so far stand, since they are single calls. */
static bool record(cn_ctx *cn, net *m, cn_tensor **loss_out)
{
    static const int64_t tokens[6] = { 0, 3, 6, 2, 2, 5 }, classes[6] = { 0, 1, 2, 2, 1, 0 };
    cn_tensor *e = cn_embedding(m->p[0], cn_from(cn, CN_I64, CN_DIMS(6), tokens));
    cn_tensor *h = e ? cn_checkpoint(hidden, m, &e, 1) : NULL;
    cn_tensor *logits = cn_add(cn_matmul(h, m->p[3]), m->p[4]);
    cn_tensor *loss = cn_cross_entropy(logits, cn_from(cn, CN_I64, CN_DIMS(6), classes), NULL);
    bool ok = loss && cn_backward(loss);
    cn_no_grad_begin(cn);
    for (int i = 0; i < PARAMS && ok; i++) {
        ok = cn_assign(m->velocity[i], cn_add(cn_mul_s(m->velocity[i], 0.9), cn_grad_of(m->p[i]))) &&
             cn_assign(m->p[i], cn_sub(m->p[i], cn_mul_s(m->velocity[i], 0.1)));
    }
    cn_no_grad_end(cn);
    for (int i = 0; i < PARAMS; i++) cn_zero_grad(m->p[i]);
    *loss_out = loss;
    return ok;
}

static bool step(cn_ctx *cn, net *m)
{
    cn_tensor *loss;
    cn_scope s = cn_scope_begin(cn);
    bool ok = record(cn, m, &loss) && cn_eval_all(cn) && isfinite(cn_item(loss));
    cn_scope_end(cn, s);
    return ok;
}

/* True when the fault was reached. */
static bool run_with_fault(int64_t n, int threads)
{
    faulty f = { .fail_at = n };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = threads, .allocator = { faulty_resize, &f } });
    net m = { 0 };
    bool reached = false;
    if (cn) {
        bool ok = net_new(cn, &m) && step(cn, &m) && step(cn, &m);
        reached = f.calls >= n;
        check(ok == !reached || (reached && !cn_failed(cn)), "allocation %lld: a failure and an error go together: %s",
              (long long)n, cn_error(cn));
        if (!ok)
            check(cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: the error is about memory: %s", (long long)n,
                  cn_error(cn));
        cn_error_clear(cn);
        f.fail_at = 0;
        if (m.velocity[PARAMS - 1])
            check(step(cn, &m) && !cn_failed(cn), "allocation %lld: the next step works: %s", (long long)n,
                  cn_error(cn));
        cn_close(cn);
    } else {
        reached = true;
    }
    check(f.blocks == 0 && f.bytes == 0, "allocation %lld: nothing leaks: %lld blocks, %zu bytes", (long long)n,
          (long long)f.blocks, f.bytes);
    return reached;
}

static void every_allocation_fails_once(void)
{
    int64_t n = 1;
    while (run_with_fault(n, 1)) n++;
    printf("%lld allocations made to fail, one at a time\n", (long long)(n - 1));
    check(n > 50, "the step allocates at all: %lld", (long long)n);
}

/* Half of a failed step must not be seen by the next: parameters after the fault are those before it, or those of the whole step. */
static void a_failed_step_changes_nothing(void)
{
    float before[32], after[32], whole[32];
    int failed = 0;
    for (int64_t n = 1; n < 400; n++) {
        faulty f = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 1, .allocator = { faulty_resize, &f } });
        net m;
        net_new(cn, &m);
        cn_eval_all(cn);
        cn_read(m.p[1], before, sizeof before);
        cn_tensor *loss;
        record(cn, &m, &loss);
        f.calls = 0;
        f.fail_at = n;
        bool ok = cn_eval_all(cn);
        failed += !ok;
        bool reached = f.calls >= n;
        f.fail_at = 0;
        cn_error_clear(cn);
        cn_read(m.p[1], after, sizeof after);
        if (!ok)
            check(!memcmp(before, after, sizeof after),
                  "allocation %lld of an evaluation: the parameters are as before", (long long)n);
        if (ok && !reached) memcpy(whole, after, sizeof whole);
        cn_close(cn);
        if (!reached) break;
    }
    check(failed > 5, "%d evaluations failed", failed);
    check(memcmp(before, whole, sizeof whole), "an undisturbed step changes them");
}

static void a_long_run_does_not_grow(void)
{
    int steps = test_is_quick() ? 1000 : 10000;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 2 });
    net m;
    net_new(cn, &m);
    step(cn, &m);
    step(cn, &m);
    cn_counters first = cn_count(cn);
    bool ok = true;
    for (int i = 2; i < steps && ok; i++) {
        ok = step(cn, &m);
        cn_counters now = cn_count(cn);
        if (now.live_bytes != first.live_bytes || now.handles != first.handles || now.live_nodes != first.live_nodes ||
            now.plans != first.plans || now.arena_bytes != first.arena_bytes || (REUSES_HANDLES && now.allocations != first.allocations)) {
            check(
                false,
                "step %d: bytes %lld handles %lld nodes %lld plans %lld arena %lld allocations %lld; after the second step %lld %lld %lld %lld %lld %lld",
                i, (long long)now.live_bytes, (long long)now.handles, (long long)now.live_nodes, (long long)now.plans,
                (long long)now.arena_bytes, (long long)now.allocations, (long long)first.live_bytes,
                (long long)first.handles, (long long)first.live_nodes, (long long)first.plans,
                (long long)first.arena_bytes, (long long)first.allocations);
            break;
        }
    }
    check(ok && !cn_failed(cn), "%d steps: %s", steps, cn_error(cn));
    check(true, "nothing grows");
    printf("%d steps: %lld live bytes, %lld handles, %lld plans, 0 allocations after the second step\n", steps,
           (long long)first.live_bytes, (long long)first.handles, (long long)first.plans);
    cn_close(cn);
}

int main(void)
{
    every_allocation_fails_once();
    a_failed_step_changes_nothing();
    a_long_run_does_not_grow();
    return finish();
}

/* Updates that run before the end of their plan: the memory of a large gradient is used again, and nothing else is
   different. A step that fails still changes no parameter, and the bits are those of one operator after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

/* A chain of layers so wide that the gradient of each is large (1 MiB), between an embedding and a loss. */
enum { WIDTH = 512, LAYERS = 4, TOKENS = 24, WORDS = 40, PARAMS = LAYERS + 1 };

typedef struct net {
    cn_ctx *cn;
    cn_tensor *p[PARAMS]; /* the embedding's weight, then those of the layers */
    cn_optim *opt;
    bool tied;    /* the first and the last layer have one weight */
    bool clipped; /* gradients are clipped by their norm */
} net;

static net net_new(cn_ctx *cn, bool keep)
{
    net m = { .cn = cn };
    for (int i = 0; i < PARAMS; i++)
        m.p[i] = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(i ? WIDTH : WORDS, WIDTH)), 0.05));
    m.opt = cn_adamw(cn, (cn_params){ m.p, PARAMS }, &(cn_adamw_desc){ .lr = 0.01, .keep_gradients = keep });
    cn_eval_all(cn);
    return m;
}

/* shift: added to every index; with 1 the last index is out of range. */
static cn_tensor *loss_of(const net *m, int64_t shift)
{
    int64_t token[TOKENS], class[TOKENS];
    for (int i = 0; i < TOKENS; i++) token[i] = (i * 7 + 39) % WORDS + shift, class[i] = i * 11 % WIDTH;
    cn_tensor *x = cn_embedding(m->p[0], cn_from(m->cn, CN_I64, CN_DIMS(TOKENS), token));
    for (int i = 1; i < PARAMS; i++) x = cn_tanh(cn_linear(x, m->p[m->tied && i == LAYERS ? 1 : i], NULL));
    return cn_cross_entropy(x, cn_from(m->cn, CN_I64, CN_DIMS(TOKENS), class), NULL);
}

static bool train(const net *m, int64_t shift)
{
    cn_scope s = cn_scope_begin(m->cn);
    cn_tensor *loss = loss_of(m, shift);
    bool ok = loss && cn_backward(loss);
    if (ok && m->clipped) ok = cn_clip_grad_norm(cn_optim_params(m->opt), 0.5, NULL) != NULL;
    ok = ok && cn_step(m->opt);
    cn_scope_end(m->cn, s);
    return ok;
}

static cn_ctx *open_with(int threads, bool eager)
{
    return cn_open(&(cn_desc){ .seed = 5, .threads = threads, .eager = eager });
}

/* ---- memory, order ---- */

static void gradients_do_not_pile_up(void)
{
    const int64_t one = WIDTH * WIDTH * 4;
    cn_ctx *cn = open_with(1, false), *all = open_with(1, false);
    net m = net_new(cn, false), clipped = net_new(all, false);
    clipped.clipped = true;
    for (int i = 0; i < 3; i++) check(train(&m, 0) && train(&clipped, 0), "%s%s", cn_error(cn), cn_error(all));
    const int64_t arena = cn_count(cn).arena_bytes, needs_all = cn_count(all).arena_bytes;
    check(arena < 2 * one + one / 2, "one gradient at a time: %lld bytes", (long long)arena);
    check(needs_all > LAYERS * one, "their norm needs all of them: %lld bytes", (long long)needs_all);
    cn_close(cn);
    cn_close(all);
}

static char *plan_of(net *m, char *text, size_t size)
{
    cn_scope s = cn_scope_begin(m->cn);
    cn_tensor *loss = loss_of(m, 0);
    cn_backward(loss);
    cn_sgd_step(m->p, NULL, PARAMS, &(cn_sgd_step_desc){ .lr = 0.1 });
    for (int i = 0; i < PARAMS; i++) cn_zero_grad(m->p[i]);
    cn_plan_print(loss, text, size);
    cn_eval_all(m->cn);
    cn_scope_end(m->cn, s);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    return n;
}

static void updates_stand_behind_the_last_reader(void)
{
    static char text[1 << 16];
    cn_ctx *cn = open_with(1, false);
    net m = net_new(cn, false);
    plan_of(&m, text, sizeof text);
    const char *first = strstr(text, "sgd_step"), *last = strstr(text, "sgd_rows_step");
    check(first && last && first < last, "the first update runs before the last one can:\n%s", text);
    m.tied = true;
    plan_of(&m, text, sizeof text);
    const char *check_at = strstr(text, "cross_entropy"), *of_tied = strstr(text, "add+sgd_step");
    first = strstr(text, "sgd_step");
    check(check_at && first && check_at < first, "but after the last index was checked:\n%s", text);
    check(of_tied && count_of(of_tied, "matmul") == 0, "a weight that is read twice changes last:\n%s", text);
    cn_close(cn);
}

/* ---- the same bits ---- */

static float *values(const net *m)
{
    static const size_t all = (size_t)WORDS * WIDTH + (size_t)LAYERS * WIDTH * WIDTH;
    float *v = calloc(all, sizeof *v), *at = v;
    for (int i = 0; v && i < PARAMS; at += cn_numel(m->p[i++]))
        check(cn_read(m->p[i], at, (size_t)cn_numel(m->p[i]) * sizeof *v), "read: %s", cn_error(m->cn));
    if (!v) abort();
    return v;
}

static bool same_values(const float *a, const float *b)
{
    return !memcmp(a, b, sizeof *a * ((size_t)WORDS * WIDTH + (size_t)LAYERS * WIDTH * WIDTH));
}

static float *trained(int threads, bool eager, bool keep, bool tied, bool clipped, int passes)
{
    cn_ctx *cn = open_with(threads, eager);
    net m = net_new(cn, keep);
    m.tied = tied;
    m.clipped = clipped;
    for (int i = 0; i < 3; i++) {
        for (int k = 1; k < passes; k++) { /* gradients of several batches are added up */
            cn_scope s = cn_scope_begin(cn);
            cn_backward(loss_of(&m, 0));
            cn_scope_end(cn, s);
        }
        check(train(&m, 0), "train: %s", cn_error(cn));
        for (int k = 0; keep && k < PARAMS; k++) {
            if (tied && k == LAYERS) continue;
            check(cn_grad_of(m.p[k]) && cn_numel(cn_grad_of(m.p[k])) == cn_numel(m.p[k]), "a kept gradient is there");
            cn_zero_grad(m.p[k]);
        }
    }
    float *v = values(&m);
    cn_close(cn);
    return v;
}

static void bits_do_not_depend_on_the_order(void)
{
    for (int k = 0; k < 4; k++) {
        const bool tied = k == 1, clipped = k == 2;
        const int passes = k == 3 ? 2 : 1;
        float *planned = trained(1, false, false, tied, clipped, passes), *other[3];
        other[0] = trained(1, true, false, tied, clipped, passes);
        other[1] = trained(3, false, false, tied, clipped, passes);
        other[2] = trained(2, false, true, tied, clipped, passes);
        check(same_values(planned, other[0]), "case %d: planned and eager", k);
        check(same_values(planned, other[1]), "case %d: one thread and three", k);
        check(same_values(planned, other[2]), "case %d: with kept gradients", k);
        for (int i = 0; i < 3; i++) free(other[i]);
        free(planned);
    }
}

/* What reads the old values runs before they are overwritten, even if nothing of the step needs it. */
static void readers_see_the_old_values(void)
{
    cn_ctx *cn = open_with(1, false);
    net m = net_new(cn, false);
    for (int i = 1; i < PARAMS; i++) {
        cn_scope s = cn_scope_begin(cn);
        float before = 0, seen = 0;
        cn_tensor *now = cn_sum(cn_square(m.p[i]), CN_ALL, false);
        check(cn_read(now, &before, sizeof before), "the norm before: %s", cn_error(cn));
        check(cn_backward(loss_of(&m, 0)), "backward: %s", cn_error(cn));
        cn_tensor *norm = cn_keep(cn_sum(cn_square(cn_detach(m.p[i])), CN_ALL, false));
        check(cn_step(m.opt), "step: %s", cn_error(cn));
        check(cn_read(norm, &seen, sizeof seen), "the norm after: %s", cn_error(cn));
        check(before == seen, "layer %d: the norm of the old values is %g, read as %g", i, (double)before, (double)seen);
        cn_release(norm);
        cn_scope_end(cn, s);
    }
    cn_close(cn);
}

/* ---- all or nothing ---- */

static void a_bad_index_changes_nothing(void)
{
    cn_ctx *cn = open_with(2, false);
    net m = net_new(cn, false);
    check(train(&m, 0), "train: %s", cn_error(cn));
    float *before = values(&m);
    check(!train(&m, 1) && cn_error_code(cn) == CN_BAD_INDEX, "an index out of range: %s", cn_error(cn));
    cn_error_clear(cn);
    for (int i = 0; i < PARAMS; i++) cn_zero_grad(m.p[i]);
    float *after = values(&m);
    check(same_values(before, after), "changes no parameter");
    free(after);

    /* A check that is recorded last, when all updates could have run. */
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *loss = loss_of(&m, 0);
    cn_backward(loss);
    const int64_t beyond = WIDTH;
    cn_tensor *late = cn_index_select(cn_detach(m.p[PARAMS - 1]), 0, cn_from(cn, CN_I64, CN_DIMS(1), &beyond));
    check(late && !cn_step(m.opt) && cn_error_code(cn) == CN_BAD_INDEX, "a late index out of range: %s", cn_error(cn));
    cn_scope_end(cn, s);
    cn_error_clear(cn);
    after = values(&m);
    check(same_values(before, after), "changes no parameter either");
    for (int i = 0; i < PARAMS; i++) cn_zero_grad(m.p[i]);
    check(train(&m, 0), "and the next step works: %s", cn_error(cn));
    free(after);
    after = values(&m);
    check(!same_values(before, after), "and changes them");
    free(before), free(after);
    cn_close(cn);
}

static void every_failed_allocation_changes_nothing(void)
{
    int failed = 0;
    for (int64_t n = 1, reached = 1; reached; n++) {
        faulty f = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 5, .threads = 1, .allocator = { faulty_resize, &f } });
        net m = net_new(cn, false);
        float *before = values(&m);
        cn_scope s = cn_scope_begin(cn);
        cn_backward(loss_of(&m, 0));
        f.calls = 0;
        f.fail_at = n;
        const bool ok = cn_step(m.opt);
        reached = f.calls >= n;
        f.fail_at = 0;
        cn_scope_end(cn, s);
        cn_error_clear(cn);
        float *after = values(&m);
        check(ok == !same_values(before, after), "allocation %lld: all or nothing", (long long)n);
        failed += !ok;
        free(before), free(after);
        cn_close(cn);
        check(f.blocks == 0, "allocation %lld: nothing leaks: %lld blocks", (long long)n, (long long)f.blocks);
    }
    check(failed > 20, "%d steps failed", failed);
}

/* States that a program made itself are taken over at the first step, too. */
static void states_are_taken_over_at_once(void)
{
    cn_ctx *cn = open_with(1, false);
    cn_tensor *p = cn_param(cn_ones(cn, CN_F32, CN_DIMS(300, 300))), *m = cn_keep(cn_zeros_like(p)),
              *v = cn_keep(cn_zeros_like(p));
    cn_eval_all(cn);
    const void *at[2] = { cn_data(m), cn_data(v) };
    check(at[0] != at[1], "states that begin alike have memory of their own");
    cn_scope s = cn_scope_begin(cn);
    cn_backward(cn_sum(cn_square(p), CN_ALL, false));
    cn_adam_step(&p, &m, &v, 1, &(cn_adam_step_desc){ .lr = 0.1, .step = 1 });
    cn_zero_grad(p);
    check(cn_eval_all(cn), "step: %s", cn_error(cn));
    cn_scope_end(cn, s);
    check(cn_data(m) == at[0] && cn_data(v) == at[1], "and the first step writes into it");
    cn_close(cn);
}

/* An assignment by a program leaves the memory of a tensor that was never assigned before to the views of it. */
static void other_tensors_are_not_taken_over(void)
{
    cn_ctx *cn = open_with(1, false);
    cn_tensor *x = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(4, 6)));
    cn_eval_all(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *view = cn_transpose(x, 0, 1),
              *rows = cn_slice_assign(x, 0, 1, 2, 1, cn_zeros(cn, CN_F32, CN_DIMS(1, 6)));
    cn_assign(x, rows);
    cn_eval_all(cn);
    check(cn_get(x, CN_DIMS(1, 0)) == 0 && cn_get(view, CN_DIMS(0, 1)) == 1, "a view keeps the old value: %s",
          cn_error(cn));
    cn_assign(x, cn_mul_s(x, 3));
    cn_eval_all(cn);
    check(cn_get(rows, CN_DIMS(2, 2)) == 1 && cn_get(x, CN_DIMS(2, 2)) == 3, "and so does what was assigned: %s",
          cn_error(cn));
    cn_scope_end(cn, s);
    cn_close(cn);
}

int main(void)
{
    other_tensors_are_not_taken_over();
    gradients_do_not_pile_up();
    updates_stand_behind_the_last_reader();
    bits_do_not_depend_on_the_order();
    readers_see_the_old_values();
    a_bad_index_changes_nothing();
    every_failed_allocation_changes_nothing();
    states_are_taken_over_at_once();
    return finish();
}

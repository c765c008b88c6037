/* Elementwise work that a kernel does on what it has finished: every operator that says it can, by its own cases, with
   several kinds of it and any number of threads, against the same work done afterwards; which groups become epilogues, and
   which are moved for it. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/epilogues.h"

enum { THREADS_TRIED = 3 };
static cn_ctx *contexts[THREADS_TRIED];

/* ---- every operator ---- */

static void try_epilogue(const trial *t, cn_dtype dtype, epilogue_kind kind)
{
    inputs x;
    if (!takes(t, dtype) || !draw(t, dtype, LAYOUT_CONTIGUOUS, &x)) return;
    output apart[EPILOGUE_OUTPUTS] = { 0 };
    char what[96];
    bool inside;
    snprintf(what, sizeof what, "%s case %d, %s, %s", t->op->name, t->number, cn_dtype_name(dtype),
             epilogue_name(kind));
    bool ok = epilogue_run(contexts[0], t, &x, kind, false, apart, &inside);
    check(ok && !inside, "%s, apart: %s", what, cn_error(contexts[0]));
    for (int k = 0; k < THREADS_TRIED && ok; k++) {
        output got[EPILOGUE_OUTPUTS] = { 0 };
        difference d = { "" };
        ok = epilogue_run(contexts[k], t, &x, kind, true, got, &inside);
        check(ok && inside, "%s, %d threads: not an epilogue; %s", what, k + 1, cn_error(contexts[k]));
        for (int j = 0; j < t->op->n_out && ok; j++)
            check(same_bits(&apart[j], &got[j], &d), "%s, %d threads, result %d: %s", what, k + 1, j, d.words);
        free_outputs(got, EPILOGUE_OUTPUTS);
    }
    for (int k = 0; k < THREADS_TRIED; k++) cn_error_clear(contexts[k]);
    free_outputs(apart, EPILOGUE_OUTPUTS);
    free_inputs(&x);
}

static void every_operator(void)
{
    static const cn_dtype dtypes[] = { CN_F32, CN_F64, CN_I32, CN_U8 };
    int n_ops, tried = 0;
    const cn_op *const *ops = cn_ops(&n_ops);
    for (int i = 0; i < n_ops; i++) {
        if (!ops[i]->epilogue) continue;
        check_group(ops[i]->name);
        tried++;
        for (int c = 0; c < ops[i]->n_cases; c++)
            for (int d = 0; d < 4; d++)
                for (int kind = 0; kind < TAILS; kind++)
                    try_epilogue(&(trial){ ops[i], &ops[i]->cases[c], c, count_operands(&ops[i]->cases[c]) }, dtypes[d],
                                 (epilogue_kind)kind);
    }
    check(tried >= 14, "%d operators take epilogues", tried);
    printf("%d operators take epilogues\n", tried);
}

/* ---- which groups, and where ---- */

static cn_tensor *numbers(cn_ctx *cn, cn_dims shape) { return cn_keep(cn_randn(cn, CN_F32, shape)); }

/* Whether `words` stand in the plan for t. */
static bool plan_has(cn_tensor *t, const char *words)
{
    static char plan[65536];
    cn_plan_print(t, plan, sizeof plan);
    return strstr(plan, words) != NULL;
}

static bool same(cn_tensor *a, cn_tensor *b)
{
    output x = { 0 }, y = { 0 };
    difference d;
    const bool ok = take_output(&x, a) && take_output(&y, b) && same_bits(&x, &y, &d);
    free_outputs(&x, 1);
    free_outputs(&y, 1);
    return ok;
}

/* A block of a transformer, backwards: between a product and gelu's gradient stands the product for the weight; the
   gradient that went around the block is added to what layer_norm gives. */
typedef struct block {
    cn_tensor *x, *scale, *shift, *up, *down, *down_bias;
} block;

static cn_tensor *block_forward(const block *b)
{
    cn_tensor *h = cn_layer_norm(b->x, 1, b->scale, b->shift, 1e-5);
    return cn_add(b->x, cn_add(cn_matmul(cn_gelu_tanh(cn_matmul(h, b->up)), b->down), b->down_bias));
}

/* The gradients of everything, and of x last. */
static bool block_gradients(cn_ctx *cn, cn_tensor **grads, bool *moved, bool *added)
{
    cn_seed(cn, 3);
    const block b = { numbers(cn, CN_DIMS(40, 24)), numbers(cn, CN_DIMS(24)),     numbers(cn, CN_DIMS(24)),
                      numbers(cn, CN_DIMS(24, 96)), numbers(cn, CN_DIMS(96, 24)), numbers(cn, CN_DIMS(24)) };
    cn_tensor *all[6] = { b.scale, b.shift, b.up, b.down, b.down_bias, b.x };
    for (int i = 0; i < 6; i++) cn_set_requires_grad(all[i], true);
    cn_tensor *loss = cn_sum(cn_square(block_forward(&b)), CN_ALL, false);
    if (!cn_grad(&loss, 1, all, 6, grads, NULL)) return false;
    for (int i = 0; i < 6; i++) cn_keep(grads[i]);
    *moved = plan_has(grads[5], "matmul+gelu_tanh_backward");
    *added = plan_has(grads[5], "layer_norm_backward+add");
    return true;
}

static void groups_are_moved(void)
{
    check_group("moved");
    cn_ctx *eager = cn_open(&(cn_desc){ .threads = 1, .eager = true });
    cn_tensor *expected[6], *got[6];
    bool moved, added;
    check(block_gradients(eager, expected, &moved, &added), "eager: %s", cn_error(eager));
    for (int k = 0; k < THREADS_TRIED; k++) {
        cn_ctx *cn = contexts[k];
        cn_scope s = cn_scope_begin(cn);
        if (check(block_gradients(cn, got, &moved, &added), "planned: %s", cn_error(cn))) {
            check(moved, "gelu's gradient is not behind the product it reads");
            check(added, "the sum is not behind layer_norm's gradient");
            for (int i = 0; i < 6; i++) check(same(expected[i], got[i]), "gradient %d, %d threads", i, k + 1);
        }
        for (int i = 0; i < 6; i++) cn_release(got[i]);
        cn_scope_end(cn, s);
    }
    cn_close(eager);
}

/* Ahead of the products between, the result of relu would be one tensor more for their time. */
static void memory_is_a_reason_against(void)
{
    check_group("memory");
    cn_ctx *cn = contexts[1];
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *a = numbers(cn, CN_DIMS(64, 64)), *b = numbers(cn, CN_DIMS(64, 64));
    cn_eval_all(cn);
    cn_tensor *m = cn_matmul(a, b), *n = cn_matmul(cn_matmul(a, m), b), *late = cn_relu(m);
    cn_tensor *kept = cn_add(cn_sum(cn_matmul(n, late), CN_ALL, false), cn_sum(cn_matmul(m, b), CN_ALL, false));
    check(!plan_has(kept, "matmul+relu"), "moved, though m is still needed");
    m = cn_matmul(a, b), n = cn_matmul(cn_matmul(a, a), b), late = cn_relu(m);
    cn_tensor *freed = cn_sum(cn_matmul(n, late), CN_ALL, false);
    check(plan_has(freed, "matmul+relu"), "not moved, though m dies with it");
    cn_scope_end(cn, s);
}

/* An element of the other half is not final yet. */
static void only_in_order(void)
{
    check_group("order");
    for (int k = 0; k < THREADS_TRIED; k++) {
        cn_ctx *cn = contexts[k];
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *a = numbers(cn, CN_DIMS(300, 40)), *b = numbers(cn, CN_DIMS(40, 300));
        cn_eval_all(cn);
        cn_tensor *m = cn_matmul(a, b), *together = cn_add(m, cn_transpose(m, 0, 1));
        check(!plan_has(together, "matmul+add"), "an epilogue, though it reads columns");
        cn_eval(cn_keep(together));
        m = cn_keep(cn_matmul(a, b));
        cn_eval(m);
        check(same(cn_add(m, cn_transpose(m, 0, 1)), together), "%d threads", k + 1);
        cn_scope_end(cn, s);
    }
}

/* dweight is complete when all rows have been seen; rows of dx are final before. */
static void other_results_come_later(void)
{
    check_group("other results");
    for (int k = 0; k < THREADS_TRIED; k++) {
        cn_ctx *cn = contexts[k];
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = numbers(cn, CN_DIMS(30, 70, 9)), *g = numbers(cn, CN_DIMS(30, 70, 9));
        cn_eval_all(cn);
        cn_tensor *w = cn_ones(cn, CN_F32, CN_DIMS(9)), *found[2], *in[2] = { x, w };
        const cn_grad_desc again = { .gradients = &g, .retain = true };
        cn_set_requires_grad(x, true);
        cn_set_requires_grad(w, true);
        cn_tensor *y = cn_layer_norm(x, 1, w, NULL, 1e-5);
        if (!check(cn_grad(&y, 1, in, 2, found, &again), "%s", cn_error(cn))) continue;
        cn_tensor *sum = cn_add(found[0], found[1]);
        check(!plan_has(sum, "layer_norm_backward+add"), "reads dweight before it is known");
        cn_tensor *together = cn_keep(sum);
        cn_eval(together);
        cn_grad(&y, 1, in, 2, found, &again);
        cn_eval(cn_keep(found[0])), cn_eval(cn_keep(found[1]));
        check(same(cn_add(found[0], found[1]), together), "%d threads", k + 1);
        cn_scope_end(cn, s);
    }
}

/* dx of layer_norm; the gradients for weight and bias are computed too, and nobody has a handle to them. */
static cn_tensor *gradient_to_x(cn_ctx *cn, cn_tensor *x, cn_tensor *w, cn_tensor *b, cn_tensor *g)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *in[3] = { x, w, b }, *found[3] = { 0 }, *y = cn_layer_norm(x, 1, w, b, 1e-5);
    cn_grad(&y, 1, in, 3, found, &(cn_grad_desc){ .gradients = &g });
    cn_keep(found[0]);
    cn_scope_end(cn, s);
    return found[0];
}

/* What a kernel writes beside its first result, and nobody reads, has its place until its epilogue is done: here both
   together are as large as what the epilogue writes. */
static void unread_results_keep_their_place(void)
{
    check_group("unread results");
    for (int k = 0; k < THREADS_TRIED; k++) {
        cn_ctx *cn = contexts[k];
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_param(cn_randn(cn, CN_F32, CN_DIMS(2, 512))), *g = numbers(cn, CN_DIMS(2, 512));
        cn_tensor *w = cn_param(cn_ones(cn, CN_F32, CN_DIMS(512))), *b = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(512)));
        cn_tensor *m = numbers(cn, CN_DIMS(512, 3));
        cn_eval_all(cn);
        cn_tensor *together = cn_matmul(cn_tanh(gradient_to_x(cn, x, w, b, g)), m);
        check(plan_has(together, "layer_norm_backward+tanh"), "not an epilogue");
        cn_eval(cn_keep(together));
        cn_tensor *dx = gradient_to_x(cn, x, w, b, g);
        cn_eval(dx);
        check(same(cn_matmul(cn_tanh(dx), m), together), "%d threads", k + 1);
        cn_scope_end(cn, s);
    }
}

/* An assignment is computed last, wherever what it reads was: a plan that fails has overwritten nothing. */
/* A kernel's result plus one of its operands, both in the arena. apart: every value is computed by itself. */
static cn_tensor *plus_operand(cn_tensor *const *leaf, int which, bool apart)
{
    cn_tensor *x = cn_exp(cn_mul_s(leaf[0], 0.1)), *other = cn_exp(cn_mul_s(leaf[1], -0.1)), *y;
    if (apart) cn_eval(cn_keep(x)), cn_eval(cn_keep(other));
    if (which == 0) y = cn_conv2d(x, leaf[2], NULL, &(cn_conv_desc){ .padding = { 1, 1 } });
    else if (which == 1) y = cn_matmul(x, other);
    else y = cn_scaled_dot_product_attention(other, x, which == 2 ? other : x, NULL);
    if (apart) cn_eval(cn_keep(y));
    cn_tensor *sum = cn_add(y, which == 1 ? other : x);
    if (apart) cn_eval(cn_keep(sum));
    cn_tensor *z = cn_keep(cn_add(cn_softmax(sum, -1), cn_softmax(y, -1))); /* the kernel's result is needed later */
    cn_eval(z);
    if (apart) cn_release(x), cn_release(other), cn_release(y), cn_release(sum);
    return z;
}

/* An epilogue that reads an operand of its kernel must not write over it while the kernel reads it. */
static void operands_of_the_kernel_stay(void)
{
    check_group("operands of the kernel");
    for (int k = 0; k < THREADS_TRIED; k++) {
        cn_tensor *leaf[3] = { numbers(contexts[k], CN_DIMS(2, 4, 96, 96)), numbers(contexts[k], CN_DIMS(2, 4, 96, 96)),
                               numbers(contexts[k], CN_DIMS(4, 4, 3, 3)) };
        for (int which = 0; which < 4; which++) {
            cn_scope s = cn_scope_begin(contexts[k]);
            cn_tensor *z = plus_operand(leaf, which, false), *want = plus_operand(leaf, which, true);
            check(same(z, want), "%d threads, kernel %d: not what it is one by one", k + 1, which);
            cn_release(z);
            cn_release(want);
            cn_scope_end(contexts[k], s);
        }
        for (int i = 0; i < 3; i++) cn_release(leaf[i]);
    }
}

static void assignments_stay_last(void)
{
    check_group("assignments");
    cn_ctx *cn = contexts[1];
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *w = cn_param(cn_randn(cn, CN_F32, CN_DIMS(16, 16))), *x = numbers(cn, CN_DIMS(16, 16));
    const int64_t far[1] = { 99 };
    cn_tensor *bad = cn_from(cn, CN_I64, CN_DIMS(1), far), *before = cn_clone(w);
    cn_eval_all(cn);
    cn_eval(cn_keep(before));
    cn_no_grad_begin(cn);
    cn_tensor *step = cn_matmul(x, x);
    cn_tensor *row = cn_index_select(cn_matmul(x, w), 0, bad);
    cn_assign(w, cn_sub(w, step));
    check(!cn_eval(row) && cn_error_code(cn) == CN_BAD_INDEX, "no error: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_no_grad_end(cn);
    check(same(before, w), "overwritten by a plan that failed");
    cn_scope_end(cn, s);
}

int main(void)
{
    for (int k = 0; k < THREADS_TRIED; k++) {
        contexts[k] = cn_open(&(cn_desc){ .device = "cpu", .seed = 7, .threads = k + 1 });
        if (!contexts[k]) return 1;
    }
    every_operator();
    groups_are_moved();
    memory_is_a_reason_against();
    only_in_order();
    other_results_come_later();
    unread_results_keep_their_place();
    operands_of_the_kernel_stay();
    assignments_stay_last();
    for (int k = 0; k < THREADS_TRIED; k++) {
        check(!cn_failed(contexts[k]), "at the end: %s", cn_error(contexts[k]));
        cn_close(contexts[k]);
    }
    return finish();
}

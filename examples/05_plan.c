/* 05: plans. It prints the plan of a forward and of a training step: fused kernels and the memory they use.

   Run it:  build/example_05_plan        CAIRN_EAGER=1 build/example_05_plan  evaluates one operation at a time */
#include <stdio.h>

#include "cairn/cairn.h"

static cn_tensor *loss_of(cn_tensor *x, cn_tensor *w, cn_tensor *b)
{
    return cn_mean(cn_square(cn_gelu(cn_add(cn_matmul(x, w), b))), CN_ALL, false);
}

static void show_plan(const char *what, cn_tensor *t)
{
    char text[8192];
    cn_plan_print(t, text, sizeof text);
    printf("%s\n%s\n", what, text);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(32, 64)));
    cn_tensor *w = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(64, 16)), 0.1)),
              *b = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(16)));
    cn_eval_all(cn);

    /* In the text @n is a place in the arena, in0, in1, ... are operands, out0, ... are results that are stored, and ~
       marks strided access. */
    cn_scope s = cn_scope_begin(cn);
    show_plan("-- forward: bias, gelu, square and the sum are one kernel after the matrix product --",
              loss_of(x, w, b));
    cn_scope_end(cn, s);

    /* A whole step. It writes the parameters in place, at the end. */
    for (int step = 0; step < 3; step++) {
        s = cn_scope_begin(cn);
        cn_tensor *loss = loss_of(x, w, b);
        cn_backward(loss);
        cn_no_grad_begin(cn);
        cn_assign(w, cn_sub(w, cn_mul_s(cn_grad_of(w), 0.1 / (step + 1))));
        cn_assign(b, cn_sub(b, cn_mul_s(cn_grad_of(b), 0.1 / (step + 1))));
        cn_no_grad_end(cn);
        cn_zero_grad(w);
        cn_zero_grad(b);
        if (step == 1) show_plan("-- a training step --", loss);
        cn_counters before = cn_count(cn);
        cn_eval_all(cn);
        cn_counters after = cn_count(cn);
        printf("step %d: loss %.5f, %lld kernels, plan %s\n", step, cn_item(loss),
               (long long)(after.kernels - before.kernels), after.plan_hits > before.plan_hits ? "found" : "built");
        cn_scope_end(cn, s);
    }

    /* The learning rate changed in every step, but the plan did not: numbers are arguments of a plan. */
    cn_counters c = cn_count(cn);
    printf("%lld plans, arena %lld bytes, %lld bytes live\n", (long long)c.plans, (long long)c.arena_bytes,
           (long long)c.live_bytes);
    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn);
    cn_close(cn);
    return !ok;
}

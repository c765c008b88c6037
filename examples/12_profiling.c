/* 12: profiling. It trains a small network, prints where the time went as a table of classes and kernels, and writes a
   trace for a browser.

   Run it:  build/example_12_profiling [steps]        then open trace.json in ui.perfetto.dev or chrome://tracing */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/profile.h"

enum { BATCH = 256, LAYERS = 3, PARAMS = 2 * LAYERS };
static const int64_t WIDTH[LAYERS + 1] = { 64, 256, 256, 10 };

typedef struct task {
    cn_ctx *cn;
    cn_tensor *x, *y, *p[PARAMS];
} task;

static task task_new(cn_ctx *cn)
{
    task t = { .cn = cn };
    t.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(BATCH, WIDTH[0])));
    t.y = cn_keep(cn_argmax(t.x, CN_DIMS(1), false));
    t.y = cn_keep(cn_remainder(t.y, cn_scalar(cn, CN_I64, WIDTH[LAYERS])));
    for (int l = 0; l < LAYERS; l++) {
        double scale = sqrt(2.0 / (double)WIDTH[l]);
        t.p[2 * l] = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(WIDTH[l], WIDTH[l + 1])), scale));
        t.p[2 * l + 1] = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(WIDTH[l + 1])));
    }
    cn_eval_all(cn);
    return t;
}

/* One step in plain operators; the table shows how the planner fused them. */
static double train_step(task *t)
{
    cn_scope s = cn_scope_begin(t->cn);
    cn_tensor *h = t->x;
    for (int l = 0; l < LAYERS; l++) {
        h = cn_add(cn_matmul(h, t->p[2 * l]), t->p[2 * l + 1]);
        if (l + 1 < LAYERS) h = cn_gelu(h);
    }
    cn_tensor *loss = cn_cross_entropy(h, t->y, NULL);
    cn_backward(loss);
    cn_no_grad_begin(t->cn);
    for (int i = 0; i < PARAMS; i++) {
        cn_assign(t->p[i], cn_sub(t->p[i], cn_mul_s(cn_grad_of(t->p[i]), 0.1)));
        cn_zero_grad(t->p[i]);
    }
    cn_no_grad_end(t->cn);
    cn_eval_all(t->cn);
    double value = cn_item(loss);
    cn_scope_end(t->cn, s);
    return value;
}

/* The trace is JSON with a line for each event. */
static long count_events(const char *path)
{
    char line[2048];
    long n = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) n += strstr(line, "\"ph\":\"X\"") != NULL;
    if (f) fclose(f);
    return n;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    task t = task_new(cn);
    double first = train_step(&t), last = train_step(&t); /* these steps build the plans, before the profile begins */

    cn_profile *p = cn_profile_begin(cn, NULL);
    for (int i = 0; i < steps; i++) last = train_step(&t);
    cn_profile_end(p);
    printf("loss %.4f -> %.4f in %d steps\n\n", first, last, steps);

    /* First the classes of kernels; planning, engine and outside are time without kernels. Then every kernel; a + joins
       the names of fused operators. */
    cn_profile_show(p, stdout);

    /* The same numbers for a program. */
    cn_profile_row matmul = cn_profile_total(p, CN_PROFILE_MATMUL), outside = cn_profile_total(p, CN_PROFILE_OUTSIDE);
    printf("\n%lld matrix products at %.1f GFLOP/s; %.1f %% of the time was between evaluations\n",
           (long long)matmul.calls, matmul.flops / matmul.seconds * 1e-9, 100 * outside.share);

    /* The trace shows every kernel of every step on a time line, with its shapes. */
    cn_profile_trace(p, "trace.json");
    printf("trace.json has %ld events: open it in ui.perfetto.dev\n", count_events("trace.json"));

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && last < first && count_events("trace.json") >= cn_profile_kernels(p);
    cn_close(cn);
    return !ok;
}

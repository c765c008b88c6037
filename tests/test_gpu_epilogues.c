/* Epilogues on the GPU, computed by the kernel before them where it calls store_result: every operator that has
   epilogues, by its own cases, against the CPU.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/epilogues.h"

static cn_ctx *cpu, *gpu;

static double largest(const output *o)
{
    double most = 0;
    for (int64_t i = 0; i < o->numel; i++) {
        const double v = output_at(o, i);
        if (v > most || -v > most) most = v < 0 ? -v : v;
    }
    return most;
}

static void compare(const output *expected, const output *got, const char *what, int result)
{
    double *numbers = malloc(sizeof *numbers * (size_t)(expected->numel + 1));
    difference d = { "" };
    for (int64_t i = 0; i < expected->numel; i++) numbers[i] = output_at(expected, i);
    check(close_to(numbers, got, (tolerance){ 1e-5, largest(expected) }, &d), "%s, result %d: %s", what, result,
          d.words);
    free(numbers);
}

static void try_epilogue(const trial *t, epilogue_kind kind)
{
    inputs x;
    if (!takes(t, CN_F32) || !draw(t, CN_F32, LAYOUT_CONTIGUOUS, &x)) return;
    output expected[EPILOGUE_OUTPUTS] = { 0 }, got[EPILOGUE_OUTPUTS] = { 0 };
    char what[96];
    bool inside;
    snprintf(what, sizeof what, "%s case %d, %s", t->op->name, t->number, epilogue_name(kind));
    bool ok = check(epilogue_run(cpu, t, &x, kind, false, expected, &inside), "%s: %s", what, cn_error(cpu)) &&
              check(epilogue_run(gpu, t, &x, kind, true, got, &inside), "%s: %s", what, cn_error(gpu));
    check(!ok || inside, "%s: not an epilogue", what);
    for (int j = 0; j < t->op->n_out && ok; j++) compare(&expected[j], &got[j], what, j);
    cn_error_clear(cpu);
    cn_error_clear(gpu);
    free_outputs(expected, EPILOGUE_OUTPUTS);
    free_outputs(got, EPILOGUE_OUTPUTS);
    free_inputs(&x);
}

/* Dispatches for layer_norm and what is behind it: one. */
static void one_dispatch(void)
{
    check_group("dispatches");
    cn_scope s = cn_scope_begin(gpu);
    cn_tensor *x = cn_keep(cn_randn(gpu, CN_F32, CN_DIMS(20, 30)));
    cn_eval(x);
    const int64_t before = cn_gpu_counted(gpu).dispatches;
    cn_tensor *y = cn_relu(cn_layer_norm(x, 1, NULL, NULL, 1e-5));
    cn_eval(y);
    const int64_t n = cn_gpu_counted(gpu).dispatches - before;
    check(n == 1, "%lld dispatches", (long long)n);
    cn_scope_end(gpu, s);
}

int main(void)
{
    setenv("CAIRN_GPU_ATTENTION", "block", 0); /* its own kernels, also where they would not be chosen */
    cpu = cn_open(&(cn_desc){ .device = "cpu", .seed = 7 });
    gpu = cn_open(&(cn_desc){ .device = "gpu", .seed = 7 });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    } else {
        int n_ops;
        const cn_op *const *ops = cn_ops(&n_ops);
        for (int i = 0; i < n_ops; i++) {
            if (!ops[i]->epilogue) continue;
            check_group(ops[i]->name);
            for (int c = 0; c < ops[i]->n_cases; c++) /* compiling shaders takes long: a kind for each case */
                for (int kind = 0; kind < TAILS; kind++)
                    if (test_is_long() || kind == c % TAILS)
                        try_epilogue(&(trial){ ops[i], &ops[i]->cases[c], c, count_operands(&ops[i]->cases[c]) },
                                 (epilogue_kind)kind);
        }
        one_dispatch();
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

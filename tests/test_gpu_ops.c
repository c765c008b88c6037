/* Every operator on the GPU, by its own cases, against the CPU: forward in several dtypes, every layout, gradients; and
   which steps had no kernel and ran on the CPU.

       test_gpu_ops              all
       test_gpu_ops matmul       operators whose name contains it; =matmul: the one of that name
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/trial.h"

static cn_ctx *cpu, *gpu;

/* Results, a loss made from them by a chain that fuses, and the gradients of all operands. */
enum { TRACED = CN_MAX_OUT + 1 + CN_MAX_IN };

static cn_tensor *loss_of(const trial *t, cn_tensor *const *out)
{
    cn_tensor *loss = NULL;
    for (int j = 0; j < t->op->n_out; j++) {
        if (!cn_dtype_is_float(cn_type(out[j]))) continue;
        cn_tensor *part = cn_sum(cn_add(cn_relu(cn_mul_s(out[j], 1.5)), out[j]), CN_ALL, false);
        loss = loss ? cn_add(loss, part) : part;
    }
    return loss;
}

static bool trace(cn_ctx *ctx, const trial *t, const inputs *x, test_layout layout, bool gradients, output *results)
{
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 }, *param[CN_MAX_IN] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_seed(ctx, 7);
    make_tensors(ctx, x, layout, in);
    for (int k = 0; k < x->n && gradients; k++)
        if (is_differentiable(t, x, k)) in[k] = param[k] = cn_param(in[k]);
    bool ok = call(ctx, t, in, out);
    for (int j = 0; j < t->op->n_out && ok; j++) cn_keep(out[j]);
    cn_tensor *loss = ok && gradients ? loss_of(t, out) : NULL;
    if (loss && cn_requires_grad(loss)) ok = cn_backward(loss);
    for (int j = 0; j < t->op->n_out; j++) ok = take_output(&results[j], ok ? out[j] : NULL) && ok;
    if (loss) ok = take_output(&results[CN_MAX_OUT], ok ? loss : NULL) && ok;
    for (int k = 0; k < CN_MAX_IN && gradients; k++)
        ok = take_output(&results[CN_MAX_OUT + 1 + k], ok ? cn_grad_of(param[k]) : NULL) && ok;
    for (int j = 0; j < CN_MAX_OUT; j++)
        if (out[j]) cn_release(out[j]);
    for (int k = 0; k < CN_MAX_IN; k++)
        if (param[k]) cn_release(param[k]);
    cn_scope_end(ctx, s);
    return ok;
}

/* The GPU computes in f32, whatever the type; its functions are good to some 1e-5, and where terms are summed the error is
   of the size of the largest. */
static tolerance tolerance_of(const trial *t, const output *expected, const double *v)
{
    static const double epsilon[CN_DTYPES] = { [CN_F16] = 0x1p-9, [CN_BF16] = 0x1p-6, [CN_F32] = 1e-4, [CN_F64] = 1e-4 };
    double most = 0;
    for (int64_t i = 0; i < expected->numel; i++)
        if (isfinite(v[i])) most = fmax(most, fabs(v[i]));
    bool moves = t->op->kind == CN_VIEW || (t->op->kind == CN_INDEX && t->op->dtypes); /* those for floats alone compute */
    bool exact = moves || !cn_dtype_is_float(expected->dtype);
    if (exact && expected->dtype == CN_F64) return (tolerance){ 1e-6, fmax(most, 1e-3) }; /* as f32 has it, sums too */
    return exact ? (tolerance){ 0, 0 } : (tolerance){ epsilon[expected->dtype], fmax(most, 1e-3) };
}

static void compare(const trial *t, const output *expected, const output *got, int i, const char *what)
{
    if (!expected->data && !got->data) return;
    char where[96];
    const char *part = i < CN_MAX_OUT ? "result" : i == CN_MAX_OUT ? "loss" : "gradient of operand";
    snprintf(where, sizeof where, "%s, %s %d", what, part, i <= CN_MAX_OUT ? i % CN_MAX_OUT : i - 1 - CN_MAX_OUT);
    double *v = calloc((size_t)expected->numel + 1, sizeof *v);
    if (!v) abort();
    for (int64_t k = 0; k < expected->numel; k++) v[k] = output_at(expected, k);
    difference d;
    bool same_shape = expected->numel == got->numel && expected->dtype == got->dtype;
    tolerance room = tolerance_of(t, expected, v);
    if (i >= CN_MAX_OUT && room.relative == 0) room = (tolerance){ 1e-5, 1 };
    if (check(same_shape, "%s case %d %s: shape or dtype", t->op->name, t->number, where))
        check(close_to(v, got, room, &d), "%s case %d %s: %s", t->op->name, t->number, where, d.words);
    free(v);
}

static void test_one(const trial *t, cn_dtype dtype, test_layout layout, bool gradients)
{
    inputs x;
    if ((t->n_in && !takes(t, dtype)) || !draw(t, dtype, layout, &x)) return;
    if (layout != LAYOUT_CONTIGUOUS && !layout_applies(&x, layout)) {
        free_inputs(&x);
        return;
    }
    output expected[TRACED] = { 0 }, got[TRACED] = { 0 };
    char what[64];
    snprintf(what, sizeof what, "%s %s", cn_dtype_name(dtype), layout_name(layout));
    if (trace(cpu, t, &x, layout, gradients, expected)) {
        bool ok = trace(gpu, t, &x, layout, gradients, got);
        check(ok, "%s case %d %s: %s", t->op->name, t->number, what, cn_error(gpu));
        for (int i = 0; i < TRACED && ok; i++) compare(t, &expected[i], &got[i], i, what);
    }
    cn_error_clear(cpu);
    cn_error_clear(gpu);
    free_outputs(expected, TRACED);
    free_outputs(got, TRACED);
    free_inputs(&x);
}

static void test_case(const trial *t)
{
    static const cn_dtype dtypes[] = { CN_F32, CN_I64, CN_BF16, CN_F64, CN_F16, CN_I32, CN_U8, CN_I8, CN_BOOL };
    bool thin = is_thin(t) || test_is_quick();
    int n_dtypes = t->n_in == 0 ? 1 : thin ? 2 : CN_DTYPES;
    for (int d = 0; d < n_dtypes; d++) test_one(t, dtypes[d], LAYOUT_CONTIGUOUS, false);
    for (int l = LAYOUT_STRIDED; l < LAYOUTS && t->n_in; l++)
        test_one(t, takes(t, CN_F32) ? CN_F32 : CN_I64, (test_layout)l, false);
    if (has_grad(t->op) && takes(t, CN_F32)) test_one(t, CN_F32, LAYOUT_CONTIGUOUS, true);
}

static bool is_wanted(const char *name, const char *part)
{
    return part[0] == '=' ? strcmp(name, part + 1) == 0 : strstr(name, part) != NULL;
}

static bool needs_callbacks(const cn_op *op)
{
    return strcmp(op->name, "custom") == 0 || strcmp(op->name, "checkpoint") == 0;
}

static void log_line(void *user, const char *words)
{
    (void)user;
    if (getenv("CAIRN_TEST_LOG")) fprintf(stderr, "%s\n", words);
}

int main(int argc, char **argv)
{
    int n_ops, operators = 0, cases = 0, without = 0;
    const cn_op *const *ops = cn_ops(&n_ops);
    const char *part = argc > 1 ? argv[1] : "";
    cpu = cn_open(&(cn_desc){ .device = "cpu", .seed = 7 });
    gpu = cn_open(&(cn_desc){ .device = "gpu", .seed = 7, .logger = log_line });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
        cn_close(cpu);
        cn_close(gpu);
        return finish();
    }
    check(!cn_failed(gpu), "open: %s", cn_error(gpu));
    cn_error_clear(gpu);
    for (int i = 0; i < n_ops; i++) {
        if (!is_wanted(ops[i]->name, part) || needs_callbacks(ops[i])) continue;
        operators++;
        check_group(ops[i]->name);
        int64_t before = cn_gpu_counted(gpu).fallbacks;
        for (int c = 0; c < ops[i]->n_cases; c++, cases++)
            test_case(&(trial){ ops[i], &ops[i]->cases[c], c, count_operands(&ops[i]->cases[c]) });
        if (cn_gpu_counted(gpu).fallbacks > before) {
            without++;
            printf("runs on the CPU in part: %s\n", ops[i]->name);
        }
    }
    cn_gpu_counters n = cn_gpu_counted(gpu);
    printf("%d operators x %d cases on the GPU; %lld dispatches, %lld submissions, %lld pipelines; %d operators ran on the CPU "
           "in part (%lld steps)\n",
           operators, cases, (long long)n.dispatches, (long long)n.submissions, (long long)n.pipelines, without,
           (long long)n.fallbacks);
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

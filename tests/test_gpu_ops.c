/* Every operator on the GPU, by its own cases, against the CPU: forward in several dtypes, every layout, gradients; and
   which steps had no kernel and ran on the CPU. Then: whether shader files were compiled in every form they declare.

       test_gpu_ops              all
       test_gpu_ops matmul       operators whose name contains it; =matmul: the one of that name
   CAIRN_TEST_SHARE=N: every N-th operator of these, for slow drivers; K/N: beginning with the K-th, from 0.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/property.h"
#include "support/shader_forms.h"
#include "trials/versus.h"

static cn_ctx *cpu, *gpu;

static void count(void *user, bool ok, const char *words)
{
    (void)user;
    check(ok, "%s", words);
}

static void test_one(const trial *t, cn_dtype dtype, trial_layout layout, bool gradients)
{
    versus v = { .expected = cpu, .tried = gpu, .note = count };
    versus_case(&v, t, dtype, layout, gradients);
}

static void test_case(const trial *t)
{
    static const cn_dtype dtypes[] = { CN_F32, CN_I64, CN_BF16, CN_F64, CN_F16, CN_I32, CN_I16, CN_U8, CN_I8, CN_BOOL };
    bool thin = is_thin(t) || test_is_quick();
    int n_dtypes = t->n_in == 0 ? 1 : thin ? 2 : CN_DTYPES;
    for (int d = 0; d < n_dtypes; d++) test_one(t, dtypes[d], LAYOUT_CONTIGUOUS, false);
    for (int l = LAYOUT_STRIDED; l < LAYOUTS && t->n_in; l++)
        test_one(t, takes(t, CN_F32) ? CN_F32 : CN_I64, (trial_layout)l, false);
    if (has_grad(t->op) && takes(t, CN_F32)) test_one(t, CN_F32, LAYOUT_CONTIGUOUS, true);
}

static bool is_wanted(const char *name, const char *part)
{
    return part[0] == '=' ? strcmp(name, part + 1) == 0 : strstr(name, part) != NULL;
}

static void log_line(void *user, const char *words)
{
    (void)user;
    if (getenv("CAIRN_TEST_LOG")) fprintf(stderr, "%s\n", words);
}

/* Also compiles the kernels for discrete cards: CAIRN_GPU_KIND makes a software GPU count as one. */
static void test_forms(void)
{
    setenv("CAIRN_GPU_KIND", "discrete", 1);
    cn_ctx *card = cn_open(&(cn_desc){ .device = "gpu", .seed = 7, .logger = log_line });
    unsetenv("CAIRN_GPU_KIND");
    record_forms(card);
    visit_more_forms(gpu, card);
    check_forms((cn_ctx *const[]){ gpu, card }, 2);
    cn_close(card);
}

int main(int argc, char **argv)
{
    int n_ops, operators = 0, cases = 0, without = 0;
    const cn_op *const *ops = cn_ops(&n_ops);
    const char *part = argc > 1 ? argv[1] : "", *shared = getenv("CAIRN_TEST_SHARE");
    int first = 0, share = 1;
    if (shared && sscanf(shared, "%d/%d", &first, &share) < 2) share = first, first = 0;
    if (share < 1) share = 1;
    setenv("CAIRN_GPU_ATTENTION", "block", 0); /* use the kernels of attention on every driver */
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
    record_forms(gpu);
    for (int i = first; i < n_ops; i += share) {
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
    if (!part[0] && share == 1 && !test_is_quick()) test_forms(); /* the quick test leaves dtypes out */
    cn_gpu_counters n = cn_gpu_counted(gpu);
    printf("%d operators x %d cases on the GPU; %lld dispatches, %lld submissions, %lld pipelines; %d operators "
           "ran on the CPU in part (%lld steps)\n",
           operators, cases, (long long)n.dispatches, (long long)n.submissions, (long long)n.pipelines, without,
           (long long)n.fallbacks);
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

/* Destinations on the GPU: kernels write results into other values, compared with the CPU. Skipped where there is no
   GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/gpu.h"
#include "support/check.h"
#include "support/destination_cases.h"

static void compare(const char *name, cn_tensor *cpu, cn_tensor *gpu)
{
    int64_t n = cpu ? cn_numel(cpu) : 0;
    if (!check(cpu && gpu && cn_numel(gpu) == n, "%s: results", name)) return;
    cpu = cn_cast(cpu, CN_F32), gpu = cn_cast(gpu, CN_F32);
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    double most = 0, largest = 1;
    bool ok = cn_read(cpu, x, (size_t)n * sizeof *x) && cn_read(gpu, y, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n && ok; i++) {
        largest = fmax(largest, fabs((double)x[i]));
        most = fmax(most, fabs((double)x[i] - y[i]));
    }
    check(ok && most <= 2e-5 * largest, "%s: differs by %g of %g", name, most, largest);
    free(x);
    free(y);
}

/* attention: only the cases of attention */
static void known_cases(cn_ctx *cpu, cn_ctx *gpu, bool attention)
{
    given a = given_new(cpu), b = given_new(gpu);
    for (int i = 0; i < n_destination_cases && !cn_failed(gpu); i++) {
        if (attention && !strstr(destination_cases[i].name, "attention")) continue;
        cn_scope s = cn_scope_begin(cpu), t = cn_scope_begin(gpu);
        check_group(destination_cases[i].name);
        compare(destination_cases[i].name, destination_cases[i].run(&a), destination_cases[i].run(&b));
        check(!cn_failed(cpu) && !cn_failed(gpu), "%s: %s%s", destination_cases[i].name, cn_error(cpu), cn_error(gpu));
        cn_scope_end(cpu, s);
        cn_scope_end(gpu, t);
    }
}

static void random_programs(cn_ctx *cpu, cn_ctx *gpu)
{
    check_group("random programs");
    cn_tensor *a = cn_param(ready(cn_randn(cpu, CN_F32, CN_DIMS(3, 4, 3, 4))));
    cn_tensor *b = cn_param(ready(cn_randn(gpu, CN_F32, CN_DIMS(3, 4, 3, 4))));
    for (uint64_t seed = 0; seed < (test_is_quick() ? 4 : 16) && !cn_failed(gpu); seed++) {
        cn_scope s = cn_scope_begin(cpu), t = cn_scope_begin(gpu);
        compare("program", random_program(seed, a), random_program(seed, b));
        check(!cn_failed(cpu) && !cn_failed(gpu), "program %d: %s%s", (int)seed, cn_error(cpu), cn_error(gpu));
        cn_scope_end(cpu, s);
        cn_scope_end(gpu, t);
    }
}

int main(void)
{
    cn_ctx *cpu = cn_open(&(cn_desc){ .seed = 3, .threads = 2 });
    cn_ctx *gpu = cn_open(&(cn_desc){ .device = "gpu", .seed = 3, .threads = 2 });
    if (!cpu || !gpu) return 1;
    if (cn_gpu_available(gpu)) {
        setenv("CAIRN_GPU_ATTENTION", "block", 1); /* use the kernels of attention on every driver */
        known_cases(cpu, gpu, false);
        setenv("CAIRN_GPU_ATTENTION", "composed", 1);
        known_cases(cpu, gpu, true);
        random_programs(cpu, gpu);
        check(!cn_failed(gpu) && !cn_failed(cpu), "an error is left: %s%s", cn_error(gpu), cn_error(cpu));
    } else {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

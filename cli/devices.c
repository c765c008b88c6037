/* cairn devices: what can be computed on. */
#include <unistd.h>

#include "cli.h"

/* What the CPU's kernels choose among, best first. */
static const char *instruction_set(void)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return "AVX-512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2 and FMA";
    return "the baseline of x86";
#elif defined(__aarch64__)
    return "NEON";
#else
    return "portable C";
#endif
}

int list_devices(settings *s)
{
    (void)s;
    printf("cpu  %ld cores, %s\n", sysconf(_SC_NPROCESSORS_ONLN), instruction_set());
    cn_ctx *gpu = cn_open(&(cn_desc){ .device = "gpu" });
    printf("gpu  %s\n", gpu ? "one: --device gpu" : "none: this build has no GPU backend");
    cn_close(gpu);
    return DONE;
}

/* cairn devices: lists the CPU and the GPUs that Cairn can compute on. */
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

static void list_gpus(cn_ctx *cn)
{
    if (!cn_gpu_available(cn)) printf("gpu  none: %s\n", cn_gpu_why_not(cn));
    for (int i = 0; i < cn_gpu_count(cn); i++) {
        cn_gpu_info gpu;
        if (!cn_gpu_describe(cn, i, &gpu)) continue;
        printf("gpu:%d  %s (%s, %s, by %s)%s%s\n", i, gpu.name, gpu.kind, gpu.backend, gpu.implementation,
               gpu.f16 ? ", f16" : "", gpu.timestamps ? ", timestamps" : "");
        if (gpu.driver[0]) printf("       driver: %s\n", gpu.driver);
    }
}

int list_devices(settings *s)
{
    (void)s;
    printf("cpu  %ld cores, %s\n", sysconf(_SC_NPROCESSORS_ONLN), instruction_set());
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    if (!cn) return fail("out of memory");
    list_gpus(cn);
    cn_close(cn);
    return DONE;
}

/* cairn devices: lists the CPU and the GPUs that Cairn can compute on. */
#include <unistd.h>

#include "cli.h"

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
    printf("cpu  %ld cores, kernels for %s\n", sysconf(_SC_NPROCESSORS_ONLN), cn_instruction_set());
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    if (!cn) return fail("out of memory");
    list_gpus(cn);
    cn_close(cn);
    return DONE;
}

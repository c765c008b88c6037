/* 13: devices. Lists the CPU and the graphics cards, opens a card, and runs one training step on each device. Without a
   card it says why, and the CPU computes the same.

   Run it:  build/example_13_devices
   A card needs a WebGPU library and a driver: docs/gpu.md. `make gpu` gets both in software, to try this without a card:
            . build/gpu/env.sh; gpu_wgpu_lavapipe build/example_13_devices */
#include <math.h>
#include <stdio.h>

#include "cairn/cairn.h"

static void list_devices(cn_ctx *cn)
{
    printf("cpu    kernels for %s\n", cn_instruction_set());
    for (int i = 0; i < cn_gpu_count(cn); i++) {
        cn_gpu_info gpu;
        if (cn_gpu_describe(cn, i, &gpu))
            printf("gpu:%d  %s (%s, %s, by %s)\n", i, gpu.name, gpu.kind, gpu.backend, gpu.implementation);
    }
    if (!cn_gpu_available(cn)) printf("gpu    none: %s\n", cn_gpu_why_not(cn));
}

/* Some steps of a small network. The code does not know the device: every tensor of a context is on its device. */
static float train(cn_ctx *cn)
{
    cn_module *net = cn_nn_sequential(cn, cn_nn_linear(cn, 8, 32, NULL), cn_nn_function(cn, cn_relu),
                                      cn_nn_linear(cn, 32, 1, NULL));
    cn_optim *opt = cn_adam(cn, cn_parameters(net), &(cn_adam_desc){ .lr = 0.01 });
    cn_reading *late = NULL;
    for (int step = 0; step < 20; step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(64, 8)); /* the same numbers on every device */
        cn_tensor *loss = cn_mse_loss(cn_forward(net, x), cn_sum(x, CN_DIMS(1), true), NULL);
        cn_backward(loss);
        cn_step(opt);
        if (step == 19) late = cn_read_begin(loss); /* a GPU works on while the program goes on */
        cn_scope_end(cn, s);
    }
    float loss = NAN;
    cn_read_end(late, &loss, sizeof loss);
    return loss;
}

/* Opens a device, and trains there. Without the device the context has an error that says why, and computes on the CPU
   once the error is cleared. */
static bool train_on(const char *device, float *loss)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = device, .seed = 1 });
    if (!cn) return false;
    if (cn_failed(cn)) {
        printf("\n%s cannot be opened: %s\nThe CPU computes instead.\n", device, cn_error(cn));
        cn_error_clear(cn);
    }
    const int card = cn_gpu_current(cn);
    *loss = train(cn);
    printf("\n%s: loss %.6f after 20 steps on %s\n", device, *loss, card < 0 ? "the CPU" : "a GPU");
    if (card >= 0) {
        const cn_gpu_counters did = cn_gpu_counted(cn);
        printf("the GPU ran %lld kernels in %lld submissions; the program waited for it %lld times\n",
               (long long)did.dispatches, (long long)did.submissions, (long long)did.readbacks);
    }
    const bool ok = !cn_failed(cn);
    if (!ok) printf("error: %s\n", cn_error(cn));
    cn_close(cn);
    return ok;
}

int main(void)
{
    cn_ctx *cn = cn_open(NULL);
    if (!cn) return 1;
    list_devices(cn);

    char why[400]; /* "auto": a hardware GPU if there is one, else the CPU */
    cn_gpu_auto(cn, why, sizeof why);
    printf("\n%s\n", why);
    cn_close(cn);

    float on_cpu, on_gpu;
    if (!train_on("cpu", &on_cpu) || !train_on("gpu", &on_gpu)) return 1;
    printf("\nthe losses differ by %.1e\n", fabs((double)on_cpu - (double)on_gpu));
    return fabs((double)on_cpu - (double)on_gpu) > 1e-3;
}

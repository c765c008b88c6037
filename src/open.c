/* Opens a context. This is the one file that knows all folders: it connects core to the planner, the operators and the
   gradients, and opens the context's device. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "core/engine.h"
#include "cpu/open.h"
#include "gpu/open.h"
#include "grad/walk.h"
#include "ops/kernels.h"
#include "ops/shared.h"
#include "plan/evaluate.h"

static const cn__engine engine = {
    .evaluate = cn__plan_evaluate,
    .plans_open = cn__cache_open,
    .plans_close = cn__cache_close,
    .cast = cn_cast,
    .clone = cn_clone,
    .contiguous = cn_contiguous,
    .permute = cn_permute,
    .view = cn_view,
    .filled = cn__filled,
    .grad = cn_grad,
    .grad_close = cn__grad_close,
};

static int count_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

static const char *wanted_device(const char *device)
{
    if (device) return device;
    const char *set = getenv("CAIRN_DEVICE");
    return set && set[0] ? set : "cpu";
}

static bool is_gpu(const char *device) { return !strncmp(device, "gpu", 3) && strchr(":", device[3]); }

static bool is_auto(const char *device) { return !strcmp(device, "auto"); }

static void open_card(cn_ctx *ctx, int card)
{
    cn__device *gpu = card >= 0 ? cn__gpu_device_open(ctx, card, ctx->device) : NULL;
    if (gpu) ctx->device = gpu;
}

/* A hardware GPU if there is one that opens; the CPU otherwise, which is no error. */
static void open_auto(cn_ctx *ctx)
{
    char why[800];
    const bool clean = !cn_failed(ctx);
    open_card(ctx, cn_gpu_auto(ctx, why, sizeof why));
    cn__log(ctx, "%s", why);
    if (!clean || !cn_failed(ctx)) return;
    cn__log(ctx, "auto: %s", cn_error(ctx));
    cn_error_clear(ctx);
}

/* If a device that was asked for cannot be opened, the context computes on the CPU and its error says why. */
static void open_device(cn_ctx *ctx, const char *device)
{
    if (is_gpu(device)) open_card(ctx, cn_gpu_find(ctx, device));
    else if (is_auto(device)) open_auto(ctx);
    else if (strcmp(device, "cpu"))
        cn__fail(ctx, CN_BAD_DEVICE, "open: device must be \"auto\", \"cpu\", \"gpu\" or \"gpu:N\", got \"%s\"",
                 device);
}

/* CAIRN_ISA names the instruction set that kernels may use at most: for tests, and to compare machines. */
static cn__isa wanted_isa(void)
{
    const char *name = getenv("CAIRN_ISA");
    return name && name[0] ? cn__isa_named(name) : cn__isa_best();
}

static cn__isa usable_isa(void) { return wanted_isa() <= cn__isa_best() ? wanted_isa() : CN__BASELINE; }

const char *cn_instruction_set(void) { return cn__isa_name(usable_isa()); }

static void check_isa(cn_ctx *ctx)
{
    const cn__isa wanted = wanted_isa(), best = cn__isa_best();
    if (wanted == CN__ISAS)
        cn__fail(ctx, CN_BAD_ARGUMENT, "CAIRN_ISA must be baseline, avx2 or avx512 (neon on ARM), got %s", getenv("CAIRN_ISA"));
    else if (wanted > best)
        cn__fail(ctx, CN_UNSUPPORTED, "CAIRN_ISA is %s, but this processor has at most %s", cn__isa_name(wanted),
                 cn__isa_name(best));
}

static cn__device *open_cpu(cn_ctx *ctx, int threads)
{
    cn__kernels *kernels = cn__resize(&ctx->memory, NULL, 0, sizeof *kernels);
    if (!kernels) return NULL;
    check_isa(ctx);
    cn__kernels_fill(kernels, usable_isa());
    return cn__cpu_open(ctx, threads, kernels, sizeof *kernels, &kernels->gather);
}

cn_ctx *cn_open(const cn_desc *desc)
{
    static const cn_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    const char *device = wanted_device(desc->device);
    cn_ctx *ctx = cn__context_new(desc, &engine);
    if (!ctx) return NULL;
    if (engine.plans_open(ctx)) ctx->device = open_cpu(ctx, desc->threads > 0 ? desc->threads : count_cores());
    if (!ctx->device) {
        cn_close(ctx);
        return NULL;
    }
    open_device(ctx, device);
    return ctx;
}

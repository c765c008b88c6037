#include <stdlib.h>
#include <unistd.h>

#include "core/core.h"
#include "cpu/cpu.h"
#include "gpu/backend.h"

#define PENDING_LIMIT 16384
#define PLAN_LIMIT    256

static bool environment_says(const char *name, const char *value)
{
    const char *v = getenv(name);
    return v && strcmp(v, value) == 0;
}

static int count_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

static const char *wanted_device(const char *device)
{
    if (device && strcmp(device, "auto")) return device;
    const char *set = getenv("CAIRN_DEVICE");
    return set && set[0] ? set : "cpu";
}

static bool is_gpu(const char *device) { return !strncmp(device, "gpu", 3) && strchr(":", device[3]); }

static bool known_device(const char *device)
{
    return !strcmp(device, "cpu") || is_gpu(device);
}

/* Where it cannot be had the context is a CPU's, with an error that says why. */
static void open_gpu(cn_ctx *ctx, const char *device)
{
    int card = cn_gpu_find(ctx, device);
    cn__device *gpu = card >= 0 ? cn__gpu_device_open(ctx, card, ctx->device) : NULL;
    if (gpu) ctx->device = gpu;
}

cn_ctx *cn_open(const cn_desc *desc)
{
    static const cn_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    const char *device = wanted_device(desc->device);
    if (!known_device(device)) return NULL;
    cn__memory memory;
    cn__memory_open(&memory, &desc->allocator);
    cn_ctx *ctx = cn__resize(&memory, NULL, 0, sizeof *ctx);
    if (!ctx) return NULL;
    memset(ctx, 0, sizeof *ctx);
    ctx->memory = memory;
    ctx->memory.limit = desc->memory_limit;
    ctx->seed = desc->seed;
    ctx->logger = desc->logger;
    ctx->logger_user = desc->logger_user;
    ctx->eager = desc->eager || environment_says("CAIRN_EAGER", "1");
    ctx->trace_plans = environment_says("CAIRN_TRACE", "plan");
    ctx->pending_limit = desc->pending_limit > 0 ? desc->pending_limit : PENDING_LIMIT;
    ctx->plan_limit = desc->plan_limit > 0 ? desc->plan_limit : PLAN_LIMIT;
    ctx->comp_epoch = 1;
    ctx->default_dtype = CN_F32;
    ctx->next_variant = 1;
    ctx->hash_mask = UINT64_MAX;
    if (cn__cache_open(ctx)) ctx->device = cn__cpu_open(ctx, desc->threads > 0 ? desc->threads : count_cores());
    if (ctx->device && is_gpu(device)) open_gpu(ctx, device);
    if (ctx->device) return ctx;
    cn_close(ctx);
    return NULL;
}

void cn_close(cn_ctx *ctx)
{
    if (!ctx) return;
    cn__objects_close(ctx);
    cn__handles_close(ctx);
    cn__cache_close(ctx);
    if (ctx->device) {
        cn__storage_close(ctx);
        ctx->device->table->close(ctx->device);
    }
    cn__vec_free(&ctx->memory, &ctx->doomed, sizeof(cn__node *));
    cn__vec_free(&ctx->memory, &ctx->comps, sizeof(uint32_t));
    for (int i = 0; i < 5; i++) cn__vec_free(&ctx->memory, &ctx->spare[i], cn__spare_size[i]);
    cn__memory_close(&ctx->memory);
    cn__memory memory = ctx->memory;
    cn__resize(&memory, ctx, sizeof *ctx, 0);
}

const char *cn_version(void) { return "0.1.0"; }

void cn_seed(cn_ctx *ctx, uint64_t seed)
{
    if (!ctx) return;
    ctx->seed = seed;
    ctx->next_stream = 0;
}

cn_counters cn_count(const cn_ctx *ctx)
{
    cn_counters c = ctx->count;
    c.live_bytes = (int64_t)ctx->memory.live;
    c.peak_bytes = (int64_t)ctx->memory.peak;
    c.arena_bytes = (int64_t)ctx->arena_bytes;
    c.allocations = ctx->memory.calls;
    return c;
}

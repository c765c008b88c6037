/* Contexts: settings, counters and closing. src/open.c opens a context. */
#include "core/context.h"

#include <stdlib.h>

#include "core/call.h"
#include "core/engine.h"
#include "core/errors.h"
#include "core/object.h"
#include "core/tracer.h"

#define PENDING_LIMIT 16384
#define PLAN_LIMIT    256

static bool environment_is(const char *name, const char *value)
{
    const char *v = getenv(name);
    return v && strcmp(v, value) == 0;
}

cn_ctx *cn__context_new(const cn_desc *desc, const cn__engine *engine)
{
    cn__memory memory;
    cn__memory_open(&memory, &desc->allocator);
    cn_ctx *ctx = cn__resize(&memory, NULL, 0, sizeof *ctx);
    if (!ctx) return NULL;
    memset(ctx, 0, sizeof *ctx);
    ctx->memory = memory;
    if (desc->allocator.resize) ctx->memory.thread = &ctx->thread;
    ctx->memory.limit = desc->memory_limit;
    ctx->engine = engine;
    ctx->seed = desc->seed;
    ctx->logger = desc->logger;
    ctx->logger_user = desc->logger_user;
    ctx->eager = desc->eager || environment_is("CAIRN_EAGER", "1");
    ctx->trace_plans = environment_is("CAIRN_TRACE", "plan");
    ctx->pending_limit = desc->pending_limit > 0 ? desc->pending_limit : PENDING_LIMIT;
    ctx->plan_limit = desc->plan_limit > 0 ? desc->plan_limit : PLAN_LIMIT;
    ctx->component_epoch = 1;
    ctx->default_dtype = CN_F32;
    ctx->next_variant = 1;
    ctx->hash_mask = UINT64_MAX;
    ctx->hash_key = cn__hash_key_new();
    return ctx;
}

/* Begins a call that does not end. A context that is in use stays open: a callback, or another thread, wants to close
   it. Functions of the program that run from here on (a module's destroy) can make no objects. */
static bool may_close(cn_ctx *ctx)
{
    cn__call call = cn__enter(ctx, "close");
    if (!call.ctx) return false;
    ctx->closing = ctx->calls == 1;
    if (ctx->closing) return true;
    cn__fail(ctx, CN_BAD_ARGUMENT, "close: a callback cannot close its context");
    cn__leave(&call);
    return false;
}

void cn_close(cn_ctx *ctx)
{
    if (!may_close(ctx)) return;
    cn__objects_close(ctx);
    while (ctx->tracer) cn__trace_end(ctx);
    cn__shut(&ctx->thread);
    cn__handles_close(ctx);
    cn__objects_end(ctx);
    ctx->engine->plans_close(ctx);
    if (ctx->device) {
        cn__storage_close(ctx);
        ctx->device->table->close(ctx->device);
    }
    cn__vec_free(&ctx->memory, &ctx->dead, sizeof(cn__node *));
    cn__vec_free(&ctx->memory, &ctx->components, sizeof(uint32_t));
    ctx->engine->grad_close(ctx);
    cn__memory_close(&ctx->memory);
    cn__memory memory = ctx->memory;
    memory.thread = NULL;
    cn__resize(&memory, ctx, sizeof *ctx, 0);
}

const char *cn_version(void) { return "0.1.0"; }

void cn_seed(cn_ctx *ctx, uint64_t seed)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return;
    ctx->seed = seed;
    ctx->next_stream = 0;
}

cn_counters cn_count(const cn_ctx *ctx)
{
    if (!ctx) return (cn_counters){ 0 };
    cn_counters c = ctx->count;
    c.live_bytes = (int64_t)ctx->memory.live;
    c.peak_bytes = (int64_t)ctx->memory.peak;
    c.arena_bytes = (int64_t)ctx->arena_bytes;
    c.allocations = ctx->memory.calls;
    return c;
}

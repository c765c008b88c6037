/* Calls: which function the program called, and what happens when two threads call at once. */
#include "core/call.h"

#include "core/errors.h"

_Thread_local cn_ctx *cn__here;
#ifdef __EMSCRIPTEN__
extern inline cn__call cn__enter(cn_ctx *ctx, const char *who);
extern inline void cn__leave(cn__call *call);
#endif

const char *cn__called(const cn_ctx *ctx, const char *inner)
{
    if (ctx->called) inner = ctx->called;
    if (strncmp(inner, "cn_", 3)) return inner;
    return inner + (inner[3] == '_' ? 4 : 3);
}

/* The thread that is inside may be writing the context's error: only the number is set here. */
void cn__intrude(cn_ctx *ctx)
{
    const bool shut = atomic_load_explicit(&ctx->thread, memory_order_relaxed) == (void *)&ctx->thread;
    const char who = cn__here == ctx ? CN__WORKER : shut ? CN__SHUT_OUT : CN__SECOND_THREAD;
    atomic_store_explicit(&ctx->intruded, who, memory_order_relaxed);
}

void cn__report_intrusion(cn_ctx *ctx)
{
    const char who = atomic_exchange_explicit(&ctx->intruded, 0, memory_order_relaxed);
    cn__fail(ctx, CN_BAD_ARGUMENT, "%s", cn__intruder(who));
}

/* Calls: which function the program called, and what happens when two threads call at once. */
#include "core/call.h"

#include "core/errors.h"

_Thread_local char cn__here;

const char *cn__called(const cn_ctx *ctx, const char *inner)
{
    if (ctx->called) inner = ctx->called;
    if (strncmp(inner, "cn_", 3)) return inner;
    return inner + (inner[3] == '_' ? 4 : 3);
}

/* The thread that is inside may be writing the context's error: only the flag is set here. */
void cn__intrude(cn_ctx *ctx) { atomic_store_explicit(&ctx->intruded, true, memory_order_relaxed); }

void cn__report_intrusion(cn_ctx *ctx)
{
    atomic_store_explicit(&ctx->intruded, false, memory_order_relaxed);
    cn__fail(ctx, CN_BAD_ARGUMENT, CN__INTRUDED);
}

/* core/call.h: a call that a program makes. It says which function an error names, and keeps a second thread out.

       cn_tensor *cn_zeros(cn_ctx *ctx, cn_dtype dtype, cn_dims shape)
       {
           CN__CALL call = cn__enter(ctx, __func__);       errors of what it calls begin with "zeros: "
           return call.ctx ? cn_full(...) : NULL;          NULL: no context, or another thread is in it
       }                                                   the call ends where the variable does

   Calls nest: an operator calls others, and callbacks (hooks, gradients of a program's own) call anything. The first
   call that has a name gives it to errors. */
#ifndef CN_CORE_CALL_H
#define CN_CORE_CALL_H

#include "core/context.h"

typedef struct cn__call {
    cn_ctx *ctx;
    bool named; /* this call set the context's `called` */
} cn__call;

/* The address of `cn__here` differs from thread to thread. */
#if defined(__ELF__) && defined(__GNUC__)
extern _Thread_local char cn__here __attribute__((tls_model("initial-exec"), visibility("hidden")));
#else
extern _Thread_local char cn__here;
#endif

void cn__intrude(cn_ctx *ctx); /* a second thread has called: the error appears in the context */
void cn__report_intrusion(cn_ctx *ctx);

/* who: the name of the function, with or without cn_, or NULL if errors shall name what it calls. */
static inline cn__call cn__enter(cn_ctx *ctx, const char *who)
{
    if (!ctx) return (cn__call){ NULL, false };
    void *none = NULL;
    if (atomic_load_explicit(&ctx->thread, memory_order_relaxed) != &cn__here &&
        !atomic_compare_exchange_strong_explicit(&ctx->thread, &none, &cn__here, memory_order_acquire,
                                                 memory_order_relaxed)) {
        cn__intrude(ctx);
        return (cn__call){ NULL, false };
    }
    ctx->calls++;
    bool named = who && !ctx->called;
    if (named) ctx->called = who;
    return (cn__call){ ctx, named };
}

static inline void cn__leave(cn__call *call)
{
    cn_ctx *ctx = call->ctx;
    if (!ctx) return;
    if (call->named) ctx->called = NULL;
    if (--ctx->calls) return;
    if (atomic_load_explicit(&ctx->intruded, memory_order_relaxed)) cn__report_intrusion(ctx);
    atomic_store_explicit(&ctx->thread, NULL, memory_order_release);
}

#define CN__CALL __attribute__((cleanup(cn__leave))) cn__call

/* The name that an error begins with: what the program called, or `inner`, a name as __func__ has it or without cn_. */
const char *cn__called(const cn_ctx *ctx, const char *inner);

#endif

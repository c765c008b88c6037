/* core/call.h: a call that a program makes. It says which function an error names, and keeps a second thread out.

       cn_tensor *cn_zeros(cn_ctx *ctx, cn_dtype dtype, cn_dims shape)
       {
           CN__CALL call = cn__enter(ctx, __func__);       errors of what it calls begin with "zeros: "
           return call.ctx ? cn_full(...) : NULL;          NULL: no context, or another thread is in it
       }                                                   the call ends where the variable does

   Calls nest: an operator calls others, and callbacks (hooks, gradients of a program's own) call anything. The first
   call that has a name gives it to errors. A callback is called between cn__go_out and cn__come_back. */
#ifndef CN_CORE_CALL_H
#define CN_CORE_CALL_H

#include "core/context.h"

typedef struct cn__call {
    cn_ctx *ctx;
    bool named; /* this call set the context's `called` */
} cn__call;

/* The address of `cn__here` differs from thread to thread. Its value is the context that the thread works for, if it is
   a loader's worker: such a thread may not use that context. */
#if defined(__ELF__) && defined(__GNUC__)
extern _Thread_local cn_ctx *cn__here __attribute__((tls_model("initial-exec"), visibility("hidden")));
#else
extern _Thread_local cn_ctx *cn__here;
#endif

void cn__intrude(cn_ctx *ctx); /* somebody called who may not: the error appears in the context */
void cn__report_intrusion(cn_ctx *ctx);
void cn__finish_freed(cn_ctx *ctx); /* storage.c: calls the functions that free borrowed memory */

/* Hundreds of functions call the two below. A browser has one copy of them, in call.c: it saves more by loading less
   than a call costs. */
#ifdef __EMSCRIPTEN__
#define CN__OFTEN __attribute__((noinline)) inline
#else
#define CN__OFTEN static inline
#endif

/* who: the name of the function, with or without cn_, or NULL if errors shall name what it calls. */
CN__OFTEN cn__call cn__enter(cn_ctx *ctx, const char *who)
{
    if (!ctx) return (cn__call){ NULL, false };
    void *none = NULL;
    if (atomic_load_explicit(&ctx->thread, memory_order_relaxed) != &cn__here &&
        (cn__here == ctx || !atomic_compare_exchange_strong_explicit(&ctx->thread, &none, &cn__here,
                                                                     memory_order_acquire, memory_order_relaxed))) {
        cn__intrude(ctx);
        return (cn__call){ NULL, false };
    }
    ctx->calls++;
    bool named = who && !ctx->called;
    if (named) ctx->called = who;
    return (cn__call){ ctx, named };
}

CN__OFTEN void cn__leave(cn__call *call)
{
    cn_ctx *ctx = call->ctx;
    if (!ctx) return;
    if (call->named) ctx->called = NULL;
    if (ctx->calls == 1 && ctx->freed_storages) cn__finish_freed(ctx);
    if (--ctx->calls) return;
    if (atomic_load_explicit(&ctx->intruded, memory_order_relaxed)) cn__report_intrusion(ctx);
    atomic_store_explicit(&ctx->thread, NULL, memory_order_release);
}

#define CN__CALL __attribute__((cleanup(cn__leave))) cn__call

/* A program's function, which the library calls, may use the context. It cannot end a scope that began outside it, nor
   leave cn_no_grad_begin open, and errors in it name what it calls. */
typedef struct cn__outside {
    const char *called;
    size_t floor;
    int64_t no_grad;
} cn__outside;
static inline cn__outside cn__go_out(cn_ctx *ctx)
{
    cn__outside o = { ctx->called, ctx->scope_floor, ctx->no_grad };
    ctx->called = NULL;
    ctx->scope_floor = ctx->scope.n;
    return o;
}
static inline void cn__come_back(cn_ctx *ctx, cn__outside o)
{
    ctx->called = o.called;
    ctx->scope_floor = o.floor;
    ctx->no_grad = o.no_grad;
}

/* A program's logger and allocator are called in the midst of things: between these two nobody can enter. */
static inline void *cn__shut(_Atomic(void *) *thread) { return atomic_exchange(thread, (void *)thread); }
static inline void cn__reopen(_Atomic(void *) *thread, void *was) { atomic_store(thread, was); }

/* The name that an error begins with: what the program called, or `inner`, a name as __func__ has it or without cn_. */
const char *cn__called(const cn_ctx *ctx, const char *inner);

#endif

/* core/engine.h: the functions of other folders that core calls. src/open.c fills in the table of each context. */
#ifndef CN_CORE_ENGINE_H
#define CN_CORE_ENGINE_H

#include "core/context.h"
#include "core/handle.h"

/* What an evaluation stores. ASKED: kept values, results that no node reads, single numbers. LIVE: every value that has
   a handle. */
typedef enum cn__want { CN__WANT_ASKED, CN__WANT_LIVE } cn__want;

typedef struct cn__engine {
    /* plan: evaluates the component of root; root NULL: all pending nodes */
    bool (*evaluate)(cn_ctx *ctx, cn__node *root, cn__want want);
    bool (*plans_open)(cn_ctx *ctx);
    void (*plans_close)(cn_ctx *ctx);
    /* ops: operators that applying, reading and assigning need */
    cn_tensor *(*cast)(cn_tensor *x, cn_dtype dtype);
    cn_tensor *(*clone)(cn_tensor *x);
    cn_tensor *(*contiguous)(cn_tensor *x);
    cn_tensor *(*permute)(cn_tensor *x, cn_dims order);
    cn_tensor *(*view)(cn_tensor *x, cn_dims shape);
    cn_tensor *(*filled)(cn_tensor *number); /* a plain number as a value that has memory */
    /* grad: cn_grad, for operators that are differentiated through their composition; frees what grad keeps in a
       context */
    bool (*grad)(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs, cn_tensor **grads,
                 const cn_grad_desc *desc);
    void (*grad_close)(cn_ctx *ctx);
} cn__engine;

static inline bool cn__evaluate(cn_ctx *ctx, cn__node *root, cn__want want)
{
    const char *called = ctx->called;
    ctx->called = NULL; /* errors of an evaluation name the operator that failed, not the call that needed a value */
    const bool ok = ctx->engine->evaluate(ctx, root, want);
    ctx->called = called;
    return ok;
}

/* NULL in, NULL out, as operators do. */
static inline cn_tensor *cn__cast(cn_tensor *x, cn_dtype dtype) { return x ? x->ctx->engine->cast(x, dtype) : NULL; }
static inline cn_tensor *cn__clone(cn_tensor *x) { return x ? x->ctx->engine->clone(x) : NULL; }

/* The value in contiguous memory: t itself, or a copy in the current scope. */
cn_tensor *cn__dense(cn_tensor *t); /* tensor.c */

#endif

/* core/engine.h: what core asks of the folders above it. src/open.c fills the table in; each context points to it. */
#ifndef CN_CORE_ENGINE_H
#define CN_CORE_ENGINE_H

#include "core/context.h"
#include "core/handle.h"

typedef enum cn__want { CN__WANT_ASKED, CN__WANT_LIVE } cn__want; /* LIVE: store every value that has a handle */

typedef struct cn__engine {
    /* plan: computes pending nodes; root NULL: all of them */
    bool (*evaluate)(cn_ctx *ctx, cn__node *root, cn__want want);
    bool (*plans_open)(cn_ctx *ctx);
    void (*plans_close)(cn_ctx *ctx);
    /* ops: what applying, reading and assigning are built on */
    cn_tensor *(*cast)(cn_tensor *x, cn_dtype dtype);
    cn_tensor *(*clone)(cn_tensor *x);
    cn_tensor *(*contiguous)(cn_tensor *x);
    cn_tensor *(*filled)(cn_tensor *number); /* a plain number as a value that has memory */
    /* grad: cn_grad, for operators whose gradient is that of their composite; and the end of a context */
    bool (*grad)(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs, cn_tensor **grads,
                 const cn_grad_desc *desc);
    void (*grad_close)(cn_ctx *ctx);
} cn__engine;

static inline bool cn__evaluate(cn_ctx *ctx, cn__node *root, cn__want want)
{
    return ctx->engine->evaluate(ctx, root, want);
}

/* NULL in, NULL out, as of operators. */
static inline cn_tensor *cn__cast(cn_tensor *x, cn_dtype dtype) { return x ? x->ctx->engine->cast(x, dtype) : NULL; }
static inline cn_tensor *cn__clone(cn_tensor *x) { return x ? x->ctx->engine->clone(x) : NULL; }

/* The value in contiguous memory: t itself, or a copy in the current scope. */
cn_tensor *cn__dense(cn_tensor *t); /* tensor.c */

#endif

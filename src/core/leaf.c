/* Which tensors get gradients: leaves, their gradients, hooks, and the stretches where gradients are not recorded. */
#include "core/alloc.h"
#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"

void cn__make_leaf(cn_tensor *t)
{
    cn__node *n = t->ref.node;
    n->grad_leaf = n->needs_grad = true;
    n->owner = t;
}

bool cn_requires_grad(const cn_tensor *t)
{
    return cn__alive(t) && t->ref.node->needs_grad && cn_dtype_is_float(cn__result_of(t)->meta->dtype);
}

bool cn_is_leaf(const cn_tensor *t) { return cn__alive(t) && (!t->ref.node->needs_grad || t->ref.node->grad_leaf); }

bool cn_set_requires_grad(cn_tensor *t, bool on)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    cn__node *n = t->ref.node;
    if (n->needs_grad && !n->grad_leaf)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT,
                        "set_requires_grad: the tensor is a result of `%s`, not a leaf; use cn_detach first",
                        n->op->name);
    if (on && !cn_dtype_is_float(cn_type(t)))
        return cn__fail(t->ctx, CN_BAD_DTYPE, "set_requires_grad: the dtype must be a float, got %s",
                        cn_dtype_name(cn_type(t)));
    if (on && n->state == CN__NUMBER)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "set_requires_grad: a plain number has no gradient; use cn_full");
    if (on) cn__make_leaf(t);
    else n->grad_leaf = n->needs_grad = false;
    return true;
}

cn_tensor *cn_grad_of(cn_tensor *t) { return cn__alive(t) ? t->grad : NULL; }

void cn_zero_grad(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx || !t->grad) return;
    cn_tensor *g = t->grad;
    t->grad = NULL;
    cn__release(g);
}

void cn_no_grad_begin(cn_ctx *ctx)
{
    if (ctx) ctx->no_grad++;
}
void cn_no_grad_end(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return;
    if (ctx->no_grad) ctx->no_grad--;
    else cn__fail(ctx, CN_BAD_ARGUMENT, "no_grad_end: there must be a cn_no_grad_begin before it");
}
bool cn_grad_enabled(const cn_ctx *ctx) { return ctx && !ctx->no_grad; }

static bool add_hook(cn_tensor *t, cn_hook hook, void *user, void (*ended)(void *user))
{
    if (!hook)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "%s: the function must not be NULL", cn__called(t->ctx, "add_hook"));
    if (!t->ref.node->needs_grad)
        return cn__fail(t->ctx, CN_NO_GRADIENT, "%s: the tensor must require a gradient; see cn_set_requires_grad",
                        cn__called(t->ctx, "add_hook"));
    if (t->ref.node->n_out > 1)
        return cn__fail(t->ctx, CN_UNSUPPORTED, "%s: `%s` has %d results; a hook needs an operator with one",
                        cn__called(t->ctx, "add_hook"), t->ref.node->op->name, t->ref.node->n_out);
    cn__hook *h = cn__block_new(&t->ctx->memory, sizeof *h);
    if (!h) return cn__no_memory(t->ctx, "add_hook");
    *h = (cn__hook){ hook, user, ended, NULL };
    cn__hook **at = &t->ref.node->hooks;
    while (*at) at = &(*at)->next;
    *at = h;
    return true;
}

bool cn_add_hook(cn_tensor *t, cn_hook hook, void *user)
{
    CN__CALL call = cn__call_tensor(t);
    return call.ctx && add_hook(t, hook, user, NULL);
}

bool cn_add_hook_until(cn_tensor *t, cn_hook hook, void *user, void (*ended)(void *user))
{
    CN__CALL call = cn__call_tensor(t);
    return call.ctx && add_hook(t, hook, user, ended);
}

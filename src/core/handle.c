/* Handles and scopes. A handle is one reference to its node. A kept handle makes evaluations store its value. */
#include "core/handle.h"

#include "core/context.h"
#include "core/errors.h"
#include "core/layout.h"

#ifdef CAIRN_DEBUG
#define QUARANTINE 1 /* released handles are reused as late as possible, so that a use after release is noticed */
#else
#define QUARANTINE 0
#endif

bool cn__alive(const cn_tensor *t)
{
    if (!t) return false;
#ifdef CAIRN_DEBUG
    if (t->magic != CN__ALIVE)
        return cn__fail(t->ctx, CN_RELEASED, "a tensor%s%s was used after its release", t->name[0] ? " named " : "",
                        t->name);
#endif
    return true;
}

static cn_tensor *pop_free(cn_ctx *ctx)
{
    cn_tensor *t = ctx->free_handles;
    if (!t || (QUARANTINE && t == ctx->free_handles_last)) return cn__block_new(&ctx->memory, sizeof *t);
    ctx->free_handles = t->next_free;
    return t;
}

static void push_free(cn_ctx *ctx, cn_tensor *t)
{
    t->magic = CN__DEAD;
    t->next_free = NULL;
    if (!ctx->free_handles) {
        ctx->free_handles = ctx->free_handles_last = t;
    } else if (QUARANTINE) {
        ctx->free_handles_last = ctx->free_handles_last->next_free = t;
    } else {
        t->next_free = ctx->free_handles;
        ctx->free_handles = t;
    }
}

static void attach(cn_tensor *t, cn__ref ref)
{
    t->ref = ref;
    cn__result *r = cn__res(ref);
    r->handles++;
    if (!t->kept) return;
    r->kept++;
    if (r->storage) r->storage->keeps++;
}

static void unmark_kept(cn_tensor *t)
{
    cn__result *r = cn__result_of(t);
    r->kept--;
    if (r->storage) r->storage->keeps--;
}

static void detach(cn_tensor *t)
{
    if (t->kept) unmark_kept(t);
    cn__result_of(t)->handles--;
    if (t->ref.node->owner == t) t->ref.node->owner = NULL;
    cn__node_release(t->ref.node);
}

cn_tensor *cn__handle_new(cn_ctx *ctx, cn__ref ref)
{
    cn_tensor *t = NULL;
    if (cn__vec_reserve(&ctx->memory, &ctx->scope, ctx->scope.n + 1, sizeof t)) t = pop_free(ctx);
    if (!t) {
        cn__node_release(ref.node);
        cn__no_memory(ctx, "handle");
        return NULL;
    }
    t->magic = CN__ALIVE;
    t->refs = 1;
    t->kept = 0;
    t->ctx = ctx;
    t->grad = NULL;
    t->name[0] = 0;
    attach(t, ref);
    ((cn_tensor **)ctx->scope.v)[ctx->scope.n++] = t;
    t->prev_all = NULL;
    t->next_all = ctx->handles;
    if (ctx->handles) ctx->handles->prev_all = t;
    ctx->handles = t;
    ctx->count.handles++;
    return t;
}

void cn__handle_rebind(cn_tensor *t, cn__ref ref)
{
    ref.node->refs++;
    detach(t);
    attach(t, ref);
}

static void release(cn_tensor *t)
{
    if (--t->refs > 0) return;
    cn_tensor *grad = t->grad;
    t->grad = NULL;
    if (grad) cn_release(grad);
    detach(t);
    if (t->prev_all) t->prev_all->next_all = t->next_all;
    else t->ctx->handles = t->next_all;
    if (t->next_all) t->next_all->prev_all = t->prev_all;
    t->ctx->count.handles--;
    push_free(t->ctx, t);
}

void cn__hold(cn_tensor *t) { t->refs++; }
void cn__unhold(cn_tensor *t) { release(t); }

cn_tensor *cn_keep(cn_tensor *t)
{
    if (!cn__alive(t)) return NULL;
    t->refs++;
    cn__revive(t->ref); /* a value that was let go becomes pending, before its operands are overwritten */
    if (t->kept++ == 0) {
        cn__result *r = cn__result_of(t);
        r->kept++;
        if (r->storage) r->storage->keeps++;
    }
    return t;
}

void cn_release(cn_tensor *t)
{
    if (!cn__alive(t)) return;
    if (t->kept == 0) {
        cn__fail(t->ctx, CN_RELEASED, "release: the tensor was not kept; cn_release needs a cn_keep before it");
        return;
    }
    if (t->kept == 1) unmark_kept(t);
    t->kept--;
    release(t);
}

cn_scope cn_scope_begin(cn_ctx *ctx) { return (cn_scope){ ctx ? ctx->scope.n : 0 }; }

void cn_scope_end(cn_ctx *ctx, cn_scope scope)
{
    if (!ctx) return;
    while (ctx->scope.n > scope.mark) release(((cn_tensor **)ctx->scope.v)[--ctx->scope.n]);
}

cn_tensor *cn_scope_return(cn_ctx *ctx, cn_scope scope, cn_tensor *t)
{
    if (!ctx) return NULL;
    if (!cn__alive(t)) t = NULL;
    if (t) t->refs++;
    cn_scope_end(ctx, scope);
    if (!t) return NULL;
    if (cn__push(&ctx->memory, &ctx->scope, &t, sizeof t)) return t;
    cn__no_memory(ctx, "handle");
    release(t);
    return NULL;
}

void cn__handles_close(cn_ctx *ctx)
{
    cn_scope_end(ctx, (cn_scope){ 0 });
    while (ctx->handles) { /* kept handles that were never released */
        cn_tensor *t = ctx->handles;
        if (t->kept) unmark_kept(t);
        t->kept = 0;
        t->refs = 1;
        release(t);
    }
    cn__vec_free(&ctx->memory, &ctx->scope, sizeof(cn_tensor *));
}

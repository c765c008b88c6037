/* Handles and scopes. A handle is one reference to its node. A kept handle makes evaluations store its value. */
#include "core/handle.h"

#include "core/call.h"
#include "core/errors.h"
#include "core/layout.h"

/* Handles are cut from slabs, which live as long as their context. A released handle is reused when QUARANTINE others
   have been released since, in debug builds never. One slab is enough for a program that holds a thousand. */
enum { QUARANTINE = 4096, SLAB = QUARANTINE + 1024 };
#ifdef CAIRN_DEBUG
static bool reusable(int released) { return released < 0; }
#else
static bool reusable(int released) { return released > QUARANTINE; }
#endif

typedef struct cn__slab {
    struct cn__slab *next;
    int used;         /* slots from the first on; the others have never been handles */
    cn_tensor *slots; /* of a cache line each */
    char memory[];
} slab;
#define LINE       64
#define SLAB_BYTES (sizeof(slab) + (SLAB + 1) * LINE)
_Static_assert(sizeof(cn_tensor) <= LINE, "a handle is one cache line");

static cn_tensor *slot_of(const slab *s, int i) { return (cn_tensor *)((char *)s->slots + i * LINE); }

static void push_free(cn_ctx *ctx, cn_tensor *t)
{
    t->mark = CN__RELEASED;
    t->next_free = NULL;
    if (ctx->free_handles_last) ctx->free_handles_last->next_free = t;
    else ctx->free_handles = t;
    ctx->free_handles_last = t;
    ctx->free_handles_count++;
}

static slab *new_slab(cn_ctx *ctx)
{
    slab *s = cn__resize(&ctx->memory, NULL, 0, SLAB_BYTES);
    if (!s) return NULL;
    s->slots = (cn_tensor *)(((uintptr_t)s->memory + LINE - 1) / LINE * LINE);
    s->used = 0;
    s->next = ctx->handle_slabs;
    return ctx->handle_slabs = s;
}

static cn_tensor *take_slot(cn_ctx *ctx)
{
    if (reusable(ctx->free_handles_count)) {
        cn_tensor *t = ctx->free_handles;
        ctx->free_handles = t->next_free;
        ctx->free_handles_count--;
        return t;
    }
    slab *s = ctx->handle_slabs;
    if (!s || s->used == SLAB) s = new_slab(ctx);
    return s ? slot_of(s, s->used++) : NULL;
}

bool cn__stale(const cn_tensor *t, const char *who)
{
    return cn__fail(t->ctx, CN_RELEASED, "%s: this tensor was released: its scope ended; cn_keep it to use it longer",
                    cn__called(t->ctx, who));
}

bool cn__of_context(cn_ctx *ctx, const cn_tensor *t, const char *who, const char *what)
{
    if (!t) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must not be NULL", cn__called(ctx, who), what);
    if (!cn__alive_in(t, who)) return false;
    if (t->ctx == ctx) return true;
    cn__fail(t->ctx, CN_BAD_DEVICE, "%s: %s is of this context, the others are of another", cn__called(ctx, who), what);
    return cn__fail(ctx, CN_BAD_DEVICE, "%s: operands must be of one context, but %s is of another",
                    cn__called(ctx, who), what);
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
    if (cn__vec_reserve(&ctx->memory, &ctx->scope, ctx->scope.n + 1, sizeof t)) t = take_slot(ctx);
    if (!t) {
        cn__node_release(ref.node);
        cn__no_memory(ctx, "handle");
        return NULL;
    }
    *t = (cn_tensor){ .mark = CN__ALIVE, .refs = 1, .ctx = ctx };
    attach(t, ref);
    ((cn_tensor **)ctx->scope.v)[ctx->scope.n++] = t;
    ctx->count.handles++;
    return t;
}

void cn__handle_rebind(cn_tensor *t, cn__ref ref)
{
    ref.node->refs++;
    detach(t);
    attach(t, ref);
}

bool cn__set_name(cn_tensor *t, const char *name, size_t bytes)
{
    char *copy = bytes ? cn__block_new(&t->ctx->memory, bytes + 1) : NULL;
    if (bytes && !copy) return cn__no_memory(t->ctx, "name");
    if (t->name) cn__block_free(&t->ctx->memory, t->name, strlen(t->name) + 1);
    t->name = copy;
    if (copy) memcpy(copy, name, bytes), copy[bytes] = 0;
    return true;
}

const char *cn__name_of(cn__ref ref)
{
    for (const slab *s = ref.node->ctx->handle_slabs; s; s = s->next)
        for (int i = 0; i < s->used; i++) {
            const cn_tensor *t = slot_of(s, i);
            if (t->mark == CN__ALIVE && t->ref.node == ref.node && t->name) return t->name;
        }
    return ref.node->op->name;
}

static void release_grad(cn_tensor *t)
{
    cn_tensor *grad = t->grad;
    t->grad = NULL;
    cn__release(grad);
}

static void release(cn_tensor *t)
{
    if (--t->refs > 0) return;
    cn_ctx *ctx = t->ctx;
    t->mark = CN__RELEASED;
    if (t->grad) release_grad(t);
    if (t->name) cn__set_name(t, NULL, 0);
    detach(t);
    t->ref.node = NULL; /* a use without a check crashes at once, in tests, and changes no other value */
    ctx->count.handles--;
    push_free(ctx, t);
}

void cn__hold(cn_tensor *t) { t->refs++; }
void cn__unhold(cn_tensor *t) { release(t); }

/* A count that came round would free a handle that is in use. */
static bool can_count(const cn_tensor *t, const char *who)
{
    return t->refs < INT32_MAX ||
           cn__fail(t->ctx, CN_UNSUPPORTED, "%s: a tensor must be kept less than 2^31 times", who);
}

static void keep(cn_tensor *t)
{
    t->refs++;
    cn__revive(t->ref); /* a value that was let go becomes pending, before its operands are overwritten */
    if (t->kept++) return;
    cn__result *r = cn__result_of(t);
    r->kept++;
    if (r->storage) r->storage->keeps++;
}

static void unkeep(cn_tensor *t)
{
    if (t->kept == 1) unmark_kept(t);
    t->kept--;
    release(t);
}

cn_tensor *cn__keep(cn_tensor *t)
{
    if (!cn__alive(t) || !can_count(t, "keep")) return NULL;
    t->kept_inside++;
    keep(t);
    return t;
}

cn_tensor *cn__take_keep(cn_tensor *t)
{
    if (t) t->kept_inside++;
    return t;
}

void cn__release(cn_tensor *t)
{
    if (!t) return;
    t->kept_inside--;
    unkeep(t);
}

cn_tensor *cn_keep(cn_tensor *t)
{
    CN__CALL call = cn__enter(t ? t->ctx : NULL, "keep");
    if (!call.ctx || !cn__alive(t) || !can_count(t, "keep")) return NULL;
    keep(t);
    return t;
}

void cn_release(cn_tensor *t)
{
    CN__CALL call = cn__enter(t ? t->ctx : NULL, "release");
    if (!call.ctx || !cn__alive(t)) return;
    if (t->kept == t->kept_inside)
        cn__fail(t->ctx, CN_RELEASED, "release: the tensor was not kept; cn_release needs a cn_keep before it");
    else unkeep(t);
}

/* ---- scopes ---- */

cn_scope cn_scope_begin(cn_ctx *ctx) { return (cn_scope){ ctx ? ctx->scope.n : 0 }; }

static void end_scope(cn_ctx *ctx, size_t mark)
{
    if (mark < ctx->scope_floor) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: a callback cannot end a scope that began outside it",
                 cn__called(ctx, "scope_end"));
        mark = ctx->scope_floor;
    }
    while (ctx->scope.n > mark) release(((cn_tensor **)ctx->scope.v)[--ctx->scope.n]);
}

void cn_scope_end(cn_ctx *ctx, cn_scope scope)
{
    CN__CALL call = cn__enter(ctx, "scope_end");
    if (call.ctx) end_scope(ctx, scope.mark);
}

cn_tensor *cn_scope_return(cn_ctx *ctx, cn_scope scope, cn_tensor *t)
{
    CN__CALL call = cn__enter(ctx, "scope_return");
    if (!call.ctx) return NULL;
    if (t && (!cn__of_context(ctx, t, "scope_return", "the tensor") || !can_count(t, "scope_return"))) t = NULL;
    if (t) t->refs++;
    end_scope(ctx, scope.mark);
    if (!t) return NULL;
    if (cn__push(&ctx->memory, &ctx->scope, &t, sizeof t)) return t;
    cn__no_memory(ctx, "handle");
    release(t);
    return NULL;
}

bool cn__scope_return_n(cn_ctx *ctx, cn_scope scope, cn_tensor **t, int n)
{
    bool ok = true;
    for (int k = 0; k < n; k++) ok = ok && t[k] && can_count(t[k], "scope_return");
    for (int k = 0; k < n && ok; k++) t[k]->refs++;
    end_scope(ctx, scope.mark);
    for (int k = 0; k < n && ok; k++) {
        if (cn__push(&ctx->memory, &ctx->scope, &t[k], sizeof t[k])) continue;
        for (; k < n; k++) release(t[k]);
        ok = cn__no_memory(ctx, "handle");
    }
    return ok;
}

static void let_go(cn_tensor *t)
{
    if (t->kept) unmark_kept(t);
    t->kept = t->kept_inside = 0;
    t->refs = 1;
    release(t);
}

static void for_all(cn_ctx *ctx, void (*fn)(cn_tensor *t))
{
    for (slab *s = ctx->handle_slabs; s; s = s->next)
        for (int i = 0; i < s->used; i++)
            if (slot_of(s, i)->mark == CN__ALIVE) fn(slot_of(s, i));
}

void cn__handles_close(cn_ctx *ctx)
{
    end_scope(ctx, 0);
    for_all(ctx, release_grad);
    for_all(ctx, let_go);  /* kept handles that were never released */
    cn__finish_freed(ctx); /* these functions may look at handles and objects for the last time */
    for (slab *s = ctx->handle_slabs, *next; s; s = next) {
        next = s->next;
        cn__resize(&ctx->memory, s, SLAB_BYTES, 0);
    }
    ctx->handle_slabs = NULL;
    cn__vec_free(&ctx->memory, &ctx->scope, sizeof(cn_tensor *));
}

/* Objects of a context, and allocation that sets an error when it fails. */
#include "core/object.h"

#include <limits.h>

#include "core/call.h"
#include "core/errors.h"

#ifdef CAIRN_DEBUG
enum { QUARANTINE = INT_MAX };
#else
enum { QUARANTINE = 1024 }; /* so many freed objects keep their memory; the oldest gives it back first */
#endif

void *cn__object_new(cn_ctx *ctx, size_t bytes, const cn__object_type *type)
{
    cn__object *o = NULL;
    if (ctx->closing) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the context is being closed", type->name);
    else o = cn__alloc(ctx, bytes);
    if (!o) return NULL;
    *o = (cn__object){ .ctx = ctx, .type = type, .next = ctx->objects, .bytes = bytes };
    if (ctx->objects) ctx->objects->prev = o;
    ctx->objects = o;
    return o;
}

static void unlink_object(cn__object *o)
{
    if (o->adopted || o->freed) return;
    if (o->prev) o->prev->next = o->next;
    else o->ctx->objects = o->next;
    if (o->next) o->next->prev = o->prev;
    o->prev = o->next = NULL;
}

static void free_oldest(cn_ctx *ctx)
{
    cn__object *o = ctx->freed_objects;
    ctx->freed_objects = o->next;
    if (!o->next) ctx->freed_objects_last = NULL;
    ctx->freed_objects_count--;
    cn__free(ctx, o, o->bytes);
}

static void destroy(cn__object *o)
{
    cn_ctx *ctx = o->ctx;
    if (o->type->destroy) o->type->destroy(o);
    o->type = NULL;
    o->next = NULL;
    if (ctx->freed_objects_last) ctx->freed_objects_last->next = o;
    else ctx->freed_objects = o;
    ctx->freed_objects_last = o;
    if (++ctx->freed_objects_count > QUARANTINE) free_oldest(ctx);
}

void cn__object_free(void *self)
{
    cn__object *o = self;
    if (!o || o->freed) return;
    unlink_object(o);
    o->freed = true;
    if (o->uses == 0) destroy(o);
}

void *cn__object_use(void *self)
{
    cn__object *o = self;
    if (o) o->uses++;
    return o;
}

void cn__object_unuse(void *self)
{
    cn__object *o = self;
    if (o && --o->uses == 0 && o->freed) destroy(o);
}

bool cn__object_adopt(void *self)
{
    cn__object *o = self;
    if (o->adopted) return false;
    unlink_object(o);
    o->adopted = true;
    return true;
}

bool cn__object_unfit(const void *self, const cn__object_type *type, const char *who)
{
    const cn__object *o = self;
    if (o->freed)
        return cn__fail(o->ctx, CN_RELEASED, "%s: this %s was freed before", cn__called(o->ctx, who), type->name);
    return cn__fail(o->ctx, CN_BAD_ARGUMENT, "%s: needs a %s, got a %s", cn__called(o->ctx, who), type->name,
                    o->type->name);
}

bool cn__object_of(cn_ctx *ctx, const void *self, const cn__object_type *type, const char *who)
{
    const cn__object *o = self;
    if (!o) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the %s must not be NULL", cn__called(ctx, who), type->name);
    if (!cn__object_fits(o, type, who)) return false;
    if (o->ctx == ctx) return true;
    cn__fail(o->ctx, CN_BAD_DEVICE, "%s: the %s is of this context, the others are of another", cn__called(ctx, who),
             type->name);
    return cn__fail(ctx, CN_BAD_DEVICE, "%s: the %s must be of this context, it is of another", cn__called(ctx, who),
                    type->name);
}

void cn__free_by_program(void *self, const cn__object_type *type, const char *who)
{
    cn__object *o = self;
    CN__CALL call = cn__enter_object(o, type, who, true);
    if (!call.ctx) return;
    if (o->adopted)
        cn__fail(o->ctx, CN_BAD_ARGUMENT, "%s: this %s belongs to another %s; free that one", cn__called(o->ctx, who),
                 type->name, type->name);
    else cn__object_free(o);
}

/* The newest is freed first, because it may refer to older ones. */
void cn__objects_close(cn_ctx *ctx)
{
    while (ctx->objects) cn__object_free(ctx->objects);
}

void cn__objects_end(cn_ctx *ctx)
{
    while (ctx->freed_objects) free_oldest(ctx);
}

void *cn__alloc(cn_ctx *ctx, size_t bytes)
{
    if (bytes == 0) return NULL;
    void *p = cn__resize(&ctx->memory, NULL, 0, bytes);
    if (!p) {
        cn__fail(ctx, CN_NO_MEMORY, "out of memory: %zu bytes needed", bytes);
        return NULL;
    }
    return memset(p, 0, bytes);
}

void cn__free(cn_ctx *ctx, void *p, size_t bytes)
{
    if (p) cn__resize(&ctx->memory, p, bytes, 0);
}

char *cn__copy_text(cn_ctx *ctx, const char *text)
{
    if (!text) return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = cn__alloc(ctx, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void cn__free_text(cn_ctx *ctx, char *text)
{
    if (text) cn__free(ctx, text, strlen(text) + 1);
}

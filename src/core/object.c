/* Objects of a context, and allocation that sets an error when it fails. */
#include "core/object.h"

#include "core/errors.h"

void *cn__object_new(cn_ctx *ctx, size_t bytes, void (*destroy)(void *self))
{
    cn__object *o = cn__alloc(ctx, bytes);
    if (!o) return NULL;
    *o = (cn__object){ .ctx = ctx, .next = ctx->objects, .bytes = bytes, .destroy = destroy };
    if (ctx->objects) ctx->objects->prev = o;
    ctx->objects = o;
    return o;
}

static void unlink_object(cn__object *o)
{
    if (o->adopted) return;
    if (o->prev) o->prev->next = o->next;
    else o->ctx->objects = o->next;
    if (o->next) o->next->prev = o->prev;
    o->prev = o->next = NULL;
}

void cn__object_free(void *self)
{
    if (!self) return;
    cn__object *o = self;
    unlink_object(o);
    if (o->destroy) o->destroy(o);
    cn__free(o->ctx, o, o->bytes);
}

bool cn__object_adopt(void *self)
{
    cn__object *o = self;
    if (o->adopted) return false;
    unlink_object(o);
    o->adopted = true;
    return true;
}

/* The newest is freed first, because it may refer to older ones. */
void cn__objects_close(cn_ctx *ctx)
{
    while (ctx->objects) cn__object_free(ctx->objects);
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

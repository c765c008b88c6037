/* core/object.h: objects are freed with their context, unless before: modules, optimizers, loaders, files.

       typedef struct cn_thing { cn__object object; int x; } cn_thing;      the object comes first
       cn_thing *t = cn__object_new(ctx, sizeof *t, thing_destroy);         zeroed; NULL: an error stands
       cn__object_free(t);                                                  calls thing_destroy, then frees the memory

   An object that belongs to another one is adopted: the owner's destroy frees it, the context does not. */
#ifndef CN_CORE_OBJECT_H
#define CN_CORE_OBJECT_H

#include "core/context.h"

typedef struct cn__object {
    cn_ctx *ctx;
    struct cn__object *prev, *next; /* in the context's list; an adopted object is in no list */
    bool adopted;
    size_t bytes;
    void (*destroy)(void *self); /* frees what the object holds, but not the object; may be NULL */
} cn__object;

void cn__objects_close(cn_ctx *ctx);
void *cn__object_new(cn_ctx *ctx, size_t bytes, void (*destroy)(void *self));
void cn__object_free(void *self);  /* NULL is fine */
bool cn__object_adopt(void *self); /* false: it has an owner already */

/* Zeroed memory of the context. NULL: an error is set, or bytes is 0. */
void *cn__alloc(cn_ctx *ctx, size_t bytes);
void cn__free(cn_ctx *ctx, void *p, size_t bytes);
char *cn__copy_text(cn_ctx *ctx, const char *text); /* NULL in, NULL out */
void cn__free_text(cn_ctx *ctx, char *text);

#endif

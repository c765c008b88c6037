/* core/object.h: objects are freed with their context, unless before: modules, optimizers, loaders, files.

       typedef struct cn_thing { cn__object object; int x; } cn_thing;      the object comes first
       static const cn__object_type thing_type = { "thing", thing_destroy };
       cn_thing *t = cn__object_new(ctx, sizeof *t, &thing_type);           zeroed; NULL: an error stands
       if (!cn__is(t, &thing_type)) return;                                 first in every public function
       cn__free_by_program(t, &thing_type);                                 cn_thing_free: checks, then frees
       cn__object_free(t);                                                  the same without a check

   An object that belongs to another one is adopted: the owner's destroy frees it, the context does not. An object that
   another one uses is destroyed after its last user, whoever frees it first.
   A freed object's memory is reused late (enum QUARANTINE in object.c), so that a use after free is an error. */
#ifndef CN_CORE_OBJECT_H
#define CN_CORE_OBJECT_H

#include "core/call.h"

typedef struct cn__object_type {
    const char *name;            /* for errors: "module" */
    void (*destroy)(void *self); /* frees what the object holds, but not the object; may be NULL */
} cn__object_type;

typedef struct cn__object {
    cn_ctx *ctx;
    const cn__object_type *type;    /* NULL: it has been destroyed */
    struct cn__object *prev, *next; /* in the context's list; an adopted or freed object is not in it */
    int uses;                       /* by other objects */
    bool adopted, freed;
    size_t bytes;
} cn__object;

void cn__objects_close(cn_ctx *ctx); /* destroys all objects */
void cn__objects_end(cn_ctx *ctx);   /* frees the memory of destroyed objects */
void *cn__object_new(cn_ctx *ctx, size_t bytes, const cn__object_type *type);
void cn__object_free(void *self);  /* NULL is fine */
bool cn__object_adopt(void *self); /* false: it has an owner already */
void *cn__object_use(void *self);  /* returns self; NULL is fine */
void cn__object_unuse(void *self); /* NULL is fine */
/* A function of the program may free an object while the library works with it:
       CN__USE used = cn__object_use(o);                               till the end of the block o is not destroyed */
static inline void cn__end_use(void **self) { cn__object_unuse(*self); }
#define CN__USE __attribute__((cleanup(cn__end_use), unused)) void *
void cn__free_by_program(void *self, const cn__object_type *type, const char *who); /* NULL is fine */

/* What a function that a program called is given: false for NULL and, with an error, for an object that was freed or is
   of another type. */
bool cn__object_unfit(const void *self, const cn__object_type *type, const char *who); /* sets the error; false */
static inline bool cn__object_fits(const void *self, const cn__object_type *type, const char *who)
{
    const cn__object *o = self;
    return o && ((o->type == type && !o->freed) || cn__object_unfit(o, type, who));
}
#define cn__is(self, type) cn__object_fits(self, type, __func__)

/* A call with an object, as its first lines: CN__CALL call = cn__call_object(o, &type); if (!call.ctx) return false; */
static inline cn__call cn__enter_object(const void *self, const cn__object_type *type, const char *who, bool names)
{
    cn__call call = cn__enter(self ? ((const cn__object *)self)->ctx : NULL, names ? who : NULL);
    if (!call.ctx || cn__object_fits(self, type, who)) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}
#define cn__call_object(self, type)  cn__enter_object(self, type, __func__, true)
#define cn__call_quietly(self, type) cn__enter_object(self, type, __func__, false) /* errors name what it calls */

/* For a further object of a call: an error also if it is NULL or of another context. That error stands in both. */
bool cn__object_of(cn_ctx *ctx, const void *self, const cn__object_type *type, const char *who);

extern const cn__object_type cn__dict_type; /* dict.c */

/* Zeroed memory of the context. NULL: an error is set, or bytes is 0. */
void *cn__alloc(cn_ctx *ctx, size_t bytes);
void cn__free(cn_ctx *ctx, void *p, size_t bytes);
char *cn__copy_text(cn_ctx *ctx, const char *text); /* NULL in, NULL out */
void cn__free_text(cn_ctx *ctx, char *text);

#endif

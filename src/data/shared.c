/* Objects with a reference count: datasets, samplers and transforms, which other objects hold. */
#include "data/data.h"

/* A holder is newer than the object it holds. A context frees its newest object first, so holders are freed first. */
void *cn__shared_new(cn_ctx *ctx, size_t bytes, void (*destroy)(void *self))
{
    cn__shared *s = cn__object_new(ctx, bytes, destroy);
    if (s) s->holds = 1;
    return s;
}

void *cn__shared_hold(void *shared)
{
    cn__shared *s = shared;
    if (s) s->holds++;
    return s;
}

void cn__shared_release(void *shared)
{
    cn__shared *s = shared;
    if (s && --s->holds == 0) cn__object_free(s);
}

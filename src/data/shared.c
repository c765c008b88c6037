#include "data/data.h"

/* Holders are newer than what they hold, and a context frees the newest first: nothing is freed under its holders. */
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

void cn__shared_drop(void *shared)
{
    cn__shared *s = shared;
    if (s && --s->holds == 0) cn__object_free(s);
}

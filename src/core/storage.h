/* core/storage.h: the memory of tensors. It is counted apart from handles and nodes, so that views can share it. */
#ifndef CN_CORE_STORAGE_H
#define CN_CORE_STORAGE_H

#include "core/device.h"

typedef struct cn__storage {
    cn__device *device;
    void *data;
    size_t bytes; /* as counted and freed */
    int refs;     /* results that live in it */
    int keeps;    /* kept handles that mean such a result */
    bool lost;    /* an assignment has taken over its memory */
    bool borrowed;
    bool assignable;           /* holds the value of a handle that is assigned to: all its readers belong together */
    uint32_t component, component_epoch; /* to which part of the pending graph they belong */
    void (*free_fn)(void *user);
    void *user;
    uint32_t stamp, index; /* its number in the present evaluation */
} cn__storage;

cn__storage *cn__storage_new(cn_ctx *ctx, cn__device *d, size_t bytes); /* NULL: an error is set */
void cn__storage_ref(cn__storage *s);
void cn__storage_release(cn_ctx *ctx, cn__storage *s);
void cn__storage_close(cn_ctx *ctx);

/* The arena is one block of memory for the intermediates of plans. All plans share it: only one runs at a time. */
bool cn__arena_reserve(cn_ctx *ctx, size_t bytes);

#endif

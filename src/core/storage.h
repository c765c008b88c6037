/* core/storage.h: a storage is memory of tensors. It is counted apart from handles and nodes: views share it. */
#ifndef CN_CORE_STORAGE_H
#define CN_CORE_STORAGE_H

#include "core/device.h"

/* The values of a storage in another form, as a kernel reads them fastest: packed, transformed. */
typedef struct cn__form {
    struct cn__form *next;
    uint64_t key; /* of the kernel that made it, and of all that decides the form */
    size_t bytes;
    void *data;
} cn__form;

typedef struct cn__storage {
    cn__device *device;
    void *data;
    size_t bytes;       /* allocated: rounded up */
    int64_t refs;       /* results that lie in it */
    int64_t keeps;      /* kept handles of these results */
    bool lost;          /* an assignment has taken over the memory */
    bool borrowed;      /* the memory belongs to the user */
    bool inside;        /* borrowed, but from the library: it ends with the context */
    bool shared;        /* another library may write to it */
    bool fixed;         /* the values are weights that are read often: kernels may keep them in other forms */
    bool assignable;    /* holds the value of a handle that is assigned to: all nodes that read it form one component */
    uint32_t component; /* the component of these nodes, valid in this epoch of the context: */
    uint64_t component_epoch;
    void (*free_fn)(void *user);
    void *user;
    struct cn__storage *next_freed;
    cn__form *forms; /* of a fixed storage */
    uint64_t stamp;  /* the evaluation in which the storage has number `index` */
    uint32_t index;
} cn__storage;

cn__storage *cn__storage_new(cn_ctx *ctx, cn__device *d, size_t bytes); /* NULL: an error is set */
void cn__storage_ref(cn__storage *s);
void cn__storage_release(cn_ctx *ctx, cn__storage *s);
void cn__storage_close(cn_ctx *ctx);

/* Whether nobody outside the library can change the values. */
bool cn__storage_lasts(const cn__storage *s);
/* Allows kernels to keep other forms of the values, as long as they last. */
void cn__storage_fix(cn__storage *s);
/* Another library gets the memory. */
void cn__storage_share(cn_ctx *ctx, cn__storage *s);
/* A form of a fixed storage: *made says whether it is there already, or new and to be filled. NULL: the storage is not
   fixed, or there is no memory; that is no error. */
void *cn__storage_form(cn_ctx *ctx, cn__storage *s, uint64_t key, size_t bytes, bool *made);

/* The arena is one block of memory for the intermediate values of plans. Plans share it, because only one runs. */
bool cn__arena_reserve(cn_ctx *ctx, size_t bytes);

#endif

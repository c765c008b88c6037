/* core/context.h: a context. It holds all state of the library; there are no globals. */
#ifndef CN_CORE_CONTEXT_H
#define CN_CORE_CONTEXT_H

#include <stdatomic.h>

#include "cairn/plan.h"
#include "core/alloc.h"
#include "core/device.h"
#include "core/hash.h"
#include "core/observer.h"

struct cn__node;

enum { CN__SPARES = 4, CN__METAS = 64 };

struct cn_ctx {
    _Atomic(void *) thread; /* the thread that is in a call: call.h */
    int64_t calls;          /* how many of its calls have not ended */
    _Atomic(char) intruded; /* who called meanwhile and may not: errors.h */
    bool operands_named;    /* the error says which operands it is about */
    const char *called;     /* what the program called, or NULL */
    cn_code code;
    char message[512]; /* of the error that stands */
    cn__memory memory;
    const struct cn__engine *engine; /* what core asks of the folders above it: engine.h */
    cn__device *device;              /* where new tensors are made */
    uint64_t seed, next_stream;      /* of random numbers; each random node gets a stream of its own */
    uint64_t next_seq;               /* of nodes */
    cn_logger logger;
    void *logger_user;
    bool eager, trace_plans;
    int64_t no_grad;                /* how many cn_no_grad_begin are open */
    int64_t reads;                  /* how often values were read by the CPU */
    cn_dtype default_dtype;         /* of new parameters */
    uint32_t variant, next_variant; /* of new nodes: cn_checkpoint computes a node a second time as another variant */
    int64_t pending_limit;
    int plan_limit;
    bool evaluating, closing;

    cn__vec scope;      /* of cn_tensor * */
    size_t scope_floor; /* a callback ends no scope below this */
    struct cn__slab *handle_slabs;
    cn_tensor *free_handles, *free_handles_last; /* released, the oldest first */
    int free_handles_count;
    cn__vec dead; /* nodes without references, to be freed: a list, so that freeing does not recurse */
    bool freeing_dead;

    struct cn__meta *metas[CN__METAS]; /* metas that new results may share: meta.c */
    struct cn__node *first, *last;     /* pending nodes, in an order in which they can be computed */
    cn__vec components;                /* of uint32_t: the components of the pending graph, by union-find */
    uint64_t component_epoch; /* numbers of components are valid within one epoch; an empty graph begins a new one */
    uint64_t stamp;           /* the number of the present evaluation */

    cn__vec spare[CN__SPARES];          /* vectors of the last backward, reused by the next */
    struct cn__storage *freed_storages; /* borrowed, and their memory is not freed yet: storage.c */
    void *arena;                        /* of all plans: only one runs at a time */
    size_t arena_bytes;
    struct cn__cache *cache;                               /* of plans */
    struct cn__object *objects;                            /* newest first: object.h */
    struct cn__object *freed_objects, *freed_objects_last; /* destroyed, the oldest first */
    int freed_objects_count;
    cn_counters count;
    cn__observer *observer; /* or NULL */
    struct cn__tracer *tracer; /* notes what is called; NULL: nobody asks: tracer.h */
    uint64_t hash_mask;     /* of plan keys; tests force collisions with it */
    cn__hash_key hash_key;  /* of names from outside */
};

/* A context without device and cache of plans: src/open.c adds both. NULL: no memory. */
cn_ctx *cn__context_new(const cn_desc *desc, const struct cn__engine *engine);

#endif

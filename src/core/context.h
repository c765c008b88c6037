/* core/context.h: a context holds all state of the library: there are no globals. */
#ifndef CN_CORE_CONTEXT_H
#define CN_CORE_CONTEXT_H

#include "cairn/plan.h"
#include "core/alloc.h"
#include "core/device.h"
#include "core/observer.h"

struct cn__node;

enum { CN__SPARES = 5 };

struct cn_ctx {
    cn_code code;
    char message[512]; /* of the error that stands */
    cn__memory memory;
    const struct cn__engine *engine; /* what core asks of the folders above it: engine.h */
    cn__device *device;              /* where new tensors are made */
    uint64_t seed, next_stream;
    uint64_t next_seq;
    cn_logger logger;
    void *logger_user;
    bool eager, trace_plans;
    int no_grad;            /* depth */
    cn_dtype default_dtype; /* of new parameters */
    uint16_t variant, next_variant;
    int64_t pending_limit;
    int plan_limit;
    bool evaluating;

    cn__vec scope;      /* of cn_tensor * */
    cn_tensor *handles; /* all that are alive */
    cn_tensor *free_handles, *free_handles_last;
    cn__vec dead; /* nodes without references, to be freed: a list, so that freeing does not recurse */
    bool freeing_dead;

    struct cn__node *first, *last; /* pending */
    cn__vec components;                 /* of uint32_t: union-find over connected parts of the pending graph */
    uint32_t component_epoch;
    uint32_t stamp; /* counts evaluations */

    cn__vec spare[CN__SPARES]; /* vectors of the last backward, for the next */
    void *arena;               /* shared by all plans: only one runs at a time */
    size_t arena_bytes;
    struct cn__cache *cache;    /* of plans */
    struct cn__object *objects; /* newest first: object.h */
    cn_counters count;
    cn__observer *observer;   /* NULL: nobody looks on */
    uint64_t hash_mask; /* tests plant collisions with it */
};

/* A context without a device and without a cache of plans, which src/open.c adds; NULL: no memory. */
cn_ctx *cn__context_new(const cn_desc *desc, const struct cn__engine *engine);

#endif

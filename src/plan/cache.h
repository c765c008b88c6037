/* plan/cache.h: the plans of a context, found by their key. The hash selects a candidate; the whole key is compared. */
#ifndef CN_PLAN_CACHE_H
#define CN_PLAN_CACHE_H

#include "plan/plan.h"

typedef struct cn__cache {
    cn__plan *slots[512];                           /* by hash; plans of one slot are chained */
    cn__plan *newest, *oldest;                      /* by last use */
    cn__vec nodes, leaves, key, storages, pointers; /* of the present evaluation; the memory serves the next one */
} cn__cache;

cn__plan *cn__cache_find(cn__cache *c, uint64_t hash, const uint64_t *key, size_t n);
/* Inserts the plan; a full cache frees the least recently used one. */
bool cn__cache_add(cn_ctx *ctx, cn__plan *p, uint64_t hash, const uint64_t *key, size_t n);

#endif

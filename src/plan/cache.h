/* cache.h: plans by the graph they are for. The hash only names a candidate; the plan key decides. */
#ifndef CN_PLAN_CACHE_H
#define CN_PLAN_CACHE_H

#include "plan/plan.h"

typedef struct cn__cache {
    cn__plan *slots[512];
    cn__plan *newest, *oldest;
    cn__vec nodes, leaves, key, storages, pointers; /* of the present evaluation: kept to be used again */
} cn__cache;

cn__plan *cn__cache_find(cn__cache *c, uint64_t hash, const uint64_t *key, size_t n);
bool cn__cache_add(cn_ctx *ctx, cn__plan *p, uint64_t hash, const uint64_t *key,
                   size_t n); /* the least recently used goes */

#endif

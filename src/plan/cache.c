/* The cache of plans: a hash table, and a list in the order of last use. */
#include "plan/cache.h"

#include "core/errors.h"
#include "plan/evaluate.h"

#define SLOTS (sizeof(((cn__cache *)0)->slots) / sizeof(cn__plan *))

static void unlink_use(cn__cache *c, cn__plan *p)
{
    *(p->newer ? &p->newer->older : &c->newest) = p->older;
    *(p->older ? &p->older->newer : &c->oldest) = p->newer;
}

static void link_newest(cn__cache *c, cn__plan *p)
{
    p->newer = NULL;
    p->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = p;
    c->newest = p;
}

cn__plan *cn__cache_find(cn__cache *c, uint64_t hash, const uint64_t *key, size_t n)
{
    for (cn__plan *p = c->slots[hash % SLOTS]; p; p = p->chain) {
        if (p->hash != hash || p->key_length != n || memcmp(p->key, key, n * sizeof *key)) continue;
        if (p != c->newest) {
            unlink_use(c, p);
            link_newest(c, p);
        }
        return p;
    }
    return NULL;
}

static void remove_plan(cn_ctx *ctx, cn__plan *p)
{
    cn__cache *c = ctx->cache;
    cn__plan **at = &c->slots[p->hash % SLOTS];
    while (*at != p) at = &(*at)->chain;
    *at = p->chain;
    unlink_use(c, p);
    ctx->count.plans--;
    p->removed = true;
    if (!p->recordings) cn__plan_free(ctx, p);
}

void cn__cache_unpin(cn_ctx *ctx, cn__plan *p)
{
    if (--p->recordings == 0 && p->removed) cn__plan_free(ctx, p);
}

bool cn__cache_add(cn_ctx *ctx, cn__plan *p, uint64_t hash, const uint64_t *key, size_t n)
{
    cn__cache *c = ctx->cache;
    p->key = cn__bump_new(&ctx->memory, &p->memory, n * sizeof *key + 1);
    if (!p->key) return cn__no_memory(ctx, "plan");
    memcpy(p->key, key, n * sizeof *key);
    p->key_length = n;
    p->hash = hash;
    while (ctx->count.plans >= ctx->plan_limit && c->oldest) remove_plan(ctx, c->oldest);
    p->chain = c->slots[hash % SLOTS];
    c->slots[hash % SLOTS] = p;
    link_newest(c, p);
    ctx->count.plans++;
    return true;
}

bool cn__cache_open(cn_ctx *ctx)
{
    ctx->cache = cn__resize(&ctx->memory, NULL, 0, sizeof *ctx->cache);
    if (!ctx->cache) return false;
    memset(ctx->cache, 0, sizeof *ctx->cache);
    return true;
}

void cn__cache_close(cn_ctx *ctx)
{
    cn__cache *c = ctx->cache;
    if (!c) return;
    while (c->oldest) remove_plan(ctx, c->oldest);
    cn__vec_free(&ctx->memory, &c->nodes, sizeof(cn__node *));
    cn__vec_free(&ctx->memory, &c->leaves, sizeof(cn__ref));
    cn__vec_free(&ctx->memory, &c->key, sizeof(uint64_t));
    cn__vec_free(&ctx->memory, &c->storages, sizeof(cn__storage *));
    cn__vec_free(&ctx->memory, &c->pointers, sizeof(void *));
    cn__resize(&ctx->memory, c, sizeof *c, 0);
}

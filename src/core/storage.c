/* Storages: the memory of tensors. Freed memory is cached by size: a training loop needs the same sizes again. */
#include "core/storage.h"

#include "core/call.h"
#include "core/errors.h"
#include "core/util.h"

#define CACHE_FLOOR ((size_t)64 << 20) /* bytes that may be cached, besides half of what is live */

static size_t room_for(size_t bytes) { return bytes ? cn__round_up_bytes(bytes, bytes < 4096 ? 64 : 4096) : 64; }

static int bin_of(size_t bytes)
{
    int bin = 0;
    while (bytes >>= 1) bin++;
    return bin < 47 ? bin : 47;
}

static void free_storage(cn_ctx *ctx, cn__storage *s)
{
    s->device->table->free(s->device, s->data, s->bytes);
    cn__block_free(&ctx->memory, s, sizeof *s);
}

static void flush_cache(cn_ctx *ctx)
{
    for (int bin = 0; bin < 48; bin++) {
        for (cn__storage *s = ctx->memory.cached[bin], *next; s; s = next) {
            next = s->user;
            free_storage(ctx, s);
        }
        ctx->memory.cached[bin] = NULL;
    }
    ctx->memory.cached_bytes = 0;
}

static cn__storage *from_cache(cn_ctx *ctx, cn__device *d, size_t bytes)
{
    void **slot = &ctx->memory.cached[bin_of(bytes)];
    for (cn__storage *s; (s = *slot); slot = &s->user) {
        if (s->bytes != bytes || s->device != d) continue;
        *slot = s->user;
        ctx->memory.cached_bytes -= bytes;
        return s;
    }
    return NULL;
}

static void count(cn_ctx *ctx, size_t bytes)
{
    cn__memory *m = &ctx->memory;
    m->live += bytes;
    if (m->live + ctx->arena_bytes > m->peak) m->peak = m->live + ctx->arena_bytes;
}

static bool fits(cn_ctx *ctx, size_t bytes)
{
    cn__memory *m = &ctx->memory;
    if (!m->limit || m->live + ctx->arena_bytes + bytes <= m->limit) return true;
    return cn__fail(ctx, CN_NO_MEMORY, "the memory limit is %zu bytes: %zu are in use, %zu more are needed", m->limit,
                    m->live + ctx->arena_bytes, bytes);
}

static void *alloc(cn_ctx *ctx, cn__device *d, size_t bytes)
{
    void *p = d->table->alloc(d, bytes);
    if (p) return p;
    flush_cache(ctx);
    return d->table->alloc(d, bytes);
}

cn__storage *cn__storage_new(cn_ctx *ctx, cn__device *d, size_t bytes)
{
    bytes = room_for(bytes);
    if (!fits(ctx, bytes)) return NULL;
    cn__storage *s = from_cache(ctx, d, bytes);
    void *data = s ? s->data : NULL;
    if (!s) {
        s = cn__block_new(&ctx->memory, sizeof *s);
        data = s ? alloc(ctx, d, bytes) : NULL;
        if (!data) {
            cn__block_free(&ctx->memory, s, sizeof *s);
            cn__fail(ctx, CN_NO_MEMORY, "out of memory: %zu bytes needed on %s", bytes, d->name);
            return NULL;
        }
    }
    *s = (cn__storage){ .device = d, .data = data, .bytes = bytes, .refs = 1 };
    count(ctx, bytes);
    return s;
}

void cn__storage_ref(cn__storage *s) { s->refs++; }

/* ---- other forms of values ---- */

bool cn__storage_lasts(const cn__storage *s) { return (!s->borrowed || s->inside) && !s->shared; }

void cn__storage_fix(cn__storage *s) { s->fixed |= cn__storage_lasts(s); }

static void free_forms(cn_ctx *ctx, cn__storage *s)
{
    for (cn__form *f = s->forms, *next; f; f = next) {
        next = f->next;
        ctx->memory.live -= f->bytes;
        s->device->table->free(s->device, f->data, f->bytes);
        cn__block_free(&ctx->memory, f, sizeof *f);
    }
    s->forms = NULL;
}

void cn__storage_share(cn_ctx *ctx, cn__storage *s)
{
    s->shared = true;
    s->fixed = false;
    free_forms(ctx, s);
}

void *cn__storage_form(cn_ctx *ctx, cn__storage *s, uint64_t key, size_t bytes, bool *made)
{
    *made = true;
    if (!s->fixed || s->lost) return NULL;
    for (cn__form *f = s->forms; f; f = f->next)
        if (f->key == key && f->bytes == bytes) return f->data;
    const cn__memory *m = &ctx->memory;
    if (m->limit && m->live + ctx->arena_bytes + bytes > m->limit) return NULL;
    cn__form *f = cn__block_new(&ctx->memory, sizeof *f);
    void *data = f ? s->device->table->alloc(s->device, bytes) : NULL;
    if (!data) {
        cn__block_free(&ctx->memory, f, sizeof *f);
        return NULL;
    }
    *f = (cn__form){ .next = s->forms, .key = key, .bytes = bytes, .data = data };
    s->forms = f;
    count(ctx, bytes);
    *made = false;
    return data;
}

static void give_back(cn_ctx *ctx, cn__storage *s)
{
    free_forms(ctx, s);
    if (s->borrowed || s->lost) {
        cn__block_free(&ctx->memory, s, sizeof *s);
        return;
    }
    ctx->memory.live -= s->bytes;
    if (ctx->memory.cached_bytes + s->bytes > CACHE_FLOOR + ctx->memory.live / 2) {
        free_storage(ctx, s);
        return;
    }
    void **slot = &ctx->memory.cached[bin_of(s->bytes)];
    s->user = *slot;
    *slot = s;
    ctx->memory.cached_bytes += s->bytes;
}

void cn__storage_release(cn_ctx *ctx, cn__storage *s)
{
    if (!s || --s->refs > 0) return;
    if (s->free_fn) {
        s->next_freed = ctx->freed_storages;
        ctx->freed_storages = s;
    } else give_back(ctx, s);
}

/* A program's free_fn may use the context: it runs when no other call is under way. */
void cn__finish_freed(cn_ctx *ctx)
{
    cn__storage *list = ctx->freed_storages;
    ctx->freed_storages = NULL;
    for (cn__storage *s = list, *next; s; s = next) {
        next = s->next_freed;
        cn__outside out = cn__go_out(ctx);
        s->free_fn(s->user);
        cn__come_back(ctx, out);
        give_back(ctx, s);
    }
}

bool cn__arena_reserve(cn_ctx *ctx, size_t bytes)
{
    if (bytes <= ctx->arena_bytes) return true;
    bytes = room_for(bytes);
    size_t old = ctx->arena_bytes;
    if (ctx->arena) ctx->device->table->free(ctx->device, ctx->arena, old);
    ctx->arena = NULL;
    ctx->arena_bytes = 0;
    if (!fits(ctx, bytes)) return false;
    ctx->arena = alloc(ctx, ctx->device, bytes);
    if (!ctx->arena) return cn__fail(ctx, CN_NO_MEMORY, "out of memory: %zu bytes needed for the arena", bytes);
    ctx->arena_bytes = bytes;
    count(ctx, 0);
    return true;
}

void cn__storage_close(cn_ctx *ctx)
{
    flush_cache(ctx);
    if (ctx->arena) ctx->device->table->free(ctx->device, ctx->arena, ctx->arena_bytes);
}

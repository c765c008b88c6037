/* Allocates blocks of GPU memory from slabs. A kernel binds whole slabs and gets the offsets of its operands as
   numbers, so operands may overlap, and one bind group serves as long as there is one slab. A slab grows by a copy into
   a larger buffer. When a slab has reached its limit, another slab is added. */
#include <stdlib.h>

#include "gpu/backend.h"

#define STEP        ((size_t)64)
#define FIRST_BYTES ((size_t)4 << 20)
#define MOST_BYTES  ((size_t)1 << 30)

typedef struct span {
    size_t at, bytes;
} span;

static cn__memory *memory_of(const cn__gpu_heap *h) { return &h->gpu->ctx->memory; }

static void remove_span(cn__gpu_slab *s, size_t i)
{
    span *f = s->free.v;
    memmove(f + i, f + i + 1, (s->free.n - i - 1) * sizeof *f);
    s->free.n--;
}

/* Inserts a free span. There is always room: n blocks leave at most n + 1 spans, which were reserved with the blocks.
   */
static void insert_span(cn__gpu_slab *s, size_t at, size_t bytes)
{
    span *f = s->free.v;
    size_t lo = 0, hi = s->free.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (f[mid].at < at) lo = mid + 1;
        else hi = mid;
    }
    memmove(f + lo + 1, f + lo, (s->free.n - lo) * sizeof *f);
    f[lo] = (span){ at, bytes };
    s->free.n++;
    if (lo + 1 < s->free.n && f[lo].at + f[lo].bytes == f[lo + 1].at) {
        f[lo].bytes += f[lo + 1].bytes;
        remove_span(s, lo + 1);
    }
    if (lo > 0 && f[lo - 1].at + f[lo - 1].bytes == f[lo].at) {
        f[lo - 1].bytes += f[lo].bytes;
        remove_span(s, lo);
    }
}

static bool allocate(cn__gpu_slab *s, size_t bytes, size_t *at)
{
    span *f = s->free.v;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->free.n; i++)
        if (f[i].bytes >= bytes && (best == SIZE_MAX || f[i].bytes < f[best].bytes)) best = i;
    if (best == SIZE_MAX) return false;
    *at = f[best].at;
    f[best].at += bytes;
    f[best].bytes -= bytes;
    if (!f[best].bytes) remove_span(s, best);
    return true;
}

/* ---- slabs ---- */

static size_t free_at_end(const cn__gpu_slab *s)
{
    const span *last = s->free.n ? (const span *)s->free.v + s->free.n - 1 : NULL;
    return last && last->at + last->bytes == s->bytes ? last->bytes : 0;
}

static bool affordable(const cn__gpu_heap *h, size_t bytes)
{
    size_t limit = h->gpu->memory_limit, live = h->gpu->stats.live_bytes;
    return bytes <= limit && live <= limit - bytes;
}

static bool reserve_spans(cn__gpu_heap *h, cn__gpu_slab *s)
{
    return cn__vec_reserve(memory_of(h), &s->free, s->blocks + 3, sizeof(span));
}

static bool new_buffer(cn__gpu_heap *h, cn__gpu_slab *s, size_t bytes)
{
    if (!affordable(h, bytes) || !reserve_spans(h, s)) return false;
    cn__gpu_buffer *b = cn__gpu_buffer_new(h->gpu, bytes);
    if (!b) return false;
    if (s->buffer && !cn__gpu_copy(h->gpu, b, 0, s->buffer, 0, s->bytes)) {
        cn__gpu_buffer_free(h->gpu, b);
        return false;
    }
    if (s->buffer) {
        cn__gpu_buffer_free(h->gpu, s->buffer);
        cn__gpu_trim(h->gpu);
    }
    s->buffer = b;
    s->version++;
    insert_span(s, s->bytes, bytes - s->bytes);
    s->bytes = bytes;
    return true;
}

static bool grow(cn__gpu_heap *h, cn__gpu_slab *s, size_t bytes)
{
    size_t least = s->bytes + bytes - free_at_end(s), most = h->slab_limit;
    if (least > most) return false;
    size_t twice = s->bytes * 2 < most ? s->bytes * 2 : most;
    return (twice > least && new_buffer(h, s, twice)) || new_buffer(h, s, least);
}

/* The first of n neighbouring places without a slab; -1: there are none. */
static int find_places(const cn__gpu_heap *h, int n)
{
    for (int i = 0, run = 0; i < CN__GPU_SLABS; i++) {
        run = h->slabs[i].buffer ? 0 : run + 1;
        if (run == n) return i + 1 - n;
    }
    return -1;
}

static bool add_slab(cn__gpu_heap *h, size_t bytes)
{
    int at = find_places(h, 1);
    if (at < 0 || bytes > h->slab_limit) return false;
    cn__gpu_slab *s = &h->slabs[at];
    size_t wanted = bytes > h->first_bytes ? bytes : h->first_bytes;
    if (!new_buffer(h, s, wanted) && (wanted == bytes || !new_buffer(h, s, bytes))) return false;
    h->ordinary++;
    s->birth++;
    if (at >= h->n) h->n = at + 1;
    return true;
}

static void free_slab(cn__gpu_heap *h, cn__gpu_slab *s)
{
    cn__gpu_buffer_free(h->gpu, s->buffer);
    s->buffer = NULL;
    s->bytes = 0;
    s->wide = false;
}

static void free_wide(cn__gpu_heap *h, const cn__gpu_block *b)
{
    for (int i = 0; i < b->n_slabs; i++) free_slab(h, &h->slabs[b->slab + i]);
    cn__gpu_trim(h->gpu); /* too large to be kept in the pool */
}

static bool allocate_wide(cn__gpu_heap *h, cn__gpu_block *b, size_t bytes)
{
    int n = (int)((bytes + h->slab_limit - 1) / h->slab_limit), first = n <= CN__GPU_SLABS ? find_places(h, n) : -1;
    if (first < 0 || !affordable(h, bytes)) return false;
    *b = (cn__gpu_block){ first, 0, 0, bytes };
    for (int i = 0; i < n; i++, b->n_slabs++) {
        cn__gpu_slab *s = &h->slabs[first + i];
        size_t left = bytes - (size_t)i * h->slab_limit;
        s->buffer = cn__gpu_buffer_new(h->gpu, left < h->slab_limit ? left : h->slab_limit);
        if (!s->buffer) {
            free_wide(h, b);
            return false;
        }
        s->bytes = s->buffer->bytes;
        s->wide = true;
        s->version++;
        s->birth++;
    }
    if (first + n > h->n) h->n = first + n;
    return true;
}

static bool allocate_anywhere(cn__gpu_heap *h, size_t bytes, int *slab, size_t *at)
{
    for (*slab = 0; *slab < h->n; ++*slab)
        if (!h->slabs[*slab].wide && allocate(&h->slabs[*slab], bytes, at)) return true;
    return false;
}

static size_t size_from(const char *text, size_t otherwise)
{
    long long n = text ? atoll(text) : 0;
    return n > 0 ? (size_t)n : otherwise;
}

bool cn__gpu_heap_open(cn__gpu_heap *h, cn__gpu *g)
{
    uint64_t most = g->limits.maxStorageBufferBindingSize;
    if (g->limits.maxBufferSize < most) most = g->limits.maxBufferSize;
    if (most > MOST_BYTES) most = MOST_BYTES;
    *h = (cn__gpu_heap){ .gpu = g, .first_bytes = FIRST_BYTES };
    h->slab_limit = size_from(getenv("CAIRN_GPU_SLAB"), (size_t)most) / STEP * STEP;
    if (h->slab_limit > most) h->slab_limit = (size_t)most / STEP * STEP;
    if (h->first_bytes > h->slab_limit) h->first_bytes = h->slab_limit;
    if (!add_slab(h, STEP)) return cn__no_memory(g->ctx, "gpu");
    size_t at;
    return allocate(&h->slabs[0], CN__GPU_STATUS_WORDS * sizeof(uint32_t), &at);
}

void cn__gpu_heap_close(cn__gpu_heap *h)
{
    for (int i = 0; i < h->n; i++) {
        free_slab(h, &h->slabs[i]);
        cn__vec_free(memory_of(h), &h->slabs[i].free, sizeof(span));
    }
    h->n = 0;
}

/* ---- live memory: all except free spans, the arena, and storage that storage.c keeps for reuse ---- */

#define GAP ((size_t)1024) /* bytes: ranges with a smaller gap between them become one */

static int by_address(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool add_dead(cn__gpu_heap *h, cn__vec *dead, const cn__gpu_block *b, int slab)
{
    if (!b || slab < b->slab || slab >= b->slab + b->n_slabs) return true;
    span whole = { 0, h->slabs[slab].bytes }, part = { (size_t)b->word * sizeof(uint32_t), b->bytes };
    return cn__push(memory_of(h), dead, b->n_slabs > 1 ? &whole : &part, sizeof(span));
}

static bool find_dead(cn__gpu_heap *h, cn__vec *dead, int slab)
{
    const cn__gpu_slab *s = &h->slabs[slab];
    const cn_ctx *ctx = h->gpu->ctx;
    if (!cn__vec_reserve(memory_of(h), dead, s->free.n + 2, sizeof(span))) return false;
    if (s->free.n) memcpy(dead->v, s->free.v, s->free.n * sizeof(span));
    dead->n = s->free.n;
    bool ok = add_dead(h, dead, ctx->arena, slab);
    for (int bin = 0; bin < 48; bin++) {
        const cn__storage *c = ctx->memory.cached[bin];
        for (; c && ok; c = c->user)
            if (c->device == ctx->device) ok = add_dead(h, dead, c->data, slab);
    }
    if (ok && dead->n > 1) qsort(dead->v, dead->n, sizeof(span), by_address);
    return ok;
}

static bool add_live(cn__gpu_heap *h, cn__vec *ranges, int slab, size_t at, size_t end)
{
    if (at >= end) return true;
    cn__gpu_range *last = ranges->n ? (cn__gpu_range *)ranges->v + ranges->n - 1 : NULL;
    if (last && last->slab == slab && at - (last->at + last->bytes) < GAP) {
        last->bytes = end - last->at;
        return true;
    }
    return cn__push(memory_of(h), ranges, &(cn__gpu_range){ slab, at, end - at }, sizeof(cn__gpu_range));
}

bool cn__gpu_heap_live(cn__gpu_heap *h, cn__vec *ranges)
{
    cn__vec dead = { 0 };
    bool ok = true;
    ranges->n = 0;
    for (int i = 0; i < h->n && ok; i++) {
        size_t at = 0;
        ok = find_dead(h, &dead, i);
        for (size_t k = 0; k < dead.n && ok; k++) {
            const span *d = (const span *)dead.v + k;
            ok = add_live(h, ranges, i, at, d->at);
            at = d->at + d->bytes;
        }
        ok = ok && add_live(h, ranges, i, at, h->slabs[i].bytes);
    }
    cn__vec_free(memory_of(h), &dead, sizeof(span));
    return ok;
}

/* ---- blocks ---- */

static bool allocate_block(cn__gpu_heap *h, cn__gpu_block *b, size_t bytes)
{
    int slab;
    size_t at;
    bool ok = allocate_anywhere(h, bytes, &slab, &at);
    for (int i = 0; i < h->n && !ok; i++)
        ok = h->slabs[i].buffer && !h->slabs[i].wide && grow(h, &h->slabs[i], bytes) &&
             allocate_anywhere(h, bytes, &slab, &at);
    if (!ok) ok = add_slab(h, bytes) && allocate_anywhere(h, bytes, &slab, &at);
    if (!ok) return false;
    cn__gpu_slab *s = &h->slabs[slab];
    if (!reserve_spans(h, s)) {
        insert_span(s, at, bytes); /* the list has room for the span that was just removed */
        return false;
    }
    s->blocks++;
    *b = (cn__gpu_block){ slab, 1, (uint32_t)(at / sizeof(uint32_t)), bytes };
    return true;
}

cn__gpu_block *cn__gpu_block_new(cn__gpu_heap *h, size_t bytes)
{
    bytes = bytes ? (bytes + STEP - 1) / STEP * STEP : STEP;
    const bool clean = h->gpu->ctx->code == CN_OK;
    cn__gpu_block *b = cn__block_new(memory_of(h), sizeof *b);
    bool ok = b && (bytes > h->slab_limit ? allocate_wide : allocate_block)(h, b, bytes);
    if (clean && h->gpu->ctx->code == CN_NO_MEMORY)
        cn_error_clear(h->gpu->ctx); /* the caller may find memory elsewhere */
    if (ok) return b;
    cn__block_free(memory_of(h), b, sizeof *b);
    return NULL;
}

void cn__gpu_block_free(cn__gpu_heap *h, cn__gpu_block *b)
{
    if (!b) return;
    if (b->n_slabs > 1) {
        free_wide(h, b);
    } else {
        h->slabs[b->slab].blocks--;
        insert_span(&h->slabs[b->slab], (size_t)b->word * sizeof(uint32_t), b->bytes);
    }
    cn__block_free(memory_of(h), b, sizeof *b);
}

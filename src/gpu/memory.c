/* GPU buffers: created by the driver, kept in a pool by size class when they are freed. */
#include "gpu/gpu.h"

/* Size classes: from 256 bytes, four for each power of two, so at most a fifth of a buffer is unused. */
static size_t class_bytes(int class)
{
    size_t octave = (size_t)256 << (class / 4);
    return octave + octave / 4 * (size_t)(class % 4);
}

static int class_of(size_t bytes)
{
    int class = 0;
    while (class + 4 < CN__GPU_CLASSES && class_bytes(class + 4) <= bytes) class += 4;
    while (class + 1 < CN__GPU_CLASSES && class_bytes(class) < bytes) class ++;
    return class;
}

static const WGPUBufferUsage usages[CN__GPU_USES] = {
    [CN__GPU_STORAGE] = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
    [CN__GPU_READBACK] = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst,
    [CN__GPU_QUERIES] = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc,
};

/* ---- the driver's buffers ---- */

static WGPUBuffer try_buffer(cn__gpu *g, size_t bytes, WGPUBufferUsage usage, bool mapped)
{
    WGPUBufferDescriptor d = {
        .label = { NULL, WGPU_STRLEN }, .usage = usage, .size = bytes, .mappedAtCreation = mapped
    };
    WGPUBuffer handle = g->w->DeviceCreateBuffer(g->device, &d);
    if (!g->fault.set && !g->fault.lost) return handle;
    if (handle) g->w->BufferRelease(handle);
    return NULL;
}

static bool is_refused(cn__gpu *g)
{
    if (g->fail_after > 0) return --g->fail_after == 0;
    if (g->fail_after < -1) g->fail_after++;
    else return g->fail_after == -1;
    return false;
}

WGPUBuffer cn__gpu_make_buffer(cn__gpu *g, size_t bytes, WGPUBufferUsage usage, bool mapped)
{
    if (!cn__gpu_ok(g, "gpu: memory")) return NULL;
    if (bytes > g->limits.maxBufferSize) {
        cn__fail(g->ctx, CN_NO_MEMORY, "gpu: memory: %zu bytes requested, but \"%s\" has no buffers above %llu", bytes,
                 g->info.name, (unsigned long long)g->limits.maxBufferSize);
        return NULL;
    }
    if (is_refused(g)) {
        cn__fail(g->ctx, CN_NO_MEMORY, "gpu: memory: %zu bytes are refused by the test setting fail_after", bytes);
        return NULL;
    }
    WGPUBuffer handle = try_buffer(g, bytes, usage, mapped);
    if (!handle && g->stats.pooled && !g->fault.lost) { /* the pool may hold the memory that is missing */
        cn__gpu_clear_fault(g);
        cn__gpu_trim(g);
        handle = try_buffer(g, bytes, usage, mapped);
    }
    if (!handle && cn__gpu_ok(g, "gpu: memory"))
        cn__fail(g->ctx, CN_NO_MEMORY, "gpu: memory: the driver could not allocate %zu bytes", bytes);
    if (handle) g->stats.created++;
    return handle;
}

/* Call this after the commands that use the buffer were submitted. */
void cn__gpu_destroy_buffer(cn__gpu *g, WGPUBuffer handle)
{
    if (!handle) return;
    if (!g->fault.lost) g->w->BufferDestroy(handle);
    g->w->BufferRelease(handle);
}

/* ---- pooled buffers ---- */

static void list_used(cn__gpu *g, cn__gpu_buffer *b)
{
    b->prev = NULL;
    b->next = g->in_use;
    if (b->next) b->next->prev = b;
    g->in_use = b;
    g->stats.live++;
    g->stats.live_bytes += b->capacity;
    size_t held = g->stats.live_bytes + g->stats.pooled_bytes;
    if (held > g->stats.peak_bytes) g->stats.peak_bytes = held;
}

static void unlist_used(cn__gpu *g, cn__gpu_buffer *b)
{
    if (b->prev) b->prev->next = b->next;
    else g->in_use = b->next;
    if (b->next) b->next->prev = b->prev;
    g->stats.live--;
    g->stats.live_bytes -= b->capacity;
}

static cn__gpu_buffer *from_pool(cn__gpu *g, int class, cn__gpu_use use)
{
    cn__gpu_buffer *b = g->pool[use][class];
    if (!b) return NULL;
    g->pool[use][class] = b->next;
    g->stats.pooled--;
    g->stats.pooled_bytes -= b->capacity;
    g->stats.reused++;
    return b;
}

static bool make_room(cn__gpu *g, size_t capacity)
{
    size_t limit = g->memory_limit, live = g->stats.live_bytes;
    if (capacity > limit || live > limit - capacity)
        return cn__fail(g->ctx, CN_NO_MEMORY,
                        "gpu: out of memory: %zu bytes requested, but %zu of the limit of %zu bytes are in use",
                        capacity, live, limit);
    if (g->stats.pooled_bytes > limit - capacity - live) cn__gpu_trim(g);
    return true;
}

static cn__gpu_buffer *create(cn__gpu *g, int class, cn__gpu_use use)
{
    size_t capacity = class_bytes(class);
    if (capacity > g->limits.maxBufferSize) capacity = g->limits.maxBufferSize & ~(size_t)3;
    if (!make_room(g, capacity)) return NULL;
    cn__gpu_buffer *b = cn__block_new(&g->ctx->memory, sizeof *b);
    if (!b) {
        cn__no_memory(g->ctx, "gpu");
        return NULL;
    }
    *b = (cn__gpu_buffer){ .handle = cn__gpu_make_buffer(g, capacity, usages[use], false),
                           .capacity = capacity,
                           .use = use };
    if (b->handle) return b;
    cn__block_free(&g->ctx->memory, b, sizeof *b);
    return NULL;
}

cn__gpu_buffer *cn__gpu_buffer_for(cn__gpu *g, size_t bytes, cn__gpu_use use)
{
    if (!cn__gpu_ok(g, "gpu: memory")) return NULL;
    if (bytes > (g->limits.maxBufferSize & ~(uint64_t)3)) {
        cn__fail(g->ctx, CN_NO_MEMORY, "gpu: memory: %zu bytes requested, but \"%s\" has no buffers above %llu", bytes,
                 g->info.name, (unsigned long long)g->limits.maxBufferSize);
        return NULL;
    }
    int class = class_of(bytes);
    cn__gpu_buffer *b = from_pool(g, class, use);
    if (!b) b = create(g, class, use);
    if (!b) return NULL;
    b->bytes = bytes;
    list_used(g, b);
    return b;
}

cn__gpu_buffer *cn__gpu_buffer_new(cn__gpu *g, size_t bytes) { return cn__gpu_buffer_for(g, bytes, CN__GPU_STORAGE); }

/* Recorded commands may still use the buffer: the commands of its next owner are recorded behind them. */
void cn__gpu_buffer_free(cn__gpu *g, cn__gpu_buffer *b)
{
    if (!b) return;
    unlist_used(g, b);
    int class = class_of(b->bytes);
    b->next = g->pool[b->use][class];
    g->pool[b->use][class] = b;
    g->stats.pooled++;
    g->stats.pooled_bytes += b->capacity;
}

static void destroy(cn__gpu *g, cn__gpu_buffer *b)
{
    cn__gpu_destroy_buffer(g, b->handle);
    cn__block_free(&g->ctx->memory, b, sizeof *b);
}

static void empty_pool(cn__gpu *g)
{
    for (int i = 0; i < CN__GPU_USES * CN__GPU_CLASSES; i++) {
        cn__gpu_buffer **list = &g->pool[i / CN__GPU_CLASSES][i % CN__GPU_CLASSES];
        for (cn__gpu_buffer *b = *list, *next; b; b = next) {
            next = b->next;
            destroy(g, b);
        }
        *list = NULL;
    }
    g->stats.pooled = 0;
    g->stats.pooled_bytes = 0;
}

void cn__gpu_trim(cn__gpu *g)
{
    if (g->encoder) cn__gpu_submit(g); /* recorded commands may use buffers of the pool */
    empty_pool(g);
}

void cn__gpu_memory_close(cn__gpu *g)
{
    empty_pool(g);
    for (cn__gpu_buffer *b = g->in_use, *next; b; b = next) {
        next = b->next;
        destroy(g, b);
    }
    g->in_use = NULL;
}

void cn__gpu_memory_forget(cn__gpu *g)
{
    empty_pool(g);
    for (cn__gpu_buffer *b = g->in_use; b; b = b->next) {
        if (b->handle) g->w->BufferRelease(b->handle);
        b->handle = NULL;
    }
}

bool cn__gpu_memory_restore(cn__gpu *g)
{
    bool ok = true;
    for (cn__gpu_buffer *b = g->in_use; b && ok; b = b->next) {
        b->handle = cn__gpu_make_buffer(g, b->capacity, usages[b->use], false);
        ok = b->handle != NULL;
    }
    return ok;
}

/* Fills in the device table for the GPU: conversion of elements, transfers, the status, opening and closing. */
#include <stdio.h>
#include <stdlib.h>

#include "core/dtype.h"
#include "core/object.h"
#include "gpu/backend.h"
#include "gpu/shaders.h"

/* ---- elements as words ---- */

static bool whole_to_word(cn_ctx *ctx, int64_t x, uint32_t *to)
{
    if (x < INT32_MIN || x > INT32_MAX)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "gpu: %lld does not fit: whole numbers on a GPU have 32 bits",
                        (long long)x);
    *to = (uint32_t)(int32_t)x;
    return true;
}

bool cn__gpu_same_as_cpu(cn_dtype t) { return t == CN_F32 || t == CN_I32 || t == CN_F16 || t == CN_BF16; }

bool cn__gpu_to_words(cn_ctx *ctx, cn_dtype t, const void *from, uint32_t *to, int64_t n)
{
    switch (t) {
    case CN_F32:
    case CN_I32: memcpy(to, from, (size_t)n * sizeof *to); return true;
    case CN_F16:
    case CN_BF16: memcpy(to, from, (size_t)n * sizeof(uint16_t)); return true; /* two in a word, as on the CPU */
    case CN_F64: cn__convert(CN_F32, to, t, from, n); return true;
    case CN_I64:
        for (int64_t i = 0; i < n; i++)
            if (!whole_to_word(ctx, ((const int64_t *)from)[i], &to[i])) return false;
        return true;
    default: cn__convert(CN_I32, to, t, from, n); return true;
    }
}

void cn__gpu_from_words(cn_dtype t, const uint32_t *from, void *to, int64_t n)
{
    if (cn__gpu_same_as_cpu(t)) memcpy(to, from, (size_t)n * cn_dtype_size(t));
    else cn__convert(t, to, cn_dtype_is_float(t) ? CN_F32 : CN_I32, from, n);
}

/* A piece of a block that lies inside one slab. */
typedef struct piece {
    int slab;
    size_t offset, bytes;
} piece;

static piece piece_at(const cn__gpu_device *d, const cn__gpu_block *b, size_t at, size_t bytes)
{
    size_t begin = (size_t)b->word * sizeof(uint32_t) + at, limit = d->heap.slab_limit, k = 0;
    if (b->n_slabs > 1) {
        k = begin / limit;
        begin %= limit;
        if (bytes > limit - begin) bytes = limit - begin;
    }
    return (piece){ b->slab + (int)k, begin, bytes };
}

static bool read_slab(cn__gpu_device *d, int slab, size_t begin, void *to, size_t bytes)
{
    while (!cn__gpu_download(d->gpu, d->heap.slabs[slab].buffer, begin, to, bytes)) {
        if (!d->recovery.running && !cn__gpu_is_lost(d->gpu)) cn__gpu_recovery_repair(d);
        if (!cn__gpu_recover(d)) return false;
    }
    d->recovery.tries = 0;
    return true;
}

/* The upload is logged first, so a recovery sends it to the new device as well. */
static bool write_slab(cn__gpu_device *d, int slab, size_t begin, const void *from, size_t bytes)
{
    size_t mark = d->recovery.log.n;
    cn__gpu_log_upload(d, slab, begin, from, bytes);
    if (cn__gpu_upload(d->gpu, d->heap.slabs[slab].buffer, begin, from, bytes)) {
        cn__gpu_recovery_uploaded(d);
        return true;
    }
    if (cn__gpu_is_lost(d->gpu)) return cn__gpu_recover(d);
    cn__gpu_recovery_cut(d, mark);
    if (!d->recovery.running) cn__gpu_recovery_repair(d);
    return false;
}

bool cn__gpu_read_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, void *to, size_t bytes)
{
    d->count.readbacks++;
    for (size_t done = 0; done < bytes;) {
        piece p = piece_at(d, b, at + done, bytes - done);
        if (!read_slab(d, p.slab, p.offset, (char *)to + done, p.bytes)) return false;
        done += p.bytes;
    }
    return true;
}

bool cn__gpu_write_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        piece p = piece_at(d, b, at + done, bytes - done);
        if (!write_slab(d, p.slab, p.offset, (const char *)from + done, p.bytes)) return false;
        done += p.bytes;
    }
    return true;
}

/* ---- the table ---- */

static cn__gpu_device *gpu_of(cn__device *d) { return (cn__gpu_device *)d; }

static void *gpu_alloc(cn__device *d, size_t bytes)
{
    cn__gpu_block *b;
    while (!(b = cn__gpu_block_new(&gpu_of(d)->heap, bytes)) && cn__gpu_recover(gpu_of(d))) continue;
    return b;
}

static void gpu_free(cn__device *d, void *memory, size_t bytes)
{
    (void)bytes;
    cn__gpu_block_free(&gpu_of(d)->heap, memory);
}

enum { PIECE = 16384 }; /* elements converted at a time */

static bool gpu_upload(cn__device *d, void *to, int64_t at, cn_dtype t, const void *from, int64_t n)
{
    cn__observer *w = d->ctx->observer;
    const int64_t began = w ? cn__nanoseconds() : 0;
    const size_t size = cn__device_element(d, t);
    bool ok = true;
    if (cn__gpu_same_as_cpu(t)) {
        ok = cn__gpu_write_block(gpu_of(d), to, (size_t)at * size, from, (size_t)n * size);
    } else {
        uint32_t *words = cn__alloc(d->ctx, PIECE * sizeof *words);
        ok = words != NULL;
        for (int64_t i = 0; i < n && ok; i += PIECE) {
            int64_t count = n - i < PIECE ? n - i : PIECE;
            ok = cn__gpu_to_words(d->ctx, t, (const char *)from + (size_t)i * cn_dtype_size(t), words, count) &&
                 cn__gpu_write_block(gpu_of(d), to, (size_t)(at + i) * size, words, (size_t)count * size);
        }
        cn__free(d->ctx, words, PIECE * sizeof *words);
    }
    if (w) w->transfer(w, d->name, true, (size_t)n * size, began);
    return ok;
}

/* Sets an error if a kernel has found an index out of range. The first word of the status is 0 otherwise. */
bool cn__gpu_check_status(cn__gpu_device *d, const uint32_t status[4])
{
    if (!status[0]) return true;
    const uint32_t none[4] = { 0 };
    write_slab(d, 0, 0, none, sizeof none);
    cn__gpu_checker unknown = { "kernel", NULL };
    const cn__gpu_checker *c =
        status[0] <= d->checkers.n ? (const cn__gpu_checker *)d->checkers.v + (status[0] - 1) : &unknown;
    cn_ctx *ctx = d->device.ctx;
    ctx->called = NULL; /* the error names the operator that failed, not the call that found it out */
    char text[256];
    if (c->fault)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s",
                        cn__fault_text(c->fault, (int32_t)status[1], status[2], text, sizeof text));
    return cn__fail(ctx, CN_BAD_INDEX, "%s: index %d is out of range for size %u", c->name, (int32_t)status[1],
                    status[2]);
}

static bool read_status(cn__gpu_device *d)
{
    uint32_t status[4];
    if (!d->checkers.n) return true;
    return read_slab(d, 0, 0, status, sizeof status) && cn__gpu_check_status(d, status);
}

static bool download_all(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n)
{
    const size_t size = cn__device_element(d, t);
    if (cn__gpu_same_as_cpu(t))
        return cn__gpu_read_block(gpu_of(d), from, (size_t)at * size, to, (size_t)n * size) && read_status(gpu_of(d));
    uint32_t *words = cn__alloc(d->ctx, (size_t)n * sizeof *words + 1);
    bool ok = words && cn__gpu_read_block(gpu_of(d), from, (size_t)at * size, words, (size_t)n * size);
    if (ok) cn__gpu_from_words(t, words, to, n);
    cn__free(d->ctx, words, (size_t)n * sizeof *words + 1);
    return ok && read_status(gpu_of(d));
}

/* A late read that is ended at once: value and status come in one submission, and the program waits once. */
static bool download_few(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n)
{
    cn__gpu_late *l = cn__gpu_late_begin(gpu_of(d), from, at, t, n);
    return l && cn__gpu_late_end(gpu_of(d), l, to);
}

static bool gpu_download(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n)
{
    enum { FEW = 4096 };
    cn__observer *w = d->ctx->observer;
    const int64_t began = w ? cn__nanoseconds() : 0;
    const bool few = n <= FEW && gpu_of(d)->checkers.n;
    bool ok = few ? download_few(d, from, at, t, to, n) : download_all(d, from, at, t, to, n);
    if (w) w->transfer(w, d->name, false, (size_t)n * cn__device_element(d, t), began);
    return ok;
}

static void *gpu_read_begin(cn__device *d, const void *from, int64_t at, cn_dtype t, int64_t n)
{
    return cn__gpu_late_begin(gpu_of(d), from, at, t, n);
}

static bool gpu_read_done(cn__device *d, void *reading)
{
    (void)d;
    return cn__gpu_late_done(reading);
}

static bool gpu_read_end(cn__device *d, void *reading, void *to) { return cn__gpu_late_end(gpu_of(d), reading, to); }

static void *gpu_host(cn__device *d, void *memory)
{
    (void)d, (void)memory;
    return NULL;
}

/* Software drivers compile the kernels of attention for 13 s. There attention is composed of products and softmax. */
static bool attention_composed(cn__device *d)
{
    enum { BLOCK, COMPOSED };
    bool software = !strcmp(gpu_of(d)->gpu->info.kind, "software");
    return cn__gpu_variant(d->ctx, "attention", software ? COMPOSED : BLOCK) == COMPOSED;
}

/* False: the operator is composed of others. One that has neither a kernel nor a composition runs on the CPU. */
static bool gpu_supports(cn__device *d, const cn_op *op)
{
    if (op->compose && op->gpu && strstr(op->name, "attention") && attention_composed(d)) return false;
    return op->gpu || op->wgsl || op->wgsl_print || op->wgsl_reducer || op->kind == CN_VIEW || !op->compose;
}

static int gpu_threads(cn__device *d) { return gpu_of(d)->cpu->table->threads(gpu_of(d)->cpu); }

static void gpu_close(cn__device *device)
{
    cn__gpu_device *d = gpu_of(device);
    cn_ctx *ctx = device->ctx;
    if (d->gpu) {
        cn__gpu_recovery_close(d);
        cn__gpu_programs_close(d);
        cn__gpu_heap_close(&d->heap);
        cn__gpu_close(d->gpu);
    }
    cn__vec_free(&ctx->memory, &d->checkers, sizeof(cn__gpu_checker));
    cn__vec_free(&ctx->memory, &d->forms.seen, sizeof(uint64_t));
    if (d->cpu) d->cpu->table->close(d->cpu);
    cn__free(ctx, d, sizeof *d);
}

static const cn__device_table table = {
    .kind = "gpu",
    .element = { [CN_BOOL] = 4,
                 [CN_U8] = 4,
                 [CN_I8] = 4,
                 [CN_I16] = 4,
                 [CN_I32] = 4,
                 [CN_I64] = 4,
                 [CN_F16] = 2,
                 [CN_BF16] = 2,
                 [CN_F32] = 4,
                 [CN_F64] = 4 },
    .halves_in_maps_only = true,
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .upload = gpu_upload,
    .download = gpu_download,
    .read_begin = gpu_read_begin,
    .read_done = gpu_read_done,
    .read_end = gpu_read_end,
    .host = gpu_host,
    .supports = gpu_supports,
    .prepare = cn__gpu_prepare,
    .unprepare = cn__gpu_unprepare,
    .run = cn__gpu_run,
    .threads = gpu_threads,
};

cn__device *cn__gpu_device_open(cn_ctx *ctx, int card, cn__device *cpu)
{
    cn__gpu_device *d = cn__alloc(ctx, sizeof *d);
    if (!d) return NULL;
    d->device = (cn__device){ &table, ctx, "gpu" };
    if (card > 0) snprintf(d->device.name, sizeof d->device.name, "gpu:%d", card);
    const char *strict = getenv("CAIRN_GPU_STRICT");
    d->strict = strict && !strcmp(strict, "1");
    d->gpu = cn__gpu_open(ctx, card, NULL);
    if (d->gpu && cn__shader_parts_of(ctx, cn__wgsl_library, &d->library) && cn__gpu_heap_open(&d->heap, d->gpu) &&
        cn__gpu_recovery_open(d)) {
        d->cpu = cpu;
        cn__gpu_variants_open(d);
        cn__log(ctx, "gpu: %s (%s, %s, %s)", d->gpu->info.name, d->gpu->info.kind, d->gpu->info.backend,
                d->gpu->info.implementation);
        return &d->device;
    }
    gpu_close(&d->device);
    return NULL;
}

bool cn__gpu_is_device(const cn__device *d) { return d->table == &table; }

cn__gpu *cn__gpu_of(cn_ctx *ctx)
{
    return ctx && ctx->device && cn__gpu_is_device(ctx->device) ? gpu_of(ctx->device)->gpu : NULL;
}

int cn_gpu_current(const cn_ctx *ctx)
{
    return ctx && ctx->device && cn__gpu_is_device(ctx->device) ? gpu_of(ctx->device)->gpu->card : -1;
}

cn__shader_forms *cn__gpu_forms(cn_ctx *ctx) { return cn__gpu_of(ctx) ? &gpu_of(ctx->device)->forms : NULL; }

void cn__gpu_break(cn_ctx *ctx)
{
    if (cn__gpu_of(ctx)) cn__gpu_lose(cn__gpu_of(ctx));
}

cn_gpu_counters cn_gpu_counted(const cn_ctx *ctx)
{
    if (!ctx || !ctx->device || !cn__gpu_is_device(ctx->device)) return (cn_gpu_counters){ 0 };
    const cn__gpu_device *d = (const cn__gpu_device *)ctx->device;
    const cn__gpu_stats *s = &d->gpu->stats;
    cn_gpu_counters c = d->count;
    c.dispatches = s->dispatches;
    c.submissions = s->submissions;
    c.uploaded_bytes = s->uploaded_bytes;
    c.downloaded_bytes = s->downloaded_bytes;
    c.buffers = s->live;
    c.buffer_bytes = (int64_t)s->live_bytes;
    return c;
}

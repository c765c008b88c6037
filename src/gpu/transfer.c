/* Uploads through a ring of mapped buffers, and downloads through buffers that are mapped when a copy has arrived. */
#include <stdio.h>

#include "core/object.h"
#include "gpu/gpu.h"

static bool check_range(cn__gpu *g, const char *who, const cn__gpu_buffer *b, size_t offset, size_t bytes)
{
    if (offset <= b->bytes && bytes <= b->bytes - offset) return true;
    return cn__fail(g->ctx, CN_BAD_ARGUMENT, "%s: %zu bytes at offset %zu are outside a buffer of %zu bytes", who,
                    bytes, offset, b->bytes);
}

/* ---- the ring: mapped chunks, filled in turn. A submission uses the current chunk, which is unmapped before and
   mapped again when the device has read it. ---- */

static void on_chunk(WGPUMapAsyncStatus status, WGPUStringView message, void *user1, void *user2)
{
    (void)message, (void)user2;
    cn__gpu_chunk *c = user1;
    c->is_mapped = status == WGPUMapAsyncStatus_Success;
    c->pending = false;
}

static void chunk_drop(cn__gpu *g, cn__gpu_chunk *c)
{
    if (c->handle) cn__gpu_destroy_buffer(g, c->handle);
    *c = (cn__gpu_chunk){ 0 };
}

static bool chunk_ready(cn__gpu *g, cn__gpu_chunk *c)
{
    for (int round = 0; c->pending; cn__gpu_pause(&round)) cn__gpu_process(g);
    if (c->handle && !c->is_mapped) chunk_drop(g, c);
    if (!c->handle) {
        c->handle = cn__gpu_make_buffer(g, CN__GPU_CHUNK, WGPUBufferUsage_MapWrite | WGPUBufferUsage_CopySrc, true);
        c->is_mapped = c->handle != NULL;
    }
    if (!c->memory) cn__gpu_is_alive(g);
    if (!cn__gpu_ok(g, "gpu: upload") || !c->handle) return false;
    if (!c->memory) c->memory = g->w->BufferGetMappedRange(c->handle, 0, CN__GPU_CHUNK);
    return c->memory || cn__fail(g->ctx, CN_NO_MEMORY, "gpu: upload: the driver could not map %d bytes", CN__GPU_CHUNK);
}

bool cn__gpu_ring_before_submit(cn__gpu *g)
{
    cn__gpu_chunk *c = &g->chunks[g->chunk];
    if (!c->used) return false;
    g->w->BufferUnmap(c->handle);
    c->memory = NULL;
    c->is_mapped = false;
    return true;
}

void cn__gpu_ring_after_submit(cn__gpu *g)
{
    cn__gpu_chunk *c = &g->chunks[g->chunk];
    c->used = 0;
    g->chunk = (g->chunk + 1) % CN__GPU_CHUNKS;
    if (cn__gpu_is_lost(g)) return;
    c->pending = true;
    WGPUBufferMapCallbackInfo info = { .mode = WGPUCallbackMode_AllowProcessEvents,
                                       .callback = on_chunk,
                                       .userdata1 = c };
    g->w->BufferMapAsync(c->handle, WGPUMapMode_Write, 0, CN__GPU_CHUNK, info);
}

/* Makes the current chunk ready. If memory for it runs out, makes another chunk the current one. */
static bool find_chunk(cn__gpu *g)
{
    const bool clean = g->ctx->code == CN_OK;
    if (chunk_ready(g, &g->chunks[g->chunk])) return true;
    for (int i = 0; i < CN__GPU_CHUNKS && !cn__gpu_is_lost(g); i++) {
        if (!g->chunks[i].handle || !chunk_ready(g, &g->chunks[i])) continue;
        g->chunk = i;
        if (clean) cn_error_clear(g->ctx);
        return true;
    }
    return false;
}

/* offset and bytes are multiples of 4 */
static bool write_words(cn__gpu *g, cn__gpu_buffer *to, size_t offset, const char *from, size_t bytes)
{
    while (bytes) {
        cn__gpu_chunk *c = &g->chunks[g->chunk];
        if (c->used == CN__GPU_CHUNK) {
            if (!cn__gpu_submit(g)) return false;
            continue;
        }
        if (!find_chunk(g)) return false;
        c = &g->chunks[g->chunk];
        WGPUCommandEncoder e = cn__gpu_encoder(g, "gpu: upload");
        if (!e) return false;
        size_t room = CN__GPU_CHUNK - c->used, n = bytes < room ? bytes : room;
        memcpy(c->memory + c->used, from, n);
        g->w->CommandEncoderCopyBufferToBuffer(e, c->handle, c->used, to->handle, offset, n);
        c->used += n;
        offset += n, from += n, bytes -= n;
    }
    return true;
}

/* Writes some bytes of one word. The other bytes keep their value, unless they lie past the end of the buffer. */
static bool write_part(cn__gpu *g, cn__gpu_buffer *to, size_t offset, const char *from, size_t bytes)
{
    char word[4] = { 0 };
    size_t at = offset & 3, start = offset - at;
    size_t held = to->bytes - start < 4 ? to->bytes - start : 4;
    if ((at > 0 || bytes < held) && !cn__gpu_download(g, to, start, word, held)) return false;
    memcpy(word + at, from, bytes);
    return write_words(g, to, start, word, 4);
}

bool cn__gpu_upload(cn__gpu *g, cn__gpu_buffer *to, size_t offset, const void *from, size_t bytes)
{
    const char *p = from;
    if (!cn__gpu_ok(g, "gpu: upload") || !check_range(g, "gpu: upload", to, offset, bytes)) return false;
    g->stats.uploaded_bytes += (int64_t)bytes;
    size_t head = (4 - (offset & 3)) & 3;
    if (head > bytes) head = bytes;
    if (head && !write_part(g, to, offset, p, head)) return false;
    offset += head, p += head, bytes -= head;
    size_t whole = bytes & ~(size_t)3;
    if (!write_words(g, to, offset, p, whole)) return false;
    return bytes == whole || write_part(g, to, offset + whole, p + whole, bytes - whole);
}

bool cn__gpu_copy(cn__gpu *g, cn__gpu_buffer *to, size_t to_offset, cn__gpu_buffer *from, size_t from_offset,
                  size_t bytes)
{
    size_t padded = (bytes + 3) & ~(size_t)3;
    if (!check_range(g, "gpu: copy", to, to_offset, bytes) || !check_range(g, "gpu: copy", from, from_offset, bytes))
        return false;
    bool ends = bytes == padded || to_offset + bytes == to->bytes; /* padding overwrites no data */
    if (to == from || (to_offset | from_offset) & 3 || !ends)
        return cn__fail(g->ctx, CN_BAD_ARGUMENT,
                        "gpu: copy: %zu bytes from offset %zu to %zu: must be steps of 4, and not within one buffer",
                        bytes, from_offset, to_offset);
    WGPUCommandEncoder e = cn__gpu_encoder(g, "gpu: copy");
    if (e && padded)
        g->w->CommandEncoderCopyBufferToBuffer(e, from->handle, from_offset, to->handle, to_offset, padded);
    return e != NULL;
}

/* ---- reads: a copy into a staging buffer, which is mapped after the submission ---- */

struct cn__gpu_read {
    cn__gpu_read *prev, *next;
    cn__gpu *gpu;
    cn__gpu_buffer *staging; /* NULL: nothing to read */
    size_t skip, bytes;      /* the first byte wanted, and how many */
    size_t mapped_bytes;
    bool recorded;  /* the copy is recorded, not submitted */
    bool looked_at; /* read_done was called while recorded */
    bool pending;   /* recorded, or being mapped */
    WGPUMapAsyncStatus status;
    char message[160];
};

static void on_read(WGPUMapAsyncStatus status, WGPUStringView message, void *user1, void *user2)
{
    (void)user2;
    cn__gpu_read *r = user1;
    r->status = status;
    cn__dialect_text(r->message, sizeof r->message, message);
    r->pending = false;
}

static cn__gpu_read *read_new(cn__gpu *g)
{
    cn__gpu_read *r = cn__alloc(g->ctx, sizeof *r);
    if (!r) return NULL;
    r->gpu = g;
    r->next = g->reads;
    if (r->next) r->next->prev = r;
    g->reads = r;
    return r;
}

static void read_free(cn__gpu_read *r)
{
    cn__gpu *g = r->gpu;
    if (r->prev) r->prev->next = r->next;
    else g->reads = r->next;
    if (r->next) r->next->prev = r->prev;
    cn__gpu_buffer_free(g, r->staging);
    cn__free(g->ctx, r, sizeof *r);
}

/* Records copies of the parts, one behind the other, into a new staging buffer. */
static bool record(cn__gpu_read *r, size_t n, const cn__gpu_part *parts)
{
    cn__gpu *g = r->gpu;
    for (size_t i = 0; i < n; i++) r->mapped_bytes += parts[i].bytes;
    r->staging = cn__gpu_buffer_for(g, r->mapped_bytes, CN__GPU_READBACK);
    WGPUCommandEncoder e = r->staging ? cn__gpu_encoder(g, "gpu: download") : NULL;
    if (!e) return false;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const cn__gpu_part *p = &parts[i];
        g->w->CommandEncoderCopyBufferToBuffer(e, p->from->handle, p->offset, r->staging->handle, at, p->bytes);
        at += p->bytes;
    }
    g->stats.downloaded_bytes += (int64_t)r->bytes;
    r->pending = r->recorded = true;
    return true;
}

static void read_map(cn__gpu_read *r)
{
    WGPUBufferMapCallbackInfo info = { .mode = WGPUCallbackMode_AllowProcessEvents,
                                       .callback = on_read,
                                       .userdata1 = r };
    r->gpu->w->BufferMapAsync(r->staging->handle, WGPUMapMode_Read, 0, r->mapped_bytes, info);
}

void cn__gpu_reads_submitted(cn__gpu *g, bool ok)
{
    for (cn__gpu_read *r = g->reads; r; r = r->next) {
        if (!r->recorded) continue;
        r->recorded = false;
        if (ok) {
            read_map(r);
        } else {
            r->pending = false;
            snprintf(r->message, sizeof r->message,
                     "the commands that copy the value were dropped because of an earlier error");
        }
    }
}

/* Copies the whole words that contain the bytes. */
cn__gpu_read *cn__gpu_read_record(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes)
{
    if (!cn__gpu_ok(g, "gpu: download") || !check_range(g, "gpu: download", from, offset, bytes)) return NULL;
    cn__gpu_read *r = read_new(g);
    if (!r) return NULL;
    r->bytes = bytes;
    r->skip = offset & 3;
    cn__gpu_part part = { from, offset - r->skip, (r->skip + bytes + 3) & ~(size_t)3 };
    if (bytes == 0 || record(r, 1, &part)) return r;
    read_free(r);
    return NULL;
}

cn__gpu_read *cn__gpu_read_parts(cn__gpu *g, size_t n, const cn__gpu_part *parts)
{
    bool ok = cn__gpu_ok(g, "gpu: download");
    size_t bytes = 0;
    for (size_t i = 0; i < n && ok; i++) {
        ok = check_range(g, "gpu: download", parts[i].from, parts[i].offset, parts[i].bytes);
        bytes += parts[i].bytes;
    }
    cn__gpu_read *r = ok ? read_new(g) : NULL;
    if (!r) return NULL;
    r->bytes = bytes;
    if (bytes == 0 || record(r, n, parts)) return r;
    read_free(r);
    return NULL;
}

cn__gpu_read *cn__gpu_read_begin(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes)
{
    cn__gpu_read *r = cn__gpu_read_record(g, from, offset, bytes);
    if (!r || cn__gpu_submit(g)) return r;
    read_free(r);
    return NULL;
}

bool cn__gpu_read_done(cn__gpu_read *r)
{
    if (r->recorded && r->looked_at) cn__gpu_submit(r->gpu);
    r->looked_at = r->recorded;
    if (r->pending && !r->recorded) cn__gpu_process(r->gpu);
    return !r->pending;
}

/* Copies the mapped bytes. The mapped range must not be requested if mapping failed. */
static bool read_copy(cn__gpu_read *r, void *to)
{
    cn__gpu *g = r->gpu;
    if (!r->staging) return true;
    if (r->status != WGPUMapAsyncStatus_Success)
        return cn__gpu_ok(g, "gpu: download") && cn__fail(g->ctx, CN_BAD_DEVICE, "gpu: download: %s", r->message);
    bool alive = cn__gpu_is_alive(g);
    const char *memory = alive ? g->w->BufferGetConstMappedRange(r->staging->handle, 0, r->mapped_bytes) : NULL;
    if (memory) memcpy(to, memory + r->skip, r->bytes);
    if (alive) g->w->BufferUnmap(r->staging->handle);
    if (memory) return cn__gpu_ok(g, "gpu: download");
    return cn__gpu_ok(g, "gpu: download") &&
           cn__fail(g->ctx, CN_NO_MEMORY, "gpu: download: the driver could not map %zu bytes", r->mapped_bytes);
}

void cn__gpu_read_drop(cn__gpu_read *r)
{
    if (!r) return;
    cn__gpu *g = r->gpu;
    if (r->recorded) { /* the next owner of the staging buffer records behind this copy */
        read_free(r);
        return;
    }
    for (int round = 0; !cn__gpu_read_done(r);) cn__gpu_pause(&round);
    if (r->status == WGPUMapAsyncStatus_Success && !cn__gpu_is_lost(g)) g->w->BufferUnmap(r->staging->handle);
    read_free(r);
}

bool cn__gpu_read_end(cn__gpu_read *r, void *to)
{
    if (!r) return false;
    if (!to) {
        cn__gpu_read_drop(r);
        return true;
    }
    if (r->recorded) cn__gpu_submit(r->gpu);
    for (int round = 0; !cn__gpu_read_done(r);) cn__gpu_pause(&round);
    bool ok = read_copy(r, to);
    read_free(r);
    return ok;
}

/* Downloads in pieces, so that staging stays small. The device copies a piece while the host copies the piece before.
   */
bool cn__gpu_download(cn__gpu *g, cn__gpu_buffer *from, size_t offset, void *to, size_t bytes)
{
    enum { PIECE = 8 << 20 };
    if (!cn__gpu_ok(g, "gpu: download") || !check_range(g, "gpu: download", from, offset, bytes)) return false;
    cn__gpu_read *ahead = cn__gpu_read_begin(g, from, offset, bytes < PIECE ? bytes : PIECE);
    bool ok = ahead != NULL;
    for (size_t at = 0; ahead; at += PIECE) {
        cn__gpu_read *r = ahead;
        size_t next = at + PIECE, left = next < bytes ? bytes - next : 0;
        ahead = left && ok ? cn__gpu_read_begin(g, from, offset + next, left < PIECE ? left : PIECE) : NULL;
        if (left && !ahead) ok = false;
        if (!cn__gpu_read_end(r, (char *)to + at)) ok = false;
    }
    return ok;
}

void cn__gpu_transfer_close(cn__gpu *g)
{
    while (g->reads) cn__gpu_read_drop(g->reads);
    for (int i = 0; i < CN__GPU_CHUNKS; i++) {
        cn__gpu_chunk *c = &g->chunks[i];
        for (int round = 0; c->pending; cn__gpu_pause(&round)) cn__gpu_process(g);
        chunk_drop(g, c);
    }
}

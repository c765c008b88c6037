/* Recovers from a lost device. The mirror is a copy of the device's memory, made after a number of runs, and a log of
   all that was sent to the device since. A recovery opens the card again, uploads the copy, replays the log and repeats
   the call that failed. The result is the same, because kernels are deterministic and blocks keep their places. Copy
   and log also restore memory after a run that failed half-way.

   The device works while a copy is read: the submission of a run also reads memory. The old copy and its log stay until
   the new copy has arrived. If memory for copy or log runs out, there is no mirror until the next copy. */
#include <stdlib.h>

#include "gpu/backend.h"

enum {
    INTERVAL = 50, /* runs between copies */
    SOON = 5,      /* the same while there is no mirror */
    TRIES = 3,     /* the most devices that are opened in a row without a successful call between */
    HEADER = 2,    /* words before a record: its kind, its size */
    UPLOAD = 1,    /* kinds of records, from here on */
    WORDS,
    LAUNCH,
    SLAB,
    LATE,
};
/* A copy is due when the log has LOG_LEAST bytes and the size of the last copy more, but at most LOG_MOST. */
#define LOG_LEAST ((size_t)64 << 20)
#define LOG_MOST  ((size_t)256 << 20)
#define AT_ONCE   ((size_t)256 << 20) /* larger copies are read in pieces, waiting for each */

typedef struct launch {
    cn__gpu_program *program;
    int64_t groups;
    uint32_t first, n; /* parameters: the first word, and how many */
    uint32_t slabs, unused;
} launch;

static cn__memory *memory_of(const cn__gpu_device *d) { return &d->device.ctx->memory; }
static const cn__gpu_range *ranges_of(const cn__vec *v) { return v->v; }

static size_t bytes_of(const cn__vec *ranges)
{
    size_t bytes = 0;
    for (size_t i = 0; i < ranges->n; i++) bytes += ranges_of(ranges)[i].bytes;
    return bytes;
}

/* Errors during a recovery are not reported to the program. An error that was set before stays. */
static bool is_clean(const cn__gpu_device *d) { return d->device.ctx->code == CN_OK; }
static void clear_error(cn__gpu_device *d, bool clean)
{
    if (clean) cn_error_clear(d->device.ctx);
}

/* ---- the log ---- */

/* On a lost device the read is freed with the device. */
static void drop_next_copy(cn__gpu_device *d)
{
    if (!cn__gpu_is_lost(d->gpu)) cn__gpu_read_drop(d->recovery.next_copy);
    d->recovery.next_copy = NULL;
}

static void drop_mirror(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    drop_next_copy(d);
    r->complete = false;
    r->log.n = 0;
}

/* Adds a record of `words` words and returns where they are written. NULL: there is no log at present. */
static uint32_t *add_record(cn__gpu_device *d, uint32_t kind, size_t words)
{
    cn__gpu_recovery *r = &d->recovery;
    if (!r->complete && !r->next_copy) return NULL;
    if (!cn__vec_reserve(memory_of(d), &r->log, r->log.n + HEADER + words, sizeof(uint32_t))) {
        drop_mirror(d);
        return NULL;
    }
    uint32_t *at = (uint32_t *)r->log.v + r->log.n;
    at[0] = kind;
    at[1] = (uint32_t)words;
    r->log.n += HEADER + words;
    return at + HEADER;
}

/* Logs slabs that were added since the last record, so that a replay does not mistake them for older ones. */
static void log_slabs(cn__gpu_device *d)
{
    cn__gpu_shape *s = &d->recovery.end;
    for (int i = 0; i < d->heap.n; i++) {
        const cn__gpu_slab *slab = &d->heap.slabs[i];
        if (slab->birth == s->birth[i]) continue;
        uint32_t *at = add_record(d, SLAB, 4);
        if (!at) return;
        s->birth[i] = slab->birth;
        s->bytes[i] = slab->bytes;
        at[0] = (uint32_t)i;
        at[1] = (uint32_t)(slab->bytes / sizeof *at);
        memcpy(at + 2, &slab->birth, sizeof slab->birth);
    }
}

static void follow_slab(cn__gpu_shape *s, const uint32_t *record)
{
    s->bytes[record[0]] = record[1] * sizeof *record;
    memcpy(&s->birth[record[0]], record + 2, sizeof *s->birth);
}

static void heap_shape(const cn__gpu_device *d, cn__gpu_shape *s)
{
    for (int i = 0; i < CN__GPU_SLABS; i++) {
        s->birth[i] = d->heap.slabs[i].birth;
        s->bytes[i] = d->heap.slabs[i].bytes;
    }
}

void cn__gpu_log_upload(cn__gpu_device *d, int slab, size_t offset, const void *from, size_t bytes)
{
    enum { WHERE = 3 };
    log_slabs(d);
    uint32_t *at = add_record(d, UPLOAD, WHERE + (bytes + 3) / 4);
    if (!at) return;
    at[0] = (uint32_t)slab;
    at[1] = (uint32_t)offset;
    at[2] = (uint32_t)bytes;
    memcpy(at + WHERE, from, bytes);
}

/* Makes the parameter buffer of a replay in advance: during a recovery there may be no memory for it. */
static bool reserve_params(cn__gpu_device *d, size_t bytes)
{
    cn__gpu_recovery *r = &d->recovery;
    if (r->params && r->params->bytes >= bytes) return true;
    bool clean = is_clean(d);
    cn__gpu_buffer *b = cn__gpu_buffer_new(d->gpu, bytes);
    if (!b && !cn__gpu_is_lost(d->gpu)) clear_error(d, clean);
    if (!b) return false;
    cn__gpu_buffer_free(d->gpu, r->params);
    r->params = b;
    return true;
}

void cn__gpu_log_words(cn__gpu_device *d, const uint32_t *words, size_t n)
{
    cn__gpu_recovery *r = &d->recovery;
    if (!r->interval || !n) return;
    if (!reserve_params(d, n * sizeof *words)) {
        if (!cn__gpu_is_lost(d->gpu)) drop_mirror(d); /* after a loss the run fails and leaves the log anyway */
        return;
    }
    log_slabs(d);
    uint32_t *at = add_record(d, WORDS, n);
    if (at) memcpy(at, words, n * sizeof *words);
}

void cn__gpu_log_launch(cn__gpu_device *d, const cn__gpu_command *c)
{
    launch l = { c->program, c->groups, (uint32_t)c->first, (uint32_t)c->words.n, c->slabs, 0 };
    uint32_t *at = add_record(d, LAUNCH, sizeof l / sizeof *at);
    if (at) memcpy(at, &l, sizeof l);
    d->recovery.launched = true;
}

void cn__gpu_log_late(cn__gpu_device *d, uint64_t id)
{
    log_slabs(d);
    uint32_t *at = add_record(d, LATE, sizeof id / sizeof *at);
    if (at) memcpy(at, &id, sizeof id);
}

static void cut_log(cn__gpu_recovery *r, size_t n)
{
    if (n >= r->log.n) return;
    r->log.n = n;
    r->end = r->start;
    for (size_t i = 0; i < n;) {
        const uint32_t *record = (const uint32_t *)r->log.v + i;
        if (record[0] == SLAB) follow_slab(&r->end, record + HEADER);
        i += HEADER + record[1];
    }
}

/* ---- copies ---- */

static size_t log_limit(const cn__gpu_recovery *r)
{
    size_t bytes = LOG_LEAST + bytes_of(&r->ranges);
    return (bytes < LOG_MOST ? bytes : LOG_MOST) / sizeof(uint32_t);
}

static bool copy_is_due(const cn__gpu_recovery *r)
{
    if (!r->interval || r->next_copy || r->given_up) return false;
    int runs = r->complete || r->interval < SOON ? r->interval : SOON;
    return r->runs >= runs || r->log.n > log_limit(r);
}

static bool reserve(cn__gpu_device *d, void **memory, size_t *held, size_t bytes)
{
    if (bytes <= *held) return true;
    void *p = cn__resize(memory_of(d), *memory, *held, bytes);
    if (!p) return false;
    *memory = p;
    *held = bytes;
    return true;
}

static void free_copy(cn__gpu_device *d, void *memory, size_t held)
{
    if (memory) cn__resize(memory_of(d), memory, held, 0);
}

/* Replaces the copy by the new one, and removes from the log what the new copy contains. */
static void adopt_copy(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    cn__vec old = r->ranges;
    r->ranges = r->next_ranges;
    r->next_ranges = old;
    r->start = r->next_start;
    uint32_t *log = r->log.v;
    if (r->next_mark) memmove(log, log + r->next_mark, (r->log.n - r->next_mark) * sizeof *log);
    r->log.n -= r->next_mark;
    r->complete = true;
    if (!r->log.n && r->log.capacity > log_limit(r)) cn__vec_free(memory_of(d), &r->log, sizeof(uint32_t));
    d->count.mirrored_bytes += (int64_t)bytes_of(&r->ranges);
}

static void finish_copy(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    if (!r->next_copy || !cn__gpu_read_done(r->next_copy)) return;
    bool clean = is_clean(d);
    cn__gpu_read *read = r->next_copy;
    if (!reserve(d, &r->copy, &r->copy_bytes, bytes_of(&r->next_ranges))) {
        drop_next_copy(d);
        return;
    }
    r->next_copy = NULL;
    cn__gpu_late_keep(d, r->next_late); /* the log will not contain them any more */
    if (cn__gpu_read_end(read, r->copy)) adopt_copy(d);
    clear_error(d, clean);
}

/* Records a read of all live memory. NULL: the memory is too large to be read at once, or memory ran out. */
static cn__gpu_read *record_copy(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    size_t bytes = bytes_of(&r->next_ranges);
    cn__gpu_part *parts = bytes <= AT_ONCE ? cn__block_new(memory_of(d), r->next_ranges.n * sizeof *parts) : NULL;
    if (!parts) return NULL;
    for (size_t i = 0; i < r->next_ranges.n; i++) {
        const cn__gpu_range *from = &ranges_of(&r->next_ranges)[i];
        parts[i] = (cn__gpu_part){ d->heap.slabs[from->slab].buffer, from->at, from->bytes };
    }
    bool clean = is_clean(d);
    cn__gpu_read *read = cn__gpu_read_parts(d->gpu, r->next_ranges.n, parts);
    if (!read && !cn__gpu_is_lost(d->gpu)) clear_error(d, clean);
    cn__block_free(memory_of(d), parts, r->next_ranges.n * sizeof *parts);
    return read;
}

/* Copies all live memory in pieces and waits for each. */
static void copy_now(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    void *copy = NULL;
    size_t held = 0, at = 0;
    bool clean = is_clean(d);
    const int64_t downloaded = d->gpu->stats.downloaded_bytes;
    bool ok = reserve(d, &copy, &held, bytes_of(&r->next_ranges));
    for (size_t i = 0; i < r->next_ranges.n && ok; i++) {
        const cn__gpu_range *from = &ranges_of(&r->next_ranges)[i];
        ok = cn__gpu_download(d->gpu, d->heap.slabs[from->slab].buffer, from->at, (char *)copy + at, from->bytes);
        at += from->bytes;
    }
    cn__gpu_late_keep(d, d->late_ids);
    clear_error(d, clean);
    d->gpu->stats.downloaded_bytes = downloaded;
    if (ok && !cn__gpu_is_lost(d->gpu)) {
        free_copy(d, r->copy, r->copy_bytes);
        r->copy = copy;
        r->copy_bytes = held;
        r->next_mark = r->log.n;
        heap_shape(d, &r->next_start);
        r->end = r->next_start;
        adopt_copy(d);
    } else {
        free_copy(d, copy, held);
    }
}

/* Drops the mirror if the log has grown far past its limit because copies fail. */
static void limit_log(cn__gpu_device *d)
{
    if (d->recovery.log.n > 4 * log_limit(&d->recovery)) drop_mirror(d);
}

bool cn__gpu_recovery_submit(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    r->runs++;
    if (!copy_is_due(r) || !cn__gpu_heap_live(&d->heap, &r->next_ranges)) return cn__gpu_submit(d->gpu);
    r->runs = 0;
    const int64_t downloaded = d->gpu->stats.downloaded_bytes;
    cn__gpu_read *read = record_copy(d);
    d->gpu->stats.downloaded_bytes = downloaded;
    if (!cn__gpu_submit(d->gpu)) {
        cn__gpu_read_drop(read);
        return false;
    }
    if (read) {
        if (r->complete) log_slabs(d); /* before the mark: the new log starts with these slabs */
        if (!r->complete) r->log.n = 0;
        r->next_copy = read;
        r->next_mark = r->log.n;
        heap_shape(d, &r->next_start);
        r->next_late = d->late_ids;
        r->end = r->next_start;
    } else {
        copy_now(d);
        limit_log(d);
    }
    return true;
}

void cn__gpu_recovery_uploaded(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    r->tries = 0;
    if (r->running || r->log.n <= log_limit(r) || !copy_is_due(r)) return;
    if (cn__gpu_heap_live(&d->heap, &r->next_ranges)) copy_now(d);
    limit_log(d);
}

/* ---- replay ---- */

/* The heap as it was when a record was logged. A slab that no longer exists is made for the time of the replay. */
typedef struct past {
    cn__gpu_device *d;
    cn__gpu_shape shape;
    cn__gpu_buffer *made[CN__GPU_SLABS];
} past;

static cn__gpu_buffer *past_slab(past *p, int i)
{
    const cn__gpu_slab *s = &p->d->heap.slabs[i];
    if (s->buffer && s->birth == p->shape.birth[i]) return s->buffer;
    if (!p->made[i]) p->made[i] = cn__gpu_buffer_new(p->d->gpu, p->shape.bytes[i]);
    return p->made[i];
}

static void free_past_slab(past *p, int i)
{
    cn__gpu_buffer_free(p->d->gpu, p->made[i]);
    p->made[i] = NULL;
}

static bool upload_to(past *p, int slab, size_t at, const void *from, size_t bytes)
{
    cn__gpu_buffer *b = past_slab(p, slab);
    return b && cn__gpu_upload(p->d->gpu, b, at, from, bytes);
}

static bool upload_copy(past *p)
{
    const cn__gpu_recovery *r = &p->d->recovery;
    const char *from = r->copy;
    bool ok = true;
    for (size_t i = 0; i < r->ranges.n && ok; i++) {
        const cn__gpu_range *to = &ranges_of(&r->ranges)[i];
        ok = upload_to(p, to->slab, to->at, from, to->bytes);
        from += to->bytes;
    }
    return ok;
}

static bool repeat_launch(past *p, const uint32_t *record)
{
    launch l;
    memcpy(&l, record, sizeof l);
    cn__gpu_binding bindings[CN__GPU_SLABS + 1] = { { p->d->recovery.params, l.first * sizeof(uint32_t),
                                                      l.n * sizeof(uint32_t) } };
    int n = 1;
    for (int i = 0; i < CN__GPU_SLABS; i++) {
        if (!(l.slabs >> i & 1)) continue;
        cn__gpu_buffer *b = past_slab(p, i);
        if (!b) return false;
        bindings[n++] = (cn__gpu_binding){ b, 0, b->bytes };
    }
    return cn__gpu_dispatch(p->d->gpu, l.program, n, bindings, l.groups);
}

static cn__gpu_buffer *past_slab_of(void *user, int i) { return past_slab(user, i); }

static bool repeat_late(past *p, const uint32_t *record)
{
    uint64_t id;
    memcpy(&id, record, sizeof id);
    return cn__gpu_late_repeat(p->d, id, past_slab_of, p);
}

static bool repeat_record(past *p, const uint32_t *record)
{
    cn__gpu *g = p->d->gpu;
    const uint32_t *w = record + HEADER;
    size_t bytes = record[1] * sizeof *w;
    switch (record[0]) {
    case UPLOAD: return upload_to(p, (int)w[0], w[1], w + 3, w[2]);
    case WORDS: return cn__gpu_submit(g) && cn__gpu_upload(g, p->d->recovery.params, 0, w, bytes);
    case LAUNCH: return repeat_launch(p, w);
    case LATE: return repeat_late(p, w);
    default:
        free_past_slab(p, (int)w[0]);
        follow_slab(&p->shape, w);
        return true;
    }
}

static bool replay(cn__gpu_device *d)
{
    const cn__gpu_recovery *r = &d->recovery;
    past p = { .d = d, .shape = r->start };
    bool ok = upload_copy(&p);
    for (size_t i = 0; i < r->log.n && ok;) {
        const uint32_t *record = (const uint32_t *)r->log.v + i;
        ok = repeat_record(&p, record);
        i += HEADER + record[1];
    }
    ok = ok && cn__gpu_submit(d->gpu);
    for (int i = 0; i < CN__GPU_SLABS; i++) free_past_slab(&p, i);
    return ok;
}

/* Restores the memory of the device from copy and log. */
static bool restore(cn__gpu_device *d)
{
    cn__gpu_stats *s = &d->gpu->stats;
    const int64_t uploaded = s->uploaded_bytes;
    cn__gpu_drop(d->gpu);
    cn__gpu_clear_fault(d->gpu);
    bool ok = replay(d);
    s->uploaded_bytes = uploaded;
    d->recovery.dropped = d->gpu->dropped;
    return ok;
}

static bool reopen(cn__gpu_device *d)
{
    cn__gpu_late_forget(d);
    if (!cn__gpu_reopen(d->gpu)) return false;
    for (int i = 0; i < CN__GPU_PROGRAM_SLOTS; i++)
        for (cn__gpu_entry *e = d->programs[i]; e; e = e->next) cn__gpu_program_forget(d->gpu, e->program);
    for (int i = 0; i < d->heap.n; i++) d->heap.slabs[i].version++;
    const int64_t downloaded = d->gpu->stats.downloaded_bytes;
    uint32_t word; /* reading one word waits for the whole replay */
    bool ok = restore(d) && cn__gpu_download(d->gpu, d->heap.slabs[0].buffer, 0, &word, sizeof word);
    d->gpu->stats.downloaded_bytes = downloaded;
    return ok;
}

static bool give_up(cn__gpu_device *d, const char *why)
{
    drop_mirror(d);
    cn__vec_free(memory_of(d), &d->recovery.log, sizeof(uint32_t));
    d->recovery.given_up = true;
    return cn__fail(d->device.ctx, CN_DEVICE_LOST, "gpu: the GPU \"%s\" was lost and cannot be recovered: %s",
                    d->gpu->info.name, why);
}

bool cn__gpu_recover(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    cn_ctx *ctx = d->device.ctx;
    if (!cn__gpu_is_lost(d->gpu) || r->running || !r->interval || r->given_up) return false;
    if (ctx->code == CN_DEVICE_LOST) cn_error_clear(ctx);
    bool clean = is_clean(d);
    drop_next_copy(d);
    if (!r->complete) return give_up(d, "there was no memory for a copy of its contents");
    char message[256] = "";
    while (r->tries++ < TRIES) {
        cn__log(ctx, "gpu: \"%s\" was lost (%s) and is opened again", d->gpu->info.name, d->gpu->fault.loss);
        if (reopen(d)) {
            d->count.recoveries++;
            clear_error(d, clean);
            return true;
        }
        memcpy(message, ctx->message, sizeof message - 1);
        clear_error(d, clean);
        if (!cn__gpu_is_lost(d->gpu)) cn__gpu_lose(d->gpu); /* its memory is only partly restored */
    }
    return give_up(d, message);
}

/* ---- runs ---- */

bool cn__gpu_recovery_begin(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    finish_copy(d);
    r->running = true;
    r->launched = false;
    r->run_mark = r->log.n;
    r->dropped = d->gpu->dropped;
    /* without a mirror, earlier uploads are submitted now: a failing run would drop them */
    return r->interval || cn__gpu_submit(d->gpu);
}

void cn__gpu_recovery_done(cn__gpu_device *d)
{
    d->recovery.running = d->recovery.launched = false;
    d->recovery.tries = 0;
}

bool cn__gpu_recovery_failed(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    r->running = false;
    cut_log(r, r->run_mark);
    if (cn__gpu_is_lost(d->gpu)) return cn__gpu_recover(d);
    cn__gpu_recovery_repair(d);
    return false;
}

void cn__gpu_recovery_repair(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    if (!r->launched && r->dropped == d->gpu->dropped) return;
    r->launched = false;
    if (!r->interval) cn__gpu_drop(d->gpu);
    r->dropped = d->gpu->dropped;
    if (!r->interval) return;
    drop_next_copy(d);
    if (r->complete && restore(d)) return;
    if (!cn__gpu_is_lost(d->gpu)) cn__gpu_lose(d->gpu);
    cn__gpu_recover(d);
}

void cn__gpu_recovery_cut(cn__gpu_device *d, size_t n) { cut_log(&d->recovery, n); }

/* ---- open, close ---- */

bool cn__gpu_recovery_open(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    const char *every = getenv("CAIRN_GPU_MIRROR");
    r->interval = every && every[0] ? atoi(every) : INTERVAL;
    if (r->interval <= 0) {
        r->interval = 0;
        return true;
    }
    /* at the start live memory is the status, which is 0 */
    const cn__gpu_range status = { 0, 0, CN__GPU_STATUS_WORDS * sizeof(uint32_t) };
    if (!cn__vec_reserve(memory_of(d), &r->ranges, 1, sizeof status) ||
        !reserve(d, &r->copy, &r->copy_bytes, status.bytes))
        return cn__no_memory(d->device.ctx, "gpu");
    memset(r->copy, 0, status.bytes);
    *(cn__gpu_range *)r->ranges.v = status;
    heap_shape(d, &r->start);
    r->end = r->start;
    r->ranges.n = 1;
    r->complete = true;
    return true;
}

void cn__gpu_recovery_close(cn__gpu_device *d)
{
    cn__gpu_recovery *r = &d->recovery;
    drop_next_copy(d);
    cn__gpu_buffer_free(d->gpu, r->params);
    cn__vec_free(memory_of(d), &r->log, sizeof(uint32_t));
    cn__vec_free(memory_of(d), &r->ranges, sizeof(cn__gpu_range));
    cn__vec_free(memory_of(d), &r->next_ranges, sizeof(cn__gpu_range));
    free_copy(d, r->copy, r->copy_bytes);
}

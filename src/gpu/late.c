/* Late reads: requested now, finished some steps later. The log of recovery.c contains them, so a replay repeats each
   read where it stood. Reads from before a copy are finished when the copy arrives. */
#include "core/object.h"
#include "gpu/backend.h"

struct cn__gpu_late {
    cn__gpu_late *prev, *next; /* of the device */
    uint64_t id;
    cn_dtype dtype;
    int64_t n;
    size_t skip, bytes; /* unwanted bytes at the start; all bytes, with the status */
    bool status;        /* the last four words are the status */
    int n_ranges;
    cn__gpu_range ranges[CN__GPU_SLABS + 1];
    cn__gpu_read *read;
    void *kept; /* what was read, or NULL */
};

enum { STATUS = 4 * sizeof(uint32_t) };

static void add_range(cn__gpu_late *l, int slab, size_t at, size_t bytes)
{
    l->ranges[l->n_ranges++] = (cn__gpu_range){ slab, at, bytes };
    l->bytes += bytes;
}

static bool record(cn__gpu_device *d, cn__gpu_late *l, cn__gpu_buffer *(*slab)(void *user, int i), void *user)
{
    cn__gpu_part parts[CN__GPU_SLABS + 1];
    for (int i = 0; i < l->n_ranges; i++) {
        parts[i] = (cn__gpu_part){ slab(user, l->ranges[i].slab), l->ranges[i].at, l->ranges[i].bytes };
        if (!parts[i].from) return false;
    }
    l->read = cn__gpu_read_parts(d->gpu, (size_t)l->n_ranges, parts);
    return l->read != NULL;
}

static cn__gpu_buffer *slab_now(void *user, int i) { return ((cn__gpu_device *)user)->heap.slabs[i].buffer; }

static void late_free(cn__gpu_device *d, cn__gpu_late *l)
{
    if (l->prev) l->prev->next = l->next;
    else d->late = l->next;
    if (l->next) l->next->prev = l->prev;
    cn__gpu_read_drop(l->read);
    cn__free(d->device.ctx, l->kept, l->bytes + 1);
    cn__free(d->device.ctx, l, sizeof *l);
}

cn__gpu_late *cn__gpu_late_begin(cn__gpu_device *d, const cn__gpu_block *b, int64_t at, cn_dtype t, int64_t n)
{
    const size_t size = cn__device_element(&d->device, t), limit = d->heap.slab_limit;
    cn__gpu_late *l = cn__alloc(d->device.ctx, sizeof *l);
    if (!l) return NULL;
    l->dtype = t;
    l->n = n;
    l->id = ++d->late_ids;
    size_t begin = (size_t)b->word * sizeof(uint32_t) + (size_t)at * size, end = begin + (size_t)n * size;
    l->skip = begin & 3;
    for (size_t from = begin - l->skip, to; from < end; from = to) {
        size_t last = b->n_slabs > 1 ? (from / limit + 1) * limit : end;
        to = ((last < end ? last : end) + 3) & ~(size_t)3;
        if (b->n_slabs > 1) add_range(l, b->slab + (int)(from / limit), from % limit, to - from);
        else add_range(l, b->slab, from, to - from);
    }
    l->status = d->checkers.n > 0;
    if (l->status) add_range(l, 0, 0, STATUS);
    l->next = d->late;
    if (l->next) l->next->prev = l;
    d->late = l;
    cn__gpu_log_late(d, l->id);
    if (record(d, l, slab_now, d) || (cn__gpu_recover(d) && l->read)) return l;
    late_free(d, l);
    return NULL;
}

bool cn__gpu_late_done(cn__gpu_late *l) { return l->kept || !l->read || cn__gpu_read_done(l->read); }

/* Waits for the value and keeps it. False: memory ran out (read stays), or the read failed (read is NULL). */
static bool keep(cn__gpu_device *d, cn__gpu_late *l)
{
    if (l->kept) return true;
    void *kept = l->read ? cn__alloc(d->device.ctx, l->bytes + 1) : NULL;
    if (!kept) return false;
    cn__gpu_read *read = l->read;
    l->read = NULL;
    if (cn__gpu_read_end(read, kept)) l->kept = kept;
    else cn__free(d->device.ctx, kept, l->bytes + 1);
    return l->kept != NULL;
}

static bool finish(cn__gpu_device *d, cn__gpu_late *l)
{
    while (!keep(d, l)) {
        if (l->read) return false;
        if (!cn__gpu_is_lost(d->gpu)) cn__gpu_recovery_repair(d); /* repeats the read, as a recovery does */
        if (!l->read && !cn__gpu_recover(d))
            return cn__fail(d->device.ctx, CN_DEVICE_LOST,
                            "gpu: read: the GPU \"%s\" was lost before the value arrived", d->gpu->info.name);
    }
    d->recovery.tries = 0;
    return true;
}

bool cn__gpu_late_end(cn__gpu_device *d, cn__gpu_late *l, void *to)
{
    uint32_t status[4] = { 0 };
    if (to && !cn__gpu_late_done(l)) d->count.readbacks++;
    bool ok = !to || finish(d, l);
    if (to && ok) {
        char *from = l->kept;
        if (l->status) memcpy(status, from + l->bytes - STATUS, sizeof status);
        if (l->skip) memmove(from, from + l->skip, l->bytes - l->skip);
        cn__gpu_from_words(l->dtype, l->kept, to, l->n);
    }
    late_free(d, l);
    return ok && cn__gpu_check_status(d, status);
}

/* ---- for recovery.c ---- */

void cn__gpu_late_keep(cn__gpu_device *d, uint64_t last)
{
    for (cn__gpu_late *l = d->late; l; l = l->next)
        if (l->id <= last) keep(d, l);
}

void cn__gpu_late_forget(cn__gpu_device *d)
{
    for (cn__gpu_late *l = d->late; l; l = l->next) l->read = NULL;
}

bool cn__gpu_late_repeat(cn__gpu_device *d, uint64_t id, cn__gpu_buffer *(*slab)(void *user, int i), void *user)
{
    cn__gpu_late *l = d->late;
    while (l && l->id != id) l = l->next;
    if (!l || l->kept) return true;
    cn__gpu_read_drop(l->read);
    l->read = NULL;
    return record(d, l, slab, user);
}

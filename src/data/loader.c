/* Loaders: choose the items of each batch, keep the workers' queue full, return batches, save and load the position. */
#include <inttypes.h>
#include <stdio.h>

#include "core/host.h"
#include "data/loader.h"

enum { MAX_WORKERS = 256, MAX_PREFETCH = 1024 };
#define MAX_EPOCH ((int64_t)1 << 30)

struct cn_loader {
    cn__object object;
    cn_dataset *dataset;
    cn_data_sampler *sampler; /* NULL: sequential */
    cn__spec spec;
    cn__crew crew;
    cn__parcel_pool *pool;
    int64_t
        items; /* of an epoch; of a stream: the number of shards, negative, which saved positions have to agree on */
    int64_t batches; /* of an epoch; -1: not known */
    int64_t depth;   /* batches that the queue holds at most */
    int64_t epoch;
    int64_t next;   /* number of the next batch to return */
    int64_t ahead;  /* number of the next batch to push to the queue */
    int64_t *order; /* (items): indices of this epoch; NULL without a sampler */
    int64_t *start; /* (items + 1), of a sampler of batches: where each batch begins in order; NULL: others */
    bool ordered;   /* order is filled in */
    bool *ended;    /* (shards) of a stream: its last parcel has been seen */
    int64_t live;   /* shards that have not ended */
    int64_t skip;   /* batches to read once more, before the next one to return */
    bool drop_last;
    bool busy; /* it makes a batch: a function of the program, which it calls, cannot ask for another */
};

/* ---- create and free */

static void drain(cn_loader *l)
{
    for (cn__parcel *b = cn__crew_drain(&l->crew), *next; b; b = next) {
        next = b->next;
        cn__parcel_recycle(b);
    }
}

static void close_cursors(cn_loader *l)
{
    for (int64_t i = 0; i < l->spec.shards && l->spec.cursors; i++) cn__cursor_close(l->dataset, &l->spec.cursors[i]);
}

static void destroy(void *self)
{
    cn_loader *l = self;
    cn_ctx *ctx = l->object.ctx;
    const size_t shards = (size_t)l->spec.shards;
    drain(l);
    close_cursors(l);
    cn__crew_close(&l->crew, ctx);
    cn__parcel_pool_close(l->pool);
    if (l->order) cn__free(ctx, l->order, (size_t)l->items * sizeof *l->order);
    if (l->start) cn__free(ctx, l->start, ((size_t)l->items + 1) * sizeof *l->start);
    cn__free(ctx, l->spec.cursors, shards * sizeof *l->spec.cursors);
    cn__free(ctx, l->ended, shards * sizeof *l->ended);
    cn__object_unuse(l->sampler);
    cn__object_unuse(l->dataset);
}

static const cn__object_type loader_type = { "loader", destroy };

static bool check_desc(cn_ctx *ctx, const cn_dataset *d, const cn_loader_desc *desc)
{
    if (desc->batch < 0 || desc->batch > INT32_MAX / CN_MAX_FIELDS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: batch must be 0 to %d, got %lld", INT32_MAX / CN_MAX_FIELDS,
                        (long long)desc->batch);
    if (desc->workers < 0 || desc->workers > MAX_WORKERS || desc->prefetch < 0 || desc->prefetch > MAX_PREFETCH)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: workers must be 0 to %d and prefetch 0 to %d, got %d and %d",
                        MAX_WORKERS, MAX_PREFETCH, desc->workers, desc->prefetch);
    if (desc->sampler && desc->shuffle)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: sampler and shuffle exclude each other, got both");
    if (d->stream && (desc->sampler || desc->shuffle))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: a stream has an order of its own, got %s for it",
                        desc->shuffle ? "shuffle" : "a sampler");
    if (desc->sampler && desc->sampler->cut && (desc->batch || desc->drop_last))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_new: the sampler makes batches: batch and drop_last must be 0, got %lld and %d",
                        (long long)desc->batch, desc->drop_last);
    if (desc->sampler && desc->sampler->largest > INT32_MAX / CN_MAX_FIELDS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: the sampler's batches may have at most %d items, got %lld",
                        INT32_MAX / CN_MAX_FIELDS, (long long)desc->sampler->largest);
    if (desc->sampler && desc->sampler->domain > d->count)
        return cn__fail(ctx, CN_BAD_INDEX, "loader_new: the sampler is for %lld items, but the dataset has %lld",
                        (long long)desc->sampler->domain, (long long)d->count);
    if (desc->collate_fields && !desc->collate)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: collate_fields is %d, but collate is NULL",
                        desc->collate_fields);
    return !desc->collate_fields ||
           cn__check_fields(ctx, "loader_new", desc->collate_field, desc->collate_fields, true);
}

static void describe(cn_loader *l, const cn_loader_desc *desc)
{
    cn__spec *s = &l->spec;
    const cn_dataset *d = l->dataset;
    s->dataset = d;
    const bool cuts = l->sampler && l->sampler->cut;
    s->batch = cuts ? l->sampler->largest : desc->batch ? desc->batch : 1;
    s->shards = cn__stream_shards(d);
    s->seed = desc->seed ? desc->seed : l->object.ctx->seed;
    s->collate = desc->collate;
    s->collate_user = desc->collate_user;
    s->fields = desc->collate_fields ? desc->collate_fields : d->fields;
    memcpy(s->field, desc->collate_fields ? desc->collate_field : d->field, (size_t)s->fields * sizeof *s->field);
    for (int i = 0; i < d->fields; i++) s->direct[i] = !desc->collate && !cn__field_varies(&d->field[i]);
    l->items = s->shards ? -s->shards : l->sampler ? l->sampler->count : d->count;
    l->batches = l->items / s->batch + (!desc->drop_last && l->items % s->batch);
    if (cuts || s->shards) l->batches = cuts ? l->sampler->batches : -1;
    l->live = s->shards;
    l->drop_last = desc->drop_last;
    l->depth = desc->workers ? (int64_t)desc->workers * (desc->prefetch ? desc->prefetch : 2) : 1;
}

cn_loader *cn_loader_new(cn_dataset *d, const cn_loader_desc *desc)
{
    static const cn_loader_desc defaults = { 0 };
    CN__CALL call = cn__call_object(d, &cn__dataset_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return NULL;
    if (!desc) desc = &defaults;
    if (desc->sampler && !cn__object_of(ctx, desc->sampler, &cn__data_sampler_type, __func__)) return NULL;
    if (!check_desc(ctx, d, desc)) return NULL;
    cn_data_sampler *sampler = desc->shuffle ? cn_data_sampler_random(ctx, d->count, NULL) : desc->sampler;
    if (desc->shuffle && !sampler) return NULL;
    cn_loader *l = cn__object_new(ctx, sizeof *l, &loader_type);
    if (l) {
        l->dataset = cn__object_use(d);
        l->sampler = cn__object_use(sampler);
    }
    if (desc->shuffle) cn__object_free(sampler); /* it goes with the loader */
    if (!l) return NULL;
    bool ok = (l->pool = cn__parcel_pool_new(ctx));
    if (ok) {
        describe(l, desc);
        ok = cn__parcel_bytes(&l->spec) != SIZE_MAX ||
             cn__fail(ctx, CN_BAD_SHAPE, "loader_new: a batch of %lld items is too large for memory",
                      (long long)l->spec.batch);
    }
    if (ok && l->spec.shards) {
        l->spec.cursors = cn__alloc(ctx, (size_t)l->spec.shards * sizeof *l->spec.cursors);
        l->ended = cn__alloc(ctx, (size_t)l->spec.shards * sizeof *l->ended);
        ok = l->spec.cursors && l->ended;
    }
    if (ok && cn__crew_open(&l->crew, ctx, &l->spec, desc->workers)) return l;
    cn__object_free(l);
    return NULL;
}

void cn_loader_free(cn_loader *l) { cn__free_by_program(l, &loader_type, __func__); }
int64_t cn_loader_batches(const cn_loader *l) { return cn__is(l, &loader_type) ? l->batches : 0; }
int64_t cn_loader_epoch(const cn_loader *l) { return cn__is(l, &loader_type) ? l->epoch : 0; }

/* ---- the order of an epoch, and the queue */

static bool check_order(const cn_loader *l)
{
    const int64_t n = l->start ? l->start[l->batches] : l->items;
    for (int64_t i = 0; i < n; i++)
        if (l->order[i] < 0 || l->order[i] >= l->dataset->count)
            return cn__fail(l->object.ctx, CN_BAD_INDEX,
                            "loader: the sampler returned index %lld, but the dataset has %lld items",
                            (long long)l->order[i], (long long)l->dataset->count);
    return true;
}

/* Sizes of batches, from start[1] on, become places where batches begin. */
static bool add_sizes(cn_loader *l, int64_t batches)
{
    cn_ctx *ctx = l->object.ctx;
    int64_t left = l->items;
    if (batches > l->items)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader: the sampler returned %lld batches of %lld items",
                        (long long)batches, (long long)l->items);
    l->start[0] = 0;
    for (int64_t i = 1; i <= batches; i++) {
        const int64_t size = l->start[i];
        if (size < 1 || size > l->spec.batch || size > left)
            return cn__fail(
                ctx, CN_BAD_ARGUMENT,
                "loader: the sampler returned a batch of %lld items; 1 to %lld are allowed, and %lld are left",
                (long long)size, (long long)l->spec.batch, (long long)left);
        left -= size;
        l->start[i] += l->start[i - 1];
    }
    l->batches = batches;
    return true;
}

static bool make_order(cn_loader *l)
{
    if (l->ordered || !l->sampler) return true;
    if (!l->order && l->items) l->order = cn__alloc(l->object.ctx, (size_t)l->items * sizeof *l->order);
    if (!l->order && l->items) return false;
    const bool cuts = l->sampler->cut;
    if (cuts && !l->start) l->start = cn__alloc(l->object.ctx, ((size_t)l->items + 1) * sizeof *l->start);
    if (cuts && !l->start) return false;
    int64_t batches = l->batches;
    if (!cn__sampler_fill(l->sampler, l->spec.seed, l->epoch, l->order, cuts ? l->start + 1 : NULL, &batches))
        return false;
    return l->ordered = (!cuts || add_sizes(l, batches)) && check_order(l);
}

/* Shards take turns. A parcel of a shard that has ended comes back empty. Its number does not depend on when that was
   seen, because a turn counts also without a parcel. */
static bool schedule_stream(cn_loader *l)
{
    for (; l->crew.queued < l->depth && l->live; l->ahead++) {
        const int64_t shard = l->ahead % l->spec.shards;
        if (l->ended[shard]) continue;
        cn__parcel *b = cn__parcel_acquire(l->pool, &l->spec);
        if (!b) return false;
        b->epoch = l->epoch;
        b->number = l->ahead;
        b->shard = shard;
        b->n = l->spec.batch;
        cn__crew_push(&l->crew, b);
    }
    return true;
}

/* Pushes batches until the queue is full or the epoch ends. False: no memory. */
static bool schedule(cn_loader *l)
{
    if (l->spec.shards) return schedule_stream(l);
    for (; l->crew.queued < l->depth && l->ahead < l->batches; l->ahead++) {
        cn__parcel *b = cn__parcel_acquire(l->pool, &l->spec);
        if (!b) return false;
        int64_t first = l->start ? l->start[l->ahead] : l->ahead * l->spec.batch;
        int64_t end = l->start ? l->start[l->ahead + 1] : first + l->spec.batch;
        b->epoch = l->epoch;
        b->number = l->ahead;
        b->n = (end < l->items ? end : l->items) - first;
        for (int64_t i = 0; i < b->n; i++) b->index[i] = l->order ? l->order[first + i] : first + i;
        cn__crew_push(&l->crew, b);
    }
    return true;
}

static void rewind_to(cn_loader *l, int64_t epoch, int64_t batch)
{
    drain(l);
    if (epoch != l->epoch) l->ordered = false;
    if (l->sampler && l->sampler->cut && !l->ordered) l->batches = l->sampler->batches;
    l->epoch = epoch;
    l->next = l->ahead = batch;
    if (!l->spec.shards) return;
    close_cursors(l);
    memset(l->ended, 0, (size_t)l->spec.shards * sizeof *l->ended);
    l->live = l->spec.shards;
    l->ahead = 0;
    l->skip = batch;
}

/* ---- return batches */

static bool fail_batch(cn_loader *l, cn__parcel *b)
{
    if (b->failed_at < 0)
        return cn__fail(l->object.ctx, b->code, "loader: batch %lld: %s", (long long)b->number, b->error);
    return cn__fail(l->object.ctx, b->code, "loader: item %lld: %s", (long long)b->index[b->failed_at], b->error);
}

/* On a device with memory of its own, the upload of the next batch begins now, if workers have made it: the copy
   travels with the step of this batch, and the next step finds its batch there. */
static void stage_next(cn_loader *l)
{
    cn__parcel *b = cn__crew_ready(&l->crew);
    if (b) cn__parcel_stage(b, &l->spec);
}

static bool fail_for_memory(cn_loader *l)
{
    return cn__fail(l->object.ctx, CN_NO_MEMORY, "loader: out of memory: a batch needs %zu bytes",
                    cn__parcel_bytes(&l->spec));
}

/* The first parcel of the queue that is a batch to return. NULL: the stream has ended, or an error stands. */
static cn__parcel *first_of_stream(cn_loader *l)
{
    for (;;) {
        if (!schedule(l) && !l->crew.queued) {
            fail_for_memory(l);
            return NULL;
        }
        cn__parcel *b = cn__crew_first(&l->crew);
        if (!b) return NULL;
        if (b->last && !l->ended[b->shard]) {
            l->ended[b->shard] = true;
            l->live--;
        }
        const bool dropped = !b->code && (b->n == 0 || (l->drop_last && b->n < l->spec.batch));
        if (!dropped && !l->skip) {
            b->number = l->next;
            return b;
        }
        if (!dropped) l->skip--;
        cn__crew_pop(&l->crew);
        cn__parcel_recycle(b);
    }
}

static bool next(cn_loader *l, cn_batch *batch)
{
    cn__parcel *b = NULL;
    if (l->spec.shards) b = first_of_stream(l);
    else if (!make_order(l)) return false;
    if (l->spec.shards ? !b : l->next >= l->batches) {
        if (!cn_failed(l->object.ctx)) rewind_to(l, l->epoch + 1, 0);
        return false;
    }
    if (!b && !schedule(l) && !l->crew.queued) return fail_for_memory(l);
    if (!b) b = cn__crew_first(&l->crew);
    bool ok = !b->code;
    if (ok && !cn__parcel_tensors(b, &l->spec, batch)) {
        *batch = (cn_batch){ 0 };
        return false; /* the batch stays in the queue: the next call returns it */
    }
    cn__crew_pop(&l->crew);
    l->next++;
    if (!ok) {
        fail_batch(l, b);
        cn__parcel_recycle(b);
    }
    if (l->depth > 1 || l->crew.started) schedule(l); /* workers continue while the caller uses this batch */
    if (ok && !cn__host_device(l->object.ctx)) stage_next(l);
    return ok;
}

/* Begins a call of a loader that does not make a batch just now. */
static cn__call enter(cn_loader *l, const char *who, bool names)
{
    cn__call call = cn__enter_object(l, &loader_type, who, names);
    if (!call.ctx || !l->busy) return call;
    cn__fail(call.ctx, CN_BAD_ARGUMENT, "%s: the loader is in the midst of making a batch", cn__called(call.ctx, who));
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_loader_next(cn_loader *l, cn_batch *batch)
{
    if (batch) *batch = (cn_batch){ 0 };
    CN__CALL call = enter(l, __func__, false);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    if (!batch) return cn__fail(call.ctx, CN_BAD_ARGUMENT, "loader_next: the batch must not be NULL");
    CN__USE used = cn__object_use(l);
    l->busy = true;
    cn__outside out = cn__go_out(call.ctx);
    const bool ok = next(l, batch);
    cn__come_back(call.ctx, out);
    l->busy = false;
    return ok;
}

bool cn_loader_reset(cn_loader *l, int64_t epoch)
{
    CN__CALL call = enter(l, __func__, true);
    if (!call.ctx) return false;
    if (epoch < 0 || epoch >= MAX_EPOCH)
        return cn__fail(l->object.ctx, CN_BAD_ARGUMENT, "loader_reset: epoch must be ≥ 0 and below 2^30, got %lld",
                        (long long)epoch);
    rewind_to(l, epoch, 0);
    return true;
}

/* ---- position */

static const char *const names[] = { "epoch", "batch", "seed", "items", "batch_size" };
enum { EPOCH, BATCH, SEED, ITEMS, BATCH_SIZE, NUMBERS };

static const char *full_name(const char *prefix, int i, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s", prefix ? prefix : "", names[i]);
    return buf;
}

bool cn_loader_save(const cn_loader *l, cn_dict *dict, const char *prefix)
{
    char name[256];
    CN__CALL call = cn__call_object(l, &loader_type);
    if (!l && dict) cn__object_of(cn_dict_context(dict), l, &loader_type, __func__);
    if (!call.ctx || !cn__object_of(call.ctx, dict, &cn__dict_type, __func__)) return false;
    const int64_t value[NUMBERS] = { l->epoch, l->next, (int64_t)l->spec.seed, l->items, l->spec.batch };
    for (int i = 0; i < NUMBERS; i++)
        if (!cn_dict_set_whole(dict, full_name(prefix, i, name, sizeof name), value[i])) return false;
    return true;
}

bool cn_loader_load(cn_loader *l, const cn_dict *dict, const char *prefix)
{
    char name[256];
    int64_t value[NUMBERS];
    if (!l && dict) cn__object_of(cn_dict_context(dict), l, &loader_type, __func__);
    CN__CALL call = enter(l, __func__, true);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !cn__object_of(ctx, dict, &cn__dict_type, __func__)) return false;
    for (int i = 0; i < NUMBERS; i++)
        if (!cn_dict_whole(dict, full_name(prefix, i, name, sizeof name), &value[i]))
            return cn__fail(ctx, CN_NOT_FOUND, "loader_load: the dict has no whole number named %s", name);
    if (value[ITEMS] != l->items || value[BATCH_SIZE] != l->spec.batch)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_load: the saved loader has %" PRId64 " items in batches of %" PRId64
                        ", this one has %" PRId64 " in batches of %" PRId64,
                        value[ITEMS], value[BATCH_SIZE], l->items, l->spec.batch);
    const bool varies = l->batches < 0 || (l->sampler && l->sampler->batches < 0);
    if (value[EPOCH] < 0 || value[EPOCH] >= MAX_EPOCH || value[BATCH] < 0 || (!varies && value[BATCH] > l->batches))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_load: the position is out of range: batch %" PRId64 " of %" PRId64 ", epoch %" PRId64,
                        value[BATCH], l->batches, value[EPOCH]);
    l->ordered = false;
    rewind_to(l, value[EPOCH], value[BATCH]);
    l->spec.seed = (uint64_t)value[SEED];
    return true;
}

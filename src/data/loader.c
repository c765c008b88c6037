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
    int64_t items, batches; /* of an epoch */
    int64_t depth;          /* batches that the queue holds at most */
    int64_t epoch;
    int64_t next;   /* number of the next batch to return */
    int64_t ahead;  /* number of the next batch to push to the queue */
    int64_t *order; /* (items): indices of this epoch; NULL without a sampler */
    bool ordered;   /* order is filled in */
    bool busy;      /* it makes a batch: a function of the program, which it calls, cannot ask for another */
};

/* ---- create and free */

static void drain(cn_loader *l)
{
    for (cn__parcel *b = cn__crew_drain(&l->crew), *next; b; b = next) {
        next = b->next;
        cn__parcel_recycle(b);
    }
}

static void destroy(void *self)
{
    cn_loader *l = self;
    drain(l);
    cn__crew_close(&l->crew, l->object.ctx);
    cn__parcel_pool_close(l->pool);
    cn__free(l->object.ctx, l->order, (size_t)l->items * sizeof *l->order);
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
    s->batch = desc->batch ? desc->batch : 1;
    s->seed = desc->seed ? desc->seed : l->object.ctx->seed;
    s->collate = desc->collate;
    s->collate_user = desc->collate_user;
    s->fields = desc->collate_fields ? desc->collate_fields : d->fields;
    memcpy(s->field, desc->collate_fields ? desc->collate_field : d->field, (size_t)s->fields * sizeof *s->field);
    for (int i = 0; i < d->fields; i++) s->direct[i] = !desc->collate && !cn__field_varies(&d->field[i]);
    l->items = l->sampler ? l->sampler->count : d->count;
    l->batches = l->items / s->batch + (!desc->drop_last && l->items % s->batch);
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
    for (int64_t i = 0; i < l->items; i++)
        if (l->order[i] < 0 || l->order[i] >= l->dataset->count)
            return cn__fail(l->object.ctx, CN_BAD_INDEX,
                            "loader: the sampler returned index %lld, but the dataset has %lld items",
                            (long long)l->order[i], (long long)l->dataset->count);
    return true;
}

static bool make_order(cn_loader *l)
{
    if (l->ordered || !l->sampler) return true;
    if (!l->order && l->items) l->order = cn__alloc(l->object.ctx, (size_t)l->items * sizeof *l->order);
    if (!l->order && l->items) return false;
    return l->ordered = cn__sampler_fill(l->sampler, l->spec.seed, l->epoch, l->order) && check_order(l);
}

/* Pushes batches until the queue is full or the epoch ends. False: no memory. */
static bool schedule(cn_loader *l)
{
    for (; l->crew.queued < l->depth && l->ahead < l->batches; l->ahead++) {
        cn__parcel *b = cn__parcel_acquire(l->pool, &l->spec);
        if (!b) return false;
        int64_t first = l->ahead * l->spec.batch;
        b->epoch = l->epoch;
        b->number = l->ahead;
        b->n = l->items - first < l->spec.batch ? l->items - first : l->spec.batch;
        for (int64_t i = 0; i < b->n; i++) b->index[i] = l->order ? l->order[first + i] : first + i;
        cn__crew_push(&l->crew, b);
    }
    return true;
}

static void rewind_to(cn_loader *l, int64_t epoch, int64_t batch)
{
    drain(l);
    if (epoch != l->epoch) l->ordered = false;
    l->epoch = epoch;
    l->next = l->ahead = batch;
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

static bool next(cn_loader *l, cn_batch *batch)
{
    if (l->next >= l->batches) {
        rewind_to(l, l->epoch + 1, 0);
        return false;
    }
    if (!make_order(l)) return false;
    if (!schedule(l) && !l->crew.queued)
        return cn__fail(l->object.ctx, CN_NO_MEMORY, "loader: out of memory: a batch needs %zu bytes",
                        cn__parcel_bytes(&l->spec));
    cn__parcel *b = cn__crew_first(&l->crew);
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
    if (value[EPOCH] < 0 || value[EPOCH] >= MAX_EPOCH || value[BATCH] < 0 || value[BATCH] > l->batches)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_load: the position is out of range: batch %" PRId64 " of %" PRId64 ", epoch %" PRId64,
                        value[BATCH], l->batches, value[EPOCH]);
    rewind_to(l, value[EPOCH], value[BATCH]);
    l->spec.seed = (uint64_t)value[SEED];
    l->ordered = false;
    return true;
}

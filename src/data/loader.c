/* Loaders: which batch comes next, and where it stands. */
#include <inttypes.h>
#include <stdio.h>

#include "data/loader.h"

enum { MAX_WORKERS = 256, MAX_PREFETCH = 1024 };
#define MAX_EPOCH ((int64_t)1 << 30)

struct cn_loader {
    cn__object object;
    cn_dataset *dataset;      /* held */
    cn_data_sampler *sampler; /* held; NULL: one after the other */
    cn__spec spec;
    cn__crew crew;
    cn__parcel_pool *pool;
    int64_t items, batches; /* of an epoch */
    int64_t depth;          /* batches in the queue */
    int64_t epoch;
    int64_t next, ahead; /* batch to give out, to put into the queue */
    int64_t *order;      /* (items): of this epoch; NULL without a sampler */
    bool ordered;
};

/* ---- making and freeing */

static void drain(cn_loader *l)
{
    for (cn__parcel *b = cn__crew_drain(&l->crew), *next; b; b = next) {
        next = b->next;
        cn__parcel_put(b);
    }
}

static void destroy(void *self)
{
    cn_loader *l = self;
    drain(l);
    cn__crew_close(&l->crew, l->object.ctx);
    cn__parcel_pool_close(l->pool);
    cn__free(l->object.ctx, l->order, (size_t)l->items * sizeof *l->order);
    cn_data_sampler_free(l->sampler);
    cn_dataset_free(l->dataset);
}

static bool check_desc(cn_ctx *ctx, const cn_dataset *d, const cn_loader_desc *desc)
{
    if (desc->batch < 0 || desc->batch > INT32_MAX / CN_MAX_FIELDS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: batches of %lld", (long long)desc->batch);
    if (desc->workers < 0 || desc->workers > MAX_WORKERS || desc->prefetch < 0 || desc->prefetch > MAX_PREFETCH)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: %d workers, %d batches ahead; up to %d and %d can be had",
                        desc->workers, desc->prefetch, MAX_WORKERS, MAX_PREFETCH);
    if (desc->sampler && desc->shuffle)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_new: a sampler decides the order: shuffle cannot be asked for too");
    if (desc->sampler && desc->sampler->domain > d->count)
        return cn__fail(ctx, CN_BAD_INDEX, "loader_new: a sampler of %lld items for a dataset of %lld",
                        (long long)desc->sampler->domain, (long long)d->count);
    if (desc->collate_fields && !desc->collate)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_new: fields of a collate function, and no function");
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
    if (!d) return NULL;
    if (!desc) desc = &defaults;
    cn_ctx *ctx = d->shared.object.ctx;
    if (!check_desc(ctx, d, desc)) return NULL;
    /* Before the loader: a context frees the newest first, and this one is freed by its holder. */
    cn_data_sampler *sampler =
        desc->shuffle ? cn_data_sampler_random(ctx, d->count, NULL) : cn__shared_hold(desc->sampler);
    if (desc->shuffle && !sampler) return NULL;
    cn_loader *l = cn__object_new(ctx, sizeof *l, destroy);
    if (!l) {
        cn_data_sampler_free(sampler);
        return NULL;
    }
    l->dataset = cn__shared_hold(d);
    l->sampler = sampler;
    bool ok = (l->pool = cn__parcel_pool_new(ctx));
    if (ok) {
        describe(l, desc);
        ok = cn__parcel_bytes(&l->spec) != SIZE_MAX ||
             cn__fail(ctx, CN_BAD_SHAPE, "loader_new: a batch of %lld items is too large", (long long)l->spec.batch);
    }
    if (ok && cn__crew_open(&l->crew, ctx, &l->spec, desc->workers)) return l;
    cn_loader_free(l);
    return NULL;
}

void cn_loader_free(cn_loader *l) { cn__object_free(l); }
int64_t cn_loader_batches(const cn_loader *l) { return l ? l->batches : 0; }
int64_t cn_loader_epoch(const cn_loader *l) { return l ? l->epoch : 0; }

/* ---- the order of an epoch, and what is in the queue */

static bool check_order(const cn_loader *l)
{
    for (int64_t i = 0; i < l->items; i++)
        if (l->order[i] < 0 || l->order[i] >= l->dataset->count)
            return cn__fail(l->object.ctx, CN_BAD_INDEX, "loader: the sampler gave index %lld of a dataset of %lld",
                            (long long)l->order[i], (long long)l->dataset->count);
    return true;
}

static bool make_order(cn_loader *l)
{
    if (l->ordered || !l->sampler) return true;
    if (!l->order && l->items) l->order = cn__alloc(l->object.ctx, (size_t)l->items * sizeof *l->order);
    if (!l->order && l->items) return false;
    return l->ordered = cn_data_sampler_indices(l->sampler, l->spec.seed, l->epoch, l->order) && check_order(l);
}

/* Until the queue is full or the epoch is over. False: no memory. */
static bool schedule(cn_loader *l)
{
    for (; l->crew.queued < l->depth && l->ahead < l->batches; l->ahead++) {
        cn__parcel *b = cn__parcel_take(l->pool, &l->spec);
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

/* ---- batches out */

static bool report(cn_loader *l, cn__parcel *b)
{
    if (b->failed_at < 0)
        return cn__fail(l->object.ctx, b->code, "loader: batch %lld: %s", (long long)b->number, b->error);
    return cn__fail(l->object.ctx, b->code, "loader: item %lld: %s", (long long)b->index[b->failed_at], b->error);
}

bool cn_loader_next(cn_loader *l, cn_batch *batch)
{
    if (!batch) return false;
    *batch = (cn_batch){ 0 };
    if (!l || cn_failed(l->object.ctx)) return false;
    if (l->next >= l->batches) {
        rewind_to(l, l->epoch + 1, 0);
        return false;
    }
    if (!make_order(l)) return false;
    if (!schedule(l) && !l->crew.queued)
        return cn__fail(l->object.ctx, CN_NO_MEMORY, "loader: out of memory: a batch takes %zu bytes",
                        cn__parcel_bytes(&l->spec));
    cn__parcel *b = cn__crew_first(&l->crew);
    bool ok = !b->code;
    if (ok && !cn__parcel_tensors(b, &l->spec, batch)) {
        *batch = (cn_batch){ 0 };
        return false; /* it is still the first: to be asked for again */
    }
    cn__crew_pop(&l->crew);
    l->next++;
    if (!ok) {
        report(l, b);
        cn__parcel_put(b);
    }
    if (l->depth > 1 || l->crew.started) schedule(l); /* the workers go on while the batch is used */
    return ok;
}

bool cn_loader_reset(cn_loader *l, int64_t epoch)
{
    if (!l) return false;
    if (epoch < 0 || epoch >= MAX_EPOCH)
        return cn__fail(l->object.ctx, CN_BAD_ARGUMENT, "loader_reset: epoch %lld", (long long)epoch);
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
    if (!l || !dict) return false;
    const int64_t value[NUMBERS] = { l->epoch, l->next, (int64_t)l->spec.seed, l->items, l->spec.batch };
    for (int i = 0; i < NUMBERS; i++)
        if (!cn_dict_set_whole(dict, full_name(prefix, i, name, sizeof name), value[i])) return false;
    return true;
}

bool cn_loader_load(cn_loader *l, const cn_dict *dict, const char *prefix)
{
    char name[256];
    int64_t value[NUMBERS];
    if (!l || !dict) return false;
    cn_ctx *ctx = l->object.ctx;
    for (int i = 0; i < NUMBERS; i++)
        if (!cn_dict_whole(dict, full_name(prefix, i, name, sizeof name), &value[i]))
            return cn__fail(ctx, CN_NOT_FOUND, "loader_load: no number named %s", name);
    if (value[ITEMS] != l->items || value[BATCH_SIZE] != l->spec.batch)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "loader_load: saved with %" PRId64 " items in batches of %" PRId64 ", this one has %" PRId64
                        " in batches of %" PRId64,
                        value[ITEMS], value[BATCH_SIZE], l->items, l->spec.batch);
    if (value[EPOCH] < 0 || value[EPOCH] >= MAX_EPOCH || value[BATCH] < 0 || value[BATCH] > l->batches)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "loader_load: batch %" PRId64 " of epoch %" PRId64, value[BATCH],
                        value[EPOCH]);
    rewind_to(l, value[EPOCH], value[BATCH]);
    l->spec.seed = (uint64_t)value[SEED];
    l->ordered = false;
    return true;
}

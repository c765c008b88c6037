/* Samplers: write the indices of an epoch, in the order in which a loader reads them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/data.h"

static void destroy(void *self)
{
    cn_data_sampler *s = self;
    if (s->close) s->close(s);
}

const cn__object_type cn__data_sampler_type = { "data sampler", destroy };

static void *sampler_new(cn_ctx *ctx, const char *who, size_t bytes, int64_t count, int64_t domain,
                         bool (*fill)(const cn_data_sampler *, uint64_t, int64_t, int64_t *))
{
    CN__CALL call = cn__enter(ctx, who);
    if (!call.ctx) return NULL;
    if (count < 0 || (uint64_t)count > SIZE_MAX / 32 || (domain == 0 && count > 0)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: cannot draw %lld samples from %lld items", who, (long long)count,
                 (long long)domain);
        return NULL;
    }
    cn_data_sampler *s = cn__object_new(ctx, bytes, &cn__data_sampler_type);
    if (!s) return NULL;
    s->count = count;
    s->domain = domain;
    s->fill = fill;
    return s;
}

void cn_data_sampler_free(cn_data_sampler *s) { cn__free_by_program(s, &cn__data_sampler_type, __func__); }
int64_t cn_data_sampler_count(const cn_data_sampler *s) { return cn__is(s, &cn__data_sampler_type) ? s->count : 0; }

bool cn__sampler_fill(cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *indices, int64_t *sizes,
                      int64_t *batches)
{
    cn_ctx *ctx = s->object.ctx;
    CN__USE used = cn__object_use(s);
    cn__outside out = cn__go_out(ctx);
    if (s->cut) *batches = s->cut(s, seed, epoch, indices, sizes);
    const bool ok = s->cut ? *batches >= 0 : s->fill(s, seed, epoch, indices);
    cn__come_back(ctx, out);
    return ok || cn__fail(ctx, CN_BAD_ARGUMENT, "sampler: its function failed for epoch %lld", (long long)epoch);
}

bool cn_data_sampler_indices(cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *indices)
{
    CN__CALL call = cn__call_object(s, &cn__data_sampler_type);
    if (!call.ctx) return false;
    if ((!indices && s->count) || epoch < 0)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT,
                        "data_sampler_indices: indices must not be NULL and epoch ≥ 0, got epoch %lld",
                        (long long)epoch);
    const size_t bytes = s->cut ? (size_t)s->count * sizeof(int64_t) : 0;
    int64_t *sizes = cn__alloc(call.ctx, bytes), batches = 0;
    const bool ok = (sizes || !bytes) && cn__sampler_fill(s, seed, epoch, indices, sizes, &batches);
    cn__free(call.ctx, sizes, bytes);
    return ok;
}

/* ---- sequential, random */

static bool fill_sequential(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    (void)seed, (void)epoch;
    for (int64_t i = 0; i < s->count; i++) out[i] = i;
    return true;
}

cn_data_sampler *cn_data_sampler_sequential(cn_ctx *ctx, int64_t count)
{
    return sampler_new(ctx, "data_sampler_sequential", sizeof(cn_data_sampler), count, count, fill_sequential);
}

static bool fill_replaced(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    for (int64_t i = 0; i < s->count; i++) out[i] = cn_draw_below(&d, s->domain);
    return true;
}

/* Whole permutations (Fisher and Yates), then a random part of one more. */
static bool fill_random(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    int64_t n = s->domain, done = 0;
    for (; done + n <= s->count && n > 0; done += n) {
        for (int64_t i = 0; i < n; i++) out[done + i] = i;
        cn__shuffle(&d, out + done, n);
    }
    int64_t rest = s->count - done; /* below n: chosen by reservoir sampling, then shuffled */
    for (int64_t i = 0; i < n && rest; i++) {
        int64_t at = i < rest ? i : cn_draw_below(&d, i + 1);
        if (at < rest) out[done + at] = i;
    }
    cn__shuffle(&d, out + done, rest);
    return true;
}

cn_data_sampler *cn_data_sampler_random(cn_ctx *ctx, int64_t count, const cn_random_desc *desc)
{
    static const cn_random_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    return sampler_new(ctx, "data_sampler_random", sizeof(cn_data_sampler), desc->samples ? desc->samples : count,
                       count, desc->replacement ? fill_replaced : fill_random);
}

/* ---- weighted */

typedef struct weighted {
    cn_data_sampler base;
    double *value; /* (domain): cumulative sums of the weights; without replacement, the weights */
} weighted;

static void weighted_close(cn_data_sampler *s)
{
    cn__free(s->object.ctx, ((weighted *)s)->value, (size_t)s->domain * sizeof(double));
}

static bool fill_weighted(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    const double *sum = ((const weighted *)s)->value;
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    for (int64_t i = 0; i < s->count; i++) {
        double at = cn_draw_unit(&d) * sum[s->domain - 1];
        int64_t low = 0, high = s->domain - 1; /* search the first sum above `at` */
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            if (sum[mid] > at) high = mid;
            else low = mid + 1;
        }
        while (low > 0 && sum[low] == sum[low - 1]) low--; /* rounding may lead to an item of weight 0 at the end */
        out[i] = low;
    }
    return true;
}

typedef struct arrival {
    double time;
    int64_t index;
} arrival;

static int compare_arrivals(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Draws an arrival time for each item, at a rate equal to its weight; the first `count` arrivals are the sample
   (Efraimidis and Spirakis, 2006). */
static bool fill_weighted_once(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    const double *weight = ((const weighted *)s)->value;
    cn_ctx *ctx = s->object.ctx;
    size_t bytes = (size_t)s->domain * sizeof(arrival);
    arrival *a = cn__alloc(ctx, bytes);
    if (!a) return s->count == 0;
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    for (int64_t i = 0; i < s->domain; i++) {
        double time = -log(1 - cn_draw_unit(&d));
        a[i] = (arrival){ weight[i] > 0 ? time / weight[i] : INFINITY, i };
    }
    qsort(a, (size_t)s->domain, sizeof *a, compare_arrivals);
    for (int64_t i = 0; i < s->count; i++) out[i] = a[i].index;
    cn__free(ctx, a, bytes);
    return true;
}

static bool read_weights(cn_ctx *ctx, const double *weights, int64_t n, bool sums, double *value, int64_t *positive)
{
    double total = 0;
    *positive = 0;
    for (int64_t i = 0; i < n; i++) {
        total += weights[i];
        value[i] = sums ? total : weights[i];
        *positive += weights[i] > 0;
        if (!(weights[i] >= 0) || !isfinite(total))
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "data_sampler_weighted: weight %lld is %g; weights must be ≥ 0 and finite", (long long)i,
                            weights[i]);
    }
    return total > 0 ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_weighted: no weight is above 0; at least one must be");
}

cn_data_sampler *cn_data_sampler_weighted(cn_ctx *ctx, const double *weights, int64_t count,
                                          const cn_weighted_desc *desc)
{
    static const cn_weighted_desc defaults = { 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc) desc = &defaults;
    if (!weights || count < 1 || (uint64_t)count > SIZE_MAX / 32) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_weighted: %s, got %lld",
                 weights ? "count must be ≥ 1 and fit in memory" : "weights must not be NULL", (long long)count);
        return NULL;
    }
    weighted *w = sampler_new(ctx, "data_sampler_weighted", sizeof *w, desc->samples ? desc->samples : count, count,
                              desc->no_replacement ? fill_weighted_once : fill_weighted);
    if (!w) return NULL;
    int64_t positive = 0;
    w->base.close = weighted_close;
    w->value = cn__alloc(ctx, (size_t)count * sizeof *w->value);
    bool ok = w->value && read_weights(ctx, weights, count, !desc->no_replacement, w->value, &positive);
    if (ok && desc->no_replacement && w->base.count > positive)
        ok = cn__fail(ctx, CN_BAD_ARGUMENT,
                      "data_sampler_weighted: cannot draw %lld samples without replacement from %lld weights above 0",
                      (long long)w->base.count, (long long)positive);
    if (ok) return &w->base;
    cn__object_free(&w->base);
    return NULL;
}

/* ---- the share of one rank */

typedef struct distributed {
    cn_data_sampler base;
    cn_distributed_desc desc;
} distributed;

static bool fill_distributed(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    const cn_distributed_desc *desc = &((const distributed *)s)->desc;
    cn_ctx *ctx = s->object.ctx;
    size_t bytes = (size_t)s->domain * sizeof(int64_t);
    int64_t *all = cn__alloc(ctx, bytes);
    if (!all) return s->count == 0;
    for (int64_t i = 0; i < s->domain; i++) all[i] = i;
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    if (!desc->in_order) cn__shuffle(&d, all, s->domain);
    for (int64_t i = 0; i < s->count; i++) out[i] = all[(i * desc->world + desc->rank) % s->domain];
    cn__free(ctx, all, bytes);
    return true;
}

cn_data_sampler *cn_data_sampler_distributed(cn_ctx *ctx, int64_t count, const cn_distributed_desc *desc)
{
    cn_distributed_desc d = desc ? *desc : (cn_distributed_desc){ 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (d.world == 0) d.world = 1;
    if (d.world < 1 || d.rank < 0 || d.rank >= d.world) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_distributed: rank must be 0 to world - 1, got rank %d of world %d",
                 d.rank, d.world);
        return NULL;
    }
    int64_t share = count < 0 ? count : d.drop_last ? count / d.world : count / d.world + (count % d.world != 0);
    distributed *s = sampler_new(ctx, "data_sampler_distributed", sizeof *s, share, count, fill_distributed);
    if (s) s->desc = d;
    return s ? &s->base : NULL;
}

/* ---- given indices, and a user's function */

typedef struct chosen {
    cn_data_sampler base;
    int64_t *index;
    bool shuffle;
} chosen;

static bool fill_chosen(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    const chosen *c = (const chosen *)s;
    if (s->count) memcpy(out, c->index, (size_t)s->count * sizeof *out);
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    if (c->shuffle) cn__shuffle(&d, out, s->count);
    return true;
}

static void chosen_close(cn_data_sampler *s)
{
    cn__free(s->object.ctx, ((chosen *)s)->index, (size_t)s->count * sizeof(int64_t));
}

cn_data_sampler *cn_data_sampler_subset(cn_ctx *ctx, const int64_t *indices, int64_t count, bool shuffle)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!indices && count > 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_subset: indices must not be NULL for %lld items",
                 (long long)count);
        return NULL;
    }
    chosen *c = sampler_new(ctx, "data_sampler_subset", sizeof *c, count, -1, fill_chosen);
    if (!c) return NULL;
    c->base.close = chosen_close;
    c->shuffle = shuffle;
    c->index = cn__alloc(ctx, (size_t)count * sizeof *c->index);
    if (count && !c->index) {
        cn__object_free(&c->base);
        return NULL;
    }
    if (count) memcpy(c->index, indices, (size_t)count * sizeof *c->index);
    return &c->base;
}

typedef struct own {
    cn_data_sampler base;
    cn_sample_fn fn;
    void *user;
} own;

static bool fill_own(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out)
{
    const own *o = (const own *)s;
    return o->fn(o->user, seed, epoch, s->count, out);
}

cn_data_sampler *cn_data_sampler_new(cn_ctx *ctx, int64_t count, cn_sample_fn fn, void *user)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!fn) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_new: fn must be a function, got NULL");
        return NULL;
    }
    own *o = sampler_new(ctx, "data_sampler_new", sizeof *o, count, -1, fill_own);
    if (!o) return NULL;
    o->fn = fn;
    o->user = user;
    return &o->base;
}

/* ---- whole batches: a user's function, and buckets by length */

typedef struct own_batches {
    cn_data_sampler base;
    cn_sample_batches_fn fn;
    void *user;
} own_batches;

static int64_t cut_own(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out, int64_t *sizes)
{
    const own_batches *o = (const own_batches *)s;
    return o->fn(o->user, seed, epoch, s->count, out, sizes);
}

cn_data_sampler *cn_data_sampler_batches(cn_ctx *ctx, int64_t count, int64_t batch, cn_sample_batches_fn fn, void *user)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!fn || batch < 1) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "data_sampler_batches: fn must be a function and batch ≥ 1, got %s and %lld",
                 fn ? "a function" : "NULL", (long long)batch);
        return NULL;
    }
    own_batches *o = sampler_new(ctx, "data_sampler_batches", sizeof *o, count, -1, NULL);
    if (!o) return NULL;
    o->base.cut = cut_own;
    o->base.largest = batch;
    o->base.batches = -1;
    o->fn = fn;
    o->user = user;
    return &o->base;
}

typedef struct measured {
    int64_t length, place, index; /* place: before sorting; it keeps the order of equal lengths */
} measured;

typedef struct buckets {
    cn_data_sampler base;
    cn_buckets_desc desc;
    int64_t *length; /* (domain) */
} buckets;

static int compare_lengths(const void *a, const void *b)
{
    const measured *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Fills items with the domain in the order of the buckets, and batch_order with the order of the batches. */
static void sort_pools(const buckets *b, cn_draw *d, measured *items, int64_t *batch_order)
{
    const int64_t n = b->base.domain, pool = b->desc.in_order ? n : b->desc.pool * b->desc.batch;
    int64_t *order = batch_order; /* (domain): first the order of items */
    for (int64_t i = 0; i < n; i++) order[i] = i;
    if (!b->desc.in_order) cn__shuffle(d, order, n);
    for (int64_t i = 0; i < n; i++) items[i] = (measured){ b->length[order[i]], i, order[i] };
    for (int64_t i = 0; i < n; i += pool)
        qsort(items + i, (size_t)(n - i < pool ? n - i : pool), sizeof *items, compare_lengths);
    for (int64_t i = 0; i < b->base.batches; i++) batch_order[i] = i;
    if (!b->desc.in_order) cn__shuffle(d, batch_order, b->base.batches);
}

static int64_t cut_buckets(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out, int64_t *sizes)
{
    const buckets *b = (const buckets *)s;
    cn_ctx *ctx = s->object.ctx;
    const size_t n = (size_t)s->domain;
    measured *items = cn__alloc(ctx, n * sizeof *items);
    int64_t *order = cn__alloc(ctx, n * sizeof *order), done = 0;
    const bool ok = n == 0 || (items && order);
    cn_draw d = cn__order_draw(seed, epoch, CN__STREAM_ORDER);
    if (ok) sort_pools(b, &d, items, order);
    for (int64_t i = 0; i < s->batches && ok; i++) {
        const int64_t first = order[i] * s->largest, left = s->domain - first;
        sizes[i] = left < s->largest ? left : s->largest;
        for (int64_t k = 0; k < sizes[i]; k++) out[done++] = items[first + k].index;
    }
    cn__free(ctx, items, n * sizeof *items);
    cn__free(ctx, order, n * sizeof *order);
    return ok ? s->batches : -1;
}

static void buckets_close(cn_data_sampler *s)
{
    cn__free(s->object.ctx, ((buckets *)s)->length, (size_t)s->domain * sizeof(int64_t));
}

cn_data_sampler *cn_data_sampler_buckets(cn_ctx *ctx, const int64_t *lengths, int64_t count,
                                         const cn_buckets_desc *desc)
{
    cn_buckets_desc d = desc ? *desc : (cn_buckets_desc){ 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!d.batch) d.batch = 1;
    if (!d.pool) d.pool = 100;
    if ((!lengths && count > 0) || d.batch < 1 || d.pool < 1 || d.pool > INT64_MAX / d.batch) {
        cn__fail(
            ctx, CN_BAD_ARGUMENT,
            "data_sampler_buckets: lengths must not be NULL, and batch and pool ≥ 1 and not too large; got %s, %lld "
            "and %lld",
            lengths ? "lengths" : "NULL", (long long)d.batch, (long long)d.pool);
        return NULL;
    }
    const int64_t kept = d.drop_last && count > 0 ? count / d.batch * d.batch : count;
    buckets *b = sampler_new(ctx, "data_sampler_buckets", sizeof *b, kept, count, NULL);
    if (!b) return NULL;
    b->desc = d;
    b->base.close = buckets_close;
    b->base.cut = cut_buckets;
    b->base.largest = d.batch;
    b->base.batches = kept / d.batch + (kept % d.batch != 0);
    b->length = cn__alloc(ctx, (size_t)count * sizeof *b->length);
    if (count && !b->length) {
        cn__object_free(&b->base);
        return NULL;
    }
    if (count) memcpy(b->length, lengths, (size_t)count * sizeof *b->length);
    return &b->base;
}

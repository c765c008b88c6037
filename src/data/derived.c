/* Datasets made of other datasets: a subset, random parts, several one after the other, a function of each item. */
#include <math.h>
#include <stdio.h>

#include "cairn/image.h"
#include "data/data.h"

/* ---- subset */

typedef struct subset {
    cn_dataset base;
    cn_dataset *source;
    int64_t *index;
} subset;

static bool subset_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const subset *s = (const subset *)d;
    return cn__dataset_get(s->source, s->index[index], f, fields);
}

static void subset_close(cn_dataset *d)
{
    subset *s = (subset *)d;
    cn__free(d->object.ctx, s->index, (size_t)d->count * sizeof *s->index);
    cn__object_unuse(s->source);
}

static bool copy_classes(cn_dataset *to, const cn_dataset *from)
{
    for (int i = 0; i < cn_dataset_classes(from); i++) {
        const char *name = cn_dataset_class(from, i);
        if (!cn__add_class(to, name, strlen(name))) return false;
    }
    return true;
}

cn_dataset *cn_dataset_subset(cn_dataset *d, const int64_t *indices, int64_t count)
{
    CN__CALL call = cn__call_object(d, &cn__dataset_type);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = call.ctx;
    if (!cn__has_numbers(d, "dataset_subset")) return NULL;
    if (!indices && count > 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_subset: indices must not be NULL for %lld items", (long long)count);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] >= 0 && indices[i] < d->count) continue;
        cn__fail(ctx, CN_BAD_INDEX, "dataset_subset: index %lld is out of range: the dataset has %lld items",
                 (long long)indices[i], (long long)d->count);
        return NULL;
    }
    if (count < 0 || (uint64_t)count > SIZE_MAX / 16) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_subset: count must be ≥ 0 and fit in memory, got %lld",
                 (long long)count);
        return NULL;
    }
    subset *s = (subset *)cn__dataset_new(ctx, sizeof *s, count, d->field, d->fields);
    if (!s) return NULL;
    s->base.get = subset_get;
    s->base.close = subset_close;
    s->source = cn__object_use(d);
    s->index = cn__alloc(ctx, (size_t)count * sizeof *s->index);
    if ((count && !s->index) || !copy_classes(&s->base, d)) {
        cn__object_free(&s->base);
        return NULL;
    }
    if (count) memcpy(s->index, indices, (size_t)count * sizeof *s->index);
    return &s->base;
}

/* ---- random parts */

/* As PyTorch's random_split: fractions are rounded down; the items that are left go to the first parts, one to each. */
static bool part_sizes(cn_dataset *d, const double *sizes, int n, int64_t *out)
{
    cn_ctx *ctx = d->object.ctx;
    double sum = 0;
    bool fractions = true;
    for (int i = 0; i < n; i++) {
        if (!(sizes[i] >= 0 && sizes[i] < 9e15))
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "dataset_split: the size of part %d must be ≥ 0 and below 9e15, got %g", i, sizes[i]);
        sum += sizes[i];
        fractions = fractions && sizes[i] <= 1;
    }
    fractions = fractions && fabs(sum - 1) < 1e-6;
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        out[i] = (int64_t)floor(fractions ? sizes[i] * (double)d->count : sizes[i]);
        if (!fractions && (double)out[i] != sizes[i])
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "dataset_split: sizes must be counts, or fractions that sum to 1; got %g", sum);
        total += out[i];
    }
    for (int i = 0; fractions && total < d->count; i = (i + 1) % n, total++) out[i]++;
    if (total == d->count) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_split: the sizes sum to %lld, but the dataset has %lld items",
                    (long long)total, (long long)d->count);
}

bool cn_dataset_split(cn_dataset *d, const double *sizes, int n, uint64_t seed, cn_dataset **parts)
{
    if (parts && n > 0) memset(parts, 0, (size_t)n * sizeof *parts);
    CN__CALL call = cn__call_object(d, &cn__dataset_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return false;
    if (!parts || !sizes || n < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_split: sizes and parts must not be NULL and n ≥ 1, got n %d", n);
    if (!cn__has_numbers(d, "dataset_split")) return false;
    size_t bytes = (size_t)n * sizeof(int64_t), order_bytes = (size_t)d->count * sizeof(int64_t);
    int64_t *size = cn__alloc(ctx, bytes), *order = cn__alloc(ctx, order_bytes);
    bool ok = size && (order || !d->count) && part_sizes(d, sizes, n, size);
    if (ok) {
        for (int64_t i = 0; i < d->count; i++) order[i] = i;
        cn_draw draw = cn__order_draw(seed, 0, CN__STREAM_SPLIT);
        cn__shuffle(&draw, order, d->count);
    }
    int64_t first = 0;
    for (int i = 0; i < n && ok; i++) {
        ok = (parts[i] = cn_dataset_subset(d, order ? order + first : NULL, size[i]));
        first += size[i];
    }
    for (int i = 0; i < n && !ok; i++) {
        cn__object_free(parts[i]);
        parts[i] = NULL;
    }
    cn__free(ctx, size, bytes);
    cn__free(ctx, order, order_bytes);
    return ok;
}

/* ---- one after the other */

typedef struct concat {
    cn_dataset base;
    int n;
    cn_dataset **source;
} concat;

static bool concat_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const concat *c = (const concat *)d;
    int i = 0;
    for (; index >= c->source[i]->count; i++) index -= c->source[i]->count;
    return cn__dataset_get(c->source[i], index, f, fields);
}

static void concat_close(cn_dataset *d)
{
    concat *c = (concat *)d;
    for (int i = 0; i < c->n && c->source; i++) cn__object_unuse(c->source[i]);
    cn__free(d->object.ctx, c->source, (size_t)c->n * sizeof *c->source);
}

static bool same_fields(const cn_dataset *a, const cn_dataset *b)
{
    if (a->fields != b->fields) return false;
    for (int i = 0; i < a->fields; i++) {
        const cn_dims *x = &a->field[i].shape, *y = &b->field[i].shape;
        if (a->field[i].dtype != b->field[i].dtype || x->n != y->n) return false;
        if (memcmp(x->v, y->v, (size_t)x->n * sizeof *x->v)) return false;
    }
    return true;
}

cn_dataset *cn_dataset_concat(cn_dataset *const *d, int n)
{
    cn_dataset *any = NULL;
    for (int i = 0; i < n && d && !any; i++) any = d[i];
    CN__CALL call = cn__call_object(any, &cn__dataset_type);
    if (!call.ctx) return NULL;
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        if (!cn__object_of(call.ctx, d[i], &cn__dataset_type, __func__)) return NULL;
        if (!cn__has_numbers(d[i], "dataset_concat")) return NULL;
        if (!same_fields(d[i], d[0]) || d[i]->count > INT64_MAX - count) {
            cn__fail(d[0]->object.ctx, CN_BAD_SHAPE, "dataset_concat: dataset %d has other fields than dataset 0", i);
            return NULL;
        }
        count += d[i]->count;
    }
    cn_ctx *ctx = d[0]->object.ctx;
    concat *c = (concat *)cn__dataset_new(ctx, sizeof *c, count, d[0]->field, d[0]->fields);
    if (!c) return NULL;
    c->base.get = concat_get;
    c->base.close = concat_close;
    c->n = n;
    c->source = cn__alloc(ctx, (size_t)n * sizeof *c->source);
    for (int i = 0; i < n && c->source; i++) c->source[i] = cn__object_use(d[i]);
    if (c->source && copy_classes(&c->base, d[0])) return &c->base;
    cn__object_free(&c->base);
    return NULL;
}

/* ---- a function of every item */

typedef struct map {
    cn_dataset base;
    cn_dataset *source;
    cn_map_fn fn;
    void *user;
    void (*free_user)(void *user);
    void *transform; /* that user is, if fn is cn_transform_map; used */
} map;

void *cn_map_scratch(const cn_map_call *call, size_t bytes)
{
    cn__fetch *f = call ? call->from : NULL;
    return f ? cn__arena_alloc(&f->arena, bytes) : NULL;
}

static bool map_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const map *m = (const map *)d;
    const cn_dataset *s = m->source;
    cn_room rooms[CN_MAX_FIELDS];
    void *in[CN_MAX_FIELDS];
    for (int i = 0; i < s->fields; i++) {
        cn__room_open(&rooms[i], &s->field[i], &f->arena);
        in[i] = cn__field_varies(&s->field[i]) ? (void *)&rooms[i] : cn_room_take(&rooms[i], s->field[i].shape);
        if (!in[i]) return cn__fetch_no_memory(f);
    }
    if (!cn__dataset_get(s, index, f, in)) return false;
    f->code = CN_OK;
    f->error[0] = 0;
    cn_map_call call = { .index = index,
                         .random = &f->random,
                         .in_fields = s->fields,
                         .out_fields = d->fields,
                         .in_field = s->field,
                         .out_field = d->field,
                         .in = (const void *const *)in,
                         .out = fields,
                         .error = f->error,
                         .error_size = sizeof f->error,
                         .from = f };
    if (m->fn(m->user, &call)) return true;
    if (!f->code) f->code = CN_BAD_FILE;
    if (!f->error[0]) cn__fetch_fail(f, CN_BAD_FILE, "the map's function returned false and no message");
    return false;
}

static void map_close(cn_dataset *d)
{
    map *m = (map *)d;
    if (m->free_user) cn__call_free(d->object.ctx, m->free_user, m->user);
    cn__object_unuse(m->transform);
    cn__object_unuse(m->source);
}

cn_dataset *cn_dataset_map(cn_dataset *d, const cn_map_desc *desc)
{
    CN__CALL call = cn__call_object(d, &cn__dataset_type);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = d->object.ctx;
    if (!desc || !desc->fn) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_map: fn must be a function, got NULL");
        return NULL;
    }
    const bool transforms = desc->fn == cn_transform_map;
    if (transforms && !cn__object_of(ctx, desc->user, &cn__transform_type, __func__)) return NULL;
    const cn_field *field = desc->fields ? desc->field : d->field;
    int fields = desc->fields ? desc->fields : d->fields;
    if (!cn__check_fields(ctx, "dataset_map", field, fields, true)) return NULL;
    map *m = (map *)cn__dataset_new(ctx, sizeof *m, d->count, field, fields);
    if (!m) return NULL;
    m->base.get = map_get;
    if (!copy_classes(&m->base, d)) {
        cn__object_free(&m->base);
        return NULL;
    }
    m->base.close = map_close;
    m->base.stream = d->stream;
    m->source = cn__object_use(d);
    m->fn = desc->fn;
    m->user = desc->user;
    m->free_user = desc->free_user;
    m->transform = transforms ? cn__object_use(desc->user) : NULL;
    return &m->base;
}

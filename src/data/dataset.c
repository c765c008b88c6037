/* What all datasets share, datasets with a user's function, and datasets in memory: arrays and tensors. */
#include <stdio.h>
#include <stdlib.h>

#include "core/handle.h"
#include "core/host.h"
#include "data/data.h"

/* ---- fields */

bool cn__field_varies(const cn_field *f)
{
    for (int i = 0; i < f->shape.n; i++)
        if (f->shape.v[i] < 0) return true;
    return false;
}

/* SIZE_MAX: it overflows. */
size_t cn__shape_bytes(cn_dtype dtype, cn_dims shape)
{
    size_t bytes = cn_dtype_size(dtype);
    for (int i = 0; i < shape.n; i++)
        if (shape.v[i] == 0) return 0;
    for (int i = 0; i < shape.n; i++) {
        if (shape.v[i] < 0 || bytes > (size_t)(INT64_MAX / 4) / (size_t)shape.v[i]) return SIZE_MAX;
        bytes *= (size_t)shape.v[i];
    }
    return bytes;
}

size_t cn__field_bytes(const cn_field *f) { return cn__shape_bytes(f->dtype, f->shape); }

static bool check_field(cn_ctx *ctx, const char *who, const cn_field *f, int number, bool may_vary)
{
    if ((unsigned)f->dtype >= CN_DTYPES)
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: field %d has dtype %d, which does not exist", who, number,
                        (int)f->dtype);
    if (f->shape.n < 0 || f->shape.n >= CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: field %d has %d axes; an item has 0 to %d", who, number, f->shape.n,
                        CN_MAX_DIMS - 1);
    for (int i = 0; i < f->shape.n; i++) {
        if (f->shape.v[i] >= 0 || (may_vary && f->shape.v[i] == -1)) continue;
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: field %d: the size of axis %d must be ≥ 0%s, got %lld", who, number, i,
                        may_vary ? ", or -1 if it varies" : "", (long long)f->shape.v[i]);
    }
    if (!cn__field_varies(f) && cn__field_bytes(f) == SIZE_MAX)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: an item of field %d is too large for memory", who, number);
    return true;
}

bool cn__check_fields(cn_ctx *ctx, const char *who, const cn_field *field, int fields, bool may_vary)
{
    if (fields < 1 || fields > CN_MAX_FIELDS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be 1 to %d fields, got %d", who, CN_MAX_FIELDS, fields);
    for (int i = 0; i < fields; i++)
        if (!check_field(ctx, who, &field[i], i, may_vary)) return false;
    return true;
}

/* ---- every dataset */

static void destroy(void *self)
{
    cn_dataset *d = self;
    cn_ctx *ctx = d->object.ctx;
    if (d->close) d->close(d);
    for (size_t i = 0; i < d->classes.n; i++) cn__free_text(ctx, ((char **)d->classes.v)[i]);
    cn__vec_free(&ctx->memory, &d->classes, sizeof(char *));
}

const cn__object_type cn__dataset_type = { "dataset", destroy };

cn_dataset *cn__dataset_new(cn_ctx *ctx, size_t bytes, int64_t count, const cn_field *field, int fields)
{
    cn_dataset *d = cn__object_new(ctx, bytes, &cn__dataset_type);
    if (!d) return NULL;
    d->count = count;
    d->fields = fields;
    memcpy(d->field, field, (size_t)fields * sizeof *field);
    return d;
}

bool cn__dataset_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    if (!d->stream && (index < 0 || index >= d->count))
        return cn__fetch_fail(f, CN_BAD_INDEX, "index %lld is out of range: the dataset has %lld items",
                              (long long)index, (long long)d->count);
    return d->get(d, index, f, fields);
}

bool cn__has_numbers(const cn_dataset *d, const char *who)
{
    return !d->stream || cn__fail(d->object.ctx, CN_BAD_ARGUMENT, "%s: the items of a stream have no numbers", who);
}

bool cn__add_class(cn_dataset *d, const char *name, size_t length)
{
    cn_ctx *ctx = d->object.ctx;
    if (!cn__vec_reserve(&ctx->memory, &d->classes, d->classes.n + 1, sizeof(char *)))
        return cn__no_memory(ctx, "dataset");
    char *copy = cn__alloc(ctx, length + 1);
    if (!copy) return false;
    memcpy(copy, name, length);
    ((char **)d->classes.v)[d->classes.n++] = copy;
    return true;
}

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void cn__sort_texts(cn__vec *texts)
{
    if (texts->n) qsort(texts->v, texts->n, sizeof(char *), compare_texts);
}

void cn_dataset_free(cn_dataset *d) { cn__free_by_program(d, &cn__dataset_type, __func__); }
int64_t cn_dataset_count(const cn_dataset *d) { return cn__is(d, &cn__dataset_type) ? d->count : 0; }
int cn_dataset_fields(const cn_dataset *d) { return cn__is(d, &cn__dataset_type) ? d->fields : 0; }
int cn_dataset_classes(const cn_dataset *d) { return cn__is(d, &cn__dataset_type) ? (int)d->classes.n : 0; }

cn_field cn_dataset_field(const cn_dataset *d, int i)
{
    return cn__is(d, &cn__dataset_type) && i >= 0 && i < d->fields ? d->field[i] : (cn_field){ 0 };
}

const char *cn_dataset_class(const cn_dataset *d, int i)
{
    return cn__is(d, &cn__dataset_type) && i >= 0 && (size_t)i < d->classes.n ? ((char **)d->classes.v)[i] : NULL;
}

void cn__call_free(cn_ctx *ctx, void (*free_user)(void *user), void *user)
{
    cn__outside out = cn__go_out(ctx);
    free_user(user);
    cn__come_back(ctx, out);
}

/* ---- items made by a user's function */

typedef struct own {
    cn_dataset base;
    cn_get_fn get;
    void *user;
    void (*free_user)(void *user);
} own;

static bool own_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const own *o = (const own *)d;
    f->error[0] = 0;
    if (o->get(o->user, index, &f->random, fields, f->error, sizeof f->error)) return true;
    f->code = CN_BAD_FILE;
    if (!f->error[0]) cn__fetch_fail(f, CN_BAD_FILE, "the dataset's get function returned false and no message");
    return false;
}

static void own_close(cn_dataset *d)
{
    own *o = (own *)d;
    if (o->free_user) cn__call_free(d->object.ctx, o->free_user, o->user);
}

cn_dataset *cn_dataset_new(cn_ctx *ctx, const cn_dataset_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc || !desc->get || desc->count < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_new: get must be a function and count ≥ 0, got %s and %lld",
                 desc && desc->get ? "a function" : "NULL", (long long)(desc ? desc->count : 0));
        return NULL;
    }
    if (!cn__check_fields(ctx, "dataset_new", desc->field, desc->fields, true)) return NULL;
    own *o = (own *)cn__dataset_new(ctx, sizeof *o, desc->count, desc->field, desc->fields);
    if (!o) return NULL;
    o->base.get = own_get;
    o->base.close = own_close;
    o->get = desc->get;
    o->user = desc->user;
    o->free_user = desc->free_user;
    return &o->base;
}

/* ---- in memory: arrays, tensors */

typedef struct arrays {
    cn_dataset base;
    const char *data[CN_MAX_FIELDS];
    size_t bytes[CN_MAX_FIELDS];      /* of an item */
    cn_tensor *tensor[CN_MAX_FIELDS]; /* NULL for arrays */
    cn__host host[CN_MAX_FIELDS];     /* of tensor[i] */
} arrays;

static bool arrays_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const arrays *a = (const arrays *)d;
    (void)f;
    for (int i = 0; i < d->fields; i++)
        if (a->bytes[i]) memcpy(fields[i], a->data[i] + (size_t)index * a->bytes[i], a->bytes[i]);
    return true;
}

static void arrays_close(cn_dataset *d)
{
    arrays *a = (arrays *)d;
    for (int i = 0; i < d->fields; i++) {
        cn__host_close(&a->host[i]);
        cn__release(a->tensor[i]);
    }
}

cn_dataset *cn_dataset_arrays(cn_ctx *ctx, int64_t count, const cn_field *field, const void *const *data, int n)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!field || !data || count < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_arrays: field and data must not be NULL and count ≥ 0, got %s and %lld",
                 field && data ? "both" : "NULL", (long long)count);
        return NULL;
    }
    if (!cn__check_fields(ctx, "dataset_arrays", field, n, false)) return NULL;
    arrays *a = (arrays *)cn__dataset_new(ctx, sizeof *a, count, field, n);
    if (!a) return NULL;
    a->base.get = arrays_get;
    a->base.close = arrays_close;
    for (int i = 0; i < n; i++) {
        a->data[i] = data[i];
        a->bytes[i] = cn__field_bytes(&field[i]);
        if (data[i] || !count || !a->bytes[i]) continue;
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_arrays: the data of field %d is NULL", i);
        cn__object_free(&a->base);
        return NULL;
    }
    return &a->base;
}

/* A new handle on the present value of t, which stays the same when t is assigned to. */
static cn_tensor *own_handle(cn_tensor *t)
{
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *c = cn_contiguous(t), *mine = NULL;
    if (c && cn_eval(c)) {
        c->ref.node->refs++;
        mine = cn__keep(cn__handle_new(ctx, c->ref));
    }
    cn_scope_end(ctx, s);
    return mine;
}

static bool check_tensors(cn_ctx *ctx, cn_tensor *const *t, int n, cn_field *field)
{
    for (int i = 0; i < n; i++) {
        char what[32];
        snprintf(what, sizeof what, "tensor %d", i);
        if (!cn__of_context(ctx, t[i], "dataset_tensors", what)) return false;
        cn_dims shape = cn_shape(t[i]);
        if (shape.n == 0 || shape.v[0] != cn_size(t[0], 0))
            return cn__fail(ctx, CN_BAD_SHAPE, "dataset_tensors: tensor %d has %lld items, tensor 0 has %lld", i,
                            (long long)(shape.n ? shape.v[0] : 0), (long long)(cn_ndim(t[0]) ? cn_size(t[0], 0) : 0));
        field[i] = (cn_field){ .dtype = cn_type(t[i]), .shape = { .n = shape.n - 1 } };
        memcpy(field[i].shape.v, shape.v + 1, (size_t)(shape.n - 1) * sizeof *shape.v);
    }
    return true;
}

cn_dataset *cn_dataset_tensors(cn_tensor *const *t, int n)
{
    cn_field field[CN_MAX_FIELDS];
    cn_ctx *ctx = NULL;
    for (int i = 0; i < n && t && !ctx; i++) ctx = t[i] ? t[i]->ctx : NULL;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (n > CN_MAX_FIELDS) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_tensors: there must be 1 to %d tensors, got %d", CN_MAX_FIELDS, n);
        return NULL;
    }
    if (!check_tensors(ctx, t, n, field)) return NULL;
    arrays *a = (arrays *)cn__dataset_new(ctx, sizeof *a, cn_size(t[0], 0), field, n);
    if (!a) return NULL;
    a->base.get = arrays_get;
    a->base.close = arrays_close;
    for (int i = 0; i < n; i++) {
        a->bytes[i] = cn__field_bytes(&field[i]);
        a->tensor[i] = own_handle(t[i]);
        if (a->tensor[i] && cn__host_open(a->tensor[i], &a->host[i])) {
            a->data[i] = a->host[i].data;
            continue;
        }
        cn__object_free(&a->base);
        return NULL;
    }
    return &a->base;
}

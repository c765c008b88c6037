/* Parcels: allocates the memory of batches, writes items into it, and makes tensors of it. */
#include <stdio.h>

#include "core/dtype.h"
#include "core/handle.h"
#include "core/storage.h"
#include "core/util.h"
#include "core/handle.h"
#include "data/loader.h"

#define ALIGN 64

/* ---- memory */

static bool add_size(size_t *total, size_t count, size_t each)
{
    if (each && count > (SIZE_MAX / 4 - *total) / each) return false;
    *total += cn__round_up_bytes(count * each, ALIGN);
    return *total < SIZE_MAX / 4;
}

static int count_rooms(const cn__spec *s)
{
    for (int i = 0; i < s->dataset->fields; i++)
        if (!s->direct[i]) return s->dataset->fields;
    return 0;
}

size_t cn__parcel_bytes(const cn__spec *s)
{
    size_t n = (size_t)s->batch, total = cn__round_up_bytes(sizeof(cn__parcel), ALIGN) + ALIGN;
    bool ok = add_size(&total, n, sizeof(int64_t)) && add_size(&total, n * (size_t)count_rooms(s), sizeof(cn_room));
    for (int i = 0; i < s->dataset->fields && ok; i++)
        if (s->direct[i]) ok = add_size(&total, n, cn__field_bytes(&s->dataset->field[i]));
    return ok ? total : SIZE_MAX;
}

static void *carve(char **p, size_t bytes)
{
    void *here = *p;
    *p += cn__round_up_bytes(bytes, ALIGN);
    return here;
}

static cn__parcel *parcel_new(cn__parcel_pool *pool, const cn__spec *s)
{
    size_t bytes = cn__parcel_bytes(s), n = (size_t)s->batch;
    cn__parcel *b = cn__resize(&pool->ctx->memory, NULL, 0, bytes);
    if (!b) return NULL;
    *b = (cn__parcel){ .pool = pool, .bytes = bytes, .n_rooms = count_rooms(s) * (int)s->batch };
    char *p = (char *)b + sizeof *b;
    p += (ALIGN - (uintptr_t)p % ALIGN) % ALIGN;
    b->index = carve(&p, n * sizeof *b->index);
    b->room = carve(&p, (size_t)b->n_rooms * sizeof *b->room);
    for (int i = 0; i < s->dataset->fields; i++) {
        const cn_field *field = &s->dataset->field[i];
        for (int64_t k = 0; k < s->batch && b->n_rooms; k++) cn__room_open(&b->room[i * s->batch + k], field, NULL);
        if (s->direct[i]) b->data[i] = carve(&p, n * cn__field_bytes(field));
    }
    for (int i = 0; i < s->fields; i++) {
        cn_field whole = s->field[i]; /* (n, ...) */
        memmove(whole.shape.v + 1, whole.shape.v, (size_t)whole.shape.n++ * sizeof *whole.shape.v);
        whole.shape.v[0] = -1;
        cn__room_open(&b->out[i], &whole, NULL);
    }
    return b;
}

static void unstage(cn__parcel *b)
{
    for (int i = 0; i < CN_MAX_FIELDS; i++) {
        if (b->ahead[i]) cn__storage_release(b->pool->ctx, b->ahead[i]);
        b->ahead[i] = NULL;
    }
    b->staged = false;
}

static void parcel_free(cn__parcel *b)
{
    unstage(b);
    for (int i = 0; i < b->n_rooms; i++) cn__room_close(&b->room[i]);
    for (int i = 0; i < CN_MAX_FIELDS; i++) cn__room_close(&b->out[i]);
    cn__free(b->pool->ctx, b, b->bytes);
}

cn__parcel_pool *cn__parcel_pool_new(cn_ctx *ctx)
{
    cn__parcel_pool *p = cn__alloc(ctx, sizeof *p);
    if (p) p->ctx = ctx;
    return p;
}

static void free_if_unused(cn__parcel_pool *p)
{
    if (p->closed && p->lent == 0) cn__free(p->ctx, p, sizeof *p);
}

void cn__parcel_pool_close(cn__parcel_pool *p)
{
    if (!p) return;
    for (cn__parcel *b = p->free, *next; b; b = next) {
        next = b->next;
        parcel_free(b);
    }
    p->closed = true;
    free_if_unused(p);
}

cn__parcel *cn__parcel_acquire(cn__parcel_pool *p, const cn__spec *s)
{
    cn__parcel *b = p->free;
    if (b) p->free = b->next;
    else b = parcel_new(p, s);
    if (!b) return NULL;
    b->next = NULL;
    b->refs = 0;
    b->assigned = b->done = 0;
    b->ready = b->last = b->taken = false;
    b->code = CN_OK;
    return b;
}

void cn__parcel_recycle(cn__parcel *b)
{
    unstage(b);
    b->next = b->pool->free;
    b->pool->free = b;
}

/* ---- tensors */

static void release_parcel(void *user)
{
    cn__parcel *b = user;
    cn__parcel_pool *p = b->pool;
    if (--b->refs > 0) return;
    if (p->closed) parcel_free(b);
    else cn__parcel_recycle(b);
    p->lent--;
    free_if_unused(p);
}

static cn_dims batch_shape(const cn__parcel *b, const cn_field *field)
{
    cn_dims shape = { .n = field->shape.n + 1, .v = { b->n } };
    memcpy(shape.v + 1, field->shape.v, (size_t)field->shape.n * sizeof *shape.v);
    return shape;
}

/* The shape and the memory of a field of the batch. */
static cn_dims field_of(const cn__parcel *b, const cn__spec *s, int i, void **data)
{
    const bool direct = !s->collate && s->direct[i];
    *data = direct ? b->data[i] : b->out[i].data;
    return direct ? batch_shape(b, &s->field[i]) : b->out[i].shape;
}

void cn__parcel_stage(cn__parcel *b, const cn__spec *s)
{
    cn_ctx *ctx = b->pool->ctx;
    if (b->staged || b->code || !b->n || cn_failed(ctx)) return;
    b->staged = true;
    for (int i = 0; i < s->fields; i++) {
        void *data;
        const cn_dims shape = field_of(b, s, i, &data);
        b->ahead[i] = cn__upload_ahead(ctx, s->field[i].dtype, shape, data);
    }
    cn_error_clear(ctx); /* a field that failed is uploaded again, and fails, when its tensor is made */
}

/* Field i as a tensor, from where it is: on the device, or in the parcel. */
static cn_tensor *field_tensor(cn__parcel *b, const cn__spec *s, int i)
{
    void *data;
    const cn_dims shape = field_of(b, s, i, &data);
    cn__storage *there = b->ahead[i];
    b->ahead[i] = NULL;
    if (there) return cn__tensor_over(b->pool->ctx, s->field[i].dtype, shape, there, release_parcel, b);
    return cn_borrow(b->pool->ctx, s->field[i].dtype, shape, data, release_parcel, b);
}

bool cn__parcel_tensors(cn__parcel *b, const cn__spec *s, cn_batch *out)
{
    cn_ctx *ctx = b->pool->ctx;
    cn_scope scope = cn_scope_begin(ctx);
    if (!b->refs) b->refs = 1; /* it belongs to the queue; an attempt that failed has left this */
    for (int i = 0; i < s->fields; i++) {
        out->field[i] = field_tensor(b, s, i);
        if (!out->field[i]) {
            cn_scope_end(ctx, scope);
            return false;
        }
        cn__result_of(out->field[i])->storage->inside = true;
        b->refs++;
    }
    b->refs--;
    b->pool->lent++;
    out->fields = s->fields;
    out->x = out->field[0];
    out->y = s->fields > 1 ? out->field[1] : NULL;
    out->n = b->n;
    out->epoch = b->epoch;
    out->number = b->number;
    return true;
}

/* ---- items */

bool cn__parcel_make(const cn__spec *s, cn__parcel *b, int64_t i, cn__fetch *f)
{
    void *fields[CN_MAX_FIELDS];
    const cn_dataset *d = s->dataset;
    cn__arena_reset(&f->arena);
    f->random = cn__item_draw(s->seed, b->epoch, b->index[i]);
    f->code = CN_OK;
    f->error[0] = 0;
    for (int k = 0; k < d->fields; k++) {
        cn_room *room = b->n_rooms ? &b->room[k * s->batch + i] : NULL;
        if (s->direct[k]) fields[k] = (char *)b->data[k] + (size_t)i * cn__field_bytes(&d->field[k]);
        else if (cn__field_varies(&d->field[k])) {
            room->shape.n = -1;
            fields[k] = room;
        } else if (!(fields[k] = cn_room_take(room, d->field[k].shape))) return cn__fetch_no_memory(f);
    }
    if (!cn__dataset_get(d, b->index[i], f, fields)) return false;
    for (int k = 0; k < d->fields; k++)
        if (!s->direct[k] && b->room[k * s->batch + i].shape.n < 0)
            return cn__fetch_fail(f, CN_BAD_ARGUMENT, "the get function did not write field %d", k);
    return true;
}

static void fill(void *to, cn_dtype dtype, double value, size_t bytes)
{
    uint64_t bits = 0;
    size_t size = cn_dtype_size(dtype);
    cn__store_f64(dtype, &bits, value);
    if (bits == 0) memset(to, 0, bytes);
    else
        for (size_t i = 0; i < bytes; i += size) memcpy((char *)to + i, &bits, size);
}

/* Copies an item to the beginning of each axis of its place in the batch. */
static void place(const cn_room *item, cn_dims whole, char *to, size_t size)
{
    const char *from = item->data;
    int n = item->shape.n;
    int64_t rows = 1, run = n ? item->shape.v[n - 1] : 1, at[CN_MAX_DIMS] = { 0 };
    for (int i = 0; i < n - 1; i++) rows *= item->shape.v[i];
    if (rows * run == 0) return;
    for (int64_t r = 0; r < rows; r++, from += (size_t)run * size) {
        int64_t offset = 0;
        for (int i = 0; i < n; i++) offset = offset * whole.v[i + 1] + (i < n - 1 ? at[i] : 0);
        memcpy(to + (size_t)offset * size, from, (size_t)run * size);
        for (int i = n - 2; i >= 0 && ++at[i] == item->shape.v[i]; i--) at[i] = 0;
    }
}

static bool pad_field(const cn__spec *s, cn__parcel *b, int k, cn__fetch *f)
{
    const cn_room *items = b->room + k * s->batch;
    cn_dims whole = batch_shape(b, &s->field[k]);
    for (int64_t i = 0; i < b->n; i++)
        for (int a = 0; a < items[i].shape.n; a++)
            if (items[i].shape.v[a] > whole.v[a + 1]) whole.v[a + 1] = items[i].shape.v[a];
    for (int a = 0; a < whole.n; a++)
        if (whole.v[a] < 0) whole.v[a] = 0;
    char *to = cn_room_take(&b->out[k], whole);
    if (!to) return cn__fetch_no_memory(f);
    size_t bytes = cn__shape_bytes(s->field[k].dtype, whole), size = cn_dtype_size(s->field[k].dtype);
    fill(to, s->field[k].dtype, s->field[k].pad, bytes);
    for (int64_t i = 0; i < b->n; i++) place(&items[i], whole, to + (size_t)i * (bytes / (size_t)b->n), size);
    return true;
}

static bool user_collate(const cn__spec *s, cn__parcel *b, cn__fetch *f)
{
    const cn_room *items[CN_MAX_FIELDS];
    for (int k = 0; k < s->dataset->fields; k++) items[k] = b->room + k * s->batch;
    for (int k = 0; k < s->fields; k++) b->out[k].shape.n = -1;
    f->random = cn__order_draw(s->seed, b->epoch, CN__STREAM_BATCH + b->number);
    f->code = CN_OK;
    f->error[0] = 0;
    if (!s->collate(s->collate_user, b->n, &f->random, items, b->out, f->error, sizeof f->error)) {
        if (f->error[0]) f->code = CN_BAD_FILE;
        else cn__fetch_fail(f, CN_BAD_FILE, "the collate function returned false and no message");
        return false;
    }
    for (int k = 0; k < s->fields; k++)
        if (b->out[k].shape.n < 0)
            return cn__fetch_fail(f, CN_BAD_ARGUMENT, "the collate function did not write field %d", k);
    return true;
}

void cn__parcel_finish(const cn__spec *s, cn__parcel *b, cn__fetch *f)
{
    if (b->code || !b->n) return;
    bool ok = true;
    if (s->collate) ok = user_collate(s, b, f);
    else
        for (int k = 0; k < s->fields && ok; k++)
            if (!s->direct[k]) ok = pad_field(s, b, k, f);
    if (ok) return;
    b->code = f->code;
    b->failed_at = -1;
    memcpy(b->error, f->error, sizeof b->error);
}

/* DLPack: shares memory of tensors with other libraries, without a copy. */
#include "cairn/dlpack.h"

#include "cairn/cairn.h"
#include "core/call.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/host.h"
#include "core/layout.h"
#include "core/object.h"
#include "ops/shared.h"

/* An export has an object in its context, and memory of its own, which outlives the context: cn_close leaves the
   memory of the tensor to the deleter. */
typedef struct exported {
    DLManagedTensor managed;
    _Atomic(struct export_object *) object; /* NULL: the context was closed */
    atomic_bool deleted;                    /* the deleter was called while another thread used the context */
    cn_tensor *tensor;
    cn__host host;
    int64_t shape[CN_MAX_DIMS], strides[CN_MAX_DIMS];
    /* after the context was closed */
    cn_allocator allocator;
    struct exported *owner; /* of the memory: several exports may share it */
    atomic_int shares;      /* exports whose owner this is */
    void *block;            /* the owner's: to be freed with the last of them, */
    size_t block_bytes;
    void *chunks;                /* that small blocks lie in: one export is the owner of all of them, */
    void (*free_fn)(void *user); /* or given back */
    void *user;
} exported;

typedef struct export_object {
    cn__object object;
    exported *e;
} export_object;

static const DLDataType types[CN_DTYPES] = {
    [CN_BOOL] = { 6, 8, 1 }, [CN_U8] = { 1, 8, 1 },   [CN_I8] = { 0, 8, 1 },   [CN_I16] = { 0, 16, 1 },
    [CN_I32] = { 0, 32, 1 }, [CN_I64] = { 0, 64, 1 }, [CN_F16] = { 2, 16, 1 }, [CN_BF16] = { 4, 16, 1 },
    [CN_F32] = { 2, 32, 1 }, [CN_F64] = { 2, 64, 1 },
};

static void free_exported(exported *e)
{
    cn_allocator a = e->allocator;
    a.resize(a.user, e, sizeof *e, 0);
}

/* All small blocks stay as long as one of them is exported. */
static exported *owner_of_chunks(exported *e)
{
    cn__memory *m = &e->tensor->ctx->memory;
    if (!m->heir) m->heir = &e->chunks;
    return (exported *)(void *)((char *)m->heir - offsetof(exported, chunks));
}

/* The tensor's memory passes to the export, or to an earlier export of the same memory. */
static void take_memory(exported *e)
{
    cn__storage *s = cn__result_of(e->tensor)->storage;
    e->owner = s->lost ? s->user : e;
    if (e->owner == e && e->host.copy) {
        e->block = e->host.copy;
        e->block_bytes = e->host.bytes;
    } else if (e->owner == e) {
        if (s->borrowed) e->free_fn = s->free_fn, e->user = s->user;
        else e->block = s->device->table->block(s->data, s->bytes, &e->block_bytes);
        if (!s->borrowed && !e->block) e->owner = owner_of_chunks(e);
        s->lost = true;
        s->free_fn = NULL;
        s->user = e->owner;
    }
    atomic_fetch_add(&e->owner->shares, 1);
}

static void give_back(exported *e)
{
    exported *owner = e->owner;
    if (owner != e) free_exported(e);
    if (atomic_fetch_sub(&owner->shares, 1) > 1) return;
    if (owner->block) owner->allocator.resize(owner->allocator.user, owner->block, owner->block_bytes, 0);
    if (owner->free_fn) owner->free_fn(owner->user);
    cn__chunks_free(&owner->allocator, owner->chunks);
    free_exported(owner);
}

static void destroy(void *self)
{
    exported *e = ((export_object *)self)->e;
    if (!e) return;
    const bool kept = e->object && !atomic_load(&e->deleted); /* the context is closed before the deleter is called */
    if (kept) take_memory(e);
    else cn__host_close(&e->host);
    cn__release(e->tensor);
    atomic_store(&e->object, NULL);
    if (!kept) free_exported(e);
}

static const cn__object_type export_type = { "DLPack tensor", destroy };

/* Another library may call this in any thread. If the context is in use there, it frees the export when it is
   closed. */
static void delete_exported(DLManagedTensor *m)
{
    exported *e = m->manager_ctx;
    export_object *o = atomic_load(&e->object);
    if (!o) {
        give_back(e);
        return;
    }
    cn_ctx *ctx = o->object.ctx;
    void *inside = atomic_load(&ctx->thread);
    atomic_store(&e->deleted, true);
    if (inside && inside != &cn__here) return;
    CN__CALL call = cn__enter(ctx, "dlpack");
    if (call.ctx) cn__object_free(o);
}

static exported *exported_new(cn_ctx *ctx)
{
    export_object *o = cn__object_new(ctx, sizeof *o, &export_type);
    exported *e = o ? cn__resize(&ctx->memory, NULL, 0, sizeof *e) : NULL;
    if (e) {
        *e = (exported){ .allocator = ctx->memory.allocator };
        atomic_init(&e->object, o);
        o->e = e;
        return e;
    }
    cn__object_free(o);
    cn__no_memory(ctx, "to_dlpack");
    return NULL;
}

/* A new handle on the value, whose memory may be given away. Later assignments to t do not change it. */
static cn_tensor *value_of(cn_tensor *t, bool here)
{
    if (t->ref.node->state == CN__NUMBER) t = cn__filled(t);
    if (t && !here) t = cn_contiguous(t); /* the other library receives a copy */
    if (!t || !cn_eval(t)) return NULL;
    if (cn__result_of(t)->storage->inside) t = cn_clone(t); /* a batch of a loader, or part of a file */
    return t && cn_eval(t) ? cn_detach(t) : NULL;
}

static bool fill(exported *e, cn_tensor *t, bool here)
{
    if (!t || (!here && !cn__host_open(t, &e->host))) return false;
    const cn__result *r = cn__result_of(t);
    e->tensor = cn__keep(t);
    cn__storage_share(t->ctx, r->storage);
    memcpy(e->shape, r->meta->layout.shape, sizeof e->shape);
    memcpy(e->strides, r->meta->layout.stride, sizeof e->strides);
    e->managed = (DLManagedTensor){
        .dl_tensor = { .data = here ? r->storage->data : e->host.copy,
                       .device = { 1, 0 },
                       .ndim = r->meta->layout.ndim,
                       .dtype = types[r->meta->dtype],
                       .shape = e->shape,
                       .strides = e->strides,
                       .byte_offset = here ? (uint64_t)r->meta->layout.offset * cn_dtype_size(r->meta->dtype) : 0 },
        .manager_ctx = e,
        .deleter = delete_exported
    };
    return true;
}

DLManagedTensor *cn_to_dlpack(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    cn_ctx *ctx = call.ctx;
    exported *e = ctx ? exported_new(ctx) : NULL;
    if (!e) return NULL;
    cn_scope s = cn_scope_begin(ctx);
    const bool here = cn__host_device(ctx), ok = fill(e, value_of(t, here), here);
    cn_scope_end(ctx, s);
    if (ok) return &e->managed;
    atomic_store(&e->deleted, true);
    cn__object_free(e->object);
    return NULL;
}

static void delete_imported(void *user)
{
    DLManagedTensor *m = user;
    if (m->deleter) m->deleter(m);
}

static bool imported_layout(cn_ctx *ctx, const DLTensor *d, cn_dtype *dtype, cn_layout *l)
{
    int t = 0;
    while (t < CN_DTYPES && (types[t].code != d->dtype.code || types[t].bits != d->dtype.bits || d->dtype.lanes != 1))
        t++;
    if (t == CN_DTYPES)
        return cn__fail(ctx, CN_BAD_DTYPE, "from_dlpack: there is no dtype for type code %d with %d bits",
                        d->dtype.code, d->dtype.bits);
    if (d->device.device_type != 1)
        return cn__fail(ctx, CN_BAD_DEVICE, "from_dlpack: device type must be 1 (CPU), got %d",
                        (int)d->device.device_type);
    if (d->ndim && !d->shape)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "from_dlpack: ndim is %d, but shape is NULL", (int)d->ndim);
    *dtype = (cn_dtype)t;
    if (!cn__check_shape(ctx, "from_dlpack", *dtype, d->ndim, d->shape)) return false;
    *l = (cn_layout){ .ndim = d->ndim };
    for (int i = 0; i < d->ndim; i++) l->shape[i] = d->shape[i];
    cn__row_major(l);
    for (int i = 0; i < d->ndim && d->strides; i++) l->stride[i] = d->strides[i];
    return true;
}

cn_tensor *cn_from_dlpack(cn_ctx *ctx, DLManagedTensor *managed)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!managed) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "from_dlpack: the tensor must not be NULL");
        return NULL;
    }
    const DLTensor *d = &managed->dl_tensor;
    cn_dtype dtype = CN_F32;
    cn_layout l;
    if (!imported_layout(ctx, d, &dtype, &l)) return NULL;
    return cn__borrow_layout(ctx, dtype, &l, (char *)d->data + d->byte_offset, delete_imported, managed);
}

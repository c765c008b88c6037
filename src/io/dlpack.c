/* DLPack: shares memory of tensors with other libraries, without a copy. */
#include "cairn/dlpack.h"

#include "cairn/cairn.h"
#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/host.h"
#include "core/layout.h"
#include "ops/shared.h"

typedef struct exported {
    DLManagedTensor managed;
    cn_tensor *tensor;
    cn__host host;
    int64_t shape[CN_MAX_DIMS], strides[CN_MAX_DIMS];
} exported;

static const DLDataType types[CN_DTYPES] = {
    [CN_BOOL] = { 6, 8, 1 },  [CN_U8] = { 1, 8, 1 },   [CN_I8] = { 0, 8, 1 },
    [CN_I32] = { 0, 32, 1 },  [CN_I64] = { 0, 64, 1 }, [CN_F16] = { 2, 16, 1 },
    [CN_BF16] = { 4, 16, 1 }, [CN_F32] = { 2, 32, 1 }, [CN_F64] = { 2, 64, 1 },
};

static void delete_exported(DLManagedTensor *m)
{
    exported *e = m->manager_ctx;
    cn_ctx *ctx = e->tensor->ctx;
    cn__host_close(&e->host);
    cn__release(e->tensor);
    cn__block_free(&ctx->memory, e, sizeof *e);
}

DLManagedTensor *cn_to_dlpack(cn_tensor *t)
{
    if (!cn__alive(t)) return NULL;
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    if (t->ref.node->state == CN__NUMBER) t = cn__filled(t);
    bool here = cn__host_device(ctx); /* if not, the other library receives a copy */
    if (t && !here) t = cn_contiguous(t);
    exported *e = t && cn_eval(t) ? cn__block_new(&ctx->memory, sizeof *e) : NULL;
    if (e) e->host = (cn__host){ 0 };
    cn_tensor *own = e ? cn_detach(t) : NULL; /* a new handle: later assignments to t do not change it */
    if (!own || (!here && !cn__host_open(own, &e->host))) {
        if (e) cn__block_free(&ctx->memory, e, sizeof *e);
        cn__no_memory(ctx, "to_dlpack");
        cn_scope_end(ctx, s);
        return NULL;
    }
    const cn__result *r = cn__result_of(own);
    e->tensor = cn__keep(own);
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
    cn_scope_end(ctx, s);
    return &e->managed;
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
    if (!ctx || !managed) return NULL;
    const DLTensor *d = &managed->dl_tensor;
    cn_dtype dtype = CN_F32;
    cn_layout l;
    if (!imported_layout(ctx, d, &dtype, &l)) return NULL;
    return cn__borrow_layout(ctx, dtype, &l, (char *)d->data + d->byte_offset, delete_imported, managed);
}

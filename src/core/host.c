/* Opens the value of a tensor in the memory of the CPU, on whichever device it lies. */
#include "core/host.h"

#include "core/engine.h"
#include "core/object.h"

bool cn__host_device(const cn_ctx *ctx)
{
    char probe;
    return ctx->device->table->host(ctx->device, &probe) != NULL;
}

bool cn__host_open(cn_tensor *t, cn__host *h)
{
    *h = (cn__host){ 0 };
    if (!(t = cn__dense(t))) return false;
    h->ctx = t->ctx;
    if (cn__host_device(t->ctx)) return ((h->data = cn_data(t)) || !cn_numel(t)) && !cn_failed(t->ctx);
    size_t bytes = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    h->bytes = bytes + 1;
    h->copy = cn__alloc(t->ctx, h->bytes);
    h->data = h->copy;
    if (h->copy && cn_read(t, h->copy, bytes)) return true;
    cn__host_close(h);
    return false;
}

void cn__host_close(cn__host *h)
{
    if (h->copy) cn__free(h->ctx, h->copy, h->bytes);
    *h = (cn__host){ 0 };
}

/* Readings: a read that is begun now and finished some steps later, so that the program does not wait. */
#include "core/engine.h"
#include "core/errors.h"
#include "core/object.h"

struct cn_reading {
    cn__object object;
    cn__device *device;
    void *later; /* the device's reading, or NULL: the value is in `now` */
    void *now;
    size_t bytes;
};

static void destroy(void *self)
{
    cn_reading *r = self;
    if (r->later) r->device->table->read_end(r->device, r->later, NULL);
    if (r->now) cn__free(r->object.ctx, r->now, r->bytes + 1);
}

static const cn__object_type reading_type = { "reading", destroy };

static bool start(cn_reading *r, cn_tensor *t)
{
    cn_ctx *ctx = t->ctx;
    const cn__device_table *table = ctx->device->table;
    if (!table->read_begin) {
        r->now = cn__alloc(ctx, r->bytes + 1);
        return r->now && cn_read(t, r->now, r->bytes);
    }
    if (!(t = cn__dense(t)) || !cn_eval(t)) return false;
    const cn__result *v = cn__result_of(t);
    r->later = table->read_begin(r->device, v->storage->data, v->meta->layout.offset, v->meta->dtype, v->numel);
    return r->later != NULL;
}

cn_reading *cn_read_begin(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = t->ctx;
    cn_reading *r = cn__object_new(ctx, sizeof *r, &reading_type);
    if (!r) return NULL;
    r->device = ctx->device;
    r->bytes = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    cn_scope s = cn_scope_begin(ctx);
    bool ok = start(r, t);
    cn_scope_end(ctx, s);
    if (ok) return r;
    cn__object_free(r);
    return NULL;
}

bool cn_read_done(cn_reading *r)
{
    CN__CALL call = cn__call_object(r, &reading_type);
    return !call.ctx || !r->later || r->device->table->read_done(r->device, r->later);
}

bool cn_read_end(cn_reading *r, void *out, size_t bytes)
{
    CN__CALL call = cn__call_object(r, &reading_type);
    if (!call.ctx) return false;
    bool ok = !out || bytes == r->bytes ||
              cn__fail(r->object.ctx, CN_BAD_ARGUMENT, "read_end: bytes must be %zu, the size of the tensor, got %zu",
                       r->bytes, bytes);
    if (!ok) out = NULL;
    if (r->later) ok = r->device->table->read_end(r->device, r->later, out) && ok;
    else if (out) memcpy(out, r->now, r->bytes);
    r->later = NULL;
    cn__object_free(r);
    return ok;
}

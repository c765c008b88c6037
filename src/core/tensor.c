/* Makes tensors from data, reads values and properties of tensors, and assigns new values to handles. */
#include <math.h>
#include <stdio.h>

#include "core/dtype.h"
#include "core/engine.h"
#include "core/errors.h"
#include "core/format.h"
#include "core/host.h"
#include "core/layout.h"

/* ---- tensors from data ---- */

static bool layout_of(cn_ctx *ctx, const char *who, cn_dtype dtype, cn_dims shape, cn_layout *l)
{
    if ((unsigned)dtype >= CN_DTYPES)
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: dtype must be one of cn_dtype, got %d", who, (int)dtype);
    if (!cn__check_shape(ctx, who, dtype, shape.n, shape.v)) return false;
    *l = (cn_layout){ .ndim = shape.n };
    memcpy(l->shape, shape.v, sizeof l->shape);
    cn__row_major(l);
    return true;
}

/* Kernels need a bool to be 0 or 1, but users may pass any byte. */
static bool upload_bools(cn__storage *s, const unsigned char *data, int64_t n)
{
    enum { PART = 1024 };
    unsigned char part[PART];
    bool ok = true;
    for (int64_t at = 0; at < n && ok; at += PART) {
        int64_t count = n - at < PART ? n - at : PART;
        for (int64_t i = 0; i < count; i++) part[i] = data[at + i] != 0;
        ok = s->device->table->upload(s->device, s->data, at, CN_BOOL, part, count);
    }
    return ok;
}

static bool upload(cn__storage *s, cn_dtype dtype, const void *data, int64_t n)
{
    if (dtype == CN_BOOL) return upload_bools(s, data, n);
    return s->device->table->upload(s->device, s->data, 0, dtype, data, n);
}

cn_tensor *cn_from(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const void *data)
{
    cn_layout l;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !layout_of(ctx, "from", dtype, shape, &l)) return NULL;
    int64_t n = cn__numel(&l);
    if (!data && n) {
        char text[96];
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: data must not be NULL for shape %s", cn__called(ctx, "from"),
                 cn__shape_text(&l, text, sizeof text));
        return NULL;
    }
    cn__storage *s = cn__storage_new(ctx, ctx->device, (size_t)n * cn__device_element(ctx->device, dtype));
    if (!s) return NULL;
    if (!upload(s, dtype, data, n)) {
        cn__storage_release(ctx, s);
        return NULL;
    }
    cn__node *leaf = cn__leaf_new(ctx, dtype, &l, s);
    return leaf ? cn__handle_new(ctx, (cn__ref){ leaf, 0 }) : NULL;
}

cn_tensor *cn_borrow(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, void *data, void (*free_fn)(void *user), void *user)
{
    cn_layout l;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !layout_of(ctx, "borrow", dtype, shape, &l)) return NULL;
    return cn__borrow_layout(ctx, dtype, &l, data, free_fn, user);
}

/* Copies the memory that a layout covers to the device, and sets the offset of l in the copy. */
static cn__storage *storage_with(cn_ctx *ctx, cn_dtype dtype, cn_layout *l, const void *data)
{
    int64_t low = 0, high = cn__numel(l) ? 1 : 0; /* elements before `data`, and from it on */
    for (int i = 0; i < l->ndim && high; i++) {
        int64_t reach = (l->shape[i] - 1) * l->stride[i];
        if (reach < 0) low -= reach;
        else high += reach;
    }
    int64_t n = low + high;
    cn__storage *s = cn__storage_new(ctx, ctx->device, (size_t)n * cn__device_element(ctx->device, dtype));
    if (!s) return NULL;
    l->offset = low;
    if (n == 0 || upload(s, dtype, (const char *)data - (size_t)low * cn_dtype_size(dtype), n)) return s;
    cn__storage_release(ctx, s);
    return NULL;
}

/* A storage of the user's memory itself, if the device is the CPU. */
static cn__storage *storage_of(cn_ctx *ctx, void *data)
{
    cn__storage *s = cn__block_new(&ctx->memory, sizeof *s);
    if (s) *s = (cn__storage){ .device = ctx->device, .data = data, .refs = 1, .borrowed = true };
    else cn__no_memory(ctx, "borrow");
    return s;
}

cn_tensor *cn__borrow_layout(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, void *data, void (*free_fn)(void *user),
                             void *user)
{
    cn_layout there = *l;
    if (!data && cn__numel(l)) {
        char text[96];
        cn__fail(ctx, CN_BAD_ARGUMENT, "borrow: data must not be NULL for shape %s",
                 cn__shape_text(l, text, sizeof text));
        return NULL;
    }
    if ((uintptr_t)data % cn_dtype_size(dtype)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "borrow: data must be aligned to %zu bytes, the size of an element",
                 cn_dtype_size(dtype));
        return NULL;
    }
    cn__storage *s = cn__host_device(ctx) ? storage_of(ctx, data) : storage_with(ctx, dtype, &there, data);
    cn__node *n = s ? cn__leaf_new(ctx, dtype, &there, s) : NULL;
    cn_tensor *t = n ? cn__handle_new(ctx, (cn__ref){ n, 0 }) : NULL;
    if (t) { /* only now: if the call fails, the memory stays the caller's */
        s->free_fn = free_fn;
        s->user = user;
    }
    return t;
}

cn__storage *cn__upload_ahead(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const void *data)
{
    cn_layout l;
    return layout_of(ctx, "upload", dtype, shape, &l) ? storage_with(ctx, dtype, &l, data) : NULL;
}

cn_tensor *cn__tensor_over(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, cn__storage *s, void (*free_fn)(void *user),
                           void *user)
{
    cn_layout l;
    cn__node *n = layout_of(ctx, "borrow", dtype, shape, &l) ? cn__leaf_new(ctx, dtype, &l, s) : NULL;
    cn_tensor *t = n ? cn__handle_new(ctx, (cn__ref){ n, 0 }) : NULL;
    if (t) s->free_fn = free_fn, s->user = user;
    return t;
}

/* ---- properties ---- */

enum { LONGEST_NAME = 31 };

cn_ctx *cn_context(const cn_tensor *t) { return cn__alive(t) ? t->ctx : NULL; }
cn_dtype cn_type(const cn_tensor *t) { return cn__alive(t) ? cn__result_of(t)->meta->dtype : CN_F32; }
int cn_ndim(const cn_tensor *t) { return cn__alive(t) ? cn__result_of(t)->meta->layout.ndim : 0; }
int64_t cn_numel(const cn_tensor *t) { return cn__alive(t) ? cn__result_of(t)->numel : 0; }
bool cn_is_contiguous(const cn_tensor *t)
{
    return cn__alive(t) && cn__layout_contiguous(&cn__result_of(t)->meta->layout);
}
const char *cn_device(const cn_tensor *t) { return cn__alive(t) ? t->ctx->device->name : ""; }

int64_t cn_size(const cn_tensor *t, int axis)
{
    if (!cn__alive(t)) return 0;
    const cn_layout *l = &cn__result_of(t)->meta->layout;
    int a = cn__axis(axis, l->ndim);
    if (a >= 0) return l->shape[a];
    cn__fail(t->ctx, CN_BAD_ARGUMENT, "size: axis %d is out of range for %d dimensions", axis, l->ndim);
    return 0;
}

static cn_dims as_dims(const cn_tensor *t, const int64_t *v)
{
    cn_dims d = { cn__result_of(t)->meta->layout.ndim, { 0 } };
    memcpy(d.v, v, sizeof *v * (size_t)d.n);
    return d;
}
cn_dims cn_shape(const cn_tensor *t)
{
    return cn__alive(t) ? as_dims(t, cn__result_of(t)->meta->layout.shape) : (cn_dims){ 0, { 0 } };
}
cn_dims cn_strides(const cn_tensor *t)
{
    return cn__alive(t) ? as_dims(t, cn__result_of(t)->meta->layout.stride) : (cn_dims){ 0, { 0 } };
}

cn_tensor *cn_name(cn_tensor *t, const char *name)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return NULL;
    size_t bytes = name ? strnlen(name, LONGEST_NAME) : 0;
    return cn__set_name(t, name, bytes) ? t : NULL;
}

/* ---- reading ---- */

bool cn_eval(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    cn__ref r = t->ref;
    if (r.node->state == CN__NUMBER || (r.node->state != CN__PENDING && cn__stored(cn__res(r)))) return true;
    if (!cn__revive(r)) return false;
    if (!cn__evaluate(t->ctx, r.node, CN__WANT_ASKED)) return false;
    if (cn__stored(cn__result_of(t))) return true;
    return cn__fail(t->ctx, CN_LET_GO, "%s: the evaluation stored no value", r.node->op->name);
}

bool cn_eval_all(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    return call.ctx && cn__evaluate(ctx, NULL, CN__WANT_ASKED);
}

cn_tensor *cn__dense(cn_tensor *t)
{
    if (!cn__alive(t)) return NULL;
    const cn__engine *engine = t->ctx->engine;
    if (t->ref.node->state == CN__NUMBER) t = engine->filled(t);
    return t && !cn_is_contiguous(t) ? engine->contiguous(t) : t;
}

/* Evaluates t in contiguous memory. Returns t itself, or a copy in the current scope. */
static cn_tensor *readable(cn_tensor *t)
{
    t = cn__dense(t);
    return t && cn_eval(t) ? t : NULL;
}

static bool download(cn_tensor *t, void *out)
{
    const cn__result *r = cn__result_of(t);
    cn__device *d = r->storage->device;
    t->ctx->reads++;
    return d->table->download(d, r->storage->data, r->meta->layout.offset, r->meta->dtype, out, r->numel);
}

/* False, with an error: there is no memory to write to. */
static bool has_room(cn_tensor *t, const void *out)
{
    return out || cn_numel(t) == 0 ||
           cn__fail(t->ctx, CN_BAD_ARGUMENT, "%s: the memory for the values must not be NULL",
                    cn__called(t->ctx, "read"));
}

bool cn_read(cn_tensor *t, void *out, size_t bytes)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    size_t have = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    if (have != bytes)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "read: bytes must be %zu, the size of the tensor, got %zu", have,
                        bytes);
    if (!has_room(t, out)) return false;
    cn_scope s = cn_scope_begin(t->ctx);
    cn_ctx *ctx = t->ctx;
    cn_tensor *r = readable(t);
    bool ok = r && download(r, out);
    cn_scope_end(ctx, s);
    return ok;
}

bool cn_read_f64(cn_tensor *t, double *out, int64_t count)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (count != cn_numel(t))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "read_f64: count must be %lld, the elements of the tensor, got %lld",
                        (long long)cn_numel(t), (long long)count);
    if (!has_room(t, out)) return false;
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *r = cn_type(t) == CN_F64 ? readable(t) : readable(cn__cast(t, CN_F64));
    bool ok = r && download(r, out);
    cn_scope_end(ctx, s);
    return ok;
}

const void *cn_data(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return NULL;
    if (!cn_is_contiguous(t)) {
        cn__fail(t->ctx, CN_BAD_ARGUMENT, "data: the tensor must be contiguous; use cn_contiguous");
        return NULL;
    }
    if (t->ref.node->state == CN__NUMBER) {
        cn__fail(t->ctx, CN_BAD_ARGUMENT, "data: a plain number has no memory; use cn_item or cn_full");
        return NULL;
    }
    if (!cn_eval(t)) return NULL;
    t->ctx->reads++;
    const cn__result *r = cn__result_of(t);
    char *p = r->storage->device->table->host(r->storage->device, r->storage->data);
    if (p) return p + r->meta->layout.offset * (int64_t)cn_dtype_size(r->meta->dtype);
    cn__fail(t->ctx, CN_BAD_DEVICE, "data: the tensor must be in the memory of the CPU, it is on %s; use cn_read",
             r->storage->device->name);
    return NULL;
}

/* Reads one element as raw bytes. */
static bool element(cn_tensor *t, int64_t offset, void *out)
{
    const cn__result *r = cn__result_of(t);
    if (t->ref.node->state == CN__NUMBER) {
        cn__store_f64(r->meta->dtype, out, t->ref.node->args[0].f);
        return true;
    }
    if (!cn_eval(t)) return false;
    r = cn__result_of(t);
    cn__device *d = r->storage->device;
    t->ctx->reads++;
    return d->table->download(d, r->storage->data, r->meta->layout.offset + offset, r->meta->dtype, out, 1);
}

static bool single(cn_tensor *t, void *out)
{
    if (cn_numel(t) != 1)
        return cn__fail(t->ctx, CN_BAD_SHAPE, "%s: the tensor must have 1 element, it has %lld elements",
                        cn__called(t->ctx, "item"), (long long)cn_numel(t));
    return element(t, 0, out);
}

double cn_item(cn_tensor *t)
{
    uint64_t v = 0;
    CN__CALL call = cn__call_tensor(t);
    return call.ctx && single(t, &v) ? cn__load_f64(cn_type(t), &v) : NAN;
}

int64_t cn_item_i64(cn_tensor *t)
{
    uint64_t v = 0;
    CN__CALL call = cn__call_tensor(t);
    return call.ctx && single(t, &v) ? cn__load_i64(cn_type(t), &v) : 0;
}

static bool offset_of(cn_tensor *t, const char *who, cn_dims index, int64_t *offset)
{
    const cn_layout *l = &cn__result_of(t)->meta->layout;
    if (index.n != l->ndim)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "%s: the tensor has %d dimensions, got %d indices", who, l->ndim,
                        index.n);
    *offset = 0;
    for (int d = 0; d < l->ndim; d++) {
        int64_t i = index.v[d] < 0 ? index.v[d] + l->shape[d] : index.v[d];
        if (i < 0 || i >= l->shape[d])
            return cn__fail(t->ctx, CN_BAD_INDEX, "%s: index %lld of axis %d is out of range for size %lld", who,
                            (long long)index.v[d], d, (long long)l->shape[d]);
        *offset += i * l->stride[d];
    }
    return true;
}

double cn_get(cn_tensor *t, cn_dims index)
{
    int64_t at = 0;
    uint64_t v = 0;
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx || !offset_of(t, "get", index, &at) || !element(t, at, &v)) return NAN;
    return cn__load_f64(cn_type(t), &v);
}

size_t cn_print(cn_tensor *t, char *out, size_t size)
{
    if (!out) size = 0;
    if (size) out[0] = 0;
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return 0;
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *r = readable(t);
    size_t bytes = r ? (size_t)cn_numel(r) * cn_dtype_size(cn_type(r)) + 1 : 0, n = 0;
    void *data = r ? cn__resize(&ctx->memory, NULL, 0, bytes) : NULL;
    if (r && !data) cn__no_memory(ctx, "print");
    if (data && download(r, data))
        n = cn__format(cn_type(r), cn_ndim(r), cn__result_of(r)->meta->layout.shape, data, out, size);
    if (data) cn__resize(&ctx->memory, data, bytes, 0);
    cn_scope_end(ctx, s);
    return n;
}

/* ---- assigning ---- */

static bool same_shape(cn_tensor *t, cn_tensor *v, const char *who)
{
    const cn_layout *a = &cn__result_of(t)->meta->layout, *b = &cn__result_of(v)->meta->layout;
    if (cn__same_shape(a, b)) return true;
    char x[96], y[96];
    return cn__fail(t->ctx, CN_BAD_SHAPE, "%s: the value must have shape %s, got %s", who,
                    cn__shape_text(a, x, sizeof x), cn__shape_text(b, y, sizeof y));
}

/* The handle t gets the value of node n. If its old value was a gradient leaf with hooks, the new one is, too. */
static void replace_value(cn_tensor *t, cn__node *n)
{
    cn__node *old = t->ref.node;
    if (n->state == CN__PENDING) {
        n->donor = old;
        old->refs++;
        cn__component_join(n);
    }
    n->grad_leaf = old->grad_leaf;
    n->needs_grad = old->grad_leaf && old->needs_grad;
    if (old->hooks && old->grad_leaf) {
        n->hooks = old->hooks;
        old->hooks = NULL;
    }
    if (n->state == CN__PENDING || n->out->storage->refs == 1)
        cn__make_assignable(n); /* not if an equal node shares the memory */
    old->replaced = true;
    cn__handle_rebind(t, (cn__ref){ n, 0 });
    n->owner = t;
}

/* A copy of the value with the dtype of t, in memory of its own. */
static cn_tensor *to_assign(cn_tensor *t, cn_tensor *value)
{
    if (!cn__of_context(t->ctx, value, "assign", "the value") || !same_shape(t, value, "assign")) return NULL;
    return cn__clone(cn_type(value) == cn_type(t) ? value : cn__cast(value, cn_type(t)));
}

/* Whether value is a result that an operator writes over t, and that nobody else has: it needs no copy. */
static bool made_for(const cn_tensor *t, const cn_tensor *value)
{
    const cn__node *n = value->ref.node;
    const int at = n->op ? n->op->in_place : 0;
    return at && n->state == CN__PENDING && n->in[at - 1].node == t->ref.node && !n->donor && n->out->consumers == 0 &&
           n->out->handles == 1;
}

/* update: the values were made by the library for these tensors, which are parameters and states. */
static bool assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n, bool update)
{
    cn_scope s = cn_scope_begin(ctx);
    ctx->no_grad++;
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        if (!update || !made_for(t[i], value[i])) ok = (value[i] = to_assign(t[i], value[i])) != NULL;
    ctx->no_grad--;
    if (ok && !cn__vec_reserve(&ctx->memory, &ctx->components, ctx->components.n + (size_t)n, sizeof(uint32_t)))
        ok = cn__no_memory(ctx, "assign");
    for (int i = 0; i < n && ok; i++) { /* nothing can fail from here on */
        cn__node *old = t[i]->ref.node; /* its memory may be taken over, also if it was never assigned before */
        if (update && !old->assignable && old->out->storage && old->out->storage->refs == 1) cn__make_assignable(old);
        replace_value(t[i], value[i]->ref.node);
    }
    cn_scope_end(ctx, s);
    return ok;
}

bool cn__assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n)
{
    return assign_all(ctx, t, value, n, false);
}

bool cn__update_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n)
{
    return assign_all(ctx, t, value, n, true);
}

bool cn__assign_made(cn_tensor *t, cn_tensor *value)
{
    cn_ctx *ctx = t->ctx;
    if (!cn__vec_reserve(&ctx->memory, &ctx->components, ctx->components.n + 1, sizeof(uint32_t)))
        return cn__no_memory(ctx, "assign");
    replace_value(t, value->ref.node);
    return true;
}

bool cn_assign(cn_tensor *t, cn_tensor *value)
{
    CN__CALL call = cn__call_tensor(t);
    return call.ctx && cn__assign_all(t->ctx, &t, &value, 1);
}

bool cn_write(cn_tensor *t, const void *data, size_t bytes)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    size_t have = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    if (have != bytes)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "write: bytes must be %zu, the size of the tensor, got %zu", have,
                        bytes);
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *v = cn_from(ctx, cn_type(t), cn_shape(t), data);
    if (v) replace_value(t, v->ref.node);
    cn_scope_end(ctx, s);
    return v != NULL;
}

/* A copy of the value in memory that no other node shares. */
static cn_tensor *own_copy(cn_tensor *v)
{
    const cn__result *r = cn__result_of(v);
    size_t bytes = (size_t)r->numel * cn_dtype_size(r->meta->dtype);
    void *host = cn__resize(&v->ctx->memory, NULL, 0, bytes ? bytes : 1);
    if (!host) {
        cn__no_memory(v->ctx, "set");
        return NULL;
    }
    cn_tensor *made = download(v, host) ? cn_from(v->ctx, r->meta->dtype, cn_shape(v), host) : NULL;
    cn__resize(&v->ctx->memory, host, bytes ? bytes : 1, 0);
    return made;
}

bool cn_set(cn_tensor *t, cn_dims index, double value)
{
    int64_t at = 0;
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx || !offset_of(t, "set", index, &at)) return false;
    cn_ctx *ctx = t->ctx;
    cn_scope s = cn_scope_begin(ctx);
    ctx->no_grad++;
    cn_tensor *v = cn__clone(t); /* views of the old value do not change */
    ctx->no_grad--;
    bool ok = v && cn_eval(v);
    if (ok && cn__result_of(v)->storage->refs > 1) /* an equal node shares the memory */
        ok = (v = own_copy(v)) != NULL;
    if (ok) {
        cn__result *r = cn__result_of(v);
        int64_t flat = 0;
        for (int d = 0; d < index.n; d++)
            flat =
                flat * r->meta->layout.shape[d] + (index.v[d] < 0 ? index.v[d] + r->meta->layout.shape[d] : index.v[d]);
        uint64_t bits = 0;
        cn__store_f64(r->meta->dtype, &bits, value);
        cn__device *d = r->storage->device;
        ok = d->table->upload(d, r->storage->data, flat, r->meta->dtype, &bits, 1);
        if (ok) replace_value(t, v->ref.node);
    }
    cn_scope_end(ctx, s);
    return ok;
}

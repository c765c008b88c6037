/* The one funnel of all operators: it checks the call, agrees on a dtype, infers shapes and makes the node. */
#include <stdarg.h>
#include <stdio.h>

#include "core/call.h"
#include "core/dtype.h"
#include "core/engine.h"
#include "core/errors.h"
#include "core/layout.h"
#include "core/tracer.h"

bool cn_infer_fail(cn_infer *i, cn_code code, const char *format, ...)
{
    if (!i || !format || i->ctx->code != CN_OK) return false;
    char text[384];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return cn__fail(i->ctx, code, "%s: %s", cn__called(i->ctx, i->op->name), text);
}

static int first_promoted(const cn_infer *i)
{
    for (int k = 0; k < i->n_in; k++)
        if (i->in[k] && !(i->op->free_dtype >> k & 1)) return k;
    return 0;
}

bool cn_infer_map(cn_infer *i)
{
    if (!i) return false;
    cn_meta *out = &i->out[0];
    out->dtype = i->in[first_promoted(i)]->dtype;
    cn_layout *l = &out->layout;
    *l = i->in[0]->layout;
    for (int k = 1; k < i->n_in; k++) {
        const cn_layout *x = &i->in[k]->layout;
        if (cn__same_shape(x, l)) continue;
        int n = x->ndim > l->ndim ? x->ndim : l->ndim;
        cn_layout wide = { .ndim = n };
        for (int d = 0; d < n; d++) {
            int a = d - (n - l->ndim), b = d - (n - x->ndim);
            int64_t p = a >= 0 ? l->shape[a] : 1, q = b >= 0 ? x->shape[b] : 1;
            if (p != q && p != 1 && q != 1) {
                char s[96], t[96];
                return cn_infer_fail(i, CN_BAD_SHAPE, "shapes %s and %s do not broadcast",
                                     cn__shape_text(&i->in[0]->layout, s, sizeof s), cn__shape_text(x, t, sizeof t));
            }
            wide.shape[d] = p == 1 ? q : p;
        }
        *l = wide;
    }
    for (int k = 1; k < i->n_out; k++) i->out[k] = *out;
    return true;
}

bool cn_infer_map_bool(cn_infer *i)
{
    if (!cn_infer_map(i)) return false;
    i->out[0].dtype = CN_BOOL;
    return true;
}

cn_tensor *cn__number(cn_ctx *ctx, double value, cn_dtype dtype, bool weak)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    cn__node *n = cn__node_new(ctx, &cn__leaf, 0, &(cn_arg){ .f = value }, 1);
    if (!n) return NULL;
    n->state = CN__NUMBER;
    n->weak = weak;
    n->refs = 1;
    if (cn__result_describe(n, 0, &(cn_meta){ .dtype = dtype })) return cn__handle_new(ctx, (cn__ref){ n, 0 });
    cn__node_release(n);
    return NULL;
}

cn_tensor *cn_scalar(cn_ctx *ctx, cn_dtype dtype, double value)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if ((unsigned)dtype >= CN_DTYPES) {
        cn__fail(ctx, CN_BAD_DTYPE, "scalar: dtype must be one of cn_dtype, got %d", (int)dtype);
        return NULL;
    }
    return cn__number(ctx, value, dtype, false);
}

/* Promotion as in PyTorch: tensors with dimensions decide. 0-d tensors, and after them plain numbers, count only if
   they are of a higher category: bool, whole number, float. */
static int category(int t) { return t < 0 ? -1 : t == CN_BOOL ? 0 : cn_dtype_is_float((cn_dtype)t) ? 2 : 1; }
static int combine(int strong, int lesser)
{
    if (strong < 0) return lesser;
    if (lesser < 0 || category(lesser) <= category(strong)) return strong;
    return (int)cn_promote((cn_dtype)strong, (cn_dtype)lesser);
}

cn_dtype cn__result_dtype(const cn_op *op, cn_tensor *const *in, int n_in)
{
    int tier[3] = { -1, -1, -1 }; /* the dtype of tensors with dimensions, of 0-d tensors, of plain numbers */
    for (int i = 0; i < n_in; i++) {
        if (!in[i] || (i < 32 && op->free_dtype >> i & 1)) continue;
        const cn__result *r = cn__result_of(in[i]);
        int k = in[i]->ref.node->weak ? 2 : r->meta->layout.ndim == 0 ? 1 : 0;
        tier[k] = tier[k] < 0 ? (int)r->meta->dtype : (int)cn_promote((cn_dtype)tier[k], r->meta->dtype);
    }
    int t = combine(tier[0], combine(tier[1], tier[2]));
    return t < 0 ? CN_F32 : (cn_dtype)t;
}

static const char *list_dtypes(uint32_t set, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int t = 0; t < CN_DTYPES && n < size; t++)
        if (set & CN_BIT(t)) n += (size_t)snprintf(text + n, size - n, n ? ", %s" : "%s", cn_dtype_name((cn_dtype)t));
    return text;
}

/* The dtype in which kernels compute operands of dtype t. */
static bool compute_dtype(cn_ctx *ctx, const cn_op *op, cn_dtype t, cn_dtype *compute)
{
    uint32_t can = op->dtypes ? op->dtypes : CN_FLOATS;
    if (ctx->device->table->halves_in_maps_only && op->kind != CN_MAP && op->kind != CN_RANDOM)
        can &= ~(CN_BIT(CN_F16) | CN_BIT(CN_BF16));
    *compute = t;
    if (can & CN_BIT(t)) return true;
    *compute = CN_F32;
    if (t == CN_F16 || t == CN_BF16 || (op->ints_to_float && !cn_dtype_is_float(t)))
        if (can & CN_BIT(CN_F32)) return true;
    if (can & CN_BIT(CN_F32)) can |= CN_BIT(CN_F16) | CN_BIT(CN_BF16);
    char allowed[64];
    return cn__fail(ctx, CN_BAD_DTYPE, "%s: operands of %s are not allowed; allowed are %s", cn__called(ctx, op->name),
                    cn_dtype_name(t), list_dtypes(can, allowed, sizeof allowed));
}

static cn_tensor *with_dtype(cn_tensor *x, cn_dtype t)
{
    if (cn__result_of(x)->meta->dtype == t) return x;
    cn__node *n = x->ref.node;
    if (n->state == CN__NUMBER) return cn__number(x->ctx, cn__wrapped(t, n->args[0].f), t, n->weak);
    return cn__cast(x, t);
}

/* A call on its way through the funnel. */
typedef struct funnel {
    cn_ctx *ctx;
    const cn_op *op;
    cn_tensor **in; /* a copy, in which operands are replaced by converted ones */
    int n_in;
    const void *attrs;
    const cn_arg *args;
    cn_tensor **out;
} funnel;

/* A group computes all results of a MAP tile by tile, so they must have one shape. */
static bool results_fit(funnel *f, const cn_infer *i, int k)
{
    if (f->op->kind != CN_MAP || cn__same_shape(&i->out[k].layout, &i->out[0].layout)) return true;
    char s[96], t[96];
    return cn__fail(f->ctx, CN_BAD_SHAPE, "%s: results of an elementwise operator must have one shape, got %s and %s",
                    f->op->name, cn__shape_text(&i->out[0].layout, s, sizeof s),
                    cn__shape_text(&i->out[k].layout, t, sizeof t));
}

static bool infer(funnel *f, cn_infer *i)
{
    const cn_meta *few[CN_MAX_IN], **in = few;
    if (f->n_in > CN_MAX_IN) in = cn__block_new(&f->ctx->memory, sizeof *in * (size_t)f->n_in);
    if (!in) return cn__no_memory(f->ctx, f->op->name);
    for (int k = 0; k < f->n_in; k++) in[k] = f->in[k] ? cn__result_of(f->in[k])->meta : NULL;
    i->ctx = f->ctx;
    i->op = f->op;
    i->n_in = f->n_in;
    i->in = in;
    i->attrs = f->attrs;
    i->args = f->args;
    i->n_out = f->op->n_out;
    bool ok = f->op->infer(i);
    for (int k = 0; k < f->op->n_out && ok; k++)
        ok = cn__check_shape(f->ctx, f->op->name, i->out[k].dtype, i->out[k].layout.ndim, i->out[k].layout.shape) &&
             results_fit(f, i, k);
    if (in != few) cn__block_free(&f->ctx->memory, in, sizeof *in * (size_t)f->n_in);
    i->in = NULL;
    return ok;
}

static bool wants_gradient(const funnel *f)
{
    if (f->ctx->no_grad) return false;
    for (int k = 0; k < f->n_in; k++)
        if (f->in[k] && f->in[k]->ref.node->needs_grad && !(k < 32 && f->op->not_differentiable >> k & 1) &&
            cn_dtype_is_float(cn__result_of(f->in[k])->meta->dtype))
            return true;
    return false;
}

/* A view of a stored value needs no evaluation: it shares the storage. */
static void settle_view(cn__node *n)
{
    cn__ref base = cn__res(n->in[0])->base;
    n->out->base = base;
    cn__result *from = cn__res(n->in[0]);
    if (!cn__stored(from)) return;
    cn__storage_ref(from->storage);
    n->out->storage = from->storage;
    n->out->base = (cn__ref){ n, 0 };
    n->state = CN__EVALUATED;
    cn__node_cut(n);
}

static cn__node *make_node(funnel *f, cn_infer *i)
{
    const cn_op *op = f->op;
    cn__node *n = cn__node_new(f->ctx, op, f->n_in, f->args, f->args ? CN_MAX_ARGS : 0);
    if (!n) return NULL;
    n->state = CN__EVALUATED;
    n->refs = 1; /* released in finish() */
    bool gradient = wants_gradient(f), any_float = false;
    for (int k = 0; k < op->n_out; k++) {
        if (op->kind != CN_VIEW) cn__row_major(&i->out[k].layout);
        any_float |= cn_dtype_is_float(i->out[k].dtype);
        if (cn__result_describe(n, k, &i->out[k])) continue;
        cn__node_release(n);
        return NULL;
    }
    for (int k = 0; k < f->n_in; k++) {
        if (!f->in[k]) continue;
        n->in[k] = f->in[k]->ref;
        n->in[k].node->refs++;
        cn__res(n->in[k])->consumers++;
    }
    n->needs_grad = gradient && any_float;
    if (op->attr_size) memcpy(n->attrs, f->attrs, op->attr_size);
    f->ctx->count.nodes++;
    return n;
}

static bool queue(funnel *f, cn__node *n)
{
    bool view = f->op->kind == CN_VIEW;
    n->state = CN__FAILED;
    if (view) settle_view(n);
    if (n->state == CN__EVALUATED) return true;
    cn__pending_add(n);
    return cn__component_join(n);
}

static bool finish(funnel *f, cn__node *n)
{
    bool ok = queue(f, n);
    for (int k = 0; k < f->op->n_out && ok; k++) {
        n->refs++;
        f->out[k] = cn__handle_new(f->ctx, (cn__ref){ n, k });
        ok = f->out[k] != NULL;
    }
    if (ok && n->state == CN__PENDING && !f->ctx->evaluating && !f->ctx->tracer) {
        if (f->ctx->eager) ok = cn__evaluate(f->ctx, n, CN__WANT_LIVE);
        else if (f->ctx->count.pending > f->ctx->pending_limit) ok = cn__evaluate(f->ctx, NULL, CN__WANT_LIVE);
    }
    cn__node_release(n);
    return ok;
}

static bool apply(funnel *f);
static bool record(funnel *f);

/* Computes the operator by other operators. A composition has one result. */
static bool compose(funnel *f)
{
    const uint64_t seq = f->ctx->next_seq;
    f->out[0] = f->op->compose(f->ctx, f->in, f->n_in, f->attrs, f->args);
    if (!f->out[0]) return false;
    const cn__composed c = { f->op, f->in, f->n_in, f->attrs, f->args, f->out[0] };
    return !f->ctx->tracer || f->out[0]->ref.node->seq < seq || cn__trace_composed(f->ctx, &c);
}

/* The operator's kernels accept halves and return f32, which is rounded to t. */
static bool apply_widening(funnel *f, cn_dtype t)
{
    if (!record(f)) return false;
    for (int k = 0; k < f->op->n_out; k++) {
        f->out[k] = cn__cast(f->out[k], t);
        if (!f->out[k]) return false;
    }
    return true;
}

/* Converts operands of dtype t to `compute`, applies the operator, and rounds those results that would be halves. */
static bool apply_converted(funnel *f, cn_dtype t, cn_dtype compute)
{
    cn_infer asked;
    if (!infer(f, &asked)) return false;
    for (int k = 0; k < f->n_in; k++) {
        if (!f->in[k] || (k < 32 && f->op->free_dtype >> k & 1)) continue;
        f->in[k] = with_dtype(f->in[k], compute);
        if (!f->in[k]) return false;
    }
    if (!apply(f)) return false;
    for (int k = 0; k < f->op->n_out; k++) {
        cn_dtype own = asked.out[k].dtype;
        if (f->op->kind == CN_MAP && cn_dtype_is_float(own))
            own = t; /* an operand that kept its value may come first */
        if (!f->out[k] || (own != CN_F16 && own != CN_BF16)) continue;
        f->out[k] = cn__cast(f->out[k], own);
        if (!f->out[k]) return false;
    }
    return true;
}

/* An operand without axes that does not decide the dtype t. As in PyTorch, arithmetic uses its own value, not its value
   rounded to t: a u8 divided by a 0-d i64 of 300, a half times a 0-d f32. Comparisons are made in t. */
static bool keeps_value(const cn_op *op, const cn_tensor *x, cn_dtype t)
{
    const cn__result *r = cn__result_of(x);
    return op->kind == CN_MAP && op->infer != cn_infer_map_bool && r->meta->layout.ndim == 0 && r->meta->dtype != t;
}

/* Chooses the dtype t of the operands and the dtype in which kernels compute, and converts operands to t; those that
   keep their value to `compute`. */
static bool agree_on_dtype(funnel *f, cn_dtype *agreed, cn_dtype *compute)
{
    const cn_op *op = f->op;
    cn_dtype t = cn__result_dtype(op, f->in, f->n_in);
    bool promotes = op->kind == CN_MAP || op->variadic, half = t == CN_F16 || t == CN_BF16;
    if (!compute_dtype(f->ctx, op, t, compute)) return false;
    for (int k = 0; k < f->n_in; k++) {
        if (!f->in[k] || (k < 32 && op->free_dtype >> k & 1)) continue;
        cn_dtype own = cn__result_of(f->in[k])->meta->dtype;
        if (own == t) continue;
        if (!promotes && !f->in[k]->ref.node->weak)
            return cn__fail(f->ctx, CN_BAD_DTYPE,
                            "%s: operands must have one dtype, got %s and %s; convert one with cn_cast",
                            cn__called(f->ctx, op->name), cn_dtype_name(t), cn_dtype_name(own));
        bool keeps = keeps_value(op, f->in[k], t) && (half || *compute != t);
        if (keeps) *compute = CN_F32;
        f->in[k] = with_dtype(f->in[k], keeps ? CN_F32 : t);
        if (!f->in[k]) return false;
    }
    *agreed = t;
    return true;
}

static bool apply(funnel *f)
{
    const cn_op *op = f->op;
    if (op->kind == CN_COMPOSITE) return compose(f);
    bool has_promoted = false;
    for (int k = 0; k < f->n_in; k++) has_promoted |= f->in[k] && !(k < 32 && op->free_dtype >> k & 1);
    if (has_promoted && op->kind != CN_VIEW) {
        cn_dtype t = CN_F32, compute = CN_F32;
        if (!agree_on_dtype(f, &t, &compute)) return false;
        if (compute != t)
            return op->widens && cn_dtype_is_float(t) ? apply_widening(f, t) : apply_converted(f, t, compute);
    }
    return op->compose && !f->ctx->device->table->supports(f->ctx->device, op) ? compose(f) : record(f);
}

/* ---- the order of memory ---- */

static bool repeats(const cn_layout *l)
{
    for (int d = 0; d < l->ndim; d++)
        if (l->stride[d] == 0 && l->shape[d] > 1) return true;
    return false;
}

/* An elementwise result lies as its operands do, as in PyTorch: if all operands of the result's shape, of which none
   repeats elements, have their axes in one order of memory, that is the order. False: the result is row-major. */
static bool order_of_operands(const funnel *f, const cn_layout *result, cn_dims *order)
{
    bool found = false;
    for (int k = 0; k < f->n_in; k++) {
        cn_dims own;
        const cn_layout *l = &cn__result_of(f->in[k])->meta->layout;
        if (l->ndim != result->ndim || !cn__same_shape(l, result) || repeats(l)) continue;
        if (!cn__memory_order(l, &own)) return false;
        if (found && memcmp(own.v, order->v, sizeof *own.v * (size_t)own.n) != 0) return false;
        *order = own;
        found = true;
    }
    return found && cn__numel(result) > 0;
}

/* x as an operand of an operator whose axes are arranged: missing axes become axes of size 1. */
static cn_tensor *arranged(cn_tensor *x, cn_dims order)
{
    const cn_layout *l = &cn__result_of(x)->meta->layout;
    if (l->ndim == 0) return x;
    cn_dims shape = { .n = order.n };
    for (int d = 0; d < order.n; d++) shape.v[d] = d < order.n - l->ndim ? 1 : l->shape[d - (order.n - l->ndim)];
    if (l->ndim < order.n) x = x->ctx->engine->view(x, shape);
    return x ? x->ctx->engine->permute(x, order) : NULL;
}

/* Applies the operator to its operands with their axes in the order of memory. The result is a view of its result. */
static bool record_arranged(funnel *f, cn_dims order)
{
    cn_dims back = { .n = order.n };
    for (int d = 0; d < order.n; d++) back.v[order.v[d]] = d;
    cn_scope s = cn_scope_begin(f->ctx);
    bool ok = true;
    for (int k = 0; k < f->n_in && ok; k++) ok = (f->in[k] = arranged(f->in[k], order)) != NULL;
    if (ok && record(f)) f->out[0] = f->ctx->engine->permute(f->out[0], back);
    f->out[0] = cn_scope_return(f->ctx, s, f->out[0]);
    return f->out[0] != NULL;
}

static bool record(funnel *f)
{
    const cn_op *op = f->op;
    cn_dims order;
    for (int k = 0; k < f->n_in; k++) {
        if (!f->in[k]) continue;
        if (f->in[k]->ref.node->state == CN__NUMBER && op->kind != CN_MAP) f->in[k] = f->ctx->engine->filled(f->in[k]);
        if (!f->in[k] || !cn__revive(f->in[k]->ref)) return false;
    }
    cn_infer i;
    if (!infer(f, &i)) return false;
    if (op->any_order && op->n_out == 1 && !f->ctx->tracer && order_of_operands(f, &i.out[0].layout, &order))
        return record_arranged(f, order);
    cn__node *n = make_node(f, &i);
    return n && finish(f, n);
}

/* If an earlier call has failed and returned NULL, its error stands already. */
static bool refuse_operand(cn_ctx *ctx, const cn_op *op, const cn_tensor *x, int k)
{
    char what[32];
    snprintf(what, sizeof what, "operand %d", k);
    return cn__of_context(ctx, x, op->name, what);
}

static bool check_call(cn_ctx *ctx, const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs)
{
    if (op->attr_size && !attrs)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: attrs must have %zu bytes, got NULL", op->name, op->attr_size);
    if (n_in < op->n_in || (n_in > op->n_in && !op->variadic))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: needs %s%d operands, got %d", cn__called(ctx, op->name),
                        op->variadic ? "at least " : "", op->n_in, n_in);
    for (int k = 0; k < n_in; k++) {
        if (!in[k] && k < 32 && op->optional >> k & 1) continue;
        if (!in[k] || in[k]->mark != CN__ALIVE || in[k]->ctx != ctx) return refuse_operand(ctx, op, in[k], k);
    }
    return true;
}

void cn__name_operands(cn_ctx *ctx, cn_tensor *const *in, int n_in)
{
    if (ctx->operands_named || (ctx->code != CN_BAD_SHAPE && ctx->code != CN_BAD_DTYPE)) return;
    size_t n = strlen(ctx->message);
    for (int k = 0; k < n_in && n < sizeof ctx->message; k++) {
        char shape[96];
        if (!in[k] || in[k]->mark != CN__ALIVE || !in[k]->name) continue;
        const cn_meta *m = cn__result_of(in[k])->meta;
        n += (size_t)snprintf(ctx->message + n, sizeof ctx->message - n, "%s %s is %s %s",
                              ctx->operands_named ? "," : ";", in[k]->name, cn_dtype_name(m->dtype),
                              cn__shape_text(&m->layout, shape, sizeof shape));
        ctx->operands_named = true;
    }
}

static bool enter(cn_ctx *ctx, const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args,
                  cn_tensor **out)
{
    for (int k = 0; k < op->n_out; k++) out[k] = NULL;
    CN__CALL call = cn__enter(ctx, op->name);
    if (!call.ctx || !check_call(ctx, op, in, n_in, attrs)) return false;
    const bool clean = ctx->code == CN_OK;
    cn_tensor *few[CN_MAX_IN], **copy = few;
    size_t bytes = sizeof *copy * (size_t)n_in;
    if (n_in > CN_MAX_IN) copy = cn__block_new(&ctx->memory, bytes);
    if (!copy) return cn__no_memory(ctx, op->name);
    if (n_in) memcpy(copy, in, bytes);
    funnel f = { ctx, op, copy, n_in, attrs, args, out };
    bool ok;
    if (op->kind == CN_COMPOSITE) {
        cn_scope s = cn_scope_begin(ctx);
        ok = apply(&f);
        out[0] = cn_scope_return(ctx, s, out[0]);
    } else {
        ok = apply(&f);
    }
    if (copy != few) cn__block_free(&ctx->memory, copy, bytes);
    for (int k = 0; k < op->n_out && !ok; k++) out[k] = NULL;
    if (!ok && clean) cn__name_operands(ctx, in, n_in);
    return ok;
}

static cn_ctx *context_of(cn_tensor *const *in, int n_in)
{
    for (int k = 0; in && k < n_in; k++)
        if (in[k]) return in[k]->ctx;
    return NULL;
}

/* The record of an operator is the program's own; so is the memory for its results. */
static bool has_record(cn_ctx *ctx, const cn_op *op, const void *out, const char *who)
{
    if (op && op->name && out) return true;
    CN__CALL call = cn__enter(ctx, who);
    return call.ctx && cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must not be NULL", who, out ? "the operator" : "out");
}

bool cn_apply_n(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    cn_ctx *ctx = context_of(in, n_in);
    return has_record(ctx, op, out, __func__) && enter(ctx, op, in, n_in, attrs, args, out);
}

cn_tensor *cn_apply(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    cn_tensor *out[CN_MAX_OUT];
    cn_ctx *ctx = context_of(in, n_in);
    return has_record(ctx, op, out, __func__) && enter(ctx, op, in, n_in, attrs, args, out) ? out[0] : NULL;
}

cn_tensor *cn_apply_in(cn_ctx *ctx, const cn_op *op, const void *attrs, const cn_arg *args)
{
    cn_tensor *out[CN_MAX_OUT];
    return has_record(ctx, op, out, __func__) && enter(ctx, op, NULL, 0, attrs, args, out) ? out[0] : NULL;
}

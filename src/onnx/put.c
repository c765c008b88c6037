/* Nodes, values, attributes and constants of a file that is being made. */
#include "onnx/put.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/dtype.h"
#include "core/layout.h"
#include "onnx/proto.h"

static void *fail(onnx_writer *w)
{
    if (!w->failed) cn__no_memory(w->ctx, "onnx_save");
    w->failed = true;
    return NULL;
}

static void *new (onnx_writer *w, size_t bytes)
{
    void *p = w->failed ? NULL : cn__bump_new(&w->ctx->memory, &w->memory, bytes + 1);
    return p ? p : fail(w);
}

/* ---- values ---- */

onnx_val *cn__put_value(onnx_writer *w, const char *name)
{
    onnx_val *v = new (w, sizeof *v);
    if (!v) return NULL;
    v->name = name;
    v->fixed = name != NULL;
    return v;
}

static const onnx_step *source(const onnx_put *c, int i)
{
    return i < c->step->n_in && c->step->from[i] >= 0 ? cn__onnx_step(c->w->trace, c->step->from[i]) : NULL;
}

bool cn__put_has(const onnx_put *c, int i) { return source(c, i) != NULL; }

/* The number of the result that an operand is, among the values of its step. */
static int result_number(const onnx_step *s, cn__ref r) { return s->one || s->kind != ONNX_CALL ? 0 : r.out; }

onnx_val *cn__put_operand(onnx_put *c, int i)
{
    const onnx_step *s = source(c, i);
    if (!s || c->w->failed) return NULL;
    /* A composed operator's result is another node's. */
    onnx_val *v = s->value[s->result.node == c->step->in[i].node ? result_number(s, c->step->in[i]) : 0];
    const char *op = c->step->op->name;
    if (v && v->last && strcmp(op, "select") && strcmp(op, "gather"))
        cn__put_refuse(c, "it reads all cell states of an LSTM");
    return v;
}

const cn_meta *cn__put_meta(const onnx_put *c, int i) { return cn__res(c->step->in[i])->meta; }

static cn__ref result_ref(const onnx_step *s, int i) { return (cn__ref){ s->result.node, s->one ? s->result.out : i }; }
const cn_meta *cn__put_result(const onnx_put *c, int i) { return cn__res(result_ref(c->step, i))->meta; }

bool cn__put_wanted(const onnx_put *c, int i)
{
    const cn__result *r = cn__res(result_ref(c->step, i));
    return i == 0 || r->consumers > 0 || r->handles > 0;
}

bool cn__put_give(onnx_put *c, int i, onnx_val *v)
{
    c->step->value[i] = v;
    return v != NULL;
}

bool cn__put_same_args(const onnx_put *c, int n)
{
    for (int i = 0; c->twin && i < n; i++)
        if (c->step->args[i].u != c->twin->args[i].u) return false;
    return true;
}

bool cn__put_refuse(onnx_put *c, const char *why)
{
    onnx_missing *all = c->w->missing.v;
    for (size_t i = 0; i < c->w->missing.n; i++)
        if (!strcmp(all[i].op, c->step->op->name) && all[i].why == why) return all[i].count++, false;
    const onnx_missing m = { c->step->op->name, why, 1 };
    if (!cn__push(&c->w->ctx->memory, &c->w->missing, &m, sizeof m)) fail(c->w);
    return false;
}

/* ---- attributes: AttributeProto messages in the field 5 of a node ---- */

static void put_attr(onnx_put *c, const char *name, int type, void (*body)(cn__vec *, onnx_writer *, const void *, int),
                     const void *v, int n)
{
    onnx_writer *w = c->w;
    cn__vec one = { 0 };
    if (w->failed) return;
    cn__proto_text(w, &one, 1, name);
    body(&one, w, v, n);
    cn__proto_varint(w, &one, 20, (uint64_t)type);
    cn__proto_bytes(w, &w->attrs, 5, one.v, one.n);
    cn__vec_free(&w->ctx->memory, &one, 1);
}

static void int_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    (void)n;
    cn__proto_varint(w, to, 3, (uint64_t) * (const int64_t *)v);
}
static void ints_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    for (int i = 0; i < n; i++) cn__proto_varint(w, to, 8, (uint64_t)((const int64_t *)v)[i]);
}
static void float_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    (void)n;
    cn__proto_float(w, to, 2, (float)*(const double *)v);
}
static void text_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    (void)n;
    cn__proto_text(w, to, 4, v);
}

static void texts_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    for (int i = 0; i < n; i++) cn__proto_text(w, to, 9, ((const char *const *)v)[i]);
}

/* AttributeProto.AttributeType */
enum { IS_FLOAT = 1, IS_INT = 2, IS_STRING = 3, IS_TENSOR = 4, IS_INTS = 7, IS_STRINGS = 8 };

void cn__put_int(onnx_put *c, const char *name, int64_t v) { put_attr(c, name, IS_INT, int_body, &v, 1); }
void cn__put_float(onnx_put *c, const char *name, double v) { put_attr(c, name, IS_FLOAT, float_body, &v, 1); }
void cn__put_text(onnx_put *c, const char *name, const char *v) { put_attr(c, name, IS_STRING, text_body, v, 1); }
void cn__put_ints(onnx_put *c, const char *name, const int64_t *v, int n)
{
    put_attr(c, name, IS_INTS, ints_body, v, n);
}

void cn__put_texts(onnx_put *c, const char *name, const char *const *v, int n)
{
    put_attr(c, name, IS_STRINGS, texts_body, v, n);
}

/* ---- nodes ---- */

bool cn__put_nodes(onnx_put *c, const char *op, onnx_val *const *in, int n_in, onnx_val **out, int n_out)
{
    onnx_writer *w = c->w;
    for (int i = 0; i < n_out; i++) out[i] = NULL;
    onnx_made n = { .op = op, .n_in = n_in, .n_out = n_out, .attr_bytes = w->attrs.n };
    n.in = new (w, sizeof *n.in * (size_t)n_in);
    n.out = new (w, sizeof *n.out * (size_t)n_out);
    n.attrs = new (w, n.attr_bytes);
    if (w->failed) return false;
    for (int i = 0; i < n_in; i++) n.in[i] = in[i];
    while (n.n_in && !n.in[n.n_in - 1]) n.n_in--; /* absent inputs at the end are left out */
    if (n.attr_bytes) memcpy(n.attrs, w->attrs.v, n.attr_bytes);
    w->attrs.n = 0;
    for (int i = 0; i < n_out; i++) {
        n.out[i] = out[i] = cn__put_value(w, NULL);
        if (!n.out[i]) return false;
    }
    return cn__push(&w->ctx->memory, &w->nodes, &n, sizeof n) || fail(w);
}

onnx_val *cn__put_node(onnx_put *c, int n, const char *op, ...)
{
    onnx_val *in[8] = { NULL }, *out;
    va_list list;
    va_start(list, op);
    for (int i = 0; i < n && i < 8; i++) in[i] = va_arg(list, onnx_val *);
    va_end(list);
    return cn__put_nodes(c, op, in, n, &out, 1) ? out : NULL;
}

/* ---- constants: nodes, so that a reader does not take them for parameters ---- */

int cn__onnx_type_of(cn_dtype t)
{
    static const int types[CN_DTYPES] = {
        [CN_BOOL] = ONNX_BOOL, [CN_U8] = ONNX_UINT8,  [CN_I8] = ONNX_INT8,     [CN_I16] = ONNX_INT16,
        [CN_I32] = ONNX_INT32, [CN_I64] = ONNX_INT64, [CN_F16] = ONNX_FLOAT16, [CN_BF16] = ONNX_BFLOAT16,
        [CN_F32] = ONNX_FLOAT, [CN_F64] = ONNX_DOUBLE
    };
    return types[t];
}

static void tensor_body(cn__vec *to, onnx_writer *w, const void *v, int n)
{
    const onnx_constant *k = v;
    (void)n;
    cn__proto_bytes(w, to, 5, k->bytes, k->n);
}

/* The node of an equal constant, or a new one. */
static onnx_val *constant_of(onnx_put *c, const cn__vec *body)
{
    onnx_writer *w = c->w;
    onnx_constant *all = w->constants.v, k = { body->v, body->n, NULL };
    for (size_t i = 0; i < w->constants.n; i++)
        if (all[i].n == k.n && !memcmp(all[i].bytes, k.bytes, k.n)) return all[i].val;
    unsigned char *own = new (w, k.n);
    if (!own) return NULL;
    memcpy(own, k.bytes, k.n);
    k.bytes = own;
    const cn__vec held = w->attrs; /* attributes of the node that the constant is for */
    w->attrs = (cn__vec){ 0 };
    put_attr(c, "value", IS_TENSOR, tensor_body, &k, 1);
    k.val = cn__put_node(c, 0, "Constant");
    cn__vec_free(&w->ctx->memory, &w->attrs, 1);
    w->attrs = held;
    if (k.val && !cn__push(&w->ctx->memory, &w->constants, &k, sizeof k)) return fail(w);
    return k.val;
}

onnx_val *cn__put_constant(onnx_put *c, cn_dtype t, cn_dims shape, const void *data)
{
    onnx_writer *w = c->w;
    int64_t numel = 1;
    cn__vec body = { 0 };
    for (int i = 0; i < shape.n; i++) {
        numel *= shape.v[i];
        cn__proto_varint(w, &body, 1, (uint64_t)shape.v[i]);
    }
    cn__proto_varint(w, &body, 2, (uint64_t)cn__onnx_type_of(t));
    cn__proto_bytes(w, &body, 9, data, (size_t)numel * cn_dtype_size(t));
    onnx_val *v = w->failed ? NULL : constant_of(c, &body);
    cn__vec_free(&w->ctx->memory, &body, 1);
    return v;
}

onnx_val *cn__put_number(onnx_put *c, cn_dtype t, double v) { return cn__put_filled(c, t, CN_SCALAR, v); }

onnx_val *cn__put_filled(onnx_put *c, cn_dtype t, cn_dims shape, double v)
{
    int64_t numel = 1;
    for (int i = 0; i < shape.n; i++) numel *= shape.v[i];
    const size_t size = cn_dtype_size(t);
    unsigned char *data = new (c->w, (size_t)numel * size + 8);
    if (!data) return NULL;
    for (int64_t i = 0; i < numel; i++) cn__store_f64(t, data + (size_t)i * size, v);
    return cn__put_constant(c, t, shape, data);
}

onnx_val *cn__put_wholes(onnx_put *c, const int64_t *v, int n) { return cn__put_constant(c, CN_I64, CN_DIMS(n), v); }
onnx_val *cn__put_whole(onnx_put *c, int64_t v) { return cn__put_wholes(c, &v, 1); }

/* ---- numbers that follow sizes of the inputs ---- */

enum { STEEPEST = 16 };

bool cn__put_scale(onnx_writer *w, int i, onnx_scale *out)
{
    const int n = w->n_symbols;
    *out = (onnx_scale){ 0 };
    if (i < n) out->by = &w->symbols[i];
    for (int a = 0, at = n; a < n && !out->by; a++)
        for (int b = a; b < n && !out->by; b++, at++)
            if (at == i) out->by = &w->symbols[a], out->with = &w->symbols[b];
    if (!out->by) return false;
    for (int k = 0; k < 2; k++) out->size[k] = out->by->size[k] * (out->with ? out->with->size[k] : 1);
    return true;
}

/* (1), i64. NULL without an error: no input has it. */
static onnx_val *symbol_value(onnx_put *c, onnx_symbol *s)
{
    onnx_writer *w = c->w;
    if (s->value || !s->input) return s->value;
    const cn__vec held = w->attrs;
    w->attrs = (cn__vec){ 0 };
    onnx_val *shape = EMIT("Shape", s->input);
    s->value = EMIT("Slice", shape, cn__put_whole(c, s->axis), cn__put_whole(c, s->axis + 1));
    cn__vec_free(&w->ctx->memory, &w->attrs, 1);
    w->attrs = held;
    return s->value;
}

static onnx_val *scale_value(onnx_put *c, const onnx_scale *s)
{
    onnx_val *v = symbol_value(c, s->by);
    return v && s->with ? EMIT("Mul", v, symbol_value(c, s->with)) : v;
}

/* a in the first trace, b in the second, as times·scale, or times·symbol + more. False: neither. A line goes through any
   two points: one that is too steep is no explanation. */
static bool follows(onnx_writer *w, int64_t a, int64_t b, onnx_scale *s, int64_t *times, int64_t *more)
{
    *more = 0;
    for (int i = 0; cn__put_scale(w, i, s); i++) {
        *times = s->size[0] ? a / s->size[0] : 0;
        if (*times * s->size[0] == a && *times * s->size[1] == b) return true;
    }
    for (int single = 1; single >= 0; single--) /* if several would do: one that grows as a symbol does */
        for (int i = 0; i < w->n_symbols && cn__put_scale(w, i, s); i++) {
            const int64_t step = s->size[1] - s->size[0];
            *times = (b - a) / step;
            *more = a - *times * s->size[0];
            if (*times * step == b - a && *times > 0 && *times <= (single ? 1 : STEEPEST)) return true;
        }
    return false;
}

/* (1), i64 */
static onnx_val *size_of(onnx_put *c, int64_t a, int64_t b)
{
    int64_t times, more;
    onnx_scale s;
    if (a == b) return cn__put_whole(c, a);
    onnx_val *v = follows(c->w, a, b, &s, &times, &more) ? scale_value(c, &s) : NULL;
    if (!v) {
        c->w->not_alike = true;
        return cn__put_whole(c, a);
    }
    if (times != 1) v = EMIT("Mul", v, cn__put_whole(c, times));
    return more ? EMIT("Add", v, cn__put_whole(c, more)) : v;
}

onnx_val *cn__put_sizes(onnx_put *c, const int64_t *a, const int64_t *b, int n)
{
    onnx_val *parts[2 * CN_MAX_DIMS];
    int n_parts = 0;
    if (!b || !memcmp(a, b, sizeof *a * (size_t)n)) return cn__put_wholes(c, a, n);
    for (int i = 0, to; i < n; i = to) {
        to = i + 1;
        if (a[i] != b[i]) {
            parts[n_parts++] = size_of(c, a[i], b[i]);
            continue;
        }
        while (to < n && a[to] == b[to]) to++;
        parts[n_parts++] = cn__put_wholes(c, a + i, to - i);
    }
    return n_parts == 1 ? parts[0] : cn__put_join(c, 0, parts, n_parts);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(a); }

/* Numbers such as 1/n follow sizes too: v·scale or v/scale. */
onnx_val *cn__put_plain(onnx_put *c, const onnx_step *s, const onnx_step *twin)
{
    const cn_dtype t = cn__res(s->result)->meta->dtype;
    const double a = s->result.node->args[0].f, b = twin ? twin->result.node->args[0].f : a;
    onnx_scale by;
    if (a == b || (isnan(a) && isnan(b))) return cn__put_number(c, t, a);
    for (int i = 0; cn__put_scale(c->w, i, &by); i++) {
        const double p = (double)by.size[0], q = (double)by.size[1];
        const bool grows = near(a / p, b / q), falls = near(a * p, b * q);
        onnx_val *n = grows || falls ? scale_value(c, &by) : NULL;
        if (!n) continue;
        n = cn__put_cast(c, cn__put_squeeze(c, n, 0), t);
        return grows ? EMIT("Mul", n, cn__put_number(c, t, a / p)) : EMIT("Div", cn__put_number(c, t, a * p), n);
    }
    c->w->not_alike = true;
    return cn__put_number(c, t, a);
}

/* ---- what differs between operator sets ---- */

onnx_val *cn__put_cast(onnx_put *c, onnx_val *x, cn_dtype to)
{
    cn__put_int(c, "to", cn__onnx_type_of(to));
    return EMIT("Cast", x);
}

onnx_val *cn__put_reduce(onnx_put *c, const char *op, onnx_val *x, const int64_t *axes, int n, bool keepdim)
{
    cn__put_int(c, "keepdims", keepdim);
    if (!strcmp(op, "ReduceSum") || c->w->opset >= 18) return EMIT(op, x, cn__put_wholes(c, axes, n));
    cn__put_ints(c, "axes", axes, n);
    return EMIT(op, x);
}

onnx_val *cn__put_transpose(onnx_put *c, onnx_val *x, const int64_t *order, int n)
{
    bool moved = false;
    for (int i = 0; i < n; i++) moved |= order[i] != i;
    if (!moved) return x;
    cn__put_ints(c, "perm", order, n);
    return EMIT("Transpose", x);
}

onnx_val *cn__put_unsqueeze(onnx_put *c, onnx_val *x, int64_t axis)
{
    return EMIT("Unsqueeze", x, cn__put_whole(c, axis));
}
onnx_val *cn__put_squeeze(onnx_put *c, onnx_val *x, int64_t axis) { return EMIT("Squeeze", x, cn__put_whole(c, axis)); }

onnx_val *cn__put_slice(onnx_put *c, onnx_val *x, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    return EMIT("Slice", x, cn__put_whole(c, start), cn__put_whole(c, end), cn__put_whole(c, axis),
                cn__put_whole(c, step));
}

onnx_val *cn__put_join(onnx_put *c, int64_t axis, onnx_val *const *v, int n)
{
    onnx_val *out;
    cn__put_int(c, "axis", axis);
    return cn__put_nodes(c, "Concat", v, n, &out, 1) ? out : NULL;
}

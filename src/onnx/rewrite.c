/* Writes a model that was read from a file. All bytes of the file are copied but those of weights that have other values
   now, or that lay in another file. So names, documentation, metadata and fields that this reader does not know stay.

   The new file is a list of pieces: bytes of the old file, new bytes, and tensors. A message that contains a new weight
   gets a new length, and so do the messages around it: pieces are collected from the inside out. */
#include "onnx/rewrite.h"

#include <limits.h>
#include <stdlib.h>
#include <stdio.h>

#include "core/errors.h"
#include "core/host.h"
#include "io/files.h"
#include "onnx/proto.h"

/* A weight of the file that is replaced. */
typedef struct replaced {
    const unsigned char *at; /* its message in the file */
    cn_tensor *tensor;
} replaced;

typedef struct piece {
    const unsigned char *bytes;
    size_t n;
    cn_tensor *tensor; /* or NULL: bytes */
    struct piece *next;
} piece;

typedef struct pieces {
    piece *first, *last;
    uint64_t bytes;
} pieces;

typedef struct rewriting {
    onnx_model *m;
    cn_ctx *ctx;
    onnx_writer w;  /* for proto.h: memory, and whether it failed */
    cn__vec all;    /* of replaced */
    cn__sink *data; /* weights go to this file, or NULL: they stay in the model */
    const char *location;
    bool external; /* all weights go to the other file */
} rewriting;

/* ---- which weights are new ---- */

static bool element_is(int type, cn_dtype t)
{
    cn_dtype own;
    return type != ONNX_UINT16 && type != ONNX_UINT32 && type != ONNX_UINT64 && cn__onnx_dtype(type, &own) && own == t;
}

/* Whether the tensor still has the bytes of the file. */
static bool unchanged(rewriting *r, const onnx_tensor *t, cn_tensor *data)
{
    const size_t n = cn__wire_left(&t->raw);
    if (!t->has_raw || t->external || n != cn__tensor_bytes(data)) return false;
    cn_scope scope = cn_scope_begin(r->ctx);
    cn__host h = { 0 };
    bool same = n == 0;
    if (!same && cn__host_open(data, &h)) {
        same = h.data == t->raw.at || !memcmp(h.data, t->raw.at, n);
        cn__host_close(&h);
    }
    cn_scope_end(r->ctx, scope);
    return same;
}

static bool replace(rewriting *r, const onnx_tensor *t, cn_tensor *data)
{
    if (!r->external && unchanged(r, t, data)) return !cn_failed(r->ctx);
    if (!element_is(t->type, cn_type(data))) {
        if (!t->external && (t->type == ONNX_UINT16 || t->type == ONNX_UINT32 || t->type == ONNX_UINT64)) return true;
        return cn__fail(r->ctx, CN_UNSUPPORTED, "onnx_save: weight \"%.100s\" is %s in the file, and %s now", t->name,
                        cn__onnx_type_name(t->type), cn_dtype_name(cn_type(data)));
    }
    const replaced one = { t->body.at, data };
    return cn__push(&r->ctx->memory, &r->all, &one, sizeof one) || cn__no_memory(r->ctx, "onnx_save");
}

static bool find_replaced(rewriting *r, const onnx_graph *g)
{
    for (int i = 0; i < g->n_initializers; i++) {
        const onnx_initializer *n = &g->initializers[i];
        if (!n->tensor) continue; /* sparse weights stay as they are */
        cn_tensor *data = n->data;
        if (!data && n->known && n->tensor->external) data = n->known->host;
        if (!data && n->tensor->external)
            return cn__fail(r->ctx, CN_UNSUPPORTED,
                            "onnx_save: weight \"%.100s\" has its data in another file, and was not read",
                            n->tensor->name);
        if (data && !replace(r, n->tensor, data)) return false;
    }
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_attr; k++) {
            const onnx_attr *a = &g->nodes[i].attr[k];
            if (a->t && g->nodes[i].constant && !strcmp(a->name, "value") && !replace(r, a->t, g->nodes[i].constant))
                return false;
            if (a->g && !find_replaced(r, a->g)) return false;
        }
    return true;
}

static int by_address(const void *a, const void *b)
{
    const replaced *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The first replaced weight at or behind an address; NULL: none. */
static const replaced *first_from(const rewriting *r, const unsigned char *at)
{
    const replaced *v = r->all.v;
    size_t low = 0, high = r->all.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (v[middle].at < at) low = middle + 1;
        else high = middle;
    }
    return low < r->all.n ? &v[low] : NULL;
}

static bool contains(const rewriting *r, const cn__wire *w)
{
    const replaced *first = first_from(r, w->at);
    return first && first->at < w->end;
}

/* ---- pieces ---- */

static void add(rewriting *r, pieces *to, const void *bytes, size_t n, cn_tensor *tensor)
{
    if (!n || r->w.failed) return;
    if (to->last && !tensor && !to->last->tensor && to->last->bytes + to->last->n == bytes) {
        to->last->n += n;
        to->bytes += n;
        return;
    }
    piece *p = cn__bump_new(&r->ctx->memory, &r->w.memory, sizeof *p);
    if (!p) {
        r->w.failed = true;
        cn__no_memory(r->ctx, "onnx_save");
        return;
    }
    *p = (piece){ bytes, n, tensor, NULL };
    *(to->last ? &to->last->next : &to->first) = p;
    to->last = p;
    to->bytes += n;
}

/* Bytes that were put into a vector, which is emptied. */
static void add_made(rewriting *r, pieces *to, cn__vec *made)
{
    void *own = r->w.failed ? NULL : cn__bump_new(&r->ctx->memory, &r->w.memory, made->n + 1);
    if (!own && !r->w.failed) {
        r->w.failed = true;
        cn__no_memory(r->ctx, "onnx_save");
    }
    if (own) memcpy(own, made->v, made->n);
    if (own) add(r, to, own, made->n, NULL);
    cn__vec_free(&r->ctx->memory, made, 1);
}

static void add_field(rewriting *r, pieces *to, uint32_t number, const pieces *content)
{
    cn__vec head = { 0 };
    cn__proto_head(&r->w, &head, number, content->bytes);
    add_made(r, to, &head);
    if (!content->first) return;
    *(to->last ? &to->last->next : &to->first) = content->first;
    to->last = content->last;
    to->bytes += content->bytes;
}

static void put_pair(rewriting *r, cn__vec *to, const char *key, uint64_t number, const char *text)
{
    cn__vec pair = { 0 };
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    cn__proto_text(&r->w, &pair, 1, key);
    cn__proto_text(&r->w, &pair, 2, text ? text : digits);
    cn__proto_bytes(&r->w, to, 13, pair.v, pair.n);
    cn__vec_free(&r->ctx->memory, &pair, 1);
}

/* A TensorProto: all fields but those of data, then the new data. */
static pieces new_tensor(rewriting *r, cn__wire body, cn_tensor *t)
{
    static const uint64_t data_fields =
        1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 13 | 1u << 14;
    pieces out = { 0 };
    cn__vec made = { 0 };
    const size_t n = cn__tensor_bytes(t);
    for (const unsigned char *from = body.at; body.at < body.end; from = body.at) {
        cn__field f;
        if (!cn__wire_next(&body, &f)) break;
        if (f.number >= 32 || !(data_fields >> f.number & 1)) add(r, &out, from, (size_t)(body.at - from), NULL);
    }
    if (r->data) {
        static const char zeros[64];
        const uint64_t at = (r->data->at + 63) / 64 * 64;
        if (!cn__sink_write(r->data, zeros, (size_t)(at - r->data->at)) || !cn__sink_write_tensor(r->data, t))
            r->w.failed = true;
        put_pair(r, &made, "location", 0, r->location);
        put_pair(r, &made, "offset", at, NULL);
        put_pair(r, &made, "length", n, NULL);
        cn__proto_varint(&r->w, &made, 14, 1);
        add_made(r, &out, &made);
        return out;
    }
    cn__proto_head(&r->w, &made, 9, n);
    add_made(r, &out, &made);
    add(r, &out, NULL, n, t);
    return out;
}

/* Messages that can contain a tensor, and the fields in which. */
typedef enum message { MODEL, GRAPH, FUNCTION, NODE, ATTRIBUTE, TENSOR, OTHER } message;

static message inside(message m, uint32_t field)
{
    switch (m) {
    case MODEL: return field == 7 ? GRAPH : field == 25 ? FUNCTION : OTHER;
    case GRAPH: return field == 1 ? NODE : field == 5 ? TENSOR : OTHER;
    case FUNCTION: return field == 7 ? NODE : OTHER;
    case NODE: return field == 5 ? ATTRIBUTE : OTHER;
    case ATTRIBUTE: return field == 5 || field == 10 ? TENSOR : field == 6 || field == 11 ? GRAPH : OTHER;
    default: return OTHER;
    }
}

/* Depth: the reader has checked how deep graphs nest. */
static pieces rewrite(rewriting *r, message kind, cn__wire body)
{
    pieces out = { 0 };
    for (const unsigned char *from = body.at; body.at < body.end && !r->w.failed; from = body.at) {
        cn__field f;
        if (!cn__wire_next(&body, &f)) break;
        const message in = f.kind == CN__WIRE_BYTES ? inside(kind, f.number) : OTHER;
        if (in == OTHER || !contains(r, &f.bytes)) {
            add(r, &out, from, (size_t)(body.at - from), NULL);
            continue;
        }
        const pieces content =
            in == TENSOR ? new_tensor(r, f.bytes, first_from(r, f.bytes.at)->tensor) : rewrite(r, in, f.bytes);
        add_field(r, &out, f.number, &content);
    }
    return out;
}

/* ---- the file ---- */

static bool write_pieces(rewriting *r, const pieces *p, const char *path)
{
    cn__sink to = { 0 };
    if (!cn__sink_open(&to, r->ctx, path)) return false;
    bool ok = true;
    for (const piece *q = p->first; q && ok; q = q->next)
        ok = q->tensor ? cn__sink_write_tensor(&to, q->tensor) : cn__sink_write(&to, q->bytes, q->n);
    if (r->data) ok = cn__sink_close(r->data, ok) && ok, r->data = NULL;
    return cn__sink_close(&to, ok) && ok;
}

static uint64_t weight_bytes(const rewriting *r)
{
    const replaced *v = r->all.v;
    uint64_t total = 0;
    for (size_t i = 0; i < r->all.n; i++) total += cn__tensor_bytes(v[i].tensor);
    return total;
}

/* With the weights in a file beside the model, if the whole would be too large for protobuf. */
static bool write_all(rewriting *r, const char *path, bool external)
{
    const cn__content *c = r->m->weights.content;
    cn__sink data = { 0 };
    const size_t room = strlen(path) + sizeof ".data";
    external |= c->bytes + weight_bytes(r) > (uint64_t)INT_MAX - (1 << 20);
    char *beside = cn__bump_new(&r->ctx->memory, &r->w.memory, room);
    if (!beside) return cn__no_memory(r->ctx, "onnx_save");
    snprintf(beside, room, "%s.data", path);
    if (external && r->all.n) {
        if (!cn__sink_open(&data, r->ctx, beside)) return false;
        r->data = &data;
        const char *slash = strrchr(beside, '/');
        r->location = slash ? slash + 1 : beside;
    }
    const pieces p = rewrite(r, MODEL, cn__wire_of(c->data, c->bytes));
    const bool ok = !r->w.failed && write_pieces(r, &p, path);
    if (r->data) cn__sink_close(r->data, false);
    r->data = NULL;
    return ok;
}

bool cn__onnx_rewrite(onnx_model *m, const char *path, const cn_onnx_options *o)
{
    rewriting r = { .m = m, .ctx = m->ctx, .w = { .ctx = m->ctx }, .external = o->external_data };
    bool ok = find_replaced(&r, m->file.graph);
    for (int i = 0; i < m->file.n_functions && ok; i++) ok = find_replaced(&r, &m->file.functions[i]);
    if (ok && r.all.n) qsort(r.all.v, r.all.n, sizeof(replaced), by_address);
    ok = ok && write_all(&r, path, o->external_data);
    cn__vec_free(&r.ctx->memory, &r.all, sizeof(replaced));
    cn__bump_free(&r.ctx->memory, &r.w.memory);
    return ok && cn__onnx_checked(m);
}

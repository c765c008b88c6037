/* The file: ModelProto, with weights streamed from their tensors. Above 2 GB, which protobuf cannot hold, and if it is
   asked for, weights go to a file beside the model. */
#include <limits.h>
#include <stdio.h>

#include "core/context.h"
#include "io/files.h"
#include "onnx/proto.h"

enum { ALIGN = 64 };                                      /* of weights in a file of their own */
#define LARGEST ((uint64_t)INT_MAX - ((uint64_t)1 << 20)) /* protobuf's limit, with room for what is not counted */

/* ---- messages ---- */

static int ir_version(int opset) { return opset <= 14 ? 7 : opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11; }

static void put_node(onnx_writer *w, cn__vec *to, const onnx_made *n)
{
    cn__vec own = { 0 };
    for (int i = 0; i < n->n_in; i++) cn__proto_text(w, &own, 1, n->in[i] ? n->in[i]->name : "");
    const bool optional = strcmp(n->op, "TopK") != 0;
    int last = optional ? 0 : n->n_out - 1; /* unused results at the end are left out, others have no name */
    for (int i = 1; i < n->n_out && optional; i++)
        if (n->out[i]->used) last = i;
    for (int i = 0; i <= last; i++)
        cn__proto_text(w, &own, 2, i == 0 || !optional || n->out[i]->used ? n->out[i]->name : "");
    cn__proto_text(w, &own, 3, n->out[0]->name);
    cn__proto_text(w, &own, 4, n->op);
    cn__proto_raw(w, &own, n->attrs, n->attr_bytes);
    cn__proto_bytes(w, to, 1, own.v, own.n);
    cn__vec_free(&w->ctx->memory, &own, 1);
}

/* A size that may vary: "batch", or an expression such as "2*batch" or "batch*time". Otherwise it has no name. */
static bool name_dim(onnx_writer *w, int64_t a, int64_t b, char *out, size_t size)
{
    onnx_scale s;
    for (int i = 0; cn__put_scale(w, i, &s); i++) {
        const int64_t times = s.size[0] ? a / s.size[0] : 0;
        if (times * s.size[0] != a || times * s.size[1] != b) continue;
        const int n = times == 1 ? 0 : snprintf(out, size, "%lld*", (long long)times);
        snprintf(out + n, size - (size_t)n, "%s%s%s", s.by->name, s.with ? "*" : "", s.with ? s.with->name : "");
        return true;
    }
    return false;
}

static void put_dim(onnx_writer *w, cn__vec *to, int64_t a, int64_t b)
{
    cn__vec dim = { 0 };
    char text[160];
    if (a == b) cn__proto_varint(w, &dim, 1, (uint64_t)a);
    else if (name_dim(w, a, b, text, sizeof text)) cn__proto_text(w, &dim, 2, text);
    cn__proto_bytes(w, to, 1, dim.v, dim.n);
    cn__vec_free(&w->ctx->memory, &dim, 1);
}

static void put_port(onnx_writer *w, cn__vec *to, uint32_t field, const onnx_port_out *port)
{
    cn__vec shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    for (int i = 0; i < port->ndim; i++) put_dim(w, &shape, port->shape[i], port->other[i]);
    cn__proto_varint(w, &tensor, 1, (uint64_t)cn__onnx_type_of(port->dtype));
    cn__proto_bytes(w, &tensor, 2, shape.v, shape.n);
    cn__proto_bytes(w, &type, 1, tensor.v, tensor.n);
    cn__proto_text(w, &info, 1, port->val->name);
    cn__proto_bytes(w, &info, 2, type.v, type.n);
    cn__proto_bytes(w, to, field, info.v, info.n);
    cn__vec *all[] = { &shape, &tensor, &type, &info };
    for (int i = 0; i < 4; i++) cn__vec_free(&w->ctx->memory, all[i], 1);
}

/* ---- weights ---- */

static void put_pair(onnx_writer *w, cn__vec *to, uint32_t field, const char *key, const char *text)
{
    cn__vec pair = { 0 };
    cn__proto_text(w, &pair, 1, key);
    cn__proto_text(w, &pair, 2, text);
    cn__proto_bytes(w, to, field, pair.v, pair.n);
    cn__vec_free(&w->ctx->memory, &pair, 1);
}

/* Where a weight lies in a file of its own. */
static void put_place(onnx_writer *w, cn__vec *to, const char *key, uint64_t number)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    put_pair(w, to, 13, key, digits);
}

/* What stands before the bytes of a weight. location: the file that has them from `at` on, or NULL: they follow. */
static void put_head(onnx_writer *w, cn__vec *to, const onnx_stored *s, const char *location, uint64_t at)
{
    cn__vec own = { 0 };
    const cn_dims shape = cn_shape(s->tensor);
    const uint64_t bytes = cn__tensor_bytes(s->tensor);
    for (int i = 0; i < shape.n; i++) cn__proto_varint(w, &own, 1, (uint64_t)shape.v[i]);
    cn__proto_varint(w, &own, 2, (uint64_t)cn__onnx_type_of(cn_type(s->tensor)));
    cn__proto_text(w, &own, 8, s->val->name);
    if (location) {
        put_pair(w, &own, 13, "location", location);
        put_place(w, &own, "offset", at);
        put_place(w, &own, "length", bytes);
        cn__proto_varint(w, &own, 14, 1);
    } else cn__proto_head(w, &own, 9, bytes);
    cn__proto_head(w, to, 5, own.n + (location ? 0 : bytes));
    cn__proto_raw(w, to, own.v, own.n);
    cn__vec_free(&w->ctx->memory, &own, 1);
}

static uint64_t aligned(uint64_t at) { return (at + ALIGN - 1) / ALIGN * ALIGN; }

static bool write_data(onnx_writer *w, cn__sink *data)
{
    static const char zeros[ALIGN];
    const onnx_stored *all = w->stored.v;
    bool ok = true;
    for (size_t i = 0; i < w->stored.n && ok; i++) {
        if (!all[i].val->used) continue;
        ok = cn__sink_write(data, zeros, (size_t)(aligned(data->at) - data->at)) &&
             cn__sink_write_tensor(data, all[i].tensor);
    }
    return ok;
}

/* Everything of the graph but weights; fields in any order are the same message. */
static void put_graph(onnx_writer *w, const onnx_model_out *m, cn__vec *to)
{
    const onnx_made *nodes = w->nodes.v;
    for (size_t i = 0; i < w->nodes.n; i++)
        if (nodes[i].used) put_node(w, to, &nodes[i]);
    cn__proto_text(w, to, 2, m->options->graph_name ? m->options->graph_name : "cairn");
    for (int i = 0; i < m->n_inputs; i++) put_port(w, to, 11, &m->inputs[i]);
    for (int i = 0; i < m->n_outputs; i++) put_port(w, to, 12, &m->outputs[i]);
}

/* Heads of weights, and their total size with the bytes that follow them. */
static uint64_t measure(onnx_writer *w, const char *location)
{
    const onnx_stored *all = w->stored.v;
    uint64_t total = 0, at = 0;
    cn__vec head = { 0 };
    for (size_t i = 0; i < w->stored.n; i++) {
        if (!all[i].val->used) continue;
        head.n = 0;
        at = aligned(at);
        put_head(w, &head, &all[i], location, at);
        at += cn__tensor_bytes(all[i].tensor);
        total += head.n + (location ? 0 : cn__tensor_bytes(all[i].tensor));
    }
    cn__vec_free(&w->ctx->memory, &head, 1);
    return total;
}

static bool write_weights(onnx_writer *w, cn__sink *to, const char *location)
{
    const onnx_stored *all = w->stored.v;
    uint64_t at = 0;
    cn__vec head = { 0 };
    bool ok = true;
    for (size_t i = 0; i < w->stored.n && ok; i++) {
        if (!all[i].val->used) continue;
        head.n = 0;
        at = aligned(at);
        put_head(w, &head, &all[i], location, at);
        at += cn__tensor_bytes(all[i].tensor);
        ok = !w->failed && cn__sink_write(to, head.v, head.n) && (location || cn__sink_write_tensor(to, all[i].tensor));
    }
    cn__vec_free(&w->ctx->memory, &head, 1);
    return ok;
}

/* ---- the model ---- */

static void put_model(onnx_writer *w, const onnx_model_out *m, cn__vec *to)
{
    cn__vec set = { 0 };
    cn__proto_varint(w, to, 1, (uint64_t)ir_version(w->opset));
    cn__proto_text(w, to, 2, "cairn");
    cn__proto_text(w, to, 3, cn_version());
    if (m->options->doc) cn__proto_text(w, to, 6, m->options->doc);
    for (int64_t i = 0; m->options->texts && i < cn_dict_texts(m->options->texts); i++) {
        const char *name = cn_dict_text_name(m->options->texts, i);
        put_pair(w, to, 14, name, cn_dict_text(m->options->texts, name));
    }
    cn__proto_text(w, &set, 1, "");
    cn__proto_varint(w, &set, 2, (uint64_t)w->opset);
    cn__proto_bytes(w, to, 8, set.v, set.n);
    cn__vec_free(&w->ctx->memory, &set, 1);
}

static bool write_model(onnx_writer *w, const onnx_model_out *m, cn__sink *to, const char *location)
{
    cn__vec head = { 0 }, graph = { 0 };
    put_graph(w, m, &graph);
    put_model(w, m, &head);
    cn__proto_head(w, &head, 7, graph.n + measure(w, location));
    const bool ok = !w->failed && cn__sink_write(to, head.v, head.n) && cn__sink_write(to, graph.v, graph.n) &&
                    write_weights(w, to, location);
    cn__vec_free(&w->ctx->memory, &head, 1);
    cn__vec_free(&w->ctx->memory, &graph, 1);
    return ok;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool cn__onnx_write_file(onnx_writer *w, const onnx_model_out *m, const char *path)
{
    cn__sink data = { 0 }, model = { 0 };
    const bool external = m->options->external_data || measure(w, NULL) > LARGEST;
    const size_t room = strlen(path) + sizeof ".data";
    char *beside = external && !w->failed ? cn__bump_new(&w->ctx->memory, &w->memory, room) : NULL;
    if (w->failed) return false;
    if (external && !beside) return cn__no_memory(w->ctx, "onnx_save");
    if (beside) snprintf(beside, room, "%s.data", path);
    if (beside && !cn__sink_open(&data, w->ctx, beside)) return false;
    bool ok = !beside || write_data(w, &data);
    if (ok && cn__sink_open(&model, w->ctx, path)) {
        ok = write_model(w, m, &model, beside ? file_name(beside) : NULL);
        if (beside) ok = cn__sink_close(&data, ok) && ok;
        return cn__sink_close(&model, ok) && ok;
    }
    if (beside) cn__sink_close(&data, false);
    return false;
}

/* Writing: traces a module, writes its calls by their rules, and hands the result to write_file.c. */
#include <stdio.h>

#include "core/host.h"
#include "core/layout.h"
#include "onnx/proto.h"

enum {
    FIRST_OPSET = 13,
    LAST_OPSET = 24,
    USUAL_OPSET = 20,
    SMALL = 1 << 16 /* bytes of a constant inside the graph */
};

/* ---- steps ---- */

/* Bytes of a tensor, row-major, in the writer's memory; NULL: an error is set. */
static void *bytes_of(onnx_writer *w, cn_tensor *t)
{
    const size_t n = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    void *copy = cn__bump_new(&w->ctx->memory, &w->memory, n + 1);
    cn_scope scope = cn_scope_begin(w->ctx);
    cn__host h = { 0 };
    const bool ok = copy ? !n || cn__host_open(t, &h) : cn__no_memory(w->ctx, "onnx_save");
    if (ok && n) memcpy(copy, h.data, n);
    if (copy && n) cn__host_close(&h);
    cn_scope_end(w->ctx, scope);
    w->failed |= !ok;
    return ok ? copy : NULL;
}

static cn_tensor *handle_of(cn__ref r)
{
    r.node->refs++;
    return cn__handle_new(r.node->ctx, r);
}

static bool same_constant(onnx_writer *w, cn_tensor *t, const void *data, cn__ref other)
{
    cn_tensor *u = handle_of(other);
    const cn_dims a = cn_shape(t), b = u ? cn_shape(u) : a;
    if (!u || a.n != b.n || memcmp(a.v, b.v, sizeof *a.v * (size_t)a.n) != 0) return false;
    const void *theirs = other.node == t->ref.node ? data : bytes_of(w, u);
    return theirs && !memcmp(data, theirs, (size_t)cn_numel(t) * cn_dtype_size(cn_type(t)));
}

/* A value that does not depend on inputs or weights: a constant in the graph, or a weight without a name if it is
   large. */
static onnx_val *constant_value(onnx_put *c, cn__ref r, const cn__ref *other)
{
    onnx_writer *w = c->w;
    cn_tensor *t = handle_of(r);
    if (!t) {
        w->failed = true;
        return NULL;
    }
    if ((size_t)cn_numel(t) * cn_dtype_size(cn_type(t)) <= SMALL) {
        const void *data = bytes_of(w, t);
        if (data && other && !same_constant(w, t, data, *other)) w->not_alike = true;
        return data ? cn__put_constant(c, cn_type(t), cn_shape(t), data) : NULL;
    }
    if (other && !cn__same_shape(&cn__res(r)->meta->layout, &cn__res(*other)->meta->layout)) w->not_alike = true;
    const onnx_stored s = { cn__put_value(w, NULL), t };
    if (!s.val || !cn__push(&w->ctx->memory, &w->stored, &s, sizeof s)) {
        w->failed = true;
        cn__no_memory(w->ctx, "onnx_save");
    }
    return s.val;
}

static bool write_call(onnx_put *c)
{
    onnx_step *s = c->step;
    const onnx_writing *row = s->row;
    if (!row && !s->varies) {
        for (int i = 0; i < s->op->n_out; i++) {
            const cn__ref other = { c->twin ? c->twin->result.node : NULL, i };
            s->value[i] = constant_value(c, (cn__ref){ s->result.node, i }, c->twin ? &other : NULL);
        }
        return !c->w->failed;
    }
    if (!row) return cn__put_refuse(c, NULL);
    if (c->twin && !row->sizes &&
        (memcmp(s->attrs, c->twin->attrs, s->op->attr_size) != 0 || !cn__put_same_args(c, CN_MAX_ARGS)))
        c->w->not_alike = true;
    if (row->rule) return row->rule(c);
    return GIVE(cn__put_expression(c, row->expression));
}

/* Names of the file's inputs and results, and weights that have names. */
typedef struct names {
    const char *const *inputs, *const *outputs;
    const cn_named *named;
} names;

static bool write_step(onnx_put *c, const names *n)
{
    onnx_writer *w = c->w;
    onnx_step *s = c->step;
    switch (s->kind) {
    case ONNX_INPUT: s->value[0] = cn__put_value(w, n->inputs[s->number]); break;
    case ONNX_WEIGHT: {
        const onnx_stored stored = { cn__put_value(w, n->named[s->number].name), n->named[s->number].tensor };
        s->value[0] = stored.val;
        if (!cn__push(&w->ctx->memory, &w->stored, &stored, sizeof stored)) return cn__no_memory(w->ctx, "onnx_save");
        break;
    }
    case ONNX_CONSTANT: s->value[0] = constant_value(c, s->result, c->twin ? &c->twin->result : NULL); break;
    case ONNX_NUMBER: s->value[0] = cn__put_plain(c, s, c->twin); break;
    case ONNX_CALL: {
        const size_t missing = w->missing.n;
        w->attrs.n = 0;
        if (write_call(c) || w->failed) break;
        if (w->missing.n == missing && !w->missing.n) cn__put_refuse(c, "its rule failed");
        /* so that what reads it can be looked at, too */
        for (int i = 0; i < CN_MAX_OUT; i++) s->value[i] = cn__put_value(w, "?");
    }
    }
    return !w->failed;
}

/* The value of an input, or NULL: no step reads it. */
static onnx_val *input_value(const onnx_trace *t, int number)
{
    for (size_t k = 0; k < t->order.n; k++) {
        const onnx_step *s = cn__onnx_at(t, k);
        if (s->kind == ONNX_INPUT && s->number == number) return s->value[0];
    }
    return NULL;
}

/* The symbol of these two sizes; a new one gets the next name. NULL: there are too many. */
static onnx_symbol *symbol_of(onnx_writer *w, int64_t a, int64_t b, const cn_onnx_options *o)
{
    for (int i = 0; i < w->n_symbols; i++)
        if (w->symbols[i].size[0] == a && w->symbols[i].size[1] == b) return &w->symbols[i];
    if (w->n_symbols == CN__ONNX_SYMBOLS) return NULL;
    const int n = w->n_symbols++;
    onnx_symbol *s = &w->symbols[n];
    *s = (onnx_symbol){ .size = { a, b } };
    if (o->symbols && n < o->n_symbols && o->symbols[n]) snprintf(s->name, sizeof s->name, "%.36s", o->symbols[n]);
    else if (n == 0) snprintf(s->name, sizeof s->name, "batch");
    else snprintf(s->name, sizeof s->name, "size_%d", n);
    return s;
}

/* Which sizes of the inputs may vary: those that differ in the two traces. */
static void find_symbols(onnx_writer *w, const cn_onnx_graph *g, const cn_onnx_options *o)
{
    for (int i = 0; i < g->n_inputs && w->other; i++) {
        const cn_dims a = cn_shape(g->inputs[i]), b = cn_shape(g->other_inputs[i]);
        onnx_val *value = input_value(w->trace, i);
        if (a.n != b.n) w->not_alike = true;
        for (int d = 0; d < a.n && d < b.n; d++) {
            if (a.v[d] == b.v[d]) continue;
            onnx_symbol *s = symbol_of(w, a.v[d], b.v[d], o);
            if (!s) w->not_alike = true;
            else if (!s->input) s->input = value, s->axis = d;
        }
    }
}

static bool write_steps(onnx_writer *w, const cn_onnx_graph *g, const names *n, const cn_onnx_options *o)
{
    bool ends = true; /* inputs come first */
    for (size_t i = 0; i < w->trace->order.n; i++) {
        onnx_put c = { w, cn__onnx_at(w->trace, i), w->other ? cn__onnx_at(w->other, i) : NULL };
        if (ends && c.step->kind != ONNX_INPUT) find_symbols(w, g, o), ends = false;
        if (!write_step(&c, n)) return false;
        if (w->not_alike) return true;
    }
    return true;
}

/* ---- results, names, what is used ---- */

static bool give_outputs(onnx_writer *w, const cn_onnx_graph *g, const names *n, onnx_port_out *ports)
{
    for (int i = 0; i < g->n_outputs; i++) {
        const onnx_step *s = cn__onnx_step(w->trace, w->trace->outputs[i]);
        const int k = s->one || s->result.node != g->outputs[i]->ref.node ? 0 : g->outputs[i]->ref.out;
        onnx_val *v = s->value[k];
        if (v && v->last)
            return cn__fail(w->ctx, CN_UNSUPPORTED,
                            "onnx_save: all cell states of an LSTM are no result of ONNX's LSTM");
        if (v && v->fixed) {
            onnx_put *c = &(onnx_put){ w, NULL, NULL };
            v = EMIT("Identity", v);
        }
        if (!v) return false;
        v->name = n->outputs[i];
        v->fixed = v->used = true;
        ports[i].val = v;
    }
    return true;
}

static void mark_used(onnx_writer *w)
{
    onnx_made *nodes = w->nodes.v;
    for (size_t i = w->nodes.n; i-- > 0;) {
        for (int k = 0; k < nodes[i].n_out; k++) nodes[i].used |= nodes[i].out[k]->used;
        for (int k = 0; k < nodes[i].n_in && nodes[i].used; k++)
            if (nodes[i].in[k]) nodes[i].in[k]->used = true;
    }
}

static bool taken(const onnx_writer *w, const onnx_model_out *m, const char *name)
{
    const onnx_stored *s = w->stored.v;
    for (size_t i = 0; i < w->stored.n; i++)
        if (s[i].val->name && !strcmp(s[i].val->name, name)) return true;
    for (int i = 0; i < m->n_inputs; i++)
        if (!strcmp(m->inputs[i].val->name, name)) return true;
    for (int i = 0; i < m->n_outputs; i++)
        if (!strcmp(m->outputs[i].val->name, name)) return true;
    return false;
}

static bool give_name(onnx_writer *w, const onnx_model_out *m, onnx_val *v, const char *op)
{
    const size_t room = strlen(op) + 24;
    char *name = v->name ? NULL : cn__bump_new(&w->ctx->memory, &w->memory, room);
    if (v->name) return true;
    if (!name) return cn__no_memory(w->ctx, "onnx_save");
    do snprintf(name, room, "%s_%d", op, w->names++);
    while (taken(w, m, name));
    v->name = name;
    return true;
}

static bool give_names(onnx_writer *w, const onnx_model_out *m)
{
    onnx_made *nodes = w->nodes.v;
    const onnx_stored *s = w->stored.v;
    for (size_t i = 0; i < w->nodes.n; i++)
        for (int k = 0; k < nodes[i].n_out && nodes[i].used; k++)
            if (!give_name(w, m, nodes[i].out[k], nodes[i].op)) return false;
    for (size_t i = 0; i < w->stored.n; i++)
        if (!give_name(w, m, s[i].val, "constant")) return false;
    return true;
}

/* "onnx_save: operators cannot be written: fft_c2c (2 times), conv (1 time: ...)" */
static bool report_missing(onnx_writer *w)
{
    char text[400];
    const onnx_missing *m = w->missing.v;
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < w->missing.n && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s (%d%s%s)", i ? ", " : "", m[i].op, m[i].count,
                              m[i].why ? ": " : "", m[i].why ? m[i].why : "");
    return cn__fail(w->ctx, CN_UNSUPPORTED, "onnx_save: operators that cannot be written, with counts: %s", text);
}

/* ---- the file ---- */

static void describe(onnx_port_out *p, cn_tensor *t, cn_tensor *other)
{
    const cn_dims a = cn_shape(t), b = other ? cn_shape(other) : a;
    p->dtype = cn_type(t);
    p->ndim = a.n;
    for (int i = 0; i < a.n; i++) p->shape[i] = a.v[i], p->other[i] = b.v[i];
}

static bool finish(onnx_writer *w, const cn_onnx_graph *g, const names *n, const char *path, const cn_onnx_options *o)
{
    cn__memory *m = &w->ctx->memory;
    onnx_port_out *in = cn__bump_new(m, &w->memory, sizeof *in * (size_t)(g->n_inputs + 1));
    onnx_port_out *out = cn__bump_new(m, &w->memory, sizeof *out * (size_t)(g->n_outputs + 1));
    if (!in || !out) return cn__no_memory(w->ctx, "onnx_save");
    for (int i = 0; i < g->n_inputs; i++) {
        describe(&in[i], g->inputs[i], w->other ? g->other_inputs[i] : NULL);
        in[i].val = cn__put_value(w, n->inputs[i]);
        if (!in[i].val) return false;
    }
    for (int i = 0; i < g->n_outputs; i++) describe(&out[i], g->outputs[i], w->other ? g->other_outputs[i] : NULL);
    if (!give_outputs(w, g, n, out)) return false;
    mark_used(w);
    const onnx_model_out model = { in, out, g->n_inputs, g->n_outputs, o };
    return give_names(w, &model) && cn__onnx_write_file(w, &model, path);
}

static void writer_free(onnx_writer *w)
{
    cn__memory *m = &w->ctx->memory;
    cn__vec_free(m, &w->nodes, sizeof(onnx_made));
    cn__vec_free(m, &w->stored, sizeof(onnx_stored));
    cn__vec_free(m, &w->missing, sizeof(onnx_missing));
    cn__vec_free(m, &w->constants, sizeof(onnx_constant));
    cn__vec_free(m, &w->attrs, 1);
    cn__bump_free(m, &w->memory);
}

/* Writes the first trace; other: the second one, or NULL. *alike is set to false, and nothing is written, if a number
   follows the symbols in a way that cannot be written. */
static bool write_traced(const onnx_trace *t, const onnx_trace *other, const cn_onnx_graph *g, const names *n,
                         const char *path, const cn_onnx_options *o, bool *alike)
{
    onnx_writer w = { .ctx = t->ctx, .opset = t->opset, .trace = t, .other = other };
    bool ok = write_steps(&w, g, n, o);
    *alike = !w.not_alike;
    if (*alike && w.missing.n) ok = report_missing(&w);
    if (ok && *alike) ok = finish(&w, g, n, path, o);
    writer_free(&w);
    return ok;
}

/* ---- arguments ---- */

/* Given names, or "input", "input_0", ..; a name of the module's own tensors gets a _ behind it. */
static const char *const *port_names(cn_ctx *ctx, cn__bump *memory, const cn_onnx_graph *g, const char *const *given,
                                     int n, const char *usual)
{
    const char **names = cn__bump_new(&ctx->memory, memory, sizeof *names * (size_t)(n + 1));
    if (!names) cn__no_memory(ctx, "onnx_save");
    for (int i = 0; i < n && names; i++) {
        char *name = given ? NULL : cn__bump_new(&ctx->memory, memory, 48);
        if (!given && !name) {
            cn__no_memory(ctx, "onnx_save");
            return NULL;
        }
        if (name && n > 1) snprintf(name, 40, "%s_%d", usual, i);
        else if (name) snprintf(name, 40, "%s", usual);
        for (int k = 0; k < g->n_named && name; k++)
            if (!strcmp(g->named[k].name, name) && strlen(name) < 46) strcat(name, "_"), k = -1;
        names[i] = given ? given[i] : name;
    }
    return names;
}

static bool check_unique(cn_ctx *ctx, const cn_onnx_graph *g, const names *n)
{
    const int total = g->n_inputs + g->n_outputs;
    for (int i = 0; i < total; i++) {
        const char *name = i < g->n_inputs ? n->inputs[i] : n->outputs[i - g->n_inputs];
        bool twice = !name || !*name;
        for (int k = 0; k < i && !twice; k++)
            twice = !strcmp(name, k < g->n_inputs ? n->inputs[k] : n->outputs[k - g->n_inputs]);
        for (int k = 0; k < g->n_named && !twice; k++) twice = !strcmp(name, g->named[k].name);
        if (twice)
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "onnx_save: names of inputs, results and weights must differ, got \"%.100s\" %s",
                            name ? name : "", name && *name ? "twice" : "as a name");
    }
    return true;
}

bool cn__onnx_check_options(cn_ctx *ctx, const char *path, const cn_onnx_options *o)
{
    if (!path || !*path) return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save: path must not be NULL or empty");
    if (o->texts && !cn__object_of(ctx, o->texts, &cn__dict_type, "onnx_save")) return false;
    if (o->opset && (o->opset < FIRST_OPSET || o->opset > LAST_OPSET))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save: opset must be 0 or from %d to %d, got %d", FIRST_OPSET,
                        LAST_OPSET, o->opset);
    return true;
}

bool cn__onnx_check_list(cn_ctx *ctx, cn_tensor *const *t, int n, int least, const char *what)
{
    if (n < least || (n && !t))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save: needs a list of %d or more %s, got %d%s", least, what, n,
                        t || !n ? "" : " (NULL)");
    for (int i = 0; i < n; i++)
        if (!cn__of_context(ctx, t[i], "onnx_save", what)) return false;
    return true;
}

bool cn__onnx_write_graph(cn_ctx *ctx, const cn_onnx_graph *g, const char *path, const cn_onnx_options *o, bool *fixed)
{
    const int opset = o->opset ? o->opset : USUAL_OPSET;
    const bool twice = g->other_inputs && g->other_outputs && !o->fixed_batch;
    onnx_trace a = { .ctx = ctx, .opset = opset }, b = { .ctx = ctx, .opset = opset };
    cn__bump memory = { 0 };
    const names n = { port_names(ctx, &memory, g, o->input_names, g->n_inputs, "input"),
                      port_names(ctx, &memory, g, o->output_names, g->n_outputs, "output"), g->named };
    bool alike = true, ok = n.inputs && n.outputs && check_unique(ctx, g, &n) &&
                            cn__onnx_walk(&a, g->inputs, g->n_inputs, g->named, g->n_named, g->outputs, g->n_outputs);
    if (ok && twice)
        ok = cn__onnx_walk(&b, g->other_inputs, g->n_inputs, g->named, g->n_named, g->other_outputs, g->n_outputs);
    if (ok && twice) alike = cn__onnx_alike(&a, &b);
    if (ok && alike) ok = write_traced(&a, twice ? &b : NULL, g, &n, path, o, &alike);
    *fixed = ok && !alike;
    cn__onnx_trace_free(&a);
    cn__onnx_trace_free(&b);
    cn__bump_free(&ctx->memory, &memory);
    return ok;
}

/* ---- graphs of a program ---- */

const cn_onnx_options cn__onnx_usual_options;

bool cn_onnx_trace_begin(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !cn__trace_begin(ctx)) return false;
    ctx->no_grad++;
    return true;
}

void cn_onnx_trace_end(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !ctx->tracer) return;
    if (ctx->no_grad > 0) ctx->no_grad--;
    cn__trace_end(ctx);
}

static bool check_graph(cn_ctx *ctx, const cn_onnx_graph *g)
{
    if (!g) return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save_graph: graph must not be NULL");
    if (g->fixed) *g->fixed = false;
    if (!g->other_inputs != !g->other_outputs)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save_graph: other_inputs and other_outputs go together");
    if (g->n_named < 0 || (g->n_named && !g->named))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save_graph: needs a list of named tensors, got %d%s", g->n_named,
                        g->named || !g->n_named ? "" : " (NULL)");
    for (int i = 0; i < g->n_named; i++) {
        if (!g->named[i].name || !*g->named[i].name)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_save_graph: named tensor %d has no name", i);
        if (!cn__of_context(ctx, g->named[i].tensor, "onnx_save_graph", g->named[i].name)) return false;
    }
    return cn__onnx_check_list(ctx, g->inputs, g->n_inputs, 0, "inputs") &&
           cn__onnx_check_list(ctx, g->outputs, g->n_outputs, 1, "results") &&
           (!g->other_inputs || (cn__onnx_check_list(ctx, g->other_inputs, g->n_inputs, 0, "inputs") &&
                                 cn__onnx_check_list(ctx, g->other_outputs, g->n_outputs, 1, "results")));
}

bool cn_onnx_save_graph(cn_ctx *ctx, const cn_onnx_graph *graph, const char *path, const cn_onnx_options *options)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || cn_failed(ctx)) return false;
    const cn_onnx_options *o = options ? options : &cn__onnx_usual_options;
    if (!check_graph(ctx, graph) || !cn__onnx_check_options(ctx, path, o) || !cn_onnx_trace_begin(ctx)) return false;
    cn_scope scope = cn_scope_begin(ctx);
    bool fixed = false, ok = cn__onnx_write_graph(ctx, graph, path, o, &fixed);
    if (graph->fixed) *graph->fixed = fixed;
    if (ok && fixed && !graph->fixed) {
        cn_onnx_graph first = *graph;
        first.other_inputs = first.other_outputs = NULL;
        ok = cn__onnx_write_graph(ctx, &first, path, o, &fixed);
    }
    cn_scope_end(ctx, scope);
    cn_onnx_trace_end(ctx);
    return ok;
}

/* ONNX files as modules: loading, running, freeing. */
#include "cairn/onnx.h"

#include <stdio.h>

#include "core/errors.h"
#include "core/handle.h"
#include "nn/nn.h"
#include "onnx/run.h"

/* ---- freeing ---- */

static void release_known(onnx_known *k)
{
    if (k) cn__release(k->data);
    if (k) cn__release(k->host);
}

static void release_graph(onnx_graph *g)
{
    for (int i = 0; i < g->n_initializers; i++) release_known(g->initializers[i].known);
    for (int i = 0; i < g->n_nodes; i++) {
        onnx_node *n = &g->nodes[i];
        cn__onnx_forget(n);
        for (int k = 0; k < n->n_out && n->memo && n->memo->out; k++) release_known(&n->memo->out[k]);
        for (int k = 0; k < n->n_attr && n->attr; k++)
            if (n->attr[k].g) release_graph(n->attr[k].g);
    }
}

static void destroy(cn_module *module)
{
    onnx_model *m = cn_module_data(module);
    if (!m->ctx) return;
    cn__onnx_replays_free(m);
    if (m->file.graph) release_graph(m->file.graph);
    for (int i = 0; i < m->file.n_functions && m->file.functions; i++) release_graph(&m->file.functions[i]);
    cn__onnx_weights_close(&m->weights);
    cn_close(m->host);
    cn__free_text(m->ctx, m->path);
    cn__bump_free(&m->ctx->memory, &m->results);
    cn__bump_free(&m->ctx->memory, &m->memory);
}

/* ---- running ---- */

static int find_name(const onnx_info *v, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(v[i].name, name)) return i;
    return -1;
}

/* The input or result that entry `at` of a list means; -1: there is none, and an error is set. */
static int place(onnx_model *m, const char *name, int at, const onnx_info *v, int n, const char *what)
{
    const int i = name ? find_name(v, n, name) : at < n ? at : -1;
    if (i < 0)
        cn__fail(m->ctx, CN_NOT_FOUND, "onnx_run: the graph has %d %ss, none of the name or number \"%.100s\" %d", n,
                 what, name ? name : "", at);
    return i;
}

static bool list_value(onnx_run *run, const cn_onnx_value *from, onnx_value *out)
{
    onnx_list *list = cn__onnx_run_new(run, 1, sizeof *list);
    if (!list || !(list->v = cn__onnx_run_new(run, (size_t)from->n_items, sizeof *list->v))) return false;
    list->n = from->n_items;
    for (int i = 0; i < list->n; i++) {
        if (!cn__of_context(run->model->ctx, from->items[i], "onnx_run", "an item of a sequence")) return false;
        list->v[i] = (onnx_value){ .kind = ONNX_TENSOR, .data = from->items[i] };
    }
    *out = (onnx_value){ .kind = ONNX_SEQUENCE, .list = list };
    return true;
}

static bool is_sequence(const onnx_typed *t)
{
    while (t && t->kind == ONNX_IS_OPTIONAL) t = t->of;
    return t && t->kind == ONNX_IS_SEQUENCE;
}

/* Many files say that a batch has 1 sample, and have this 1 in their shapes too. If another size is given, Reshape takes
   it in place of the size that the file says. */
static void note_batch(onnx_run *run, cn_tensor *t, const onnx_typed *type)
{
    if (!type || type->kind != ONNX_IS_TENSOR || !type->has_shape || type->ndim < 1 || cn_ndim(t) != type->ndim) return;
    if (type->dims[0] < 1 || type->dims[0] == cn_size(t, 0)) return;
    run->batch_declared = type->dims[0];
    run->batch_given = cn_size(t, 0);
}

static bool take_input(onnx_run *run, const cn_onnx_value *from, const onnx_typed *type, onnx_value *out)
{
    cn_ctx *ctx = run->model->ctx;
    if (from->n_items < 0 || (from->n_items && !from->items))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_run: a sequence must have a list of items, got %d (%s)",
                        from->n_items, from->items ? "a list" : "NULL");
    const bool optional = type && type->kind == ONNX_IS_OPTIONAL;
    if (is_sequence(type) && !from->tensor && (!optional || from->items)) return list_value(run, from, out);
    if (optional && !from->tensor) return true;
    if (!cn__of_context(ctx, from->tensor, "onnx_run", "an input")) return false;
    cn_dtype dtype;
    if (type && type->kind == ONNX_IS_TENSOR && cn__onnx_dtype(type->element, &dtype) && dtype != cn_type(from->tensor))
        return cn__fail(ctx, CN_BAD_DTYPE, "onnx_run: an input must be of type %s, got %s", cn_dtype_name(dtype),
                        cn_dtype_name(cn_type(from->tensor)));
    *out = (onnx_value){ .kind = ONNX_TENSOR, .data = from->tensor };
    note_batch(run, from->tensor, type);
    return true;
}

static bool take_inputs(onnx_run *run, onnx_frame *f, const cn_onnx_value *in, int n_in)
{
    const onnx_graph *g = f->graph;
    for (int i = 0; i < n_in; i++) {
        const int at = place(run->model, in[i].name, i, g->inputs, g->n_inputs, "input");
        if (at < 0 || !take_input(run, &in[i], g->inputs[at].type, &f->v[g->input_slots[at]])) return false;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        const onnx_typed *t = g->inputs[i].type;
        if (f->v[g->input_slots[i]].kind == ONNX_NOTHING && !(t && t->kind == ONNX_IS_OPTIONAL) && !g->input_given[i])
            return cn__fail(run->model->ctx, CN_BAD_ARGUMENT, "onnx_run: input \"%.100s\" is missing",
                            g->inputs[i].name);
    }
    return true;
}

/* The slot of a value inside the graph; -1: no node makes it. */
static int find_inner(const onnx_graph *g, const char *name)
{
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_out; k++)
            if (!strcmp(g->nodes[i].out[k], name)) return g->nodes[i].to[k];
    return -1;
}

/* The value that entry `at` of the list of results means; NULL: there is none, and an error is set. */
static onnx_value *find_output(onnx_model *m, const onnx_frame *f, const char *name, int at)
{
    const onnx_graph *g = f->graph;
    if (name && find_name(g->outputs, g->n_outputs, name) < 0) {
        const int slot = *name ? find_inner(g, name) : -1;
        if (slot >= 0 && f->v[slot].kind != ONNX_NOTHING) return &f->v[slot];
    }
    const int i = place(m, name, at, g->outputs, g->n_outputs, "result");
    return i < 0 ? NULL : &f->v[g->output_refs[i].slot];
}

static bool give_output(onnx_model *m, onnx_value *v, cn_onnx_value *to)
{
    to->tensor = NULL;
    to->items = NULL;
    to->n_items = 0;
    if (!v) return false;
    if (v->kind == ONNX_NOTHING) return true;
    if (v->kind == ONNX_TENSOR) return (to->tensor = cn__onnx_data(m, v)) != NULL;
    cn_tensor **items = cn__bump_new(&m->ctx->memory, &m->results, sizeof *items * (size_t)(v->list->n + 1));
    if (!items) return cn__no_memory(m->ctx, "onnx_run");
    to->items = items;
    to->n_items = v->list->n;
    for (int i = 0; i < v->list->n; i++) {
        if (v->list->v[i].kind != ONNX_TENSOR)
            return cn__fail(m->ctx, CN_UNSUPPORTED, "onnx_run: a result is a sequence of sequences or optionals");
        if (!(items[i] = cn__onnx_data(m, &v->list->v[i]))) return false;
    }
    return true;
}

/* Results outlive the scope of the forward: all their tensors are moved out of it at once. */
static bool end_scope(onnx_run *run, cn_scope scope, cn_onnx_value *out, int n_out, bool ok)
{
    cn_ctx *ctx = run->model->ctx;
    size_t n = 0, at = 0;
    for (int i = 0; i < n_out && ok; i++) n += (size_t)out[i].n_items + (out[i].tensor != NULL);
    cn_tensor **all = ok ? cn__onnx_run_new(run, n + 1, sizeof *all) : NULL;
    for (int i = 0; i < n_out && all; i++) {
        if (out[i].tensor) all[at++] = out[i].tensor;
        for (int k = 0; k < out[i].n_items; k++) all[at++] = out[i].items[k];
    }
    if (all && n) return cn__scope_return_n(ctx, scope, all, (int)n);
    cn_scope_end(ctx, scope);
    return all != NULL;
}

/* Whether a value is asked for that is not computed where convolutions take over normalisations. */
static bool asks_for_taken(const onnx_graph *g, const cn_onnx_value *out, int n_out)
{
    for (int i = 0; i < n_out; i++)
        for (int k = 0; k < g->n_nodes && out[i].name; k++)
            if (g->nodes[k].taken && !strcmp(g->nodes[k].out[0], out[i].name)) return true;
    return false;
}

/* The inputs and results of a forward by number. False: some are sequences, or wrong, or too many: then nothing is
   repeated, and errors are found where the graph is run. */
static bool find_ports(const onnx_model *m, cn_tensor *const *weights, const cn_onnx_value *in, int n_in,
                       const cn_onnx_value *out, int n_out, onnx_ports *p)
{
    const onnx_graph *g = m->file.graph;
    if (n_in > CN__ONNX_PORTS || n_out > CN__ONNX_PORTS) return false;
    *p = (onnx_ports){ .n_in = n_in, .n_out = n_out, .weights = weights };
    for (int i = 0; i < n_in; i++) {
        p->in[i] = in[i].tensor;
        p->in_at[i] = in[i].name ? find_name(g->inputs, g->n_inputs, in[i].name) : i;
        if (p->in_at[i] < 0 || !in[i].tensor || in[i].tensor->mark != CN__ALIVE || in[i].tensor->ctx != m->ctx)
            return false;
    }
    for (int i = 0; i < n_out; i++) {
        p->out_at[i] = out[i].name ? find_name(g->outputs, g->n_outputs, out[i].name) : i;
        if (p->out_at[i] < 0) return false;
    }
    return true;
}

static bool run_model(onnx_model *m, cn_tensor *const *weights, const cn_onnx_value *in, int n_in, cn_onnx_value *out,
                      int n_out)
{
    if (m->no_weights && !weights && m->n_weights)
        return cn__fail(m->ctx, CN_BAD_ARGUMENT, "onnx_run: the module was loaded without its %d weights",
                        m->n_weights);
    onnx_run run = { .model = m, .weights = weights };
    onnx_graph *g = m->file.graph;
    onnx_frame frame = { .graph = g };
    onnx_ports ports;
    bool found = false;
    const bool repeatable = find_ports(m, weights, in, n_in, out, n_out, &ports);
    if (repeatable && (!cn__onnx_replay(m, &ports, out, &found) || found)) return !cn_failed(m->ctx);
    const int64_t evaluations = m->ctx->count.evaluations, reads = m->ctx->reads;
    cn_scope scope = cn_scope_begin(m->ctx), host = cn_scope_begin(m->host);
    m->runs++;
    run.folds = m->ctx->no_grad > 0 && !m->ctx->tracer && !cn_module_training(m->module) &&
                (repeatable || !asks_for_taken(g, out, n_out));
    cn__bump_free(&m->ctx->memory, &m->results);
    frame.v = cn__onnx_run_new(&run, (size_t)g->n_slots, sizeof *frame.v);
    bool ok = frame.v && take_inputs(&run, &frame, in, n_in) && cn__onnx_run_graph(&run, &frame);
    for (int i = 0; i < n_out && ok; i++) ok = give_output(m, find_output(m, &frame, out[i].name, i), &out[i]);
    ok = end_scope(&run, scope, out, n_out, ok);
    cn_scope_end(m->host, host);
    cn__bump_free(&m->ctx->memory, &run.memory);
    const bool only_nodes = evaluations == m->ctx->count.evaluations && reads == m->ctx->reads;
    return ok && (!repeatable || !only_nodes || cn__onnx_note_forward(m, &ports, out));
}

static bool forward_all(cn_module *module, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    onnx_model *m = cn_module_data(module);
    const onnx_graph *g = m->file.graph;
    cn_onnx_value few_in[16] = { 0 }, few_out[16] = { 0 };
    int n = 0;
    for (int i = 0; i < g->n_inputs && n < 16; i++)
        if (!g->input_given[i] && n < n_in) {
            few_in[n].name = g->inputs[i].name;
            few_in[n].tensor = in[n];
            n++;
        }
    if (n < n_in || n_out > 16)
        return cn__fail(m->ctx, CN_BAD_ARGUMENT, "ONNX: the graph takes %d inputs here and at most 16, got %d", n,
                        n_in);
    if (!run_model(m, NULL, few_in, n, few_out, n_out)) return false;
    for (int i = 0; i < n_out; i++) out[i] = few_out[i].tensor;
    return true;
}

static void describe(const cn_module *module, char *out, size_t size)
{
    const onnx_model *m = cn_module_data(module);
    snprintf(out, size, "%.60s", m->file.graph ? m->file.graph->name : "");
}

static const cn_module_type module_type = { .name = "ONNX",
                                            .forward_all = forward_all,
                                            .data_bytes = sizeof(onnx_model),
                                            .describe = describe,
                                            .destroy = destroy };

onnx_model *cn__onnx_imported(const cn_module *module)
{
    return cn_module_type_of(module) == &module_type ? cn_module_data(module) : NULL;
}

static onnx_model *model_of(const cn_module *module)
{
    if (cn_module_type_of(module) == &module_type) return cn_module_data(module);
    cn__fail(cn_module_context(module), CN_BAD_ARGUMENT, "%s: the module must come from cn_onnx_load",
             cn__called(cn_module_context(module), "onnx"));
    return NULL;
}

/* weights: NULL, or one for each of the module's. */
static bool run_checked(cn_module *module, cn_tensor *const *weights, const cn_onnx_value *in, int n_in,
                        cn_onnx_value *out, int n_out)
{
    onnx_model *m = cn_module_data(module);
    cn_ctx *ctx = m->ctx;
    if (n_in < 0 || n_out < 0 || (n_in && !in) || (n_out && !out))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_run: needs lists of inputs and results, got %d%s and %d%s", n_in,
                        in || !n_in ? "" : " (NULL)", n_out, out || !n_out ? "" : " (NULL)");
    CN__USE used = cn__object_use(module);
    const bool had_error = cn_failed(ctx);
    const bool ok = run_model(m, weights, in, n_in, out, n_out);
    if (!ok && !had_error) cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_run: it failed and set no error");
    return ok;
}

bool cn_onnx_run(cn_module *module, const cn_onnx_value *in, int n_in, cn_onnx_value *out, int n_out)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    return call.ctx && model_of(module) && run_checked(module, NULL, in, n_in, out, n_out);
}

bool cn_onnx_run_with(cn_module *module, cn_tensor *const *weights, int n_weights, const cn_onnx_value *in, int n_in,
                      cn_onnx_value *out, int n_out)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    if (!call.ctx) return false;
    for (int i = 0; i < n_weights && weights; i++)
        if (!cn__of_context(call.ctx, weights[i], "onnx_run_with", "a weight")) return false;
    const onnx_model *m = model_of(module);
    if (!m) return false;
    if (n_weights != m->n_weights || (n_weights && !weights))
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "onnx_run_with: the module has %d weights, got %d%s", m->n_weights,
                        n_weights, weights || !n_weights ? "" : " (NULL)");
    return run_checked(module, weights, in, n_in, out, n_out);
}

/* ---- loading ---- */

static bool load(onnx_model *m, cn_module *module, const char *path, cn__content *content)
{
    cn_ctx *ctx = cn_module_context(module);
    m->module = module;
    m->ctx = ctx;
    m->path = cn__copy_text(ctx, path ? path : "from memory");
    m->weights.content = content;
    m->host = cn_open(&(cn_desc){ .device = "cpu",
                                  .threads = 1,
                                  .allocator = ctx->memory.allocator,
                                  .seed = ctx->seed,
                                  .memory_limit = ctx->memory.limit });
    if (!m->path) return false;
    if (!m->host) return cn__no_memory(ctx, "onnx_load");
    m->weights.reader = (onnx_reader){ ctx, &m->memory, m->path };
    m->weights.path = path ? m->path : NULL;
    if (!cn__onnx_parse(&m->weights.reader, content->data, content->bytes, &m->file)) return false;
    cn_scope scope = cn_scope_begin(ctx), host = cn_scope_begin(m->host);
    const bool ok = cn__onnx_resolve(m);
    cn_scope_end(m->host, host);
    cn_scope_end(ctx, scope);
    return ok && cn__onnx_checked(m);
}

/* Takes over the content. */
static cn_module *load_content(cn_ctx *ctx, const char *path, cn__content *content, bool no_weights)
{
    if (!content) return NULL;
    cn_module *module = cn_module_new(ctx, &module_type);
    if (!module) {
        cn__content_release(content);
        return NULL;
    }
    onnx_model *m = cn_module_data(module);
    m->no_weights = no_weights;
    if (load(m, module, path, content)) {
        cn_module_train(module, false);
        return module;
    }
    cn_module_free(module);
    return NULL;
}

cn_module *cn_onnx_load(cn_ctx *ctx, const char *path)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (path) return load_content(ctx, path, cn__content_open(ctx, path), false);
    cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_load: path must not be NULL");
    return NULL;
}

static cn_module *load_copy(cn_ctx *ctx, const char *path, const void *data, size_t bytes, bool no_weights)
{
    cn__content *content = cn__content_new(ctx, bytes);
    if (content && bytes) memcpy(content->data, data, bytes);
    return load_content(ctx, path, content, no_weights);
}

cn_module *cn_onnx_load_with(cn_ctx *ctx, const char *path, const cn_onnx_load_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    const cn_onnx_load_desc d = desc ? *desc : (cn_onnx_load_desc){ 0 };
    if (d.data) return load_copy(ctx, path, d.data, d.bytes, d.no_weights);
    if (path) return load_content(ctx, path, cn__content_open(ctx, path), d.no_weights);
    cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_load_with: path and data must not both be NULL");
    return NULL;
}

cn_module *cn_onnx_load_memory(cn_ctx *ctx, const void *data, size_t bytes)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!data && bytes) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_load_memory: data must not be NULL for %zu bytes", bytes);
        return NULL;
    }
    return load_copy(ctx, NULL, data, bytes, false);
}

/* ---- inputs and results ---- */

static void describe_port(const onnx_info *from, cn_onnx_port *to)
{
    static const char *const kinds[] = { "tensor", "sequence", "optional", "other" };
    const onnx_typed *t = from->type;
    *to = (cn_onnx_port){ .name = from->name, .kind = t ? kinds[t->kind] : "other", .type = "undefined", .ndim = -1 };
    while (t && t->kind != ONNX_IS_TENSOR) t = t->of;
    if (!t) return;
    to->type = cn__onnx_type_name(t->element);
    if (!t->has_shape) return;
    to->ndim = t->ndim;
    to->shape = t->dims;
    to->symbols = t->symbols;
}

int cn_onnx_inputs(const cn_module *module, cn_onnx_port *out, int room)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    const onnx_model *m = call.ctx ? model_of(module) : NULL;
    if (!m) return 0;
    const onnx_graph *g = m->file.graph;
    for (int i = 0; i < g->n_inputs && i < room && out; i++) {
        describe_port(&g->inputs[i], &out[i]);
        out[i].has_default = g->input_given[i];
    }
    return g->n_inputs;
}

int cn_onnx_outputs(const cn_module *module, cn_onnx_port *out, int room)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    const onnx_model *m = call.ctx ? model_of(module) : NULL;
    if (!m) return 0;
    for (int i = 0; i < m->file.graph->n_outputs && i < room && out; i++)
        describe_port(&m->file.graph->outputs[i], &out[i]);
    return m->file.graph->n_outputs;
}

/* ---- layers, metadata ---- */

static bool is_initializer(const onnx_graph *g, const char *name)
{
    for (int i = 0; i < g->n_initializers; i++) {
        const onnx_initializer *t = &g->initializers[i];
        if (!strcmp(t->tensor ? t->tensor->name : t->sparse->values.name, name)) return true;
    }
    return false;
}

/* The first input of a node that is neither a value of this name nor an initializer; NULL: there is none. */
static const char *other_input(const onnx_graph *g, const onnx_node *node, const char *name)
{
    for (int i = 0; i < node->n_in; i++)
        if (*node->in[i] && strcmp(node->in[i], name) && !is_initializer(g, node->in[i])) return node->in[i];
    return NULL;
}

static bool takes(const onnx_node *node, const char *name)
{
    for (int i = 0; i < node->n_in; i++)
        if (!strcmp(node->in[i], name)) return true;
    return false;
}

const char *cn_onnx_reads(const cn_module *module, const char *weight)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    const onnx_model *m = call.ctx ? model_of(module) : NULL;
    if (!m || !weight) return NULL;
    const onnx_graph *g = m->file.graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const onnx_node *node = &g->nodes[i];
        if (!takes(node, weight)) continue;
        const char *other = other_input(g, node, weight);
        if (other) return other;
        if (node->n_out) weight = node->out[0]; /* the weight in another form: transposed, in another type */
    }
    return NULL;
}

bool cn_onnx_texts(const cn_module *module, cn_dict *d)
{
    CN__CALL call = cn__call_object(module, &cn__module_type);
    if (!call.ctx || !cn__object_of(call.ctx, d, &cn__dict_type, __func__)) return false;
    const onnx_model *m = model_of(module);
    if (!m) return false;
    for (int i = 0; i < m->file.n_metadata; i++)
        if (!cn_dict_set_text(d, m->file.metadata[i].key, m->file.metadata[i].value)) return false;
    return true;
}

/* Resolves a parsed file: names become slots, operators become rules, initializers become parameters, buffers or known
   values. What has no rule is listed, all of it at once. */
#include <stdio.h>

#include "core/errors.h"
#include "core/handle.h"
#include "core/hash.h"
#include "nn/nn.h"
#include "onnx/run.h"

/* How an initializer is used. */
enum { AS_DATA = 1, AS_STATE = 2, AS_STRUCTURE = 4 };

/* Whether a value is known on the host before anything is evaluated. MAYBE: an initializer of floats, if it is no
   parameter. */
typedef enum hosted { NOT_KNOWN, MAYBE_KNOWN, KNOWN } hosted;

typedef struct entry {
    char *name;
    int slot;
    hosted host;
    onnx_initializer *init;
} entry;

typedef struct scope {
    struct scope *outer;
    onnx_graph *graph;
    const onnx_import *imports;
    int n_imports;
    cn__vec entries;
    cn__names names;
} scope;

typedef struct missing {
    char *name; /* "domain.Op" or "Op" */
    int64_t nodes;
} missing;

typedef struct resolver {
    onnx_model *model;
    onnx_reader *r;
    cn__vec missing;
    cn__names missing_names;
    int64_t needing; /* nodes without a rule */
    int depth;
    int renamed; /* the last number that was added to a name */
} resolver;

static bool resolve_graph(resolver *s, onnx_graph *g, scope *outer, const onnx_import *imports, int n_imports);

static bool no_memory(resolver *s) { return cn__no_memory(s->model->ctx, "onnx_load"); }

/* ---- names ---- */

static entry *find(const scope *s, const char *name)
{
    const int64_t i = cn__names_find(&s->names, &s->entries, sizeof(entry), name, strlen(name));
    return i < 0 ? NULL : (entry *)s->entries.v + i;
}

/* A new slot for a name; *slot is -1 if the name is empty. */
static entry *define(resolver *s, scope *at, const char *name)
{
    cn__memory *memory = &s->model->ctx->memory;
    if (find(at, name)) {
        cn__onnx_fail(s->r, CN_BAD_FILE, "the value \"%.100s\" is defined twice", name);
        return NULL;
    }
    if (!cn__vec_reserve(memory, &at->entries, at->entries.n + 1, sizeof(entry)) ||
        !cn__names_reserve(memory, &at->names, &at->entries, sizeof(entry))) {
        no_memory(s);
        return NULL;
    }
    entry *e = (entry *)at->entries.v + at->entries.n++;
    *e = (entry){ (char *)name, at->graph->n_slots++, NOT_KNOWN, NULL };
    cn__names_add(&at->names, &at->entries, sizeof(entry));
    return e;
}

static bool refer(resolver *s, scope *at, const char *name, onnx_ref *out, entry **which)
{
    *out = (onnx_ref){ 0, -1 };
    *which = NULL;
    if (!*name) return true;
    for (; at; at = at->outer, out->up++) {
        entry *e = find(at, name);
        if (!e) continue;
        out->slot = e->slot;
        *which = e;
        return true;
    }
    return cn__onnx_fail(s->r, CN_BAD_FILE, "the value \"%.100s\" is used but not defined before", name);
}

/* ---- operators ---- */

static int version_of(const scope *at, const char *domain)
{
    for (int i = 0; i < at->n_imports; i++)
        if (!strcmp(at->imports[i].domain, domain))
            return at->imports[i].version < 1        ? 1
                   : at->imports[i].version > 100000 ? 100000
                                                     : (int)at->imports[i].version;
    return 1;
}

static bool note_missing(resolver *s, const onnx_node *node)
{
    cn__memory *memory = &s->model->ctx->memory;
    const size_t bytes = strlen(node->domain) + strlen(node->op) + 2;
    char *name = cn__onnx_new(s->r, bytes, 1);
    if (!name) return false;
    snprintf(name, bytes, "%s%s%s", node->domain, *node->domain ? "." : "", node->op);
    s->needing++;
    const int64_t i = cn__names_find(&s->missing_names, &s->missing, sizeof(missing), name, strlen(name));
    if (i >= 0) {
        ((missing *)s->missing.v)[i].nodes++;
        return true;
    }
    if (!cn__vec_reserve(memory, &s->missing, s->missing.n + 1, sizeof(missing)) ||
        !cn__names_reserve(memory, &s->missing_names, &s->missing, sizeof(missing)))
        return no_memory(s);
    ((missing *)s->missing.v)[s->missing.n++] = (missing){ name, 1 };
    cn__names_add(&s->missing_names, &s->missing, sizeof(missing));
    return true;
}

static bool find_rule(resolver *s, scope *at, onnx_node *node)
{
    onnx_file *file = &s->model->file;
    node->version = version_of(at, node->domain);
    for (int i = 0; i < file->n_functions; i++) {
        onnx_graph *f = &file->functions[i];
        if (strcmp(f->name, node->op) || strcmp(f->domain, node->domain) || strcmp(f->overload, node->overload))
            continue;
        node->call = f;
        if (f->resolved) return true;
        if (s->depth > CN__ONNX_DEPTH)
            return cn__onnx_fail(s->r, CN_BAD_FILE, "functions nest deeper than %d", CN__ONNX_DEPTH);
        f->resolved = true;
        s->depth++;
        const bool ok = resolve_graph(s, f, NULL, f->imports, f->n_imports);
        s->depth--;
        return ok;
    }
    node->row = cn__onnx_row(node->domain, node->op);
    if (!node->row) node->record = cn__onnx_record(node->domain, node->op);
    return node->row || node->record || note_missing(s, node);
}

/* ---- nodes ---- */

static bool single(const onnx_initializer *init)
{
    const int64_t *dims = init->tensor ? init->tensor->dims : init->sparse->dims;
    const int n = init->tensor ? init->tensor->ndim : init->sparse->ndim;
    for (int i = 0; i < n; i++)
        if (dims[i] != 1) return false;
    return true;
}

static bool arithmetic(const onnx_node *node)
{
    return node->record || (node->row && node->row->flags & ONNX_ARITHMETIC);
}

static bool is_known_input(const onnx_node *node, int i) { return node->row && i < 32 && node->row->known >> i & 1; }

/* Whether the node's results will be known: all its data are, and some of them for certain. */
static bool will_be_known(const onnx_node *node, entry *const *in)
{
    if (node->call || (!node->row && !node->record)) return false;
    if (node->row && node->row->flags & ONNX_SHAPE) return true;
    if (node->row && node->row->flags & (ONNX_CONTROL | ONNX_RANDOM)) return false;
    bool certain = node->n_in == 0, singles = true;
    for (int i = 0; i < node->n_in; i++) {
        if (!in[i]) continue;
        if (in[i]->host == NOT_KNOWN) return false;
        if (is_known_input(node, i)) continue;
        certain |= in[i]->host == KNOWN;
        singles &= in[i]->host == KNOWN || single(in[i]->init);
    }
    return arithmetic(node) ? certain || singles : certain && singles;
}

static void note_uses(const onnx_node *node, entry *const *in, bool known)
{
    for (int i = 0; i < node->n_in; i++) {
        if (!in[i] || !in[i]->init) continue;
        onnx_initializer *init = in[i]->init;
        if (known || is_known_input(node, i)) init->uses |= AS_STRUCTURE;
        else if ((node->row && i < 32 && node->row->state >> i & 1) || (arithmetic(node) && single(init)))
            init->uses |= AS_STATE;
        else init->uses |= AS_DATA;
    }
}

static bool new_memo(resolver *s, onnx_node *node)
{
    node->memo = cn__onnx_new(s->r, 1, sizeof *node->memo);
    return node->memo && (node->memo->stamps = cn__onnx_new(s->r, (size_t)node->n_in, sizeof *node->memo->stamps)) &&
           (node->memo->out = cn__onnx_new(s->r, (size_t)node->n_out, sizeof *node->memo->out));
}

static bool resolve_bodies(resolver *s, scope *at, onnx_node *node)
{
    for (int i = 0; i < node->n_attr; i++)
        if (node->attr[i].g && !resolve_graph(s, node->attr[i].g, at, at->imports, at->n_imports)) return false;
    return true;
}

static bool resolve_node(resolver *s, scope *at, onnx_node *node)
{
    entry *few[8], **in = few;
    if (!find_rule(s, at, node)) return false;
    node->from = cn__onnx_new(s->r, (size_t)node->n_in, sizeof *node->from);
    node->to = cn__onnx_new(s->r, (size_t)node->n_out, sizeof *node->to);
    if (!node->from || !node->to) return false;
    if (node->n_in > 8 && !(in = cn__onnx_new(s->r, (size_t)node->n_in, sizeof *in))) return false;
    for (int i = 0; i < node->n_in; i++)
        if (!refer(s, at, node->in[i], &node->from[i], &in[i])) return false;
    const bool known = will_be_known(node, in);
    note_uses(node, in, known);
    if (known && !new_memo(s, node)) return false;
    if (!resolve_bodies(s, at, node)) return false; /* in[] is not used any more: entries may have moved */
    for (int i = 0; i < node->n_out; i++) {
        node->to[i] = -1;
        if (!*node->out[i]) continue;
        entry *e = define(s, at, node->out[i]);
        if (!e) return false;
        node->to[i] = e->slot;
        e->host = known ? KNOWN : NOT_KNOWN;
    }
    return true;
}

/* ---- graphs ---- */

static bool is_float(int type)
{
    cn_dtype t;
    return cn__onnx_dtype(type, &t) && cn_dtype_is_float(t);
}

static int64_t count_elements(const int64_t *dims, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(all, dims[i], &all)) return INT64_MAX;
    return all;
}

static int64_t elements(const onnx_initializer *t)
{
    return t->tensor ? count_elements(t->tensor->dims, t->tensor->ndim)
                     : count_elements(t->sparse->dims, t->sparse->ndim);
}
static int type_of(const onnx_initializer *t) { return t->tensor ? t->tensor->type : t->sparse->values.type; }
static const char *name_of(const onnx_initializer *t) { return t->tensor ? t->tensor->name : t->sparse->values.name; }

static bool define_initializer(resolver *s, scope *at, onnx_initializer *init)
{
    entry *e = find(at, name_of(init));
    if (!e && !(e = define(s, at, name_of(init)))) return false;
    if (e->init) return cn__onnx_fail(s->r, CN_BAD_FILE, "the value \"%.100s\" is defined twice", e->name);
    e->init = init;
    e->host = elements(init) > CN__ONNX_KNOWN ? NOT_KNOWN : is_float(type_of(init)) ? MAYBE_KNOWN : KNOWN;
    init->slot = e->slot;
    return true;
}

static bool resolve_all(resolver *s, onnx_graph *g, scope *at)
{
    g->input_slots = cn__onnx_new(s->r, (size_t)g->n_inputs, sizeof *g->input_slots);
    g->output_refs = cn__onnx_new(s->r, (size_t)g->n_outputs, sizeof *g->output_refs);
    g->input_given = cn__onnx_new(s->r, (size_t)g->n_inputs, sizeof *g->input_given);
    if (!g->input_slots || !g->output_refs || !g->input_given) return false;
    for (int i = 0; i < g->n_inputs; i++) {
        const entry *e = define(s, at, g->inputs[i].name);
        if (!e) return false;
        g->input_slots[i] = e->slot;
    }
    for (int i = 0; i < g->n_initializers; i++)
        if (!define_initializer(s, at, &g->initializers[i])) return false;
    for (int i = 0; i < g->n_inputs; i++) g->input_given[i] = find(at, g->inputs[i].name)->init != NULL;
    for (int i = 0; i < g->n_nodes; i++)
        if (!resolve_node(s, at, &g->nodes[i])) return false;
    for (int i = 0; i < g->n_outputs; i++) {
        entry *e;
        if (!refer(s, at, g->outputs[i].name, &g->output_refs[i], &e)) return false;
        if (!e) return cn__onnx_fail(s->r, CN_BAD_FILE, "a graph has a result without a name");
        if (e->init) e->init->uses |= AS_DATA;
    }
    return true;
}

static bool resolve_graph(resolver *s, onnx_graph *g, scope *outer, const onnx_import *imports, int n_imports)
{
    cn__memory *memory = &s->model->ctx->memory;
    scope at = { outer, g, imports, n_imports, { 0 }, { .key = &s->model->ctx->hash_key } };
    g->resolved = true;
    const bool ok = resolve_all(s, g, &at) && cn__onnx_pair_norms(s->r, g);
    cn__names_free(memory, &at.names);
    cn__vec_free(memory, &at.entries, sizeof(entry));
    return ok;
}

/* ---- parameters, buffers, known values ---- */

/* Names of a body's initializers may be those of the graph around it: then a number is added. */
static cn_tensor *add_named(resolver *s, const char *name, cn_tensor *t, bool trained)
{
    char other[480];
    snprintf(other, sizeof other, "%.460s", *name ? name : "constant");
    while (cn_module_get(s->model->module, other))
        snprintf(other, sizeof other, "%.460s#%d", *name ? name : "constant", ++s->renamed);
    return cn__module_tensor(s->model->module, other, t, trained);
}

static cn_tensor *made(resolver *s, const onnx_initializer *init, cn_ctx *ctx)
{
    onnx_weights *w = &s->model->weights;
    return init->tensor ? cn__onnx_tensor(w, init->tensor, ctx) : cn__onnx_dense(w, init->sparse, ctx);
}

static bool make_known(resolver *s, onnx_initializer *init)
{
    cn_tensor *t = made(s, init, s->model->host);
    init->known = t ? cn__onnx_new(s->r, 1, sizeof *init->known) : NULL;
    if (init->known) *init->known = (onnx_known){ .host = cn__keep(t), .stamp = ++s->model->stamps, .lasts = true };
    return init->known != NULL;
}

static bool make_initializer(resolver *s, onnx_initializer *init)
{
    const bool small = elements(init) <= CN__ONNX_KNOWN, real = is_float(type_of(init));
    if (small && (!real || !(init->uses & (AS_DATA | AS_STATE)))) return make_known(s, init);
    init->weight = ++s->model->n_weights;
    if (s->model->no_weights) return true;
    cn_tensor *t = made(s, init, s->model->ctx);
    init->data = t ? add_named(s, name_of(init), t, real && init->uses & AS_DATA) : NULL;
    return init->data != NULL;
}

/* The tensor of a Constant node that may be a weight, or NULL. */
static onnx_tensor *weight_of(const onnx_node *node)
{
    if (strcmp(node->op, "Constant") || *node->domain || node->n_out != 1 || node->n_attr != 1) return NULL;
    const onnx_attr *a = &node->attr[0];
    const bool real = a->t && !a->ref && !strcmp(a->name, "value") && is_float(a->t->type);
    return real && count_elements(a->t->dims, a->t->ndim) > 1 ? a->t : NULL;
}

/* Some programs write all weights as Constant nodes. If a graph has no floating initializer of several elements, its
   floating constants of several elements are initializers. */
static bool take_constants(resolver *s, onnx_graph *g)
{
    size_t n = (size_t)g->n_initializers;
    for (int i = 0; i < g->n_initializers; i++)
        if (is_float(type_of(&g->initializers[i])) && elements(&g->initializers[i]) > 1) return true;
    for (int i = 0; i < g->n_nodes; i++) n += weight_of(&g->nodes[i]) != NULL;
    onnx_initializer *all = cn__onnx_new(s->r, n, sizeof *all);
    if (!all) return false;
    for (int i = 0; i < g->n_initializers; i++) all[i] = g->initializers[i];
    g->initializers = all;
    const int nodes = g->n_nodes;
    g->n_nodes = 0;
    for (int i = 0; i < nodes; i++) {
        onnx_tensor *t = weight_of(&g->nodes[i]);
        if (t) t->name = g->nodes[i].out[0];
        if (t) all[g->n_initializers++] = (onnx_initializer){ .tensor = t };
        else g->nodes[g->n_nodes++] = g->nodes[i];
    }
    return true;
}

static bool make_constant(resolver *s, onnx_node *node)
{
    if (strcmp(node->op, "Constant") || *node->domain || node->n_out < 1) return true;
    for (int i = 0; i < node->n_attr; i++) {
        onnx_attr *a = &node->attr[i];
        if (!a->t || a->ref || strcmp(a->name, "value") || count_elements(a->t->dims, a->t->ndim) <= CN__ONNX_KNOWN)
            continue;
        node->weight = ++s->model->n_weights;
        if (s->model->no_weights) return true;
        cn_tensor *t = cn__onnx_tensor(&s->model->weights, a->t, s->model->ctx);
        node->constant = t ? add_named(s, node->out[0], t, false) : NULL;
        return node->constant != NULL;
    }
    return true;
}

static bool make_all(resolver *s, onnx_graph *g)
{
    for (int i = 0; i < g->n_initializers; i++)
        if (!make_initializer(s, &g->initializers[i])) return false;
    for (int i = 0; i < g->n_nodes; i++) {
        if (!make_constant(s, &g->nodes[i])) return false;
        for (int k = 0; k < g->nodes[i].n_attr; k++)
            if (g->nodes[i].attr[k].g && !make_all(s, g->nodes[i].attr[k].g)) return false;
    }
    return true;
}

/* "3 nodes need operators that are missing: Foo (2), com.example.Bar (1)" */
static bool fail_missing(resolver *s)
{
    char list[400];
    size_t at = 0;
    for (size_t i = 0; i < s->missing.n && at < sizeof list - 1; i++) {
        const missing *m = (missing *)s->missing.v + i;
        const int n =
            snprintf(list + at, sizeof list - at, "%s%.60s (%lld)", i ? ", " : "", m->name, (long long)m->nodes);
        at += n > 0 ? (size_t)n : 0;
    }
    return cn__onnx_fail(s->r, CN_UNSUPPORTED, "%lld nodes need operators that are missing: %.300s",
                         (long long)s->needing, list);
}

bool cn__onnx_resolve(onnx_model *m)
{
    resolver s = { .model = m, .r = &m->weights.reader, .missing_names = { .key = &m->ctx->hash_key }, .renamed = 1 };
    bool ok = take_constants(&s, m->file.graph) &&
              resolve_graph(&s, m->file.graph, NULL, m->file.imports, m->file.n_imports);
    if (ok && s.missing.n) ok = fail_missing(&s);
    for (int i = 0; i < m->file.n_functions && ok; i++)
        if (m->file.functions[i].resolved) ok = make_all(&s, &m->file.functions[i]);
    ok = ok && make_all(&s, m->file.graph);
    cn__names_free(&m->ctx->memory, &s.missing_names);
    cn__vec_free(&m->ctx->memory, &s.missing, sizeof(missing));
    return ok;
}

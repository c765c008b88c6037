/* Parses the messages of an ONNX file. Each message is read twice: once to count repeated fields, once to fill arrays.
   The numbers of fields are those of onnx.proto. */
#include "onnx/model.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/errors.h"

bool(cn__onnx_fail)(const onnx_reader *r, cn_code code, const char *message, ...)
{
    char text[400];
    va_list list;
    va_start(list, message);
    vsnprintf(text, sizeof text, message, list);
    va_end(list);
    return cn__fail(r->ctx, code, "onnx_load: %.200s: %s", r->name, text);
}

void *cn__onnx_new(const onnx_reader *r, size_t count, size_t size)
{
    size_t bytes;
    const bool fits = !__builtin_mul_overflow(count, size, &bytes) && bytes <= PTRDIFF_MAX;
    void *p = fits ? cn__bump_new(&r->ctx->memory, r->memory, bytes ? bytes : 1) : NULL;
    if (!p) cn__no_memory(r->ctx, "onnx_load");
    return p;
}

static bool damaged(const onnx_reader *r, const char *what)
{
    return cn__onnx_fail(r, CN_BAD_FILE, "%s is damaged: a field is cut off or of the wrong kind", what);
}

/* ---- fields ---- */

static bool is_bytes(const cn__field *f) { return f->kind == CN__WIRE_BYTES; }

static bool text(const onnx_reader *r, const cn__field *f, onnx_text *out)
{
    if (!is_bytes(f)) return damaged(r, "a text");
    const size_t n = cn__wire_left(&f->bytes);
    char *copy = cn__onnx_new(r, n + 1, 1);
    if (!copy) return false;
    if (n) memcpy(copy, f->bytes.at, n);
    *out = (onnx_text){ copy, n };
    return true;
}

static bool name(const onnx_reader *r, const cn__field *f, const char **out)
{
    onnx_text t;
    if (!text(r, f, &t)) return false;
    *out = t.v;
    return strlen(t.v) == t.n || cn__onnx_fail(r, CN_BAD_FILE, "the name \"%.80s\" has a 0 inside", t.v);
}

static bool whole(const onnx_reader *r, const cn__field *f, int64_t *out)
{
    if (f->kind != CN__WIRE_VARINT) return damaged(r, "a number");
    *out = (int64_t)f->value;
    return true;
}

static bool small(const onnx_reader *r, const cn__field *f, int *out)
{
    int64_t v;
    if (!whole(r, f, &v)) return false;
    *out = (int)(int32_t)v;
    return true;
}

/* How many fields of each number below 32 a message has; false: it is damaged. */
static bool count(const onnx_reader *r, cn__wire w, const char *what, int n[32])
{
    memset(n, 0, 32 * sizeof *n);
    for (cn__field f; cn__wire_next(&w, &f);)
        if (f.number < 32) {
            if (n[f.number] == INT32_MAX) return damaged(r, what);
            n[f.number]++;
        }
    return !w.bad || damaged(r, what);
}

/* All numbers of a repeated field, in one array. */
static int64_t *numbers(const onnx_reader *r, cn__wire body, uint32_t number, int size, int *out_n)
{
    int64_t n = 0;
    cn__wire w = body;
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number != number) continue;
        const int64_t more = cn__field_count(&f, size);
        if (more < 0 || (n += more) > INT32_MAX) return damaged(r, "a list of numbers"), NULL;
    }
    int64_t *v = cn__onnx_new(r, (size_t)n, sizeof *v);
    if (!v) return NULL;
    *out_n = (int)n;
    int64_t *to = v;
    w = body;
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number != number) continue;
        cn__field_numbers(&f, size, (uint64_t *)to);
        to += cn__field_count(&f, size);
    }
    return v;
}

/* ---- StringStringEntryProto, OperatorSetIdProto ---- */

static bool pair(const onnx_reader *r, const cn__field *in, onnx_pair *out)
{
    if (!is_bytes(in)) return damaged(r, "an entry of metadata");
    cn__wire w = in->bytes;
    *out = (onnx_pair){ "", "" };
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 1 && !name(r, &f, &out->key)) return false;
        if (f.number == 2 && !name(r, &f, &out->value)) return false;
    }
    return !w.bad || damaged(r, "an entry of metadata");
}

static bool import(const onnx_reader *r, const cn__field *in, onnx_import *out)
{
    if (!is_bytes(in)) return damaged(r, "an operator set");
    cn__wire w = in->bytes;
    *out = (onnx_import){ "", 0 };
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 1 && !name(r, &f, &out->domain)) return false;
        if (f.number == 2 && !whole(r, &f, &out->version)) return false;
    }
    return !w.bad || damaged(r, "an operator set");
}

/* ---- TensorProto ---- */

static bool external_entry(const onnx_reader *r, const cn__field *f, onnx_tensor *out)
{
    onnx_pair p;
    if (!pair(r, f, &p)) return false;
    uint64_t number = 0;
    const bool location = !strcmp(p.key, "location");
    const bool offset = !strcmp(p.key, "offset"), length = !strcmp(p.key, "length");
    for (const char *c = p.value; *c && (offset || length); c++)
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
            return cn__onnx_fail(r, CN_BAD_FILE, "external data: %.20s must be a number, got \"%.40s\"", p.key,
                                 p.value);
    if (location) out->location = p.value;
    if (offset) out->offset = number;
    if (length) out->length = number, out->has_length = true;
    return true;
}

bool cn__onnx_parse_tensor(const onnx_reader *r, cn__wire body, onnx_tensor *out)
{
    *out = (onnx_tensor){ .name = "", .body = body };
    cn__wire w = body;
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        int place;
        switch (f.number) {
        case 2: ok = small(r, &f, &out->type); break;
        case 8: ok = name(r, &f, &out->name); break;
        case 9:
            ok = is_bytes(&f) || damaged(r, "raw_data");
            out->raw = f.bytes;
            out->has_raw = true;
            break;
        case 13: ok = external_entry(r, &f, out); break;
        case 14: ok = small(r, &f, &place) && ((out->external = place == 1), true); break;
        default: break;
        }
        if (!ok) return false;
    }
    if (w.bad) return damaged(r, "a tensor");
    out->dims = numbers(r, body, 1, 0, &out->ndim);
    return out->dims != NULL;
}

static onnx_tensor *new_tensor(const onnx_reader *r, const cn__field *f)
{
    if (!is_bytes(f)) return damaged(r, "a tensor"), NULL;
    onnx_tensor *t = cn__onnx_new(r, 1, sizeof *t);
    return t && cn__onnx_parse_tensor(r, f->bytes, t) ? t : NULL;
}

static onnx_sparse *new_sparse(const onnx_reader *r, const cn__field *in)
{
    if (!is_bytes(in)) return damaged(r, "a sparse tensor"), NULL;
    onnx_sparse *s = cn__onnx_new(r, 1, sizeof *s);
    if (!s) return NULL;
    s->values.name = s->indices.name = "";
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        onnx_tensor *to = f.number == 1 ? &s->values : f.number == 2 ? &s->indices : NULL;
        if (!to) continue;
        if (!is_bytes(&f)) return damaged(r, "a sparse tensor"), NULL;
        if (!cn__onnx_parse_tensor(r, f.bytes, to)) return NULL;
    }
    if (w.bad) return damaged(r, "a sparse tensor"), NULL;
    s->dims = numbers(r, in->bytes, 3, 0, &s->ndim);
    return s->dims ? s : NULL;
}

/* ---- TypeProto, ValueInfoProto ---- */

static bool dimension(const onnx_reader *r, cn__wire w, int64_t *size, const char **symbol)
{
    *size = -1;
    *symbol = "";
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 1 && !whole(r, &f, size)) return false;
        if (f.number == 2 && !name(r, &f, symbol)) return false;
    }
    if (*size < -1) *size = -1;
    return !w.bad || damaged(r, "a shape");
}

static bool shape(const onnx_reader *r, const cn__field *in, onnx_typed *out)
{
    int n[32], at = 0;
    if (!is_bytes(in)) return damaged(r, "a shape");
    if (!count(r, in->bytes, "a shape", n)) return false;
    out->has_shape = true;
    out->ndim = n[1];
    out->dims = cn__onnx_new(r, (size_t)n[1], sizeof *out->dims);
    out->symbols = cn__onnx_new(r, (size_t)n[1], sizeof *out->symbols);
    if (!out->dims || !out->symbols) return false;
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number != 1) continue;
        if (!is_bytes(&f)) return damaged(r, "a shape");
        if (!dimension(r, f.bytes, &out->dims[at], &out->symbols[at])) return false;
        at++;
    }
    return true;
}

static bool tensor_type(const onnx_reader *r, cn__wire w, onnx_typed *out)
{
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 1 && !small(r, &f, &out->element)) return false;
        if (f.number == 2 && !shape(r, &f, out)) return false;
    }
    return !w.bad || damaged(r, "a type");
}

static const onnx_typed *typed(const onnx_reader *r, cn__wire w, int depth)
{
    onnx_typed *t = cn__onnx_new(r, 1, sizeof *t);
    if (!t) return NULL;
    if (depth > CN__ONNX_DEPTH) {
        cn__onnx_fail(r, CN_BAD_FILE, "types nest deeper than %d", CN__ONNX_DEPTH);
        return NULL;
    }
    t->kind = ONNX_IS_OTHER;
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number != 1 && f.number != 4 && f.number != 9) continue;
        if (!is_bytes(&f)) return damaged(r, "a type"), NULL;
        t->kind = f.number == 1 ? ONNX_IS_TENSOR : f.number == 4 ? ONNX_IS_SEQUENCE : ONNX_IS_OPTIONAL;
        if (f.number == 1) {
            if (!tensor_type(r, f.bytes, t)) return NULL;
            continue;
        }
        cn__wire inner = f.bytes;
        for (cn__field g; cn__wire_next(&inner, &g);)
            if (g.number == 1 && is_bytes(&g) && !(t->of = typed(r, g.bytes, depth + 1))) return NULL;
        if (inner.bad) return damaged(r, "a type"), NULL;
    }
    return w.bad ? (damaged(r, "a type"), NULL) : t;
}

static bool info(const onnx_reader *r, const cn__field *in, onnx_info *out)
{
    if (!is_bytes(in)) return damaged(r, "the description of a value");
    *out = (onnx_info){ "", NULL };
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 1 && !name(r, &f, &out->name)) return false;
        if (f.number == 2 && is_bytes(&f) && !(out->type = typed(r, f.bytes, 0))) return false;
    }
    return !w.bad || damaged(r, "the description of a value");
}

/* ---- AttributeProto ---- */

static bool graph(const onnx_reader *r, cn__wire w, int depth, onnx_graph *out);

static onnx_graph *new_graph(const onnx_reader *r, const cn__field *f, int depth)
{
    if (!is_bytes(f)) return damaged(r, "a graph"), NULL;
    onnx_graph *g = cn__onnx_new(r, 1, sizeof *g);
    return g && graph(r, f->bytes, depth + 1, g) ? g : NULL;
}

static bool attribute_lists(const onnx_reader *r, cn__wire body, onnx_attr *out)
{
    int n = 0;
    int64_t *floats = numbers(r, body, 7, 4, &out->n_floats);
    out->ints = numbers(r, body, 8, 0, &out->n_ints);
    if (!floats || !out->ints || !(out->floats = cn__onnx_new(r, (size_t)out->n_floats, sizeof *out->floats)))
        return false;
    for (int i = 0; i < out->n_floats; i++) {
        const uint32_t bits = (uint32_t)floats[i];
        memcpy(&out->floats[i], &bits, sizeof bits);
    }
    cn__wire w = body;
    for (cn__field f; cn__wire_next(&w, &f);) out->n_strings += f.number == 9;
    out->strings = cn__onnx_new(r, (size_t)out->n_strings, sizeof *out->strings);
    if (!out->strings) return false;
    w = body;
    for (cn__field f; cn__wire_next(&w, &f);)
        if (f.number == 9 && !text(r, &f, &out->strings[n++])) return false;
    return true;
}

static bool attribute(const onnx_reader *r, const cn__field *in, int depth, onnx_attr *out)
{
    if (!is_bytes(in)) return damaged(r, "an attribute");
    *out = (onnx_attr){ .name = "", .s = { "", 0 } };
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        const uint32_t bits = (uint32_t)f.value;
        switch (f.number) {
        case 1: ok = name(r, &f, &out->name); break;
        case 2:
            ok = f.kind == CN__WIRE_FIXED32 || damaged(r, "an attribute");
            memcpy(&out->f, &bits, sizeof bits);
            break;
        case 3: ok = whole(r, &f, &out->i); break;
        case 4: ok = text(r, &f, &out->s); break;
        case 5: ok = (out->t = new_tensor(r, &f)) != NULL; break;
        case 6: ok = (out->g = new_graph(r, &f, depth)) != NULL; break;
        case 14: ok = is_bytes(&f) && (out->tp = typed(r, f.bytes, 0)) != NULL; break;
        case 20: ok = small(r, &f, &out->type); break;
        case 21: ok = name(r, &f, &out->ref); break;
        case 22: ok = (out->sparse = new_sparse(r, &f)) != NULL; break;
        default: break;
        }
        if (!ok) return cn_failed(r->ctx) ? false : damaged(r, "an attribute");
    }
    if (out->ref && !*out->ref) out->ref = NULL;
    return w.bad ? damaged(r, "an attribute") : attribute_lists(r, in->bytes, out);
}

/* ---- NodeProto ---- */

static bool node(const onnx_reader *r, const cn__field *in, int depth, onnx_node *out)
{
    int n[32];
    if (!is_bytes(in)) return damaged(r, "a node");
    if (!count(r, in->bytes, "a node", n)) return false;
    *out = (onnx_node){ .name = "", .op = "", .domain = "", .overload = "" };
    out->in = cn__onnx_new(r, (size_t)n[1], sizeof *out->in);
    out->out = cn__onnx_new(r, (size_t)n[2], sizeof *out->out);
    out->attr = cn__onnx_new(r, (size_t)n[5], sizeof *out->attr);
    if (!out->in || !out->out || !out->attr) return false;
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        switch (f.number) {
        case 1: ok = name(r, &f, &out->in[out->n_in++]); break;
        case 2: ok = name(r, &f, &out->out[out->n_out++]); break;
        case 3: ok = name(r, &f, &out->name); break;
        case 4: ok = name(r, &f, &out->op); break;
        case 5: ok = attribute(r, &f, depth, &out->attr[out->n_attr++]); break;
        case 7: ok = name(r, &f, &out->domain); break;
        case 8: ok = name(r, &f, &out->overload); break;
        default: break;
        }
        if (!ok) return false;
    }
    if (!strcmp(out->domain, "ai.onnx")) out->domain = "";
    return true;
}

/* ---- GraphProto, FunctionProto ---- */

static bool new_lists(const onnx_reader *r, onnx_graph *g, int nodes, int inputs, int outputs, size_t initializers)
{
    return (g->nodes = cn__onnx_new(r, (size_t)nodes, sizeof *g->nodes)) &&
           (g->inputs = cn__onnx_new(r, (size_t)inputs, sizeof *g->inputs)) &&
           (g->outputs = cn__onnx_new(r, (size_t)outputs, sizeof *g->outputs)) &&
           (g->initializers = cn__onnx_new(r, initializers, sizeof *g->initializers));
}

static bool graph(const onnx_reader *r, cn__wire w, int depth, onnx_graph *out)
{
    int n[32];
    if (depth > CN__ONNX_DEPTH) return cn__onnx_fail(r, CN_BAD_FILE, "graphs nest deeper than %d", CN__ONNX_DEPTH);
    if (!count(r, w, "a graph", n) || !new_lists(r, out, n[1], n[11], n[12], (size_t)n[5] + (size_t)n[15]))
        return false;
    out->name = out->domain = out->overload = "";
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        switch (f.number) {
        case 1: ok = node(r, &f, depth, &out->nodes[out->n_nodes++]); break;
        case 2: ok = name(r, &f, &out->name); break;
        case 5: ok = (out->initializers[out->n_initializers++].tensor = new_tensor(r, &f)) != NULL; break;
        case 11: ok = info(r, &f, &out->inputs[out->n_inputs++]); break;
        case 12: ok = info(r, &f, &out->outputs[out->n_outputs++]); break;
        case 15: ok = (out->initializers[out->n_initializers++].sparse = new_sparse(r, &f)) != NULL; break;
        default: break;
        }
        if (!ok) return false;
    }
    return true;
}

static bool function(const onnx_reader *r, const cn__field *in, onnx_graph *out)
{
    int n[32];
    if (!is_bytes(in)) return damaged(r, "a function");
    if (!count(r, in->bytes, "a function", n) || !new_lists(r, out, n[7], n[4], n[5], 0)) return false;
    out->name = out->domain = out->overload = "";
    out->defaults = cn__onnx_new(r, (size_t)n[11], sizeof *out->defaults);
    out->imports = cn__onnx_new(r, (size_t)n[9], sizeof *out->imports);
    if (!out->defaults || !out->imports) return false;
    cn__wire w = in->bytes;
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        switch (f.number) {
        case 1: ok = name(r, &f, &out->name); break;
        case 4: ok = name(r, &f, &out->inputs[out->n_inputs++].name); break;
        case 5: ok = name(r, &f, &out->outputs[out->n_outputs++].name); break;
        case 7: ok = node(r, &f, 0, &out->nodes[out->n_nodes++]); break;
        case 9: ok = import(r, &f, &out->imports[out->n_imports++]); break;
        case 10: ok = name(r, &f, &out->domain); break;
        case 11: ok = attribute(r, &f, 0, &out->defaults[out->n_defaults++]); break;
        case 13: ok = name(r, &f, &out->overload); break;
        default: break;
        }
        if (!ok) return false;
    }
    if (!strcmp(out->domain, "ai.onnx")) out->domain = "";
    return true;
}

/* ---- ModelProto ---- */

bool cn__onnx_parse(const onnx_reader *r, const void *data, size_t bytes, onnx_file *out)
{
    int n[32];
    cn__wire w = cn__wire_of(data, bytes);
    *out = (onnx_file){ .producer = "", .producer_version = "", .domain = "", .doc = "" };
    if (!count(r, w, "the file", n)) return false;
    if (!n[7]) return cn__onnx_fail(r, CN_BAD_FILE, "this is no ONNX file: it has no graph");
    out->imports = cn__onnx_new(r, (size_t)n[8], sizeof *out->imports);
    out->metadata = cn__onnx_new(r, (size_t)n[14], sizeof *out->metadata);
    out->functions = cn__onnx_new(r, (size_t)n[25], sizeof *out->functions);
    if (!out->imports || !out->metadata || !out->functions) return false;
    for (cn__field f; cn__wire_next(&w, &f);) {
        bool ok = true;
        switch (f.number) {
        case 1: ok = whole(r, &f, &out->ir_version); break;
        case 2: ok = name(r, &f, &out->producer); break;
        case 3: ok = name(r, &f, &out->producer_version); break;
        case 4: ok = name(r, &f, &out->domain); break;
        case 5: ok = whole(r, &f, &out->model_version); break;
        case 6: ok = name(r, &f, &out->doc); break;
        case 7: ok = (out->graph = new_graph(r, &f, -1)) != NULL; break;
        case 8: ok = import(r, &f, &out->imports[out->n_imports++]); break;
        case 14: ok = pair(r, &f, &out->metadata[out->n_metadata++]); break;
        case 25: ok = function(r, &f, &out->functions[out->n_functions++]); break;
        default: break;
        }
        if (!ok) return false;
    }
    for (int i = 0; i < out->n_imports; i++)
        if (!strcmp(out->imports[i].domain, "ai.onnx")) out->imports[i].domain = "";
    return true;
}

/* Prints what is in an ONNX file. */
#include <stdarg.h>
#include <stdio.h>

#include "cairn/onnx.h"
#include "core/errors.h"
#include "onnx/run.h"

typedef struct printer {
    char *out;
    size_t size, n;
} printer;

__attribute__((format(printf, 2, 3))) static void print(printer *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t room = p->n < p->size ? p->size - p->n : 0;
    const int n = vsnprintf(room ? p->out + p->n : NULL, room, format, list);
    va_end(list);
    p->n += n > 0 ? (size_t)n : 0;
}

static void print_type(printer *p, const onnx_typed *t)
{
    static const char *const kinds[] = { "", "sequence of ", "optional ", "other" };
    for (; t && t->kind != ONNX_IS_TENSOR; t = t->of) print(p, "%s", kinds[t->kind]);
    if (!t) return;
    print(p, "%s", cn__onnx_type_name(t->element));
    for (int i = 0; i < t->ndim; i++) {
        print(p, i ? "," : " [");
        if (t->dims[i] >= 0) print(p, "%lld", (long long)t->dims[i]);
        else print(p, "%s", *t->symbols[i] ? t->symbols[i] : "?");
    }
    print(p, t->ndim ? "]" : t->has_shape ? " []" : "");
}

static void print_ports(printer *p, const char *what, const onnx_info *v, int n, const onnx_graph *g)
{
    for (int i = 0; i < n; i++) {
        bool given = false;
        for (int k = 0; k < g->n_initializers && v == g->inputs && g->initializers[k].tensor; k++)
            given |= !strcmp(g->initializers[k].tensor->name, v[i].name);
        if (given) continue;
        print(p, "%-8s %s: ", what, v[i].name);
        print_type(p, v[i].type);
        print(p, "\n");
    }
}

/* ---- operators ---- */

enum { MOST_OPERATORS = 4096 }; /* that are listed */

typedef struct counted {
    const char *domain, *op;
    int64_t nodes;
    bool missing;
} counted;

static bool is_function(const onnx_file *f, const onnx_node *n)
{
    for (int i = 0; i < f->n_functions; i++)
        if (!strcmp(f->functions[i].name, n->op) && !strcmp(f->functions[i].domain, n->domain)) return true;
    return false;
}

static bool count_nodes(const onnx_reader *r, const onnx_file *f, const onnx_graph *g, cn__vec *all)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const onnx_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_attr; k++)
            if (n->attr[k].g && !count_nodes(r, f, n->attr[k].g, all)) return false;
        counted *v = all->v;
        size_t at = 0;
        while (at < all->n && (strcmp(v[at].op, n->op) || strcmp(v[at].domain, n->domain))) at++;
        if (at < all->n) {
            v[at].nodes++;
            continue;
        }
        if (all->n == MOST_OPERATORS) continue;
        const bool has = is_function(f, n) || cn__onnx_row(n->domain, n->op) || cn__onnx_record(n->domain, n->op);
        const counted one = { n->domain, n->op, 1, !has };
        if (!cn__push(&r->ctx->memory, all, &one, sizeof one)) return cn__no_memory(r->ctx, "onnx_print");
    }
    return true;
}

static void print_operators(printer *p, const cn__vec *all)
{
    const counted *v = all->v;
    int64_t nodes = 0, missing = 0;
    for (size_t i = 0; i < all->n; i++) nodes += v[i].nodes, missing += v[i].missing;
    print(p, "nodes    %lld, of %zu operators\n", (long long)nodes, all->n);
    for (int pass = 0; pass < 2; pass++) {
        if (pass && !missing) continue;
        print(p, pass ? "missing " : "uses    ");
        for (size_t i = 0; i < all->n; i++)
            if (!pass || v[i].missing)
                print(p, " %s%s%s (%lld)", v[i].domain, *v[i].domain ? "." : "", v[i].op, (long long)v[i].nodes);
        print(p, "\n");
    }
}

static void print_weights(printer *p, const onnx_graph *g)
{
    int64_t numbers = 0, tensors = 0;
    for (int i = 0; i < g->n_initializers; i++) {
        int64_t n = 1;
        const onnx_initializer *t = &g->initializers[i];
        for (int d = 0; t->tensor && d < t->tensor->ndim; d++)
            if (__builtin_mul_overflow(n, t->tensor->dims[d], &n)) n = 0;
        if (__builtin_add_overflow(numbers, n, &numbers)) numbers = INT64_MAX;
        tensors++;
    }
    print(p, "weights  %lld tensors, %lld numbers\n", (long long)tensors, (long long)numbers);
}

static bool print_file(printer *p, const onnx_reader *r, const onnx_file *f)
{
    cn__vec all = { 0 };
    const onnx_graph *g = f->graph;
    print(p, "graph    %s\nproducer %s %s\nversion  IR %lld, operators", g->name, f->producer, f->producer_version,
          (long long)f->ir_version);
    for (int i = 0; i < f->n_imports; i++)
        print(p, " %s%s%lld", f->imports[i].domain, *f->imports[i].domain ? " " : "", (long long)f->imports[i].version);
    print(p, "\n");
    print_ports(p, "input", g->inputs, g->n_inputs, g);
    print_ports(p, "output", g->outputs, g->n_outputs, g);
    print_weights(p, g);
    bool ok = count_nodes(r, f, g, &all);
    for (int i = 0; i < f->n_functions && ok; i++) ok = count_nodes(r, f, &f->functions[i], &all);
    if (ok) print_operators(p, &all);
    for (int i = 0; i < f->n_metadata; i++) { /* a value may be a whole file: its first line is shown */
        const char *value = f->metadata[i].value;
        const size_t line = strcspn(value, "\n"), shown = line < 200 ? line : 200;
        print(p, "metadata %s: %.*s%s\n", f->metadata[i].key, (int)shown, value, value[shown] ? " ..." : "");
    }
    cn__vec_free(&r->ctx->memory, &all, sizeof(counted));
    return ok;
}

size_t cn_onnx_print(cn_ctx *ctx, const char *path, char *out, size_t size)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (out && size) *out = 0;
    if (!call.ctx) return 0;
    if (!path || (size && !out)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "onnx_print: path and out must not be NULL");
        return 0;
    }
    cn__content *content = cn__content_open(ctx, path);
    if (!content) return 0;
    cn__bump memory = { 0 };
    const onnx_reader r = { ctx, &memory, path };
    onnx_file file;
    printer p = { out, size, 0 };
    const bool ok = cn__onnx_parse(&r, content->data, content->bytes, &file) && print_file(&p, &r, &file);
    cn__bump_free(&ctx->memory, &memory);
    cn__content_release(content);
    return ok ? p.n : 0;
}

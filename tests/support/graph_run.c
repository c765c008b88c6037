/* graph_run.c: a program run in a context. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "support/graph.h"

/* ---- numbers of leaves ---- */

static double leaf_number(const graph_instr *i, int64_t at)
{
    uint64_t z = (i->seed + (uint64_t)at * 0x9e3779b97f4a7c15u) ^ 0x5851f42d4c957f2du;
    z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
    z ^= z >> 32;
    double u = (double)(z >> 11) * 0x1p-53;
    static const double wild[] = { 0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-40 };
    if (i->flag && z % 5 == 0) return wild[z / 5 % 10];
    if (i->a[0] > 0) return (double)(z / 7 % (uint64_t)i->a[0]); /* an index */
    if (i->dtype == CN_BOOL) return (double)(z & 1);
    if (!cn_dtype_is_float(i->dtype)) return (double)(int64_t)(z / 3 % 13) - (i->dtype == CN_U8 ? 0 : 6);
    return 3 * u - 1.5;
}

static void *leaf_numbers(const graph_instr *i)
{
    size_t size = cn_dtype_size(i->dtype);
    int64_t n = graph_numel(&i->dims);
    char *data = calloc((size_t)n + 1, size);
    if (!data) abort();
    for (int64_t k = 0; k < n; k++) cn__store_f64(i->dtype, data + (size_t)k * size, leaf_number(i, k));
    return data;
}

cn_tensor *graph_leaf_tensor(cn_ctx *ctx, const graph_instr *i)
{
    void *data = leaf_numbers(i);
    cn_tensor *t = cn_from(ctx, i->dtype, i->dims, data);
    free(data);
    return t;
}

/* ---- the log ---- */

static bool fail(graph_runner *r, int at, const char *words)
{
    graph_log *log = r->log;
    if (log->failed_at >= 0) return false;
    log->failed_at = at;
    snprintf(log->error, sizeof log->error, "%s", words);
    return false;
}

static bool fail_as_context_says(graph_runner *r, int at)
{
    char words[600];
    snprintf(words, sizeof words, "%s: %s", cn_code_name(cn_error_code(r->ctx)),
             cn_failed(r->ctx) ? cn_error(r->ctx) : "failed without an error");
    return fail(r, at, words);
}

static void note(graph_runner *r, int at, const char *what, int value, output o)
{
    graph_log *log = r->log;
    if (log->n == (int)(sizeof log->entry / sizeof *log->entry)) {
        free_outputs(&o, 1);
        return;
    }
    log->entry[log->n].at = at;
    log->entry[log->n].what = what;
    log->entry[log->n].value = value;
    log->entry[log->n++].data = o;
}

static bool record(graph_runner *r, int at, const char *what, int value, cn_tensor *t)
{
    output o;
    bool ok = take_output(&o, t);
    note(r, at, what, value, o);
    return ok || fail_as_context_says(r, at);
}

static bool record_item(graph_runner *r, int at, int value, cn_tensor *t)
{
    output o = { true, CN_F64, CN_SCALAR, 1, malloc(sizeof(double)) };
    double number = cn_item(t);
    if (!o.data) abort();
    memcpy(o.data, &number, sizeof number);
    note(r, at, "item", value, o);
    return !cn_failed(r->ctx);
}

void graph_log_free(graph_log *log)
{
    for (int k = 0; k < log->n; k++) free_outputs(&log->entry[k].data, 1);
    log->n = 0;
}

bool graph_logs_agree(const graph_log *a, const graph_log *b, char *words, size_t size)
{
    difference d;
    if (a->n != b->n) {
        snprintf(words, size, "%d values read, and %d", a->n, b->n);
        return false;
    }
    for (int k = 0; k < a->n; k++) {
        if (same_bits(&a->entry[k].data, &b->entry[k].data, &d)) continue;
        snprintf(words, size, "%s of t%d, read at %d: %s", a->entry[k].what, a->entry[k].value, a->entry[k].at,
                 d.words);
        return false;
    }
    return true;
}

/* ---- instructions ---- */

static bool as_modelled(graph_runner *r, int at, cn_tensor *t)
{
    const graph_meta *m = &r->p->code[at].out;
    cn_dims shape = cn_shape(t);
    if (cn_type(t) == m->dtype && graph_same_dims(&shape, &m->shape)) return true;
    char words[200];
    snprintf(words, sizeof words, "the result is %s of %d axes and %lld elements, not %s of %d axes and %lld elements",
             cn_dtype_name(cn_type(t)), shape.n, (long long)graph_numel(&shape), cn_dtype_name(m->dtype), m->shape.n,
             (long long)graph_numel(&m->shape));
    return fail(r, at, words);
}

static bool make_value(graph_runner *r, int at, cn_tensor *const *in)
{
    const graph_instr *i = &r->p->code[at];
    cn_tensor *t = i->op->call(r, i, in);
    if (!t || cn_failed(r->ctx)) return fail_as_context_says(r, at);
    r->v[at] = t;
    r->kept[at] = i->op->act == ACT_PARAM && !r->inputs;
    if (i->keep && !r->kept[at] && !r->inputs) r->kept[at] = cn_keep(t) != NULL;
    return as_modelled(r, at, t);
}

/* Σ of sums of tanh: smooth, and every element counts. */
static cn_tensor *loss_of(const graph_instr *i, cn_tensor *const *in)
{
    cn_tensor *loss = NULL;
    for (int k = 0; k < i->n_in; k++) {
        cn_tensor *term = cn_sum(cn_tanh(in[k]), CN_ALL, false);
        loss = loss ? cn_add(loss, term) : term;
    }
    return loss;
}

static bool backward(graph_runner *r, int at, cn_tensor *const *in)
{
    const graph_instr *i = &r->p->code[at];
    cn_tensor *loss = loss_of(i, in);
    if (i->a[0] == 1 && loss && !record(r, at, "loss", i->in[0], loss)) return false;
    if (!loss || !cn_backward_with(loss, &(cn_backward_desc){ .retain = i->flag })) return false;
    return i->a[0] != 2 || record(r, at, "loss", i->in[0], loss);
}

static bool step(cn_tensor *p, double rate)
{
    cn_no_grad_begin(cn_context(p));
    bool ok = cn_assign(p, cn_sub(p, cn_mul_s(cn_grad_of(p), rate)));
    cn_no_grad_end(cn_context(p));
    return ok;
}

static bool write_value(cn_tensor *t, const graph_instr *i)
{
    graph_instr leaf = { .dtype = cn_type(t), .dims = cn_shape(t), .seed = i->seed };
    void *data = leaf_numbers(&leaf);
    bool ok = cn_write(t, data, (size_t)cn_numel(t) * cn_dtype_size(leaf.dtype));
    free(data);
    return ok;
}

static bool in_place(const graph_instr *i, cn_tensor *const *in)
{
    return i->op->unary_    ? i->op->unary_(in[0])
           : i->op->binary_ ? i->op->binary_(in[0], in[1])
                            : i->op->number_(in[0], i->x[0]);
}

static bool look(graph_runner *r, int at, cn_tensor *t)
{
    const graph_instr *i = &r->p->code[at];
    if (!strcmp(i->op->name, "eval")) return cn_eval(t);
    if (!strcmp(i->op->name, "read")) return record(r, at, "value", i->in[0], t);
    return record_item(r, at, i->in[0], t);
}

static bool end_scope(graph_runner *r)
{
    cn_scope_end(r->ctx, r->scope[--r->n_scopes]);
    return true;
}

static bool release(graph_runner *r, int value)
{
    cn_release(r->v[value]);
    r->kept[value] = false;
    return true;
}

static bool act(graph_runner *r, int at, cn_tensor *const *in)
{
    const graph_instr *i = &r->p->code[at];
    switch (i->op->act) {
    case ACT_IN_PLACE: return in_place(i, in);
    case ACT_ASSIGN: return cn_assign(in[0], in[1]);
    case ACT_WRITE: return write_value(in[0], i);
    case ACT_SET: return cn_set(in[0], i->dims, i->x[0]);
    case ACT_READ: return look(r, at, in[0]);
    case ACT_EVAL_ALL: return cn_eval_all(r->ctx);
    case ACT_BEGIN: r->scope[r->n_scopes++] = cn_scope_begin(r->ctx); return true;
    case ACT_END: return end_scope(r);
    case ACT_KEEP: return r->kept[i->in[0]] = cn_keep(in[0]) != NULL;
    case ACT_RELEASE: return release(r, i->in[0]);
    case ACT_BACKWARD: return backward(r, at, in);
    case ACT_READ_GRAD: return record(r, at, "gradient", i->in[0], cn_grad_of(in[0]));
    case ACT_ZERO_GRAD: cn_zero_grad(in[0]); return true;
    case ACT_STEP: return step(in[0], i->x[0]);
    case ACT_NO_GRAD: cn_no_grad_begin(r->ctx); return true;
    case ACT_WITH_GRAD: cn_no_grad_end(r->ctx); return true;
    default: return true;
    }
}

static bool run_one(graph_runner *r, int at)
{
    const graph_instr *i = &r->p->code[at];
    cn_tensor *in[GRAPH_IN] = { 0 };
    for (int k = 0; k < i->n_in; k++) in[k] = i->in[k] < 0 ? NULL : r->v[i->in[k]];
    if (!(i->op->traits & OP_ACTION)) return make_value(r, at, in);
    return (act(r, at, in) && !cn_failed(r->ctx)) || fail_as_context_says(r, at);
}

/* ---- programs ---- */

/* Every kept value and every gradient, then whatever else can still be had. */
static bool read_all(graph_runner *r, graph_model *m)
{
    bool ok = true;
    for (int k = 0; k < r->p->n && ok; k++) {
        if (!m->v[k].exists || !m->v[k].alive || !m->v[k].kept) continue;
        ok = record(r, r->p->n, "value", k, r->v[k]);
        if (ok && m->node[m->v[k].node].param) ok = record(r, r->p->n, "gradient", k, cn_grad_of(r->v[k]));
    }
    m->evaluations++; /* the reads above */
    for (int k = 0; k < r->p->n && ok; k++)
        if (m->v[k].exists && !m->v[k].kept && graph_usable(m, k)) ok = record(r, r->p->n, "value", k, r->v[k]);
    return ok;
}

static bool nothing_left(graph_runner *r)
{
    cn_counters c = cn_count(r->ctx);
    if (!c.handles && !c.live_nodes && !c.pending) return true;
    char words[160];
    snprintf(words, sizeof words, "left behind: %lld handles, %lld nodes, %lld pending", (long long)c.handles,
             (long long)c.live_nodes, (long long)c.pending);
    return fail(r, r->p->n, words);
}

bool graph_run(const graph *p, cn_ctx *ctx, graph_log *log)
{
    static graph_model end;
    static graph_runner r; /* both large */
    static graph again;
    graph_log_free(log);
    log->failed_at = -1;
    again = *p;
    memset(&r, 0, sizeof r);
    r.ctx = ctx;
    r.p = p;
    r.log = log;
    if (!graph_validate(&again, &end)) return fail(&r, 0, "the program is not valid");
    cn_seed(ctx, p->seed);
    cn_scope s = cn_scope_begin(ctx);
    bool ok = true;
    for (int k = 0; k < p->n && ok; k++) ok = !p->code[k].op || run_one(&r, k);
    ok = ok && read_all(&r, &end);
    cn_error_clear(ctx);
    while (!cn_grad_enabled(ctx)) cn_no_grad_end(ctx);
    for (int k = 0; k < p->n; k++)
        if (r.kept[k]) cn_release(r.v[k]);
    cn_scope_end(ctx, s);
    return ok && nothing_left(&r);
}

/* The last value that a gradient goes through. */
cn_tensor *graph_function(void *user, cn_tensor *const *in, int n_in)
{
    static graph_runner r;
    static graph_model end;
    static graph_log log;
    graph *p = user;
    (void)n_in;
    if (!n_in || !graph_validate(p, &end)) return NULL;
    memset(&r, 0, sizeof r);
    r.ctx = cn_context(in[0]);
    r.p = p;
    r.log = &log;
    r.inputs = in;
    log.failed_at = -1;
    cn_seed(r.ctx, p->seed);
    for (int k = 0; k < p->n; k++)
        if (p->code[k].op && !run_one(&r, k)) return NULL;
    for (int k = p->n - 1; k >= 0; k--)
        if (end.v[k].exists && end.node[end.v[k].node].needs_grad && end.v[k].meta.dtype == CN_F64) return r.v[k];
    return NULL;
}

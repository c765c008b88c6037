/* Runs graphs: node after node, each by its rule. */
#include <stdio.h>

#include "core/errors.h"
#include "core/handle.h"
#include "onnx/rules.h"

static const onnx_value nothing = { .kind = ONNX_NOTHING };

void *cn__onnx_run_new(onnx_run *run, size_t count, size_t size)
{
    size_t bytes;
    cn_ctx *ctx = run->model->ctx;
    const bool fits = !__builtin_mul_overflow(count, size, &bytes) && bytes <= CN__ONNX_LIST;
    void *p = fits ? cn__bump_new(&ctx->memory, &run->memory, bytes ? bytes : 1) : NULL;
    if (!p) cn__no_memory(ctx, "onnx");
    return p;
}

bool cn__onnx_work(onnx_run *run, int64_t n)
{
    if (n <= CN__ONNX_WORK - run->work) {
        run->work += n;
        return true;
    }
    return cn__fail(run->model->ctx, CN_UNSUPPORTED,
                    "ONNX: a forward runs at most %d nodes, loops and functions included: this one does not end",
                    CN__ONNX_WORK);
}

bool cn__onnx_checked(onnx_model *m)
{
    if (cn_failed(m->host)) {
        cn__fail(m->ctx, cn_error_code(m->host), "%s", cn_error(m->host));
        cn_error_clear(m->host);
    }
    return !cn_failed(m->ctx);
}

/* ---- known values ---- */

onnx_known *cn__onnx_known_new(onnx_run *run, cn_tensor *host)
{
    onnx_known *k = cn__onnx_run_new(run, 1, sizeof *k);
    if (k) *k = (onnx_known){ .host = host, .stamp = ++run->model->stamps };
    return k;
}

/* A number alone is an argument of plans; other values are copied. */
static cn_tensor *copied(onnx_model *m, cn_tensor *host)
{
    host = cn_contiguous(host);
    const void *data = host ? cn_data(host) : NULL;
    if (!host) return NULL;
    if (!data && cn_numel(host)) return NULL;
    if (cn_ndim(host) == 0 && cn_type(host) != CN_I64) return cn_scalar(m->ctx, cn_type(host), cn_item(host));
    return cn_from(m->ctx, cn_type(host), cn_shape(host), data ? data : "");
}

cn_tensor *cn__onnx_data(onnx_model *m, onnx_value *v)
{
    if (v->data || v->kind != ONNX_TENSOR) return v->data;
    onnx_known *k = v->known;
    if (!k->data) {
        cn_tensor *t = copied(m, k->host);
        if (!t) return cn__onnx_checked(m), NULL;
        if (!k->lasts) return v->data = t;
        k->data = cn__keep(t);
    }
    return v->data = k->data;
}

/* ---- memos ---- */

static bool same_inputs(const onnx_memo *memo, const onnx_call *c)
{
    if (!memo->filled) return false;
    if (c->node->row && c->node->row->flags & ONNX_SHAPE) {
        const cn_tensor *x = c->in[0]->data ? c->in[0]->data : c->in[0]->known->host;
        const cn_dims shape = cn_shape(x);
        return shape.n == memo->shape.n && !memcmp(shape.v, memo->shape.v, sizeof *shape.v * (size_t)shape.n);
    }
    for (int i = 0; i < c->n_in; i++)
        if (memo->stamps[i] != (c->in[i]->known ? c->in[i]->known->stamp : 0)) return false;
    return true;
}

static bool remember(onnx_call *c)
{
    onnx_model *m = c->run->model;
    onnx_memo *memo = c->node->memo;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].kind == ONNX_SEQUENCE || (c->out[i].kind == ONNX_TENSOR && !c->out[i].known)) return true;
    if (memo->run == m->runs) return true; /* its results may be in use: a loop came here twice */
    memo->run = m->runs;
    memo->filled = true;
    for (int i = 0; i < c->n_in; i++) memo->stamps[i] = c->in[i]->known ? c->in[i]->known->stamp : 0;
    if (c->node->row && c->node->row->flags & ONNX_SHAPE)
        memo->shape = cn_shape(c->in[0]->data ? c->in[0]->data : c->in[0]->known->host);
    for (int i = 0; i < c->n_out; i++) {
        onnx_known *k = &memo->out[i];
        cn__release(k->host);
        cn__release(k->data);
        *k = (onnx_known){ .lasts = true };
        if (c->out[i].kind != ONNX_TENSOR) continue;
        *k = (onnx_known){ .host = cn__keep(c->out[i].known->host), .stamp = ++m->stamps, .lasts = true };
        c->out[i].known = k;
    }
    return true;
}

static void recall(onnx_call *c)
{
    onnx_memo *memo = c->node->memo;
    memo->run = c->run->model->runs;
    for (int i = 0; i < c->n_out; i++)
        if (memo->out[i].host) c->out[i] = (onnx_value){ .kind = ONNX_TENSOR, .known = &memo->out[i] };
}

/* ---- nodes ---- */

/* Whether all inputs are known and small: then the node is run on the host. */
static bool runs_on_host(const onnx_call *c)
{
    const onnx_row *row = c->node->row;
    if (c->node->call || (row && row->flags & (ONNX_CONTROL | ONNX_RANDOM | ONNX_SHAPE))) return false;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i]->kind == ONNX_SEQUENCE || (c->in[i]->kind == ONNX_TENSOR && !c->in[i]->known)) return false;
    return true;
}

static bool apply_record(onnx_call *c)
{
    cn_tensor *in[CN_MAX_IN];
    const cn_op *op = c->node->record;
    if (c->n_in != op->n_in) return FAIL(CN_BAD_ARGUMENT, "it needs %d inputs, got %d", op->n_in, c->n_in);
    for (int i = 0; i < c->n_in; i++)
        if (!(in[i] = IN(i))) return FAIL(CN_BAD_ARGUMENT, "input %d is absent", i);
    return GIVE(cn_apply(op, in, op->n_in, NULL, NULL));
}

static bool call_function(onnx_call *c)
{
    onnx_graph *g = c->node->call;
    onnx_frame frame = { .graph = g, .caller = c->node, .caller_frame = c->frame };
    if (c->n_in > g->n_inputs || c->n_out > g->n_outputs)
        return FAIL(CN_BAD_ARGUMENT, "the function has %d inputs and %d results, the call %d and %d", g->n_inputs,
                    g->n_outputs, c->n_in, c->n_out);
    if (!(frame.v = cn__onnx_run_new(c->run, (size_t)g->n_slots, sizeof *frame.v))) return false;
    for (int i = 0; i < c->n_in; i++) frame.v[g->input_slots[i]] = *c->in[i];
    if (!cn__onnx_run_graph(c->run, &frame)) return false;
    for (int i = 0; i < c->n_out; i++)
        if (g->output_refs[i].slot >= 0) c->out[i] = frame.v[g->output_refs[i].slot];
    return true;
}

static bool apply(onnx_call *c)
{
    if (c->node->call) return call_function(c);
    if (c->node->record) return apply_record(c);
    for (int i = 0; i < c->node->row->needs; i++)
        if (i >= c->n_in || c->in[i]->kind == ONNX_NOTHING) return FAIL(CN_BAD_ARGUMENT, "input %d is absent", i);
    return c->node->row->rule(c);
}

static bool too_large(const onnx_call *c)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].known && cn_numel(c->out[i].known->host) > CN__ONNX_KNOWN) return true;
    return false;
}

/* On the host if everything is known; in the model's context if not, or if the results turn out to be large: they were
   not computed yet. */
static bool apply_where_it_belongs(onnx_call *c)
{
    onnx_model *m = c->run->model;
    c->ctx = m->ctx;
    if (!runs_on_host(c)) return apply(c);
    c->ctx = m->host;
    const bool ok = apply(c) && cn__onnx_checked(m);
    if (ok && !too_large(c)) return true;
    if (!ok) return cn__onnx_checked(m);
    for (int i = 0; i < c->n_out; i++) c->out[i] = nothing;
    c->ctx = m->ctx;
    return apply(c);
}

/* "node 12 (Conv, conv1): message" */
static bool name_node(onnx_call *c, bool had_error)
{
    cn_ctx *ctx = c->run->model->ctx;
    cn__onnx_checked(c->run->model);
    if (!cn_failed(ctx)) cn__onnx_wrong(c, CN_BAD_ARGUMENT, "it failed and set no error");
    if (had_error || !strncmp(ctx->message, "ONNX", 4)) return false;
    char head[200];
    snprintf(head, sizeof head, "ONNX node %.80s (%.60s): ", *c->node->name ? c->node->name : "without a name",
             c->node->op);
    const size_t n = strlen(head), room = sizeof ctx->message - n - 1, length = strlen(ctx->message);
    const size_t kept = length < room ? length : room;
    memmove(ctx->message + n, ctx->message, kept);
    memcpy(ctx->message, head, n);
    ctx->message[n + kept] = 0;
    return false;
}

static onnx_value *look_up(const onnx_frame *f, onnx_ref r)
{
    for (int i = 0; i < r.up; i++) f = f->outer;
    return &f->v[r.slot];
}

/* A call with room for few inputs and results, which is nearly always enough. */
typedef struct small_call {
    onnx_call c;
    onnx_value *in[8], out[4];
} small_call;

static bool open_call(onnx_run *run, onnx_frame *f, onnx_node *node, small_call *s)
{
    onnx_call *c = &s->c;
    *c = (onnx_call){ .run = run,
                      .frame = f,
                      .node = node,
                      .ctx = run->model->ctx,
                      .version = node->version,
                      .n_in = node->n_in,
                      .n_out = node->n_out,
                      .in = s->in,
                      .out = s->out };
    if (c->n_in > 8 && !(c->in = cn__onnx_run_new(run, (size_t)c->n_in, sizeof *c->in))) return false;
    if (c->n_out > 4 && !(c->out = cn__onnx_run_new(run, (size_t)c->n_out, sizeof *c->out))) return false;
    for (int i = 0; i < c->n_in; i++) c->in[i] = node->from[i].slot < 0 ? &run->absent : look_up(f, node->from[i]);
    for (int i = 0; i < c->n_out; i++) c->out[i] = nothing;
    return true;
}

/* Finds the results of a node that has run before with the same inputs, or runs it. */
static bool run_call(onnx_call *c)
{
    onnx_node *node = c->node;
    const bool shape = node->row && node->row->flags & ONNX_SHAPE;
    const bool memo = node->memo && (shape ? c->n_in > 0 && c->in[0]->kind == ONNX_TENSOR : runs_on_host(c));
    if (memo && same_inputs(node->memo, c)) {
        recall(c);
        return true;
    }
    const bool fixed = cn__onnx_is_fixed(c);
    if (fixed && cn__onnx_unfold(c)) return true;
    if (!apply_where_it_belongs(c)) return false;
    return (!memo || remember(c)) && (!fixed || cn__onnx_fold(c));
}

/* A normalisation runs the convolution before it, which was left out until now; its weights take over the
   normalisation, or else its result is handed on. */
static bool run_taken(onnx_run *run, onnx_frame *f, onnx_call *norm)
{
    small_call s;
    const bool had_error = cn_failed(run->model->ctx);
    if (!open_call(run, f, norm->node->takes, &s)) return false;
    if (cn__onnx_can_take(&s.c, norm)) s.c.norm = norm;
    if (!apply(&s.c) || (!had_error && cn_failed(run->model->ctx))) return name_node(&s.c, had_error);
    if (s.c.norm) {
        norm->out[0] = s.c.out[0];
        return true;
    }
    *norm->in[0] = s.c.out[0];
    return run_call(norm);
}

static bool run_node(onnx_run *run, onnx_frame *f, onnx_node *node)
{
    small_call s;
    const bool had_error = cn_failed(run->model->ctx);
    if (node->taken && run->folds) return true;
    if (!open_call(run, f, node, &s)) return false;
    const bool ok = node->takes && run->folds ? run_taken(run, f, &s.c) : run_call(&s.c);
    if (!ok || (!had_error && cn_failed(run->model->ctx))) return name_node(&s.c, had_error);
    for (int i = 0; i < s.c.n_out; i++)
        if (node->to[i] >= 0) f->v[node->to[i]] = s.c.out[i];
    return true;
}

bool cn__onnx_run_graph(onnx_run *run, onnx_frame *f)
{
    const onnx_graph *g = f->graph;
    if (run->depth >= CN__ONNX_DEPTH)
        return cn__fail(run->model->ctx, CN_UNSUPPORTED, "ONNX: graphs and functions nest deeper than %d",
                        CN__ONNX_DEPTH);
    if (!cn__onnx_work(run, (int64_t)g->n_nodes + CN__ONNX_GRAPH_WORK)) return false;
    run->depth++;
    for (int i = 0; i < g->n_initializers; i++) {
        const onnx_initializer *t = &g->initializers[i];
        if (f->v[t->slot].kind != ONNX_NOTHING) continue;
        cn_tensor *data = t->weight ? cn__onnx_weight(run, t->data, t->weight) : NULL;
        if (data && run->folds) cn__onnx_fix(data);
        f->v[t->slot] = (onnx_value){ .kind = ONNX_TENSOR, .data = data, .known = t->known, .fixed = data && cn__onnx_lasts(data) };
    }
    bool ok = true;
    for (int i = 0; i < g->n_nodes && ok; i++) ok = run_node(run, f, &g->nodes[i]);
    run->depth--;
    return ok;
}

bool cn__onnx_body(onnx_call *c, onnx_graph *g, const onnx_value *in, int n_in, onnx_value *out, int n_out)
{
    onnx_frame frame = {
        .graph = g, .outer = c->frame, .caller = c->frame->caller, .caller_frame = c->frame->caller_frame
    };
    if (n_in != g->n_inputs || n_out > g->n_outputs)
        return FAIL(CN_BAD_ARGUMENT, "its body has %d inputs and %d results, expected %d and %d", g->n_inputs,
                    g->n_outputs, n_in, n_out);
    if (!(frame.v = cn__onnx_run_new(c->run, (size_t)g->n_slots, sizeof *frame.v))) return false;
    for (int i = 0; i < n_in; i++) frame.v[g->input_slots[i]] = in[i];
    if (!cn__onnx_run_graph(c->run, &frame)) return false;
    for (int i = 0; i < n_out; i++) out[i] = *look_up(&frame, g->output_refs[i]);
    return true;
}

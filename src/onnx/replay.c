/* Repeats forwards. A graph whose inputs have the same shapes as before makes the same nodes and finds the same plan. So
   a forward that came a few times is recorded: the next one runs the plan at once. This is done where no gradients are
   recorded, and only for graphs that look at the shapes of their inputs, not at their values. */
#include "core/errors.h"
#include "core/handle.h"
#include "core/host.h"
#include "onnx/run.h"
#include "plan/record.h"

enum {
    MOST_RECORDED = 8, /* shapes; the oldest is forgotten for a new one */
    RECORDED_AFTER = 3 /* forwards: by then weights have their final forms, and the plan was found again */
};

/* What decides the nodes of a forward. */
typedef struct signature {
    int n_in, n_out;
    int in_at[CN__ONNX_PORTS], out_at[CN__ONNX_PORTS];
    cn_meta in[CN__ONNX_PORTS];
} signature;

typedef struct replay {
    signature of;
    int seen;
    cn__recording *recording; /* NULL: not recorded so far, or it cannot be */
} replay;

struct onnx_replays {
    int n, next;
    replay v[MOST_RECORDED];
    cn_tensor **weights;    /* the module's own; NULL in their place: each run is given them */
    struct cn__node **made; /* their values, for which all this was recorded; not counted: recordings hold them */
};

/* ---- weights ---- */

/* The module's own weights by their numbers, from 1 on. */
static void list_weights(const onnx_graph *g, cn_tensor **own)
{
    for (int i = 0; i < g->n_initializers; i++)
        if (g->initializers[i].weight) own[g->initializers[i].weight - 1] = g->initializers[i].data;
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].weight) own[g->nodes[i].weight - 1] = g->nodes[i].constant;
        for (int k = 0; k < g->nodes[i].n_attr; k++)
            if (g->nodes[i].attr[k].g) list_weights(g->nodes[i].attr[k].g, own);
    }
}

static void forget(replay *r)
{
    cn__recording_free(r->recording);
    *r = (replay){ 0 };
}

static onnx_replays *replays_of(onnx_model *m)
{
    if (m->replays) return m->replays;
    onnx_replays *all = cn__onnx_new(&m->weights.reader, 1, sizeof *all);
    if (!all) return NULL;
    all->weights = cn__onnx_new(&m->weights.reader, (size_t)m->n_weights + 1, sizeof *all->weights);
    all->made = cn__onnx_new(&m->weights.reader, (size_t)m->n_weights + 1, sizeof *all->made);
    if (!all->weights || !all->made) return NULL;
    list_weights(m->file.graph, all->weights);
    for (int i = 0; i < m->file.n_functions; i++)
        if (m->file.functions[i].resolved) list_weights(&m->file.functions[i], all->weights);
    return m->replays = all;
}

/* Forgets everything if a weight has another value, or may get one unseen. */
static void check_weights(onnx_model *m, onnx_replays *all, cn_tensor *const *given)
{
    bool same = true;
    for (int i = 0; i < m->n_weights; i++) {
        const cn_tensor *t = given ? given[i] : all->weights[i];
        struct cn__node *now = t ? t->ref.node : NULL;
        same &= now == all->made[i] && (!t || cn__onnx_lasts(t));
        all->made[i] = now;
    }
    for (int i = 0; i < all->n && !same; i++) forget(&all->v[i]);
    if (!same) all->n = all->next = 0;
}

void cn__onnx_replays_free(onnx_model *m)
{
    for (int i = 0; m->replays && i < m->replays->n; i++) forget(&m->replays->v[i]);
    m->replays = NULL;
}

/* ---- forwards ---- */

static bool may_replay(const onnx_model *m, const onnx_ports *at)
{
    if (m->ctx->no_grad == 0 || m->ctx->tracer || m->ctx->eager || cn_module_training(m->module) ||
        !cn__host_device(m->ctx))
        return false;
    for (int i = 0; i < at->n_in; i++) {
        const cn__node *n = at->in[i]->ref.node;
        if (n->state != CN__EVALUATED || n->assignable || !cn__stored(cn__result_of(at->in[i]))) return false;
    }
    return at->n_out > 0;
}

static bool same_meta(const cn_meta *a, const cn_meta *b)
{
    const size_t bytes = sizeof *a->layout.shape * (size_t)a->layout.ndim;
    return a->dtype == b->dtype && a->layout.ndim == b->layout.ndim && a->layout.offset == b->layout.offset &&
           !memcmp(a->layout.shape, b->layout.shape, bytes) && !memcmp(a->layout.stride, b->layout.stride, bytes);
}

static bool is_of(const replay *r, const onnx_ports *at)
{
    if (r->of.n_in != at->n_in || r->of.n_out != at->n_out) return false;
    for (int i = 0; i < at->n_in; i++)
        if (r->of.in_at[i] != at->in_at[i] || !same_meta(&r->of.in[i], cn__result_of(at->in[i])->meta)) return false;
    return !memcmp(r->of.out_at, at->out_at, sizeof *at->out_at * (size_t)at->n_out);
}

static replay *find(onnx_replays *all, const onnx_ports *at)
{
    for (int i = 0; i < all->n; i++)
        if (is_of(&all->v[i], at)) return &all->v[i];
    return NULL;
}

static replay *add(onnx_replays *all, const onnx_ports *at)
{
    replay *r = &all->v[all->next];
    if (all->n < MOST_RECORDED) all->n++;
    else forget(r);
    all->next = (all->next + 1) % MOST_RECORDED;
    r->of = (signature){ .n_in = at->n_in, .n_out = at->n_out };
    memcpy(r->of.in_at, at->in_at, sizeof at->in_at);
    memcpy(r->of.out_at, at->out_at, sizeof at->out_at);
    for (int i = 0; i < at->n_in; i++) r->of.in[i] = *cn__result_of(at->in[i])->meta;
    return r;
}

bool cn__onnx_replay(onnx_model *m, const onnx_ports *at, cn_onnx_value *out, bool *found)
{
    cn_tensor *made[CN__ONNX_PORTS];
    *found = false;
    if (!m->replays || cn_failed(m->ctx) || !may_replay(m, at)) return true;
    check_weights(m, m->replays, at->weights);
    replay *r = find(m->replays, at);
    if (!r || !r->recording) return true;
    *found = true;
    if (!cn__plan_replay(r->recording, at->in, made)) return false;
    for (int i = 0; i < at->n_out; i++) out[i] = (cn_onnx_value){ .name = out[i].name, .tensor = made[i] };
    return true;
}

static bool in_one_memory(const cn_tensor *a, const cn_tensor *b)
{
    return a && b && cn__result_of(a)->storage == cn__result_of(b)->storage;
}

/* A recording tells its inputs by their memory: there it must find one input, and no weight. */
static bool are_apart(const onnx_model *m, const onnx_replays *all, const onnx_ports *at)
{
    for (int i = 0; i < at->n_in; i++) {
        for (int k = 0; k < i; k++)
            if (in_one_memory(at->in[i], at->in[k])) return false;
        for (int k = 0; k < m->n_weights; k++)
            if (in_one_memory(at->in[i], at->weights ? at->weights[k] : all->weights[k])) return false;
    }
    return true;
}

bool cn__onnx_note_forward(onnx_model *m, const onnx_ports *at, cn_onnx_value *out)
{
    cn_tensor *made[CN__ONNX_PORTS];
    if (!may_replay(m, at)) return true;
    for (int i = 0; i < at->n_out; i++)
        if (!(made[i] = out[i].tensor)) return true;
    const bool first = !m->replays;
    onnx_replays *all = replays_of(m);
    if (!all) return false;
    if (first) check_weights(m, all, at->weights);
    replay *r = find(all, at);
    if (!r) r = add(all, at);
    if (!are_apart(m, all, at) || ++r->seen != RECORDED_AFTER) return true;
    return cn__plan_record(m->ctx, at->in, at->n_in, made, at->n_out, &r->recording);
}

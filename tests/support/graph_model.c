/* graph_model.c: what a program's values are at each moment: alive, kept, let go, differentiable. It is cautious: it may call
   something unusable that the library can still give, never the other way round. */
#include <string.h>

#include "support/graph.h"

#define ELEMENTS 2000000 /* of all values together */

/* ---- who has a value still ---- */

typedef bool flags[2 * GRAPH_ROOM];

/* Operands come before what is computed from them, so one pass upwards answers for all nodes.
   A value that was assigned over may be gone; what was computed from it can be asked for if it is kept, or has not been part
   of an evaluation yet (and is more than a view of that memory). */
static void find_available(const graph_model *m, bool fresh_counts, flags yes)
{
    for (int at = 0; at < m->n_nodes; at++) {
        const graph_node *n = &m->node[at];
        bool fresh = fresh_counts && n->born == m->evaluations && !n->view, all = true;
        for (int k = 0; k < n->n_in; k++) all &= yes[n->in[k]];
        yes[at] = n->kept || (!n->replaced && (n->source || fresh || all));
    }
}

bool graph_usable(const graph_model *m, int value)
{
    const graph_value *v = &m->v[value];
    flags yes;
    if (!v->exists || !v->alive) return false;
    find_available(m, true, yes);
    return yes[v->node];
}

/* ---- gradients ---- */

/* A backward from here meets no replaced parameter and no spent node, and finds what each gradient is made of. */
static void find_walkable(const graph_model *m, flags yes)
{
    flags there;
    find_available(m, false, there);
    for (int at = 0; at < m->n_nodes; at++) {
        const graph_node *n = &m->node[at];
        bool all = there[at] && !n->spent;
        for (int k = 0; k < n->n_in; k++) all &= there[n->in[k]] && yes[n->in[k]];
        yes[at] = !n->needs_grad || (n->param ? !n->replaced : all);
    }
}

bool graph_tracks(const graph_model *m, int value)
{
    flags yes;
    find_walkable(m, yes);
    return graph_usable(m, value) && m->node[m->v[value].node].needs_grad && yes[m->v[value].node];
}

static void spend(graph_model *m, int at)
{
    graph_node *n = &m->node[at];
    if (!n->needs_grad || n->param || n->spent) return;
    n->spent = true;
    for (int k = 0; k < n->n_in; k++) spend(m, n->in[k]);
}

/* Which nodes a gradient that starts at `from` arrives at. */
static void find_reached(const graph_model *m, int from, flags yes)
{
    memset(yes, 0, sizeof(flags));
    yes[from] = m->node[from].needs_grad;
    for (int at = from; at >= 0; at--) {
        const graph_node *n = &m->node[at];
        for (int k = 0; k < n->n_in && yes[at] && !n->param; k++) yes[n->in[k]] |= m->node[n->in[k]].needs_grad;
    }
}

/* ---- nodes ---- */

static bool passes_gradient(const graph_op *op, int k)
{
    return !(op->traits & OP_CUT) && !(op->traits & OP_FIRST_ONLY && k > 0) && !(op->traits & OP_NO_FIRST && k == 0);
}

static int new_node(graph_model *m, const graph_instr *i, bool is_float)
{
    graph_node *n = &m->node[m->n_nodes];
    *n = (graph_node){ .source = i->n_in == 0, .view = i->op->traits & OP_VIEW, .born = m->evaluations };
    for (int k = 0; k < i->n_in; k++) {
        if (i->in[k] < 0) continue;
        const graph_value *v = &m->v[i->in[k]];
        n->in[n->n_in++] = v->node;
        if (!m->no_grad && is_float && passes_gradient(i->op, k) && m->node[v->node].needs_grad &&
            cn_dtype_is_float(v->meta.dtype))
            n->needs_grad = true;
    }
    return m->n_nodes++;
}

static void rebind(graph_model *m, graph_value *v, int node)
{
    m->node[v->node].kept -= v->kept;
    v->node = node;
    m->node[node].kept += v->kept;
}

/* The handle's old value is assigned over; what it was to gradients passes on. */
static void replace(graph_model *m, graph_value *v, int node)
{
    graph_node *old = &m->node[v->node], *new = &m->node[node];
    new->param = old->param;
    new->needs_grad = old->param;
    old->replaced = true;
    rebind(m, v, node);
}

static bool in_place(graph_model *m, const graph_instr *i)
{
    graph_value *v = &m->v[i->in[0]];
    int node = new_node(m, i, cn_dtype_is_float(i->out.dtype));
    v->meta.bound = 0;
    if (!m->node[node].needs_grad) {
        replace(m, v, node);
        return true;
    }
    if (m->node[v->node].param) return false; /* an error, by design */
    rebind(m, v, node);
    return true;
}

/* ---- actions ---- */

static void die(graph_model *m, graph_value *v)
{
    v->alive = false;
    m->node[v->node].kept -= v->kept;
    v->kept = false;
}

static bool end_scope(graph_model *m)
{
    if (!m->depth) return false;
    for (int k = 0; k < m->n; k++) {
        graph_value *v = &m->v[k];
        if (!v->exists || !v->alive || v->depth < m->depth) continue;
        v->in_scope = false;
        v->depth = 0;
        if (!v->kept) die(m, v);
    }
    m->depth--;
    return true;
}

static bool release(graph_model *m, graph_value *v)
{
    if (!v->kept) return false;
    v->kept = false;
    m->node[v->node].kept--;
    if (!v->in_scope) die(m, v);
    return true;
}

static bool backward(graph_model *m, const graph_instr *i)
{
    bool any = false;
    flags yes;
    find_walkable(m, yes);
    for (int k = 0; k < i->n_in; k++) {
        if (i->in[k] < 0) continue;
        if (!yes[m->v[i->in[k]].node]) return false;
        any |= m->node[m->v[i->in[k]].node].needs_grad;
    }
    for (int k = 0; k < i->n_in; k++) {
        if (i->in[k] < 0) continue;
        find_reached(m, m->v[i->in[k]].node, yes);
        for (int p = 0; p < m->n; p++)
            m->v[p].has_grad |= m->v[p].exists && m->node[m->v[p].node].param && yes[m->v[p].node];
    }
    for (int k = 0; k < i->n_in && !i->flag; k++) /* flag: retained */
        if (i->in[k] >= 0) spend(m, m->v[i->in[k]].node);
    m->evaluations++;
    return any && !m->no_grad;
}

static bool act(graph_model *m, const graph_instr *i)
{
    graph_value *v = i->n_in ? &m->v[i->in[0]] : NULL;
    bool param = v && m->node[v->node].param;
    switch (i->op->act) {
    case ACT_IN_PLACE: return in_place(m, i);
    case ACT_SET: m->evaluations++; /* fallthrough */
    case ACT_ASSIGN:
    case ACT_WRITE: {
        int node = new_node(m, i, false);
        if (i->op->act == ACT_ASSIGN) /* its own old value is no operand */
            m->node[node].n_in = 1, m->node[node].in[0] = m->v[i->in[1]].node;
        else m->node[node].source = true, m->node[node].n_in = 0;
        v->meta.bound = 0;
        replace(m, v, node);
        return true;
    }
    case ACT_READ:
    case ACT_EVAL_ALL: m->evaluations++; return true;
    case ACT_BEGIN: return ++m->depth < GRAPH_ROOM;
    case ACT_END: return end_scope(m);
    case ACT_KEEP:
        if (v->kept || !(m->node[v->node].source || m->node[v->node].born == m->evaluations))
            return false; /* perhaps let go: too late */
        v->kept = true;
        m->node[v->node].kept++;
        return true;
    case ACT_RELEASE: return release(m, v);
    case ACT_BACKWARD: return backward(m, i);
    case ACT_READ_GRAD: m->evaluations++; return param;
    case ACT_ZERO_GRAD: v->has_grad = false; return param;
    case ACT_STEP:
        if (!param || !v->has_grad) return false;
        replace(m, v, new_node(m, i, false)); /* from its old value: so it lasts as long as it is kept */
        return true;
    case ACT_NO_GRAD: return ++m->no_grad == 1;
    case ACT_WITH_GRAD: return m->no_grad-- > 0;
    default: return true;
    }
}

static bool add_value(graph_model *m, const graph_instr *i)
{
    graph_value *v = &m->v[m->n];
    *v = (graph_value){ .exists = true, .alive = true, .in_scope = true, .depth = m->depth, .meta = i->out };
    v->node = new_node(m, i, cn_dtype_is_float(i->out.dtype));
    if (i->op->act == ACT_SECOND) { /* computed from what the first result was computed from */
        const graph_node *first = &m->node[m->v[i->in[0]].node];
        m->node[v->node].n_in = first->n_in;
        memcpy(m->node[v->node].in, first->in, sizeof first->in);
    }
    if (i->op->act == ACT_PARAM) m->node[v->node].param = m->node[v->node].needs_grad = true, m->params++;
    v->kept = i->keep || i->op->act == ACT_PARAM;
    m->node[v->node].kept += v->kept;
    m->elements += graph_numel(&i->out.shape);
    return m->elements <= ELEMENTS;
}

static bool operands(const graph_model *m, const graph_instr *i, const graph_meta **in)
{
    for (int k = 0; k < i->n_in; k++) {
        in[k] = NULL;
        if (i->in[k] < 0) continue;
        if (i->in[k] >= m->n || !m->v[i->in[k]].exists || !m->v[i->in[k]].alive) return false;
        bool looked_at = i->op->act != ACT_RELEASE && i->op->act != ACT_READ_GRAD && i->op->act != ACT_ZERO_GRAD &&
                         i->op->act != ACT_WRITE;
        if (looked_at && !graph_usable(m, i->in[k])) return false;
        in[k] = &m->v[i->in[k]].meta;
    }
    return true;
}

bool graph_accept(graph_model *m, graph_instr *i)
{
    if (!i->op) {
        m->v[m->n++] = (graph_value){ 0 };
        return true;
    }
    const graph_meta *in[GRAPH_IN] = { 0 };
    static graph_model after; /* large */
    i->out = (graph_meta){ 0 };
    if (!operands(m, i, in) || !i->op->rule(i, in, &i->out)) return false;
    after = *m;
    bool ok = i->op->traits & OP_ACTION ? act(&after, i) : add_value(&after, i);
    if (!ok) return false;
    if (i->op->traits & OP_ACTION) after.v[after.n] = (graph_value){ 0 };
    after.n++;
    *m = after;
    return true;
}

bool graph_validate(graph *p, graph_model *end)
{
    static graph_model m;
    memset(&m, 0, sizeof m);
    for (int k = 0; k < p->n; k++)
        if (!graph_accept(&m, &p->code[k])) return false;
    if (end) *end = m;
    return true;
}

/* What depends on weights alone is computed once: weights in other forms, nodes whose inputs are all weights or constants,
   convolutions that take over the normalisation behind them. This holds where no gradients are recorded, and as long as
   the weights have the same values. */
#include "core/handle.h"
#include "onnx/rules.h"

/* ---- weights in other forms ---- */

static void forget(onnx_derived *d)
{
    for (int k = 0; d && k < CN__ONNX_DERIVED; k++) {
        onnx_form *f = &d->form[k];
        cn__release(f->made);
        for (int i = 0; i < CN__ONNX_SOURCES; i++)
            if (f->source[i]) cn__node_release(f->source[i]);
        *f = (onnx_form){ 0 };
    }
}

void cn__onnx_forget(onnx_node *node)
{
    forget(node->derived);
    forget(node->folded);
}

bool cn__onnx_lasts(const cn_tensor *t)
{
    const cn__storage *s = cn__result_of(t)->storage;
    return !s || cn__storage_lasts(s);
}

static bool is_of(const onnx_form *f, cn_tensor *const *from, int n)
{
    for (int i = 0; i < CN__ONNX_SOURCES; i++) {
        const cn_tensor *t = i < n ? from[i] : NULL;
        if (f->source[i] != (t ? t->ref.node : NULL) || (t && !cn__onnx_lasts(t))) return false;
    }
    return f->made && cn__onnx_lasts(f->made);
}

void cn__onnx_fix(cn_tensor *weight)
{
    cn__storage *s = cn__result_of(weight)->storage;
    if (s && !s->fixed) cn__storage_fix(s);
}

static cn_tensor *find_form(const onnx_derived *d, int k, cn_tensor *const *from, int n)
{
    if (!d || !is_of(&d->form[k], from, n)) return NULL;
    cn__onnx_fix(d->form[k].made);
    return d->form[k].made;
}

/* Only of weights that somebody keeps, as the module does: others are new values each time. */
static bool keep_form(onnx_call *c, onnx_derived **d, int k, cn_tensor *const *from, int n, cn_tensor *made)
{
    onnx_model *m = c->run->model;
    for (int i = 0; i < n; i++)
        if (from[i] && (from[i]->kept == 0 || !cn__onnx_lasts(from[i]))) return true;
    if (!*d && !(*d = cn__onnx_new(&m->weights.reader, 1, sizeof **d))) return false;
    onnx_form *f = &(*d)->form[k], old = *f;
    *f = (onnx_form){ .made = cn__keep(made), .filled = old.filled + 1 };
    for (int i = 0; i < n; i++)
        if (from[i]) f->source[i] = from[i]->ref.node, f->source[i]->refs++;
    cn__release(old.made);
    for (int i = 0; i < CN__ONNX_SOURCES; i++)
        if (old.source[i]) cn__node_release(old.source[i]);
    return true;
}

cn_tensor *cn__onnx_derived_from(onnx_call *c, int k, cn_tensor *const *from, int n)
{
    if (!c->run->folds) cn__onnx_forget(c->node);
    return c->ctx == c->run->model->ctx ? find_form(c->node->derived, k, from, n) : NULL;
}

cn_tensor *cn__onnx_derive(onnx_call *c, int k, cn_tensor *const *from, int n, cn_tensor *made)
{
    if (!made || c->ctx != c->run->model->ctx || !c->run->folds) return made;
    return keep_form(c, &c->node->derived, k, from, n, made) ? made : NULL;
}

/* ---- nodes whose inputs are weights and constants ---- */

enum {
    MOST_RESULTS = 2,
    MOST_FILLED = 8,      /* a node whose inputs change so often is left alone */
    MOST_NUMEL = 1 << 22, /* elements of a result that is kept */
};

static bool is_lasting(const onnx_value *v)
{
    return v->kind == ONNX_NOTHING || (v->kind == ONNX_TENSOR && (v->fixed || (v->known && v->known->lasts)));
}

bool cn__onnx_is_fixed(const onnx_call *c)
{
    const onnx_node *node = c->node;
    if (!c->run->folds || node->call || c->n_in > CN__ONNX_SOURCES || c->n_out > MOST_RESULTS) return false;
    if (node->row && node->row->flags & (ONNX_CONTROL | ONNX_RANDOM | ONNX_SHAPE)) return false;
    if (node->folded && node->folded->form[0].filled > MOST_FILLED) return false;
    for (int i = 0; i < c->n_in; i++)
        if (!is_lasting(c->in[i])) return false;
    return true;
}

static bool inputs(onnx_call *c, cn_tensor **from)
{
    for (int i = 0; i < c->n_in; i++) {
        from[i] = c->in[i]->kind == ONNX_TENSOR ? cn__onnx_data(c->run->model, c->in[i]) : NULL;
        if (!from[i] && c->in[i]->kind == ONNX_TENSOR) return false;
    }
    return true;
}

bool cn__onnx_unfold(onnx_call *c)
{
    cn_tensor *from[CN__ONNX_SOURCES], *made[MOST_RESULTS] = { 0 };
    if (!c->node->folded || !inputs(c, from)) return false;
    for (int i = 0; i < c->n_out; i++)
        if (c->node->to[i] >= 0 && !(made[i] = find_form(c->node->folded, i, from, c->n_in))) return false;
    for (int i = 0; i < c->n_out; i++)
        if (made[i]) c->out[i] = (onnx_value){ .kind = ONNX_TENSOR, .data = made[i], .fixed = true };
    return true;
}

bool cn__onnx_fold(onnx_call *c)
{
    cn_tensor *from[CN__ONNX_SOURCES];
    for (int i = 0; i < c->n_out; i++) {
        const onnx_value *v = &c->out[i];
        if (v->kind != ONNX_TENSOR || v->known) return true;
        if (c->node->to[i] >= 0 && cn_numel(v->data) > MOST_NUMEL) return true;
    }
    if (!inputs(c, from)) return false;
    for (int i = 0; i < c->n_out; i++) {
        if (c->node->to[i] < 0) continue;
        cn_tensor *made = c->out[i].data;
        if (made->kept == 0 && !keep_form(c, &c->node->folded, i, from, c->n_in, made)) return false;
        c->out[i].fixed = made->kept > 0; /* also a constant, or an input that is handed on */
        if (c->out[i].fixed) cn__onnx_fix(made);
    }
    return true;
}

/* ---- convolution and normalisation ---- */

/* Counts who reads each value of a graph, in it and in graphs that it contains. */
static void count_uses(const onnx_graph *g, int up, int *uses)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const onnx_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_in; k++)
            if (n->from[k].slot >= 0 && n->from[k].up == up) uses[n->from[k].slot]++;
        for (int k = 0; k < n->n_attr; k++)
            if (n->attr[k].g) count_uses(n->attr[k].g, up + 1, uses);
    }
    for (int i = 0; i < g->n_outputs; i++)
        if (g->output_refs[i].up == up) uses[g->output_refs[i].slot]++;
}

static bool is_norm(const onnx_node *n)
{
    if (!n->row || n->row->rule != cn__onnx_batch_normalization || n->n_in < 5 || n->from[0].up) return false;
    for (int i = 1; i < n->n_out; i++)
        if (n->to[i] >= 0) return false;
    for (int i = 0; i < n->n_attr; i++)
        if (!strcmp(n->attr[i].name, "training_mode") || !strcmp(n->attr[i].name, "spatial") || n->attr[i].ref)
            return false;
    return true;
}

bool cn__onnx_pair_norms(const onnx_reader *r, onnx_graph *g)
{
    int *uses = cn__onnx_new(r, (size_t)g->n_slots + 1, sizeof *uses);
    onnx_node **maker = cn__onnx_new(r, (size_t)g->n_slots + 1, sizeof *maker);
    if (!uses || !maker) return false;
    count_uses(g, 0, uses);
    for (int i = 0; i < g->n_nodes; i++) {
        onnx_node *n = &g->nodes[i], *from = is_norm(n) && n->from[0].slot >= 0 ? maker[n->from[0].slot] : NULL;
        if (from && from->row && from->row->rule == cn__onnx_conv && uses[n->from[0].slot] == 1) {
            n->takes = from;
            from->taken = true;
        }
        for (int k = 0; k < n->n_out; k++)
            if (n->to[k] >= 0) maker[n->to[k]] = n;
    }
    return true;
}

/* (C, 1, 1, ...): a number for each output channel of a weight of n axes. */
static cn_tensor *of_weight(cn_tensor *v, int n)
{
    cn_dims shape = { .n = n };
    for (int i = 0; v && i < n; i++) shape.v[i] = i ? 1 : cn_numel(v);
    return v ? cn_reshape(v, shape) : NULL;
}

/* y = (conv(x, w) + b - mean)·scale + shift, and scale = gamma / sqrt(var + eps): so w·scale and (b - mean)·scale + shift
   are the weight and the bias of a convolution. */
bool cn__onnx_take_norm(onnx_call *c, cn_tensor **weight, cn_tensor **bias)
{
    onnx_call *norm = c->norm;
    cn_tensor *from[CN__ONNX_SOURCES] = { *weight, *bias };
    for (int i = 0; i < 4; i++)
        if (!(from[2 + i] = cn__onnx_in(norm, 1 + i))) return false;
    cn_tensor *w = cn__onnx_derived_from(c, 0, from, 6), *b = cn__onnx_derived_from(c, 1, from, 6);
    if (!w || !b) {
        cn_tensor *scale = cn_mul(from[2], cn_rsqrt(cn_add_s(from[5], cn__onnx_float(norm, "epsilon", 1e-5))));
        w = cn__onnx_derive(c, 0, from, 6, cn_mul(*weight, of_weight(scale, cn_ndim(*weight))));
        b = cn_mul(*bias ? cn_sub(*bias, from[4]) : cn_neg(from[4]), scale);
        b = cn__onnx_derive(c, 1, from, 6, cn_add(b, from[3]));
    }
    *weight = w;
    *bias = b;
    return w && b;
}

/* Whether a weight can take over a normalisation: both have the same type, and a number for each channel. */
bool cn__onnx_can_take(const onnx_call *c, const onnx_call *norm)
{
    const onnx_value *w = c->n_in > 1 ? c->in[1] : NULL;
    if (!w || w->kind != ONNX_TENSOR) return false;
    const cn_tensor *weight = w->data ? w->data : w->known->host;
    if (cn_ndim(weight) < 3 || (cn_type(weight) != CN_F32 && cn_type(weight) != CN_F64)) return false;
    for (int i = 1; i < 5; i++) {
        const onnx_value *v = norm->in[i];
        if (v->kind != ONNX_TENSOR) return false;
        const cn_tensor *t = v->data ? v->data : v->known->host;
        if (cn_type(t) != cn_type(weight) || cn_ndim(t) != 1 || cn_numel(t) != cn_size(weight, 0)) return false;
    }
    return true;
}

/* The backward walk over the graph. It visits the nodes from the outputs to the leaves, newest first, and calls each
   operator's gradient once, with the sum of the gradients of its results. It does not recurse: graphs may be deep. */
#include "grad/walk.h"

#include "ops/shared.h"

static cn__node **nodes_of(const walk *w) { return w->nodes.v; }

/* The fields of a node that an outer walk uses, while a walk inside it uses the same fields. */
typedef struct saved {
    cn__node *node;
    const void *walk_of;
    cn_tensor **walk;
    uint32_t walk_index;
} saved;

/* ---- finding the nodes ---- */

static bool add_node(walk *w, cn__node *n)
{
    if (n->walk_of == w || !n->needs_grad) return true;
    if (!cn__vec_reserve(&w->ctx->memory, &w->nodes, w->nodes.n + 1, sizeof n) ||
        !cn__vec_reserve(&w->ctx->memory, &w->saved, w->saved.n + 1, sizeof(saved)))
        return cn__no_memory(w->ctx, "backward");
    if (n->grad_leaf && n->replaced)
        return cn__fail(
            w->ctx, CN_NO_GRADIENT,
            "backward: a parameter was assigned after the graph used it; call backward before the assignment");
    if (!n->grad_leaf && (n->spent || !n->in))
        return cn__fail(w->ctx, CN_NO_GRADIENT,
                        "backward: an earlier backward spent the graph through `%s`; set .retain in that call",
                        n->op->name);
    if (n->walk_of) ((saved *)w->saved.v)[w->saved.n++] = (saved){ n, n->walk_of, n->walk, n->walk_index };
    n->walk_of = w;
    n->refs++;
    nodes_of(w)[w->nodes.n++] = n;
    return true;
}

static bool find_nodes(walk *w, cn_tensor *const *outputs, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++)
        if (!add_node(w, outputs[i]->ref.node)) return false;
    for (size_t q = 0; q < w->nodes.n; q++) {
        cn__node *n = nodes_of(w)[q];
        if (n->grad_leaf) continue;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k].node && !(k < 32 && n->op->not_differentiable >> k & 1) && !add_node(w, n->in[k].node))
                return false;
    }
    return true;
}

/* Sorts by the order of making: a radix sort by bytes, linear in the number of nodes. */
static bool sort_nodes(walk *w)
{
    size_t n = w->nodes.n;
    cn__vec *other = &w->slots; /* not used yet */
    if (!cn__vec_reserve(&w->ctx->memory, other, n + 1, sizeof(cn__node *))) return cn__no_memory(w->ctx, "backward");
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t s = nodes_of(w)[i]->seq;
        low = s < low ? s : low;
        high = s > high ? s : high;
    }
    for (int shift = 0; shift < 64 && n && (high - low) >> shift; shift += 8) {
        size_t at[257] = { 0 };
        cn__node **from = w->nodes.v, **to = other->v;
        for (size_t i = 0; i < n; i++) at[((from[i]->seq - low) >> shift & 255) + 1]++;
        for (int d = 0; d < 256; d++) at[d + 1] += at[d];
        for (size_t i = 0; i < n; i++) to[at[(from[i]->seq - low) >> shift & 255]++] = from[i];
        cn__vec swap = w->nodes;
        w->nodes = *other;
        w->nodes.n = n;
        *other = swap;
        other->n = 0;
    }
    return true;
}

/* Every result of every node gets a slot for its gradient. */
static bool make_slots(walk *w)
{
    size_t slots = 0;
    for (size_t i = 0; i < w->nodes.n; i++) slots += (size_t)nodes_of(w)[i]->n_out;
    if (!cn__vec_reserve(&w->ctx->memory, &w->slots, slots + 1, sizeof(cn_tensor *)) ||
        !cn__vec_reserve(&w->ctx->memory, &w->leads, w->nodes.n + 1, sizeof(bool)))
        return cn__no_memory(w->ctx, "backward");
    memset(w->slots.v, 0, (slots + 1) * sizeof(cn_tensor *));
    memset(w->leads.v, 0, w->nodes.n + 1);
    w->slots.n = slots;
    cn_tensor **at = w->slots.v;
    for (size_t i = 0; i < w->nodes.n; i++) {
        cn__node *n = nodes_of(w)[i];
        n->walk = at;
        n->walk_index = (uint32_t)i;
        at += n->n_out;
    }
    return true;
}

/* A walk for given inputs visits only the nodes that lead to one of them. */
static void mark_leads(walk *w)
{
    bool *leads = w->leads.v;
    for (size_t i = 0; i < w->nodes.n; i++) {
        cn__node *n = nodes_of(w)[i];
        leads[i] = !w->inputs;
        for (int k = 0; k < w->n_inputs && !leads[i]; k++) leads[i] = w->inputs[k]->ref.node == n;
        for (int k = 0; k < n->n_in && !leads[i] && !n->grad_leaf; k++) {
            cn__node *from = n->in[k].node;
            if (from && from->walk_of == w && !(k < 32 && n->op->not_differentiable >> k & 1))
                leads[i] = leads[from->walk_index];
        }
    }
}

/* ---- adding gradients ---- */

/* Adds g to the gradient of a result. summed: g contains that gradient already. */
static bool arrive(cn__ref to, cn_tensor *g, bool summed)
{
    cn_tensor **slot = &to.node->walk[to.out];
    cn_tensor *sum = *slot && !summed ? cn_add(*slot, g) : g;
    if (!sum) return false;
    cn__hold(sum);
    if (*slot) cn__unhold(*slot);
    *slot = sum;
    return true;
}

/* Gives a gradient the shape and dtype of its operand. False: its shape is wrong. */
static bool fit(walk *w, const cn__node *n, int k, cn_tensor **g)
{
    const cn__result *x = cn__res(n->in[k]);
    if (n->op->kind == CN_MAP || n->op->kind == CN_RANDOM) *g = cn__sum_to(*g, &x->meta->layout);
    if (*g && cn_type(*g) != x->meta->dtype) *g = cn_cast(*g, x->meta->dtype);
    if (!*g) return false;
    if (cn__same_shape(&cn__result_of(*g)->meta->layout, &x->meta->layout)) return true;
    char a[96], b[96];
    return cn__fail(w->ctx, CN_NO_GRADIENT, "%s: the gradient of operand %d must have shape %s, got %s", n->op->name, k,
                    cn__shape_text(&x->meta->layout, b, sizeof b),
                    cn__shape_text(&cn__result_of(*g)->meta->layout, a, sizeof a));
}

static cn_tensor *handle_of(cn_ctx *ctx, cn__ref r)
{
    if (!r.node) return NULL;
    r.node->refs++;
    return cn__handle_new(ctx, r);
}

/* The arrays of a cn_grad_call: one element for each operand. */
typedef struct call_arrays {
    cn_tensor **in, **in_grad, **so_far;
    bool *needs, *summed;
} call_arrays;

static bool call_gradient(walk *w, cn__node *n, call_arrays r)
{
    cn_ctx *ctx = w->ctx;
    cn_tensor *out[CN_MAX_OUT];
    if (!n->op->grad)
        return cn__fail(ctx, CN_NO_GRADIENT, "%s has no gradient: %s", n->op->name,
                        n->op->no_grad ? n->op->no_grad : "none was given");
    for (int k = 0; k < n->n_in; k++) {
        r.in[k] = handle_of(ctx, n->in[k]);
        r.in_grad[k] = NULL;
        r.summed[k] = false;
        cn__node *from = n->in[k].node;
        r.needs[k] = from && from->needs_grad && from->walk_of == w &&
                     !(k < 32 && n->op->not_differentiable >> k & 1) && ((bool *)w->leads.v)[from->walk_index];
        r.so_far[k] = r.needs[k] ? from->walk[n->in[k].out] : NULL;
        if (from && !r.in[k]) return false;
    }
    for (int o = 0; o < n->n_out; o++)
        if (!(out[o] = handle_of(ctx, (cn__ref){ n, o }))) return false;
    cn_grad_call call = { .ctx = ctx,
                          .attrs = n->attrs,
                          .args = n->args,
                          .n_in = n->n_in,
                          .n_out = n->n_out,
                          .in = r.in,
                          .out = out,
                          .out_grad = n->walk,
                          .needs = r.needs,
                          .in_grad = r.in_grad,
                          .so_far = r.so_far,
                          .summed = r.summed };
    cn__outside outside = cn__go_out(ctx);
    n->op->grad(&call);
    cn__come_back(ctx, outside);
    for (int k = 0; k < n->n_in; k++) {
        if (!r.needs[k]) continue;
        if (r.in_grad[k] && !cn__of_context(ctx, r.in_grad[k], n->op->name, "a gradient")) return false;
        if (!r.in_grad[k] && (n->n_out > 1 && ctx->code == CN_OK))
            continue; /* the results that have a gradient do not depend on it */
        if (!r.in_grad[k])
            return cn__fail(ctx, CN_NO_GRADIENT, "%s: the operator set no gradient for operand %d", n->op->name, k);
        if (!fit(w, n, k, &r.in_grad[k]) || !arrive(n->in[k], r.in_grad[k], r.summed[k])) return false;
    }
    return true;
}

/* Computes the gradients of a node's operands. */
static bool differentiate(walk *w, cn__node *n)
{
    size_t count = (size_t)n->n_in;
    cn_tensor *in[CN_MAX_IN], *in_grad[CN_MAX_IN], *so_far[CN_MAX_IN];
    bool needs[CN_MAX_IN], summed[CN_MAX_IN];
    if (count <= CN_MAX_IN) return call_gradient(w, n, (call_arrays){ in, in_grad, so_far, needs, summed });
    size_t bytes = count * (3 * sizeof(cn_tensor *) + 2 * sizeof(bool));
    char *many = cn__block_new(&w->ctx->memory, bytes);
    if (!many) return cn__no_memory(w->ctx, "backward");
    cn_tensor **t = (cn_tensor **)many;
    bool *flags = (bool *)(t + 3 * count);
    bool ok = call_gradient(w, n, (call_arrays){ t, t + count, t + 2 * count, flags, flags + count });
    cn__block_free(&w->ctx->memory, many, bytes);
    return ok;
}

static bool run_hooks(walk *w, cn__node *n)
{
    for (cn__hook *h = n->hooks; h && n->walk[0]; h = h->next) {
        cn__outside out = cn__go_out(w->ctx);
        cn_tensor *g = h->fn(h->user, n->walk[0]);
        cn__come_back(w->ctx, out);
        if (!g) return cn__fail(w->ctx, CN_NO_GRADIENT, "backward: a hook must return a gradient, got NULL");
        if (g == n->walk[0]) continue;
        if (!cn__of_context(w->ctx, g, "backward", "the gradient that a hook returns")) return false;
        if (!cn__same_shape(&cn__result_of(g)->meta->layout, &n->out->meta->layout)) {
            char a[96], b[96];
            return cn__fail(w->ctx, CN_BAD_SHAPE, "backward: a hook must return a gradient of shape %s, got %s",
                            cn__shape_text(&n->out->meta->layout, a, sizeof a),
                            cn__shape_text(&cn__result_of(g)->meta->layout, b, sizeof b));
        }
        cn__hold(g);
        cn__unhold(n->walk[0]);
        n->walk[0] = g;
    }
    return true;
}

/* Adds to the parameter's own gradient. If that is still pending, it is evaluated first: then several micro-batches
   need the memory of one. */
static bool accumulate(walk *w, cn__node *n)
{
    cn_tensor *t = n->owner, *g = n->walk[0];
    if (!t) return true; /* the parameter was released */
    if (t->grad) {
        if (t->grad->ref.node->state == CN__PENDING && !w->create_graph && !cn_eval(t->grad)) return false;
        cn_tensor *sum = cn_add(t->grad, g);
        if (!sum) return false;
        if (!w->create_graph) return cn_assign(t->grad, sum);
        cn__handle_rebind(t->grad, sum->ref);
        return true;
    }
    cn_tensor *own = handle_of(w->ctx, g->ref); /* a new handle: g may be another parameter's gradient too */
    if (!own) return false;
    t->grad = cn__keep(own);
    return true;
}

/* A backward inside this one, in a hook or a gradient, may have spent a node that this one has yet to visit. */
static bool is_whole(walk *w, const cn__node *n)
{
    return n->grad_leaf || (!n->spent && n->in) ||
           cn__fail(w->ctx, CN_NO_GRADIENT,
                    "backward: a backward inside this one spent the graph through `%s`; set .retain in that call",
                    n->op->name);
}

static bool visit(walk *w, cn__node *n)
{
    bool any = false;
    for (int o = 0; o < n->n_out; o++) any |= n->walk[o] != NULL;
    if (!any || !((bool *)w->leads.v)[n->walk_index]) return true;
    cn_scope s = cn_scope_begin(w->ctx);
    bool ok = run_hooks(w, n) && is_whole(w, n);
    for (int k = 0; ok && k < w->n_inputs; k++)
        if (w->inputs[k]->ref.node == n && n->walk[w->inputs[k]->ref.out]) {
            w->found[k] = n->walk[w->inputs[k]->ref.out];
            cn__hold(w->found[k]);
        }
    if (ok && n->grad_leaf) ok = w->inputs || accumulate(w, n);
    else if (ok) ok = differentiate(w, n);
    cn_scope_end(w->ctx, s);
    for (int o = 0; o < n->n_out; o++) { /* no node that is still to be visited reads it */
        if (n->walk[o]) cn__unhold(n->walk[o]);
        n->walk[o] = NULL;
    }
    return ok;
}

static bool seed(walk *w, cn_tensor *out, cn_tensor *g)
{
    if (!out->ref.node->needs_grad)
        return cn__fail(w->ctx, CN_NO_GRADIENT,
                        "backward: the output must depend on a tensor that requires a gradient, but does not");
    if (!g && cn_numel(out) != 1)
        return cn__fail(w->ctx, CN_BAD_SHAPE,
                        "backward: an output without a given gradient must have 1 element, got %lld",
                        (long long)cn_numel(out));
    if (!g) g = cn_ones_like(out);
    if (!g) return false;
    if (cn__same_shape(&cn__result_of(g)->meta->layout, &cn__result_of(out)->meta->layout))
        return arrive(out->ref, g, false);
    char a[96], b[96];
    return cn__fail(w->ctx, CN_BAD_SHAPE, "backward: the given gradient must have the output's shape %s, got %s",
                    cn__shape_text(&cn__result_of(out)->meta->layout, a, sizeof a),
                    cn__shape_text(&cn__result_of(g)->meta->layout, b, sizeof b));
}

static void clean_up(walk *w, bool ok)
{
    for (size_t i = 0; i < w->slots.n; i++)
        if (((cn_tensor **)w->slots.v)[i]) cn__unhold(((cn_tensor **)w->slots.v)[i]);
    for (size_t i = 0; i < w->nodes.n; i++) {
        cn__node *n = nodes_of(w)[i];
        n->walk_of = NULL;
        n->walk = NULL;
        if (ok && !w->retain && !n->grad_leaf && ((bool *)w->leads.v)[i]) n->spent = true;
    }
    for (size_t i = 0; i < w->saved.n; i++) {
        const saved *s = (const saved *)w->saved.v + i;
        s->node->walk_of = s->walk_of;
        s->node->walk = s->walk;
        s->node->walk_index = s->walk_index;
    }
    for (size_t i = 0; i < w->nodes.n; i++) {
        cn__node *n = nodes_of(w)[i];
        if (!n->spent) continue;
        if (!n->walk_of) cn__node_end_hooks(n); /* a walk around this one may be at one of them */
        cn__node_cut(n);
    }
    for (size_t i = 0; i < w->nodes.n; i++) cn__node_release(nodes_of(w)[i]);
}

/* The size of an element of each spare vector. */
static const size_t spare_size[CN__SPARES] = { sizeof(void *), sizeof(void *), sizeof(bool), sizeof(saved) };

/* A training loop walks equal graphs again and again: each walk reuses the vectors of the last. A walk inside a walk
   has vectors of its own. */
static void swap_vectors(walk *w)
{
    cn__vec *own[CN__SPARES] = { &w->nodes, &w->slots, &w->leads, &w->saved };
    for (int i = 0; i < CN__SPARES; i++) {
        cn__vec *spare = &w->ctx->spare[i];
        if (own[i]->v && spare->v) {
            cn__vec_free(&w->ctx->memory, own[i], spare_size[i]);
            continue;
        }
        cn__vec swap = *own[i];
        *own[i] = *spare;
        *spare = swap;
        own[i]->n = spare->n = 0;
    }
}

void cn__grad_close(cn_ctx *ctx)
{
    for (int i = 0; i < CN__SPARES; i++) cn__vec_free(&ctx->memory, &ctx->spare[i], spare_size[i]);
}

bool cn__walk_back(walk *w, cn_tensor *const *outputs, cn_tensor *const *gradients, int n_outputs)
{
    cn_ctx *ctx = w->ctx;
    int64_t no_grad = ctx->no_grad;
    ctx->no_grad = w->create_graph ? 0 : no_grad + 1;
    cn_scope s = cn_scope_begin(ctx);
    swap_vectors(w);
    bool ready = find_nodes(w, outputs, n_outputs) && sort_nodes(w) && make_slots(w);
    bool ok = ready;
    if (ready) mark_leads(w);
    for (int i = 0; i < n_outputs && ok; i++) ok = seed(w, outputs[i], gradients ? gradients[i] : NULL);
    for (size_t i = w->nodes.n; i-- > 0 && ok;) ok = visit(w, nodes_of(w)[i]);
    clean_up(w, ok);
    swap_vectors(w);
    cn_scope_end(ctx, s);
    ctx->no_grad = no_grad;
    return ok;
}

/* Gradients as users ask for them; leaves, hooks, detaching. */
#include "cairn/op_cases.h"
#include "grad/walk.h"

/* ---- leaves ---- */

bool cn__infer_same(cn_infer *i)
{
    i->out[0] = *i->in[0];
    return true;
}

const cn_op cn__op_detach = {
    .name = "detach",
    .doc = "The same value, cut off from gradients.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .infer = cn__infer_same,
    .no_grad = "cutting it off is its purpose",
    .not_differentiable = 1,
    .onnx = "Identity",
    CN_CASES({ CN_IN(CN_S(2, 3)) }, { CN_IN(CN_S0) }, { CN_IN(CN_S(0, 4)) }),
};

cn_tensor *cn_detach(cn_tensor *t) { return cn_apply(&cn__op_detach, &t, 1, NULL, NULL); }

static void make_leaf(cn_tensor *t)
{
    cn__node *n = t->ref.node;
    n->grad_leaf = n->needs_grad = true;
    n->owner = t;
}

cn_tensor *cn_param(cn_tensor *t)
{
    if (!cn__alive(t)) return NULL;
    if (!cn_dtype_is_float(cn_type(t))) {
        cn__fail(t->ctx, CN_BAD_DTYPE, "param: %s has no gradients", cn_dtype_name(cn_type(t)));
        return NULL;
    }
    cn_tensor *p = cn_is_contiguous(t) ? cn_detach(t) : cn_detach(cn_contiguous(t));
    if (!p) return NULL;
    make_leaf(p);
    cn__make_assignable(p->ref.node);
    return cn_keep(p);
}

bool cn_requires_grad(const cn_tensor *t)
{
    return cn__alive(t) && t->ref.node->needs_grad && cn_dtype_is_float(cn__result_of(t)->meta.dtype);
}

bool cn_set_requires_grad(cn_tensor *t, bool on)
{
    if (!cn__alive(t)) return false;
    cn__node *n = t->ref.node;
    if (n->needs_grad && !n->grad_leaf)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "requires_grad: only of a leaf; use cn_detach first");
    if (on && !cn_dtype_is_float(cn_type(t)))
        return cn__fail(t->ctx, CN_BAD_DTYPE, "requires_grad: %s has no gradients", cn_dtype_name(cn_type(t)));
    if (on && n->state == CN__NUMBER)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "requires_grad: a plain number has no gradient; use cn_full");
    if (on) make_leaf(t);
    else n->grad_leaf = n->needs_grad = false;
    return true;
}

cn_tensor *cn_grad_of(cn_tensor *t) { return cn__alive(t) ? t->grad : NULL; }

void cn_zero_grad(cn_tensor *t)
{
    if (!cn__alive(t) || !t->grad) return;
    cn_tensor *g = t->grad;
    t->grad = NULL;
    cn_release(g);
}

void cn_no_grad_begin(cn_ctx *ctx)
{
    if (ctx) ctx->no_grad++;
}
void cn_no_grad_end(cn_ctx *ctx)
{
    if (ctx && ctx->no_grad) ctx->no_grad--;
}
bool cn_grad_enabled(const cn_ctx *ctx) { return ctx && !ctx->no_grad; }

bool cn_add_hook(cn_tensor *t, cn_hook hook, void *user)
{
    if (!cn__alive(t) || !hook) return false;
    if (!t->ref.node->needs_grad)
        return cn__fail(t->ctx, CN_NO_GRADIENT, "add_hook: the tensor does not require a gradient");
    if (t->ref.node->n_out > 1)
        return cn__fail(t->ctx, CN_UNSUPPORTED, "add_hook: not on a result of `%s`, which has several",
                        t->ref.node->op->name);
    cn__hook *h = cn__block_new(&t->ctx->memory, sizeof *h);
    if (!h) return cn__fail(t->ctx, CN_NO_MEMORY, "add_hook: out of memory");
    *h = (cn__hook){ hook, user, NULL };
    cn__hook **at = &t->ref.node->hooks;
    while (*at) at = &(*at)->next;
    *at = h;
    return true;
}

/* ---- asking ---- */

bool cn_backward_with(cn_tensor *output, const cn_backward_desc *desc)
{
    if (!cn__alive(output)) return false;
    static const cn_backward_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    walk w = { .ctx = output->ctx, .retain = desc->retain || desc->create_graph, .create_graph = desc->create_graph };
    return cn__walk_back(&w, &output, &desc->gradient, 1);
}

bool cn_backward(cn_tensor *loss) { return cn_backward_with(loss, NULL); }

static bool hand_out(walk *w, cn_tensor **grads, bool allow_unused)
{
    for (int k = 0; k < w->n_inputs; k++) {
        cn_tensor *g = w->found[k];
        if (!g && !allow_unused)
            return cn__fail(w->ctx, CN_NO_GRADIENT,
                            "grad: the outputs do not depend on input %d; allow_unused gives NULL", k);
        if (!g) continue;
        g->ref.node->refs++;
        grads[k] = cn__handle_new(w->ctx, g->ref);
        if (!grads[k]) return false;
    }
    return true;
}

bool cn_grad(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs, cn_tensor **grads,
             const cn_grad_desc *desc)
{
    static const cn_grad_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    for (int i = 0; i < n_inputs; i++) grads[i] = NULL;
    if (n_outputs < 1 || n_inputs < 1) return false;
    for (int i = 0; i < n_outputs; i++)
        if (!cn__alive(outputs[i])) return false;
    for (int i = 0; i < n_inputs; i++) {
        if (!cn__alive(inputs[i])) return false;
        if (!inputs[i]->ref.node->needs_grad)
            return cn__fail(inputs[i]->ctx, CN_NO_GRADIENT, "grad: input %d does not require a gradient", i);
    }
    cn_ctx *ctx = outputs[0]->ctx;
    walk w = { .ctx = ctx,
               .retain = desc->retain || desc->create_graph,
               .create_graph = desc->create_graph,
               .inputs = inputs,
               .n_inputs = n_inputs };
    size_t bytes = sizeof *w.found * (size_t)n_inputs;
    w.found = cn__block_new(&ctx->memory, bytes);
    if (!w.found) return cn__fail(ctx, CN_NO_MEMORY, "grad: out of memory");
    memset(w.found, 0, bytes);
    bool ok = cn__walk_back(&w, outputs, desc->gradients, n_outputs) && hand_out(&w, grads, desc->allow_unused);
    for (int k = 0; k < n_inputs; k++)
        if (w.found[k]) cn__unhold(w.found[k]);
    cn__block_free(&ctx->memory, w.found, bytes);
    return ok;
}

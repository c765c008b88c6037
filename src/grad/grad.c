/* Parameters, and the public calls that compute gradients: cn_param, cn_backward, cn_grad. */
#include "grad/walk.h"

cn_tensor *cn_param(cn_tensor *t)
{
    if (!cn__alive(t)) return NULL;
    if (!cn_dtype_is_float(cn_type(t))) {
        cn__fail(t->ctx, CN_BAD_DTYPE, "param: the tensor must be of a floating type, got %s",
                 cn_dtype_name(cn_type(t)));
        return NULL;
    }
    cn_tensor *p = cn_is_contiguous(t) ? cn_detach(t) : cn_detach(cn_contiguous(t));
    if (!p) return NULL;
    cn__make_leaf(p);
    cn__make_assignable(p->ref.node);
    return cn_keep(p);
}

/* ---- computing gradients ---- */

bool cn_backward_with(cn_tensor *output, const cn_backward_desc *desc)
{
    if (!cn__alive(output)) return false;
    static const cn_backward_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    walk w = { .ctx = output->ctx, .retain = desc->retain || desc->create_graph, .create_graph = desc->create_graph };
    return cn__walk_back(&w, &output, &desc->gradient, 1);
}

bool cn_backward(cn_tensor *loss) { return cn_backward_with(loss, NULL); }

static bool return_gradients(walk *w, cn_tensor **grads, bool allow_unused)
{
    for (int k = 0; k < w->n_inputs; k++) {
        cn_tensor *g = w->found[k];
        if (!g && !allow_unused)
            return cn__fail(w->ctx, CN_NO_GRADIENT,
                            "grad: the outputs must depend on input %d, but do not; with .allow_unused it gets NULL",
                            k);
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
            return cn__fail(inputs[i]->ctx, CN_NO_GRADIENT, "grad: input %d must require a gradient, but does not", i);
    }
    cn_ctx *ctx = outputs[0]->ctx;
    walk w = { .ctx = ctx,
               .retain = desc->retain || desc->create_graph,
               .create_graph = desc->create_graph,
               .inputs = inputs,
               .n_inputs = n_inputs };
    size_t bytes = sizeof *w.found * (size_t)n_inputs;
    w.found = cn__block_new(&ctx->memory, bytes);
    if (!w.found) return cn__no_memory(ctx, "grad");
    memset(w.found, 0, bytes);
    bool ok = cn__walk_back(&w, outputs, desc->gradients, n_outputs) && return_gradients(&w, grads, desc->allow_unused);
    for (int k = 0; k < n_inputs; k++)
        if (w.found[k]) cn__unhold(w.found[k]);
    cn__block_free(&ctx->memory, w.found, bytes);
    return ok;
}

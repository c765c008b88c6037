/* Parameters, and the public calls that compute gradients: cn_param, cn_backward, cn_grad. */
#include "grad/walk.h"

#include <stdio.h>

cn_tensor *cn_param(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return NULL;
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

/* Errors of a walk name the operators. */
static cn__call enter_walk(const cn_tensor *t, const char *who)
{
    cn__call call = cn__enter(t ? t->ctx : NULL, NULL);
    if (!call.ctx || cn__alive_in(t, who)) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_backward_with(cn_tensor *output, const cn_backward_desc *desc)
{
    static const cn_backward_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    CN__CALL call = enter_walk(output, "backward");
    if (!call.ctx || (desc->gradient && !cn__of_context(call.ctx, desc->gradient, "backward", "the given gradient")))
        return false;
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

/* The first tensor of two lists, or NULL. */
static const cn_tensor *first_of(cn_tensor *const *a, int n_a, cn_tensor *const *b, int n_b)
{
    for (int i = 0; i < n_a && a; i++)
        if (a[i]) return a[i];
    for (int i = 0; i < n_b && b; i++)
        if (b[i]) return b[i];
    return NULL;
}

static bool check_list(cn_ctx *ctx, cn_tensor *const *t, int n, const char *what)
{
    char name[32];
    if (!t || n < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "grad: there must be at least 1 %s, got %d%s", what, n,
                        t ? "" : " and no list");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s %d", what, i);
        if (!cn__of_context(ctx, t[i], "grad", name)) return false;
    }
    return true;
}

static bool check_grad(cn_ctx *ctx, cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs,
                       cn_tensor **grads, const cn_grad_desc *desc)
{
    if (!check_list(ctx, outputs, n_outputs, "output") || !check_list(ctx, inputs, n_inputs, "input")) return false;
    for (int i = 0; i < n_outputs && desc->gradients; i++)
        if (desc->gradients[i] && !cn__of_context(ctx, desc->gradients[i], "grad", "a given gradient")) return false;
    for (int i = 0; i < n_inputs; i++)
        if (!inputs[i]->ref.node->needs_grad)
            return cn__fail(ctx, CN_NO_GRADIENT, "grad: input %d must require a gradient, but does not", i);
    return grads || cn__fail(ctx, CN_BAD_ARGUMENT, "grad: the list for the gradients must not be NULL");
}

bool cn_grad(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs, cn_tensor **grads,
             const cn_grad_desc *desc)
{
    static const cn_grad_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    for (int i = 0; i < n_inputs && grads; i++) grads[i] = NULL;
    CN__CALL call = enter_walk(first_of(outputs, n_outputs, inputs, n_inputs), "grad");
    if (!call.ctx || !check_grad(call.ctx, outputs, n_outputs, inputs, n_inputs, grads, desc)) return false;
    cn_ctx *ctx = call.ctx;
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

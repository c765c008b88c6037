/* Functions that block operators share: gradients by definition, and the definition of normalisation. */
#include "ops/block/block.h"

#include "core/engine.h"

/* Makes a view of each operand, a node of its own. While the definition is differentiated these views are leaves, so
   the walk stops at them. Afterwards they connect its result with the operands, for higher orders. */
static void relink(cn_grad_call *g, cn_tensor **in)
{
    for (int k = 0; k < g->n_in; k++) {
        const bool differentiable = g->in[k] && g->in[k]->ref.node->needs_grad;
        in[k] = g->in[k];
        if (differentiable) in[k] = cn_permute(g->in[k], (cn_dims){ cn_ndim(g->in[k]), { 0, 1, 2, 3, 4, 5, 6, 7 } });
    }
}

static void set_leaves(cn_grad_call *g, cn_tensor *const *in, bool leaf)
{
    for (int k = 0; k < g->n_in; k++)
        if (in[k] && in[k] != g->in[k]) in[k]->ref.node->grad_leaf = leaf;
}

/* The gradient of each operand through the definition; NULL if the definition does not depend on the operand. */
static bool differentiate(cn_grad_call *g, cn_tensor *const *in, cn_tensor *const *out, cn_tensor **grads)
{
    cn_tensor *inputs[CN_MAX_IN], *found[CN_MAX_IN] = { 0 }, *outputs[CN_MAX_OUT], *gradients[CN_MAX_OUT];
    int n_inputs = 0, n_outputs = 0;
    for (int k = 0; k < g->n_in; k++)
        if (g->needs[k]) inputs[n_inputs++] = in[k];
    for (int k = 0; k < g->n_out; k++) {
        /* An empty result has no gradient, and its definition may have another shape. */
        if (!g->out_grad[k] || !cn_numel(g->out_grad[k]) || !cn_requires_grad(out[k])) continue;
        outputs[n_outputs] = out[k];
        gradients[n_outputs++] = g->out_grad[k];
    }
    cn_grad_desc desc = {
        .gradients = gradients, .retain = true, .create_graph = !g->ctx->no_grad, .allow_unused = true
    };
    if (n_outputs && !g->ctx->engine->grad(outputs, n_outputs, inputs, n_inputs, found, &desc)) return false;
    for (int k = 0, m = 0; k < g->n_in; k++) grads[k] = g->needs[k] ? found[m++] : NULL;
    return true;
}

void cn__grad_by_definition(cn_grad_call *g, cn__definition define)
{
    cn_ctx *ctx = g->ctx;
    const int64_t depth = ctx->no_grad;
    const int64_t limit = ctx->pending_limit;
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 }, *grads[CN_MAX_IN];
    ctx->pending_limit = INT64_MAX; /* an evaluation in between would disconnect the views from the operands */
    ctx->no_grad = 0;               /* the definition is recorded even when the gradient need not be differentiable */
    relink(g, in);
    define(ctx, in, g->attrs, g->args, out);
    ctx->no_grad = depth;
    set_leaves(g, in, true);
    const bool ok = !cn_failed(ctx) && differentiate(g, in, out, grads);
    set_leaves(g, in, false);
    ctx->pending_limit = limit;
    for (int k = 0; k < g->n_in && ok; k++)
        if (g->needs[k]) g->in_grad[k] = grads[k] ? grads[k] : cn_zeros_like(g->in[k]);
}

bool cn__expect_shape(cn_infer *i, const char *what, const cn_meta *m, const cn_layout *wanted)
{
    if (m && cn__same_shape(&m->layout, wanted)) return true;
    char s[96], t[96];
    return cn_infer_fail(i, CN_BAD_SHAPE, "%s must have shape %s, got %s", what, cn__shape_text(wanted, s, sizeof s),
                         m ? cn__shape_text(&m->layout, t, sizeof t) : "none");
}

/* 1 / sqrt(mean of x² + eps), x already centred */
static cn_tensor *scale_of(const cn__norm *n, cn_tensor *x)
{
    return cn_rsqrt(cn_add_s(cn_mean(cn_square(x), n->axes, true), n->eps));
}

static cn_tensor *centre(const cn__norm *n, cn_tensor *x)
{
    return n->centred ? cn_sub(x, cn_mean(x, n->axes, true)) : x;
}

cn_tensor *cn__norm_apply(const cn_op *op, cn_tensor *const *in, const void *attrs, double eps, bool any)
{
    const cn_arg args[CN_MAX_ARGS] = { { .f = eps } };
    CN__CALL call = cn__enter_tensor(in[0], op->name);
    if (!call.ctx) return NULL;
    for (int k = 1; k < op->n_in; k++)
        if (in[k] && !cn__of_context(call.ctx, in[k], op->name, "a parameter")) return NULL;
    const cn_dtype own = cn__dtype(in[0]);
    cn_dtype t = own;
    bool mixed = false, allowed = any || own == CN_F16 || own == CN_BF16;
    for (int k = 1; k < op->n_in; k++) {
        const cn_dtype of = in[k] ? cn__dtype(in[k]) : own;
        mixed |= of != own;
        allowed &= any ? cn_dtype_is_float(of) : !in[k] || of == CN_F32;
        t = cn_promote(t, of);
    }
    if (!mixed || !allowed || !cn_dtype_is_float(own)) return cn_apply(op, in, op->n_in, attrs, args);
    const cn_scope s = cn_scope_begin(in[0]->ctx);
    cn_tensor *wide[3] = { 0 };
    for (int k = 0; k < op->n_in; k++) wide[k] = in[k] ? cn__as(in[k], t) : NULL;
    cn_tensor *y = cn_apply(op, wide, op->n_in, attrs, args);
    return cn_scope_return(in[0]->ctx, s, y ? cn__as(y, own) : NULL);
}

cn_tensor *cn__norm_define(const cn__norm *n, cn_tensor *x, cn_tensor *weight, cn_tensor *bias)
{
    cn_tensor *c = centre(n, x), *y = cn_mul(c, scale_of(n, c));
    if (weight) y = cn_mul(y, weight);
    return bias ? cn_add(y, bias) : y;
}

static cn_tensor *sum_over(cn_tensor *x, cn_dims axes) { return axes.n ? cn_sum(x, axes, false) : x; }

/* h = (x - mean) r;  dx = r (gw - mean(gw) - h mean(gw h)),  dweight = sum of g h,  dbias = sum of g */
void cn__norm_backward_define(const cn__norm *n, cn_tensor *g, cn_tensor *x, cn_tensor *weight, cn_tensor **out)
{
    cn_tensor *c = centre(n, x), *r = scale_of(n, c), *h = cn_mul(c, r);
    cn_tensor *gw = weight ? cn_mul(g, weight) : g;
    out[0] = cn_mul(r, cn_sub(centre(n, gw), cn_mul(h, cn_mean(cn_mul(gw, h), n->axes, true))));
    out[1] = sum_over(cn_mul(g, h), n->others);
    out[2] = sum_over(g, n->others);
}

cn_tensor *cn__per_channel(const char *who, cn_tensor *p, cn_tensor *x)
{
    if (!p || !x) return NULL;
    if (cn_ndim(p) != 1 || cn_size(p, 0) != cn_size(x, 1)) {
        char s[96], t[96];
        cn__fail(x->ctx, CN_BAD_SHAPE, "%s: a parameter must have shape [%lld], one element a channel of x %s, got %s",
                 who, (long long)cn_size(x, 1), cn__shape_text(cn__layout(x), t, sizeof t),
                 cn__shape_text(cn__layout(p), s, sizeof s));
        return NULL;
    }
    cn_dims shape = { cn_ndim(x) - 1, { cn_size(x, 1) } };
    for (int d = 1; d < shape.n; d++) shape.v[d] = 1;
    return cn_reshape(p, shape);
}

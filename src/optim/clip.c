/* Clips gradients before a step: by their norm, or by value. */
#include <math.h>
#include <stdio.h>

#include "optim/optim.h"

typedef struct gradients {
    cn__call call;
    cn_ctx *ctx;
    cn_tensor **of, **to; /* the gradients, and their new values */
    int n;
    size_t bytes;
} gradients;

static bool check(cn_ctx *ctx, cn_params params, const char *who)
{
    for (int i = 0; i < params.n; i++) {
        char what[32];
        snprintf(what, sizeof what, "parameter %d", i);
        if (!cn__of_context(ctx, params.v[i], who, what)) return false;
    }
    return !cn_failed(ctx);
}

/* Lists the gradients that exist. False: an error, or no parameter that has a context. */
static bool list(gradients *g, cn_params params, const char *who)
{
    if (!check(g->ctx, params, who)) return false;
    g->bytes = 2 * (size_t)params.n * sizeof(cn_tensor *);
    g->of = cn__block_new(&g->ctx->memory, g->bytes);
    if (!g->of) return cn__no_memory(g->ctx, who);
    g->to = g->of + params.n;
    for (int i = 0; i < params.n; i++) {
        cn_tensor *d = cn_grad_of(params.v[i]);
        if (d) g->of[g->n++] = d;
    }
    cn_no_grad_begin(g->ctx);
    return true;
}

static bool begin(gradients *g, cn_params params, const char *who)
{
    for (int i = 0; i < params.n && params.v && !g->call.ctx; i++)
        if (params.v[i]) g->call = cn__enter(params.v[i]->ctx, who);
    g->ctx = g->call.ctx;
    if (!g->ctx || list(g, params, who)) return g->ctx != NULL;
    cn__leave(&g->call);
    return false;
}

static void end(gradients *g)
{
    cn_no_grad_end(g->ctx);
    cn__block_free(&g->ctx->memory, g->of, g->bytes);
    cn__leave(&g->call);
}

static cn_tensor *wide(cn_tensor *x) { return cn__dtype(x) == cn__state_dtype(x) ? x : cn_cast(x, CN_F32); }

/* One gradient's share of the norm: the sum of |x|^p, or the largest |x|. */
static cn_tensor *portion(cn_tensor *x, double p)
{
    x = wide(x);
    if (isinf(p)) return cn_numel(x) ? cn_max(cn_abs(x), CN_ALL, false) : cn_sum(x, CN_ALL, false);
    return cn_sum(p == 2 ? cn_square(x) : p == 1 ? cn_abs(x) : cn_pow_s(cn_abs(x), p), CN_ALL, false);
}

static cn_tensor *total_norm(const gradients *g, double p)
{
    if (g->n == 0) return cn_zeros(g->ctx, CN_F32, CN_SCALAR);
    for (int i = 0; i < g->n; i++)
        if (!(g->to[i] = portion(g->of[i], p))) return NULL;
    cn_tensor *all = cn_stack(g->to, g->n, 0);
    if (isinf(p)) return cn_max(all, CN_ALL, false);
    all = cn_sum(all, CN_ALL, false);
    return p == 1 ? all : p == 2 ? cn_sqrt(all) : cn_pow_s(all, 1 / p);
}

static bool is_finite(cn_tensor *norm, double p)
{
    double v = cn_item(norm);
    if (cn_failed(norm->ctx)) return false;
    if (isfinite(v)) return true;
    return cn__fail(norm->ctx, CN_BAD_ARGUMENT, "clip_grad_norm: the norm must be finite, got %g (norm_type %g)", v, p);
}

static bool scale(gradients *g, cn_tensor *norm, double max_norm)
{
    cn_tensor *by = cn_clamp(cn_rdiv_s(cn_add_s(norm, 1e-6), max_norm), -INFINITY, 1);
    for (int i = 0; i < g->n; i++)
        if (!(g->to[i] = cn_mul(g->of[i], by))) return false;
    return cn__assign_all(g->ctx, g->of, g->to, g->n);
}

cn_tensor *cn_clip_grad_norm(cn_params params, double max_norm, const cn_clip_desc *desc)
{
    cn_clip_desc d = desc ? *desc : (cn_clip_desc){ 0 };
    gradients g = { 0 };
    if (!begin(&g, params, "clip_grad_norm")) return NULL;
    double p = cn__given(d.norm_type, 2);
    cn_scope s = cn_scope_begin(g.ctx);
    bool ok = max_norm >= 0 && p > 0;
    if (!ok)
        cn__fail(g.ctx, CN_BAD_ARGUMENT, "clip_grad_norm: max_norm must be ≥ 0 and norm_type > 0, got %g and %g",
                 max_norm, p);
    cn_tensor *norm = ok ? total_norm(&g, p) : NULL;
    ok = norm && (!d.error_if_nonfinite || is_finite(norm, p)) && scale(&g, norm, max_norm);
    norm = cn_scope_return(g.ctx, s, ok ? norm : NULL);
    end(&g);
    return norm;
}

bool cn_clip_grad_value(cn_params params, double clip_value)
{
    gradients g = { 0 };
    if (!begin(&g, params, "clip_grad_value")) return false;
    cn_scope s = cn_scope_begin(g.ctx);
    bool ok = clip_value >= 0;
    if (!ok) cn__fail(g.ctx, CN_BAD_ARGUMENT, "clip_grad_value: clip_value must be ≥ 0, got %g", clip_value);
    for (int i = 0; i < g.n && ok; i++) ok = (g.to[i] = cn_clamp(g.of[i], -clip_value, clip_value)) != NULL;
    ok = ok && cn__assign_all(g.ctx, g.of, g.to, g.n);
    cn_scope_end(g.ctx, s);
    end(&g);
    return ok;
}

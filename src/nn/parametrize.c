/* Weight norm and spectral norm: a parameter that is computed from others before each forward of its module. The layer
   goes on using the handle of the parameter; a hook gives it a new value. */
#include <math.h>
#include <stdio.h>

#include "nn/module.h"

/* ---- what both share ---- */

typedef struct parametrised {
    cn__object object;
    cn_tensor *computed; /* the module's */
    cn_tensor *original; /* weight norm's direction v; spectral norm's weight */
    cn_tensor *length;   /* weight norm's g */
    cn_tensor *u, *v;    /* spectral norm's */
    int64_t dim;
    bool whole;
    int iterations;
    double eps;
} parametrised;

static const cn__object_type parametrised_type = { "parametrisation", NULL };

/* "weight" and "_g" */
static const char *named(char out[64], const char *name, const char *ending)
{
    snprintf(out, 64, "%.48s%s", name, ending);
    return out;
}

static parametrised *begin(cn_module *m, const char *name, int64_t dim, cn_tensor **weight)
{
    cn_ctx *ctx = cn_module_context(m);
    *weight = cn__own_param(m, name);
    if (!*weight) return NULL;
    if (strlen(name) > 48) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the parameter's name must have at most 48 bytes, got %zu",
                 cn_module_type_of(m)->name, strlen(name));
        return NULL;
    }
    if (cn_ndim(*weight) < 1 || dim < 0 || dim >= cn_ndim(*weight)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dim must be from 0 to %d, got %lld", cn_module_type_of(m)->name,
                 cn_ndim(*weight) - 1, (long long)dim);
        return NULL;
    }
    return cn__object_new(ctx, sizeof(parametrised), &parametrised_type);
}

/* ---- weight norm ---- */

/* |v| over all axes but one. */
static cn_tensor *length_of(const parametrised *p, cn_tensor *v)
{
    if (p->whole) return cn_norm(v, 2, CN_ALL, false);
    cn_dims axes = { 0 };
    for (int d = 0; d < cn_ndim(v); d++)
        if (d != p->dim) axes.v[axes.n++] = d;
    return axes.n ? cn_norm(v, 2, axes, true) : cn_abs(v);
}

static bool set_weight(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)m, (void)in, (void)n_in;
    const parametrised *p = user;
    cn_tensor *w = cn_mul(p->original, cn_div(p->length, length_of(p, p->original)));
    if (w) cn__set_computed(p->computed, w);
    return w != NULL;
}

bool cn_weight_norm(cn_module *m, const char *name, const cn_weight_norm_desc *desc)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    const cn_weight_norm_desc d = desc ? *desc : (cn_weight_norm_desc){ 0 };
    cn_tensor *weight;
    char text[64];
    parametrised *p = begin(m, name, d.dim, &weight);
    if (!p) return false;
    p->dim = d.dim;
    p->whole = d.whole;
    cn_scope s = cn_scope_begin(call.ctx);
    p->length = cn_module_param(m, named(text, name, "_g"), length_of(p, cn_detach(weight)));
    p->original = cn_module_param(m, named(text, name, "_v"), cn_clone(cn_detach(weight)));
    p->computed = cn_failed(call.ctx) ? NULL : cn__computed(m, name);
    const bool ok = p->computed && set_weight(p, m, NULL, 0) && cn_module_forward_pre_hook(m, set_weight, p);
    cn_scope_end(call.ctx, s);
    return ok;
}

/* ---- spectral norm ---- */

static cn_tensor *unit(cn_tensor *x, double eps)
{
    return cn_div(x, cn_clamp(cn_norm(x, 2, CN_ALL, false), eps, INFINITY));
}

/* The weight as a matrix: the axis `dim` first, the others as one. */
static cn_tensor *matrix_of(const parametrised *p, cn_tensor *w)
{
    cn_dims order = { 1, { p->dim } };
    for (int d = 0; d < cn_ndim(w); d++)
        if (d != p->dim) order.v[order.n++] = d;
    return cn_reshape(cn_permute(w, order), CN_DIMS(cn_size(w, (int)p->dim), -1));
}

/* Steps of the power method: v = Wᵀu and u = W v, each divided by its length. */
static bool follow(const parametrised *p, cn_tensor *w)
{
    cn_ctx *ctx = w->ctx;
    cn_no_grad_begin(ctx);
    cn_tensor *u = p->u, *v = p->v;
    for (int i = 0; i < p->iterations; i++) {
        v = unit(cn_matmul(cn_transpose(w, 0, 1), u), p->eps);
        u = unit(cn_matmul(w, v), p->eps);
    }
    const bool ok = u && v && cn_assign(p->u, u) && cn_assign(p->v, v);
    cn_no_grad_end(ctx);
    return ok;
}

static bool divide_weight(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)in, (void)n_in;
    const parametrised *p = user;
    cn_tensor *w = matrix_of(p, p->original);
    if (!w || (cn_module_training(m) && !follow(p, w))) return false;
    cn_tensor *sigma = cn_dot(cn_detach(p->u), cn_matmul(w, cn_detach(p->v)));
    cn_tensor *divided = cn_div(p->original, sigma);
    if (divided) cn__set_computed(p->computed, divided);
    return divided != NULL;
}

bool cn_spectral_norm(cn_module *m, const char *name, const cn_spectral_norm_desc *desc)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    const cn_spectral_norm_desc d = desc ? *desc : (cn_spectral_norm_desc){ 0 };
    const bool transposed = strncmp(m->type->name, "ConvTranspose", 13) == 0;
    const int64_t dim = d.dim ? d.dim : transposed;
    if (d.n_power_iterations < 0 || !(d.eps >= 0))
        return cn__fail(call.ctx, CN_BAD_ARGUMENT,
                        "spectral_norm: n_power_iterations and eps must be ≥ 0, got %d and %g", d.n_power_iterations,
                        d.eps);
    cn_tensor *weight;
    char text[64];
    parametrised *p = begin(m, name, dim, &weight);
    if (!p) return false;
    p->dim = dim;
    p->iterations = d.n_power_iterations ? d.n_power_iterations : 1;
    p->eps = d.eps > 0 ? d.eps : 1e-12;
    cn_scope s = cn_scope_begin(call.ctx);
    p->original = cn_module_param(m, named(text, name, "_orig"), cn_clone(cn_detach(weight)));
    cn_tensor *w = matrix_of(p, weight);
    const cn_dtype dtype = cn_type(weight);
    if (w) {
        cn_tensor *u = cn_randn(call.ctx, dtype, CN_DIMS(cn_size(w, 0))),
                  *v = cn_randn(call.ctx, dtype, CN_DIMS(cn_size(w, 1)));
        p->u = cn_module_buffer(m, named(text, name, "_u"), unit(u, p->eps));
        p->v = cn_module_buffer(m, named(text, name, "_v"), unit(v, p->eps));
    }
    p->computed = cn_failed(call.ctx) ? NULL : cn__computed(m, name);
    const bool ok = p->computed && cn_eval_all(call.ctx) && cn_module_forward_pre_hook(m, divide_weight, p);
    cn_scope_end(call.ctx, s);
    return ok;
}

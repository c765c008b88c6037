/* Compares gradients with central differences: d/dx ≈ (f(x + e) - f(x - e)) / 2e, in f64, for f = Σ w·fn(x) with fixed
   weights w. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "cairn/cairn.h"
#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"

typedef struct check {
    cn_ctx *ctx;
    cn_function fn;
    void *user;
    cn_tensor *const *inputs;
    int n_inputs;
    const cn_gradcheck_desc *desc;
    double **values; /* of each input */
} check;

/* Writes the reason to the user's text. Returns false. */
static bool report(const check *c, const char *format, ...)
{
    if (!c->desc->words || !c->desc->words_size) return false;
    va_list list;
    va_start(list, format);
    vsnprintf(c->desc->words, c->desc->words_size, format, list);
    va_end(list);
    return false;
}

/* Fixed weights of both signs, none near 0, so that the errors of two elements do not cancel. */
static cn_tensor *weights_like(cn_tensor *x)
{
    int64_t n = cn_numel(x);
    size_t bytes = sizeof(double) * (size_t)(n + 1);
    double *w = cn__block_new(&x->ctx->memory, bytes);
    if (!w) {
        cn__no_memory(x->ctx, "gradcheck");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
        double u = (double)(h >> 40) / (double)(1 << 24);
        w[i] = (h >> 20 & 1 ? -1 : 1) * (0.5 + u);
    }
    cn_tensor *t = cn_from(x->ctx, CN_F64, cn_shape(x), w);
    cn__block_free(&x->ctx->memory, w, bytes);
    return t;
}

static cn_tensor *input_from(const check *c, int k, const double *v)
{
    cn_tensor *t = cn_from(c->ctx, CN_F64, cn_shape(c->inputs[k]), v);
    if (t) cn_set_requires_grad(t, true);
    return t;
}

/* What the function returns for these inputs; NULL, with an error, if that is no tensor of the context. */
static cn_tensor *result_of(const check *c, cn_tensor *const *in)
{
    cn__outside out = cn__go_out(c->ctx);
    cn_tensor *y = c->fn(c->user, in, c->n_inputs);
    cn__come_back(c->ctx, out);
    return cn__of_context(c->ctx, y, "gradcheck", "the tensor that the function returns") ? y : NULL;
}

/* Σ w·fn(x) for the present values. */
static double function_value(const check *c)
{
    cn_tensor *in[CN_MAX_IN];
    cn_scope s = cn_scope_begin(c->ctx);
    for (int k = 0; k < c->n_inputs; k++) in[k] = input_from(c, k, c->values[k]);
    cn_tensor *y = result_of(c, in);
    double v = NAN;
    if (y) v = cn_item(cn_sum(cn_mul(y, weights_like(y)), CN_ALL, false));
    cn_scope_end(c->ctx, s);
    return v;
}

/* The gradients of the same sum, as flat arrays. An input that the result does not depend on has gradient 0. */
static bool gradients(const check *c, double **out)
{
    cn_tensor *in[CN_MAX_IN], *g[CN_MAX_IN] = { 0 };
    bool ok = true;
    cn_scope s = cn_scope_begin(c->ctx);
    for (int k = 0; k < c->n_inputs; k++) in[k] = input_from(c, k, c->values[k]);
    cn_tensor *y = result_of(c, in), *w = y ? weights_like(y) : NULL;
    if (!w) ok = report(c, "the function failed: %s", cn_error(c->ctx));
    if (ok && cn_type(y) != CN_F64) ok = report(c, "the result must be f64, got %s", cn_dtype_name(cn_type(y)));
    if (ok && cn_requires_grad(y)) {
        cn_grad_desc d = { .gradients = &w, .allow_unused = true };
        if (!cn_grad(&y, 1, in, c->n_inputs, g, &d)) ok = report(c, "no gradient: %s", cn_error(c->ctx));
    }
    for (int k = 0; k < c->n_inputs && ok; k++) {
        int64_t n = cn_numel(c->inputs[k]);
        if (!g[k]) memset(out[k], 0, sizeof(double) * (size_t)n);
        else if (!cn_read_f64(g[k], out[k], n)) ok = report(c, "gradient %d cannot be read: %s", k, cn_error(c->ctx));
    }
    cn_scope_end(c->ctx, s);
    return ok;
}

static bool compare(const check *c, double *const *analytic)
{
    double eps = c->desc->eps ? c->desc->eps : 1e-6, atol = c->desc->atol ? c->desc->atol : 1e-5,
           rtol = c->desc->rtol ? c->desc->rtol : 1e-3;
    for (int k = 0; k < c->n_inputs; k++) {
        int64_t n = cn_numel(c->inputs[k]), most = c->desc->max_elements, step = most > 0 && n > most ? n / most : 1;
        for (int64_t i = 0; i < n; i += step) {
            double x = c->values[k][i];
            c->values[k][i] = x + eps;
            double up = function_value(c);
            c->values[k][i] = x - eps;
            double down = function_value(c);
            c->values[k][i] = x;
            double numeric = (up - down) / (2 * eps), got = analytic[k][i];
            if (fabs(numeric - got) <= atol + rtol * fabs(numeric)) continue;
            return report(c, "input %d, element %lld: gradient %.9g, finite difference %.9g", k, (long long)i, got,
                          numeric);
        }
    }
    return true;
}

static bool run(check *c)
{
    double *analytic[CN_MAX_IN] = { 0 }, *values[CN_MAX_IN] = { 0 };
    bool ok = true;
    for (int k = 0; k < c->n_inputs && ok; k++) {
        int64_t n = cn_numel(c->inputs[k]);
        size_t bytes = sizeof(double) * (size_t)(n + 1);
        values[k] = cn__block_new(&c->ctx->memory, bytes);
        analytic[k] = cn__block_new(&c->ctx->memory, bytes);
        ok = values[k] && analytic[k] && cn_read_f64(c->inputs[k], values[k], n);
        if (!ok) report(c, "input %d cannot be read", k);
    }
    c->values = values;
    ok = ok && gradients(c, analytic) && compare(c, analytic);
    for (int k = 0; k < c->n_inputs; k++) {
        size_t bytes = sizeof(double) * (size_t)(cn_numel(c->inputs[k]) + 1);
        if (values[k]) cn__block_free(&c->ctx->memory, values[k], bytes);
        if (analytic[k]) cn__block_free(&c->ctx->memory, analytic[k], bytes);
    }
    return ok;
}

bool cn_gradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, const cn_gradcheck_desc *desc)
{
    static const cn_gradcheck_desc defaults = { 0 };
    cn_tensor *held[CN_MAX_IN]; /* fn may release an input */
    check c = { .fn = fn, .user = user, .inputs = held, .n_inputs = n_inputs, .desc = desc ? desc : &defaults };
    if (!inputs || n_inputs < 1 || n_inputs > CN_MAX_IN)
        return report(&c, "there must be 1 to %d inputs, got %d", CN_MAX_IN, inputs ? n_inputs : 0);
    int first = 0;
    while (first < n_inputs - 1 && !inputs[first]) first++;
    CN__CALL call = cn__enter(inputs[first] ? inputs[first]->ctx : NULL, NULL);
    if (!fn) return report(&c, "fn must be a function, got NULL");
    for (int k = 0; k < n_inputs; k++) {
        if (!call.ctx) return report(&c, "input %d must not be NULL", k);
        if (!cn__of_context(call.ctx, inputs[k], "gradcheck", "an input"))
            return report(&c, "input %d: %s", k, cn_error(call.ctx));
        if (cn_type(inputs[k]) != CN_F64)
            return report(&c, "input %d must be f64, got %s", k, cn_dtype_name(cn_type(inputs[k])));
    }
    c.ctx = call.ctx;
    for (int k = 0; k < n_inputs; k++) cn__hold(held[k] = inputs[k]);
    const bool ok = run(&c);
    for (int k = 0; k < n_inputs; k++) cn__unhold(held[k]);
    return ok;
}

/* ---- second order: the gradient as a function ---- */

typedef struct inner {
    cn_function fn;
    void *user;
} inner;

/* Σ over inputs of Σ v·(gradient of Σ w·fn) */
static cn_tensor *gradient_sum(void *user, cn_tensor *const *in, int n_in)
{
    const inner *f = user;
    cn_tensor *y = f->fn(f->user, in, n_in), *g[CN_MAX_IN] = { 0 };
    cn_tensor *w = cn_context(y) ? weights_like(y) : NULL;
    if (!w) return NULL;
    cn_tensor *total = cn_full(y->ctx, CN_F64, CN_SCALAR, 0);
    if (!cn_requires_grad(y)) return total;
    cn_grad_desc d = { .gradients = &w, .create_graph = true, .allow_unused = true };
    if (!cn_grad(&y, 1, in, n_in, g, &d)) return NULL;
    for (int k = 0; k < n_in; k++)
        if (g[k]) total = cn_add(total, cn_sum(cn_mul(g[k], weights_like(g[k])), CN_ALL, false));
    return total;
}

bool cn_gradgradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, const cn_gradcheck_desc *desc)
{
    inner f = { fn, user };
    if (!fn) return cn_gradcheck(NULL, user, inputs, n_inputs, desc);
    return cn_gradcheck(gradient_sum, &f, inputs, n_inputs, desc);
}

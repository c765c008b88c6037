/* Derivatives of functions: products with Jacobians and Hessians, and these matrices themselves. */
#include "cairn/cairn.h"
#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/layout.h"

/* A call of the function: leaves with the values of the inputs, and the result. Gradients are recorded from the call of
   the function to the end of the block, also where the program records none. */
typedef struct calling {
    cn_ctx *ctx;
    const char *who;
    int n;
    cn_tensor *x[CN_MAX_IN], *y;
    bool records;
    int64_t no_grad; /* the context's, before */
} calling;

static void end_calling(calling *c)
{
    if (c->records) c->ctx->no_grad = c->no_grad;
}
#define CALLING __attribute__((cleanup(end_calling))) calling

static bool list_is_alive(cn_ctx *ctx, const char *who, const char *what, cn_tensor *const *v, int n)
{
    if (!v) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the list of %s must not be NULL", who, what);
    for (int k = 0; k < n; k++)
        if (!cn__of_context(ctx, v[k], who, what)) return false;
    return true;
}

/* Vectors that are multiplied have the shapes of what they stand for. */
static bool fits(cn_ctx *ctx, const char *who, cn_tensor *v, cn_tensor *of)
{
    char a[96], b[96];
    const cn_layout *l = &cn__result_of(v)->meta->layout, *m = &cn__result_of(of)->meta->layout;
    return cn__same_shape(l, m) || cn__fail(ctx, CN_BAD_SHAPE, "%s: v must have the shape %s, got %s", who,
                                            cn__shape_text(m, b, sizeof b), cn__shape_text(l, a, sizeof a));
}

/* Calls fn. With create_graph, inputs that require a gradient stay part of their graph. False after an error. */
static bool call_function(calling *c, cn_function fn, void *user, cn_tensor *const *inputs, int n, bool create_graph)
{
    if (!fn) return cn__fail(c->ctx, CN_BAD_ARGUMENT, "%s: the function must not be NULL", c->who);
    if (n < 1 || n > CN_MAX_IN)
        return cn__fail(c->ctx, CN_BAD_ARGUMENT, "%s: there must be 1 to %d inputs, got %d", c->who, CN_MAX_IN, n);
    if (!list_is_alive(c->ctx, c->who, "input", inputs, n)) return false;
    c->n = n;
    c->records = true;
    c->no_grad = c->ctx->no_grad;
    c->ctx->no_grad = 0;
    for (int k = 0; k < n; k++) {
        if (!cn_dtype_is_float(cn_type(inputs[k])))
            return cn__fail(c->ctx, CN_BAD_DTYPE, "%s: input %d must be of a floating type, got %s", c->who, k,
                            cn_dtype_name(cn_type(inputs[k])));
        c->x[k] = inputs[k];
        if (create_graph && cn_requires_grad(inputs[k])) continue;
        c->x[k] = cn_detach(inputs[k]);
        if (!c->x[k] || !cn_set_requires_grad(c->x[k], true)) return false;
    }
    const cn__outside out = cn__go_out(c->ctx);
    c->y = fn(user, c->x, n);
    cn__come_back(c->ctx, out);
    return cn__of_context(c->ctx, c->y, c->who, "the tensor that the function returns");
}

/* Gradients of outputs with given gradients; zeros where there are none. */
static bool gradients_of(const calling *c, cn_tensor *const *outputs, cn_tensor *const *given, int n_outputs,
                         cn_tensor *const *inputs, int n_inputs, cn_tensor **out, bool retain, bool create_graph)
{
    cn_tensor *from[CN_MAX_IN], *with[CN_MAX_IN];
    int n = 0;
    for (int k = 0; k < n_outputs; k++) {
        if (!outputs[k] || !cn_requires_grad(outputs[k])) continue;
        from[n] = outputs[k];
        with[n++] = given ? given[k] : NULL;
    }
    for (int k = 0; k < n_inputs; k++) out[k] = NULL;
    const cn_grad_desc d = {
        .gradients = given ? with : NULL, .retain = retain, .create_graph = create_graph, .allow_unused = true
    };
    if (n && !cn_grad(from, n, inputs, n_inputs, out, &d)) return false;
    for (int k = 0; k < n_inputs; k++) {
        if (!out[k]) out[k] = cn_zeros_like(inputs[k]);
        if (!out[k]) return !cn_failed(c->ctx);
    }
    return true;
}

/* The first gradients of a function with one number as its result, ready to be differentiated. */
static bool first_gradients(const calling *c, cn_tensor **g)
{
    if (cn_numel(c->y) != 1)
        return cn__fail(c->ctx, CN_BAD_SHAPE, "%s: the function must return a single number, got %lld elements", c->who,
                        (long long)cn_numel(c->y));
    cn_tensor *one = cn_ones_like(c->y);
    return one && gradients_of(c, &c->y, &one, 1, c->x, c->n, g, true, true);
}

bool cn_vjp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *v, cn_tensor **output,
            cn_tensor **vjp)
{
    CALLING c = { .ctx = n_inputs > 0 && inputs && inputs[0] ? inputs[0]->ctx : NULL, .who = "vjp" };
    CN__CALL call = cn__enter(c.ctx, c.who);
    if (!call.ctx) return false;
    if (!vjp) return cn__fail(c.ctx, CN_BAD_ARGUMENT, "vjp: the list for the results must not be NULL");
    if (!call_function(&c, fn, user, inputs, n_inputs, false)) return false;
    if (v ? !cn__of_context(c.ctx, v, c.who, "v") || !fits(c.ctx, c.who, v, c.y) : false) return false;
    if (!v && cn_numel(c.y) != 1)
        return cn__fail(c.ctx, CN_BAD_SHAPE, "vjp: v is needed, because the function returns %lld elements",
                        (long long)cn_numel(c.y));
    if (!v) v = cn_ones_like(c.y);
    if (output) *output = cn_detach(c.y);
    return v && gradients_of(&c, &c.y, &v, 1, c.x, c.n, vjp, false, false);
}

/* g(u) = uᵀJ is linear in u, so the gradient of g·v with respect to u is J v. */
bool cn_jvp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *const *v, cn_tensor **output,
            cn_tensor **jvp)
{
    CALLING c = { .ctx = n_inputs > 0 && inputs && inputs[0] ? inputs[0]->ctx : NULL, .who = "jvp" };
    CN__CALL call = cn__enter(c.ctx, c.who);
    if (!call.ctx) return false;
    if (!jvp) return cn__fail(c.ctx, CN_BAD_ARGUMENT, "jvp: the place for the result must not be NULL");
    if (!call_function(&c, fn, user, inputs, n_inputs, false) || !list_is_alive(c.ctx, c.who, "v", v, n_inputs))
        return false;
    for (int k = 0; k < n_inputs; k++)
        if (!fits(c.ctx, c.who, v[k], c.x[k])) return false;
    if (output) *output = cn_detach(c.y);
    cn_tensor *u = cn_zeros_like(c.y), *g[CN_MAX_IN];
    if (!u || !cn_set_requires_grad(u, true)) return false;
    return gradients_of(&c, &c.y, &u, 1, c.x, c.n, g, true, true) &&
           gradients_of(&c, g, v, c.n, &u, 1, jvp, false, false);
}

bool cn_hvp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *const *v, cn_tensor **output,
            cn_tensor **hvp)
{
    CALLING c = { .ctx = n_inputs > 0 && inputs && inputs[0] ? inputs[0]->ctx : NULL, .who = "hvp" };
    CN__CALL call = cn__enter(c.ctx, c.who);
    if (!call.ctx) return false;
    if (!hvp) return cn__fail(c.ctx, CN_BAD_ARGUMENT, "hvp: the list for the results must not be NULL");
    cn_tensor *g[CN_MAX_IN];
    if (!call_function(&c, fn, user, inputs, n_inputs, false) || !list_is_alive(c.ctx, c.who, "v", v, n_inputs))
        return false;
    for (int k = 0; k < n_inputs; k++)
        if (!fits(c.ctx, c.who, v[k], c.x[k])) return false;
    if (output) *output = cn_detach(c.y);
    return first_gradients(&c, g) && gradients_of(&c, g, v, c.n, c.x, c.n, hvp, false, false);
}

/* ---- whole matrices: one backward for each element of the result ---- */

/* The shape of y followed by that of x; false after an error. */
static bool join_shapes(const calling *c, cn_tensor *y, cn_tensor *x, cn_dims *out)
{
    const cn_dims a = cn_shape(y), b = cn_shape(x);
    if (a.n + b.n > CN_MAX_DIMS)
        return cn__fail(c->ctx, CN_BAD_SHAPE,
                        "%s: a result has at most %d axes, got %d of the output and %d of an input", c->who,
                        CN_MAX_DIMS, a.n, b.n);
    *out = a;
    for (int d = 0; d < b.n; d++) out->v[out->n++] = b.v[d];
    return true;
}

/* Row i of the Jacobian of y: the gradients for a result that is 1 at element i and 0 elsewhere. The rows are kept. */
static bool jacobian_row(const calling *c, cn_tensor *y, int64_t i, int64_t m, bool create_graph, cn_tensor **rows)
{
    cn_tensor *g[CN_MAX_IN] = { NULL };
    cn_scope s = cn_scope_begin(c->ctx);
    cn_tensor *at = cn_eq_s(cn_arange(c->ctx, CN_I64, 0, (double)m, 1), (double)i);
    cn_tensor *one = cn_reshape(cn_cast(at, cn_type(y)), cn_shape(y));
    bool ok = one && gradients_of(c, &y, &one, 1, c->x, c->n, g, true, create_graph);
    for (int k = 0; k < c->n && ok; k++) {
        rows[k * m + i] = cn__keep(g[k]);
        ok = rows[k * m + i] && (create_graph || cn_eval(g[k]));
    }
    cn_scope_end(c->ctx, s);
    return ok;
}

/* Jacobians of y with respect to all inputs. */
static bool jacobians_of(const calling *c, cn_tensor *y, bool create_graph, cn_tensor **out)
{
    const int64_t m = cn_numel(y);
    cn_dims shape[CN_MAX_IN];
    for (int k = 0; k < c->n; k++)
        if (!join_shapes(c, y, c->x[k], &shape[k])) return false;
    const size_t bytes = sizeof(cn_tensor *) * (size_t)(m * c->n + 1);
    cn_tensor **rows = cn__block_new(&c->ctx->memory, bytes);
    if (!rows) return cn__no_memory(c->ctx, c->who);
    memset(rows, 0, bytes);
    bool ok = true;
    for (int64_t i = 0; i < m && ok; i++) ok = jacobian_row(c, y, i, m, create_graph, rows);
    for (int k = 0; k < c->n && ok; k++) {
        out[k] =
            m ? cn_reshape(cn_stack(rows + k * m, (int)m, 0), shape[k]) : cn_zeros(c->ctx, cn_type(c->x[k]), shape[k]);
        ok = out[k] && (create_graph || cn_eval(out[k]));
    }
    for (int64_t i = 0; i < m * c->n; i++) cn__release(rows[i]);
    cn__block_free(&c->ctx->memory, rows, bytes);
    return ok;
}

bool cn_jacobian(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor **jacobian,
                 const cn_jacobian_desc *desc)
{
    CALLING c = { .ctx = n_inputs > 0 && inputs && inputs[0] ? inputs[0]->ctx : NULL, .who = "jacobian" };
    CN__CALL call = cn__enter(c.ctx, c.who);
    if (!call.ctx) return false;
    const bool create_graph = desc && desc->create_graph;
    if (!jacobian) return cn__fail(c.ctx, CN_BAD_ARGUMENT, "jacobian: the list for the results must not be NULL");
    return call_function(&c, fn, user, inputs, n_inputs, create_graph) && jacobians_of(&c, c.y, create_graph, jacobian);
}

bool cn_hessian(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor **hessian,
                const cn_jacobian_desc *desc)
{
    CALLING c = { .ctx = n_inputs > 0 && inputs && inputs[0] ? inputs[0]->ctx : NULL, .who = "hessian" };
    CN__CALL call = cn__enter(c.ctx, c.who);
    if (!call.ctx) return false;
    const bool create_graph = desc && desc->create_graph;
    cn_tensor *g[CN_MAX_IN];
    if (!hessian) return cn__fail(c.ctx, CN_BAD_ARGUMENT, "hessian: the list for the results must not be NULL");
    if (!call_function(&c, fn, user, inputs, n_inputs, create_graph) || !first_gradients(&c, g)) return false;
    for (int k = 0; k < n_inputs; k++)
        if (!jacobians_of(&c, g[k], create_graph, hessian + k * n_inputs)) return false;
    return true;
}

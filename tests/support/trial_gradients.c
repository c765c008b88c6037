/* trial_gradients.c: gradients against finite differences, in f64. */
#include <string.h>

#include "support/property.h"

/* The operator as a function of its differentiable operands. */
typedef struct as_function {
    const trial *t;
    cn_tensor *const *in;
    const int *place; /* of each argument among the operands */
    bool turned;      /* arguments reach it in another layout */
} as_function;

static cn_tensor *turn(cn_tensor *x)
{
    cn_dims order = { .n = cn_ndim(x) };
    if (order.n == 0) return x;
    if (order.n == 1) return cn_slice(cn_repeat_interleave(x, 2, 0), 0, 1, 2 * cn_size(x, 0), 2);
    for (int d = 0; d < order.n; d++) order.v[d] = order.n - 1 - d;
    return cn_permute(cn_clone(cn_permute(x, order)), order);
}

/* One floating result as it is; several weighted and joined. */
static cn_tensor *joined(cn_tensor *const *out, int n)
{
    cn_tensor *parts[CN_MAX_OUT];
    int found = 0, last = 0;
    for (int j = 0; j < n; j++) {
        if (!cn_dtype_is_float(cn_type(out[j]))) continue;
        parts[found++] = cn_mul_s(cn_reshape(out[j], CN_DIMS(-1)), 1 + 0.3 * j);
        last = j;
    }
    return found == 1 ? out[last] : found ? cn_cat(parts, found, 0) : NULL;
}

static cn_tensor *function(void *user, cn_tensor *const *in, int n_in)
{
    const as_function *f = user;
    cn_tensor *all[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 };
    memcpy(all, f->in, sizeof all);
    for (int k = 0; k < n_in; k++) all[f->place[k]] = f->turned ? turn(in[k]) : in[k];
    return call(cn_context(in[0]), f->t, all, out) ? joined(out, f->t->op->n_out) : NULL;
}

/* Whether there is a gradient to check: a result in f64 that depends on the operands. */
static bool is_reached(as_function *f, cn_tensor *const *in, int n_in)
{
    cn_ctx *ctx = cn_context(in[0]);
    cn_scope s = cn_scope_begin(ctx);
    for (int k = 0; k < n_in; k++) cn_set_requires_grad(in[k], true);
    cn_tensor *y = function(f, in, n_in);
    bool reached = y && cn_type(y) == CN_F64 && cn_requires_grad(y);
    cn_scope_end(ctx, s);
    return reached;
}

static void check_second_order(const trial *t, as_function *f, cn_tensor *const *in, int n_in,
                               const cn_gradcheck_desc *desc)
{
    cn_ctx *ctx = cn_context(in[0]);
    bool ok = cn_gradgradcheck(function, f, in, n_in, desc);
    /* an operator of the gradient may say why it has none itself */
    bool excused = !ok && cn_error_code(ctx) == CN_NO_GRADIENT && strstr(cn_error(ctx), " has no gradient: ") &&
                   !strstr(cn_error(ctx), "none was given");
    if (excused) skip();
    else expect(t, SECOND_ORDER, ok, "", desc->words);
    cn_error_clear(ctx);
}

static void check_gradients(cn_ctx *ctx, const trial *t, const inputs *x)
{
    cn_tensor *in[CN_MAX_IN] = { 0 }, *arguments[CN_MAX_IN];
    int place[CN_MAX_IN], n = 0;
    int64_t elements = 0;
    make_tensors(ctx, x, LAYOUT_CONTIGUOUS, in);
    for (int k = 0; k < x->n; k++) {
        if (!is_differentiable(t, x, k)) continue;
        elements += x->in[k].numel;
        place[n] = k;
        arguments[n++] = in[k];
    }
    char words[256] = "";
    as_function f = { t, in, place, false };
    cn_gradcheck_desc desc = { .max_elements = is_thin(t) ? 6 : 40, .words = words, .words_size = sizeof words };
    if (n == 0 || !is_reached(&f, arguments, n)) return;
    expect(t, GRADIENT, cn_gradcheck(function, &f, arguments, n, &desc), "", words);
    cn_error_clear(ctx);
    desc.max_elements = is_thin(t) ? 3 : 10;
    if (elements <= 400) check_second_order(t, &f, arguments, n, &desc);
    f.turned = true;
    expect(t, GRADIENT, cn_gradcheck(function, &f, arguments, n, &desc), "other layout", words);
    cn_error_clear(ctx);
}

void try_gradients(cn_ctx *ctx, const trial *t)
{
    inputs x;
    if (!has_grad(t->op) || t->c->no_gradient_check || !takes(t, CN_F64) || !draw(t, CN_F64, LAYOUT_CONTIGUOUS, &x))
        return;
    cn_scope s = cn_scope_begin(ctx);
    check_gradients(ctx, t, &x);
    cn_scope_end(ctx, s);
    free_inputs(&x);
}

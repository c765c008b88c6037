/* step.c: applies an optimizer step to all parameters, then performs all assignments or none. */
#include "ops/shared.h"

#include "optim.h"

typedef struct changes { /* handles and the values they are to get */
    cn_tensor **of, **to;
    int n;
} changes;

static bool add_update(changes *c, const cn_op *op, cn_tensor *const *const *tensors, int i, const cn_arg *args)
{
    cn_tensor *p = tensors[0][i], *in[CN_MAX_IN] = { p, cn_grad_of(p) };
    if (!in[1]) return true;
    c->of[c->n] = p;
    const bool plain = op == &cn__op_sgd_step && args[CN__SGD_DECAY].f == 0 && args[CN__SGD_SIGN].f == 1;
    if (plain && (c->to[c->n] = cn__sgd_rows(p, in[1], args[CN__SGD_LR].f))) return ++c->n > 0;
    if (cn_failed(p->ctx)) return false;
    for (int k = 1; k < op->n_out; k++) {
        in[k + 1] = c->of[c->n + k] = tensors[k][i];
        if (!in[k + 1] && !cn_failed(p->ctx))
            return cn__fail(p->ctx, CN_BAD_ARGUMENT, "%s: the state of parameter %d must not be NULL", op->name, i);
    }
    if (!cn_apply_n(op, in, op->n_in, NULL, args, c->to + c->n)) return false;
    c->n += op->n_out;
    return true;
}

static bool are_parameters(cn_ctx *ctx, const cn_op *op, cn_tensor *const *p, int n)
{
    for (int i = 0; i < n; i++)
        if (!cn__of_context(ctx, p[i], op->name, "a parameter")) return false;
    return true;
}

bool cn__step_all(const cn_op *op, cn_tensor *const *const *tensors, int n, const cn_arg *args)
{
    if (n < 1) return true;
    if (!tensors[0] || !tensors[0][0]) return false; /* NULL: an error is set already */
    CN__CALL call = cn__enter(tensors[0][0]->ctx, NULL);
    if (!call.ctx || !are_parameters(call.ctx, op, tensors[0], n)) return false;
    cn_ctx *ctx = call.ctx;
    size_t room = (size_t)n * (size_t)op->n_out, bytes = 2 * room * sizeof(cn_tensor *);
    cn_tensor **all = cn__block_new(&ctx->memory, bytes);
    if (!all) return cn__no_memory(ctx, op->name);
    changes c = { all, all + room, 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) ok = add_update(&c, op, tensors, i, args);
    ok = ok && cn__update_all(ctx, c.of, c.to, c.n);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    cn__block_free(&ctx->memory, all, bytes);
    return ok;
}

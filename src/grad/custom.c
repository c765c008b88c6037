/* cn_custom_apply: functions with a gradient of their own. cn_checkpoint: functions that backward computes again. Both
   make one node, a view of the function's result, whose other operands are the tensors that get gradients. */
#include <stdio.h>

#include "grad/walk.h"
#include "ops/view/view.h"

/* ---- custom gradients ---- */

typedef struct custom_attrs {
    cn_custom fn;
} custom_attrs;

static void custom_grad(cn_grad_call *g)
{
    const custom_attrs *a = g->attrs;
    cn__outside out = cn__go_out(g->ctx);
    a->fn.backward(a->fn.user, g->in + 1, g->n_in - 1, g->out[0], g->out_grad[0], g->in_grad + 1);
    cn__come_back(g->ctx, out);
    for (int k = 1; k < g->n_in; k++)
        if (g->needs[k] && !g->in_grad[k]) g->in_grad[k] = cn_zeros_like(g->in[k]);
}

const cn_op cn__op_custom = {
    .name = "custom",
    .doc = "A user's function with a gradient of its own.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .variadic = true,
    .dtypes = CN_ANY,
    .free_dtype = UINT32_MAX,
    .not_differentiable = 1,
    .attr_size = sizeof(custom_attrs),
    .infer = cn__infer_same,
    .grad = custom_grad,
};

/* Begins a call of a program's function on a list of tensors, whose errors name what the function calls. */
static cn__call enter_function(cn_tensor *const *in, int n_in, const char *who)
{
    cn__call call = { NULL, false };
    for (int k = 0; k < n_in && in && !call.ctx; k++)
        if (in[k]) call = cn__enter(in[k]->ctx, NULL);
    bool ok = true;
    for (int k = 0; k < n_in && call.ctx && ok; k++) {
        char what[32];
        snprintf(what, sizeof what, "input %d", k);
        ok = cn__of_context(call.ctx, in[k], who, what);
    }
    if (ok) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

/* What fn returns, or NULL with an error if it is no tensor of this context. */
static cn_tensor *call_function(cn_ctx *ctx, cn_function fn, void *user, cn_tensor *const *in, int n_in,
                                const char *who)
{
    cn__outside out = cn__go_out(ctx);
    cn_tensor *y = fn(user, in, n_in);
    cn__come_back(ctx, out);
    return cn__of_context(ctx, y, who, "the tensor that the function returns") ? y : NULL;
}

/* Applies op to the result and the inputs. */
static cn_tensor *wrap(const cn_op *op, cn_tensor *result, cn_tensor *const *in, int n_in, const void *attrs,
                       const cn_arg *args)
{
    cn_ctx *ctx = result->ctx;
    size_t bytes = sizeof(cn_tensor *) * (size_t)(n_in + 1);
    cn_tensor **all = cn__block_new(&ctx->memory, bytes);
    if (!all) {
        cn__no_memory(ctx, op->name);
        return NULL;
    }
    all[0] = result;
    if (n_in) memcpy(all + 1, in, sizeof *all * (size_t)n_in);
    cn_tensor *y = cn_apply(op, all, n_in + 1, attrs, args);
    cn__block_free(&ctx->memory, all, bytes);
    return y;
}

cn_tensor *cn_custom_apply(const cn_custom *fn, cn_tensor *const *in, int n_in)
{
    CN__CALL call = enter_function(in, n_in, "custom_apply");
    if (!call.ctx) return NULL;
    if (!fn || !fn->forward || !fn->backward) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "custom_apply: forward and backward must be functions, got %s",
                 !fn ? "no descriptor" : "NULL");
        return NULL;
    }
    cn_ctx *ctx = call.ctx;
    cn_scope s = cn_scope_begin(ctx);
    custom_attrs a = { *fn };
    ctx->no_grad++;
    cn_tensor *result = call_function(ctx, a.fn.forward, a.fn.user, in, n_in, "custom_apply");
    ctx->no_grad--;
    cn_tensor *y = result ? wrap(&cn__op_custom, result, in, n_in, &a, NULL) : NULL;
    return cn_scope_return(ctx, s, y);
}

/* ---- recomputation ---- */

typedef struct checkpoint_attrs {
    cn_function fn;
    void *user;
    int64_t n_in; /* the function's inputs; after them the operands are the parameters that it used */
} checkpoint_attrs;

/* Runs the function again on detached inputs, with the same random numbers. Its nodes are not shared with the first
   run's. */
static cn_tensor *run_again(cn_grad_call *g, const checkpoint_attrs *a, cn_tensor **sources)
{
    cn_ctx *ctx = g->ctx;
    for (int k = 0; k < g->n_in - 1; k++) {
        sources[k] = k < a->n_in ? cn_detach(g->in[k + 1]) : g->in[k + 1];
        if (!sources[k]) return NULL;
        if (k < a->n_in && g->in[k + 1]->ref.node->needs_grad && !cn_set_requires_grad(sources[k], true)) return NULL;
    }
    uint64_t stream = ctx->next_stream;
    uint32_t variant = ctx->variant;
    int64_t no_grad = ctx->no_grad;
    ctx->next_stream = g->args[0].u;
    ctx->variant = ctx->next_variant++;
    if (!ctx->next_variant) ctx->next_variant = 1; /* 0 is what a program computes first */
    ctx->no_grad = 0;
    cn_tensor *y = call_function(ctx, a->fn, a->user, sources, (int)a->n_in, "checkpoint");
    ctx->no_grad = no_grad;
    ctx->variant = variant;
    ctx->next_stream = stream;
    return y;
}

static void checkpoint_grad(cn_grad_call *g)
{
    const checkpoint_attrs *a = g->attrs;
    cn_ctx *ctx = g->ctx;
    int n = g->n_in - 1, asked = 0;
    size_t bytes = sizeof(cn_tensor *) * 3 * (size_t)(n + 1);
    cn_tensor **sources = cn__block_new(&ctx->memory, bytes);
    if (!sources) {
        cn__no_memory(ctx, "checkpoint");
        return;
    }
    cn_tensor **wanted = sources + n + 1, **grads = wanted + n + 1;
    cn_tensor *y = run_again(g, a, sources);
    for (int k = 0; k < n && y; k++)
        if (g->needs[k + 1]) wanted[asked++] = sources[k];
    cn_grad_desc desc = { .gradients = g->out_grad, .create_graph = !ctx->no_grad, .allow_unused = true };
    if (y && asked && cn_grad(&y, 1, wanted, asked, grads, &desc)) {
        for (int k = 0, at = 0; k < n; k++) {
            if (!g->needs[k + 1]) continue;
            g->in_grad[k + 1] = grads[at] ? grads[at] : cn_zeros_like(g->in[k + 1]);
            at++;
        }
    }
    cn__block_free(&ctx->memory, sources, bytes);
}

const cn_op cn__op_checkpoint = {
    .name = "checkpoint",
    .doc = "A function whose backward computes it again.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .variadic = true,
    .dtypes = CN_ANY,
    .free_dtype = UINT32_MAX,
    .not_differentiable = 1,
    .attr_size = sizeof(checkpoint_attrs),
    .infer = cn__infer_same,
    .grad = checkpoint_grad,
};

typedef struct seen {
    cn__node *node;
    const void *walk_of; /* the field's value before: a walk may be using it */
} seen;

static bool enqueue(cn_ctx *ctx, cn__vec *queue, cn__node *n)
{
    if (!n || n->walk_of == queue) return true;
    if (!cn__push(&ctx->memory, queue, &(seen){ n, n->walk_of }, sizeof(seen))) return false;
    n->walk_of = queue;
    return true;
}

static bool add_parameter(cn_ctx *ctx, cn__vec *found, cn__node *n)
{
    if (!cn__vec_reserve(&ctx->memory, found, found->n + 1, sizeof(cn_tensor *))) return false;
    n->refs++;
    cn_tensor *t = cn__handle_new(ctx, (cn__ref){ n, 0 });
    if (t) ((cn_tensor **)found->v)[found->n++] = t;
    return t != NULL;
}

/* Finds the leaves, other than the inputs, that a gradient of y would reach. Marks the nodes on the way as spent: the
   second run computes their gradients. */
static bool find_parameters(cn_tensor *y, cn_tensor *const *in, int n_in, cn__vec *found)
{
    cn_ctx *ctx = y->ctx;
    cn__vec queue = { 0 };
    bool ok = enqueue(ctx, &queue, y->ref.node);
    for (size_t q = 0; q < queue.n && ok; q++) {
        cn__node *n = ((seen *)queue.v)[q].node;
        bool input = false;
        for (int k = 0; k < n_in; k++) input |= in[k]->ref.node == n;
        if (input || !n->needs_grad) continue;
        if (n->grad_leaf) {
            ok = add_parameter(ctx, found, n);
            continue;
        }
        n->spent = true;
        for (int k = 0; k < n->n_in && n->in && ok; k++) ok = enqueue(ctx, &queue, n->in[k].node);
    }
    for (size_t q = 0; q < queue.n; q++) ((seen *)queue.v)[q].node->walk_of = ((seen *)queue.v)[q].walk_of;
    cn__vec_free(&ctx->memory, &queue, sizeof(seen));
    return ok || cn__no_memory(ctx, "checkpoint");
}

static cn_tensor *checkpointed(cn_function fn, void *user, cn_tensor *const *in, int n_in)
{
    cn_ctx *ctx = in[0]->ctx;
    uint64_t stream = ctx->next_stream;
    cn_tensor *y = call_function(ctx, fn, user, in, n_in, "checkpoint");
    if (!y || !y->ref.node->needs_grad) return y;
    cn__vec all = { 0 };
    bool ok = cn__vec_reserve(&ctx->memory, &all, (size_t)n_in, sizeof(cn_tensor *));
    if (ok) {
        memcpy(all.v, in, sizeof(cn_tensor *) * (size_t)n_in);
        all.n = (size_t)n_in;
        ok = find_parameters(y, in, n_in, &all);
    }
    checkpoint_attrs a = { fn, user, n_in };
    cn_arg args[CN_MAX_ARGS] = { { .u = stream } };
    if (!ok) cn__no_memory(ctx, "checkpoint");
    cn_tensor *wrapped = ok ? wrap(&cn__op_checkpoint, y, all.v, (int)all.n, &a, args) : NULL;
    cn__vec_free(&ctx->memory, &all, sizeof(cn_tensor *));
    return wrapped;
}

cn_tensor *cn_checkpoint(cn_function fn, void *user, cn_tensor *const *in, int n_in)
{
    CN__CALL call = enter_function(in, n_in, "checkpoint");
    if (!call.ctx) return NULL;
    cn_ctx *ctx = call.ctx;
    if (!fn) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "checkpoint: fn must be a function, got NULL");
        return NULL;
    }
    cn_scope s = cn_scope_begin(ctx);
    return cn_scope_return(ctx, s, checkpointed(fn, user, in, n_in));
}

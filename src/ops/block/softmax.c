/* softmax and log_softmax with their backward operators. softmax: y = exp(x) / sum of exp(x) along an axis;
   log_softmax: its logarithm. If all elements are -inf the result is NaN, as in PyTorch. */
#include <math.h>

#include "ops/block/block.h"
#include "ops/block/rows_gpu.h"
#include "gpu/shaders.h"
#include "ops/kernels.h"

/* in: x; of the backward operators g and y, which must have the same shape. */
static bool infer(cn_infer *i)
{
    const cn__softmax_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (a->axis < 0 || a->axis >= (x->ndim ? x->ndim : 1))
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "dim must be ≥ 0 and below the number of dimensions, %d, got %lld",
                             x->ndim, (long long)a->axis);
    char s[96], t[96];
    if (i->n_in == 2 && !cn__same_shape(x, &i->in[1]->layout))
        return cn_infer_fail(i, CN_BAD_SHAPE, "the gradient must have the shape of the result %s, got %s",
                             cn__shape_text(&i->in[1]->layout, t, sizeof t), cn__shape_text(x, s, sizeof s));
    i->out[0] = *i->in[0];
    return true;
}

static cn_dims axis_of(const void *attrs)
{
    const cn__softmax_attrs *a = attrs;
    return CN_DIMS(a->axis);
}

/* A scalar is its own sum and maximum. */
static cn_tensor *sum_along(cn_tensor *x, const void *attrs)
{
    return x && cn_ndim(x) ? cn_sum(x, axis_of(attrs), true) : x;
}
static cn_tensor *max_along(cn_tensor *x, const void *attrs)
{
    return x && cn_ndim(x) ? cn_max(x, axis_of(attrs), true) : x;
}

/* Of permuted axes, a view in the order of memory is what the kernels read without a copy. */
static cn_tensor *arranged(const cn_op *op, cn_tensor *x, int axis, cn_dims order)
{
    cn_dims back = { .n = order.n };
    for (int d = 0; d < order.n; d++) back.v[order.v[d]] = d;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *view = cn_permute(x, order);
    cn_tensor *y = cn_apply(op, &view, 1, &(cn__softmax_attrs){ back.v[axis] }, NULL);
    return cn_scope_return(x->ctx, s, cn_permute(y, back));
}

static cn_tensor *along(const cn_op *op, cn_tensor *x, int64_t axis)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    const int ndim = cn_ndim(x), at = cn__axis(axis, ndim ? ndim : 1);
    if (at < 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dim must be from %d to %d for %d dimensions, got %lld", op->name,
                 ndim ? -ndim : -1, ndim ? ndim - 1 : 0, ndim, (long long)axis);
        return NULL;
    }
    cn_dims order;
    if (cn__memory_order(cn__layout(x), &order)) return arranged(op, x, at, order);
    return cn_apply(op, &x, 1, &(cn__softmax_attrs){ at }, NULL);
}

/* ---- on the GPU ---- */

static bool run_gpu(cn_gpu_call *c, const char *kernel, bool is_log)
{
    const cn__columns s = cn__columns_of(c->in[0].ndim, c->in[0].shape, ((const cn__softmax_attrs *)c->attrs)->axis);
    if (!c->in[0].numel) return true;
    const cn__gpu_rows r = cn__gpu_rows_of(c, s.outer * s.inner, s.n, s.inner);
    cn_gpu_param(c, s.outer);
    cn_gpu_param(c, s.n);
    cn_gpu_param(c, s.inner);
    return cn__gpu_run_rows(c, &r, cn__gpu_rows_groups(&r), cn__wgsl_softmax, kernel,
                            CN_GPU_HOLES(CN_GPU_FLAG("log", is_log)));
}

static bool softmax_gpu(cn_gpu_call *c) { return run_gpu(c, "forward", false); }
static bool log_softmax_gpu(cn_gpu_call *c) { return run_gpu(c, "forward", true); }
static bool softmax_backward_gpu(cn_gpu_call *c) { return run_gpu(c, "backward", false); }
static bool log_softmax_backward_gpu(cn_gpu_call *c) { return run_gpu(c, "backward", true); }

/* ---- softmax */

static void softmax_grad(cn_grad_call *g)
{
    g->in_grad[0] = cn_apply(&cn__op_softmax_backward, (cn_tensor *[]){ g->out_grad[0], g->out[0] }, 2, g->attrs, NULL);
}

static cn_tensor *softmax_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    if (!cn_numel(in[0])) return cn_clone(in[0]);
    cn_tensor *e = cn_exp(cn_sub(in[0], cn_detach(max_along(in[0], attrs))));
    return cn_div(e, sum_along(e, attrs));
}

static void softmax_cpu(const cn_kernel *k) { k->kernels->softmax.softmax[cn__f64_entry(k->in[0].dtype)](k); }

const cn_op cn__op_softmax = {
    .call = "softmax(Tensor input, int dim) -> Tensor",
    .name = "softmax",
    .doc = "exp(x) / sum of exp(x) along an axis.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__softmax_attrs),
    .infer = infer,
    .grad = softmax_grad,
    .compose = softmax_compose,
    .epilogue = true,
    .cpu = softmax_cpu,
    .gpu = softmax_gpu,
    .onnx = "Softmax",
    CN_CASES({ CN_IN(CN_S(3, 5)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(2, 7, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(4, 0, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(0, 4)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S0), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_RANGE(-60, 60, 3, 11)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(5, 6, 130)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(9, 701)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(130, 401)), .attrs = &(const cn__softmax_attrs){ 1 } }),
};

cn_tensor *cn_softmax(cn_tensor *x, int64_t axis) { return along(&cn__op_softmax, x, axis); }

/* dx = y (g - sum of g y). With d the gradient of dx: dg = y (d - sum of d y),
   dy = d (g - sum of g y) - g (sum of d y). */
static void softmax_backward_grad(cn_grad_call *g)
{
    cn_tensor *d = g->out_grad[0], *up = g->in[0], *y = g->in[1];
    if (g->needs[0]) g->in_grad[0] = cn_apply(&cn__op_softmax_backward, (cn_tensor *[]){ d, y }, 2, g->attrs, NULL);
    if (!g->needs[1]) return;
    cn_tensor *left = cn_mul(d, cn_sub(up, sum_along(cn_mul(up, y), g->attrs)));
    g->in_grad[1] = cn_sub(left, cn_mul(up, sum_along(cn_mul(d, y), g->attrs)));
}

static cn_tensor *softmax_backward_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs,
                                           const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn_mul(in[1], cn_sub(in[0], sum_along(cn_mul(in[0], in[1]), attrs)));
}

static void softmax_backward_cpu(const cn_kernel *k)
{
    k->kernels->softmax.softmax_backward[cn__f64_entry(k->in[0].dtype)](k);
}

const cn_op cn__op_softmax_backward = {
    .call = "_softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    .name = "softmax_backward",
    .doc = "Gradient of softmax, from the gradient g of its result and the result y.",
    .kind = CN_BLOCK,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__softmax_attrs),
    .infer = infer,
    .grad = softmax_backward_grad,
    .compose = softmax_backward_compose,
    .epilogue = true,
    .cpu = softmax_backward_cpu,
    .gpu = softmax_backward_gpu,
    CN_CASES({ CN_IN(CN_S(3, 5), CN_S(3, 5)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(2, 7, 3), CN_S(2, 7, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(4, 0), CN_S(4, 0)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S0, CN_S0), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(6, 301), CN_S(6, 301)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(17, 130), CN_S(17, 130)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(130, 401), CN_S(130, 401)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(3, 1045), CN_S(3, 1045)), .attrs = &(const cn__softmax_attrs){ 1 } }),
};

/* ---- log_softmax */

static void log_softmax_grad(cn_grad_call *g)
{
    g->in_grad[0] =
        cn_apply(&cn__op_log_softmax_backward, (cn_tensor *[]){ g->out_grad[0], g->out[0] }, 2, g->attrs, NULL);
}

static cn_tensor *log_softmax_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs,
                                      const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    if (!cn_numel(in[0])) return cn_clone(in[0]);
    cn_tensor *x = cn_sub(in[0], cn_detach(max_along(in[0], attrs)));
    return cn_sub(x, cn_log(sum_along(cn_exp(x), attrs)));
}

static void log_softmax_cpu(const cn_kernel *k) { k->kernels->softmax.log_softmax[cn__f64_entry(k->in[0].dtype)](k); }

const cn_op cn__op_log_softmax = {
    .call = "log_softmax(Tensor input, int dim) -> Tensor",
    .name = "log_softmax",
    .doc = "x - log(sum of exp(x)) along an axis.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__softmax_attrs),
    .infer = infer,
    .grad = log_softmax_grad,
    .compose = log_softmax_compose,
    .epilogue = true,
    .cpu = log_softmax_cpu,
    .gpu = log_softmax_gpu,
    .onnx = "LogSoftmax",
    CN_CASES({ CN_IN(CN_S(3, 5)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(2, 7, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(4, 0, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S0), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_RANGE(-60, 60, 3, 11)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(5, 6, 130)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(9, 701)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(3, 61, 300)), .attrs = &(const cn__softmax_attrs){ 1 } }),
};

cn_tensor *cn_log_softmax(cn_tensor *x, int64_t axis) { return along(&cn__op_log_softmax, x, axis); }

/* dx = g - exp(y) (sum of g). With d the gradient of dx: dg = d - sum of d exp(y), dy = -d exp(y) (sum of g). */
static void log_softmax_backward_grad(cn_grad_call *g)
{
    cn_tensor *d = g->out_grad[0], *de = cn_mul(d, cn_exp(g->in[1]));
    if (g->needs[0]) g->in_grad[0] = cn_sub(d, sum_along(de, g->attrs));
    if (g->needs[1]) g->in_grad[1] = cn_neg(cn_mul(de, sum_along(g->in[0], g->attrs)));
}

static cn_tensor *log_softmax_backward_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs,
                                               const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn_sub(in[0], cn_mul(cn_exp(in[1]), sum_along(in[0], attrs)));
}

static void log_softmax_backward_cpu(const cn_kernel *k)
{
    k->kernels->softmax.log_softmax_backward[cn__f64_entry(k->in[0].dtype)](k);
}

const cn_op cn__op_log_softmax_backward = {
    .call = "_log_softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    .name = "log_softmax_backward",
    .doc = "Gradient of log_softmax, from the gradient g of its result and the result y.",
    .kind = CN_BLOCK,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__softmax_attrs),
    .infer = infer,
    .grad = log_softmax_backward_grad,
    .compose = log_softmax_backward_compose,
    .epilogue = true,
    .cpu = log_softmax_backward_cpu,
    .gpu = log_softmax_backward_gpu,
    CN_CASES({ CN_IN(CN_S(3, 5), CN_S(3, 5)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(2, 7, 3), CN_S(2, 7, 3)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(4, 0), CN_S(4, 0)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S0, CN_S0), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(6, 301), CN_S(6, 301)), .attrs = &(const cn__softmax_attrs){ 1 } },
             { CN_IN(CN_S(17, 130), CN_S(17, 130)), .attrs = &(const cn__softmax_attrs){ 0 } },
             { CN_IN(CN_S(3, 61, 300), CN_S(3, 61, 300)), .attrs = &(const cn__softmax_attrs){ 1 } }),
};

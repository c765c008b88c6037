/* batch_norm and its backward operator. Each channel of (N, C, ...) is normalised over all other axes, with the
   statistics of the batch (training) or with running statistics (evaluation). */
#include <math.h>

#include "ops/block/block.h"
#include "ops/block/block_gpu.h"
#include "ops/kernels.h"

static void over_channels(const cn_kernel *k, cn_body body)
{
    const int64_t *shape = k->out[0].shape;
    cn__batch_image im = { .n = shape[0], .c = shape[1], .s = 1, .eps = k->args[0].f };
    for (int d = 2; d < k->out[0].ndim; d++) im.s *= shape[d];
    im.count = (double)im.n * (double)im.s;
    int64_t grain = cn__grain_of(4 * im.count);
    if (im.s == 1 && grain < 16) grain = 16; /* whole cache lines */
    cn_parallel(k, im.c, grain < CN__NORM_CHANNELS ? grain : CN__NORM_CHANNELS, body, &im);
    cn__kernel_done_all(k); /* not row by row: the rows of a channel lie apart, and so do an epilogue's operands */
}

static bool check(cn_infer *i, const cn_layout *x, int first)
{
    char s[96];
    if (x->ndim < 2)
        return cn_infer_fail(i, CN_BAD_SHAPE, "x must be (N, C, ...), got %s", cn__shape_text(x, s, sizeof s));
    for (int k = first; k < i->n_in; k++)
        if (i->in[k] && (i->in[k]->layout.ndim != 1 || i->in[k]->layout.shape[0] != x->shape[1]))
            return cn_infer_fail(i, CN_BAD_SHAPE,
                                 "weight and bias must have shape [%lld], one element a channel, got %s",
                                 (long long)x->shape[1], cn__shape_text(&i->in[k]->layout, s, sizeof s));
    return true;
}

/* ---- training */

static bool infer(cn_infer *i)
{
    const cn_layout *x = &i->in[0]->layout;
    if (!check(i, x, 1)) return false;
    i->out[0] = *i->in[0];
    for (int k = 1; k < 3; k++) {
        i->out[k].dtype = i->in[0]->dtype;
        i->out[k].layout = (cn_layout){ .ndim = 1, .shape = { x->shape[1] } };
    }
    return true;
}

static cn__norm described(const cn_tensor *x, const cn_arg *args)
{
    cn__norm n = { .centred = true, .eps = args[0].f };
    for (int d = 0; d < cn_ndim(x); d++)
        if (d != 1) n.axes.v[n.axes.n++] = d;
    n.others = n.axes; /* a parameter's gradient is summed over the normalised axes */
    return n;
}

/* The gradient that arrives through the mean and the variance, (C) each: d mean / dx = 1 / n,
   d var / dx = 2 (x - mean) / n. */
static cn_tensor *statistics_grad(const cn_grad_call *g)
{
    cn_tensor *x = g->in[0], *sum = NULL;
    const double n = (double)cn_numel(x) / (double)cn_size(x, 1);
    if (g->out_grad[1]) sum = cn__per_channel("batch_norm", g->out_grad[1], x);
    if (g->out_grad[2]) {
        cn_tensor *c = cn_mul_s(cn_sub(x, cn__per_channel("batch_norm", g->out[1], x)), 2);
        c = cn_mul(c, cn__per_channel("batch_norm", g->out_grad[2], x));
        sum = sum ? cn_add(sum, c) : c;
    }
    return cn_expand(cn_mul_s(sum, 1 / n), cn_shape(x));
}

static void grad(cn_grad_call *g)
{
    cn__norm_backward_attrs b = { .weight = g->needs[1], .bias = g->needs[2] };
    cn_tensor *out[CN_MAX_OUT] = { 0 };
    if (g->out_grad[0] && !cn_apply_n(&cn__op_batch_norm_backward,
                                      (cn_tensor *[]){ g->out_grad[0], g->in[0], g->in[1] }, 3, &b, g->args, out))
        return;
    if (g->needs[0] && (g->out_grad[1] || g->out_grad[2])) {
        cn_tensor *s = statistics_grad(g);
        out[0] = out[0] ? cn_add(out[0], s) : s;
    }
    for (int k = 0; k < 3; k++)
        if (g->needs[k]) g->in_grad[k] = out[k] ? out[k] : cn_zeros_like(g->in[k]);
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs;
    const cn__norm n = described(in[0], args);
    return cn__norm_define(&n, in[0], cn__per_channel("batch_norm", in[1], in[0]),
                           cn__per_channel("batch_norm", in[2], in[0]));
}

static void cpu(const cn_kernel *k)
{
    over_channels(k, k->kernels->batch_norm.forward[cn__f64_entry(k->in[0].dtype)]);
}

const cn_op cn__op_batch_norm = {
    .call = "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
            "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    .name = "batch_norm",
    .doc = "Normalises each channel of (N, C, ...) over the batch; also returns its mean and (biased) variance.",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 3,
    .optional = 6,
    .infer = infer,
    .grad = grad,
    .compose = compose,
    .epilogue = true,
    .cpu = cpu,
    .gpu = cn__gpu_batch_norm,
    CN_CASES({ CN_IN(CN_S(4, 3, 5), CN_S(3), CN_S(3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(7, 5), CN_S(5), CN_ABSENT), CN_ARGS({ 1e-3 }) },
             { CN_IN(CN_S(2, 3, 2, 2), CN_ABSENT, CN_ABSENT), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(0, 3, 2), CN_S(3), CN_S(3)),
               CN_ARGS({ 1e-5 }),
               .no_gradient_check = true /* the mean of nothing is NaN */ },
             { CN_IN(CN_S(9, 70), CN_S(70), CN_S(70)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(3, 37, 5, 7), CN_S(37), CN_S(37)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(2, 3, 23, 29), CN_S(3), CN_S(3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(3, 2, 37, 41), CN_S(2), CN_S(2)),
               CN_ARGS({ 1e-5 }),
               .no_gradient_check = true /* many elements: a GPU cuts such channels into parts */ }),
};

#define BACK(eps, ...) .attrs = &(const cn__norm_backward_attrs){ __VA_ARGS__ }, CN_ARGS({ eps })

/* ---- backward: g, x, weight → dx, dweight, dbias */

static bool backward_infer(cn_infer *i)
{
    const cn__norm_backward_attrs *a = i->attrs;
    const cn_layout *x = &i->in[1]->layout;
    if (!cn__expect_shape(i, "the gradient", i->in[0], x)) return false;
    if (!check(i, x, 2)) return false;
    i->out[0] = *i->in[1];
    for (int k = 1; k < 3; k++) {
        i->out[k].dtype = i->in[1]->dtype;
        i->out[k].layout = (cn_layout){ .ndim = 1, .shape = { (k == 1 ? a->weight : a->bias) ? x->shape[1] : 0 } };
    }
    return true;
}

static void backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    (void)ctx, (void)attrs;
    const cn__norm n = described(in[1], args);
    cn__norm_backward_define(&n, in[0], in[1], cn__per_channel("batch_norm_backward", in[2], in[1]), out);
}
static void backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, backward_define); }
static void backward_cpu(const cn_kernel *k)
{
    over_channels(k, k->kernels->batch_norm.backward[cn__f64_entry(k->in[0].dtype)]);
}

const cn_op cn__op_batch_norm_backward = {
    .call = "_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, float eps) -> (Tensor input, "
            "Tensor weight, Tensor bias)",
    .name = "batch_norm_backward",
    .doc = "Gradients of batch_norm to x, weight and bias, from g, x and weight.",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 3,
    .optional = 4,
    .attr_size = sizeof(cn__norm_backward_attrs),
    .infer = backward_infer,
    .grad = backward_grad,
    .epilogue = true,
    .cpu = backward_cpu,
    .gpu = cn__gpu_batch_norm_backward,
    CN_CASES({ CN_IN(CN_S(4, 3, 5), CN_S(4, 3, 5), CN_S(3)), BACK(1e-5, 0, 1, 1) },
             { CN_IN(CN_S(7, 5), CN_S(7, 5), CN_ABSENT), BACK(1e-3, 0, 0, 1) },
             { CN_IN(CN_S(0, 3, 2), CN_S(0, 3, 2), CN_S(3)), BACK(1e-5, 0, 1, 1) },
             { CN_IN(CN_S(3, 37, 5, 7), CN_S(3, 37, 5, 7), CN_S(37)), BACK(1e-5, 0, 1, 1) },
             { CN_IN(CN_S(2, 3, 23, 29), CN_S(2, 3, 23, 29), CN_S(3)), BACK(1e-5, 0, 1, 1) },
             { CN_IN(CN_S(3, 2, 37, 41), CN_S(3, 2, 37, 41), CN_S(2)),
               BACK(1e-5, 0, 1, 1),
               .no_gradient_check = true /* many elements */ }),
};

/* ---- evaluation: (x - mean) / sqrt(var + eps) * weight + bias, with mean, var, weight and bias (C) */

static cn_tensor *eval_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs;
    if (cn_ndim(in[0]) < 2) {
        char s[96];
        cn__fail(ctx, CN_BAD_SHAPE, "batch_norm: x must be (N, C, ...), got %s",
                 cn__shape_text(cn__layout(in[0]), s, sizeof s));
        return NULL;
    }
    cn_tensor *p[5];
    for (int k = 1; k < 5; k++) p[k] = cn__per_channel("batch_norm", in[k], in[0]);
    if (cn_failed(ctx)) return NULL;
    cn_tensor *scale = cn_rsqrt(cn_add_s(p[4], args[0].f));
    if (p[1]) scale = cn_mul(scale, p[1]);
    cn_tensor *y = cn_mul(cn_sub(in[0], p[3]), scale);
    return cn__as(p[2] ? cn_add(y, p[2]) : y, cn__dtype(in[0]));
}

const cn_op cn__op_batch_norm_eval = {
    .call = "_batch_norm_eval(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps) -> "
            "Tensor",
    .name = "batch_norm_eval",
    .doc = "batch_norm with given statistics: x, weight, bias, mean, variance.",
    .kind = CN_COMPOSITE,
    .n_in = 5,
    .n_out = 1,
    .optional = 6,
    .compose = eval_compose,
    .onnx = "BatchNormalization",
    CN_CASES({ CN_IN(CN_S(4, 3, 5), CN_S(3), CN_S(3), CN_S(3), CN_RANGE(0.5, 2, 3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(7, 5), CN_ABSENT, CN_S(5), CN_S(5), CN_RANGE(0.5, 2, 5)), CN_ARGS({ 1e-3 }) },
             { CN_IN(CN_S(0, 3, 2), CN_S(3), CN_ABSENT, CN_S(3), CN_RANGE(0.5, 2, 3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(3, 7, 9, 11), CN_S(7), CN_S(7), CN_S(7), CN_RANGE(0.5, 2, 7)), CN_ARGS({ 1e-5 }) }),
};

/* running = (1 - momentum) running + momentum value */
static bool update(cn_tensor *running, cn_tensor *value, double momentum)
{
    if (!running) return true;
    return cn_assign(running, cn_add(cn_mul_s(running, 1 - momentum), cn_mul_s(value, momentum)));
}

static cn_tensor *train(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_batch_norm_desc *desc,
                        const cn_arg *args, double count)
{
    cn_tensor *out[CN_MAX_OUT], *in[3] = { x, weight, bias };
    const cn_dtype t = cn__dtype(x);
    if (t == CN_F16 || t == CN_BF16) /* statistics are not rounded to halves */
        for (int k = 0; k < 3; k++) in[k] = cn__as(in[k], CN_F32);
    if (!cn_apply_n(&cn__op_batch_norm, in, 3, NULL, args, out)) return NULL;
    out[0] = cn__as(out[0], t);
    if (!count || (!desc->running_mean && !desc->running_var)) return out[0];
    cn_no_grad_begin(x->ctx);
    const double momentum = desc->momentum != 0 ? desc->momentum : 0.1;
    const cn__norm n = described(x, args);
    cn_tensor *mean = out[1] ? out[1] : cn_mean(x, n.axes, false); /* without a kernel the device composes only y */
    cn_tensor *var = out[2] ? out[2] : cn_var(x, n.axes, 0, false);
    bool ok = update(desc->running_mean, mean, momentum) &&
              update(desc->running_var, cn_mul_s(var, count / (count - 1)), momentum); /* unbiased */
    cn_no_grad_end(x->ctx);
    return ok ? out[0] : NULL;
}

cn_tensor *cn_batch_norm(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_batch_norm_desc *desc)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_batch_norm_desc none = { 0 };
    if (!desc) desc = &none;
    cn_arg args[CN_MAX_ARGS] = { { .f = desc->eps != 0 ? desc->eps : 1e-5 } };
    if (!desc->training) {
        if (!desc->running_mean || !desc->running_var)
            return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                            "batch_norm: without training, running_mean and running_var must be given"),
                   NULL;
        return cn_apply(&cn__op_batch_norm_eval,
                        (cn_tensor *[]){ x, weight, bias, desc->running_mean, desc->running_var }, 5, NULL, args);
    }
    const double channels = cn_ndim(x) > 1 ? (double)cn_size(x, 1) : 1;
    const double count = channels > 0 ? (double)cn_numel(x) / channels : 0;
    if (count == 1)
        return cn__fail(x->ctx, CN_BAD_SHAPE, "batch_norm: training needs more than one value a channel, got 1"), NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, train(x, weight, bias, desc, args, count));
}

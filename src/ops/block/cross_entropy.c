/* cross_entropy: nll_loss of log_softmax in one kernel, and its backward operator.
   Logits (N, C), (N, C, d...) or (C); targets (N), (N, d...) or a number. The second result is lse, the log of the sum
   of exp(logits) for each target; it is 0 for an ignored target. The reduction `mean` divides by the summed weights of
   the targets that count; it is NaN if none does. Weights of classes have no gradient. */
#include <math.h>

#include "ops/block/block.h"
#include "ops/block/block_gpu.h"
#include "ops/kernels.h"

static double weight_of(const void *w, bool wide, int64_t c)
{
    return !w ? 1 : wide ? ((const double *)w)[c] : ((const float *)w)[c];
}

/* first: the number of the logits among the operands; target and weight follow. */
static cn__cross_entropy loss_of(const cn_kernel *k, int first)
{
    cn__cross_entropy l = { .a = k->attrs,
               .target = k->in[first + 1].data,
               .target_dtype = k->in[first + 1].dtype,
               .smoothing = k->args[0].f,
               .total = 1 };
    l.c = cn__columns_of(k->in[first].ndim, k->in[first].shape, cn__class_axis(k->in[first].ndim));
    l.none = l.a->reduction == CN_NONE;
    const void *w = k->in[first + 2].data;
    const bool wide = k->in[first].dtype == CN_F64;
    for (int64_t c = 0; c < l.c.n; c++) l.weight_sum += weight_of(w, wide, c);
    if (l.a->reduction != CN_MEAN) return l;
    l.total = 0;
    for (int64_t i = 0; i < k->in[first + 1].numel; i++) {
        const int64_t t = cn__target_of(k, &l, i);
        if (t >= 0) l.total += weight_of(w, wide, t);
    }
    return l;
}

static double work_of(const cn__cross_entropy *l)
{
    return 4 * (double)l->c.n * (double)(l->c.inner < CN__COLUMNS ? l->c.inner : CN__COLUMNS);
}

static void cpu(const cn_kernel *k)
{
    cn__cross_entropy l = loss_of(k, 0);
    l.faults = true;
    l.each = l.none ? NULL : k->scratch;
    const cn_body body = k->kernels->cross_entropy.forward[cn__f64_entry(k->in[0].dtype)];
    cn_parallel(k, l.c.outer * l.c.blocks, cn__grain_of(work_of(&l)), body, &l);
    if (l.none) return;
    double sum = 0;
    for (int64_t i = 0; i < k->in[1].numel; i++) sum += l.each[i];
    cn__store_f64(k->out[0].dtype, k->out[0].data, sum / l.total);
}

static size_t scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    const cn__loss_attrs *a = k->attrs;
    return a->reduction == CN_NONE ? 0 : sizeof(double) * (size_t)k->in[1].numel;
}

static void backward_cpu(const cn_kernel *k)
{
    cn__cross_entropy l = loss_of(k, 1);
    const cn_body body = k->kernels->cross_entropy.backward[cn__f64_entry(k->in[1].dtype)];
    cn_parallel(k, l.c.outer * l.c.blocks, cn__grain_of(work_of(&l)), body, &l);
}

/* ---- shapes */

static bool infer(cn_infer *i)
{
    const cn__loss_attrs *a = i->attrs;
    if (!cn__loss_fits(i->ctx, i->op->name, a, i->in[0], i->in[1], i->in[2])) return false;
    for (int k = 0; k < 2; k++) i->out[k] = (cn_meta){ i->in[0]->dtype, i->in[1]->layout };
    if (a->reduction != CN_NONE) i->out[0].layout.ndim = 0;
    return true;
}

/* ---- in simpler operators */

static void define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    (void)ctx;
    const int axis = cn__class_axis(cn_ndim(in[0]));
    out[0] = cn__nll(cn_log_softmax(in[0], axis), in[1], in[2], attrs, args[0].f);
    out[1] = cn__zero_where(cn_logsumexp(in[0], CN_DIMS(axis), false), cn__ignored(in[1], attrs));
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    return cn__nll(cn_log_softmax(in[0], cn__class_axis(cn_ndim(in[0]))), in[1], in[2], attrs, args[0].f);
}

/* ---- cross_entropy */

#define LOSS(smoothing, ...) .attrs = &(const cn__loss_attrs){ __VA_ARGS__ }, CN_ARGS({ smoothing })

static void grad(cn_grad_call *g)
{
    if (g->out_grad[1]) {
        cn__grad_by_definition(g, define);
        return;
    }
    cn_tensor *in[5] = { g->out_grad[0], g->in[0], g->in[1], g->in[2], g->out[1] };
    g->in_grad[0] = cn_apply(&cn__op_cross_entropy_backward, in, 5, g->attrs, g->args);
}

const cn_op cn__op_cross_entropy = {
    .call = "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
            "mean|sum|none reduction=mean, float label_smoothing=0) -> Tensor",
    .name = "cross_entropy",
    .doc = "-log softmax(logits)[target], weighted, smoothed and reduced; and log of sum of exp(logits).",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 2,
    .optional = 4,
    .free_dtype = 2,
    .not_differentiable = 6,
    .checks_index = true,
    .attr_size = sizeof(cn__loss_attrs),
    .infer = infer,
    .grad = grad,
    .compose = compose,
    .cpu = cpu,
    .gpu = cn__gpu_cross_entropy,
    .scratch = scratch,
    .onnx = "SoftmaxCrossEntropyLoss",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(5, 4), CN_ABSENT), LOSS(0, CN_MEAN, 0, 0) },
             { CN_IN(CN_S(6, 3), CN_IDX(3, 6), CN_RANGE(0.5, 2, 3)), LOSS(0.1, CN_MEAN, 1, 1) },
             { CN_IN(CN_S(2, 4, 3), CN_IDX(4, 2, 3), CN_RANGE(0.5, 2, 4)), LOSS(0.2, CN_NONE, 1, 0) },
             { CN_IN(CN_S(5), CN_IDX0(5), CN_ABSENT), LOSS(0, CN_SUM, 0, 0) },
             { CN_IN(CN_S(0, 5), CN_IDX(5, 0), CN_ABSENT), LOSS(0, CN_SUM, 0, 0) },
             { CN_IN(CN_S(2, 5, 0), CN_IDX(5, 2, 0), CN_ABSENT), LOSS(0, CN_NONE, 0, 0) },
             { CN_IN(CN_S(40, 77), CN_IDX(77, 40), CN_ABSENT), LOSS(0, CN_MEAN, 1, 7) },
             { CN_IN(CN_S(3, 6, 5, 31), CN_IDX(6, 3, 5, 31), CN_RANGE(0.5, 2, 6)), LOSS(0.1, CN_MEAN, 1, 2) },
             { CN_IN(CN_S(160, 101), CN_IDX(101, 160), CN_RANGE(0.5, 2, 101)), LOSS(0.1, CN_MEAN, 1, 3) }),
};

static bool backward_infer(cn_infer *i)
{
    const cn__loss_attrs *a = i->attrs;
    if (!cn__loss_fits(i->ctx, i->op->name, a, i->in[1], i->in[2], i->in[3])) return false;
    const cn_layout one = { .ndim = 0 }, *target = &i->in[2]->layout;
    if (!cn__expect_shape(i, "the gradient", i->in[0], a->reduction == CN_NONE ? target : &one) ||
        !cn__expect_shape(i, "log_sum", i->in[4], target))
        return false;
    i->out[0] = *i->in[1];
    return true;
}

/* in: g, logits, target, weight, lse; dx = g (P (A + W) - (A [c = t] + B_c)), A = (1 - s) w_t, B = s / C · w,
   W = sum of B */
static void backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    const cn__loss_attrs *a = attrs;
    cn_tensor *x = in[1], *target = in[2], *weight = in[3], *skip = cn__ignored(target, a);
    const int axis = cn__class_axis(cn_ndim(x));
    const int64_t classes = cn_size(x, axis);
    cn_tensor *w = cn__target_weights(x, target, weight, skip), *g = in[0];
    if (a->reduction == CN_MEAN) g = cn_div(g, cn_sum(w, CN_ALL, false));
    if (a->reduction != CN_NONE) g = cn_expand(g, cn_shape(target));
    g = cn_unsqueeze(cn__zero_where(g, skip), axis);
    cn_tensor *index = cn_arange(ctx, CN_I64, 0, (double)classes, 1);
    cn_tensor *hot = cn_cast(cn_eq(cn_unsqueeze(target, axis), cn__class_weights(index, x)), cn__dtype(x));
    cn_tensor *hard = cn_mul_s(cn_unsqueeze(w, axis), 1 - args[0].f);
    cn_tensor *soft =
        cn_mul_s(weight ? weight : cn_ones(ctx, cn__dtype(x), CN_DIMS(classes)), args[0].f / (double)classes);
    cn_tensor *p = cn_mul(cn_exp(cn_sub(x, cn_unsqueeze(in[4], axis))), cn_add(hard, cn_sum(soft, CN_ALL, false)));
    out[0] = cn_mul(g, cn_sub(p, cn_add(cn_mul(hot, hard), cn__class_weights(soft, x))));
}

static cn_tensor *backward_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    cn_tensor *out;
    backward_define(ctx, in, attrs, args, &out);
    return out;
}
static void backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, backward_define); }

const cn_op cn__op_cross_entropy_backward = {
    .call = "_cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, Tensor log_sum, "
            "int ignore_index, mean|sum|none reduction, float label_smoothing) -> Tensor",
    .name = "cross_entropy_backward",
    .doc = "Gradient of cross_entropy to the logits, from g, logits, target, weight and lse.",
    .kind = CN_BLOCK,
    .n_in = 5,
    .n_out = 1,
    .optional = 8,
    .free_dtype = 4,
    .not_differentiable = 12,
    .in_place = 2,
    .attr_size = sizeof(cn__loss_attrs),
    .infer = backward_infer,
    .grad = backward_grad,
    .compose = backward_compose,
    .cpu = backward_cpu,
    .gpu = cn__gpu_cross_entropy_backward,
    CN_CASES(
        { CN_IN(CN_S0, CN_S(4, 5), CN_IDX(5, 4), CN_ABSENT, CN_RANGE(1, 3, 4)), LOSS(0, CN_MEAN, 0, 0) },
        { CN_IN(CN_S0, CN_S(6, 3), CN_IDX(3, 6), CN_RANGE(0.5, 2, 3), CN_RANGE(1, 3, 6)), LOSS(0.1, CN_MEAN, 1, 1) },
        { CN_IN(CN_S(2, 3), CN_S(2, 4, 3), CN_IDX(4, 2, 3), CN_RANGE(0.5, 2, 4), CN_RANGE(1, 3, 2, 3)),
          LOSS(0.2, CN_NONE, 1, 0) },
        { CN_IN(CN_S0,
                  CN_S(5),
                  CN_IDX0(5),
                  CN_ABSENT,
                  CN_RANGE0(1, 3)),
          LOSS(0, CN_SUM, 0, 0) },
        { CN_IN(CN_S0, CN_S(0, 5), CN_IDX(5, 0), CN_ABSENT, CN_S(0)), LOSS(0, CN_SUM, 0, 0) },
        { CN_IN(CN_S0, CN_S(3, 6, 5, 31), CN_IDX(6, 3, 5, 31), CN_RANGE(0.5, 2, 6), CN_RANGE(1, 3, 3, 5, 31)),
          LOSS(0.1, CN_SUM, 1, 2) },
        { CN_IN(CN_S0, CN_S(160, 101), CN_IDX(101, 160), CN_RANGE(0.5, 2, 101), CN_RANGE(4, 6, 160)),
          LOSS(0.1, CN_MEAN, 1, 3) }),
};

static const cn_loss_desc usual = { .reduction = CN_MEAN };

cn_tensor *cn_cross_entropy(cn_tensor *logits, cn_tensor *target, const cn_loss_desc *desc)
{
    CN__CALL call = cn__call_tensor(logits);
    if (!call.ctx || !cn__of_context(logits->ctx, target, __func__, "target")) return NULL;
    if (!desc) desc = &usual;
    cn_tensor *in[3] = { logits, target, desc->weight };
    /* A target of probabilities ignores nothing; a target of indices ignores -100 by default. */
    const bool soft = cn_dtype_is_float(cn__dtype(target));
    const cn__loss_attrs a = { desc->reduction, !soft || desc->has_ignore,
                               desc->has_ignore ? desc->ignore_index : -100 };
    cn_arg args[CN_MAX_ARGS] = { { .f = desc->label_smoothing } };
    if (!(desc->label_smoothing >= 0 && desc->label_smoothing <= 1)) {
        cn__fail(logits->ctx, CN_BAD_ARGUMENT, "cross_entropy: label_smoothing must be from 0 to 1, got %g",
                 desc->label_smoothing);
        return NULL;
    }
    return cn_apply(soft ? &cn__op_cross_entropy_soft : &cn__op_cross_entropy, in, 3, &a, args);
}

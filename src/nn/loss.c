/* Losses of differences and of probabilities. Each is made of elementwise operators and a reduction; the planner fuses
   them. */
#include "nn/loss.h"

#include <math.h>

#define LOG_2PI 1.83787706640934548356

/* ---- functions that all losses share ---- */

static bool check_begin(cn__loss *l, const char *who, cn_tensor *input, cn_reduction reduction)
{
    if (!cn_dtype_is_float(cn__dtype(input)))
        return cn__fail(l->ctx, CN_BAD_DTYPE, "%s: the input must be of a floating type, got %s", who,
                        cn_dtype_name(cn__dtype(input)));
    if (reduction != CN_MEAN && reduction != CN_SUM && reduction != CN_NONE)
        return cn__fail(l->ctx, CN_BAD_ARGUMENT, "%s: reduction must be CN_MEAN, CN_SUM or CN_NONE, got %d", who,
                        (int)reduction);
    return true;
}

bool cn__loss_begin(cn__loss *l, const char *who, cn_tensor *input, const cn_tensor *other, cn_reduction reduction)
{
    if (!input && cn__alive_in(other, who)) return cn__of_context(other->ctx, input, who, "the input");
    *l = (cn__loss){ .who = who, .reduction = reduction, .call = cn__enter_tensor(input, who) };
    l->ctx = l->call.ctx;
    if (!l->ctx) return false;
    l->scope = cn_scope_begin(l->ctx);
    if (check_begin(l, who, input, reduction)) return true;
    cn__leave(&l->call);
    return false;
}

cn_tensor *cn__loss_end(cn__loss *l, cn_tensor *each)
{
    cn_tensor *loss = each;
    if (each && l->reduction == CN_MEAN) loss = cn_mean(each, CN_ALL, false);
    if (each && l->reduction == CN_SUM) loss = cn_sum(each, CN_ALL, false);
    loss = cn_scope_return(l->ctx, l->scope, loss);
    cn__leave(&l->call);
    return loss;
}

bool cn__loss_alike(cn__loss *l, cn_tensor *x, cn_tensor *y, const char *name)
{
    char s[96], t[96];
    if (!cn__of_context(l->ctx, y, l->who, name)) return false;
    return cn__same_shape(cn__layout(x), cn__layout(y)) ||
           cn__fail(l->ctx, CN_BAD_SHAPE, "%s: %s must have the input's shape %s, got %s", l->who, name,
                    cn__shape_text(cn__layout(x), s, sizeof s), cn__shape_text(cn__layout(y), t, sizeof t));
}

bool cn__loss_spreads(cn__loss *l, cn_tensor *x, cn_tensor *w, const char *name)
{
    char s[96], t[96];
    if (!w) return true;
    if (!cn__of_context(l->ctx, w, l->who, name)) return false;
    const cn_layout *to = cn__layout(x), *from = cn__layout(w);
    const int skip = to->ndim - from->ndim;
    bool fits = skip >= 0;
    for (int d = 0; d < from->ndim && fits; d++) fits = from->shape[d] == 1 || from->shape[d] == to->shape[skip + d];
    return fits || cn__fail(l->ctx, CN_BAD_SHAPE, "%s: %s must broadcast to the input's shape %s, got %s", l->who, name,
                            cn__shape_text(to, s, sizeof s), cn__shape_text(from, t, sizeof t));
}

/* ---- differences ---- */

cn_tensor *cn_mse_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc)
{
    cn__loss l;
    if (!cn__loss_begin(&l, "mse_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool fits = cn__loss_alike(&l, input, target, "target");
    return cn__loss_end(&l, fits ? cn_square(cn_sub(input, target)) : NULL);
}

cn_tensor *cn_l1_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc)
{
    cn__loss l;
    if (!cn__loss_begin(&l, "l1_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool fits = cn__loss_alike(&l, input, target, "target");
    return cn__loss_end(&l, fits ? cn_abs(cn_sub(input, target)) : NULL);
}

extern const cn_op cn__op_huber;

static cn_tensor *huber(cn_tensor *input, cn_tensor *target, double delta)
{
    cn_tensor *d = cn_sub(input, target);
    return cn_apply(&cn__op_huber, &d, 1, NULL, (cn_arg[CN_MAX_ARGS]){ { .f = delta } });
}

static bool is_positive(cn__loss *l, const char *name, double v)
{
    return (v > 0 && isfinite(v)) ||
           cn__fail(l->ctx, CN_BAD_ARGUMENT, "%s: %s must be finite and > 0, got %g", l->who, name, v);
}

cn_tensor *cn_smooth_l1_loss(cn_tensor *input, cn_tensor *target, const cn_smooth_l1_desc *desc)
{
    cn__loss l;
    const double beta = desc && desc->beta != 0 ? desc->beta : 1;
    if (!cn__loss_begin(&l, "smooth_l1_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool fits = is_positive(&l, "beta", beta) && cn__loss_alike(&l, input, target, "target");
    return cn__loss_end(&l, fits ? cn_mul_s(huber(input, target, beta), 1 / beta) : NULL);
}

cn_tensor *cn_huber_loss(cn_tensor *input, cn_tensor *target, const cn_huber_desc *desc)
{
    cn__loss l;
    const double delta = desc && desc->delta != 0 ? desc->delta : 1;
    if (!cn__loss_begin(&l, "huber_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool fits = is_positive(&l, "delta", delta) && cn__loss_alike(&l, input, target, "target");
    return cn__loss_end(&l, fits ? huber(input, target, delta) : NULL);
}

/* ---- probabilities ---- */

extern const cn_op cn__op_binary_cross_entropy;

static const cn_bce_desc usual_bce = { .reduction = CN_MEAN };

static cn_tensor *bce(cn__loss *l, cn_tensor *x, cn_tensor *target, const cn_bce_desc *desc)
{
    if (desc->pos_weight) {
        cn__fail(l->ctx, CN_BAD_ARGUMENT, "%s: pos_weight must be NULL; only bce_with_logits_loss has it", l->who);
        return NULL;
    }
    if (!cn__loss_alike(l, x, target, "target") || !cn__loss_spreads(l, x, desc->weight, "weight")) return NULL;
    cn_tensor *weight = desc->weight ? desc->weight : cn__weak(x, 1);
    return cn_apply(&cn__op_binary_cross_entropy, (cn_tensor *[]){ x, target, weight }, 3, NULL, NULL);
}

cn_tensor *cn_bce_loss(cn_tensor *input, cn_tensor *target, const cn_bce_desc *desc)
{
    cn__loss l;
    if (!desc) desc = &usual_bce;
    if (!cn__loss_begin(&l, "bce_loss", input, target, desc->reduction)) return NULL;
    return cn__loss_end(&l, bce(&l, input, target, desc));
}

/* (1 - t) x - (1 + (w - 1) t) log sigmoid(x), where w is pos_weight */
static cn_tensor *bce_with_logits(cn__loss *l, cn_tensor *x, cn_tensor *target, const cn_bce_desc *desc)
{
    if (!cn__loss_alike(l, x, target, "target") || !cn__loss_spreads(l, x, desc->weight, "weight") ||
        !cn__loss_spreads(l, x, desc->pos_weight, "pos_weight"))
        return NULL;
    cn_tensor *log = cn_log_sigmoid(x);
    if (desc->pos_weight) log = cn_mul(log, cn_add_s(cn_mul(cn_sub_s(desc->pos_weight, 1), target), 1));
    cn_tensor *each = cn_sub(cn_mul(cn_rsub_s(target, 1), x), log);
    return desc->weight ? cn_mul(each, desc->weight) : each;
}

cn_tensor *cn_bce_with_logits_loss(cn_tensor *input, cn_tensor *target, const cn_bce_desc *desc)
{
    cn__loss l;
    if (!desc) desc = &usual_bce;
    if (!cn__loss_begin(&l, "bce_with_logits_loss", input, target, desc->reduction)) return NULL;
    return cn__loss_end(&l, bce_with_logits(&l, input, target, desc));
}

cn_tensor *cn_kl_div(cn_tensor *input, cn_tensor *target, const cn_kl_div_desc *desc)
{
    cn__loss l;
    const cn_reduction reduction = desc ? desc->reduction : CN_MEAN;
    const bool batch = reduction == CN_BATCHMEAN;
    if (!cn__loss_begin(&l, "kl_div", input, target, batch ? CN_SUM : reduction)) return NULL;
    cn_tensor *each = NULL;
    if (cn__loss_alike(&l, input, target, "target")) {
        cn_tensor *log = target;
        /* where the target is 0, log 1 makes 0 log 0 = 0 */
        if (!desc || !desc->log_target) log = cn_log(cn_where(cn_eq_s(target, 0), cn__weak(target, 1), target));
        cn_tensor *p = desc && desc->log_target ? cn_exp(target) : target;
        each = cn_mul(p, cn_sub(log, input));
    }
    const double samples = cn_ndim(input) > 0 ? (double)cn_size(input, 0) : 1;
    cn_tensor *loss = cn__loss_end(&l, each);
    return batch ? cn_div_s(loss, samples) : loss;
}

/* The variance in a shape that broadcasts against x (..., D): it may be (..., D), (..., 1) or (...). NULL: an error. */
static cn_tensor *variance_of(cn__loss *l, cn_tensor *x, cn_tensor *variance)
{
    char s[96], t[96];
    if (!cn__of_context(l->ctx, variance, l->who, "var")) return NULL;
    const cn_layout *of = cn__layout(x), *v = cn__layout(variance);
    cn_layout narrow = *of;
    if (cn__same_shape(of, v)) return variance;
    if (of->ndim > 0) narrow.shape[of->ndim - 1] = 1;
    if (of->ndim > 0 && cn__same_shape(&narrow, v)) return variance;
    narrow.ndim--;
    if (of->ndim > 0 && cn__same_shape(&narrow, v)) return cn_unsqueeze(variance, -1);
    cn__fail(l->ctx, CN_BAD_SHAPE,
             "%s: var must be %s as the input, or have 1 as its last size, or lack the last axis, got %s", l->who,
             cn__shape_text(of, t, sizeof t), cn__shape_text(v, s, sizeof s));
    return NULL;
}

/* A negative v stays: the logarithm of such a variance is NaN. */
cn_tensor *cn__loss_raised(cn_tensor *v, double eps)
{
    cn_tensor *low = cn_logical_and(cn_ge_s(v, 0), cn_lt_s(v, eps));
    return cn_where(low, cn_add_s(cn_sub(v, cn_detach(v)), eps), v);
}

static cn_tensor *gaussian(cn__loss *l, cn_tensor *input, cn_tensor *target, cn_tensor *variance, double eps, bool full)
{
    if (!cn__loss_alike(l, input, target, "target")) return NULL;
    cn_tensor *v = variance_of(l, input, variance);
    if (!v) return NULL;
    v = cn__loss_raised(v, eps);
    cn_tensor *each = cn_mul_s(cn_add(cn_log(v), cn_div(cn_square(cn_sub(input, target)), v)), 0.5);
    return full ? cn_add_s(each, LOG_2PI / 2) : each;
}

cn_tensor *cn_gaussian_nll_loss(cn_tensor *input, cn_tensor *target, cn_tensor *variance,
                                const cn_gaussian_nll_desc *desc)
{
    cn__loss l;
    const double eps = desc && desc->eps != 0 ? desc->eps : 1e-6;
    if (!cn__loss_begin(&l, "gaussian_nll_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool good = is_positive(&l, "eps", eps);
    return cn__loss_end(&l, good ? gaussian(&l, input, target, variance, eps, desc && desc->full) : NULL);
}

/* Stirling's approximation of log(t!): t log t - t + log(2πt)/2 where t > 1, else 0 */
static cn_tensor *stirling(cn_tensor *t)
{
    cn_tensor *small = cn_le_s(t, 1), *safe = cn_where(small, cn__weak(t, 1), t);
    cn_tensor *log = cn_log(safe);
    cn_tensor *value = cn_add(cn_mul(safe, cn_sub_s(log, 1)), cn_add_s(cn_mul_s(log, 0.5), LOG_2PI / 2));
    return cn_where(small, cn__weak(value, 0), value);
}

cn_tensor *cn_poisson_nll_loss(cn_tensor *input, cn_tensor *target, const cn_poisson_nll_desc *desc)
{
    cn__loss l;
    const double eps = desc && desc->eps != 0 ? desc->eps : 1e-8;
    if (!cn__loss_begin(&l, "poisson_nll_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    cn_tensor *each = NULL;
    if (is_positive(&l, "eps", eps) && cn__loss_alike(&l, input, target, "target")) {
        const bool rates = desc && desc->no_log_input;
        cn_tensor *log = rates ? cn_log(cn_add_s(input, eps)) : input;
        each = cn_sub(rates ? input : cn_exp(input), cn_mul(target, log));
        if (desc && desc->full) each = cn_add(each, stirling(target));
    }
    return cn__loss_end(&l, each);
}

/* Rprop and ASGD: steps by the sign of the gradient, and averaged stochastic gradient descent. */
#include <math.h>

#include "optim/optim.h"

/* ---- Rprop: each element has a step size, which grows while the gradient keeps its sign ---- */

enum { PREVIOUS, STEP_SIZE };

static unsigned two_states(const cn__hyper *h)
{
    (void)h;
    return 1u << PREVIOUS | 1u << STEP_SIZE;
}

static double rprop_initial(const cn__hyper *h, int k) { return k == STEP_SIZE ? h->lr : 0; }

static void rprop_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_tensor *g = h->maximize ? cn_neg(u->g) : u->g, *turned = cn_lt_s(cn_mul(g, u->state[PREVIOUS]), 0);
    g = cn_where(turned, cn_zeros_like(g), g);
    /* Where the gradient is 0 or was 0 the factor is 1. From the new gradient, so that all is one group. */
    cn_tensor *factor = cn_where(turned, cn_full_like(g, h->eta_minus), cn_ones_like(g));
    factor = cn_where(cn_gt_s(cn_mul(g, u->state[PREVIOUS]), 0), cn_full_like(g, h->eta_plus), factor);
    cn_tensor *size = cn_clamp(cn_mul(u->state[STEP_SIZE], factor), h->step_min, h->step_max);
    u->new_state[PREVIOUS] = g;
    u->new_state[STEP_SIZE] = size;
    u->new_p = cn_sub(u->p, cn_mul(cn_sign(g), size));
}

const cn__rule cn__rule_rprop = { .name = "rprop",
                                  .state = { "prev", "step_size" },
                                  .uses = two_states,
                                  .initial = rprop_initial,
                                  .update = rprop_update };

cn_optim *cn_rprop(cn_ctx *ctx, cn_params params, const cn_rprop_desc *desc)
{
    cn_rprop_desc d = desc ? *desc : (cn_rprop_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 0.01),
        .eta_minus = cn__given(d.eta_minus, 0.5),
        .eta_plus = cn__given(d.eta_plus, 1.2),
        .step_min = cn__given(d.step_min, 1e-6),
        .step_max = cn__given(d.step_max, 50),
        .maximize = d.maximize,
    };
    CN__CALL call = cn__enter(ctx, "rprop");
    if (!call.ctx) return NULL;
    if (!(h.eta_minus > 0 && h.eta_minus < 1 && h.eta_plus > 1 && isfinite(h.eta_plus))) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "rprop: 0 < eta_minus < 1 < eta_plus is required, got %g and %g", h.eta_minus,
                 h.eta_plus);
        return NULL;
    }
    if (!(h.step_min >= 0 && h.step_min <= h.step_max)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "rprop: 0 ≤ step_min ≤ step_max is required, got %g and %g", h.step_min,
                 h.step_max);
        return NULL;
    }
    return cn__optim_new(ctx, &cn__rule_rprop, &h, params, d.keep_gradients);
}

/* ---- ASGD: p ← (1 - λη) p - ηg, ax ← ax + μ (p - ax), where step t has η = lr / (1 + λ lr (t - 1))^α and
   μ = 1 / max(1, t - 1 - t0). As in PyTorch, η comes from the rate of the step before. ---- */

static unsigned one_state(const cn__hyper *h)
{
    (void)h;
    return 1;
}

static void asgd_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    const double eta = u->step == 1 ? h->lr : u->product, mu = 1 / fmax(1, (double)(u->step - 1) - h->t0);
    cn_tensor *g = h->maximize ? cn_neg(u->g) : u->g;
    if (h->weight_decay != 0) g = cn_add(g, cn_mul_s(u->p, h->weight_decay));
    u->new_p = cn_sub(cn_mul_s(u->p, 1 - h->lambd * eta), cn_mul_s(g, eta));
    u->new_state[0] = cn__toward(u->state[0], u->new_p, mu);
    u->product = h->lr / pow(1 + h->lambd * h->lr * (double)u->step, h->power);
}

const cn__rule cn__rule_asgd = { .name = "asgd", .state = { "ax" }, .uses = one_state, .update = asgd_update };

cn_optim *cn_asgd(cn_ctx *ctx, cn_params params, const cn_asgd_desc *desc)
{
    cn_asgd_desc d = desc ? *desc : (cn_asgd_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 0.01),
        .lambd = cn__given(d.lambd, 1e-4),
        .power = cn__given(d.alpha, 0.75),
        .t0 = cn__given(d.t0, 1e6),
        .weight_decay = cn__given(d.weight_decay, 0),
        .maximize = d.maximize,
    };
    CN__CALL call = cn__enter(ctx, "asgd");
    if (!call.ctx) return NULL;
    if (!isfinite(h.lambd) || !isfinite(h.power) || isnan(h.t0)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "asgd: lambd, alpha and t0 must be finite, got %g, %g and %g", h.lambd, h.power,
                 h.t0);
        return NULL;
    }
    return cn__optim_new(ctx, &cn__rule_asgd, &h, params, d.keep_gradients);
}

/* Adam and AdamW, and the optimizers derived from them: NAdam, RAdam, Adamax, Lion. Each applies one operator of
   ops/optim to each parameter. */
#include <math.h>

#include "ops/optim/optim.h"
#include "optim/optim.h"

static unsigned first_two(const cn__hyper *h)
{
    (void)h;
    return 3;
}

/* ---- Adam, AdamW ---- */

static unsigned adam_uses(const cn__hyper *h) { return h->amsgrad ? 7 : 3; }

static void adam_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_arg args[CN_MAX_ARGS];
    cn__adam_args(&(cn_adam_step_desc){ .lr = h->lr,
                                        .beta1 = h->momentum,
                                        .beta2 = h->beta2,
                                        .eps = h->eps,
                                        .weight_decay = h->weight_decay,
                                        .decoupled = h->decoupled,
                                        .step = u->step },
                  args);
    cn__update_by(u, h->amsgrad ? &cn__op_amsgrad_step : &cn__op_adam_step, args);
}

#define MOMENTS                                   \
    {                                             \
        "exp_avg", "exp_avg_sq", "max_exp_avg_sq" \
    }
const cn__rule cn__rule_adam = {
    .name = "adam", .state = MOMENTS, .uses = adam_uses, .update = adam_update, .has_momentum = true, .has_betas = true
};
const cn__rule cn__rule_adamw = {
    .name = "adamw", .state = MOMENTS, .uses = adam_uses, .update = adam_update, .has_momentum = true, .has_betas = true
};

static cn_optim *adam(cn_ctx *ctx, cn_params params, const cn_adam_desc *desc, const cn__rule *rule, double decay)
{
    cn_adam_desc d = desc ? *desc : (cn_adam_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-3),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.999),
        .eps = cn__given(d.eps, 1e-8),
        .weight_decay = cn__given(d.weight_decay, decay),
        .decoupled = rule == &cn__rule_adamw,
        .amsgrad = d.amsgrad,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, rule, &h, params, d.keep_gradients);
}

cn_optim *cn_adam(cn_ctx *ctx, cn_params params, const cn_adam_desc *desc)
{
    return adam(ctx, params, desc, &cn__rule_adam, 0);
}

cn_optim *cn_adamw(cn_ctx *ctx, cn_params params, const cn_adamw_desc *desc)
{
    return adam(ctx, params, desc, &cn__rule_adamw, 0.01);
}

/* ---- NAdam: Adam with Nesterov's momentum, which grows with the steps ----

       mu(t) = beta1 (1 - 0.96^(t decay) / 2)          product = mu(1) mu(2) ... mu(t) */

static double nadam_momentum(const cn__hyper *h, int64_t t)
{
    return h->momentum * (1 - 0.5 * pow(0.96, (double)t * h->momentum_decay));
}

/* The operator that NAdam and RAdam share: ops/optim/moment.c. */
static void moment_update(cn__update *u, double rate, double ahead, double scale, double floor)
{
    const cn__hyper *h = u->h;
    cn_arg args[CN_MAX_ARGS] = {
        [CN__MOMENT_RATE].f = rate,
        [CN__MOMENT_AHEAD].f = ahead,
        [CN__MOMENT_FRESH1].f = 1 - h->momentum,
        [CN__MOMENT_BETA2].f = h->beta2,
        [CN__MOMENT_SCALE].f = scale,
        [CN__MOMENT_FLOOR].f = floor,
        [CN__MOMENT_DECAY].f = h->decoupled ? 0 : h->weight_decay,
        [CN__MOMENT_SHRINK].f = h->decoupled ? 1 - h->lr * h->weight_decay : 1,
    };
    cn__update_by(u, &cn__op_moment_step, args);
}

static void nadam_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    double mu = nadam_momentum(h, u->step), next = nadam_momentum(h, u->step + 1);
    u->product *= mu;
    double ahead = h->lr * (1 - mu) / (1 - u->product), rate = h->lr * next / (1 - u->product * next);
    moment_update(u, rate, ahead, 1 / sqrt(1 - pow(h->beta2, (double)u->step)), h->eps);
}

const cn__rule cn__rule_nadam = { .name = "nadam",
                                  .state = MOMENTS,
                                  .uses = first_two,
                                  .update = nadam_update,
                                  .has_momentum = true,
                                  .has_betas = true };

cn_optim *cn_nadam(cn_ctx *ctx, cn_params params, const cn_nadam_desc *desc)
{
    cn_nadam_desc d = desc ? *desc : (cn_nadam_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 2e-3),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.999),
        .eps = cn__given(d.eps, 1e-8),
        .weight_decay = cn__given(d.weight_decay, 0),
        .momentum_decay = cn__given(d.momentum_decay, 4e-3),
        .decoupled = d.decoupled_weight_decay,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_nadam, &h, params, d.keep_gradients);
}

/* ---- RAdam: it rectifies the rate, and leaves √v out while v averages too few steps ---- */

static void radam_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    double t = (double)u->step, decayed = pow(h->beta2, t), rate = h->lr / (1 - pow(h->momentum, t));
    double most = 2 / (1 - h->beta2) - 1, length = most - 2 * t * decayed / (1 - decayed);
    if (length > 5) {
        double rect = sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
        moment_update(u, rate * rect * sqrt(1 - decayed), 0, 1, h->eps);
    } else {
        moment_update(u, rate, 0, 0, 1);
    }
}

const cn__rule cn__rule_radam = { .name = "radam",
                                  .state = MOMENTS,
                                  .uses = first_two,
                                  .update = radam_update,
                                  .has_momentum = true,
                                  .has_betas = true };

cn_optim *cn_radam(cn_ctx *ctx, cn_params params, const cn_radam_desc *desc)
{
    cn_radam_desc d = desc ? *desc : (cn_radam_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-3),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.999),
        .eps = cn__given(d.eps, 1e-8),
        .weight_decay = cn__given(d.weight_decay, 0),
        .decoupled = d.decoupled_weight_decay,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_radam, &h, params, d.keep_gradients);
}

/* ---- Adamax: a decaying maximum of |g| in place of the mean square ---- */

static void adamax_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_arg args[CN_MAX_ARGS] = {
        [CN__ADAMAX_RATE].f = h->lr / (1 - pow(h->momentum, (double)u->step)),
        [CN__ADAMAX_FRESH1].f = 1 - h->momentum,
        [CN__ADAMAX_BETA2].f = h->beta2,
        [CN__ADAMAX_EPS].f = h->eps,
        [CN__ADAMAX_DECAY].f = h->weight_decay,
    };
    cn__update_by(u, &cn__op_adamax_step, args);
}

const cn__rule cn__rule_adamax = { .name = "adamax",
                                   .state = { "exp_avg", "exp_inf" },
                                   .uses = first_two,
                                   .update = adamax_update,
                                   .has_momentum = true,
                                   .has_betas = true };

cn_optim *cn_adamax(cn_ctx *ctx, cn_params params, const cn_adamax_desc *desc)
{
    cn_adamax_desc d = desc ? *desc : (cn_adamax_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 2e-3),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.999),
        .eps = cn__given(d.eps, 1e-8),
        .weight_decay = cn__given(d.weight_decay, 0),
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_adamax, &h, params, d.keep_gradients);
}

/* ---- Lion: it steps by the sign of a mean of gradients, and keeps a slower mean as its state ---- */

static unsigned lion_uses(const cn__hyper *h)
{
    (void)h;
    return 1;
}

static void lion_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_arg args[CN_MAX_ARGS] = {
        [CN__LION_LR].f = h->lr,
        [CN__LION_BETA1].f = h->momentum,
        [CN__LION_BETA2].f = h->beta2,
        [CN__LION_DECAY].f = h->weight_decay,
    };
    cn__update_by(u, &cn__op_lion_step, args);
}

const cn__rule cn__rule_lion = { .name = "lion",
                                 .state = { "exp_avg" },
                                 .uses = lion_uses,
                                 .update = lion_update,
                                 .has_momentum = true,
                                 .has_betas = true };

cn_optim *cn_lion(cn_ctx *ctx, cn_params params, const cn_lion_desc *desc)
{
    cn_lion_desc d = desc ? *desc : (cn_lion_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-4),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.99),
        .weight_decay = cn__given(d.weight_decay, 0),
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_lion, &h, params, d.keep_gradients);
}

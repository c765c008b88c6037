/* adam.c: Adam and AdamW, one operator a parameter (ops/optim/adam.c), and what came of them: NAdam, RAdam, Adamax, Lion. */
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
                                        .maximize = h->maximize,
                                        .step = u->step },
                  args);
    cn_tensor *out[CN_MAX_OUT] = { NULL }, *in[] = { u->p, u->g, u->state[0], u->state[1], u->state[2] };
    const cn_op *op = h->amsgrad ? &cn__op_amsgrad_step : &cn__op_adam_step;
    if (!cn_apply_n(op, in, op->n_in, NULL, args, out)) return;
    u->new_p = out[0];
    for (int k = 0; k + 1 < op->n_out; k++) u->new_state[k] = out[k + 1];
}

#define MOMENTS { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }
static const cn__rule adam_rule = {
    .name = "adam", .state = MOMENTS, .uses = adam_uses, .update = adam_update, .has_momentum = true, .has_betas = true
};
static const cn__rule adamw_rule = {
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
        .decoupled = rule == &adamw_rule,
        .amsgrad = d.amsgrad,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, rule, &h, params, d.keep_gradients);
}

cn_optim *cn_adam(cn_ctx *ctx, cn_params params, const cn_adam_desc *desc)
{
    return adam(ctx, params, desc, &adam_rule, 0);
}

cn_optim *cn_adamw(cn_ctx *ctx, cn_params params, const cn_adamw_desc *desc)
{
    return adam(ctx, params, desc, &adamw_rule, 0.01);
}

/* ---- NAdam: Nesterov's look ahead, by a momentum that grows with the steps ----

       mu(t) = beta1 (1 - 0.96^(t decay) / 2)          product = mu(1) mu(2) ... mu(t) */

static double nadam_momentum(const cn__hyper *h, int64_t t)
{
    return h->momentum * (1 - 0.5 * pow(0.96, (double)t * h->momentum_decay));
}

static void nadam_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    double mu = nadam_momentum(h, u->step), next = nadam_momentum(h, u->step + 1);
    u->product *= mu;
    cn_tensor *g = cn__slope(u);
    cn_tensor *m = u->new_state[0] = cn__toward(u->state[0], g, 1 - h->momentum);
    cn_tensor *v = u->new_state[1] = cn__mean_square(u->state[1], g, h->beta2);
    cn_tensor *size = cn_add_s(cn_sqrt(cn_div_s(v, 1 - pow(h->beta2, (double)u->step))), h->eps);
    cn_tensor *p = cn_addcdiv(cn__shrunk(u), g, size, -h->lr * (1 - mu) / (1 - u->product));
    u->new_p = cn_addcdiv(p, m, size, -h->lr * next / (1 - u->product * next));
}

static const cn__rule nadam_rule = {
    .name = "nadam", .state = MOMENTS, .uses = first_two, .update = nadam_update, .has_momentum = true, .has_betas = true
};

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
    return cn__optim_new(ctx, &nadam_rule, &h, params, d.keep_gradients);
}

/* ---- RAdam: the rate is rectified, and √v left out, while v is too young to be trusted ----

   One expression for both, so that a plan serves both: p - m/c lr · k / (a √v + b) · rect, with a = 0 for the young. */

static void radam_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    double t = (double)u->step, decayed = pow(h->beta2, t), c1 = 1 - pow(h->momentum, t), c2 = 1 - decayed;
    double most = 2 / (1 - h->beta2) - 1, length = most - 2 * t * decayed / c2;
    bool old = length > 5;
    double rect = old ? sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) : 1;
    cn_tensor *g = cn__slope(u);
    cn_tensor *m = u->new_state[0] = cn__toward(u->state[0], g, 1 - h->momentum);
    cn_tensor *v = u->new_state[1] = cn__mean_square(u->state[1], g, h->beta2);
    cn_tensor *size = cn_add_s(cn_mul_s(cn_sqrt(v), old), old ? h->eps : 1);
    cn_tensor *far = cn_mul(cn_mul_s(cn_div_s(m, c1), h->lr), cn_rdiv_s(size, old ? sqrt(c2) : 1));
    u->new_p = cn_sub(cn__shrunk(u), cn_mul_s(far, rect));
}

static const cn__rule radam_rule = {
    .name = "radam", .state = MOMENTS, .uses = first_two, .update = radam_update, .has_momentum = true, .has_betas = true
};

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
    return cn__optim_new(ctx, &radam_rule, &h, params, d.keep_gradients);
}

/* ---- Adamax: the largest gradient of late instead of the mean square ---- */

static void adamax_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_tensor *g = cn__slope(u);
    cn_tensor *m = u->new_state[0] = cn__toward(u->state[0], g, 1 - h->momentum);
    cn_tensor *top = u->new_state[1] = cn_maximum(cn_mul_s(u->state[1], h->beta2), cn_add_s(cn_abs(g), h->eps));
    u->new_p = cn_addcdiv(u->p, m, top, -h->lr / (1 - pow(h->momentum, (double)u->step)));
}

static const cn__rule adamax_rule = { .name = "adamax", .state = { "exp_avg", "exp_inf" }, .uses = first_two,
                                      .update = adamax_update, .has_momentum = true, .has_betas = true };

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
    return cn__optim_new(ctx, &adamax_rule, &h, params, d.keep_gradients);
}

/* ---- Lion: the sign of a mean, and a slower mean remembered ---- */

static unsigned lion_uses(const cn__hyper *h)
{
    (void)h;
    return 1;
}

static cn_tensor *mixed(cn_tensor *m, cn_tensor *g, double beta)
{
    return cn_add(cn_mul_s(m, beta), cn_mul_s(g, 1 - beta));
}

static void lion_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_tensor *g = cn__slope(u), *way = cn_sign(mixed(u->state[0], g, h->momentum));
    u->new_state[0] = mixed(u->state[0], g, h->beta2);
    u->new_p = cn_sub(u->p, cn_mul_s(cn_add(way, cn_mul_s(u->p, h->weight_decay)), h->lr));
}

static const cn__rule lion_rule = { .name = "lion", .state = { "exp_avg" }, .uses = lion_uses, .update = lion_update,
                                    .has_momentum = true, .has_betas = true };

cn_optim *cn_lion(cn_ctx *ctx, cn_params params, const cn_lion_desc *desc)
{
    cn_lion_desc d = desc ? *desc : (cn_lion_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-4),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.99),
        .weight_decay = cn__given(d.weight_decay, 0),
        .decoupled = true, /* the gradient has no part in the decay */
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &lion_rule, &h, params, d.keep_gradients);
}

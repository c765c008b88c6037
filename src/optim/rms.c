/* RMSprop, Adagrad and Adadelta: they divide gradients by the root of an average, or sum, of their squares. */
#include "ops/optim/optim.h"
#include "optim/optim.h"

static void rms_update(cn__update *u, const cn_op *op)
{
    const cn__hyper *h = u->h;
    cn_arg args[CN_MAX_ARGS] = {
        [CN__RMS_RATE].f = h->lr,           [CN__RMS_ALPHA].f = h->beta2,
        [CN__RMS_EPS].f = h->eps,           [CN__RMS_DECAY].f = h->weight_decay,
        [CN__RMS_MOMENTUM].f = h->momentum,
    };
    cn__update_by(u, op, args);
}

/* ---- RMSprop ---- */

enum { SQUARE, MEAN, BUFFER };

static unsigned rmsprop_uses(const cn__hyper *h)
{
    return 1u << SQUARE | (unsigned)h->centered << MEAN | (unsigned)(h->momentum > 0) << BUFFER;
}

static void rmsprop_update(cn__update *u)
{
    static const cn_op *const ops[2][2] = {
        { &cn__op_rmsprop_step, &cn__op_rmsprop_momentum_step },
        { &cn__op_rmsprop_centered_step, &cn__op_rmsprop_centered_momentum_step },
    };
    rms_update(u, ops[u->state[MEAN] != NULL][u->state[BUFFER] != NULL]);
}

const cn__rule cn__rule_rmsprop = { .name = "rmsprop",
                                    .state = { "square_avg", "grad_avg", "momentum_buffer" },
                                    .uses = rmsprop_uses,
                                    .update = rmsprop_update,
                                    .has_momentum = true };

cn_optim *cn_rmsprop(cn_ctx *ctx, cn_params params, const cn_rmsprop_desc *desc)
{
    cn_rmsprop_desc d = desc ? *desc : (cn_rmsprop_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 0.01),
        .beta2 = cn__given(d.alpha, 0.99),
        .eps = cn__given(d.eps, 1e-8),
        .weight_decay = cn__given(d.weight_decay, 0),
        .momentum = cn__given(d.momentum, 0),
        .centered = d.centered,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_rmsprop, &h, params, d.keep_gradients);
}

/* ---- Adagrad ---- */

static unsigned adagrad_uses(const cn__hyper *h)
{
    (void)h;
    return 1;
}

/* Adagrad needs no operator of its own: the planner fuses these into one group. */
static void adagrad_update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_tensor *g = h->maximize ? cn_neg(u->g) : u->g;
    if (h->weight_decay != 0) g = cn_add(g, cn_mul_s(u->p, h->weight_decay));
    cn_tensor *sum = u->new_state[0] = cn_addcmul(u->state[0], g, g, 1);
    double rate = h->lr / (1 + (double)(u->step - 1) * h->lr_decay);
    u->new_p = cn_addcdiv(u->p, g, cn_add_s(cn_sqrt(sum), h->eps), -rate);
}

const cn__rule cn__rule_adagrad = {
    .name = "adagrad", .state = { "sum" }, .uses = adagrad_uses, .update = adagrad_update
};

cn_optim *cn_adagrad(cn_ctx *ctx, cn_params params, const cn_adagrad_desc *desc)
{
    cn_adagrad_desc d = desc ? *desc : (cn_adagrad_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 0.01),
        .lr_decay = cn__given(d.lr_decay, 0),
        .weight_decay = cn__given(d.weight_decay, 0),
        .initial_value = cn__given(d.initial_accumulator_value, 0),
        .eps = cn__given(d.eps, 1e-10),
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_adagrad, &h, params, d.keep_gradients);
}

/* ---- Adadelta ---- */

static unsigned adadelta_uses(const cn__hyper *h)
{
    (void)h;
    return 3;
}

static void adadelta_update(cn__update *u) { rms_update(u, &cn__op_adadelta_step); }

const cn__rule cn__rule_adadelta = {
    .name = "adadelta", .state = { "square_avg", "acc_delta" }, .uses = adadelta_uses, .update = adadelta_update
};

cn_optim *cn_adadelta(cn_ctx *ctx, cn_params params, const cn_adadelta_desc *desc)
{
    cn_adadelta_desc d = desc ? *desc : (cn_adadelta_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1),
        .beta2 = cn__given(d.rho, 0.9),
        .eps = cn__given(d.eps, 1e-6),
        .weight_decay = cn__given(d.weight_decay, 0),
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_adadelta, &h, params, d.keep_gradients);
}

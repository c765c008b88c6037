/* SGD, with or without momentum. It applies one operator of ops/optim/sgd.c to each parameter. */
#include "ops/optim/optim.h"
#include "optim/optim.h"

static unsigned uses(const cn__hyper *h) { return h->momentum != 0; }

static void update(cn__update *u)
{
    const cn__hyper *h = u->h;
    const bool plain = h->momentum == 0 && h->weight_decay == 0 && !h->maximize;
    if (plain && (u->new_p = cn__sgd_rows(u->p, u->g, h->lr))) u->by_rows = true;
    if (u->by_rows || cn_failed(u->p->ctx)) return;
    cn_arg args[CN_MAX_ARGS];
    cn__sgd_args(&(cn_sgd_step_desc){ .lr = h->lr,
                                      .momentum = h->momentum,
                                      .dampening = h->dampening,
                                      .weight_decay = h->weight_decay,
                                      .nesterov = h->nesterov,
                                      .step = u->first ? 1 : 2 },
                 args);
    cn__update_by(u, u->state[0] ? &cn__op_momentum_step : &cn__op_sgd_step, args);
}

const cn__rule cn__rule_sgd = {
    .name = "sgd", .state = { "momentum_buffer" }, .uses = uses, .update = update, .has_momentum = true
};

cn_optim *cn_sgd(cn_ctx *ctx, cn_params params, const cn_sgd_desc *desc)
{
    cn_sgd_desc d = desc ? *desc : (cn_sgd_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-3),
        .momentum = cn__given(d.momentum, 0),
        .dampening = cn__given(d.dampening, 0),
        .weight_decay = cn__given(d.weight_decay, 0),
        .nesterov = d.nesterov,
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_sgd, &h, params, d.keep_gradients);
}

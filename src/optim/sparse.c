/* SparseAdam: Adam on the rows whose gradient is not zero. Three operators of ops/optim/rows.c write these rows of the
   parameter and of its states; each reads the old states. If the gradient is not pending as an embedding's is, the same
   is computed from the dense gradient. */
#include <math.h>

#include "ops/optim/optim.h"
#include "optim/optim.h"

static unsigned uses(const cn__hyper *h)
{
    (void)h;
    return 3;
}

static bool accepts(cn_tensor *p)
{
    return cn_ndim(p) == 2 || cn__fail(p->ctx, CN_BAD_SHAPE,
                                       "sparse_adam: parameters must be matrices, got one with %d "
                                       "axes",
                                       cn_ndim(p));
}

static cn_tensor *new_moment(cn_tensor *s, cn_tensor *const *in, cn_tensor *dense, double fresh, bool square)
{
    const cn_arg a[CN_MAX_ARGS] = { [CN__ROWS_RATE].f = fresh, [CN__ROWS_SQUARE].i = square };
    if (dense) return cn__moment_dense(s, dense, a);
    return cn_apply(&cn__op_moment_rows_step, (cn_tensor *[]){ s, in[1], in[2] }, 3, NULL, a);
}

static void update(cn__update *u)
{
    const cn__hyper *h = u->h;
    const double t = (double)u->step, fresh1 = 1 - h->momentum, fresh2 = 1 - h->beta2;
    const cn_arg a[CN_MAX_ARGS] = {
        [CN__ROWS_RATE].f = h->lr * sqrt(1 - pow(h->beta2, t)) / (1 - pow(h->momentum, t)),
        [CN__ROWS_FRESH1].f = fresh1,
        [CN__ROWS_FRESH2].f = fresh2,
        [CN__ROWS_EPS].f = h->eps,
    };
    cn_tensor *m = u->state[0], *v = u->state[1], *in[5] = { u->p, NULL, NULL, m, v }, *dense = NULL;
    u->by_rows = cn__rows_of(u->p, u->g, &in[1], &in[2]);
    if (cn_failed(u->p->ctx)) return;
    if (!u->by_rows) dense = h->maximize ? cn_neg(u->g) : u->g;
    else if (h->maximize) in[1] = cn_neg(in[1]);
    u->new_p = dense ? cn__adam_dense(u->p, dense, m, v, a) : cn_apply(&cn__op_adam_rows_step, in, 5, NULL, a);
    u->new_state[0] = new_moment(m, in, dense, fresh1, false);
    u->new_state[1] = new_moment(v, in, dense, fresh2, true);
}

const cn__rule cn__rule_sparse_adam = { .name = "sparse_adam",
                                        .state = { "exp_avg", "exp_avg_sq" },
                                        .uses = uses,
                                        .update = update,
                                        .accepts = accepts,
                                        .has_momentum = true,
                                        .has_betas = true };

cn_optim *cn_sparse_adam(cn_ctx *ctx, cn_params params, const cn_sparse_adam_desc *desc)
{
    cn_sparse_adam_desc d = desc ? *desc : (cn_sparse_adam_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-3),
        .momentum = cn__given(d.beta1, 0.9),
        .beta2 = cn__given(d.beta2, 0.999),
        .eps = cn__given(d.eps, 1e-8),
        .maximize = d.maximize,
    };
    return cn__optim_new(ctx, &cn__rule_sparse_adam, &h, params, d.keep_gradients);
}

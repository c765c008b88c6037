/* Makes and frees optimizers, adds groups of parameters, and reads and changes the groups' numbers. */
#include <math.h>
#include <stdio.h>

#include "optim/optim.h"

/* ---- checks ---- */

static bool at_least_0(cn_ctx *ctx, const cn__rule *r, const char *what, double v)
{
    if (v >= 0 && isfinite(v)) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must be finite and ≥ 0, got %g", r->name, what, v);
}

static bool below_1(cn_ctx *ctx, const cn__rule *r, const char *what, double v)
{
    if (v >= 0 && v < 1) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must be ≥ 0 and < 1, got %g", r->name, what, v);
}

bool cn__hyper_check(cn_ctx *ctx, const cn__rule *r, const cn__hyper *h)
{
    bool ok = at_least_0(ctx, r, "lr", h->lr) && at_least_0(ctx, r, "weight_decay", h->weight_decay) &&
              at_least_0(ctx, r, "eps", h->eps) && at_least_0(ctx, r, "momentum_decay", h->momentum_decay) &&
              at_least_0(ctx, r, "lr_decay", h->lr_decay) &&
              at_least_0(ctx, r, "initial_accumulator_value", h->initial_value);
    if (ok && !isfinite(h->dampening))
        ok = cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dampening must be finite, got %g", r->name, h->dampening);
    if (!ok) return false;
    if (r->has_betas) return below_1(ctx, r, "beta1", h->momentum) && below_1(ctx, r, "beta2", h->beta2);
    if (!at_least_0(ctx, r, "momentum", h->momentum)) return false;
    if (!(h->beta2 >= 0 && h->beta2 <= 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: alpha and rho must be from 0 to 1, got %g", r->name, h->beta2);
    if (h->nesterov && (h->momentum <= 0 || h->dampening != 0))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: with nesterov momentum must be > 0 and dampening 0, got %g and %g",
                        r->name, h->momentum, h->dampening);
    return true;
}

static bool has_param(const cn_optim *opt, const cn_tensor *p)
{
    for (size_t i = 0; i < opt->params.n; i++)
        if (((cn_tensor **)opt->params.v)[i] == p) return true;
    return false;
}

static bool param_fits(cn_optim *opt, cn_tensor *p, int i)
{
    cn_ctx *ctx = opt->object.ctx;
    const char *who = opt->rule->name;
    char what[32];
    snprintf(what, sizeof what, "parameter %d", i);
    if (!cn__of_context(ctx, p, who, what)) return false;
    if (!cn_dtype_is_float(cn__dtype(p)))
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: parameter %d must be of a floating type, got %s", who, i,
                        cn_dtype_name(cn__dtype(p)));
    if (p->ref.node->needs_grad && !p->ref.node->grad_leaf)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "%s: parameter %d must be a leaf (cn_param); this tensor is computed from others", who, i);
    if (has_param(opt, p))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: parameters must differ, but the optimizer has parameter %d already",
                        who, i);
    return !opt->rule->accepts || opt->rule->accepts(p);
}

/* ---- groups ---- */

static bool make_room(cn_optim *opt, size_t more)
{
    cn__memory *m = &opt->object.ctx->memory;
    size_t n = opt->slots.n + more;
    if (cn__vec_reserve(m, &opt->groups, opt->groups.n + 1, sizeof(cn__param_group)) &&
        cn__vec_reserve(m, &opt->slots, n, sizeof(cn__param_slot)) &&
        cn__vec_reserve(m, &opt->params, n, sizeof(cn_tensor *)) &&
        cn__vec_reserve(m, &opt->of, n * (1 + CN__STATES), sizeof(cn_tensor *)) &&
        cn__vec_reserve(m, &opt->to, n * (1 + CN__STATES), sizeof(cn_tensor *)))
        return true;
    return cn__no_memory(opt->object.ctx, opt->rule->name);
}

/* Adds all parameters or, after an error, none. Returns the number of the group; -1: an error. */
static int add_group(cn_optim *opt, cn_params params, const cn__hyper *h)
{
    cn_ctx *ctx = opt->object.ctx;
    if (params.n < 1 || !params.v) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: a group must have at least 1 parameter, got %d", opt->rule->name, params.n);
        return -1;
    }
    if (!cn__hyper_check(ctx, opt->rule, h) || !make_room(opt, (size_t)params.n)) return -1;
    size_t first = opt->params.n;
    for (int i = 0; i < params.n; i++) {
        if (!param_fits(opt, params.v[i], i)) {
            opt->params.n = first;
            return -1;
        }
        ((cn_tensor **)opt->params.v)[opt->params.n++] = params.v[i];
    }
    int group = (int)opt->groups.n++;
    *cn__optim_group(opt, group) = (cn__param_group){ .h = *h, .initial_lr = NAN, .first = (int)first, .n = params.n };
    for (int i = 0; i < params.n; i++)
        *cn__optim_slot(opt, opt->slots.n++) =
            (cn__param_slot){ .p = cn__keep(params.v[i]), .group = group, .product = 1 };
    return group;
}

int cn_optim_add_group(cn_optim *opt, cn_params params, const cn_group_desc *desc)
{
    CN__CALL call = cn__call_object(opt, &cn__optim_type);
    if (!call.ctx) return -1;
    if (opt->rule->minimize) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "%s: this optimizer has one group", opt->rule->name);
        return -1;
    }
    cn_group_desc d = desc ? *desc : (cn_group_desc){ 0 };
    cn__hyper h = opt->h;
    h.lr = cn__given(d.lr, h.lr);
    h.weight_decay = cn__given(d.weight_decay, h.weight_decay);
    h.eps = cn__given(d.eps, h.eps);
    h.momentum = cn__given(d.momentum, h.momentum);
    h.beta2 = cn__given(d.beta2, h.beta2);
    return add_group(opt, params, &h);
}

/* ---- making and freeing ---- */

static void destroy(void *self)
{
    cn_optim *opt = self;
    cn__memory *m = &opt->object.ctx->memory;
    for (size_t i = 0; i < opt->slots.n; i++) {
        cn__param_slot *s = cn__optim_slot(opt, i);
        for (int k = 0; k < CN__STATES; k++) cn__release(s->state[k]);
        cn__release(s->p);
    }
    if (opt->lbfgs) opt->rule->free(opt);
    cn__vec_free(m, &opt->groups, sizeof(cn__param_group));
    cn__vec_free(m, &opt->slots, sizeof(cn__param_slot));
    cn__vec_free(m, &opt->params, sizeof(cn_tensor *));
    cn__vec_free(m, &opt->of, sizeof(cn_tensor *));
    cn__vec_free(m, &opt->to, sizeof(cn_tensor *));
}

const cn__object_type cn__optim_type = { "optimizer", destroy };

cn_optim *cn__optim_new(cn_ctx *ctx, const cn__rule *rule, const cn__hyper *h, cn_params params, bool keep_gradients)
{
    CN__CALL call = cn__enter(ctx, rule->name);
    if (!call.ctx || cn_failed(ctx)) return NULL; /* after an error the list of parameters may be incomplete */
    cn_optim *opt = cn__object_new(ctx, sizeof *opt, &cn__optim_type);
    if (!opt) return NULL;
    opt->rule = rule;
    opt->h = *h;
    opt->keep_gradients = keep_gradients;
    if (add_group(opt, params, h) == 0) return opt;
    cn__object_free(opt);
    return NULL;
}

void cn_optim_free(cn_optim *opt) { cn__free_by_program(opt, &cn__optim_type, __func__); }

/* ---- reading and changing numbers ---- */

cn_ctx *cn_optim_context(const cn_optim *opt) { return cn__is(opt, &cn__optim_type) ? opt->object.ctx : NULL; }
int cn_optim_groups(const cn_optim *opt) { return cn__is(opt, &cn__optim_type) ? (int)opt->groups.n : 0; }

cn_params cn_optim_params(const cn_optim *opt)
{
    return cn__is(opt, &cn__optim_type) ? (cn_params){ opt->params.v, (int)opt->params.n } : (cn_params){ NULL, 0 };
}

static cn__param_group *find(const cn_optim *opt, int group, const char *who)
{
    CN__CALL call = cn__enter_object(opt, &cn__optim_type, who, true);
    if (!call.ctx) return NULL;
    if (group >= 0 && (size_t)group < opt->groups.n) return cn__optim_group(opt, group);
    cn__fail(opt->object.ctx, CN_BAD_ARGUMENT, "%s: group must be from 0 to %d, got %d", opt->rule->name,
             (int)opt->groups.n - 1, group);
    return NULL;
}

cn_params cn_optim_group_params(const cn_optim *opt, int group)
{
    const cn__param_group *g = find(opt, group, __func__);
    return g ? (cn_params){ (cn_tensor **)opt->params.v + g->first, g->n } : (cn_params){ NULL, 0 };
}

double cn_optim_lr(const cn_optim *opt, int group)
{
    const cn__param_group *g = find(opt, group, __func__);
    return g ? g->h.lr : NAN;
}

double cn_optim_momentum(const cn_optim *opt, int group)
{
    const cn__param_group *g = find(opt, group, __func__);
    return g ? g->h.momentum : NAN;
}

double cn_optim_weight_decay(const cn_optim *opt, int group)
{
    const cn__param_group *g = find(opt, group, __func__);
    return g ? g->h.weight_decay : NAN;
}

static bool change(cn_optim *opt, cn__param_group *g, const cn__hyper *h)
{
    if (!cn__hyper_check(opt->object.ctx, opt->rule, h)) return false;
    g->h = *h;
    return true;
}

bool cn_optim_set_lr(cn_optim *opt, int group, double lr)
{
    cn__param_group *g = find(opt, group, __func__);
    if (!g) return false;
    cn__hyper h = g->h;
    h.lr = lr;
    return change(opt, g, &h);
}

bool cn_optim_set_momentum(cn_optim *opt, int group, double momentum)
{
    cn__param_group *g = find(opt, group, __func__);
    if (!g) return false;
    if (!opt->rule->has_momentum)
        return cn__fail(opt->object.ctx, CN_BAD_ARGUMENT, "%s: this optimizer has no momentum to set", opt->rule->name);
    cn__hyper h = g->h;
    h.momentum = momentum;
    return change(opt, g, &h);
}

bool cn_optim_set_weight_decay(cn_optim *opt, int group, double weight_decay)
{
    cn__param_group *g = find(opt, group, __func__);
    if (!g) return false;
    cn__hyper h = g->h;
    h.weight_decay = weight_decay;
    return change(opt, g, &h);
}

void cn_optim_zero_grad(cn_optim *opt)
{
    CN__CALL call = cn__call_object(opt, &cn__optim_type);
    if (!call.ctx) return;
    for (size_t i = 0; i < opt->slots.n; i++) cn_zero_grad(cn__optim_slot(opt, i)->p);
}

/* Saves an optimizer's state to a dict and loads it. Loading prepares the whole new state, then replaces the old. */
#include <math.h>
#include <stdio.h>

#include "optim/optim.h"

enum { NAME = 256 };

/* prefix + kind/index/what */
static const char *name_of(char out[NAME], const char *prefix, const char *kind, size_t index, const char *what)
{
    int n = snprintf(out, NAME, "%s%s/%zu/%s", prefix ? prefix : "", kind, index, what);
    return n >= 0 && n < NAME ? out : NULL;
}

static const char *kind_name(char out[NAME], const char *prefix)
{
    int n = snprintf(out, NAME, "%s%s", prefix ? prefix : "", "optimizer");
    return n >= 0 && n < NAME ? out : NULL;
}

/* The numbers of a group that are saved. */
typedef struct number {
    const char *name;
    size_t at; /* in cn__hyper */
} number;
static const number numbers[] = {
    { "lr", offsetof(cn__hyper, lr) },       { "weight_decay", offsetof(cn__hyper, weight_decay) },
    { "eps", offsetof(cn__hyper, eps) },     { "momentum", offsetof(cn__hyper, momentum) },
    { "beta2", offsetof(cn__hyper, beta2) },
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };
static double *number_at(cn__hyper *h, int i) { return (double *)(void *)((char *)h + numbers[i].at); }

/* ---- saving ---- */

static bool save_group(cn_optim *opt, cn_dict *d, const char *prefix, int i)
{
    char name[NAME];
    cn__param_group *g = cn__optim_group(opt, i);
    bool ok = cn_dict_set_whole(d, name_of(name, prefix, "param_groups", (size_t)i, "params"), g->n);
    for (int k = 0; k < NUMBERS && ok; k++)
        ok = cn_dict_set_number(d, name_of(name, prefix, "param_groups", (size_t)i, numbers[k].name),
                                *number_at(&g->h, k));
    if (ok && !isnan(g->initial_lr))
        ok = cn_dict_set_number(d, name_of(name, prefix, "param_groups", (size_t)i, "initial_lr"), g->initial_lr);
    return ok;
}

/* Saves a detached tensor, which keeps its value when later steps change the state. */
static bool save_slot(cn_optim *opt, cn_dict *d, const char *prefix, size_t i)
{
    char name[NAME];
    const cn__param_slot *s = cn__optim_slot(opt, i);
    if (s->step == 0) return true;
    bool ok = cn_dict_set_whole(d, name_of(name, prefix, "state", i, "step"), s->step) &&
              (s->product == 1 || cn_dict_set_number(d, name_of(name, prefix, "state", i, "mu_product"), s->product));
    for (int k = 0; k < CN__STATES && ok; k++)
        if (s->state[k])
            ok = cn_dict_set(d, name_of(name, prefix, "state", i, opt->rule->state[k]), cn_detach(s->state[k]));
    return ok;
}

bool cn_optim_save(cn_optim *opt, cn_dict *dict, const char *prefix)
{
    CN__CALL call = cn__call_object(opt, &cn__optim_type);
    if (!opt && dict) cn__object_of(cn_dict_context(dict), opt, &cn__optim_type, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !cn__object_of(ctx, dict, &cn__dict_type, __func__) || cn_failed(ctx)) return false;
    char name[NAME];
    cn_scope scope = cn_scope_begin(ctx);
    bool ok = cn_dict_set_text(dict, kind_name(name, prefix), opt->rule->name);
    for (int i = 0; i < (int)opt->groups.n && ok; i++) ok = save_group(opt, dict, prefix, i);
    for (size_t i = 0; i < opt->slots.n && ok; i++) ok = save_slot(opt, dict, prefix, i);
    if (ok && opt->lbfgs) ok = opt->rule->save(opt, dict, prefix);
    cn_scope_end(ctx, scope);
    return ok ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "optim_save: a name with its prefix must be shorter than %d bytes", NAME);
}

/* ---- loading ---- */

typedef struct loading {
    cn_optim *opt;
    cn_ctx *ctx;
    const cn_dict *d;
    const char *prefix;
    cn__param_group *groups; /* the new ones */
    cn__param_slot *slots;
} loading;

static bool missing(loading *l, const char *name)
{
    return name ? cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: the dict has no %s", name)
                : cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: a name with its prefix must be shorter than %d bytes",
                           NAME);
}

static bool load_group(loading *l, int i)
{
    char name[NAME];
    cn__param_group *g = &l->groups[i];
    int64_t n = 0;
    *g = *cn__optim_group(l->opt, i);
    const char *count = name_of(name, l->prefix, "param_groups", (size_t)i, "params");
    if (!cn_dict_whole(l->d, count, &n)) return missing(l, count);
    if (n != g->n)
        return cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: group %d must have %d parameters, got %lld from the dict",
                        i, g->n, (long long)n);
    for (int k = 0; k < NUMBERS; k++) {
        const char *at = name_of(name, l->prefix, "param_groups", (size_t)i, numbers[k].name);
        if (!cn_dict_number(l->d, at, number_at(&g->h, k))) return missing(l, at);
    }
    g->initial_lr = NAN;
    cn_dict_number(l->d, name_of(name, l->prefix, "param_groups", (size_t)i, "initial_lr"), &g->initial_lr);
    return cn__hyper_check(l->ctx, l->opt->rule, &g->h);
}

/* A kept copy of a state in the dict. NULL without an error: the dict has none, and none is needed. */
static cn_tensor *load_state(loading *l, const cn__param_slot *s, int k, const char *name, bool needed)
{
    cn_tensor *from = cn_dict_get(l->d, name);
    if (!from) {
        if (needed) missing(l, name);
        return NULL;
    }
    char a[96], b[96];
    cn_layout wanted;
    const cn_dims shape = cn__state_shape(l->opt->rule, s->p, k);
    wanted.ndim = shape.n;
    memcpy(wanted.shape, shape.v, sizeof wanted.shape);
    if (!cn__same_shape(cn__layout(from), &wanted)) {
        cn__fail(l->ctx, CN_BAD_SHAPE, "optim_load: %s must have the shape %s, got %s", name,
                 cn__shape_text(&wanted, b, sizeof b), cn__shape_text(cn__layout(from), a, sizeof a));
        return NULL;
    }
    cn_dtype t = cn__state_dtype(s->p);
    return cn__keep(cn_clone(cn__dtype(from) == t ? from : cn_cast(from, t)));
}

static bool load_slot(loading *l, size_t i)
{
    char name[NAME];
    cn__param_slot *s = &l->slots[i];
    const cn__param_slot *old = cn__optim_slot(l->opt, i);
    *s = (cn__param_slot){ .p = old->p, .group = old->group, .product = 1 };
    if (!cn_dict_whole(l->d, name_of(name, l->prefix, "state", i, "step"), &s->step))
        return true; /* the parameter had not taken a step */
    if (s->step < 0)
        return cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: %s must be ≥ 0, got %lld", name, (long long)s->step);
    cn_dict_number(l->d, name_of(name, l->prefix, "state", i, "mu_product"), &s->product);
    unsigned uses = cn__rule_uses(l->opt->rule, &l->groups[s->group].h, s->p);
    for (int k = 0; k < CN__STATES && l->opt->rule->state[k]; k++) {
        const char *at = name_of(name, l->prefix, "state", i, l->opt->rule->state[k]);
        s->state[k] = load_state(l, s, k, at, s->step > 0 && uses >> k & 1);
        if (cn_failed(l->ctx)) return false;
    }
    return true;
}

static bool load_all(loading *l)
{
    char name[NAME];
    const char *kind = cn_dict_text(l->d, kind_name(name, l->prefix));
    if (!kind) return missing(l, name);
    if (strcmp(kind, l->opt->rule->name) != 0)
        return cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: the dict must have the state of %s, got that of %s",
                        l->opt->rule->name, kind);
    if (cn_dict_text(l->d, name_of(name, l->prefix, "param_groups", l->opt->groups.n, "params")))
        return cn__fail(l->ctx, CN_BAD_ARGUMENT, "optim_load: the dict must have %d groups, got more",
                        (int)l->opt->groups.n);
    for (int i = 0; i < (int)l->opt->groups.n; i++)
        if (!load_group(l, i)) return false;
    for (size_t i = 0; i < l->opt->slots.n; i++)
        if (!load_slot(l, i)) return false;
    return cn_eval_all(l->ctx) && (!l->opt->lbfgs || l->opt->rule->load(l->opt, l->d, l->prefix));
}

static void release_states(cn__param_slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < CN__STATES; k++) cn__release(slots[i].state[k]);
}

bool cn_optim_load(cn_optim *opt, const cn_dict *dict, const char *prefix)
{
    CN__CALL call = cn__call_object(opt, &cn__optim_type);
    if (!opt && dict) cn__object_of(cn_dict_context(dict), opt, &cn__optim_type, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !cn__object_of(ctx, dict, &cn__dict_type, __func__) || cn_failed(ctx)) return false;
    size_t groups = opt->groups.n * sizeof(cn__param_group), slots = opt->slots.n * sizeof(cn__param_slot);
    loading l = { opt, ctx, dict, prefix, cn__alloc(ctx, groups), cn__alloc(ctx, slots) };
    cn_scope scope = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = l.groups && l.slots && load_all(&l);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, scope);
    if (ok) {
        release_states(opt->slots.v, opt->slots.n);
        memcpy(opt->slots.v, l.slots, slots);
        memcpy(opt->groups.v, l.groups, groups);
    } else if (l.slots) {
        release_states(l.slots, opt->slots.n);
    }
    cn__free(ctx, l.groups, groups);
    cn__free(ctx, l.slots, slots);
    return ok;
}

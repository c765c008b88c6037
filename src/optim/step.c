/* cn_step: it records every parameter's new value, assigns all of them, and undoes everything after an error. */
#include <math.h>

#include "optim/optim.h"

/* ---- functions that the rules share ---- */

cn_tensor *cn__toward(cn_tensor *a, cn_tensor *b, double w) { return cn_lerp(a, b, cn__weak(a, w)); }

void cn__update_by(cn__update *u, const cn_op *op, const cn_arg *args)
{
    cn_tensor *in[CN_MAX_IN] = { u->p, u->h->maximize ? cn_neg(u->g) : u->g }, *out[CN_MAX_OUT] = { NULL };
    int used[CN__STATES], n = 0;
    for (int k = 0; k < CN__STATES; k++)
        if (u->state[k]) used[n++] = k;
    for (int i = 0; i < n; i++) in[2 + i] = u->state[used[i]];
    if (!cn_apply_n(op, in, op->n_in, NULL, args, out)) return;
    u->new_p = out[0];
    for (int i = 0; i < n; i++) u->new_state[used[i]] = out[1 + i];
}

/* ---- recording ---- */

static void push_assignment(cn__changes *c, cn_tensor *t, cn_tensor *value)
{
    c->of[c->n] = t;
    c->to[c->n++] = value;
}

/* Makes the states that the rule uses and the parameter lacks. They are computed at once: then the first step, too,
   writes the new states over the old ones, and its plan is that of the steps after it. */
static bool make_states(const cn__rule *r, const cn__hyper *h, cn__param_slot *s, unsigned uses)
{
    for (int k = 0; k < CN__STATES; k++) {
        if (s->state[k] || !(uses >> k & 1)) continue;
        const double value = r->initial ? r->initial(h, k) : h->initial_value;
        s->state[k] = cn__keep(cn_full(s->p->ctx, cn__state_dtype(s->p), cn__state_shape(r, s->p, k), value));
        if (!s->state[k]) return false;
        s->fresh |= 1u << k;
        if (!cn_eval(s->state[k])) return false;
    }
    return true;
}

bool cn__record_slot(const cn__rule *rule, const cn__hyper *h, cn__param_slot *s, cn__changes *c)
{
    cn_tensor *g = cn_grad_of(s->p);
    if (!g) return true;
    unsigned uses = cn__rule_uses(rule, h, s->p);
    if (!make_states(rule, h, s, uses)) return false;
    cn_dtype t = cn__state_dtype(s->p);
    cn__update u = { .h = h, .step = s->step + 1, .product = s->product, .first = s->fresh & 1 };
    u.p = cn__dtype(s->p) == t ? s->p : cn_cast(s->p, t);
    u.g = cn__dtype(g) == t ? g : cn_cast(g, t);
    for (int k = 0; k < CN__STATES; k++) u.state[k] = uses >> k & 1 ? s->state[k] : NULL;
    rule->update(&u);
    if (!u.new_p) return false;
    push_assignment(c, s->p, u.new_p);
    for (int k = 0; k < CN__STATES; k++) {
        if (!u.state[k]) continue;
        if (!u.new_state[k]) return false;
        push_assignment(c, s->state[k], u.new_state[k]);
    }
    s->moved = true;
    s->by_rows = u.by_rows;
    s->next_product = u.product;
    return true;
}

static bool record(cn_optim *opt)
{
    cn_ctx *ctx = opt->object.ctx;
    cn__changes c = { opt->of.v, opt->to.v, 0 };
    cn_scope scope = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = true;
    for (size_t i = 0; i < opt->slots.n && ok; i++) {
        cn__param_slot *s = cn__optim_slot(opt, i);
        ok = cn__record_slot(opt->rule, &cn__optim_group(opt, s->group)->h, s, &c);
    }
    ok = ok && cn__update_all(ctx, c.of, c.to, (int)c.n);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, scope);
    return ok;
}

/* ---- gradients ---- */

/* Clears the gradients before the evaluation, so that it can reuse their memory. A hold on each gradient lets
   finish_gradient restore it after an error. A gradient that the step does not read counts as consumed: nobody wants
   its value. */
static void clear_gradients(cn_optim *opt)
{
    for (size_t i = 0; i < opt->slots.n; i++) {
        cn__param_slot *s = cn__optim_slot(opt, i);
        if (!s->moved) continue;
        s->gradient = cn_grad_of(s->p);
        cn__hold(s->gradient);
        if (s->by_rows) cn__result_of(s->gradient)->consumers++;
        cn_zero_grad(s->p);
    }
}

static void finish_gradient(cn__param_slot *s, bool ok)
{
    cn_tensor *g = s->gradient;
    s->gradient = NULL;
    if (!g) return;
    if (s->by_rows) cn__result_of(g)->consumers--;
    if (!ok && !s->p->grad) s->p->grad = cn__keep(g);
    cn__unhold(g);
}

void cn__drop_fresh(cn__param_slot *s)
{
    for (int k = 0; k < CN__STATES; k++) {
        if (!(s->fresh >> k & 1)) continue;
        cn__release(s->state[k]);
        s->state[k] = NULL;
    }
}

static void finish(cn__param_slot *s, bool ok)
{
    finish_gradient(s, ok);
    if (ok && s->moved) {
        s->step++;
        s->product = s->next_product;
    }
    if (!ok) cn__drop_fresh(s);
    s->fresh = 0;
    s->moved = false;
}

bool cn_step(cn_optim *opt)
{
    CN__CALL call = cn__call_quietly(opt, &cn__optim_type);
    if (!call.ctx || cn_failed(opt->object.ctx)) return false;
    if (opt->rule->minimize)
        return cn__fail(opt->object.ctx, CN_BAD_ARGUMENT,
                        "%s: a step computes the loss several times: call cn_step_closure", opt->rule->name);
    bool ok = record(opt);
    if (ok && !opt->keep_gradients) clear_gradients(opt);
    ok = ok && cn_eval_all(opt->object.ctx);
    for (size_t i = 0; i < opt->slots.n; i++) finish(cn__optim_slot(opt, i), ok);
    return ok;
}

/* ---- closures ---- */

double cn__call_closure(cn_optim *opt, cn_closure closure, void *user)
{
    cn_ctx *ctx = opt->object.ctx;
    for (size_t i = 0; i < opt->slots.n; i++) cn_zero_grad(cn__optim_slot(opt, i)->p);
    const cn__outside out = cn__go_out(ctx);
    ctx->no_grad = 0; /* as in PyTorch, also where the program records no gradients */
    cn_tensor *loss = closure(user);
    cn__come_back(ctx, out);
    if (cn_failed(ctx)) return NAN;
    if (!cn__of_context(ctx, loss, opt->rule->name, "the loss that the closure returns")) return NAN;
    return cn_item(loss);
}

bool cn_step_closure(cn_optim *opt, cn_closure closure, void *user, double *loss)
{
    double ignored;
    if (!loss) loss = &ignored;
    *loss = NAN;
    CN__CALL call = cn__call_object(opt, &cn__optim_type);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    if (!closure) return cn__fail(call.ctx, CN_BAD_ARGUMENT, "step_closure: the closure must not be NULL");
    CN__USE used = cn__object_use(opt); /* the closure may free it */
    cn_scope scope = cn_scope_begin(call.ctx);
    bool ok;
    if (opt->rule->minimize) {
        ok = opt->rule->minimize(opt, closure, user, loss);
    } else {
        *loss = cn__call_closure(opt, closure, user);
        ok = !cn_failed(call.ctx) && cn_step(opt);
    }
    cn_scope_end(call.ctx, scope);
    return ok;
}

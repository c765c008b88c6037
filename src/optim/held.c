/* Steps of parameters and states that the program holds: the rules of the optimizers, without an object. */
#include "optim/optim.h"

static const cn__rule *const rules[] = {
    &cn__rule_sgd,   &cn__rule_adam,   &cn__rule_adamw,   &cn__rule_sparse_adam, &cn__rule_nadam,
    &cn__rule_radam, &cn__rule_adamax, &cn__rule_rmsprop, &cn__rule_adagrad,     &cn__rule_adadelta,
    &cn__rule_lion,  &cn__rule_muon,   &cn__rule_rprop,   &cn__rule_asgd,        &cn__rule_adafactor,
};

static const cn__rule *find(const char *name)
{
    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i]->name, name) == 0) return rules[i];
    return NULL;
}

const char *cn_held_state(const char *optimizer, int k)
{
    const cn__rule *r = find(optimizer);
    return r && k >= 0 && k < CN__STATES ? r->state[k] : NULL;
}

/* ---- checks ---- */

static bool fits(cn_ctx *ctx, const cn__rule *r, const cn_held *h, int i)
{
    if (!cn__of_context(ctx, h->param, r->name, "a parameter")) return false;
    if (!cn_dtype_is_float(cn__dtype(h->param)))
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: parameter %d must be of a floating type, got %s", r->name, i,
                        cn_dtype_name(cn__dtype(h->param)));
    if (h->step < 0)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: step must be ≥ 0, got %lld", r->name, (long long)h->step);
    for (int k = 0; k < CN__STATES; k++) {
        if (!h->state[k]) continue;
        if (!r->state[k]) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: a parameter has at most %d states", r->name, k);
        if (!cn__of_context(ctx, h->state[k], r->name, r->state[k])) return false;
        cn_layout wanted;
        const cn_dims shape = cn__state_shape(r, h->param, k);
        char a[96], b[96];
        wanted.ndim = shape.n;
        memcpy(wanted.shape, shape.v, sizeof wanted.shape);
        if (!cn__same_shape(cn__layout(h->state[k]), &wanted))
            return cn__fail(ctx, CN_BAD_SHAPE, "%s: %s of parameter %d must have the shape %s, got %s", r->name,
                            r->state[k], i, cn__shape_text(&wanted, b, sizeof b),
                            cn__shape_text(cn__layout(h->state[k]), a, sizeof a));
        if (cn__dtype(h->state[k]) != cn__state_dtype(h->param))
            return cn__fail(ctx, CN_BAD_DTYPE, "%s: %s of parameter %d must be %s, got %s", r->name, r->state[k], i,
                            cn_dtype_name(cn__state_dtype(h->param)), cn_dtype_name(cn__dtype(h->state[k])));
    }
    return !r->accepts || r->accepts(h->param);
}

static const cn__rule *check(cn_ctx *ctx, const char *name, const cn_optim_numbers *numbers, const cn_held *held, int n)
{
    const cn__rule *r = find(name);
    if (!r) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "held_step: there is no optimizer \"%.40s\"", name ? name : "NULL");
        return NULL;
    }
    if (!numbers || (n && !held) || n < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "held_step: numbers and parameters must not be NULL, nor their count negative");
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (!fits(ctx, r, &held[i], i)) return NULL;
    return cn__hyper_check(ctx, r, numbers) ? r : NULL;
}

/* ---- steps ---- */

static cn__param_slot slot_of(const cn_held *h)
{
    cn__param_slot s = { .p = h->param, .step = h->step, .product = h->product };
    memcpy(s.state, h->state, sizeof s.state);
    return s;
}

static void give_back(cn_held *h, cn__param_slot *s, bool ok)
{
    if (!ok) {
        cn__drop_fresh(s);
        return;
    }
    for (int k = 0; k < CN__STATES; k++) {
        if (!(s->fresh >> k & 1)) continue;
        cn_keep(s->state[k]); /* a new state is the program's to release */
        cn__release(s->state[k]);
    }
    memcpy(h->state, s->state, sizeof h->state);
    if (!s->moved) return;
    h->step++;
    h->product = s->next_product;
}

bool cn_held_step(cn_ctx *ctx, const char *optimizer, const cn_optim_numbers *numbers, cn_held *held, int n)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || cn_failed(ctx)) return false;
    const cn__rule *r = check(ctx, optimizer, numbers, held, n);
    if (!r || n == 0) return r != NULL;
    const size_t room = (size_t)n * (1 + CN__STATES), slots_bytes = (size_t)n * sizeof(cn__param_slot);
    cn__param_slot *slots = cn__alloc(ctx, slots_bytes);
    cn_tensor **both = cn__alloc(ctx, 2 * room * sizeof *both);
    cn__changes c = { both, both + room, 0 };
    bool ok = slots && both;
    int done = 0;
    cn_scope scope = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    for (; done < n && ok; done++) {
        slots[done] = slot_of(&held[done]);
        ok = cn__record_slot(r, numbers, &slots[done], &c);
    }
    ok = ok && cn__update_all(ctx, c.of, c.to, (int)c.n);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, scope);
    for (int i = 0; i < done; i++) give_back(&held[i], &slots[i], ok);
    cn__free(ctx, both, 2 * room * sizeof *both);
    cn__free(ctx, slots, slots_bytes);
    return ok;
}

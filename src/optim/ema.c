/* Averages of weights over training (EMA, SWA): updates, exchange with the weights, saving and loading. */
#include <math.h>
#include <stdio.h>

#include "cairn/average.h"
#include "cairn/nn.h"
#include "optim/optim.h"

struct cn_ema {
    cn__object object;
    double decay;
    bool plain, average_buffers, applied;
    int64_t updates;
    int n, n_params;               /* all tensors; the parameters among them, which come before the buffers */
    cn_tensor **weight, **average; /* kept */
    cn_tensor **saved;             /* the weights' own values while the averages are applied; kept */
    cn_tensor **to;                /* values to assign */
};
enum { ARRAYS = 4 };

static size_t room(const cn_ema *e) { return ARRAYS * (size_t)e->n * sizeof(cn_tensor *); }

static void destroy(void *self)
{
    cn_ema *e = self;
    if (!e->weight) return;
    for (int i = 0; i < e->n; i++) {
        cn__release(e->saved[i]);
        cn__release(e->average[i]);
        cn__release(e->weight[i]);
    }
    cn__free(e->object.ctx, e->weight, room(e));
}

static const cn__object_type ema_type = { "average", destroy };

/* An average starts as a copy of its weight. Averages of halves are f32: a half would round small changes away. */
static cn_tensor *first_average(cn_tensor *weight)
{
    cn_dtype t = cn__dtype(weight);
    return t == CN_F16 || t == CN_BF16 ? cn_cast(weight, CN_F32) : cn_clone(weight);
}

static bool add(cn_ema *e, int i, cn_tensor *weight)
{
    cn_ctx *ctx = e->object.ctx;
    char what[32];
    snprintf(what, sizeof what, "tensor %d", i);
    if (!cn__of_context(ctx, weight, "ema", what)) return false;
    for (int k = 0; k < i; k++)
        if (e->weight[k] == weight)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "ema: tensors must differ, but tensors %d and %d are the same", k, i);
    e->average[i] = cn__keep(first_average(weight));
    if (!e->average[i]) return false;
    e->weight[i] = cn__keep(weight);
    return true;
}

static bool fill(cn_ema *e, cn_params params, cn_params buffers)
{
    cn_ctx *ctx = e->object.ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = true;
    for (int i = 0; i < params.n && ok; i++) ok = add(e, i, params.v[i]);
    for (int i = 0; i < buffers.n && ok; i++) ok = add(e, params.n + i, buffers.v[i]);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    return ok && cn_eval_all(ctx);
}

cn_ema *cn_ema_new(cn_ctx *ctx, cn_params params, const cn_ema_desc *desc)
{
    CN__CALL call = cn__enter(ctx, "ema");
    if (!call.ctx || cn_failed(ctx)) return NULL;
    cn_ema_desc d = desc ? *desc : (cn_ema_desc){ 0 };
    double decay = cn__given(d.decay, 0.999);
    if (!(decay >= 0 && decay <= 1)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "ema: decay must be from 0 to 1, got %g", decay);
        return NULL;
    }
    if (params.n < 1 || !params.v || d.buffers.n < 0 || d.buffers.n > INT32_MAX - params.n ||
        (d.buffers.n && !d.buffers.v)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "ema: there must be at least 1 parameter and 0 buffers, got %d and %d", params.n,
                 d.buffers.n);
        return NULL;
    }
    cn_ema *e = cn__object_new(ctx, sizeof *e, &ema_type);
    if (!e) return NULL;
    e->decay = decay;
    e->plain = d.plain;
    e->average_buffers = d.average_buffers;
    e->n_params = params.n;
    e->n = params.n + d.buffers.n;
    e->weight = cn__alloc(ctx, room(e));
    if (e->weight) {
        e->average = e->weight + e->n;
        e->saved = e->average + e->n;
        e->to = e->saved + e->n;
        if (fill(e, params, d.buffers)) return e;
    }
    cn__object_free(e);
    return NULL;
}

cn_ema *cn_ema_of(cn_module *m, const cn_ema_desc *desc)
{
    CN__CALL call = cn__enter(cn_module_context(m), "ema");
    cn_ctx *ctx = call.ctx;
    if (!ctx) return NULL;
    cn_ema_desc d = desc ? *desc : (cn_ema_desc){ 0 };
    cn_named_list named = cn_module_named(m);
    size_t bytes = (size_t)named.n * sizeof(cn_tensor *);
    cn_tensor **buffers = cn__alloc(ctx, bytes);
    if (cn_failed(ctx)) {
        cn__free(ctx, buffers, bytes);
        return NULL;
    }
    int n = 0;
    for (int i = 0; i < named.n; i++)
        if (named.v[i].buffer) buffers[n++] = named.v[i].tensor;
    d.buffers = (cn_params){ buffers, n };
    cn_ema *e = cn_ema_new(ctx, cn_parameters(m), &d);
    cn__free(ctx, buffers, bytes);
    return e;
}

void cn_ema_free(cn_ema *e) { cn__free_by_program(e, &ema_type, __func__); }
int64_t cn_ema_updates(const cn_ema *e) { return cn__is(e, &ema_type) ? e->updates : 0; }
cn_params cn_ema_averages(const cn_ema *e)
{
    return cn__is(e, &ema_type) ? (cn_params){ e->average, e->n } : (cn_params){ NULL, 0 };
}

/* ---- updates ---- */

static cn_tensor *averaged(const cn_ema *e, int i)
{
    bool copied =
        e->updates == 0 || !cn_dtype_is_float(cn__dtype(e->weight[i])) || (i >= e->n_params && !e->average_buffers);
    if (copied) return cn_detach(e->weight[i]);
    double share = e->plain ? 1 / ((double)e->updates + 1) : 1 - e->decay;
    cn_tensor *w = e->weight[i], *a = e->average[i];
    return cn__toward(a, cn__dtype(w) == cn__dtype(a) ? w : cn_cast(w, cn__dtype(a)), share);
}

/* Begins a call of an ema whose averages are applied, or not. */
static cn__call enter(const cn_ema *e, const char *who, bool applied)
{
    cn__call call = cn__enter_object(e, &ema_type, who, true);
    if (!call.ctx) return call;
    if (e->applied == applied && !cn_failed(call.ctx)) return call;
    cn__fail(e->object.ctx, CN_BAD_ARGUMENT, "%s: the averages are %s", cn__called(call.ctx, who),
             applied ? "not applied; call cn_ema_apply first" : "applied; call cn_ema_restore first");
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

static cn__call enter_with(const cn_ema *e, const cn_dict *dict, const char *who)
{
    if (!e && dict) cn__object_of(cn_dict_context(dict), e, &ema_type, who);
    cn__call call = enter(e, who, false);
    if (!call.ctx || cn__object_of(call.ctx, dict, &cn__dict_type, who)) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_ema_update(cn_ema *e)
{
    CN__CALL call = enter(e, __func__, false);
    if (!call.ctx) return false;
    cn_ctx *ctx = e->object.ctx;
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = true;
    for (int i = 0; i < e->n && ok; i++) ok = (e->to[i] = averaged(e, i)) != NULL;
    ok = ok && cn__assign_all(ctx, e->average, e->to, e->n);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    ok = ok && cn_eval_all(ctx);
    e->updates += ok;
    return ok;
}

static void release_saved(cn_ema *e)
{
    for (int i = 0; i < e->n; i++) {
        cn__release(e->saved[i]);
        e->saved[i] = NULL;
    }
}

/* Detached weights keep their present values. */
static bool save_weights(cn_ema *e)
{
    cn_ctx *ctx = e->object.ctx;
    cn_scope s = cn_scope_begin(ctx);
    bool ok = true;
    for (int i = 0; i < e->n && ok; i++) ok = (e->saved[i] = cn__keep(cn_detach(e->weight[i]))) != NULL;
    cn_scope_end(ctx, s);
    return ok;
}

static bool assign_weights(cn_ema *e, cn_tensor *const *values)
{
    memcpy(e->to, values, (size_t)e->n * sizeof *values);
    return cn__assign_all(e->object.ctx, e->weight, e->to, e->n) && cn_eval_all(e->object.ctx);
}

bool cn_ema_apply(cn_ema *e)
{
    CN__CALL call = enter(e, __func__, false);
    if (!call.ctx) return false;
    e->applied = save_weights(e) && assign_weights(e, e->average);
    if (!e->applied) release_saved(e);
    return e->applied;
}

bool cn_ema_restore(cn_ema *e)
{
    CN__CALL call = enter(e, __func__, true);
    if (!call.ctx || !assign_weights(e, e->saved)) return false;
    e->applied = false;
    release_saved(e);
    return true;
}

/* ---- state ---- */

static const char *name_of(char out[256], const char *prefix, int i)
{
    prefix = prefix ? prefix : "";
    int n = i < 0 ? snprintf(out, 256, "%sn_averaged", prefix) : snprintf(out, 256, "%saverages/%d", prefix, i);
    return n >= 0 && n < 256 ? out : NULL;
}

bool cn_ema_save(cn_ema *e, cn_dict *dict, const char *prefix)
{
    CN__CALL call = enter_with(e, dict, __func__);
    if (!call.ctx) return false;
    char name[256];
    cn_ctx *ctx = e->object.ctx;
    cn_scope s = cn_scope_begin(ctx);
    bool ok = cn_dict_set_whole(dict, name_of(name, prefix, -1), e->updates);
    for (int i = 0; i < e->n && ok; i++) ok = cn_dict_set(dict, name_of(name, prefix, i), cn_detach(e->average[i]));
    cn_scope_end(ctx, s);
    return ok || cn__fail(ctx, CN_BAD_ARGUMENT, "ema_save: a name with its prefix must be shorter than 256 bytes");
}

bool cn_ema_load(cn_ema *e, const cn_dict *dict, const char *prefix)
{
    CN__CALL call = enter_with(e, dict, __func__);
    if (!call.ctx) return false;
    char name[256];
    cn_ctx *ctx = e->object.ctx;
    int64_t updates = 0;
    if (!cn_dict_whole(dict, name_of(name, prefix, -1), &updates) || updates < 0)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "ema_load: the dict must have a whole number ≥ 0 as n_averaged");
    for (int i = 0; i < e->n; i++)
        if (!(e->to[i] = cn_dict_get(dict, name_of(name, prefix, i))))
            return cn__fail(ctx, CN_BAD_ARGUMENT, "ema_load: the dict has no averages/%d", i);
    if (!cn__assign_all(ctx, e->average, e->to, e->n) || !cn_eval_all(ctx)) return false;
    e->updates = updates;
    return true;
}

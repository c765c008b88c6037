/* MultiheadAttention: it projects q, k and v, attends in every head, and projects the joined heads. */
#include <math.h>
#include <stdio.h>

#include "cairn/init.h"
#include "nn/nn.h"
#include "ops/shared.h"

typedef struct attention {
    int64_t width, heads, kdim, vdim;
    double dropout;
    bool batch_first;
    cn_tensor *in_weight, *weight[3], *in_bias; /* either in_weight (3E,E), or a weight each for q, k and v */
    cn_tensor *bias_k, *bias_v;                 /* (1,1,E), of one more key and value; NULL: there is none */
    bool add_zero_attn;                         /* one more key and value of zeros */
    cn_module *out;
} attention;

static const cn_module_type attention_type;

/* ---- shapes ---- */

/* One call of the module: its sizes, and whether the operands have a batch axis. */
typedef struct mha_call {
    cn_ctx *ctx;
    const attention *a;
    int64_t batch, tq, tk;
    bool batched;
} mha_call;

/* steps < 0: any number of them */
static bool check_operand(const mha_call *s, const char *name, cn_tensor *t, int64_t batch, int64_t steps,
                          int64_t width)
{
    const int axis = s->a->batch_first ? 1 : 0; /* the axis of steps, if there is a batch */
    const bool fits = cn_ndim(t) == (s->batched ? 3 : 2) && cn_size(t, -1) == width &&
                      cn_size(t, s->batched ? axis : 0) == steps && (!s->batched || cn_size(t, 1 - axis) == batch);
    if (fits) return true;
    char text[96], count[24] = "steps", wanted[96];
    const long long b = batch, w = width;
    if (steps >= 0) snprintf(count, sizeof count, "%lld", (long long)steps);
    if (!s->batched) snprintf(wanted, sizeof wanted, "[%s,%lld]", count, w);
    else if (s->a->batch_first) snprintf(wanted, sizeof wanted, "[%lld,%s,%lld]", b, count, w);
    else snprintf(wanted, sizeof wanted, "[%s,%lld,%lld]", count, b, w);
    return cn__fail(s->ctx, CN_BAD_SHAPE, "MultiheadAttention: %s must be %s, got %s", name, wanted,
                    cn__shape_text(cn__layout(t), text, sizeof text));
}

static bool set_sizes(mha_call *s, cn_tensor *q, cn_tensor *k, cn_tensor *v)
{
    const attention *a = s->a;
    const int axis = a->batch_first ? 1 : 0;
    char text[96];
    s->batched = cn_ndim(q) == 3;
    if (!s->batched && cn_ndim(q) != 2)
        return cn__fail(s->ctx, CN_BAD_SHAPE, "MultiheadAttention: q must be [%s,%lld] or [steps,%lld], got %s",
                        a->batch_first ? "batch,steps" : "steps,batch", (long long)a->width, (long long)a->width,
                        cn__shape_text(cn__layout(q), text, sizeof text));
    s->batch = s->batched ? cn_size(q, 1 - axis) : 1;
    s->tq = cn_size(q, s->batched ? axis : 0);
    s->tk = cn_ndim(k) == cn_ndim(q) ? cn_size(k, s->batched ? axis : 0) : -1;
    return check_operand(s, "q", q, s->batch, s->tq, a->width) && check_operand(s, "k", k, s->batch, s->tk, a->kdim) &&
           check_operand(s, "v", v, s->batch, s->tk, a->vdim);
}

/* ---- projections: (B,H,T,D) each ---- */

/* n projections in one product: rows [first, first + n) of in_proj */
static void project(const mha_call *s, cn_tensor *x, cn_tensor *weight, int first, int n, cn_tensor **out)
{
    const attention *a = s->a;
    const int64_t E = a->width;
    cn_tensor *bias = a->in_bias;
    if (a->in_weight && n < 3) weight = cn_narrow(weight, 0, first * E, n * E);
    if (bias && n < 3) bias = cn_narrow(bias, 0, first * E, n * E);
    cn_tensor *y = cn_linear(s->batched ? x : cn_unsqueeze(x, 0), weight, bias);
    const bool steps_first = s->batched && !a->batch_first;
    y = cn_reshape(y, CN_DIMS(cn_size(y, 0), cn_size(y, 1), n, a->heads, E / a->heads));
    y = cn_permute(y, steps_first ? CN_DIMS(2, 1, 3, 0, 4) : CN_DIMS(2, 0, 3, 1, 4)); /* (n,B,H,T,D) */
    for (int k = 0; k < n; k++) out[k] = cn_select(y, 0, k);
}

static void project_all(const mha_call *s, cn_tensor *q, cn_tensor *k, cn_tensor *v, cn_tensor *out[3])
{
    const attention *a = s->a;
    cn_tensor *const in[3] = { q, k, v };
    if (a->in_weight && q == k && k == v) project(s, q, a->in_weight, 0, 3, out);
    else if (a->in_weight && k == v) {
        project(s, q, a->in_weight, 0, 1, out);
        project(s, k, a->in_weight, 1, 2, out + 1);
    } else
        for (int i = 0; i < 3; i++) project(s, in[i], a->in_weight ? a->in_weight : a->weight[i], i, 1, out + i);
}

/* ---- masks: in a module's mask true forbids a key, in an operator's mask true allows it, as in PyTorch ---- */

/* The mask as (B,1,1,Tk), (1,1,Tq,Tk) or (B,H,Tq,Tk); NULL, with an error, if its shape is none of these. */
static cn_tensor *shape_mask(const mha_call *s, cn_tensor *mask, bool of_keys)
{
    const cn_dims d = cn_shape(mask);
    const int64_t heads = s->a->heads;
    if (of_keys && d.n == (s->batched ? 2 : 1) && d.v[d.n - 1] == s->tk && (!s->batched || d.v[0] == s->batch))
        return cn_reshape(mask, CN_DIMS(s->batch, 1, 1, s->tk));
    if (!of_keys && d.n == 2 && d.v[0] == s->tq && d.v[1] == s->tk)
        return cn_reshape(mask, CN_DIMS(1, 1, s->tq, s->tk));
    if (!of_keys && d.n == 3 && d.v[0] == s->batch * heads && d.v[1] == s->tq && d.v[2] == s->tk)
        return cn_reshape(mask, CN_DIMS(s->batch, heads, s->tq, s->tk));
    char text[96], wanted[96];
    const long long batch = s->batch, tq = s->tq, tk = s->tk;
    if (!of_keys) snprintf(wanted, sizeof wanted, "[%lld,%lld] or [%lld,%lld,%lld]", tq, tk, batch * heads, tq, tk);
    else if (s->batched) snprintf(wanted, sizeof wanted, "[%lld,%lld]", batch, tk);
    else snprintf(wanted, sizeof wanted, "[%lld]", tk);
    cn__fail(s->ctx, CN_BAD_SHAPE, "MultiheadAttention: %s must be %s, got %s",
             of_keys ? "key_padding_mask" : "attn_mask", wanted, cn__shape_text(cn__layout(mask), text, sizeof text));
    return NULL;
}

/* A mask that is added to scores: -∞ where a bool mask is true. */
static cn_tensor *additive(const mha_call *s, cn_tensor *mask, cn_dtype dtype)
{
    if (!mask || cn_type(mask) != CN_BOOL) return mask;
    return cn_masked_fill(cn_zeros(s->ctx, dtype, cn_shape(mask)), mask, -INFINITY);
}

/* Both masks as one for cn_scaled_dot_product_attention; *mask is NULL if the call has none. */
static bool join_masks(const mha_call *s, const cn_mha_desc *call, cn_dtype dtype, cn_tensor **mask)
{
    cn_tensor *keys = NULL, *pairs = NULL;
    *mask = NULL;
    if (call->key_padding_mask && !(keys = shape_mask(s, call->key_padding_mask, true))) return false;
    if (call->attn_mask && !(pairs = shape_mask(s, call->attn_mask, false))) return false;
    if (!keys && !pairs) return true;
    const bool bools = (!keys || cn_type(keys) == CN_BOOL) && (!pairs || cn_type(pairs) == CN_BOOL);
    if (!bools) keys = additive(s, keys, dtype), pairs = additive(s, pairs, dtype);
    if (keys && pairs) *mask = bools ? cn_logical_or(keys, pairs) : cn_add(keys, pairs);
    else *mask = keys ? keys : pairs;
    if (bools) *mask = cn_logical_not(*mask);
    return *mask != NULL;
}

/* ---- further keys: a learned one (add_bias_kv), and one of zeros (add_zero_attn), which no mask forbids ---- */

/* The mask of a causal attention, joined with another one, which may be NULL. */
static cn_tensor *causal_mask(const mha_call *s, cn_tensor *mask)
{
    cn_tensor *later = cn_gt_s(cn_triu(cn_ones(s->ctx, CN_F32, CN_DIMS(1, 1, s->tq, s->tk)), 1), 0);
    if (!mask) return cn_logical_not(later);
    if (cn_type(mask) == CN_BOOL) return cn_logical_and(mask, cn_logical_not(later));
    return cn_masked_fill(mask, later, -INFINITY);
}

/* Appends the keys and values to k and v, (B,H,Tk,D), and columns to the mask. */
static bool append_keys(mha_call *s, cn_tensor *kv[2], cn_tensor **mask, bool *causal)
{
    const attention *a = s->a;
    const int64_t E = a->width, D = E / a->heads, more = (a->bias_k != NULL) + a->add_zero_attn;
    if (!more) return true;
    if (*causal) *mask = causal_mask(s, *mask);
    *causal = false;
    for (int i = 0; i < 2; i++) {
        cn_tensor *own = i ? a->bias_v : a->bias_k, *parts[3] = { kv[i] };
        int n = 1;
        const cn_dims one = CN_DIMS(s->batch, a->heads, 1, D);
        if (own) parts[n++] = cn_expand(cn_reshape(own, CN_DIMS(1, a->heads, 1, D)), one);
        if (a->add_zero_attn) parts[n++] = cn_zeros(s->ctx, cn_type(kv[i]), one);
        kv[i] = cn_cat(parts, n, 2);
    }
    if (*mask) {
        cn_dims shape = cn_shape(*mask);
        shape.v[3] = more;
        const cn_dtype dtype = cn_type(*mask);
        *mask = cn_cat((cn_tensor *[]){ *mask, cn_full(s->ctx, dtype, shape, dtype == CN_BOOL) }, 2, 3);
    }
    s->tk += more;
    return !cn_failed(s->ctx);
}

/* ---- attention ---- */

/* Attention in plain operators, which also returns its weights, (B,H,Tq,Tk). */
static cn_tensor *attend_with_weights(const mha_call *s, cn_tensor *const qkv[3], cn_tensor *mask, bool causal,
                                      double dropout, cn_tensor **weights)
{
    const double scale = 1 / sqrt((double)(s->a->width / s->a->heads));
    cn_tensor *scores = cn_matmul(cn_mul_s(qkv[0], scale), cn_transpose(qkv[1], -2, -1));
    if (mask && cn_type(mask) == CN_BOOL) scores = cn_masked_fill(scores, cn_logical_not(mask), -INFINITY);
    else if (mask) scores = cn_add(scores, mask);
    if (causal) {
        cn_tensor *all = cn_ones(s->ctx, CN_F32, CN_DIMS(s->tq, s->tk));
        scores = cn_masked_fill(scores, cn_gt_s(cn_triu(all, 1), 0), -INFINITY);
    }
    *weights = cn_dropout(cn_softmax(scores, -1), dropout, dropout > 0);
    return cn_matmul(*weights, qkv[2]);
}

/* (B,H,Tq,D) -> the shape of q */
static cn_tensor *join_heads(const mha_call *s, cn_tensor *y)
{
    const int64_t E = s->a->width;
    if (!s->batched) return cn_reshape(cn_permute(y, CN_DIMS(0, 2, 1, 3)), CN_DIMS(s->tq, E));
    if (s->a->batch_first) return cn_reshape(cn_permute(y, CN_DIMS(0, 2, 1, 3)), CN_DIMS(s->batch, s->tq, E));
    return cn_reshape(cn_permute(y, CN_DIMS(2, 0, 1, 3)), CN_DIMS(s->tq, s->batch, E));
}

static bool check_mask(cn_ctx *ctx, cn_tensor *mask, const char *what)
{
    return !mask || cn__of_context(ctx, mask, "attention_forward", what);
}

cn_tensor *cn_attention_forward(cn_module *m, cn_tensor *q, cn_tensor *k, cn_tensor *v, const cn_mha_desc *desc,
                                cn_tensor **weights)
{
    if (weights) *weights = NULL;
    CN__CALL call = cn__enter_forward(m, (cn_tensor *[]){ q, k, v }, 3, (const char *[]){ "q", "k", "v" }, __func__);
    if (!call.ctx) return NULL;
    mha_call s = { .ctx = cn_module_context(m), .a = cn_module_data(m) };
    if (cn_module_type_of(m) != &attention_type) {
        cn__fail(s.ctx, CN_BAD_ARGUMENT, "attention_forward: the module must be a MultiheadAttention, got a %s",
                 cn_module_type_of(m)->name);
        return NULL;
    }
    const cn_mha_desc none = { 0 }, *c = desc ? desc : &none;
    cn_tensor *qkv[3] = { NULL }, *mask, *y;
    if (!check_mask(call.ctx, c->key_padding_mask, "key_padding_mask") ||
        !check_mask(call.ctx, c->attn_mask, "attn_mask") || !set_sizes(&s, q, k, v) ||
        !join_masks(&s, c, cn_type(q), &mask))
        return NULL;
    const double dropout = cn_module_training(m) ? s.a->dropout : 0;
    bool causal = c->is_causal;
    project_all(&s, q, k, v, qkv);
    if (!append_keys(&s, qkv + 1, &mask, &causal)) return NULL;
    if (weights) {
        y = attend_with_weights(&s, qkv, mask, causal, dropout, weights);
        if (!c->per_head) *weights = cn_mean(*weights, CN_DIMS(1), false);
        if (!s.batched) *weights = cn_squeeze(*weights, CN_DIMS(0));
    } else {
        const cn_attention_desc d = { .attn_mask = mask, .is_causal = causal, .dropout_p = dropout };
        y = cn_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], &d);
    }
    return cn_forward(s.a->out, join_heads(&s, y));
}

/* in: x, or q, k and v; out: the result, and the weights averaged over heads */
static bool forward_all(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    if ((n_in != 1 && n_in != 3) || n_out > 2)
        return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT,
                        "MultiheadAttention: forward accepts x, or q, k and v, and returns y and weights; "
                        "got %d operands and %d results",
                        n_in, n_out);
    cn_tensor *y = cn_attention_forward(m, in[0], in[n_in / 2], in[n_in - 1], NULL, n_out > 1 ? &out[1] : NULL);
    if (n_out > 0) out[0] = y;
    return y != NULL;
}

/* ---- maker ---- */

static void describe(const cn_module *m, char *out, size_t size)
{
    const attention *a = cn_module_data(m);
    int n = snprintf(out, size, "%lld, %lld heads", (long long)a->width, (long long)a->heads);
    if (a->dropout > 0) n += snprintf(out + n, size - (size_t)n, ", dropout %g", a->dropout);
    if (!a->in_bias) snprintf(out + n, size - (size_t)n, ", no bias");
}

static const cn_module_type attention_type = {
    .name = "MultiheadAttention", .forward_all = forward_all, .data_bytes = sizeof(attention), .describe = describe
};

static bool check_options(cn_ctx *ctx, int64_t width, int64_t heads, const cn_multihead_desc *d)
{
    if (width < 1 || heads < 1 || width > INT32_MAX || width % heads != 0)
        return cn__fail(
            ctx, CN_BAD_ARGUMENT,
            "MultiheadAttention: embed_dim must be > 0 and a multiple of num_heads, got %lld and %lld heads",
            (long long)width, (long long)heads);
    if (d->kdim < 0 || d->vdim < 0 || d->kdim > INT32_MAX || d->vdim > INT32_MAX)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "MultiheadAttention: kdim and vdim must be ≥ 0, got %lld and %lld",
                        (long long)d->kdim, (long long)d->vdim);
    if (!(d->dropout >= 0 && d->dropout <= 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "MultiheadAttention: dropout must be from 0 to 1, got %g", d->dropout);
    return true;
}

static cn_tensor *xavier(cn_ctx *ctx, int64_t out, int64_t in)
{
    return cn__uniform(ctx, CN_DIMS(out, in), sqrt(6 / (double)(in + out)));
}

static void add_parameters(cn_module *m, attention *a, bool bias, bool bias_kv)
{
    static const char *const names[3] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };
    cn_ctx *ctx = cn_module_context(m);
    const int64_t E = a->width, in[3] = { E, a->kdim, a->vdim };
    if (a->kdim == E && a->vdim == E) a->in_weight = cn_module_param(m, "in_proj_weight", xavier(ctx, 3 * E, E));
    else
        for (int k = 0; k < 3; k++) a->weight[k] = cn_module_param(m, names[k], xavier(ctx, E, in[k]));
    if (bias) a->in_bias = cn_module_param(m, "in_proj_bias", cn_zeros(ctx, ctx->default_dtype, CN_DIMS(3 * E)));
    const double scale = 1 / sqrt((double)E); /* Xavier's, of a tensor (1,1,E) */
    if (bias_kv) {
        const cn_dims shape = CN_DIMS(1, 1, E);
        a->bias_k = cn_module_param(m, "bias_k", cn_mul_s(cn_randn(ctx, ctx->default_dtype, shape), scale));
        a->bias_v = cn_module_param(m, "bias_v", cn_mul_s(cn_randn(ctx, ctx->default_dtype, shape), scale));
    }
    a->out = cn_module_child(m, "out_proj", cn_nn_linear(ctx, E, E, &(cn_linear_desc){ .no_bias = !bias }));
    if (bias) cn_init_zeros(cn_module_get(a->out, "bias"));
}

cn_module *cn_nn_multihead_attention(cn_ctx *ctx, int64_t embed_dim, int64_t num_heads, const cn_multihead_desc *desc)
{
    const cn_multihead_desc d = desc ? *desc : (cn_multihead_desc){ 0 };
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || !check_options(ctx, embed_dim, num_heads, &d)) return NULL;
    cn_module *m = cn_module_new(ctx, &attention_type);
    attention *a = cn_module_data(m);
    if (!a) return NULL;
    *a = (attention){ .width = embed_dim,
                      .heads = num_heads,
                      .kdim = d.kdim ? d.kdim : embed_dim,
                      .vdim = d.vdim ? d.vdim : embed_dim,
                      .dropout = d.dropout,
                      .batch_first = d.batch_first,
                      .add_zero_attn = d.add_zero_attn };
    cn_scope s = cn_scope_begin(ctx);
    add_parameters(m, a, !d.no_bias, d.add_bias_kv);
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

/* The GPT model: embeddings of tokens and positions, blocks of attention and a two-layer network, a norm, logits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gpt/gpt.h"
#include "nn/nn.h"

#define EPS 1e-5

/* ---- layers: x · weight + bias, and layer norm ---- */

typedef struct affine {
    cn_tensor *weight, *bias;
} affine;

static cn_tensor *product_forward(cn_module *m, cn_tensor *x)
{
    const affine *a = cn_module_data(m);
    return cn_add(cn_matmul(x, a->weight), a->bias);
}

static cn_tensor *norm_forward(cn_module *m, cn_tensor *x)
{
    const affine *a = cn_module_data(m);
    return cn_layer_norm(x, 1, a->weight, a->bias, EPS);
}

static void describe_affine(const cn_module *m, char *out, size_t size)
{
    const affine *a = cn_module_data(m);
    if (cn_ndim(a->weight) == 1) snprintf(out, size, "%" PRId64, cn_size(a->weight, 0));
    else snprintf(out, size, "%" PRId64 ", %" PRId64, cn_size(a->weight, 0), cn_size(a->weight, 1));
}

static const cn_module_type product_type = {
    .name = "Conv1D", .forward = product_forward, .data_bytes = sizeof(affine), .describe = describe_affine
};
static const cn_module_type norm_type = {
    .name = "LayerNorm", .forward = norm_forward, .data_bytes = sizeof(affine), .describe = describe_affine
};

static cn_tensor *normal(cn_ctx *ctx, cn_dims shape, double std)
{
    return cn_mul_s(cn_randn(ctx, cn_default_dtype(ctx), shape), std);
}

static cn_module *product(cn_ctx *ctx, int64_t in, int64_t out, double std)
{
    cn_module *m = cn_module_new(ctx, &product_type);
    affine *a = cn_module_data(m);
    if (!m) return NULL;
    a->weight = cn_module_param(m, "weight", normal(ctx, CN_DIMS(in, out), std));
    a->bias = cn_module_param(m, "bias", cn_zeros(ctx, cn_default_dtype(ctx), CN_DIMS(out)));
    return cn_module_made(m);
}

static cn_module *norm(cn_ctx *ctx, int64_t width)
{
    cn_module *m = cn_module_new(ctx, &norm_type);
    affine *a = cn_module_data(m);
    if (!m) return NULL;
    a->weight = cn_module_param(m, "weight", cn_ones(ctx, cn_default_dtype(ctx), CN_DIMS(width)));
    a->bias = cn_module_param(m, "bias", cn_zeros(ctx, cn_default_dtype(ctx), CN_DIMS(width)));
    return cn_module_made(m);
}

/* ---- attention ---- */

typedef struct attention {
    cn_module *c_attn, *c_proj;
    int64_t heads;
    double dropout;
} attention;

/* (B,T,C) -> (B,T,C) */
static cn_tensor *attention_forward(cn_module *m, cn_tensor *x)
{
    const attention *a = cn_module_data(m);
    const int64_t B = cn_size(x, 0), T = cn_size(x, 1), C = cn_size(x, 2);
    const double p = cn_module_training(m) ? a->dropout : 0;
    cn_tensor *h = cn_reshape(cn_forward(a->c_attn, x), CN_DIMS(B, T, 3, a->heads, C / a->heads));
    h = cn_permute(h, CN_DIMS(2, 0, 3, 1, 4)); /* (3,B,H,T,D) */
    cn_tensor *y = cn_scaled_dot_product_attention(cn_select(h, 0, 0), cn_select(h, 0, 1), cn_select(h, 0, 2),
                                                   &(cn_attention_desc){ .is_causal = true, .dropout_p = p });
    y = cn_forward(a->c_proj, cn_reshape(cn_transpose(y, 1, 2), CN_DIMS(B, T, C)));
    return cn_dropout(y, p, p > 0);
}

/* The same for T tokens that follow `used` others in the cache, (1,T,C). Their keys and values enter the cache last. */
static cn_tensor *attention_step(cn_module *m, cn_tensor *x, cn__gpt_cache *cache, int64_t used)
{
    const attention *a = cn_module_data(m);
    const int64_t T = cn_size(x, 1), C = cn_size(x, 2);
    cn_tensor *h = cn_reshape(cn_forward(a->c_attn, x), CN_DIMS(1, T, 3, a->heads, C / a->heads));
    cn_tensor *q = cn_select(h, 2, 0), *k = cn_select(h, 2, 1), *v = cn_select(h, 2, 2);
    cn_tensor *y = cn_cached_attention(q, k, v, cache->keys, cache->values, used, 0);
    if (!y || !cn_slice_assign_(cache->keys, 1, used, used + T, 1, k) ||
        !cn_slice_assign_(cache->values, 1, used, used + T, 1, v))
        return NULL;
    return cn_forward(a->c_proj, cn_reshape(y, CN_DIMS(1, T, C)));
}

static const cn_module_type attention_type = { .name = "Attention",
                                               .forward = attention_forward,
                                               .data_bytes = sizeof(attention) };

static cn_module *attention_new(cn_ctx *ctx, const cn_gpt_desc *d, double last_std)
{
    cn_module *m = cn_module_new(ctx, &attention_type);
    if (!m) return NULL;
    attention *a = cn_module_data(m);
    *a = (attention){ .heads = d->heads, .dropout = d->dropout };
    a->c_attn = cn_module_child(m, "c_attn", product(ctx, d->width, 3 * d->width, 0.02));
    a->c_proj = cn_module_child(m, "c_proj", product(ctx, d->width, d->width, last_std));
    return cn_module_made(m);
}

/* ---- the network after attention ---- */

typedef struct network {
    cn_module *c_fc, *c_proj;
    double dropout;
} network;

static cn_tensor *network_step(cn_module *m, cn_tensor *x)
{
    const network *n = cn_module_data(m);
    return cn_forward(n->c_proj, cn_gelu_tanh(cn_forward(n->c_fc, x)));
}

static cn_tensor *network_forward(cn_module *m, cn_tensor *x)
{
    const network *n = cn_module_data(m);
    const double p = cn_module_training(m) ? n->dropout : 0;
    return cn_dropout(network_step(m, x), p, p > 0);
}

static const cn_module_type network_type = { .name = "MLP", .forward = network_forward, .data_bytes = sizeof(network) };

static cn_module *network_new(cn_ctx *ctx, const cn_gpt_desc *d, double last_std)
{
    cn_module *m = cn_module_new(ctx, &network_type);
    if (!m) return NULL;
    network *n = cn_module_data(m);
    *n = (network){ .dropout = d->dropout };
    n->c_fc = cn_module_child(m, "c_fc", product(ctx, d->width, 4 * d->width, 0.02));
    n->c_proj = cn_module_child(m, "c_proj", product(ctx, 4 * d->width, d->width, last_std));
    return cn_module_made(m);
}

/* ---- a block ---- */

typedef struct block {
    cn_module *ln_1, *attn, *ln_2, *mlp;
} block;

static cn_tensor *block_forward(cn_module *m, cn_tensor *x)
{
    const block *b = cn_module_data(m);
    x = cn_add(x, cn_forward(b->attn, cn_forward(b->ln_1, x)));
    return cn_add(x, cn_forward(b->mlp, cn_forward(b->ln_2, x)));
}

/* A step of decoding has no dropout, even in training mode. */
static cn_tensor *block_step(cn_module *m, cn_tensor *x, cn__gpt_cache *cache, int64_t used)
{
    const block *b = cn_module_data(m);
    x = cn_add(x, attention_step(b->attn, cn_forward(b->ln_1, x), cache, used));
    return cn_add(x, network_step(b->mlp, cn_forward(b->ln_2, x)));
}

static const cn_module_type block_type = { .name = "Block", .forward = block_forward, .data_bytes = sizeof(block) };

static cn_module *block_new(cn_ctx *ctx, const cn_gpt_desc *d)
{
    cn_module *m = cn_module_new(ctx, &block_type);
    if (!m) return NULL;
    const double last_std = 0.02 / sqrt(2.0 * (double)d->layers); /* keeps the variance of the sum of all residuals */
    block *b = cn_module_data(m);
    b->ln_1 = cn_module_child(m, "ln_1", norm(ctx, d->width));
    b->attn = cn_module_child(m, "attn", attention_new(ctx, d, last_std));
    b->ln_2 = cn_module_child(m, "ln_2", norm(ctx, d->width));
    b->mlp = cn_module_child(m, "mlp", network_new(ctx, d, last_std));
    return cn_module_made(m);
}

/* ---- the model ---- */

typedef struct gpt {
    cn_gpt_desc desc;
    cn_tensor *wte, *wpe, *head;
    cn_module *h, *ln_f;
} gpt;

static bool check_tokens(cn_module *m, cn_tensor *tokens, int64_t used)
{
    const gpt *g = cn_module_data(m);
    cn_ctx *ctx = cn_module_context(m);
    if (cn_ndim(tokens) != 2)
        return cn__fail(ctx, CN_BAD_SHAPE, "GPT: tokens must be (batch, time), got %d axes", cn_ndim(tokens));
    if (used + cn_size(tokens, 1) > g->desc.context)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "GPT: a sequence must fit into the context of %" PRId64 " tokens, got %" PRId64,
                        g->desc.context, used + cn_size(tokens, 1));
    return true;
}

static cn_tensor *gpt_forward(cn_module *m, cn_tensor *tokens)
{
    const gpt *g = cn_module_data(m);
    if (!check_tokens(m, tokens, 0)) return NULL;
    const double p = cn_module_training(m) ? g->desc.dropout : 0;
    cn_tensor *x = cn_add(cn_embedding(g->wte, tokens), cn_slice(g->wpe, 0, 0, cn_size(tokens, 1), 1));
    x = cn_dropout(x, p, p > 0);
    for (int i = 0; i < cn_module_children(g->h); i++) x = cn_forward(cn_module_at(g->h, i), x);
    return cn_linear(cn_forward(g->ln_f, x), g->head, NULL);
}

cn_tensor *cn__gpt_step(cn_module *m, cn_tensor *tokens, cn__gpt_cache *cache, int64_t used)
{
    const gpt *g = cn_module_data(m);
    if (!tokens || !check_tokens(m, tokens, used)) return NULL;
    const int64_t T = cn_size(tokens, 1);
    cn_tensor *x = cn_add(cn_embedding(g->wte, tokens), cn_narrow(g->wpe, 0, used, T));
    for (int i = 0; i < g->desc.layers; i++) { /* a program may have appended others */
        x = block_step(cn_module_at(g->h, i), x, &cache[i], used);
    }
    return cn_linear(cn_forward(g->ln_f, cn_select(x, 1, T - 1)), g->head, NULL);
}

static void gpt_describe(const cn_module *m, char *out, size_t size)
{
    const cn_gpt_desc *d = cn_gpt_config(m);
    snprintf(out, size, "vocab %" PRId64 ", context %" PRId64 ", layers %" PRId64 ", heads %" PRId64 ", width %" PRId64,
             d->vocab, d->context, d->layers, d->heads, d->width);
}

static const cn_module_type gpt_type = {
    .name = "GPT", .forward = gpt_forward, .data_bytes = sizeof(gpt), .describe = gpt_describe
};

const cn_gpt_desc *cn_gpt_config(const cn_module *m)
{
    return cn_module_type_of(m) == &gpt_type ? &((const gpt *)cn_module_data(m))->desc : NULL;
}

/* A table of vectors, named like an nn.Embedding. */
static cn_tensor *table(cn_ctx *ctx, cn_module *m, const char *name, int64_t rows, int64_t width)
{
    static const cn_module_type table_type = { .name = "Embedding",
                                               .data_bytes = sizeof(affine),
                                               .describe = describe_affine };
    cn_module *child = cn_module_child(m, name, cn_module_new(ctx, &table_type));
    affine *a = cn_module_data(child);
    return a ? a->weight = cn_module_param(child, "weight", normal(ctx, CN_DIMS(rows, width), 0.02)) : NULL;
}

/* The weight of the output: the token embeddings', or one of its own. */
static cn_tensor *output_weight(cn_ctx *ctx, cn_module *m, const gpt *g)
{
    static const cn_module_type head_type = { .name = "Linear",
                                              .data_bytes = sizeof(affine),
                                              .describe = describe_affine };
    if (!g->desc.untied) return g->wte;
    cn_module *child = cn_module_child(m, "lm_head", cn_module_new(ctx, &head_type));
    affine *a = cn_module_data(child);
    return a ? a->weight = cn_module_param(child, "weight", normal(ctx, CN_DIMS(g->desc.vocab, g->desc.width), 0.02))
             : NULL;
}

static bool valid(cn_ctx *ctx, const cn_gpt_desc *d)
{
    if (d->vocab > INT32_MAX || d->context > INT32_MAX || d->layers > CN__MAX_LAYERS || d->width > INT32_MAX)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "GPT: vocab, context and width must be below 2^31 and layers at most %d, got %" PRId64
                        ", %" PRId64 ", %" PRId64 " and %" PRId64,
                        CN__MAX_LAYERS, d->vocab, d->context, d->width, d->layers);
    if (d->vocab < 1 || d->context < 1 || d->layers < 1 || d->heads < 1 || d->width < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "GPT: vocab, context, layers, heads and width must be > 0, got %" PRId64 ", %" PRId64
                        ", %" PRId64 ", %" PRId64 " and %" PRId64,
                        d->vocab, d->context, d->layers, d->heads, d->width);
    if (d->width % d->heads)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "GPT: width must be a multiple of heads, got %" PRId64 " and %" PRId64,
                        d->width, d->heads);
    if (!(d->dropout >= 0 && d->dropout < 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "GPT: dropout must be ≥ 0 and < 1, got %g", d->dropout);
    return true;
}

cn_module *cn_nn_gpt(cn_ctx *ctx, const cn_gpt_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!desc) cn__fail(ctx, CN_BAD_ARGUMENT, "GPT: the descriptor must have the sizes, it is NULL");
    if (!desc || !valid(ctx, desc)) return NULL;
    cn_module *m = cn_module_new(ctx, &gpt_type);
    if (!m) return NULL;
    gpt *g = cn_module_data(m);
    g->desc = *desc;
    cn_scope s = cn_scope_begin(ctx);
    g->wte = table(ctx, m, "wte", desc->vocab, desc->width);
    g->wpe = table(ctx, m, "wpe", desc->context, desc->width);
    g->h = cn_module_child(m, "h", cn_nn_list_of(ctx, NULL, 0));
    for (int64_t i = 0; i < desc->layers && !cn_failed(ctx); i++) cn_module_append(g->h, block_new(ctx, desc));
    g->ln_f = cn_module_child(m, "ln_f", norm(ctx, desc->width));
    g->head = output_weight(ctx, m, g);
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

cn_tensor *cn_gpt_loss(cn_module *m, cn_tensor *tokens, cn_tensor *targets)
{
    CN__CALL call =
        cn__enter_forward(m, (cn_tensor *[]){ tokens, targets }, 2, (const char *[]){ "tokens", "targets" }, __func__);
    if (!call.ctx) return NULL;
    if (!cn_gpt_config(m)) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "gpt_loss: the module must be a GPT, got a %s", cn_module_type_of(m)->name);
        return NULL;
    }
    cn_tensor *logits = cn_forward(m, tokens);
    if (!logits) return NULL;
    const int64_t n = cn_size(logits, 0) * cn_size(logits, 1);
    return cn_cross_entropy(cn_reshape(logits, CN_DIMS(n, cn_size(logits, 2))), cn_reshape(targets, CN_DIMS(n)), NULL);
}

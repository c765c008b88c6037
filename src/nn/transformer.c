/* Transformer layers of encoders and decoders, stacks of them, and Transformer: an encoder with a decoder. */
#include <stdio.h>

#include "cairn/init.h"
#include "nn/nn.h"

static const cn_module_type encoder_layer_type, decoder_layer_type;

/* ---- layers ---- */

typedef struct layer {
    cn_module *self, *cross; /* attention to x itself; to the encoder's result, in a decoder layer only */
    cn_module *linear1, *linear2, *norm[3]; /* one norm for each sublayer; the last is the feed-forward's */
    double dropout;
    bool norm_first, gelu;
    int64_t width, heads;
} layer;

/* One attention of a layer: its module, the source of keys and values (NULL: x itself), and its masks. */
typedef struct attention_call {
    cn_module *attention;
    cn_tensor *memory;
    cn_mha_desc masks;
} attention_call;

static cn_tensor *attend(cn_module *m, const attention_call *l, cn_tensor *x)
{
    const layer *t = cn_module_data(m);
    cn_tensor *kv = l->memory ? l->memory : x;
    return cn_dropout(cn_attention_forward(l->attention, x, kv, kv, &l->masks, NULL), t->dropout,
                      cn_module_training(m));
}

static cn_tensor *feed_forward(cn_module *m, cn_tensor *x)
{
    const layer *t = cn_module_data(m);
    const bool training = cn_module_training(m);
    cn_tensor *h = cn_forward(t->linear1, x);
    h = cn_dropout(t->gelu ? cn_gelu(h) : cn_relu(h), t->dropout, training);
    return cn_dropout(cn_forward(t->linear2, h), t->dropout, training);
}

/* A sublayer with its residual: x + f(norm(x)), or norm(x + f(x)). l NULL: f is the feed-forward network */
static cn_tensor *sublayer(cn_module *m, int number, const attention_call *l, cn_tensor *x)
{
    const layer *t = cn_module_data(m);
    cn_module *n = t->norm[number];
    cn_tensor *in = t->norm_first ? cn_forward(n, x) : x;
    cn_tensor *y = cn_add(x, l ? attend(m, l, in) : feed_forward(m, in));
    return t->norm_first ? y : cn_forward(n, y);
}

/* memory NULL: a layer of an encoder */
static cn_tensor *layer_forward(cn_module *m, cn_tensor *x, cn_tensor *memory, const cn_transformer_masks *k)
{
    const layer *t = cn_module_data(m);
    attention_call self = {
        t->self,
        NULL,
        { .key_padding_mask = k->src_key_padding_mask, .attn_mask = k->src_mask, .is_causal = k->src_is_causal }
    };
    if (memory) {
        self.masks = (cn_mha_desc){ .key_padding_mask = k->tgt_key_padding_mask,
                                    .attn_mask = k->tgt_mask,
                                    .is_causal = k->tgt_is_causal };
        const attention_call cross = { t->cross,
                                       memory,
                                       { .key_padding_mask = k->memory_key_padding_mask,
                                         .attn_mask = k->memory_mask,
                                         .is_causal = k->memory_is_causal } };
        x = sublayer(m, 1, &cross, sublayer(m, 0, &self, x));
    } else x = sublayer(m, 0, &self, x);
    return sublayer(m, memory ? 2 : 1, NULL, x);
}

static void layer_describe(const cn_module *m, char *out, size_t size)
{
    const layer *t = cn_module_data(m);
    snprintf(out, size, "%lld, %lld heads%s%s", (long long)t->width, (long long)t->heads,
             t->norm_first ? ", norm first" : "", t->gelu ? ", gelu" : "");
}

/* ---- stacks: a child "layers", and optionally "norm" ---- */

typedef struct stack {
    cn_module *layers, *norm; /* norm may be NULL */
} stack;

static cn_tensor *wrong_type(cn_module *m, const char *who, const char *wanted)
{
    cn__fail(cn_module_context(m), CN_BAD_ARGUMENT, "%s: the module must be a %s, got a %s", who, wanted,
             cn_module_type_of(m)->name);
    return NULL;
}

/* A program may have appended a module of another type to the list of layers. */
static cn_tensor *stack_forward(cn_module *m, cn_tensor *x, cn_tensor *memory, const cn_transformer_masks *k)
{
    const stack *s = cn_module_data(m);
    const cn_module_type *type = memory ? &decoder_layer_type : &encoder_layer_type;
    const int n = cn_module_children(s->layers);
    for (int i = 0; i < n && x; i++) {
        cn_module *l = cn_module_at(s->layers, i);
        if (cn_module_type_of(l) != type) return wrong_type(l, cn_module_type_of(m)->name, type->name);
        x = layer_forward(l, x, memory, k);
    }
    return s->norm ? cn_forward(s->norm, x) : x;
}

typedef struct pair {
    cn_module *encoder, *decoder;
} pair;

/* ---- forward ---- */

static cn_tensor *encode_unmasked(cn_module *m, cn_tensor *x) { return cn_encoder_forward(m, x, NULL); }

static bool check_counts(cn_module *m, int n_in, int n_out, const char *names)
{
    return (n_in == 2 && n_out <= 1) ||
           cn__fail(cn_module_context(m), CN_BAD_ARGUMENT,
                    "%s: forward accepts %s, and returns one tensor; got %d operands and %d results",
                    cn_module_type_of(m)->name, names, n_in, n_out);
}

static bool decode_unmasked(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    if (!check_counts(m, n_in, n_out, "tgt and memory")) return false;
    cn_tensor *y = cn_decoder_forward(m, in[0], in[1], NULL);
    if (n_out > 0) out[0] = y;
    return y != NULL;
}

static bool transform_unmasked(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    if (!check_counts(m, n_in, n_out, "src and tgt")) return false;
    cn_tensor *y = cn_transformer_forward(m, in[0], in[1], NULL);
    if (n_out > 0) out[0] = y;
    return y != NULL;
}

static const cn_module_type encoder_layer_type = { .name = "TransformerEncoderLayer",
                                                   .forward = encode_unmasked,
                                                   .data_bytes = sizeof(layer),
                                                   .describe = layer_describe };
static const cn_module_type decoder_layer_type = { .name = "TransformerDecoderLayer",
                                                   .forward_all = decode_unmasked,
                                                   .data_bytes = sizeof(layer),
                                                   .describe = layer_describe };
static const cn_module_type encoder_type = { .name = "TransformerEncoder",
                                             .forward = encode_unmasked,
                                             .data_bytes = sizeof(stack) };
static const cn_module_type decoder_type = { .name = "TransformerDecoder",
                                             .forward_all = decode_unmasked,
                                             .data_bytes = sizeof(stack) };
static const cn_module_type transformer_type = { .name = "Transformer",
                                                 .forward_all = transform_unmasked,
                                                 .data_bytes = sizeof(pair) };

cn_tensor *cn_encoder_forward(cn_module *m, cn_tensor *src, const cn_transformer_masks *masks)
{
    static const cn_transformer_masks none;
    CN__CALL call = cn__enter_forward(m, &src, 1, (const char *[]){ "src" }, __func__);
    if (!call.ctx) return NULL;
    if (cn_module_type_of(m) == &encoder_layer_type) return layer_forward(m, src, NULL, masks ? masks : &none);
    if (cn_module_type_of(m) == &encoder_type) return stack_forward(m, src, NULL, masks ? masks : &none);
    return wrong_type(m, "encoder_forward", "TransformerEncoder or one of its layers");
}

cn_tensor *cn_decoder_forward(cn_module *m, cn_tensor *tgt, cn_tensor *memory, const cn_transformer_masks *masks)
{
    static const cn_transformer_masks none;
    CN__CALL call =
        cn__enter_forward(m, (cn_tensor *[]){ tgt, memory }, 2, (const char *[]){ "tgt", "memory" }, __func__);
    if (!call.ctx) return NULL;
    if (cn_module_type_of(m) == &decoder_layer_type) return layer_forward(m, tgt, memory, masks ? masks : &none);
    if (cn_module_type_of(m) == &decoder_type) return stack_forward(m, tgt, memory, masks ? masks : &none);
    return wrong_type(m, "decoder_forward", "TransformerDecoder or one of its layers");
}

cn_tensor *cn_transformer_forward(cn_module *m, cn_tensor *src, cn_tensor *tgt, const cn_transformer_masks *masks)
{
    CN__CALL call = cn__enter_forward(m, (cn_tensor *[]){ src, tgt }, 2, (const char *[]){ "src", "tgt" }, __func__);
    if (!call.ctx) return NULL;
    if (cn_module_type_of(m) != &transformer_type) return wrong_type(m, "transformer_forward", "Transformer");
    const pair *p = cn_module_data(m);
    return cn_decoder_forward(p->decoder, tgt, cn_encoder_forward(p->encoder, src, masks), masks);
}

/* ---- makers ---- */

static cn_module *norm_new(cn_ctx *ctx, int64_t width, const cn_transformer_desc *d)
{
    return cn_nn_layer_norm(ctx, CN_DIMS(width), &(cn_nn_norm_desc){ .eps = d->layer_norm_eps, .no_bias = d->no_bias });
}

static cn_module *layer_new(cn_ctx *ctx, const cn_module_type *type, int64_t width, int64_t heads,
                            const cn_transformer_desc *d)
{
    static const char *const norms[3] = { "norm1", "norm2", "norm3" };
    if (d->dim_feedforward < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dim_feedforward must be ≥ 0, got %lld", type->name,
                 (long long)d->dim_feedforward);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    layer *t = cn_module_data(m);
    if (!t) return NULL;
    const bool decoder = type == &decoder_layer_type;
    const int64_t inner = d->dim_feedforward ? d->dim_feedforward : 2048;
    const cn_multihead_desc attention = { .dropout = d->dropout, .no_bias = d->no_bias, .batch_first = d->batch_first };
    const cn_linear_desc linear = { .no_bias = d->no_bias };
    *t = (layer){ .dropout = d->dropout, .norm_first = d->norm_first, .gelu = d->gelu, .width = width, .heads = heads };
    t->self = cn_module_child(m, "self_attn", cn_nn_multihead_attention(ctx, width, heads, &attention));
    if (decoder)
        t->cross = cn_module_child(m, "multihead_attn", cn_nn_multihead_attention(ctx, width, heads, &attention));
    t->linear1 = cn_module_child(m, "linear1", cn_nn_linear(ctx, width, inner, &linear));
    t->linear2 = cn_module_child(m, "linear2", cn_nn_linear(ctx, inner, width, &linear));
    for (int i = 0; i < (decoder ? 3 : 2); i++) t->norm[i] = cn_module_child(m, norms[i], norm_new(ctx, width, d));
    return m;
}

static cn_module *stack_new(cn_ctx *ctx, const cn_module_type *type, int64_t width, int64_t heads,
                            const cn_transformer_desc *d, int layers, bool ends_with_norm)
{
    if (layers < 0 || layers > CN__MAX_LAYERS) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the number of layers must be from 0 to %d, got %d", type->name,
                 CN__MAX_LAYERS, layers);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    stack *s = cn_module_data(m);
    if (!s) return NULL;
    s->layers = cn_module_child(m, "layers", cn_nn_list_of(ctx, NULL, 0));
    bool ok = s->layers != NULL;
    for (int i = 0; i < (layers ? layers : 6) && ok; i++)
        ok = cn_module_append(
            s->layers,
            layer_new(ctx, type == &encoder_type ? &encoder_layer_type : &decoder_layer_type, width, heads, d));
    if (ends_with_norm) s->norm = cn_module_child(m, "norm", norm_new(ctx, width, d));
    return m;
}

typedef cn_module *maker(cn_ctx *ctx, const cn_module_type *type, int64_t width, int64_t heads,
                         const cn_transformer_desc *d);

/* Every public maker: fills in a missing descriptor, and frees what fn makes besides the module. */
static cn_module *make(cn_ctx *ctx, const cn_module_type *type, maker *fn, int64_t width, int64_t heads,
                       const cn_transformer_desc *desc)
{
    static const cn_transformer_desc defaults;
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(ctx);
    cn_module *m = fn(ctx, type, width, heads, desc ? desc : &defaults);
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

static cn_module *one_stack(cn_ctx *ctx, const cn_module_type *type, int64_t width, int64_t heads,
                            const cn_transformer_desc *d)
{
    return stack_new(ctx, type, width, heads, d, d->num_layers, d->final_norm);
}

/* As in torch.nn.Transformer, all matrices get new random values. */
static cn_module *both_stacks(cn_ctx *ctx, const cn_module_type *type, int64_t width, int64_t heads,
                              const cn_transformer_desc *d)
{
    cn_module *m = cn_module_new(ctx, type);
    pair *p = cn_module_data(m);
    if (!p) return NULL;
    const int layers = d->decoder_layers ? d->decoder_layers : d->num_layers;
    p->encoder = cn_module_child(m, "encoder", stack_new(ctx, &encoder_type, width, heads, d, d->num_layers, true));
    p->decoder = cn_module_child(m, "decoder", stack_new(ctx, &decoder_type, width, heads, d, layers, true));
    cn_params all = cn_parameters(m);
    for (int i = 0; i < all.n; i++)
        if (cn_ndim(all.v[i]) > 1) cn_init_xavier_uniform(all.v[i], 1);
    return m;
}

cn_module *cn_nn_transformer_encoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc)
{
    return make(ctx, &encoder_layer_type, layer_new, d_model, nhead, desc);
}
cn_module *cn_nn_transformer_decoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc)
{
    return make(ctx, &decoder_layer_type, layer_new, d_model, nhead, desc);
}
cn_module *cn_nn_transformer_encoder(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc)
{
    return make(ctx, &encoder_type, one_stack, d_model, nhead, desc);
}
cn_module *cn_nn_transformer_decoder(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc)
{
    return make(ctx, &decoder_type, one_stack, d_model, nhead, desc);
}
cn_module *cn_nn_transformer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc)
{
    return make(ctx, &transformer_type, both_stacks, d_model, nhead, desc);
}

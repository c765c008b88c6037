/* cairn/nn.h: modules: parameters with names, and what is done with them. PyTorch's torch.nn.

       cn_module *mlp = cn_nn_sequential(cn, 3, cn_nn_linear(cn, 784, 128, NULL), cn_nn_function(cn, cn_relu),
                                         cn_nn_linear(cn, 128, 10, NULL));
       cn_tensor *logits = cn_forward(mlp, x);                       (64,784) -> (64,10)
       cn_optim *opt = cn_adamw(cn, cn_parameters(mlp), NULL);       optim.h
       char table[4096];
       cn_summary(mlp, x, table, sizeof table);                      layers, shapes, parameters

   A module of your own is a type and what it holds:

       typedef struct block { cn_module *up, *down; } block;
       static cn_tensor *block_forward(cn_module *m, cn_tensor *x)
       {
           block *b = cn_module_data(m);
           return cn_add(x, cn_forward(b->down, cn_gelu(cn_forward(b->up, x))));
       }
       static const cn_module_type block_type = { .name = "Block", .forward = block_forward, .data_bytes = sizeof(block) };

       cn_module *m = cn_module_new(cn, &block_type);
       block *b = cn_module_data(m);
       b->up = cn_module_child(m, "up", cn_nn_linear(cn, 64, 256, NULL));
       b->down = cn_module_child(m, "down", cn_nn_linear(cn, 256, 64, NULL));

   Names      cn_nn_NAME makes a module, as torch.nn.Name does; the same word without nn_ is the function (cn_linear). Parameters
              and buffers have PyTorch's names ("0.weight", "layers.2.self_attn.in_proj_bias"): its checkpoints load.
   Defaults   Layers, initial values and options are PyTorch's. New parameters are f32, or what cn_set_default_dtype says.
   Ownership  A module belongs to its context until cn_module_free; a child belongs to its parent. The module keeps its
              parameters and buffers: their handles stay the same for as long as it lives.
   Errors     NULL in gives NULL out: a model whose parts failed to be made is NULL, and the error says why. */
#ifndef CAIRN_NN_H
#define CAIRN_NN_H

#include "dict.h"
#include "grad.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_module cn_module;

/* ---- using modules ---- */
CN_API cn_tensor *cn_forward(cn_module *m, cn_tensor *x);
CN_API bool cn_forward_all(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out); /* for modules with several; out not given: NULL */
CN_API void cn_module_free(cn_module *m); /* with all its children; NULL is fine */

CN_API cn_params cn_parameters(cn_module *m);       /* each once, in order; good until the next call for m */
typedef struct cn_named {
    const char *name; /* "0.weight" */
    cn_tensor *tensor;
    bool buffer;      /* state that is not trained: running statistics */
} cn_named;
typedef struct cn_named_list {
    const cn_named *v;
    int n;
} cn_named_list;
CN_API cn_named_list cn_module_named(cn_module *m);  /* PyTorch's state_dict; good until the next call for m */
CN_API cn_tensor *cn_module_get(cn_module *m, const char *name);     /* parameter or buffer by its whole name; NULL if there is none */
CN_API cn_module *cn_module_find(cn_module *m, const char *name);    /* a child by its whole name: "layers.0"; NULL likewise */
CN_API int64_t cn_module_count(cn_module *m);                        /* numbers in its parameters, each parameter once */

CN_API void cn_module_train(cn_module *m, bool on);  /* dropout, batch statistics; on at the start */
CN_API bool cn_module_training(const cn_module *m);
CN_API bool cn_module_freeze(cn_module *m, bool on); /* its parameters take no gradients */
CN_API void cn_module_zero_grad(cn_module *m);
CN_API bool cn_module_to(cn_module *m, const char *device); /* that of its context: everything in a context is on one device; else an error */
CN_API bool cn_set_default_dtype(cn_ctx *ctx, cn_dtype t);  /* of parameters made from now on: f32 (the default), f64 or a half */
CN_API cn_dtype cn_default_dtype(const cn_ctx *ctx);

/* A table of layers: names, shapes of what they give for x, numbers of parameters. Nothing is computed. Returns the length
   of the whole text, 0 on error; writes at most size bytes, always ended by 0. */
CN_API size_t cn_summary(cn_module *m, cn_tensor *x, char *out, size_t size);

/* Everything named, to a dict and from one. Loading assigns all or nothing. */
CN_API bool cn_module_save(cn_module *m, cn_dict *d, const char *prefix);
typedef struct cn_module_load_desc {
    const char *prefix;     /* of the names in the dict; NULL: none */
    bool lenient;           /* names missing on either side are passed over (PyTorch's strict=False) */
    /* The name in the dict of a parameter; writes to out, or returns false where it has none. NULL: the same name. */
    bool (*rename)(void *user, const char *name, char *out, size_t size);
    void *user;
} cn_module_load_desc;
CN_API bool cn_module_load(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc);

/* ---- modules of your own ---- */
typedef struct cn_module_type {
    const char *name;
    cn_tensor *(*forward)(cn_module *m, cn_tensor *x);   /* one of these two */
    bool (*forward_all)(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out);
    size_t data_bytes;                                   /* of cn_module_data, zero at the start */
    void (*describe)(const cn_module *m, char *out, size_t size); /* options, for summaries: "3, 8, kernel 3x3"; may be NULL */
    void (*destroy)(cn_module *m);                       /* frees what data holds besides children and tensors; may be NULL */
} cn_module_type;
CN_API cn_module *cn_module_new(cn_ctx *ctx, const cn_module_type *type);
CN_API void *cn_module_data(const cn_module *m);
CN_API const cn_module_type *cn_module_type_of(const cn_module *m);
CN_API cn_ctx *cn_module_context(const cn_module *m);
/* Each returns what it was given to hold (a parameter: the new handle), or NULL. NULL without an error in the context adds
   nothing: an optional bias. */
CN_API cn_tensor *cn_module_param(cn_module *m, const char *name, cn_tensor *initial);
CN_API cn_tensor *cn_module_share(cn_module *m, const char *name, cn_tensor *param); /* another module's parameter: tied weights */
CN_API cn_tensor *cn_module_buffer(cn_module *m, const char *name, cn_tensor *initial);
CN_API cn_module *cn_module_child(cn_module *m, const char *name, cn_module *child);
/* The module, or NULL if an error stands, freeing it: the last line of a maker. */
CN_API cn_module *cn_module_made(cn_module *m);

/* ---- containers ---- */
CN_API cn_module *cn_nn_sequential(cn_ctx *ctx, int n, ...);            /* of cn_module *; children "0", "1", ... */
CN_API cn_module *cn_nn_list(cn_ctx *ctx, int n, ...);                  /* ModuleList: only holds them */
CN_API bool cn_module_append(cn_module *list, cn_module *child);        /* to a sequential or a list, under the next number */
CN_API int cn_module_children(const cn_module *m);
CN_API cn_module *cn_module_at(const cn_module *m, int i);
CN_API cn_module *cn_nn_residual(cn_ctx *ctx, cn_module *inner);        /* x + inner(x); child "inner" */
CN_API cn_module *cn_nn_function(cn_ctx *ctx, cn_tensor *(*fn)(cn_tensor *x)); /* cn_relu, cn_tanh, your own */
CN_API cn_module *cn_nn_flatten(cn_ctx *ctx, int64_t from, int64_t to); /* PyTorch's defaults are 1, -1 */

/* ---- layers: options that are 0 are PyTorch's defaults; sizes and numbers in the argument list are meant as they are ---- */
typedef struct cn_linear_desc {
    bool no_bias;
} cn_linear_desc;
CN_API cn_module *cn_nn_linear(cn_ctx *ctx, int64_t in, int64_t out, const cn_linear_desc *desc); /* weight (out,in), bias (out) */
/* Of two tensors (cn_forward_all): y_o = x1 · W_o · x2 + b_o; weight (out,in1,in2), bias (out). */
CN_API cn_module *cn_nn_bilinear(cn_ctx *ctx, int64_t in1, int64_t in2, int64_t out, const cn_linear_desc *desc);

typedef struct cn_nn_embedding_desc {
    bool has_padding;
    int64_t padding_idx; /* if has_padding: this row is 0 at the start and takes no gradient; may count from the end */
} cn_nn_embedding_desc;
CN_API cn_module *cn_nn_embedding(cn_ctx *ctx, int64_t rows, int64_t width, const cn_nn_embedding_desc *desc); /* weight (rows,width) */

/* ---- convolutions: weight (out,in/groups,kernel...), transposed (in,out/groups,kernel...); bias (out) ---- */
typedef struct cn_nn_conv_desc {
    int64_t stride, padding, dilation;                 /* of every axis; 0: 1, 0, 1 */
    int64_t output_padding;                            /* transposed only */
    int64_t groups;                                    /* 0: 1 */
    bool no_bias;
    bool same;                                         /* PyTorch's padding='same': as large as the input; stride 1; not transposed */
    cn_pad_mode padding_mode;                          /* CN_PAD_CONSTANT: zeros; the others not transposed */
    cn_dims kernels, strides, paddings, dilations, output_paddings; /* one for each axis, in place of one for all */
} cn_nn_conv_desc;
CN_API cn_module *cn_nn_conv1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv3d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv_transpose1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv_transpose2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);

/* ---- windows ---- */
typedef struct cn_nn_pool_desc {
    int64_t stride, padding;                           /* 0: the kernel, 0 */
    int64_t dilation;                                  /* 0: 1; max only */
    bool ceil_mode, exclude_padding;                   /* exclude_padding: PyTorch's count_include_pad=False; average only */
    cn_dims kernels, strides, paddings, dilations;     /* one for each axis, in place of one for all */
} cn_nn_pool_desc;
CN_API cn_module *cn_nn_max_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_max_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_avg_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_avg_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_adaptive_avg_pool1d(cn_ctx *ctx, int64_t size);
CN_API cn_module *cn_nn_adaptive_avg_pool2d(cn_ctx *ctx, int64_t height, int64_t width);
CN_API cn_module *cn_nn_adaptive_max_pool1d(cn_ctx *ctx, int64_t size);
CN_API cn_module *cn_nn_adaptive_max_pool2d(cn_ctx *ctx, int64_t height, int64_t width);

typedef enum cn_upsample_mode { CN_UPSAMPLE_NEAREST, CN_UPSAMPLE_BILINEAR } cn_upsample_mode;
typedef struct cn_nn_upsample_desc {
    cn_dims size;             /* of the last axes, (L) or (H,W); or */
    double scale;             /* of each of them: size times scale has to be whole */
    cn_upsample_mode mode;
    bool align_corners;       /* bilinear only */
} cn_nn_upsample_desc;
CN_API cn_module *cn_nn_upsample(cn_ctx *ctx, const cn_nn_upsample_desc *desc); /* (N,C,L) nearest only, (N,C,H,W) */

/* ---- normalisation: weight and bias where not taken away; eps and momentum: 0 is PyTorch's default, negative means 0 ---- */
typedef struct cn_nn_batch_norm_desc {
    double eps, momentum;     /* 0: 1e-5, 0.1 */
    bool cumulative;          /* PyTorch's momentum=None: running statistics are the mean of all batches */
    bool no_affine;           /* no weight and bias */
    bool no_running_stats;    /* PyTorch's track_running_stats=False: always the batch's own */
} cn_nn_batch_norm_desc;
/* (N,C) or (N,C,L); (N,C,H,W); (N,C,D,H,W). Buffers running_mean (C), running_var (C), num_batches_tracked (i64). */
CN_API cn_module *cn_nn_batch_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);
CN_API cn_module *cn_nn_batch_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);
CN_API cn_module *cn_nn_batch_norm3d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);

typedef struct cn_nn_instance_norm_desc {
    double eps, momentum;     /* 0: 1e-5, 0.1 */
    bool affine;              /* weight and bias; PyTorch has none by default */
    bool running_stats;       /* PyTorch's track_running_stats=True: evaluation by running statistics */
} cn_nn_instance_norm_desc;
CN_API cn_module *cn_nn_instance_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc); /* (C,L) or (N,C,L) */
CN_API cn_module *cn_nn_instance_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc); /* (C,H,W) or (N,C,H,W) */

typedef struct cn_nn_norm_desc {
    double eps;               /* 0: 1e-5; of RMSNorm: the distance from 1 to the next number, in f64 for f64, else in f32 */
    bool no_affine, no_bias;  /* RMSNorm never has a bias */
} cn_nn_norm_desc;
CN_API cn_module *cn_nn_layer_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc); /* of the last axes, all normalised together */
CN_API cn_module *cn_nn_rms_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc);
CN_API cn_module *cn_nn_group_norm(cn_ctx *ctx, int64_t groups, int64_t channels, const cn_nn_norm_desc *desc); /* (N,C,...) */

/* ---- dropout: p is the probability of 0 (PyTorch's default is 0.5); nothing is done in evaluation ---- */
CN_API cn_module *cn_nn_dropout(cn_ctx *ctx, double p);
CN_API cn_module *cn_nn_dropout1d(cn_ctx *ctx, double p);      /* whole channels of (N,C,L) or (C,L) */
CN_API cn_module *cn_nn_dropout2d(cn_ctx *ctx, double p);      /* whole channels of (N,C,H,W) */
CN_API cn_module *cn_nn_alpha_dropout(cn_ctx *ctx, double p);  /* keeps mean and variance of what SELU gives */

/* ---- activations; in comments PyTorch's defaults ---- */
CN_API cn_module *cn_nn_relu(cn_ctx *ctx);
CN_API cn_module *cn_nn_relu6(cn_ctx *ctx);
CN_API cn_module *cn_nn_leaky_relu(cn_ctx *ctx, double slope);               /* 0.01 */
CN_API cn_module *cn_nn_prelu(cn_ctx *ctx, int64_t channels, double slope);  /* 1, 0.25; parameter weight (channels), of axis 1 */
CN_API cn_module *cn_nn_elu(cn_ctx *ctx, double alpha);                      /* 1 */
CN_API cn_module *cn_nn_celu(cn_ctx *ctx, double alpha);                     /* 1 */
CN_API cn_module *cn_nn_selu(cn_ctx *ctx);
CN_API cn_module *cn_nn_gelu(cn_ctx *ctx);
CN_API cn_module *cn_nn_gelu_tanh(cn_ctx *ctx);                              /* PyTorch's approximate='tanh' */
CN_API cn_module *cn_nn_silu(cn_ctx *ctx);
CN_API cn_module *cn_nn_mish(cn_ctx *ctx);
CN_API cn_module *cn_nn_sigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_log_sigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_hardsigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_hardswish(cn_ctx *ctx);
CN_API cn_module *cn_nn_tanh(cn_ctx *ctx);
CN_API cn_module *cn_nn_tanhshrink(cn_ctx *ctx);                             /* x - tanh(x) */
CN_API cn_module *cn_nn_hardtanh(cn_ctx *ctx, double low, double high);      /* -1, 1 */
CN_API cn_module *cn_nn_softplus(cn_ctx *ctx, double beta, double threshold); /* 1, 20 */
CN_API cn_module *cn_nn_softsign(cn_ctx *ctx);
CN_API cn_module *cn_nn_softshrink(cn_ctx *ctx, double lambda);              /* 0.5: towards 0 by lambda */
CN_API cn_module *cn_nn_hardshrink(cn_ctx *ctx, double lambda);              /* 0.5: 0 within ±lambda */
CN_API cn_module *cn_nn_threshold(cn_ctx *ctx, double threshold, double value); /* x where above threshold, else value */
CN_API cn_module *cn_nn_glu(cn_ctx *ctx, int64_t axis);                      /* -1: half of it times the sigmoid of the other */
CN_API cn_module *cn_nn_softmax(cn_ctx *ctx, int64_t axis);
CN_API cn_module *cn_nn_log_softmax(cn_ctx *ctx, int64_t axis);

/* The functions among these that ops.h does not have: made of its operators. */
CN_API cn_tensor *cn_relu6(cn_tensor *x);
CN_API cn_tensor *cn_prelu(cn_tensor *x, cn_tensor *weight); /* weight (1), or one for each size of axis 1 */
CN_API cn_tensor *cn_tanhshrink(cn_tensor *x);
CN_API cn_tensor *cn_softshrink(cn_tensor *x, double lambda);
CN_API cn_tensor *cn_hardshrink(cn_tensor *x, double lambda);
CN_API cn_tensor *cn_threshold(cn_tensor *x, double threshold, double value);
CN_API cn_tensor *cn_glu(cn_tensor *x, int64_t axis);

/* ---- shapes ---- */
CN_API cn_module *cn_nn_identity(cn_ctx *ctx);
CN_API cn_module *cn_nn_unflatten(cn_ctx *ctx, int64_t axis, cn_dims sizes);         /* -1 once */
CN_API cn_module *cn_nn_pixel_shuffle(cn_ctx *ctx, int64_t factor);                  /* (...,C·r²,H,W) -> (...,C,H·r,W·r) */
/* pad: F.pad's order: last axis first, (before, after) pairs: CN_DIMS(left, right, top, bottom). */
CN_API cn_module *cn_nn_zero_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_constant_pad(cn_ctx *ctx, cn_dims pad, double value);
CN_API cn_module *cn_nn_reflection_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_replication_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_circular_pad(cn_ctx *ctx, cn_dims pad);

/* ---- recurrent: cn_forward gives y alone, cn_forward_all takes (x, h0) and gives (y, h_n); an LSTM (x, h0, c0) and (y, h_n, c_n).
   x (T,B,in), or (T,in) without a batch; y (T,B,hidden), twice as wide if bidirectional; h and c (layers·directions,B,hidden),
   zeros if not given. Names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ... ---- */
typedef struct cn_rnn_desc {
    int num_layers;             /* 0: 1 */
    bool no_bias, batch_first, bidirectional;
    bool relu;                  /* RNN only, instead of tanh */
    double dropout;             /* of what one layer gives the next, while training */
    int64_t proj_size;          /* not supported: an error unless 0 */
} cn_rnn_desc;
CN_API cn_module *cn_nn_rnn(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc);
CN_API cn_module *cn_nn_lstm(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc); /* gates i, f, g, o */
CN_API cn_module *cn_nn_gru(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc);  /* gates r, z, n */
/* One step: x (B,in) or (in), with h, or h and c; gives h, or h and c. */
typedef struct cn_rnn_cell_desc {
    bool no_bias;
    bool relu;                  /* RNNCell only */
} cn_rnn_cell_desc;
CN_API cn_module *cn_nn_rnn_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);
CN_API cn_module *cn_nn_lstm_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);
CN_API cn_module *cn_nn_gru_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);

/* ---- attention and transformers. Steps come first, (T,B,width), unless batch_first; (T,width) without a batch.
   Masks are PyTorch's: of bool, true where nobody may look (the operator cn_scaled_dot_product_attention means the opposite),
   or of a floating type, added to the scores. A query that may look nowhere gives NaN. ---- */
typedef struct cn_multihead_desc {
    int64_t kdim, vdim;                /* widths of k and v; 0: embed_dim */
    double dropout;                    /* of the weights, while training */
    bool no_bias, batch_first;
    bool add_bias_kv, add_zero_attn;   /* not supported: an error */
} cn_multihead_desc;
CN_API cn_module *cn_nn_multihead_attention(cn_ctx *ctx, int64_t embed_dim, int64_t num_heads, const cn_multihead_desc *desc);
typedef struct cn_mha_desc {
    cn_tensor *key_padding_mask;       /* (B,Tk), or (Tk) without a batch */
    cn_tensor *attn_mask;              /* (Tq,Tk) or (B·heads,Tq,Tk) */
    bool is_causal;                    /* query i looks at keys up to i; no attn_mask is needed for it */
    bool per_head;                     /* weights (B,heads,Tq,Tk); else their mean over heads, (B,Tq,Tk) */
} cn_mha_desc;
/* weights: NULL if not needed, which is faster. */
CN_API cn_tensor *cn_attention_forward(cn_module *mha, cn_tensor *q, cn_tensor *k, cn_tensor *v, const cn_mha_desc *call, cn_tensor **weights);

typedef struct cn_transformer_desc {
    int64_t dim_feedforward;           /* 0: 2048 */
    double dropout;                    /* 0: none; PyTorch's default is 0.1 */
    double layer_norm_eps;             /* 0: 1e-5 */
    bool gelu;                         /* instead of relu */
    bool norm_first, batch_first, no_bias;
    int num_layers;                    /* of a stack; 0: 6 */
    bool final_norm;                   /* of a stack: "norm" after its layers */
    int decoder_layers;                /* of a Transformer, whose num_layers are the encoder's; 0: as many. Its stacks end with a norm */
} cn_transformer_desc;
CN_API cn_module *cn_nn_transformer_encoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_decoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_encoder(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_decoder(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
/* cn_forward(encoder, src), cn_forward_all(decoder, (tgt, memory)) and cn_forward_all(transformer, (src, tgt)) do without masks. */
typedef struct cn_transformer_masks {
    cn_tensor *src_mask, *tgt_mask, *memory_mask;                      /* attn_mask of each attention */
    cn_tensor *src_key_padding_mask, *tgt_key_padding_mask, *memory_key_padding_mask;
    bool src_is_causal, tgt_is_causal, memory_is_causal;
} cn_transformer_masks;
CN_API cn_tensor *cn_encoder_forward(cn_module *m, cn_tensor *src, const cn_transformer_masks *masks);                    /* a layer or a stack */
CN_API cn_tensor *cn_decoder_forward(cn_module *m, cn_tensor *tgt, cn_tensor *memory, const cn_transformer_masks *masks);
CN_API cn_tensor *cn_transformer_forward(cn_module *m, cn_tensor *src, cn_tensor *tgt, const cn_transformer_masks *masks);

#ifdef __cplusplus
}
#endif
#endif

/* cairn/ops/block.h: operators with fused kernels: softmax, normalisation, attention, losses over classes, dropout. */
#ifndef CAIRN_OPS_BLOCK_H
#define CAIRN_OPS_BLOCK_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* exp(x) / sum of exp(x) along an axis. */
CN_PURE cn_tensor *cn_softmax(cn_tensor *input, int64_t dim);

/* x - log(sum of exp(x)) along an axis. */
CN_PURE cn_tensor *cn_log_softmax(cn_tensor *input, int64_t dim);

/* ---- normalisation; weight and bias may be NULL. Halves may have weight and bias of f32; the result is of halves. In
   rms_norm the weight may be of any floating type. ---- */

/* Normalises over the last normalized_dims axes to mean 0 and variance 1, then multiplies by weight and adds bias. */
CN_PURE cn_tensor *cn_layer_norm(cn_tensor *input, int64_t normalized_dims, cn_tensor *weight, cn_tensor *bias,
                                double eps);

/* Divides by the root of the mean square over the last normalized_dims axes, then multiplies by weight. */
CN_PURE cn_tensor *cn_rms_norm(cn_tensor *input, int64_t normalized_dims, cn_tensor *weight, double eps);

/* Normalises each group of channels of (N, C, ...), then applies weight and bias (C) by channel. */
CN_PURE cn_tensor *cn_group_norm(cn_tensor *input, int64_t num_groups, cn_tensor *weight, cn_tensor *bias, double eps);

/* Normalises each channel of each sample of (N, C, ...), then applies weight and bias (C) by channel. */
CN_PURE cn_tensor *cn_instance_norm(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, double eps);

typedef struct cn_batch_norm_desc {
    cn_tensor *running_mean, *running_var; /* (C); updated in training, where they may be NULL */
    bool training;
    double momentum, eps;                  /* 0 means 0.1 and 1e-5 */
} cn_batch_norm_desc;
/* Normalises each channel of (N, C, ...) with the statistics of the batch (training) or the running statistics. */
CN_PURE cn_tensor *cn_batch_norm(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_batch_norm_desc *desc);

/* ---- attention ---- */

typedef struct cn_attention_desc {
    /* The second name of each of these is its former one. */
    union {
        cn_tensor *attn_mask, *mask; /* bool (true: seen) or float (added); broadcasts to (..., heads, Tq, Tk) */
    };
    union {
        bool is_causal, causal;
    };
    union {
        double dropout_p, dropout; /* the probability that a weight is dropped */
    };
    double scale; /* 0 means 1/sqrt(width) */
} cn_attention_desc;
/* softmax(query · keyᵀ · scale + mask) · value, of (..., heads, T, width). The axes before the last two broadcast. Key
   and value may have fewer heads: then groups of query heads share one of them. The result of a query that sees no key
   is 0. */
CN_PURE cn_tensor *cn_scaled_dot_product_attention(cn_tensor *query, cn_tensor *key, cn_tensor *value,
                                                  const cn_attention_desc *desc);

/* Attention for decoding. query, key and value (B, T, heads, width) are those of new tokens; keys and values
   (B, L, heads, width) are caches, whose first `used` tokens are filled. New tokens attend to the caches, and causally
   to each other. scale 0 means 1/sqrt(width). Another `used` does not make another plan. No gradient. */
CN_PURE cn_tensor *cn_cached_attention(cn_tensor *query, cn_tensor *key, cn_tensor *value, cn_tensor *keys,
                                      cn_tensor *values, int64_t used, double scale);

/* Rotates the pairs (i, i + D/2) of x (..., T, D) by angles given as cos and sin (T, D/2). */
CN_PURE cn_tensor *cn_rotary_embedding(cn_tensor *input, cn_tensor *cos, cn_tensor *sin);

/* ---- losses over classes; more in loss.h ---- */

typedef enum cn_reduction { CN_MEAN, CN_SUM, CN_NONE, CN_BATCHMEAN } cn_reduction; /* the last: cn_kl_div only */
typedef struct cn_loss_desc {
    cn_tensor *weight;         /* (C), one weight for each class; may be NULL */
    int64_t ignore_index;      /* targets with this class do not count; without has_ignore it is -100 */
    bool has_ignore;
    double label_smoothing;
    cn_reduction reduction;
} cn_loss_desc;
/* -log softmax(input)[target] of logits (N, C) or (N, C, d...); target: class indices, or probabilities of the shape
   of input. */
CN_PURE cn_tensor *cn_cross_entropy(cn_tensor *input, cn_tensor *target, const cn_loss_desc *desc);

/* -input[target] of logarithms of probabilities (N, C) or (N, C, d...); target: class indices. */
CN_PURE cn_tensor *cn_nll_loss(cn_tensor *input, cn_tensor *target, const cn_loss_desc *desc);

/* Each element is 0 with probability p, else x / (1 - p). Without training the result is x itself. */
CN_PURE cn_tensor *cn_dropout(cn_tensor *input, double p, bool training);

#ifdef __cplusplus
}
#endif
#endif

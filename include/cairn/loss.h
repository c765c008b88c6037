/* cairn/loss.h: losses: how far a result is from its target.

       cn_tensor *loss = cn_mse_loss(model(x), y, NULL);                          the mean over all elements
       cn_tensor *each = cn_huber_loss(p, y, &(cn_huber_desc){ .delta = 2, .reduction = CN_NONE });
       cn_tensor *hit = cn_bce_with_logits_loss(z, t, &(cn_bce_desc){ .pos_weight = w });
       cn_backward(loss);

   Formulas   PyTorch's (torch.nn.functional), with its defaults, its reductions and its gradients at kinks.
              cn_cross_entropy and cn_nll_loss are in ops.h.
   Defaults   A descriptor may be NULL. A field of 0 means PyTorch's default, which stands in its comment.
   Shapes     Input and target must have the same shape: where PyTorch broadcasts with a warning, this is an error.
              Weights broadcast to the input's shape. The mean of no elements is NaN.
   Dtypes     The input must be of a floating type. Targets of other types are promoted, as in any arithmetic.
   Gradients  Targets, weights and variances have gradients too, of any order. ctc_loss has a gradient for log_probs
              only, and of first order only.
   Ownership  The result belongs to the current scope. Nothing else is kept.
   Errors     NULL, and an error in the context. Shapes, dtypes and arguments are checked by the call; lengths and class
              indices when the loss is computed. Values are not checked: a probability outside of [0, 1] or a negative
              variance results in NaN. */
#ifndef CAIRN_LOSS_H
#define CAIRN_LOSS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- differences: d = input - target ---- */

typedef struct cn_plain_loss_desc {
    cn_reduction reduction;
} cn_plain_loss_desc;
CN_PURE cn_tensor *cn_mse_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc); /* d² */
CN_PURE cn_tensor *cn_l1_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc);  /* |d| */

typedef struct cn_smooth_l1_desc {
    double beta; /* 0: 1. For PyTorch's beta of 0 use cn_l1_loss */
    cn_reduction reduction;
} cn_smooth_l1_desc;
/* d²/2β where |d| < β, else |d| - β/2 */
CN_PURE cn_tensor *cn_smooth_l1_loss(cn_tensor *input, cn_tensor *target, const cn_smooth_l1_desc *desc);

typedef struct cn_huber_desc {
    double delta; /* 0: 1 */
    cn_reduction reduction;
} cn_huber_desc;
/* d²/2 where |d| ≤ δ, else δ(|d| - δ/2) */
CN_PURE cn_tensor *cn_huber_loss(cn_tensor *input, cn_tensor *target, const cn_huber_desc *desc);

/* ---- probabilities ---- */

typedef struct cn_bce_desc {
    cn_tensor *weight;     /* of each element; broadcasts; may be NULL */
    cn_tensor *pos_weight; /* of positive targets, with logits only; broadcasts; may be NULL */
    cn_reduction reduction;
} cn_bce_desc;
/* -(t log x + (1 - t) log(1 - x)). Logarithms are at least -100; the gradient divides by at least 1e-12 */
CN_PURE cn_tensor *cn_bce_loss(cn_tensor *input, cn_tensor *target, const cn_bce_desc *desc);
/* The same for sigmoid(x), without overflow or loss of digits */
CN_PURE cn_tensor *cn_bce_with_logits_loss(cn_tensor *input, cn_tensor *target, const cn_bce_desc *desc);

typedef struct cn_kl_div_desc {
    bool log_target;        /* the target holds logarithms of probabilities too */
    cn_reduction reduction; /* CN_BATCHMEAN: the divergence; CN_MEAN, PyTorch's default, divides by all elements */
} cn_kl_div_desc;
/* t (log t - x), where x is the logarithm of probabilities; 0 where t is 0 */
CN_PURE cn_tensor *cn_kl_div(cn_tensor *input, cn_tensor *target, const cn_kl_div_desc *desc);

typedef struct cn_gaussian_nll_desc {
    bool full;  /* with the constant log(2π)/2 */
    double eps; /* 0: 1e-6. Smaller variances count as eps; their gradients are as without eps */
    cn_reduction reduction;
} cn_gaussian_nll_desc;
/* (log v + d²/v)/2. v, the variance, has the input's shape; its last size may be 1, or its last axis missing */
CN_PURE cn_tensor *cn_gaussian_nll_loss(cn_tensor *input, cn_tensor *target, cn_tensor *var,
                                       const cn_gaussian_nll_desc *desc);

typedef struct cn_poisson_nll_desc {
    bool no_log_input; /* the input is the rate itself, not its logarithm */
    bool full;         /* with Stirling's approximation of log(t!), for t > 1 */
    double eps;        /* 0: 1e-8; added to the rate inside the logarithm */
    cn_reduction reduction;
} cn_poisson_nll_desc;
/* e^x - t x, or x - t log(x + eps) */
CN_PURE cn_tensor *cn_poisson_nll_loss(cn_tensor *input, cn_tensor *target, const cn_poisson_nll_desc *desc);

/* ---- margins: targets are 1 or -1 ---- */

typedef struct cn_margin_loss_desc {
    double margin;  /* 0: 1 for hinge_embedding, 0 for the others */
    bool no_margin; /* a margin of 0 */
    cn_reduction reduction;
} cn_margin_loss_desc;
/* x where t is 1, max(0, margin - x) where t is -1 */
CN_PURE cn_tensor *cn_hinge_embedding_loss(cn_tensor *input, cn_tensor *target, const cn_margin_loss_desc *desc);
/* max(0, -t (x1 - x2) + margin) */
CN_PURE cn_tensor *cn_margin_ranking_loss(cn_tensor *input1, cn_tensor *input2, cn_tensor *target,
                                         const cn_margin_loss_desc *desc);
/* 1 - cos where t is 1, max(0, cos - margin) where t is -1; inputs (N, D) and target (N), or (D) and () */
CN_PURE cn_tensor *cn_cosine_embedding_loss(cn_tensor *input1, cn_tensor *input2, cn_tensor *target,
                                           const cn_margin_loss_desc *desc);
/* log(1 + exp(-t x)) */
CN_PURE cn_tensor *cn_soft_margin_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc);

typedef struct cn_multi_margin_desc {
    double p;          /* 1 or 2; 0: 1 */
    double margin;     /* 0: 1 */
    bool no_margin;    /* a margin of 0 */
    cn_tensor *weight; /* a number for each class; may be NULL */
    cn_reduction reduction;
} cn_multi_margin_desc;
/* w_t/C · sum over c ≠ t of max(0, margin - x_t + x_c)^p; input (N, C) and class indices (N), or (C) and () */
CN_PURE cn_tensor *cn_multi_margin_loss(cn_tensor *input, cn_tensor *target, const cn_multi_margin_desc *desc);

/* Σ max(0, 1 - x_t + x_c) / C over the classes t of a sample and the other classes c; input (N, C) or (C). target has the
   same shape: class indices (i64), the first negative one ends them. */
CN_PURE cn_tensor *cn_multilabel_margin_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc);

typedef struct cn_multilabel_desc {
    cn_tensor *weight; /* a number for each class; broadcasts; may be NULL */
    cn_reduction reduction;
} cn_multilabel_desc;
/* The mean over classes of -w (t log σ(x) + (1 - t) log σ(-x)) */
CN_PURE cn_tensor *cn_multilabel_soft_margin_loss(cn_tensor *input, cn_tensor *target, const cn_multilabel_desc *desc);

typedef struct cn_triplet_margin_desc {
    double margin; /* > 0; 0: 1 */
    double p, eps; /* those of cn_pairwise_distance; 0: 2, 1e-6 */
    bool swap;     /* the negative's distance is the smaller of those to the anchor and to the positive */
    cn_reduction reduction;
} cn_triplet_margin_desc;
/* max(0, |a - p| - |a - n| + margin), distances over the last axis */
CN_PURE cn_tensor *cn_triplet_margin_loss(cn_tensor *anchor, cn_tensor *positive, cn_tensor *negative,
                                         const cn_triplet_margin_desc *desc);

/* ---- sequences ---- */

typedef struct cn_ctc_desc {
    int64_t blank;          /* the class of the blank */
    bool zero_infinity;     /* a sample that cannot be aligned has loss 0 and gradient 0, not infinity and NaN */
    cn_reduction reduction; /* CN_MEAN: each loss is divided by the length of its target first */
} cn_ctc_desc;
/* -log of the probability that log_probs (T, N, C) spell the targets. targets: (N, S), or the labels of all samples one
   after another. input_lengths and target_lengths (N): the steps and the labels of each sample. Indices and lengths are
   i32 or i64. Without a batch: (T, C), (S), and lengths of one number. The gradient is that of this formula. PyTorch's
   gradient of log_probs differs by exp(log_probs); after log_softmax both are the same. */
CN_PURE cn_tensor *cn_ctc_loss(cn_tensor *log_probs, cn_tensor *targets, cn_tensor *input_lengths,
                              cn_tensor *target_lengths, const cn_ctc_desc *desc);

/* ---- distances that losses use; their operands broadcast ---- */

/* Σ x1 x2 / (max(|x1|, eps) max(|x2|, eps)) along an axis; PyTorch's defaults are 1, 1e-8. The gradient is that of the
   lengths themselves, also where eps replaces one */
CN_PURE cn_tensor *cn_cosine_similarity(cn_tensor *x1, cn_tensor *x2, int64_t dim, double eps);
/* The p-norm of x1 - x2 + eps over the last axis; PyTorch's defaults are 2, 1e-6, false */
CN_PURE cn_tensor *cn_pairwise_distance(cn_tensor *x1, cn_tensor *x2, double p, double eps, bool keepdim);

#ifdef __cplusplus
}
#endif
#endif

/* cairn/ops.h: what can be done with tensors.

       cn_tensor *y = cn_relu(cn_add(cn_matmul(x, w), b));      operators nest; shapes broadcast as in PyTorch
       cn_tensor *p = cn_softmax(y, -1);                        axes may count from the end
       cn_tensor *s = cn_sum(p, CN_DIMS(0, 2), true);           several axes; CN_ALL for all
       cn_tensor *h = cn_mul_s(y, 0.5);                         _s: the other operand is a plain number
       cn_add_(y, h);                                           trailing _: gives the handle y a new value

   Names, argument order, defaults and results are PyTorch's. Results belong to the current scope. A mistake in shapes, dtypes or
   arguments gives NULL and an error in the context at once. docs/operators.md lists all of them with dtypes and gradients. */
#ifndef CAIRN_OPS_H
#define CAIRN_OPS_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creation ---- */
CN_API cn_tensor *cn_zeros(cn_ctx *ctx, cn_dtype t, cn_dims shape);
CN_API cn_tensor *cn_ones(cn_ctx *ctx, cn_dtype t, cn_dims shape);
CN_API cn_tensor *cn_full(cn_ctx *ctx, cn_dtype t, cn_dims shape, double value);
CN_API cn_tensor *cn_arange(cn_ctx *ctx, cn_dtype t, double start, double end, double step);
CN_API cn_tensor *cn_linspace(cn_ctx *ctx, cn_dtype t, double start, double end, int64_t steps);
CN_API cn_tensor *cn_eye(cn_ctx *ctx, cn_dtype t, int64_t rows, int64_t cols);
CN_API cn_tensor *cn_rand(cn_ctx *ctx, cn_dtype t, cn_dims shape);   /* uniform in [0, 1) */
CN_API cn_tensor *cn_randn(cn_ctx *ctx, cn_dtype t, cn_dims shape);  /* normal */
CN_API cn_tensor *cn_randint(cn_ctx *ctx, cn_dtype t, int64_t low, int64_t high, cn_dims shape); /* [low, high) */
CN_API cn_tensor *cn_randperm(cn_ctx *ctx, int64_t n);               /* i64 */
CN_API cn_tensor *cn_bernoulli(cn_tensor *probability);              /* 0 or 1, of its dtype */
CN_API cn_tensor *cn_zeros_like(cn_tensor *x);
CN_API cn_tensor *cn_ones_like(cn_tensor *x);
CN_API cn_tensor *cn_full_like(cn_tensor *x, double value);
CN_API cn_tensor *cn_rand_like(cn_tensor *x);
CN_API cn_tensor *cn_randn_like(cn_tensor *x);
CN_API cn_tensor *cn_tril(cn_tensor *x, int64_t diagonal);           /* of the last two axes */
CN_API cn_tensor *cn_triu(cn_tensor *x, int64_t diagonal);

/* ---- elementwise, one operand ---- */
#define CN_UNARY(name) CN_API cn_tensor *cn_##name(cn_tensor *x); CN_API bool cn_##name##_(cn_tensor *x);
#include "unary.def"
#undef CN_UNARY
CN_API cn_tensor *cn_leaky_relu(cn_tensor *x, double slope);   /* PyTorch's default slope is 0.01 */
CN_API cn_tensor *cn_elu(cn_tensor *x, double alpha);
CN_API cn_tensor *cn_celu(cn_tensor *x, double alpha);
CN_API cn_tensor *cn_softplus(cn_tensor *x, double beta, double threshold); /* defaults 1, 20 */
CN_API cn_tensor *cn_hardtanh(cn_tensor *x, double low, double high);
CN_API cn_tensor *cn_cast(cn_tensor *x, cn_dtype t);

/* ---- elementwise, two operands; each also as cn_NAME_s (a number on the right) and in place ---- */
#define CN_BINARY(name)                                           \
    CN_API cn_tensor *cn_##name(cn_tensor *x, cn_tensor *y);      \
    CN_API cn_tensor *cn_##name##_s(cn_tensor *x, double y);      \
    CN_API bool cn_##name##_(cn_tensor *x, cn_tensor *y);         \
    CN_API bool cn_##name##_s_(cn_tensor *x, double y);
#include "binary.def"
#undef CN_BINARY
CN_API cn_tensor *cn_rsub_s(cn_tensor *x, double y);   /* y - x */
CN_API cn_tensor *cn_rdiv_s(cn_tensor *x, double y);   /* y / x */

/* ---- elementwise, three operands ---- */
CN_API cn_tensor *cn_where(cn_tensor *condition, cn_tensor *x, cn_tensor *y);
CN_API cn_tensor *cn_clamp(cn_tensor *x, double low, double high);           /* -INFINITY, INFINITY: no limit */
CN_API cn_tensor *cn_clamp_t(cn_tensor *x, cn_tensor *low, cn_tensor *high);
CN_API cn_tensor *cn_lerp(cn_tensor *start, cn_tensor *end, cn_tensor *weight);
CN_API cn_tensor *cn_addcmul(cn_tensor *x, cn_tensor *a, cn_tensor *b, double value); /* x + value·a·b */
CN_API cn_tensor *cn_addcdiv(cn_tensor *x, cn_tensor *a, cn_tensor *b, double value); /* x + value·a/b */

/* ---- reductions ---- */
CN_API cn_tensor *cn_sum(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_mean(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_prod(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_max(cn_tensor *x, cn_dims axes, bool keepdim);   /* PyTorch's amax: gradient shared among ties */
CN_API cn_tensor *cn_min(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_max_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices); /* indices may be NULL */
CN_API cn_tensor *cn_min_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices);
CN_API cn_tensor *cn_argmax(cn_tensor *x, cn_dims axis, bool keepdim); /* one axis, or CN_ALL over the flat tensor */
CN_API cn_tensor *cn_argmin(cn_tensor *x, cn_dims axis, bool keepdim);
CN_API cn_tensor *cn_var(cn_tensor *x, cn_dims axes, double correction, bool keepdim); /* PyTorch's default correction is 1 */
CN_API cn_tensor *cn_std(cn_tensor *x, cn_dims axes, double correction, bool keepdim);
CN_API cn_tensor *cn_any(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_all(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_logsumexp(cn_tensor *x, cn_dims axes, bool keepdim);
CN_API cn_tensor *cn_norm(cn_tensor *x, double p, cn_dims axes, bool keepdim); /* p may be INFINITY, -INFINITY, 0 */

/* ---- views: no data moves unless it must ---- */
CN_API cn_tensor *cn_view(cn_tensor *x, cn_dims shape);      /* -1 once; an error where a copy would be needed */
CN_API cn_tensor *cn_reshape(cn_tensor *x, cn_dims shape);   /* a view where possible */
CN_API cn_tensor *cn_flatten(cn_tensor *x, int64_t from, int64_t to);
CN_API cn_tensor *cn_transpose(cn_tensor *x, int64_t a, int64_t b);
CN_API cn_tensor *cn_permute(cn_tensor *x, cn_dims order);
CN_API cn_tensor *cn_slice(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step); /* Python's x[start:end:step]; step > 0 */
CN_API cn_tensor *cn_narrow(cn_tensor *x, int64_t axis, int64_t start, int64_t length);
CN_API cn_tensor *cn_select(cn_tensor *x, int64_t axis, int64_t index);
CN_API cn_tensor *cn_expand(cn_tensor *x, cn_dims shape);    /* -1 leaves a size as it is */
CN_API cn_tensor *cn_squeeze(cn_tensor *x, cn_dims axes);    /* CN_ALL: every axis of size 1 */
CN_API cn_tensor *cn_unsqueeze(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_flip(cn_tensor *x, cn_dims axes);
CN_API int cn_split(cn_tensor *x, int64_t size, int64_t axis, cn_tensor **out, int room);   /* how many; 0 on error */
CN_API int cn_chunk(cn_tensor *x, int64_t chunks, int64_t axis, cn_tensor **out, int room);
CN_API cn_tensor *cn_unfold(cn_tensor *x, int64_t axis, int64_t size, int64_t step);
CN_API cn_tensor *cn_diagonal(cn_tensor *x, int64_t offset, int64_t axis1, int64_t axis2);
CN_API cn_tensor *cn_contiguous(cn_tensor *x);
CN_API cn_tensor *cn_clone(cn_tensor *x);

/* ---- joining and shape ---- */
CN_API cn_tensor *cn_cat(cn_tensor *const *x, int n, int64_t axis);
CN_API cn_tensor *cn_stack(cn_tensor *const *x, int n, int64_t axis);
typedef enum cn_pad_mode { CN_PAD_CONSTANT, CN_PAD_REFLECT, CN_PAD_REPLICATE, CN_PAD_CIRCULAR } cn_pad_mode;
CN_API cn_tensor *cn_pad(cn_tensor *x, cn_dims pad, cn_pad_mode mode, double value); /* F.pad's order: last axis first, (before, after) pairs; at most 4 axes */
CN_API cn_tensor *cn_repeat(cn_tensor *x, cn_dims times);
CN_API cn_tensor *cn_tile(cn_tensor *x, cn_dims times);
CN_API cn_tensor *cn_roll(cn_tensor *x, cn_dims shifts, cn_dims axes);
CN_API cn_tensor *cn_repeat_interleave(cn_tensor *x, int64_t times, int64_t axis);

/* ---- indexing: index tensors are i32 or i64 ---- */
CN_API cn_tensor *cn_gather(cn_tensor *x, int64_t axis, cn_tensor *index);
CN_API cn_tensor *cn_scatter(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source);
CN_API cn_tensor *cn_scatter_add(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source);
CN_API cn_tensor *cn_index_select(cn_tensor *x, int64_t axis, cn_tensor *index);
CN_API cn_tensor *cn_index_add(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source);
CN_API cn_tensor *cn_take(cn_tensor *x, cn_tensor *index);           /* from the flat tensor */
CN_API cn_tensor *cn_embedding(cn_tensor *weight, cn_tensor *index); /* rows of weight */
CN_API cn_tensor *cn_masked_fill(cn_tensor *x, cn_tensor *mask, double value);
CN_API cn_tensor *cn_masked_select(cn_tensor *x, cn_tensor *mask);   /* evaluates the mask: its shape depends on it */
CN_API cn_tensor *cn_nonzero(cn_tensor *x);                          /* evaluates x */
CN_API cn_tensor *cn_one_hot(cn_tensor *index, int64_t classes);     /* i64 */
CN_API cn_tensor *cn_slice_assign(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step, cn_tensor *value);
CN_API bool cn_slice_assign_(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step, cn_tensor *value); /* in place */
CN_API cn_tensor *cn_index_put(cn_tensor *x, cn_tensor *const *index, int n, cn_tensor *value, bool accumulate); /* x[index0, index1, ...] = value */

/* ---- scans and sorting ---- */
CN_API cn_tensor *cn_cumsum(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_cumprod(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_cummax(cn_tensor *x, int64_t axis, cn_tensor **indices);
CN_API cn_tensor *cn_sort(cn_tensor *x, int64_t axis, bool descending, cn_tensor **indices); /* stable */
CN_API cn_tensor *cn_argsort(cn_tensor *x, int64_t axis, bool descending);
CN_API cn_tensor *cn_topk(cn_tensor *x, int64_t k, int64_t axis, bool largest, cn_tensor **indices);

/* ---- contractions ---- */
CN_API cn_tensor *cn_matmul(cn_tensor *a, cn_tensor *b);
CN_API cn_tensor *cn_dot(cn_tensor *a, cn_tensor *b);
CN_API cn_tensor *cn_outer(cn_tensor *a, cn_tensor *b);
CN_API cn_tensor *cn_einsum(const char *equation, cn_tensor *const *x, int n);
CN_API cn_tensor *cn_linear(cn_tensor *x, cn_tensor *weight, cn_tensor *bias); /* x · weightᵀ + bias; bias may be NULL */

typedef struct cn_conv_desc {
    int64_t stride[3], padding[3], dilation[3];  /* 0 in stride and dilation means 1 */
    int64_t groups;                              /* 0 means 1 */
    int64_t output_padding[3];                   /* transposed only */
} cn_conv_desc;
CN_API cn_tensor *cn_conv1d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
CN_API cn_tensor *cn_conv2d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
CN_API cn_tensor *cn_conv3d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
CN_API cn_tensor *cn_conv_transpose1d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
CN_API cn_tensor *cn_conv_transpose2d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* ---- windows ---- */
typedef struct cn_pool_desc {
    int64_t kernel[2], stride[2], padding[2], dilation[2]; /* stride 0: the kernel; dilation 0: 1 (max only) */
    bool ceil_mode, exclude_padding;                       /* exclude_padding: PyTorch's count_include_pad=False */
} cn_pool_desc;
CN_API cn_tensor *cn_max_pool1d(cn_tensor *x, const cn_pool_desc *desc);
CN_API cn_tensor *cn_max_pool2d(cn_tensor *x, const cn_pool_desc *desc);
CN_API cn_tensor *cn_avg_pool1d(cn_tensor *x, const cn_pool_desc *desc);
CN_API cn_tensor *cn_avg_pool2d(cn_tensor *x, const cn_pool_desc *desc);
CN_API cn_tensor *cn_adaptive_avg_pool1d(cn_tensor *x, int64_t size);
CN_API cn_tensor *cn_adaptive_avg_pool2d(cn_tensor *x, int64_t height, int64_t width);
CN_API cn_tensor *cn_adaptive_max_pool1d(cn_tensor *x, int64_t size);
CN_API cn_tensor *cn_adaptive_max_pool2d(cn_tensor *x, int64_t height, int64_t width);
CN_API cn_tensor *cn_interpolate_nearest(cn_tensor *x, cn_dims size);                       /* last 1 or 2 axes */
CN_API cn_tensor *cn_interpolate_bilinear(cn_tensor *x, int64_t height, int64_t width, bool align_corners);

/* ---- blocks ---- */
CN_API cn_tensor *cn_softmax(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_log_softmax(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_layer_norm(cn_tensor *x, int64_t axes, cn_tensor *weight, cn_tensor *bias, double eps); /* over the last `axes` axes; weight, bias may be NULL */
CN_API cn_tensor *cn_rms_norm(cn_tensor *x, int64_t axes, cn_tensor *weight, double eps);
typedef struct cn_batch_norm_desc {
    cn_tensor *running_mean, *running_var; /* may be NULL; assigned to while training */
    bool training;
    double momentum, eps;                  /* 0: 0.1, 1e-5 */
} cn_batch_norm_desc;
CN_API cn_tensor *cn_batch_norm(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_batch_norm_desc *desc); /* (N, C, ...) */
CN_API cn_tensor *cn_group_norm(cn_tensor *x, int64_t groups, cn_tensor *weight, cn_tensor *bias, double eps);
CN_API cn_tensor *cn_instance_norm(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, double eps);
typedef struct cn_attention_desc {
    cn_tensor *mask;   /* bool (true: take part) or float (added); broadcast to (..., heads, Tq, Tk) */
    bool causal;
    double dropout;    /* probability, 0: none */
    double scale;      /* 0: 1/sqrt(width) */
} cn_attention_desc;
CN_API cn_tensor *cn_scaled_dot_product_attention(cn_tensor *q, cn_tensor *k, cn_tensor *v, const cn_attention_desc *desc); /* (..., heads, T, width); fewer k, v heads are shared (grouped) */
/* Decoding: q, k, v (B, T, heads, width) of new tokens look at keys, values (B, L, heads, width), of which the first `used` are
   filled, and at each other causally. scale 0: 1/sqrt(width). `used` is a number, not structure. No gradient. */
CN_API cn_tensor *cn_cached_attention(cn_tensor *q, cn_tensor *k, cn_tensor *v, cn_tensor *keys, cn_tensor *values, int64_t used, double scale);
typedef enum cn_reduction { CN_MEAN, CN_SUM, CN_NONE, CN_BATCHMEAN } cn_reduction; /* the last: cn_kl_div only, see loss.h */
typedef struct cn_loss_desc {
    cn_tensor *weight;         /* one a class; may be NULL */
    int64_t ignore_index;      /* targets that do not count: this one if has_ignore, else -100 */
    bool has_ignore;
    double label_smoothing;
    cn_reduction reduction;
} cn_loss_desc;
CN_API cn_tensor *cn_cross_entropy(cn_tensor *logits, cn_tensor *target, const cn_loss_desc *desc); /* (N, C) or (N, C, d...); target: class indices, or probabilities of logits' shape */
CN_API cn_tensor *cn_nll_loss(cn_tensor *log_probs, cn_tensor *target, const cn_loss_desc *desc);
CN_API cn_tensor *cn_dropout(cn_tensor *x, double p, bool training);
CN_API cn_tensor *cn_rotary_embedding(cn_tensor *x, cn_tensor *cos, cn_tensor *sin); /* x (..., T, D); cos, sin (T, D/2); pairs are (i, i + D/2) */

#ifdef __cplusplus
}
#endif
#endif

/* cairn/ops/create.h: tensors made from nothing. The context and the dtype come first. */
#ifndef CAIRN_OPS_CREATE_H
#define CAIRN_OPS_CREATE_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every element 0. */
CN_PURE cn_tensor *cn_zeros(cn_ctx *ctx, cn_dtype dtype, cn_dims size);

/* Every element 1. */
CN_PURE cn_tensor *cn_ones(cn_ctx *ctx, cn_dtype dtype, cn_dims size);

/* Every element the same number. */
CN_PURE cn_tensor *cn_full(cn_ctx *ctx, cn_dtype dtype, cn_dims size, double fill_value);

/* start, start + step, … up to but not including end. */
CN_PURE cn_tensor *cn_arange(cn_ctx *ctx, cn_dtype dtype, double start, double end, double step);

/* Evenly spaced numbers from start to end, both included. */
CN_PURE cn_tensor *cn_linspace(cn_ctx *ctx, cn_dtype dtype, double start, double end, int64_t steps);

/* n rows and m columns: 1 on the diagonal, 0 elsewhere. */
CN_PURE cn_tensor *cn_eye(cn_ctx *ctx, cn_dtype dtype, int64_t n, int64_t m);

/* Random numbers, uniform in [0, 1). */
CN_PURE cn_tensor *cn_rand(cn_ctx *ctx, cn_dtype dtype, cn_dims size);

/* Random numbers, normal with mean 0 and standard deviation 1. */
CN_PURE cn_tensor *cn_randn(cn_ctx *ctx, cn_dtype dtype, cn_dims size);

/* Random whole numbers, uniform in [low, high). */
CN_PURE cn_tensor *cn_randint(cn_ctx *ctx, cn_dtype dtype, int64_t low, int64_t high, cn_dims size);

/* The numbers from 0 to n - 1 in random order, as i64. */
CN_PURE cn_tensor *cn_randperm(cn_ctx *ctx, int64_t n);

/* ---- of the shape and dtype of another ---- */

/* 1 with probability input, else 0; the result has the dtype of the input. */
CN_PURE cn_tensor *cn_bernoulli(cn_tensor *input);

/* num_samples categories drawn from (categories) or from each row of (rows, categories), with probabilities that are
   proportional to the input; without replacement no category twice. */
CN_PURE cn_tensor *cn_multinomial(cn_tensor *input, int64_t num_samples, bool replacement);

/* Zeros of the operand's shape and dtype. */
CN_PURE cn_tensor *cn_zeros_like(cn_tensor *input);

/* Ones of the operand's shape and dtype. */
CN_PURE cn_tensor *cn_ones_like(cn_tensor *input);

/* Every element the same number, of the operand's shape and dtype. */
CN_PURE cn_tensor *cn_full_like(cn_tensor *input, double fill_value);

/* Random numbers, uniform in [0, 1), of the operand's shape and dtype. */
CN_PURE cn_tensor *cn_rand_like(cn_tensor *input);

/* Random numbers, normal with mean 0 and standard deviation 1, of the operand's shape and dtype. */
CN_PURE cn_tensor *cn_randn_like(cn_tensor *input);

/* ---- of the last two axes ---- */

/* Keeps the elements on and below a diagonal of the last two axes; the others become 0. */
CN_PURE cn_tensor *cn_tril(cn_tensor *input, int64_t diagonal);

/* Keeps the elements on and above a diagonal of the last two axes; the others become 0. */
CN_PURE cn_tensor *cn_triu(cn_tensor *input, int64_t diagonal);

#ifdef __cplusplus
}
#endif
#endif

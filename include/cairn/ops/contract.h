/* cairn/ops/contract.h: products, convolutions, pooling and resizing. */
#ifndef CAIRN_OPS_CONTRACT_H
#define CAIRN_OPS_CONTRACT_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products ---- */

/* The matrix product over the last two axes; the axes before them broadcast. */
CN_PURE cn_tensor *cn_matmul(cn_tensor *input, cn_tensor *other);

/* The sum of the products of two vectors' elements. */
CN_PURE cn_tensor *cn_dot(cn_tensor *input, cn_tensor *tensor);

/* Every product of an element of one vector and an element of the other. */
CN_PURE cn_tensor *cn_outer(cn_tensor *input, cn_tensor *vec2);

/* Sums of products of the operands' elements, by an equation such as "bij,jk->bik". */
CN_PURE cn_tensor *cn_einsum(const char *equation, cn_tensor *const *operands, int n);

/* Products of operands with this number of axes alone: mm of matrices (n, m) and (m, p), bmm of (b, n, m) and
   (b, m, p), mv of (n, m) and (m). */
CN_PURE cn_tensor *cn_mm(cn_tensor *input, cn_tensor *mat2);
CN_PURE cn_tensor *cn_bmm(cn_tensor *input, cn_tensor *mat2);
CN_PURE cn_tensor *cn_mv(cn_tensor *input, cn_tensor *vec);

/* beta·input + alpha·product, where input broadcasts to the product; with beta 0 the input does not count. */

/* beta·input + alpha·(mat1 · mat2). */
CN_PURE cn_tensor *cn_addmm(cn_tensor *input, cn_tensor *mat1, cn_tensor *mat2, double beta, double alpha);

/* beta·input + alpha·(mat · vec). */
CN_PURE cn_tensor *cn_addmv(cn_tensor *input, cn_tensor *mat, cn_tensor *vec, double beta, double alpha);

/* beta·input + alpha·(batch1 · batch2), of each matrix of a batch. */
CN_PURE cn_tensor *cn_baddbmm(cn_tensor *input, cn_tensor *batch1, cn_tensor *batch2, double beta, double alpha);

/* beta·input + alpha·(the sum of batch1 · batch2 over the batch). */
CN_PURE cn_tensor *cn_addbmm(cn_tensor *input, cn_tensor *batch1, cn_tensor *batch2, double beta, double alpha);

/* beta·input + alpha·(every product of an element of vec1 and one of vec2). */
CN_PURE cn_tensor *cn_addr(cn_tensor *input, cn_tensor *vec1, cn_tensor *vec2, double beta, double alpha);

/* Sums of products over pairs of axes: dims_self[i] of a and dims_other[i] of b. */
CN_PURE cn_tensor *cn_tensordot(cn_tensor *a, cn_tensor *b, cn_dims dims_self, cn_dims dims_other);

/* Kronecker's product: other, times each element of input; at most 4 axes. */
CN_PURE cn_tensor *cn_kron(cn_tensor *input, cn_tensor *other);

/* The cross product of vectors of 3 elements along an axis. */
CN_PURE cn_tensor *cn_cross(cn_tensor *input, cn_tensor *other, int64_t dim);

/* The p-norm of the difference of each row of x1 (..., n, m) and each row of x2 (..., k, m): (..., n, k). */
CN_PURE cn_tensor *cn_cdist(cn_tensor *x1, cn_tensor *x2, double p);

/* input · weightᵀ + bias over the last axis; bias may be NULL. */
CN_PURE cn_tensor *cn_linear(cn_tensor *input, cn_tensor *weight, cn_tensor *bias);

/* ---- convolutions; bias and desc may be NULL ---- */

typedef struct cn_conv_desc {
    int64_t stride[3], padding[3], dilation[3];  /* 0 in stride and dilation means 1 */
    int64_t groups;                              /* 0 means 1 */
    int64_t output_padding[3];                   /* transposed only */
} cn_conv_desc;

/* Convolution over one axis: input (N, C, L) or (C, L), weight (O, C/groups, l), bias (O). */
CN_PURE cn_tensor *cn_conv1d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* Convolution over two axes: input (N, C, H, W) or (C, H, W), weight (O, C/groups, h, w), bias (O). */
CN_PURE cn_tensor *cn_conv2d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* Convolution over three axes: input (N, C, D, H, W) or (C, D, H, W), weight (O, C/groups, d, h, w), bias (O). */
CN_PURE cn_tensor *cn_conv3d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* Transposed convolution over one axis: input (N, C, L) or (C, L), weight (C, O/groups, l), bias (O). */
CN_PURE cn_tensor *cn_conv_transpose1d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* Transposed convolution over two axes: input (N, C, H, W) or (C, H, W), weight (C, O/groups, h, w), bias (O). */
CN_PURE cn_tensor *cn_conv_transpose2d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* ---- pooling and resizing: planes (N, C, H, W) or (C, H, W), lines (N, C, L) or (C, L) ---- */

typedef struct cn_pool_desc {
    union { /* one field; `kernel` is its former name */
        int64_t kernel_size[2], kernel[2];
    };
    int64_t stride[2], padding[2], dilation[2]; /* stride 0: kernel_size; dilation 0: 1 (max only) */
    bool ceil_mode, exclude_padding;                            /* exclude_padding: PyTorch's count_include_pad=False */
} cn_pool_desc;

/* The largest element of each window of each line. */
CN_PURE cn_tensor *cn_max_pool1d(cn_tensor *input, const cn_pool_desc *desc);

/* The largest element of each window of each plane. */
CN_PURE cn_tensor *cn_max_pool2d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each window of each line. */
CN_PURE cn_tensor *cn_avg_pool1d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each window of each plane. */
CN_PURE cn_tensor *cn_avg_pool2d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each of output_size windows that divide a line evenly. */
CN_PURE cn_tensor *cn_adaptive_avg_pool1d(cn_tensor *input, int64_t output_size);

/* The mean of each of height · width windows that divide a plane evenly. */
CN_PURE cn_tensor *cn_adaptive_avg_pool2d(cn_tensor *input, int64_t height, int64_t width);

/* The largest element of each of output_size windows that divide a line evenly. */
CN_PURE cn_tensor *cn_adaptive_max_pool1d(cn_tensor *input, int64_t output_size);

/* The largest element of each of height · width windows that divide a plane evenly. */
CN_PURE cn_tensor *cn_adaptive_max_pool2d(cn_tensor *input, int64_t height, int64_t width);

/* Resizes the last one or two axes; each element is a copy of the nearest one. */
CN_PURE cn_tensor *cn_interpolate_nearest(cn_tensor *input, cn_dims size);

/* Resizes planes to height and width; each element is mixed from the four nearest. */
CN_PURE cn_tensor *cn_interpolate_bilinear(cn_tensor *input, int64_t height, int64_t width, bool align_corners);

#ifdef __cplusplus
}
#endif
#endif

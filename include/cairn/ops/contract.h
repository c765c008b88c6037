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

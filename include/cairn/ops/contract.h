/* cairn/ops/contract.h: products, convolutions, pooling, resizing and sampling. */
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

/* Transposed convolution over three axes: input (N, C, D, H, W) or (C, D, H, W), weight (C, O/groups, d, h, w). */
CN_PURE cn_tensor *cn_conv_transpose3d(cn_tensor *input, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);

/* ---- pooling: lines (N, C, L), planes (N, C, H, W) or volumes (N, C, D, H, W), with or without N ---- */

typedef struct cn_pool_desc {
    union { /* one field; `kernel` is its former name */
        int64_t kernel_size[3], kernel[3];
    };
    int64_t stride[3], padding[3], dilation[3]; /* stride 0: kernel_size; dilation 0: 1 (max only) */
    bool ceil_mode, exclude_padding;            /* exclude_padding: PyTorch's count_include_pad=False */
    int64_t divisor_override;                   /* averages of planes and volumes divide by it; 0: by the elements */
} cn_pool_desc;

/* The largest element of each window of each line. */
CN_PURE cn_tensor *cn_max_pool1d(cn_tensor *input, const cn_pool_desc *desc);

/* The largest element of each window of each plane. */
CN_PURE cn_tensor *cn_max_pool2d(cn_tensor *input, const cn_pool_desc *desc);

/* The largest element of each window of each volume. */
CN_PURE cn_tensor *cn_max_pool3d(cn_tensor *input, const cn_pool_desc *desc);

/* max_pool1d, and the index of each maximum in its line (PyTorch's return_indices); indices may be NULL. */
CN_API cn_tensor *cn_max_pool1d_with_indices(cn_tensor *input, const cn_pool_desc *desc, cn_tensor **indices);

/* max_pool2d, and the index of each maximum in its flat plane; indices may be NULL. */
CN_API cn_tensor *cn_max_pool2d_with_indices(cn_tensor *input, const cn_pool_desc *desc, cn_tensor **indices);

/* max_pool3d, and the index of each maximum in its flat volume; indices may be NULL. */
CN_API cn_tensor *cn_max_pool3d_with_indices(cn_tensor *input, const cn_pool_desc *desc, cn_tensor **indices);

/* The mean of each window of each line. */
CN_PURE cn_tensor *cn_avg_pool1d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each window of each plane. */
CN_PURE cn_tensor *cn_avg_pool2d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each window of each volume. */
CN_PURE cn_tensor *cn_avg_pool3d(cn_tensor *input, const cn_pool_desc *desc);

/* The mean of each of output_size windows that divide a line evenly. */
CN_PURE cn_tensor *cn_adaptive_avg_pool1d(cn_tensor *input, int64_t output_size);

/* The mean of each of height · width windows that divide a plane evenly. */
CN_PURE cn_tensor *cn_adaptive_avg_pool2d(cn_tensor *input, int64_t height, int64_t width);

/* The mean of each of output_size (D, H, W) windows that divide a volume evenly. */
CN_PURE cn_tensor *cn_adaptive_avg_pool3d(cn_tensor *input, cn_dims output_size);

/* The largest element of each of output_size windows that divide a line evenly. */
CN_PURE cn_tensor *cn_adaptive_max_pool1d(cn_tensor *input, int64_t output_size);

/* The largest element of each of height · width windows that divide a plane evenly. */
CN_PURE cn_tensor *cn_adaptive_max_pool2d(cn_tensor *input, int64_t height, int64_t width);

/* The largest element of each of output_size (D, H, W) windows that divide a volume evenly. */
CN_PURE cn_tensor *cn_adaptive_max_pool3d(cn_tensor *input, cn_dims output_size);

/* adaptive_max_pool1d, and the index of each maximum in its line; indices may be NULL. */
CN_API cn_tensor *cn_adaptive_max_pool1d_with_indices(cn_tensor *input, int64_t output_size, cn_tensor **indices);

/* adaptive_max_pool2d, and the index of each maximum in its flat plane; indices may be NULL. */
CN_API cn_tensor *cn_adaptive_max_pool2d_with_indices(cn_tensor *input, int64_t height, int64_t width,
                                                      cn_tensor **indices);

/* adaptive_max_pool3d, and the index of each maximum in its flat volume; indices may be NULL. */
CN_API cn_tensor *cn_adaptive_max_pool3d_with_indices(cn_tensor *input, cn_dims output_size, cn_tensor **indices);

typedef struct cn_unpool_desc {
    int64_t kernel_size[3], stride[3], padding[3]; /* of the pooling; stride 0: kernel_size */
    int64_t output_size[3];                        /* less than a stride away from the usual size; 0: the usual size */
} cn_unpool_desc;

/* Zeros, with the results of max_pool1d where their indices say they were. */
CN_PURE cn_tensor *cn_max_unpool1d(cn_tensor *input, cn_tensor *indices, const cn_unpool_desc *desc);

/* Zeros, with the results of max_pool2d where their indices say they were. */
CN_PURE cn_tensor *cn_max_unpool2d(cn_tensor *input, cn_tensor *indices, const cn_unpool_desc *desc);

/* Zeros, with the results of max_pool3d where their indices say they were. */
CN_PURE cn_tensor *cn_max_unpool3d(cn_tensor *input, cn_tensor *indices, const cn_unpool_desc *desc);

/* The norm of each window of each line: (Σ x^p)^(1/p). Padding and dilation must be left out. */
CN_PURE cn_tensor *cn_lp_pool1d(cn_tensor *input, double norm_type, const cn_pool_desc *desc);

/* The norm of each window of each plane: (Σ x^p)^(1/p). Padding and dilation must be left out. */
CN_PURE cn_tensor *cn_lp_pool2d(cn_tensor *input, double norm_type, const cn_pool_desc *desc);

/* The norm of each window of each volume: (Σ x^p)^(1/p). Padding and dilation must be left out. */
CN_PURE cn_tensor *cn_lp_pool3d(cn_tensor *input, double norm_type, const cn_pool_desc *desc);

/* x / (k + alpha · m)^beta, m the mean of x² over `size` neighbouring channels of (N, C, ...). */
CN_PURE cn_tensor *cn_local_response_norm(cn_tensor *input, int64_t size, double alpha, double beta, double k);

/* ---- blocks of planes, as columns ---- */

typedef struct cn_unfold_desc {
    int64_t kernel_size[2], dilation[2], padding[2], stride[2]; /* 0 in dilation and stride means 1 */
} cn_unfold_desc;

/* PyTorch's F.unfold: each block of planes (N, C, H, W) or (C, H, W) becomes a column of (N, C·h·w, blocks). For
   Tensor.unfold there is cn_unfold. */
CN_PURE cn_tensor *cn_im2col(cn_tensor *input, const cn_unfold_desc *desc);

/* PyTorch's F.fold: adds columns (N, C·h·w, blocks) or (C·h·w, blocks) up where im2col found them, in planes of
   output_size (H, W). */
CN_PURE cn_tensor *cn_col2im(cn_tensor *input, cn_dims output_size, const cn_unfold_desc *desc);

/* ---- resizing and sampling ---- */

typedef enum cn_interpolate_mode {
    CN_INTERPOLATE_NEAREST,
    CN_INTERPOLATE_LINEAR,        /* (N, C, L) */
    CN_INTERPOLATE_BILINEAR,      /* (N, C, H, W) */
    CN_INTERPOLATE_BICUBIC,       /* (N, C, H, W) */
    CN_INTERPOLATE_TRILINEAR,     /* (N, C, D, H, W) */
    CN_INTERPOLATE_AREA,          /* adaptive_avg_pool */
    CN_INTERPOLATE_NEAREST_EXACT, /* nearest to the centre of the element, as other libraries compute it */
} cn_interpolate_mode;
typedef struct cn_interpolate_desc {
    int64_t size[3];             /* the sizes after (N, C); set either size or scale_factor */
    double scale_factor[3];      /* factors of these sizes; only the first number set: for all axes */
    cn_interpolate_mode mode;
    bool align_corners;          /* linear, bilinear, bicubic and trilinear only */
    bool recompute_scale_factor; /* coordinates follow from the sizes, not from scale_factor */
    bool antialias;              /* bilinear and bicubic only: also filters when it shrinks planes */
} cn_interpolate_desc;

/* Resizes the axes after (N, C), by the rule of desc->mode. */
CN_PURE cn_tensor *cn_interpolate(cn_tensor *input, const cn_interpolate_desc *desc);

/* Resizes the last one to three axes; each element is a copy of the nearest one. */
CN_PURE cn_tensor *cn_interpolate_nearest(cn_tensor *input, cn_dims size);

/* Resizes planes to height and width; each element is mixed from the four nearest. */
CN_PURE cn_tensor *cn_interpolate_bilinear(cn_tensor *input, int64_t height, int64_t width, bool align_corners);

typedef enum cn_grid_mode { CN_GRID_BILINEAR, CN_GRID_NEAREST, CN_GRID_BICUBIC } cn_grid_mode;
typedef enum cn_grid_padding { CN_GRID_ZEROS, CN_GRID_BORDER, CN_GRID_REFLECTION } cn_grid_padding;

/* Elements of planes (N, C, H, W) at the points (x, y) of a grid (N, h, w, 2), or of volumes (N, C, D, H, W) at the
   points (x, y, z) of a grid (N, d, h, w, 3). -1 and 1 are the borders of an axis. */
CN_PURE cn_tensor *cn_grid_sample(cn_tensor *input, cn_tensor *grid, cn_grid_mode mode, cn_grid_padding padding_mode,
                                 bool align_corners);

/* The grid for grid_sample of affine maps theta (N, 2, 3) or (N, 3, 4); size: (N, C, H, W) or (N, C, D, H, W). */
CN_PURE cn_tensor *cn_affine_grid(cn_tensor *theta, cn_dims size, bool align_corners);

#ifdef __cplusplus
}
#endif
#endif

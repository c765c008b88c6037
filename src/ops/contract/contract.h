/* contract.h: the attributes of the contractions, and the functions that their files share. */
#ifndef CN_OPS_CONTRACT_H
#define CN_OPS_CONTRACT_H

#include "ops/shared.h"

/* An equation of at most 255 characters, padded with zeros. */
typedef union cn__einsum_attrs {
    char text[256];
    int64_t numbers[32]; /* a multiple of 8 bytes, as attributes are */
} cn__einsum_attrs;

/* A convolution over three axes (depth, height, width). size: of the input for conv_input_grad, of the kernel for
   conv_weight_grad. For conv, size[0] may be CN__CONV_PLAIN: then sums are plain sums of products, which are exact for
   whole numbers below 2^24; the rest is 0. (The attributes of conv1d and the like are a cn_conv_desc.) */
enum { CN__CONV_PLAIN = 1 };
typedef struct cn__conv_attrs {
    int64_t stride[3], padding[3], dilation[3], groups, size[3];
} cn__conv_attrs;

/* The sizes of a convolution: x (n, groups·c, in), weight (groups·o, c, kernel), y (n, groups·o, out). */
typedef struct cn__conv_sizes {
    int64_t n, groups, c, o, in[3], kernel[3], out[3];
} cn__conv_sizes;

/* Checks the sizes of x (n, c, d, h, w) and weight (o, c/groups, d, h, w) and fills s. Errors begin with `who`. */
bool cn__conv_measure(cn_ctx *ctx, const char *who, const cn__conv_attrs *a, const int64_t *x, const int64_t *weight,
                      cn__conv_sizes *s);

struct cn_gpu_call;
bool cn__matmul_gpu(struct cn_gpu_call *c); /* matmul_gpu.c */

extern const cn_op cn__op_matmul, cn__op_linear, cn__op_dot, cn__op_outer, cn__op_einsum;
extern const cn_op cn__op_conv, cn__op_conv_input_grad, cn__op_conv_weight_grad;
extern const cn_op cn__op_conv1d, cn__op_conv2d, cn__op_conv3d, cn__op_conv_transpose1d, cn__op_conv_transpose2d;

#endif

/* patches.h: convolution whose stride is its kernel size, without padding and with one group. No pixel is seen twice, so
   the image is a permuted matrix (images·positions, channels·taps): one row for each patch. Three products remain:

       y(n·p, o) = patches(n·p, c·t) · weight(o, c·t)ᵀ              and y is turned to (n, o, p)
       gradient of patches(p, c·t) = y(o, p)ᵀ · weight(o, c·t)      for each image
       gradient of weight(o, c·t) = y(o, n·p) · patches(n·p, c·t)

   Only so many images are permuted at a time that their patches take a few megabytes. */
#ifndef CN_OPS_CONTRACT_PATCHES_H
#define CN_OPS_CONTRACT_PATCHES_H

#include "cpu/gemm.h"
#include "ops/contract/contract.h"

typedef struct cn__patches {
    const cn_kernel *k;
    char *x, *weight, *y;
    const cn__gemm_kernel *gemm;
    int64_t size; /* bytes of an element */
    int64_t n, c, o, in[3], out[3], kernel[3];
    int64_t pixels, positions, row; /* pixels of a plane of x, positions of a plane of y, elements of a patch */
    int64_t some;                   /* images at a time */
    bool suits;                     /* a convolution of this kind, and worth it */
} cn__patches;

cn__patches cn__patches_of(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);

/* Each computes one of y, x and the weight from the other two. */
void cn__patches_y(const cn__patches *p);
void cn__patches_x(const cn__patches *p);
void cn__patches_weight(const cn__patches *p);
size_t cn__patches_y_scratch(const cn__patches *p, int threads);
size_t cn__patches_x_scratch(const cn__patches *p, int threads);
size_t cn__patches_weight_scratch(const cn__patches *p, int threads);

#endif

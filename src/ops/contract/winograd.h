/* winograd.h: convolution with a kernel of 3x3 at stride 1 with fewer multiplications. Winograd's F(2x2, 3x3) computes
   2x2 positions from the 4x4 pixels that they see with 16 multiplications for each channel and output, not 36:

       result(2x2) = Aᵀ [ sum over channels of (G weight Gᵀ) ⊙ (Bᵀ source B) ] A

            | 1  0 -1  0 |        | 1    0    0  |
       Bᵀ = | 0  1  1  0 |    G = | 1/2  1/2  1/2|    Aᵀ = | 1  1  1  0 |
            | 0 -1  1  0 |        | 1/2 -1/2  1/2|         | 0  1 -1 -1 |
            | 0  1  0 -1 |        | 0    0    1  |

   For each of the 16 places of a transformed square, the sum is a product (squares, channels) · (channels, outputs). The
   gradient of the input is the same with the kernel reversed. The gradient of the weight sums over squares:

       weight(3x3) = Gᵀ [ sum over squares of (A result Aᵀ) ⊙ (Bᵀ source B) ] G

   Sums of four pixels are multiplied, so rounding errors are up to twice those of a plain sum, and are relative to the
   largest pixel of a square; f64 is left to other kernels. Pixels that a position does not see cancel each other only if
   they are finite. Therefore a band of positions that are not all finite is computed again as a plain sum, and so is the
   gradient of a weight.

   Pixels are copied to lie with their channels contiguous, as in pixels.h, in bands: some lines of squares of a plane.
   Only sizes decide. */
#ifndef CN_OPS_CONTRACT_WINOGRAD_H
#define CN_OPS_CONTRACT_WINOGRAD_H

#include "cpu/gemm.h"
#include "ops/contract/contract.h"

typedef struct cn__winograd {
    const cn_kernel *k;
    const cn__gemm_kernel *gemm;
    bool backward; /* the result is the gradient of x, the source that of y */
    float *source, *weight, *result;
    float *packed; /* the transformed weight */
    int64_t planes, deep, channels,
        outputs;                /* planes of all images, and of one; channels of the source, of the result */
    int64_t in[2], out[2];      /* height and width of the source and of the result */
    int64_t before[2];          /* zeros before the first line and before the first pixel of a line */
    int64_t panels, pitch;      /* panels of outputs in a product; outputs, rounded up to whole vectors */
    int64_t across, tall;       /* squares in a line, lines of squares in a plane */
    int64_t lines, bands, some; /* lines of squares in a band, bands of a plane, bands at a time */
    int64_t wide, high;         /* pixels in a line of a copied band, and its lines */
    int64_t parts;              /* sums of the weight's gradient that are formed apart */
    bool suits, weighs;         /* a convolution of this kind and worth it; and for the weight's gradient */
} cn__winograd;

/* forward: y from x and weight. backward: x from y and weight. */
cn__winograd cn__winograd_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
cn__winograd cn__winograd_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);

void cn__winograd_run(const cn__winograd *w);
size_t cn__winograd_scratch(const cn__winograd *w, int threads);

/* The weight from x and y; w from cn__winograd_forward. False: it is not finite, another kernel must compute it. */
bool cn__winograd_weigh(const cn__winograd *w);
size_t cn__winograd_weigh_scratch(const cn__winograd *w, int threads);

#endif

/* pixels.h: convolution by pixels. The source is copied so that the channels of a pixel are contiguous, with the zeros of
   its padding. Then what the taps of one line of the kernel see from a position is one run of elements, and the next
   position sees a run that begins a fixed distance further. A line of positions is a product whose first operand lies in
   place: there is no matrix of columns.

       result(positions, outputs) = sum over lines of the kernel of source(positions, taps·channels) · weight

   The gradient of the input is the same with positions and pixels exchanged. With a stride, the pixels of a line fall
   into as many phases, and those of one phase see the same taps: each phase is a convolution without stride, which
   writes every stride-th pixel. Nothing is scattered. The gradient of the weight sums over positions:

       weight(taps·channels, outputs) = source(positions, taps·channels)ᵀ · result(positions, outputs)

   The work is cut into bands: some lines of the result, and the lines of the source that they see. Only sizes decide. */
#ifndef CN_OPS_CONTRACT_PIXELS_H
#define CN_OPS_CONTRACT_PIXELS_H

#include "cpu/gemm.h"
#include "ops/contract/contract.h"

typedef struct cn__pixels {
    const cn_kernel *k;
    const cn__conv_attrs *a;
    const cn__gemm_kernel *gemm;
    int64_t size;  /* bytes of an element */
    bool backward; /* the result is the gradient of x, the source that of y */
    char *source, *weight, *result;
    char *packed;                         /* the weight, phase by phase */
    int64_t n, groups, channels, outputs; /* channels of the source and of the result, of a group */
    int64_t in[3], out[3], kernel[3];     /* sizes of the source, the result and the kernel */
    int64_t volume, pixels, positions;    /* of the kernel, of a plane of the source, of a plane of the result */
    int64_t weight_in, weight_out;        /* strides of the weight: between channels of the source, of the result */
    int64_t panels, pitch;                /* panels of outputs in a product; outputs, rounded up to whole vectors */
    int64_t low, wide;                    /* the first pixel of a padded line, and the number of its pixels */
    int64_t lines, bands;                 /* lines of the result in a band, bands of a plane */
    int64_t deep, high;                   /* planes and lines of the source that a band sees, at most */
    bool gaps;                            /* some places of the result see no tap */
    bool suits;                           /* a convolution of this kind, and worth it */
} cn__pixels;

/* forward: y from x and weight. backward: x from y and weight. */
cn__pixels cn__pixels_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
cn__pixels cn__pixels_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);

void cn__pixels_run(const cn__pixels *p);
size_t cn__pixels_scratch(const cn__pixels *p, int threads);

/* The weight from x and y; p from cn__pixels_forward. */
void cn__pixels_weigh(const cn__pixels *p);
size_t cn__pixels_weigh_scratch(const cn__pixels *p);

#endif

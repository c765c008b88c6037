/* depthwise.h: convolution of planes or lines whose groups have one channel and one output. Nothing is summed over
   channels, so every pixel is read by the taps of one kernel alone.

   The pixels that a band of positions sees are copied once, with the zeros of their padding, into cells. Lines of cells
   follow each other without a gap, and pixels that are a stride apart are neighbours: a phase holds every stride-th
   line, or pixel of a line. Then each tap sees a run of cells that begins at an offset of its own,

       result[p] = sum over taps t of weight[t] · cells[p + offset[t]]

   and all positions of a band are one run, with some positions between lines that mean nothing. */
#ifndef CN_OPS_CONTRACT_DEPTHWISE_H
#define CN_OPS_CONTRACT_DEPTHWISE_H

#include "ops/contract/contract.h"

enum { CN__DEPTHWISE_TAPS = 512 };

/* Of an axis, lines or pixels of a line: place p sees pixel p·stride + tap·dilation - padding. */
typedef struct cn__depth_axis {
    int64_t in, out, taps, stride, dilation, padding;
    int64_t reach; /* places that the last tap sees beyond the first one's, in cells of a phase */
} cn__depth_axis;

typedef struct cn__depthwise {
    const cn_kernel *k;
    bool f64, suits;
    int64_t planes, channels; /* of all images, and of one */
    cn__depth_axis y, x;
    int64_t lines, columns, bands, strips; /* positions of a band; bands of a plane, one of several lines */
    int64_t pitch, phase;                  /* cells of a line, and of a phase */
    size_t cells, result;                  /* bytes of scratch for each thread */
} cn__depthwise;

cn__depthwise cn__depthwise_of(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
void cn__depthwise_run(const cn__depthwise *d);
size_t cn__depthwise_scratch(const cn__depthwise *d, int threads);

#endif

/* taps.h: convolution with stride 1, where each tap of the kernel meets the image itself and no matrix of columns is written.

   Positions of the result are numbered through, and a source plane is copied into cells that are numbered alike: with the
   zeros of its padding, and a copy for each tap along the last axis. Then tap i sees, from position p, cell p + offset[i],
   whatever p is, and a vector of positions sees a vector of cells:

       result[r, p] = sum over k = (channel, tap) of weight[r, k] · cells[p + offset[k]]

   Taps along the first axis that has more than one position need no copies of their own: their offsets differ by lines. */
#ifndef CN_OPS_CONTRACT_TAPS_H
#define CN_OPS_CONTRACT_TAPS_H

#include "ops/contract/contract.h"

/* One axis: tap i sees pixel p + from + i·by from position p. */
typedef struct cn__tap_axis {
    int64_t count, from, by;
    int64_t positions, pixels; /* of the result, of the source */
    bool apart;                /* every tap has a copy of its own */
    int64_t cells;             /* of a copy */
} cn__tap_axis;

typedef struct cn__taps {
    const cn_kernel *k;
    bool f64;
    int64_t size; /* bytes of an element */
    int64_t n, groups;
    int64_t rows, channels; /* of a group, in the result and in the source */
    cn__tap_axis axis[3];
    int64_t volume, copies;     /* of all axes together: taps, copies */
    int64_t line, plane, reach; /* in cells: from one to the next, and the largest offset */
    char *weight, *source, *result;
    int64_t weight_row, weight_channel; /* elements from one to the next */
    int64_t pixels, positions;          /* of a plane of the source, of the result */
    bool reversed;                      /* the last tap of the kernel is the first here */
    /* how the work is cut: by sizes alone */
    int64_t chunk, chunks;      /* positions of an image */
    int64_t parts, run;         /* weight gradient: parts of the images with sums of their own; images in one sum */
    int64_t tiles, blocks;      /* of rows: register tiles, and blocks of them */
    int64_t height, higher;     /* of a tile; how many of them are one row higher */
    int64_t slice, slices;      /* channels at a time */
    int64_t span;               /* cells of a copy for a chunk */
    size_t shared, cells, rest; /* bytes of scratch: once, and twice for each thread */
} cn__taps;

/* y from x and weight; x from y and weight, which is the same with the kernel reversed. */
cn__taps cn__taps_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
cn__taps cn__taps_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
/* Whether run, or weigh, is faster than columns: by sizes alone. */
bool cn__taps_suit(const cn__taps *t);
bool cn__taps_suit_weight(const cn__taps *t);

size_t cn__taps_scratch(const cn__taps *t, int threads);
void cn__taps_run(const cn__taps *t);

/* weight = sum over positions of result · source; t from cn__taps_forward. */
size_t cn__taps_weigh_scratch(const cn__taps *t, int threads);
void cn__taps_weigh(const cn__taps *t);

#endif

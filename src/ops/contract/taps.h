/* taps.h: convolution by taps, for stride 1. Each tap of the kernel is applied to the image; there is no matrix of
   columns.

   The positions of the result are numbered. A source plane is copied into cells that are numbered in the same way, with
   the zeros of its padding, once for each tap along the last axis. Then tap i sees cell p + offset[i] from every
   position p, and a vector of positions sees a vector of cells:

       result[r, p] = sum over k = (channel, tap) of weight[r, k] · cells[p + offset[k]]

   Taps along the first axis with more than one position need no copies of their own: their offsets differ by whole
   lines. */
#ifndef CN_OPS_CONTRACT_TAPS_H
#define CN_OPS_CONTRACT_TAPS_H

#include "ops/contract/contract.h"

/* One axis: tap i sees pixel p + from + i·by from position p. */
typedef struct cn__tap_axis {
    int64_t count, from, by;
    int64_t positions, pixels; /* positions of the result, pixels of the source */
    bool apart;                /* every tap has a copy of its own */
    int64_t cells;             /* cells of a copy */
} cn__tap_axis;

typedef struct cn__taps {
    const cn_kernel *k;
    bool f64;
    int64_t size; /* bytes of an element */
    int64_t n, groups;
    int64_t rows, channels; /* of a group: rows of the result, channels of the source */
    cn__tap_axis axis[3];
    int64_t volume, copies;     /* taps and copies, of all axes together */
    int64_t line, plane, reach; /* in cells: strides of lines and planes, and the largest offset */
    char *weight, *source, *result;
    int64_t weight_row, weight_channel; /* strides of the weight */
    int64_t pixels, positions;          /* pixels of a plane of the source, positions of a plane of the result */
    bool reversed;                      /* the taps of the kernel are in reverse order */
    /* How the work is cut; only sizes decide. */
    int64_t chunk, chunks;      /* positions of a chunk, chunks of an image */
    int64_t parts, run;         /* weight gradient: parts of the images with sums of their own; images in one sum */
    int64_t tiles, blocks;      /* register tiles of rows, and blocks of tiles */
    int64_t height, higher;     /* rows of a tile; the first `higher` tiles have one more */
    int64_t slice, slices;      /* channels of a slice, number of slices */
    int64_t span;               /* cells of a copy for a chunk */
    size_t shared, cells, rest; /* bytes of scratch: shared by all threads; for each thread, cells and rest */
} cn__taps;

/* forward: y from x and weight. backward: x from y and weight, the same with the kernel reversed. */
cn__taps cn__taps_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
cn__taps cn__taps_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y);
/* Whether cn__taps_run, or cn__taps_weigh, is faster than columns; only sizes decide. */
bool cn__taps_suit(const cn__taps *t);
bool cn__taps_suit_weight(const cn__taps *t);

size_t cn__taps_scratch(const cn__taps *t, int threads);
void cn__taps_run(const cn__taps *t);

/* weight = sum over positions of result · source; t from cn__taps_forward. */
size_t cn__taps_weigh_scratch(const cn__taps *t, int threads);
void cn__taps_weigh(const cn__taps *t);

#endif

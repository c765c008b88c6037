/* layer_norm_cpu.h: the kernels of layer_norm, rms_norm and their backwards. */
#ifndef CN_BLOCK_LAYER_NORM_CPU_H
#define CN_BLOCK_LAYER_NORM_CPU_H

#include "cairn/op.h"

/* What a call works on. */
typedef struct cn__row_norm {
    int64_t n_rows, n;
    bool centred; /* layer_norm; else rms_norm */
    double eps;
    int64_t parts, part_rows; /* backward: from the sizes alone */
    double *sums;             /* backward: of dweight and dbias, (parts, 2, n); then as much for each thread */
} cn__row_norm;

/* Each for f32 and f64: forward over rows, backward over parts of them, merge over columns. */
typedef struct cn__layer_norm_kernels {
    cn_body forward[2], backward[2], merge[2];
} cn__layer_norm_kernels;

#endif

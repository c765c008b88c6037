/* layer_norm_cpu.h: the CPU kernels of layer_norm, rms_norm and their backward operators. */
#ifndef CN_BLOCK_LAYER_NORM_CPU_H
#define CN_BLOCK_LAYER_NORM_CPU_H

#include "cairn/op.h"

/* One call: sizes, and the scratch of the backward operator. */
typedef struct cn__row_norm {
    int64_t n_rows, n;
    bool centred; /* true: layer_norm; false: rms_norm */
    double eps;
    int64_t parts, part_rows; /* backward: decided by the sizes, not by the number of threads */
    double *sums;             /* backward: of dweight and dbias, (parts, 2, n); 2 n more for each thread */
} cn__row_norm;

/* Each for f32 and f64. forward runs over rows, backward over parts of the rows, merge over columns. */
typedef struct cn__layer_norm_kernels {
    cn_body forward[2], backward[2], merge[2];
} cn__layer_norm_kernels;

#endif

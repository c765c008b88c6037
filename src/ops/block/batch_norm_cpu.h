/* batch_norm_cpu.h: the CPU kernels of batch_norm and its backward operator. */
#ifndef CN_BLOCK_BATCH_NORM_CPU_H
#define CN_BLOCK_BATCH_NORM_CPU_H

#include "cairn/op.h"

enum { CN__NORM_CHANNELS = 32 }; /* the most channels of a chunk */

/* x (n, c, s) */
typedef struct cn__batch_image {
    int64_t n, c, s;
    double count, eps; /* count: n s, the elements of a channel */
} cn__batch_image;

/* Each for f32 and f64. A part is a channel. */
typedef struct cn__batch_norm_kernels {
    cn_body forward[2], backward[2];
} cn__batch_norm_kernels;

#endif

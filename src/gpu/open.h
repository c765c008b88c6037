/* gpu/open.h: opens a graphics card as the device of a context. */
#ifndef CN_GPU_OPEN_H
#define CN_GPU_OPEN_H

#include "core/device.h"

/* card: a number that cn_gpu_find returned. The device takes over `cpu`, which computes the steps for which the GPU
   has no kernel. NULL: an error is set. */
cn__device *cn__gpu_device_open(cn_ctx *ctx, int card, cn__device *cpu);

#endif

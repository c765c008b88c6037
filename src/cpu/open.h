/* cpu/open.h: the CPU as a context's device. */
#ifndef CN_CPU_OPEN_H
#define CN_CPU_OPEN_H

#include "core/device.h"

struct cn__kernels;

/* Takes over `kernels`, memory of the context's allocator, also if it fails. NULL: no memory. */
cn__device *cn__cpu_open(cn_ctx *ctx, int threads, struct cn__kernels *kernels, size_t kernels_bytes);

#endif

/* cpu/open.h: opens the CPU as the device of a context. */
#ifndef CN_CPU_OPEN_H
#define CN_CPU_OPEN_H

#include "core/device.h"
#include "cpu/gather_cpu.h"

struct cn__kernels;

/* Takes over `kernels`, which the context's allocator allocated, even if opening fails. `gather` is a part of it. NULL:
   no memory. */
cn__device *cn__cpu_open(cn_ctx *ctx, int threads, struct cn__kernels *kernels, size_t kernels_bytes,
                         const cn__gather_kernels *gather);

#endif

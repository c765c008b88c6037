/* cpu/open.h: the CPU as a context's device. */
#ifndef CN_CPU_OPEN_H
#define CN_CPU_OPEN_H

#include "core/device.h"

cn__device *cn__cpu_open(cn_ctx *ctx, int threads); /* NULL: no memory */

#endif

/* gpu/variants.h: chooses among the forms of a kernel.

       switch (cn__gpu_variant(c->ctx, "matmul", TILED)) { case PLAIN: ..; case TILED: ..; case DIRECT: .. }

   Choices are numbered as in the table of variants.c. A choice that the environment names (CAIRN_GPU_MATMUL=plain) is
   used. Otherwise the preferred choice is used, unless `cairn doctor` found it wrong on this adapter and driver; then
   the safe one is used. The doctor's verdict is a file in the user's cache, read when a device is opened. */
#ifndef CN_GPU_VARIANTS_H
#define CN_GPU_VARIANTS_H

#include "core/device.h"

enum { CN__GPU_VARIANTS = 8 }; /* the most kernels with several forms */

struct cn__gpu_device;
int cn__gpu_variant(const cn_ctx *ctx, const char *name, int preferred);
void cn__gpu_variants_open(struct cn__gpu_device *d); /* reads the doctor's verdict */
bool cn__gpu_is_device(const cn__device *d);          /* backend.c */

#endif

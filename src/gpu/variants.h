/* gpu/variants.h: kernels of which there are several forms, and which of them an adapter can be trusted with.

       switch (cn__gpu_variant(c->ctx, "matmul", TILED)) { case PLAIN: ..; case TILED: ..; case DIRECT: .. }

   Choices are numbered as in the table of variants.c. The environment may name one (CAIRN_GPU_MATMUL=plain): then it is that
   one. Otherwise it is the preferred one, unless `cairn doctor` found it wrong on this adapter and driver: then the safe one.
   The doctor's verdict is a file in the user's cache; it is read when a device is opened. */
#ifndef CN_GPU_VARIANTS_H
#define CN_GPU_VARIANTS_H

#include "core/device.h"

enum { CN__GPU_VARIANTS = 8 }; /* that there is room for */

struct cn__gpu_device;
int cn__gpu_variant(const cn_ctx *ctx, const char *name, int preferred);
void cn__gpu_variants_open(struct cn__gpu_device *d); /* reads the verdict, if there is one */
bool cn__gpu_is_device(const cn__device *d);          /* backend.c */

#endif

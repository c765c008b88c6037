/* core/png_write.h: pictures as PNG files, without a library: charts, and images of a program. */
#ifndef CN_CORE_PNG_WRITE_H
#define CN_CORE_PNG_WRITE_H

#include <stdio.h>

#include "cairn/base.h"

/* pixels (height, width, channels), 8 bits; channels: 1 or 3. False: an error of the file (errno) or of the context. */
bool cn__png_write(cn_ctx *ctx, FILE *f, const unsigned char *pixels, int channels, int width, int height);

#endif

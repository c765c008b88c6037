/* core/format.h: a tensor as text, as PyTorch prints it.

       char text[256];
       size_t length = cn__format(CN_F32, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}, text, sizeof text);
       tensor([[1., 2.],
               [3., 4.]])

   Floats have four digits after the point. Rows wrap at 80 columns. If there are more than 1,000 elements, each axis
   shows its first and last three. The dtype is shown where PyTorch shows it, under Cairn's name: dtype=f64. */
#ifndef CAIRN_CORE_FORMAT_H
#define CAIRN_CORE_FORMAT_H

#include "cairn/base.h"

/* data is contiguous. Returns the length of the whole text. out holds as much as fits, and a final 0 if size > 0. */
size_t cn__format(cn_dtype dtype, int ndim, const int64_t *shape, const void *data, char *out, size_t size);

#endif

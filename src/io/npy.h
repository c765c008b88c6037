/* io/npy.h: what npz shares with npy. */
#ifndef CN_IO_NPY_H
#define CN_IO_NPY_H

#include "io/files.h"

#define CN__NPY_HEADER 320 /* room for any header, padding included */

/* NumPy's name for a type: "<f4"; NULL: it has none. */
const char *cn__npy_descr(cn_dtype t);

/* Fills out and returns the length; the numbers follow it. Padded so that offset + length is a multiple of 64. */
size_t cn__npy_header(char out[CN__NPY_HEADER], const char *descr, cn_dims shape, uint64_t offset);

#endif

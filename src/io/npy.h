/* io/npy.h: headers of npy files, which npz files contain. */
#ifndef CN_IO_NPY_H
#define CN_IO_NPY_H

#include "io/files.h"

#define CN__NPY_HEADER 320 /* bytes of the longest header, with padding */

/* NumPy's name for a type, such as "<f4"; NULL: NumPy has no such type. */
const char *cn__npy_descr(cn_dtype t);

/* Writes the header to out and returns its length. Padding makes offset + length a multiple of 64. */
size_t cn__npy_header(char out[CN__NPY_HEADER], const char *descr, cn_dims shape, uint64_t offset);

#endif

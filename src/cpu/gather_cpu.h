/* cpu/gather_cpu.h: copies of boxes, which are two axes of strided memory, for one instruction set. */
#ifndef CN_CPU_GATHER_CPU_H
#define CN_CPU_GATHER_CPU_H

#include <stdint.h>

typedef struct cn__box {
    void *to;
    int64_t to_row; /* between rows of `to`, whose elements are contiguous; strides are in elements */
    const void *from;
    int64_t row, step; /* between rows, and between elements of a row */
    int64_t rows, n;   /* of a row: n elements */
} cn__box;

typedef void (*cn__box_fn)(const cn__box *b);

typedef struct cn__gather_kernels {
    cn__box_fn box[4]; /* elements of 1, 2, 4 and 8 bytes */
} cn__gather_kernels;

#endif

/* move.h: elements carried between strided places, by their size alone: what slices, diagonals, cat and pad share. */
#ifndef CN_OPS_VIEW_MOVE_H
#define CN_OPS_VIEW_MOVE_H

#include "cairn/kernel.h"

typedef struct cn__move {
    char *to;
    const char *from;
    int64_t bytes; /* an element */
    int ndim;
    int64_t shape[CN_MAX_DIMS], to_stride[CN_MAX_DIMS], from_stride[CN_MAX_DIMS]; /* in elements */
    void (*row)(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes);
} cn__move;

/* The operand to the start of the (first) result, axis by axis; to be adjusted before it is carried out. */
cn__move cn__move_of(const cn_kernel *k, int operand);
void cn__move_along(cn__move *m, int axis, int64_t by);   /* to a place so much further along the result's axis */
void cn__move_run(const cn_kernel *k, const cn__move *m); /* on all threads */

void cn__move_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes);
void cn__zero_result(const cn_kernel *k);

/* On the GPU: the text of `fn NAME(i: u32) -> u32`, where element i of a row-major walk over the shape lies when axes have
   these strides. Its numbers become parameters. */
const char *cn__gpu_walk(cn_gpu_call *c, const char *name, int ndim, const int64_t *shape, const int64_t *stride);
const char *cn__gpu_walk_array(cn_gpu_call *c, const char *name, const cn_array *x);

enum { CN__MOVE_GRAIN = 1 << 14 }; /* elements a thread takes at once */

#endif

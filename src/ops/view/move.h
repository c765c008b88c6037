/* move.h: copies elements between strided memory. Only their size matters. slice, diagonal, cat and pad use it. */
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

/* The copy of an operand to the start of the first result, axis by axis. The caller may adjust it before cn__move_run.
   */
cn__move cn__move_of(const cn_kernel *k, int operand);
void cn__move_along(cn__move *m, int axis, int64_t by);   /* adds `by` to the destination's index along this axis */
void cn__move_run(const cn_kernel *k, const cn__move *m); /* on all threads */

void cn__move_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes);
void cn__zero_result(const cn_kernel *k);

/* The text of a WGSL function `fn NAME(i: u32) -> u32`: the offset of element i, in row-major order, of a tensor with
   this shape and these strides. Adds shape and strides to the parameters. */
const char *cn__gpu_walk(cn_gpu_call *c, const char *name, int ndim, const int64_t *shape, const int64_t *stride);
const char *cn__gpu_walk_array(cn_gpu_call *c, const char *name, const cn_array *x);

enum { CN__MOVE_GRAIN = 1 << 14 }; /* elements of a chunk */

#endif

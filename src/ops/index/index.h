/* index.h: the attributes of the operators that read and write by index, and the functions that their files share. */
#ifndef CN_OPS_INDEX_H
#define CN_OPS_INDEX_H

#include "cairn/kernel.h"
#include "ops/shared.h"

typedef struct cn__index_attrs {
    int64_t axis;
} cn__index_attrs;

typedef struct cn__rows_attrs {
    int64_t rows;              /* embedding_backward: the rows of the weight */
} cn__rows_attrs;

typedef struct cn__wrap_attrs {
    int64_t size;              /* of the axis that the index names elements of */
} cn__wrap_attrs;

typedef struct cn__one_hot_attrs {
    int64_t classes;           /* -1: the largest index + 1 */
} cn__one_hot_attrs;

typedef struct cn__accumulate_attrs {
    int64_t accumulate;
} cn__accumulate_attrs;

typedef struct cn__fold_attrs {
    int64_t axis, fold;        /* a cn__fold */
} cn__fold_attrs;

typedef struct cn__reduce_at_attrs {
    int64_t axis, reduce, include_self; /* reduce: a cn_fold */
} cn__reduce_at_attrs;

typedef struct cn__along_attrs {
    int64_t axis;              /* -1: the flat tensor */
} cn__along_attrs;

typedef struct cn__histc_attrs {
    int64_t bins;
} cn__histc_attrs;

typedef struct cn__bincount_attrs {
    int64_t minlength;
} cn__bincount_attrs;

typedef struct cn__bag_attrs {
    int64_t mode, include_last_offset, padding; /* mode: a cn_bag_mode; padding -1: none */
} cn__bag_attrs;

typedef struct cn__put_attrs {
    int64_t n, accumulate;     /* n: the number of index tensors */
} cn__put_attrs;

/* For wrappers: fills a with the axis, counted from the front. Returns false and sets an error if there is no such
   axis. A scalar has one axis of size 1. */
bool cn__index_axis(const char *who, const cn_tensor *x, int64_t axis, cn__index_attrs *a);
/* For wrappers: returns false and sets an error if a value does not broadcast to `to`, the shape it is written to. */
bool cn__index_value(const char *who, const cn_tensor *value, cn_dims to);
/* For composites: the shape that two shapes broadcast to. Returns false and sets an error if they do not. */
bool cn__broadcast(cn_ctx *ctx, const char *who, cn_dims x, cn_dims y, cn_dims *to);
/* For shape rules: returns false and sets an error if operand k has not the dtype of an index. */
bool cn__infer_index(cn_infer *i, int k);
/* For gradients: zeros of operand k's shape. */
cn_tensor *cn__zeros_for(const cn_grad_call *g, int k);

/* Indices as i64; negative ones, which count from the end, are made positive. Checks the range. */
cn_tensor *cn__wrap_index(cn_tensor *index, int64_t size);
/* How what several indices write to one place is combined. */
typedef enum cn__fold { CN__SET, CN__ADD, CN__MUL, CN__MAX, CN__MIN } cn__fold;
/* scatter and its like: shape rule and kernels. attrs begin with the axis. */
bool cn__infer_scatter(cn_infer *i);
void cn__scatter_cpu(const cn_kernel *k, cn__fold fold);
bool cn__scatter_gpu(cn_gpu_call *c, cn__fold fold);
/* index_add, but overwriting instead of adding. */
cn_tensor *cn__index_copy(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source);
/* index (...), g (..., width) → (rows, width) */
cn_tensor *cn__embedding_backward(cn_tensor *g, cn_tensor *index, int64_t rows);

/* A shape as (outer, n, inner) around an axis; a scalar is (1, 1, 1). */
typedef struct cn__around {
    int64_t outer, n, inner;
} cn__around;
cn__around cn__around_axis(int ndim, const int64_t *shape, int64_t axis);

/* The axes on one side of the axis, the last one first: the sizes of the index, and the strides of x and the source.
   Neighbouring axes are joined if index, x and source have the same sizes, so that runs along the first are long. */
typedef struct cn__side {
    int n;
    int64_t numel, shape[CN_MAX_DIMS], x[CN_MAX_DIMS], source[CN_MAX_DIMS];
} cn__side;

typedef struct cn__space {
    cn__side outer, inner;
    int64_t n, size;             /* along the axis: the size of the index, of x */
    int64_t x_step, source_step; /* along the axis: the strides of x and the source */
} cn__space;
/* x and source may be larger than the index along the other axes. */
void cn__space_of(cn__space *s, const cn_array *index, const cn_array *x, const cn_array *source, int64_t axis);
void cn__side_offset(const cn__side *s, int64_t at, int64_t *x, int64_t *source);

/* On the GPU: returns the text of `fn NAME(at: u32) -> vec2<u32>`, which computes the offsets of cn__side_offset. Adds
   the parameters that this function reads. */
const char *cn__gpu_side(cn_gpu_call *c, const char *name, const cn__side *s);

/* dst = src, or zeros if src is NULL; on all threads. */
void cn__copy_all(const cn_kernel *k, void *dst, const void *src, int64_t bytes);

static inline int64_t cn__index_at(const cn_array *index, int64_t i)
{
    return index->dtype == CN_I32 ? ((const int32_t *)index->data)[i] : ((const int64_t *)index->data)[i];
}

/* A run of elements picked from in[0] by in[1]: out[at + c] = x[index[c] · step + c · next] for c < count. */
typedef struct cn__pick {
    int64_t at, x, index;            /* where the run begins in the result, in x and in the index */
    int64_t count, size, step, next; /* indices are in [0, size) */
} cn__pick;
void cn__pick_run(const cn_kernel *k, const cn__pick *p);

#endif

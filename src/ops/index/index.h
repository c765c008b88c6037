/* index.h: what the operators that read and write by index share. */
#ifndef CN_OPS_INDEX_H
#define CN_OPS_INDEX_H

#include "cairn/kernel.h"
#include "ops/shared.h"

typedef struct cn__index_attrs {
    int64_t axis;
} cn__index_attrs;

typedef struct cn__rows_attrs {
    int64_t rows;              /* embedding_backward: of the weight */
} cn__rows_attrs;

typedef struct cn__wrap_attrs {
    int64_t size;              /* of the axis the index counts along */
} cn__wrap_attrs;

typedef struct cn__one_hot_attrs {
    int64_t classes;           /* -1: the largest index and one more */
} cn__one_hot_attrs;

typedef struct cn__put_attrs {
    int64_t n, accumulate;     /* how many index tensors */
} cn__put_attrs;

/* Wrappers: the axis counted from the front, or false and an error. A single number has one axis, of size 1. */
bool cn__index_axis(const char *who, const cn_tensor *x, int64_t axis, cn__index_attrs *a);
/* Wrappers: whether a value broadcasts to what it is written to; if not, an error. */
bool cn__index_value(const char *who, const cn_tensor *value, cn_dims to);
/* Shape rules: whether operand k is an index tensor. */
bool cn__infer_index(cn_infer *i, int k);
/* Gradients: zeros of operand k's shape. */
cn_tensor *cn__zeros_for(const cn_grad_call *g, int k);

/* Indices that may count from the end, as i64 that do not; checks them. */
cn_tensor *cn__wrap_index(cn_tensor *index, int64_t size);
/* index_add that overwrites instead. */
cn_tensor *cn__index_copy(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source);
/* index (...), g (..., width) → (rows, width) */
cn_tensor *cn__embedding_backward(cn_tensor *g, cn_tensor *index, int64_t rows);

/* A shape as (outer, n, inner) around an axis; a single number is (1, 1, 1). */
typedef struct cn__around {
    int64_t outer, n, inner;
} cn__around;
cn__around cn__around_axis(int ndim, const int64_t *shape, int64_t axis);

/* The axes on one side of the axis, last one first, as an index tensor runs over them, and how x and the source step
   along them. Neighbours are joined where all three agree in size, so that runs along the first are long. */
typedef struct cn__side {
    int n;
    int64_t numel, shape[CN_MAX_DIMS], x[CN_MAX_DIMS], source[CN_MAX_DIMS];
} cn__side;

typedef struct cn__space {
    cn__side outer, inner;
    int64_t n, size;             /* along the axis: of the index, of x */
    int64_t x_step, source_step; /* along the axis, in elements */
} cn__space;
/* source may be larger than index, and so may x, along all axes but the one. */
void cn__space_of(cn__space *s, const cn_array *index, const cn_array *x, const cn_array *source, int64_t axis);
void cn__side_offset(const cn__side *s, int64_t at, int64_t *x, int64_t *source);

/* On the GPU: the text of `fn NAME(at: u32) -> vec2<u32>`, the same offsets. Its numbers become parameters. */
const char *cn__gpu_side(cn_gpu_call *c, const char *name, const cn__side *s);

/* dst = src, or zeros where src is NULL; on all threads. */
void cn__copy_all(const cn_kernel *k, void *dst, const void *src, int64_t bytes);

static inline int64_t cn__index_at(const cn_array *index, int64_t i)
{
    return index->dtype == CN_I32 ? ((const int32_t *)index->data)[i] : ((const int64_t *)index->data)[i];
}

/* Elements picked from in[0] by in[1]: out[at + c] = x[index[c] · step + c · next] for c < count. */
typedef struct cn__pick {
    int64_t at, x, index;            /* where the run begins in result, x and index */
    int64_t count, size, step, next; /* indices are in [0, size) */
} cn__pick;
void cn__pick_run(const cn_kernel *k, const cn__pick *p);

#endif

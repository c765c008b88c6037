/* cairn/ops/index.h: operators that read and write elements by index. Index tensors are i32 or i64. */
#ifndef CAIRN_OPS_INDEX_H
#define CAIRN_OPS_INDEX_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The elements of x along an axis that an index names, one for each element of the index. */
CN_PURE cn_tensor *cn_gather(cn_tensor *input, int64_t dim, cn_tensor *index);

/* x with a source's elements written along an axis to the places an index names. */
CN_PURE cn_tensor *cn_scatter(cn_tensor *input, int64_t dim, cn_tensor *index, cn_tensor *src);

/* x with a source's elements added along an axis at the places an index names. */
CN_PURE cn_tensor *cn_scatter_add(cn_tensor *input, int64_t dim, cn_tensor *index, cn_tensor *src);

/* The slices along an axis that a list of indices names. */
CN_PURE cn_tensor *cn_index_select(cn_tensor *input, int64_t dim, cn_tensor *index);

/* x with a source's slices along an axis added at the places an index names. */
CN_PURE cn_tensor *cn_index_add(cn_tensor *input, int64_t dim, cn_tensor *index, cn_tensor *source);

/* The elements of the flat tensor that the indices name, in the shape of the index. */
CN_PURE cn_tensor *cn_take(cn_tensor *input, cn_tensor *index);

/* For each index the row of the weight that it names. */
CN_PURE cn_tensor *cn_embedding(cn_tensor *weight, cn_tensor *indices);

/* input with input[indices[0], indices[1], …] replaced by values, or with values added there. An index is i32 or i64
   and names one axis, or it is a mask, of bool, and names as many axes as it has. A mask is evaluated, unless it is
   the only index and values have none of its axes. */
CN_PURE cn_tensor *cn_index_put(cn_tensor *input, cn_tensor *const *indices, int n, cn_tensor *values, bool accumulate);

/* For each index a row of zeros with a 1 at that place, as i64. num_classes -1 means the largest index + 1. */
CN_PURE cn_tensor *cn_one_hot(cn_tensor *input, int64_t num_classes);

/* ---- slices and masks ---- */

/* x with a slice along an axis replaced by a value. */
CN_PURE cn_tensor *cn_slice_assign(cn_tensor *input, int64_t dim, int64_t start, int64_t end, int64_t step,
                                  cn_tensor *value);

/* The same in place: assigns the result to input. */
CN_API bool cn_slice_assign_(cn_tensor *input, int64_t dim, int64_t start, int64_t end, int64_t step, cn_tensor *value);

/* x with a number wherever the mask is true. */
CN_PURE cn_tensor *cn_masked_fill(cn_tensor *input, cn_tensor *mask, double value);

/* The elements of x where the mask is true, in order; evaluates the mask. */
CN_PURE cn_tensor *cn_masked_select(cn_tensor *input, cn_tensor *mask);

/* The indices of the elements of x that are not zero, one row for each; evaluates x. */
CN_PURE cn_tensor *cn_nonzero(cn_tensor *input);

#ifdef __cplusplus
}
#endif
#endif

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

typedef enum cn_bag_mode { CN_BAG_MEAN, CN_BAG_SUM, CN_BAG_MAX } cn_bag_mode;
typedef struct cn_embedding_bag_desc {
    cn_bag_mode mode;
    cn_tensor *per_sample_weights; /* of the indices' shape, or NULL; for sums */
    bool include_last_offset;      /* the last offset is the end of the last bag */
    bool has_padding;
    int64_t padding_idx;           /* if has_padding: indices that count nowhere */
} cn_embedding_bag_desc;

/* For each bag of indices the mean, sum or largest elements of the rows of the weight that they name; 0 for an empty
   bag. Bags are the rows of indices (bags, n), or indices are (n) and a bag begins at each of the offsets (bags), of
   which the first is 0. offsets is otherwise NULL. */
CN_PURE cn_tensor *cn_embedding_bag(cn_tensor *weight, cn_tensor *indices, cn_tensor *offsets,
                                    const cn_embedding_bag_desc *desc);

/* x with a source's elements written, or added, to the places of the flat tensor that the indices name. */
CN_PURE cn_tensor *cn_put(cn_tensor *input, cn_tensor *index, cn_tensor *source, bool accumulate);

/* The elements of x along an axis that an index names; x and the index broadcast along other axes. CN_ALL: of the flat
   tensor. */
CN_PURE cn_tensor *cn_take_along_dim(cn_tensor *input, cn_tensor *indices, cn_dims dim);

/* x with a number in the slices along an axis that an index names. */
CN_PURE cn_tensor *cn_index_fill(cn_tensor *input, int64_t dim, cn_tensor *index, double value);

/* How elements that are written to one place are combined, with each other and with what is there. */
typedef enum cn_fold { CN_FOLD_SUM, CN_FOLD_PROD, CN_FOLD_MEAN, CN_FOLD_AMAX, CN_FOLD_AMIN } cn_fold;

/* x with a source's elements combined along an axis at the places an index names. Without include_self, what x has
   there does not count. */
CN_PURE cn_tensor *cn_scatter_reduce(cn_tensor *input, int64_t dim, cn_tensor *index, cn_tensor *src, cn_fold reduce,
                                     bool include_self);

/* x with a source's slices along an axis combined at the places an index names. */
CN_PURE cn_tensor *cn_index_reduce(cn_tensor *input, int64_t dim, cn_tensor *index, cn_tensor *source, cn_fold reduce,
                                   bool include_self);

/* input[indices[0], indices[1], …], as in PyTorch. An index is i32 or i64 and names one axis, negative numbers from its
   end; or it is a mask, of bool, and names as many axes as it has, which evaluates it; or it is NULL, which stands for
   the whole axis, as `:` does. Indices broadcast to each other. Their axes stand where the indexed axes stood if those
   are neighbours, otherwise in front. Of indices with axes between them, elements are read one by one. */
CN_PURE cn_tensor *cn_index(cn_tensor *input, cn_tensor *const *indices, int n);

/* input with input[indices[0], indices[1], …] replaced by values, or with values added there. Indices are those of
   cn_index; a mask is not evaluated if it is the only index and values have none of its axes. */
CN_PURE cn_tensor *cn_index_put(cn_tensor *input, cn_tensor *const *indices, int n, cn_tensor *values, bool accumulate);

/* The same in place: assigns the result to input. */
CN_API bool cn_index_put_(cn_tensor *input, cn_tensor *const *indices, int n, cn_tensor *values, bool accumulate);

/* How often each whole number from 0 on occurs in x, or the sum of its weights; evaluates x. weights may be NULL. */
CN_PURE cn_tensor *cn_bincount(cn_tensor *input, cn_tensor *weights, int64_t minlength);

/* How many elements fall into each of several equal intervals from min to max. Equal limits stand for the smallest and
   the largest element of x, which is then evaluated. */
CN_PURE cn_tensor *cn_histc(cn_tensor *input, int64_t bins, double min, double max);

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

/* x with the elements of a source, in order, wherever the mask is true. */
CN_PURE cn_tensor *cn_masked_scatter(cn_tensor *input, cn_tensor *mask, cn_tensor *source);

/* The indices of the elements of x that are not zero, one row for each; evaluates x. */
CN_PURE cn_tensor *cn_nonzero(cn_tensor *input);

#ifdef __cplusplus
}
#endif
#endif

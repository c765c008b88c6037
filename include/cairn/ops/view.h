/* cairn/ops/view.h: other shapes of the same elements, and joining. Views move no data unless they must. */
#ifndef CAIRN_OPS_VIEW_H
#define CAIRN_OPS_VIEW_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- views ---- */

/* The same memory in another shape, where -1 may stand once; an error where a copy would be needed. */
CN_PURE cn_tensor *cn_view(cn_tensor *input, cn_dims size);

/* The same elements in another shape: a view where possible, else a copy. */
CN_PURE cn_tensor *cn_reshape(cn_tensor *input, cn_dims shape);

/* Merges neighbouring axes into one. */
CN_PURE cn_tensor *cn_flatten(cn_tensor *input, int64_t start_dim, int64_t end_dim);

/* Exchanges two axes. */
CN_PURE cn_tensor *cn_transpose(cn_tensor *input, int64_t dim0, int64_t dim1);

/* Rearranges the axes. */
CN_PURE cn_tensor *cn_permute(cn_tensor *input, cn_dims dims);

/* Python's input[start:end:step] along an axis; step > 0. */
CN_PURE cn_tensor *cn_slice(cn_tensor *input, int64_t dim, int64_t start, int64_t end, int64_t step);

/* `length` elements along an axis, from `start`. */
CN_PURE cn_tensor *cn_narrow(cn_tensor *input, int64_t dim, int64_t start, int64_t length);

/* The elements at one index of an axis; the result lacks this axis. */
CN_PURE cn_tensor *cn_select(cn_tensor *input, int64_t dim, int64_t index);

/* Axes of size 1 repeated to a size, and new axes in front; -1 leaves a size as it is. */
CN_PURE cn_tensor *cn_expand(cn_tensor *input, cn_dims size);

/* Removes axes of size 1: those given, or with CN_ALL every one. */
CN_PURE cn_tensor *cn_squeeze(cn_tensor *input, cn_dims dim);

/* Inserts an axis of size 1. */
CN_PURE cn_tensor *cn_unsqueeze(cn_tensor *input, int64_t dim);

/* Reverses the order of elements along axes. */
CN_PURE cn_tensor *cn_flip(cn_tensor *input, cn_dims dims);

/* Windows along an axis, which may overlap. */
CN_PURE cn_tensor *cn_unfold(cn_tensor *input, int64_t dimension, int64_t size, int64_t step);

/* Channels as finer planes: (..., C·r², H, W) becomes (..., C, H·r, W·r). */
CN_PURE cn_tensor *cn_pixel_shuffle(cn_tensor *input, int64_t upscale_factor);

/* Planes as more channels: (..., C, H·r, W·r) becomes (..., C·r², H, W). */
CN_PURE cn_tensor *cn_pixel_unshuffle(cn_tensor *input, int64_t downscale_factor);

/* Interleaves groups of channels of (N, C, ...): the first of each group, then the second of each, and so on. */
CN_PURE cn_tensor *cn_channel_shuffle(cn_tensor *input, int64_t groups);

/* A diagonal of two axes, as the last axis. */
CN_PURE cn_tensor *cn_diagonal(cn_tensor *input, int64_t offset, int64_t dim1, int64_t dim2);

/* Axes `source` moved to the places `destination`; the other axes keep their order. */
CN_PURE cn_tensor *cn_movedim(cn_tensor *input, cn_dims source, cn_dims destination);

/* Exchanges two axes: transpose. */
CN_PURE cn_tensor *cn_swapaxes(cn_tensor *input, int64_t axis0, int64_t axis1);

/* One axis as several, of these sizes, where -1 may stand once. */
CN_PURE cn_tensor *cn_unflatten(cn_tensor *input, int64_t dim, cn_dims sizes);

/* expand: axes of size 1 repeated to a size, and new axes in front. */
CN_PURE cn_tensor *cn_broadcast_to(cn_tensor *input, cn_dims size);

/* With at least 1, 2 or 3 axes; a new axis has the size 1. */
CN_PURE cn_tensor *cn_atleast_1d(cn_tensor *input);
CN_PURE cn_tensor *cn_atleast_2d(cn_tensor *input);
CN_PURE cn_tensor *cn_atleast_3d(cn_tensor *input);

/* Turned k times by a quarter, from axis dims[0] to axis dims[1]. */
CN_PURE cn_tensor *cn_rot90(cn_tensor *input, int64_t k, cn_dims dims);

/* Of a vector the matrix with this diagonal, of a matrix its diagonal. */
CN_PURE cn_tensor *cn_diag(cn_tensor *input, int64_t diagonal);

/* The last axis as a diagonal of two axes, dim1 and dim2 of the result; 0 elsewhere. */
CN_PURE cn_tensor *cn_diag_embed(cn_tensor *input, int64_t offset, int64_t dim1, int64_t dim2);

/* The matrix with the flattened input as a diagonal. */
CN_PURE cn_tensor *cn_diagflat(cn_tensor *input, int64_t offset);

/* The tensor itself if its elements lie in row-major order, else a copy. */
CN_PURE cn_tensor *cn_contiguous(cn_tensor *input);

/* A copy with memory of its own. */
CN_PURE cn_tensor *cn_clone(cn_tensor *input);

/* These write at most `room` tensors to out and return how many there are; 0: an error. */

/* Views of split_size elements each along an axis; the last may have fewer. */
CN_API int cn_split(cn_tensor *input, int64_t split_size, int64_t dim, cn_tensor **out, int room);

/* At most `chunks` views of about equal size along an axis. */
CN_API int cn_chunk(cn_tensor *input, int64_t chunks, int64_t dim, cn_tensor **out, int room);

/* `sections` views of about equal size along an axis: the first are longer by 1. */
CN_API int cn_tensor_split(cn_tensor *input, int64_t sections, int64_t dim, cn_tensor **out, int room);

/* The views at every index of an axis, without this axis. */
CN_API int cn_unbind(cn_tensor *input, int64_t dim, cn_tensor **out, int room);

typedef enum cn_indexing { CN_INDEXING_IJ, CN_INDEXING_XY } cn_indexing;
/* Each of n vectors repeated along the axes of the others, in one shape; XY exchanges the first two axes. */
CN_API int cn_meshgrid(cn_tensor *const *tensors, int n, cn_indexing indexing, cn_tensor **out, int room);

/* ---- joining and repeating ---- */

/* Tensors one after the other along an axis. */
CN_PURE cn_tensor *cn_cat(cn_tensor *const *tensors, int n, int64_t dim);

/* Tensors of one shape along a new axis. */
CN_PURE cn_tensor *cn_stack(cn_tensor *const *tensors, int n, int64_t dim);

/* Tensors side by side: along axis 1, vectors along axis 0. */
CN_PURE cn_tensor *cn_hstack(cn_tensor *const *tensors, int n);

/* Tensors below each other: along axis 0; a vector is a row. */
CN_PURE cn_tensor *cn_vstack(cn_tensor *const *tensors, int n);

/* Tensors behind each other: along axis 2. */
CN_PURE cn_tensor *cn_dstack(cn_tensor *const *tensors, int n);

/* Every choice of one element of each vector, as rows. */
CN_PURE cn_tensor *cn_cartesian_prod(cn_tensor *const *tensors, int n);

/* Matrices along the diagonal of one matrix; 0 elsewhere. */
CN_PURE cn_tensor *cn_block_diag(cn_tensor *const *tensors, int n);

/* The powers of a vector as columns: x^(N-1) to x^0, or increasing. N -1: as many as x has elements. */
CN_PURE cn_tensor *cn_vander(cn_tensor *x, int64_t N, bool increasing);

typedef enum cn_pad_mode { CN_PAD_CONSTANT, CN_PAD_REFLECT, CN_PAD_REPLICATE, CN_PAD_CIRCULAR } cn_pad_mode;
/* The tensor with a border. pad has F.pad's order: the last axis first, (before, after) pairs; at most 4 axes. */
CN_PURE cn_tensor *cn_pad(cn_tensor *input, cn_dims pad, cn_pad_mode mode, double value);

/* Repeats the whole tensor along each axis; further numbers add axes in front. */
CN_PURE cn_tensor *cn_repeat(cn_tensor *input, cn_dims repeats);

/* repeat; fewer numbers than axes belong to the last axes. */
CN_PURE cn_tensor *cn_tile(cn_tensor *input, cn_dims dims);

/* Shifts elements along axes; those beyond the end come back at the front. */
CN_PURE cn_tensor *cn_roll(cn_tensor *input, cn_dims shifts, cn_dims dims);

/* Repeats each element along an axis. */
CN_PURE cn_tensor *cn_repeat_interleave(cn_tensor *input, int64_t repeats, int64_t dim);

#ifdef __cplusplus
}
#endif
#endif

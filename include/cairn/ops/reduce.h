/* cairn/ops/reduce.h: results over axes, running results along an axis, order along an axis. CN_ALL stands for
   all axes. */
#ifndef CAIRN_OPS_REDUCE_H
#define CAIRN_OPS_REDUCE_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reductions ---- */

/* Sum over axes; integers and bool add up in i64. */
CN_PURE cn_tensor *cn_sum(cn_tensor *input, cn_dims dim, bool keepdim);

/* Mean over axes. */
CN_PURE cn_tensor *cn_mean(cn_tensor *input, cn_dims dim, bool keepdim);

/* Product over axes; integers and bool multiply in i64. */
CN_PURE cn_tensor *cn_prod(cn_tensor *input, cn_dims dim, bool keepdim);

/* The largest element over axes, NaN if there is one; PyTorch's amax: the gradient is shared among ties. */
CN_PURE cn_tensor *cn_max(cn_tensor *input, cn_dims dim, bool keepdim);

/* The smallest element over axes, NaN if there is one; PyTorch's amin. */
CN_PURE cn_tensor *cn_min(cn_tensor *input, cn_dims dim, bool keepdim);

/* The largest element along an axis, and its index; indices may be NULL. */
CN_API cn_tensor *cn_max_dim(cn_tensor *input, int64_t dim, bool keepdim, cn_tensor **indices);

/* The smallest element along an axis, and its index; indices may be NULL. */
CN_API cn_tensor *cn_min_dim(cn_tensor *input, int64_t dim, bool keepdim, cn_tensor **indices);

/* The index of the largest element along one axis or, with CN_ALL, in the flat tensor; the first of equal ones. */
CN_PURE cn_tensor *cn_argmax(cn_tensor *input, cn_dims dim, bool keepdim);

/* The index of the smallest element along one axis or, with CN_ALL, in the flat tensor; the first of equal ones. */
CN_PURE cn_tensor *cn_argmin(cn_tensor *input, cn_dims dim, bool keepdim);

/* Variance over axes; the divisor is the number of elements minus the correction. */
CN_PURE cn_tensor *cn_var(cn_tensor *input, cn_dims dim, double correction, bool keepdim);

/* Standard deviation over axes: the root of var. */
CN_PURE cn_tensor *cn_std(cn_tensor *input, cn_dims dim, double correction, bool keepdim);

/* Whether any element over axes is not 0. */
CN_PURE cn_tensor *cn_any(cn_tensor *input, cn_dims dim, bool keepdim);

/* Whether every element over axes is not 0. */
CN_PURE cn_tensor *cn_all(cn_tensor *input, cn_dims dim, bool keepdim);

/* log(sum(exp(x))) over axes without overflow. */
CN_PURE cn_tensor *cn_logsumexp(cn_tensor *input, cn_dims dim, bool keepdim);

/* The p-norm over axes; p may be INFINITY, -INFINITY or 0. */
CN_PURE cn_tensor *cn_norm(cn_tensor *input, double p, cn_dims dim, bool keepdim);

/* Sum over axes of the elements that are not NaN; integers and bool add up in i64. */
CN_PURE cn_tensor *cn_nansum(cn_tensor *input, cn_dims dim, bool keepdim);

/* Mean over axes of the elements that are not NaN. */
CN_PURE cn_tensor *cn_nanmean(cn_tensor *input, cn_dims dim, bool keepdim);

/* The number of elements over axes that are not 0, as i64. */
CN_PURE cn_tensor *cn_count_nonzero(cn_tensor *input, cn_dims dim);

/* The smallest and the largest element over axes; max may be NULL. */
CN_API cn_tensor *cn_aminmax(cn_tensor *input, cn_dims dim, bool keepdim, cn_tensor **max);

/* Variance and mean over axes; mean may be NULL. */
CN_API cn_tensor *cn_var_mean(cn_tensor *input, cn_dims dim, double correction, bool keepdim, cn_tensor **mean);

/* Standard deviation and mean over axes; mean may be NULL. */
CN_API cn_tensor *cn_std_mean(cn_tensor *input, cn_dims dim, double correction, bool keepdim, cn_tensor **mean);

/* x divided by its p-norm along an axis, which counts as eps if it is smaller. */
CN_PURE cn_tensor *cn_normalize(cn_tensor *input, double p, int64_t dim, double eps);

/* The sum of the diagonal of a matrix; integers add up in i64. */
CN_PURE cn_tensor *cn_trace(cn_tensor *input);

/* ---- scans and sorting ---- */

/* Running sum along an axis; integers and bool add up in i64. */
CN_PURE cn_tensor *cn_cumsum(cn_tensor *input, int64_t dim);

/* Running product along an axis; integers and bool multiply in i64. */
CN_PURE cn_tensor *cn_cumprod(cn_tensor *input, int64_t dim);

/* The largest element so far along an axis, and its index, the last of equal ones; a NaN stays the
   largest. indices may be NULL. */
CN_API cn_tensor *cn_cummax(cn_tensor *input, int64_t dim, cn_tensor **indices);

/* The smallest element so far along an axis, and its index, the last of equal ones; a NaN stays the
   smallest. indices may be NULL. */
CN_API cn_tensor *cn_cummin(cn_tensor *input, int64_t dim, cn_tensor **indices);

/* log of the running sum of exp(x) along an axis, without overflow. */
CN_PURE cn_tensor *cn_logcumsumexp(cn_tensor *input, int64_t dim);

/* The n-th differences of neighbours along an axis; prepend and append are joined to the ends first, or NULL. */
CN_PURE cn_tensor *cn_diff(cn_tensor *input, int64_t n, int64_t dim, cn_tensor *prepend, cn_tensor *append);

/* Sorts the elements along an axis; also returns their former indices. Stable; NaN is the largest. indices may be
   NULL. */
CN_API cn_tensor *cn_sort(cn_tensor *input, int64_t dim, bool descending, cn_tensor **indices);

/* The indices that sort the elements along an axis. */
CN_PURE cn_tensor *cn_argsort(cn_tensor *input, int64_t dim, bool descending);

/* The k largest (or smallest) elements along an axis in order, and their indices. indices may be NULL. */
CN_API cn_tensor *cn_topk(cn_tensor *input, int64_t k, int64_t dim, bool largest, cn_tensor **indices);

/* Where elements of input would be inserted into a sequence sorted along its last axis: the first place that keeps
   order, or, with `right`, the last. The sequence has one axis, or the other axes of input. A sorter, or NULL, is the
   indices that sort it. The result is i64, or i32 with out_int32. */
CN_PURE cn_tensor *cn_searchsorted(cn_tensor *sorted_sequence, cn_tensor *input, bool out_int32, bool right,
                                   cn_tensor *sorter);

/* For each element the interval between sorted boundaries that it lies in; with `right`, an interval contains its
   left boundary. */
CN_PURE cn_tensor *cn_bucketize(cn_tensor *input, cn_tensor *boundaries, bool out_int32, bool right);

/* The different elements of x, or with an axis its different slices, sorted; for each element of x (slice) its index
   among them; how often each occurs. Evaluates x. A slice of m elements takes m sorts. Pointers may be NULL. `sorted`
   false allows any order, but the result is sorted all the same. */
CN_API cn_tensor *cn_unique(cn_tensor *input, bool sorted, cn_dims dim, cn_tensor **inverse_indices,
                            cn_tensor **counts);

/* x without elements (slices along an axis) that equal the one before; the rest as with cn_unique. */
CN_API cn_tensor *cn_unique_consecutive(cn_tensor *input, cn_dims dim, cn_tensor **inverse_indices, cn_tensor **counts);

/* ---- ranks ---- */

/* The median of all elements, the lower of two; NaN if there is one. */
CN_PURE cn_tensor *cn_median(cn_tensor *input);

/* The median along an axis, the lower of two, and its index; NaN if there is one. indices may be NULL. */
CN_API cn_tensor *cn_median_dim(cn_tensor *input, int64_t dim, bool keepdim, cn_tensor **indices);

/* The median of all elements that are not NaN, the lower of two. */
CN_PURE cn_tensor *cn_nanmedian(cn_tensor *input);

/* The median of the elements along an axis that are not NaN, and its index; indices may be NULL. */
CN_API cn_tensor *cn_nanmedian_dim(cn_tensor *input, int64_t dim, bool keepdim, cn_tensor **indices);

/* The k-th smallest element along an axis, counted from 1, and its index; indices may be NULL. */
CN_API cn_tensor *cn_kthvalue(cn_tensor *input, int64_t k, int64_t dim, bool keepdim, cn_tensor **indices);

/* The most frequent element along an axis, the smallest of several, and its last index; indices may be NULL. */
CN_API cn_tensor *cn_mode(cn_tensor *input, int64_t dim, bool keepdim, cn_tensor **indices);

/* What a quantile between two elements is. */
typedef enum cn_quantile_mode {
    CN_QUANTILE_LINEAR,
    CN_QUANTILE_LOWER,
    CN_QUANTILE_HIGHER,
    CN_QUANTILE_MIDPOINT,
    CN_QUANTILE_NEAREST,
} cn_quantile_mode;

/* The q-th quantiles along one axis or, with CN_ALL, of all elements; NaN if there is one. q has no axis, or one, which
   is then the first axis of the result. */
CN_PURE cn_tensor *cn_quantile(cn_tensor *input, cn_tensor *q, cn_dims dim, bool keepdim,
                               cn_quantile_mode interpolation);
CN_PURE cn_tensor *cn_quantile_s(cn_tensor *input, double q, cn_dims dim, bool keepdim, cn_quantile_mode interpolation);

/* The same of the elements that are not NaN. */
CN_PURE cn_tensor *cn_nanquantile(cn_tensor *input, cn_tensor *q, cn_dims dim, bool keepdim,
                                  cn_quantile_mode interpolation);
CN_PURE cn_tensor *cn_nanquantile_s(cn_tensor *input, double q, cn_dims dim, bool keepdim,
                                    cn_quantile_mode interpolation);

#ifdef __cplusplus
}
#endif
#endif

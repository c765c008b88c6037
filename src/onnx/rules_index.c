/* Rules of operators that read and write by index, sort, and scan. Negative indices count from the end. */
#include "onnx/rules.h"

/* An index along an axis of n elements, none of them negative. */
static cn_tensor *positive(cn_tensor *index, int64_t n)
{
    if (!index) return NULL;
    if (cn_type(index) != CN_I64 && cn_type(index) != CN_I32) index = cn_cast(index, CN_I64);
    return cn_where(cn_lt_s(index, 0), cn_add_s(index, (double)n), index);
}

static int64_t product(cn_tensor *x, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= cn_size(x, d);
    return n;
}

bool cn__onnx_gather(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = IN(1);
    const int axis = x && index ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    if (axis < 0) return false;
    const int64_t n = cn_size(x, axis);
    if (cn_ndim(index) == 0 && c->in[1]->known) {
        onnx_ints at;
        if (!cn__onnx_ints(c, 1, &at)) return false;
        return GIVE(cn_select(x, axis, at.v[0]));
    }
    cn_dims shape = CN_SCALAR;
    if (cn_ndim(x) - 1 + cn_ndim(index) > CN_MAX_DIMS) return FAIL(CN_UNSUPPORTED, "the result has too many axes");
    for (int d = 0; d < axis; d++) shape.v[shape.n++] = cn_size(x, d);
    for (int d = 0; d < cn_ndim(index); d++) shape.v[shape.n++] = cn_size(index, d);
    for (int d = axis + 1; d < cn_ndim(x); d++) shape.v[shape.n++] = cn_size(x, d);
    index = positive(index, n);
    if (axis == 0 && cn_ndim(x) == 2 && cn_dtype_is_float(cn_type(x))) return GIVE(cn_embedding(x, index));
    return GIVE(cn_reshape(cn_index_select(x, axis, cn_reshape(index, CN_DIMS(-1))), shape));
}

bool cn__onnx_gather_elements(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int axis = x ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    return axis >= 0 && GIVE(cn_gather(x, axis, positive(IN(1), cn_size(x, axis))));
}

/* Which rows of x, seen as (rows, rest), the index tuples (..., k) name: k axes of x after `batch` axes. */
static cn_tensor *row_numbers(onnx_call *c, cn_tensor *x, cn_tensor *index, int batch, int k)
{
    const int64_t batches = product(x, 0, batch), tuples = cn_numel(index) / (k ? k : 1) / (batches ? batches : 1);
    cn_tensor *flat = cn_reshape(index, CN_DIMS(batches, tuples, k)), *rows = NULL;
    for (int j = 0; j < k; j++) {
        cn_tensor *part = positive(cn_select(flat, 2, j), cn_size(x, batch + j));
        part = cn_mul_s(part, (double)product(x, batch + j + 1, batch + k));
        rows = rows ? cn_add(rows, part) : part;
    }
    if (batch) {
        cn_tensor *first = cn_arange(c->ctx, CN_I64, 0, (double)batches, 1);
        rows = cn_add(rows, cn_reshape(cn_mul_s(first, (double)product(x, batch, batch + k)), CN_DIMS(batches, 1)));
    }
    return cn_reshape(rows, CN_DIMS(-1));
}

static bool tuple_size(onnx_call *c, cn_tensor *x, cn_tensor *index, int batch, int *k)
{
    *k = cn_ndim(index) > 0 && cn_size(index, -1) <= CN_MAX_DIMS ? (int)cn_size(index, -1) : -1;
    if (*k >= 1 && batch >= 0 && batch + *k <= cn_ndim(x) && batch < cn_ndim(index)) return true;
    return FAIL(CN_BAD_SHAPE, "indices name %d axes after %d; the input has %d axes", *k, batch, cn_ndim(x));
}

bool cn__onnx_gather_nd(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = IN(1);
    const int batch = (int)INT("batch_dims", 0);
    int k;
    if (!x || !index || !tuple_size(c, x, index, batch, &k)) return false;
    cn_dims shape = CN_SCALAR;
    if (cn_ndim(index) - 1 + cn_ndim(x) - batch - k > CN_MAX_DIMS)
        return FAIL(CN_UNSUPPORTED, "the result has too many axes");
    for (int d = 0; d < cn_ndim(index) - 1; d++) shape.v[shape.n++] = cn_size(index, d);
    for (int d = batch + k; d < cn_ndim(x); d++) shape.v[shape.n++] = cn_size(x, d);
    cn_tensor *rows = cn_reshape(x, CN_DIMS(product(x, 0, batch + k), product(x, batch + k, cn_ndim(x))));
    return GIVE(cn_reshape(cn_index_select(rows, 0, row_numbers(c, x, index, batch, k)), shape));
}

/* ---- scatter ---- */

static bool scatter(onnx_call *c, cn_tensor *x, int axis, cn_tensor *index, cn_tensor *source, cn_dims shape)
{
    static const struct {
        const char *name;
        cn_fold fold;
    } folds[] = { { "add", CN_FOLD_SUM }, { "mul", CN_FOLD_PROD }, { "max", CN_FOLD_AMAX }, { "min", CN_FOLD_AMIN } };
    const char *name = TEXT("reduction", "none");
    if (!strcmp(name, "none")) return GIVE(cn_reshape(cn_scatter(x, axis, index, source), shape));
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (!strcmp(name, folds[i].name))
            return GIVE(cn_reshape(cn_scatter_reduce(x, axis, index, source, folds[i].fold, true), shape));
    return FAIL(CN_BAD_ARGUMENT, "reduction must be none, add, mul, max or min, got %.40s", name);
}

bool cn__onnx_scatter_elements(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int axis = x ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    if (axis < 0) return false;
    return scatter(c, x, axis, positive(IN(1), cn_size(x, axis)), IN(2), cn_shape(x));
}

bool cn__onnx_scatter_nd(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = IN(1), *updates = IN(2);
    int k;
    if (!x || !index || !updates || !tuple_size(c, x, index, 0, &k)) return false;
    const int64_t width = product(x, k, cn_ndim(x)), tuples = cn_numel(index) / k;
    cn_tensor *rows = cn_reshape(x, CN_DIMS(product(x, 0, k), width));
    cn_tensor *number =
        cn_expand(cn_reshape(row_numbers(c, x, index, 0, k), CN_DIMS(tuples, 1)), CN_DIMS(tuples, width));
    return scatter(c, rows, 0, number, cn_reshape(updates, CN_DIMS(tuples, width)), cn_shape(x));
}

/* Writes an update into a cache: from write_indices[b] on, along an axis. */
bool cn__onnx_tensor_scatter(onnx_call *c)
{
    cn_tensor *x = IN(0), *update = IN(1);
    const int axis = x && update ? cn__onnx_axis(c, INT("axis", -2), cn_ndim(x)) : -1;
    if (axis < 0) return false;
    if (cn_ndim(update) != cn_ndim(x) || axis == 0)
        return FAIL(CN_BAD_SHAPE, "cache and update must have the same axes");
    cn_dims along = { .n = cn_ndim(x) }, batch = { .n = cn_ndim(x) };
    for (int d = 0; d < cn_ndim(x); d++) along.v[d] = batch.v[d] = 1;
    along.v[axis] = cn_size(update, axis);
    batch.v[0] = cn_size(x, 0);
    cn_tensor *place = cn_reshape(cn_arange(c->ctx, CN_I64, 0, (double)cn_size(update, axis), 1), along);
    if (HAS(2)) place = cn_add(place, cn_reshape(cn_cast(IN(2), CN_I64), batch));
    if (!strcmp(TEXT("mode", "linear"), "circular")) place = cn_remainder_s(place, (double)cn_size(x, axis));
    return GIVE(cn_scatter(x, axis, cn_expand(place, cn_shape(update)), update));
}

/* ---- choice ---- */

bool cn__onnx_one_hot(onnx_call *c)
{
    cn_tensor *index = IN(0), *values = IN(2);
    onnx_floats depth;
    if (!index || !values || !cn__onnx_floats(c, 1, &depth)) return false;
    if (depth.n != 1 || !(depth.v[0] >= 0 && depth.v[0] < 1e9))
        return FAIL(CN_BAD_ARGUMENT, "depth must be one number ≥ 0");
    const int n = cn_ndim(index) + 1;
    const int axis = n <= CN_MAX_DIMS ? cn__onnx_axis(c, INT("axis", -1), n) : -1;
    if (axis < 0) return FAIL(CN_UNSUPPORTED, "the result has too many axes");
    cn_dims classes = { .n = n };
    for (int d = 0; d < n; d++) classes.v[d] = d == axis ? (int64_t)depth.v[0] : 1;
    cn_tensor *at = cn_unsqueeze(positive(cn_cast(index, CN_I64), (int64_t)depth.v[0]), axis);
    cn_tensor *is = cn_eq(at, cn_reshape(cn_arange(c->ctx, CN_I64, 0, depth.v[0], 1), classes));
    return GIVE(cn_where(is, cn_select(values, 0, 1), cn_select(values, 0, 0)));
}

bool cn__onnx_non_zero(onnx_call *c)
{
    cn_tensor *places = cn_nonzero(IN(0));
    return places && GIVE(cn_transpose(places, 0, 1));
}

bool cn__onnx_compress(onnx_call *c)
{
    cn_tensor *x = IN(0), *chosen = cn_nonzero(IN(1));
    if (!x || !chosen) return false;
    cn_tensor *index = cn_select(chosen, 1, 0);
    if (!cn__onnx_attr(c, "axis")) return GIVE(cn_index_select(cn_reshape(x, CN_DIMS(-1)), 0, index));
    const int axis = cn__onnx_axis(c, INT("axis", 0), cn_ndim(x));
    return axis >= 0 && GIVE(cn_index_select(x, axis, index));
}

bool cn__onnx_reverse_sequence(onnx_call *c)
{
    cn_tensor *x = IN(0), *lengths = IN(1);
    const int time = x ? cn__onnx_axis(c, INT("time_axis", 0), cn_ndim(x)) : -1;
    const int batch = x ? cn__onnx_axis(c, INT("batch_axis", 1), cn_ndim(x)) : -1;
    if (time < 0 || batch < 0 || !lengths) return false;
    cn_dims along = { .n = cn_ndim(x) }, across = { .n = cn_ndim(x) };
    for (int d = 0; d < cn_ndim(x); d++) along.v[d] = across.v[d] = 1;
    along.v[time] = cn_size(x, time);
    across.v[batch] = cn_size(x, batch);
    cn_tensor *t = cn_reshape(cn_arange(c->ctx, CN_I64, 0, (double)cn_size(x, time), 1), along);
    cn_tensor *n = cn_reshape(cn_cast(lengths, CN_I64), across);
    cn_tensor *from = cn_where(cn_lt(t, n), cn_sub(cn_sub_s(n, 1), t), t);
    return GIVE(cn_gather(x, time, cn_expand(from, cn_shape(x))));
}

/* ---- order ---- */

bool cn__onnx_top_k(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = NULL;
    onnx_ints k = { .n = 1, .v = { INT("k", 1) } };
    const int axis = x ? cn__onnx_axis(c, INT("axis", -1), cn_ndim(x)) : -1;
    if (axis < 0 || (c->version >= 10 && !cn__onnx_ints(c, 1, &k))) return false;
    if (k.n != 1) return FAIL(CN_BAD_ARGUMENT, "k must be one number");
    cn_tensor *values = cn_topk(x, k.v[0], axis, INT("largest", 1) != 0, &index);
    return GIVE(values) && GIVE_AT(1, index);
}

/* Where each of n different elements occurs first: the smallest place whose element is the i-th. */
static cn_tensor *first_places(onnx_call *c, cn_tensor *inverse, int64_t n)
{
    cn_tensor *places = cn_arange(c->ctx, CN_I64, 0, (double)cn_numel(inverse), 1);
    cn_tensor *start = cn_full(c->ctx, CN_I64, CN_DIMS(n), (double)cn_numel(inverse));
    return cn_scatter_reduce(start, 0, inverse, places, CN_FOLD_AMIN, true);
}

bool cn__onnx_unique(onnx_call *c)
{
    cn_tensor *x = IN(0), *inverse = NULL, *counts = NULL;
    const bool flat = !cn__onnx_attr(c, "axis");
    const int axis = !x ? -1 : flat ? 0 : cn__onnx_axis(c, INT("axis", 0), cn_ndim(x));
    if (axis < 0) return false;
    cn_tensor *y = cn_unique(x, true, flat ? CN_ALL : CN_DIMS(axis), &inverse, &counts);
    if (!y) return false;
    inverse = cn_reshape(inverse, CN_DIMS(-1));
    cn_tensor *first = first_places(c, inverse, cn_size(y, axis));
    if (!INT("sorted", 1)) {
        cn_tensor *order = cn_argsort(first, 0, false);
        y = cn_index_select(y, axis, order);
        first = cn_index_select(first, 0, order);
        counts = cn_index_select(counts, 0, order);
        inverse = cn_index_select(cn_argsort(order, 0, false), 0, inverse);
    }
    return GIVE(y) && GIVE_AT(1, first) && GIVE_AT(2, inverse) && GIVE_AT(3, counts);
}

/* ---- running results ---- */

static bool scan(onnx_call *c, cn_tensor *(*op)(cn_tensor *x, int64_t dim), double start)
{
    cn_tensor *x = IN(0);
    onnx_ints at;
    if (!x || !cn__onnx_ints(c, 1, &at)) return false;
    if (at.n != 1) return FAIL(CN_BAD_ARGUMENT, "axis must be one number");
    const int axis = cn__onnx_axis(c, at.v[0], cn_ndim(x));
    if (axis < 0) return false;
    const cn_dtype t = cn_type(x);
    const bool reverse = INT("reverse", 0) != 0;
    if (reverse) x = cn_flip(x, CN_DIMS(axis));
    cn_tensor *y = op(x, axis);
    if (INT("exclusive", 0) && y && cn_size(x, axis) > 0) {
        cn_dims one = cn_shape(x);
        one.v[axis] = 1;
        cn_tensor *part[] = { cn_full(c->ctx, cn_type(y), one, start), cn_narrow(y, axis, 0, cn_size(x, axis) - 1) };
        y = cn_cat(part, 2, axis);
    }
    return GIVE(cn_cast(reverse ? cn_flip(y, CN_DIMS(axis)) : y, t));
}
bool cn__onnx_cum_sum(onnx_call *c) { return scan(c, cn_cumsum, 0); }
bool cn__onnx_cum_prod(onnx_call *c) { return scan(c, cn_cumprod, 1); }

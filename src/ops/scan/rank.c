/* median, nanmedian, kthvalue, mode and quantile: elements by their rank along an axis. NaN is the largest. */
#include <math.h>

#include "ops/scan/scan.h"

/* x, or a scalar as a vector of one element. */
static cn_tensor *with_axis(cn_tensor *x) { return cn_ndim(x) ? x : cn_reshape(x, CN_DIMS(1)); }

/* What comes of along(): removes the axis unless keepdim; of a scalar always. */
static cn_tensor *without_axis(cn_tensor *y, const cn_tensor *x, int64_t axis, bool keepdim)
{
    return keepdim && cn__layout(x)->ndim ? y : cn_squeeze(y, CN_DIMS(axis));
}

/* Fails unless x has elements along the axis. */
static bool has_elements(const char *who, const cn_tensor *x, int64_t *axis)
{
    if (!cn__scan_axis(who, x, axis)) return false;
    const cn_layout *l = cn__layout(x);
    if (l->ndim == 0 || l->shape[*axis]) return true;
    return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: axis %lld must not be empty", who, (long long)*axis);
}

/* at (..., 1, ...): an index along the axis for each line. Gradients go to the elements it names. */
static cn_tensor *element_at(cn_tensor *x, int64_t axis, cn_tensor *at, bool keepdim, cn_tensor **indices)
{
    *indices = without_axis(at, x, axis, keepdim);
    return without_axis(cn_gather(with_axis(x), axis, at), x, axis, keepdim);
}

/* The ranks of medians, the lower of two. In a line with a NaN that is the first NaN, unless they are left out. */
static cn_tensor *middle_ranks(cn_tensor *x, int64_t axis, bool leave_out)
{
    const int64_t n = cn_size(x, (int)axis);
    cn_dims shape = cn_shape(x);
    shape.v[axis] = 1;
    if (!cn_dtype_is_float(cn__dtype(x))) return cn_full(x->ctx, CN_I64, shape, (double)((n - 1) / 2));
    cn_tensor *nans = cn_sum(cn_isnan(x), CN_DIMS(axis), true);
    if (leave_out) return cn_floor_div_s(cn_maximum_s(cn_rsub_s(nans, (double)(n - 1)), 0), 2);
    return cn_where(cn_gt_s(nans, 0), cn_rsub_s(nans, (double)n),
                    cn_full(x->ctx, CN_I64, shape, (double)((n - 1) / 2)));
}

static cn_tensor *median_places(cn_tensor *x, int64_t axis, bool leave_out)
{
    cn_tensor *order = cn_argsort(x, axis, false);
    return cn_gather(order, axis, middle_ranks(x, axis, leave_out));
}

static cn_tensor *along(const char *who, cn_tensor *x, int64_t axis, bool keepdim, bool leave_out, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx || !has_elements(who, x, &axis)) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *out[2] = { 0 };
    out[0] = element_at(x, axis, median_places(with_axis(x), axis, leave_out), keepdim, &out[1]);
    if (!cn__scope_return_n(x->ctx, s, out, 2)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}

cn_tensor *cn_median_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices)
{
    return along("median_dim", x, axis, keepdim, false, indices);
}

cn_tensor *cn_nanmedian_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices)
{
    return along("nanmedian_dim", x, axis, keepdim, true, indices);
}

/* ---- of all elements: those equal to the median share its gradient equally, as those of max do ---- */

static cn_tensor *of_all(cn_ctx *ctx, const char *who, cn_tensor *x, bool leave_out)
{
    if (cn_numel(x) == 0 || cn__dtype(x) == CN_BOOL) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be numbers, got %lld elements of %s", who,
                 (long long)cn_numel(x), cn_dtype_name(cn__dtype(x)));
        return NULL;
    }
    x = cn_reshape(x, CN_DIMS(cn_numel(x)));
    cn_tensor *middle = cn_squeeze(cn_gather(x, 0, median_places(x, 0, leave_out)), CN_DIMS(0));
    if (!middle || !cn_requires_grad(middle)) return middle;
    middle = cn_detach(middle);
    cn_tensor *equal = cn_logical_or(cn_eq(x, middle), cn_logical_and(cn_isnan(x), cn_isnan(middle)));
    return cn_max(cn_where(equal, x, cn_full_like(x, -INFINITY)), CN_ALL, false);
}

static cn_tensor *compose_median(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    return of_all(ctx, "median", in[0], false);
}

static cn_tensor *compose_nanmedian(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    return of_all(ctx, "nanmedian", in[0], true);
}

static const cn_case median_cases[] = { { CN_IN(CN_DISTINCT(7)) },
                                        { CN_IN(CN_DISTINCT(2, 3, 4)) },
                                        { CN_IN(CN_S0) },
                                        { CN_IN(CN_S(1, 1)) },
                                        { CN_IN(CN_DISTINCT(61, 33)) } };

const cn_op cn__op_median = {
    .call = "median(Tensor input) -> Tensor",
    .name = "median",
    .doc = "The median of all elements, the lower of two; NaN if there is one.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .compose = compose_median,
    CN_CASES_OF(median_cases),
};

const cn_op cn__op_nanmedian = {
    .call = "nanmedian(Tensor input) -> Tensor",
    .name = "nanmedian",
    .doc = "The median of all elements that are not NaN, the lower of two.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .compose = compose_nanmedian,
    CN_CASES_OF(median_cases),
};

cn_tensor *cn_median(cn_tensor *x) { return cn_apply(&cn__op_median, &x, 1, NULL, NULL); }
cn_tensor *cn_nanmedian(cn_tensor *x) { return cn_apply(&cn__op_nanmedian, &x, 1, NULL, NULL); }

/* ---- kthvalue, mode ---- */

cn_tensor *cn_kthvalue(cn_tensor *x, int64_t k, int64_t axis, bool keepdim, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !has_elements("kthvalue", x, &axis)) return NULL;
    const int64_t n = cn_ndim(x) ? cn_size(x, (int)axis) : 1;
    if (k < 1 || k > n) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "kthvalue: k must be 1 to %lld, the size of axis %lld, got %lld",
                 (long long)n, (long long)axis, (long long)k);
        return NULL;
    }
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *out[2] = { 0 }, *first = NULL;
    cn_topk(cn_detach(with_axis(x)), k, axis, false, &first);
    out[0] = element_at(x, axis, cn_narrow(first, axis, k - 1, 1), keepdim, &out[1]);
    if (!cn__scope_return_n(x->ctx, s, out, 2)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}

/* The place in the sorted line at which the first of the longest runs of equal elements ends. */
static cn_tensor *longest_run(cn_tensor *sorted, int64_t axis)
{
    if (!sorted) return NULL;
    const int64_t n = cn_size(sorted, (int)axis);
    cn_dims one = cn_shape(sorted), line = { one.n, { 1, 1, 1, 1, 1, 1, 1, 1 } };
    one.v[axis] = 1;
    line.v[axis] = n;
    cn_tensor *differs = cn_ne(cn_narrow(sorted, axis, 1, n - 1), cn_narrow(sorted, axis, 0, n - 1));
    cn_tensor *begins = cn_cat((cn_tensor *[]){ cn_ones(sorted->ctx, CN_BOOL, one), differs }, 2, axis);
    cn_tensor *place = cn_reshape(cn_arange(sorted->ctx, CN_I64, 0, (double)n, 1), line);
    cn_tensor *begin = cn_cummax(cn_mul(cn_cast(begins, CN_I64), place), axis, NULL);
    return cn_argmax(cn_sub(place, begin), CN_DIMS(axis), true);
}

cn_tensor *cn_mode(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !has_elements("mode", x, &axis)) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *out[2] = { 0 }, *order = NULL, *sorted = cn_sort(cn_detach(with_axis(x)), axis, false, &order);
    out[0] = element_at(x, axis, cn_gather(order, axis, longest_run(sorted, axis)), keepdim, &out[1]);
    if (!cn__scope_return_n(x->ctx, s, out, 2)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}

/* ---- quantiles ---- */

/* The rank of each quantile, from 0, as a float. levels (1, .., q, .., 1): q along the axis. A line with a NaN has the
   rank of its last element, which is one. */
static cn_tensor *ranks(cn_tensor *sorted, int64_t axis, cn_tensor *levels, bool leave_out)
{
    const int64_t n = cn_size(sorted, (int)axis);
    const cn_dtype t = cn__dtype(sorted);
    if (leave_out) {
        cn_tensor *count = cn_cast(cn_sum(cn_logical_not(cn_isnan(sorted)), CN_DIMS(axis), true), t);
        return cn_mul(levels, cn_maximum_s(cn_sub_s(count, 1), 0));
    }
    cn_tensor *last = cn_narrow(sorted, axis, n - 1, 1);
    return cn_where(cn_isnan(last), cn_scalar(sorted->ctx, t, (double)(n - 1)), cn_mul_s(levels, (double)(n - 1)));
}

static cn_tensor *interpolated(cn_tensor *sorted, int64_t axis, cn_tensor *rank, int64_t how)
{
    cn_tensor *below = how == CN_QUANTILE_HIGHER    ? cn_ceil(rank)
                       : how == CN_QUANTILE_NEAREST ? cn_round(rank)
                                                    : cn_floor(rank);
    cn_tensor *value = cn_gather(sorted, axis, cn_cast(below, CN_I64));
    if (how != CN_QUANTILE_LINEAR && how != CN_QUANTILE_MIDPOINT) return value;
    cn_tensor *above = cn_gather(sorted, axis, cn_cast(cn_ceil(rank), CN_I64));
    return cn_lerp(value, above, how == CN_QUANTILE_LINEAR ? cn_sub(rank, below) : cn_full_like(rank, 0.5));
}

static bool check_quantile(cn_ctx *ctx, const char *who, const cn_tensor *x, const cn_tensor *q,
                           const cn__quantile_attrs *a)
{
    const cn_dtype t = cn__dtype(x);
    if (!cn_dtype_is_float(t) || cn__dtype(q) != t)
        return cn__fail(ctx, CN_BAD_DTYPE, "%s: x and q must be of one floating type, got %s and %s", who,
                        cn_dtype_name(t), cn_dtype_name(cn__dtype(q)));
    if (cn__layout(q)->ndim > 1 || cn__layout(q)->ndim + cn__layout(x)->ndim > CN_MAX_DIMS ||
        cn__numel(cn__layout(x)) == 0) {
        char s[96], u[96];
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: x must not be empty and q have at most one axis, got %s and %s", who,
                        cn__shape_text(cn__layout(x), s, sizeof s), cn__shape_text(cn__layout(q), u, sizeof u));
    }
    return (a->how >= 0 && a->how <= CN_QUANTILE_NEAREST) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "%s: interpolation must be a cn_quantile_mode, got %lld", who,
                    (long long)a->how);
}

/* y (.., q, ..), q along the axis, as quantiles are returned: with the axis of q, if it has one, in front. */
static cn_tensor *arranged(cn_tensor *y, cn_tensor *q, cn_dims x, const cn__quantile_attrs *a)
{
    const bool list = cn_ndim(q) == 1;
    const int axis = a->axis < 0 ? 0 : (int)a->axis;
    cn_dims to = { 0, { 0 } }, order = { 0, { 0 } };
    if (!y) return NULL;
    if (list) order.v[order.n++] = axis;
    for (int d = 0; d < cn_ndim(y); d++)
        if (!list || d != axis) order.v[order.n++] = d;
    if (list) to.v[to.n++] = cn_numel(q);
    for (int d = 0; d < x.n; d++) {
        const bool reduced = a->axis < 0 || d == axis;
        if (!reduced || a->keepdim) to.v[to.n++] = reduced ? 1 : x.v[d];
    }
    return cn_reshape(cn_permute(y, order), to);
}

static cn_tensor *quantile(cn_ctx *ctx, const char *who, cn_tensor *const *in, const cn__quantile_attrs *a)
{
    if (!check_quantile(ctx, who, in[0], in[1], a)) return NULL;
    const int axis = a->axis < 0 ? 0 : (int)a->axis;
    cn_tensor *x = a->axis < 0 ? cn_reshape(in[0], CN_DIMS(cn_numel(in[0]))) : with_axis(in[0]);
    const cn_dtype t = cn__dtype(x), wide = t == CN_F64 ? CN_F64 : CN_F32; /* halves are rounded once, at the end */
    cn_tensor *sorted = cn_sort(cn_cast(x, wide), axis, false, NULL);
    if (!sorted) return NULL;
    cn_dims level = { cn_ndim(x), { 1, 1, 1, 1, 1, 1, 1, 1 } };
    level.v[axis] = cn_numel(in[1]);
    cn_tensor *levels = cn_reshape(cn__level(cn_cast(in[1], wide)), level);
    cn_dims shape = cn_shape(x);
    shape.v[axis] = level.v[axis];
    cn_tensor *rank = cn_expand(ranks(sorted, axis, levels, a->leave_out), shape);
    return cn_cast(arranged(interpolated(sorted, axis, rank, a->how), in[1], cn_shape(in[0]), a), t);
}

static cn_tensor *compose_quantile(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__quantile_attrs *a = attrs;
    return quantile(ctx, cn__called(ctx, a->leave_out ? "nanquantile" : "quantile"), in, a);
}

#define HOW(axis, keepdim, how, leave_out) \
    .attrs = &(const cn__quantile_attrs) { axis, keepdim, how, leave_out }
#define MODES "linear|lower|higher|midpoint|nearest interpolation=linear"
const cn_op cn__op_quantile = {
    .call = "quantile(Tensor input, Tensor q, int[1] dim=None, bool keepdim=False, *, " MODES ") -> Tensor",
    .name = "quantile",
    .doc = "The q-th quantiles of x along an axis, or of all its elements; NaN if there is one.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__quantile_attrs),
    .compose = compose_quantile,
    CN_CASES({ CN_IN(CN_DISTINCT(7), CN_RANGE0(0.1, 0.9)), HOW(-1, 0, CN_QUANTILE_LINEAR, 0) },
             { CN_IN(CN_DISTINCT(4, 6), CN_RANGE(0.1, 0.9, 3)), HOW(0, 0, CN_QUANTILE_LINEAR, 0) },
             { CN_IN(CN_DISTINCT(2, 5, 3), CN_RANGE(0.1, 0.9, 4)), HOW(1, 1, CN_QUANTILE_LOWER, 0) },
             { CN_IN(CN_DISTINCT(2, 5, 3), CN_RANGE0(0.1, 0.9)), HOW(2, 1, CN_QUANTILE_HIGHER, 0) },
             { CN_IN(CN_DISTINCT(2, 5, 3), CN_RANGE(0.1, 0.9, 2)), HOW(-1, 1, CN_QUANTILE_MIDPOINT, 0) },
             { CN_IN(CN_DISTINCT(9), CN_RANGE(0.1, 0.9, 0)), HOW(0, 0, CN_QUANTILE_NEAREST, 0) },
             { CN_IN(CN_S0, CN_RANGE(0.1, 0.9, 2)), HOW(0, 0, CN_QUANTILE_LINEAR, 0) },
             { CN_IN(CN_DISTINCT(40, 70), CN_RANGE(0.1, 0.9, 5)), HOW(1, 0, CN_QUANTILE_NEAREST, 0) }),
};

const cn_op cn__op_nanquantile = {
    .call = "nanquantile(Tensor input, Tensor q, int[1] dim=None, bool keepdim=False, *, " MODES ") -> Tensor",
    .name = "nanquantile",
    .doc = "The q-th quantiles of the elements that are not NaN, along an axis or of all.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__quantile_attrs),
    .compose = compose_quantile,
    CN_CASES({ CN_IN(CN_DISTINCT(7), CN_RANGE0(0.1, 0.9)), HOW(-1, 0, CN_QUANTILE_LINEAR, 1) },
             { CN_IN(CN_DISTINCT(4, 6), CN_RANGE(0.1, 0.9, 3)), HOW(0, 1, CN_QUANTILE_LINEAR, 1) },
             { CN_IN(CN_S0, CN_RANGE0(0.1, 0.9)), HOW(0, 0, CN_QUANTILE_LINEAR, 1) },
             { CN_IN(CN_DISTINCT(40, 70), CN_RANGE(0.1, 0.9, 5)), HOW(1, 0, CN_QUANTILE_LOWER, 1) }),
};

static cn_tensor *apply(const char *who, const cn_op *op, cn_tensor *x, cn_tensor *q, cn_dims dim, bool keepdim,
                        cn_quantile_mode how)
{
    int64_t axis = -1;
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    if (dim.n != -1 && dim.n != 1) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: expects one axis or CN_ALL, got %d axes", who, dim.n);
        return NULL;
    }
    if (dim.n == 1) axis = dim.v[0];
    if (dim.n == 1 && !cn__scan_axis(who, x, &axis)) return NULL;
    cn__quantile_attrs a = { axis, keepdim, (int64_t)how, op == &cn__op_nanquantile };
    return cn_apply(op, (cn_tensor *[]){ x, q }, 2, &a, NULL);
}

/* A number is checked at once. */
static cn_tensor *apply_s(const char *who, const cn_op *op, cn_tensor *x, double q, cn_dims dim, bool keepdim,
                          cn_quantile_mode how)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    if (!(q >= 0 && q <= 1)) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: q must be from 0 to 1, got %g", who, q);
        return NULL;
    }
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *level = cn_scalar(x->ctx, cn__dtype(x), q);
    return cn_scope_return(x->ctx, s, apply(who, op, x, level, dim, keepdim, how));
}

cn_tensor *cn_quantile(cn_tensor *x, cn_tensor *q, cn_dims dim, bool keepdim, cn_quantile_mode how)
{
    return apply("quantile", &cn__op_quantile, x, q, dim, keepdim, how);
}

cn_tensor *cn_quantile_s(cn_tensor *x, double q, cn_dims dim, bool keepdim, cn_quantile_mode how)
{
    return apply_s("quantile_s", &cn__op_quantile, x, q, dim, keepdim, how);
}

cn_tensor *cn_nanquantile(cn_tensor *x, cn_tensor *q, cn_dims dim, bool keepdim, cn_quantile_mode how)
{
    return apply("nanquantile", &cn__op_nanquantile, x, q, dim, keepdim, how);
}

cn_tensor *cn_nanquantile_s(cn_tensor *x, double q, cn_dims dim, bool keepdim, cn_quantile_mode how)
{
    return apply_s("nanquantile_s", &cn__op_nanquantile, x, q, dim, keepdim, how);
}

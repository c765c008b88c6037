/* Axes of reductions: a set of axes is split into runs of neighbours, and each run becomes one node. */
#include "ops/reduce/reduce.h"

bool cn__axes(const char *who, const cn_tensor *x, cn_dims axes, int64_t *set)
{
    int ndim = cn__layout(x)->ndim;
    *set = (INT64_C(1) << ndim) - 1;
    if (axes.n == 0 || axes.n == -1) return true;
    if (axes.n < 0 || axes.n > CN_MAX_DIMS)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: expects CN_ALL or at most %d axes, got %d", who, CN_MAX_DIMS,
                        axes.n);
    int64_t found = 0;
    for (int k = 0; k < axes.n; k++) {
        int d = cn__axis(axes.v[k], ndim ? ndim : 1); /* as in PyTorch, a tensor without axes has axis 0 */
        if (d < 0)
            return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %lld is out of range for %d dimensions", who,
                            (long long)axes.v[k], ndim);
        if (found >> d & 1) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %d is given twice", who, d);
        found |= INT64_C(1) << d;
    }
    *set &= found;
    return true;
}

/* Sets the range of `a` to the last run of neighbours. Returns the set without this run. */
static int64_t take_run(int64_t set, cn__reduce_attrs *a)
{
    a->begin = a->end = 0;
    if (!set) return 0;
    a->end = 64 - __builtin_clzll((unsigned long long)set);
    for (a->begin = a->end - 1; a->begin > 0 && set >> (a->begin - 1) & 1;) a->begin--;
    return set & ((INT64_C(1) << a->begin) - 1);
}

static cn_tensor *reduce_runs(const cn_op *op, cn_tensor *x, int64_t set, bool keepdim)
{
    cn_dims axes = {0, {0}};
    for (int d = 0; d < CN_MAX_DIMS; d++)
        if (set >> d & 1) axes.v[axes.n++] = d;
    cn__reduce_attrs a = {.keepdim = true};
    cn_dtype t = cn__dtype(x);
    bool half = t == CN_F16 || t == CN_BF16;
    cn_tensor *y = cn__wide(x);
    while (set) {
        set = take_run(set, &a);
        y = cn_apply(op, &y, 1, &a, NULL);
    }
    if (y && half && cn_dtype_is_float(cn__dtype(y))) y = cn_cast(y, t);
    return keepdim ? y : cn_squeeze(y, axes);
}

static int64_t arranged_set(int64_t set, const cn_dims *order)
{
    int64_t to = 0;
    for (int d = 0; d < order->n; d++) to |= (set >> order->v[d] & 1) << d;
    return to;
}

/* Which elements are folded together does not depend on the order of axes, but a place among several axes does. */
static bool may_arrange(const cn_op *op, int64_t set)
{
    return (set & (set - 1)) == 0 || (op != &cn__op_argmax && op != &cn__op_argmin);
}

/* Reduces a view of x whose axes are in the order of memory. */
static cn_tensor *reduce_arranged(const cn_op *op, cn_tensor *x, int64_t set, bool keepdim, cn_dims order)
{
    cn_dims back = {.n = order.n}, axes = {0};
    for (int d = 0; d < order.n; d++) back.v[order.v[d]] = d;
    for (int d = 0; d < order.n; d++)
        if (set >> d & 1) axes.v[axes.n++] = d;
    cn_tensor *y = cn_permute(cn__reduce(op, cn_permute(x, order), arranged_set(set, &order), true), back);
    return keepdim ? y : cn_squeeze(y, axes);
}

cn_tensor *cn__reduce(const cn_op *op, cn_tensor *x, int64_t set, bool keepdim)
{
    if (!cn__alive(x)) return NULL;
    set &= (INT64_C(1) << cn__layout(x)->ndim) - 1;
    cn_dims order;
    if (set && may_arrange(op, set) && cn__memory_order(cn__layout(x), &order)) {
        cn_scope s = cn_scope_begin(x->ctx);
        return cn_scope_return(x->ctx, s, reduce_arranged(op, x, set, keepdim, order));
    }
    cn__reduce_attrs a = {.keepdim = keepdim};
    if (!take_run(set, &a)) return cn_apply(op, &x, 1, &a, NULL);
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, reduce_runs(op, x, set, keepdim));
}

cn_tensor *cn__reduce_axes(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim)
{
    int64_t set;
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx || !cn__axes(op->name, x, axes, &set)) return NULL;
    return cn__reduce(op, x, set, keepdim);
}

cn_tensor *cn__reduce_composite(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim, double number)
{
    cn__axis_set_attrs a = {.keepdim = keepdim};
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx || !cn__axes(op->name, x, axes, &a.axes)) return NULL;
    return cn_apply(op, &x, 1, &a, (cn_arg[CN_MAX_ARGS]){{.f = number}});
}

int64_t cn__reduced_count(const cn_tensor *x, int64_t set)
{
    const cn_layout *l = cn__layout(x);
    int64_t n = 1;
    for (int d = 0; d < l->ndim; d++)
        if (set >> d & 1) n *= l->shape[d];
    return n;
}

cn_tensor *cn__keepdims(cn_tensor *y, const cn_tensor *x, const cn__reduce_attrs *a)
{
    if (a->keepdim || !y) return y;
    cn_dims shape = cn_shape(x);
    for (int64_t d = a->begin; d < a->end; d++) shape.v[d] = 1;
    return cn_reshape(y, shape);
}

cn_tensor *cn__sum_to(cn_tensor *x, const cn_layout *to)
{
    if (!x) return NULL;
    const cn_layout *from = cn__layout(x);
    if (cn__same_shape(from, to)) return x;
    int extra = from->ndim - to->ndim;
    int64_t leading = (INT64_C(1) << extra) - 1, set = leading;
    for (int d = extra; d < from->ndim; d++)
        if (from->shape[d] != to->shape[d - extra]) set |= INT64_C(1) << d;
    if (set == leading) return cn__reduce(&cn__op_sum, x, set, false);
    cn_tensor *y = cn__reduce(&cn__op_sum, x, set, true);
    cn_dims shape = {to->ndim, {0}};
    for (int d = 0; d < to->ndim; d++) shape.v[d] = to->shape[d];
    return extra ? cn_reshape(y, shape) : y;
}

bool cn__infer_reduce(cn_infer *i, cn_dtype dtype)
{
    const cn__reduce_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (a->begin < 0 || a->end < a->begin || a->end > x->ndim)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "axes [%lld, %lld) are out of range for %d dimensions",
                             (long long)a->begin, (long long)a->end, x->ndim);
    cn_layout *out = &i->out[0].layout;
    out->ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool reduced = d >= a->begin && d < a->end;
        if (!reduced || a->keepdim) out->shape[out->ndim++] = reduced ? 1 : x->shape[d];
    }
    i->out[0].dtype = dtype;
    return true;
}

bool cn__infer_reduce_some(cn_infer *i, cn_dtype dtype)
{
    if (!cn__infer_reduce(i, dtype)) return false;
    if (cn__numel(&i->in[0]->layout) || !cn__numel(&i->out[0].layout)) return true;
    char s[96];
    return cn_infer_fail(i, CN_BAD_SHAPE, "the reduced axes must have elements, got shape %s",
                         cn__shape_text(&i->in[0]->layout, s, sizeof s));
}

cn_tensor *cn__as(cn_tensor *y, cn_dtype t) { return !y || cn__dtype(y) == t ? y : cn_cast(y, t); }

cn_tensor *cn__wide(cn_tensor *x)
{
    cn_dtype t = cn__dtype(x);
    return t == CN_F16 || t == CN_BF16 ? cn_cast(x, CN_F32) : x;
}

cn_tensor *cn__wide_float(const char *who, cn_tensor *x)
{
    cn_dtype t = cn__dtype(x);
    if (cn_dtype_is_float(t)) return cn__wide(x);
    cn__fail(x->ctx, CN_BAD_DTYPE, "%s: dtype must be a float, got %s; convert with cn_cast", who, cn_dtype_name(t));
    return NULL;
}

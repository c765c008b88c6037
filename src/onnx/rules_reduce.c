/* Rules of reductions. Axes are an attribute in old operator sets, and an input in new ones. */
#include "onnx/rules.h"

typedef cn_tensor *reduction(cn_tensor *x, cn_dims axes, bool keep);
typedef cn_tensor *alone(cn_tensor *x);

static cn_tensor *same(cn_tensor *x) { return x; }
static cn_tensor *sum_squares(cn_tensor *x, cn_dims axes, bool keep) { return cn_sum(cn_mul(x, x), axes, keep); }
static cn_tensor *sum_abs(cn_tensor *x, cn_dims axes, bool keep) { return cn_sum(cn_abs(x), axes, keep); }
static cn_tensor *root(cn_tensor *x, cn_dims axes, bool keep)
{
    return cn_sqrt(cn__onnx_wide(sum_squares(x, axes, keep)));
}
static cn_tensor *log_sum(cn_tensor *x, cn_dims axes, bool keep)
{
    return cn_log(cn__onnx_wide(cn_sum(x, axes, keep)));
}
static cn_tensor *log_sum_exp(cn_tensor *x, cn_dims axes, bool keep)
{
    return cn_logsumexp(cn__onnx_wide(x), axes, keep);
}
static cn_tensor *mean(cn_tensor *x, cn_dims axes, bool keep) { return cn_mean(cn__onnx_wide(x), axes, keep); }
static cn_tensor *wide_log(cn_tensor *x) { return cn_log(cn__onnx_wide(x)); }

/* The result's shape if elements over axes are folded into one. */
static cn_dims folded_shape(cn_tensor *x, cn_dims axes, bool keep, bool *empty)
{
    cn_dims out = CN_SCALAR;
    *empty = false;
    for (int d = 0; d < cn_ndim(x); d++) {
        bool over = axes.n < 0;
        for (int i = 0; i < axes.n; i++) over |= axes.v[i] == d;
        if (!over) out.v[out.n++] = cn_size(x, d);
        else if (keep) out.v[out.n++] = 1;
        *empty |= over && cn_size(x, d) == 0;
    }
    return out;
}

/* `one` is the reduction of a single element, `none` that of no elements. */
static bool reduce(onnx_call *c, int since, reduction *fold, alone *one, double none)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    cn_dims axes;
    if (!x || !cn__onnx_ints_of(c, "axes", since, 1, &given) || !cn__onnx_axes(c, &given, cn_ndim(x), &axes))
        return false;
    const bool keep = INT("keepdims", 1) != 0;
    if (given.n <= 0 && INT("noop_with_empty_axes", 0)) return GIVE(cn_cast(one(x), cn_type(x)));
    bool empty;
    const cn_dims shape = folded_shape(x, axes, keep, &empty);
    if (empty) return GIVE(cn_full(c->ctx, cn_type(x), shape, none));
    if (cn_ndim(x) == 0) return GIVE(cn_cast(one(x), cn_type(x)));
    return GIVE(cn_cast(fold(x, axes, keep), cn_type(x)));
}

/* The smallest (or largest) number of a type: what a maximum (minimum) of nothing is. */
static double limit(onnx_call *c, bool largest)
{
    cn_tensor *x = IN(0);
    switch (x ? cn_type(x) : CN_F32) {
    case CN_BOOL: return largest;
    case CN_U8: return largest ? 255 : 0;
    case CN_I8: return largest ? 127 : -128;
    case CN_I16: return largest ? 32767 : -32768;
    case CN_I32: return largest ? 2147483647.0 : -2147483648.0;
    case CN_I64: return largest ? 9223372036854774784.0 : -9223372036854775808.0;
    default: return largest ? INFINITY : -INFINITY;
    }
}

bool cn__onnx_reduce_sum(onnx_call *c) { return reduce(c, 13, cn_sum, same, 0); }
bool cn__onnx_reduce_mean(onnx_call *c) { return reduce(c, 18, mean, same, NAN); }
bool cn__onnx_reduce_prod(onnx_call *c) { return reduce(c, 18, cn_prod, same, 1); }
bool cn__onnx_reduce_max(onnx_call *c) { return reduce(c, 18, cn_max, same, limit(c, false)); }
bool cn__onnx_reduce_min(onnx_call *c) { return reduce(c, 18, cn_min, same, limit(c, true)); }
bool cn__onnx_reduce_l1(onnx_call *c) { return reduce(c, 18, sum_abs, cn_abs, 0); }
bool cn__onnx_reduce_l2(onnx_call *c) { return reduce(c, 18, root, cn_abs, 0); }
bool cn__onnx_reduce_log_sum(onnx_call *c) { return reduce(c, 18, log_sum, wide_log, -INFINITY); }
bool cn__onnx_reduce_log_sum_exp(onnx_call *c) { return reduce(c, 18, log_sum_exp, same, -INFINITY); }
bool cn__onnx_reduce_sum_square(onnx_call *c) { return reduce(c, 18, sum_squares, cn_square, 0); }

static bool arg(onnx_call *c, reduction *op)
{
    cn_tensor *x = IN(0);
    const int axis = x ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    if (axis < 0) return false;
    const bool keep = INT("keepdims", 1) != 0;
    if (!INT("select_last_index", 0)) return GIVE(op(x, CN_DIMS(axis), keep));
    cn_tensor *from_end = op(cn_flip(x, CN_DIMS(axis)), CN_DIMS(axis), keep);
    return GIVE(cn_rsub_s(from_end, (double)(cn_size(x, axis) - 1)));
}
bool cn__onnx_arg_max(onnx_call *c) { return arg(c, cn_argmax); }
bool cn__onnx_arg_min(onnx_call *c) { return arg(c, cn_argmin); }

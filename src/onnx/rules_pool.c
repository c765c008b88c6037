/* Rules of pooling. */
#include "onnx/window.h"

/* The lowest number of a type: what a maximum does not see. */
static double lowest(cn_dtype t) { return t == CN_U8 || t == CN_BOOL ? 0 : t == CN_I8 ? -128 : -INFINITY; }

static cn_pool_desc pool_desc(const onnx_windows *w, bool border, bool up)
{
    cn_pool_desc d = { .ceil_mode = up };
    for (int i = 0; i < w->n; i++) {
        d.kernel_size[i] = w->kernel[i];
        d.stride[i] = w->stride[i];
        d.dilation[i] = w->dilation[i];
        d.padding[i] = border ? w->before[i] : 0;
    }
    return d;
}

/* Indices in planes with a border become indices in the whole tensor: rows first, or with `columns` the last axis
   first. */
static cn_tensor *whole_indices(onnx_call *c, cn_tensor *index, cn_tensor *x, const onnx_windows *w, bool bordered,
                                bool columns)
{
    int64_t size[3], plane = 1, stride = 1;
    cn_tensor *sum = NULL;
    for (int i = 0; i < w->n; i++) size[i] = cn_size(x, i + 2), plane *= size[i];
    for (int i = w->n; i-- > 0;) {
        const int64_t wide = bordered ? size[i] + w->before[i] + w->after[i] + w->extra[i] : size[i];
        cn_tensor *at = cn_remainder_s(index, (double)wide);
        if (bordered) at = cn_sub_s(at, (double)w->before[i]);
        index = cn_floor_div_s(index, (double)wide);
        int64_t step = stride;
        if (columns) {
            step = 1;
            for (int k = 0; k < i; k++) step *= size[k];
        }
        stride *= size[i];
        at = cn_mul_s(at, (double)step);
        sum = sum ? cn_add(sum, at) : at;
    }
    cn_dims by_plane = { .n = w->n + 2, .v = { cn_size(x, 0), cn_size(x, 1) } };
    for (int i = 0; i < w->n; i++) by_plane.v[i + 2] = 1;
    cn_tensor *first = cn_arange(c->ctx, CN_I64, 0, (double)(by_plane.v[0] * by_plane.v[1]), 1);
    return cn_add(sum, cn_reshape(cn_mul_s(first, (double)plane), by_plane));
}

enum { LARGE_WINDOW = 4 }; /* elements along an axis, from which two passes take less time than one */

/* The maximum of large windows of planes: along lines, and then across them. Of equal elements the first counts, as in one
   pass. */
static cn_tensor *max_pool_twice(cn_tensor *x, const cn_pool_desc *d)
{
    cn_pool_desc along = *d, across = *d;
    along.kernel_size[0] = along.stride[0] = along.dilation[0] = 1;
    across.kernel_size[1] = across.stride[1] = across.dilation[1] = 1;
    along.padding[0] = across.padding[1] = 0;
    return cn_max_pool2d_with_indices(cn_max_pool2d_with_indices(x, &along, NULL), &across, NULL);
}

bool cn__onnx_max_pool(onnx_call *c)
{
    typedef cn_tensor *pool(cn_tensor * x, const cn_pool_desc *d, cn_tensor **indices);
    static pool *const by_axes[] = { NULL, cn_max_pool1d_with_indices, cn_max_pool2d_with_indices,
                                     cn_max_pool3d_with_indices };
    cn_tensor *x = IN(0), *index = NULL;
    onnx_windows w;
    if (!x || !cn__onnx_windows(c, x, NULL, &w)) return false;
    const bool plain = cn__onnx_symmetric(&w, true);
    const double low = lowest(cn_type(x));
    cn_pool_desc d = pool_desc(&w, plain, plain && INT("ceil_mode", 0));
    const bool wanted = cn__onnx_wanted(c, 1);
    const bool large = w.n == 2 && w.kernel[0] >= LARGE_WINDOW && w.kernel[1] >= LARGE_WINDOW;
    if (!plain) x = cn__onnx_bordered(c, x, &w, low, low);
    cn_tensor *y = large && !wanted ? max_pool_twice(x, &d) : by_axes[w.n](x, &d, wanted ? &index : NULL);
    if (!GIVE(y)) return false;
    return !wanted || GIVE_AT(1, whole_indices(c, index, IN(0), &w, !plain, INT("storage_order", 0) != 0));
}

static cn_tensor *window_sums(cn_tensor *x, const onnx_windows *w)
{
    return cn_sum(cn__onnx_unfolded(x, w), cn__onnx_last(w->n), false);
}

static bool dilated(const onnx_windows *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->dilation[i] > 1) return true;
    return false;
}

bool cn__onnx_average_pool(onnx_call *c)
{
    typedef cn_tensor *pool(cn_tensor * x, const cn_pool_desc *d);
    static pool *const by_axes[] = { NULL, cn_avg_pool1d, cn_avg_pool2d, cn_avg_pool3d };
    cn_tensor *x = IN(0);
    onnx_windows w;
    const bool include = INT("count_include_pad", 0) != 0;
    if (!x || !cn__onnx_windows(c, x, NULL, &w)) return false;
    if (cn__onnx_symmetric(&w, true) && !dilated(&w)) {
        cn_pool_desc d = pool_desc(&w, true, INT("ceil_mode", 0) != 0);
        for (int i = 0; i < w.n; i++) d.dilation[i] = 0;
        d.exclude_padding = !include;
        return GIVE(by_axes[w.n](x, &d));
    }
    const cn_dtype t = cn_type(x);
    cn_dims one = cn_shape(x);
    one.v[0] = one.v[1] = 1;
    x = cn__onnx_wide(x);
    if (!x) return false;
    cn_tensor *counts = cn__onnx_bordered(c, cn_ones(c->ctx, cn_type(x), one), &w, include, 0);
    cn_tensor *sums = window_sums(cn__onnx_bordered(c, x, &w, 0, 0), &w);
    return GIVE(cn_cast(cn_div(sums, window_sums(counts, &w)), t));
}

bool cn__onnx_lp_pool(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_windows w;
    const double p = (double)INT("p", 2);
    if (!x || !cn__onnx_windows(c, x, NULL, &w)) return false;
    cn_tensor *powers = cn_pow_s(cn_abs(cn__onnx_bordered(c, x, &w, 0, 0)), p);
    return GIVE(cn_pow_s(window_sums(powers, &w), 1 / p));
}

/* ---- over whole planes ---- */

static bool global(onnx_call *c, cn_tensor *(*op)(cn_tensor *x, cn_dims axes, bool keep))
{
    cn_tensor *x = IN(0);
    if (!x) return false;
    if (cn_ndim(x) < 3) return FAIL(CN_BAD_SHAPE, "the input must be (N, C, ...), got %d axes", cn_ndim(x));
    return GIVE(op(x, cn__onnx_last(cn_ndim(x) - 2), true));
}
bool cn__onnx_global_average_pool(onnx_call *c) { return global(c, cn_mean); }
bool cn__onnx_global_max_pool(onnx_call *c) { return global(c, cn_max); }
bool cn__onnx_global_lp_pool(onnx_call *c)
{
    cn_tensor *x = IN(0);
    if (!x) return false;
    if (cn_ndim(x) < 3) return FAIL(CN_BAD_SHAPE, "the input must be (N, C, ...), got %d axes", cn_ndim(x));
    return GIVE(cn_norm(x, (double)INT("p", 2), cn__onnx_last(cn_ndim(x) - 2), true));
}

/* Zeros, with elements where their indices in the whole tensor say. */
bool cn__onnx_max_unpool(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = IN(1);
    onnx_ints kernel, strides, pads, asked;
    if (!x || !index || !cn__onnx_attr_ints(c, "kernel_shape", &kernel) ||
        !cn__onnx_attr_ints(c, "strides", &strides) || !cn__onnx_attr_ints(c, "pads", &pads) ||
        !cn__onnx_ints(c, 2, &asked))
        return false;
    const int n = cn_ndim(x) - 2;
    if (n < 1 || kernel.n != n || (strides.n > 0 && strides.n != n) || (pads.n > 0 && pads.n != 2 * n) ||
        (asked.n > 0 && asked.n != n + 2))
        return FAIL(CN_BAD_ARGUMENT, "kernel_shape, strides, pads and output_shape must fit the input of %d axes",
                    n + 2);
    cn_dims shape = cn_shape(x);
    int64_t all = shape.v[0] * shape.v[1];
    for (int i = 0; i < n; i++) {
        const int64_t stride = strides.n > 0 ? strides.v[i] : 1, before = pads.n > 0 ? pads.v[i] : 0,
                      after = pads.n > 0 ? pads.v[i + n] : 0;
        if (stride < 1 || stride > INT32_MAX || before < 0 || before > INT32_MAX || after < 0 || after > INT32_MAX ||
            kernel.v[i] < 1 || kernel.v[i] > INT32_MAX || shape.v[i + 2] > INT32_MAX)
            return FAIL(CN_BAD_ARGUMENT, "kernel_shape and strides must be ≥ 1, pads ≥ 0");
        shape.v[i + 2] = (shape.v[i + 2] - 1) * stride - before - after + kernel.v[i];
        if (shape.v[i + 2] < 0 || __builtin_mul_overflow(all, shape.v[i + 2], &all))
            return FAIL(CN_BAD_SHAPE, "the result has no size");
    }
    cn_tensor *y = cn_put(cn_zeros(c->ctx, cn_type(x), CN_DIMS(all)), index, x, false);
    y = cn_reshape(y, shape);
    cn_tensor *zero = cn_zeros(c->ctx, cn_type(x), CN_SCALAR);
    for (int i = 0; i < n + 2 && asked.n > 0 && y; i++) {
        if (asked.v[i] < 0) return FAIL(CN_BAD_SHAPE, "a size must be ≥ 0, got %lld", (long long)asked.v[i]);
        y = cn__onnx_padded(c, y, i, 0, asked.v[i] - shape.v[i], "constant", zero);
    }
    return GIVE(y);
}

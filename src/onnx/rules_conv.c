/* Rules of products and convolutions. */
#include "onnx/window.h"

bool cn__onnx_mat_mul(onnx_call *c) { return GIVE(cn_matmul(IN(0), IN(1))); }

static cn_tensor *times(cn_tensor *x, double factor) { return factor == 1 ? x : cn_mul_s(x, factor); }

bool cn__onnx_gemm(onnx_call *c)
{
    cn_tensor *a = IN(0), *b = IN(1), *d = IN(2);
    const double alpha = FLOAT("alpha", 1), beta = FLOAT("beta", 1);
    if (!a || !b) return false;
    if (cn_ndim(a) != 2 || cn_ndim(b) != 2) return FAIL(CN_BAD_SHAPE, "A and B must be matrices");
    if (INT("transA", 0)) a = cn_transpose(a, 0, 1);
    const cn_dtype t = cn_type(a);
    if (INT("transB", 0) && alpha == 1 && beta == 1 && cn_dtype_is_float(t) && (!d || cn_ndim(d) == 1) &&
        (!d || cn_size(d, 0) == cn_size(b, 0)))
        return GIVE(cn_linear(a, b, d));
    if (INT("transB", 0)) b = cn_transpose(b, 0, 1);
    cn_tensor *y = times(cn_matmul(a, b), alpha);
    return GIVE(cn_cast(d && beta != 0 ? cn_add(y, times(d, beta)) : y, t));
}

bool cn__onnx_einsum(onnx_call *c)
{
    cn_tensor **t = cn__onnx_run_new(c->run, (size_t)c->n_in + 1, sizeof *t);
    for (int i = 0; t && i < c->n_in; i++)
        if (!(t[i] = IN(i))) return false;
    return t && GIVE(cn_einsum(TEXT("equation", ""), t, c->n_in));
}

bool cn__onnx_det(onnx_call *c) { return GIVE(cn_linalg_det(IN(0))); }

/* ---- convolutions ---- */

typedef cn_tensor *convolution(cn_tensor *x, cn_tensor *w, cn_tensor *b, const cn_conv_desc *desc);

cn_tensor *cn__onnx_convolved(onnx_call *c, cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const onnx_windows *w,
                              int64_t groups)
{
    static convolution *const by_axes[] = { NULL, cn_conv1d, cn_conv2d, cn_conv3d };
    cn_conv_desc d = { .groups = groups };
    const bool same = cn__onnx_symmetric(w, false);
    if (!same) x = cn__onnx_bordered(c, x, w, 0, 0);
    for (int i = 0; i < w->n; i++) {
        d.stride[i] = w->stride[i];
        d.dilation[i] = w->dilation[i];
        d.padding[i] = same ? w->before[i] : 0;
    }
    return by_axes[w->n](x, weight, bias, &d);
}

bool cn__onnx_conv(onnx_call *c)
{
    cn_tensor *x = IN(0), *weight = IN(1), *bias = IN(2);
    onnx_windows w;
    if (!x || !weight || !cn__onnx_windows(c, x, weight, &w)) return false;
    if (c->norm && !cn__onnx_take_norm(c, &weight, &bias)) return false;
    return GIVE(cn__onnx_convolved(c, x, weight, bias, &w, INT("group", 1)));
}

enum { MOST = 1 << 30 }; /* of what describes windows: no sum of products below overflows */

/* The border of a transposed convolution: what is cut from its full result, before and after. */
static bool transposed_border(onnx_call *c, cn_tensor *x, onnx_windows *w, const int64_t *more)
{
    onnx_ints shape;
    const char *mode = TEXT("auto_pad", "NOTSET");
    const bool same = !strncmp(mode, "SAME", 4);
    if (!cn__onnx_attr_ints(c, "output_shape", &shape)) return false;
    for (int i = 0; i < w->n; i++) {
        const int64_t size = cn_size(x, i + 2);
        const int64_t full = w->stride[i] * (size - 1) + (w->kernel[i] - 1) * w->dilation[i] + 1 + more[i];
        if (shape.n > 0 && shape.n < w->n) return FAIL(CN_BAD_ARGUMENT, "output_shape must have %d numbers", w->n);
        if (shape.n > 0 && (shape.v[shape.n - w->n + i] < 0 || shape.v[shape.n - w->n + i] > MOST))
            return FAIL(CN_BAD_SHAPE, "a size must be in [0, %d], got %lld", MOST,
                        (long long)shape.v[shape.n - w->n + i]);
        if (shape.n > 0 || same) {
            const int64_t total = full - (shape.n > 0 ? shape.v[shape.n - w->n + i] : size * w->stride[i]);
            const int64_t half = (total - (total < 0 && total % 2)) / 2; /* rounded down */
            w->before[i] = !strcmp(mode, "SAME_UPPER") ? half : total - half;
            w->after[i] = total - w->before[i];
        } else if (!strcmp(mode, "VALID")) w->before[i] = w->after[i] = 0;
        w->out[i] = full - w->before[i] - w->after[i];
        if (w->out[i] < 0)
            return FAIL(CN_BAD_SHAPE, "axis %d of the result would have the size %lld", i + 2, (long long)w->out[i]);
    }
    return true;
}

static bool transposed_windows(onnx_call *c, cn_tensor *x, cn_tensor *weight, onnx_windows *w, int64_t more[3])
{
    onnx_ints strides, dilations, pads, output;
    *w = (onnx_windows){ .n = cn_ndim(x) - 2 };
    if (w->n < 1 || w->n > 3 || cn_ndim(weight) != cn_ndim(x))
        return FAIL(CN_UNSUPPORTED, "the input must be (N, C, ...) with one to three further axes, got %d axes",
                    cn_ndim(x));
    if (!cn__onnx_attr_ints(c, "strides", &strides) || !cn__onnx_attr_ints(c, "dilations", &dilations) ||
        !cn__onnx_attr_ints(c, "pads", &pads) || !cn__onnx_attr_ints(c, "output_padding", &output))
        return false;
    for (int i = 0; i < w->n; i++) {
        w->kernel[i] = cn_size(weight, i + 2);
        w->stride[i] = i < strides.n ? strides.v[i] : 1;
        w->dilation[i] = i < dilations.n ? dilations.v[i] : 1;
        w->before[i] = pads.n == 2 * w->n ? pads.v[i] : 0;
        w->after[i] = pads.n == 2 * w->n ? pads.v[i + w->n] : 0;
        more[i] = i < output.n ? output.v[i] : 0;
        const int64_t all[] = { w->kernel[i], w->stride[i], w->dilation[i],   w->before[i],
                                w->after[i],  more[i],      cn_size(x, i + 2) };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if (all[k] < -MOST || all[k] > MOST) return FAIL(CN_UNSUPPORTED, "a window of %lld", (long long)all[k]);
        if (w->stride[i] < 1 || w->dilation[i] < 1 || more[i] < 0)
            return FAIL(CN_BAD_ARGUMENT, "strides and dilations must be ≥ 1, output_padding ≥ 0");
    }
    return transposed_border(c, x, w, more);
}

static bool is_plain(const onnx_windows *w, const int64_t *more)
{
    for (int i = 0; i < w->n; i++)
        if (w->before[i] != w->after[i] || w->before[i] < 0 || (more[i] >= w->stride[i] && more[i] >= w->dilation[i]) ||
            w->before[i] > (w->kernel[i] - 1) * w->dilation[i])
            return false;
    return true;
}

bool cn__onnx_conv_transpose(onnx_call *c)
{
    static convolution *const by_axes[] = { NULL, cn_conv_transpose1d, cn_conv_transpose2d, cn_conv_transpose3d };
    cn_tensor *x = IN(0), *weight = IN(1), *bias = IN(2);
    onnx_windows w;
    int64_t more[3] = { 0 };
    if (!x || !weight || !transposed_windows(c, x, weight, &w, more)) return false;
    cn_conv_desc d = { .groups = INT("group", 1) };
    const bool plain = is_plain(&w, more);
    for (int i = 0; i < w.n; i++) {
        d.stride[i] = w.stride[i];
        d.dilation[i] = w.dilation[i];
        d.padding[i] = plain ? w.before[i] : 0;
        d.output_padding[i] = plain ? more[i] : 0;
    }
    cn_tensor *y = by_axes[w.n](x, weight, plain ? bias : NULL, &d);
    if (plain || !y) return GIVE(y);
    cn_tensor *zero = cn_zeros(c->ctx, cn_type(y), CN_SCALAR);
    for (int i = 0; i < w.n && y; i++) /* the full result, cut on both sides; output_padding adds to its end */
        y = cn__onnx_padded(c, y, i + 2, -w.before[i], more[i] - w.after[i], "constant", zero);
    cn_dims by_channel = { .n = w.n + 1 };
    by_channel.v[0] = y ? cn_size(y, 1) : 1;
    for (int i = 0; i < w.n; i++) by_channel.v[i + 1] = 1;
    return GIVE(bias ? cn_add(y, cn_reshape(bias, by_channel)) : y);
}

/* A convolution along time that sees the past alone; the last k - 1 inputs are the state of the next call. */
bool cn__onnx_causal_conv(onnx_call *c)
{
    cn_tensor *x = IN(0), *weight = IN(1);
    const char *activation = TEXT("activation", "none");
    if (!x || !weight) return false;
    if (cn_ndim(x) != 3 || cn_ndim(weight) != 3) return FAIL(CN_BAD_SHAPE, "input and weight must have 3 axes");
    const int64_t k = cn_size(weight, 2);
    cn_tensor *past = HAS(3) ? IN(3) : cn_zeros(c->ctx, cn_type(x), CN_DIMS(cn_size(x, 0), cn_size(x, 1), k - 1));
    cn_tensor *part[] = { past, x }, *all = cn_cat(part, 2, 2);
    cn_tensor *y = cn_conv1d(all, weight, IN(2), &(cn_conv_desc){ .groups = cn_size(x, 1) });
    if (!strcmp(activation, "silu") || !strcmp(activation, "swish")) y = cn_silu(y);
    return GIVE(y) && GIVE_AT(1, cn_narrow(all, 2, cn_size(all, 2) - (k - 1), k - 1));
}

/* ---- blocks as columns ---- */

/* Adds columns (N, C·k, L) to planes of any number of axes: every element of a column has a place in its plane. */
bool cn__onnx_col2im(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints image, block, dilations, pads, strides;
    if (!x || !cn__onnx_ints(c, 1, &image) || !cn__onnx_ints(c, 2, &block) ||
        !cn__onnx_attr_ints(c, "dilations", &dilations) || !cn__onnx_attr_ints(c, "pads", &pads) ||
        !cn__onnx_attr_ints(c, "strides", &strides))
        return false;
    const int n = image.n;
    if (cn_ndim(x) != 3 || n < 1 || n > 6 || block.n != n || (dilations.n > 0 && dilations.n != n) ||
        (strides.n > 0 && strides.n != n) || (pads.n > 0 && pads.n != 2 * n))
        return FAIL(CN_BAD_SHAPE, "image_shape, block_shape and the attributes must fit each other");
    int64_t size[6], blocks[6], k = 1, columns = 1, cells = 1;
    for (int d = 0; d < n; d++) {
        const int64_t stride = strides.n > 0 ? strides.v[d] : 1, dilation = dilations.n > 0 ? dilations.v[d] : 1,
                      before = pads.n > 0 ? pads.v[d] : 0, after = pads.n > 0 ? pads.v[d + n] : 0;
        if (block.v[d] < 1 || block.v[d] > MOST || dilation < 1 || dilation > MOST || stride < 1 || before < 0 ||
            before > MOST || after < 0 || after > MOST || image.v[d] < 0 || image.v[d] > MOST)
            return FAIL(CN_BAD_ARGUMENT, "sizes and pads must be ≥ 0, blocks, strides and dilations ≥ 1");
        const int64_t span = dilation * (block.v[d] - 1) + 1;
        size[d] = image.v[d] + before + after;
        if (size[d] < span || size[d] > INT32_MAX)
            return FAIL(CN_BAD_SHAPE, "axis %d of the image is smaller than a block", d);
        blocks[d] = (size[d] - span) / stride + 1;
        if (__builtin_mul_overflow(k, block.v[d], &k) || __builtin_mul_overflow(columns, blocks[d], &columns) ||
            __builtin_mul_overflow(cells, size[d], &cells))
            return FAIL(CN_BAD_SHAPE, "the image is too large");
    }
    if (cn_size(x, 2) != columns || cn_size(x, 1) % k || k * columns > INT32_MAX)
        return FAIL(CN_BAD_SHAPE, "the input must have a multiple of %lld rows and %lld columns", (long long)k,
                    (long long)columns);
    int64_t *place = cn__onnx_run_new(c->run, (size_t)(k * columns), sizeof *place);
    if (!place) return false;
    for (int64_t i = 0; i < k * columns; i++) {
        int64_t in_block = i / columns, column = i % columns, stride = 1;
        for (int d = n; d-- > 0; stride *= size[d]) {
            const int64_t offset = (in_block % block.v[d]) * (dilations.n > 0 ? dilations.v[d] : 1);
            place[i] += ((column % blocks[d]) * (strides.n > 0 ? strides.v[d] : 1) + offset) * stride;
            in_block /= block.v[d];
            column /= blocks[d];
        }
    }
    const int64_t planes = cn_size(x, 0) * (cn_size(x, 1) / k);
    cn_dims shape = { .n = n + 2, .v = { cn_size(x, 0), cn_size(x, 1) / k } };
    for (int d = 0; d < n; d++) shape.v[d + 2] = size[d];
    cn_tensor *index = cn_from(c->ctx, CN_I64, CN_DIMS(k * columns), place);
    cn_tensor *y = cn_index_add(cn_zeros(c->ctx, cn_type(x), CN_DIMS(planes, cells)), 1, index,
                                cn_reshape(x, CN_DIMS(planes, k * columns)));
    y = cn_reshape(y, shape);
    for (int d = 0; d < n && pads.n > 0; d++) y = cn_narrow(y, d + 2, pads.v[d], image.v[d]);
    return GIVE(y);
}

/* Points at which a deformable convolution reads, for grid_sample: 2p/(size - 1) - 1 with align_corners, which is exact
   for small planes, or (2p + 1)/size - 1. */
static cn_tensor *points(onnx_call *c, cn_tensor *offset, const onnx_windows *w, int axis, int64_t size, bool corners)
{
    const int64_t taps = w->kernel[0] * w->kernel[1];
    double *tap = cn__onnx_run_new(c->run, (size_t)taps, sizeof *tap);
    double *start = cn__onnx_run_new(c->run, (size_t)w->out[axis], sizeof *start);
    if (!tap || !start) return NULL;
    for (int64_t i = 0; i < taps; i++)
        tap[i] = (double)((axis ? i % w->kernel[1] : i / w->kernel[1]) * w->dilation[axis] - w->before[axis]);
    for (int64_t i = 0; i < w->out[axis]; i++) start[i] = (double)(i * w->stride[axis]);
    const cn_dims along = axis ? CN_DIMS(1, 1, w->out[1]) : CN_DIMS(1, w->out[0], 1);
    cn_tensor *p = cn_add(cn__onnx_real(c, cn_type(offset), CN_DIMS(taps, 1, 1), tap),
                          cn__onnx_real(c, cn_type(offset), along, start));
    p = cn_add(cn_select(offset, 3, axis), p); /* (N, groups, taps, H, W) */
    if (corners) return cn_sub_s(cn_div_s(cn_mul_s(p, 2), (double)(size - 1)), 1);
    return cn_sub_s(cn_div_s(cn_add_s(cn_mul_s(p, 2), 1), (double)size), 1);
}

bool cn__onnx_deform_conv(onnx_call *c)
{
    cn_tensor *x = IN(0), *weight = IN(1), *offset = IN(2), *bias = IN(3);
    onnx_windows w;
    if (!x || !weight || !offset || !cn__onnx_windows(c, x, weight, &w)) return false;
    const int64_t g = INT("offset_group", 1), groups = INT("group", 1), taps = w.kernel[0] * w.kernel[1];
    const int64_t n = cn_size(x, 0), channels = cn_size(x, 1), h = w.out[0], width = w.out[1];
    const int64_t outs = cn_size(weight, 0);
    if (w.n != 2 || g < 1 || groups < 1 || channels % g || channels % groups || outs % groups)
        return FAIL(CN_UNSUPPORTED, "it works on planes, whose channels are a multiple of group and offset_group");
    offset = cn_reshape(offset, CN_DIMS(n, g, taps, 2, h, width));
    const bool corners = cn_size(x, 2) > 1 && cn_size(x, 3) > 1;
    cn_tensor *at[] = { points(c, offset, &w, 1, cn_size(x, 3), corners),
                        points(c, offset, &w, 0, cn_size(x, 2), corners) };
    cn_tensor *grid = cn_reshape(cn_stack(at, 2, -1), CN_DIMS(n * g, taps * h, width, 2));
    cn_tensor *planes = cn_reshape(x, CN_DIMS(n * g, channels / g, cn_size(x, 2), cn_size(x, 3)));
    cn_tensor *read = cn_grid_sample(planes, grid, CN_GRID_BILINEAR, CN_GRID_ZEROS, corners);
    if (HAS(4)) read = cn_mul(read, cn_reshape(IN(4), CN_DIMS(n * g, 1, taps * h, width)));
    cn_tensor *columns = cn_reshape(read, CN_DIMS(n, groups, channels / groups * taps, h * width));
    cn_tensor *rows = cn_reshape(weight, CN_DIMS(groups, outs / groups, channels / groups * taps));
    cn_tensor *y = cn_reshape(cn_matmul(rows, columns), CN_DIMS(n, outs, h, width));
    return GIVE(bias ? cn_add(y, cn_reshape(bias, CN_DIMS(outs, 1, 1))) : y);
}

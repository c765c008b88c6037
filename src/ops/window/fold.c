/* im2col: blocks of planes as columns, PyTorch's F.unfold. col2im, its transpose and PyTorch's F.fold, adds columns
   up where they lay. */
#include "ops/view/view.h"
#include "ops/window/window.h"

static int64_t reach(const cn__block_attrs *a, int d) { return a->dilation[d] * (a->kernel[d] - 1) + 1; }

/* The number of blocks along an axis of n elements. */
static int64_t blocks(const cn__block_attrs *a, int d, int64_t n)
{
    const int64_t room = n + 2 * a->padding[d] - reach(a, d);
    return room < 0 ? 0 : room / a->stride[d] + 1;
}

static bool has_room(cn_ctx *ctx, const char *who, const cn__block_attrs *a, int64_t height, int64_t width)
{
    return (blocks(a, 0, height) && blocks(a, 1, width)) ||
           cn__fail(ctx, CN_BAD_SHAPE, "%s: planes of %lld x %lld have no room for a block of %lld x %lld with padding",
                    who, (long long)height, (long long)width, (long long)reach(a, 0), (long long)reach(a, 1));
}

/* The product of sizes, or INT64_MAX, which no tensor has. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t p;
    return __builtin_mul_overflow(a, b, &p) ? INT64_MAX : p;
}

/* ---- im2col ---- */

/* (..., n, ...) becomes (..., blocks, ..., kernel) along an axis. */
static cn_tensor *windows(cn_tensor *x, const cn__block_attrs *a, int d, int axis)
{
    return cn_slice(cn_unfold(x, axis, reach(a, d), a->stride[d]), -1, 0, reach(a, d), a->dilation[d]);
}

static cn_tensor *compose_columns(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__block_attrs *a = attrs;
    const cn_layout *l = cn__layout(in[0]);
    char s[96];
    if (l->ndim != 3 && l->ndim != 4) {
        cn__fail(ctx, CN_BAD_SHAPE, "im2col: input must be (N, C, H, W) or (C, H, W), got %s",
                 cn__shape_text(l, s, sizeof s));
        return NULL;
    }
    if (!has_room(ctx, "im2col", a, l->shape[l->ndim - 2], l->shape[l->ndim - 1])) return NULL;
    cn_tensor *x = l->ndim == 4 ? in[0] : cn_unsqueeze(in[0], 0);
    const int64_t n = cn_size(x, 0), rows = product(cn_size(x, 1), a->kernel[0] * a->kernel[1]),
                  count = product(blocks(a, 0, cn_size(x, 2)), blocks(a, 1, cn_size(x, 3)));
    if (a->padding[0] || a->padding[1])
        x = cn_pad(x, CN_DIMS(a->padding[1], a->padding[1], a->padding[0], a->padding[0]), CN_PAD_CONSTANT, 0);
    x = windows(windows(x, a, 0, 2), a, 1, 3); /* (N, C, rows of blocks, columns of blocks, h, w) */
    x = cn_permute(x, CN_DIMS(0, 1, 4, 5, 2, 3));
    return l->ndim == 4 ? cn_reshape(x, CN_DIMS(n, rows, count)) : cn_reshape(x, CN_DIMS(rows, count));
}

/* ---- col2im ---- */

/* The transpose of `windows`: (..., blocks, ..., kernel) becomes (..., n, ...). */
static cn_tensor *added_up(cn_tensor *x, const cn__block_attrs *a, int d, int axis)
{
    if (a->dilation[d] > 1) { /* zeros between the elements of a block */
        x = cn_pad(cn_unsqueeze(x, -1), CN_DIMS(0, a->dilation[d] - 1), CN_PAD_CONSTANT, 0);
        x = cn_narrow(cn_flatten(x, -2, -1), -1, 0, reach(a, d));
    }
    const cn__unfold_backward_attrs u = { { axis, reach(a, d), a->stride[d] }, a->size[d] + 2 * a->padding[d] };
    x = cn_apply(&cn__op_unfold_backward, &x, 1, &u, NULL);
    return a->padding[d] ? cn_narrow(x, axis, a->padding[d], a->size[d]) : x;
}

static cn_tensor *compose_planes(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__block_attrs *a = attrs;
    const cn_layout *l = cn__layout(in[0]);
    if (!has_room(ctx, "col2im", a, a->size[0], a->size[1])) return NULL;
    const int64_t area = a->kernel[0] * a->kernel[1], h = blocks(a, 0, a->size[0]), w = blocks(a, 1, a->size[1]),
                  count = product(h, w);
    const bool fits =
        (l->ndim == 2 || l->ndim == 3) && l->shape[l->ndim - 1] == count && l->shape[l->ndim - 2] % area == 0;
    char s[96];
    if (!fits) {
        cn__fail(ctx, CN_BAD_SHAPE, "col2im: input must be (N, C·%lld, %lld) or (C·%lld, %lld), got %s",
                 (long long)area, (long long)count, (long long)area, (long long)count, cn__shape_text(l, s, sizeof s));
        return NULL;
    }
    const int64_t n = l->ndim == 3 ? l->shape[0] : 1, channels = l->shape[l->ndim - 2] / area;
    cn_tensor *x = cn_reshape(in[0], CN_DIMS(n, channels, a->kernel[0], a->kernel[1], h, w));
    x = cn_permute(x, CN_DIMS(0, 1, 4, 5, 3, 2)); /* (N, C, rows of blocks, columns of blocks, w, h) */
    x = added_up(added_up(x, a, 0, 2), a, 1, 3);
    return l->ndim == 3 ? x : cn_squeeze(x, CN_DIMS(0));
}

#define BLOCKS .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__block_attrs)
#define BLOCK(...) \
    .attrs = &(const cn__block_attrs) { __VA_ARGS__ }

const cn_op cn__op_im2col = {
    .call = "im2col(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
    .name = "im2col",
    .doc = "Each block of planes (N, C, H, W) as a column of (N, C·h·w, blocks): PyTorch's F.unfold.",
    BLOCKS,
    .compose = compose_columns,
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 5)), BLOCK({ 2, 3 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 0 }) },
             { CN_IN(CN_S(2, 5, 6)), BLOCK({ 2, 2 }, { 2, 1 }, { 1, 0 }, { 2, 3 }, { 0 }) },
             { CN_IN(CN_S(0, 2, 5, 6)), BLOCK({ 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 0 }) },
             { CN_IN(CN_S(2, 3, 14, 15)), BLOCK({ 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }) }),
};

const cn_op cn__op_col2im = {
    .call = "col2im(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
            "int[2] stride=1) -> Tensor",
    .name = "col2im",
    .doc = "Adds columns (N, C·h·w, blocks) up where im2col found them: PyTorch's F.fold.",
    BLOCKS,
    .compose = compose_planes,
    .onnx = "Col2Im",
    CN_CASES({ CN_IN(CN_S(2, 12, 12)), BLOCK({ 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 4, 5 }) },
             { CN_IN(CN_S(8, 6)), BLOCK({ 2, 2 }, { 2, 1 }, { 1, 0 }, { 2, 3 }, { 5, 6 }) },
             { CN_IN(CN_S(0, 4, 4)), BLOCK({ 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 3, 3 }) },
             { CN_IN(CN_S(2, 27, 210)), BLOCK({ 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 14, 15 }) }),
};

static bool attrs_of(const char *who, cn_tensor *x, const cn_unfold_desc *desc, cn__block_attrs *a)
{
    if (!cn__alive_in(x, who)) return false;
    if (!desc) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: desc must be given, with a kernel_size, got NULL", who);
    for (int d = 0; d < 2; d++) {
        a->kernel[d] = desc->kernel_size[d];
        a->dilation[d] = desc->dilation[d] ? desc->dilation[d] : 1;
        a->padding[d] = desc->padding[d];
        a->stride[d] = desc->stride[d] ? desc->stride[d] : 1;
        if (a->kernel[d] < 1 || a->dilation[d] < 1 || a->stride[d] < 1 || a->padding[d] < 0 ||
            a->kernel[d] > INT32_MAX || a->dilation[d] > INT32_MAX || a->stride[d] > INT32_MAX ||
            a->padding[d] > INT32_MAX || a->size[d] < 0 || a->size[d] > INT32_MAX)
            return cn__fail(
                x->ctx, CN_BAD_ARGUMENT,
                "%s: kernel_size, dilation and stride must be from 1 to %d, padding and output_size from 0, "
                "got kernel_size %lld, dilation %lld, stride %lld, padding %lld",
                who, INT32_MAX, (long long)a->kernel[d], (long long)a->dilation[d], (long long)a->stride[d],
                (long long)a->padding[d]);
    }
    return true;
}

cn_tensor *cn_im2col(cn_tensor *x, const cn_unfold_desc *desc)
{
    cn__block_attrs a = { .size = { 0 } };
    return attrs_of("im2col", x, desc, &a) ? cn_apply(&cn__op_im2col, &x, 1, &a, NULL) : NULL;
}

cn_tensor *cn_col2im(cn_tensor *x, cn_dims size, const cn_unfold_desc *desc)
{
    cn__block_attrs a = { .size = { size.v[0], size.v[1] } };
    if (!attrs_of("col2im", x, desc, &a)) return NULL;
    if (size.n == 2) return cn_apply(&cn__op_col2im, &x, 1, &a, NULL);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "col2im: output_size must have 2 numbers, got %d", size.n);
    return NULL;
}

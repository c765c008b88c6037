/* max_unpool: zeros, with the results of max pooling where their indices say they were. */
#include "ops/window/window.h"

static bool check(const cn_op *op, cn_tensor *x, cn_tensor *indices, int axes)
{
    const cn_layout *l = cn__layout(x), *at = cn__layout(indices);
    char s[96], t[96];
    if (l->ndim != axes + 1 && l->ndim != axes + 2)
        return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: input must have %d or %d axes, got %s", op->name, axes + 1, axes + 2,
                        cn__shape_text(l, s, sizeof s));
    if (cn__dtype(indices) == CN_I64 && cn__same_shape(l, at)) return true;
    return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: indices must be i64 and have the shape of the input %s, got %s %s",
                    op->name, cn__shape_text(l, s, sizeof s), cn_dtype_name(cn__dtype(indices)),
                    cn__shape_text(at, t, sizeof t));
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__unpool_attrs *a = attrs;
    cn_dims shape = cn_shape(in[0]), flat = { .n = shape.n - (int)a->axes + 1 };
    int64_t *size = &flat.v[flat.n - 1];
    *size = 1;
    for (int d = 0; d < flat.n - 1; d++) flat.v[d] = shape.v[d];
    for (int d = 0; d < a->axes; d++) *size *= shape.v[shape.n - (int)a->axes + d] = a->size[d];
    cn_tensor *zeros = cn_zeros(ctx, cn__dtype(in[0]), flat);
    cn_tensor *y = cn_scatter(zeros, -1, cn_flatten(in[1], -a->axes, -1), cn_flatten(in[0], -a->axes, -1));
    return cn_reshape(y, shape);
}

#define UNPOOL                                                                                                   \
    .kind = CN_COMPOSITE, .n_in = 2, .n_out = 1, .dtypes = CN_NUMBERS, .free_dtype = 2, .not_differentiable = 2, \
    .attr_size = sizeof(cn__unpool_attrs), .compose = compose
#define SIZE(...) \
    .attrs = &(const cn__unpool_attrs) { __VA_ARGS__ }

const cn_op cn__op_max_unpool1d = {
    .call = "max_unpool1d(Tensor input, Tensor indices, int[1] kernel_size, int[1] stride=None, int[1] padding=0, "
            "int[1] output_size=None) -> Tensor",
    .name = "max_unpool1d",
    .doc = "Zeros, with the results of max_pool1d where their indices say they were.",
    UNPOOL,
    CN_CASES({ CN_IN(CN_S(1, 5), CN_PERM(1, 5)), SIZE(1, { 10 }) },
             { CN_IN(CN_S(1, 1, 4), CN_PERM(1, 1, 4)), SIZE(1, { 7 }) },
             { CN_IN(CN_S(0, 2, 4), CN_IDX(8, 0, 2, 4)), SIZE(1, { 8 }) }),
};

const cn_op cn__op_max_unpool2d = {
    .call = "max_unpool2d(Tensor input, Tensor indices, int[2] kernel_size, int[2] stride=None, int[2] padding=0, "
            "int[2] output_size=None) -> Tensor",
    .name = "max_unpool2d",
    .doc = "Zeros, with the results of max_pool2d where their indices say they were.",
    UNPOOL,
    CN_CASES({ CN_IN(CN_S(1, 2, 3), CN_PERM(1, 2, 3)), SIZE(2, { 4, 6 }) },
             { CN_IN(CN_S(1, 1, 3, 3), CN_PERM(1, 1, 3, 3)), SIZE(2, { 3, 5 }) },
             { CN_IN(CN_S(0, 2, 2, 2), CN_IDX(8, 0, 2, 2, 2)), SIZE(2, { 4, 4 }) },
             { CN_IN(CN_S(1, 1, 40, 50), CN_PERM(1, 1, 40, 50)), SIZE(2, { 80, 100 }) }),
};

const cn_op cn__op_max_unpool3d = {
    .call = "max_unpool3d(Tensor input, Tensor indices, int[3] kernel_size, int[3] stride=None, int[3] padding=0, "
            "int[3] output_size=None) -> Tensor",
    .name = "max_unpool3d",
    .doc = "Zeros, with the results of max_pool3d where their indices say they were.",
    UNPOOL,
    CN_CASES({ CN_IN(CN_S(1, 2, 3, 2), CN_PERM(1, 2, 3, 2)), SIZE(3, { 4, 6, 4 }) },
             { CN_IN(CN_S(1, 1, 2, 2, 2), CN_PERM(1, 1, 2, 2, 2)), SIZE(3, { 3, 5, 2 }) },
             { CN_IN(CN_S(0, 2, 2, 2, 1), CN_IDX(8, 0, 2, 2, 2, 1)), SIZE(3, { 4, 4, 1 }) }),
};

/* The size that pooling of `kernel`, `stride` and `padding` makes n from, or the given one, if it is near. */
static bool size_along(const cn_op *op, cn_tensor *x, const cn_unpool_desc *desc, int d, int64_t n, int64_t *size)
{
    const long long kernel = desc->kernel_size[d], stride = desc->stride[d] ? desc->stride[d] : kernel,
                    padding = desc->padding[d], limit = INT32_MAX;
    if (kernel < 1 || kernel > limit || stride < 1 || stride > limit || padding < 0 || padding > limit || n > limit)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "%s: kernel_size and stride must be from 1 to %lld and padding from 0, got kernel_size %lld, "
                        "stride %lld, padding %lld",
                        op->name, limit, kernel, stride, padding);
    const long long usual = (n - 1) * stride - 2 * padding + kernel, given = desc->output_size[d];
    *size = given ? given : usual;
    if (*size < 0 || (given && (given <= usual - stride || given >= usual + stride)))
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: output_size of axis %d must be from %lld to %lld, got %lld",
                        op->name, d, usual - stride + 1, usual + stride - 1, (long long)*size);
    return true;
}

static cn_tensor *unpool(const cn_op *op, cn_tensor *x, cn_tensor *indices, const cn_unpool_desc *desc, int axes)
{
    CN__CALL call = cn__enter_tensor(x ? x : indices, op->name);
    if (!call.ctx || !cn__of_context(call.ctx, x, op->name, "the input") ||
        !cn__of_context(call.ctx, indices, op->name, "the tensor of indices") || !check(op, x, indices, axes))
        return NULL;
    if (!desc) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "%s: desc must be given, with a kernel_size, got NULL", op->name);
        return NULL;
    }
    cn__unpool_attrs a = { .axes = axes };
    for (int d = 0; d < axes; d++)
        if (!size_along(op, x, desc, d, cn_size(x, d - axes), &a.size[d])) return NULL;
    return cn_apply(op, (cn_tensor *[]){ x, indices }, 2, &a, NULL);
}

cn_tensor *cn_max_unpool1d(cn_tensor *x, cn_tensor *indices, const cn_unpool_desc *desc)
{
    return unpool(&cn__op_max_unpool1d, x, indices, desc, 1);
}
cn_tensor *cn_max_unpool2d(cn_tensor *x, cn_tensor *indices, const cn_unpool_desc *desc)
{
    return unpool(&cn__op_max_unpool2d, x, indices, desc, 2);
}
cn_tensor *cn_max_unpool3d(cn_tensor *x, cn_tensor *indices, const cn_unpool_desc *desc)
{
    return unpool(&cn__op_max_unpool3d, x, indices, desc, 3);
}

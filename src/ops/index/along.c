/* index_fill and take_along_dim: elements along an axis, named by one list of indices or by one for each line. */
#include "ops/index/index.h"

/* As in PyTorch, these indices may count from the end. */
static cn_tensor *compose_fill(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const int64_t axis = ((const cn__index_attrs *)attrs)->axis;
    cn_dims shape = cn_shape(in[0]);
    char s[96];
    if (cn_ndim(in[1]) > 1) {
        cn__fail(ctx, CN_BAD_SHAPE, "index_fill: index must have one axis, got %s",
                 cn__shape_text(cn__layout(in[1]), s, sizeof s));
        return NULL;
    }
    if (!cn__check_fits(ctx, "index_fill", "value", cn__dtype(in[0]), args[0].f)) return NULL;
    const int64_t n = cn_numel(in[1]), size = shape.n ? shape.v[axis] : 1;
    cn_tensor *x = shape.n ? in[0] : cn_reshape(in[0], CN_DIMS(1));
    cn_tensor *at = cn_reshape(cn__wrap_index(in[1], size), CN_DIMS(n));
    cn_dims filled = shape.n ? shape : CN_DIMS(1);
    filled.v[axis] = n;
    cn_tensor *value = cn_full(ctx, cn__dtype(in[0]), filled, args[0].f);
    return cn_reshape(cn__index_copy(x, axis, at, value), shape);
}

const cn_op cn__op_index_fill = {
    .call = "index_fill(Tensor input, int dim, Tensor index, float value) -> Tensor",
    .name = "index_fill",
    .doc = "x with a number in the slices along an axis that an index names.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_ANY,
    .free_dtype = 2,
    .not_differentiable = 2,
    .attr_size = sizeof(cn__index_attrs),
    .compose = compose_fill,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX_FROM(-5, 5, 3)), .attrs = &(const cn__index_attrs){ 1 }, CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(3, 4, 2), CN_IDX(3, 2)), .attrs = &(const cn__index_attrs){ 0 }, CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 0)), .attrs = &(const cn__index_attrs){ 1 }, CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S0, CN_IDX(1, 1)), .attrs = &(const cn__index_attrs){ 0 }, CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(50, 80), CN_IDX(80, 30)), .attrs = &(const cn__index_attrs){ 1 }, CN_ARGS({ .f = 1 }) }),
};

cn_tensor *cn_index_fill(cn_tensor *x, int64_t axis, cn_tensor *index, double value)
{
    cn__index_attrs a;
    CN__CALL call = cn__enter_tensor(x, "index_fill");
    if (!call.ctx || !cn__index_axis("index_fill", x, axis, &a)) return NULL;
    return cn_apply(&cn__op_index_fill, (cn_tensor *[]){ x, index }, 2, &a, (cn_arg[CN_MAX_ARGS]){ { .f = value } });
}

/* x and the index broadcast to each other, except along the axis. These indices may count from the end, too. */
static cn_tensor *compose_take(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    int64_t axis = ((const cn__along_attrs *)attrs)->axis;
    cn_dims x = cn_shape(in[0]), index = cn_shape(in[1]), both;
    if (axis < 0) return cn_take(in[0], cn_flatten(in[1], 0, -1));
    if (x.n != index.n) {
        cn__fail(ctx, CN_BAD_SHAPE, "take_along_dim: x and the index must have as many axes, got %d and %d", x.n,
                 index.n);
        return NULL;
    }
    if (x.n == 0) return cn_take(in[0], in[1]);
    const int64_t size = x.v[axis], n = index.v[axis];
    x.v[axis] = index.v[axis] = 1;
    if (!cn__broadcast(ctx, "take_along_dim", x, index, &both)) return NULL;
    x = index = both;
    x.v[axis] = size;
    index.v[axis] = n;
    return cn_gather(cn_expand(in[0], x), axis, cn_expand(cn__wrap_index(in[1], size), index));
}

const cn_op cn__op_take_along_dim = {
    .call = "take_along_dim(Tensor input, Tensor indices, int[1] dim=None) -> Tensor",
    .name = "take_along_dim",
    .doc = "The elements of x along an axis that an index names, where x and the index broadcast along other axes.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_ANY,
    .free_dtype = 2,
    .not_differentiable = 2,
    .attr_size = sizeof(cn__along_attrs),
    .compose = compose_take,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(5, 4, 3)), .attrs = &(const cn__along_attrs){ 1 } },
             { CN_IN(CN_S(1, 5, 3), CN_IDX_FROM(-5, 5, 2, 4, 1)), .attrs = &(const cn__along_attrs){ 1 } },
             { CN_IN(CN_S(4, 5), CN_IDX(20, 2, 3)), .attrs = &(const cn__along_attrs){ -1 } },
             { CN_IN(CN_S(3, 4), CN_IDX(3, 0, 4)), .attrs = &(const cn__along_attrs){ 0 } },
             { CN_IN(CN_S(1, 130), CN_IDX(130, 90, 120)), .attrs = &(const cn__along_attrs){ 1 } }),
};

cn_tensor *cn_take_along_dim(cn_tensor *x, cn_tensor *index, cn_dims dim)
{
    cn__index_attrs a = { -1 };
    CN__CALL call = cn__enter_tensor(x, "take_along_dim");
    if (!call.ctx) return NULL;
    if (dim.n != -1 && dim.n != 1) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "take_along_dim: expects one axis or CN_ALL, got %d axes", dim.n);
        return NULL;
    }
    if (dim.n == 1 && !cn__index_axis("take_along_dim", x, dim.v[0], &a)) return NULL;
    return cn_apply(&cn__op_take_along_dim, (cn_tensor *[]){ x, index }, 2, &(cn__along_attrs){ a.axis }, NULL);
}

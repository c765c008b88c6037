/* masked_fill, masked_select, masked_scatter, nonzero, one_hot: operators on masks, and between masks and indices. */
#include "ops/index/index.h"

static bool is_mask(const char *who, const cn_tensor *mask)
{
    if (cn__dtype(mask) == CN_BOOL) return true;
    return cn__fail(mask->ctx, CN_BAD_DTYPE, "%s: mask must be bool, got %s", who, cn_dtype_name(cn__dtype(mask)));
}

/* The number is converted to x's dtype. */
static cn_tensor *compose_fill(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs;
    if (!is_mask("masked_fill", in[1]) || !cn__check_fits(ctx, "masked_fill", "value", cn__dtype(in[0]), args[0].f))
        return NULL;
    return cn_where(in[1], cn_scalar(ctx, cn__dtype(in[0]), args[0].f), in[0]);
}

const cn_op cn__op_masked_fill = {
    .call = "masked_fill(Tensor input, Tensor mask, float value) -> Tensor",
    .name = "masked_fill", .doc = "x with a number wherever the mask is true.",
    .kind = CN_COMPOSITE, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .compose = compose_fill,
    CN_CASES({ CN_IN(CN_S(3, 4), CN_BOOLS(3, 4)), CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(2, 3, 4), CN_BOOLS(3, 1)), CN_ARGS({ .f = 3 }) },
             { CN_IN(CN_S(4), CN_BOOLS(3, 4)), CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(0, 4), CN_BOOLS(4)) },
             { CN_IN(CN_S0, CN_BOOLS0), CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_S(60, 70), CN_BOOLS(60, 70)), CN_ARGS({ .f = 1 }) }),
};

cn_tensor *cn_masked_fill(cn_tensor *x, cn_tensor *mask, double value)
{
    return cn_apply(&cn__op_masked_fill, (cn_tensor *[]){ x, mask }, 2, NULL, (cn_arg[CN_MAX_ARGS]){ { .f = value } });
}

/* Writes a row of the list, for the element at position `at`. */
typedef void (*row_fn)(int64_t *row, int64_t at, const cn_dims *shape);

/* Lists the true elements of a mask as an i64 tensor (count, width), one row for each. */
static cn_tensor *list_places(cn_ctx *ctx, const uint8_t *is, cn_dims shape, int64_t width, row_fn row)
{
    int64_t numel = 1, count = 0;
    for (int d = 0; d < shape.n; d++) numel *= shape.v[d];
    for (int64_t p = 0; p < numel; p++) count += is[p] != 0;
    size_t bytes = sizeof(int64_t) * (size_t)(count * width + 1);
    int64_t *list = cn__resize(&ctx->memory, NULL, 0, bytes), *next = list;
    if (!list) {
        cn__fail(ctx, CN_NO_MEMORY, "out of memory for %lld indices", (long long)count);
        return NULL;
    }
    for (int64_t p = 0; p < numel; p++) {
        if (!is[p]) continue;
        row(next, p, &shape);
        next += width;
    }
    cn_tensor *t = cn_from(ctx, CN_I64, CN_DIMS(count, width), list);
    cn__resize(&ctx->memory, list, bytes, 0);
    return t;
}

/* Reads the mask from its device and makes the list on the CPU. */
static cn_tensor *true_places(cn_tensor *mask, int64_t width, row_fn row)
{
    if (!mask) return NULL;
    cn_ctx *ctx = cn_context(mask);
    int64_t numel = cn_numel(mask);
    uint8_t *is = cn__resize(&ctx->memory, NULL, 0, (size_t)numel + 1);
    cn_tensor *t = NULL;
    if (!is) cn__fail(ctx, CN_NO_MEMORY, "out of memory for a mask of %lld elements", (long long)numel);
    else if (cn_read(mask, is, (size_t)numel)) t = list_places(ctx, is, cn_shape(mask), width, row);
    if (is) cn__resize(&ctx->memory, is, (size_t)numel + 1, 0);
    return t;
}

static void flat_place(int64_t *row, int64_t at, const cn_dims *shape)
{
    (void)shape;
    *row = at;
}

static void place(int64_t *row, int64_t at, const cn_dims *shape)
{
    for (int d = shape->n - 1; d >= 0; d--) {
        row[d] = at % shape->v[d];
        at /= shape->v[d];
    }
}

static cn_tensor *compose_select(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    cn_dims shape;
    if (!is_mask("masked_select", in[1]) ||
        !cn__broadcast(ctx, "masked_select", cn_shape(in[0]), cn_shape(in[1]), &shape))
        return NULL;
    cn_tensor *at = true_places(cn_expand(in[1], shape), 1, flat_place);
    if (!at) return NULL;
    cn_tensor *x = cn_expand(in[0], shape);
    return cn_index_select(cn_reshape(x, CN_DIMS(cn_numel(x))), 0, cn_reshape(at, CN_DIMS(cn_numel(at))));
}

const cn_op cn__op_masked_select = {
    .call = "masked_select(Tensor input, Tensor mask) -> Tensor",
    .name = "masked_select", .doc = "The elements of x where the mask is true, in order; evaluates the mask.",
    .kind = CN_COMPOSITE, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .compose = compose_select,
    CN_CASES({ CN_IN(CN_S(3, 4), CN_BOOLS(3, 4)) }, { CN_IN(CN_S(2, 3, 4), CN_BOOLS(3, 1)) },
             { CN_IN(CN_S(4), CN_BOOLS(3, 4)) }, { CN_IN(CN_S(0, 4), CN_BOOLS(4)) },
             { CN_IN(CN_S0, CN_BOOLS0) }, { CN_IN(CN_S(60, 70), CN_BOOLS(60, 70)) }),
};

cn_tensor *cn_masked_select(cn_tensor *x, cn_tensor *mask)
{
    return cn_apply(&cn__op_masked_select, (cn_tensor *[]){ x, mask }, 2, NULL, NULL);
}

/* The k-th true element of the mask gets the source's element k. Element 0 of `numbered` is for the others. A source
   that is too short is an index out of range. */
static cn_tensor *compose_scatter(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    cn_dims shape;
    if (!is_mask("masked_scatter", in[1]) ||
        !cn__broadcast(ctx, "masked_scatter", cn_shape(in[0]), cn_shape(in[1]), &shape))
        return NULL;
    const cn_dtype t = cn__dtype(in[0]);
    if (t != cn__dtype(in[2])) {
        cn__fail(ctx, CN_BAD_DTYPE, "masked_scatter: the source must have x's dtype %s, got %s", cn_dtype_name(t),
                 cn_dtype_name(cn__dtype(in[2])));
        return NULL;
    }
    cn_tensor *mask = cn_expand(in[1], shape), *x = cn_expand(in[0], shape);
    if (!mask || !x) return NULL;
    cn_tensor *flat = cn_reshape(mask, CN_DIMS(cn_numel(mask)));
    cn_tensor *at = cn_mul(cn_cumsum(flat, 0), cn_cast(flat, CN_I64));
    cn_tensor *numbered = cn_cat(
        (cn_tensor *[]){ cn_zeros(ctx, t, CN_DIMS(1)), cn_reshape(in[2], CN_DIMS(cn_numel(in[2]))) }, 2, 0);
    return cn_where(mask, cn_reshape(cn_index_select(numbered, 0, at), shape), x);
}

const cn_op cn__op_masked_scatter = {
    .call = "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
    .name = "masked_scatter", .doc = "x with the elements of a source, in order, wherever the mask is true.",
    .kind = CN_COMPOSITE, .n_in = 3, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .compose = compose_scatter,
    CN_CASES({ CN_IN(CN_S(3, 4), CN_BOOLS(3, 4), CN_S(12)) },
             { CN_IN(CN_S(2, 3, 4), CN_BOOLS(3, 1), CN_S(5, 5)) },
             { CN_IN(CN_S(4), CN_BOOLS(3, 4), CN_S(13)) },
             { CN_IN(CN_S(0, 4), CN_BOOLS(4), CN_S(0)) },
             { CN_IN(CN_S0, CN_BOOLS0, CN_S0) }, { CN_IN(CN_S(60, 70), CN_BOOLS(60, 70), CN_S(70, 60)) }),
};

cn_tensor *cn_masked_scatter(cn_tensor *x, cn_tensor *mask, cn_tensor *source)
{
    return cn_apply(&cn__op_masked_scatter, (cn_tensor *[]){ x, mask, source }, 3, NULL, NULL);
}

/* NaN counts as not zero. */
static cn_tensor *compose_nonzero(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs, (void)args;
    return true_places(cn__dtype(in[0]) == CN_BOOL ? in[0] : cn_cast(in[0], CN_BOOL), cn_ndim(in[0]), place);
}

const cn_op cn__op_nonzero = {
    .call = "nonzero(Tensor input) -> Tensor",
    .name = "nonzero", .doc = "The indices of the elements of x that are not zero, one row for each; evaluates x.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 1, .not_differentiable = 1,
    .no_grad = "indices have no gradient", .compose = compose_nonzero, .onnx = "NonZero",
    CN_CASES({ CN_IN(CN_BOOLS(3, 4)) }, { CN_IN(CN_IDX(2, 2, 3, 4)) }, { CN_IN(CN_BOOLS(0, 4)) },
             { CN_IN(CN_S0) }, { CN_IN(CN_IDX(2, 60, 70)) }),
};

cn_tensor *cn_nonzero(cn_tensor *x) { return cn_apply(&cn__op_nonzero, &x, 1, NULL, NULL); }

/* asked: the number of classes, or -1 for the largest index + 1. Returns 0 after an error. */
static int64_t classes_of(cn_ctx *ctx, cn_tensor *index, int64_t asked)
{
    if (asked > 0) return asked;
    if (asked != -1 || cn_numel(index) == 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "one_hot: num_classes must be > 0, or -1 if there are indices, got %lld for %lld indices",
                 (long long)asked, (long long)cn_numel(index));
        return 0;
    }
    int64_t largest = cn_item_i64(cn_max(index, CN_ALL, false));
    if (!cn_failed(ctx) && (largest < 0 || largest == INT64_MAX))
        cn__fail(ctx, CN_BAD_INDEX, "one_hot: the largest index must be from 0 to %lld, got %lld",
                 (long long)(INT64_MAX - 1), (long long)largest);
    return cn_failed(ctx) ? 0 : largest + 1;
}

static cn_tensor *compose_one_hot(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    cn_dims shape = cn_shape(in[0]);
    if (shape.n == CN_MAX_DIMS) {
        cn__fail(ctx, CN_BAD_SHAPE, "one_hot: an index may have at most %d axes, got %d", CN_MAX_DIMS - 1, shape.n);
        return NULL;
    }
    int64_t classes = classes_of(ctx, in[0], ((const cn__one_hot_attrs *)attrs)->classes);
    if (!classes) return NULL;
    shape.v[shape.n++] = 1;
    cn_tensor *one = cn_ones(ctx, CN_I64, shape), *at = cn_reshape(in[0], shape);
    shape.v[shape.n - 1] = classes;
    return cn_scatter(cn_zeros(ctx, CN_I64, shape), -1, at, one);
}

const cn_op cn__op_one_hot = {
    .call = "one_hot(Tensor input, int num_classes=-1) -> Tensor",
    .name = "one_hot", .doc = "For each index a row of zeros with a 1 at that place, as i64.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .free_dtype = 1, .not_differentiable = 1,
    .attr_size = sizeof(cn__one_hot_attrs), .no_grad = "the result is whole numbers", .compose = compose_one_hot,
    .onnx = "OneHot",
    CN_CASES({ CN_IN(CN_IDX(5, 3, 4)), .attrs = &(const cn__one_hot_attrs){ 5 } },
             { CN_IN(CN_IDX(5, 7)), .attrs = &(const cn__one_hot_attrs){ -1 } },
             { CN_IN(CN_IDX(5, 0)), .attrs = &(const cn__one_hot_attrs){ 3 } },
             { CN_IN(CN_IDX0(4)), .attrs = &(const cn__one_hot_attrs){ 4 } },
             { CN_IN(CN_IDX(30, 200)), .attrs = &(const cn__one_hot_attrs){ 30 } }),
};

cn_tensor *cn_one_hot(cn_tensor *index, int64_t classes)
{
    return cn_apply(&cn__op_one_hot, &index, 1, &(cn__one_hot_attrs){ classes }, NULL);
}

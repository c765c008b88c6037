/* full.c: full, zeros, ones and their _like forms: every element is the same number. */
#include <stdio.h>

#include "create.h"

bool cn__infer_created(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    if (a->dtype < 0 || a->dtype >= CN_DTYPES)
        return cn_infer_fail(i, CN_BAD_DTYPE, "dtype must be one of cn_dtype, got %lld", (long long)a->dtype);
    if (!((i->op->dtypes ? i->op->dtypes : CN_FLOATS) & CN_BIT(a->dtype)))
        return cn_infer_fail(i, CN_BAD_DTYPE, "dtype %s is not supported", cn_dtype_name((cn_dtype)a->dtype));
    if (a->ndim < 0 || a->ndim > CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "expects 0 to %d dimensions, got %lld dimensions", CN_MAX_DIMS,
                             (long long)a->ndim);
    i->out[0].dtype = (cn_dtype)a->dtype;
    i->out[0].layout.ndim = (int)a->ndim;
    memcpy(i->out[0].layout.shape, a->shape, sizeof a->shape);
    return true;
}

cn__shape_attrs cn__shaped(cn_dtype t, cn_dims shape)
{
    cn__shape_attrs a = { .dtype = t, .ndim = shape.n };
    for (int i = 0; i < shape.n && i < CN_MAX_DIMS; i++) a.shape[i] = shape.v[i];
    return a;
}

/* The bytes of an element of any type. */
typedef union element {
    double any;
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
} element;

static void loop(const cn_loop *l)
{
    const cn__shape_attrs *a = l->attrs;
    const int64_t n = l->n;
    element e;
    cn__store_f64((cn_dtype)a->dtype, &e, l->args[0].f);
    switch (cn_dtype_size((cn_dtype)a->dtype)) {
    case 1: memset(l->out, e.one, (size_t)n); break;
    case 2:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)l->out)[i] = e.two;
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) ((uint32_t *)l->out)[i] = e.four;
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((uint64_t *)l->out)[i] = e.eight;
    }
}

/* A bool is true for any number but 0, also 0.5: the expression tests the words of the argument. */
static int wgsl(const void *attrs, cn_dtype t, char *out, size_t size)
{
    (void)attrs;
    return snprintf(out, size, "%s", t == CN_BOOL ? "((hi0 & 0x7fffffffu) | lo0) != 0u" : "p0");
}

const cn_op cn__op_full = {
    .call = "full(int[] size, float fill_value, *, dtype dtype=f32) -> Tensor",
    .name = "full", .doc = "Every element the same number.", .kind = CN_MAP,
    .n_in = 0, .n_out = 1, .dtypes = CN_ANY, .cheap = true,
    .attr_size = sizeof(cn__shape_attrs), .infer = cn__infer_created, .no_grad = "it has no operands",
    .loops = { CN__EVERY_DTYPE(loop) }, .wgsl_print = wgsl, .onnx = "ConstantOfShape",
    CN_CASES({ .attrs = CN__SHAPE(CN_F32, 2, 3, 4), CN_ARGS({ .f = 1.5 }) },
             { .attrs = CN__SHAPE(CN_F64, 7), CN_ARGS({ .f = -0.1 }) },
             { .attrs = CN__SHAPE0(CN_I64), CN_ARGS({ .f = -3 }) },
             { .attrs = CN__SHAPE(CN_BOOL, 3), CN_ARGS({ .f = 2 }) },
             { .attrs = CN__SHAPE(CN_I8, 3, 0), CN_ARGS({ .f = 5 }) },
             { .attrs = CN__SHAPE(CN_BF16, 65, 67), CN_ARGS({ .f = 2.5 }) }),
};

static cn_tensor *filled(cn_ctx *ctx, cn_dtype t, cn_dims shape, double value)
{
    cn__shape_attrs a = cn__shaped(t, shape);
    return cn_apply_in(ctx, &cn__op_full, &a, (cn_arg[CN_MAX_ARGS]){ { .f = value } });
}

cn_tensor *cn_full(cn_ctx *ctx, cn_dtype t, cn_dims shape, double value)
{
    bool half = t == CN_F16 || t == CN_BF16; /* as in PyTorch, a number that is too large for a half becomes infinite */
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || ((unsigned)t < CN_DTYPES && !half && !cn__check_fits(ctx, "full", "fill_value", t, value)))
        return NULL;
    return filled(ctx, t, shape, value);
}

cn_tensor *cn_zeros(cn_ctx *ctx, cn_dtype t, cn_dims shape)
{
    CN__CALL call = cn__enter(ctx, __func__);
    return call.ctx ? cn_full(ctx, t, shape, 0) : NULL;
}

cn_tensor *cn_ones(cn_ctx *ctx, cn_dtype t, cn_dims shape)
{
    CN__CALL call = cn__enter(ctx, __func__);
    return call.ctx ? cn_full(ctx, t, shape, 1) : NULL;
}

static cn_tensor *full_like(cn_tensor *x, double value, const char *who)
{
    CN__CALL call = cn__enter_tensor(x, who);
    return call.ctx ? cn_full(x->ctx, cn__dtype(x), cn_shape(x), value) : NULL;
}

cn_tensor *cn_full_like(cn_tensor *x, double value) { return full_like(x, value, __func__); }
cn_tensor *cn_zeros_like(cn_tensor *x) { return full_like(x, 0, __func__); }
cn_tensor *cn_ones_like(cn_tensor *x) { return full_like(x, 1, __func__); }

cn_tensor *cn__filled(cn_tensor *number)
{
    return number ? filled(number->ctx, cn__dtype(number), CN_SCALAR, number->ref.node->args[0].f) : NULL;
}

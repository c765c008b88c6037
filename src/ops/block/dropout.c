/* dropout: x times a random mask, whose elements are 0 with probability p, else 1 / (1 - p). */
#include "ops/block/block.h"
#include "ops/kernels.h"

/* ---- dropout_mask: args p, seed, stream */

static bool mask_infer(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    if (a->dtype != CN_F32 && a->dtype != CN_F64)
        return cn_infer_fail(i, CN_BAD_DTYPE, "dtype must be f32 or f64, got %s", cn_dtype_name((cn_dtype)a->dtype));
    if (a->ndim < 0 || a->ndim > CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "size must have 0 to %d dimensions, got %lld", CN_MAX_DIMS,
                             (long long)a->ndim);
    i->out[0].dtype = (cn_dtype)a->dtype;
    i->out[0].layout.ndim = (int)a->ndim;
    memcpy(i->out[0].layout.shape, a->shape, sizeof a->shape);
    return true;
}

const cn_op cn__op_dropout_mask = {
    .call = "_dropout_mask(int[] size, float p, int seed, int stream, *, dtype dtype) -> Tensor",
    .name = "dropout_mask",
    .doc = "0 with probability p, else 1 / (1 - p).",
    .kind = CN_RANDOM,
    .n_out = 1,
    .attr_size = sizeof(cn__shape_attrs),
    .infer = mask_infer,
    .no_grad = "it has no operands",
    .kernels_at = CN__AT(dropout, mask),
    .wgsl = "select(k0, 0.0, unit(random_word(lo1, hi1, lo2, hi2, i)) < p0)",
    CN_CASES({ .attrs = &(const cn__shape_attrs){ CN_F32, 2, { 3, 5 } }, CN_ARGS({ 0.3 }, { .u = 1 }, { .u = 2 }) },
             { .attrs = &(const cn__shape_attrs){ CN_F64, 1, { 0 } }, CN_ARGS({ 0.5 }, { .u = 1 }, { .u = 2 }) },
             { .attrs = &(const cn__shape_attrs){ CN_F64, 0, { 0 } }, CN_ARGS({ 1.0 }, { .u = 1 }, { .u = 2 }) },
             { .attrs = &(const cn__shape_attrs){ CN_F32, 3, { 7, 31, 29 } },
               CN_ARGS({ 0.1 }, { .u = 9 }, { .u = 77 }) }),
};

cn_tensor *cn__dropout_mask(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const cn__dropout *d)
{
    cn__shape_attrs a = { .dtype = dtype, .ndim = shape.n };
    for (int k = 0; k < shape.n; k++) a.shape[k] = shape.v[k];
    cn_arg args[CN_MAX_ARGS] = { { .f = d->p }, { .u = d->seed }, { .u = d->stream } };
    return cn_apply_in(ctx, &cn__op_dropout_mask, &a, args);
}

bool cn__dropout_begin(cn_ctx *ctx, const char *who, double p, cn__dropout *d)
{
    if (!(p >= 0 && p <= 1)) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: p must be from 0 to 1, got %g", who, p);
    *d = (cn__dropout){ p, 0, 0 };
    if (p > 0) d->seed = ctx->seed, d->stream = ctx->next_stream++;
    return true;
}

/* ---- dropout: args p, seed, stream */

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs;
    const cn_dtype t = cn__dtype(in[0]);
    if (!cn_dtype_is_float(t)) {
        cn__fail(ctx, CN_BAD_DTYPE, "dropout: the input must be of a floating type, got %s", cn_dtype_name(t));
        return NULL;
    }
    const cn__dropout d = cn__dropout_of_args(args);
    cn_tensor *mask = cn__dropout_mask(ctx, t == CN_F64 ? CN_F64 : CN_F32, cn_shape(in[0]), &d);
    return cn__as(cn_mul(cn__as(in[0], t == CN_F64 ? CN_F64 : CN_F32), mask), t);
}

const cn_op cn__op_dropout = {
    .call = "dropout(Tensor input, float p=0.5, bool training=True) -> Tensor",
    .name = "dropout",
    .doc = "Each element 0 with probability p, else x / (1 - p).",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .compose = compose,
    .onnx = "Dropout",
    CN_CASES({ CN_IN(CN_S(3, 5)), CN_ARGS({ 0.3 }, { .u = 1 }, { .u = 2 }) },
             { CN_IN(CN_S(0, 2)), CN_ARGS({ 0.5 }, { .u = 1 }, { .u = 2 }) },
             { CN_IN(CN_S0), CN_ARGS({ 0.5 }, { .u = 4 }, { .u = 2 }) },
             { CN_IN(CN_S(6)), CN_ARGS({ 1.0 }, { .u = 1 }, { .u = 2 }) },
             { CN_IN(CN_S(5, 31, 13)), CN_ARGS({ 0.1 }, { .u = 9 }, { .u = 77 }) }),
};

cn_tensor *cn_dropout(cn_tensor *x, double p, bool training)
{
    cn__dropout d = { 0 };
    if (!training && p >= 0 && p <= 1) p = 0; /* no stream is used */
    if (!cn__alive(x) || !cn__dropout_begin(x->ctx, "dropout", p, &d)) return NULL;
    if (d.p == 0) return x;
    cn_arg args[CN_MAX_ARGS] = { { .f = d.p }, { .u = d.seed }, { .u = d.stream } };
    return cn_apply(&cn__op_dropout, &x, 1, NULL, args);
}

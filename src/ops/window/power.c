/* Averages of powers: lp_pool, the norm of each window; local_response_norm, which divides by one over channels. */
#include <math.h>

#include "ops/window/window.h"

extern const cn_op cn__op_max_pool1d, cn__op_max_pool2d, cn__op_max_pool3d, cn__op_avg_pool1d, cn__op_avg_pool2d,
    cn__op_avg_pool3d;

/* ---- lp_pool: (Σ x^p)^(1/p) = (n · mean of x^p)^(1/p) ---- */

static cn_tensor *lp_pool(cn_tensor *x, const cn__pool_attrs *a, double p, const cn_op *max, const cn_op *average)
{
    if (p == INFINITY) return cn__pool_apply(max, cn_abs(x), a);
    if (p == -INFINITY) return cn_neg(cn__pool_apply(max, cn_neg(cn_abs(x)), a));
    double n = 1;
    for (int d = 0; d < a->axes; d++) n *= (double)a->kernel[d];
    cn_tensor *mean = cn__pool_apply(average, cn_pow_s(x, p), a);
    /* The gradient of the root of 0 is 0, as in PyTorch. */
    cn_tensor *zero = cn_eq_s(mean, 0), *root = cn_pow_s(cn_mul_s(cn_masked_fill(mean, zero, 1), n), 1 / p);
    return cn_masked_fill(root, zero, p > 0 ? 0 : INFINITY);
}

static cn_tensor *compose1(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    return lp_pool(in[0], attrs, args[0].f, &cn__op_max_pool1d, &cn__op_avg_pool1d);
}
static cn_tensor *compose2(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    return lp_pool(in[0], attrs, args[0].f, &cn__op_max_pool2d, &cn__op_avg_pool2d);
}
static cn_tensor *compose3(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    return lp_pool(in[0], attrs, args[0].f, &cn__op_max_pool3d, &cn__op_avg_pool3d);
}

#define LP_POOL .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs)

const cn_op cn__op_lp_pool1d = {
    .call = "lp_pool1d(Tensor input, float norm_type, int[1] kernel_size, int[1] stride=None, bool ceil_mode=False) -> "
            "Tensor",
    .name = "lp_pool1d",
    .doc = "The p-norm of each window of each line.",
    LP_POOL,
    .compose = compose1,
    CN_CASES({ CN_IN(CN_S(2, 3, 8)), CN__POOL(2, { 1, 3 }, { 1, 2 }, { 0 }, { 1, 1 }, 1, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = 2 }) },
             { CN_IN(CN_RANGE(0.1f, 2, 2, 7)), CN__POOL(2, { 1, 2 }, { 1, 2 }, { 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = 1.5 }) },
             { CN_IN(CN_S(0, 3, 8)), CN__POOL(2, { 1, 3 }, { 1, 2 }, { 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = 2 }) }),
};

const cn_op cn__op_lp_pool2d = {
    .call = "lp_pool2d(Tensor input, float norm_type, int[2] kernel_size, int[2] stride=None, bool ceil_mode=False) -> "
            "Tensor",
    .name = "lp_pool2d",
    .doc = "The p-norm of each window of each plane.",
    LP_POOL,
    .compose = compose2,
    CN_CASES({ CN_IN(CN_S(2, 3, 6, 5)), CN__POOL(2, { 2, 3 }, { 2, 1 }, { 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = 2 }) },
             { CN_IN(CN_DISTINCT(2, 5, 5)), CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0 }, { 1, 1 }, 1, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = INFINITY }) },
             { CN_IN(CN_S(0, 3, 4, 4)), CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }),
               CN_ARGS({ .f = 3 }) }),
};

const cn_op cn__op_lp_pool3d = {
    .call = "lp_pool3d(Tensor input, float norm_type, int[3] kernel_size, int[3] stride=None, bool ceil_mode=False) -> "
            "Tensor",
    .name = "lp_pool3d",
    .doc = "The p-norm of each window of each volume.",
    LP_POOL,
    .compose = compose3,
    CN_CASES({ CN_IN(CN_S(2, 4, 6, 5)),
               CN__POOL(3, { 2, 2, 3 }, { 2, 2, 1 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }), CN_ARGS({ .f = 2 }) },
             { CN_IN(CN_RANGE(0.1f, 2, 1, 2, 3, 3, 3)),
               CN__POOL(3, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, 1, 0, 0, { 0 }, { 0 }), CN_ARGS({ .f = -1 }) },
             { CN_IN(CN_S(0, 2, 3, 3, 3)),
               CN__POOL(3, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }), CN_ARGS({ .f = 2 }) }),
};

static cn_tensor *apply(const cn_op *op, cn_tensor *x, double p, const cn_pool_desc *desc, int axes)
{
    cn__pool_attrs a;
    if (!cn__pool_attrs_of(op->name, x, desc, axes, true, &a)) return NULL;
    bool plain = !desc->exclude_padding && !a.divisor;
    for (int d = 0; d < axes; d++) plain &= desc->padding[d] == 0;
    if (!plain || p == 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT,
                 "%s: norm_type must not be 0, and padding, exclude_padding and divisor_override must be left out, got "
                 "norm_type %g",
                 op->name, p);
        return NULL;
    }
    return cn_apply(op, &x, 1, &a, (cn_arg[CN_MAX_ARGS]){ { .f = p } });
}

cn_tensor *cn_lp_pool1d(cn_tensor *x, double p, const cn_pool_desc *desc)
{
    return apply(&cn__op_lp_pool1d, x, p, desc, 1);
}
cn_tensor *cn_lp_pool2d(cn_tensor *x, double p, const cn_pool_desc *desc)
{
    return apply(&cn__op_lp_pool2d, x, p, desc, 2);
}
cn_tensor *cn_lp_pool3d(cn_tensor *x, double p, const cn_pool_desc *desc)
{
    return apply(&cn__op_lp_pool3d, x, p, desc, 3);
}

/* ---- local_response_norm ---- */

/* args: alpha, beta, k. The mean of x² over channels is an average over windows of height `size` and width 1. */
static cn_tensor *compose_response(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const int64_t size = ((const cn__response_attrs *)attrs)->size;
    cn_tensor *x = in[0];
    const cn_dims shape = cn_shape(x);
    char s[96];
    if (shape.n < 3) {
        cn__fail(ctx, CN_BAD_SHAPE, "local_response_norm: input must be (N, C, ...) with 3 axes or more, got %s",
                 cn__shape_text(cn__layout(x), s, sizeof s));
        return NULL;
    }
    if (cn_numel(x) == 0) return cn_clone(x);
    cn_tensor *squares = cn_reshape(cn_square(x), CN_DIMS(shape.v[0], 1, shape.v[1], -1));
    squares = cn_pad(squares, CN_DIMS(0, 0, size / 2, (size - 1) / 2), CN_PAD_CONSTANT, 0);
    const cn__pool_attrs a = { 2, { size, 1 }, { 1, 1 }, { 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 } };
    cn_tensor *mean = cn_reshape(cn_apply(&cn__op_avg_pool2d, &squares, 1, &a, NULL), shape);
    return cn_div(x, cn_pow_s(cn_add_s(cn_mul_s(mean, args[0].f), args[2].f), args[1].f));
}

#define RESPONSE(size, alpha, beta, k) \
    .attrs = &(const cn__response_attrs){ size }, CN_ARGS({ .f = alpha }, { .f = beta }, { .f = k })

const cn_op cn__op_local_response_norm = {
    .call = "local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1) -> Tensor",
    .name = "local_response_norm",
    .doc = "x / (k + alpha · m)^beta, m the mean of x² over neighbouring channels.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__response_attrs),
    .compose = compose_response,
    .onnx = "LRN",
    CN_CASES({ CN_IN(CN_S(2, 5, 3)), RESPONSE(3, 0.5, 0.75, 1) }, { CN_IN(CN_S(2, 4, 3, 2)), RESPONSE(2, 0.3, 0.5, 2) },
             { CN_IN(CN_S(0, 4, 3)), RESPONSE(2, 0.3, 0.5, 2) }, { CN_IN(CN_S(2, 3, 2, 2, 2)), RESPONSE(5, 1, 1, 1) },
             { CN_IN(CN_S(3, 16, 9, 8)), RESPONSE(5, 1e-2, 0.75, 1) }),
};

cn_tensor *cn_local_response_norm(cn_tensor *x, int64_t size, double alpha, double beta, double k)
{
    if (!cn__alive(x)) return NULL;
    if (size >= 1 && size <= INT32_MAX)
        return cn_apply(&cn__op_local_response_norm, &x, 1, &(cn__response_attrs){ size },
                        (cn_arg[CN_MAX_ARGS]){ { .f = alpha }, { .f = beta }, { .f = k } });
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "local_response_norm: size must be from 1 to %d, got %lld", INT32_MAX,
             (long long)size);
    return NULL;
}

/* Products that are composed of other operators: linear, dot, outer. */
#include "ops/contract/contract.h"

/* x(..., in) · weight(out, in)ᵀ + bias(out). With a weight (in) the result is (...), without an axis for features. */
static cn_tensor *linear(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    const cn_layout *x = cn__layout(in[0]), *w = cn__layout(in[1]), *bias = in[2] ? cn__layout(in[2]) : NULL;
    char s[96], t[96];
    if (x->ndim < 1 || w->ndim < 1 || w->ndim > 2 || x->shape[x->ndim - 1] != w->shape[w->ndim - 1]) {
        cn__fail(ctx, CN_BAD_SHAPE, "linear: input and weight must be (..., in) and (out, in), got %s and %s",
                 cn__shape_text(x, s, sizeof s), cn__shape_text(w, t, sizeof t));
        return NULL;
    }
    if (bias && (bias->ndim > w->ndim - 1 || (bias->ndim && bias->shape[0] != w->shape[0] && bias->shape[0] != 1))) {
        cn__fail(ctx, CN_BAD_SHAPE, "linear: bias must be (out) for weight %s, got %s", cn__shape_text(w, t, sizeof t),
                 cn__shape_text(bias, s, sizeof s));
        return NULL;
    }
    cn_tensor *y = cn_matmul(in[0], w->ndim == 2 ? cn_transpose(in[1], 0, 1) : in[1]);
    return bias ? cn_add(y, in[2]) : y;
}

const cn_op cn__op_linear = {
    .call = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .name = "linear",
    .doc = "x · weightᵀ + bias over the last axis; the bias may be absent.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .optional = 1u << 2,
    .dtypes = CN_NUMBERS,
    .compose = linear,
    .onnx = "Gemm",
    CN_CASES({ CN_IN(CN_S(2, 3), CN_S(4, 3), CN_S(4)) }, { CN_IN(CN_S(2, 3, 5), CN_S(7, 5), CN_ABSENT) },
             { CN_IN(CN_S(3), CN_S(2, 3), CN_S(2)) }, { CN_IN(CN_S(2, 3), CN_S(3), CN_ABSENT) },
             { CN_IN(CN_S(0, 3), CN_S(4, 3), CN_S(4)) }, { CN_IN(CN_S(2, 0), CN_S(4, 0), CN_S(1)) },
             { CN_IN(CN_S(33, 65), CN_S(70, 65), CN_S(70)) }),
};

cn_tensor *cn_linear(cn_tensor *x, cn_tensor *weight, cn_tensor *bias)
{
    return cn_apply(&cn__op_linear, (cn_tensor *[]){ x, weight, bias }, 3, NULL, NULL);
}

static bool vectors(cn_ctx *ctx, const char *who, cn_tensor *const *in)
{
    const cn_layout *a = cn__layout(in[0]), *b = cn__layout(in[1]);
    if (a->ndim == 1 && b->ndim == 1) return true;
    char s[96], t[96];
    return cn__fail(ctx, CN_BAD_SHAPE, "%s: both operands must be vectors, got %s and %s", who,
                    cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
}

static cn_tensor *dot(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    if (!vectors(ctx, "dot", in)) return NULL;
    int64_t a = cn__layout(in[0])->shape[0], b = cn__layout(in[1])->shape[0];
    if (a != b) {
        cn__fail(ctx, CN_BAD_SHAPE, "dot: both vectors must have the same size, got %lld and %lld elements",
                 (long long)a, (long long)b);
        return NULL;
    }
    return cn_matmul(in[0], in[1]);
}

const cn_op cn__op_dot = {
    .call = "dot(Tensor input, Tensor tensor) -> Tensor",
    .name = "dot",
    .doc = "The sum of the products of two vectors' elements.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .compose = dot,
    CN_CASES({ CN_IN(CN_S(5), CN_S(5)) }, { CN_IN(CN_S(0), CN_S(0)) }, { CN_IN(CN_S(1), CN_S(1)) },
             { CN_IN(CN_S(3001), CN_S(3001)) }),
};

cn_tensor *cn_dot(cn_tensor *a, cn_tensor *b) { return cn_apply(&cn__op_dot, (cn_tensor *[]){ a, b }, 2, NULL, NULL); }

static cn_tensor *outer(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    return vectors(ctx, "outer", in) ? cn_mul(cn_unsqueeze(in[0], 1), in[1]) : NULL;
}

const cn_op cn__op_outer = {
    .call = "outer(Tensor input, Tensor vec2) -> Tensor",
    .name = "outer",
    .doc = "Every product of an element of one vector and an element of the other.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .compose = outer,
    CN_CASES({ CN_IN(CN_S(3), CN_S(4)) }, { CN_IN(CN_S(0), CN_S(2)) }, { CN_IN(CN_S(1), CN_S(1)) },
             { CN_IN(CN_S(61), CN_S(53)) }),
};

cn_tensor *cn_outer(cn_tensor *a, cn_tensor *b)
{
    return cn_apply(&cn__op_outer, (cn_tensor *[]){ a, b }, 2, NULL, NULL);
}

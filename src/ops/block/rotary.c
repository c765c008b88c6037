/* rotary_embedding: rotates the pairs (i, i + D/2) of the last axis by angles that depend on the position. */
#include "ops/block/block.h"

/* (a, b) → (a cos - b sin, b cos + a sin), x = [a b] */
static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    cn_tensor *x = in[0], *cos = in[1], *sin = in[2];
    const int64_t half = cn_ndim(x) >= 2 ? cn_size(x, -1) / 2 : 0;
    if (cn_ndim(x) < 2 || cn_size(x, -1) % 2) {
        char s[96];
        cn__fail(ctx, CN_BAD_SHAPE, "rotary_embedding: x must be (..., T, D) with an even D, got %s",
                 cn__shape_text(cn__layout(x), s, sizeof s));
        return NULL;
    }
    for (int k = 1; k < 3; k++) {
        char s[96], t[96];
        if (cn_ndim(in[k]) == 2 && cn_size(in[k], 0) == cn_size(x, -2) && cn_size(in[k], 1) == half) continue;
        cn__fail(ctx, CN_BAD_SHAPE, "rotary_embedding: cos and sin must be (T, D/2) for x %s, got %s",
                 cn__shape_text(cn__layout(x), t, sizeof t), cn__shape_text(cn__layout(in[k]), s, sizeof s));
        return NULL;
    }
    cn_tensor *a = cn_narrow(x, -1, 0, half), *b = cn_narrow(x, -1, half, half);
    cn_tensor *turned[2] = { cn_sub(cn_mul(a, cos), cn_mul(b, sin)), cn_add(cn_mul(b, cos), cn_mul(a, sin)) };
    return cn__as(cn_cat(turned, 2, -1), cn__dtype(x));
}

const cn_op cn__op_rotary_embedding = {
    .call = "rotary_embedding(Tensor input, Tensor cos, Tensor sin) -> Tensor",
    .name = "rotary_embedding",
    .doc = "Rotates the pairs (i, i + D/2) of x (..., T, D) by angles given as cos and sin (T, D/2).",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .compose = compose,
    .onnx = "RotaryEmbedding",
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(3, 2), CN_S(3, 2)) }, { CN_IN(CN_S(5, 2), CN_S(5, 1), CN_S(5, 1)) },
             { CN_IN(CN_S(2, 0, 6), CN_S(0, 3), CN_S(0, 3)) },
             { CN_IN(CN_S(2, 3, 11, 34), CN_S(11, 17), CN_S(11, 17)) }),
};

cn_tensor *cn_rotary_embedding(cn_tensor *x, cn_tensor *cos, cn_tensor *sin)
{
    return cn_apply(&cn__op_rotary_embedding, (cn_tensor *[]){ x, cos, sin }, 3, NULL, NULL);
}

/* pixel_shuffle, pixel_unshuffle, channel_shuffle: axes are split, exchanged and merged. */
#include "ops/view/view.h"

/* x must have `least` axes or more, and the size along the axis must be a multiple of n. */
static bool divides(cn_ctx *ctx, const char *who, cn_tensor *x, int least, int axis, int64_t n)
{
    const cn_layout *l = cn__layout(x);
    char s[96];
    if (l->ndim >= least && l->shape[axis < 0 ? l->ndim + axis : axis] % n == 0) return true;
    return cn__fail(ctx, CN_BAD_SHAPE,
                    "%s: input must have %d axes or more and a multiple of %lld along axis %d, got %s", who, least,
                    (long long)n, axis, cn__shape_text(l, s, sizeof s));
}

/* (..., C·r², H, W) → (n, C, r, r, H, W) → (n, C, H, r, W, r) → (..., C, H·r, W·r) */
static cn_tensor *compose_shuffle(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const int64_t r = ((const cn__shuffle_attrs *)attrs)->n;
    if (!divides(ctx, "pixel_shuffle", in[0], 3, -3, r * r)) return NULL;
    cn_dims shape = cn_shape(in[0]);
    int64_t *last = shape.v + shape.n - 3, c = last[0] / (r * r), h = last[1], w = last[2], n = 1;
    for (int d = 0; d < shape.n - 3; d++) n *= shape.v[d];
    cn_tensor *y = cn_permute(cn_reshape(in[0], CN_DIMS(n, c, r, r, h, w)), CN_DIMS(0, 1, 4, 2, 5, 3));
    last[0] = c, last[1] = h * r, last[2] = w * r;
    return cn_reshape(y, shape);
}

/* (..., C, H·r, W·r) → (n, C, H, r, W, r) → (n, C, r, r, H, W) → (..., C·r², H, W) */
static cn_tensor *compose_unshuffle(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const int64_t r = ((const cn__shuffle_attrs *)attrs)->n;
    if (!divides(ctx, "pixel_unshuffle", in[0], 3, -2, r) || !divides(ctx, "pixel_unshuffle", in[0], 3, -1, r))
        return NULL;
    cn_dims shape = cn_shape(in[0]);
    int64_t *last = shape.v + shape.n - 3, c = last[0], h = last[1] / r, w = last[2] / r, n = 1;
    for (int d = 0; d < shape.n - 3; d++) n *= shape.v[d];
    cn_tensor *y = cn_permute(cn_reshape(in[0], CN_DIMS(n, c, h, r, w, r)), CN_DIMS(0, 1, 3, 5, 2, 4));
    last[0] = c * r * r, last[1] = h, last[2] = w;
    return cn_reshape(y, shape);
}

/* (N, C, ...) → (N, groups, C/groups, ...) → (N, C/groups, groups, ...) → (N, C, ...) */
static cn_tensor *compose_channels(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const int64_t groups = ((const cn__shuffle_attrs *)attrs)->n;
    if (!divides(ctx, "channel_shuffle", in[0], 3, 1, groups)) return NULL;
    const cn_dims shape = cn_shape(in[0]);
    int64_t rest = 1;
    for (int d = 2; d < shape.n; d++) rest *= shape.v[d];
    cn_tensor *y = cn_reshape(in[0], CN_DIMS(shape.v[0], groups, shape.v[1] / groups, rest));
    return cn_reshape(cn_transpose(y, 1, 2), shape);
}

#define SHUFFLE .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .dtypes = CN_ANY, .attr_size = sizeof(cn__shuffle_attrs)
#define BY(n) \
    .attrs = &(const cn__shuffle_attrs) { n }

const cn_op cn__op_pixel_shuffle = {
    .call = "pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
    .name = "pixel_shuffle",
    .doc = "Channels as finer planes: (..., C·r², H, W) becomes (..., C, H·r, W·r).",
    SHUFFLE,
    .compose = compose_shuffle,
    .onnx = "DepthToSpace",
    CN_CASES({ CN_IN(CN_S(2, 8, 2, 3)), BY(2) }, { CN_IN(CN_S(9, 1, 2)), BY(3) }, { CN_IN(CN_S(0, 4, 2, 2)), BY(2) },
             { CN_IN(CN_S(2, 3, 2, 2)), BY(1) }, { CN_IN(CN_S(2, 2, 4, 2, 2)), BY(2) },
             { CN_IN(CN_S(2, 16, 9, 10)), BY(2) }),
};

const cn_op cn__op_pixel_unshuffle = {
    .call = "pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
    .name = "pixel_unshuffle",
    .doc = "Planes as more channels: (..., C, H·r, W·r) becomes (..., C·r², H, W).",
    SHUFFLE,
    .compose = compose_unshuffle,
    .onnx = "SpaceToDepth",
    CN_CASES({ CN_IN(CN_S(2, 2, 4, 6)), BY(2) }, { CN_IN(CN_S(1, 3, 6)), BY(3) }, { CN_IN(CN_S(0, 1, 4, 4)), BY(2) },
             { CN_IN(CN_S(2, 3, 2, 2)), BY(1) }, { CN_IN(CN_S(2, 4, 18, 20)), BY(2) }),
};

const cn_op cn__op_channel_shuffle = {
    .call = "channel_shuffle(Tensor input, int groups) -> Tensor",
    .name = "channel_shuffle",
    .doc = "Interleaves groups of channels: the first of each group, then the second of each, and so on.",
    SHUFFLE,
    .compose = compose_channels,
    CN_CASES({ CN_IN(CN_S(2, 6, 3)), BY(2) }, { CN_IN(CN_S(1, 6, 2, 2)), BY(3) }, { CN_IN(CN_S(0, 4, 2)), BY(2) },
             { CN_IN(CN_S(2, 12, 9, 8)), BY(4) }),
};

static cn_tensor *apply(const cn_op *op, cn_tensor *x, const char *what, int64_t n)
{
    if (!cn__alive_in(x, op->name)) return NULL;
    if (n >= 1 && n <= INT32_MAX) return cn_apply(op, &x, 1, &(cn__shuffle_attrs){ n }, NULL);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: %s must be from 1 to %d, got %lld", op->name, what, INT32_MAX, (long long)n);
    return NULL;
}

cn_tensor *cn_pixel_shuffle(cn_tensor *x, int64_t factor)
{
    return apply(&cn__op_pixel_shuffle, x, "upscale_factor", factor);
}
cn_tensor *cn_pixel_unshuffle(cn_tensor *x, int64_t factor)
{
    return apply(&cn__op_pixel_unshuffle, x, "downscale_factor", factor);
}
cn_tensor *cn_channel_shuffle(cn_tensor *x, int64_t groups)
{
    return apply(&cn__op_channel_shuffle, x, "groups", groups);
}

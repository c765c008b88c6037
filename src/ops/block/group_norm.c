/* group_norm and instance_norm: both reshape x and call layer_norm. */
#include "ops/block/block.h"

/* Normalises each group of channels of x (N, C, ...). */
static cn_tensor *by_groups(const char *who, cn_tensor *const *in, int64_t groups, double eps)
{
    cn_tensor *x = in[0], *weight = cn__per_channel(who, in[1], x), *bias = cn__per_channel(who, in[2], x);
    if (cn_failed(x->ctx)) return NULL;
    const int64_t channels = cn_size(x, 1);
    int64_t size = groups ? channels / groups : 0;
    for (int d = 2; d < cn_ndim(x); d++) size *= cn_size(x, d);
    cn_tensor *y = cn_reshape(x, CN_DIMS(cn_size(x, 0), groups, size));
    y = cn_reshape(cn_layer_norm(y, 1, NULL, NULL, eps), cn_shape(x));
    if (weight) y = cn_mul(y, weight);
    if (bias) y = cn_add(y, bias);
    return cn__as(y, cn__dtype(x));
}

static bool check_image(const char *who, cn_tensor *x)
{
    if (cn_ndim(x) >= 2) return true;
    char s[96];
    return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: x must be (N, C, ...), got %s", who,
                    cn__shape_text(cn__layout(x), s, sizeof s));
}

static cn_tensor *group_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const int64_t groups = ((const cn__group_attrs *)attrs)->groups;
    if (!check_image("group_norm", in[0])) return NULL;
    const int64_t channels = cn_size(in[0], 1);
    if (groups < 1 || channels % groups) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "group_norm: num_groups must be > 0 and divide the channels, got %lld groups and %lld channels",
                 (long long)groups, (long long)channels);
        return NULL;
    }
    if (cn_numel(in[0]) == groups) {
        cn__fail(ctx, CN_BAD_SHAPE, "group_norm: a group must have more than one value, got 1");
        return NULL;
    }
    return by_groups("group_norm", in, groups, args[0].f);
}

const cn_op cn__op_group_norm = {
    .call = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> "
            "Tensor",
    .name = "group_norm",
    .doc = "Normalises each group of channels of (N, C, ...), then applies weight and bias by channel.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .optional = 6,
    .attr_size = sizeof(cn__group_attrs),
    .compose = group_compose,
    .onnx = "GroupNormalization",
    CN_CASES(
        { CN_IN(CN_S(2, 6, 3), CN_S(6), CN_S(6)), .attrs = &(const cn__group_attrs){ 3 }, CN_ARGS({ 1e-5 }) },
        { CN_IN(CN_S(2, 4), CN_S(4), CN_ABSENT), .attrs = &(const cn__group_attrs){ 1 }, CN_ARGS({ 1e-3 }) },
        { CN_IN(CN_S(0, 4, 3), CN_S(4), CN_S(4)), .attrs = &(const cn__group_attrs){ 2 }, CN_ARGS({ 1e-5 }) },
        { CN_IN(CN_S(1, 4, 3, 3), CN_ABSENT, CN_ABSENT),
          .attrs = &(const cn__group_attrs){ 4 },
          CN_ARGS({ 1e-5 }) },
        { CN_IN(CN_S(3, 8, 9, 11), CN_S(8), CN_S(8)),
          .attrs = &(const cn__group_attrs){ 2 },
          CN_ARGS({ 1e-5 }) }),
};

cn_tensor *cn_group_norm(cn_tensor *x, int64_t groups, cn_tensor *weight, cn_tensor *bias, double eps)
{
    cn_arg args[CN_MAX_ARGS] = { { .f = eps } };
    return cn_apply(&cn__op_group_norm, (cn_tensor *[]){ x, weight, bias }, 3, &(cn__group_attrs){ groups }, args);
}

static cn_tensor *instance_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs;
    if (!check_image("instance_norm", in[0])) return NULL;
    int64_t space = 1;
    for (int d = 2; d < cn_ndim(in[0]); d++) space *= cn_size(in[0], d);
    if (space == 1) {
        cn__fail(ctx, CN_BAD_SHAPE, "instance_norm: a channel must have more than one value, got 1");
        return NULL;
    }
    return by_groups("instance_norm", in, cn_size(in[0], 1), args[0].f);
}

const cn_op cn__op_instance_norm = {
    .call = "instance_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
    .name = "instance_norm",
    .doc = "Normalises each channel of each sample of (N, C, ...), then applies weight and bias by channel.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .optional = 6,
    .compose = instance_compose,
    .onnx = "InstanceNormalization",
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(3), CN_S(3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(2, 3, 2, 5), CN_ABSENT, CN_ABSENT), CN_ARGS({ 1e-3 }) },
             { CN_IN(CN_S(0, 3, 4), CN_S(3), CN_S(3)), CN_ARGS({ 1e-5 }) },
             { CN_IN(CN_S(3, 5, 9, 13), CN_S(5), CN_S(5)), CN_ARGS({ 1e-5 }) }),
};

cn_tensor *cn_instance_norm(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, double eps)
{
    cn_arg args[CN_MAX_ARGS] = { { .f = eps } };
    return cn_apply(&cn__op_instance_norm, (cn_tensor *[]){ x, weight, bias }, 3, NULL, args);
}

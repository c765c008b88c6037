/* Unfold, blocks of planes as columns, and Fold, which adds columns up where they lay. */
#include <stdio.h>

#include "nn/nn.h"

typedef struct fold {
    cn_dims size; /* (H,W) of Fold's result */
    cn_unfold_desc call;
} fold;

static cn_tensor *unfold_forward(cn_module *m, cn_tensor *x)
{
    return cn_im2col(x, &((const fold *)cn_module_data(m))->call);
}

static cn_tensor *fold_forward(cn_module *m, cn_tensor *x)
{
    const fold *f = cn_module_data(m);
    return cn_col2im(x, f->size, &f->call);
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const fold *f = cn_module_data(m);
    char to[72], kernel[72], dilation[72], padding[72], stride[72];
    snprintf(out, size, "%s%skernel %s, dilation %s, padding %s, stride %s",
             cn__by_text(f->size.v, f->size.n, to, sizeof to), f->size.n ? ", " : "",
             cn__by_text(f->call.kernel_size, 2, kernel, sizeof kernel),
             cn__by_text(f->call.dilation, 2, dilation, sizeof dilation),
             cn__by_text(f->call.padding, 2, padding, sizeof padding),
             cn__by_text(f->call.stride, 2, stride, sizeof stride));
}

static const cn_module_type unfold_type = {
    .name = "Unfold", .forward = unfold_forward, .data_bytes = sizeof(fold), .describe = describe
};
static const cn_module_type fold_type = {
    .name = "Fold", .forward = fold_forward, .data_bytes = sizeof(fold), .describe = describe
};

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, cn_dims size, int64_t kernel,
                       const cn_nn_unfold_desc *desc)
{
    const cn_nn_unfold_desc none = { 0 };
    const cn_nn_unfold_desc *d = desc ? desc : &none;
    const char *who = type->name;
    fold f = { .size = size };
    if (!cn__per_axis(ctx, who, "kernel", 2, d->kernels, kernel, 0, 1, f.call.kernel_size) ||
        !cn__per_axis(ctx, who, "dilation", 2, d->dilations, d->dilation, 1, 1, f.call.dilation) ||
        !cn__per_axis(ctx, who, "padding", 2, d->paddings, d->padding, 0, 0, f.call.padding) ||
        !cn__per_axis(ctx, who, "stride", 2, d->strides, d->stride, 1, 1, f.call.stride))
        return NULL;
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(fold *)cn_module_data(m) = f;
    return m;
}

cn_module *cn_nn_unfold(cn_ctx *ctx, int64_t kernel, const cn_nn_unfold_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    return call.ctx ? make(ctx, &unfold_type, (cn_dims){ .n = 0 }, kernel, desc) : NULL;
}

cn_module *cn_nn_fold(cn_ctx *ctx, cn_dims size, int64_t kernel, const cn_nn_unfold_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (size.n != 2 || size.v[0] < 1 || size.v[1] < 1) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Fold: output_size must be two numbers > 0, height and width, got %d numbers",
                 size.n);
        return NULL;
    }
    return make(ctx, &fold_type, size, kernel, desc);
}

/* Upsample: resizes the axes after (N,C), to given sizes or by a scale. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

/* The new sizes of the axes after (N,C). */
static bool sizes_for(const cn_nn_upsample_desc *u, cn_tensor *x, cn_dims *size)
{
    *size = u->size;
    if (size->n) return true;
    size->n = cn_ndim(x) - 2;
    for (int d = 0; d < size->n; d++) {
        const double wanted = (double)cn_size(x, d + 2) * u->scale;
        if (wanted != floor(wanted) || wanted < 1)
            return cn__fail(
                x->ctx, CN_BAD_SHAPE,
                "size times scale must be a whole number > 0, got %lld times %g; .size sets a size directly",
                (long long)cn_size(x, d + 2), u->scale);
        size->v[d] = (int64_t)wanted;
    }
    return true;
}

static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const cn_nn_upsample_desc *u = cn_module_data(m);
    const bool bilinear = u->mode == CN_UPSAMPLE_BILINEAR;
    const int axes = cn_ndim(x) - 2;
    if (axes > 2 || axes < (bilinear ? 2 : 1) || (u->size.n && u->size.n != axes))
        return cn__wrong_shape(x, "x must be (N, C, %s)", bilinear || u->size.n == 2 ? "H, W" : "L");
    cn_dims size;
    if (!sizes_for(u, x, &size)) return NULL;
    return bilinear ? cn_interpolate_bilinear(x, size.v[0], size.v[1], u->align_corners)
                    : cn_interpolate_nearest(x, size);
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const cn_nn_upsample_desc *u = cn_module_data(m);
    char text[64];
    if (u->size.n) cn__by_text(u->size.v, u->size.n, text, sizeof text);
    else snprintf(text, sizeof text, "times %g", u->scale);
    snprintf(out, size, "%s, %s%s", text, u->mode == CN_UPSAMPLE_BILINEAR ? "bilinear" : "nearest",
             u->align_corners ? ", corners aligned" : "");
}

static const cn_module_type upsample_type = {
    .name = "Upsample", .forward = forward, .data_bytes = sizeof(cn_nn_upsample_desc), .describe = describe
};

static bool check(cn_ctx *ctx, const cn_nn_upsample_desc *u)
{
    if (u->mode != CN_UPSAMPLE_NEAREST && u->mode != CN_UPSAMPLE_BILINEAR)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "Upsample: mode must be CN_UPSAMPLE_NEAREST or CN_UPSAMPLE_BILINEAR, got %d", (int)u->mode);
    if ((u->size.n != 0) == (u->scale != 0))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: the descriptor must have either a size or a scale, got %s",
                        u->scale != 0 ? "both" : "neither");
    if (u->size.n == 0 && !(u->scale > 0 && isfinite(u->scale)))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: scale must be finite and > 0, got %g", u->scale);
    const bool bilinear = u->mode == CN_UPSAMPLE_BILINEAR;
    if (u->size.n < 0 || u->size.n > 2 || (bilinear && u->size.n == 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: size must have %s, got %d",
                        bilinear ? "2 numbers for bilinear" : "1 or 2 numbers", u->size.n);
    for (int d = 0; d < u->size.n; d++)
        if (u->size.v[d] < 1)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: size must be > 0, got %lld", (long long)u->size.v[d]);
    if (u->align_corners && !bilinear)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: align_corners must be false for CN_UPSAMPLE_NEAREST");
    return true;
}

cn_module *cn_nn_upsample(cn_ctx *ctx, const cn_nn_upsample_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_nn_upsample_desc none = { 0 };
    if (!desc) desc = &none;
    if (!check(ctx, desc)) return NULL;
    cn_module *m = cn_module_new(ctx, &upsample_type);
    if (m) *(cn_nn_upsample_desc *)cn_module_data(m) = *desc;
    return m;
}

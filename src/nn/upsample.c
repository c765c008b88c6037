/* Upsample: resizes the axes after (N,C), to given sizes or by a scale. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct mode {
    const char *name, *shape;
    int axes; /* 0: one to three */
} mode;

static const mode modes[] = { [CN_UPSAMPLE_NEAREST] = { "nearest", "L, H, W or D, H, W", 0 },
                              [CN_UPSAMPLE_LINEAR] = { "linear", "L", 1 },
                              [CN_UPSAMPLE_BILINEAR] = { "bilinear", "H, W", 2 },
                              [CN_UPSAMPLE_BICUBIC] = { "bicubic", "H, W", 2 },
                              [CN_UPSAMPLE_TRILINEAR] = { "trilinear", "D, H, W", 3 } };
enum { MODES = sizeof modes / sizeof *modes };

/* How many numbers the scales are. */
static int scales_of(const cn_nn_upsample_desc *u)
{
    int n = 3;
    while (n > 0 && u->scales[n - 1] == 0) n--;
    return n;
}

static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const cn_nn_upsample_desc *u = cn_module_data(m);
    const mode *by = &modes[u->mode];
    const int axes = cn_ndim(x) - 2, given = u->size.n > 1 ? u->size.n : scales_of(u);
    if (axes < 1 || axes > 3 || (by->axes && axes != by->axes) || (given && given != axes))
        return cn__wrong_shape(x, "x must be (N, C, %s)%s", by->shape, given ? ", with a size or scale for each" : "");
    cn_interpolate_desc call = { .mode = (cn_interpolate_mode)u->mode,
                                 .align_corners = u->align_corners,
                                 .recompute_scale_factor = u->recompute_scale_factor };
    for (int d = 0; d < axes; d++) {
        if (u->size.n) call.size[d] = u->size.v[u->size.n == 1 ? 0 : d];
        else call.scale_factor[d] = scales_of(u) ? u->scales[d] : u->scale;
    }
    return cn_interpolate(x, &call);
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const cn_nn_upsample_desc *u = cn_module_data(m);
    char text[96];
    if (u->size.n) cn__by_text(u->size.v, u->size.n, text, sizeof text);
    else if (scales_of(u)) snprintf(text, sizeof text, "times %g x %g x %g", u->scales[0], u->scales[1], u->scales[2]);
    else snprintf(text, sizeof text, "times %g", u->scale);
    snprintf(out, size, "%s, %s%s", text, modes[u->mode].name, u->align_corners ? ", corners aligned" : "");
}

static const cn_module_type upsample_type = {
    .name = "Upsample", .forward = forward, .data_bytes = sizeof(cn_nn_upsample_desc), .describe = describe
};

static bool check_scales(cn_ctx *ctx, const cn_nn_upsample_desc *u)
{
    const int n = scales_of(u);
    for (int d = 0; d < (n ? n : 1); d++) {
        const double scale = n ? u->scales[d] : u->scale;
        if (!(scale > 0 && isfinite(scale)))
            return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: scale must be finite and > 0, got %g", scale);
    }
    return true;
}

static bool check_size(cn_ctx *ctx, const cn_nn_upsample_desc *u)
{
    const int axes = modes[u->mode].axes;
    if (u->size.n < 0 || u->size.n > 3 || (axes && u->size.n != 1 && u->size.n != axes))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: size must have 1 number or one for each axis, got %d",
                        u->size.n);
    for (int d = 0; d < u->size.n; d++)
        if (u->size.v[d] < 1)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: size must be > 0, got %lld", (long long)u->size.v[d]);
    return !u->recompute_scale_factor ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: recompute_scale_factor must be false with a size");
}

static bool check(cn_ctx *ctx, const cn_nn_upsample_desc *u)
{
    if ((int)u->mode < 0 || (int)u->mode >= MODES)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: mode must be one of cn_upsample_mode, got %d", (int)u->mode);
    const int given = (u->size.n != 0) + (u->scale != 0) + (scales_of(u) != 0);
    if (given != 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: the descriptor must have either a size or a scale, got %s",
                        given ? "both" : "neither");
    if (u->align_corners && u->mode == CN_UPSAMPLE_NEAREST)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "Upsample: align_corners must be false for CN_UPSAMPLE_NEAREST");
    return u->size.n ? check_size(ctx, u) : check_scales(ctx, u);
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

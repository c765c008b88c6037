/* Pooling modules: with windows of a given size, and adaptive ones, with a given number of windows. */
#include <stdio.h>

#include "nn/nn.h"

/* ---- windows of a given size ---- */

typedef struct pool {
    int axes;
    cn_pool_desc call;
    cn_tensor *(*apply)(cn_tensor *x, const cn_pool_desc *desc);
} pool;

static cn_tensor *pool_forward(cn_module *m, cn_tensor *x)
{
    const pool *p = cn_module_data(m);
    return p->apply(x, &p->call);
}

static void pool_describe(const cn_module *m, char *out, size_t size)
{
    const pool *p = cn_module_data(m);
    char kernel[48], stride[48], padding[48];
    const bool pads = p->call.padding[0] || p->call.padding[1];
    snprintf(out, size, "kernel %s, stride %s%s%s", cn__by_text(p->call.kernel_size, p->axes, kernel, sizeof kernel),
             cn__by_text(p->call.stride, p->axes, stride, sizeof stride), pads ? ", padding " : "",
             pads ? cn__by_text(p->call.padding, p->axes, padding, sizeof padding) : "");
}

typedef struct kind {
    cn_module_type type;
    int axes;
    bool average;
    cn_tensor *(*apply)(cn_tensor *x, const cn_pool_desc *desc);
} kind;

#define KIND(name_, axes_, average_, apply_)                                                                      \
    {                                                                                                             \
        { .name = name_, .forward = pool_forward, .data_bytes = sizeof(pool), .describe = pool_describe }, axes_, \
            average_, apply_                                                                                      \
    }
static const kind max_pool1d = KIND("MaxPool1d", 1, false, cn_max_pool1d);
static const kind max_pool2d = KIND("MaxPool2d", 2, false, cn_max_pool2d);
static const kind avg_pool1d = KIND("AvgPool1d", 1, true, cn_avg_pool1d);
static const kind avg_pool2d = KIND("AvgPool2d", 2, true, cn_avg_pool2d);

static bool set_options(cn_ctx *ctx, const kind *k, int64_t kernel, const cn_nn_pool_desc *d, cn_pool_desc *call)
{
    const char *who = k->type.name;
    const int n = k->axes;
    if (!cn__per_axis(ctx, who, "kernel", n, d->kernels, kernel, 0, 1, call->kernel_size) ||
        !cn__per_axis(ctx, who, "stride", n, d->strides.n || d->stride ? d->strides : d->kernels,
                      d->stride ? d->stride : kernel, 0, 1, call->stride) ||
        !cn__per_axis(ctx, who, "padding", n, d->paddings, d->padding, 0, 0, call->padding) ||
        !cn__per_axis(ctx, who, "dilation", n, d->dilations, d->dilation, 1, 1, call->dilation))
        return false;
    for (int a = 0; a < n; a++) {
        if (call->padding[a] > call->kernel_size[a] / 2)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: padding must be ≤ half the kernel of %lld, got %lld", who,
                            (long long)call->kernel_size[a], (long long)call->padding[a]);
        if (k->average && call->dilation[a] != 1)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dilation must be 1, got %lld; only max pooling has it", who,
                            (long long)call->dilation[a]);
    }
    if (!k->average && d->exclude_padding)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: exclude_padding must be false; only average pooling has it", who);
    call->ceil_mode = d->ceil_mode;
    call->exclude_padding = d->exclude_padding;
    return true;
}

static cn_module *make_pool(cn_ctx *ctx, const kind *k, int64_t kernel, const cn_nn_pool_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_nn_pool_desc none = { 0 };
    pool p = { .axes = k->axes, .apply = k->apply };
    if (!set_options(ctx, k, kernel, desc ? desc : &none, &p.call)) return NULL;
    cn_module *m = cn_module_new(ctx, &k->type);
    if (m) *(pool *)cn_module_data(m) = p;
    return m;
}

cn_module *cn_nn_max_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &max_pool1d, kernel, desc);
}
cn_module *cn_nn_max_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &max_pool2d, kernel, desc);
}
cn_module *cn_nn_avg_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &avg_pool1d, kernel, desc);
}
cn_module *cn_nn_avg_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &avg_pool2d, kernel, desc);
}

/* ---- a given number of windows ---- */

typedef struct adaptive {
    int axes;
    int64_t size[2];
} adaptive;

static void adaptive_describe(const cn_module *m, char *out, size_t size)
{
    const adaptive *a = cn_module_data(m);
    cn__by_text(a->size, a->axes, out, size);
}

static cn_tensor *avg1(cn_module *m, cn_tensor *x)
{
    const adaptive *a = cn_module_data(m);
    return cn_adaptive_avg_pool1d(x, a->size[0]);
}
static cn_tensor *avg2(cn_module *m, cn_tensor *x)
{
    const adaptive *a = cn_module_data(m);
    return cn_adaptive_avg_pool2d(x, a->size[0], a->size[1]);
}
static cn_tensor *max1(cn_module *m, cn_tensor *x)
{
    const adaptive *a = cn_module_data(m);
    return cn_adaptive_max_pool1d(x, a->size[0]);
}
static cn_tensor *max2(cn_module *m, cn_tensor *x)
{
    const adaptive *a = cn_module_data(m);
    return cn_adaptive_max_pool2d(x, a->size[0], a->size[1]);
}

#define ADAPTIVE(name_, forward_)                                                                         \
    {                                                                                                     \
        .name = name_, .forward = forward_, .data_bytes = sizeof(adaptive), .describe = adaptive_describe \
    }
static const cn_module_type adaptive_avg1 = ADAPTIVE("AdaptiveAvgPool1d", avg1);
static const cn_module_type adaptive_avg2 = ADAPTIVE("AdaptiveAvgPool2d", avg2);
static const cn_module_type adaptive_max1 = ADAPTIVE("AdaptiveMaxPool1d", max1);
static const cn_module_type adaptive_max2 = ADAPTIVE("AdaptiveMaxPool2d", max2);

static cn_module *make_adaptive(cn_ctx *ctx, const cn_module_type *type, adaptive a)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    for (int d = 0; d < a.axes; d++)
        if (a.size[d] < 1) {
            cn__fail(ctx, CN_BAD_ARGUMENT, "%s: size must be > 0, got %lld", type->name, (long long)a.size[d]);
            return NULL;
        }
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(adaptive *)cn_module_data(m) = a;
    return m;
}

cn_module *cn_nn_adaptive_avg_pool1d(cn_ctx *ctx, int64_t size)
{
    return make_adaptive(ctx, &adaptive_avg1, (adaptive){ 1, { size, 1 } });
}
cn_module *cn_nn_adaptive_avg_pool2d(cn_ctx *ctx, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_avg2, (adaptive){ 2, { height, width } });
}
cn_module *cn_nn_adaptive_max_pool1d(cn_ctx *ctx, int64_t size)
{
    return make_adaptive(ctx, &adaptive_max1, (adaptive){ 1, { size, 1 } });
}
cn_module *cn_nn_adaptive_max_pool2d(cn_ctx *ctx, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_max2, (adaptive){ 2, { height, width } });
}

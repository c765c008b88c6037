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

/* The number of results that max pooling was asked for: values, or values and indices. */
static bool check_results(cn_module *m, int n_in, int n_out)
{
    return (n_in == 1 && n_out <= 2) ||
           cn__fail(cn_module_context(m), CN_BAD_ARGUMENT,
                    "%s: forward accepts one tensor and returns values and indices; got %d operands and %d results",
                    cn_module_type_of(m)->name, n_in, n_out);
}

static bool max_forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    typedef cn_tensor *(*with_indices)(cn_tensor *x, const cn_pool_desc *desc, cn_tensor **indices);
    static const with_indices by_axes[] = { NULL, cn_max_pool1d_with_indices, cn_max_pool2d_with_indices,
                                            cn_max_pool3d_with_indices };
    const pool *p = cn_module_data(m);
    if (!check_results(m, n_in, n_out)) return false;
    cn_tensor *y = n_out == 2 ? by_axes[p->axes](in[0], &p->call, &out[1]) : p->apply(in[0], &p->call);
    if (n_out) out[0] = y;
    return y != NULL;
}

static void pool_describe(const cn_module *m, char *out, size_t size)
{
    const pool *p = cn_module_data(m);
    char kernel[48], stride[48], padding[48];
    const bool pads = p->call.padding[0] || p->call.padding[1] || p->call.padding[2];
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

#define AVERAGE(name_, axes_, apply_)                                                                             \
    {                                                                                                             \
        { .name = name_, .forward = pool_forward, .data_bytes = sizeof(pool), .describe = pool_describe }, axes_, \
            true, apply_                                                                                          \
    }
#define MAX(name_, axes_, apply_)                                                                                    \
    {                                                                                                                \
        { .name = name_, .forward_all = max_forward, .data_bytes = sizeof(pool), .describe = pool_describe }, axes_, \
            false, apply_                                                                                            \
    }
static const kind max_pool1d = MAX("MaxPool1d", 1, cn_max_pool1d);
static const kind max_pool2d = MAX("MaxPool2d", 2, cn_max_pool2d);
static const kind max_pool3d = MAX("MaxPool3d", 3, cn_max_pool3d);
static const kind avg_pool1d = AVERAGE("AvgPool1d", 1, cn_avg_pool1d);
static const kind avg_pool2d = AVERAGE("AvgPool2d", 2, cn_avg_pool2d);
static const kind avg_pool3d = AVERAGE("AvgPool3d", 3, cn_avg_pool3d);

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
    if (d->divisor_override && (!k->average || n == 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: divisor_override must be 0; only AvgPool2d and AvgPool3d have it",
                        who);
    call->ceil_mode = d->ceil_mode;
    call->exclude_padding = d->exclude_padding;
    call->divisor_override = d->divisor_override;
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
cn_module *cn_nn_max_pool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &max_pool3d, kernel, desc);
}
cn_module *cn_nn_avg_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &avg_pool1d, kernel, desc);
}
cn_module *cn_nn_avg_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &avg_pool2d, kernel, desc);
}
cn_module *cn_nn_avg_pool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_pool(ctx, &avg_pool3d, kernel, desc);
}

/* ---- a given number of windows ---- */

typedef struct adaptive {
    int axes;
    int64_t size[3];
} adaptive;

static void adaptive_describe(const cn_module *m, char *out, size_t size)
{
    const adaptive *a = cn_module_data(m);
    cn__by_text(a->size, a->axes, out, size);
}

static cn_tensor *average_to(cn_module *m, cn_tensor *x)
{
    const adaptive *a = cn_module_data(m);
    if (a->axes == 1) return cn_adaptive_avg_pool1d(x, a->size[0]);
    if (a->axes == 2) return cn_adaptive_avg_pool2d(x, a->size[0], a->size[1]);
    return cn_adaptive_avg_pool3d(x, CN_DIMS(a->size[0], a->size[1], a->size[2]));
}

static cn_tensor *max_values(const adaptive *a, cn_tensor *x)
{
    if (a->axes == 1) return cn_adaptive_max_pool1d(x, a->size[0]);
    if (a->axes == 2) return cn_adaptive_max_pool2d(x, a->size[0], a->size[1]);
    return cn_adaptive_max_pool3d(x, CN_DIMS(a->size[0], a->size[1], a->size[2]));
}

static cn_tensor *max_and_indices(const adaptive *a, cn_tensor *x, cn_tensor **indices)
{
    if (a->axes == 1) return cn_adaptive_max_pool1d_with_indices(x, a->size[0], indices);
    if (a->axes == 2) return cn_adaptive_max_pool2d_with_indices(x, a->size[0], a->size[1], indices);
    return cn_adaptive_max_pool3d_with_indices(x, CN_DIMS(a->size[0], a->size[1], a->size[2]), indices);
}

static bool max_to(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const adaptive *a = cn_module_data(m);
    if (!check_results(m, n_in, n_out)) return false;
    cn_tensor *y = n_out == 2 ? max_and_indices(a, in[0], &out[1]) : max_values(a, in[0]);
    if (n_out) out[0] = y;
    return y != NULL;
}

#define AVERAGE_TO(name_)                                                                                   \
    {                                                                                                       \
        .name = name_, .forward = average_to, .data_bytes = sizeof(adaptive), .describe = adaptive_describe \
    }
#define MAX_TO(name_)                                                                                       \
    {                                                                                                       \
        .name = name_, .forward_all = max_to, .data_bytes = sizeof(adaptive), .describe = adaptive_describe \
    }
static const cn_module_type adaptive_avg1 = AVERAGE_TO("AdaptiveAvgPool1d");
static const cn_module_type adaptive_avg2 = AVERAGE_TO("AdaptiveAvgPool2d");
static const cn_module_type adaptive_avg3 = AVERAGE_TO("AdaptiveAvgPool3d");
static const cn_module_type adaptive_max1 = MAX_TO("AdaptiveMaxPool1d");
static const cn_module_type adaptive_max2 = MAX_TO("AdaptiveMaxPool2d");
static const cn_module_type adaptive_max3 = MAX_TO("AdaptiveMaxPool3d");

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
    return make_adaptive(ctx, &adaptive_avg1, (adaptive){ 1, { size } });
}
cn_module *cn_nn_adaptive_avg_pool2d(cn_ctx *ctx, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_avg2, (adaptive){ 2, { height, width } });
}
cn_module *cn_nn_adaptive_avg_pool3d(cn_ctx *ctx, int64_t depth, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_avg3, (adaptive){ 3, { depth, height, width } });
}
cn_module *cn_nn_adaptive_max_pool1d(cn_ctx *ctx, int64_t size)
{
    return make_adaptive(ctx, &adaptive_max1, (adaptive){ 1, { size } });
}
cn_module *cn_nn_adaptive_max_pool2d(cn_ctx *ctx, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_max2, (adaptive){ 2, { height, width } });
}
cn_module *cn_nn_adaptive_max_pool3d(cn_ctx *ctx, int64_t depth, int64_t height, int64_t width)
{
    return make_adaptive(ctx, &adaptive_max3, (adaptive){ 3, { depth, height, width } });
}

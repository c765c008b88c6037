/* LPPool, the norm of each window, and MaxUnpool, which puts the results of max pooling back. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

/* The options that both have are those of cn_nn_pool_desc; others must be left out. */
static bool only(cn_ctx *ctx, const char *who, const cn_nn_pool_desc *d, bool padding, bool ceil_mode)
{
    const bool other = d->dilation || d->dilations.n || d->exclude_padding || d->divisor_override ||
                       (!padding && (d->padding || d->paddings.n)) || (!ceil_mode && d->ceil_mode);
    return !other || cn__fail(ctx, CN_BAD_ARGUMENT, "%s: of the options, only stride and %s may be set", who,
                              padding ? "padding" : "ceil_mode");
}

static bool windows(cn_ctx *ctx, const char *who, int axes, int64_t kernel, const cn_nn_pool_desc *d, int64_t *sizes,
                    int64_t *strides)
{
    return cn__per_axis(ctx, who, "kernel", axes, d->kernels, kernel, 0, 1, sizes) &&
           cn__per_axis(ctx, who, "stride", axes, d->strides.n || d->stride ? d->strides : d->kernels,
                        d->stride ? d->stride : kernel, 0, 1, strides);
}

/* ---- LPPool ---- */

typedef struct lp_pool {
    int axes;
    double norm_type;
    cn_pool_desc call;
} lp_pool;

static cn_tensor *lp_forward(cn_module *m, cn_tensor *x)
{
    const lp_pool *p = cn_module_data(m);
    if (p->axes == 1) return cn_lp_pool1d(x, p->norm_type, &p->call);
    return p->axes == 2 ? cn_lp_pool2d(x, p->norm_type, &p->call) : cn_lp_pool3d(x, p->norm_type, &p->call);
}

static void lp_describe(const cn_module *m, char *out, size_t size)
{
    const lp_pool *p = cn_module_data(m);
    char kernel[72], stride[72];
    snprintf(out, size, "norm %g, kernel %s, stride %s", p->norm_type,
             cn__by_text(p->call.kernel_size, p->axes, kernel, sizeof kernel),
             cn__by_text(p->call.stride, p->axes, stride, sizeof stride));
}

#define LP(name_)                                                                                    \
    {                                                                                                \
        .name = name_, .forward = lp_forward, .data_bytes = sizeof(lp_pool), .describe = lp_describe \
    }
static const cn_module_type lp_types[] = { LP("LPPool1d"), LP("LPPool2d"), LP("LPPool3d") };

static cn_module *make_lp(cn_ctx *ctx, int axes, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_module_type *type = &lp_types[axes - 1];
    const cn_nn_pool_desc none = { 0 };
    lp_pool p = { .axes = axes, .norm_type = norm_type };
    if (!desc) desc = &none;
    if (norm_type == 0 || isnan(norm_type)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: norm_type must be a number other than 0, got %g", type->name, norm_type);
        return NULL;
    }
    if (!only(ctx, type->name, desc, false, true) ||
        !windows(ctx, type->name, axes, kernel, desc, p.call.kernel_size, p.call.stride))
        return NULL;
    p.call.ceil_mode = desc->ceil_mode;
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(lp_pool *)cn_module_data(m) = p;
    return m;
}

cn_module *cn_nn_lp_pool1d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_lp(ctx, 1, norm_type, kernel, desc);
}
cn_module *cn_nn_lp_pool2d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_lp(ctx, 2, norm_type, kernel, desc);
}
cn_module *cn_nn_lp_pool3d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_lp(ctx, 3, norm_type, kernel, desc);
}

/* ---- MaxUnpool ---- */

typedef struct unpool {
    int axes;
    cn_unpool_desc call;
} unpool;

static bool unpool_forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const unpool *u = cn_module_data(m);
    if (n_in != 2 || n_out > 1)
        return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT,
                        "%s: forward accepts x and indices and returns one tensor; got %d operands and %d results",
                        cn_module_type_of(m)->name, n_in, n_out);
    cn_tensor *y = u->axes == 1   ? cn_max_unpool1d(in[0], in[1], &u->call)
                   : u->axes == 2 ? cn_max_unpool2d(in[0], in[1], &u->call)
                                  : cn_max_unpool3d(in[0], in[1], &u->call);
    if (n_out) out[0] = y;
    return y != NULL;
}

static void unpool_describe(const cn_module *m, char *out, size_t size)
{
    const unpool *u = cn_module_data(m);
    char kernel[72], stride[72], padding[72];
    snprintf(out, size, "kernel %s, stride %s, padding %s",
             cn__by_text(u->call.kernel_size, u->axes, kernel, sizeof kernel),
             cn__by_text(u->call.stride, u->axes, stride, sizeof stride),
             cn__by_text(u->call.padding, u->axes, padding, sizeof padding));
}

#define UNPOOL(name_)                                                                                           \
    {                                                                                                           \
        .name = name_, .forward_all = unpool_forward, .data_bytes = sizeof(unpool), .describe = unpool_describe \
    }
static const cn_module_type unpool_types[] = { UNPOOL("MaxUnpool1d"), UNPOOL("MaxUnpool2d"), UNPOOL("MaxUnpool3d") };

static cn_module *make_unpool(cn_ctx *ctx, int axes, int64_t kernel, const cn_nn_pool_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_module_type *type = &unpool_types[axes - 1];
    const cn_nn_pool_desc none = { 0 };
    unpool u = { .axes = axes };
    if (!desc) desc = &none;
    if (!only(ctx, type->name, desc, true, false) ||
        !windows(ctx, type->name, axes, kernel, desc, u.call.kernel_size, u.call.stride) ||
        !cn__per_axis(ctx, type->name, "padding", axes, desc->paddings, desc->padding, 0, 0, u.call.padding))
        return NULL;
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(unpool *)cn_module_data(m) = u;
    return m;
}

cn_module *cn_nn_max_unpool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_unpool(ctx, 1, kernel, desc);
}
cn_module *cn_nn_max_unpool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_unpool(ctx, 2, kernel, desc);
}
cn_module *cn_nn_max_unpool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc)
{
    return make_unpool(ctx, 3, kernel, desc);
}

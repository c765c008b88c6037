/* BatchNorm and InstanceNorm: normalisation by the statistics of channels, with running statistics for evaluation. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct norm {
    int64_t channels;
    int axes[2];          /* the least and the most axes of x */
    double eps, momentum; /* momentum 0: running statistics do not change */
    bool cumulative;      /* running statistics are the mean over all batches */
    cn_tensor *weight, *bias, *mean, *var, *batches;
} norm;

/* For the operators an eps of 0 means the default. An eps too small to matter stands for none. */
static double eps_of(const norm *n) { return n->eps > 0 ? n->eps : 1e-300; }

static void describe(const cn_module *m, char *out, size_t size)
{
    const norm *n = cn_module_data(m);
    snprintf(out, size, "%lld%s%s", (long long)n->channels, n->weight ? "" : ", not affine",
             n->mean ? "" : ", no running statistics");
}

/* ---- batch norm ---- */

static bool count_batch(const norm *n) { return cn_assign(n->batches, cn_add_s(n->batches, 1)); }

/* The momentum of this batch. In a mean over all batches it is 1 / their number. */
static double momentum_of(const norm *n)
{
    return n->cumulative ? 1 / (double)(cn_item_i64(n->batches) + 1) : n->momentum;
}

static cn_tensor *batch_norm(const norm *n, cn_tensor *x, bool training)
{
    cn_batch_norm_desc desc = { .running_mean = n->mean, .running_var = n->var, .eps = eps_of(n) };
    desc.training = training || !n->mean;
    if (!desc.training || !n->mean) return cn_batch_norm(x, n->weight, n->bias, &desc);
    desc.momentum = momentum_of(n);
    if (n->cumulative && cn_failed(x->ctx)) return NULL; /* the number of batches could not be read */
    if (desc.momentum == 0) desc.running_mean = desc.running_var = NULL;
    cn_tensor *y = cn_batch_norm(x, n->weight, n->bias, &desc);
    cn_no_grad_begin(x->ctx);
    const bool ok = y && count_batch(n);
    cn_no_grad_end(x->ctx);
    return ok ? y : NULL;
}

static cn_tensor *batch_forward(cn_module *m, cn_tensor *x)
{
    const norm *n = cn_module_data(m);
    if (cn_ndim(x) < n->axes[0] || cn_ndim(x) > n->axes[1] || cn_size(x, 1) != n->channels) {
        static const char *const rest[] = { [3] = ") or (N, C, L", [4] = ", H, W", [5] = ", D, H, W" };
        return cn__wrong_shape(x, "x must be (N, C%s) with C = %lld", rest[n->axes[1]], (long long)n->channels);
    }
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, batch_norm(n, x, cn_module_training(m)));
}

/* ---- instance norm ---- */

/* running = (1 - momentum) running + momentum (the mean of the statistic over all instances) */
static bool update(cn_tensor *running, cn_tensor *statistic, double momentum)
{
    cn_tensor *value = cn_mean(statistic, CN_DIMS(0), false); /* (N,C) -> (C) */
    return cn_assign(running, cn_add(cn_mul_s(running, 1 - momentum), cn_mul_s(value, momentum)));
}

static bool update_statistics(const norm *n, cn_tensor *x)
{
    cn_dims space = { .n = cn_ndim(x) - 2, .v = { 2, 3, 4 } };
    cn_no_grad_begin(x->ctx);
    const bool ok = update(n->mean, cn_mean(x, space, false), n->momentum) &&
                    update(n->var, cn_var(x, space, 1, false), n->momentum);
    cn_no_grad_end(x->ctx);
    return ok;
}

static cn_tensor *instance_norm(const norm *n, cn_tensor *x, bool training)
{
    if (!training && n->mean) {
        cn_batch_norm_desc desc = { .running_mean = n->mean, .running_var = n->var, .eps = eps_of(n) };
        return cn_batch_norm(x, n->weight, n->bias, &desc);
    }
    cn_tensor *y = cn_instance_norm(x, n->weight, n->bias, eps_of(n));
    if (!y || !n->mean || n->momentum == 0) return y;
    return update_statistics(n, x) ? y : NULL;
}

static cn_tensor *instance_forward(cn_module *m, cn_tensor *x)
{
    const norm *n = cn_module_data(m);
    const int axes = cn_ndim(x), whole = n->axes[1];
    const bool single = axes == whole - 1; /* (C,...) without N */
    if (axes < n->axes[0] || axes > whole || cn_size(x, single ? 0 : 1) != n->channels) {
        const char *rest = whole == 3 ? "L" : whole == 4 ? "H, W" : "D, H, W";
        return cn__wrong_shape(x, "x must be (N, C, %s) or (C, %s) with C = %lld", rest, rest, (long long)n->channels);
    }
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *y = instance_norm(n, single ? cn_unsqueeze(x, 0) : x, cn_module_training(m));
    return cn_scope_return(x->ctx, s, single ? cn_squeeze(y, CN_DIMS(0)) : y);
}

/* ---- makers ---- */

#define TYPE(name_, forward_)                                                                \
    {                                                                                        \
        .name = name_, .forward = forward_, .data_bytes = sizeof(norm), .describe = describe \
    }
static const cn_module_type batch1 = TYPE("BatchNorm1d", batch_forward);
static const cn_module_type batch2 = TYPE("BatchNorm2d", batch_forward);
static const cn_module_type batch3 = TYPE("BatchNorm3d", batch_forward);
static const cn_module_type instance1 = TYPE("InstanceNorm1d", instance_forward);
static const cn_module_type instance2 = TYPE("InstanceNorm2d", instance_forward);
static const cn_module_type instance3 = TYPE("InstanceNorm3d", instance_forward);

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, norm n, bool affine, bool running)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (n.channels < 1)
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: channels must be > 0, got %lld", type->name, (long long)n.channels);
    if (!(n.momentum <= 1)) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: momentum must be ≤ 1, got %g", type->name, n.momentum);
    if (isnan(n.eps)) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: eps must be a number, got nan", type->name);
    cn_module *m = cn_failed(ctx) ? NULL : cn_module_new(ctx, type);
    if (!m) return NULL;
    const cn_dtype t = ctx->default_dtype;
    const cn_dims shape = CN_DIMS(n.channels);
    cn_scope s = cn_scope_begin(ctx);
    if (affine) {
        n.weight = cn_module_param(m, "weight", cn_ones(ctx, t, shape));
        n.bias = cn_module_param(m, "bias", cn_zeros(ctx, t, shape));
    }
    if (running) {
        n.mean = cn_module_buffer(m, "running_mean", cn_zeros(ctx, t, shape));
        n.var = cn_module_buffer(m, "running_var", cn_ones(ctx, t, shape));
        n.batches = cn_module_buffer(m, "num_batches_tracked", cn_zeros(ctx, CN_I64, CN_SCALAR));
    }
    cn_scope_end(ctx, s);
    *(norm *)cn_module_data(m) = n;
    return cn_module_made(m);
}

static cn_module *make_batch(cn_ctx *ctx, const cn_module_type *type, int64_t channels, int least, int most,
                             const cn_nn_batch_norm_desc *desc)
{
    const cn_nn_batch_norm_desc none = { 0 };
    const cn_nn_batch_norm_desc *d = desc ? desc : &none;
    norm n = { .channels = channels,
               .axes = { least, most },
               .eps = cn__or_usual(d->eps, 1e-5),
               .momentum = cn__or_usual(d->momentum, 0.1),
               .cumulative = d->cumulative };
    return make(ctx, type, n, !d->no_affine, !d->no_running_stats);
}

cn_module *cn_nn_batch_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc)
{
    return make_batch(ctx, &batch1, channels, 2, 3, desc);
}
cn_module *cn_nn_batch_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc)
{
    return make_batch(ctx, &batch2, channels, 4, 4, desc);
}
cn_module *cn_nn_batch_norm3d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc)
{
    return make_batch(ctx, &batch3, channels, 5, 5, desc);
}

static cn_module *make_instance(cn_ctx *ctx, const cn_module_type *type, int64_t channels, int axes,
                                const cn_nn_instance_norm_desc *desc)
{
    const cn_nn_instance_norm_desc none = { 0 };
    const cn_nn_instance_norm_desc *d = desc ? desc : &none;
    norm n = { .channels = channels,
               .axes = { axes + 1, axes + 2 },
               .eps = cn__or_usual(d->eps, 1e-5),
               .momentum = cn__or_usual(d->momentum, 0.1) };
    return make(ctx, type, n, d->affine, d->running_stats);
}

cn_module *cn_nn_instance_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc)
{
    return make_instance(ctx, &instance1, channels, 1, desc);
}
cn_module *cn_nn_instance_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc)
{
    return make_instance(ctx, &instance2, channels, 2, desc);
}
cn_module *cn_nn_instance_norm3d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc)
{
    return make_instance(ctx, &instance3, channels, 3, desc);
}

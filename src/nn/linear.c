/* Linear: y = x Wᵀ + b. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct linear {
    int64_t in, out;
    cn_tensor *weight, *bias;
} linear;

static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const linear *l = cn_module_data(m);
    return cn_linear(x, l->weight, l->bias);
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const linear *l = cn_module_data(m);
    snprintf(out, size, "%lld, %lld%s", (long long)l->in, (long long)l->out, l->bias ? "" : ", no bias");
}

static const cn_module_type linear_type = {
    .name = "Linear", .forward = forward, .data_bytes = sizeof(linear), .describe = describe
};

cn_module *cn_nn_linear(cn_ctx *ctx, int64_t in, int64_t out, const cn_linear_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (in < 0 || out < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Linear: in and out must be ≥ 0, got %lld and %lld", (long long)in,
                 (long long)out);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &linear_type);
    if (!m) return NULL;
    const double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    cn_scope s = cn_scope_begin(ctx);
    linear *l = cn_module_data(m);
    *l = (linear){ .in = in, .out = out };
    l->weight = cn_module_param(m, "weight", cn__uniform(ctx, CN_DIMS(out, in), bound));
    if (!desc || !desc->no_bias) l->bias = cn_module_param(m, "bias", cn__uniform(ctx, CN_DIMS(out), bound));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

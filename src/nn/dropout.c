/* Dropout modules: of elements, of whole channels, and the alpha dropouts, which go with SELU. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct dropout {
    double p;
} dropout;

static void describe(const cn_module *m, char *out, size_t size)
{
    snprintf(out, size, "%g", ((const dropout *)cn_module_data(m))->p);
}

static bool idle(const cn_module *m) { return !cn_module_training(m) || ((const dropout *)cn_module_data(m))->p == 0; }

static cn_tensor *element_forward(cn_module *m, cn_tensor *x)
{
    return cn_dropout(x, ((const dropout *)cn_module_data(m))->p, cn_module_training(m));
}

/* One draw for each channel. `channel` is the axis of channels; the axes before it are the batch. */
static cn_tensor *by_channel(cn_module *m, cn_tensor *x, int channel)
{
    if (idle(m)) return x;
    cn_dims shape = cn_shape(x);
    for (int d = channel + 1; d < shape.n; d++) shape.v[d] = 1;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *mask = cn_dropout(cn_ones(x->ctx, cn_type(x), shape), ((const dropout *)cn_module_data(m))->p, true);
    return cn_scope_return(x->ctx, s, cn_mul(x, mask));
}

static cn_tensor *forward1(cn_module *m, cn_tensor *x)
{
    if (cn_ndim(x) != 2 && cn_ndim(x) != 3) return cn__wrong_shape(x, "x must be (N, C, L) or (C, L)");
    return by_channel(m, x, cn_ndim(x) - 2);
}

static cn_tensor *forward2(cn_module *m, cn_tensor *x)
{
    if (cn_ndim(x) != 4) return cn__wrong_shape(x, "x must be (N, C, H, W)");
    return by_channel(m, x, 1);
}

static cn_tensor *forward3(cn_module *m, cn_tensor *x)
{
    if (cn_ndim(x) != 4 && cn_ndim(x) != 5) return cn__wrong_shape(x, "x must be (N, C, D, H, W) or (C, D, H, W)");
    return by_channel(m, x, cn_ndim(x) - 4);
}

/* A dropped element becomes SELU's limit towards -∞. Then a and b restore mean 0 and variance 1:
   y = a (x keep + limit (1 - keep)) + b. One draw for each element of `shape`, which broadcasts to x. */
static cn_tensor *alpha(cn_module *m, cn_tensor *x, cn_dims shape)
{
    const double p = ((const dropout *)cn_module_data(m))->p, limit = -1.7580993408473766;
    if (idle(m)) return x;
    if (p == 1) return cn_mul_s(x, 0);
    const double a = 1 / sqrt((1 - p) * (1 + p * limit * limit)), b = -a * limit * p;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *keep = cn_bernoulli(cn_full(x->ctx, cn_type(x), shape, 1 - p));
    cn_tensor *dropped = cn_add_s(cn_mul_s(keep, -a * limit), a * limit + b);
    return cn_scope_return(x->ctx, s, cn_add(cn_mul(cn_mul_s(x, a), keep), dropped));
}

static cn_tensor *alpha_forward(cn_module *m, cn_tensor *x) { return alpha(m, x, cn_shape(x)); }

static cn_tensor *feature_alpha_forward(cn_module *m, cn_tensor *x)
{
    cn_dims shape = cn_shape(x);
    if (shape.n < 2) return cn__wrong_shape(x, "x must be (N, C, ...)");
    for (int d = 2; d < shape.n; d++) shape.v[d] = 1;
    return alpha(m, x, shape);
}

#define TYPE(name_, forward_)                                                                   \
    {                                                                                           \
        .name = name_, .forward = forward_, .data_bytes = sizeof(dropout), .describe = describe \
    }
static const cn_module_type element_type = TYPE("Dropout", element_forward);
static const cn_module_type type1 = TYPE("Dropout1d", forward1);
static const cn_module_type type2 = TYPE("Dropout2d", forward2);
static const cn_module_type type3 = TYPE("Dropout3d", forward3);
static const cn_module_type alpha_type = TYPE("AlphaDropout", alpha_forward);
static const cn_module_type feature_alpha_type = TYPE("FeatureAlphaDropout", feature_alpha_forward);

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, double p)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!(p >= 0 && p <= 1)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: p must be from 0 to 1, got %g", type->name, p);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    if (m) ((dropout *)cn_module_data(m))->p = p;
    return m;
}

cn_module *cn_nn_dropout(cn_ctx *ctx, double p) { return make(ctx, &element_type, p); }
cn_module *cn_nn_dropout1d(cn_ctx *ctx, double p) { return make(ctx, &type1, p); }
cn_module *cn_nn_dropout2d(cn_ctx *ctx, double p) { return make(ctx, &type2, p); }
cn_module *cn_nn_dropout3d(cn_ctx *ctx, double p) { return make(ctx, &type3, p); }
cn_module *cn_nn_alpha_dropout(cn_ctx *ctx, double p) { return make(ctx, &alpha_type, p); }
cn_module *cn_nn_feature_alpha_dropout(cn_ctx *ctx, double p) { return make(ctx, &feature_alpha_type, p); }

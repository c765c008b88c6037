/* LayerNorm, RMSNorm, GroupNorm and LocalResponseNorm: normalisation by the statistics of each sample. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct norm {
    cn_dims shape; /* the sizes of the normalised axes; in GroupNorm the number of groups and of channels */
    double eps;    /* negative: the dtype of x decides */
    cn_tensor *weight, *bias;
} norm;

static void describe(const cn_module *m, char *out, size_t size)
{
    const norm *n = cn_module_data(m);
    size_t used = 0;
    for (int d = 0; d < n->shape.n && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? ", " : "", (long long)n->shape.v[d]);
    if (!n->weight && used < size) snprintf(out + used, size - used, ", not affine");
}

/* Whether the last sizes of x are those of the normalised axes. */
static bool fits(const norm *n, cn_tensor *x)
{
    if (cn_ndim(x) < n->shape.n) return false;
    for (int d = 0; d < n->shape.n; d++)
        if (cn_size(x, d - n->shape.n) != n->shape.v[d]) return false;
    return true;
}

static cn_tensor *wrong_sizes(const norm *n, cn_tensor *x)
{
    char sizes[96];
    return cn__wrong_shape(x, "the last sizes of x must be %s",
                           cn__by_text(n->shape.v, n->shape.n, sizes, sizeof sizes));
}

static cn_tensor *layer_forward(cn_module *m, cn_tensor *x)
{
    const norm *n = cn_module_data(m);
    return fits(n, x) ? cn_layer_norm(x, n->shape.n, n->weight, n->bias, n->eps) : wrong_sizes(n, x);
}

static cn_tensor *rms_forward(cn_module *m, cn_tensor *x)
{
    const norm *n = cn_module_data(m);
    const double least = cn_type(x) == CN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return fits(n, x) ? cn_rms_norm(x, n->shape.n, n->weight, n->eps < 0 ? least : n->eps) : wrong_sizes(n, x);
}

static cn_tensor *group_forward(cn_module *m, cn_tensor *x)
{
    const norm *n = cn_module_data(m);
    if (cn_ndim(x) < 2 || cn_size(x, 1) != n->shape.v[1])
        return cn__wrong_shape(x, "x must be (N, %lld, ...)", (long long)n->shape.v[1]);
    return cn_group_norm(x, n->shape.v[0], n->weight, n->bias, n->eps);
}

#define TYPE(name_, forward_)                                                                \
    {                                                                                        \
        .name = name_, .forward = forward_, .data_bytes = sizeof(norm), .describe = describe \
    }
static const cn_module_type layer_type = TYPE("LayerNorm", layer_forward);
static const cn_module_type rms_type = TYPE("RMSNorm", rms_forward);
static const cn_module_type group_type = TYPE("GroupNorm", group_forward);

static bool check_shape(cn_ctx *ctx, const char *who, cn_dims shape)
{
    if (shape.n < 1 || shape.n > CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: shape must have 1 to %d axes, got %d", who, CN_MAX_DIMS, shape.n);
    for (int d = 0; d < shape.n; d++)
        if (shape.v[d] < 1)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: sizes must be > 0, got %lld", who, (long long)shape.v[d]);
    return true;
}

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, const norm *n, cn_dims shape, bool weight, bool bias)
{
    if (isnan(n->eps)) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: eps must be a number, got nan", type->name);
    cn_module *m = cn_failed(ctx) ? NULL : cn_module_new(ctx, type);
    if (!m) return NULL;
    norm *to = cn_module_data(m);
    *to = *n;
    cn_scope s = cn_scope_begin(ctx);
    if (weight) to->weight = cn_module_param(m, "weight", cn_ones(ctx, ctx->default_dtype, shape));
    if (weight && bias) to->bias = cn_module_param(m, "bias", cn_zeros(ctx, ctx->default_dtype, shape));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

cn_module *cn_nn_layer_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc)
{
    const cn_nn_norm_desc d = desc ? *desc : (cn_nn_norm_desc){ 0 };
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || !check_shape(ctx, "LayerNorm", shape)) return NULL;
    const norm n = { .shape = shape, .eps = cn__or_usual(d.eps, 1e-5) };
    return make(ctx, &layer_type, &n, shape, !d.no_affine, !d.no_bias);
}

cn_module *cn_nn_rms_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc)
{
    const cn_nn_norm_desc d = desc ? *desc : (cn_nn_norm_desc){ 0 };
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || !check_shape(ctx, "RMSNorm", shape)) return NULL;
    const norm n = { .shape = shape, .eps = cn__or_usual(d.eps, -1) };
    return make(ctx, &rms_type, &n, shape, !d.no_affine, false);
}

cn_module *cn_nn_group_norm(cn_ctx *ctx, int64_t groups, int64_t channels, const cn_nn_norm_desc *desc)
{
    const cn_nn_norm_desc d = desc ? *desc : (cn_nn_norm_desc){ 0 };
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (groups < 1 || channels < 1 || channels % groups) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "GroupNorm: groups must be > 0 and divide channels, got %lld groups of %lld",
                 (long long)groups, (long long)channels);
        return NULL;
    }
    const norm n = { .shape = CN_DIMS(groups, channels), .eps = cn__or_usual(d.eps, 1e-5) };
    return make(ctx, &group_type, &n, CN_DIMS(channels), !d.no_affine, !d.no_bias);
}

/* ---- local response norm ---- */

typedef struct response {
    int64_t size;
    double alpha, beta, k;
} response;

static cn_tensor *response_forward(cn_module *m, cn_tensor *x)
{
    const response *r = cn_module_data(m);
    return cn_local_response_norm(x, r->size, r->alpha, r->beta, r->k);
}

static void response_describe(const cn_module *m, char *out, size_t size)
{
    const response *r = cn_module_data(m);
    snprintf(out, size, "%lld, alpha %g, beta %g, k %g", (long long)r->size, r->alpha, r->beta, r->k);
}

static const cn_module_type response_type = {
    .name = "LocalResponseNorm", .forward = response_forward, .data_bytes = sizeof(response),
    .describe = response_describe
};

cn_module *cn_nn_local_response_norm(cn_ctx *ctx, int64_t size, double alpha, double beta, double k)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (size < 1 || size > INT32_MAX || isnan(alpha) || isnan(beta) || isnan(k)) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "LocalResponseNorm: size must be from 1 to %d, and alpha, beta and k numbers, got %lld, %g, %g and %g",
                 INT32_MAX, (long long)size, alpha, beta, k);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &response_type);
    if (m) *(response *)cn_module_data(m) = (response){ size, alpha, beta, k };
    return m;
}

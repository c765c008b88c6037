/* Activation modules. Each applies one function, with up to two numbers, an axis or a parameter. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

/* ---- functions composed of operators ---- */

cn_tensor *cn_relu6(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_hardtanh(x, 0, 6) : NULL;
}

cn_tensor *cn_tanhshrink(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, cn_sub(x, cn_tanh(x)));
}

/* x ∓ lambda outside ±lambda, else 0 with gradient 0 */
cn_tensor *cn_softshrink(cn_tensor *x, double lambda)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    if (!(lambda >= 0)) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "softshrink: lambda must be ≥ 0, got %g", lambda);
        return NULL;
    }
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *outside = cn_sub(x, cn_clamp(x, -lambda, lambda));
    return cn_scope_return(x->ctx, s, cn_masked_fill(outside, cn_le_s(cn_abs(x), lambda), 0));
}

cn_tensor *cn_hardshrink(cn_tensor *x, double lambda)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, cn_masked_fill(x, cn_le_s(cn_abs(x), lambda), 0));
}

cn_tensor *cn_threshold(cn_tensor *x, double threshold, double value)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, cn_masked_fill(x, cn_le_s(x, threshold), value));
}

/* a · sigmoid(b), where a and b are the halves of x along the axis */
cn_tensor *cn_glu(cn_tensor *x, int64_t axis)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const int n = cn_ndim(x);
    if (axis < -n || axis >= n || cn_size(x, (int)axis) % 2)
        return cn__wrong_shape(x, "glu: the size along axis %lld must be even", (long long)axis);
    const int64_t half = cn_size(x, (int)axis) / 2;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *gate = cn_sigmoid(cn_narrow(x, axis, half, half));
    return cn_scope_return(x->ctx, s, cn_mul(cn_narrow(x, axis, 0, half), gate));
}

/* max(x, 0) + weight min(x, 0); the gradient at 0 is the weight */
cn_tensor *cn_prelu(cn_tensor *x, cn_tensor *weight)
{
    CN__CALL call = cn__call_tensor(x ? x : weight);
    if (!call.ctx || !cn__of_context(call.ctx, x, __func__, "x") ||
        !cn__of_context(call.ctx, weight, __func__, "the weight"))
        return NULL;
    const int64_t channels = cn_numel(weight);
    if (cn_ndim(weight) > 1 || (channels != 1 && (cn_ndim(x) < 2 || cn_size(x, 1) != channels)))
        return cn__wrong_shape(x, "prelu: with %lld weights, x must be (N, %lld, ...)", (long long)channels,
                               (long long)channels);
    cn_dims shape = { .n = channels == 1 ? 0 : cn_ndim(x) };
    for (int d = 0; d < shape.n; d++) shape.v[d] = d == 1 ? channels : 1;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *below = cn_mul(cn_reshape(weight, shape), cn_masked_fill(x, cn_gt_s(x, 0), 0));
    return cn_scope_return(x->ctx, s, cn_add(cn_relu(x), below));
}

cn_tensor *cn_softmin(cn_tensor *x, int64_t axis)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, cn_softmax(cn_neg(x), axis));
}

/* x above 0, else slope · x */
cn_tensor *cn_rrelu(cn_tensor *x, double lower, double upper, bool training)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    if (!(lower <= upper && isfinite(lower) && isfinite(upper))) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "rrelu: lower must be ≤ upper and both finite, got %g and %g", lower, upper);
        return NULL;
    }
    if (!training) return cn_leaky_relu(x, (lower + upper) / 2);
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *slope = cn_add_s(cn_mul_s(cn_rand_like(x), upper - lower), lower);
    return cn_scope_return(x->ctx, s, cn_where(cn_gt_s(x, 0), x, cn_mul(slope, x)));
}

/* ---- modules without options ---- */

typedef struct plain {
    cn_tensor *(*fn)(cn_tensor *x);
} plain;

static cn_tensor *plain_forward(cn_module *m, cn_tensor *x) { return ((const plain *)cn_module_data(m))->fn(x); }

static cn_module *make_plain(cn_ctx *ctx, const cn_module_type *type, cn_tensor *(*fn)(cn_tensor *x))
{
    CN__CALL call = cn__enter(ctx, NULL);
    cn_module *m = call.ctx ? cn_module_new(ctx, type) : NULL;
    if (m) ((plain *)cn_module_data(m))->fn = fn;
    return m;
}

#define PLAIN(maker, name_, fn_)                                                \
    static const cn_module_type maker##_type = { .name = name_,                 \
                                                 .forward = plain_forward,      \
                                                 .data_bytes = sizeof(plain) }; \
    cn_module *cn_nn_##maker(cn_ctx *ctx) { return make_plain(ctx, &maker##_type, fn_); }
PLAIN(relu, "ReLU", cn_relu)
PLAIN(relu6, "ReLU6", cn_relu6)
PLAIN(selu, "SELU", cn_selu)
PLAIN(gelu, "GELU", cn_gelu)
PLAIN(gelu_tanh, "GELU(tanh)", cn_gelu_tanh)
PLAIN(silu, "SiLU", cn_silu)
PLAIN(mish, "Mish", cn_mish)
PLAIN(sigmoid, "Sigmoid", cn_sigmoid)
PLAIN(log_sigmoid, "LogSigmoid", cn_log_sigmoid)
PLAIN(hardsigmoid, "Hardsigmoid", cn_hardsigmoid)
PLAIN(hardswish, "Hardswish", cn_hardswish)
PLAIN(tanh, "Tanh", cn_tanh)
PLAIN(tanhshrink, "Tanhshrink", cn_tanhshrink)
PLAIN(softsign, "Softsign", cn_softsign)

static cn_tensor *softmax2d(cn_tensor *x)
{
    if (cn_ndim(x) != 3 && cn_ndim(x) != 4) return cn__wrong_shape(x, "x must be (N, C, H, W) or (C, H, W)");
    return cn_softmax(x, -3);
}
PLAIN(softmax2d, "Softmax2d", softmax2d)

/* ---- modules with numbers ---- */

typedef struct numbers {
    int count;
    double v[2];
    cn_tensor *(*fn)(cn_tensor *x, double a, double b);
} numbers;

static cn_tensor *numbers_forward(cn_module *m, cn_tensor *x)
{
    const numbers *n = cn_module_data(m);
    return n->fn(x, n->v[0], n->v[1]);
}

static void numbers_describe(const cn_module *m, char *out, size_t size)
{
    const numbers *n = cn_module_data(m);
    if (n->count == 1) snprintf(out, size, "%g", n->v[0]);
    else snprintf(out, size, "%g, %g", n->v[0], n->v[1]);
}

#define NUMBERS(name_)                                                                                         \
    {                                                                                                          \
        .name = name_, .forward = numbers_forward, .data_bytes = sizeof(numbers), .describe = numbers_describe \
    }

static cn_module *make_numbers(cn_ctx *ctx, const cn_module_type *type, numbers n)
{
    CN__CALL call = cn__enter(ctx, NULL);
    cn_module *m = call.ctx ? cn_module_new(ctx, type) : NULL;
    if (m) *(numbers *)cn_module_data(m) = n;
    return m;
}

/* False, with an error, unless `holds`: "ELU: alpha must be finite, got nan". */
static bool require(cn_ctx *ctx, const cn_module_type *type, bool holds, const char *rule, double got)
{
    CN__CALL call = cn__enter(ctx, NULL);
    return call.ctx && (holds || cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s, got %g", type->name, rule, got));
}

static cn_tensor *leaky_relu(cn_tensor *x, double slope, double unused)
{
    return (void)unused, cn_leaky_relu(x, slope);
}
static cn_tensor *elu(cn_tensor *x, double alpha, double unused) { return (void)unused, cn_elu(x, alpha); }
static cn_tensor *celu(cn_tensor *x, double alpha, double unused) { return (void)unused, cn_celu(x, alpha); }

static cn_tensor *softshrink(cn_tensor *x, double lambda, double unused)
{
    return (void)unused, cn_softshrink(x, lambda);
}
static cn_tensor *hardshrink(cn_tensor *x, double lambda, double unused)
{
    return (void)unused, cn_hardshrink(x, lambda);
}

static cn_tensor *rrelu_forward(cn_module *m, cn_tensor *x)
{
    const numbers *n = cn_module_data(m);
    return cn_rrelu(x, n->v[0], n->v[1], cn_module_training(m));
}

static const cn_module_type rrelu_type = {
    .name = "RReLU", .forward = rrelu_forward, .data_bytes = sizeof(numbers), .describe = numbers_describe
};
static const cn_module_type leaky_relu_type = NUMBERS("LeakyReLU");
static const cn_module_type elu_type = NUMBERS("ELU");
static const cn_module_type celu_type = NUMBERS("CELU");
static const cn_module_type hardtanh_type = NUMBERS("Hardtanh");
static const cn_module_type softplus_type = NUMBERS("Softplus");
static const cn_module_type softshrink_type = NUMBERS("Softshrink");
static const cn_module_type hardshrink_type = NUMBERS("Hardshrink");
static const cn_module_type threshold_type = NUMBERS("Threshold");

cn_module *cn_nn_leaky_relu(cn_ctx *ctx, double slope)
{
    if (!require(ctx, &leaky_relu_type, isfinite(slope), "slope must be finite", slope)) return NULL;
    return make_numbers(ctx, &leaky_relu_type, (numbers){ 1, { slope }, leaky_relu });
}
cn_module *cn_nn_rrelu(cn_ctx *ctx, double lower, double upper)
{
    if (!require(ctx, &rrelu_type, isfinite(upper), "upper must be finite", upper) ||
        !require(ctx, &rrelu_type, isfinite(lower) && lower <= upper, "lower must be finite and ≤ upper", lower))
        return NULL;
    return make_numbers(ctx, &rrelu_type, (numbers){ 2, { lower, upper }, NULL });
}
cn_module *cn_nn_elu(cn_ctx *ctx, double alpha)
{
    if (!require(ctx, &elu_type, isfinite(alpha), "alpha must be finite", alpha)) return NULL;
    return make_numbers(ctx, &elu_type, (numbers){ 1, { alpha }, elu });
}
cn_module *cn_nn_celu(cn_ctx *ctx, double alpha)
{
    if (!require(ctx, &celu_type, isfinite(alpha) && alpha != 0, "alpha must be finite and not 0", alpha)) return NULL;
    return make_numbers(ctx, &celu_type, (numbers){ 1, { alpha }, celu });
}
cn_module *cn_nn_hardtanh(cn_ctx *ctx, double low, double high)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!(low < high)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Hardtanh: low must be < high, got %g and %g", low, high);
        return NULL;
    }
    return make_numbers(ctx, &hardtanh_type, (numbers){ 2, { low, high }, cn_hardtanh });
}
cn_module *cn_nn_softplus(cn_ctx *ctx, double beta, double threshold)
{
    if (!require(ctx, &softplus_type, isfinite(beta) && beta != 0, "beta must be finite and not 0", beta)) return NULL;
    return make_numbers(ctx, &softplus_type, (numbers){ 2, { beta, threshold }, cn_softplus });
}
cn_module *cn_nn_softshrink(cn_ctx *ctx, double lambda)
{
    if (!require(ctx, &softshrink_type, lambda >= 0, "lambda must be ≥ 0", lambda)) return NULL;
    return make_numbers(ctx, &softshrink_type, (numbers){ 1, { lambda }, softshrink });
}
cn_module *cn_nn_hardshrink(cn_ctx *ctx, double lambda)
{
    if (!require(ctx, &hardshrink_type, !isnan(lambda), "lambda must be a number", lambda)) return NULL;
    return make_numbers(ctx, &hardshrink_type, (numbers){ 1, { lambda }, hardshrink });
}
cn_module *cn_nn_threshold(cn_ctx *ctx, double threshold, double value)
{
    if (!require(ctx, &threshold_type, !isnan(threshold), "threshold must be a number", threshold)) return NULL;
    return make_numbers(ctx, &threshold_type, (numbers){ 2, { threshold, value }, cn_threshold });
}

/* ---- modules with an axis ---- */

typedef struct along {
    int64_t axis;
} along;

static void along_describe(const cn_module *m, char *out, size_t size)
{
    snprintf(out, size, "axis %lld", (long long)((const along *)cn_module_data(m))->axis);
}

static cn_tensor *softmax_forward(cn_module *m, cn_tensor *x)
{
    return cn_softmax(x, ((const along *)cn_module_data(m))->axis);
}
static cn_tensor *log_softmax_forward(cn_module *m, cn_tensor *x)
{
    return cn_log_softmax(x, ((const along *)cn_module_data(m))->axis);
}

static cn_tensor *softmin_forward(cn_module *m, cn_tensor *x)
{
    return cn_softmin(x, ((const along *)cn_module_data(m))->axis);
}

static cn_tensor *glu_forward(cn_module *m, cn_tensor *x)
{
    return cn_glu(x, ((const along *)cn_module_data(m))->axis);
}

#define ALONG(name_, forward_)                                                                      \
    {                                                                                               \
        .name = name_, .forward = forward_, .data_bytes = sizeof(along), .describe = along_describe \
    }
static const cn_module_type softmax_type = ALONG("Softmax", softmax_forward);
static const cn_module_type log_softmax_type = ALONG("LogSoftmax", log_softmax_forward);
static const cn_module_type softmin_type = ALONG("Softmin", softmin_forward);
static const cn_module_type glu_type = ALONG("GLU", glu_forward);

static cn_module *make_along(cn_ctx *ctx, const cn_module_type *type, int64_t axis)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (axis < -CN_MAX_DIMS || axis >= CN_MAX_DIMS) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: axis must be from %d to %d, got %lld", type->name, -CN_MAX_DIMS,
                 CN_MAX_DIMS - 1, (long long)axis);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    if (m) ((along *)cn_module_data(m))->axis = axis;
    return m;
}

cn_module *cn_nn_softmax(cn_ctx *ctx, int64_t axis) { return make_along(ctx, &softmax_type, axis); }
cn_module *cn_nn_log_softmax(cn_ctx *ctx, int64_t axis) { return make_along(ctx, &log_softmax_type, axis); }
cn_module *cn_nn_softmin(cn_ctx *ctx, int64_t axis) { return make_along(ctx, &softmin_type, axis); }
cn_module *cn_nn_glu(cn_ctx *ctx, int64_t axis) { return make_along(ctx, &glu_type, axis); }

/* ---- the module with a parameter ---- */

typedef struct prelu {
    int64_t channels;
    cn_tensor *weight;
} prelu;

static cn_tensor *prelu_forward(cn_module *m, cn_tensor *x)
{
    return cn_prelu(x, ((const prelu *)cn_module_data(m))->weight);
}

static void prelu_describe(const cn_module *m, char *out, size_t size)
{
    snprintf(out, size, "%lld", (long long)((const prelu *)cn_module_data(m))->channels);
}

static const cn_module_type prelu_type = {
    .name = "PReLU", .forward = prelu_forward, .data_bytes = sizeof(prelu), .describe = prelu_describe
};

cn_module *cn_nn_prelu(cn_ctx *ctx, int64_t channels, double slope)
{
    if (!require(ctx, &prelu_type, channels >= 1, "channels must be > 0", (double)channels) ||
        !require(ctx, &prelu_type, isfinite(slope), "slope must be finite", slope))
        return NULL;
    CN__CALL call = cn__enter(ctx, NULL);
    cn_module *m = call.ctx ? cn_module_new(ctx, &prelu_type) : NULL;
    if (!m) return NULL;
    prelu *p = cn_module_data(m);
    cn_scope s = cn_scope_begin(ctx);
    p->channels = channels;
    p->weight = cn_module_param(m, "weight", cn_full(ctx, ctx->default_dtype, CN_DIMS(channels), slope));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

/* Convolution modules over one, two and three axes, and transposed ones. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct conv {
    int64_t in, out;
    int axes;
    int64_t kernel[3], before[3], after[3]; /* before, after: padding of each axis */
    cn_conv_desc call;                      /* the options of the operator */
    cn_pad_mode mode;
    bool pads; /* cn_pad pads x first: with values other than 0, or with more on one side than on the other */
    cn_tensor *weight, *bias;
    cn_tensor *(*apply)(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
} conv;

static cn_tensor *padded(const conv *c, cn_tensor *x)
{
    cn_dims pad = { .n = 2 * c->axes };
    for (int d = 0; d < c->axes; d++) { /* last axis first */
        pad.v[2 * d] = c->before[c->axes - 1 - d];
        pad.v[2 * d + 1] = c->after[c->axes - 1 - d];
    }
    return cn_pad(x, pad, c->mode, 0);
}

static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const conv *c = cn_module_data(m);
    if (!c->pads) return c->apply(x, c->weight, c->bias, &c->call);
    if (cn_ndim(x) != c->axes + 1 && cn_ndim(x) != c->axes + 2)
        return cn__wrong_shape(x, "x must have %d or %d axes", c->axes + 1, c->axes + 2);
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, c->apply(padded(c, x), c->weight, c->bias, &c->call));
}

/* Appends ", name 2x1" if a number differs from the default. */
static size_t option(char *out, size_t size, size_t used, const char *name, const int64_t *v, int axes, int64_t usual)
{
    char text[72];
    bool any = false;
    for (int d = 0; d < axes; d++) any = any || v[d] != usual;
    if (!any || used >= size) return used;
    return used + (size_t)snprintf(out + used, size - used, ", %s %s", name, cn__by_text(v, axes, text, sizeof text));
}

static void describe(const cn_module *m, char *out, size_t size)
{
    static const char *const mode[] = { "", ", reflect", ", replicate", ", circular" };
    const conv *c = cn_module_data(m);
    char kernel[72];
    size_t n = (size_t)snprintf(out, size, "%lld, %lld, kernel %s", (long long)c->in, (long long)c->out,
                                cn__by_text(c->kernel, c->axes, kernel, sizeof kernel));
    n = option(out, size, n, "stride", c->call.stride, c->axes, 1);
    n = option(out, size, n, "padding", c->before, c->axes, 0);
    n = option(out, size, n, "output padding", c->call.output_padding, c->axes, 0);
    n = option(out, size, n, "dilation", c->call.dilation, c->axes, 1);
    n = option(out, size, n, "groups", &c->call.groups, 1, 1);
    if (n < size) snprintf(out + n, size - n, "%s%s", mode[c->mode], c->bias ? "" : ", no bias");
}

/* ---- makers ---- */

typedef struct kind {
    cn_module_type type;
    int axes;
    bool transposed;
    cn_tensor *(*apply)(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc);
} kind;

#define KIND(name_, axes_, transposed_, apply_)                                                                      \
    {                                                                                                                \
        { .name = name_, .forward = forward, .data_bytes = sizeof(conv), .describe = describe }, axes_, transposed_, \
            apply_                                                                                                   \
    }
static const kind conv1d = KIND("Conv1d", 1, false, cn_conv1d);
static const kind conv2d = KIND("Conv2d", 2, false, cn_conv2d);
static const kind conv3d = KIND("Conv3d", 3, false, cn_conv3d);
static const kind conv_transpose1d = KIND("ConvTranspose1d", 1, true, cn_conv_transpose1d);
static const kind conv_transpose2d = KIND("ConvTranspose2d", 2, true, cn_conv_transpose2d);
static const kind conv_transpose3d = KIND("ConvTranspose3d", 3, true, cn_conv_transpose3d);

static bool check_channels(cn_ctx *ctx, const char *who, int64_t in, int64_t out, int64_t groups)
{
    if (in < 1 || out < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: in and out must be > 0, got %lld and %lld channels", who,
                        (long long)in, (long long)out);
    if (groups < 1 || in % groups || out % groups)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "%s: groups must be > 0 and divide the channels, got %lld groups for %lld and %lld channels",
                        who, (long long)groups, (long long)in, (long long)out);
    return true;
}

/* Padding that keeps the size: dilation (kernel - 1) elements in all; if that is odd, one more after than before. */
static bool pad_to_same(cn_ctx *ctx, const kind *k, conv *c)
{
    for (int d = 0; d < k->axes; d++) {
        if (c->before[d])
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: padding must be 0 with .same, got %lld", k->type.name,
                            (long long)c->before[d]);
        if (c->call.stride[d] != 1)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: stride must be 1 with .same, got %lld", k->type.name,
                            (long long)c->call.stride[d]);
        const int64_t all = c->call.dilation[d] * (c->kernel[d] - 1);
        c->before[d] = all / 2;
        c->after[d] = all - all / 2;
    }
    return true;
}

static bool set_padding(cn_ctx *ctx, const kind *k, const cn_nn_conv_desc *desc, conv *c)
{
    memcpy(c->after, c->before, sizeof c->after);
    if (k->transposed && (desc->same || desc->padding_mode != CN_PAD_CONSTANT))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "%s: a transposed convolution pads with zeros: it has no .same, and padding_mode must be "
                        "CN_PAD_CONSTANT, got %d",
                        k->type.name, (int)desc->padding_mode);
    if (desc->padding_mode < CN_PAD_CONSTANT || desc->padding_mode > CN_PAD_CIRCULAR)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: padding_mode must be from %d to %d, got %d", k->type.name,
                        CN_PAD_CONSTANT, CN_PAD_CIRCULAR, (int)desc->padding_mode);
    if (desc->same && !pad_to_same(ctx, k, c)) return false;
    c->mode = desc->padding_mode;
    for (int d = 0; d < k->axes; d++)
        c->pads = c->pads || c->before[d] != c->after[d] || (c->mode != CN_PAD_CONSTANT && c->before[d]);
    if (!c->pads) memcpy(c->call.padding, c->before, sizeof c->before);
    return true;
}

static bool set_options(cn_ctx *ctx, const kind *k, int64_t kernel, const cn_nn_conv_desc *d, conv *c)
{
    const char *who = k->type.name;
    const int n = k->axes;
    if (!cn__per_axis(ctx, who, "kernel", n, d->kernels, kernel, 0, 1, c->kernel) ||
        !cn__per_axis(ctx, who, "stride", n, d->strides, d->stride, 1, 1, c->call.stride) ||
        !cn__per_axis(ctx, who, "dilation", n, d->dilations, d->dilation, 1, 1, c->call.dilation) ||
        !cn__per_axis(ctx, who, "padding", n, d->paddings, d->padding, 0, 0, c->before) ||
        !cn__per_axis(ctx, who, "output_padding", n, d->output_paddings, d->output_padding, 0, 0,
                      c->call.output_padding))
        return false;
    for (int a = 0; a < n; a++) {
        const int64_t extra = c->call.output_padding[a];
        if (extra && !k->transposed)
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "%s: output_padding must be 0 unless the convolution is transposed, got %lld", who,
                            (long long)extra);
        if (extra && extra >= c->call.stride[a] && extra >= c->call.dilation[a])
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "%s: output_padding must be < the stride or the dilation (%lld, %lld), got %lld", who,
                            (long long)c->call.stride[a], (long long)c->call.dilation[a], (long long)extra);
    }
    c->call.groups = d->groups ? d->groups : 1;
    return check_channels(ctx, who, c->in, c->out, c->call.groups) && set_padding(ctx, k, d, c);
}

/* PyTorch's fan_in is the second size of the weight times the size of the kernel, transposed or not. */
static void make_parameters(cn_ctx *ctx, cn_module *m, const kind *k, bool no_bias, conv *c)
{
    const int64_t groups = c->call.groups;
    cn_dims shape = k->transposed ? CN_DIMS(c->in, c->out / groups) : CN_DIMS(c->out, c->in / groups);
    double fan = (double)shape.v[1];
    for (int d = 0; d < k->axes; d++) {
        shape.v[shape.n++] = c->kernel[d];
        fan *= (double)c->kernel[d];
    }
    c->weight = cn_module_param(m, "weight", cn__uniform(ctx, shape, 1 / sqrt(fan)));
    if (!no_bias) c->bias = cn_module_param(m, "bias", cn__uniform(ctx, CN_DIMS(c->out), 1 / sqrt(fan)));
}

static cn_module *make(cn_ctx *ctx, const kind *k, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_nn_conv_desc none = { 0 };
    if (!desc) desc = &none;
    conv c = { .in = in, .out = out, .axes = k->axes, .apply = k->apply };
    if (!set_options(ctx, k, kernel, desc, &c)) return NULL;
    cn_module *m = cn_module_new(ctx, &k->type);
    if (!m) return NULL;
    cn_scope s = cn_scope_begin(ctx);
    make_parameters(ctx, m, k, desc->no_bias, &c);
    cn_scope_end(ctx, s);
    *(conv *)cn_module_data(m) = c;
    return cn_module_made(m);
}

cn_module *cn_nn_conv1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv1d, in, out, kernel, desc);
}
cn_module *cn_nn_conv2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv2d, in, out, kernel, desc);
}
cn_module *cn_nn_conv3d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv3d, in, out, kernel, desc);
}
cn_module *cn_nn_conv_transpose1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv_transpose1d, in, out, kernel, desc);
}
cn_module *cn_nn_conv_transpose2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv_transpose2d, in, out, kernel, desc);
}
cn_module *cn_nn_conv_transpose3d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc)
{
    return make(ctx, &conv_transpose3d, in, out, kernel, desc);
}

/* The convolutions that users call, over one to three axes, with a bias. All are computed as conv over three axes.

       conv1d, conv2d, conv3d              x (N, C, ...) or (C, ...), weight (O, C/groups, ...), bias (O)
       conv_transpose1d, .. 3d             x (N, C, ...) or (C, ...), weight (C, O/groups, ...), bias (O) */
#include "ops/contract/contract.h"

/* One call: the operands as given, and with axes of size 1 added. */
typedef struct call {
    cn_ctx *ctx;
    const char *who;
    int axes;
    bool batch;            /* x has an axis for images */
    int turns;             /* axes that stand first and were last */
    cn_tensor *x, *weight; /* with five axes */
    cn_tensor *bias;
    cn__conv_attrs a;
} call;

static int64_t or_one(int64_t v) { return v ? v : 1; }

/* Inserts axes of size 1 before the last `axes` axes, so that there are five. */
static cn_tensor *with_axes(cn_tensor *x, int axes)
{
    for (; axes < 3; axes++) x = cn_unsqueeze(x, 2);
    return x;
}

static bool open_call(call *c, cn_tensor *const *in, const cn_conv_desc *desc)
{
    const cn_layout *x = cn__layout(in[0]), *w = cn__layout(in[1]);
    char s[96], t[96];
    c->batch = x->ndim == c->axes + 2;
    if ((x->ndim != c->axes + 1 && !c->batch) || w->ndim != c->axes + 2)
        return cn__fail(c->ctx, CN_BAD_SHAPE, "%s: the input must have %d or %d axes and the weight %d, got %s and %s",
                        c->who, c->axes + 1, c->axes + 2, c->axes + 2, cn__shape_text(x, s, sizeof s),
                        cn__shape_text(w, t, sizeof t));
    c->a = (cn__conv_attrs){ { 1, 1, 1 }, { 0 }, { 1, 1, 1 }, or_one(desc->groups), { 0 } };
    for (int i = 0, d = 3 - c->axes; d < 3; i++, d++) {
        c->a.stride[d] = or_one(desc->stride[i]);
        c->a.padding[d] = desc->padding[i];
        c->a.dilation[d] = or_one(desc->dilation[i]);
    }
    c->x = with_axes(c->batch ? in[0] : cn_unsqueeze(in[0], 0), c->axes);
    c->weight = with_axes(in[1], c->axes);
    c->bias = in[2];
    return c->x && c->weight;
}

/* Kernels run along the last axis. If it has one place, which one tap sees, it becomes the first: this moves nothing in
   memory. */
static bool turn_axes(call *c)
{
    while (c->turns < 2) {
        const int64_t *x = cn__layout(c->x)->shape, *w = cn__layout(c->weight)->shape;
        if (x[4] != 1 || w[4] != 1 || c->a.padding[2] != 0 || x[2] * x[3] == 1) return true;
        cn__conv_attrs a = c->a;
        for (int d = 0; d < 3; d++) {
            a.stride[d] = c->a.stride[(d + 2) % 3];
            a.padding[d] = c->a.padding[(d + 2) % 3];
            a.dilation[d] = c->a.dilation[(d + 2) % 3];
        }
        a.stride[0] = a.dilation[0] = 1; /* of one place and one tap */
        c->a = a;
        c->x = cn_unsqueeze(cn_squeeze(c->x, CN_DIMS(4)), 2);
        c->weight = cn_unsqueeze(cn_squeeze(c->weight, CN_DIMS(4)), 2);
        if (!c->x || !c->weight) return false;
        c->turns++;
    }
    return true;
}

static bool bias_fits(const call *c, int64_t channels)
{
    if (!c->bias) return true;
    const cn_layout *b = cn__layout(c->bias);
    char s[96];
    return (b->ndim == 1 && b->shape[0] == channels) ||
           cn__fail(c->ctx, CN_BAD_SHAPE, "%s: bias must have shape [%lld], got %s", c->who, (long long)channels,
                    cn__shape_text(b, s, sizeof s));
}

/* Adds the bias and removes the axes that x did not have. The bias comes first, so that the addition becomes the
   epilogue of the convolution. */
static cn_tensor *close_call(const call *c, cn_tensor *y)
{
    cn_dims extra = { 0, { 0 } };
    if (!c->batch) extra.v[extra.n++] = 0;
    for (int d = 0; d < 3 - c->axes; d++) extra.v[extra.n++] = 2 + d;
    if (c->bias) y = cn_add(y, cn_reshape(c->bias, CN_DIMS(cn__layout(c->bias)->shape[0], 1, 1, 1)));
    for (int i = 0; i < c->turns; i++) y = cn_unsqueeze(cn_squeeze(y, CN_DIMS(2)), 4);
    return extra.n ? cn_squeeze(y, extra) : y;
}

static cn_tensor *convolve(cn_ctx *ctx, const char *who, int axes, cn_tensor *const *in, const cn_conv_desc *desc)
{
    call c = { .ctx = ctx, .who = who, .axes = axes };
    cn__conv_sizes s;
    if (!open_call(&c, in, desc) ||
        !cn__conv_measure(ctx, who, &c.a, cn__layout(c.x)->shape, cn__layout(c.weight)->shape, &s) ||
        !bias_fits(&c, s.groups * s.o) || !turn_axes(&c))
        return NULL;
    return close_call(&c, cn_apply(&cn__op_conv, (cn_tensor *[]){ c.x, c.weight }, 2, &c.a, NULL));
}

/* ---- transposed: the input gradient of a convolution that has x as its result ---- */

/* Sets the size of the result: (x - 1)·stride - 2·padding + (kernel - 1)·dilation + 1 + output_padding. A convolution
   of stride s has a result of the same size for s input sizes; output_padding chooses one of them. If it is larger
   than stride - 1, that convolution has `beyond` more positions than x: x is padded with as many zeros. */
static bool transposed_size(call *c, int d, int64_t output_padding, int64_t *beyond)
{
    const long long x = cn__layout(c->x)->shape[2 + d], kernel = cn__layout(c->weight)->shape[2 + d],
                    extra = output_padding;
    const long long stride = c->a.stride[d], dilation = c->a.dilation[d], padding = c->a.padding[d];
    const long long limit = INT32_MAX; /* then no product below overflows */
    if (stride < 1 || stride > limit)
        return cn__fail(c->ctx, CN_BAD_ARGUMENT, "%s: stride must be from 1 to %lld, got %lld", c->who, limit, stride);
    if (dilation < 1 || dilation > limit)
        return cn__fail(c->ctx, CN_BAD_ARGUMENT, "%s: dilation must be from 1 to %lld, got %lld", c->who, limit,
                        dilation);
    if (padding < 0 || padding > limit)
        return cn__fail(c->ctx, CN_BAD_ARGUMENT, "%s: padding must be from 0 to %lld, got %lld", c->who, limit,
                        padding);
    if (x < 1 || x > limit || kernel < 1 || kernel > limit)
        return cn__fail(c->ctx, CN_BAD_SHAPE, "%s: input and kernel must have sizes from 1 to %lld, got %lld and %lld",
                        c->who, limit, x, kernel);
    if (extra < 0 || (extra >= stride && extra >= dilation))
        return cn__fail(c->ctx, CN_BAD_ARGUMENT,
                        "%s: output_padding must be ≥ 0 and < the stride or the dilation (%lld, %lld), got %lld",
                        c->who, stride, dilation, extra);
    *beyond = extra / stride;
    c->a.size[d] = (x - 1) * stride - 2 * padding + (kernel - 1) * dilation + 1 + extra;
    if (c->a.size[d] < 0)
        return cn__fail(c->ctx, CN_BAD_SHAPE,
                        "%s: the result must have a size ≥ 0, got %lld from input %lld, kernel %lld and padding %lld",
                        c->who, (long long)c->a.size[d], x, kernel, padding);
    return true;
}

static cn_tensor *convolve_transposed(cn_ctx *ctx, const char *who, int axes, cn_tensor *const *in,
                                      const cn_conv_desc *desc)
{
    call c = { .ctx = ctx, .who = who, .axes = axes };
    if (!open_call(&c, in, desc)) return NULL;
    const int64_t *x = cn__layout(c.x)->shape, *w = cn__layout(c.weight)->shape;
    if (c.a.groups < 1 || c.a.groups > INT32_MAX || w[1] > INT32_MAX || x[1] != w[0] || x[1] % c.a.groups) {
        cn__fail(ctx, CN_BAD_SHAPE,
                 "%s: the input must have as many channels as the weight, %lld, and groups must divide them, got %lld "
                 "channels and %lld groups",
                 who, (long long)w[0], (long long)x[1], (long long)c.a.groups);
        return NULL;
    }
    cn_dims pad = { 6, { 0 } }; /* last axis first, before and after */
    bool empty[3] = { false };
    for (int d = 3 - axes; d < 3; d++) {
        if (!transposed_size(&c, d, desc->output_padding[d - (3 - axes)], &pad.v[(2 - d) * 2 + 1])) return NULL;
        empty[d] = c.a.size[d] == 0;
        /* No convolution has an input of size 0. A result of that size is cut from the result of less padding. */
        if (empty[d]) c.a.size[d] = 2, c.a.padding[d]--;
    }
    for (int d = 0; d < 3 - axes; d++) c.a.size[d] = 1;
    const int64_t as_input[5] = { x[0], w[1] * c.a.groups, c.a.size[0], c.a.size[1], c.a.size[2] };
    cn__conv_sizes s;
    if (!cn__conv_measure(ctx, who, &c.a, as_input, w, &s) || !bias_fits(&c, as_input[1])) return NULL;
    if (pad.v[1] || pad.v[3] || pad.v[5]) c.x = cn_pad(c.x, pad, CN_PAD_CONSTANT, 0);
    cn_tensor *y = cn_apply(&cn__op_conv_input_grad, (cn_tensor *[]){ c.x, c.weight }, 2, &c.a, NULL);
    for (int d = 0; d < 3; d++)
        if (empty[d]) y = cn_narrow(y, 2 + d, 0, 0);
    return close_call(&c, y);
}

/* ---- the operators ---- */

static cn_tensor *compose1(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve(ctx, "conv1d", 1, in, attrs);
}
static cn_tensor *compose2(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve(ctx, "conv2d", 2, in, attrs);
}
static cn_tensor *compose3(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve(ctx, "conv3d", 3, in, attrs);
}
static cn_tensor *compose_transpose1(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve_transposed(ctx, "conv_transpose1d", 1, in, attrs);
}
static cn_tensor *compose_transpose2(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve_transposed(ctx, "conv_transpose2d", 2, in, attrs);
}
static cn_tensor *compose_transpose3(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return convolve_transposed(ctx, "conv_transpose3d", 3, in, attrs);
}

/* The fields that the records share. */
#define CONVOLUTION .kind = CN_COMPOSITE, .n_in = 3, .n_out = 1, .optional = 1u << 2, .attr_size = sizeof(cn_conv_desc)
#define DESC(...) \
    .attrs = &(const cn_conv_desc) { __VA_ARGS__ }

const cn_op cn__op_conv1d = {
    .call = "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
            "int[1] dilation=1, int groups=1) -> Tensor",
    .name = "conv1d",
    .doc = "Convolution over one axis.",
    CONVOLUTION,
    .compose = compose1,
    .onnx = "Conv",
    CN_CASES({ CN_IN(CN_S(2, 3, 7), CN_S(4, 3, 3), CN_S(4)), DESC(.groups = 1) },
             { CN_IN(CN_S(4, 9), CN_S(6, 2, 2), CN_ABSENT), DESC({ 2 }, { 1 }, { 3 }, 2, { 0 }) },
             { CN_IN(CN_S(0, 3, 7), CN_S(4, 3, 3), CN_S(4)), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 6, 300), CN_S(8, 6, 5), CN_S(8)), DESC(.padding = { 2 }) }),
};

const cn_op cn__op_conv2d = {
    .call = "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
            "int[2] dilation=1, int groups=1) -> Tensor",
    .name = "conv2d",
    .doc = "Convolution over two axes.",
    CONVOLUTION,
    .compose = compose2,
    .onnx = "Conv",
    CN_CASES({ CN_IN(CN_S(2, 3, 5, 4), CN_S(2, 3, 3, 3), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(4, 6, 7), CN_S(4, 1, 3, 2), CN_S(4)), DESC({ 2, 1 }, { 2, 1 }, { 1, 2 }, 4, { 0 }) },
             { CN_IN(CN_S(1, 2, 3, 3), CN_S(3, 2, 1, 1), CN_ABSENT), DESC(.groups = 1) },
             { CN_IN(CN_S(0, 2, 3, 3), CN_S(3, 2, 2, 2), CN_S(3)), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 8, 28, 28), CN_S(12, 8, 5, 5), CN_S(12)), DESC(.stride = { 2, 2 }, .padding = { 2, 2 }) },
             { CN_IN(CN_S(2, 4, 12, 13), CN_S(9, 4, 3, 3), CN_S(9)), DESC(.padding = { 1, 1 }) },
             { CN_IN(CN_S(1, 4, 33, 35), CN_S(9, 4, 3, 3), CN_S(9)), DESC(.padding = { 1, 1 }) }), /* several chunks */
};

const cn_op cn__op_conv3d = {
    .call = "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
            "int[3] dilation=1, int groups=1) -> Tensor",
    .name = "conv3d",
    .doc = "Convolution over three axes.",
    CONVOLUTION,
    .compose = compose3,
    .onnx = "Conv",
    CN_CASES({ CN_IN(CN_S(1, 2, 3, 4, 3), CN_S(2, 2, 2, 3, 2), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 4, 3, 4), CN_S(2, 1, 2, 2, 3), CN_ABSENT),
               DESC({ 1, 2, 1 }, { 1, 0, 2 }, { 2, 1, 1 }, 2, { 0 }) },
             { CN_IN(CN_S(0, 2, 3, 4, 3), CN_S(2, 2, 2, 3, 2), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 3, 9, 9, 9), CN_S(4, 3, 3, 3, 3), CN_S(4)), DESC(.padding = { 1, 1, 1 }) }),
};

const cn_op cn__op_conv_transpose1d = {
    .call = "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
            "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    .name = "conv_transpose1d",
    .doc = "Transposed convolution over one axis.",
    CONVOLUTION,
    .compose = compose_transpose1,
    .onnx = "ConvTranspose",
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(3, 2, 3), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(4, 5), CN_S(4, 3, 4), CN_S(6)), DESC({ 3 }, { 1 }, { 2 }, 2, { 2 }) },
             { CN_IN(CN_S(1, 2, 3), CN_S(2, 2, 2), CN_S(2)), DESC({ 1 }, { 0 }, { 3 }, 1, { 2 }) },
             { CN_IN(CN_S(2, 2, 5), CN_S(2, 3, 3), CN_S(3)), DESC({ 1 }, { 1 }, { 2 }, 1, { 1 }) },
             { CN_IN(CN_S(2, 2, 4), CN_S(2, 1, 3), CN_S(2)), DESC({ 2 }, { 2 }, { 6 }, 2, { 5 }) },
             { CN_IN(CN_S(2, 3, 2), CN_S(3, 2, 1), CN_S(2)), DESC(.padding = { 1 }) }, /* no elements */
             { CN_IN(CN_S(0, 3, 4), CN_S(3, 2, 3), CN_ABSENT), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 8, 150), CN_S(8, 6, 4), CN_S(6)), DESC(.stride = { 2 }, .padding = { 1 }) }),
};

const cn_op cn__op_conv_transpose2d = {
    .call = "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
            "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    .name = "conv_transpose2d",
    .doc = "Transposed convolution over two axes.",
    CONVOLUTION,
    .compose = compose_transpose2,
    .onnx = "ConvTranspose",
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 3), CN_S(3, 2, 3, 2), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(4, 3, 4), CN_S(4, 1, 3, 3), CN_S(2)), DESC({ 2, 3 }, { 1, 0 }, { 1, 2 }, 2, { 1, 2 }) },
             { CN_IN(CN_S(2, 2, 4, 3), CN_S(2, 2, 3, 2), CN_S(2)), DESC({ 1, 2 }, { 1, 0 }, { 2, 4 }, 1, { 1, 3 }) },
             { CN_IN(CN_S(2, 3, 2, 4), CN_S(3, 2, 1, 2), CN_S(2)), DESC(.padding = { 1, 1 }) }, /* no elements */
             { CN_IN(CN_S(0, 3, 4, 3), CN_S(3, 2, 3, 2), CN_ABSENT), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 8, 11, 10), CN_S(8, 6, 4, 4), CN_S(6)), DESC(.stride = { 2, 2 }, .padding = { 1, 1 }) }),
};

const cn_op cn__op_conv_transpose3d = {
    .call = "conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
            "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
    .name = "conv_transpose3d",
    .doc = "Transposed convolution over three axes.",
    CONVOLUTION,
    .compose = compose_transpose3,
    .onnx = "ConvTranspose",
    CN_CASES({ CN_IN(CN_S(2, 3, 2, 4, 3), CN_S(3, 2, 2, 3, 2), CN_S(2)), DESC(.groups = 1) },
             { CN_IN(CN_S(4, 3, 2, 3), CN_S(4, 1, 2, 3, 2), CN_S(2)),
               DESC({ 2, 3, 1 }, { 1, 0, 1 }, { 1, 2, 2 }, 2, { 1, 2, 1 }) },
             { CN_IN(CN_S(0, 3, 2, 4, 3), CN_S(3, 2, 2, 3, 2), CN_ABSENT), DESC(.groups = 1) },
             { CN_IN(CN_S(2, 4, 4, 5, 5), CN_S(4, 3, 3, 4, 4), CN_S(3)),
               DESC(.stride = { 2, 2, 2 }, .padding = { 1, 1, 1 }) }),
};

static cn_tensor *apply(const cn_op *op, cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    const cn_conv_desc plain = { .groups = 1 };
    return cn_apply(op, (cn_tensor *[]){ x, weight, bias }, 3, desc ? desc : &plain, NULL);
}

cn_tensor *cn_conv1d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv1d, x, weight, bias, desc);
}
cn_tensor *cn_conv2d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv2d, x, weight, bias, desc);
}
cn_tensor *cn_conv3d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv3d, x, weight, bias, desc);
}
cn_tensor *cn_conv_transpose1d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv_transpose1d, x, weight, bias, desc);
}
cn_tensor *cn_conv_transpose2d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv_transpose2d, x, weight, bias, desc);
}
cn_tensor *cn_conv_transpose3d(cn_tensor *x, cn_tensor *weight, cn_tensor *bias, const cn_conv_desc *desc)
{
    return apply(&cn__op_conv_transpose3d, x, weight, bias, desc);
}

/* Convolution over three axes, its gradient for the input (a transposed convolution) and for the weight.

       y[n,o,p] = sum over c, t of x[n, c, p·stride + t·dilation - padding] · weight[o,c,t]

   y is linear in x and in the weight. Therefore the gradients of each of the three operators are the other two. */
#include "ops/contract/columns.h"
#include "ops/contract/conv_gpu.h"
#include "ops/contract/depthwise.h"
#include "ops/contract/patches.h"
#include "ops/contract/pixels.h"
#include "ops/contract/taps.h"
#include "ops/contract/winograd.h"

/* ---- sizes ---- */

static bool measure_axis(cn_ctx *ctx, const char *who, const cn__conv_attrs *a, cn__conv_sizes *s, int d)
{
    const long long stride = a->stride[d], dilation = a->dilation[d], padding = a->padding[d], kernel = s->kernel[d];
    if (stride < 1 || stride > INT32_MAX) /* then no product of a place and a stride overflows */
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: stride must be from 1 to %d, got %lld", who, INT32_MAX, stride);
    if (dilation < 1) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dilation must be ≥ 1, got %lld", who, dilation);
    if (padding < 0) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: padding must be ≥ 0, got %lld", who, padding);
    if (kernel < 1) return cn__fail(ctx, CN_BAD_SHAPE, "%s: the size of the kernel must be ≥ 1, got %lld", who, kernel);
    int64_t padded, reach;
    if (__builtin_mul_overflow(padding, 2, &padded) || __builtin_add_overflow(padded, s->in[d], &padded) ||
        __builtin_mul_overflow(kernel - 1, dilation, &reach))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "%s: the padded input and the dilated kernel must fit into 64 bits, got padding %lld and "
                        "dilation %lld",
                        who, padding, dilation);
    if (reach >= padded)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "%s: the kernel must fit into the padded input, got a kernel of size %lld (dilation %lld) and "
                        "an input of size %lld (padding %lld)",
                        who, kernel, dilation, (long long)s->in[d], padding);
    s->out[d] = (padded - reach - 1) / stride + 1;
    return true;
}

bool cn__conv_measure(cn_ctx *ctx, const char *who, const cn__conv_attrs *a, const int64_t *x, const int64_t *weight,
                      cn__conv_sizes *s)
{
    const long long groups = a->groups, channels = x[1], each = weight[1], outputs = weight[0];
    if (groups < 1) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: groups must be ≥ 1, got %lld", who, groups);
    if (channels % groups || channels / groups != each)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "%s: the input must have %lld groups of %lld channels, as the weight has, got %lld channels",
                        who, groups, each, channels);
    if (outputs % groups)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "%s: groups must divide the output channels, got %lld output channels and %lld groups", who,
                        outputs, groups);
    *s = (cn__conv_sizes){ .n = x[0], .groups = groups, .c = each, .o = outputs / groups };
    for (int d = 0; d < 3; d++) {
        s->in[d] = x[2 + d];
        s->kernel[d] = weight[2 + d];
        if (!measure_axis(ctx, who, a, s, d)) return false;
    }
    return true;
}

static bool five_axes(cn_infer *i)
{
    const cn_layout *a = &i->in[0]->layout, *b = &i->in[1]->layout;
    char s[96], t[96];
    return (a->ndim == 5 && b->ndim == 5) ||
           cn_infer_fail(i, CN_BAD_SHAPE, "both operands must have five axes, got %s and %s",
                         cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
}

static bool set_result(cn_infer *i, int64_t n, int64_t channels, const int64_t *axes)
{
    i->out[0].dtype = i->in[0]->dtype;
    i->out[0].layout = (cn_layout){ .ndim = 5, .shape = { n, channels, axes[0], axes[1], axes[2] } };
    return true;
}

/* The first operand of the gradient operators must have the shape of the convolution's result. */
static bool gradient_fits(cn_infer *i, const cn__conv_sizes *s)
{
    const cn_layout y = { .ndim = 5, .shape = { s->n, s->groups * s->o, s->out[0], s->out[1], s->out[2] } };
    const cn_layout *g = &i->in[0]->layout;
    char p[96], q[96];
    return cn__same_shape(&y, g) ||
           cn_infer_fail(i, CN_BAD_SHAPE, "the gradient must have the shape of the convolution's result %s, got %s",
                         cn__shape_text(&y, q, sizeof q), cn__shape_text(g, p, sizeof p));
}

/* Applies one of the three operators with the attributes of another. The result's last three sizes are those of `like`,
   if it is not NULL. */
static cn_tensor *other(const cn_op *op, cn_tensor *a, cn_tensor *b, const cn__conv_attrs *attrs, const cn_tensor *like)
{
    cn__conv_attrs own = *attrs;
    for (int d = 0; d < 3; d++) own.size[d] = like ? cn__layout(like)->shape[2 + d] : 0;
    return cn_apply(op, (cn_tensor *[]){ a, b }, 2, &own, NULL);
}

/* ---- conv: (x, weight) → y. A unit is a chunk of positions of a group of an image ---- */

static bool conv_infer(cn_infer *i)
{
    cn__conv_sizes s;
    return five_axes(i) &&
           cn__conv_measure(i->ctx, i->op->name, i->attrs, i->in[0]->layout.shape, i->in[1]->layout.shape, &s) &&
           set_result(i, s.n, s.groups * s.o, s.out);
}

static void conv_grad(cn_grad_call *g)
{
    cn_tensor *x = g->in[0], *weight = g->in[1], *y = g->out_grad[0];
    if (g->needs[0]) g->in_grad[0] = other(&cn__op_conv_input_grad, y, weight, g->attrs, x);
    if (g->needs[1]) g->in_grad[1] = other(&cn__op_conv_weight_grad, y, x, g->attrs, weight);
}

/* y(o, len) = weight(o, c·t) · columns(c·t, len) */
static cn__gemm conv_product(const cn__conv *c, int64_t channels, int64_t len)
{
    (void)channels; /* all of them */
    return (cn__gemm){ .kernel = c->gemm,
                       .m = c->s.o,
                       .n = len,
                       .k = c->row,
                       .a_row = c->row,
                       .a_col = 1,
                       .b_row = cn__conv_column_row(c, len),
                       .b_col = 1,
                       .c_row = c->positions,
                       .c_col = 1 };
}

/* Reports positions [at, at + len) of all channels of a group of an image as final. */
static void conv_done(const cn__conv *c, int64_t item, int64_t at, int64_t len, int thread)
{
    const int64_t first = item * c->s.o * c->positions + at;
    if (len == c->positions) cn_kernel_done(c->k, first, first + c->s.o * len, thread);
    else
        for (int64_t o = 0; o < c->s.o; o++)
            cn_kernel_done(c->k, first + o * c->positions, first + o * c->positions + len, thread);
}

static void conv_unit(const cn__conv *c, int64_t index, int thread)
{
    const int64_t at = index % c->chunks * c->chunk, len = cn__smaller(c->chunk, c->positions - at);
    const int64_t group = index / c->chunks % c->s.groups, n = index / c->chunks / c->s.groups;
    char *x = cn__conv_x(c, n, group, 0), *weight = c->weight + group * c->s.o * c->row * c->size,
         *y = cn__conv_y(c, n, group, at);
    if (cn__conv_thin(c)) {
        cn__conv_thin_y(c, y, x, weight, at, len);
    } else {
        cn__gemm g = conv_product(c, c->s.c, len);
        g.a = weight;
        g.b = cn__conv_gather(c, x, c->s.c, at, len, thread);
        g.c = y;
        cn__conv_multiply(c, &g, thread);
    }
    conv_done(c, index / c->chunks, at, len, thread);
}

static cn__conv conv_of(const cn_kernel *k)
{
    return cn__conv_cut(k, &k->in[0], &k->in[1], &k->out[0], 1, conv_product);
}

static void conv_cpu(const cn_kernel *k)
{
    const cn__depthwise d = cn__depthwise_of(k, &k->in[0], &k->in[1], &k->out[0]);
    if (d.suits) {
        cn__depthwise_run(&d);
        return;
    }
    const cn__patches p = cn__patches_of(k, &k->in[0], &k->in[1], &k->out[0]);
    if (p.suits) {
        cn__patches_y(&p);
        return;
    }
    const cn__winograd w = cn__winograd_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (w.suits) {
        cn__winograd_run(&w);
        return;
    }
    const cn__pixels q = cn__pixels_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (q.suits) {
        cn__pixels_run(&q);
        return;
    }
    const cn__taps t = cn__taps_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (cn__taps_suit(&t)) {
        cn__taps_run(&t);
        return;
    }
    const cn__conv c = conv_of(k);
    cn__conv_run(&c, c.s.n * c.s.groups * c.chunks, (double)c.s.o * (double)c.row * (double)c.chunk, conv_unit);
}

static size_t conv_scratch(const cn_kernel *k, int threads)
{
    const cn__depthwise d = cn__depthwise_of(k, &k->in[0], &k->in[1], &k->out[0]);
    if (d.suits) return cn__depthwise_scratch(&d, threads);
    const cn__patches p = cn__patches_of(k, &k->in[0], &k->in[1], &k->out[0]);
    if (p.suits) return cn__patches_y_scratch(&p, threads);
    const cn__winograd w = cn__winograd_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (w.suits) return cn__winograd_scratch(&w, threads);
    const cn__pixels q = cn__pixels_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (q.suits) return cn__pixels_scratch(&q, threads);
    const cn__taps t = cn__taps_forward(k, &k->in[0], &k->in[1], &k->out[0]);
    if (cn__taps_suit(&t)) return cn__taps_scratch(&t, threads);
    const cn__conv c = conv_of(k);
    return cn__conv_scratch(&c, threads);
}

#define ONES    \
    {           \
        1, 1, 1 \
    }
#define PLAIN                        \
    .attrs = &(const cn__conv_attrs) \
    {                                \
        ONES, { 0 }, ONES, 1, { 0 }  \
    }

/* For each element of y, a multiplication and an addition for each weight of its channel. */
static double flops_of(const cn_layout *y, const cn_layout *weight)
{
    return weight->shape[0] ? 2.0 * (double)cn__numel(y) * (double)(cn__numel(weight) / weight->shape[0]) : 0;
}

static double conv_flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)attrs;
    return flops_of(&out->layout, &in[1].layout);
}

const cn_op cn__op_conv = {
    .call = "_conv(Tensor input, Tensor weight, int[3] stride, int[3] padding, int[3] dilation, int groups) -> Tensor",
    .name = "conv",
    .doc = "Convolution of x (N, C, D, H, W) with weight (O, C/groups, d, h, w).",
    .kind = CN_CONTRACT,
    .n_in = 2,
    .n_out = 1,
    .epilogue = true,
    .attr_size = sizeof(cn__conv_attrs),
    .infer = conv_infer,
    .grad = conv_grad,
    .cpu = conv_cpu,
    .scratch = conv_scratch,
    .gpu = cn__conv_gpu,
    .flops = conv_flops,
    .onnx = "Conv",
    CN_CASES({ CN_IN(CN_S(2, 3, 1, 4, 5), CN_S(2, 3, 1, 3, 2)), PLAIN },
             { CN_IN(CN_S(1, 4, 3, 5, 4), CN_S(6, 2, 2, 3, 2)),
               .attrs = &(const cn__conv_attrs){ { 1, 2, 3 }, { 1, 2, 1 }, { 2, 1, 2 }, 2, { 0 } } },
             { CN_IN(CN_S(2, 3, 1, 2, 3), CN_S(4, 3, 1, 1, 1)), PLAIN },
             { CN_IN(CN_S(2, 2, 1, 5, 5), CN_S(2, 1, 1, 1, 1)),
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0, 1, 1 }, ONES, 2, { 0 } } },
             { CN_IN(CN_S(0, 2, 1, 3, 3), CN_S(2, 2, 1, 2, 2)), PLAIN },
             { CN_IN(CN_S(2, 0, 1, 3, 3), CN_S(2, 0, 1, 2, 2)), PLAIN },
             { CN_IN(CN_S(3, 16, 1, 19, 17), CN_S(20, 16, 1, 3, 3)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(1, 2, 1, 39, 41), CN_S(2, 2, 1, 7, 7)), /* several chunks */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 3, 3 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 3, 1, 13, 11), CN_S(3, 1, 1, 3, 3)), /* depthwise, by taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 3, { 0 } } },
             { CN_IN(CN_S(1, 2, 1, 31, 40), CN_S(9, 2, 1, 3, 3)), /* several chunks */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 2 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 38, 1, 12, 12), CN_S(8, 38, 1, 3, 3)), /* several slices of channels */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(1, 4, 1, 11, 12), CN_S(50, 4, 1, 3, 3)), /* several blocks of rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 5, 6, 5, 7), CN_S(14, 5, 2, 2, 2)), /* three axes */
               .attrs = &(const cn__conv_attrs){ ONES, { 1, 0, 1 }, { 1, 2, 1 }, 1, { 0 } } },
             { CN_IN(CN_S(3, 5, 1, 1, 150), CN_S(3, 5, 1, 1, 9)), /* one axis, few rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 7 }, { 1, 1, 2 }, 1, { 0 } } },
             { CN_IN(CN_S(2, 4, 1, 1, 160), CN_S(4, 2, 1, 1, 17)), /* two rows a group */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 3 }, ONES, 2, { 0 } } },
             { CN_IN(CN_S(2, 2, 1, 1, 170), CN_S(1, 2, 1, 1, 25)), /* one row */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 12 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 2, 1, 1, 127), CN_S(9, 2, 1, 1, 17)), /* one position too few for taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 8 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 4, 1, 1, 140), CN_S(7, 4, 1, 1, 9)), /* tiles of four and three rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 4 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(3, 3, 1, 19, 17), CN_S(5, 3, 1, 8, 8)), /* patches, with a rest of two axes */
               .attrs = &(const cn__conv_attrs){ { 1, 8, 8 }, { 0 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 5, 4, 6, 7), CN_S(6, 5, 2, 2, 2)), /* patches of three axes */
               .attrs = &(const cn__conv_attrs){ { 2, 2, 2 }, { 0 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(4, 2, 1, 1, 40), CN_S(18, 2, 1, 1, 9)), /* patches of one axis, of an odd size */
               .attrs = &(const cn__conv_attrs){ { 1, 1, 9 }, { 0 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 9, 1, 8, 4), CN_S(4, 9, 1, 2, 2)), /* patches of several blocks of channels */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 3, 1, 8, 7), CN_S(4, 3, 1, 2, 2)), /* with padding no patches */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0, 1, 1 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 4, 1, 8, 8), CN_S(6, 2, 1, 2, 2)), /* nor with groups */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 2, { 0 } } },
             { CN_IN(CN_S(2, 3, 1, 9, 9), CN_S(4, 3, 1, 2, 2)), /* nor with dilation */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, { 1, 2, 2 }, 1, { 0 } } },
             { CN_IN(CN_S(2, 17, 1, 9, 13), CN_S(24, 17, 1, 3, 3)), /* Winograd's squares of odd sizes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 0 } } },
             { CN_IN(CN_S(2, 16, 2, 8, 9), CN_S(16, 16, 1, 3, 3)), /* the same with several planes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 2, 0 }, ONES, 1, { 0 } } }),
};

/* ---- conv_input_grad: (gradient of y, weight) → gradient of x. A unit is a block of channels of a group of an image.
   ---- */

static bool input_infer(cn_infer *i)
{
    if (!five_axes(i)) return false;
    const cn__conv_attrs *a = i->attrs;
    const int64_t *g = i->in[0]->layout.shape, *w = i->in[1]->layout.shape;
    int64_t channels;
    if (__builtin_mul_overflow(w[1], a->groups, &channels)) channels = -1;
    const int64_t x[5] = { g[0], channels, a->size[0], a->size[1], a->size[2] };
    cn__conv_sizes s;
    return cn__conv_measure(i->ctx, i->op->name, a, x, w, &s) && gradient_fits(i, &s) &&
           set_result(i, s.n, channels, s.in);
}

static void input_grad(cn_grad_call *g)
{
    cn_tensor *y = g->in[0], *weight = g->in[1], *x = g->out_grad[0];
    if (g->needs[0]) g->in_grad[0] = other(&cn__op_conv, x, weight, g->attrs, NULL);
    if (g->needs[1]) g->in_grad[1] = other(&cn__op_conv_weight_grad, y, x, g->attrs, weight);
}

/* columns(c·t, len) = weight(o, c·t)ᵀ · y(o, len) */
static cn__gemm input_product(const cn__conv *c, int64_t channels, int64_t len)
{
    return (cn__gemm){ .kernel = c->gemm,
                       .m = channels * c->volume,
                       .n = len,
                       .k = c->s.o,
                       .a_row = 1,
                       .a_col = c->row,
                       .b_row = c->positions,
                       .b_col = 1,
                       .c_row = cn__conv_column_row(c, len),
                       .c_col = 1 };
}

static void input_unit(const cn__conv *c, int64_t index, int thread)
{
    const int64_t first = index % c->blocks * c->block, channels = cn__smaller(c->block, c->s.c - first);
    const int64_t group = index / c->blocks % c->s.groups, n = index / c->blocks / c->s.groups;
    char *x = cn__conv_x(c, n, group, first),
         *weight = c->weight + (group * c->s.o * c->row + first * c->volume) * c->size;
    const size_t bytes = (size_t)(channels * c->pixels * c->size);
    if (bytes) memset(x, 0, bytes);
    if (cn__conv_thin(c)) cn__conv_thin_x(c, cn__conv_y(c, n, group, 0), x, weight, channels);
    for (int64_t at = 0; at < c->positions && !cn__conv_thin(c); at += c->chunk) {
        const int64_t len = cn__smaller(c->chunk, c->positions - at);
        cn__gemm g = input_product(c, channels, len);
        g.a = weight;
        g.b = cn__conv_y(c, n, group, at);
        g.c = cn__conv_columns(c, x, at, thread);
        cn__conv_multiply(c, &g, thread);
        cn__conv_scatter(c, x, channels, at, len, thread);
    }
    const int64_t from = (x - c->x) / c->size;
    cn_kernel_done(c->k, from, from + channels * c->pixels, thread);
}

static cn__conv input_of(const cn_kernel *k)
{
    const cn_array *x = &k->out[0], *weight = &k->in[1], *y = &k->in[0];
    const int64_t images = y->shape[0] * ((const cn__conv_attrs *)k->attrs)->groups;
    return cn__conv_cut(k, x, weight, y, CN__CONV_SHARES / (images + 1), input_product);
}

static void input_cpu(const cn_kernel *k)
{
    const cn__patches p = cn__patches_of(k, &k->out[0], &k->in[1], &k->in[0]);
    if (p.suits) {
        cn__patches_x(&p);
        return;
    }
    const cn__winograd w = cn__winograd_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (w.suits) {
        cn__winograd_run(&w);
        return;
    }
    const cn__pixels q = cn__pixels_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (q.suits) {
        cn__pixels_run(&q);
        return;
    }
    const cn__taps t = cn__taps_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (cn__taps_suit(&t)) {
        cn__taps_run(&t);
        return;
    }
    const cn__conv c = input_of(k);
    const double work = (double)c.s.o * (double)(c.block * c.volume) * (double)c.positions;
    cn__conv_run(&c, c.s.n * c.s.groups * c.blocks, work, input_unit);
}

static size_t input_scratch(const cn_kernel *k, int threads)
{
    const cn__patches p = cn__patches_of(k, &k->out[0], &k->in[1], &k->in[0]);
    if (p.suits) return cn__patches_x_scratch(&p, threads);
    const cn__winograd w = cn__winograd_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (w.suits) return cn__winograd_scratch(&w, threads);
    const cn__pixels q = cn__pixels_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (q.suits) return cn__pixels_scratch(&q, threads);
    const cn__taps t = cn__taps_backward(k, &k->out[0], &k->in[1], &k->in[0]);
    if (cn__taps_suit(&t)) return cn__taps_scratch(&t, threads);
    const cn__conv c = input_of(k);
    return cn__conv_scratch(&c, threads);
}

static double input_flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)out, (void)attrs;
    return flops_of(&in[0].layout, &in[1].layout);
}

const cn_op cn__op_conv_input_grad = {
    .call = "_conv_input_grad(Tensor grad, Tensor weight, int[3] stride, int[3] padding, int[3] dilation, int groups, "
            "int[3] size) -> Tensor",
    .name = "conv_input_grad",
    .doc = "The gradient of conv for its input, of a given size: a transposed convolution.",
    .kind = CN_CONTRACT,
    .n_in = 2,
    .n_out = 1,
    .epilogue = true,
    .attr_size = sizeof(cn__conv_attrs),
    .infer = input_infer,
    .grad = input_grad,
    .cpu = input_cpu,
    .scratch = input_scratch,
    .gpu = cn__conv_input_gpu,
    .flops = input_flops,
    CN_CASES({ CN_IN(CN_S(2, 2, 1, 2, 4), CN_S(2, 3, 1, 3, 2)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 4, 5 } } },
             { CN_IN(CN_S(1, 6, 3, 4, 2), CN_S(6, 2, 2, 3, 2)),
               .attrs = &(const cn__conv_attrs){ { 1, 2, 3 }, { 1, 2, 1 }, { 2, 1, 2 }, 2, { 3, 5, 4 } } },
             { CN_IN(CN_S(2, 4, 1, 2, 3), CN_S(4, 3, 1, 1, 1)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 2, 3 } } },
             { CN_IN(CN_S(0, 2, 1, 2, 2), CN_S(2, 2, 1, 2, 2)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(2, 0, 1, 2, 2), CN_S(0, 2, 1, 2, 2)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(3, 20, 1, 19, 17), CN_S(20, 16, 1, 3, 3)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 19, 17 } } },
             { CN_IN(CN_S(1, 2, 1, 39, 41), CN_S(2, 2, 1, 7, 7)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 3, 3 }, ONES, 1, { 1, 39, 41 } } },
             { CN_IN(CN_S(2, 3, 1, 13, 11), CN_S(3, 1, 1, 3, 3)), /* depthwise, by taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 3, { 1, 13, 11 } } },
             { CN_IN(CN_S(1, 2, 1, 29, 42), CN_S(2, 9, 1, 3, 3)), /* several chunks */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 2 }, ONES, 1, { 1, 31, 40 } } },
             { CN_IN(CN_S(2, 38, 1, 12, 12), CN_S(38, 8, 1, 3, 3)), /* several slices of channels */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 12, 12 } } },
             { CN_IN(CN_S(1, 4, 1, 11, 12), CN_S(4, 50, 1, 3, 3)), /* several blocks of rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 11, 12 } } },
             { CN_IN(CN_S(2, 5, 7, 3, 8), CN_S(5, 14, 2, 2, 2)), /* three axes */
               .attrs = &(const cn__conv_attrs){ ONES, { 1, 0, 1 }, { 1, 2, 1 }, 1, { 6, 5, 7 } } },
             { CN_IN(CN_S(3, 5, 1, 1, 148), CN_S(5, 3, 1, 1, 9)), /* one axis, few rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 7 }, { 1, 1, 2 }, 1, { 1, 1, 150 } } },
             { CN_IN(CN_S(2, 4, 1, 1, 150), CN_S(4, 2, 1, 1, 17)), /* two rows a group */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 3 }, ONES, 2, { 1, 1, 160 } } },
             { CN_IN(CN_S(2, 2, 1, 1, 170), CN_S(2, 1, 1, 1, 25)), /* one row */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 12 }, ONES, 1, { 1, 1, 170 } } },
             { CN_IN(CN_S(2, 2, 1, 1, 127), CN_S(2, 9, 1, 1, 17)), /* one position too few for taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 8 }, ONES, 1, { 1, 1, 127 } } },
             { CN_IN(CN_S(2, 4, 1, 1, 140), CN_S(4, 7, 1, 1, 9)), /* tiles of four and three rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 4 }, ONES, 1, { 1, 1, 140 } } },
             { CN_IN(CN_S(1, 1, 1, 2, 2), CN_S(1, 1, 1, 9, 9)), /* no two taps see the same pixel */
               .attrs = &(const cn__conv_attrs){ { 1, 9, 9 }, { 0 }, ONES, 1, { 1, 18, 18 } } },
             { CN_IN(CN_S(3, 5, 1, 2, 2), CN_S(5, 3, 1, 8, 8)), /* patches, with a rest of two axes */
               .attrs = &(const cn__conv_attrs){ { 1, 8, 8 }, { 0 }, ONES, 1, { 1, 19, 17 } } },
             { CN_IN(CN_S(2, 6, 2, 3, 3), CN_S(6, 5, 2, 2, 2)), /* patches of three axes */
               .attrs = &(const cn__conv_attrs){ { 2, 2, 2 }, { 0 }, ONES, 1, { 4, 6, 7 } } },
             { CN_IN(CN_S(4, 18, 1, 1, 4), CN_S(18, 2, 1, 1, 9)), /* patches of one axis, of an odd size */
               .attrs = &(const cn__conv_attrs){ { 1, 1, 9 }, { 0 }, ONES, 1, { 1, 1, 40 } } },
             { CN_IN(CN_S(2, 4, 1, 4, 2), CN_S(4, 9, 1, 2, 2)), /* patches of several blocks of channels */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 1, { 1, 8, 4 } } },
             { CN_IN(CN_S(2, 4, 1, 5, 4), CN_S(4, 3, 1, 2, 2)), /* with padding no patches */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0, 1, 1 }, ONES, 1, { 1, 8, 7 } } },
             { CN_IN(CN_S(2, 6, 1, 4, 4), CN_S(6, 2, 1, 2, 2)), /* nor with groups */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 2, { 1, 8, 8 } } },
             { CN_IN(CN_S(2, 4, 1, 4, 4), CN_S(4, 3, 1, 2, 2)), /* nor with dilation */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, { 1, 2, 2 }, 1, { 1, 9, 9 } } },
             { CN_IN(CN_S(2, 24, 1, 9, 13), CN_S(24, 17, 1, 3, 3)), /* Winograd's squares of odd sizes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 9, 13 } } },
             { CN_IN(CN_S(2, 16, 2, 10, 7), CN_S(16, 16, 1, 3, 3)), /* the same with several planes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 2, 0 }, ONES, 1, { 2, 8, 9 } } }),
};

/* ---- conv_weight_grad: (gradient of y, x) → gradient of weight. A unit is a block of channels of a group, over a part
   of the images. Each part has its own sums, which are merged in order. There are several parts only if blocks and
   groups are few. ---- */

static bool weight_infer(cn_infer *i)
{
    if (!five_axes(i)) return false;
    const cn__conv_attrs *a = i->attrs;
    const int64_t *g = i->in[0]->layout.shape, *x = i->in[1]->layout.shape;
    const int64_t w[5] = { g[1], a->groups > 0 ? x[1] / a->groups : 0, a->size[0], a->size[1], a->size[2] };
    cn__conv_sizes s;
    return cn__conv_measure(i->ctx, i->op->name, a, x, w, &s) && gradient_fits(i, &s) &&
           set_result(i, w[0], w[1], s.kernel);
}

static void weight_grad(cn_grad_call *g)
{
    cn_tensor *y = g->in[0], *x = g->in[1], *weight = g->out_grad[0];
    if (g->needs[0]) g->in_grad[0] = other(&cn__op_conv, x, weight, g->attrs, NULL);
    if (g->needs[1]) g->in_grad[1] = other(&cn__op_conv_input_grad, y, weight, g->attrs, x);
}

/* weight(o, c·t) += y(o, len) · columns(c·t, len)ᵀ */
static cn__gemm weight_product(const cn__conv *c, int64_t channels, int64_t len)
{
    return (cn__gemm){ .kernel = c->gemm,
                       .accumulate = true,
                       .m = c->s.o,
                       .n = channels * c->volume,
                       .k = len,
                       .a_row = c->positions,
                       .a_col = 1,
                       .b_row = 1,
                       .b_col = cn__conv_column_row(c, len),
                       .c_row = c->row,
                       .c_col = 1 };
}

static int64_t weight_parts(const cn__conv *c)
{
    const int64_t units = c->s.groups * c->blocks;
    return units < CN__CONV_SHARES && c->s.n > 1 ? cn__smaller(c->s.n, CN__CONV_SHARES / units) : 1;
}

static int64_t weight_numel(const cn__conv *c) { return c->s.groups * c->s.o * c->row; }

/* Where the sums of a part are stored: the result itself, or scratch. */
static char *weight_sums(const cn__conv *c, int64_t part)
{
    if (weight_parts(c) == 1) return c->weight;
    return (char *)c->k->scratch + cn__conv_scratch(c, cn_threads(c->k)) + part * weight_numel(c) * c->size;
}

static void weight_unit(const cn__conv *c, int64_t index, int thread)
{
    const int64_t first = index % c->blocks * c->block, channels = cn__smaller(c->block, c->s.c - first);
    const int64_t group = index / c->blocks % c->s.groups, part = index / c->blocks / c->s.groups,
                  parts = weight_parts(c);
    char *sums = weight_sums(c, part) + (group * c->s.o * c->row + first * c->volume) * c->size;
    const size_t bytes = (size_t)(channels * c->volume * c->size);
    for (int64_t o = 0; o < c->s.o && bytes; o++) memset(sums + o * c->row * c->size, 0, bytes);
    for (int64_t n = c->s.n * part / parts; n < c->s.n * (part + 1) / parts; n++) {
        char *x = cn__conv_x(c, n, group, first);
        if (cn__conv_thin(c)) cn__conv_thin_w(c, cn__conv_y(c, n, group, 0), x, sums, channels);
        for (int64_t at = 0; at < c->positions && !cn__conv_thin(c); at += c->chunk) {
            const int64_t len = cn__smaller(c->chunk, c->positions - at);
            cn__gemm g = weight_product(c, channels, len);
            g.a = cn__conv_y(c, n, group, at);
            g.b = cn__conv_gather(c, x, channels, at, len, thread);
            g.c = sums;
            cn__conv_multiply(c, &g, thread);
        }
    }
}

/* Adds the parts in order, for some weights at a time, so that neighbouring sums are read together. */
static void merge_parts(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    enum { MERGED = 64 };
    const cn__conv *c = user;
    const int64_t numel = weight_numel(c), parts = weight_parts(c);
    const char *const sums = weight_sums(c, 0);
    for (int64_t i = begin, n; i < end; i += n) {
        double sum[MERGED] = { 0 };
        n = cn__smaller(MERGED, end - i);
        for (int64_t p = 0; p < parts; p++) {
            const void *from = sums + (p * numel + i) * c->size;
            if (c->f64)
                for (int64_t j = 0; j < n; j++) sum[j] += ((const double *)from)[j];
            else
                for (int64_t j = 0; j < n; j++) sum[j] += ((const float *)from)[j];
        }
        void *to = c->weight + i * c->size;
        if (c->f64)
            for (int64_t j = 0; j < n; j++) ((double *)to)[j] = sum[j];
        else
            for (int64_t j = 0; j < n; j++) ((float *)to)[j] = (float)sum[j];
    }
}

/* For small weights the work is cut by images, not by blocks of channels: every block would read all of y. */
static cn__conv weight_of(const cn_kernel *k)
{
    const int64_t images = k->in[1].shape[0], small = 1 << 16;
    const int64_t parts = k->out[0].numel <= small && images > 1 ? cn__smaller(images, CN__CONV_SHARES) : 1;
    return cn__conv_cut(k, &k->in[1], &k->out[0], &k->in[0], CN__CONV_SHARES / parts, weight_product);
}

static void weight_cpu(const cn_kernel *k)
{
    const cn__patches p = cn__patches_of(k, &k->in[1], &k->out[0], &k->in[0]);
    if (p.suits) {
        cn__patches_weight(&p);
        return;
    }
    const cn__winograd w = cn__winograd_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    if (w.weighs && cn__winograd_weigh(&w)) return;
    const cn__pixels q = cn__pixels_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    if (q.suits) {
        cn__pixels_weigh(&q);
        return;
    }
    const cn__taps t = cn__taps_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    if (cn__taps_suit_weight(&t)) {
        cn__taps_weigh(&t);
        return;
    }
    cn__conv c = weight_of(k);
    const int64_t parts = weight_parts(&c);
    const double work =
        (double)c.s.o * (double)(c.block * c.volume) * (double)c.positions * (double)c.s.n / (double)parts;
    cn__conv_run(&c, parts * c.s.groups * c.blocks, work, weight_unit);
    if (parts > 1) cn_parallel(k, weight_numel(&c), 4096, merge_parts, &c);
}

/* Of the kernels that sum over positions. */
static size_t plain_weight_scratch(const cn_kernel *k, int threads)
{
    const cn__pixels q = cn__pixels_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    if (q.suits) return cn__pixels_weigh_scratch(&q);
    const cn__taps t = cn__taps_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    if (cn__taps_suit_weight(&t)) return cn__taps_weigh_scratch(&t, threads);
    const cn__conv c = weight_of(k);
    const int64_t parts = weight_parts(&c);
    return cn__conv_scratch(&c, threads) + (parts > 1 ? (size_t)(parts * weight_numel(&c) * c.size) : 0);
}

static size_t weight_scratch(const cn_kernel *k, int threads)
{
    const cn__patches p = cn__patches_of(k, &k->in[1], &k->out[0], &k->in[0]);
    if (p.suits) return cn__patches_weight_scratch(&p, threads);
    const cn__winograd w = cn__winograd_forward(k, &k->in[1], &k->out[0], &k->in[0]);
    const size_t own = w.weighs ? cn__winograd_weigh_scratch(&w, threads) : 0, plain = plain_weight_scratch(k, threads);
    return own > plain ? own : plain;
}

static double weight_flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)attrs;
    return flops_of(&in[0].layout, &out->layout);
}

const cn_op cn__op_conv_weight_grad = {
    .call = "_conv_weight_grad(Tensor grad, Tensor input, int[3] stride, int[3] padding, int[3] dilation, int groups, "
            "int[3] size) -> Tensor",
    .name = "conv_weight_grad",
    .doc = "The gradient of conv for its weight, of a given kernel size.",
    .kind = CN_CONTRACT,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__conv_attrs),
    .infer = weight_infer,
    .grad = weight_grad,
    .cpu = weight_cpu,
    .scratch = weight_scratch,
    .gpu = cn__conv_weight_gpu,
    .flops = weight_flops,
    CN_CASES({ CN_IN(CN_S(2, 2, 1, 2, 4), CN_S(2, 3, 1, 4, 5)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 3, 2 } } },
             { CN_IN(CN_S(3, 6, 3, 4, 2), CN_S(3, 4, 3, 5, 4)),
               .attrs = &(const cn__conv_attrs){ { 1, 2, 3 }, { 1, 2, 1 }, { 2, 1, 2 }, 2, { 2, 3, 2 } } },
             { CN_IN(CN_S(2, 4, 1, 2, 3), CN_S(2, 3, 1, 2, 3)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 1, 1 } } },
             { CN_IN(CN_S(0, 2, 1, 2, 2), CN_S(0, 2, 1, 3, 3)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 2, 2 } } },
             { CN_IN(CN_S(2, 2, 1, 2, 2), CN_S(2, 0, 1, 3, 3)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0 }, ONES, 1, { 1, 2, 2 } } },
             { CN_IN(CN_S(3, 20, 1, 19, 17), CN_S(3, 16, 1, 19, 17)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(1, 2, 1, 39, 41), CN_S(1, 2, 1, 39, 41)),
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 3, 3 }, ONES, 1, { 1, 7, 7 } } },
             { CN_IN(CN_S(3, 9, 1, 23, 23), CN_S(3, 2, 1, 23, 23)), /* summed by taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(35, 4, 1, 1, 512), CN_S(35, 1, 1, 1, 512)), /* several images in one sum */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 3 }, ONES, 1, { 1, 1, 7 } } },
             { CN_IN(CN_S(2, 3, 1, 40, 31), CN_S(2, 3, 1, 40, 31)), /* depthwise, several chunks */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 2 }, { 1, 1, 2 }, 3, { 1, 3, 3 } } },
             { CN_IN(CN_S(1, 90, 1, 23, 24), CN_S(1, 90, 1, 23, 24)), /* blocks of rows and slices of channels */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(2, 24, 1, 1, 511), CN_S(2, 3, 1, 1, 511)), /* one position too few for taps */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 1 }, ONES, 1, { 1, 1, 3 } } },
             { CN_IN(CN_S(2, 2, 1, 1, 520), CN_S(2, 1, 1, 1, 520)), /* two rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 6 }, ONES, 1, { 1, 1, 13 } } },
             { CN_IN(CN_S(2, 3, 1, 1, 520), CN_S(2, 1, 1, 1, 520)), /* three rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 6 }, ONES, 1, { 1, 1, 13 } } },
             { CN_IN(CN_S(2, 5, 1, 1, 520), CN_S(2, 1, 1, 1, 520)), /* tiles of three and two rows */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 0, 2 }, ONES, 1, { 1, 1, 5 } } },
             { CN_IN(CN_S(3, 5, 1, 2, 2), CN_S(3, 3, 1, 19, 17)), /* patches, with a rest of two axes */
               .attrs = &(const cn__conv_attrs){ { 1, 8, 8 }, { 0 }, ONES, 1, { 1, 8, 8 } } },
             { CN_IN(CN_S(2, 6, 2, 3, 3), CN_S(2, 5, 4, 6, 7)), /* patches of three axes */
               .attrs = &(const cn__conv_attrs){ { 2, 2, 2 }, { 0 }, ONES, 1, { 2, 2, 2 } } },
             { CN_IN(CN_S(4, 18, 1, 1, 4), CN_S(4, 2, 1, 1, 40)), /* patches of one axis, of an odd size */
               .attrs = &(const cn__conv_attrs){ { 1, 1, 9 }, { 0 }, ONES, 1, { 1, 1, 9 } } },
             { CN_IN(CN_S(2, 4, 1, 4, 2), CN_S(2, 9, 1, 8, 4)), /* patches of several blocks of channels */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 1, { 1, 2, 2 } } },
             { CN_IN(CN_S(2, 4, 1, 5, 4), CN_S(2, 3, 1, 8, 7)), /* with padding no patches */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0, 1, 1 }, ONES, 1, { 1, 2, 2 } } },
             { CN_IN(CN_S(2, 6, 1, 4, 4), CN_S(2, 4, 1, 8, 8)), /* nor with groups */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, ONES, 2, { 1, 2, 2 } } },
             { CN_IN(CN_S(2, 4, 1, 4, 4), CN_S(2, 3, 1, 9, 9)), /* nor with dilation */
               .attrs = &(const cn__conv_attrs){ { 1, 2, 2 }, { 0 }, { 1, 2, 2 }, 1, { 1, 2, 2 } } },
             { CN_IN(CN_S(2, 24, 1, 9, 13), CN_S(2, 17, 1, 9, 13)), /* Winograd's squares of odd sizes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 1, 1 }, ONES, 1, { 1, 3, 3 } } },
             { CN_IN(CN_S(2, 16, 2, 10, 7), CN_S(2, 16, 2, 8, 9)), /* the same with several planes */
               .attrs = &(const cn__conv_attrs){ ONES, { 0, 2, 0 }, ONES, 1, { 1, 3, 3 } } }),
};

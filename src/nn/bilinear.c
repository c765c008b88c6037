/* Bilinear: a product of two tensors with a weight, y_o = x1 · W_o · x2 + b_o. */
#include <math.h>
#include <stdio.h>

#include "core/layout.h"
#include "nn/nn.h"

typedef struct bilinear {
    int64_t in1, in2, out;
    cn_tensor *weight, *bias;
} bilinear;

/* Whether x is (...,in1) and y is (...,in2), with equal sizes before the last. */
static bool fits(const bilinear *b, cn_tensor *x, cn_tensor *y)
{
    if (cn_ndim(x) < 1 || cn_ndim(x) != cn_ndim(y)) return false;
    for (int d = 0; d < cn_ndim(x) - 1; d++)
        if (cn_size(x, d) != cn_size(y, d)) return false;
    return cn_size(x, -1) == b->in1 && cn_size(y, -1) == b->in2;
}

/* y_o = sum over i, j of x1_i W_oij x2_j: x1 times all of W gives (n,out,in2); each row of that times x2 gives y. */
static cn_tensor *product(const bilinear *b, cn_tensor *x1, cn_tensor *x2)
{
    cn_dims shape = cn_shape(x1);
    shape.v[shape.n - 1] = b->out;
    cn_tensor *w = cn_reshape(cn_permute(b->weight, CN_DIMS(1, 0, 2)), CN_DIMS(b->in1, b->out * b->in2));
    cn_tensor *half = cn_reshape(cn_matmul(cn_reshape(x1, CN_DIMS(-1, b->in1)), w), CN_DIMS(-1, b->out, b->in2));
    cn_tensor *y = cn_matmul(half, cn_reshape(x2, CN_DIMS(-1, b->in2, 1)));
    y = cn_reshape(y, shape);
    return b->bias ? cn_add(y, b->bias) : y;
}

static bool forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const bilinear *b = cn_module_data(m);
    cn_ctx *ctx = cn_module_context(m);
    if (n_in != 2 || n_out > 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "forward accepts x1 and x2 and returns y; got %d operands and %d results",
                        n_in, n_out);
    if (!in[1]) return false;
    if (!fits(b, in[0], in[1])) {
        char first[128], second[128];
        cn__shape_text(&cn__result_of(in[0])->meta->layout, first, sizeof first);
        cn__shape_text(&cn__result_of(in[1])->meta->layout, second, sizeof second);
        return cn__fail(ctx, CN_BAD_SHAPE, "x1 and x2 must be (..., %lld) and (..., %lld), got %s and %s",
                        (long long)b->in1, (long long)b->in2, first, second);
    }
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *y = cn_scope_return(ctx, s, product(b, in[0], in[1]));
    if (n_out == 1) out[0] = y;
    return y != NULL;
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const bilinear *b = cn_module_data(m);
    snprintf(out, size, "%lld, %lld, %lld%s", (long long)b->in1, (long long)b->in2, (long long)b->out,
             b->bias ? "" : ", no bias");
}

static const cn_module_type bilinear_type = {
    .name = "Bilinear", .forward_all = forward, .data_bytes = sizeof(bilinear), .describe = describe
};

cn_module *cn_nn_bilinear(cn_ctx *ctx, int64_t in1, int64_t in2, int64_t out, const cn_linear_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (in1 < 1 || in2 < 1 || out < 1) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Bilinear: in1, in2 and out must be > 0, got %lld, %lld and %lld",
                 (long long)in1, (long long)in2, (long long)out);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &bilinear_type);
    if (!m) return NULL;
    const double bound = 1 / sqrt((double)in1);
    cn_scope s = cn_scope_begin(ctx);
    bilinear *b = cn_module_data(m);
    *b = (bilinear){ .in1 = in1, .in2 = in2, .out = out };
    b->weight = cn_module_param(m, "weight", cn__uniform(ctx, CN_DIMS(out, in1, in2), bound));
    if (!desc || !desc->no_bias) b->bias = cn_module_param(m, "bias", cn__uniform(ctx, CN_DIMS(out), bound));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

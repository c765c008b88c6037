/* How products and convolutions are written. */
#include "onnx/put.h"
#include "ops/contract/contract.h"

bool cn__write_matmul(onnx_put *c) { return GIVE(EMIT("MatMul", OF(0), OF(1))); }

/* Gemm for matrices; else the product with the transposed weight. */
bool cn__write_linear(onnx_put *c)
{
    const int ndim = cn__put_meta(c, 0)->layout.ndim, of_weight = cn__put_meta(c, 1)->layout.ndim;
    if (ndim == 2 && of_weight == 2 && (!cn__put_has(c, 2) || cn__put_meta(c, 2)->layout.ndim <= 1)) {
        cn__put_int(c, "transB", 1);
        return GIVE(EMIT("Gemm", OF(0), OF(1), OF(2)));
    }
    onnx_val *w = of_weight == 2 ? cn__put_transpose(c, OF(1), (const int64_t[]){ 1, 0 }, 2) : OF(1);
    onnx_val *y = EMIT("MatMul", OF(0), w);
    return GIVE(cn__put_has(c, 2) ? EMIT("Add", y, OF(2)) : y);
}

/* The equation has an arrow: without one, PyTorch and ONNX mean the same result. */
bool cn__write_einsum(onnx_put *c)
{
    const cn__einsum_attrs *a = c->step->attrs;
    onnx_val *in[CN_MAX_IN], *out;
    if (c->step->n_in > CN_MAX_IN) return cn__put_refuse(c, "more than 8 operands");
    for (int i = 0; i < c->step->n_in; i++) in[i] = OF(i);
    cn__put_text(c, "equation", a->text);
    return cn__put_nodes(c, "Einsum", in, c->step->n_in, &out, 1) && GIVE(out);
}

/* ---- convolutions ---- */

static int64_t at_least_one(int64_t v) { return v ? v : 1; }

/* strides, padding on both sides, dilations and groups of `axes` axes */
static void window(onnx_put *c, int axes, const int64_t *stride, const int64_t *padding, const int64_t *dilation,
                   int64_t groups)
{
    int64_t s[3], d[3], p[6];
    for (int i = 0; i < axes; i++) {
        s[i] = at_least_one(stride[i]);
        d[i] = at_least_one(dilation[i]);
        p[i] = p[axes + i] = padding[i];
    }
    cn__put_ints(c, "strides", s, axes);
    cn__put_ints(c, "dilations", d, axes);
    cn__put_ints(c, "pads", p, 2 * axes);
    cn__put_int(c, "group", at_least_one(groups));
}

/* Runtimes convolve floats only. */
static onnx_val *real(onnx_put *c, int i)
{
    return !cn__put_has(c, i) || cn_dtype_is_float(cn__put_meta(c, i)->dtype) ? OF(i) : cn__put_cast(c, OF(i), CN_F32);
}

static bool convolve(onnx_put *c, int axes, const int64_t *stride, const int64_t *padding, const int64_t *dilation,
                     int64_t groups)
{
    const cn_dtype t = cn__put_result(c, 0)->dtype;
    onnx_val *x = real(c, 0), *w = real(c, 1), *b = real(c, 2);
    window(c, axes, stride, padding, dilation, groups);
    x = EMIT("Conv", x, w, b);
    return GIVE(cn_dtype_is_float(t) ? x : cn__put_cast(c, x, t));
}

bool cn__write_conv(onnx_put *c)
{
    const cn__conv_attrs *a = c->step->attrs;
    return convolve(c, 3, a->stride, a->padding, a->dilation, a->groups);
}

bool cn__write_conv_nd(onnx_put *c)
{
    const cn_conv_desc *a = c->step->attrs;
    return convolve(c, cn__put_meta(c, 0)->layout.ndim - 2, a->stride, a->padding, a->dilation, a->groups);
}

bool cn__write_conv_transpose_nd(onnx_put *c)
{
    const cn_conv_desc *a = c->step->attrs;
    const int axes = cn__put_meta(c, 0)->layout.ndim - 2;
    window(c, axes, a->stride, a->padding, a->dilation, a->groups);
    cn__put_ints(c, "output_padding", a->output_padding, axes);
    return GIVE(EMIT("ConvTranspose", OF(0), OF(1), OF(2)));
}

/* The input gradient of a convolution: size says which of the possible sizes its input had. */
bool cn__write_conv_transpose(onnx_put *c)
{
    const cn__conv_attrs *a = c->step->attrs;
    const cn_layout *x = &cn__put_meta(c, 0)->layout, *w = &cn__put_meta(c, 1)->layout;
    int64_t extra[3];
    for (int i = 0; i < 3; i++)
        extra[i] = a->size[i] - ((x->shape[2 + i] - 1) * a->stride[i] - 2 * a->padding[i] +
                                 a->dilation[i] * (w->shape[2 + i] - 1) + 1);
    window(c, 3, a->stride, a->padding, a->dilation, a->groups);
    cn__put_ints(c, "output_padding", extra, 3);
    return GIVE(EMIT("ConvTranspose", OF(0), OF(1)));
}

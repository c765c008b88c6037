/* How Fourier transforms, blocks of planes, diagonals and determinants are written. */
#include "onnx/put.h"
#include "ops/fft/fft.h"
#include "ops/view/view.h"
#include "ops/window/window.h"

/* ---- Fourier transforms: signals lie along the last axis, complex ones along the last but one ---- */

/* x (..., n, 1 or 2), with a batch in front, as runtimes want it. */
static onnx_val *transform(onnx_put *c, onnx_val *x, int ndim, bool inverse, bool half)
{
    const bool lone = ndim == 2;
    if (lone) x = cn__put_unsqueeze(c, x, 0);
    const int64_t axis = (lone ? 3 : ndim) - 2;
    onnx_val *at = c->w->opset >= 20 ? cn__put_constant(c, CN_I64, CN_SCALAR, &axis) : NULL;
    if (!at) cn__put_int(c, "axis", axis);
    if (inverse) cn__put_int(c, "inverse", 1);
    if (half) cn__put_int(c, "onesided", 1);
    x = EMIT("DFT", x, (onnx_val *)NULL, at);
    return lone ? cn__put_squeeze(c, x, 0) : x;
}

/* Cairn's inverse transforms do not divide by n, ONNX's does. */
static onnx_val *undivided(onnx_put *c, onnx_val *x, int64_t n)
{
    return EMIT("Mul", x, cn__put_number(c, cn__put_meta(c, 0)->dtype, (double)n));
}

bool cn__write_fft_r2c(onnx_put *c)
{
    const int ndim = cn__put_in(c)->ndim;
    return GIVE(transform(c, cn__put_unsqueeze(c, OF(0), ndim), ndim + 1, false, true));
}

bool cn__write_fft_c2c(onnx_put *c)
{
    const cn__fft_c2c_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c);
    onnx_val *y = transform(c, OF(0), in->ndim, a->inverse, false);
    return GIVE(a->inverse ? undivided(c, y, in->shape[in->ndim - 2]) : y);
}

/* The other half of the frequencies is the mirror image of the first, conjugate. */
bool cn__write_fft_c2r(onnx_put *c)
{
    const cn__fft_c2r_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c);
    const int axis = in->ndim - 2;
    const int64_t rest = a->n - (a->n / 2 + 1);
    onnx_val *x = OF(0), *real = cn__put_constant(c, CN_I64, CN_SCALAR, &(int64_t){ 0 });
    if (rest > 0) {
        onnx_val *sign = cn__put_constant(c, cn__put_meta(c, 0)->dtype, CN_DIMS(2), (const float[]){ 1, -1 });
        onnx_val *mirror = cn__put_slice(c, x, axis, rest, 0, -1);
        mirror = EMIT("Mul", mirror, sign);
        x = cn__put_join(c, axis, (onnx_val *[]){ x, mirror }, 2);
    }
    onnx_val *y = transform(c, x, in->ndim, true, false);
    cn__put_int(c, "axis", in->ndim - 1);
    y = EMIT("Gather", y, real);
    return GIVE(undivided(c, y, a->n));
}

/* ---- blocks ---- */

bool cn__write_col2im(onnx_put *c)
{
    const cn__block_attrs *a = c->step->attrs;
    const bool lone = cn__put_in(c)->ndim == 2;
    const int64_t pads[4] = { a->padding[0], a->padding[1], a->padding[0], a->padding[1] };
    onnx_val *x = lone ? cn__put_unsqueeze(c, OF(0), 0) : OF(0);
    onnx_val *size = cn__put_wholes(c, a->size, 2), *block = cn__put_wholes(c, a->kernel, 2);
    cn__put_ints(c, "dilations", a->dilation, 2);
    cn__put_ints(c, "pads", pads, 4);
    cn__put_ints(c, "strides", a->stride, 2);
    x = EMIT("Col2Im", x, size, block);
    return GIVE(lone ? cn__put_squeeze(c, x, 0) : x);
}

/* ---- diagonals ---- */

/* x (..., n) times an identity, padded to the size of the result; then its last two axes go to their places. */
bool cn__write_diagonal_backward(onnx_put *c)
{
    const cn__diagonal_backward_attrs *a = c->step->attrs;
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    const cn_layout *in = cn__put_in(c), *out = &cn__put_result(c, 0)->layout;
    const int n = out->ndim;
    const int64_t length = in->shape[in->ndim - 1];
    const int64_t above = a->of.offset < 0 ? -a->of.offset : 0, left = a->of.offset > 0 ? a->of.offset : 0;
    int64_t pads[2 * CN_MAX_DIMS] = { 0 }, order[CN_MAX_DIMS];
    if (!length) return cn__put_refuse(c, "no elements");
    onnx_val *eye = EMIT("Expand", cn__put_number(c, t, 0), cn__put_wholes(c, (int64_t[]){ length, length }, 2));
    eye = EMIT("EyeLike", eye);
    onnx_val *x = cn__put_unsqueeze(c, OF(0), n - 1);
    x = EMIT("Mul", x, eye);
    pads[n - 2] = above, pads[2 * n - 2] = a->size1 - length - above;
    pads[n - 1] = left, pads[2 * n - 1] = a->size2 - length - left;
    x = EMIT("Pad", x, cn__put_wholes(c, pads, 2 * n));
    for (int d = 0, k = 0; d < n; d++) order[d] = d == a->of.axis1 ? n - 2 : d == a->of.axis2 ? n - 1 : k++;
    return GIVE(cn__put_transpose(c, x, order, n));
}

/* ---- determinants ---- */

bool cn__write_det(onnx_put *c) { return GIVE(EMIT("Det", OF(0))); }

bool cn__write_slogdet(onnx_put *c)
{
    onnx_val *det = EMIT("Det", OF(0)), *sign = EMIT("Sign", det);
    onnx_val *size = EMIT("Abs", det);
    size = EMIT("Log", size);
    return cn__put_give(c, 1, size) && GIVE(sign);
}

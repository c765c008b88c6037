/* How pooling and resizing are written. */
#include "onnx/put.h"
#include "ops/window/window.h"

/* Operators of ONNX need a batch. */
static bool lacks_batch(const onnx_put *c, int64_t axes) { return cn__put_in(c)->ndim == axes + 1; }
static onnx_val *with_batch(onnx_put *c, int64_t axes)
{
    return lacks_batch(c, axes) ? cn__put_unsqueeze(c, OF(0), 0) : OF(0);
}
static onnx_val *as_before(onnx_put *c, int64_t axes, onnx_val *y)
{
    return lacks_batch(c, axes) ? cn__put_squeeze(c, y, 0) : y;
}

/* Padding behind an axis, so that rounding down gives as many windows as there are: PyTorch's ceil_mode leaves out windows
   that would begin in the padding, and ONNX's does not. */
static int64_t pad_behind(const onnx_put *c, const cn__pool_attrs *a, int64_t i, int64_t stride)
{
    const cn_layout *in = cn__put_in(c), *out = &cn__put_result(c, 0)->layout;
    const int64_t reach = (a->dilation[i] ? a->dilation[i] : 1) * (a->kernel[i] - 1) + 1;
    const int64_t first = in->ndim - a->axes + i;
    const int64_t needed = (out->shape[first] - 1) * stride + reach - in->shape[first] - a->padding[i];
    return a->ceil_mode && needed > a->padding[i] ? needed : a->padding[i];
}

/* pads: before and behind each axis */
static void window(onnx_put *c, const cn__pool_attrs *a, const int64_t *pads)
{
    int64_t strides[3];
    for (int64_t i = 0; i < a->axes; i++) strides[i] = a->stride[i] ? a->stride[i] : a->kernel[i];
    cn__put_ints(c, "kernel_shape", a->kernel, (int)a->axes);
    cn__put_ints(c, "strides", strides, (int)a->axes);
    cn__put_ints(c, "pads", pads, (int)(2 * a->axes));
}

static void pads_of(const onnx_put *c, const cn__pool_attrs *a, int64_t *pads)
{
    for (int64_t i = 0; i < a->axes; i++) {
        pads[i] = a->padding[i];
        pads[a->axes + i] = pad_behind(c, a, i, a->stride[i] ? a->stride[i] : a->kernel[i]);
    }
}

/* The index of a maximum: ONNX counts through the whole tensor, Cairn through the plane. */
static bool give_indices(onnx_put *c, int64_t axes, onnx_val *all)
{
    const cn_layout *l = cn__put_in(c);
    int64_t plane = 1;
    for (int64_t i = 0; i < axes; i++) plane *= l->shape[l->ndim - 1 - i];
    onnx_val *at = EMIT("Mod", all, cn__put_number(c, CN_I64, (double)plane));
    const cn_dtype t = cn__put_result(c, 1)->dtype;
    return cn__put_give(c, 1, as_before(c, axes, t == CN_I64 ? at : cn__put_cast(c, at, t)));
}

bool cn__write_max_pool(onnx_put *c)
{
    const cn__pool_attrs *a = c->step->attrs;
    onnx_val *out[2], *x = with_batch(c, a->axes);
    int64_t dilations[3], pads[6];
    for (int i = 0; i < 3; i++) dilations[i] = a->dilation[i] ? a->dilation[i] : 1;
    pads_of(c, a, pads);
    window(c, a, pads);
    cn__put_ints(c, "dilations", dilations, (int)a->axes);
    if (!cn__put_nodes(c, "MaxPool", &x, 1, out, 2)) return false;
    if (cn__put_wanted(c, 1) && !give_indices(c, a->axes, out[1])) return false;
    return GIVE(as_before(c, a->axes, out[0]));
}

/* Elements of the padding count if it is included, but not those that only ceil_mode reaches: the padding becomes zeros
   of the input then. */
static onnx_val *with_zeros(onnx_put *c, const cn__pool_attrs *a, onnx_val *x, int64_t *pads)
{
    int64_t all[10] = { 0 };
    const int n = (int)a->axes + 2;
    for (int64_t i = 0; i < a->axes; i++) {
        all[2 + i] = all[n + 2 + i] = a->padding[i];
        pads[i] = 0;
        pads[a->axes + i] -= a->padding[i];
    }
    return EMIT("Pad", x, cn__put_wholes(c, all, 2 * n));
}

bool cn__write_avg_pool(onnx_put *c)
{
    const cn__pool_attrs *a = c->step->attrs;
    onnx_val *x = with_batch(c, a->axes);
    int64_t pads[6];
    double count = 1;
    bool more = false;
    pads_of(c, a, pads);
    for (int64_t i = 0; i < a->axes; i++) {
        count *= (double)a->kernel[i];
        more |= pads[a->axes + i] != pads[i];
    }
    const bool include = a->divisor || !a->exclude_padding;
    const bool split = include && more && !a->divisor; /* with a divisor, all that is padding counts as 0 */
    if (split) x = with_zeros(c, a, x, pads);
    window(c, a, pads);
    cn__put_int(c, "count_include_pad", include && !split);
    x = EMIT("AveragePool", x);
    if (a->divisor) x = EMIT("Mul", x, cn__put_number(c, cn__put_meta(c, 0)->dtype, count / (double)a->divisor));
    return GIVE(as_before(c, a->axes, x));
}

/* ---- windows that divide an axis evenly ---- */

/* One axis after the other: each window is cut out and reduced, and the results are joined. */
static onnx_val *reduce_windows(onnx_put *c, const char *op, onnx_val *x, int64_t axis, int64_t in, int64_t out)
{
    onnx_val **parts = cn__bump_new(&c->w->ctx->memory, &c->w->memory, sizeof *parts * (size_t)(out + 1));
    if (!parts) {
        c->w->failed = true;
        cn__no_memory(c->w->ctx, "onnx_save");
        return NULL;
    }
    for (int64_t i = 0; i < out; i++) {
        onnx_val *part = cn__put_slice(c, x, axis, i * in / out, ((i + 1) * in + out - 1) / out, 1);
        parts[i] = cn__put_reduce(c, op, part, &axis, 1, true);
    }
    return cn__put_join(c, axis, parts, (int)out);
}

bool cn__write_adaptive_pool(onnx_put *c)
{
    const cn__pool_attrs *a = c->step->attrs;
    const bool max = !strncmp(c->step->op->name, "adaptive_max", 12);
    const cn_layout *l = cn__put_in(c);
    const int first = l->ndim - (int)a->axes;
    bool even = true, whole = true;
    int64_t kernel[3];
    if (max && cn__put_result(c, 1) && cn__res((cn__ref){ c->step->result.node, 1 })->consumers)
        return cn__put_refuse(c, "indices of adaptive pooling");
    for (int i = 0; i < a->axes; i++) {
        const int64_t in = l->shape[first + i];
        if (!a->out[i] || !in) return cn__put_refuse(c, "no elements");
        even &= in % a->out[i] == 0;
        whole &= a->out[i] == 1;
        kernel[i] = in / a->out[i];
    }
    onnx_val *x = with_batch(c, a->axes);
    if (whole) x = EMIT(max ? "GlobalMaxPool" : "GlobalAveragePool", x);
    else if (even) {
        cn__put_ints(c, "kernel_shape", kernel, (int)a->axes);
        cn__put_ints(c, "strides", kernel, (int)a->axes);
        x = EMIT(max ? "MaxPool" : "AveragePool", x);
    } else {
        for (int i = 0; i < a->axes; i++)
            x = reduce_windows(c, max ? "ReduceMax" : "ReduceMean", x, 2 + i, l->shape[first + i], a->out[i]);
    }
    return GIVE(as_before(c, a->axes, x));
}

/* ---- resizing ---- */

static bool resize(onnx_put *c, int64_t axes, const char *mode, const char *coordinates)
{
    const cn_layout *out = &cn__put_result(c, 0)->layout;
    const int64_t *other = c->twin ? cn__res(c->twin->result)->meta->layout.shape : NULL;
    int64_t a[CN_MAX_DIMS + 1], b[CN_MAX_DIMS + 1];
    int n = 0;
    if (lacks_batch(c, axes)) a[n] = b[n] = 1, n++;
    for (int d = 0; d < out->ndim; d++, n++) a[n] = out->shape[d], b[n] = other ? other[d] : a[n];
    onnx_val *sizes = cn__put_sizes(c, a, b, n), *x = with_batch(c, axes);
    cn__put_text(c, "mode", mode);
    cn__put_text(c, "coordinate_transformation_mode", coordinates);
    if (!strcmp(mode, "nearest")) cn__put_text(c, "nearest_mode", "floor");
    return GIVE(as_before(c, axes, EMIT("Resize", x, (onnx_val *)NULL, (onnx_val *)NULL, sizes)));
}

bool cn__write_interpolate_bilinear(onnx_put *c)
{
    const cn__resize_attrs *a = c->step->attrs;
    return resize(c, 2, "linear", a->align_corners ? "align_corners" : "half_pixel");
}

bool cn__write_interpolate_nearest(onnx_put *c)
{
    const cn__nearest_attrs *a = c->step->attrs;
    return resize(c, a->axes, "nearest", "asymmetric");
}

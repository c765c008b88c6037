/* How views, joining and padding are written. */
#include "onnx/put.h"
#include "ops/join/join.h"
#include "ops/view/view.h"

static const cn_layout *out_of(const onnx_put *c) { return &cn__put_result(c, 0)->layout; }
static const int64_t *other_out(const onnx_put *c)
{
    return c->twin ? cn__res(c->twin->result)->meta->layout.shape : NULL;
}
static const int64_t *other_in(const onnx_put *c)
{
    return c->twin ? cn__res(c->twin->in[0])->meta->layout.shape : NULL;
}

/* In a Reshape 0 is the size of the same axis before, and one size may be -1. If these two say all sizes that follow the
   batch, the shape is a constant. */
static bool shape_as_constant(const onnx_put *c, int64_t *shape)
{
    const cn_layout *in = cn__put_in(c), *out = out_of(c);
    const int64_t *in2 = other_in(c), *out2 = other_out(c);
    int open = 0;
    for (int i = 0; i < out->ndim; i++) {
        shape[i] = out->shape[i];
        if (shape[i] == 0) return false;
        if (!out2 || out2[i] == shape[i]) continue;
        const bool same = i < in->ndim && in->shape[i] == shape[i] && in2[i] == out2[i];
        shape[i] = same ? 0 : -1;
        open += !same;
    }
    return open <= 1;
}

bool cn__write_view(onnx_put *c)
{
    int64_t shape[CN_MAX_DIMS];
    const cn_layout *out = out_of(c);
    if (shape_as_constant(c, shape)) return GIVE(EMIT("Reshape", OF(0), cn__put_wholes(c, shape, out->ndim)));
    onnx_val *sizes = cn__put_sizes(c, out->shape, other_out(c), out->ndim);
    if (c->w->opset >= 14) cn__put_int(c, "allowzero", 1);
    return GIVE(EMIT("Reshape", OF(0), sizes));
}

bool cn__write_permute(onnx_put *c)
{
    const cn__list_attrs *a = c->step->attrs;
    return GIVE(cn__put_transpose(c, OF(0), a->v, (int)a->n));
}

static int axes_of(int64_t set, int ndim, int64_t *axes)
{
    int n = 0;
    for (int d = 0; d < ndim; d++)
        if (set >> d & 1) axes[n++] = d;
    return n;
}

bool cn__write_squeeze(onnx_put *c)
{
    const cn__mask_attrs *a = c->step->attrs;
    const cn_layout *l = cn__put_in(c);
    int64_t axes[CN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < l->ndim; d++)
        if (a->axes >> d & 1 && l->shape[d] == 1) axes[n++] = d;
    return GIVE(n ? EMIT("Squeeze", OF(0), cn__put_wholes(c, axes, n)) : OF(0));
}

bool cn__write_unsqueeze(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    return GIVE(cn__put_unsqueeze(c, OF(0), a->axis));
}

/* Sizes that the operand has already may be 1. */
bool cn__write_expand(onnx_put *c)
{
    const cn_layout *in = cn__put_in(c), *out = out_of(c);
    const int64_t *in2 = other_in(c), *out2 = other_out(c);
    int64_t a[CN_MAX_DIMS], b[CN_MAX_DIMS];
    bool grows = in->ndim != out->ndim;
    for (int i = 0; i < out->ndim; i++) {
        const int k = i - (out->ndim - in->ndim);
        a[i] = out->shape[i];
        b[i] = out2 ? out2[i] : a[i];
        if (k >= 0 && in->shape[k] == a[i] && (!in2 || in2[k] == b[i])) a[i] = b[i] = 1;
        else grows = true;
    }
    return GIVE(grows ? EMIT("Expand", OF(0), cn__put_sizes(c, a, b, out->ndim)) : OF(0));
}

bool cn__write_flip(onnx_put *c)
{
    const cn__mask_attrs *a = c->step->attrs;
    int64_t axes[CN_MAX_DIMS], starts[CN_MAX_DIMS], ends[CN_MAX_DIMS], steps[CN_MAX_DIMS];
    const int n = axes_of(a->axes, cn__put_in(c)->ndim, axes);
    for (int i = 0; i < n; i++) starts[i] = steps[i] = -1, ends[i] = INT64_MIN;
    if (!n) return GIVE(OF(0));
    return GIVE(EMIT("Slice", OF(0), cn__put_wholes(c, starts, n), cn__put_wholes(c, ends, n),
                     cn__put_wholes(c, axes, n), cn__put_wholes(c, steps, n)));
}

/* From the start to behind the last element; to the end of the axis if that is where it ends in both traces. */
bool cn__write_slice(onnx_put *c)
{
    const cn__slice_attrs *a = c->step->attrs, *b = c->twin ? c->twin->attrs : a;
    const cn_arg *p = c->step->args, *q = c->twin ? c->twin->args : p;
    if (a->axis != b->axis || a->step != b->step) c->w->not_alike = true;
    const int64_t size[2] = { cn__put_in(c)->shape[a->axis],
                              c->twin ? other_in(c)[a->axis] : cn__put_in(c)->shape[a->axis] };
    int64_t end[2] = { p[0].i + (a->length - 1) * a->step + 1, q[0].i + (b->length - 1) * b->step + 1 };
    if (!a->length) end[0] = p[0].i;
    if (!b->length) end[1] = q[0].i;
    const bool to_end = end[0] == size[0] && end[1] == size[1] && a->length;
    if (to_end && p[0].i == 0 && q[0].i == 0 && a->step == 1) return GIVE(OF(0));
    if (to_end) end[0] = end[1] = INT64_MAX;
    return GIVE(EMIT("Slice", OF(0), cn__put_sizes(c, &p[0].i, &q[0].i, 1), cn__put_sizes(c, &end[0], &end[1], 1),
                     cn__put_whole(c, a->axis), cn__put_whole(c, a->step)));
}

/* The last cells of an LSTM stand for those of all steps: whoever selects the last step gets them. */
static bool select_last_cell(onnx_put *c, onnx_val *x)
{
    if (c->step->args[0].i != x->steps)
        return cn__put_refuse(c, "cell states of an LSTM before its last step are no result of ONNX's LSTM");
    return GIVE(cn__put_squeeze(c, x, 0));
}

bool cn__write_select(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    const cn_arg *p = c->step->args, *q = c->twin ? c->twin->args : p;
    onnx_val *x = OF(0);
    if (x && x->last) return select_last_cell(c, x);
    const int64_t size = cn__put_in(c)->shape[a->axis], other = c->twin ? other_in(c)[a->axis] : size;
    int64_t index[2] = { p[0].i, q[0].i };
    /* an index that moves is counted from the end, if that makes it stay */
    if (index[0] != index[1] && index[0] - size == index[1] - other) index[0] -= size, index[1] -= other;
    onnx_val *at = index[0] == index[1] ? cn__put_constant(c, CN_I64, CN_SCALAR, index)
                                        : cn__put_squeeze(c, cn__put_sizes(c, &index[0], &index[1], 1), 0);
    cn__put_int(c, "axis", a->axis);
    return GIVE(EMIT("Gather", x, at));
}

/* Numbers first, first + step, .. */
static onnx_val *indices(onnx_put *c, int64_t first, int64_t step, int64_t n, int64_t inner_step, int64_t inner)
{
    int64_t *v = cn__bump_new(&c->w->ctx->memory, &c->w->memory, sizeof *v * (size_t)(n * inner + 1));
    if (!v) {
        c->w->failed = true;
        cn__no_memory(c->w->ctx, "onnx_save");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < inner; k++) v[i * inner + k] = first + i * step + k * inner_step;
    return cn__put_constant(c, CN_I64, inner == 1 ? CN_DIMS(n) : CN_DIMS(n, inner), v);
}

/* The two axes go to the end and become one, of which every (columns + 1)th element is taken. */
bool cn__write_diagonal(onnx_put *c)
{
    const cn__diagonal_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c), *out = out_of(c);
    int64_t order[CN_MAX_DIMS], shape[CN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < in->ndim; d++)
        if (d != a->axis1 && d != a->axis2) order[n++] = d;
    order[n] = a->axis1, order[n + 1] = a->axis2;
    for (int d = 0; d < n; d++) shape[d] = 0;
    shape[n] = -1;
    const int64_t cols = in->shape[a->axis2], length = out->shape[out->ndim - 1];
    if (c->twin && (other_in(c)[a->axis2] != cols || other_out(c)[out->ndim - 1] != length)) c->w->not_alike = true;
    const int64_t first = a->offset >= 0 ? a->offset : -a->offset * cols;
    onnx_val *x = cn__put_transpose(c, OF(0), order, in->ndim), *at = indices(c, first, cols + 1, length, 0, 1);
    x = EMIT("Reshape", x, cn__put_wholes(c, shape, n + 1));
    cn__put_int(c, "axis", n);
    return GIVE(EMIT("Gather", x, at));
}

/* Windows become an axis of their own beside the one they move along, and go to the end. */
bool cn__write_unfold(onnx_put *c)
{
    const cn__unfold_attrs *a = c->step->attrs;
    const cn_layout *out = out_of(c);
    if (!cn__put_in(c)->ndim) return GIVE(cn__put_unsqueeze(c, OF(0), 0));
    if (c->twin && other_out(c)[a->axis] != out->shape[a->axis]) c->w->not_alike = true;
    onnx_val *at = indices(c, 0, a->step, out->shape[a->axis], 1, a->size), *x = OF(0);
    if (a->size == 1) at = cn__put_unsqueeze(c, at, 1);
    cn__put_int(c, "axis", a->axis);
    x = EMIT("Gather", x, at);
    int64_t order[CN_MAX_DIMS];
    for (int d = 0; d < out->ndim; d++) order[d] = d <= a->axis ? d : d == out->ndim - 1 ? a->axis + 1 : d + 1;
    return GIVE(cn__put_transpose(c, x, order, out->ndim));
}

/* ---- joining ---- */

bool cn__write_cat(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    onnx_val **in = cn__bump_new(&c->w->ctx->memory, &c->w->memory, sizeof *in * (size_t)c->step->n_in), *out;
    if (!in) {
        c->w->failed = true;
        return cn__no_memory(c->w->ctx, "onnx_save");
    }
    for (int i = 0; i < c->step->n_in; i++) in[i] = OF(i);
    cn__put_int(c, "axis", a->axis);
    return cn__put_nodes(c, "Concat", in, c->step->n_in, &out, 1) && GIVE(out);
}

bool cn__write_pad(onnx_put *c)
{
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    const cn__pad_attrs *a = c->step->attrs;
    const int n = cn__put_in(c)->ndim;
    int64_t pads[2 * CN_MAX_DIMS];
    if (!n) return GIVE(OF(0));
    for (int d = 0; d < n; d++) pads[d] = a->before[d], pads[n + d] = a->after[d];
    if (a->mode == CN_PAD_CIRCULAR && c->w->opset < 19)
        return cn__put_refuse(c, "circular padding needs operator set 19");
    onnx_val *list = cn__put_wholes(c, pads, 2 * n);
    if (a->mode != CN_PAD_CONSTANT) {
        cn__put_text(c, "mode", modes[a->mode]);
        return GIVE(EMIT("Pad", OF(0), list));
    }
    onnx_val *value = cn__put_number(c, cn__put_meta(c, 0)->dtype, c->step->args[0].f);
    return GIVE(EMIT("Pad", OF(0), list, value));
}

/* What is before the slice, the value, what is behind it; with steps, the places are named one by one. */
bool cn__write_slice_assign(onnx_put *c)
{
    const cn__slice_attrs *a = c->step->attrs;
    const cn_layout *value = &cn__put_meta(c, 1)->layout;
    const int64_t start = c->step->args[0].i, size = cn__put_in(c)->shape[a->axis];
    if (c->twin && other_in(c)[a->axis] != size) c->w->not_alike = true;
    if (!a->length) return GIVE(OF(0));
    if (a->step == 1) {
        onnx_val *parts[3];
        int n = 0;
        if (start > 0) parts[n++] = cn__put_slice(c, OF(0), a->axis, 0, start, 1);
        parts[n++] = OF(1);
        if (start + a->length < size) parts[n++] = cn__put_slice(c, OF(0), a->axis, start + a->length, INT64_MAX, 1);
        return GIVE(n == 1 ? OF(1) : cn__put_join(c, a->axis, parts, n));
    }
    int64_t shape[CN_MAX_DIMS];
    for (int d = 0; d < value->ndim; d++) shape[d] = d == a->axis ? a->length : 1;
    onnx_val *at = EMIT("Reshape", indices(c, start, a->step, a->length, 0, 1), cn__put_wholes(c, shape, value->ndim));
    onnx_val *all = EMIT("Shape", OF(1));
    at = EMIT("Expand", at, all);
    cn__put_int(c, "axis", a->axis);
    return GIVE(EMIT("ScatterElements", OF(0), at, OF(1)));
}

/* ---- planes and channels ---- */

bool cn__write_pixel_shuffle(onnx_put *c)
{
    const cn__shuffle_attrs *a = c->step->attrs;
    cn__put_int(c, "blocksize", a->n);
    cn__put_text(c, "mode", "CRD");
    return GIVE(EMIT("DepthToSpace", OF(0)));
}

/* SpaceToDepth puts the place in the block before the channel: the channels are reordered. */
bool cn__write_pixel_unshuffle(onnx_put *c)
{
    const cn__shuffle_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c);
    const int64_t channels = in->shape[1], block = a->n * a->n;
    int64_t apart[5] = { 0, block, channels, in->shape[2] / a->n, in->shape[3] / a->n };
    int64_t together[4] = { 0, channels * block, in->shape[2] / a->n, in->shape[3] / a->n };
    cn__put_int(c, "blocksize", a->n);
    onnx_val *x = EMIT("SpaceToDepth", OF(0));
    if (channels == 1) return GIVE(x);
    x = EMIT("Reshape", x, cn__put_wholes(c, apart, 5));
    x = cn__put_transpose(c, x, (const int64_t[]){ 0, 2, 1, 3, 4 }, 5);
    return GIVE(EMIT("Reshape", x, cn__put_wholes(c, together, 4)));
}

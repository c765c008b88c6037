/* slice, select, narrow, split, chunk, tensor_split and unbind: parts along one axis. The start of a part is an argument,
   so a window that moves through the data uses the same plan every time. */
#include "ops/view/view.h"

/* x[start], x[start + step], .., `length` elements. */
static bool infer_slice(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, x->ndim)) return false;
    int64_t size = x->shape[a->axis], start = i->args ? i->args[0].i : 0;
    if (a->step < 1)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "step must be > 0, got %lld", (long long)a->step);
    bool inside = a->length == 0
                      ? start >= 0 && start <= size
                      : a->length > 0 && start >= 0 && start < size && (size - 1 - start) / a->step >= a->length - 1;
    if (!inside)
        return cn_infer_fail(
            i, CN_BAD_ARGUMENT, "%lld elements from %lld in steps of %lld do not lie inside axis %lld of size %lld",
            (long long)a->length, (long long)start, (long long)a->step, (long long)a->axis, (long long)size);
    i->out[0] = *i->in[0];
    cn_layout *out = &i->out[0].layout;
    out->shape[a->axis] = a->length;
    if (a->length > 1) out->stride[a->axis] *= a->step;
    if (cn__numel(out)) out->offset += start * x->stride[a->axis];
    return true;
}

static void grad_slice(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[0], (int)a.axis);
    cn__add_piece(g, g->out_grad[0], &a);
}

const cn_op cn__op_slice = {
    .call = "slice(Tensor input, int dim=0, int start=0, int end=9223372036854775807, int step=1) -> Tensor",
    .name = "slice",
    .doc = "Every step-th element along an axis, from a start on.",
    .kind = CN_VIEW,
    .onnx = "Slice",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__slice_attrs),
    .infer = infer_slice,
    .grad = grad_slice,
    CN_CASES({ CN_IN(CN_S(4, 5)), .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(3, 7, 2)), .attrs = &(const cn__slice_attrs){ 1, 3, 3 }, CN_ARGS({ .i = 0 }) },
             { CN_IN(CN_S(7)), .attrs = &(const cn__slice_attrs){ 0, 0, 2 }, CN_ARGS({ .i = 7 }) },
             { CN_IN(CN_S(0, 3)), .attrs = &(const cn__slice_attrs){ 1, 2, 1 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(1)), .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, CN_ARGS({ .i = 0 }) },
             { CN_IN(CN_S(61, 50)), .attrs = &(const cn__slice_attrs){ 0, 30, 2 }, CN_ARGS({ .i = 1 }) }),
};

/* A start or end, with Python's meaning of negative and large numbers. */
static int64_t clamped(int64_t at, int64_t size)
{
    if (at < 0) at += size;
    return at < 0 ? 0 : at > size ? size : at;
}

cn_tensor *cn_slice(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    if (!cn__alive(x)) return NULL;
    const cn_layout *l = cn__layout(x);
    cn__slice_attrs a = { cn__from_front(axis, l->ndim), 0, step };
    cn_arg args[CN_MAX_ARGS] = { { .i = 0 } };
    if (a.axis >= 0 && a.axis < l->ndim && step > 0) { /* otherwise the shape rule fails */
        int64_t from = clamped(start, l->shape[a.axis]), to = clamped(end, l->shape[a.axis]);
        args[0].i = from;
        a.length = to > from ? (to - from - 1) / step + 1 : 0;
    }
    return cn_apply(&cn__op_slice, &x, 1, &a, args);
}

/* ---- select: one index along an axis; the result lacks this axis ---- */

static bool infer_select(cn_infer *i)
{
    const cn__axis_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, x->ndim)) return false;
    int64_t index = i->args ? i->args[0].i : 0;
    if (index < 0 || index >= x->shape[a->axis])
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "index %lld is out of range for axis %lld of size %lld",
                             (long long)index, (long long)a->axis, (long long)x->shape[a->axis]);
    i->out[0] = *i->in[0];
    cn_layout *out = &i->out[0].layout;
    out->ndim = x->ndim - 1;
    for (int d = (int)a->axis; d < out->ndim; d++) {
        out->shape[d] = x->shape[d + 1];
        out->stride[d] = x->stride[d + 1];
    }
    if (cn__numel(out)) out->offset += index * x->stride[a->axis];
    return true;
}

static void grad_select(cn_grad_call *g)
{
    const cn__axis_attrs *at = g->attrs;
    cn__slice_attrs a = { at->axis, cn_size(g->in[0], (int)at->axis), 1 };
    cn__add_piece(g, cn_unsqueeze(g->out_grad[0], at->axis), &a);
}

const cn_op cn__op_select = {
    .call = "select(Tensor input, int dim, int index) -> Tensor",
    .name = "select",
    .doc = "The elements at one index of an axis; the result lacks this axis.",
    .kind = CN_VIEW,
    .onnx = "Gather",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_attrs),
    .infer = infer_select,
    .grad = grad_select,
    CN_CASES({ CN_IN(CN_S(4, 5)), .attrs = &(const cn__axis_attrs){ 1 }, CN_ARGS({ .i = 2 }) },
             { CN_IN(CN_S(3, 7, 2)), .attrs = &(const cn__axis_attrs){ 0 }, CN_ARGS({ .i = 2 }) },
             { CN_IN(CN_S(5)), .attrs = &(const cn__axis_attrs){ 0 }, CN_ARGS({ .i = 0 }) },
             { CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_attrs){ 1 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(40, 3, 35)), .attrs = &(const cn__axis_attrs){ 1 }, CN_ARGS({ .i = 1 }) }),
};

cn_tensor *cn_select(cn_tensor *x, int64_t axis, int64_t index)
{
    if (!cn__alive(x)) return NULL;
    const cn_layout *l = cn__layout(x);
    cn__axis_attrs a = { cn__from_front(axis, l->ndim) };
    int64_t size = a.axis >= 0 && a.axis < l->ndim ? l->shape[a.axis] : 0;
    cn_arg args[CN_MAX_ARGS] = { { .i = index < 0 && index >= -size ? index + size : index } };
    return cn_apply(&cn__op_select, &x, 1, &a, args);
}

/* ---- narrow, split, chunk: made of slices ---- */

static cn_tensor *compose_narrow(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    const cn__narrow_attrs *a = attrs;
    const cn_layout *x = cn__layout(in[0]);
    int axis = cn__axis(a->axis, x->ndim);
    int64_t start = args ? args[0].i : 0, size = axis < 0 ? 0 : x->shape[axis];
    if (start < 0 && start >= -size) start += size;
    if (axis < 0 || start < 0 || start > size || a->length < 0 || a->length > size - start) {
        char s[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "narrow: %lld elements from %lld do not lie inside axis %lld of %s",
                 (long long)a->length, args ? (long long)args[0].i : 0, (long long)a->axis,
                 cn__shape_text(x, s, sizeof s));
        return NULL;
    }
    return cn_slice(in[0], axis, start, start + a->length, 1);
}

const cn_op cn__op_narrow = {
    .call = "narrow(Tensor input, int dim, int start, int length) -> Tensor",
    .name = "narrow",
    .doc = "`length` elements along an axis, from `start`.",
    .kind = CN_COMPOSITE,
    .onnx = "Slice",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__narrow_attrs),
    .compose = compose_narrow,
    CN_CASES({ CN_IN(CN_S(4, 5)), .attrs = &(const cn__narrow_attrs){ 1, 3 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(3, 7, 2)), .attrs = &(const cn__narrow_attrs){ -2, 2 }, CN_ARGS({ .i = -3 }) },
             { CN_IN(CN_S(5)), .attrs = &(const cn__narrow_attrs){ 0, 0 }, CN_ARGS({ .i = 5 }) },
             { CN_IN(CN_S(3, 0)), .attrs = &(const cn__narrow_attrs){ 0, 2 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(60, 51)), .attrs = &(const cn__narrow_attrs){ 1, 40 }, CN_ARGS({ .i = 7 }) }),
};

cn_tensor *cn_narrow(cn_tensor *x, int64_t axis, int64_t start, int64_t length)
{
    cn_arg args[CN_MAX_ARGS] = { { .i = start } };
    return cn_apply(&cn__op_narrow, &x, 1, &(cn__narrow_attrs){ axis, length }, args);
}

/* Writes `count` slices of `size` elements along an axis to out; the last may be smaller. */
static int cut(cn_tensor *x, const char *who, int64_t size, int64_t count, int64_t axis, cn_tensor **out, int room)
{
    if (!out || count > room) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: the result has %lld parts, but out has room for %d", who,
                 (long long)count, room);
        return 0;
    }
    for (int k = 0; k < count; k++) {
        out[k] = cn_slice(x, axis, k * size, (k + 1) * size, 1);
        if (!out[k]) return 0;
    }
    return (int)count;
}

/* The axis counted from the front. -1 after an error: there is no such axis, or the number called `name` is below
   `least`. */
static int cut_axis(cn_tensor *x, const char *who, int64_t axis, const char *name, int64_t number, int least)
{
    const cn_layout *l = cn__layout(x);
    int a = cn__axis(axis, l->ndim);
    char s[128];
    if (a < 0)
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dim must be an axis of %s, got %lld", who,
                 cn__shape_text(l, s, sizeof s), (long long)axis);
    else if (number < least)
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: %s must be ≥ %d, got %lld", who, name, least, (long long)number);
    return number < least ? -1 : a;
}

/* After an error all entries are NULL. */
static void clear(cn_tensor **out, int room)
{
    for (int k = 0; out && k < room; k++) out[k] = NULL;
}

int cn_split(cn_tensor *x, int64_t size, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "split", axis, "split_size", size, 0);
    if (a < 0) return 0;
    int64_t whole = cn__layout(x)->shape[a];
    if (size == 0 && whole > 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "split: split_size must be > 0 for an axis of size %lld, got 0",
                 (long long)whole);
        return 0;
    }
    if (size > whole) size = whole;
    return cut(x, "split", size, whole ? (whole - 1) / size + 1 : 1, a, out, room);
}

int cn_chunk(cn_tensor *x, int64_t chunks, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "chunk", axis, "chunks", chunks, 1);
    if (a < 0) return 0;
    int64_t whole = cn__layout(x)->shape[a], size = whole ? (whole - 1) / chunks + 1 : 0;
    return cut(x, "chunk", size, whole ? (whole - 1) / size + 1 : chunks, a, out, room);
}

/* The first `longer` parts have one element more than the others. */
int cn_tensor_split(cn_tensor *x, int64_t sections, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "tensor_split", axis, "sections", sections, 1);
    if (a < 0) return 0;
    int64_t whole = cn__layout(x)->shape[a], size = whole / sections, longer = whole % sections;
    if (!longer || !out || sections > room) return cut(x, "tensor_split", size, sections, a, out, room);
    int64_t end = longer * (size + 1);
    return cut(cn_slice(x, a, 0, end, 1), "tensor_split", size + 1, longer, a, out, room) &&
                   cut(cn_slice(x, a, end, whole, 1), "tensor_split", size, sections - longer, a, out + longer, room)
               ? (int)sections
               : 0;
}

int cn_unbind(cn_tensor *x, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "unbind", axis, "dim", 0, 0);
    if (a < 0) return 0;
    int64_t count = cn__layout(x)->shape[a];
    if (count == 0) return cn__fail(x->ctx, CN_BAD_SHAPE, "unbind: axis %d must have elements, got none", a);
    if (!out || count > room) return cut(x, "unbind", 1, count, a, out, room); /* which fails */
    for (int k = 0; k < count; k++) {
        out[k] = cn_select(x, a, k);
        if (!out[k]) return 0;
    }
    return (int)count;
}

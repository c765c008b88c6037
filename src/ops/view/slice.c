/* Parts along one axis: slice, select, narrow, split, chunk. Where a part starts is an argument, so that a window that
   moves through the data meets the same plan every time. */
#include "ops/view/move.h"
#include "ops/view/view.h"

/* x[start], x[start + step], ...: length of them. */
static bool infer_slice(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, x->ndim)) return false;
    int64_t size = x->shape[a->axis], start = i->args ? i->args[0].i : 0;
    if (a->step < 1)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "a step of %lld; it must be positive", (long long)a->step);
    bool inside = a->length == 0
                      ? start >= 0 && start <= size
                      : a->length > 0 && start >= 0 && start < size && (size - 1 - start) / a->step >= a->length - 1;
    if (!inside)
        return cn_infer_fail(
            i, CN_BAD_ARGUMENT, "%lld elements from %lld on by steps of %lld do not lie on axis %lld of size %lld",
            (long long)a->length, (long long)start, (long long)a->step, (long long)a->axis, (long long)size);
    i->out[0] = *i->in[0];
    cn_layout *out = &i->out[0].layout;
    out->shape[a->axis] = a->length;
    if (a->length > 1) out->stride[a->axis] *= a->step;
    if (cn__numel(out)) out->offset += start * x->stride[a->axis];
    return true;
}

/* The axes of x from the longest stride to the shortest, and at[d], where axis d is among them. */
static cn_dims memory_order(const cn_layout *x, cn_dims *at)
{
    cn_dims order = { .n = x->ndim };
    for (int d = 0; d < x->ndim; d++) {
        int k = d;
        for (; k > 0 && x->stride[order.v[k - 1]] < x->stride[d]; k--) order.v[k] = order.v[k - 1];
        order.v[k] = d;
    }
    at->n = x->ndim;
    for (int k = 0; k < x->ndim; k++) at->v[order.v[k]] = k;
    return order;
}

/* A piece of x's gradient: into zeros if it is the first to arrive, else onto what is there. The gradient lies in memory
   as x does, so that what x is a view of can take it as it is. */
static void put_back(cn_grad_call *g, cn_tensor *piece, const cn__slice_attrs *a)
{
    cn_dims at;
    const cn_dims order = memory_order(cn__layout(g->in[0]), &at);
    cn__slice_attrs there = { at.v[a->axis], a->length, a->step };
    cn_tensor *in[2] = { cn_permute(g->so_far[0], order), cn_permute(piece, order) }, *sum;
    g->summed[0] = g->so_far[0] != NULL;
    if (g->summed[0]) sum = cn_apply(&cn__op_slice_add, in, 2, &there, g->args);
    else sum = cn_apply(&cn__op_slice_backward, &in[1], 1, &there, g->args);
    g->in_grad[0] = cn_permute(sum, at);
}

static void grad_slice(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[0], (int)a.axis);
    put_back(g, g->out_grad[0], &a);
}

const cn_op cn__op_slice = {
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
    CN_CASES({ .in = { CN_S(4, 5) }, .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(3, 7, 2) }, .attrs = &(const cn__slice_attrs){ 1, 3, 3 }, .args = { { .i = 0 } } },
             { .in = { CN_S(7) }, .attrs = &(const cn__slice_attrs){ 0, 0, 2 }, .args = { { .i = 7 } } },
             { .in = { CN_S(0, 3) }, .attrs = &(const cn__slice_attrs){ 1, 2, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(1) }, .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, .args = { { .i = 0 } } },
             { .in = { CN_S(61, 50) }, .attrs = &(const cn__slice_attrs){ 0, 30, 2 }, .args = { { .i = 1 } } }),
};

/* A start or end as Python reads it. */
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
    if (a.axis >= 0 && a.axis < l->ndim && step > 0) { /* if not, the shape rule says so */
        int64_t from = clamped(start, l->shape[a.axis]), to = clamped(end, l->shape[a.axis]);
        args[0].i = from;
        a.length = to > from ? (to - from - 1) / step + 1 : 0;
    }
    return cn_apply(&cn__op_slice, &x, 1, &a, args);
}

/* ---- slice_backward: zeros of the whole length, with g in the places the slice was taken from ---- */

static bool infer_slice_backward(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *g = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, g->ndim)) return false;
    int64_t n = g->shape[a->axis], start = i->args ? i->args[0].i : 0;
    if (a->step < 1 || start < 0 || a->length < 0 ||
        (n > 0 && (start >= a->length || (a->length - 1 - start) / a->step < n - 1)))
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "%lld elements from %lld on by steps of %lld do not fit into %lld",
                             (long long)n, (long long)start, (long long)a->step, (long long)a->length);
    i->out[0] = *i->in[0];
    i->out[0].layout.shape[a->axis] = a->length;
    return true;
}

static void cpu_slice_backward(const cn_kernel *k)
{
    const cn__slice_attrs *a = k->attrs;
    cn__zero_result(k);
    if (k->in[0].numel == 0) return;
    cn__move m = cn__move_of(k, 0);
    cn__move_along(&m, (int)a->axis, k->args[0].i);
    if (m.shape[a->axis] > 1) m.to_stride[a->axis] *= a->step;
    cn__move_run(k, &m);
}

/* Sizes for the GPU, from par(0) on: after the axis, of the axis, of the slice, its step. */
static int gpu_sizes(cn__gpu_call *c, const cn_array *piece)
{
    const cn__slice_attrs *a = c->attrs;
    int at = 0;
    int64_t inner = 1;
    for (int d = (int)a->axis + 1; d < c->out[0].ndim; d++) inner *= c->out[0].shape[d];
    cn__gpu_number(c, &at, inner);
    cn__gpu_number(c, &at, a->length);
    cn__gpu_number(c, &at, piece->shape[a->axis]);
    cn__gpu_number(c, &at, a->step);
    return at;
}

/* Which element of the piece belongs to element i of the whole, or NONE; and the other way round. */
static const char in_piece[] = "const NONE = 0xffffffffu;\n"
                               "fn in_piece(i: u32) -> u32 {\n"
                               "    let inner = par(0u); let t = i / inner; let c = t % par(1u);\n"
                               "    if (c < argu(0u)) { return NONE; }\n"
                               "    let d = c - argu(0u); let n = d / par(3u);\n"
                               "    if (d % par(3u) != 0u || n >= par(2u)) { return NONE; }\n"
                               "    return (t / par(1u) * par(2u) + n) * inner + i % inner;\n"
                               "}\n";
static const char in_whole[] = "fn in_whole(j: u32) -> u32 {\n"
                               "    let inner = par(0u); let t = j / inner; let n = par(2u);\n"
                               "    return (t / n * par(1u) + argu(0u) + t % n * par(3u)) * inner + j % inner;\n"
                               "}\n";

static bool gpu_slice_backward(cn__gpu_call *c)
{
    int at = gpu_sizes(c, &c->in[0]);
    const char *piece = cn__gpu_walk_array(c, "piece", &at, &c->in[0]);
    return cn__gpu_each(c, c->out[0].numel,
                        cn__gpu_text(c,
                                     "%s%sfn each(i: u32) {\n    let j = in_piece(i); var w = 0u;\n"
                                     "    if (j != NONE) { w = raw0(piece(j)); }\n    set_raw0(i, w);\n}\n",
                                     in_piece, piece));
}

static void grad_slice_backward(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[0], (int)a.axis);
    g->in_grad[0] = cn_apply(&cn__op_slice, g->out_grad, 1, &a, g->args);
}

const cn_op cn__op_slice_backward = {
    .name = "slice_backward",
    .doc = "The gradient of slice: zeros around what is given.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .strided = true,
    .attr_size = sizeof(cn__slice_attrs),
    .infer = infer_slice_backward,
    .grad = grad_slice_backward,
    .cpu = cpu_slice_backward,
    .gpu = gpu_slice_backward,
    CN_CASES({ .in = { CN_S(4, 3) }, .attrs = &(const cn__slice_attrs){ 1, 5, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(3, 3, 2) }, .attrs = &(const cn__slice_attrs){ 1, 8, 3 }, .args = { { .i = 1 } } },
             { .in = { CN_S(0) }, .attrs = &(const cn__slice_attrs){ 0, 7, 2 }, .args = { { .i = 7 } } },
             { .in = { CN_S(0, 2) }, .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(1) }, .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, .args = { { .i = 0 } } },
             { .in = { CN_S(100, 200) }, .attrs = &(const cn__slice_attrs){ 0, 201, 2 }, .args = { { .i = 1 } } },
             { .in = { CN_S(160, 210) }, .attrs = &(const cn__slice_attrs){ 0, 650, 4 }, .args = { { .i = 3 } } }),
};

/* ---- slice_add: a slice of x is added to ---- */

static bool infer_slice_add(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *piece = &i->in[1]->layout;
    char s[96], t[96];
    if (!cn__infer_axis(i, a->axis, x->ndim)) return false;
    cn_layout slice = *x;
    slice.shape[a->axis] = piece->ndim == x->ndim ? piece->shape[a->axis] : -1;
    if (!cn__same_shape(&slice, piece) || a->length != x->shape[a->axis])
        return cn_infer_fail(i, CN_BAD_SHAPE, "%s is no slice of %s along axis %lld",
                             cn__shape_text(piece, s, sizeof s), cn__shape_text(x, t, sizeof t), (long long)a->axis);
    const cn_meta *const *in = i->in++; /* does the piece fit? Its own rule says so */
    bool fits = infer_slice_backward(i);
    i->in = in;
    return fits;
}

static void add_row_f32(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes)
{
    (void)bytes;
    float *y = (float *)(void *)to;
    const float *x = (const float *)(const void *)from;
    if (to_stride == 1 && from_stride == 1)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i * to_stride] += x[i * from_stride];
}

static void add_row_f64(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes)
{
    (void)bytes;
    double *y = (double *)(void *)to;
    const double *x = (const double *)(const void *)from;
    for (int64_t i = 0; i < n; i++) y[i * to_stride] += x[i * from_stride];
}

static void cpu_slice_add(const cn_kernel *k)
{
    const cn__slice_attrs *a = k->attrs;
    if (k->out[0].data != k->in[0].data) {
        cn__move all = cn__move_of(k, 0);
        cn__move_run(k, &all);
    }
    if (k->in[1].numel == 0) return;
    cn__move m = cn__move_of(k, 1);
    m.row = k->out[0].dtype == CN_F64 ? add_row_f64 : add_row_f32;
    cn__move_along(&m, (int)a->axis, k->args[0].i);
    if (m.shape[a->axis] > 1) m.to_stride[a->axis] *= a->step;
    cn__move_run(k, &m);
}

/* In place only the slice is looked at; else every element is written once. */
static bool gpu_slice_add(cn__gpu_call *c)
{
    int at = gpu_sizes(c, &c->in[1]);
    const char *piece = cn__gpu_walk_array(c, "piece", &at, &c->in[1]);
    if (cn__gpu_in_place(c))
        return cn__gpu_each(
            c, c->in[1].numel,
            cn__gpu_text(c, "%s%sfn each(j: u32) { let i = in_whole(j); out0(i, in0(i) + in1(piece(j))); }\n", in_whole,
                         piece));
    const char *whole = cn__gpu_walk_array(c, "whole", &at, &c->in[0]);
    return cn__gpu_each(c, c->out[0].numel,
                        cn__gpu_text(c,
                                     "%s%s%sfn each(i: u32) {\n    let j = in_piece(i); var v = in0(whole(i));\n"
                                     "    if (j != NONE) { v += in1(piece(j)); }\n    out0(i, v);\n}\n",
                                     in_piece, piece, whole));
}

static void grad_slice_add(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[1], (int)a.axis);
    if (g->needs[0]) g->in_grad[0] = g->out_grad[0];
    if (g->needs[1]) g->in_grad[1] = cn_apply(&cn__op_slice, g->out_grad, 1, &a, g->args);
}

const cn_op cn__op_slice_add = {
    .name = "slice_add",
    .doc = "x with a slice along an axis added to: how the gradient of several slices of one tensor is put together.",
    .kind = CN_INDEX,
    .n_in = 2,
    .n_out = 1,
    .strided = true,
    .in_place = true,
    .attr_size = sizeof(cn__slice_attrs),
    .infer = infer_slice_add,
    .grad = grad_slice_add,
    .cpu = cpu_slice_add,
    .gpu = gpu_slice_add,
    CN_CASES({ .in = { CN_S(4, 5), CN_S(4, 3) }, .attrs = &(const cn__slice_attrs){ 1, 5, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(3, 8, 2), CN_S(3, 3, 2) },
               .attrs = &(const cn__slice_attrs){ 1, 8, 3 },
               .args = { { .i = 1 } } },
             { .in = { CN_S(7), CN_S(0) }, .attrs = &(const cn__slice_attrs){ 0, 7, 2 }, .args = { { .i = 7 } } },
             { .in = { CN_S(0, 3), CN_S(0, 2) }, .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(1), CN_S(1) }, .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, .args = { { .i = 0 } } },
             { .in = { CN_S(201, 200), CN_S(100, 200) },
               .attrs = &(const cn__slice_attrs){ 0, 201, 2 },
               .args = { { .i = 1 } } }),
};

/* ---- select: one place along an axis, which goes ---- */

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
    put_back(g, cn_unsqueeze(g->out_grad[0], at->axis), &a);
}

const cn_op cn__op_select = {
    .name = "select",
    .doc = "One place along an axis; the axis goes.",
    .kind = CN_VIEW,
    .onnx = "Gather",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_attrs),
    .infer = infer_select,
    .grad = grad_select,
    CN_CASES({ .in = { CN_S(4, 5) }, .attrs = &(const cn__axis_attrs){ 1 }, .args = { { .i = 2 } } },
             { .in = { CN_S(3, 7, 2) }, .attrs = &(const cn__axis_attrs){ 0 }, .args = { { .i = 2 } } },
             { .in = { CN_S(5) }, .attrs = &(const cn__axis_attrs){ 0 }, .args = { { .i = 0 } } },
             { .in = { CN_S(0, 3) }, .attrs = &(const cn__axis_attrs){ 1 }, .args = { { .i = 1 } } },
             { .in = { CN_S(40, 3, 35) }, .attrs = &(const cn__axis_attrs){ 1 }, .args = { { .i = 1 } } }),
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

/* ---- narrow, split, chunk: several ways to say slice ---- */

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
        cn__fail(ctx, CN_BAD_ARGUMENT, "narrow: %lld elements from %lld on do not lie on axis %lld of %s",
                 (long long)a->length, args ? (long long)args[0].i : 0, (long long)a->axis,
                 cn__shape_text(x, s, sizeof s));
        return NULL;
    }
    return cn_slice(in[0], axis, start, start + a->length, 1);
}

const cn_op cn__op_narrow = {
    .name = "narrow",
    .doc = "A run of neighbours along an axis.",
    .kind = CN_COMPOSITE,
    .onnx = "Slice",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__narrow_attrs),
    .compose = compose_narrow,
    CN_CASES({ .in = { CN_S(4, 5) }, .attrs = &(const cn__narrow_attrs){ 1, 3 }, .args = { { .i = 1 } } },
             { .in = { CN_S(3, 7, 2) }, .attrs = &(const cn__narrow_attrs){ -2, 2 }, .args = { { .i = -3 } } },
             { .in = { CN_S(5) }, .attrs = &(const cn__narrow_attrs){ 0, 0 }, .args = { { .i = 5 } } },
             { .in = { CN_S(3, 0) }, .attrs = &(const cn__narrow_attrs){ 0, 2 }, .args = { { .i = 1 } } },
             { .in = { CN_S(60, 51) }, .attrs = &(const cn__narrow_attrs){ 1, 40 }, .args = { { .i = 7 } } }),
};

cn_tensor *cn_narrow(cn_tensor *x, int64_t axis, int64_t start, int64_t length)
{
    cn_arg args[CN_MAX_ARGS] = { { .i = start } };
    return cn_apply(&cn__op_narrow, &x, 1, &(cn__narrow_attrs){ axis, length }, args);
}

/* Parts of `size` (the last may be smaller) along an axis: `count` of them. */
static int cut(cn_tensor *x, const char *who, int64_t size, int64_t count, int64_t axis, cn_tensor **out, int room)
{
    if (!out || count > room) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: %lld parts, and room for %d", who, (long long)count, room);
        return 0;
    }
    for (int k = 0; k < count; k++) {
        out[k] = cn_slice(x, axis, k * size, (k + 1) * size, 1);
        if (!out[k]) return 0;
    }
    return (int)count;
}

/* The axis counted from the front, or -1 and an error. */
static int cut_axis(cn_tensor *x, const char *who, int64_t axis, bool possible, int64_t by)
{
    const cn_layout *l = cn__layout(x);
    int a = possible ? cn__axis(axis, l->ndim) : -1;
    char s[128];
    if (a < 0)
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: %s cannot be cut along axis %lld by %lld", who,
                 cn__shape_text(l, s, sizeof s), (long long)axis, (long long)by);
    return a;
}

/* What is not filled is NULL, so that a caller who goes on does no harm. */
static void clear(cn_tensor **out, int room)
{
    for (int k = 0; out && k < room; k++) out[k] = NULL;
}

int cn_split(cn_tensor *x, int64_t size, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "split", axis, size >= 0, size);
    if (a < 0) return 0;
    int64_t whole = cn__layout(x)->shape[a];
    if (size == 0 && whole > 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "split: parts of size 0 never make up %lld", (long long)whole);
        return 0;
    }
    if (size > whole) size = whole;
    return cut(x, "split", size, whole ? (whole - 1) / size + 1 : 1, a, out, room);
}

int cn_chunk(cn_tensor *x, int64_t chunks, int64_t axis, cn_tensor **out, int room)
{
    clear(out, room);
    if (!cn__alive(x)) return 0;
    int a = cut_axis(x, "chunk", axis, chunks > 0, chunks);
    if (a < 0) return 0;
    int64_t whole = cn__layout(x)->shape[a], size = whole ? (whole - 1) / chunks + 1 : 0;
    return cut(x, "chunk", size, whole ? (whole - 1) / size + 1 : chunks, a, out, room);
}

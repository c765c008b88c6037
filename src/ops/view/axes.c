/* Views that rearrange axes: permute, transpose, squeeze, unsqueeze, expand, flip. */
#include "ops/view/view.h"

int64_t cn__from_front(int64_t axis, int ndim)
{
    int a = cn__axis(axis, ndim);
    return a < 0 ? axis : a;
}

bool cn__infer_axis(cn_infer *i, int64_t axis, int ndim)
{
    if (axis >= 0 && axis < ndim) return true;
    char s[128];
    return cn_infer_fail(i, CN_BAD_ARGUMENT, "axis %lld is out of range for %s", (long long)axis,
                         cn__shape_text(&i->in[0]->layout, s, sizeof s));
}

bool cn__list(cn_ctx *ctx, const char *who, cn_dims dims, cn__list_attrs *list)
{
    *list = (cn__list_attrs){ 0 };
    if (dims.n < 0 || dims.n > CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: expects a list of 0 to %d numbers, got %d", who, CN_MAX_DIMS,
                        dims.n);
    list->n = dims.n;
    for (int d = 0; d < dims.n; d++) list->v[d] = dims.v[d];
    return true;
}

const char *cn__list_text(const cn__list_attrs *list, char *buf, size_t size)
{
    cn_layout l = { .ndim = list->n < 0 ? 0 : list->n > CN_MAX_DIMS ? CN_MAX_DIMS : (int)list->n };
    for (int d = 0; d < l.ndim; d++) l.shape[d] = list->v[d];
    return cn__shape_text(&l, buf, size);
}

static void grad_reshape(cn_grad_call *g) { g->in_grad[0] = cn_reshape(g->out_grad[0], cn_shape(g->in[0])); }

/* ---- permute, transpose ---- */

static bool infer_permute(cn_infer *i)
{
    const cn__list_attrs *order = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    cn_meta *out = &i->out[0];
    *out = *i->in[0];
    unsigned seen = 0;
    for (int d = 0; d < x->ndim && order->n == x->ndim; d++) {
        int64_t a = order->v[d];
        if (a < 0 || a >= x->ndim) break;
        seen |= 1u << a;
        out->layout.shape[d] = x->shape[a];
        out->layout.stride[d] = x->stride[a];
    }
    if (order->n == x->ndim && seen == (1u << x->ndim) - 1) return true;
    char s[128], t[128];
    return cn_infer_fail(i, CN_BAD_ARGUMENT, "the order must name each axis once, got %s for shape %s",
                         cn__list_text(order, s, sizeof s), cn__shape_text(x, t, sizeof t));
}

static void grad_permute(cn_grad_call *g)
{
    const cn__list_attrs *order = g->attrs;
    cn_dims inverse = { .n = (int)order->n };
    for (int d = 0; d < inverse.n; d++) inverse.v[order->v[d]] = d;
    g->in_grad[0] = cn_permute(g->out_grad[0], inverse);
}

const cn_op cn__op_permute = {
    .call = "permute(Tensor input, int[] dims) -> Tensor",
    .name = "permute",
    .doc = "Rearranges the axes.",
    .kind = CN_VIEW,
    .onnx = "Transpose",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .infer = infer_permute,
    .grad = grad_permute,
    CN_CASES(
        { CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__list_attrs){ 3, { 2, 0, 1 } } },
        { CN_IN(CN_S(5, 7)), .attrs = &(const cn__list_attrs){ 2, { 1, 0 } } },
        { CN_IN(CN_S(3, 0, 2)), .attrs = &(const cn__list_attrs){ 3, { 1, 2, 0 } } },
        { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 0, { 0 } } },
        { CN_IN(CN_S(2, 1, 2, 1, 2, 1, 2, 3)), .attrs = &(const cn__list_attrs){ 8, { 7, 0, 6, 1, 5, 2, 4, 3 } } },
        { CN_IN(CN_S(17, 9, 33)), .attrs = &(const cn__list_attrs){ 3, { 2, 1, 0 } } }),
};

cn_tensor *cn_permute(cn_tensor *x, cn_dims order)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "permute", order, &a)) return NULL;
    for (int d = 0; d < a.n; d++) a.v[d] = cn__from_front(a.v[d], cn_ndim(x));
    return cn_apply(&cn__op_permute, &x, 1, &a, NULL);
}

static cn_tensor *compose_transpose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__axis_pair_attrs *t = attrs;
    const cn_layout *x = cn__layout(in[0]);
    int least = x->ndim ? x->ndim : 1, a = cn__axis(t->a, least), b = cn__axis(t->b, least);
    if (a < 0 || b < 0) {
        char s[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "transpose: dim0 and dim1 must be axes of %s, got %lld and %lld",
                 cn__shape_text(x, s, sizeof s), (long long)t->a, (long long)t->b);
        return NULL;
    }
    cn_dims order = { .n = x->ndim };
    for (int d = 0; d < x->ndim; d++) order.v[d] = d == a ? b : d == b ? a : d;
    return cn_permute(in[0], order);
}

const cn_op cn__op_transpose = {
    .call = "transpose(Tensor input, int dim0, int dim1) -> Tensor",
    .name = "transpose",
    .doc = "Exchanges two axes.",
    .kind = CN_COMPOSITE,
    .onnx = "Transpose",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_pair_attrs),
    .compose = compose_transpose,
    CN_CASES({ CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_pair_attrs){ 0, -1 } },
             { CN_IN(CN_S(5, 0)), .attrs = &(const cn__axis_pair_attrs){ 0, 1 } },
             { CN_IN(CN_S0), .attrs = &(const cn__axis_pair_attrs){ 0, -1 } },
             { CN_IN(CN_S(65, 63)), .attrs = &(const cn__axis_pair_attrs){ 1, 0 } }),
};

cn_tensor *cn_transpose(cn_tensor *x, int64_t a, int64_t b)
{
    return cn_apply(&cn__op_transpose, &x, 1, &(cn__axis_pair_attrs){ a, b }, NULL);
}

/* ---- squeeze, unsqueeze ---- */

/* Sets the axes as bits. As in PyTorch, axis 0 is allowed for a tensor without axes. */
static bool axes_mask(cn_tensor *x, const char *who, cn_dims axes, cn__mask_attrs *mask)
{
    int ndim = cn_ndim(x), least = ndim ? ndim : 1;
    cn__list_attrs list = { 0 };
    mask->axes = axes.n == -1 ? (INT64_C(1) << ndim) - 1 : 0;
    if (axes.n != -1 && !cn__list(x->ctx, who, axes, &list)) return false;
    for (int d = 0; d < list.n; d++) {
        int a = cn__axis(list.v[d], least);
        char s[128];
        if (a < 0 || mask->axes >> a & 1)
            return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %lld is %s %s", who, (long long)list.v[d],
                            a < 0 ? "out of range for" : "given twice for", cn__shape_text(cn__layout(x), s, sizeof s));
        mask->axes |= INT64_C(1) << a;
    }
    return true;
}

static bool infer_squeeze(cn_infer *i)
{
    const cn__mask_attrs *mask = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    cn_layout *out = &i->out[0].layout;
    i->out[0].dtype = i->in[0]->dtype;
    out->offset = x->offset;
    out->ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 1 && mask->axes >> d & 1) continue;
        out->shape[out->ndim] = x->shape[d];
        out->stride[out->ndim++] = x->stride[d];
    }
    return true;
}

const cn_op cn__op_squeeze = {
    .call = "squeeze(Tensor input, int[] dim=None) -> Tensor",
    .name = "squeeze",
    .doc = "Removes axes of size 1.",
    .kind = CN_VIEW,
    .onnx = "Squeeze",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__mask_attrs),
    .infer = infer_squeeze,
    .grad = grad_reshape,
    CN_CASES({ CN_IN(CN_S(1, 3, 1, 2)), .attrs = &(const cn__mask_attrs){ 15 } },
             { CN_IN(CN_S(1, 3, 1)), .attrs = &(const cn__mask_attrs){ 6 } },
             { CN_IN(CN_S(0, 1)), .attrs = &(const cn__mask_attrs){ 2 } },
             { CN_IN(CN_S0), .attrs = &(const cn__mask_attrs){ 1 } },
             { CN_IN(CN_S(41, 1, 77)), .attrs = &(const cn__mask_attrs){ 2 } }),
};

cn_tensor *cn_squeeze(cn_tensor *x, cn_dims axes)
{
    cn__mask_attrs a;
    if (!cn__alive(x) || !axes_mask(x, "squeeze", axes, &a)) return NULL;
    return cn_apply(&cn__op_squeeze, &x, 1, &a, NULL);
}

static bool infer_unsqueeze(cn_infer *i)
{
    const cn__axis_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    cn_layout *out = &i->out[0].layout;
    if (!cn__infer_axis(i, a->axis, x->ndim + 1)) return false;
    if (x->ndim == CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "a result has at most %d axes, got an operand with %d", CN_MAX_DIMS,
                             x->ndim);
    i->out[0] = *i->in[0];
    out->ndim = x->ndim + 1;
    for (int d = (int)a->axis; d < x->ndim; d++) {
        out->shape[d + 1] = x->shape[d];
        out->stride[d + 1] = x->stride[d];
    }
    out->shape[a->axis] = 1;
    out->stride[a->axis] = a->axis < x->ndim ? x->shape[a->axis] * x->stride[a->axis] : 1;
    return true;
}

const cn_op cn__op_unsqueeze = {
    .call = "unsqueeze(Tensor input, int dim) -> Tensor",
    .name = "unsqueeze",
    .doc = "Inserts an axis of size 1.",
    .kind = CN_VIEW,
    .onnx = "Unsqueeze",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_attrs),
    .infer = infer_unsqueeze,
    .grad = grad_reshape,
    CN_CASES({ CN_IN(CN_S(2, 3)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(5)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(0, 3)), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S0), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(31, 97)), .attrs = &(const cn__axis_attrs){ 2 } }),
};

cn_tensor *cn_unsqueeze(cn_tensor *x, int64_t axis)
{
    if (!cn__alive(x)) return NULL;
    cn__axis_attrs a = { cn__from_front(axis, cn_ndim(x) + 1) };
    return cn_apply(&cn__op_unsqueeze, &x, 1, &a, NULL);
}

/* ---- expand ---- */

/* Sets size and stride of axis d of the result from axis s of x; s < 0: a new axis. */
static bool expand_axis(const cn_layout *x, int s, int64_t want, int64_t *size, int64_t *stride)
{
    int64_t have = s < 0 ? 1 : x->shape[s];
    *size = want == -1 && s >= 0 ? have : want;
    *stride = s < 0 || *size != have ? 0 : x->stride[s];
    return *size >= 0 && (have == 1 || have == *size);
}

static bool infer_expand(cn_infer *i)
{
    const cn__list_attrs *to = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    cn_layout *out = &i->out[0].layout;
    i->out[0].dtype = i->in[0]->dtype;
    out->offset = x->offset;
    bool ok = to->n >= x->ndim && to->n <= CN_MAX_DIMS;
    out->ndim = ok ? (int)to->n : 0;
    for (int d = 0; d < out->ndim && ok; d++)
        ok = expand_axis(x, d - (out->ndim - x->ndim), to->v[d], &out->shape[d], &out->stride[d]);
    if (ok) return true;
    char s[128], t[128];
    return cn_infer_fail(i, CN_BAD_SHAPE, "%s cannot be expanded to %s: only axes of size 1 can",
                         cn__shape_text(x, s, sizeof s), cn__list_text(to, t, sizeof t));
}

static void grad_expand(cn_grad_call *g) { g->in_grad[0] = cn__sum_to(g->out_grad[0], cn__layout(g->in[0])); }

const cn_op cn__op_expand = {
    .call = "expand(Tensor input, int[] size) -> Tensor",
    .name = "expand",
    .doc = "Axes of size 1 repeated to a size, and new axes in front.",
    .kind = CN_VIEW,
    .onnx = "Expand",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .infer = infer_expand,
    .grad = grad_expand,
    CN_CASES({ CN_IN(CN_S(3, 1)), .attrs = &(const cn__list_attrs){ 3, { 2, -1, 4 } } },
             { CN_IN(CN_S(1, 5)), .attrs = &(const cn__list_attrs){ 2, { 7, 5 } } },
             { CN_IN(CN_S(1, 2)), .attrs = &(const cn__list_attrs){ 2, { 0, 2 } } },
             { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 2, { 3, 2 } } },
             { CN_IN(CN_S(1, 19, 1)), .attrs = &(const cn__list_attrs){ 4, { 5, 6, 19, 7 } } }),
};

cn_tensor *cn_expand(cn_tensor *x, cn_dims shape)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "expand", shape, &a)) return NULL;
    return cn_apply(&cn__op_expand, &x, 1, &a, NULL);
}

/* ---- flip ---- */

static bool infer_flip(cn_infer *i)
{
    const cn__mask_attrs *mask = i->attrs;
    i->out[0] = *i->in[0];
    cn_layout *out = &i->out[0].layout;
    if (cn__numel(out) == 0) return true;
    for (int d = 0; d < out->ndim; d++) {
        if (!(mask->axes >> d & 1)) continue;
        out->offset += (out->shape[d] - 1) * out->stride[d];
        out->stride[d] = -out->stride[d];
    }
    return true;
}

static void grad_flip(cn_grad_call *g) { g->in_grad[0] = cn_apply(&cn__op_flip, g->out_grad, 1, g->attrs, NULL); }

const cn_op cn__op_flip = {
    .call = "flip(Tensor input, int[] dims) -> Tensor",
    .name = "flip",
    .doc = "Reverses the order of elements along axes.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__mask_attrs),
    .infer = infer_flip,
    .grad = grad_flip,
    CN_CASES({ CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__mask_attrs){ 5 } },
             { CN_IN(CN_S(7)), .attrs = &(const cn__mask_attrs){ 1 } },
             { CN_IN(CN_S(3, 0)), .attrs = &(const cn__mask_attrs){ 3 } },
             { CN_IN(CN_S0), .attrs = &(const cn__mask_attrs){ 0 } },
             { CN_IN(CN_S(37, 101)), .attrs = &(const cn__mask_attrs){ 2 } }),
};

cn_tensor *cn_flip(cn_tensor *x, cn_dims axes)
{
    cn__mask_attrs a;
    if (!cn__alive(x) || !axes_mask(x, "flip", axes, &a)) return NULL;
    return cn_apply(&cn__op_flip, &x, 1, &a, NULL);
}

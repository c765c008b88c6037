/* view, reshape and flatten: the same elements in another shape; contiguous and clone: copies. */
#include "ops/view/view.h"

/* Computes the new shape: replaces -1, and checks the number of elements. */
static bool resolve(cn_ctx *ctx, const char *who, const cn_layout *x, const cn__list_attrs *want, cn_layout *out)
{
    const char *why = NULL;
    int64_t have = cn__numel(x), known = 1;
    int hole = -1;
    out->ndim = want->n >= 0 && want->n <= CN_MAX_DIMS ? (int)want->n : 0;
    if (out->ndim != want->n) why = "too many axes";
    for (int d = 0; d < out->ndim && !why; d++) {
        out->shape[d] = want->v[d];
        if (want->v[d] == -1) {
            if (hole >= 0) why = "only one size can be left open";
            hole = d;
        } else if (want->v[d] < 0) {
            why = "a size is negative";
        } else if (__builtin_mul_overflow(known, want->v[d], &known)) {
            why = "too large";
        }
    }
    if (!why && hole >= 0) {
        if (known == 0) why = have == 0 ? "-1 could be any size" : "the numbers of elements differ";
        else known *= out->shape[hole] = have / known;
    }
    if (!why && known != have) why = "the numbers of elements differ";
    if (!why) return true;
    char s[128], t[128];
    return cn__fail(ctx, CN_BAD_SHAPE, "%s: %s cannot become %s: %s", who, cn__shape_text(x, s, sizeof s),
                    cn__list_text(want, t, sizeof t), why);
}

/* Computes strides with which `out`, of the same number of elements, is a view of x; false: there are none. The axes of
   x form chunks whose elements are evenly spaced. Each chunk must consist of whole axes of the new shape. */
static bool restride(const cn_layout *x, cn_layout *out)
{
    int64_t numel = cn__numel(x);
    if (numel == 0 || x->ndim == 0) {
        cn__row_major(out);
        out->offset = x->offset;
        return true;
    }
    out->offset = x->offset;
    int o = out->ndim - 1;
    int64_t chunk = 1, covered = 1, base = x->stride[x->ndim - 1];
    for (int d = x->ndim - 1; d >= 0; d--) {
        chunk *= x->shape[d];
        if (d > 0 && (x->shape[d - 1] == 1 || x->stride[d - 1] == chunk * base)) continue;
        for (; o >= 0 && (covered < chunk || out->shape[o] == 1); o--) {
            out->stride[o] = covered * base;
            covered *= out->shape[o];
        }
        if (covered != chunk) return false;
        if (d > 0) base = x->stride[d - 1];
        chunk = covered = 1;
    }
    return o < 0;
}

static bool infer_view(cn_infer *i)
{
    const cn_layout *x = &i->in[0]->layout;
    cn_layout *out = &i->out[0].layout;
    i->out[0].dtype = i->in[0]->dtype;
    if (!resolve(i->ctx, "view", x, i->attrs, out)) return false;
    if (restride(x, out)) return true;
    char s[128], t[128];
    return cn_infer_fail(i, CN_BAD_SHAPE, "strides of %s do not allow a view of shape %s; cn_reshape copies",
                         cn__shape_text(x, s, sizeof s), cn__shape_text(out, t, sizeof t));
}

static void grad_view(cn_grad_call *g) { g->in_grad[0] = cn_reshape(g->out_grad[0], cn_shape(g->in[0])); }

/* An axis can be split whatever its stride is. */
const cn_op cn__op_view = {
    .call = "view(Tensor input, int[] size) -> Tensor",
    .name = "view",
    .doc = "The same memory in another shape.",
    .kind = CN_VIEW,
    .onnx = "Reshape",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .infer = infer_view,
    .grad = grad_view,
    CN_CASES({ CN_IN(CN_S(6, 4)), .attrs = &(const cn__list_attrs){ 4, { 2, 3, 1, 4 } } },
             { CN_IN(CN_S(15)), .attrs = &(const cn__list_attrs){ 2, { 5, -1 } } },
             { CN_IN(CN_S(0, 6)), .attrs = &(const cn__list_attrs){ 3, { 3, 0, 5 } } },
             { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 2, { 1, 1 } } },
             { CN_IN(CN_S(1, 1)), .attrs = &(const cn__list_attrs){ 0, { 0 } } },
             { CN_IN(CN_S(45, 64)), .attrs = &(const cn__list_attrs){ 4, { 9, 5, -1, 16 } } }),
};

cn_tensor *cn_view(cn_tensor *x, cn_dims shape)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "view", shape, &a)) return NULL;
    return cn_apply(&cn__op_view, &x, 1, &a, NULL);
}

static cn_tensor *compose_reshape(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    cn_layout to;
    if (!resolve(ctx, "reshape", cn__layout(in[0]), attrs, &to)) return NULL;
    cn_tensor *x = restride(cn__layout(in[0]), &to) ? in[0] : cn_clone(in[0]);
    return cn_apply(&cn__op_view, &x, 1, attrs, NULL);
}

const cn_op cn__op_reshape = {
    .call = "reshape(Tensor input, int[] shape) -> Tensor",
    .name = "reshape",
    .doc = "The same elements in another shape: a view where possible, else a copy.",
    .kind = CN_COMPOSITE,
    .onnx = "Reshape",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .compose = compose_reshape,
    CN_CASES({ CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__list_attrs){ 2, { 4, 6 } } },
             { CN_IN(CN_S(3, 5)), .attrs = &(const cn__list_attrs){ 1, { -1 } } },
             { CN_IN(CN_S(0, 4)), .attrs = &(const cn__list_attrs){ 2, { -1, 8 } } },
             { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 1, { 1 } } },
             { CN_IN(CN_S(1)), .attrs = &(const cn__list_attrs){ 0, { 0 } } },
             { CN_IN(CN_S(33, 4, 25)), .attrs = &(const cn__list_attrs){ 3, { 10, -1, 11 } } }),
};

cn_tensor *cn_reshape(cn_tensor *x, cn_dims shape)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "reshape", shape, &a)) return NULL;
    return cn_apply(&cn__op_reshape, &x, 1, &a, NULL);
}

static cn_tensor *compose_flatten(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__axis_pair_attrs *f = attrs;
    const cn_layout *x = cn__layout(in[0]);
    int least = x->ndim ? x->ndim : 1, from = cn__axis(f->a, least), to = cn__axis(f->b, least);
    if (from < 0 || to < 0 || from > to) {
        char s[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "flatten: start_dim and end_dim must be axes of %s in order, got %lld and %lld",
                 cn__shape_text(x, s, sizeof s), (long long)f->a, (long long)f->b);
        return NULL;
    }
    cn_dims shape = { .n = x->ndim ? x->ndim - (to - from) : 1, .v = { 1 } };
    for (int d = 0, o = 0; d < x->ndim; d++) {
        if (d > from && d <= to) shape.v[o - 1] *= x->shape[d];
        else shape.v[o++] = x->shape[d];
    }
    return cn_reshape(in[0], shape);
}

const cn_op cn__op_flatten = {
    .call = "flatten(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor",
    .name = "flatten",
    .doc = "Merges neighbouring axes into one.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_pair_attrs),
    .compose = compose_flatten,
    CN_CASES({ CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_pair_attrs){ 0, -1 } },
             { CN_IN(CN_S(2, 3, 5, 2)), .attrs = &(const cn__axis_pair_attrs){ 1, 2 } },
             { CN_IN(CN_S(3, 0, 2)), .attrs = &(const cn__axis_pair_attrs){ 1, -1 } },
             { CN_IN(CN_S0), .attrs = &(const cn__axis_pair_attrs){ 0, -1 } },
             { CN_IN(CN_S(13, 11, 23)), .attrs = &(const cn__axis_pair_attrs){ 1, 2 } }),
};

cn_tensor *cn_flatten(cn_tensor *x, int64_t from, int64_t to)
{
    return cn_apply(&cn__op_flatten, &x, 1, &(cn__axis_pair_attrs){ from, to }, NULL);
}

cn_tensor *cn_contiguous(cn_tensor *x)
{
    if (!cn__alive(x)) return NULL;
    return cn__layout_contiguous(cn__layout(x)) ? x : cn_clone(x);
}

cn_tensor *cn_clone(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_apply(&cn__op_copy, &x, 1, NULL, NULL) : NULL;
}

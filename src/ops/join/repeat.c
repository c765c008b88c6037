/* repeat and tile repeat the whole tensor; repeat_interleave repeats each element. */
#include "ops/join/join.h"

/* Repeats along one axis: (outer, size, inner) → (outer, times, size, inner), or for single elements (outer, size,
   times, inner). Four axes are enough for every shape of x. */
static cn_tensor *repeat_axis(cn_tensor *x, const char *who, int axis, int64_t times, bool each)
{
    if (!x || times == 1) return x;
    cn_dims shape = cn_shape(x), four = CN_DIMS(1, shape.v[axis], 1, 1), all = shape;
    if (__builtin_mul_overflow(shape.v[axis], times, &all.v[axis])) all.v[axis] = INT64_MAX;
    if (!cn__check_shape(x->ctx, who, cn__dtype(x), all.n, all.v)) return NULL;
    for (int d = 0; d < shape.n; d++)
        if (d != axis) four.v[d < axis ? 0 : 3] *= shape.v[d];
    if (!each) four.v[1] = 1, four.v[2] = shape.v[axis];
    x = cn_reshape(x, four);
    four.v[each ? 2 : 1] = times;
    return cn_reshape(cn_expand(x, four), all);
}

static cn_tensor *compose_repeat(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__list_attrs *times = attrs;
    cn_tensor *x = in[0];
    cn_dims shape = { .n = (int)times->n };
    int lead = shape.n - cn_ndim(x);
    bool ok = lead >= 0;
    for (int d = 0; d < shape.n; d++) {
        shape.v[d] = d < lead || !ok ? 1 : cn_size(x, d - lead);
        ok &= times->v[d] >= 0;
    }
    if (!ok) {
        char s[128], t[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "repeat: expects a number ≥ 0 for each axis, got %s for shape %s",
                 cn__list_text(times, s, sizeof s), cn__shape_text(cn__layout(x), t, sizeof t));
        return NULL;
    }
    if (lead) x = cn_reshape(x, shape);
    for (int d = shape.n - 1; d >= 0; d--) x = repeat_axis(x, "repeat", d, times->v[d], false);
    return x == in[0] ? cn_clone(x) : x;
}

const cn_op cn__op_repeat = {
    .call = "repeat(Tensor input, int[] repeats) -> Tensor",
    .name = "repeat",
    .doc = "Repeats the whole tensor along each axis; further numbers add axes in front.",
    .kind = CN_COMPOSITE,
    .onnx = "Tile",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .compose = compose_repeat,
    CN_CASES(
        { CN_IN(CN_S(2, 3)), .attrs = &(const cn__list_attrs){ 2, { 2, 3 } } },
        { CN_IN(CN_S(3)), .attrs = &(const cn__list_attrs){ 3, { 4, 1, 2 } } },
        { CN_IN(CN_S(2, 3)), .attrs = &(const cn__list_attrs){ 2, { 1, 1 } } },
        { CN_IN(CN_S(2, 3)), .attrs = &(const cn__list_attrs){ 2, { 0, 2 } } },
        { CN_IN(CN_S(0, 3)), .attrs = &(const cn__list_attrs){ 2, { 2, 2 } } },
        { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 1, { 3 } } },
        { CN_IN(CN_S(1, 2, 1, 2, 1, 2, 1, 2)), .attrs = &(const cn__list_attrs){ 8, { 2, 1, 1, 2, 1, 2, 2, 2 } } },
        { CN_IN(CN_S(11, 13)), .attrs = &(const cn__list_attrs){ 3, { 2, 3, 5 } } }),
};

cn_tensor *cn_repeat(cn_tensor *x, cn_dims times)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "repeat", times, &a)) return NULL;
    return cn_apply(&cn__op_repeat, &x, 1, &a, NULL);
}

static cn_tensor *compose_tile(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    const cn__list_attrs *times = attrs;
    int n = (int)times->n, ndim = cn_ndim(in[0]), lead = ndim > n ? ndim - n : 0;
    cn_dims all = { .n = n + lead };
    for (int d = 0; d < all.n; d++) all.v[d] = d < lead ? 1 : times->v[d - lead];
    return cn_repeat(in[0], all);
}

const cn_op cn__op_tile = {
    .call = "tile(Tensor input, int[] dims) -> Tensor",
    .name = "tile",
    .doc = "repeat; fewer numbers than axes belong to the last axes.",
    .kind = CN_COMPOSITE,
    .onnx = "Tile",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__list_attrs),
    .compose = compose_tile,
    CN_CASES({ CN_IN(CN_S(2, 3)), .attrs = &(const cn__list_attrs){ 1, { 2 } } },
             { CN_IN(CN_S(3)), .attrs = &(const cn__list_attrs){ 2, { 2, 2 } } },
             { CN_IN(CN_S(2, 0)), .attrs = &(const cn__list_attrs){ 1, { 3 } } },
             { CN_IN(CN_S0), .attrs = &(const cn__list_attrs){ 0, { 0 } } },
             { CN_IN(CN_S(7, 11, 13)), .attrs = &(const cn__list_attrs){ 2, { 2, 1 } } }),
};

cn_tensor *cn_tile(cn_tensor *x, cn_dims times)
{
    cn__list_attrs a;
    if (!cn__alive(x) || !cn__list(x->ctx, "tile", times, &a)) return NULL;
    return cn_apply(&cn__op_tile, &x, 1, &a, NULL);
}

static cn_tensor *compose_interleave(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__interleave_attrs *a = attrs;
    int axis = cn__axis(a->axis, cn_ndim(in[0]));
    if (axis < 0 || a->times < 0) {
        char s[128];
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "repeat_interleave: repeats must be ≥ 0 and dim an axis, got %lld and %lld for shape %s",
                 (long long)a->times, (long long)a->axis, cn__shape_text(cn__layout(in[0]), s, sizeof s));
        return NULL;
    }
    return a->times == 1 ? cn_clone(in[0]) : repeat_axis(in[0], "repeat_interleave", axis, a->times, true);
}

const cn_op cn__op_repeat_interleave = {
    .call = "repeat_interleave(Tensor input, int repeats, int dim) -> Tensor",
    .name = "repeat_interleave",
    .doc = "Repeats each element along an axis.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__interleave_attrs),
    .compose = compose_interleave,
    CN_CASES({ CN_IN(CN_S(2, 3)), .attrs = &(const cn__interleave_attrs){ 2, 1 } },
             { CN_IN(CN_S(5, 2)), .attrs = &(const cn__interleave_attrs){ 3, -2 } },
             { CN_IN(CN_S(3)), .attrs = &(const cn__interleave_attrs){ 1, 0 } },
             { CN_IN(CN_S(3, 2)), .attrs = &(const cn__interleave_attrs){ 0, 0 } },
             { CN_IN(CN_S(0, 2)), .attrs = &(const cn__interleave_attrs){ 2, 1 } },
             { CN_IN(CN_S(15, 31, 3)), .attrs = &(const cn__interleave_attrs){ 4, 1 } }),
};

cn_tensor *cn_repeat_interleave(cn_tensor *x, int64_t times, int64_t axis)
{
    return cn_apply(&cn__op_repeat_interleave, &x, 1, &(cn__interleave_attrs){ times, axis }, NULL);
}

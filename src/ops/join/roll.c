/* roll: shifts elements along axes; elements beyond the end come back at the front. */
#include "ops/join/join.h"

static cn_tensor *roll_axis(cn_tensor *x, int axis, int64_t shift)
{
    if (!x) return NULL;
    int64_t size = cn_size(x, axis), end;
    if (size == 0) return x;
    end = shift % size;
    if (end < 0) end += size;
    if (end == 0) return x;
    cn_tensor *parts[] = { cn_slice(x, axis, size - end, size, 1), cn_slice(x, axis, 0, size - end, 1) };
    return cn_cat(parts, 2, axis);
}

static cn_tensor *roll_flat(cn_tensor *x, int64_t shift)
{
    cn_tensor *y = roll_axis(cn_reshape(x, CN_DIMS(-1)), 0, shift);
    return cn_reshape(y, cn_shape(x));
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__roll_attrs *a = attrs;
    const cn_layout *l = cn__layout(in[0]);
    bool ok = a->axes.n == 0 ? a->shifts.n == 1 : a->shifts.n == a->axes.n;
    for (int d = 0; d < a->axes.n && ok; d++) ok = cn__axis(a->axes.v[d], l->ndim) >= 0;
    if (!ok) {
        char s[128], t[128], u[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "roll: expects one shift for each axis, got shifts %s and axes %s for shape %s",
                 cn__list_text(&a->shifts, s, sizeof s), cn__list_text(&a->axes, t, sizeof t),
                 cn__shape_text(l, u, sizeof u));
        return NULL;
    }
    if (a->axes.n == 0) return roll_flat(in[0], a->shifts.v[0]);
    cn_tensor *x = in[0];
    for (int d = 0; d < a->axes.n; d++) x = roll_axis(x, cn__axis(a->axes.v[d], l->ndim), a->shifts.v[d]);
    return x == in[0] ? cn_clone(x) : x;
}

const cn_op cn__op_roll = {
    .call = "roll(Tensor input, int[] shifts, int[] dims=None) -> Tensor",
    .name = "roll",
    .doc = "Shifts elements along axes; those beyond the end come back at the front.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__roll_attrs),
    .compose = compose,
    CN_CASES({ CN_IN(CN_S(3, 4)), .attrs = &(const cn__roll_attrs){ { 1, { 1 } }, { 1, { 1 } } } },
             { CN_IN(CN_S(3, 5)), .attrs = &(const cn__roll_attrs){ { 2, { -7, 2 } }, { 2, { -1, 0 } } } },
             { CN_IN(CN_S(2, 5)), .attrs = &(const cn__roll_attrs){ { 1, { 3 } }, { 0, { 0 } } } },
             { CN_IN(CN_S(4)), .attrs = &(const cn__roll_attrs){ { 1, { 8 } }, { 1, { 0 } } } },
             { CN_IN(CN_S(0, 3)), .attrs = &(const cn__roll_attrs){ { 2, { 1, 1 } }, { 2, { 0, 1 } } } },
             { CN_IN(CN_S0), .attrs = &(const cn__roll_attrs){ { 1, { 1 } }, { 0, { 0 } } } },
             { CN_IN(CN_S(51, 60)), .attrs = &(const cn__roll_attrs){ { 2, { 20, -13 } }, { 2, { 0, 1 } } } }),
};

cn_tensor *cn_roll(cn_tensor *x, cn_dims shifts, cn_dims axes)
{
    cn__roll_attrs a;
    if (axes.n == -1) axes.n = 0;
    if (!cn__alive(x) || !cn__list(x->ctx, "roll", shifts, &a.shifts) || !cn__list(x->ctx, "roll", axes, &a.axes))
        return NULL;
    return cn_apply(&cn__op_roll, &x, 1, &a, NULL);
}

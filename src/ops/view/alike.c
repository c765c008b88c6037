/* Functions that views are called by: movedim, swapaxes, unflatten, broadcast_to, atleast_1d to 3d, rot90, diff. */
#include "ops/view/view.h"

/* The axes of a list, counted from the front. False after an error: out of range, or given twice. */
static bool axes_of(cn_tensor *x, const char *who, cn_dims dims, int *axes)
{
    unsigned seen = 0;
    char s[128];
    for (int k = 0; k < dims.n; k++) {
        axes[k] = cn__axis(dims.v[k], cn_ndim(x) ? cn_ndim(x) : 1);
        if (axes[k] < 0 || seen >> axes[k] & 1)
            return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %lld is %s %s", who, (long long)dims.v[k],
                            axes[k] < 0 ? "out of range for" : "given twice for",
                            cn__shape_text(cn__layout(x), s, sizeof s));
        seen |= 1u << axes[k];
    }
    return true;
}

cn_tensor *cn_movedim(cn_tensor *x, cn_dims source, cn_dims destination)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    int from[CN_MAX_DIMS], to[CN_MAX_DIMS], n = source.n;
    if (n < 0 || n > CN_MAX_DIMS || destination.n != n)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "movedim: expects as many places as axes, got %d axes and %d places",
                        n, destination.n),
               NULL;
    if (!axes_of(x, "movedim", source, from) || !axes_of(x, "movedim", destination, to)) return NULL;
    cn_dims order = { .n = cn_ndim(x) };
    unsigned placed = 0, moved = 0;
    for (int k = 0; k < n; k++) order.v[to[k]] = from[k], placed |= 1u << to[k], moved |= 1u << from[k];
    for (int d = 0, next = 0; d < order.n; d++) {
        if (placed >> d & 1) continue;
        while (moved >> next & 1) next++;
        order.v[d] = next++;
    }
    return cn_permute(x, order);
}

cn_tensor *cn_swapaxes(cn_tensor *x, int64_t a, int64_t b)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_transpose(x, a, b) : NULL;
}

/* The shape of x with `sizes` in place of the size of an axis. A size of -1 is computed. */
cn_tensor *cn_unflatten(cn_tensor *x, int64_t dim, cn_dims sizes)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_layout *l = cn__layout(x);
    cn__list_attrs list;
    int axis = cn__axis(dim, l->ndim), unknown = -1;
    char s[128], t[128];
    if (!cn__list(x->ctx, "unflatten", sizes, &list)) return NULL;
    int64_t known = 1;
    bool ok = axis >= 0 && sizes.n >= 1 && l->ndim - 1 + sizes.n <= CN_MAX_DIMS;
    for (int d = 0; d < sizes.n && ok; d++) {
        if (sizes.v[d] == -1 && unknown < 0) unknown = d;
        else ok = sizes.v[d] >= 0 && !__builtin_mul_overflow(known, sizes.v[d], &known);
    }
    if (ok && unknown >= 0) {
        ok = known != 0 && l->shape[axis] % known == 0;
        if (ok) sizes.v[unknown] = l->shape[axis] / known;
    } else {
        ok = ok && known == l->shape[axis];
    }
    if (!ok)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "unflatten: axis %lld of %s cannot have the sizes %s", (long long)dim,
                        cn__shape_text(l, s, sizeof s), cn__list_text(&list, t, sizeof t)),
               NULL;
    cn_dims shape = { .n = l->ndim - 1 + sizes.n };
    for (int d = 0; d < shape.n; d++)
        shape.v[d] = d < axis ? l->shape[d] : d < axis + sizes.n ? sizes.v[d - axis] : l->shape[d + 1 - sizes.n];
    return cn_reshape(x, shape);
}

cn_tensor *cn_broadcast_to(cn_tensor *x, cn_dims size)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_expand(x, size) : NULL;
}

cn_tensor *cn_atleast_1d(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    return cn_ndim(x) ? x : cn_unsqueeze(x, 0);
}

cn_tensor *cn_atleast_2d(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    x = cn_atleast_1d(x);
    return x && cn_ndim(x) == 1 ? cn_unsqueeze(x, 0) : x;
}

cn_tensor *cn_atleast_3d(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    x = cn_atleast_2d(x);
    return x && cn_ndim(x) == 2 ? cn_unsqueeze(x, 2) : x;
}

cn_tensor *cn_rot90(cn_tensor *x, int64_t k, cn_dims dims)
{
    CN__CALL call = cn__call_tensor(x);
    int axes[CN_MAX_DIMS];
    if (!call.ctx) return NULL;
    if (dims.n != 2 || cn_ndim(x) < 2)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "rot90: expects 2 axes of at least 2, got %d of %d", dims.n,
                        cn_ndim(x)),
               NULL;
    if (!axes_of(x, "rot90", dims, axes)) return NULL;
    switch (k & 3) {
    case 0: return cn_clone(x);
    case 1: return cn_transpose(cn_flip(x, CN_DIMS(axes[1])), axes[0], axes[1]);
    case 2: return cn_flip(x, dims);
    default: return cn_transpose(cn_flip(x, CN_DIMS(axes[0])), axes[0], axes[1]);
    }
}

/* Each element minus the one before it; for bool, whether they differ. */
static cn_tensor *difference(cn_tensor *x, int axis)
{
    int64_t size = x ? cn_size(x, axis) : 0;
    cn_tensor *later = cn_slice(x, axis, 1, size, 1), *earlier = cn_slice(x, axis, 0, size ? size - 1 : 0, 1);
    return x && cn__dtype(x) == CN_BOOL ? cn_logical_xor(later, earlier) : cn_sub(later, earlier);
}

cn_tensor *cn_diff(cn_tensor *x, int64_t n, int64_t dim, cn_tensor *prepend, cn_tensor *append)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || (prepend && !cn__of_context(call.ctx, prepend, __func__, "prepend")) ||
        (append && !cn__of_context(call.ctx, append, __func__, "append")))
        return NULL;
    int axis = cn__axis(dim, cn_ndim(x));
    char s[128];
    if (axis < 0)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "diff: dim must be an axis of %s, got %lld",
                        cn__shape_text(cn__layout(x), s, sizeof s), (long long)dim),
               NULL;
    if ((prepend && cn_ndim(prepend) != cn_ndim(x)) || (append && cn_ndim(append) != cn_ndim(x)))
        return cn__fail(x->ctx, CN_BAD_SHAPE, "diff: prepend and append must have as many axes as input, got %d and %d",
                        prepend ? cn_ndim(prepend) : cn_ndim(x), append ? cn_ndim(append) : cn_ndim(x)),
               NULL;
    if (n == 0) return cn_clone(x);
    if (n < 0) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "diff: n must be ≥ 0, got %lld", (long long)n), NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *parts[3];
    int count = 0;
    if (prepend) parts[count++] = prepend;
    parts[count++] = x;
    if (append) parts[count++] = append;
    cn_tensor *y = count > 1 ? cn_cat(parts, count, axis) : x;
    for (int64_t size = y ? cn_size(y, axis) : 0, k = 0; k < n && k < size; k++) y = difference(y, axis);
    return cn_scope_return(call.ctx, scope, y);
}

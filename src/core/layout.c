/* Layouts: strides, sizes, comparison, text, and the check that a shape is possible. */
#include "core/layout.h"

#include <stdio.h>
#include <string.h>

#include "core/errors.h"

void cn__row_major(cn_layout *l)
{
    int64_t step = 1;
    for (int i = l->ndim - 1; i >= 0; i--) {
        l->stride[i] = step;
        step *= l->shape[i] > 0 ? l->shape[i] : 1;
    }
    l->offset = 0;
}

int64_t cn__numel(const cn_layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->ndim; i++) n *= l->shape[i];
    return n;
}

bool cn__layout_contiguous(const cn_layout *l)
{
    int64_t step = 1;
    for (int i = l->ndim - 1; i >= 0; i--) {
        if (l->shape[i] == 0) return true;
        if (l->shape[i] != 1 && l->stride[i] != step) return false;
        step *= l->shape[i];
    }
    return true;
}

bool cn__same_shape(const cn_layout *a, const cn_layout *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

bool cn__memory_order(const cn_layout *l, cn_dims *order)
{
    int axes[CN_MAX_DIMS], n = 0; /* those that have an order */
    bool in_order = true;
    for (int d = 0; d < l->ndim; d++) {
        if (l->shape[d] == 1 || l->stride[d] == 0) continue;
        in_order &= n == 0 || distance(l->stride[axes[n - 1]]) >= distance(l->stride[d]);
        axes[n++] = d;
    }
    if (in_order) return false;
    order->n = l->ndim;
    for (int d = 0; d < l->ndim; d++) order->v[d] = d;
    for (int i = 0; i < n; i++) { /* insertion: axes with equal strides keep their order */
        int k = i;
        for (; k > 0 && distance(l->stride[order->v[axes[k - 1]]]) < distance(l->stride[axes[i]]); k--)
            order->v[axes[k]] = order->v[axes[k - 1]];
        order->v[axes[k]] = axes[i];
    }
    return true;
}

int cn__axis(int64_t axis, int ndim)
{
    if (axis < 0) axis += ndim;
    return axis >= 0 && axis < ndim ? (int)axis : -1;
}

const char *cn__shape_text(const cn_layout *l, char *buf, size_t size)
{
    size_t n = 0;
    n += (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < l->ndim && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, i ? ",%lld" : "%lld", (long long)l->shape[i]);
    if (n < size) snprintf(buf + n, size - n, "]");
    return buf;
}

/* The limit leaves room in an int64_t, so that sums of offsets never overflow. */
bool cn__check_shape(cn_ctx *ctx, const char *who, cn_dtype dtype, int ndim, const int64_t *shape)
{
    if (ndim < 0 || ndim > CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: the shape has %d dimensions, at most %d are allowed", who, ndim,
                        CN_MAX_DIMS);
    int64_t bytes = (int64_t)cn_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return cn__fail(ctx, CN_BAD_SHAPE, "%s: the size of axis %d must be ≥ 0, got %lld", who, i,
                            (long long)shape[i]);
    }
    for (int i = 0; i < ndim; i++) {
        int64_t size = shape[i] ? shape[i] : 1;
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > INT64_MAX / 4) {
            cn_layout l = { .ndim = ndim };
            memcpy(l.shape, shape, sizeof *shape * (size_t)ndim);
            char text[128];
            return cn__fail(ctx, CN_BAD_SHAPE, "%s: shape %s is too large: at most %lld bytes are allowed", who,
                            cn__shape_text(&l, text, sizeof text), (long long)(INT64_MAX / 4));
        }
    }
    return true;
}

/* Tensors side by side and crosswise: hstack, vstack, dstack, meshgrid, cartesian_prod, block_diag, vander. */
#include "ops/join/join.h"

/* ---- lists of tensors ---- */

/* Joins f(x[k]) along the axis that `axis` says for the first of them. */
static cn_tensor *join_each(cn_tensor *const *x, int n, cn_tensor *(*f)(cn_tensor *x), int axis, const char *who)
{
    CN__CALL call = cn__enter_list(x, n, who);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(call.ctx);
    size_t bytes = sizeof(cn_tensor *) * (size_t)n;
    cn_tensor **each = cn__resize(&call.ctx->memory, NULL, 0, bytes), *y = NULL;
    if (each) {
        for (int k = 0; k < n; k++) each[k] = f(x[k]);
        if (each[0]) y = cn_cat(each, n, cn_ndim(each[0]) > axis ? axis : 0);
    } else {
        cn__no_memory(call.ctx, who);
    }
    cn__resize(&call.ctx->memory, each, each ? bytes : 0, 0);
    return cn_scope_return(call.ctx, scope, y);
}

cn_tensor *cn_hstack(cn_tensor *const *x, int n) { return join_each(x, n, cn_atleast_1d, 1, __func__); }
cn_tensor *cn_vstack(cn_tensor *const *x, int n) { return join_each(x, n, cn_atleast_2d, 0, __func__); }
cn_tensor *cn_dstack(cn_tensor *const *x, int n) { return join_each(x, n, cn_atleast_3d, 2, __func__); }

/* ---- grids ---- */

/* The shape of the grid. False after an error. numbers: whether an operand may be a number, a vector of one element. */
static bool grid_shape(cn_ctx *ctx, cn_tensor *const *x, int n, bool is_xy, bool numbers, const char *who,
                       cn_dims *shape)
{
    shape->n = n;
    if (n > CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: a result has at most %d axes, got %d vectors", who, CN_MAX_DIMS, n);
    for (int k = 0; k < n; k++) {
        if (cn_ndim(x[k]) > 1 || (cn_ndim(x[k]) == 0 && !numbers))
            return cn__fail(ctx, CN_BAD_SHAPE, "%s: operands must be vectors, got %d axes", who, cn_ndim(x[k]));
        if (cn__dtype(x[k]) != cn__dtype(x[0]))
            return cn__fail(ctx, CN_BAD_DTYPE, "%s: vectors must have one dtype, got %s and %s", who,
                            cn_dtype_name(cn__dtype(x[0])), cn_dtype_name(cn__dtype(x[k])));
        shape->v[is_xy && k < 2 ? 1 - k : k] = cn_numel(x[k]);
    }
    return true;
}

/* Vector k along its axis, expanded along the others. */
static cn_tensor *spread(cn_tensor *x, int k, cn_dims shape, bool is_xy)
{
    cn_dims alone = { .n = shape.n };
    int axis = is_xy && k < 2 ? 1 - k : k;
    for (int d = 0; d < shape.n; d++) alone.v[d] = d == axis ? shape.v[d] : 1;
    return cn_expand(cn_reshape(x, alone), shape);
}

int cn_meshgrid(cn_tensor *const *x, int n, cn_indexing indexing, cn_tensor **out, int room)
{
    for (int k = 0; out && k < room; k++) out[k] = NULL;
    CN__CALL call = cn__enter_list(x, n, __func__);
    if (!call.ctx) return 0;
    cn_dims shape;
    if (indexing != CN_INDEXING_IJ && indexing != CN_INDEXING_XY)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "meshgrid: indexing must be IJ or XY, got %d", (int)indexing);
    const bool is_xy = indexing == CN_INDEXING_XY && n > 1;
    if (!grid_shape(call.ctx, x, n, is_xy, true, "meshgrid", &shape)) return 0;
    if (!out || n > room)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "meshgrid: the result has %d parts, but out has room for %d", n,
                        room);
    for (int k = 0; k < n; k++) {
        out[k] = spread(x[k], k, shape, is_xy);
        if (!out[k]) return 0;
    }
    return n;
}

cn_tensor *cn_cartesian_prod(cn_tensor *const *x, int n)
{
    CN__CALL call = cn__enter_list(x, n, __func__);
    cn_dims shape;
    if (!call.ctx || !grid_shape(call.ctx, x, n, false, false, "cartesian_prod", &shape)) return NULL;
    if (n == 1) return cn_clone(x[0]);
    const cn_scope scope = cn_scope_begin(call.ctx);
    cn_tensor *column[CN_MAX_DIMS], *y = NULL;
    int64_t rows = 1;
    for (int d = 0; d < n; d++) rows *= shape.v[d];
    for (int k = 0; k < n; k++) column[k] = cn_reshape(spread(x[k], k, shape, false), CN_DIMS(rows));
    y = cn_stack(column, n, 1);
    return cn_scope_return(call.ctx, scope, y);
}

/* Each matrix between columns of zeros, one below the other. */
static cn_tensor *block_diag(cn_ctx *ctx, cn_tensor *const *x, int n, cn_tensor **rows)
{
    int64_t before = 0, columns = 0;
    for (int k = 0; k < n; k++) {
        if (cn_ndim(x[k]) > 2)
            return cn__fail(ctx, CN_BAD_SHAPE, "block_diag: operands must be matrices, got %d axes", cn_ndim(x[k])),
                   NULL;
        rows[k] = cn_atleast_2d(x[k]);
        if (!rows[k]) return NULL;
        columns += cn_size(rows[k], 1);
    }
    for (int k = 0; k < n; k++) {
        int64_t own = cn_size(rows[k], 1);
        rows[k] = cn_pad(rows[k], CN_DIMS(before, columns - before - own), CN_PAD_CONSTANT, 0);
        before += own;
    }
    return cn_cat(rows, n, 0);
}

cn_tensor *cn_block_diag(cn_tensor *const *x, int n)
{
    CN__CALL call = cn__enter_list(x, n, __func__);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(call.ctx);
    size_t bytes = sizeof(cn_tensor *) * (size_t)n;
    cn_tensor **rows = cn__resize(&call.ctx->memory, NULL, 0, bytes), *y = NULL;
    if (rows) y = block_diag(call.ctx, x, n, rows);
    else cn__no_memory(call.ctx, "block_diag");
    cn__resize(&call.ctx->memory, rows, rows ? bytes : 0, 0);
    return cn_scope_return(call.ctx, scope, y);
}

/* ---- powers ---- */

/* 1, then running products of columns that all are x. */
static cn_tensor *powers(cn_tensor *x, int64_t count)
{
    int64_t n = cn_numel(x);
    if (count == 0) return cn_slice(cn_unsqueeze(x, 1), 1, 0, 0, 1);
    cn_tensor *first = cn_ones(x->ctx, cn__dtype(x), CN_DIMS(n, 1));
    if (count == 1) return first;
    cn_tensor *rest = cn_cumprod(cn_expand(cn_unsqueeze(x, 1), CN_DIMS(n, count - 1)), 1);
    return cn_cat((cn_tensor *[]){ first, rest }, 2, 1);
}

cn_tensor *cn_vander(cn_tensor *x, int64_t N, bool increasing)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    if (cn_ndim(x) != 1 || N < -1)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "vander: x must be a vector, and N ≥ -1, got %d axes and %lld",
                        cn_ndim(x), (long long)N),
               NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *from = cn_dtype_is_float(cn__dtype(x)) ? x : cn_cast(x, CN_I64);
    cn_tensor *y = powers(from, N < 0 ? cn_numel(x) : N);
    return cn_scope_return(x->ctx, scope, increasing ? y : cn_flip(y, CN_DIMS(1)));
}

/* unique and unique_consecutive: the different elements, or the different slices along an axis. Equal ones become
   neighbours by a stable sort; a mask of those that differ from the one before is evaluated, which gives their number.
   Slices are sorted by each of their elements in turn, the last one first. */
#include "ops/scan/scan.h"

typedef struct slices {
    cn_tensor *rows; /* x as (n, width) */
    int64_t n, width;
    cn_dims shape; /* of x with the axis first; of the flat tensor */
    cn_dims order; /* the axes of x in that order; n = 0: x is flat */
} slices;

static bool slices_of(const char *who, cn_tensor *x, cn_dims dim, slices *s)
{
    cn_dims shape = cn_shape(x);
    int64_t axis = 0;
    if (dim.n != -1 && dim.n != 1)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: expects one axis or CN_ALL, got %d axes", who, dim.n);
    if (dim.n == 1) axis = dim.v[0];
    if (dim.n == 1 && shape.n == 0) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: x has no axes", who);
    if (dim.n == 1 && !cn__scan_axis(who, x, &axis)) return false;
    *s = (slices){ .n = cn_numel(x), .width = 1, .shape = CN_DIMS(cn_numel(x)) };
    if (dim.n == 1) {
        s->n = shape.v[axis];
        s->order.n = s->shape.n = shape.n;
        for (int d = 0; d < shape.n; d++) {
            s->order.v[d] = d == 0 ? axis : d <= axis ? d - 1 : d;
            s->shape.v[d] = shape.v[s->order.v[d]];
            if (d > 0) s->width *= s->shape.v[d];
        }
        if (s->width == 0)
            return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: axes other than axis %lld must not be empty", who,
                            (long long)axis);
        x = cn_permute(x, s->order);
    }
    s->rows = cn_reshape(x, CN_DIMS(s->n, s->width));
    return s->rows != NULL;
}

/* The indices of the rows in their order. */
static cn_tensor *order_of(const slices *s)
{
    cn_tensor *order = NULL, *next = NULL;
    for (int64_t c = s->width - 1; c >= 0; c--) {
        cn_tensor *column = cn_select(s->rows, 1, c);
        if (!cn_sort(order ? cn_index_select(column, 0, order) : column, 0, false, &next)) return NULL;
        order = order ? cn_index_select(order, 0, next) : next;
    }
    return order;
}

static cn_dims back(cn_dims order)
{
    cn_dims to = order;
    for (int d = 0; d < order.n; d++) to.v[order.v[d]] = d;
    return to;
}

/* out: the unique rows in x's shape, the group of each row, the sizes of groups. False after an error. */
static bool groups(cn_tensor *x, const slices *s, bool sort, cn_tensor *out[3])
{
    cn_ctx *ctx = x->ctx;
    if (s->n == 0) {
        out[0] = s->order.n ? x : cn_reshape(x, CN_DIMS(0));
        out[1] = cn_zeros(ctx, CN_I64, s->order.n ? CN_DIMS(0) : cn_shape(x));
        out[2] = cn_zeros(ctx, CN_I64, CN_DIMS(0));
        return out[0] && out[1] && out[2];
    }
    cn_tensor *order = sort ? order_of(s) : NULL, *rows = order ? cn_index_select(s->rows, 0, order) : s->rows;
    if (sort && !order) return false;
    cn_tensor *differs = cn_ne(cn_narrow(rows, 0, 1, s->n - 1), cn_narrow(rows, 0, 0, s->n - 1));
    cn_tensor *begins =
        cn_cat((cn_tensor *[]){ cn_ones(ctx, CN_BOOL, CN_DIMS(1)), cn_any(differs, CN_DIMS(1), false) }, 2, 0);
    cn_tensor *places = cn_nonzero(begins), *group = cn_sub_s(cn_cumsum(begins, 0), 1);
    if (!places || !group) return false;
    const int64_t count = cn_size(places, 0);
    places = cn_reshape(places, CN_DIMS(count));
    cn_dims shape = s->shape;
    shape.v[0] = count;
    out[0] = cn_reshape(cn_index_select(rows, 0, places), shape);
    if (s->order.n) out[0] = cn_permute(out[0], back(s->order));
    out[1] = order ? cn_scatter(cn_zeros(ctx, CN_I64, CN_DIMS(s->n)), 0, order, group) : group;
    if (!s->order.n) out[1] = cn_reshape(out[1], cn_shape(x));
    cn_tensor *ends = cn_cat(
        (cn_tensor *[]){ cn_narrow(places, 0, 1, count - 1), cn_full(ctx, CN_I64, CN_DIMS(1), (double)s->n) }, 2, 0);
    out[2] = cn_sub(ends, places);
    return out[0] && out[1] && out[2];
}

static cn_tensor *unique(const char *who, cn_tensor *x, bool sort, cn_dims dim, cn_tensor **inverse, cn_tensor **counts)
{
    if (inverse) *inverse = NULL;
    if (counts) *counts = NULL;
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    slices s = { .n = 0 };
    cn_tensor *out[3] = { 0 };
    cn_scope scope = cn_scope_begin(x->ctx);
    bool ok = slices_of(who, x, dim, &s) && groups(x, &s, sort, out);
    if (!cn__scope_return_n(x->ctx, scope, out, 3) || !ok) return NULL;
    if (inverse) *inverse = out[1];
    if (counts) *counts = out[2];
    return out[0];
}

cn_tensor *cn_unique(cn_tensor *x, bool sorted, cn_dims dim, cn_tensor **inverse, cn_tensor **counts)
{
    (void)sorted; /* PyTorch's `sorted` allows any order; this one is always sorted */
    return unique("unique", x, true, dim, inverse, counts);
}

cn_tensor *cn_unique_consecutive(cn_tensor *x, cn_dims dim, cn_tensor **inverse, cn_tensor **counts)
{
    return unique("unique_consecutive", x, false, dim, inverse, counts);
}

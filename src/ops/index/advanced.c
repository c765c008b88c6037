/* index and index_put: indexing by several tensors, as in x[i, :, j]. The indices become one index into neighbouring
   axes of x, joined to one axis, so that one index_select reads, or one index_add or index_copy writes. */
#include "ops/index/index.h"

/* For each axis its index; NULL: the whole axis. */
typedef struct indices {
    cn_tensor *of[CN_MAX_DIMS];
    int first, last, count; /* the first and last axis with an index, and how many have one */
} indices;

/* The axes that an index names, from axis `first` of x on: one, or those of a mask. 0: an error. */
static int axes_of(cn_ctx *ctx, const char *who, cn_tensor *index, int first, cn_dims x)
{
    const bool mask = index && cn__dtype(index) == CN_BOOL;
    const cn_dims shape = index ? cn_shape(index) : CN_DIMS(0);
    const int axes = mask ? shape.n : 1;
    bool fits = axes > 0 && first + axes <= x.n;
    for (int d = 0; d < axes && fits && mask; d++) fits = shape.v[d] == x.v[first + d];
    char s[96] = "NULL";
    if (!fits)
        cn__fail(ctx, CN_BAD_SHAPE,
                 "%s: indices must name at most the %d axes of x, and a mask must have the sizes of the axes it names, "
                 "got an index %s from axis %d on",
                 who, x.n, index ? cn__shape_text(cn__layout(index), s, sizeof s) : s, first);
    return fits ? axes : 0;
}

/* A mask becomes an index for each axis that it names: the places where it is true. */
static bool collect(cn_ctx *ctx, const char *who, cn_tensor *const *in, int n, cn_dims x, indices *all)
{
    *all = (indices){ .first = -1 };
    for (int k = 0, axes, at = 0; k < n; k++, at += axes) {
        if (!(axes = axes_of(ctx, who, in[k], at, x))) return false;
        if (!in[k]) continue;
        const bool mask = cn__dtype(in[k]) == CN_BOOL;
        cn_tensor *places = mask ? cn_nonzero(in[k]) : in[k];
        for (int d = 0; d < axes; d++) all->of[at + d] = mask ? cn_select(places, 1, d) : places;
        if (!all->of[at]) return false;
        if (all->first < 0) all->first = at;
        all->last = at + axes - 1;
        all->count += axes;
    }
    if (all->count) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: at least one of the %d indices must not be NULL", who, n);
}

/* x as (outer, places, inner). `at` names places; `shape` is that of x[indices]. Axes of the index stand where the
   indexed axes stood if those are neighbours, otherwise in front: then axes between them are a part of `at`. */
typedef struct spots {
    int64_t outer, places, inner;
    cn_tensor *at;
    cn_dims shape;
} spots;

/* v in its shape, followed by n axes of size 1. NULL after an error. */
static cn_tensor *with_ones(const char *who, cn_tensor *v, int n)
{
    if (!v) return NULL;
    cn_dims shape = cn_shape(v);
    if (shape.n + n > CN_MAX_DIMS) {
        cn__fail(v->ctx, CN_BAD_SHAPE, "%s: the axes of the index and the other axes of x must be at most %d, got %d",
                 who, CN_MAX_DIMS, shape.n + n);
        return NULL;
    }
    for (int d = 0; d < n; d++) shape.v[shape.n++] = 1;
    return cn_reshape(v, shape);
}

static bool find_spots(cn_ctx *ctx, const char *who, const indices *all, cn_dims x, spots *s)
{
    const bool neighbours = all->last - all->first + 1 == all->count;
    const int from = neighbours ? all->first : 0, to = all->last + 1;
    *s = (spots){ .outer = 1, .places = 1, .inner = 1 };
    for (int d = 0, whole = to - from - all->count; d < x.n; d++) {
        *(d < from ? &s->outer : d < to ? &s->places : &s->inner) *= x.v[d];
        if (d < from || d >= to) continue;
        cn_tensor *own = all->of[d] ? with_ones(who, cn__wrap_index(all->of[d], x.v[d]), to - from - all->count)
                                    : with_ones(who, cn_arange(ctx, CN_I64, 0, (double)x.v[d], 1), --whole);
        s->at = d == from ? own : cn_add(cn_mul_s(s->at, (double)x.v[d]), own);
    }
    if (!s->at) return false;
    const cn_dims index = cn_shape(s->at);
    if (from + index.n + x.n - to > CN_MAX_DIMS)
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "%s: the axes of the index and the other axes of x must be at most %d, got %d", who,
                        CN_MAX_DIMS, from + index.n + x.n - to);
    for (int d = 0; d < from; d++) s->shape.v[s->shape.n++] = x.v[d];
    for (int d = 0; d < index.n; d++) s->shape.v[s->shape.n++] = index.v[d];
    for (int d = to; d < x.n; d++) s->shape.v[s->shape.n++] = x.v[d];
    s->at = cn_reshape(s->at, CN_DIMS(cn_numel(s->at)));
    return s->at != NULL;
}

/* in: x, then indices of its axes, masks, or NULL */
static cn_tensor *compose_index(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)attrs, (void)args;
    indices all;
    spots s;
    cn_dims x = cn_shape(in[0]);
    if (!collect(ctx, "index", in + 1, n_in - 1, x, &all) || !find_spots(ctx, "index", &all, x, &s)) return NULL;
    cn_tensor *flat = cn_reshape(in[0], CN_DIMS(s.outer, s.places, s.inner));
    return cn_reshape(cn_index_select(flat, 1, s.at), s.shape);
}

const cn_op cn__op_index = {
    .call = "index(Tensor input, Tensor[] indices) -> Tensor",
    .name = "index",
    .doc = "x[index0, index1, ...]: the elements that several indices name together.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .variadic = true,
    .optional = ~1u,
    .dtypes = CN_ANY,
    .free_dtype = ~1u,
    .not_differentiable = ~1u,
    .compose = compose_index,
    .onnx = "GatherND",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX_FROM(-4, 4, 3)) }, { CN_IN(CN_S(4, 5), CN_ABSENT, CN_IDX(5, 2, 3)) },
             { CN_IN(CN_S(4, 3, 5), CN_IDX(4, 2, 1), CN_IDX_FROM(-3, 3, 3)) },
             { CN_IN(CN_S(4, 3, 5), CN_IDX(4, 2, 1), CN_ABSENT, CN_IDX(5, 3)) },
             { CN_IN(CN_S(2, 3, 4, 5), CN_ABSENT, CN_IDX(3, 4), CN_ABSENT, CN_IDX(5, 1)) },
             { CN_IN(CN_S(3, 4, 2, 5), CN_IDX(3, 2), CN_ABSENT, CN_IDX(2, 2), CN_ABSENT) },
             { CN_IN(CN_S(3, 4, 2), CN_IDX0(3), CN_IDX0(4)) }, { CN_IN(CN_S(3, 4), CN_IDX(3, 0)) },
             { CN_IN(CN_S(7, 3), CN_BOOLS(7)) }, { CN_IN(CN_S(2, 4, 3), CN_ABSENT, CN_BOOLS(4, 3)) },
             { CN_IN(CN_S(2, 7, 3), CN_IDX(2, 1), CN_ABSENT, CN_BOOLS(3)) },
             { CN_IN(CN_S(60, 70, 5), CN_IDX(60, 50, 1), CN_IDX(70, 40)) },
             { CN_IN(CN_S(20, 30, 15), CN_IDX(20, 90), CN_ABSENT, CN_IDX(15, 90)) }),
};

/* One mask and a value that does not depend on how many elements are true: the mask need not be evaluated. */
static bool is_fill(cn_tensor *const *in, int n_in, cn_dims x)
{
    return n_in == 3 && in[2] && cn__dtype(in[2]) == CN_BOOL && cn_ndim(in[1]) + cn_ndim(in[2]) <= x.n;
}

static cn_tensor *fill(cn_tensor *const *in, cn_dims x, bool accumulate)
{
    cn_dims mask = cn_shape(in[2]), rest = { 0, { 0 } };
    for (int d = mask.n; d < x.n; d++) rest.v[rest.n++] = x.v[d], mask.v[d] = 1;
    mask.n = x.n;
    if (!cn__index_value("index_put", in[1], rest)) return NULL;
    return cn_where(cn_reshape(in[2], mask), accumulate ? cn_add(in[0], in[1]) : in[1], in[0]);
}

/* in: x, value, then indices as of `index` */
static cn_tensor *compose_put(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)args;
    const cn__put_attrs *a = attrs;
    cn_dims x = cn_shape(in[0]);
    if (a->n != n_in - 2) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "index_put: there must be %lld index tensors, got %d", (long long)a->n,
                 n_in - 2);
        return NULL;
    }
    indices all;
    spots s;
    if (is_fill(in, n_in, x)) return axes_of(ctx, "index_put", in[2], 0, x) ? fill(in, x, a->accumulate) : NULL;
    if (!collect(ctx, "index_put", in + 2, n_in - 2, x, &all) || !find_spots(ctx, "index_put", &all, x, &s) ||
        !cn__index_value("index_put", in[1], s.shape))
        return NULL;
    cn_tensor *flat = cn_reshape(in[0], CN_DIMS(s.outer, s.places, s.inner));
    cn_tensor *value = cn_reshape(cn_expand(in[1], s.shape), CN_DIMS(s.outer, cn_numel(s.at), s.inner));
    return cn_reshape(a->accumulate ? cn_index_add(flat, 1, s.at, value) : cn__index_copy(flat, 1, s.at, value), x);
}

const cn_op cn__op_index_put = {
    .call = "index_put(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
    .name = "index_put",
    .doc = "x with x[index0, index1, ...] replaced by a value, or with the value added there.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .variadic = true,
    .optional = ~3u,
    .dtypes = CN_ANY,
    .free_dtype = ~3u,
    .not_differentiable = ~3u,
    .attr_size = sizeof(cn__put_attrs),
    .compose = compose_put,
    .onnx = "ScatterND",
    CN_CASES(
        { CN_IN(CN_S(4, 5), CN_S(3, 5), CN_IDX(4, 3)), .attrs = &(const cn__put_attrs){ 1, 1 } },
        { CN_IN(CN_S(4, 5), CN_S(1, 5), CN_IDX(4, 1)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(6, 3), CN_S(6, 1), CN_PERM(6)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(4, 3, 5), CN_S(5), CN_IDX(4, 2, 1), CN_IDX(3, 3)), .attrs = &(const cn__put_attrs){ 2, 1 } },
        { CN_IN(CN_S(4, 3), CN_S0, CN_IDX(4, 6), CN_IDX(3, 6)), .attrs = &(const cn__put_attrs){ 2, 0 },
          .no_gradient_check = true /* an element is named twice */ },
        { CN_IN(CN_S(4, 3), CN_S(0, 3), CN_IDX(4, 0)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(7, 3), CN_S(1, 3), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(7, 3), CN_S(1, 1), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 1 } },
        { CN_IN(CN_S(7, 3), CN_S(3), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(4, 3, 2), CN_S0, CN_BOOLS(4, 3)), .attrs = &(const cn__put_attrs){ 1, 1 } },
        { CN_IN(CN_S(4, 3, 2), CN_S(1), CN_BOOLS(4, 3, 2)), .attrs = &(const cn__put_attrs){ 1, 0 } },
        { CN_IN(CN_S(4, 3, 2), CN_S(1, 2), CN_BOOLS(4), CN_IDX(3, 1)), .attrs = &(const cn__put_attrs){ 2, 1 } },
        { CN_IN(CN_S(4, 5, 3), CN_S0, CN_IDX(4, 1), CN_BOOLS(5, 3)), .attrs = &(const cn__put_attrs){ 2, 0 } },
        { CN_IN(CN_S(4, 5), CN_S(4, 3), CN_ABSENT, CN_IDX_FROM(-5, 5, 3)), .attrs = &(const cn__put_attrs){ 2, 1 } },
        { CN_IN(CN_S(4, 3, 5), CN_S(2, 3), CN_IDX(4, 2), CN_ABSENT, CN_IDX(5, 1)),
          .attrs = &(const cn__put_attrs){ 3, 1 } },
        { CN_IN(CN_S(3, 4, 2), CN_S(3, 4, 1), CN_ABSENT, CN_PERM(4)), .attrs = &(const cn__put_attrs){ 2, 0 } },
        { CN_IN(CN_S(60, 70), CN_S(50, 40), CN_IDX(60, 50, 1), CN_IDX(70, 40)),
          .attrs = &(const cn__put_attrs){ 2, 1 } }),
};

/* Fails unless there are indices for some of x's axes. A handle that is no tensor of x's context is an error too. */
static bool check_indices(const char *who, cn_tensor *x, cn_tensor *const *index, int n)
{
    if (!index || n < 1 || n > cn_ndim(x))
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: there must be 1 to %d indices, one for each axis of x, got %d",
                        who, cn_ndim(x), index ? n : 0);
    return true;
}

cn_tensor *cn_index(cn_tensor *x, cn_tensor *const *index, int n)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !check_indices("index", x, index, n)) return NULL;
    cn_tensor *in[1 + CN_MAX_DIMS] = { x };
    memcpy(in + 1, index, sizeof *in * (size_t)n);
    return cn_apply(&cn__op_index, in, n + 1, NULL, NULL);
}

cn_tensor *cn_index_put(cn_tensor *x, cn_tensor *const *index, int n, cn_tensor *value, bool accumulate)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !cn__of_context(x->ctx, value, __func__, "values") || !check_indices("index_put", x, index, n))
        return NULL;
    cn_dtype own = cn__dtype(x), given = cn__dtype(value);
    if (own != given) {
        cn__fail(x->ctx, CN_BAD_DTYPE, "index_put: values must have x's dtype %s, got %s; convert them with cn_cast",
                 cn_dtype_name(own), cn_dtype_name(given));
        return NULL;
    }
    cn_tensor *in[2 + CN_MAX_DIMS] = { x, value };
    memcpy(in + 2, index, sizeof *in * (size_t)n);
    return cn_apply(&cn__op_index_put, in, n + 2, &(cn__put_attrs){ n, accumulate }, NULL);
}

bool cn_index_put_(cn_tensor *x, cn_tensor *const *index, int n, cn_tensor *value, bool accumulate)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return false;
    cn_scope s = cn_scope_begin(x->ctx);
    bool ok = cn__rebind(x, cn_index_put(x, index, n, value, accumulate));
    cn_scope_end(x->ctx, s);
    return ok;
}

/* scatter_reduce and index_reduce: a source's elements are combined with what x has at the places an index names. Sums
   and means are made of scatter_add; scatter_fold computes products, largest and smallest elements. */
#include <math.h>

#include "ops/index/index.h"

static cn__fold fold_of(const void *attrs) { return (cn__fold)((const cn__fold_attrs *)attrs)->fold; }

static bool infer(cn_infer *i)
{
    int64_t fold = ((const cn__fold_attrs *)i->attrs)->fold;
    if (fold >= CN__MUL && fold <= CN__MIN) return cn__infer_scatter(i);
    return cn_infer_fail(i, CN_BAD_ARGUMENT, "fold must be %d to %d, got %lld", CN__MUL, CN__MIN, (long long)fold);
}

static void cpu(const cn_kernel *k) { cn__scatter_cpu(k, fold_of(k->attrs)); }
static bool gpu(cn_gpu_call *c) { return cn__scatter_gpu(c, fold_of(c->attrs)); }

extern const cn_op cn__op_scatter_fold;

static cn_tensor *folded(cn_tensor *x, cn_tensor *index, cn_tensor *source, const void *attrs)
{
    return cn_apply(&cn__op_scatter_fold, (cn_tensor *[]){ x, index, source }, 3, attrs, NULL);
}

static cn_tensor *ones_where(cn_tensor *mask, cn_tensor *x) { return cn_where(mask, cn_ones_like(x), x); }

/* Of a product: the gradient times the other factors. A factor of 0 is replaced by 1, which gives the product of the
   others, but of several zeros each has another one, and the gradient 0. */
static void grad_of_product(cn_grad_call *g, int64_t axis)
{
    cn_tensor *x = g->in[0], *index = g->in[1], *source = g->in[2], *gy = g->out_grad[0];
    if (g->needs[0]) {
        cn_tensor *factor = ones_where(cn_eq_s(x, 0), x);
        g->in_grad[0] = cn_mul(gy, cn_div(folded(factor, index, source, g->attrs), factor));
    }
    if (!g->needs[2]) return;
    cn_tensor *zero = cn_eq_s(source, 0);
    cn_tensor *zeros = cn_scatter_add(cn__zeros_for(g, 0), axis, index, cn_cast(zero, cn__dtype(source)));
    cn_tensor *single = cn_logical_and(zero, cn_eq_s(cn_gather(zeros, axis, index), 1));
    cn_tensor *others = folded(x, index, ones_where(single, source), g->attrs);
    cn_tensor *plain = cn_div(cn_gather(cn_mul(gy, g->out[0]), axis, index), ones_where(zero, source));
    g->in_grad[2] = cn_where(single, cn_gather(cn_mul(gy, others), axis, index), plain);
}

/* Equal extremes share the gradient equally. */
static void grad_of_extreme(cn_grad_call *g, int64_t axis)
{
    cn_tensor *x = g->in[0], *index = g->in[1], *source = g->in[2], *y = g->out[0];
    cn_tensor *own = cn_cast(cn_eq(x, y), cn__dtype(x));
    cn_tensor *given = cn_cast(cn_eq(source, cn_gather(y, axis, index)), cn__dtype(x));
    cn_tensor *share = cn_div(g->out_grad[0], cn_scatter_add(own, axis, index, given));
    if (g->needs[0]) g->in_grad[0] = cn_mul(own, share);
    if (g->needs[2]) g->in_grad[2] = cn_mul(given, cn_gather(share, axis, index));
}

/* Index and source have one shape. */
static void grad(cn_grad_call *g)
{
    const int64_t axis = ((const cn__fold_attrs *)g->attrs)->axis;
    (fold_of(g->attrs) == CN__MUL ? grad_of_product : grad_of_extreme)(g, axis);
}

#define FOLD(axis, fold) \
    .attrs = &(const cn__fold_attrs) { axis, fold }
const cn_op cn__op_scatter_fold = {
    .call = "_scatter_fold(Tensor input, Tensor index, Tensor src, int dim, int fold) -> Tensor",
    .name = "scatter_fold",
    .doc = "x with a source's elements multiplied in, or the largest or smallest of them.",
    .kind = CN_INDEX,
    .n_in = 3,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .free_dtype = 2,
    .not_differentiable = 2,
    .checks_index = true,
    .attr_size = sizeof(cn__fold_attrs),
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(4, 6, 5), CN_S(6, 5)), FOLD(0, CN__MUL) },
             { CN_IN(CN_S(4, 5), CN_IDX(5, 4, 3), CN_S(4, 3)), FOLD(1, CN__MAX) },
             { CN_IN(CN_S(3, 3, 4), CN_IDX(3, 2, 5, 3), CN_S(2, 5, 3)), FOLD(1, CN__MIN) },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 3, 0), CN_S(3, 0)), FOLD(1, CN__MAX) },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S(1)), FOLD(0, CN__MUL) },
             { CN_IN(CN_S(40, 31, 7), CN_IDX(31, 40, 60, 7), CN_S(40, 60, 7)), FOLD(1, CN__MAX) },
             { CN_IN(CN_S(500), CN_IDX(500, 3000), CN_RANGE(0.5, 1.5, 3000)), FOLD(0, CN__MUL) }),
};

/* What x has at the places of the index before anything is combined, if its own elements do not count: a value that
   changes no result. Of whole numbers, one of the source's own. */
static cn_tensor *neutral(cn_tensor *source, int64_t reduce)
{
    if (reduce <= CN_FOLD_MEAN) return cn_full_like(source, reduce == CN_FOLD_PROD);
    if (!cn_dtype_is_float(cn__dtype(source))) return source;
    return cn_full_like(source, reduce == CN_FOLD_AMAX ? -INFINITY : INFINITY);
}

static cn_tensor *mean(cn_tensor *x, cn_tensor *index, cn_tensor *source, const cn__reduce_at_attrs *a)
{
    cn_tensor *before = a->include_self ? cn_ones_like(x) : cn_zeros_like(x);
    cn_tensor *count = cn_maximum_s(cn_scatter_add(before, a->axis, index, cn_ones_like(source)), 1);
    cn_tensor *sum = cn_scatter_add(x, a->axis, index, source);
    return cn_dtype_is_float(cn__dtype(source)) ? cn_div(sum, count) : cn_floor_div(sum, count);
}

static cn_tensor *reduce_at(cn_tensor *x, cn_tensor *index, cn_tensor *source, const cn__reduce_at_attrs *a)
{
    static const cn__fold folds[] = { CN__ADD, CN__MUL, CN__ADD, CN__MAX, CN__MIN };
    if (!x || !index || !source) return NULL;
    if (cn__dtype(x) == CN_BOOL) /* numbers that are 0 or not */
        return cn_ne_s(reduce_at(cn_cast(x, CN_I32), index, cn_cast(source, CN_I32), a), 0);
    if (!a->include_self) x = cn_scatter(x, a->axis, index, neutral(source, a->reduce));
    if (a->reduce == CN_FOLD_SUM) return cn_scatter_add(x, a->axis, index, source);
    if (a->reduce == CN_FOLD_MEAN) return mean(x, index, source, a);
    return folded(x, index, source, &(cn__fold_attrs){ a->axis, folds[a->reduce] });
}

static bool check_reduce(cn_ctx *ctx, const char *who, const cn__reduce_at_attrs *a, cn_tensor *const *in)
{
    if (a->reduce < 0 || a->reduce > CN_FOLD_AMIN)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: reduce must be a cn_fold, got %lld", who, (long long)a->reduce);
    cn_dtype own = cn__dtype(in[0]), given = cn__dtype(in[2]);
    if (own == given) return true;
    return cn__fail(ctx, CN_BAD_DTYPE, "%s: x and the source must have one dtype, got %s and %s", who,
                    cn_dtype_name(own), cn_dtype_name(given));
}

/* The source may be larger than the index: only the part of the index's sizes counts. */
static cn_tensor *compose_scatter(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__reduce_at_attrs *a = attrs;
    if (!check_reduce(ctx, "scatter_reduce", a, in)) return NULL;
    cn_tensor *source = in[2];
    const cn_dims index = cn_shape(in[1]), given = cn_shape(source);
    if (cn_numel(in[1]) == 0) return in[0];
    for (int d = 0; d < index.n && index.n == given.n; d++)
        if (index.v[d] < given.v[d]) source = cn_narrow(source, d, 0, index.v[d]);
    return reduce_at(in[0], in[1], source, a);
}

#define REDUCE(axis, reduce, self) \
    .attrs = &(const cn__reduce_at_attrs) { axis, reduce, self }
const cn_op cn__op_scatter_reduce = {
    .call = "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, sum|prod|mean|amax|amin reduce, *, "
            "bool include_self=True) -> Tensor",
    .name = "scatter_reduce",
    .doc = "x with its elements at the places an index names combined with a source's: summed, multiplied, and so on.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .dtypes = CN_ANY,
    .free_dtype = 2,
    .not_differentiable = 2,
    .attr_size = sizeof(cn__reduce_at_attrs),
    .compose = compose_scatter,
    .onnx = "ScatterElements",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(4, 6, 5), CN_S(6, 5)), REDUCE(0, CN_FOLD_SUM, 1) },
             { CN_IN(CN_S(4, 5), CN_IDX(5, 3, 2), CN_S(4, 3)), REDUCE(1, CN_FOLD_MEAN, 1) },
             { CN_IN(CN_S(4, 5), CN_IDX(4, 6, 5), CN_S(6, 5)), REDUCE(0, CN_FOLD_PROD, 0) },
             { CN_IN(CN_S(3, 3, 4), CN_IDX(3, 2, 5, 3), CN_S(2, 5, 4)), REDUCE(1, CN_FOLD_AMAX, 0) },
             { CN_IN(CN_S(4, 3), CN_IDX(4, 7, 3), CN_S(7, 3)), REDUCE(0, CN_FOLD_AMIN, 0) },
             { CN_IN(CN_S(4, 3), CN_IDX(4, 7, 3), CN_S(7, 3)), REDUCE(0, CN_FOLD_MEAN, 0) },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 3, 0), CN_S(3, 4)), REDUCE(1, CN_FOLD_AMAX, 1) },
             { CN_IN(CN_S(20, 31, 7), CN_IDX(31, 20, 60, 7), CN_S(20, 60, 7)), REDUCE(1, CN_FOLD_AMIN, 1) }),
};

/* The index, one for all lines, is expanded to the source's shape. */
static cn_tensor *compose_index(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__reduce_at_attrs *a = attrs;
    cn_dims x = cn_shape(in[0]), shape = cn_shape(in[2]), along = { x.n, { 1, 1, 1, 1, 1, 1, 1, 1 } };
    const int64_t n = cn_numel(in[1]);
    bool fits = cn_ndim(in[1]) <= 1 && shape.n == x.n && (x.n || n == 1);
    for (int d = 0; d < x.n && fits; d++) fits = shape.v[d] == (d == a->axis ? n : x.v[d]);
    char s[96], t[96], u[96];
    if (!fits)
        cn__fail(ctx, CN_BAD_SHAPE,
                 "index_reduce: index must be (n) and source have the shape of x %s with n along axis %lld, got %s and "
                 "%s",
                 cn__shape_text(cn__layout(in[0]), s, sizeof s), (long long)a->axis,
                 cn__shape_text(cn__layout(in[1]), t, sizeof t), cn__shape_text(cn__layout(in[2]), u, sizeof u));
    if (!fits || !check_reduce(ctx, "index_reduce", a, in)) return NULL;
    if (cn_numel(in[2]) == 0) return in[0];
    if (x.n) along.v[a->axis] = n;
    return reduce_at(in[0], cn_expand(cn_reshape(in[1], along), shape), in[2], a);
}

const cn_op cn__op_index_reduce = {
    .call = "index_reduce(Tensor input, int dim, Tensor index, Tensor source, sum|prod|mean|amax|amin reduce, *, "
            "bool include_self=True) -> Tensor",
    .name = "index_reduce",
    .doc = "x with its slices along an axis that an index names combined with a source's: multiplied, and so on.",
    .kind = CN_COMPOSITE,
    .n_in = 3,
    .n_out = 1,
    .dtypes = CN_ANY,
    .free_dtype = 2,
    .not_differentiable = 2,
    .attr_size = sizeof(cn__reduce_at_attrs),
    .compose = compose_index,
    CN_CASES({ CN_IN(CN_S(5, 4), CN_IDX(5, 7), CN_S(7, 4)), REDUCE(0, CN_FOLD_PROD, 1) },
             { CN_IN(CN_S(3, 4, 2), CN_IDX(4, 5), CN_S(3, 5, 2)), REDUCE(1, CN_FOLD_MEAN, 0) },
             { CN_IN(CN_S(7), CN_IDX(7, 9), CN_S(9)), REDUCE(0, CN_FOLD_AMAX, 1) },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 0), CN_S(3, 0)), REDUCE(1, CN_FOLD_AMIN, 0) },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S0), REDUCE(0, CN_FOLD_AMIN, 1) },
             { CN_IN(CN_S(40, 100), CN_IDX(40, 90), CN_S(90, 100)), REDUCE(0, CN_FOLD_AMIN, 0) }),
};

static cn_tensor *apply(const cn_op *op, cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source,
                        cn_fold reduce, bool include_self)
{
    cn__index_attrs at;
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx || !cn__index_axis(op->name, x, axis, &at)) return NULL;
    cn__reduce_at_attrs a = { at.axis, (int64_t)reduce, include_self };
    return cn_apply(op, (cn_tensor *[]){ x, index, source }, 3, &a, NULL);
}

cn_tensor *cn_scatter_reduce(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source, cn_fold reduce,
                             bool include_self)
{
    return apply(&cn__op_scatter_reduce, x, axis, index, source, reduce, include_self);
}

cn_tensor *cn_index_reduce(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source, cn_fold reduce,
                           bool include_self)
{
    return apply(&cn__op_index_reduce, x, axis, index, source, reduce, include_self);
}

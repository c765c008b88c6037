/* norms.c: linalg_matrix_norm and linalg_cond, operators; linalg_vector_norm and linalg_norm, which choose a norm. */
#include <math.h>
#include <stdlib.h>

#include "ops/linalg/linalg.h"
#include "ops/reduce/reduce.h"

/* ---- linalg_matrix_norm ---- */

/* The largest or smallest sum of magnitudes along one axis. */
static cn_tensor *norm_of_sums(cn_tensor *x, int64_t summed, int64_t other, bool largest)
{
    cn_tensor *sums = cn_sum(cn_abs(x), CN_DIMS(summed), true);
    return largest ? cn_max(sums, CN_DIMS(other), true) : cn_min(sums, CN_DIMS(other), true);
}

/* x with two axes moved to the end. */
static cn_tensor *with_last(cn_tensor *x, int64_t rows, int64_t cols)
{
    cn_dims order = { 0, { 0 } };
    for (int d = 0; d < cn_ndim(x); d++)
        if (d != rows && d != cols) order.v[order.n++] = d;
    order.v[order.n++] = rows;
    order.v[order.n++] = cols;
    return cn_permute(x, order);
}

static cn_tensor *norm_of_values(cn_tensor *x, const cn__matrix_norm_attrs *a)
{
    cn_tensor *s = cn_linalg_svdvals(with_last(x, a->rows, a->cols)), *y;
    if (a->ord == CN__ORD_NUC) y = cn_sum(s, CN_DIMS(-1), false);
    else y = a->ord == CN__ORD_2 ? cn_max(s, CN_DIMS(-1), false) : cn_min(s, CN_DIMS(-1), false);
    const int64_t first = cn__smaller(a->rows, a->cols), second = cn__larger(a->rows, a->cols);
    return cn_unsqueeze(cn_unsqueeze(y, first), second);
}

/* With axes of size 1. */
static cn_tensor *norm(cn_tensor *x, const cn__matrix_norm_attrs *a)
{
    switch ((cn__matrix_ord)a->ord) {
    case CN__ORD_FRO: return cn_norm(x, 2, CN_DIMS(a->rows, a->cols), true);
    case CN__ORD_INF:
    case CN__ORD_MINUS_INF: return norm_of_sums(x, a->cols, a->rows, a->ord == CN__ORD_INF);
    case CN__ORD_1:
    case CN__ORD_MINUS_1: return norm_of_sums(x, a->rows, a->cols, a->ord == CN__ORD_1);
    default: return norm_of_values(x, a);
    }
}

static cn_tensor *compose_norm(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    const cn__matrix_norm_attrs *a = attrs;
    cn_tensor *x = cn__wide_float("linalg_matrix_norm", in[0]), *y = x ? norm(x, a) : NULL;
    return y ? cn__as(a->keepdim ? y : cn_squeeze(y, CN_DIMS(a->rows, a->cols)), cn__dtype(in[0])) : NULL;
}

#define NORM(ord, ...) \
    .attrs = &(const cn__matrix_norm_attrs) { CN__ORD_##ord, __VA_ARGS__ }

const cn_op cn__op_linalg_matrix_norm = {
    .call = "linalg_matrix_norm(Tensor A, str? ord='fro', int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "linalg_matrix_norm",
    .doc = "A norm over two axes: fro, nuc, inf, -inf, 1, -1, 2 or -2.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__matrix_norm_attrs),
    .compose = compose_norm,
    CN_CASES({ CN_IN(CN_DISTINCT(3, 4)), NORM(FRO, 0, 1, 0) }, { CN_IN(CN_DISTINCT(2, 3, 3)), NORM(NUC, 1, 2, 1) },
             { CN_IN(CN_DISTINCT(3, 2, 4)), NORM(INF, 2, 0, 0) },
             { CN_IN(CN_DISTINCT(3, 4)), NORM(MINUS_INF, 0, 1, 1) }, { CN_IN(CN_DISTINCT(3, 4)), NORM(1, 0, 1, 0) },
             { CN_IN(CN_DISTINCT(2, 3, 4)), NORM(MINUS_1, 1, 2, 0) }, { CN_IN(CN_DISTINCT(4, 2, 3)), NORM(2, 0, 2, 1) },
             { CN_IN(CN_DISTINCT(3, 4)), NORM(MINUS_2, 0, 1, 0) }, { CN_IN(CN_DISTINCT(0, 3, 2)), NORM(2, 1, 2, 0) },
             { CN_IN(CN_DISTINCT(3, 0)), NORM(FRO, 0, 1, 0) }, { CN_IN(CN_DISTINCT(5, 24, 9)), NORM(FRO, 1, 2, 0) }),
};

static const char *const ords[] = { "fro", "nuc", "inf", "-inf", "1", "-1", "2", "-2" };

static bool find_ord(cn_ctx *ctx, const char *who, const char *text, int64_t *ord)
{
    for (*ord = 0; *ord < (int64_t)(sizeof ords / sizeof *ords); ++*ord)
        if (strcmp(text, ords[*ord]) == 0) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT,
                    "%s: the order of a matrix norm must be fro, nuc, inf, -inf, 1, -1, 2 or -2, got \"%.20s\"", who,
                    text);
}

static bool find_axes(const char *who, const cn_tensor *x, cn_dims dim, cn__matrix_norm_attrs *a)
{
    const int ndim = cn__layout(x)->ndim;
    if (ndim < 2) return cn__fail(x->ctx, CN_BAD_SHAPE, "%s: A must have at least 2 axes, got %d", who, ndim);
    if (dim.n == -1 || dim.n == 0) dim = CN_DIMS(-2, -1);
    if (dim.n != 2) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dim must be two axes, got %d", who, dim.n);
    a->rows = cn__axis(dim.v[0], ndim);
    a->cols = cn__axis(dim.v[1], ndim);
    if (a->rows >= 0 && a->cols >= 0 && a->rows != a->cols) return true;
    return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dim must be two different axes of %d, got %lld and %lld", who, ndim,
                    (long long)dim.v[0], (long long)dim.v[1]);
}

cn_tensor *cn_linalg_matrix_norm(cn_tensor *A, const char *ord, cn_dims dim, bool keepdim)
{
    cn__matrix_norm_attrs a = { .keepdim = keepdim };
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx || !find_ord(call.ctx, "linalg_matrix_norm", ord ? ord : "fro", &a.ord) ||
        !find_axes("linalg_matrix_norm", A, dim, &a))
        return NULL;
    return cn_apply(&cn__op_linalg_matrix_norm, &A, 1, &a, NULL);
}

/* ---- linalg_vector_norm and linalg_norm ---- */

cn_tensor *cn_linalg_vector_norm(cn_tensor *x, double ord, cn_dims dim, bool keepdim)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_norm(x, ord, dim, keepdim) : NULL;
}

static cn_tensor *vector_norm(cn_tensor *x, const char *ord, cn_dims dim, bool keepdim)
{
    char *end;
    const double number = strtod(ord, &end);
    if (*ord && !*end && !isnan(number)) return cn_norm(x, number, dim, keepdim);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "linalg_norm: the order of a vector norm must be a number, got \"%.20s\"", ord);
    return NULL;
}

cn_tensor *cn_linalg_norm(cn_tensor *A, const char *ord, cn_dims dim, bool keepdim)
{
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx) return NULL;
    const bool all = dim.n == -1 || dim.n == 0;
    if (!ord) return cn_norm(A, 2, dim, keepdim);
    const int axes = all ? cn_ndim(A) : dim.n;
    if (axes == 2) return cn_linalg_matrix_norm(A, ord, dim, keepdim);
    if (axes == 1) return vector_norm(A, ord, dim, keepdim);
    cn__fail(call.ctx, CN_BAD_ARGUMENT, "linalg_norm: an order needs one or two axes, got %d", axes);
    return NULL;
}

/* ---- linalg_cond ---- */

static cn_tensor *cond_of(cn_tensor *x, int64_t ord)
{
    if (ord == CN__ORD_2 || ord == CN__ORD_MINUS_2) {
        cn_tensor *s = cn_linalg_svdvals(x), *most = cn_max(s, CN_DIMS(-1), false),
                  *least = cn_min(s, CN_DIMS(-1), false);
        return ord == CN__ORD_2 ? cn_div(most, least) : cn_div(least, most);
    }
    if (!cn__is_square("linalg_cond", x)) return NULL;
    const char *text = ords[ord];
    return cn_mul(cn_linalg_matrix_norm(x, text, CN_ALL, false),
                  cn_linalg_matrix_norm(cn_linalg_inv(x), text, CN_ALL, false));
}

static cn_tensor *compose_cond(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    cn_tensor *x = cn__wide_float("linalg_cond", in[0]);
    cn_tensor *y = x && cn__is_matrix("linalg_cond", x) ? cond_of(x, ((const cn__cond_attrs *)attrs)->ord) : NULL;
    return y ? cn__as(y, cn__dtype(in[0])) : NULL;
}

#define COND(ord) \
    .attrs = &(const cn__cond_attrs) { CN__ORD_##ord }

const cn_op cn__op_linalg_cond = {
    .call = "linalg_cond(Tensor A, str? p=None) -> Tensor",
    .name = "linalg_cond",
    .doc = "The condition number, |x|·|x⁻¹|, in a norm of matrix_norm; without p, in the 2-norm.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__cond_attrs),
    .compose = compose_cond,
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)), COND(2) }, { CN_IN(CN_DISTINCT(2, 4, 3)), COND(2) },
             { CN_IN(CN_DISTINCT(2, 3)), COND(MINUS_2) }, { CN_IN(CN_POSITIVE(2, 3, 3)), COND(FRO) },
             { CN_IN(CN_DISTINCT(1, 1)), COND(1) }, { CN_IN(CN_DISTINCT(0, 3, 3)), COND(2) }),
};

cn_tensor *cn_linalg_cond(cn_tensor *A, const char *p)
{
    cn__cond_attrs a = { 0 };
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx || !find_ord(call.ctx, "linalg_cond", p ? p : "2", &a.ord)) return NULL;
    return cn_apply(&cn__op_linalg_cond, &A, 1, &a, NULL);
}

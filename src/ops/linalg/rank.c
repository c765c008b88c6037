/* rank.c: what depends on which singular values count as 0: linalg_pinv, linalg_matrix_rank; and linalg_lstsq. */
#include <float.h>
#include <math.h>

#include "ops/linalg/linalg.h"
#include "ops/reduce/reduce.h"

/* ---- which singular values count ---- */

typedef struct tolerances {
    double atol, rtol;
} tolerances;

/* args: atol, rtol; both 0: the default */
static tolerances tolerances_of(const cn_tensor *x, const cn_arg *args)
{
    const cn__matrices a = cn__matrices_in(cn__layout(x));
    const double epsilon = cn__dtype(x) == CN_F64 ? DBL_EPSILON : FLT_EPSILON;
    if (args[0].f == 0 && args[1].f == 0) return (tolerances){ 0, (double)cn__larger(a.rows, a.cols) * epsilon };
    return (tolerances){ args[0].f, args[1].f };
}

/* True where a magnitude s (..., k) counts as 0. */
static cn_tensor *vanishing(cn_tensor *s, tolerances t)
{
    return cn_le(s, cn_clamp(cn_mul_s(cn_max(s, CN_DIMS(-1), true), t.rtol), t.atol, INFINITY));
}

static bool check_tolerances(const char *who, cn_ctx *ctx, double atol, double rtol)
{
    return (atol >= 0 && rtol >= 0) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "%s: tolerances must be ≥ 0, got atol %g and rtol %g", who, atol, rtol);
}

static cn_tensor *apply_rank(const cn_op *op, cn_tensor *A, double atol, double rtol, bool hermitian)
{
    CN__CALL call = cn__enter_tensor(A, op->name);
    if (!call.ctx || !check_tolerances(op->name, call.ctx, atol, rtol)) return NULL;
    return cn_apply(op, &A, 1, &(cn__rank_attrs){ hermitian }, (cn_arg[CN_MAX_ARGS]){ { .f = atol }, { .f = rtol } });
}

/* ---- linalg_pinv ---- */

static cn_tensor *inverse_of(cn_tensor *s, cn_tensor *zero)
{
    return cn_masked_fill(cn_reciprocal(cn_masked_fill(s, zero, 1)), zero, 0);
}

static cn_tensor *pseudoinverse(cn_tensor *x, bool hermitian, tolerances t)
{
    if (hermitian) {
        cn_tensor *v, *l = cn_linalg_eigh(x, CN_UPLO_L, &v);
        cn_tensor *inverse = inverse_of(l, vanishing(cn_abs(l), t));
        return cn_matmul(cn_mul(v, cn_unsqueeze(inverse, -2)), cn__mT(v));
    }
    cn_tensor *s, *vh, *u = cn_linalg_svd(x, false, &s, &vh);
    return cn_matmul(cn_mul(cn__mT(vh), cn_unsqueeze(inverse_of(s, vanishing(s, t)), -2)), cn__mT(u));
}

static cn_tensor *compose_pinv(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    const bool hermitian = ((const cn__rank_attrs *)attrs)->hermitian;
    cn_tensor *x = cn__wide_float("linalg_pinv", in[0]);
    if (!x || !(hermitian ? cn__is_square : cn__is_matrix)("linalg_pinv", x)) return NULL;
    if (cn_numel(x) == 0) return cn_clone(cn__mT(in[0]));
    cn_tensor *known = pseudoinverse(cn_detach(x), hermitian, tolerances_of(x, args));
    cn_tensor *y = cn_apply(&cn__op_known_pinv, (cn_tensor *[]){ cn__mT(x), known }, 2, NULL, NULL);
    return cn__as(y, cn__dtype(in[0]));
}

#define RANK(is_hermitian) \
    .attrs = &(const cn__rank_attrs) { is_hermitian }

const cn_op cn__op_linalg_pinv = {
    .call = "linalg_pinv(Tensor A, *, float atol=0, float rtol=0, bool hermitian=False) -> Tensor",
    .name = "linalg_pinv",
    .doc = "The pseudoinverse; singular values up to the larger of atol and rtol · the largest count as 0.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__rank_attrs),
    .compose = compose_pinv,
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)), RANK(0) }, { CN_IN(CN_DISTINCT(2, 4, 2)), RANK(0) },
             { CN_IN(CN_DISTINCT(2, 5)), RANK(0), CN_ARGS({ .f = 0 }, { .f = 1e-3 }) },
             /* of a symmetric matrix: finite differences change one of two equal elements */
             { CN_IN(CN_POSITIVE(2, 3, 3)), RANK(1), .no_gradient_check = true }, { CN_IN(CN_DISTINCT(1, 1)), RANK(0) },
             { CN_IN(CN_DISTINCT(2, 0, 3)), RANK(0) }, { CN_IN(CN_DISTINCT(13, 6)), RANK(0) }),
};

cn_tensor *cn_linalg_pinv(cn_tensor *A, double atol, double rtol, bool hermitian)
{
    return apply_rank(&cn__op_linalg_pinv, A, atol, rtol, hermitian);
}

/* ---- known_pinv: a pseudoinverse that was computed without a gradient gets that of its definition ---- */

static void copy_f32(const cn_loop *l) { memcpy(l->out, l->in[1], (size_t)l->n * sizeof(float)); }
static void copy_f64(const cn_loop *l) { memcpy(l->out, l->in[1], (size_t)l->n * sizeof(double)); }

/* With P = A⁺, dA = -Pᵀ g Pᵀ + (gᵀ - A P gᵀ) P Pᵀ + Pᵀ P (gᵀ - gᵀ P A). The operand is Aᵀ, so that it has P's shape. */
static void grad(cn_grad_call *c)
{
    cn_tensor *a = cn__mT(c->in[0]), *p = c->out[0], *pt = cn__mT(p), *gt = cn__mT(c->out_grad[0]);
    cn_tensor *first = cn_matmul(cn_matmul(pt, c->out_grad[0]), pt);
    cn_tensor *second = cn_matmul(cn_matmul(cn_sub(gt, cn_matmul(a, cn_matmul(p, gt))), p), pt);
    cn_tensor *third = cn_matmul(cn_matmul(pt, p), cn_sub(gt, cn_matmul(cn_matmul(gt, p), a)));
    c->in_grad[0] = cn__mT(cn_sub(cn_add(second, third), first));
}

/* The operands of these cases are not a matrix and its pseudoinverse. */
#define CASE(...)                                                              \
    {                                                                          \
        CN_IN(CN_S(__VA_ARGS__), CN_S(__VA_ARGS__)), .no_gradient_check = true \
    }

const cn_op cn__op_known_pinv = {
    .call = "_known_pinv(Tensor A, Tensor pinv) -> Tensor",
    .name = "known_pinv",
    .doc = "y, the pseudoinverse of the transpose of x, with a gradient to x.",
    .kind = CN_MAP,
    .n_in = 2,
    .n_out = 1,
    .cheap = true,
    .not_differentiable = 2,
    .infer = cn_infer_map,
    .grad = grad,
    .loops = { [CN_F32] = copy_f32, [CN_F64] = copy_f64 },
    .wgsl = "y",
    CN_CASES(CASE(3, 2), CASE(2, 3, 3), CASE(2, 0)),
};

/* ---- linalg_matrix_rank ---- */

static cn_tensor *compose_rank(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    const bool hermitian = ((const cn__rank_attrs *)attrs)->hermitian;
    cn_tensor *x = cn__wide_float("linalg_matrix_rank", in[0]);
    if (!x || !(hermitian ? cn__is_square : cn__is_matrix)("linalg_matrix_rank", x)) return NULL;
    x = cn_detach(x);
    cn_tensor *s = hermitian ? cn_abs(cn_linalg_eigvalsh(x, CN_UPLO_L)) : cn_linalg_svdvals(x);
    if (!s) return NULL;
    cn_tensor *counts = cn_numel(x) ? cn_logical_not(vanishing(s, tolerances_of(x, args))) : cn_ne_s(s, 0);
    return cn_sum(counts, CN_DIMS(-1), false);
}

const cn_op cn__op_linalg_matrix_rank = {
    .call = "linalg_matrix_rank(Tensor A, *, float atol=0, float rtol=0, bool hermitian=False) -> Tensor",
    .name = "linalg_matrix_rank",
    .doc = "The number of singular values above the larger of atol and rtol · the largest, as i64.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__rank_attrs),
    .no_grad = "a count does not change smoothly",
    .compose = compose_rank,
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)), RANK(0) }, { CN_IN(CN_DISTINCT(2, 4, 2)), RANK(0), CN_ARGS({ .f = 1 }) },
             { CN_IN(CN_POSITIVE(2, 3, 3)), RANK(1), CN_ARGS({ .f = 0 }, { .f = 0.5 }) },
             { CN_IN(CN_DISTINCT(2, 0, 3)), RANK(0) }, { CN_IN(CN_DISTINCT(2, 9, 6)), RANK(0) }),
};

cn_tensor *cn_linalg_matrix_rank(cn_tensor *A, double atol, double rtol, bool hermitian)
{
    return apply_rank(&cn__op_linalg_matrix_rank, A, atol, rtol, hermitian);
}

/* ---- linalg_lstsq ---- */

/* By Q·R = A: R⁻¹·Qᵀ·B; for a wide A, by Q·R = Aᵀ: Q·R⁻ᵀ·B, the shortest of all solutions. */
static cn_tensor *least_squares(cn_tensor *a, cn_tensor *b)
{
    cn_tensor *r;
    if (cn_size(a, -2) >= cn_size(a, -1)) {
        cn_tensor *q = cn_linalg_qr(a, CN_QR_REDUCED, &r);
        return cn_linalg_solve_triangular(r, cn_matmul(cn__mT(q), b), true, true, false);
    }
    cn_tensor *q = cn_linalg_qr(cn__mT(a), CN_QR_REDUCED, &r);
    return cn_matmul(q, cn_linalg_solve_triangular(cn__mT(r), b, false, true, false));
}

static cn_tensor *compose_lstsq(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    cn_tensor *a = cn__wide_float("linalg_lstsq", in[0]), *b = cn__wide_float("linalg_lstsq", in[1]);
    if (!a || !b || !cn__is_matrix("linalg_lstsq", a)) return NULL;
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    const bool vector = cn__is_right_vector(la, lb);
    char s[96], t[96];
    if (lb->ndim < (vector ? 1 : 2) || lb->shape[lb->ndim - (vector ? 1 : 2)] != la->shape[la->ndim - 2]) {
        cn__fail(ctx, CN_BAD_SHAPE, "linalg_lstsq: B must have as many rows as A, got A %s and B %s",
                 cn__shape_text(la, s, sizeof s), cn__shape_text(lb, t, sizeof t));
        return NULL;
    }
    cn_tensor *x = least_squares(a, vector ? cn_unsqueeze(b, -1) : b);
    x = vector ? cn_squeeze(x, CN_DIMS(-1)) : x;
    return x ? cn__as(x, cn_promote(cn__dtype(in[0]), cn__dtype(in[1]))) : NULL;
}

const cn_op cn__op_linalg_lstsq = {
    .call = "linalg_lstsq(Tensor A, Tensor B) -> Tensor",
    .name = "linalg_lstsq",
    .doc = "z for which |x·z - y| is least and, if x has more columns than rows, |z| too; x has full rank.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .compose = compose_lstsq,
    CN_CASES({ CN_IN(CN_DISTINCT(4, 2), CN_S(4, 3)) }, { CN_IN(CN_DISTINCT(2, 2, 4), CN_S(2, 2, 1)) },
             { CN_IN(CN_DISTINCT(3, 3), CN_S(3)) }, { CN_IN(CN_DISTINCT(2, 5, 3), CN_S(2, 5)) },
             { CN_IN(CN_DISTINCT(3, 2), CN_S(3, 0)) }, { CN_IN(CN_DISTINCT(21, 7), CN_S(21, 5)) }),
};

cn_tensor *cn_linalg_lstsq(cn_tensor *A, cn_tensor *B)
{
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx || !cn__of_context(call.ctx, B, __func__, "B")) return NULL;
    return cn_apply(&cn__op_linalg_lstsq, (cn_tensor *[]){ A, B }, 2, NULL, NULL);
}

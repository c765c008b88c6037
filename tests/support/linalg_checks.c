/* linalg_checks.c: checks the factors of random, ill-conditioned, deficient and empty matrices. */
#include "support/linalg_checks.h"

#include <math.h>
#include <string.h>

#include "support/check.h"

static cn_tensor *turned(cn_tensor *x) { return cn_transpose(x, -2, -1); }
static cn_tensor *eye(cn_tensor *x, int64_t n) { return cn_eye(cn_context(x), cn_type(x), n, n); }

/* |a - b| at most `room`, relative to the largest magnitude of b. */
static void close_to(const char *what, cn_tensor *a, cn_tensor *b, double room)
{
    cn_ctx *cn = cn_context(b);
    if (!check(a && b && !cn_failed(cn), "%s: %s", what, cn_error(cn))) {
        cn_error_clear(cn);
        return;
    }
    if (cn_numel(b) == 0) {
        check(cn_numel(a) == 0 && cn_eval(a), "%s: %lld elements", what, (long long)cn_numel(a));
        return;
    }
    const double off = cn_item(cn_max(cn_abs(cn_sub(a, b)), CN_ALL, false));
    const double size = fmax(1, cn_item(cn_max(cn_abs(b), CN_ALL, false)));
    check(off <= room * size, "%s: off by %g of %g, allowed %g", what, off, size, room);
}

static void orthonormal(const char *what, cn_tensor *q, double room)
{
    close_to(what, cn_matmul(turned(q), q), cn_expand(eye(q, cn_size(q, -1)), cn_shape(cn_matmul(turned(q), q))), room);
}

/* s is in descending order, and its elements are at least 0. */
static void descending(const char *what, cn_tensor *s)
{
    const int64_t k = cn_size(s, -1);
    if (cn_numel(s) == 0) return;
    check(cn_item(cn_min(s, CN_ALL, false)) >= 0, "%s: a negative singular value", what);
    if (k > 1)
        check(cn_item(cn_min(cn_sub(cn_slice(s, -1, 0, k - 1, 1), cn_slice(s, -1, 1, k, 1)), CN_ALL, false)) >= 0,
              "%s: not in order", what);
}

static void check_qr(const char *what, cn_tensor *a, double room)
{
    for (int mode = CN_QR_REDUCED; mode <= CN_QR_COMPLETE; mode++) {
        cn_tensor *r, *q = cn_linalg_qr(a, (cn_qr_mode)mode, &r);
        close_to(what, cn_matmul(q, r), a, room);
        close_to(what, cn_tril(r, -1), cn_zeros_like(r), 0);
        orthonormal(what, q, room);
    }
    cn_tensor *r, *reduced, *none = cn_linalg_qr(a, CN_QR_R, &r);
    cn_linalg_qr(a, CN_QR_REDUCED, &reduced);
    check(cn_numel(none) == 0, "%s: mode r has a Q", what);
    close_to(what, r, reduced, 0);
}

static void check_svd(const char *what, cn_tensor *a, double room)
{
    const int64_t m = cn_size(a, -2), n = cn_size(a, -1), k = m < n ? m : n;
    for (int full = 0; full < 2; full++) {
        cn_tensor *s, *vh, *u = cn_linalg_svd(a, full, &s, &vh);
        check(cn_size(u, -1) == (full ? m : k) && cn_size(vh, -2) == (full ? n : k), "%s: shape of factors", what);
        cn_tensor *scaled = cn_mul(cn_slice(u, -1, 0, k, 1), cn_unsqueeze(s, -2));
        close_to(what, cn_matmul(scaled, cn_slice(vh, -2, 0, k, 1)), a, room);
        orthonormal(what, u, room);
        orthonormal(what, turned(vh), room);
        descending(what, s);
        close_to(what, cn_linalg_svdvals(a), s, 0);
    }
}

static void check_eigh(const char *what, cn_tensor *a, double room)
{
    cn_tensor *whole = cn_add(a, turned(a)), *v, *l = cn_linalg_eigh(cn_tril(whole, 0), CN_UPLO_L, &v), *w;
    close_to(what, cn_matmul(cn_mul(v, cn_unsqueeze(l, -2)), turned(v)), whole, room);
    orthonormal(what, v, room);
    descending(what, cn_sub(cn_max(l, CN_DIMS(-1), true), l));
    close_to(what, cn_linalg_eigh(cn_triu(whole, 0), CN_UPLO_U, &w), l, room);
    close_to(what, cn_linalg_eigvalsh(whole, CN_UPLO_L), l, room);
    /* the largest component of every vector, or one close to it, is positive */
    cn_tensor *most = cn_max(cn_abs(v), CN_DIMS(-2), false), *highest = cn_max(v, CN_DIMS(-2), false);
    check(cn_item(cn_min(cn_sub(highest, cn_mul_s(most, 0.93)), CN_ALL, false)) > 0, "%s: signs of vectors", what);
}

static void check_equations(const char *what, cn_tensor *a, double room)
{
    const int64_t n = cn_size(a, -1);
    cn_tensor *b = cn_randn_like(a), *p = cn_add(cn_matmul(a, turned(a)), eye(a, n));
    cn_tensor *x = cn_linalg_solve(p, b, true), *size = cn_max(cn_abs(x), CN_ALL, true);
    cn_tensor *rest = cn_div(cn_sub(cn_matmul(p, x), b), cn_mul(size, cn_max(cn_abs(p), CN_ALL, true)));
    close_to(what, rest, cn_zeros_like(rest), room);
    close_to(what, cn_linalg_solve(p, b, false), turned(cn_linalg_solve(turned(p), turned(b), true)), room);
    cn_tensor *l = cn_linalg_cholesky(p, false), *u = cn_linalg_cholesky(p, true);
    close_to(what, cn_matmul(l, turned(l)), p, room);
    close_to(what, cn_matmul(turned(u), u), p, room);
    close_to(what, cn_matmul(l, cn_linalg_solve_triangular(l, b, false, true, false)), b, room * 10);
    close_to(what, cn_matmul(cn_linalg_solve_triangular(l, b, false, false, false), l), b, room * 10);
    cn_tensor *log, *sign = cn_linalg_slogdet(p, &log), *diagonal = cn_log(cn_diagonal(l, 0, -2, -1));
    close_to(what, log, cn_mul_s(cn_sum(diagonal, CN_DIMS(-1), false), 2), room);
    close_to(what, sign, cn_ones_like(sign), 0);
}

/* Penrose: A·P·A = A, P·A·P = P, A·P and P·A are symmetric. */
static void check_pinv(const char *what, cn_tensor *a, double room)
{
    cn_tensor *p = cn_linalg_pinv(a, 0, 1e-4, false), *ap = cn_matmul(a, p), *pa = cn_matmul(p, a);
    close_to(what, cn_matmul(ap, a), a, room);
    close_to(what, cn_matmul(pa, p), p, room);
    close_to(what, turned(ap), ap, room);
    close_to(what, turned(pa), pa, room);
}

static void check_lstsq(cn_ctx *cn, cn_dtype t, double room)
{
    for (int wide = 0; wide < 2; wide++) {
        cn_tensor *a = cn_randn(cn, t, wide ? CN_DIMS(2, 4, 9) : CN_DIMS(2, 9, 4)),
                  *b = cn_randn(cn, t, CN_DIMS(2, wide ? 4 : 9, 3));
        close_to("lstsq", cn_linalg_lstsq(a, b), cn_matmul(cn_linalg_pinv(a, 0, 0, false), b), room);
    }
}

static void check_batches(cn_ctx *cn, cn_dtype t, double epsilon)
{
    cn_tensor *nothing = cn_zeros(cn, t, CN_DIMS(0, 3, 3)), *flat = cn_zeros(cn, t, CN_DIMS(2, 0, 0));
    check_qr("no matrices", nothing, epsilon);
    check_svd("no matrices", nothing, epsilon);
    check_qr("0 x 0", flat, epsilon);
    check_svd("0 x 0", flat, epsilon);
    check_svd("0 x 3", cn_zeros(cn, t, CN_DIMS(0, 3)), epsilon);
    check_qr("3 x 0", cn_zeros(cn, t, CN_DIMS(3, 0)), epsilon);
    close_to("0 x 0", cn_linalg_det(flat), cn_ones(cn, t, CN_DIMS(2)), 0);
    check(cn_numel(cn_linalg_inv(flat)) == 0 && cn_numel(cn_linalg_cholesky(nothing, false)) == 0, "empty results");
    /* one matrix, many right sides */
    cn_tensor *a = cn_add(cn_randn(cn, t, CN_DIMS(3, 3)), cn_mul_s(cn_eye(cn, t, 3, 3), 5));
    cn_tensor *b = cn_randn(cn, t, CN_DIMS(4, 3, 2)), *v = cn_randn(cn, t, CN_DIMS(3));
    close_to("broadcast", cn_matmul(a, cn_linalg_solve(a, b, true)), b, 50 * epsilon);
    close_to("broadcast, right", cn_matmul(cn_linalg_solve(a, turned(b), false), a), turned(b), 50 * epsilon);
    close_to("vector", cn_matmul(a, cn_linalg_solve(a, v, true)), v, 50 * epsilon);
    close_to("power", cn_matmul(cn_linalg_matrix_power(a, -3), cn_linalg_matrix_power(a, 3)), cn_eye(cn, t, 3, 3),
             1e4 * epsilon);
    /* exp(A)·exp(-A) = I, far beyond the reach of the polynomial */
    cn_tensor *skew = cn_mul_s(cn_sub(a, turned(a)), 30), *e = cn_linalg_matrix_exp(skew);
    orthonormal("exp of a skew matrix", e, 5e3 * epsilon);
    cn_tensor *minus = cn_linalg_matrix_exp(cn_mul_s(cn_eye(cn, t, 2, 2), -1000));
    close_to("exp of a large negative matrix", minus, cn_zeros_like(minus), 0);
}

void check_factors(cn_ctx *cn, cn_dtype t, double epsilon, int64_t most)
{
    const cn_dims shapes[] = { CN_DIMS(1, 1), CN_DIMS(5, 5), CN_DIMS(3, 7, 4), CN_DIMS(2, 3, 8), CN_DIMS(most, most) };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *a = cn_keep(cn_randn(cn, t, shapes[i]));
        const int64_t m = cn_size(a, -2), n = cn_size(a, -1);
        const double room = epsilon * 30 * sqrt((double)(m > n ? m : n));
        check_qr("random", a, room);
        check_svd("random", a, room);
        if (m == n) check_eigh("random", a, room);
        if (m == n) check_equations("random", a, 10 * room);
        /* columns from 1 down to 1e-6 in size */
        cn_tensor *sizes = cn_pow_s(cn_full(cn, t, CN_DIMS(n), 10), 1);
        sizes = cn_pow(sizes, cn_linspace(cn, t, 0, -6, n));
        check_qr("ill-conditioned", cn_mul(a, sizes), room);
        check_svd("ill-conditioned", cn_mul(a, sizes), room);
        /* rank 1 */
        cn_tensor *flat = cn_matmul(cn_slice(a, -1, 0, 1, 1), cn_slice(a, -2, 0, 1, 1));
        check_qr("rank 1", flat, room);
        check_svd("rank 1", flat, room);
        check_pinv("rank 1", flat, 100 * room);
        if (m == n) check_eigh("rank 1", flat, room);
        cn_tensor *rank = cn_linalg_matrix_rank(flat, 0, 1e-4, false);
        close_to("rank", rank, cn_ones_like(rank), 0);
        check_svd("zero", cn_zeros_like(a), room);
        cn_release(a);
        cn_scope_end(cn, s);
    }
    cn_scope s = cn_scope_begin(cn);
    check_lstsq(cn, t, epsilon * 3e3);
    check_batches(cn, t, epsilon);
    cn_scope_end(cn, s);
}

/* ---- matrices that have no result ---- */

/* A GPU reports a fault to whoever reads a value. */
static void expect_fault(cn_tensor *y, const char *message)
{
    cn_ctx *cn = cn_context(y);
    cn_item(cn_sum(y, CN_ALL, false));
    check(cn_error_code(cn) == CN_BAD_ARGUMENT && strstr(cn_error(cn), message), "%s, not \"%s\"", cn_error(cn),
          message);
    cn_error_clear(cn);
}

/* (4, 3, 3): multiples of I, of which element (2, row, col) is replaced. */
static cn_tensor *batch(cn_ctx *cn, int64_t row, int64_t col, float value)
{
    float v[36] = { 0 };
    for (int i = 0; i < 36; i++) v[i] = i / 3 % 3 == i % 3 ? 2.0f : 0;
    v[18 + row * 3 + col] = value;
    return cn_from(cn, CN_F32, CN_DIMS(4, 3, 3), v);
}

void check_faults(cn_ctx *cn)
{
    cn_scope s = cn_scope_begin(cn);
    expect_fault(cn_linalg_cholesky(batch(cn, 2, 2, -1), false),
                 "linalg_cholesky: matrix 2 of the batch is not positive definite (leading minor 3)");
    expect_fault(cn_linalg_inv(batch(cn, 1, 1, 0)), "linalg_inv: matrix 2 of the batch is singular (pivot 2 is 0)");
    cn_tensor *b = cn_ones(cn, CN_F32, CN_DIMS(4, 3, 2));
    expect_fault(cn_linalg_solve(batch(cn, 0, 0, 0), b, true),
                 "linalg_solve: matrix 2 of the batch is singular (pivot 1");
    cn_tensor *vh, *v;
    expect_fault(cn_linalg_svd(batch(cn, 1, 0, NAN), false, NULL, &vh),
                 "linalg_svd: matrix 2 of the batch has no result");
    expect_fault(cn_linalg_eigh(batch(cn, 1, 0, INFINITY), CN_UPLO_L, &v), "linalg_eigh: matrix 2 of the batch has no");
    /* a parameter stays as it was */
    cn_tensor *p = cn_param(batch(cn, 1, 1, 0));
    check(cn_assign(p, cn_linalg_inv(p)) || cn_failed(cn), "assign");
    if (cn_eval(p)) cn_item(cn_sum(p, CN_ALL, false));
    check(cn_failed(cn), "the inverse of a singular parameter");
    cn_error_clear(cn);
    check(cn_item(cn_sum(p, CN_ALL, false)) == 22, "the parameter has changed: %s", cn_error(cn));
    cn_release(p);
    /* no error where there is a result */
    check(cn_item(cn_sum(cn_linalg_det(batch(cn, 1, 1, 0)), CN_ALL, false)) == 24, "det of a singular matrix");
    cn_tensor *log, *sign = cn_linalg_slogdet(batch(cn, 1, 1, 0), &log);
    check(cn_item(cn_sum(sign, CN_ALL, false)) == 3 && cn_item(cn_select(log, 0, 2)) == -INFINITY, "slogdet of one");
    cn_scope_end(cn, s);
}

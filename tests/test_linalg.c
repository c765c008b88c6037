/* Linear algebra on the CPU: factors of all kinds of matrices, gradients of symmetric ones, errors, and what happens
   without LAPACK. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/linalg_checks.h"

static cn_ctx *cn;

/* ---- gradients that finite differences of single elements cannot check ---- */

static cn_tensor *symmetric(cn_tensor *x) { return cn_add(x, cn_transpose(x, -2, -1)); }
static cn_tensor *positive(cn_tensor *x)
{
    return cn_add(cn_matmul(x, cn_transpose(x, -2, -1)), cn_eye(cn, CN_F64, cn_size(x, -1), cn_size(x, -1)));
}

static cn_tensor *lower(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    return cn_linalg_cholesky(positive(in[0]), user != NULL);
}

static cn_tensor *eigenvalues(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_linalg_eigvalsh(symmetric(in[0]), CN_UPLO_L);
}

static cn_tensor *eigenvectors(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *v, *l = cn_linalg_eigh(symmetric(in[0]), CN_UPLO_U, &v);
    return cn_mul(v, cn_unsqueeze(l, -1));
}

static cn_tensor *pseudoinverse(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_linalg_pinv(positive(in[0]), 0, 0, true);
}

static cn_tensor *all_vectors(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *s, *vh, *u = cn_linalg_svd(in[0], true, &s, &vh);
    const int64_t k = cn_size(s, -1);
    return cn_matmul(cn_slice(u, -1, 0, k, 1), cn_square(cn_slice(vh, -2, 0, k, 1)));
}

static cn_tensor *fractions(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    return cn_linalg_norm(in[0], user, CN_ALL, false);
}

static void try_gradient(const char *what, cn_function fn, void *user, cn_dims shape)
{
    char words[256] = "";
    cn_gradcheck_desc desc = { .words = words, .words_size = sizeof words };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_randn(cn, CN_F64, shape);
    check(cn_gradcheck(fn, user, &x, 1, &desc), "%s: %s", what, words);
    check(cn_gradgradcheck(fn, user, &x, 1, &desc), "%s, second order: %s", what, words);
    cn_error_clear(cn);
    cn_scope_end(cn, s);
}

static void test_gradients(void)
{
    static char upper[] = "", nuclear[] = "nuc", largest[] = "2", third[] = "-1";
    try_gradient("cholesky", lower, NULL, CN_DIMS(2, 3, 3));
    try_gradient("cholesky, upper", lower, upper, CN_DIMS(3, 3));
    try_gradient("eigvalsh", eigenvalues, NULL, CN_DIMS(2, 3, 3));
    try_gradient("eigh", eigenvectors, NULL, CN_DIMS(2, 3, 3));
    try_gradient("pinv of symmetric matrices", pseudoinverse, NULL, CN_DIMS(3, 3));
    try_gradient("svd, tall", all_vectors, NULL, CN_DIMS(4, 2));
    try_gradient("svd, wide", all_vectors, NULL, CN_DIMS(2, 4));
    try_gradient("nuclear norm", fractions, nuclear, CN_DIMS(3, 2));
    try_gradient("2-norm", fractions, largest, CN_DIMS(3, 2));
    try_gradient("-1-norm", fractions, third, CN_DIMS(3, 2));
    try_gradient("norm of all elements", fractions, NULL, CN_DIMS(3, 2));
}

/* The gradient of det is made of cofactors, also where the matrix has no inverse. */
static void test_singular_det(void)
{
    const double a[] = { 1, 2, 3, 2, 4, 6, 1, 0, 1 }, zero[4] = { 0 };
    const double cofactors[] = { 4, 4, -4, -2, -2, 2, 0, 0, 0 };
    double got[9];
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_param(cn_from(cn, CN_F64, CN_DIMS(3, 3), a)),
              *y = cn_param(cn_from(cn, CN_F64, CN_DIMS(2, 2), zero));
    cn_backward(cn_add(cn_linalg_det(x), cn_linalg_det(y)));
    cn_read_f64(cn_grad_of(x), got, 9);
    for (int i = 0; i < 9; i++) check(fabs(got[i] - cofactors[i]) < 1e-12, "cofactor %d is %g", i, got[i]);
    cn_read_f64(cn_grad_of(y), got, 4);
    for (int i = 0; i < 4; i++) check(fabs(got[i]) < 1e-12, "cofactor %d of 0 is %g", i, got[i]);
    cn_release(x);
    cn_release(y);
    cn_scope_end(cn, s);
}

/* ---- errors of calls ---- */

static void refused(cn_tensor *y, cn_code code, const char *part)
{
    check(!y && cn_error_code(cn) == code && strstr(cn_error(cn), part), "%s, not \"%s\"", cn_error(cn), part);
    cn_error_clear(cn);
}

static void test_refusals(void)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *line = cn_ones(cn, CN_F32, CN_DIMS(3)), *wide = cn_ones(cn, CN_F32, CN_DIMS(2, 3)), *r;
    cn_tensor *square = cn_eye(cn, CN_F32, 3, 3), *whole = cn_ones(cn, CN_I64, CN_DIMS(3, 3));
    refused(cn_linalg_cholesky(line, false), CN_BAD_SHAPE, "linalg_cholesky: A must have at least 2 axes, got [3]");
    refused(cn_linalg_inv(wide), CN_BAD_SHAPE, "linalg_inv: A must have square matrices, got [2,3]");
    refused(cn_linalg_det(wide), CN_BAD_SHAPE, "square");
    refused(cn_linalg_eigh(wide, CN_UPLO_L, &r), CN_BAD_SHAPE, "square");
    refused(cn_linalg_matrix_exp(wide), CN_BAD_SHAPE, "square");
    refused(cn_linalg_matrix_power(wide, 2), CN_BAD_SHAPE, "square");
    refused(cn_linalg_inv(whole), CN_BAD_DTYPE, "linalg_inv");
    refused(cn_linalg_pinv(whole, 0, 0, false), CN_BAD_DTYPE, "linalg_pinv: dtype must be a float, got i64");
    refused(cn_linalg_solve(square, wide, true), CN_BAD_SHAPE, "linalg_solve: B must have as many rows as A");
    refused(cn_linalg_solve(square, cn_scalar(cn, CN_F32, 1), true), CN_BAD_SHAPE, "B must have an axis");
    refused(cn_linalg_solve_triangular(square, line, true, true, false), CN_BAD_SHAPE, "B must have at least 2 axes");
    refused(cn_linalg_lstsq(wide, line), CN_BAD_SHAPE, "linalg_lstsq: B must have as many rows as A");
    refused(cn_linalg_qr(wide, (cn_qr_mode)7, &r), CN_BAD_ARGUMENT, "linalg_qr: mode");
    refused(cn_linalg_eigvalsh(square, (cn_uplo)7), CN_BAD_ARGUMENT, "linalg_eigvalsh: UPLO");
    refused(cn_linalg_pinv(wide, -1, 0, false), CN_BAD_ARGUMENT, "linalg_pinv: tolerances must be ≥ 0");
    refused(cn_linalg_matrix_norm(wide, "3", CN_ALL, false), CN_BAD_ARGUMENT, "got \"3\"");
    refused(cn_linalg_matrix_norm(wide, "2", CN_DIMS(0, 0), false), CN_BAD_ARGUMENT, "two different axes");
    refused(cn_linalg_matrix_norm(line, "2", CN_ALL, false), CN_BAD_SHAPE, "at least 2 axes");
    refused(cn_linalg_norm(line, "fro", CN_ALL, false), CN_BAD_ARGUMENT, "must be a number, got \"fro\"");
    refused(cn_linalg_norm(cn_ones(cn, CN_F32, CN_DIMS(2, 2, 2)), "2", CN_ALL, false), CN_BAD_ARGUMENT,
            "one or two axes");
    refused(cn_linalg_cond(wide, "1"), CN_BAD_SHAPE, "linalg_cond: A must have square matrices");
    cn_tensor *tall = cn_param(cn_randn(cn, CN_F32, CN_DIMS(3, 2)));
    check(!cn_backward(cn_sum(cn_linalg_qr(tall, CN_QR_COMPLETE, &r), CN_ALL, false)) &&
              cn_error_code(cn) == CN_NO_GRADIENT && strstr(cn_error(cn), "in mode complete"),
          "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_release(tall);
    cn_scope_end(cn, s);
}

/* ---- values ---- */

static void test_norms(void)
{
    static const struct {
        const char *ord;
        double value;
    } expected[] = { { NULL, 5.4772255750516612 },
                     { "fro", 5.4772255750516612 },
                     { "nuc", 5.8309518948453007 },
                     { "inf", 7 },
                     { "-inf", 3 },
                     { "1", 6 },
                     { "-1", 4 },
                     { "2", 5.4649857042190426 },
                     { "-2", 0.36596619062625782 } };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_from(cn, CN_F64, CN_DIMS(2, 2), (double[]){ 1, -2, 3, 4 }), *line = cn_reshape(x, CN_DIMS(4));
    x = cn_abs(x);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const double got = cn_item(cn_linalg_norm(x, expected[i].ord, CN_ALL, false));
        check(fabs(got - expected[i].value) < 1e-12, "norm %s is %.17g", expected[i].ord ? expected[i].ord : "", got);
    }
    check(cn_item(cn_linalg_norm(line, "3", CN_ALL, false)) == cn_item(cn_norm(line, 3, CN_ALL, false)), "3-norm");
    check(cn_item(cn_linalg_vector_norm(x, INFINITY, CN_ALL, false)) == 4, "vector norm of a matrix");
    check(cn_ndim(cn_linalg_norm(x, "nuc", CN_DIMS(0, 1), true)) == 2, "keepdim");
    cn_scope_end(cn, s);
}

/* The first of two components that are the largest, up to rounding, is positive. */
static void test_signs(void)
{
    cn_scope s = cn_scope_begin(cn);
    for (int t = CN_F32; t <= CN_F64; t++) {
        cn_tensor *a = cn_cast(cn_from(cn, CN_F64, CN_DIMS(2, 2), (double[]){ 2, -1, -1, 2 }), (cn_dtype)t), *v, *vh;
        double got[4];
        cn_linalg_eigh(a, CN_UPLO_L, &v);
        cn_read_f64(v, got, 4);
        check(got[0] > 0 && got[1] > 0, "eigenvectors: %g %g", got[0], got[1]);
        cn_tensor *u = cn_linalg_svd(a, false, NULL, &vh);
        cn_read_f64(u, got, 4);
        check(got[0] > 0 && got[1] > 0, "singular vectors: %g %g", got[0], got[1]);
    }
    cn_scope_end(cn, s);
}

/* ---- without LAPACK ---- */

static void test_absence(const char *file)
{
    setenv("CAIRN_LAPACK", file, 1);
    cn_ctx *other = cn_open(&(cn_desc){ .device = "cpu", .seed = 1 });
    cn_tensor *a = cn_eye(other, CN_F32, 3, 3);
    check(!cn_linalg_inv(a) && cn_error_code(other) == CN_UNSUPPORTED &&
              strstr(cn_error(other), "linalg_inv: needs LAPACK") && strstr(cn_error(other), file),
          "%s", cn_error(other));
    cn_error_clear(other);
    check(!cn_linalg_svd(a, true, NULL, NULL) && strstr(cn_error(other), "linalg_svd: needs LAPACK"), "%s",
          cn_error(other));
    cn_error_clear(other);
    check(fabs(cn_item(cn_sum(cn_linalg_matrix_exp(a), CN_ALL, false)) - 3 * exp(1)) < 1e-5, "matrix_exp needs none");
    check(cn_item(cn_linalg_norm(a, "1", CN_ALL, false)) == 1, "norms need none");
    cn_close(other);
    unsetenv("CAIRN_LAPACK");
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .device = "cpu", .seed = 5, .threads = 2 });
    if (!cn) return 1;
    test_absence("/nonexistent");
    test_absence("libm.so.6");
    cn_scope s = cn_scope_begin(cn);
    if (!cn_linalg_inv(cn_eye(cn, CN_F32, 2, 2)) && cn_error_code(cn) == CN_UNSUPPORTED) {
        check(strstr(cn_error(cn), "apt-get install liblapack3") != NULL, "%s", cn_error(cn));
        skip();
    } else {
        check_factors(cn, CN_F64, 0x1p-52, test_is_quick() ? 20 : 100);
        check_factors(cn, CN_F32, 0x1p-23, test_is_quick() ? 20 : 100);
        check_faults(cn);
        test_gradients();
        test_singular_det();
        test_refusals();
        test_norms();
        test_signs();
    }
    cn_scope_end(cn, s);
    cn_close(cn);
    return finish();
}

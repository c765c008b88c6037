/* cairn/ops/linalg.h: linear algebra, with the names of torch.linalg. A matrix is the last two axes of a tensor; the
   axes before them are a batch.

       cn_tensor *x = cn_linalg_solve(a, b, true);                   a·x = b
       cn_tensor *s, *vh, *u = cn_linalg_svd(a, false, &s, &vh);     a = u · diag(s) · vh
       cn_tensor *y = cn_linalg_matrix_norm(a, "nuc", CN_ALL, false);

   LAPACK     On the CPU, factorisations are LAPACK's. It is looked up by the first call that needs it: the file that
              CAIRN_LAPACK names, else liblapack.so.3, libopenblas.so.0 or libmkl_rt.so.2. Without it such a call is an
              error that says what to install. A GPU has kernels of its own and needs none; they compute in f32.
   Errors     Evaluation fails for a matrix that has no result: one that is singular (solve, inv), not positive definite
              (cholesky), or not finite (eigh, svd).
   Signs      Of each eigenvector, and of each left singular vector, the largest component (the first within 1/16 of
              it) is positive. So every device and every LAPACK give the same.
   Gradients  Those of eigh and svd exist where eigenvalues or singular values differ, those of vectors of the null
              space never. Those of cholesky and eigh are of a symmetric matrix, as in PyTorch. */
#ifndef CAIRN_OPS_LINALG_H
#define CAIRN_OPS_LINALG_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cn_uplo { CN_UPLO_L, CN_UPLO_U } cn_uplo; /* which triangle of a symmetric matrix is read */
typedef enum cn_qr_mode { CN_QR_REDUCED, CN_QR_COMPLETE, CN_QR_R } cn_qr_mode;

/* ---- factorisations ---- */

/* The lower triangular L with L·Lᵀ = A, or the upper triangular U with Uᵀ·U = A; A must be positive definite, and only
   this triangle of it is read. */
CN_PURE cn_tensor *cn_linalg_cholesky(cn_tensor *A, bool upper);

/* Q with orthonormal columns and upper triangular R, Q·R = A (m, n). Q is (m, k) and R (k, n), where k is the smaller
   of m and n, or m if the mode is complete. In mode r, Q is empty. R may be NULL. */
CN_API cn_tensor *cn_linalg_qr(cn_tensor *A, cn_qr_mode mode, cn_tensor **R);

/* The eigenvalues of symmetric matrices, ascending, and the eigenvectors, as columns, which may be NULL. */
CN_API cn_tensor *cn_linalg_eigh(cn_tensor *A, cn_uplo UPLO, cn_tensor **eigenvectors);

/* The eigenvalues of symmetric matrices, ascending. */
CN_PURE cn_tensor *cn_linalg_eigvalsh(cn_tensor *A, cn_uplo UPLO);

/* U, S and Vh with U·diag(S)·Vh = A (m, n), S descending. U is (m, m) and Vh (n, n), or, if not full_matrices, (m, k)
   and (k, n), where k is the smaller of m and n. S and Vh may be NULL. */
CN_API cn_tensor *cn_linalg_svd(cn_tensor *A, bool full_matrices, cn_tensor **S, cn_tensor **Vh);

/* The singular values, descending. */
CN_PURE cn_tensor *cn_linalg_svdvals(cn_tensor *A);

/* ---- equations ---- */

/* X with A·X = B, or X·A = B if not left; B may be a vector, if its shape is that of A without the last axis. */
CN_PURE cn_tensor *cn_linalg_solve(cn_tensor *A, cn_tensor *B, bool left);

/* X with A·X = B, or X·A = B if not left, for a triangular A, of which only this triangle is read. */
CN_PURE cn_tensor *cn_linalg_solve_triangular(cn_tensor *A, cn_tensor *B, bool upper, bool left, bool unitriangular);

/* X for which |A·X - B| is least and, if A has more columns than rows, |X| too; A must have full rank. */
CN_PURE cn_tensor *cn_linalg_lstsq(cn_tensor *A, cn_tensor *B);

/* The inverse of square matrices. */
CN_PURE cn_tensor *cn_linalg_inv(cn_tensor *A);

/* The pseudoinverse; singular values up to the larger of atol and rtol · the largest count as 0. If both are 0, rtol is
   the larger size of A times the epsilon of its dtype. */
CN_PURE cn_tensor *cn_linalg_pinv(cn_tensor *A, double atol, double rtol, bool hermitian);

/* ---- numbers ---- */

/* The determinant of square matrices. */
CN_PURE cn_tensor *cn_linalg_det(cn_tensor *A);

/* The sign of the determinant, and the logarithm of its magnitude, which may be NULL. */
CN_API cn_tensor *cn_linalg_slogdet(cn_tensor *A, cn_tensor **logabsdet);

/* The number of singular values that do not count as 0, as i64; tolerances as in pinv. */
CN_PURE cn_tensor *cn_linalg_matrix_rank(cn_tensor *A, double atol, double rtol, bool hermitian);

/* The condition number, |A|·|A⁻¹|, in a norm of matrix_norm; NULL is "2". */
CN_PURE cn_tensor *cn_linalg_cond(cn_tensor *A, const char *p);

/* (sum |x|^ord)^(1/ord) over axes; ord may be 0 (a count), INFINITY or -INFINITY. */
CN_PURE cn_tensor *cn_linalg_vector_norm(cn_tensor *x, double ord, cn_dims dim, bool keepdim);

/* A norm over two axes, CN_ALL: the last two. ord is "fro", "nuc", "inf", "-inf", "1", "-1", "2" or "-2"; NULL is
   "fro". */
CN_PURE cn_tensor *cn_linalg_matrix_norm(cn_tensor *A, const char *ord, cn_dims dim, bool keepdim);

/* matrix_norm over two axes, vector_norm over others. Without ord (NULL) it is the 2-norm of all elements. dim may be
   CN_ALL. */
CN_PURE cn_tensor *cn_linalg_norm(cn_tensor *A, const char *ord, cn_dims dim, bool keepdim);

/* ---- functions of square matrices ---- */

/* The exponential function, I + A + A²/2 + … */
CN_PURE cn_tensor *cn_linalg_matrix_exp(cn_tensor *A);

/* A to the power of n; a negative n inverts A. */
CN_PURE cn_tensor *cn_linalg_matrix_power(cn_tensor *A, int64_t n);

#ifdef __cplusplus
}
#endif
#endif

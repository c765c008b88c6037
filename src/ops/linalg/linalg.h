/* linalg.h: what the operators of linear algebra share: checks of shapes, batches of matrices, steps of composites. */
#ifndef CN_OPS_LINALG_H
#define CN_OPS_LINALG_H

#include "cairn/kernel.h"
#include "ops/linalg/lapack.h"
#include "ops/shared.h"

extern const cn_op cn__op_linalg_cholesky, cn__op_linalg_solve_triangular, cn__op_linalg_solve, cn__op_linalg_inv,
    cn__op_linalg_det, cn__op_cofactor, cn__op_linalg_slogdet, cn__op_linalg_qr, cn__op_linalg_eigh,
    cn__op_linalg_eigvalsh, cn__op_thin_svd, cn__op_linalg_svdvals, cn__op_linalg_lstsq, cn__op_linalg_pinv,
    cn__op_known_pinv, cn__op_linalg_matrix_rank, cn__op_linalg_cond, cn__op_linalg_matrix_exp,
    cn__op_linalg_matrix_power, cn__op_linalg_matrix_norm;

/* ---- attributes ---- */

typedef struct cn__cholesky_attrs {
    int64_t upper;
} cn__cholesky_attrs;

typedef struct cn__triangular_attrs {
    int64_t upper, unit;
} cn__triangular_attrs;

typedef struct cn__qr_attrs {
    int64_t mode; /* cn_qr_mode; never CN_QR_R */
} cn__qr_attrs;

typedef struct cn__eigh_attrs {
    int64_t uplo;
} cn__eigh_attrs;

/* pinv, matrix_rank; args: atol, rtol */
typedef struct cn__rank_attrs {
    int64_t hermitian;
} cn__rank_attrs;

typedef struct cn__power_attrs {
    int64_t n;
} cn__power_attrs;

typedef enum cn__matrix_ord {
    CN__ORD_FRO,
    CN__ORD_NUC,
    CN__ORD_INF,
    CN__ORD_MINUS_INF,
    CN__ORD_1,
    CN__ORD_MINUS_1,
    CN__ORD_2,
    CN__ORD_MINUS_2
} cn__matrix_ord;

typedef struct cn__matrix_norm_attrs {
    int64_t ord, rows, cols, keepdim; /* rows, cols: axes */
} cn__matrix_norm_attrs;

typedef struct cn__cond_attrs {
    int64_t ord;
} cn__cond_attrs;

/* ---- shapes; the messages are those of an operator `who` ---- */

bool cn__infer_matrix(cn_infer *i);     /* operand 0 has matrices */
bool cn__infer_square(cn_infer *i);     /* operand 0 has square matrices */
bool cn__infer_right_side(cn_infer *i); /* operand 1 fits operand 0, A·X = B, and has the same batch */
bool cn__is_matrix(const char *who, const cn_tensor *x);
bool cn__is_square(const char *who, const cn_tensor *x);

/* Rows, columns and number of the matrices of an operand. */
typedef struct cn__matrices {
    int64_t rows, cols, count;
} cn__matrices;
bool cn__is_right_vector(const cn_layout *a, const cn_layout *b); /* b has the shape of a without its last axis */
cn__matrices cn__matrices_of(const cn_array *x);
cn__matrices cn__matrices_in(const cn_layout *x);

/* ---- CPU kernels: a function for each matrix of a batch ---- */

typedef struct cn__matrix_job {
    const cn_kernel *k;
    const cn__lapack_functions *lapack; /* for the dtype of operand 0 */
    size_t size;                        /* bytes of an element */
    bool is_f64;
    void *own; /* scratch of this call */
} cn__matrix_job;
typedef void (*cn__matrix_fn)(const cn__matrix_job *j, int64_t matrix);

/* Calls fn for every matrix, with `bytes` of scratch, by several threads if LAPACK allows. */
void cn__each_matrix(const cn_kernel *k, int64_t count, size_t bytes, cn__matrix_fn fn);
size_t cn__each_matrix_scratch(int64_t count, size_t bytes, int threads); /* for .scratch */

/* Matrix `matrix` of operand or result x, which has n elements a matrix. */
static inline void *cn__matrix_at(const cn__matrix_job *j, const cn_array *x, int64_t n, int64_t matrix)
{
    return (char *)x->data + (size_t)(matrix * n) * j->size;
}
static inline double cn__get(const cn__matrix_job *j, const void *p, int64_t i)
{
    return j->is_f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}
static inline void cn__set(const cn__matrix_job *j, void *p, int64_t i, double v)
{
    if (j->is_f64) ((double *)p)[i] = v;
    else ((float *)p)[i] = (float)v;
}
void cn__transpose_matrix(const cn__matrix_job *j, void *to, const void *from, int64_t rows, int64_t cols);
bool cn__all_finite(const cn__matrix_job *j, const void *p, int64_t n);
/* 1 or -1: the factor that makes the largest of n components, `step` apart, positive. */
double cn__vector_sign(const cn__matrix_job *j, const void *p, int64_t n, int64_t step);

/* ---- the GPU ---- */

enum { CN__MATRIX_LANES = 64 }; /* invocations that share a matrix, as in the shaders */

/* ---- steps of gradients and composites ---- */

static inline cn_tensor *cn__mT(cn_tensor *x) { return cn_transpose(x, -2, -1); }
cn_tensor *cn__eye_like(cn_tensor *x, int64_t n);         /* I (n, n), with the dtype of x */
cn_tensor *cn__as_diagonal(cn_tensor *v, int64_t n);      /* (..., n) → (..., n, n) */
cn_tensor *cn__with_batch(cn_tensor *x, cn_tensor *like); /* x, its batch axes expanded to those of both */

#endif

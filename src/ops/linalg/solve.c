/* solve.c: what follows from P·L·U = A, the factors with exchanged rows: linalg_solve, linalg_inv, linalg_det,
   linalg_slogdet, and cofactor, the gradient of det. */
#include <float.h>
#include <math.h>

#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

/* ---- shapes ---- */

static bool infer_solve(cn_infer *i)
{
    if (!cn__infer_square(i) || !cn__infer_right_side(i) || !cn__lapack_ready(i)) return false;
    i->out[0] = *i->in[1];
    return true;
}

static bool infer_same(cn_infer *i)
{
    if (!cn__infer_square(i) || !cn__lapack_ready(i)) return false;
    i->out[0] = *i->in[0];
    return true;
}

/* One number for each matrix. */
static bool infer_numbers(cn_infer *i)
{
    if (!infer_same(i)) return false;
    i->out[0].layout.ndim -= 2;
    for (int k = 1; k < i->n_out; k++) i->out[k] = i->out[0];
    return true;
}

/* ---- the CPU ---- */

/* Scratch of a matrix: the factors, column-major; then right sides, column-major; then pivots. */
static size_t scratch_bytes(int64_t n, int64_t right, size_t size)
{
    return (size_t)(n * n + n * right) * size + (size_t)n * sizeof(int);
}

static void *right_side(const cn__matrix_job *j, int64_t n) { return (char *)j->own + (size_t)(n * n) * j->size; }
static int *pivots(const cn__matrix_job *j, int64_t n, int64_t right)
{
    return (int *)(void *)((char *)j->own + (size_t)(n * n + n * right) * j->size);
}

/* Returns 0, or the number, from 1 on, of the first 0 on the diagonal of U. */
static int factor(const cn__matrix_job *j, int64_t matrix, int64_t n, int64_t right)
{
    const int size = (int)n;
    int info = 0;
    if (n == 0) return 0;
    cn__transpose_matrix(j, j->own, cn__matrix_at(j, &j->k->in[0], n * n, matrix), n, n);
    j->lapack->getrf(&size, &size, j->own, &size, pivots(j, n, right), &info);
    return info;
}

static void substitute(const cn__matrix_job *j, int64_t n, int64_t right)
{
    const int size = (int)n, columns = (int)right;
    int info;
    j->lapack->getrs("N", &size, &columns, j->own, &size, pivots(j, n, right), right_side(j, n), &size, &info, 1);
}

static void one_solve(const cn__matrix_job *j, int64_t matrix)
{
    const cn__matrices b = cn__matrices_of(&j->k->in[1]);
    const int info = factor(j, matrix, b.rows, b.cols);
    if (info) {
        cn_kernel_fault(j->k, matrix, info);
        return;
    }
    const int64_t n = b.rows * b.cols;
    cn__transpose_matrix(j, right_side(j, b.rows), cn__matrix_at(j, &j->k->in[1], n, matrix), b.rows, b.cols);
    substitute(j, b.rows, b.cols);
    cn__transpose_matrix(j, cn__matrix_at(j, &j->k->out[0], n, matrix), right_side(j, b.rows), b.cols, b.rows);
}

/* A⁻¹ as right sides, column-major. */
static void invert(const cn__matrix_job *j, int64_t n)
{
    memset(right_side(j, n), 0, (size_t)(n * n) * j->size);
    for (int64_t i = 0; i < n; i++) cn__set(j, right_side(j, n), i * n + i, 1);
    substitute(j, n, n);
}

static void one_inv(const cn__matrix_job *j, int64_t matrix)
{
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    const int info = factor(j, matrix, n, n);
    if (info) {
        cn_kernel_fault(j->k, matrix, info);
        return;
    }
    invert(j, n);
    cn__transpose_matrix(j, cn__matrix_at(j, &j->k->out[0], n * n, matrix), right_side(j, n), n, n);
}

static bool is_odd(const int *pivot, int64_t n)
{
    bool odd = false;
    for (int64_t i = 0; i < n; i++) odd ^= pivot[i] != i + 1;
    return odd;
}

static double determinant(const cn__matrix_job *j, int64_t n, int64_t right)
{
    double product = is_odd(pivots(j, n, right), n) ? -1 : 1;
    for (int64_t i = 0; i < n; i++) product *= cn__get(j, j->own, i * n + i);
    return product;
}

static void one_det(const cn__matrix_job *j, int64_t matrix)
{
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    factor(j, matrix, n, 0);
    cn__set(j, j->k->out[0].data, matrix, determinant(j, n, 0));
}

static void one_slogdet(const cn__matrix_job *j, int64_t matrix)
{
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    factor(j, matrix, n, 0);
    double sign = is_odd(pivots(j, n, 0), n) ? -1 : 1, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double u = cn__get(j, j->own, i * n + i);
        sign = u > 0 ? sign : u < 0 ? -sign : u * sign; /* 0, or NaN */
        sum += log(fabs(u));
    }
    cn__set(j, j->k->out[0].data, matrix, sign);
    cn__set(j, j->k->out[1].data, matrix, sum);
}

/* det(A)·A⁻ᵀ. The cofactors of a singular matrix are the limit of those of its neighbours: each 0 on the diagonal of U
   is replaced by a number too small to matter. */
static void one_cofactor(const cn__matrix_job *j, int64_t matrix)
{
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    factor(j, matrix, n, n);
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(cn__get(j, j->own, i * n + i)));
    for (int64_t i = 0; i < n; i++)
        if (cn__get(j, j->own, i * n + i) == 0)
            cn__set(j, j->own, i * n + i, most > 0 ? most * (j->is_f64 ? DBL_EPSILON : FLT_EPSILON) : 1e-18);
    const double det = determinant(j, n, n);
    invert(j, n);
    void *out = cn__matrix_at(j, &j->k->out[0], n * n, matrix);
    for (int64_t i = 0; i < n * n; i++) cn__set(j, out, i, det * cn__get(j, right_side(j, n), i));
}

/* The columns of right sides. */
static int64_t right_of(const cn_op *op, const cn_array *in)
{
    if (op == &cn__op_linalg_solve) return cn__matrices_of(&in[1]).cols;
    return op == &cn__op_linalg_inv || op == &cn__op_cofactor ? cn__matrices_of(&in[0]).rows : 0;
}

static size_t bytes_of(const cn_kernel *k)
{
    return scratch_bytes(cn__matrices_of(&k->in[0]).rows, right_of(k->op, k->in), cn_dtype_size(k->in[0].dtype));
}

static size_t scratch(const cn_kernel *k, int threads)
{
    return cn__each_matrix_scratch(cn__matrices_of(&k->in[0]).count, bytes_of(k), threads);
}

static void run(const cn_kernel *k, cn__matrix_fn fn)
{
    if (k->out[0].numel) cn__each_matrix(k, cn__matrices_of(&k->in[0]).count, bytes_of(k), fn);
}

static void cpu_solve(const cn_kernel *k) { run(k, one_solve); }
static void cpu_inv(const cn_kernel *k) { run(k, one_inv); }
static void cpu_det(const cn_kernel *k) { run(k, one_det); }
static void cpu_slogdet(const cn_kernel *k) { run(k, one_slogdet); }
static void cpu_cofactor(const cn_kernel *k) { run(k, one_cofactor); }

/* ---- the GPU ---- */

static bool launch(cn_gpu_call *c, const char *kernel, int64_t each, int64_t groups)
{
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_lu,
                                           .with = cn__wgsl_linalg,
                                           .kernel = kernel,
                                           .each = each,
                                           .groups = groups,
                                           .size = CN__MATRIX_LANES });
}

/* The factors, then what the operator makes of them: an invocation for each column, or for each matrix. Parameters:
   rows, where pivots begin, where right sides begin, columns of right sides, matrices. */
static bool gpu(cn_gpu_call *c)
{
    const cn__matrices a = cn__matrices_of(&c->in[0]);
    const int64_t n = a.rows, right = right_of(c->op, c->in), words = a.count * n * n;
    if (!c->out[0].numel) return true;
    const int64_t parameters[] = { n, words, words + a.count * n, right, a.count };
    for (int i = 0; i < 5; i++) cn_gpu_param(c, parameters[i]);
    cn_gpu_scratch(c, words + a.count * n * (1 + right) + 1);
    if (n && !launch(c, "factor", 0, a.count)) return false;
    if (c->op == &cn__op_linalg_solve) return launch(c, "solve", a.count * right, 0);
    if (c->op == &cn__op_linalg_inv) return launch(c, "inverse", a.count * right, 0);
    if (c->op == &cn__op_linalg_det) return launch(c, "det", a.count, 0);
    if (c->op == &cn__op_linalg_slogdet) return launch(c, "slogdet", a.count, 0);
    return launch(c, "mend", a.count, 0) && launch(c, "cofactor", a.count * right, 0);
}

/* ---- gradients ---- */

/* dB = A⁻ᵀ g; dA = -dB Xᵀ */
static void grad_solve(cn_grad_call *c)
{
    cn_tensor *db = cn_linalg_solve(cn__mT(c->in[0]), c->out_grad[0], true);
    if (c->needs[1]) c->in_grad[1] = db;
    if (c->needs[0]) c->in_grad[0] = cn_neg(cn_matmul(db, cn__mT(c->out[0])));
}

/* -A⁻ᵀ g A⁻ᵀ */
static void grad_inv(cn_grad_call *c)
{
    cn_tensor *t = cn__mT(c->out[0]);
    c->in_grad[0] = cn_neg(cn_matmul(cn_matmul(t, c->out_grad[0]), t));
}

static cn_tensor *as_matrices(cn_tensor *v) { return cn_unsqueeze(cn_unsqueeze(v, -1), -1); }

static void grad_det(cn_grad_call *c)
{
    c->in_grad[0] = cn_mul(as_matrices(c->out_grad[0]), cn_apply(&cn__op_cofactor, c->in, 1, NULL, NULL));
}

/* Of C = det(A)·A⁻ᵀ: (<g, C> C - C gᵀ C) / det(A) */
static void grad_cofactor(cn_grad_call *c)
{
    cn_tensor *y = c->out[0], *g = c->out_grad[0];
    cn_tensor *along = cn_mul(y, cn_sum(cn_mul(g, y), CN_DIMS(-2, -1), true));
    cn_tensor *across = cn_matmul(cn_matmul(y, cn__mT(g)), y);
    c->in_grad[0] = cn_div(cn_sub(along, across), as_matrices(cn_linalg_det(c->in[0])));
}

/* The sign does not change smoothly; the logarithm: g A⁻ᵀ. */
static void grad_slogdet(cn_grad_call *c)
{
    if (c->out_grad[1]) c->in_grad[0] = cn_mul(as_matrices(c->out_grad[1]), cn__mT(cn_linalg_inv(c->in[0])));
    else c->in_grad[0] = cn_zeros_like(c->in[0]);
}

/* ---- records ---- */

#define LU_KERNELS(name) .scratch = scratch, .cpu = cpu_##name, .gpu = gpu

const cn_op cn__op_linalg_solve = {
    .call = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    .name = "linalg_solve",
    .doc = "z with x·z = y, or z·x = y, for square matrices x.",
    .kind = CN_BLOCK,
    .n_in = 2,
    .n_out = 1,
    .checks_index = true,
    .fault = "linalg_solve: matrix {index} of the batch is singular (pivot {size} is 0)",
    .infer = infer_solve,
    .grad = grad_solve,
    LU_KERNELS(solve),
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3), CN_S(3, 2)) }, { CN_IN(CN_DISTINCT(2, 4, 4), CN_S(2, 4, 1)) },
             { CN_IN(CN_DISTINCT(1, 1), CN_S(1, 3)) }, { CN_IN(CN_DISTINCT(2, 0, 0), CN_S(2, 0, 3)) },
             { CN_IN(CN_DISTINCT(0, 3, 3), CN_S(0, 3, 3)) }, { CN_IN(CN_POSITIVE(30, 5, 5), CN_S(30, 5, 3)) }),
};

const cn_op cn__op_linalg_inv = {
    .call = "linalg_inv(Tensor A) -> Tensor",
    .name = "linalg_inv",
    .doc = "The inverse of square matrices.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .checks_index = true,
    .fault = "linalg_inv: matrix {index} of the batch is singular (pivot {size} is 0)",
    .infer = infer_same,
    .grad = grad_inv,
    LU_KERNELS(inv),
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)) }, { CN_IN(CN_DISTINCT(2, 4, 4)) }, { CN_IN(CN_DISTINCT(1, 1)) },
             { CN_IN(CN_DISTINCT(2, 0, 0)) }, { CN_IN(CN_DISTINCT(0, 3, 3)) }, { CN_IN(CN_POSITIVE(2, 21, 21)) }),
};

#define SQUARES                                                                                           \
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)) }, { CN_IN(CN_DISTINCT(2, 4, 4)) }, { CN_IN(CN_DISTINCT(1, 1)) }, \
             { CN_IN(CN_DISTINCT(2, 0, 0)) }, { CN_IN(CN_DISTINCT(0, 3, 3)) }, { CN_IN(CN_DISTINCT(40, 2, 2)) })

const cn_op cn__op_linalg_det = {
    .call = "linalg_det(Tensor A) -> Tensor",
    .name = "linalg_det",
    .doc = "The determinant of square matrices.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .infer = infer_numbers,
    .grad = grad_det,
    LU_KERNELS(det),
    .onnx = "Det",
    SQUARES,
};

const cn_op cn__op_cofactor = {
    .call = "_cofactor(Tensor A) -> Tensor",
    .name = "cofactor",
    .doc = "The cofactors of square matrices, det(x)·x⁻ᵀ, also of singular ones: the gradient of det.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .infer = infer_same,
    .grad = grad_cofactor,
    LU_KERNELS(cofactor),
    SQUARES,
};

const cn_op cn__op_linalg_slogdet = {
    .call = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .name = "linalg_slogdet",
    .doc = "The sign of the determinant, and the logarithm of its magnitude.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 2,
    .infer = infer_numbers,
    .grad = grad_slogdet,
    LU_KERNELS(slogdet),
    SQUARES,
};

/* ---- public functions ---- */

static cn_tensor *solve(cn_tensor *A, cn_tensor *B, bool left)
{
    /* as in PyTorch */
    const bool vector = cn__layout(B)->ndim == 1 || cn__is_right_vector(cn__layout(A), cn__layout(B));
    cn_tensor *in[2] = { left ? A : cn__mT(A), vector ? cn_unsqueeze(B, -1) : left ? B : cn__mT(B) };
    cn_tensor *a = cn__with_batch(in[0], in[1]);
    in[1] = cn__with_batch(in[1], in[0]);
    in[0] = a;
    cn_tensor *x = cn_apply(&cn__op_linalg_solve, in, 2, NULL, NULL);
    return vector ? cn_squeeze(x, CN_DIMS(-1)) : left ? x : cn__mT(x);
}

cn_tensor *cn_linalg_solve(cn_tensor *A, cn_tensor *B, bool left)
{
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx || !cn__of_context(call.ctx, B, __func__, "B") || !cn__is_square("linalg_solve", A)) return NULL;
    if (cn__layout(B)->ndim == 0) {
        cn__fail(call.ctx, CN_BAD_SHAPE, "linalg_solve: B must have an axis at least, got a single number");
        return NULL;
    }
    cn_scope s = cn_scope_begin(call.ctx);
    return cn_scope_return(call.ctx, s, solve(A, B, left));
}

cn_tensor *cn_linalg_inv(cn_tensor *A) { return cn__alive(A) ? cn_apply(&cn__op_linalg_inv, &A, 1, NULL, NULL) : NULL; }

cn_tensor *cn_linalg_det(cn_tensor *A) { return cn__alive(A) ? cn_apply(&cn__op_linalg_det, &A, 1, NULL, NULL) : NULL; }

cn_tensor *cn_linalg_slogdet(cn_tensor *A, cn_tensor **logabsdet)
{
    if (logabsdet) *logabsdet = NULL;
    if (!cn__alive(A)) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(&cn__op_linalg_slogdet, &A, 1, NULL, NULL, out)) return NULL;
    if (logabsdet) *logabsdet = out[1];
    return out[0];
}

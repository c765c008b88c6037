/* linalg_eigh: eigenvalues, ascending, and eigenvectors of symmetric matrices; linalg_eigvalsh. */
#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

static bool reads_upper(const void *attrs) { return ((const cn__eigh_attrs *)attrs)->uplo == CN_UPLO_U; }

static bool infer(cn_infer *i)
{
    if (!cn__infer_square(i) || !cn__lapack_ready(i)) return false;
    i->out[0] = i->out[1] = *i->in[0];
    i->out[0].layout.ndim--;
    return true;
}

/* ---- the CPU ---- */

typedef struct sizes {
    int64_t n, work, whole; /* workspaces of syevd: elements, ints */
} sizes;

static sizes sizes_of(const cn_array *a)
{
    const int64_t n = cn__matrices_of(a).rows;
    return (sizes){ n, 1 + 6 * n + 2 * n * n, 3 + 5 * n };
}

/* A row-major matrix is its transpose to LAPACK, so the triangles change names. Eigenvectors come as columns, which are
   rows in memory. */
static void one(const cn__matrix_job *j, int64_t matrix)
{
    const sizes z = sizes_of(&j->k->in[0]);
    const int n = (int)z.n, lwork = (int)z.work, liwork = (int)z.whole;
    const void *a = cn__matrix_at(j, &j->k->in[0], z.n * z.n, matrix);
    char *v = j->own, *work = v + (size_t)(z.n * z.n) * j->size;
    int info = 1, *whole = (int *)(void *)(work + (size_t)z.work * j->size);
    memcpy(v, a, (size_t)(z.n * z.n) * j->size);
    if (cn__all_finite(j, a, z.n * z.n))
        j->lapack->syevd("V", reads_upper(j->k->attrs) ? "L" : "U", &n, v, &n,
                         cn__matrix_at(j, &j->k->out[0], z.n, matrix), work, &lwork, whole, &liwork, &info, 1, 1);
    if (info) {
        cn_kernel_fault(j->k, matrix, info);
        return;
    }
    for (int64_t r = 0; r < z.n; r++) {
        char *row = v + (size_t)(r * z.n) * j->size;
        const double sign = cn__vector_sign(j, row, z.n, 1);
        for (int64_t i = 0; i < z.n && sign < 0; i++) cn__set(j, row, i, -cn__get(j, row, i));
    }
    cn__transpose_matrix(j, cn__matrix_at(j, &j->k->out[1], z.n * z.n, matrix), v, z.n, z.n);
}

static size_t bytes_of(const cn_kernel *k)
{
    const sizes z = sizes_of(&k->in[0]);
    return (size_t)(z.n * z.n + z.work) * cn_dtype_size(k->in[0].dtype) + (size_t)z.whole * sizeof(int);
}

static size_t scratch(const cn_kernel *k, int threads)
{
    return cn__each_matrix_scratch(cn__matrices_of(&k->in[0]).count, bytes_of(k), threads);
}

static void cpu(const cn_kernel *k)
{
    if (k->in[0].numel) cn__each_matrix(k, cn__matrices_of(&k->in[0]).count, bytes_of(k), one);
}

/* ---- the GPU ---- */

/* Scratch of each matrix: A, V, and the rotations of a round. */
static bool gpu(cn_gpu_call *c)
{
    const cn__matrices a = cn__matrices_of(&c->in[0]);
    const int64_t words = 2 * a.rows * a.rows + a.rows + 1;
    if (!c->in[0].numel) return true;
    cn_gpu_param(c, a.rows);
    cn_gpu_param(c, words);
    cn_gpu_scratch(c, a.count * words);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_eigh,
                                           .with = cn__wgsl_linalg,
                                           .holes = CN_GPU_HOLES(CN_GPU_FLAG("upper", reads_upper(c->attrs))),
                                           .groups = a.count,
                                           .size = CN__MATRIX_LANES });
}

/* V (diag(dL) + skew(Vᵀ·dV) / 2E) Vᵀ, where E[i, j] = L[j] - L[i], with 1 on its diagonal: a symmetric matrix. What a
   symmetric dA cannot change, the symmetric part of Vᵀ·dV, is left out. */
static void grad(cn_grad_call *c)
{
    cn_tensor *l = c->out[0], *v = c->out[1], *dl = c->out_grad[0], *dv = c->out_grad[1];
    const int64_t n = cn_size(v, -1);
    cn_tensor *inner = dl ? cn__as_diagonal(dl, n) : NULL;
    if (dv) {
        cn_tensor *e = cn_add(cn_sub(cn_unsqueeze(l, -2), cn_unsqueeze(l, -1)), cn__eye_like(v, n));
        cn_tensor *x = cn_matmul(cn__mT(v), dv), *part = cn_div(cn_mul_s(cn_sub(x, cn__mT(x)), 0.5), e);
        inner = inner ? cn_add(inner, part) : part;
    }
    c->in_grad[0] = cn_matmul(cn_matmul(v, inner), cn__mT(v));
}

/* Finite differences change one of two equal elements: tests/test_linalg.c checks gradients of symmetric matrices. */
#define CASE(which, ...)                                                                      \
    {                                                                                         \
        CN_IN(CN_DISTINCT(__VA_ARGS__)), .attrs = &(const cn__eigh_attrs){ CN_UPLO_##which }, \
                                         .no_gradient_check = true                            \
    }
#define CASES \
    CN_CASES(CASE(L, 3, 3), CASE(U, 2, 4, 4), CASE(L, 1, 1), CASE(L, 2, 0, 0), CASE(U, 0, 3, 3), CASE(L, 2, 9, 9))

const cn_op cn__op_linalg_eigh = {
    .call = "linalg_eigh(Tensor A, L|U UPLO=L) -> (Tensor eigenvalues, Tensor eigenvectors)",
    .name = "linalg_eigh",
    .doc = "The eigenvalues of symmetric matrices, ascending, and the eigenvectors, as columns.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 2,
    .attr_size = sizeof(cn__eigh_attrs),
    .checks_index = true,
    .fault = "linalg_eigh: matrix {index} of the batch has no result: it is not finite, or did not converge",
    .infer = infer,
    .grad = grad,
    .scratch = scratch,
    .cpu = cpu,
    .gpu = gpu,
    CASES,
};

static cn_tensor *compose_eigvalsh(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn_linalg_eigh(in[0], (cn_uplo)((const cn__eigh_attrs *)attrs)->uplo, NULL);
}

const cn_op cn__op_linalg_eigvalsh = {
    .call = "linalg_eigvalsh(Tensor A, L|U UPLO=L) -> Tensor",
    .name = "linalg_eigvalsh",
    .doc = "The eigenvalues of symmetric matrices, ascending.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__eigh_attrs),
    .compose = compose_eigvalsh,
    CASES,
};

static bool check_uplo(const char *who, const cn_tensor *x, cn_uplo uplo)
{
    return uplo == CN_UPLO_L || uplo == CN_UPLO_U ||
           cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: UPLO must be CN_UPLO_L or CN_UPLO_U, got %d", who, (int)uplo);
}

cn_tensor *cn_linalg_eigh(cn_tensor *A, cn_uplo UPLO, cn_tensor **eigenvectors)
{
    if (eigenvectors) *eigenvectors = NULL;
    if (!cn__alive(A) || !check_uplo("linalg_eigh", A, UPLO)) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(&cn__op_linalg_eigh, &A, 1, &(cn__eigh_attrs){ UPLO }, NULL, out)) return NULL;
    if (eigenvectors) *eigenvectors = out[1];
    return out[0];
}

cn_tensor *cn_linalg_eigvalsh(cn_tensor *A, cn_uplo UPLO)
{
    if (!cn__alive(A) || !check_uplo("linalg_eigvalsh", A, UPLO)) return NULL;
    return cn_apply(&cn__op_linalg_eigvalsh, &A, 1, &(cn__eigh_attrs){ UPLO }, NULL);
}

/* linalg_cholesky: L·Lᵀ = A, or Uᵀ·U = A. */
#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

static bool infer(cn_infer *i)
{
    if (!cn__infer_square(i) || !cn__lapack_ready(i)) return false;
    i->out[0] = *i->in[0];
    return true;
}

/* A row-major matrix is its transpose to LAPACK, so the triangles change names. */
static void one(const cn__matrix_job *j, int64_t matrix)
{
    const bool upper = ((const cn__cholesky_attrs *)j->k->attrs)->upper;
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    char *out = cn__matrix_at(j, &j->k->out[0], n * n, matrix);
    memcpy(out, cn__matrix_at(j, &j->k->in[0], n * n, matrix), (size_t)(n * n) * j->size);
    const int size = (int)n;
    int info = 0;
    j->lapack->potrf(upper ? "L" : "U", &size, out, &size, &info, 1);
    if (info) cn_kernel_fault(j->k, matrix, info);
    for (int64_t r = 0; r < n; r++) {
        const int64_t from = upper ? 0 : r + 1, to = upper ? r : n;
        memset(out + (size_t)(r * n + from) * j->size, 0, (size_t)(to - from) * j->size);
    }
}

static void cpu(const cn_kernel *k)
{
    if (k->in[0].numel) cn__each_matrix(k, cn__matrices_of(&k->in[0]).count, 0, one);
}

static bool gpu(cn_gpu_call *c)
{
    const cn__matrices a = cn__matrices_of(&c->in[0]);
    if (!c->in[0].numel) return true;
    cn_gpu_param(c, a.rows);
    cn_gpu_scratch(c, c->in[0].numel);
    return cn_gpu_run(c, &(cn_gpu_launch){
                             .shader = cn__wgsl_cholesky,
                             .with = cn__wgsl_linalg,
                             .holes = CN_GPU_HOLES(CN_GPU_FLAG("upper", ((const cn__cholesky_attrs *)c->attrs)->upper)),
                             .groups = a.count,
                             .size = CN__MATRIX_LANES,
                         });
}

/* Of L: ½ L⁻ᵀ (P + Pᵀ without its diagonal) L⁻¹, where P is the lower triangle of Lᵀ g. */
static void grad(cn_grad_call *c)
{
    const bool upper = ((const cn__cholesky_attrs *)c->attrs)->upper;
    cn_tensor *g = upper ? cn__mT(c->out_grad[0]) : c->out_grad[0], *l = upper ? cn__mT(c->out[0]) : c->out[0];
    cn_tensor *p = cn_matmul(cn__mT(l), g);
    p = cn_mul_s(cn_add(cn_tril(p, 0), cn__mT(cn_tril(p, -1))), 0.5);
    p = cn_linalg_solve_triangular(cn__mT(l), p, true, true, false);
    c->in_grad[0] = cn_linalg_solve_triangular(l, p, false, false, false);
}

/* Finite differences change one of two equal elements: tests/test_linalg.c checks gradients of symmetric matrices. */
#define CASE(is_upper, ...)                                                                                          \
    {                                                                                                                \
        CN_IN(CN_POSITIVE(__VA_ARGS__)), .attrs = &(const cn__cholesky_attrs){ is_upper }, .no_gradient_check = true \
    }

const cn_op cn__op_linalg_cholesky = {
    .call = "linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor",
    .name = "linalg_cholesky",
    .doc = "The lower triangular L with L·Lᵀ = x, or the upper triangular U with Uᵀ·U = x; x is positive definite.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__cholesky_attrs),
    .checks_index = true,
    .fault = "linalg_cholesky: matrix {index} of the batch is not positive definite (leading minor {size})",
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES(CASE(0, 3, 3), CASE(1, 2, 4, 4), CASE(0, 1, 1), CASE(1, 2, 0, 0), CASE(0, 0, 2, 2), CASE(0, 2, 17, 17)),
};

cn_tensor *cn_linalg_cholesky(cn_tensor *A, bool upper)
{
    if (!cn__alive(A)) return NULL;
    return cn_apply(&cn__op_linalg_cholesky, &A, 1, &(cn__cholesky_attrs){ upper }, NULL);
}

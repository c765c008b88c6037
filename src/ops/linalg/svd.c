/* svd.c: the singular value decomposition U·diag(S)·Vh = A: thin_svd, an operator; linalg_svd, which completes U or
   Vh to a basis of the whole space; linalg_svdvals. */
#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

static bool infer(cn_infer *i)
{
    if (!cn__infer_matrix(i) || !cn__lapack_ready(i)) return false;
    const int ndim = i->in[0]->layout.ndim;
    const cn__matrices a = cn__matrices_in(&i->in[0]->layout);
    const int64_t k = cn__smaller(a.rows, a.cols);
    i->out[0] = i->out[1] = i->out[2] = *i->in[0];
    i->out[0].layout.shape[ndim - 1] = i->out[2].layout.shape[ndim - 2] = k;
    i->out[1].layout.ndim--;
    i->out[1].layout.shape[ndim - 2] = k;
    return true;
}

/* ---- the CPU ---- */

typedef struct sizes {
    int64_t m, n, k, work, whole; /* workspaces of gesdd: elements, ints */
} sizes;

static sizes sizes_of(const cn_array *in)
{
    const cn__matrices a = cn__matrices_of(in);
    const int64_t k = cn__smaller(a.rows, a.cols);
    return (sizes){ a.rows, a.cols, k, 4 * k * k + 10 * k + 64 * (a.rows + a.cols), 8 * k };
}

/* Multiplies column c of U and row c of Vh by -1. */
static void turn(const cn__matrix_job *j, const sizes *z, void *u, void *vh, int64_t c)
{
    for (int64_t i = 0; i < z->m; i++) cn__set(j, u, i * z->k + c, -cn__get(j, u, i * z->k + c));
    for (int64_t i = 0; i < z->n; i++) cn__set(j, vh, c * z->n + i, -cn__get(j, vh, c * z->n + i));
}

/* To LAPACK, row-major matrices are transposed: Aᵀ = Vhᵀ·diag(S)·Uᵀ, so U and Vh change places. */
static void one(const cn__matrix_job *j, int64_t matrix)
{
    const sizes z = sizes_of(&j->k->in[0]);
    const int m = (int)z.m, n = (int)z.n, k = (int)z.k, lwork = (int)z.work;
    const void *a = cn__matrix_at(j, &j->k->in[0], z.m * z.n, matrix);
    void *u = cn__matrix_at(j, &j->k->out[0], z.m * z.k, matrix);
    void *vh = cn__matrix_at(j, &j->k->out[2], z.k * z.n, matrix);
    char *copy = j->own, *work = copy + (size_t)(z.m * z.n) * j->size;
    int info = 1, *whole = (int *)(void *)(work + (size_t)z.work * j->size);
    memcpy(copy, a, (size_t)(z.m * z.n) * j->size);
    if (cn__all_finite(j, a, z.m * z.n))
        j->lapack->gesdd("S", &n, &m, copy, &n, cn__matrix_at(j, &j->k->out[1], z.k, matrix), vh, &n, u, &k, work,
                         &lwork, whole, &info, 1);
    if (info) {
        cn_kernel_fault(j->k, matrix, info);
        return;
    }
    for (int64_t c = 0; c < z.k; c++)
        if (cn__vector_sign(j, (char *)u + (size_t)c * j->size, z.m, z.k) < 0) turn(j, &z, u, vh, c);
}

static size_t bytes_of(const cn_kernel *k)
{
    const sizes z = sizes_of(&k->in[0]);
    return (size_t)(z.m * z.n + z.work) * cn_dtype_size(k->in[0].dtype) + (size_t)z.whole * sizeof(int);
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

/* Works on a tall W, which is A or Aᵀ. Scratch of each matrix: W, V, singular values, their order. */
static bool gpu(cn_gpu_call *c)
{
    const cn__matrices a = cn__matrices_of(&c->in[0]);
    const int64_t tall = cn__larger(a.rows, a.cols), k = cn__smaller(a.rows, a.cols);
    if (!c->in[0].numel) return true;
    const int64_t parameters[] = { tall, k, tall * k + k * k + 2 * k };
    for (int i = 0; i < 3; i++) cn_gpu_param(c, parameters[i]);
    cn_gpu_scratch(c, a.count * parameters[2]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_svd,
                                           .with = cn__wgsl_linalg,
                                           .holes = CN_GPU_HOLES(CN_GPU_FLAG("wide", a.rows < a.cols)),
                                           .groups = a.count,
                                           .size = CN__MATRIX_LANES });
}

/* ---- the gradient ---- */

static cn_tensor *skew(cn_tensor *x) { return cn_sub(x, cn__mT(x)); }

static cn_tensor *sum_of(cn_tensor *a, cn_tensor *b) { return a && b ? cn_add(a, b) : a ? a : b; }

/* U·M·Vh, where M = diag(dS) + (skew(Uᵀ·dU)/E)·diag(S) + diag(S)·(skew(Vᵀ·dV)/E) and E[i, j] = S[j]² - S[i]², with 1 on
   its diagonal; and what lies outside of the spaces that U and V span: (I - U·Uᵀ)·dU·S⁻¹·Vh + U·S⁻¹·dVh·(I - V·Vᵀ). */
static void grad(cn_grad_call *c)
{
    cn_tensor *u = c->out[0], *s = c->out[1], *vh = c->out[2];
    cn_tensor *du = c->out_grad[0], *ds = c->out_grad[1], *dvh = c->out_grad[2];
    const int64_t m = cn_size(u, -2), n = cn_size(vh, -1), k = cn_size(s, -1);
    cn_tensor *row = cn_unsqueeze(s, -2), *column = cn_unsqueeze(s, -1);
    cn_tensor *inner = ds ? cn__as_diagonal(ds, k) : NULL, *e = NULL, *da = NULL;
    if (du || dvh) e = cn_add(cn_sub(cn_square(row), cn_square(column)), cn__eye_like(s, k));
    if (du) inner = sum_of(inner, cn_mul(cn_div(skew(cn_matmul(cn__mT(u), du)), e), row));
    if (dvh) inner = sum_of(inner, cn_mul(column, cn_div(skew(cn_matmul(vh, cn__mT(dvh))), e)));
    da = cn_matmul(cn_matmul(u, inner), vh);
    if (du && m > k) {
        cn_tensor *x = cn_div(du, row);
        da = cn_add(da, cn_matmul(cn_sub(x, cn_matmul(u, cn_matmul(cn__mT(u), x))), vh));
    }
    if (dvh && n > k) {
        cn_tensor *x = cn_div(dvh, column);
        da = cn_add(da, cn_matmul(u, cn_sub(x, cn_matmul(cn_matmul(x, cn__mT(vh)), vh))));
    }
    c->in_grad[0] = da;
}

#define CASES                                                                                                \
    CN_CASES({ CN_IN(CN_DISTINCT(3, 3)) }, { CN_IN(CN_DISTINCT(2, 4, 3)) }, { CN_IN(CN_DISTINCT(2, 2, 5)) }, \
             { CN_IN(CN_DISTINCT(1, 1)) }, { CN_IN(CN_DISTINCT(2, 0, 3)) }, { CN_IN(CN_DISTINCT(0, 3, 3)) }, \
             { CN_IN(CN_DISTINCT(2, 17, 6)) })

const cn_op cn__op_thin_svd = {
    .call = "_thin_svd(Tensor A) -> (Tensor U, Tensor S, Tensor Vh)",
    .name = "thin_svd",
    .doc = "U (m, k), S (k) descending and Vh (k, n) with U·diag(S)·Vh = x (m, n), k the smaller of m and n.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 3,
    .checks_index = true,
    .fault = "linalg_svd: matrix {index} of the batch has no result: it is not finite, or did not converge",
    .infer = infer,
    .grad = grad,
    .scratch = scratch,
    .cpu = cpu,
    .gpu = gpu,
    CASES,
};

static cn_tensor *compose_svdvals(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs, (void)args;
    cn_tensor *out[CN_MAX_OUT];
    return cn_apply_n(&cn__op_thin_svd, in, 1, NULL, NULL, out) ? out[1] : NULL;
}

const cn_op cn__op_linalg_svdvals = {
    .call = "linalg_svdvals(Tensor A) -> Tensor",
    .name = "linalg_svdvals",
    .doc = "The singular values, descending.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .compose = compose_svdvals,
    CASES,
};

cn_tensor *cn_linalg_svdvals(cn_tensor *A)
{
    CN__CALL call = cn__call_tensor(A);
    return call.ctx ? cn_apply(&cn__op_linalg_svdvals, &A, 1, NULL, NULL) : NULL;
}

/* ---- linalg_svd ---- */

/* The orthonormal columns of u (m, k) and m - k more, which depend on these alone. They have no gradient. */
static cn_tensor *completed(cn_tensor *u)
{
    if (!u) return NULL;
    const int64_t m = cn_size(u, -2), k = cn_size(u, -1);
    if (m == k) return u;
    cn_tensor *q = cn_linalg_qr(cn_detach(u), CN_QR_COMPLETE, NULL);
    return cn_cat((cn_tensor *[]){ u, cn_slice(q, -1, k, m, 1) }, 2, -1);
}

cn_tensor *cn_linalg_svd(cn_tensor *A, bool full_matrices, cn_tensor **S, cn_tensor **Vh)
{
    if (S) *S = NULL;
    if (Vh) *Vh = NULL;
    CN__CALL call = cn__enter_tensor(A, "linalg_svd");
    cn_tensor *out[CN_MAX_OUT];
    if (!call.ctx || !cn_apply_n(&cn__op_thin_svd, &A, 1, NULL, NULL, out)) return NULL;
    cn_tensor *u = full_matrices ? completed(out[0]) : out[0];
    cn_tensor *vh = full_matrices && Vh ? cn__mT(completed(cn__mT(out[2]))) : out[2];
    if (!u || !vh) return NULL;
    if (S) *S = out[1];
    if (Vh) *Vh = vh;
    return u;
}

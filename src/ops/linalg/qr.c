/* linalg_qr: Q·R = A, with LAPACK's reflections H(1)·H(2)·… = Q and their signs on every device. */
#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

static bool is_complete(const void *attrs) { return ((const cn__qr_attrs *)attrs)->mode == CN_QR_COMPLETE; }

/* The columns of Q (m, q), which are the rows of R (q, n). */
static int64_t columns_of_q(const void *attrs, cn__matrices a)
{
    return is_complete(attrs) ? a.rows : cn__smaller(a.rows, a.cols);
}

static bool infer(cn_infer *i)
{
    if (!cn__infer_matrix(i) || !cn__lapack_ready(i)) return false;
    const int64_t mode = ((const cn__qr_attrs *)i->attrs)->mode;
    if (mode != CN_QR_REDUCED && mode != CN_QR_COMPLETE)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "mode must be reduced or complete, got %lld", (long long)mode);
    const int ndim = i->in[0]->layout.ndim;
    const int64_t q = columns_of_q(i->attrs, cn__matrices_in(&i->in[0]->layout));
    i->out[0] = i->out[1] = *i->in[0];
    i->out[0].layout.shape[ndim - 1] = i->out[1].layout.shape[ndim - 2] = q;
    return true;
}

/* ---- the CPU ---- */

typedef struct sizes {
    int64_t m, n, k, q, width, work; /* width: columns of the larger of A and Q */
} sizes;

static sizes sizes_of(const void *attrs, const cn_array *in)
{
    const cn__matrices a = cn__matrices_of(in);
    sizes z = { a.rows, a.cols, cn__smaller(a.rows, a.cols), columns_of_q(attrs, a), 0, 0 };
    z.width = cn__larger(z.n, z.q);
    z.work = 64 * cn__larger(z.width, 1);
    return z;
}

static void store_r(const cn__matrix_job *j, const sizes *z, void *r)
{
    memset(r, 0, (size_t)(z->q * z->n) * j->size);
    for (int64_t row = 0; row < z->k; row++)
        for (int64_t col = row; col < z->n; col++)
            cn__set(j, r, row * z->n + col, cn__get(j, j->own, col * z->m + row));
}

static void one(const cn__matrix_job *j, int64_t matrix)
{
    const sizes z = sizes_of(j->k->attrs, &j->k->in[0]);
    const int m = (int)z.m, n = (int)z.n, k = (int)z.k, q = (int)z.q, lda = m > 0 ? m : 1, lwork = (int)z.work;
    char *tau = (char *)j->own + (size_t)(z.m * z.width) * j->size, *work = tau + (size_t)z.k * j->size;
    int info;
    cn__transpose_matrix(j, j->own, cn__matrix_at(j, &j->k->in[0], z.m * z.n, matrix), z.m, z.n);
    j->lapack->geqrf(&m, &n, j->own, &lda, tau, work, &lwork, &info);
    store_r(j, &z, cn__matrix_at(j, &j->k->out[1], z.q * z.n, matrix));
    j->lapack->orgqr(&m, &q, &k, j->own, &lda, tau, work, &lwork, &info);
    cn__transpose_matrix(j, cn__matrix_at(j, &j->k->out[0], z.m * z.q, matrix), j->own, z.q, z.m);
}

static size_t bytes_of(const cn_kernel *k)
{
    const sizes z = sizes_of(k->attrs, &k->in[0]);
    return (size_t)(z.m * z.width + z.k + z.work) * cn_dtype_size(k->in[0].dtype);
}

static size_t scratch(const cn_kernel *k, int threads)
{
    return cn__each_matrix_scratch(cn__matrices_of(&k->in[0]).count, bytes_of(k), threads);
}

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel || k->out[1].numel) cn__each_matrix(k, cn__matrices_of(&k->in[0]).count, bytes_of(k), one);
}

/* ---- the GPU ---- */

/* Scratch of each matrix: A, then Q, then the factors tau. */
static bool gpu(cn_gpu_call *c)
{
    const int64_t count = cn__matrices_of(&c->in[0]).count;
    const sizes z = sizes_of(c->attrs, &c->in[0]);
    if (!c->out[0].numel && !c->out[1].numel) return true;
    const int64_t parameters[] = { z.m, z.n, z.q, z.m * z.n + z.m * z.q + z.k };
    for (int i = 0; i < 4; i++) cn_gpu_param(c, parameters[i]);
    cn_gpu_scratch(c, count * parameters[3] + 1);
    return cn_gpu_run(
        c,
        &(cn_gpu_launch){ .shader = cn__wgsl_qr, .with = cn__wgsl_linalg, .groups = count, .size = CN__MATRIX_LANES });
}

/* ---- the gradient ---- */

static cn_tensor *columns(cn_tensor *x, int64_t from, int64_t to) { return cn_slice(x, -1, from, to, 1); }

/* For a square upper triangular R: (dQ + Q·S) R⁻ᵀ, where S has the upper triangle of M = dR·Rᵀ - Qᵀ·dQ on both sides
   of its diagonal. dq and dr may be NULL. */
static cn_tensor *square_gradient(cn_tensor *q, cn_tensor *r, cn_tensor *dq, cn_tensor *dr)
{
    cn_tensor *m = dr ? cn_matmul(dr, cn__mT(r)) : NULL, *along = dq ? cn_matmul(cn__mT(q), dq) : NULL;
    m = !along ? m : m ? cn_sub(m, along) : cn_neg(along);
    cn_tensor *both = cn_matmul(q, cn_add(cn_triu(m, 0), cn__mT(cn_triu(m, 1))));
    return cn_linalg_solve_triangular(cn__mT(r), dq ? cn_add(dq, both) : both, false, false, false);
}

/* A wide A is [X Y] with X = Q·U, Y = Q·V, R = [U V]: dY = Q·dV, and Q gets Y·dVᵀ from V = Qᵀ·Y. */
static cn_tensor *wide_gradient(cn_tensor *a, cn_tensor *q, cn_tensor *r, cn_tensor *dq, cn_tensor *dr)
{
    const int64_t m = cn_size(a, -2), n = cn_size(a, -1);
    cn_tensor *u = columns(r, 0, m), *du = NULL, *dy;
    if (dr) {
        cn_tensor *dv = columns(dr, m, n), *through = cn_matmul(columns(a, m, n), cn__mT(dv));
        du = columns(dr, 0, m);
        dq = dq ? cn_add(dq, through) : through;
        dy = cn_matmul(q, dv);
    } else {
        dy = cn_zeros_like(columns(a, m, n));
    }
    return cn_cat((cn_tensor *[]){ square_gradient(q, u, dq, du), dy }, 2, -1);
}

static void grad(cn_grad_call *c)
{
    cn_tensor *a = c->in[0], *dq = c->out_grad[0], *dr = c->out_grad[1];
    const int64_t m = cn_size(a, -2), n = cn_size(a, -1);
    if (is_complete(c->attrs) && m > n)
        cn__fail(c->ctx, CN_NO_GRADIENT,
                 "linalg_qr has no gradient: in mode complete A must not have more rows than "
                 "columns, got %lld and %lld",
                 (long long)m, (long long)n);
    else if (m < n) c->in_grad[0] = wide_gradient(a, c->out[0], c->out[1], dq, dr);
    else c->in_grad[0] = square_gradient(c->out[0], c->out[1], dq, dr);
}

#define MODE(name) \
    .attrs = &(const cn__qr_attrs) { CN_QR_##name }

const cn_op cn__op_linalg_qr = {
    .call = "linalg_qr(Tensor A, reduced|complete|r mode=reduced) -> (Tensor Q, Tensor R)",
    .name = "linalg_qr",
    .doc = "Q with orthonormal columns and upper triangular R, Q·R = x.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 2,
    .attr_size = sizeof(cn__qr_attrs),
    .infer = infer,
    .grad = grad,
    .scratch = scratch,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_DISTINCT(4, 3)), MODE(REDUCED) }, { CN_IN(CN_DISTINCT(2, 3, 5)), MODE(REDUCED) },
             { CN_IN(CN_DISTINCT(2, 3, 3)), MODE(COMPLETE) }, { CN_IN(CN_DISTINCT(2, 4)), MODE(COMPLETE) },
             { CN_IN(CN_DISTINCT(1, 1)), MODE(REDUCED) }, { CN_IN(CN_DISTINCT(2, 0, 3)), MODE(REDUCED) },
             { CN_IN(CN_DISTINCT(3, 0)), MODE(REDUCED) }, { CN_IN(CN_DISTINCT(2, 23, 9)), MODE(REDUCED) }),
};

cn_tensor *cn_linalg_qr(cn_tensor *A, cn_qr_mode mode, cn_tensor **R)
{
    if (R) *R = NULL;
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(&cn__op_linalg_qr, &A, 1, &(cn__qr_attrs){ mode == CN_QR_R ? CN_QR_REDUCED : mode }, NULL, out))
        return NULL;
    if (R) *R = out[1];
    return mode == CN_QR_R ? cn_zeros(call.ctx, cn__dtype(A), CN_DIMS(0)) : out[0];
}

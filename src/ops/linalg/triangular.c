/* linalg_solve_triangular: A·X = B for a triangular A. */
#include "gpu/shaders.h"
#include "ops/linalg/linalg.h"

static bool infer(cn_infer *i)
{
    if (!cn__infer_square(i) || !cn__infer_right_side(i) || !cn__lapack_ready(i)) return false;
    i->out[0] = *i->in[1];
    return true;
}

/* To LAPACK, row-major matrices are transposed: Xᵀ·Aᵀ = Bᵀ, and the triangles change names. */
static void one(const cn__matrix_job *j, int64_t matrix)
{
    const cn__triangular_attrs *a = j->k->attrs;
    const cn__matrices b = cn__matrices_of(&j->k->in[1]);
    const int rows = (int)b.rows, cols = (int)b.cols;
    void *x = cn__matrix_at(j, &j->k->out[0], b.rows * b.cols, matrix);
    memcpy(x, cn__matrix_at(j, &j->k->in[1], b.rows * b.cols, matrix), (size_t)(b.rows * b.cols) * j->size);
    const double one_f64 = 1;
    const float one_f32 = 1;
    j->lapack->trsm("R", a->upper ? "L" : "U", "N", a->unit ? "U" : "N", &cols, &rows,
                    j->is_f64 ? (const void *)&one_f64 : &one_f32,
                    cn__matrix_at(j, &j->k->in[0], b.rows * b.rows, matrix), &rows, x, &cols, 1, 1, 1, 1);
}

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel) cn__each_matrix(k, cn__matrices_of(&k->in[0]).count, 0, one);
}

/* An invocation for each column of B. */
static bool gpu(cn_gpu_call *c)
{
    const cn__triangular_attrs *a = c->attrs;
    const cn__matrices b = cn__matrices_of(&c->in[1]);
    if (!c->out[0].numel) return true;
    cn_gpu_param(c, b.rows);
    cn_gpu_param(c, b.cols);
    cn_gpu_scratch(c, c->out[0].numel);
    return cn_gpu_run(c, &(cn_gpu_launch){
                             .shader = cn__wgsl_triangular,
                             .with = cn__wgsl_linalg,
                             .holes = CN_GPU_HOLES(CN_GPU_FLAG("upper", a->upper), CN_GPU_FLAG("unit", a->unit)),
                             .each = b.count * b.cols,
                         });
}

/* dB = A⁻ᵀ g; dA = -dB Xᵀ, of which the triangle counts */
static void grad(cn_grad_call *c)
{
    const cn__triangular_attrs *a = c->attrs;
    cn_tensor *db = cn_linalg_solve_triangular(cn__mT(c->in[0]), c->out_grad[0], !a->upper, true, a->unit);
    if (c->needs[1]) c->in_grad[1] = db;
    if (!c->needs[0]) return;
    cn_tensor *da = cn_neg(cn_matmul(db, cn__mT(c->out[0])));
    c->in_grad[0] = a->upper ? cn_triu(da, a->unit ? 1 : 0) : cn_tril(da, a->unit ? -1 : 0);
}

#define UPPER(...) \
    .attrs = &(const cn__triangular_attrs) { __VA_ARGS__ }
#define TRIANGULAR(...) CN_RANGE(1, 2, __VA_ARGS__)

const cn_op cn__op_linalg_solve_triangular = {
    .call = "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
            "Tensor",
    .name = "linalg_solve_triangular",
    .doc = "z with x·z = y, or z·x = y, for a triangular x, of which only this triangle is read.",
    .kind = CN_BLOCK,
    .n_in = 2,
    .n_out = 1,
    .attr_size = sizeof(cn__triangular_attrs),
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(TRIANGULAR(3, 3), CN_S(3, 2)), UPPER(0, 0) },
             { CN_IN(TRIANGULAR(2, 4, 4), CN_S(2, 4, 3)), UPPER(1, 0) },
             { CN_IN(TRIANGULAR(2, 4, 4), CN_S(2, 4, 1)), UPPER(1, 1) },
             { CN_IN(TRIANGULAR(3, 3), CN_S(3, 3)), UPPER(0, 1) }, { CN_IN(TRIANGULAR(1, 1), CN_S(1, 5)), UPPER(0, 0) },
             { CN_IN(TRIANGULAR(2, 0, 0), CN_S(2, 0, 3)), UPPER(0, 0) },
             { CN_IN(TRIANGULAR(3, 3), CN_S(3, 0)), UPPER(1, 0) },
             { CN_IN(TRIANGULAR(40, 5, 5), CN_S(40, 5, 7)), UPPER(0, 0) }),
};

static bool check_right_side(cn_tensor *A, cn_tensor *B)
{
    return cn__is_square("linalg_solve_triangular", A) &&
           (cn__layout(B)->ndim >= 2 ||
            cn__fail(B->ctx, CN_BAD_SHAPE, "linalg_solve_triangular: B must have at least 2 axes, got %d",
                     cn__layout(B)->ndim));
}

/* X·A = B is Aᵀ·Xᵀ = Bᵀ. */
cn_tensor *cn_linalg_solve_triangular(cn_tensor *A, cn_tensor *B, bool upper, bool left, bool unitriangular)
{
    CN__CALL call = cn__call_tensor(A);
    if (!call.ctx || !cn__of_context(call.ctx, B, __func__, "B") || !check_right_side(A, B)) return NULL;
    cn_scope s = cn_scope_begin(A->ctx);
    cn_tensor *in[2] = { left ? A : cn__mT(A), left ? B : cn__mT(B) };
    cn_tensor *a = cn__with_batch(in[0], in[1]);
    in[1] = cn__with_batch(in[1], in[0]);
    in[0] = a;
    cn_tensor *x =
        cn_apply(&cn__op_linalg_solve_triangular, in, 2, &(cn__triangular_attrs){ upper == left, unitriangular }, NULL);
    return cn_scope_return(A->ctx, s, left ? x : cn__mT(x));
}

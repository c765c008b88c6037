/* linalg_matrix_exp: a polynomial of A / 2ˢ, then s squares. s makes the 1-norm small enough for the polynomial. */
#include <math.h>

#include "cpu/gemm.h"
#include "gpu/shaders.h"
#include "ops/kernels.h"
#include "ops/linalg/linalg.h"

static bool infer(cn_infer *i)
{
    if (!cn__infer_square(i)) return false;
    i->out[0] = *i->in[0];
    return true;
}

/* ---- the CPU ---- */

/* c = a·b, or c += a·b, of matrices (n, n) */
static void multiply(const cn__matrix_job *j, int64_t n, const void *a, const void *b, void *c, bool add, void *scratch)
{
    cn__gemm g = { .kernel = cn__kernel_gemm(j->k, j->is_f64 ? CN_F64 : CN_F32),
                   .accumulate = add,
                   .m = n,
                   .n = n,
                   .k = n,
                   .a = a,
                   .a_row = n,
                   .a_col = 1,
                   .b = b,
                   .b_row = n,
                   .b_col = 1,
                   .c = c,
                   .c_row = n,
                   .c_col = 1 };
    cn__gemm_run_alone(&g, scratch);
}

static double norm_1(const cn__matrix_job *j, int64_t n, const void *a)
{
    double most = 0;
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t r = 0; r < n; r++) sum += fabs(cn__get(j, a, r * n + c));
        if (!(sum <= most)) most = sum; /* a NaN stays */
    }
    return most;
}

/* Taylor's polynomial of degree 18 in 5 products (Bader, Blanes and Casas, 2019). Row i has the coefficients of I, A,
   A², A³ and A⁶ in B[i]; the polynomial is B[1] + (B[2] + A⁹)·A⁹ with A⁹ = B[0]·B[4] + B[3]. */
static const double coefficients[5][5] = {
    { 0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0 },
    { 0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
      -6.37898194594723280150e-04 },
    { -1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02, -6.98210122488052056106e-03,
      3.34975017086070470649e-05 },
    { -9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02, 2.95552570429315521194e-02,
      -1.39180257516060693404e-05 },
    { 0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05 },
};

enum { POWERS = 4, BUFFERS = 7 }; /* A, A², A³, A⁶; and three more */

/* to = B[row] (+ plus) */
static void mix(const cn__matrix_job *j, int64_t n, char *const *power, int row, const void *plus, void *to)
{
    const double *b = coefficients[row];
    for (int64_t i = 0; i < n * n; i++) {
        double sum = (i / n == i % n ? b[0] : 0) + (plus ? cn__get(j, plus, i) : 0);
        for (int p = 0; p < POWERS; p++) sum += b[p + 1] * cn__get(j, power[p], i);
        cn__set(j, to, i, sum);
    }
}

static void one(const cn__matrix_job *j, int64_t matrix)
{
    const int64_t n = cn__matrices_of(&j->k->in[0]).rows;
    const void *a = cn__matrix_at(j, &j->k->in[0], n * n, matrix);
    char *out = cn__matrix_at(j, &j->k->out[0], n * n, matrix), *buffer[BUFFERS];
    const size_t bytes = cn__round_up_bytes((size_t)(n * n) * j->size, 64);
    for (int i = 0; i < BUFFERS; i++) buffer[i] = (char *)j->own + (size_t)i * bytes;
    char *gemm = (char *)j->own + BUFFERS * bytes, *x = buffer[4], *y = buffer[5], *z = buffer[6];
    const double norm = norm_1(j, n, a), enough = j->is_f64 ? 1.090863719290036 : 3.010066362817634;
    const int squares = isfinite(norm) && norm > enough ? (int)ceil(log2(norm / enough)) : 0;
    for (int64_t i = 0; i < n * n; i++) cn__set(j, buffer[0], i, ldexp(cn__get(j, a, i), -squares));
    multiply(j, n, buffer[0], buffer[0], buffer[1], false, gemm);
    multiply(j, n, buffer[1], buffer[0], buffer[2], false, gemm);
    multiply(j, n, buffer[2], buffer[2], buffer[3], false, gemm);
    mix(j, n, buffer, 0, NULL, x);
    mix(j, n, buffer, 4, NULL, y);
    mix(j, n, buffer, 3, NULL, z);
    multiply(j, n, x, y, z, true, gemm); /* z = A⁹ */
    mix(j, n, buffer, 2, z, x);
    mix(j, n, buffer, 1, NULL, y);
    multiply(j, n, x, z, y, true, gemm);
    for (int s = 0; s < squares; s++) {
        char *t = x;
        multiply(j, n, y, y, x, false, gemm);
        x = y;
        y = t;
    }
    memcpy(out, y, (size_t)(n * n) * j->size);
}

static size_t bytes_of(const cn_kernel *k)
{
    const int64_t n = cn__matrices_of(&k->in[0]).rows;
    return BUFFERS * cn__round_up_bytes((size_t)(n * n) * cn_dtype_size(k->in[0].dtype), 64) +
           cn__gemm_alone_scratch(cn__kernel_gemm(k, k->in[0].dtype));
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

/* Scratch of each matrix: A, two more of its size, sums of columns. */
static bool gpu(cn_gpu_call *c)
{
    const cn__matrices a = cn__matrices_of(&c->in[0]);
    const int64_t words = 3 * a.rows * a.rows + a.rows;
    if (!c->in[0].numel) return true;
    cn_gpu_param(c, a.rows);
    cn_gpu_param(c, words);
    cn_gpu_scratch(c, a.count * words);
    return cn_gpu_run(
        c, &(cn_gpu_launch){
               .shader = cn__wgsl_exp, .with = cn__wgsl_linalg, .groups = a.count, .size = CN__MATRIX_LANES });
}

/* The upper right block of exp(Aᵀ g; 0 Aᵀ). */
static void grad(cn_grad_call *c)
{
    cn_tensor *a = cn__mT(c->in[0]), *zero = cn_zeros_like(a);
    const int64_t n = cn_size(c->in[0], -1);
    cn_tensor *above = cn_cat((cn_tensor *[]){ a, c->out_grad[0] }, 2, -1);
    cn_tensor *below = cn_cat((cn_tensor *[]){ zero, a }, 2, -1);
    cn_tensor *both = cn_linalg_matrix_exp(cn_cat((cn_tensor *[]){ above, below }, 2, -2));
    c->in_grad[0] = cn_slice(cn_slice(both, -2, 0, n, 1), -1, n, 2 * n, 1);
}

const cn_op cn__op_linalg_matrix_exp = {
    .call = "linalg_matrix_exp(Tensor A) -> Tensor",
    .name = "linalg_matrix_exp",
    .doc = "The exponential function of square matrices, I + x + x²/2 + ….",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .scratch = scratch,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_RANGE(-1, 1, 3, 3)) }, { CN_IN(CN_RANGE(-2, 1, 2, 4, 4)) }, { CN_IN(CN_RANGE(-9, 0, 2, 2, 2)) },
             { CN_IN(CN_S(1, 1)) }, { CN_IN(CN_S(2, 0, 0)) }, { CN_IN(CN_S(0, 3, 3)) },
             { CN_IN(CN_RANGE(-0.1, 0.1, 2, 19, 19)) }, { CN_IN(CN_RANGE(-0.001, 0.001, 2, 2)) }),
};

cn_tensor *cn_linalg_matrix_exp(cn_tensor *A)
{
    return cn__alive(A) ? cn_apply(&cn__op_linalg_matrix_exp, &A, 1, NULL, NULL) : NULL;
}

/* ---- linalg_matrix_power ---- */

static cn_tensor *power(cn_tensor *x, uint64_t n)
{
    cn_tensor *y = NULL;
    for (; n; n >>= 1) {
        if (n & 1) y = y ? cn_matmul(y, x) : x;
        if (n > 1) x = cn_matmul(x, x);
    }
    return y;
}

static cn_tensor *compose_power(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    const int64_t n = ((const cn__power_attrs *)attrs)->n;
    cn_tensor *x = in[0];
    if (!cn__is_square("linalg_matrix_power", x)) return NULL;
    if (n == 0) { /* I; chosen from x, so that x gets a gradient, of 0 */
        cn_tensor *eye = cn__eye_like(x, cn_size(x, -1));
        return cn_where(cn_ge_s(eye, 0), eye, x);
    }
    if (n < 0) x = cn_linalg_inv(x);
    return n == 1 ? cn_clone(x) : power(x, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

#define POWER(number) \
    .attrs = &(const cn__power_attrs) { number }

const cn_op cn__op_linalg_matrix_power = {
    .call = "linalg_matrix_power(Tensor A, int n) -> Tensor",
    .name = "linalg_matrix_power",
    .doc = "Square matrices to the power of n; a negative n inverts them.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__power_attrs),
    .compose = compose_power,
    CN_CASES({ CN_IN(CN_S(3, 3)), POWER(3) }, { CN_IN(CN_S(2, 4, 4)), POWER(0) }, { CN_IN(CN_S(2, 2, 2)), POWER(1) },
             { CN_IN(CN_RANGE(-1, 1, 2, 3, 3)), POWER(6) }, { CN_IN(CN_DISTINCT(3, 3)), POWER(-2) },
             { CN_IN(CN_S(2, 0, 0)), POWER(2) }, { CN_IN(CN_S(0, 3, 3)), POWER(2) },
             { CN_IN(CN_S(9, 20, 20)), POWER(2) }),
};

cn_tensor *cn_linalg_matrix_power(cn_tensor *A, int64_t n)
{
    CN__CALL call = cn__call_tensor(A);
    return call.ctx ? cn_apply(&cn__op_linalg_matrix_power, &A, 1, &(cn__power_attrs){ n }, NULL) : NULL;
}

/* fft_c2c, fft_r2c, fft_c2r: transforms of the rows of a tensor, not divided by anything. */
#include "gpu/shaders.h"
#include "ops/fft/fft.h"
#include "ops/fft/fft_cpu.h"
#include "ops/kernels.h"

/* ---- how a call is computed ---- */

#define LARGEST_RADIX 61 /* a larger prime factor costs more than Bluestein's method */
#define MOST_TOGETHER 16 /* signals side by side: a vector or two of f32 */
#define CACHED_LENGTH 16384

/* Fills the radices of n and returns whether its prime factors are small. */
static bool factor(cn__fft_job *j, int64_t n)
{
    static const int64_t first[] = { 4, 2, 3, 5 };
    j->radices = 0;
    j->length = n;
    for (int i = 0; i < 4; i++)
        for (; n % first[i] == 0; n /= first[i]) j->radix[j->radices++] = first[i];
    for (int64_t p = 7; p <= LARGEST_RADIX; p += 2)
        for (; n % p == 0; n /= p) j->radix[j->radices++] = p;
    return n == 1;
}

cn__fft_job cn__fft_job_of(const cn_kernel *k, cn__fft_kind kind, int64_t n, bool inverse)
{
    cn__fft_job j = { .kind = kind, .inverse = inverse, .n = n };
    const int64_t row = kind == CN__FFT_COMPLEX ? 2 * n : kind == CN__FFT_REAL_IN ? n : 2 * (n / 2 + 1);
    j.rows = k->in[0].numel / row;
    j.halved = kind != CN__FFT_COMPLEX && n % 2 == 0 && factor(&j, n / 2);
    if (!j.halved && !factor(&j, n)) {
        int64_t padded = 1;
        while (padded < 2 * n - 1) padded *= 2;
        factor(&j, padded);
        j.chirped = true;
    }
    j.together = cn__clamp(CACHED_LENGTH / j.length, 1, cn__clamp(j.rows, 1, MOST_TOGETHER));
    return j;
}

int64_t cn__fft_table_size(const cn__fft_job *j)
{
    return 2 * ((j->halved ? 2 : 1) * j->length + (j->chirped ? j->n + j->length : 0));
}
int64_t cn__fft_thread_size(const cn__fft_job *j) { return 4 * j->length * j->together; }

static size_t bytes_of(const cn_kernel *k, const cn__fft_job *j, int threads)
{
    return (size_t)(cn__fft_table_size(j) + threads * cn__fft_thread_size(j)) * cn_dtype_size(k->in[0].dtype);
}

static cn__fft_job complex_job(const cn_kernel *k)
{
    const cn_array *x = &k->in[0];
    return cn__fft_job_of(k, CN__FFT_COMPLEX, x->shape[x->ndim - 2], ((const cn__fft_c2c_attrs *)k->attrs)->inverse);
}
static cn__fft_job real_in_job(const cn_kernel *k)
{
    return cn__fft_job_of(k, CN__FFT_REAL_IN, k->in[0].shape[k->in[0].ndim - 1], false);
}
static cn__fft_job real_out_job(const cn_kernel *k)
{
    return cn__fft_job_of(k, CN__FFT_REAL_OUT, ((const cn__fft_c2r_attrs *)k->attrs)->n, true);
}

static void run(const cn_kernel *k, const cn__fft_job *j) { k->kernels->fft.run[cn__f64_entry(k->in[0].dtype)](k, j); }

static size_t c2c_scratch(const cn_kernel *k, int threads)
{
    const cn__fft_job j = complex_job(k);
    return bytes_of(k, &j, threads);
}
static void c2c_cpu(const cn_kernel *k)
{
    const cn__fft_job j = complex_job(k);
    run(k, &j);
}
static size_t r2c_scratch(const cn_kernel *k, int threads)
{
    const cn__fft_job j = real_in_job(k);
    return bytes_of(k, &j, threads);
}
static void r2c_cpu(const cn_kernel *k)
{
    const cn__fft_job j = real_in_job(k);
    run(k, &j);
}
static size_t c2r_scratch(const cn_kernel *k, int threads)
{
    const cn__fft_job j = real_out_job(k);
    return bytes_of(k, &j, threads);
}
static void c2r_cpu(const cn_kernel *k)
{
    const cn__fft_job j = real_out_job(k);
    run(k, &j);
}

/* ---- on the GPU: a launch for each radix; the first reads the operand, the last writes the result, and those between
   use two halves of the scratch memory in turn ---- */

static int64_t smallest_factor(int64_t n)
{
    if (n % 4 == 0) return 4;
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

static bool run_gpu(cn_gpu_call *c, int64_t rows, int64_t n, const char *load, const char *store, bool inverse)
{
    int64_t rest = n, s = 1, radix = 0;
    if (rows == 0) return true;
    for (int pass = 0; pass == 0 || rest > 1; pass++, s *= radix) {
        radix = smallest_factor(rest);
        rest /= radix;
        const bool last = rest == 1;
        if (!last && pass == 0) cn_gpu_scratch(c, 4 * rows * n);
        const int64_t numbers[] = {
            n, radix, rest, s, inverse, pass % 2 ? 0 : 2 * rows * n, pass % 2 ? 2 * rows * n : 0
        };
        cn_gpu_params_clear(c);
        for (int i = 0; i < 7; i++) cn_gpu_param(c, numbers[i]);
        const bool halves = last && store[0] == 'h'; /* only the first half of the spectrum is stored */
        const cn_gpu_launch l = { .shader = cn__wgsl_fft,
                                  .holes = CN_GPU_HOLES(CN_GPU_TEXT("load", pass ? "scratch" : load),
                                                        CN_GPU_TEXT("store", last ? store : "scratch")),
                                  .each = rows * (halves ? n / 2 + 1 : n) };
        if (!cn_gpu_run(c, &l)) return false;
    }
    return true;
}

static bool c2c_gpu(cn_gpu_call *c)
{
    const int64_t n = c->in[0].shape[c->in[0].ndim - 2];
    return run_gpu(c, c->in[0].numel / (2 * n), n, "complex", "complex",
                   ((const cn__fft_c2c_attrs *)c->attrs)->inverse);
}
static bool r2c_gpu(cn_gpu_call *c)
{
    const int64_t n = c->in[0].shape[c->in[0].ndim - 1];
    return run_gpu(c, c->in[0].numel / n, n, "real", "half", false);
}
static bool c2r_gpu(cn_gpu_call *c)
{
    const int64_t n = ((const cn__fft_c2r_attrs *)c->attrs)->n;
    return run_gpu(c, c->out[0].numel / n, n, "half", "real", true);
}

/* ---- shapes ---- */

static bool is_complex(cn_infer *i)
{
    const cn_layout *x = &i->in[0]->layout;
    char s[96];
    if (x->ndim >= 2 && x->shape[x->ndim - 1] == 2 && x->shape[x->ndim - 2] > 0) return true;
    return cn_infer_fail(i, CN_BAD_SHAPE,
                         "input must have the shape (.., n, 2) with n ≥ 1: real and imaginary parts, got %s",
                         cn__shape_text(x, s, sizeof s));
}

static bool c2c_infer(cn_infer *i)
{
    i->out[0] = *i->in[0];
    return is_complex(i);
}

static bool r2c_infer(cn_infer *i)
{
    const cn_layout *x = &i->in[0]->layout;
    char s[96];
    if (x->ndim < 1 || x->ndim == CN_MAX_DIMS || x->shape[x->ndim - 1] == 0)
        return cn_infer_fail(i, CN_BAD_SHAPE, "input must have 1 to %d axes, the last of size ≥ 1, got %s",
                             CN_MAX_DIMS - 1, cn__shape_text(x, s, sizeof s));
    i->out[0] = *i->in[0];
    cn_layout *y = &i->out[0].layout;
    y->shape[y->ndim - 1] = y->shape[y->ndim - 1] / 2 + 1;
    y->shape[y->ndim++] = 2;
    return true;
}

static bool c2r_infer(cn_infer *i)
{
    const int64_t n = ((const cn__fft_c2r_attrs *)i->attrs)->n;
    const cn_layout *x = &i->in[0]->layout;
    if (!is_complex(i)) return false;
    if (n < 1 || n / 2 + 1 != x->shape[x->ndim - 2])
        return cn_infer_fail(i, CN_BAD_SHAPE, "n must be ≥ 1, and n/2 + 1 the size of axis %d, %lld, got %lld",
                             x->ndim - 2, (long long)x->shape[x->ndim - 2], (long long)n);
    i->out[0] = *i->in[0];
    i->out[0].layout.ndim = x->ndim - 1;
    i->out[0].layout.shape[x->ndim - 2] = n;
    return true;
}

/* ---- gradients: a transform is a symmetric matrix F, so the gradient of x is conj(F) g ---- */

static void c2c_grad(cn_grad_call *g)
{
    const cn__fft_c2c_attrs a = { !((const cn__fft_c2c_attrs *)g->attrs)->inverse };
    g->in_grad[0] = cn_apply(&cn__op_fft_c2c, g->out_grad, 1, &a, NULL);
}

/* x (.., n/2 + 1, 2) times `ends` where the spectrum of n real elements is its own mirror image, and times `others`
   elsewhere. */
static cn_tensor *weighted(cn_tensor *x, int64_t n, double ends, double others)
{
    if (!x) return NULL;
    cn_tensor *at = cn_arange(x->ctx, CN_I64, 0, (double)(n / 2 + 1), 1);
    cn_tensor *end = cn_eq_s(cn_remainder_s(cn_mul_s(at, 2), (double)n), 0);
    cn_tensor *weight = cn_add_s(cn_mul_s(cn_cast(end, cn__dtype(x)), ends - others), others);
    return cn_mul(x, cn_unsqueeze(weight, 1));
}

/* Half of the spectrum contributes to x once; fft_c2r counts what is not its own mirror image twice. */
static void r2c_grad(cn_grad_call *g)
{
    const cn__fft_c2r_attrs a = { cn_size(g->in[0], -1) };
    cn_tensor *w = weighted(g->out_grad[0], a.n, 1, 0.5);
    g->in_grad[0] = cn_apply(&cn__op_fft_c2r, &w, 1, &a, NULL);
}

static void c2r_grad(cn_grad_call *g)
{
    const int64_t n = ((const cn__fft_c2r_attrs *)g->attrs)->n;
    g->in_grad[0] = weighted(cn_apply(&cn__op_fft_r2c, g->out_grad, 1, NULL, NULL), n, 1, 2);
}

const cn_op cn__op_fft_c2c = {
    .call = "_fft_c2c(Tensor input, bool inverse) -> Tensor",
    .name = "fft_c2c",
    .doc = "Σ x[t] e^(∓2πi kt/n) along the last axis but one, from complex to complex.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_c2c_attrs),
    .infer = c2c_infer,
    .grad = c2c_grad,
    .cpu = c2c_cpu,
    .scratch = c2c_scratch,
    .gpu = c2c_gpu,
    CN_CASES({ CN_IN(CN_S(3, 8, 2)), .attrs = &(const cn__fft_c2c_attrs){ 0 } },
             { CN_IN(CN_S(2, 2, 12, 2)), .attrs = &(const cn__fft_c2c_attrs){ 1 } },
             { CN_IN(CN_S(7, 2)), .attrs = &(const cn__fft_c2c_attrs){ 0 } },
             { CN_IN(CN_S(3, 1, 2)), .attrs = &(const cn__fft_c2c_attrs){ 1 } },
             { CN_IN(CN_S(0, 4, 2)), .attrs = &(const cn__fft_c2c_attrs){ 0 } },
             { CN_IN(CN_S(2, 67, 2)), .attrs = &(const cn__fft_c2c_attrs){ 1 } },
             { CN_IN(CN_S(19, 450, 2)), .attrs = &(const cn__fft_c2c_attrs){ 0 } }),
};

const cn_op cn__op_fft_r2c = {
    .call = "_fft_r2c(Tensor input) -> Tensor",
    .name = "fft_r2c",
    .doc = "The first half of the spectrum of a real signal: Σ x[t] e^(-2πi kt/n) for k ≤ n/2, along the last axis.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .infer = r2c_infer,
    .grad = r2c_grad,
    .cpu = r2c_cpu,
    .scratch = r2c_scratch,
    .gpu = r2c_gpu,
    CN_CASES({ CN_IN(CN_S(3, 8)) }, { CN_IN(CN_S(2, 3, 9)) }, { CN_IN(CN_S(1)) }, { CN_IN(CN_S(2, 2)) },
             { CN_IN(CN_S(0, 4)) }, { CN_IN(CN_S(2, 134)) }, { CN_IN(CN_S(37, 250)) }),
};

const cn_op cn__op_fft_c2r = {
    .call = "_fft_c2r(Tensor input, int n) -> Tensor",
    .name = "fft_c2r",
    .doc = "The real signal of n elements that has the first half of its spectrum in x, times n.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_c2r_attrs),
    .infer = c2r_infer,
    .grad = c2r_grad,
    .cpu = c2r_cpu,
    .scratch = c2r_scratch,
    .gpu = c2r_gpu,
    CN_CASES({ CN_IN(CN_S(3, 5, 2)), .attrs = &(const cn__fft_c2r_attrs){ 8 } },
             { CN_IN(CN_S(2, 3, 5, 2)), .attrs = &(const cn__fft_c2r_attrs){ 9 } },
             { CN_IN(CN_S(1, 2)), .attrs = &(const cn__fft_c2r_attrs){ 1 } },
             { CN_IN(CN_S(2, 2, 2)), .attrs = &(const cn__fft_c2r_attrs){ 2 } },
             { CN_IN(CN_S(0, 3, 2)), .attrs = &(const cn__fft_c2r_attrs){ 4 } },
             { CN_IN(CN_S(2, 68, 2)), .attrs = &(const cn__fft_c2r_attrs){ 134 } },
             { CN_IN(CN_S(37, 126, 2)), .attrs = &(const cn__fft_c2r_attrs){ 250 } }),
};

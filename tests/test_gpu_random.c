/* Random tensors of one seed have the same bits on the CPU and on the GPU. f64 is f32 on the GPU: a draw is the f64
   draw rounded to f32; normal draws of f64 agree to some digits.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static cn_ctx *cpu, *gpu;

/* The draws of one program on both devices. */
typedef cn_tensor *(*program)(cn_ctx *ctx, cn_dims shape);

static void *elements(cn_ctx *ctx, program draw, cn_dims shape, cn_dtype *dtype, int64_t *bytes)
{
    cn_scope s = cn_scope_begin(ctx);
    cn_seed(ctx, 0x123456789abcdef0);
    cn_tensor *t = draw(ctx, shape);
    void *data = NULL;
    *dtype = t ? cn_type(t) : CN_F32;
    *bytes = t ? cn_numel(t) * (int64_t)cn_dtype_size(*dtype) : 0;
    if (check(t != NULL, "draw: %s", cn_error(ctx))) {
        data = malloc((size_t)*bytes + 1);
        if (!data) abort();
        check(cn_read(t, data, (size_t)*bytes), "read: %s", cn_error(ctx));
    }
    cn_scope_end(ctx, s);
    cn_error_clear(ctx);
    return data;
}

static int64_t first_difference(const unsigned char *a, const unsigned char *b, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) return i;
    return -1;
}

static void expect_same_bits(const char *name, program draw, cn_dims shape)
{
    cn_dtype here, there;
    int64_t n, m;
    void *a = elements(cpu, draw, shape, &here, &n), *b = elements(gpu, draw, shape, &there, &m);
    if (a && b && check(n == m && here == there, "%s: other sizes", name)) {
        int64_t at = first_difference(a, b, n);
        check(at < 0, "%s of %lld bytes: differs at element %lld", name, (long long)n,
              (long long)(at / (int64_t)cn_dtype_size(here)));
    }
    free(a);
    free(b);
}

/* ---- programs ---- */

static cn_tensor *draw_rand(cn_ctx *ctx, cn_dims s) { return cn_rand(ctx, CN_F32, s); }
static cn_tensor *draw_rand_f16(cn_ctx *ctx, cn_dims s) { return cn_rand(ctx, CN_F16, s); }
static cn_tensor *draw_rand_bf16(cn_ctx *ctx, cn_dims s) { return cn_rand(ctx, CN_BF16, s); }
static cn_tensor *draw_rand_f64(cn_ctx *ctx, cn_dims s) { return cn_cast(cn_rand(ctx, CN_F64, s), CN_F32); }
static cn_tensor *draw_randn(cn_ctx *ctx, cn_dims s) { return cn_randn(ctx, CN_F32, s); }
static cn_tensor *draw_randn_f16(cn_ctx *ctx, cn_dims s) { return cn_randn(ctx, CN_F16, s); }
static cn_tensor *draw_randn_bf16(cn_ctx *ctx, cn_dims s) { return cn_randn(ctx, CN_BF16, s); }
static cn_tensor *draw_randint(cn_ctx *ctx, cn_dims s) { return cn_randint(ctx, CN_I64, -1000, 100001, s); }
static cn_tensor *draw_randint_u8(cn_ctx *ctx, cn_dims s) { return cn_randint(ctx, CN_U8, 3, 250, s); }
static cn_tensor *draw_randint_f32(cn_ctx *ctx, cn_dims s) { return cn_randint(ctx, CN_F32, -99, 1 << 24, s); }
static cn_tensor *draw_randint_f64(cn_ctx *ctx, cn_dims s)
{
    return cn_cast(cn_randint(ctx, CN_F64, -(1LL << 50), 1LL << 51, s), CN_F32);
}
static cn_tensor *draw_bernoulli(cn_ctx *ctx, cn_dims s) { return cn_bernoulli(cn_rand(ctx, CN_F32, s)); }
static cn_tensor *draw_bernoulli_f64(cn_ctx *ctx, cn_dims s)
{
    /* exact in f32, so that both devices have the same probabilities */
    return cn_cast(cn_bernoulli(cn_cast(cn_mul_s(cn_rand(ctx, CN_F32, s), 0.5), CN_F64)), CN_F32);
}
static cn_tensor *draw_dropout(cn_ctx *ctx, cn_dims s) { return cn_dropout(cn_rand(ctx, CN_F32, s), 0.3, true); }
static cn_tensor *draw_dropout_chain(cn_ctx *ctx, cn_dims s) /* fused with its neighbours */
{
    return cn_neg(cn_dropout(cn_mul_s(cn_randn(ctx, CN_F32, s), 0.5), 0.1, true));
}
static cn_tensor *draw_randperm(cn_ctx *ctx, cn_dims s) { return cn_randperm(ctx, s.n ? s.v[0] * 71 : 1); }

static cn_tensor *draw_kaiming(cn_ctx *ctx, cn_dims s)
{
    cn_tensor *w = cn_zeros(ctx, CN_F32, s);
    return s.n < 2 || cn_init_kaiming_uniform(w, 0, CN_FAN_IN, "relu") ? w : NULL;
}
static cn_tensor *draw_kaiming_normal(cn_ctx *ctx, cn_dims s)
{
    cn_tensor *w = cn_zeros(ctx, CN_F32, s);
    return s.n < 2 || cn_init_kaiming_normal(w, 0, CN_FAN_OUT, "relu") ? w : NULL;
}
static cn_tensor *draw_xavier(cn_ctx *ctx, cn_dims s)
{
    cn_tensor *w = cn_zeros(ctx, CN_F32, s);
    return s.n < 2 || cn_init_xavier_uniform(w, 1.5) ? w : NULL;
}
static cn_tensor *draw_xavier_normal(cn_ctx *ctx, cn_dims s)
{
    cn_tensor *w = cn_zeros(ctx, CN_F32, s);
    return s.n < 2 || cn_init_xavier_normal(w, 1) ? w : NULL;
}

static const struct {
    const char *name;
    program draw;
} programs[] = {
    { "rand", draw_rand },
    { "rand f16", draw_rand_f16 },
    { "rand bf16", draw_rand_bf16 },
    { "rand f64", draw_rand_f64 },
    { "randn", draw_randn },
    { "randn f16", draw_randn_f16 },
    { "randn bf16", draw_randn_bf16 },
    { "randint", draw_randint },
    { "randint u8", draw_randint_u8 },
    { "randint f32", draw_randint_f32 },
    { "randint f64", draw_randint_f64 },
    { "bernoulli", draw_bernoulli },
    { "bernoulli f64", draw_bernoulli_f64 },
    { "dropout", draw_dropout },
    { "dropout in a chain", draw_dropout_chain },
    { "randperm", draw_randperm },
    { "kaiming uniform", draw_kaiming },
    { "kaiming normal", draw_kaiming_normal },
    { "xavier uniform", draw_xavier },
    { "xavier normal", draw_xavier_normal },
};

/* Normal draws of f64 have words of their own; those of f32 many, so that every exponent of u occurs. */
static void test_normal(void)
{
    cn_dims many = CN_DIMS(test_is_quick() ? 10007 : 300007);
    expect_same_bits("randn, many", draw_randn, many);
    cn_seed(cpu, 5);
    cn_seed(gpu, 5);
    cn_scope s = cn_scope_begin(cpu), t = cn_scope_begin(gpu);
    enum { N = 4099 };
    static double a[N], b[N];
    double worst = 0;
    bool ok = cn_read(cn_randn(cpu, CN_F64, CN_DIMS(N)), a, sizeof a) &&
              cn_read(cn_randn(gpu, CN_F64, CN_DIMS(N)), b, sizeof b);
    for (int i = 0; i < N && ok; i++) worst = fmax(worst, fabs(a[i] - b[i]) / fmax(fabs(a[i]), 1e-3));
    check(ok && worst < 1e-5, "randn f64: off by %g", worst);
    cn_scope_end(cpu, s);
    cn_scope_end(gpu, t);
}

int main(void)
{
    cpu = cn_open(&(cn_desc){ .device = "cpu" });
    gpu = cn_open(&(cn_desc){ .device = "gpu" });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    } else {
        check(!cn_failed(gpu), "open: %s", cn_error(gpu));
        cn_error_clear(gpu);
        const cn_dims shapes[] = { CN_SCALAR,           CN_DIMS(1),       CN_DIMS(7),   CN_DIMS(3, 5),
                                   CN_DIMS(4, 3, 5, 5), CN_DIMS(1031, 3), CN_DIMS(2, 0) };
        for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
            check_group(programs[p].name);
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
                expect_same_bits(programs[p].name, programs[p].draw, shapes[i]);
        }
        check_group("normal");
        test_normal();
        check(cn_gpu_counted(gpu).fallbacks == 0, "%lld steps ran on the CPU",
              (long long)cn_gpu_counted(gpu).fallbacks);
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

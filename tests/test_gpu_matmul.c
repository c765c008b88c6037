/* matmul on the GPU against sums in f64: every form of the kernel, odd sizes, all layouts of operands, long inner axes,
   with and without an epilogue.

       test_gpu_matmul [seed]
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static int64_t between(int64_t low, int64_t high) { return low + (int64_t)(draw() % (uint64_t)(high - low + 1)); }
static float value(void) { return (float)((double)draw() / 0x1p30 - 1); }

/* The layout of a (batch, rows, cols) operand: a union of these. */
enum { TRANSPOSED = 1, SHARED = 2, SLICED = 4, FLIPPED = 8, WAYS = 16 };

typedef struct operand {
    int64_t batch, rows, cols;
    int way;
    float *v; /* the values, row-major */
} operand;

static operand operand_new(int64_t batch, int64_t rows, int64_t cols, int way)
{
    operand x = { batch, rows, cols, way, calloc((size_t)(batch * rows * cols) + 1, sizeof(float)) };
    if (!x.v) abort();
    int64_t item = rows * cols;
    for (int64_t i = 0; i < batch * item; i++) x.v[i] = way & SHARED && i >= item ? x.v[i % item] : value();
    return x;
}

/* The index of element (r, c) in a matrix with `across` elements a row. */
static int64_t stored_at(const operand *x, int64_t r, int64_t c, int64_t across)
{
    if (x->way & FLIPPED) r = x->rows - 1 - r;
    if (x->way & TRANSPOSED) {
        int64_t t = r;
        r = c;
        c = t;
    }
    return x->way & SLICED ? (r + 1) * across + 2 * c + 1 : r * across + c;
}

static cn_tensor *tensor_of(cn_ctx *ctx, const operand *x)
{
    bool turned = x->way & TRANSPOSED, sliced = x->way & SLICED;
    int64_t items = x->way & SHARED ? 1 : x->batch;
    int64_t height = turned ? x->cols : x->rows, width = turned ? x->rows : x->cols;
    int64_t down = sliced ? height + 2 : height, across = sliced ? 2 * width + 3 : width;
    float *memory = calloc((size_t)(items * down * across) + 1, sizeof *memory);
    if (!memory) abort();
    for (int64_t b = 0; b < items; b++)
        for (int64_t r = 0; r < x->rows; r++)
            for (int64_t c = 0; c < x->cols; c++)
                memory[b * down * across + stored_at(x, r, c, across)] = x->v[(b * x->rows + r) * x->cols + c];
    cn_tensor *t = cn_from(ctx, CN_F32, CN_DIMS(items, down, across), memory);
    free(memory);
    if (sliced) t = cn_slice(cn_slice(t, 1, 1, 1 + height, 1), 2, 1, 1 + 2 * width, 2);
    if (turned) t = cn_transpose(t, 1, 2);
    if (x->way & FLIPPED) t = cn_flip(t, CN_DIMS(1));
    return cn_expand(t, CN_DIMS(x->batch, x->rows, x->cols));
}

typedef struct result {
    float *product, *fused; /* fused: relu(a·b + bias) */
} result;

static void compare(const operand *a, const operand *b, const float *bias, const result *y, const char *what)
{
    int64_t m = a->rows, k = a->cols, n = b->cols;
    double worst = 0;
    for (int64_t i = 0; i < a->batch * m * n; i++) {
        int64_t item = i / (m * n), row = i / n % m, col = i % n;
        double sum = 0, size = fabs((double)bias[col]) + 1e-3;
        for (int64_t j = 0; j < k; j++) {
            double term = (double)a->v[(item * m + row) * k + j] * (double)b->v[(item * k + j) * n + col];
            sum += term;
            size += fabs(term);
        }
        worst = fmax(worst, fabs(sum - (double)y->product[i]) / size);
        worst = fmax(worst, fabs(fmax(sum + (double)bias[col], 0) - (double)y->fused[i]) / size);
        if (isnan(y->product[i]) || isnan(y->fused[i])) worst = INFINITY;
    }
    check(worst < 1e-5, "%s: off by %.3g of the size of its terms", what, worst);
}

static bool compute(cn_ctx *ctx, const operand *a, const operand *b, const float *bias, result *y)
{
    cn_scope s = cn_scope_begin(ctx);
    size_t bytes = (size_t)(a->batch * a->rows * b->cols) * sizeof(float);
    cn_tensor *x = tensor_of(ctx, a), *w = tensor_of(ctx, b), *c = cn_from(ctx, CN_F32, CN_DIMS(b->cols), bias);
    bool ok = cn_read(cn_relu(cn_add(cn_matmul(x, w), c)), y->fused, bytes);
    ok = ok && cn_read(cn_matmul(x, w), y->product, bytes);
    cn_scope_end(ctx, s);
    return ok;
}

static void test_product(cn_ctx *ctx, int64_t batch, int64_t m, int64_t k, int64_t n, int a_way, int b_way)
{
    operand a = operand_new(batch, m, k, a_way), b = operand_new(batch, k, n, b_way);
    float *bias = calloc((size_t)n + 1, sizeof *bias);
    size_t numel = (size_t)(batch * m * n);
    result y = { calloc(numel + 1, sizeof(float)), calloc(numel + 1, sizeof(float)) };
    if (!bias || !y.product || !y.fused) abort();
    for (int64_t i = 0; i < n; i++) bias[i] = value();
    char what[128];
    snprintf(what, sizeof what, "%lld x (%lld, %lld, %lld), ways %d and %d", (long long)batch, (long long)m,
             (long long)k, (long long)n, a_way, b_way);
    if (check(compute(ctx, &a, &b, bias, &y), "%s: %s", what, cn_error(ctx))) compare(&a, &b, bias, &y, what);
    cn_error_clear(ctx);
    free(a.v);
    free(b.v);
    free(bias);
    free(y.product);
    free(y.fused);
}

static void test_sizes(cn_ctx *ctx)
{
    static const int64_t sizes[][4] = { { 1, 1, 1, 1 },    { 1, 16, 2, 32 },    { 1, 17, 3, 33 },  { 1, 64, 16, 64 },
                                        { 2, 65, 17, 67 }, { 1, 1, 97, 130 },   { 1, 129, 31, 1 }, { 3, 130, 1, 127 },
                                        { 2, 3, 0, 5 },    { 1, 0, 3, 4 },      { 0, 2, 3, 4 },    { 1, 8, 5000, 8 },
                                        { 1, 1, 5000, 1 }, { 1, 33, 5001, 35 }, { 2, 5, 4999, 3 }, { 7, 16, 64, 16 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 4; way++)
            test_product(ctx, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], way & 1 ? TRANSPOSED : 0,
                         way & 2 ? TRANSPOSED : 0);
}

static void test_random(cn_ctx *ctx, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        int64_t m = between(1, 130), k = between(1, 130), n = between(1, 130);
        if (i % 4 == 0) *(i % 8 ? &m : &n) = between(1, 9);
        test_product(ctx, i % 3 ? 1 : between(2, 4), m, k, n, (int)between(0, WAYS - 1), (int)between(0, WAYS - 1));
    }
}

static void test_form(const char *form)
{
    check_group(form ? form : "as chosen");
    if (form) setenv("CAIRN_GPU_MATMUL", form, 1);
    cn_ctx *ctx = cn_open(&(cn_desc){ .device = "gpu", .seed = 7 });
    if (check(ctx && !cn_failed(ctx), "open: %s", cn_error(ctx))) {
        test_sizes(ctx);
        test_random(ctx, test_is_quick() ? 8 : test_is_long() ? 400 : 24);
        check(cn_gpu_counted(ctx).fallbacks == 0, "%lld steps ran on the CPU",
              (long long)cn_gpu_counted(ctx).fallbacks);
    }
    cn_close(ctx);
    unsetenv("CAIRN_GPU_MATMUL");
}

int main(int argc, char **argv)
{
    if (argc > 1) state = strtoull(argv[1], NULL, 10);
    cn_ctx *ctx = cn_open(NULL);
    bool available = cn_gpu_available(ctx);
    if (!available) printf("no GPU: %s\n", cn_gpu_why_not(ctx));
    cn_close(ctx);
    if (!available) skip();
    static const char *const forms[] = { NULL, "direct", "block", "tiled", "plain" };
    for (int i = 0; i < 4 && available; i++) test_form(forms[i]);
    return finish();
}

/* Elementwise operators and reductions on the GPU for special values: NaN, infinities, zeros of both signs, large
   arguments, the limits of whole numbers. Compared with the CPU; subnormal numbers may be 0 on a GPU. Then the table of
   test_edges.c, and those of test_numbers.c.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/op_cases.h"
#include "cpu/cpu.h"
#include "ops/kernels.h"
#include "support/check.h"
#include "support/edges.h"
#include "support/numbers.h"

static cn_ctx *cpu, *gpu;

static const float reals[] = { NAN, INFINITY, -INFINITY, 0.0f,  -0.0f, 1e-3f,  -1e-3f, 0.5f,  -0.5f,
                               1,   -1,       1.5f,      -1.5f, 2.5f,  -2.5f,  3,      -3,    7,
                               -7,  9.5f,     -9.5f,     20,    -20,   44.25f, -44,    88.5f, -88.5f,
                               100, -100,     3e3f,      -3e3f, 1e10f, -1e10f, 3e38f,  -3e38f };
static const int32_t wholes[] = { 0,  1,   -1,   2,   -2,   3,   -3,  7,     -8,        31,
                                  32, 100, -100, 127, -128, 255, 256, 65537, INT32_MAX, INT32_MIN };
enum { REALS = sizeof reals / sizeof *reals, WHOLES = sizeof wholes / sizeof *wholes };

/* Operand k of n: all pairs of values, or all values. */
static cn_tensor *operand(cn_ctx *ctx, bool real, int k, int n)
{
    int64_t count = real ? REALS : WHOLES;
    cn_tensor *x = cn_from(ctx, real ? CN_F32 : CN_I32, CN_DIMS(count), real ? (const void *)reals : wholes);
    if (n == 1) return x;
    return cn_expand(cn_reshape(x, k == 0 ? CN_DIMS(count, 1) : CN_DIMS(1, count)), CN_DIMS(count, count));
}

static int64_t compute(cn_ctx *ctx, const cn_op *op, bool real, double *out)
{
    enum { MOST = REALS * REALS };
    static unsigned char bytes[MOST * 8];
    cn_tensor *in[CN_MAX_IN] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    for (int k = 0; k < op->n_in; k++) in[k] = operand(ctx, real, k, op->n_in);
    cn_arg args[CN_MAX_ARGS];
    cn_case_args(&op->cases[0], args);
    cn_tensor *y = cn_apply(op, in, op->n_in, NULL, args);
    int64_t n = y ? cn_numel(y) : -1;
    y = cn_cast(y, cn_dtype_is_float(y ? cn_type(y) : CN_F32) ? CN_F32 : CN_I32);
    bool floats = y && cn_dtype_is_float(cn_type(y));
    if (!y || n > MOST || !cn_read(y, bytes, (size_t)n * 4)) n = -1;
    for (int64_t i = 0; i < n; i++) {
        float f;
        int32_t w;
        memcpy(&f, bytes + 4 * i, 4);
        memcpy(&w, bytes + 4 * i, 4);
        out[i] = floats ? (double)f : (double)w;
    }
    cn_scope_end(ctx, s);
    return n;
}

/* Equal to 2e-5; subnormal numbers may differ. */
#define SMALL 1e-33
static bool is_close(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (a == b) return true;
    if (fabs(a) < 0x1p-126 && fabs(b) < 0x1p-126) return true;
    if (fabs(a) >= 3.3e38 || fabs(b) >= 3.3e38) return fabs(a) > 3e38 && fabs(b) > 3e38 && (a > 0) == (b > 0);
    return fabs(a - b) <= 2e-5 * fmax(fabs(a), fabs(b)) + SMALL;
}

/* Not compared: a sine where neighbouring floats are more than a period apart; infinity times a slope that is 0 on one
   device and tiny on the other. */
static bool is_pointless(const cn_op *op, double x)
{
    bool turns = !strcmp(op->name, "sin") || !strcmp(op->name, "cos") || !strcmp(op->name, "tan");
    if (turns) return isfinite(x) && fabs(x) > 1e6;
    return strstr(op->name, "_backward") && fabs(x) > 1e6;
}

static void test_op(const cn_op *op, bool real)
{
    static double a[REALS * REALS], b[REALS * REALS];
    int64_t n = compute(cpu, op, real, a), m = compute(gpu, op, real, b);
    bool same = check(n == m, "%s: %s", op->name, cn_error(gpu));
    int64_t across = real ? REALS : WHOLES;
    for (int64_t i = 0; i < n && same; i++) {
        double x = real ? (double)reals[op->n_in == 1 ? i : i / across] : wholes[op->n_in == 1 ? i : i / across];
        double y = op->n_in == 1 ? 0 : real ? (double)reals[i % across] : wholes[i % across];
        if (is_pointless(op, x)) continue;
        check(is_close(a[i], b[i]), "%s of %g and %g: %.9g, not %.9g", op->name, x, y, b[i], a[i]);
    }
    cn_error_clear(cpu);
    cn_error_clear(gpu);
}

/* Casts special values to every type, and back to a type that can be read. */
static void test_casts(void)
{
    for (int t = 0; t < CN_DTYPES; t++) {
        double a[REALS], b[REALS];
        float x[REALS], y[REALS];
        cn_scope s = cn_scope_begin(cpu), u = cn_scope_begin(gpu);
        bool ok = cn_read(cn_cast(cn_cast(operand(cpu, true, 0, 1), (cn_dtype)t), CN_F32), x, sizeof x) &&
                  cn_read(cn_cast(cn_cast(operand(gpu, true, 0, 1), (cn_dtype)t), CN_F32), y, sizeof y);
        check(ok, "cast: %s", cn_error(gpu));
        for (int i = 0; i < REALS && ok; i++) {
            a[i] = (double)x[i], b[i] = (double)y[i];
            bool too_large = t == CN_I64 && fabs(a[i]) > INT32_MAX; /* whole numbers have 32 bits on the GPU */
            check(too_large || is_close(a[i], b[i]), "cast of %g to %s: %g, not %g", (double)reals[i],
                  cn_dtype_name((cn_dtype)t), b[i], a[i]);
        }
        cn_scope_end(cpu, s);
        cn_scope_end(gpu, u);
    }
}

/* ---- reductions ---- */

typedef cn_tensor *(*reduction)(cn_tensor *x, cn_dims axes, bool keepdim);

static double reduced(cn_ctx *ctx, reduction f, const float *x, int64_t rows, int64_t n, int row)
{
    double out[8] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *y = cn_cast(f(cn_from(ctx, CN_F32, CN_DIMS(rows, n), x), CN_DIMS(1), false), CN_F64);
    check(cn_read(y, out, (size_t)rows * sizeof *out), "reduction: %s", cn_error(ctx));
    cn_scope_end(ctx, s);
    return out[row];
}

/* Equal values, NaN and infinities at places that belong to different lanes and parts. */
static void test_reductions(void)
{
    enum { ROWS = 4, N = 40000 };
    static float x[ROWS * N];
    static const struct {
        const char *name;
        reduction f;
    } all[] = { { "max", cn_max },       { "min", cn_min }, { "argmax", cn_argmax },
                { "argmin", cn_argmin }, { "any", cn_any }, { "all", cn_all } };
    static const int sizes[] = { 1, 2, 7, 300, 5000, N };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k];
        memset(x, 0, sizeof x);
        for (int i = 0; i < n; i++) x[i] = (float)(i % 7 - 3), x[n + i] = i % 2 ? 0.0f : -0.0f;
        x[2 * n + n / 2] = x[2 * n + n - 1] = NAN;
        for (int i = 0; i < n; i++) x[3 * n + i] = i % 3 == 1 ? INFINITY : -INFINITY;
        for (size_t f = 0; f < sizeof all / sizeof *all; f++)
            for (int r = 0; r < ROWS; r++) {
                double a = reduced(cpu, all[f].f, x, ROWS, n, r), b = reduced(gpu, all[f].f, x, ROWS, n, r);
                check(a == b || (isnan(a) && isnan(b)), "%s of row %d, %d elements: %g, not %g", all[f].name, r, n, b,
                      a);
            }
    }
}

static double cube(double x) { return x * x * x; }
static double cube_slope(double x) { return 3 * x * x; }

/* A user's function runs on the CPU in the middle of a GPU's plan: counted, with the right values and gradients. */
static void test_user_functions(void)
{
    const int64_t before = cn_gpu_counted(gpu).fallbacks;
    cn_tensor *x = cn_param(cn_arange(gpu, CN_F32, -2, 3, 1));
    cn_tensor *y =
        cn_mul_s(cn_map_grad(cn_transpose(cn_reshape(cn_mul_s(x, 2), CN_DIMS(1, 5)), 0, 1), cube, cube_slope), 0.5);
    cn_backward(cn_sum(y, CN_ALL, false));
    float got[5], slope[5];
    check(cn_read(y, got, sizeof got) && cn_read(cn_grad_of(x), slope, sizeof slope), "%s", cn_error(gpu));
    for (int i = 0; i < 5; i++) {
        const float v = 2 * ((float)i - 2);
        check(got[i] == v * v * v / 2 && slope[i] == 3 * v * v, "%g: %g with gradient %g", v, got[i], slope[i]);
    }
    cn_tensor *whole = cn_map(cn_arange(gpu, CN_I32, 0, 4, 1), cube);
    check(cn_type(whole) == CN_F32 && cn_item(cn_sum(whole, CN_ALL, false)) == 36, "whole numbers become f32");
    check(cn_gpu_counted(gpu).fallbacks >= before + 3, "%lld fallbacks are counted",
          (long long)(cn_gpu_counted(gpu).fallbacks - before));
}

static bool is_left_out(const cn_op *op)
{
    return op->kind != CN_MAP || op->n_in < 1 || op->n_in > 2 || op->n_out != 1 || op->attr_size > 0;
}

int main(int argc, char **argv)
{
    cpu = cn_open(&(cn_desc){ .device = "cpu" });
    gpu = cn_open(&(cn_desc){ .device = "gpu" });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    } else {
        int n;
        const cn_op *const *ops = cn_ops(&n);
        static cn__kernels table;
        const cn__kernels *kernels = &table;
        cn__kernels_fill(&table, cn__isa_best());
        check(!cn_failed(gpu), "open: %s", cn_error(gpu));
        cn_error_clear(gpu);
        for (int i = 0; i < n; i++) {
            if (is_left_out(ops[i]) || (argc > 1 && strcmp(argv[1], ops[i]->name) != 0)) continue;
            check_group(ops[i]->name);
            if (cn__cpu_loop(kernels, ops[i], CN_F32)) test_op(ops[i], true);
            if (cn__cpu_loop(kernels, ops[i], CN_I32)) test_op(ops[i], false);
        }
        check_group("cast");
        if (argc == 1) test_casts();
        check_group("reductions");
        if (argc == 1) test_reductions();
        if (argc == 1) check_edges(gpu, CN_F32);
        check_group("numbers");
        if (argc == 1) check_numbers(gpu);
        check(cn_gpu_counted(gpu).fallbacks == 0, "%lld steps ran on the CPU",
              (long long)cn_gpu_counted(gpu).fallbacks);
        check_group("cn_map");
        if (argc == 1 || !strcmp(argv[1], "cn_map")) test_user_functions();
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}

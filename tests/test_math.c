/* The elementary functions of f32, over their whole range and against libm in f64: how far off in units in the last place,
   through the operators as this machine runs them, and once more as a machine without fused multiply-add would. The slopes
   of activations pass through 0: their error is counted in fixed units.

   A quick run thins out the sweep; CAIRN_TEST_LONG=1 takes every 17th float, which is minutes, and --long all 2^32, which
   is the better part of an hour. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "ops/map/gelu.h"
#include "ops/map/slope.h"
#include "support/check.h"

enum { BATCH = 1 << 16 };

static cn_ctx *cn;
static bool all_floats;

/* ---- what is tested ---- */

static double log_1_and_exp(double v) { return v > 40 ? v : log1p(exp(v)); }
static double ref_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double ref_log_sigmoid(double x) { return -log_1_and_exp(-x); }
static double ref_softplus(double x) { return log_1_and_exp(1.5 * x) / 1.5; }
static double ref_silu(double x) { return x < -700 ? -0.0 : x / (1 + exp(-x)); }
static double ref_gelu(double x) { return x < -38 ? -0.0 : x * 0.5 * erfc(-x * sqrt(0.5)); }
static double ref_gelu_tanh(double x)
{
    double v = sqrt(8 / acos(-1)) * (x + 0.044715 * x * x * x);
    return v < -700 ? -0.0 : x / (1 + exp(-v));
}
static double ref_mish(double x) { return x < -700 ? -0.0 : x * tanh(log_1_and_exp(x)); }

/* Infinity times a slope of 0 is NaN; that of gelu_tanh has x² in it. Short of that, slopes far from 0 are 0 or 1. */
static double far_slope(double x, bool finite) { return finite ? x > 0 : (double)NAN; }
static double ref_silu_slope(double x)
{
    double s = 1 / (1 + exp(-x));
    return fabs(x) > 200 ? far_slope(x, isfinite(x)) : s * (1 + x * (1 - s));
}
static double ref_gelu_slope(double x)
{
    double density = exp(-0.5 * x * x) / sqrt(2 * acos(-1));
    return fabs(x) > 200 ? far_slope(x, isfinite(x)) : 0.5 * erfc(-x * sqrt(0.5)) + x * density;
}
static double ref_gelu_tanh_slope(double x)
{
    double a = sqrt(8 / acos(-1)), s = 1 / (1 + exp(-a * (x + 0.044715 * x * x * x)));
    float square = (float)x * (float)x;
    return fabs(x) > 200 ? far_slope(x, isfinite(square)) : s * (1 + x * (1 - s) * a * (1 + 3 * 0.044715 * x * x));
}

static cn_tensor *softplus(cn_tensor *x) { return cn_softplus(x, 1.5, INFINITY); }
static cn_tensor *slope(const cn_op *op, cn_tensor *x) { return cn__slope(op, cn_ones_like(x), x); }
static cn_tensor *silu_slope(cn_tensor *x) { return slope(&cn__op_silu_backward, x); }
static cn_tensor *gelu_slope(cn_tensor *x) { return slope(&cn__op_gelu_backward, x); }
static cn_tensor *gelu_tanh_slope(cn_tensor *x) { return slope(&cn__op_gelu_tanh_backward, x); }

typedef struct function {
    const char *name;
    double unit; /* 0: that of the result's last place */
    double (*reference)(double x);
    cn_tensor *(*operator)(cn_tensor *x);
    void (*baseline)(const float *x, float *y, int n);
} function;

#define SLOPE_UNIT 0x1p-22

#define FUNCTIONS(F)                                                                                             \
    F(exp, 0, exp, cn_exp, cn__f32_exp(x, false))                                                                \
    F(expm1, 0, expm1, cn_expm1, cn__f32_expm1(x, false))                                                        \
    F(log, 0, log, cn_log, cn__f32_log(x, false))                                                                \
    F(log1p, 0, log1p, cn_log1p, cn__f32_log1p(x, false))                                                        \
    F(log2, 0, log2, cn_log2, cn__f32_log2(x, false))                                                            \
    F(sin, 0, sin, cn_sin, cn__f32_sin(x, false))                                                                \
    F(cos, 0, cos, cn_cos, cn__f32_cos(x, false))                                                                \
    F(tanh, 0, tanh, cn_tanh, cn__f32_tanh(x, false))                                                            \
    F(erf, 0, erf, cn_erf, cn__f32_erf(x, false))                                                                \
    F(sigmoid, 0, ref_sigmoid, cn_sigmoid, cn__f32_sigmoid(x, false))                                            \
    F(log_sigmoid, 0, ref_log_sigmoid, cn_log_sigmoid, cn__f32_log_sigmoid(x, false))                            \
    F(softplus, 0, ref_softplus, softplus, cn__f32_softplus(x, 1.5f, INFINITY, false))                           \
    F(silu, 0, ref_silu, cn_silu, cn__f32_silu(x, false))                                                        \
    F(gelu, 0, ref_gelu, cn_gelu, cn__f32_gelu(x, false))                                                        \
    F(gelu_tanh, 0, ref_gelu_tanh, cn_gelu_tanh, cn__f32_gelu_tanh(x, false))                                    \
    F(mish, 0, ref_mish, cn_mish, cn__f32_mish(x, false))                                                        \
    F(silu_slope, SLOPE_UNIT, ref_silu_slope, silu_slope, cn__f32_silu_slope(x, false))                          \
    F(gelu_slope, SLOPE_UNIT, ref_gelu_slope, gelu_slope, cn__f32_gelu_slope(x, false))                          \
    F(gelu_tanh_slope, SLOPE_UNIT, ref_gelu_tanh_slope, gelu_tanh_slope, cn__f32_gelu_tanh_slope(x, false))

#define BASELINE(name, unit, reference, op, expression)                   \
    static void baseline_##name(const float *in, float *out, int n)       \
    {                                                                     \
        for (int i = 0; i < n; i++) {                                     \
            float x = in[i];                                              \
            out[i] = expression;                                          \
        }                                                                 \
    }
FUNCTIONS(BASELINE)

#define ROW(name, unit, reference, op, expression) { #name, unit, reference, op, baseline_##name },
static const function functions[] = { FUNCTIONS(ROW) };
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- how far off ---- */

static const double bound = 2;

/* In fixed units, or units of the last place of the true value, of which there are no smaller ones than 2^-149. */
static double error_of(double expected, float got, double fixed)
{
    if (isnan(expected) || isnan(got)) return isnan(expected) && isnan(got) ? 0 : INFINITY;
    if (isinf((float)expected) && isinf(got)) return (float)expected == got ? 0 : INFINITY;
    if (isinf(expected)) return INFINITY;
    int exponent;
    frexp(expected, &exponent);
    double unit = fixed ? fixed : ldexp(1, exponent < -125 ? -149 : exponent - 24);
    double value = isinf(got) ? copysign(0x1p128, got) : got;
    return fabs(value - expected) / unit;
}

typedef struct worst {
    double error;
    float at, got;
} worst;

static void look(worst *w, const function *f, const float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++) {
        double error = error_of(f->reference(x[i]), y[i], f->unit);
        if (error > w->error) *w = (worst){ error, x[i], y[i] };
    }
}

static bool apply(const function *f, const float *x, float *y, int n)
{
    cn_scope s = cn_scope_begin(cn);
    bool ok = cn_read(f->operator(cn_from(cn, CN_F32, CN_DIMS(n), x)), y, (size_t)n * sizeof *y);
    cn_scope_end(cn, s);
    return check(ok, "%s: %s", f->name, cn_error(cn));
}

/* The vector code gives far arguments back: the operator's second pass is what deals with them. */
static bool has_no_baseline(const function *f, float x)
{
    bool periodic = f->operator == cn_sin || f->operator == cn_cos;
    return periodic && !(fabsf(x) < CN__FAR);
}

static void report(const function *f, const char *way, const worst *w)
{
    check(w->error <= bound, "%s (%s): %.3f units off at %a: %a", f->name, way, w->error, (double)w->at, (double)w->got);
}

/* Steps that are odd, so that the last bits vary too. */
static uint64_t step(void) { return all_floats ? 1 : test_is_long() ? 17 : test_is_quick() ? 65537 : 2053; }

static void sweep(const function *f)
{
    static float x[BATCH], y[BATCH], z[BATCH];
    worst here = { 0 }, baseline = { 0 };
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
        int n = 0;
        for (; n < BATCH && bits < UINT64_C(1) << 32; bits += step()) x[n++] = cn__f32_of_bits((uint32_t)bits);
        if (!apply(f, x, y, n)) return;
        f->baseline(x, z, n);
        for (int i = 0; i < n; i++)
            if (has_no_baseline(f, x[i])) z[i] = y[i];
        look(&here, f, x, y, n);
        look(&baseline, f, x, z, n);
    }
    report(f, "as run", &here);
    report(f, "without fma", &baseline);
    printf("%-15s %.3f units at %.8g; without fma %.3f at %.8g\n", f->name, here.error, (double)here.at, baseline.error,
           (double)baseline.at);
}

/* ---- special values ---- */

static const float special[] = {
    0, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 1, -1, 0x1p-149f, -0x1p-149f, 0x1p-126f, -0x1p-126f, 0x1.fffffcp-127f,
    0x1.fffffep127f, -0x1.fffffep127f, 88.72283f, 88.72284f, -87.33654f, -87.33655f, -103.972f, -103.973f, -104, 89, 3.93f,
    9.1f, 0.55f, -11, 6, -14.5f, -10.8f, 8, -14.7f, -105, -110, 30, 0x1p21f, -0x1p21f, 0x1.fffffep20f, 0x1p63f, -0x1p63f,
    0x1p64f, -0x1p64f, 1e30f, 2, -2, 0x1.fffffep-1f, 0x1.000002p0f,
};
enum { N_SPECIAL = sizeof special / sizeof *special };

static void specials(const function *f)
{
    float y[N_SPECIAL], z[N_SPECIAL];
    if (!apply(f, special, y, N_SPECIAL)) return;
    f->baseline(special, z, N_SPECIAL);
    for (int i = 0; i < N_SPECIAL; i++) {
        float x = special[i];
        double expected = f->reference(x);
        bool zero = x == 0 && expected == 0; /* keeps its sign */
        check(error_of(expected, y[i], f->unit) <= bound && (!zero || !signbit(y[i]) == !signbit(expected)),
              "%s(%a) is %a, not %a", f->name, (double)x, (double)y[i], expected);
        if (has_no_baseline(f, x)) continue;
        check(error_of(expected, z[i], f->unit) <= bound && (!zero || !signbit(z[i]) == !signbit(expected)),
              "%s(%a) without fma is %a, not %a", f->name, (double)x, (double)z[i], expected);
    }
}

/* ---- pow: two operands ---- */

static void look_pow(worst *w, float *at, const float *x, const float *y, const float *z, int n)
{
    for (int i = 0; i < n; i++) {
        double error = error_of(pow(x[i], y[i]), z[i], 0);
        if (error <= w->error) continue;
        *w = (worst){ error, x[i], z[i] };
        *at = y[i];
    }
}

static void try_pow(const float *x, const float *y, int n, worst *here, worst *baseline, float at[2])
{
    static float z[BATCH];
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *power = cn_pow(cn_from(cn, CN_F32, CN_DIMS(n), x), cn_from(cn, CN_F32, CN_DIMS(n), y));
    bool ok = cn_read(power, z, (size_t)n * sizeof *z);
    cn_scope_end(cn, s);
    if (!check(ok, "pow: %s", cn_error(cn))) return;
    look_pow(here, &at[0], x, y, z, n);
    for (int i = 0; i < n; i++) z[i] = cn__f32_pow(x[i], y[i], false);
    look_pow(baseline, &at[1], x, y, z, n);
}

/* Any base with exponents such that the result is mostly in range; any pair of special values. */
static void powers(void)
{
    static float x[BATCH], y[BATCH];
    worst here = { 0 }, baseline = { 0 };
    float at[2] = { 0 };
    uint32_t state = 1;
    for (int64_t batch = 0, batches = all_floats || test_is_long() ? 1024 : test_is_quick() ? 1 : 16; batch < batches; batch++) {
        for (int i = 0; i < BATCH; i++) {
            state = state * 1664525u + 1013904223u;
            x[i] = cn__f32_of_bits(state ^ state >> 15);
            state = state * 1664525u + 1013904223u;
            double reach = 160 * (state / 0x1p31 - 1), log = log2(fabs(x[i]));
            y[i] = isfinite(log) && log != 0 ? (float)(reach / log) : (float)reach;
            if (i % 4 == 0) y[i] = rintf(y[i]);
        }
        try_pow(x, y, BATCH, &here, &baseline, at);
    }
    int n = 0;
    for (int i = 0; i < N_SPECIAL; i++)
        for (int j = 0; j < N_SPECIAL; j++, n++) x[n] = special[i], y[n] = special[j];
    try_pow(x, y, n, &here, &baseline, at);
    check(here.error <= bound, "pow(%a, %a): %a", (double)here.at, (double)at[0], (double)here.got);
    check(baseline.error <= bound, "pow(%a, %a) without fma: %a", (double)baseline.at, (double)at[1], (double)baseline.got);
    printf("%-15s %.3f units at %.8g, %.8g; without fma %.3f at %.8g, %.8g\n", "pow", here.error, (double)here.at,
           (double)at[0], baseline.error, (double)baseline.at, (double)at[1]);
}

/* An element's bits are the same wherever it lies: in the vector part, in the rest, beside one that takes the second pass. */
static void places(const function *f)
{
    enum { N = 67 };
    float x[N], y[N], alone;
    for (int i = 0; i < N; i++) x[i] = i == 40 ? 1e30f : (float)(i - 33) * 0.37f;
    if (!apply(f, x, y, N)) return;
    for (int i = 0; i < N; i++) {
        if (!apply(f, &x[i], &alone, 1)) return;
        check(cn__bits_of_f32(alone) == cn__bits_of_f32(y[i]) || isnan(alone), "%s(%a) differs by place", f->name, (double)x[i]);
    }
}

int main(int argc, char **argv)
{
    all_floats = argc > 1 && !strcmp(argv[1], "--long");
    cn = cn_open(NULL);
    if (!cn) return 1;
    for (int i = 0; i < N_FUNCTIONS; i++) {
        check_group(functions[i].name);
        specials(&functions[i]);
        places(&functions[i]);
        sweep(&functions[i]);
    }
    check_group("pow");
    powers();
    cn_close(cn);
    return finish();
}

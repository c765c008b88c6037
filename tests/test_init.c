/* Initial values: moments and bounds of what is drawn, exactness of what is made, the same seed giving the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/init.h"
#include "support/check.h"
#include "support/faulty.h"

typedef struct moments {
    double mean, std, low, high, fourth; /* fourth: of (x - mean) / std; 3 if normal, 1.8 if uniform */
} moments;

static moments moments_of(cn_tensor *t)
{
    const int64_t n = cn_numel(t);
    double *v = malloc((size_t)n * sizeof *v);
    moments m = { .low = INFINITY, .high = -INFINITY };
    cn_read_f64(t, v, n);
    for (int64_t i = 0; i < n; i++) {
        m.mean += v[i] / (double)n;
        m.low = fmin(m.low, v[i]), m.high = fmax(m.high, v[i]);
    }
    for (int64_t i = 0; i < n; i++) m.std += (v[i] - m.mean) * (v[i] - m.mean) / (double)n;
    for (int64_t i = 0; i < n; i++) m.fourth += pow(v[i] - m.mean, 4) / (m.std * m.std) / (double)n;
    m.std = sqrt(m.std);
    free(v);
    return m;
}

enum { ROWS = 300, COLS = 400, COUNT = ROWS * COLS };

static void drawn_as(cn_ctx *cn, cn_tensor *t, const char *what, bool done, double mean, double std, double fourth)
{
    check(done, "%s: %s", what, cn_error(cn));
    const moments m = moments_of(t);
    const double n = (double)cn_numel(t);
    check(fabs(m.mean - mean) < 5 * std / sqrt(n), "%s: mean %g, not %g", what, m.mean, mean);
    check(fabs(m.std / std - 1) < 5 / sqrt(2 * n), "%s: std %g, not %g", what, m.std, std);
    check(fabs(m.fourth - fourth) < 0.1, "%s: fourth moment %g, not %g", what, m.fourth, fourth);
    check(cn_requires_grad(t), "%s: still requires a gradient", what);
}

static cn_tensor *parameter(cn_ctx *cn, cn_dtype t, cn_dims shape) { return cn_param(cn_zeros(cn, t, shape)); }

static void plain_draws(cn_ctx *cn, cn_dtype dtype)
{
    check_group(cn_dtype_name(dtype));
    cn_tensor *w = parameter(cn, dtype, CN_DIMS(ROWS, COLS));
    drawn_as(cn, w, "uniform", cn_init_uniform(w, -1, 3), 1, 4 / sqrt(12), 1.8);
    moments m = moments_of(w);
    check(m.low >= -1 && m.high <= 3 && m.low < -0.99 && m.high > 2.99, "within -1 and 3: %g %g", m.low, m.high);
    drawn_as(cn, w, "normal", cn_init_normal(w, 2, 0.5), 2, 0.5, 3);
    check(cn_type(w) == dtype, "its dtype stays");
    cn_release(w);
}

/* Mean and deviation of a normal distribution cut at a and b (in its own units). */
static void cut_moments(double a, double b, double *mean, double *std)
{
    const double pi = 3.14159265358979323846;
    const double fa = exp(-a * a / 2) / sqrt(2 * pi), fb = exp(-b * b / 2) / sqrt(2 * pi);
    const double z = (erf(b / sqrt(2)) - erf(a / sqrt(2))) / 2;
    *mean = (fa - fb) / z;
    *std = sqrt(1 + (a * fa - b * fb) / z - *mean * *mean);
}

static void truncated(cn_ctx *cn)
{
    check_group("trunc_normal");
    const double cuts[][2] = { { -2, 2 }, { -1, 0.5 }, { 0.5, 3 }, { -6, 6 }, { 3, 4 } };
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(ROWS, COLS));
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const double a = cuts[i][0], b = cuts[i][1];
        double mean, std;
        cut_moments(a, b, &mean, &std);
        check(cn_init_trunc_normal(w, 1, 0.02, 1 + 0.02 * a, 1 + 0.02 * b), "%s", cn_error(cn));
        const moments m = moments_of(w);
        const double got = (m.mean - 1) / 0.02, deviation = m.std / 0.02;
        check(fabs(got - mean) < 5 * std / sqrt(COUNT) + 1e-5, "%g to %g: mean %g, not %g", a, b, got, mean);
        check(fabs(deviation / std - 1) < 0.02, "%g to %g: std %g, not %g", a, b, deviation, std);
        check(m.low >= 1 + 0.02 * a - 1e-6 && m.high <= 1 + 0.02 * b + 1e-6, "%g to %g: %g to %g", a, b, m.low, m.high);
    }
    /* without limits it is the normal distribution */
    check(cn_init_trunc_normal(w, 0, 1, -INFINITY, INFINITY), "%s", cn_error(cn));
    const moments m = moments_of(w);
    check(fabs(m.std - 1) < 0.02 && fabs(m.fourth - 3) < 0.1 && m.high > 3.5 && m.high < 7, "no limits: %g, %g, %g",
          m.std, m.fourth, m.high);
    cn_release(w);
}

static void by_fans(cn_ctx *cn)
{
    check_group("fans");
    const double out = 60, in = 40, kernel = 15;
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(60, 40, 3, 5));
    int64_t fan_in = 0, fan_out = 0;
    check(cn_init_fans(w, &fan_in, &fan_out) && fan_in == 600 && fan_out == 900, "%lld, %lld", (long long)fan_in,
          (long long)fan_out);
    const double xavier = 1.5 * sqrt(2 / ((in + out) * kernel)), he = sqrt(2 / (in * kernel));
    drawn_as(cn, w, "xavier_uniform", cn_init_xavier_uniform(w, 1.5), 0, xavier, 1.8);
    check(moments_of(w).high <= sqrt(3) * xavier * (1 + 1e-6), "its bound");
    drawn_as(cn, w, "xavier_normal", cn_init_xavier_normal(w, 1.5), 0, xavier, 3);
    drawn_as(cn, w, "kaiming_uniform", cn_init_kaiming_uniform(w, 0, CN_FAN_IN, NULL), 0, he, 1.8);
    drawn_as(cn, w, "kaiming_uniform, a = √5", cn_init_kaiming_uniform(w, sqrt(5), CN_FAN_IN, "leaky_relu"), 0,
             sqrt(1 / (3 * in * kernel)), 1.8);
    drawn_as(cn, w, "kaiming_normal", cn_init_kaiming_normal(w, 0, CN_FAN_IN, "relu"), 0, he, 3);
    drawn_as(cn, w, "kaiming_normal, out", cn_init_kaiming_normal(w, 0, CN_FAN_OUT, "tanh"), 0,
             5.0 / 3 / sqrt(out * kernel), 3);
    check(cn_init_gain("linear", 0) == 1 && cn_init_gain("conv2d", 0) == 1 && cn_init_gain("sigmoid", 0) == 1 &&
              fabs(cn_init_gain("relu", 0) - sqrt(2)) < 1e-15 && cn_init_gain("selu", 0) == 0.75 &&
              fabs(cn_init_gain("leaky_relu", 0.2) - sqrt(2 / 1.04)) < 1e-15 && isnan(cn_init_gain("swish", 0)),
          "gains");
    cn_release(w);
}

/* ---- what is made exactly ---- */

static double largest(cn_tensor *t) { return cn_item(cn_max(cn_abs(t), CN_ALL, false)); }

static void constants(cn_ctx *cn)
{
    check_group("constants");
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(3, 4));
    check(cn_init_ones(w) && largest(cn_sub_s(w, 1)) == 0, "ones");
    check(cn_init_constant(w, -2.5) && largest(cn_add_s(w, 2.5)) == 0, "a constant");
    check(cn_init_eye(w) && largest(cn_sub(w, cn_eye(cn, CN_F32, 3, 4))) == 0, "eye");
    check(cn_init_zeros(w) && largest(w) == 0, "zeros");
    check(cn_requires_grad(w), "and still requires a gradient");
    cn_tensor *whole = cn_keep(cn_ones(cn, CN_I64, CN_DIMS(2)));
    check(cn_init_zeros(whole) && largest(whole) == 0 && !cn_requires_grad(whole), "of whole numbers too");
    cn_release(w), cn_release(whole);
}

/* A convolution with it leaves channels as they are: in groups, each group's first channels. */
static void dirac(cn_ctx *cn)
{
    check_group("dirac");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 4, 6, 7)), *w = parameter(cn, CN_F32, CN_DIMS(4, 4, 3, 5));
    check(cn_init_dirac(w, 1), "%s", cn_error(cn));
    cn_tensor *y = cn_conv2d(x, w, NULL, &(cn_conv_desc){ .padding = { 1, 2 } });
    check(largest(cn_sub(y, x)) == 0, "a convolution that does nothing");
    cn_tensor *g = parameter(cn, CN_F32, CN_DIMS(4, 2, 3));
    check(cn_init_dirac(g, 2), "%s", cn_error(cn));
    cn_tensor *row = cn_select(x, 2, 0); /* (2,4,7) */
    cn_conv_desc grouped = { .padding = { 1 }, .groups = 2 };
    check(largest(cn_sub(cn_conv1d(row, g, NULL, &grouped), row)) == 0, "in groups");
    cn_tensor *wide = parameter(cn, CN_F32, CN_DIMS(5, 3, 2, 2, 2));
    check(cn_init_dirac(wide, 1) && cn_item(cn_sum(wide, CN_ALL, false)) == 3 &&
              cn_get(wide, CN_DIMS(2, 2, 1, 1, 1)) == 1,
          "as many as there are of both");
    cn_release(w), cn_release(g), cn_release(wide);
    cn_scope_end(cn, s);
}

static void orthogonal(cn_ctx *cn)
{
    check_group("orthogonal");
    const cn_dims shapes[] = { CN_DIMS(30, 50), CN_DIMS(50, 30), CN_DIMS(40, 40),   CN_DIMS(8, 3, 2, 5),
                               CN_DIMS(1, 9),   CN_DIMS(9, 1),   CN_DIMS(150, 200), CN_DIMS(129, 129) };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *w = parameter(cn, CN_F64, shapes[i]);
        check(cn_init_orthogonal(w, 1.5), "%s", cn_error(cn));
        cn_tensor *flat = cn_reshape(w, CN_DIMS(shapes[i].v[0], -1));
        const bool wide = cn_size(flat, 0) <= cn_size(flat, 1);
        cn_tensor *turned = cn_transpose(flat, 0, 1);
        cn_tensor *product = wide ? cn_matmul(flat, turned) : cn_matmul(turned, flat);
        const int64_t n = cn_size(product, 0);
        check(largest(cn_sub(product, cn_mul_s(cn_eye(cn, CN_F64, n, n), 2.25))) < 1e-13, "case %zu", i);
        cn_release(w);
        cn_scope_end(cn, s);
    }
    /* no direction is preferred: the mean of many is 0 */
    double sum = 0, first = 0;
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(3, 3));
    for (int i = 0; i < 400; i++) {
        cn_init_orthogonal(w, 1);
        sum += cn_get(w, CN_DIMS(2, 2)), first += cn_get(w, CN_DIMS(0, 0));
    }
    check(fabs(sum / 400) < 0.15 && fabs(first / 400) < 0.15, "means %g, %g", sum / 400, first / 400);
    cn_release(w);
}

static void sparse(cn_ctx *cn)
{
    check_group("sparse");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(ROWS, COLS));
    check(cn_init_sparse(w, 0.301, 0.01), "%s", cn_error(cn)); /* 90.3: rounded up */
    cn_tensor *zero = cn_cast(cn_eq_s(w, 0), CN_F32);
    cn_tensor *by_column = cn_sum(zero, CN_DIMS(0), false), *by_row = cn_sum(zero, CN_DIMS(1), false);
    check(cn_item(cn_min(by_column, CN_ALL, false)) == 91 && cn_item(cn_max(by_column, CN_ALL, false)) == 91,
          "91 of each column");
    check(cn_item(cn_max(by_row, CN_ALL, false)) < 175 && cn_item(cn_min(by_row, CN_ALL, false)) > 70,
          "spread over the rows");
    const moments m = moments_of(w);
    check(fabs(m.std - 0.01 * sqrt(209.0 / 300)) < 1e-4, "the others are normal: %g", m.std);
    cn_release(w);
    cn_scope_end(cn, s);
}

/* ---- seeds ---- */

static void seeds(cn_ctx *cn)
{
    check_group("seeds");
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(20, 30));
    double one[600], two[600];
    for (int kind = 0; kind < 5; kind++) {
        for (int i = 0; i < 3; i++) {
            if (i < 2) cn_seed(cn, 9); /* the third call goes on from there */
            bool ok = kind == 0   ? cn_init_uniform(w, 0, 1)
                      : kind == 1 ? cn_init_normal(w, 0, 1)
                      : kind == 2 ? cn_init_trunc_normal(w, 0, 1, -2, 2)
                      : kind == 3 ? cn_init_orthogonal(w, 1)
                                  : cn_init_sparse(w, 0.2, 1);
            check(ok && cn_read_f64(w, i == 0 ? one : two, 600), "%s", cn_error(cn));
            if (i == 1) check(memcmp(one, two, sizeof one) == 0, "kind %d: the same seed, the same numbers", kind);
        }
        check(memcmp(one, two, sizeof one) != 0, "kind %d: others the next time", kind);
    }
    cn_release(w);
}

/* ---- refusals ---- */

static void refused(cn_ctx *cn, const char *words, bool done)
{
    check(!done && strstr(cn_error(cn), words), "%s: %s", words, cn_failed(cn) ? cn_error(cn) : "no error");
    cn_error_clear(cn);
}

static void refusals(cn_ctx *cn)
{
    check_group("refusals");
    cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(3, 4)), *b = parameter(cn, CN_F32, CN_DIMS(3));
    cn_tensor *whole = cn_keep(cn_ones(cn, CN_I64, CN_DIMS(3, 4)));
    refused(cn, "init_uniform: low must be ≤ high, both finite, got 2 and 1", cn_init_uniform(w, 2, 1));
    refused(cn, "init_uniform: the tensor must be of a floating type, got i64", cn_init_uniform(whole, 0, 1));
    refused(cn, "init_normal: mean must be finite and std ≥ 0, got 0 and -1", cn_init_normal(w, 0, -1));
    refused(cn, "init_trunc_normal: std must be > 0 and a < b, got mean 0, std 1, a 2, b -2",
            cn_init_trunc_normal(w, 0, 1, 2, -2));
    refused(cn, "init_trunc_normal: [a, b] must hold some probability, got [5, 6]",
            cn_init_trunc_normal(w, 0, 0.01, 5, 6));
    refused(cn, "init_eye: the tensor must have 2 axes, got shape [3]", cn_init_eye(b));
    refused(cn, "init_dirac: the tensor must have 3 to 5 axes, got shape [3,4]", cn_init_dirac(w, 1));
    refused(cn, "init_xavier_uniform: the tensor must have 2 to 8 axes, got shape [3]", cn_init_xavier_uniform(b, 1));
    refused(cn, "init_xavier_normal: gain must be finite and ≥ 0, got nan", cn_init_xavier_normal(w, NAN));
    refused(cn, "init_kaiming_normal: cn_init_gain must know the nonlinearity",
            cn_init_kaiming_normal(w, 0, CN_FAN_IN, "swish"));
    refused(cn, "init_kaiming_uniform: mode must be CN_FAN_IN or CN_FAN_OUT, got 7",
            cn_init_kaiming_uniform(w, 0, (cn_fan)7, "relu"));
    refused(cn, "init_orthogonal: the tensor must have 2 to 8 axes, got shape [3]", cn_init_orthogonal(b, 1));
    refused(cn, "init_sparse: sparsity must be from 0 to 1 and std ≥ 0, got 1.5", cn_init_sparse(w, 1.5, 1));
    check(largest(w) == 0 && largest(cn_sub_s(whole, 1)) == 0, "values are as they were");
    check(!cn_init_zeros(NULL) && !cn_init_uniform(NULL, 0, 1) && !cn_init_orthogonal(NULL, 1) &&
              !cn_init_fans(NULL, NULL, NULL),
          "NULL in, false out");
    cn_tensor *nothing = parameter(cn, CN_F32, CN_DIMS(0, 4));
    check(cn_init_kaiming_uniform(nothing, 0, CN_FAN_OUT, NULL) && cn_init_orthogonal(nothing, 1), "of no elements: %s",
          cn_error(cn));
    cn_release(w), cn_release(b), cn_release(whole), cn_release(nothing);
}

/* ---- memory that runs out ---- */

static void out_of_memory(void)
{
    check_group("out of memory");
    int64_t n = 1;
    for (bool done = false; !done && n < 2000; n++) {
        faulty f = { .fail_at = n };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (cn) {
            cn_tensor *w = parameter(cn, CN_F32, CN_DIMS(6, 4, 3)), *flat = parameter(cn, CN_F32, CN_DIMS(6, 4));
            bool ok = cn_init_orthogonal(w, 1) && cn_init_trunc_normal(w, 0, 1, -1, 1) && cn_init_dirac(w, 1) &&
                      cn_init_sparse(flat, 0.5, 1) && cn_eval(w) && cn_eval(flat);
            check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(cn));
            check(cn_grad_enabled(cn), "allocation %lld: gradients are recorded again", (long long)n);
            done = ok && f.calls < n;
            cn_close(cn);
        }
        check(f.blocks == 0, "allocation %lld: %lld blocks left", (long long)n, (long long)f.blocks);
    }
    check(n > 20 && n < 2000, "%lld allocations", (long long)n);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 17 });
    const cn_dtype dtypes[] = { CN_F32, CN_F64, CN_F16 };
    for (int i = 0; i < 3; i++) plain_draws(cn, dtypes[i]);
    truncated(cn);
    by_fans(cn);
    constants(cn);
    dirac(cn);
    orthogonal(cn);
    sparse(cn);
    seeds(cn);
    refusals(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    out_of_memory();
    return finish();
}

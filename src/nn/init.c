/* Initial values of parameters (torch.nn.init): operators compute or draw them, then they are assigned. */
#include <math.h>
#include <stdio.h>

#include "cairn/init.h"
#include "core/layout.h"
#include "nn/nn.h"

/* ---- assigning ---- */

/* Between begin and finish no gradients are recorded. finish frees the tensors made since begin. */
static cn_scope begin(cn_tensor *t)
{
    cn_no_grad_begin(t->ctx);
    return cn_scope_begin(t->ctx);
}

static bool finish(cn_scope s, cn_tensor *t, cn_tensor *value)
{
    const bool ok = cn_assign(t, value);
    cn_no_grad_end(t->ctx);
    cn_scope_end(t->ctx, s);
    return ok;
}

/* Halves are drawn in f32. */
static cn_dtype drawn_dtype(const cn_tensor *t) { return cn_type(t) == CN_F64 ? CN_F64 : CN_F32; }

static bool is_float(const char *who, cn_tensor *t)
{
    if (cn_dtype_is_float(cn_type(t))) return true;
    return cn__fail(t->ctx, CN_BAD_DTYPE, "%s: the tensor must be of a floating type, got %s", who,
                    cn_dtype_name(cn_type(t)));
}

static bool has_axes(const char *who, cn_tensor *t, int least, int most)
{
    if (cn_ndim(t) >= least && cn_ndim(t) <= most) return true;
    char shape[128], range[32];
    if (least == most) snprintf(range, sizeof range, "%d", least);
    else snprintf(range, sizeof range, "%d to %d", least, most);
    return cn__fail(t->ctx, CN_BAD_SHAPE, "%s: the tensor must have %s axes, got shape %s", who, range,
                    cn__shape_text(&cn__result_of(t)->meta->layout, shape, sizeof shape));
}

/* ---- plain values ---- */

bool cn_init_constant(cn_tensor *t, double value)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    cn_scope s = begin(t);
    return finish(s, t, cn_full_like(t, value));
}

bool cn_init_ones(cn_tensor *t) { return cn_init_constant(t, 1); }
bool cn_init_zeros(cn_tensor *t) { return cn_init_constant(t, 0); }

bool cn_init_eye(cn_tensor *t)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!has_axes("init_eye", t, 2, 2)) return false;
    cn_scope s = begin(t);
    return finish(s, t, cn_eye(t->ctx, cn_type(t), cn_size(t, 0), cn_size(t, 1)));
}

/* An identity matrix for each group, in the middle of the kernel. */
bool cn_init_dirac(cn_tensor *t, int64_t groups)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!has_axes("init_dirac", t, 3, 5)) return false;
    const int64_t out = cn_size(t, 0), in = cn_size(t, 1);
    if (groups < 1 || out % groups)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT,
                        "init_dirac: groups must be > 0 and divide the %lld channels, got %lld", (long long)out,
                        (long long)groups);
    cn_dims shape = { .n = cn_ndim(t), .v = { out, in, 1, 1, 1 } }, pad = { .n = 2 * (cn_ndim(t) - 2) };
    for (int d = 0; d < pad.n / 2; d++) {
        const int64_t size = cn_size(t, -1 - d);
        pad.v[2 * d] = size / 2;
        pad.v[2 * d + 1] = size - 1 - size / 2;
    }
    cn_scope s = begin(t);
    cn_tensor *all = cn_repeat(cn_eye(t->ctx, cn_type(t), out / groups, in), CN_DIMS(groups, 1));
    return finish(s, t, cn_pad(cn_reshape(all, shape), pad, CN_PAD_CONSTANT, 0));
}

/* ---- drawn values ---- */

static cn_tensor *uniform(cn_tensor *t, double low, double high)
{
    return cn_add_s(cn_mul_s(cn_rand(t->ctx, drawn_dtype(t), cn_shape(t)), high - low), low);
}

static cn_tensor *normal(cn_tensor *t, double mean, double std)
{
    return cn_add_s(cn_mul_s(cn_randn(t->ctx, drawn_dtype(t), cn_shape(t)), std), mean);
}

bool cn_init_uniform(cn_tensor *t, double low, double high)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!is_float("init_uniform", t)) return false;
    if (!(low <= high) || !isfinite(high - low))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "init_uniform: low must be ≤ high, both finite, got %g and %g", low,
                        high);
    cn_scope s = begin(t);
    return finish(s, t, uniform(t, low, high));
}

bool cn_init_normal(cn_tensor *t, double mean, double std)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!is_float("init_normal", t)) return false;
    if (!(std >= 0) || !isfinite(std) || !isfinite(mean))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "init_normal: mean must be finite and std ≥ 0, got %g and %g", mean,
                        std);
    cn_scope s = begin(t);
    return finish(s, t, normal(t, mean, std));
}

/* The y with erf(y) = x, for |x| < 1. A closed approximation is off by up to 0.002. Two steps of Halley's method make
   it exact: y - e / (1 + y e), e = (erf(y) - x) √π/2 e^(y²) */
static cn_tensor *erf_inverse(cn_tensor *x)
{
    const double k = 0.147, pi = 3.14159265358979323846;
    cn_tensor *l = cn_log1p(cn_neg(cn_square(x)));
    cn_tensor *h = cn_add_s(cn_mul_s(l, 0.5), 2 / (pi * k));
    cn_tensor *y = cn_sqrt(cn_clamp(cn_sub(cn_sqrt(cn_sub(cn_square(h), cn_mul_s(l, 1 / k))), h), 0, INFINITY));
    y = cn_mul(cn_sign(x), y);
    for (int step = 0; step < 2; step++) {
        cn_tensor *e = cn_mul(cn_sub(cn_erf(y), x), cn_mul_s(cn_exp(cn_square(y)), sqrt(pi) / 2));
        y = cn_sub(y, cn_div(e, cn_add_s(cn_mul(y, e), 1)));
    }
    return y;
}

/* The inverse of the distribution function, at a uniform number between the function's values at a and b. */
bool cn_init_trunc_normal(cn_tensor *t, double mean, double std, double a, double b)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!is_float("init_trunc_normal", t)) return false;
    if (!(std > 0) || !isfinite(std) || !isfinite(mean) || !(a < b))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT,
                        "init_trunc_normal: std must be > 0 and a < b, got mean %g, std %g, a %g, b %g", mean, std, a,
                        b);
    const double low = erf((a - mean) / std / sqrt(2)), high = erf((b - mean) / std / sqrt(2));
    if (!(low < high))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT,
                        "init_trunc_normal: [a, b] must hold some probability, got [%g, %g] with mean %g, std %g", a, b,
                        mean, std);
    cn_scope s = begin(t);
    cn_tensor *u = cn_rand(t->ctx, CN_F64, cn_shape(t));
    u = cn_clamp(cn_add_s(cn_mul_s(u, high - low), low), -1 + 0x1p-53, 1 - 0x1p-53);
    cn_tensor *y = cn_add_s(cn_mul_s(erf_inverse(u), std * sqrt(2)), mean);
    return finish(s, t, cn_clamp(y, a, b));
}

/* ---- by fans ---- */

bool cn_init_fans(const cn_tensor *t, int64_t *fan_in, int64_t *fan_out)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!has_axes("init_fans", (cn_tensor *)t, 2, CN_MAX_DIMS)) return false;
    int64_t kernel = 1;
    for (int d = 2; d < cn_ndim(t); d++) kernel *= cn_size(t, d);
    if (fan_in) *fan_in = cn_size(t, 1) * kernel;
    if (fan_out) *fan_out = cn_size(t, 0) * kernel;
    return true;
}

double cn_init_gain(const char *nonlinearity, double param)
{
    static const char *const linear[] = { "linear",           "conv1d",           "conv2d",           "conv3d",
                                          "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid" };
    if (!nonlinearity) return NAN;
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        if (strcmp(nonlinearity, linear[i]) == 0) return 1;
    if (strcmp(nonlinearity, "tanh") == 0) return 5.0 / 3;
    if (strcmp(nonlinearity, "relu") == 0) return sqrt(2);
    if (strcmp(nonlinearity, "leaky_relu") == 0) return sqrt(2 / (1 + param * param));
    if (strcmp(nonlinearity, "selu") == 0) return 0.75;
    return NAN;
}

static bool xavier_std(const char *who, cn_tensor *t, double gain, double *std)
{
    int64_t in, out;
    if (!is_float(who, t) || !cn_init_fans(t, &in, &out)) return false;
    if (!isfinite(gain) || gain < 0)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "%s: gain must be finite and ≥ 0, got %g", who, gain);
    *std = in + out > 0 ? gain * sqrt(2 / ((double)in + (double)out)) : 0;
    return true;
}

static bool kaiming_std(const char *who, cn_tensor *t, double a, cn_fan mode, const char *name, double *std)
{
    int64_t in, out;
    if (!is_float(who, t) || !cn_init_fans(t, &in, &out)) return false;
    const double gain = cn_init_gain(name ? name : "leaky_relu", a);
    if (isnan(gain))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT,
                        "%s: cn_init_gain must know the nonlinearity and its number, got \"%s\" and %g", who,
                        name ? name : "leaky_relu", a);
    if (mode != CN_FAN_IN && mode != CN_FAN_OUT)
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "%s: mode must be CN_FAN_IN or CN_FAN_OUT, got %d", who, (int)mode);
    const int64_t fan = mode == CN_FAN_IN ? in : out;
    *std = fan > 0 ? gain / sqrt((double)fan) : 0; /* a tensor without elements draws nothing */
    return true;
}

/* Uniform in ±bound has variance bound² / 3. */
static bool fill_uniform(cn_tensor *t, double std) { return cn_init_uniform(t, -sqrt(3) * std, sqrt(3) * std); }

bool cn_init_xavier_uniform(cn_tensor *t, double gain)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    double std = 0;
    return xavier_std("init_xavier_uniform", t, gain, &std) && fill_uniform(t, std);
}

bool cn_init_xavier_normal(cn_tensor *t, double gain)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    double std = 0;
    return xavier_std("init_xavier_normal", t, gain, &std) && cn_init_normal(t, 0, std);
}

bool cn_init_kaiming_uniform(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    double std = 0;
    return kaiming_std("init_kaiming_uniform", t, a, mode, nonlinearity, &std) && fill_uniform(t, std);
}

bool cn_init_kaiming_normal(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    double std = 0;
    return kaiming_std("init_kaiming_normal", t, a, mode, nonlinearity, &std) && cn_init_normal(t, 0, std);
}

/* ---- orthogonal ---- */

enum { BLOCK = 32 }; /* vectors that are made orthogonal to all earlier ones together, by matrix products */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Subtracts from vectors [k, k + n) their projection on the first k: w - (w qᵀ) q. The second pass removes what
   rounding left. */
static bool project(cn_ctx *ctx, double *v, int64_t k, int64_t n, int64_t length)
{
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *q = cn_borrow(ctx, CN_F64, CN_DIMS(k, length), v, NULL, NULL);
    cn_tensor *w = cn_borrow(ctx, CN_F64, CN_DIMS(n, length), v + k * length, NULL, NULL);
    for (int pass = 0; pass < 2; pass++) w = cn_sub(w, cn_matmul(cn_matmul(w, cn_transpose(q, 0, 1)), q));
    const bool ok = cn_read(w, v + k * length, (size_t)(n * length) * sizeof *v);
    cn_scope_end(ctx, s);
    return ok;
}

/* Makes the vectors of a block orthogonal to each other, one by one, and of length 1. False: they are dependent. */
static bool orthonormalise(double *v, int64_t n, int64_t length)
{
    for (int64_t k = 0; k < n; k++) {
        double *own = v + k * length;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < k; j++) {
                const double *other = v + j * length, share = dot(own, other, length);
                for (int64_t i = 0; i < length; i++) own[i] -= share * other[i];
            }
        const double norm = sqrt(dot(own, own, length));
        if (!(norm > 1e-12)) return false;
        for (int64_t i = 0; i < length; i++) own[i] /= norm;
    }
    return true;
}

static bool make_orthogonal(cn_ctx *ctx, double *v, int64_t n, int64_t length)
{
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t count = n - k < BLOCK ? n - k : BLOCK;
        if (k && !project(ctx, v, k, count, length)) return false;
        if (!orthonormalise(v + k * length, count, length))
            return cn__fail(ctx, CN_BAD_ARGUMENT,
                            "init_orthogonal: the random vectors must be independent, but are not");
    }
    return true;
}

static cn_tensor *orthogonal_vectors(cn_ctx *ctx, int64_t n, int64_t length)
{
    const size_t bytes = (size_t)(n * length) * sizeof(double);
    cn_tensor *drawn = cn_randn(ctx, CN_F64, CN_DIMS(n, length)), *made = NULL;
    double *v = drawn ? cn__alloc(ctx, bytes) : NULL;
    if (!v) return NULL;
    if (cn_read(drawn, v, bytes) && make_orthogonal(ctx, v, n, length))
        made = cn_from(ctx, CN_F64, CN_DIMS(n, length), v);
    cn__free(ctx, v, bytes);
    return made;
}

bool cn_init_orthogonal(cn_tensor *t, double gain)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!is_float("init_orthogonal", t) || !has_axes("init_orthogonal", t, 2, CN_MAX_DIMS)) return false;
    if (!isfinite(gain)) return cn__fail(t->ctx, CN_BAD_ARGUMENT, "init_orthogonal: gain must be finite, got %g", gain);
    if (cn_numel(t) == 0) return true;
    const int64_t rows = cn_size(t, 0), cols = cn_numel(t) / rows;
    cn_scope s = begin(t);
    cn_tensor *q = orthogonal_vectors(t->ctx, rows < cols ? rows : cols, rows < cols ? cols : rows);
    if (rows >= cols) q = cn_transpose(q, 0, 1);
    return finish(s, t, cn_mul_s(cn_reshape(q, cn_shape(t)), gain));
}

/* ---- sparse ---- */

/* Each column's places get random ranks; the places with the lowest ranks become 0. */
bool cn_init_sparse(cn_tensor *t, double sparsity, double std)
{
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx) return false;
    if (!is_float("init_sparse", t) || !has_axes("init_sparse", t, 2, 2)) return false;
    if (!(sparsity >= 0 && sparsity <= 1) || !(std >= 0) || !isfinite(std))
        return cn__fail(t->ctx, CN_BAD_ARGUMENT, "init_sparse: sparsity must be from 0 to 1 and std ≥ 0, got %g and %g",
                        sparsity, std);
    const double zeros = ceil(sparsity * (double)cn_size(t, 0));
    cn_scope s = begin(t);
    cn_tensor *values = normal(t, 0, std);
    cn_tensor *order = cn_argsort(cn_rand(t->ctx, CN_F64, cn_shape(t)), 0, false);
    cn_tensor *rank = cn_argsort(order, 0, false);
    return finish(s, t, cn_masked_fill(values, cn_lt_s(rank, zeros), 0));
}

/* References of the elementwise operators: the definition, one element at a time. */
#include <math.h>

#include "ops/map/map.h"
#include "support/reference.h"

#define PI 3.14159265358979323846

static bool is_float(cn_dtype t) { return t == CN_F16 || t == CN_BF16 || t == CN_F32 || t == CN_F64; }

static int bits_of(cn_dtype t) { return t == CN_I64 ? 64 : t == CN_I32 ? 32 : t == CN_I16 ? 16 : 8; }

/* v as an element of type t: whole numbers keep their low bits */
static double as(cn_dtype t, double v)
{
    if (is_float(t)) return v;
    if (t == CN_BOOL) return v != 0;
    double range = pow(2, bits_of(t)), low = t == CN_U8 ? 0 : -range / 2, whole = trunc(v);
    return whole < low || whole >= low + range ? whole - range * floor((whole - low) / range) : whole;
}

/* The element of t that position `flat` of a result of this shape is computed from. */
static double element(const ref_tensor *t, const ref_tensor *out, int64_t flat)
{
    int64_t index = 0, step = 1;
    for (int d = 1; d <= t->ndim; d++) {
        int64_t at = flat % out->shape[out->ndim - d];
        flat /= out->shape[out->ndim - d];
        if (t->shape[t->ndim - d] != 1) index += at * step;
        step *= t->shape[t->ndim - d];
    }
    return t->v[index];
}

/* Operands x, y, z, plain numbers p, q, and t, the type of the operands. */
typedef double (*formula)(double x, double y, double z, double p, double q, cn_dtype t);

static void elementwise(const ref_call *c, formula f)
{
    ref_tensor *out = &c->out[0];
    for (int64_t i = 0; i < out->numel; i++) {
        double v[3] = { 0, 0, 0 };
        for (int k = 0; k < c->n_in; k++) v[k] = element(&c->in[k], out, i);
        double p = c->args ? c->args[0].f : 0, q = c->args ? c->args[1].f : 0;
        out->v[i] = as(out->dtype, f(v[0], v[1], v[2], p, q, c->in[0].dtype));
    }
}

static double whole_floor_div(double x, double y) { return y == 0 ? 0 : floor(x / y); }
static double whole_fmod(double x, double y) { return y == 0 ? 0 : fmod(x, y); }
/* d/dx of x/2 (1 + tanh(u)), u = √(2/π)(x + 0.044715 x³) */
static double gelu_tanh_slope(double x)
{
    double a = sqrt(0.5 / atan(1)), t = tanh(a * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * a * (1 + 3 * 0.044715 * x * x);
}

static double power(double x, double y, cn_dtype t)
{
    if (is_float(t) || y >= 0) return pow(x, y);
    return x == 0 ? 0 : trunc(pow(x, y));
}
static double shifted_left(double x, double y, cn_dtype t)
{
    return y < 0 || y >= bits_of(t) ? 0 : ldexp(x, (int)y);
}
static double shifted_right(double x, double y, cn_dtype t)
{
    return y < 0 || y >= bits_of(t) ? (x < 0 ? -1 : 0) : floor(ldexp(x, -(int)y));
}
static double larger(double x, double y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static double smaller(double x, double y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static int64_t whole(double x) { return (int64_t)x; }

static double within(double x, double eps) { return smaller(larger(x, eps), 1 - eps); }
/* by bisection */
static double inverse_erf(double y)
{
    double low = -10, high = 10;
    for (int i = 0; i < 100; i++) *(erf((low + high) / 2) < y ? &low : &high) = (low + high) / 2;
    return low;
}
/* The derivative of order n of digamma for x > 0: its series Σ (-1)^(n+1) n!/(x + k)^(n+1), whose end is an integral
   with corrections; of order 0, Σ 1/(k + 1) - 1/(x + k) - γ. */
static double psi(int n, double x)
{
    enum { TERMS = 2000 };
    double sum = 0, end = x + TERMS, sign = n % 2 ? 1 : -1;
    if (n == 0) {
        for (int k = 0; k < TERMS; k++) sum -= 1 / (x + k);
        return sum + log(end) - 1 / (2 * end) - 1 / (12 * end * end);
    }
    for (int k = TERMS - 1; k >= 0; k--) sum += pow(x + k, -n - 1);
    return sign * tgamma(n + 1) * (sum + pow(end, -n) / n + pow(end, -n - 1) / 2 + (n + 1) * pow(end, -n - 2) / 12);
}

#define FORMULAS                                                                                    \
    F(neg, -x)                                                                                      \
    F(abs, fabs(x))                                                                                 \
    F(sign, x > 0 ? 1 : x < 0 ? -1 : 0)                                                             \
    F(square, x * x)                                                                                \
    F(sqrt, sqrt(x))                                                                                \
    F(rsqrt, 1 / sqrt(x))                                                                           \
    F(reciprocal, 1 / x)                                                                            \
    F(exp, exp(x))                                                                                  \
    F(expm1, expm1(x))                                                                              \
    F(log, log(x))                                                                                  \
    F(log1p, log1p(x))                                                                              \
    F(log2, log(x) / log(2))                                                                        \
    F(log10, log(x) / log(10))                                                                      \
    F(exp2, pow(2, x))                                                                              \
    F(sin, sin(x))                                                                                  \
    F(cos, cos(x))                                                                                  \
    F(tan, sin(x) / cos(x))                                                                         \
    F(asin, asin(x))                                                                                \
    F(acos, acos(x))                                                                                \
    F(atan, atan(x))                                                                                \
    F(sinh, (exp(x) - exp(-x)) / 2)                                                                 \
    F(cosh, (exp(x) + exp(-x)) / 2)                                                                 \
    F(tanh, 1 - 2 / (exp(2 * x) + 1))                                                               \
    F(erf, erf(x))                                                                                  \
    F(asinh, log(x + sqrt(x * x + 1)))                                                              \
    F(acosh, log(x + sqrt(x * x - 1)))                                                              \
    F(atanh, log((1 + x) / (1 - x)) / 2)                                                            \
    F(sinc, x == 0 ? 1 : sin(PI * x) / (PI * x))                                                    \
    F(erfc, erfc(x))                                                                                \
    F(erfinv, inverse_erf(x))                                                                       \
    F(lgamma, lgamma(x))                                                                            \
    F(digamma, psi(0, x))                                                                           \
    F(polygamma, psi((int)p, x))                                                                    \
    F(logit, log(within(x, p) / (1 - within(x, p))))                                                \
    F(frac, fmod(x, 1))                                                                             \
    F(isposinf, x == INFINITY)                                                                      \
    F(isneginf, x == -INFINITY)                                                                     \
    F(floor, floor(x))                                                                              \
    F(ceil, ceil(x))                                                                                \
    F(round, nearbyint(x))                                                                          \
    F(trunc, trunc(x))                                                                              \
    F(relu, larger(x, 0))                                                                           \
    F(selu, 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (exp(x) - 1)))                   \
    F(gelu, x * erfc(-x / sqrt(2)) / 2)                                                             \
    F(gelu_tanh, x * (1 + tanh(sqrt(2 / PI) * (x + 0.044715 * pow(x, 3)))) / 2)                     \
    F(silu, x * sigmoid(x))                                                                         \
    F(sigmoid, sigmoid(x))                                                                          \
    F(log_sigmoid, log(sigmoid(x)))                                                                 \
    F(softsign, x / (1 + fabs(x)))                                                                  \
    F(mish, x * tanh(log(1 + exp(x))))                                                              \
    F(hardsigmoid, x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5)                                          \
    F(hardswish, x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6)                                        \
    F(isnan, isnan(x))                                                                              \
    F(isinf, isinf(x))                                                                              \
    F(isfinite, isfinite(x))                                                                        \
    F(logical_not, x == 0)                                                                          \
    F(bitwise_not, t == CN_BOOL ? 1 - x : -x - 1)                                                   \
    F(copy, x)                                                                                      \
    F(leaky_relu, x > 0 ? x : p * x)                                                                \
    F(elu, x > 0 ? x : p * (exp(x) - 1))                                                            \
    F(celu, larger(x, 0) + smaller(0, p * (exp(x / p) - 1)))                                        \
    F(softplus, p * x > q ? x : log(1 + exp(p * x)) / p)                                            \
    F(hardtanh, smaller(larger(x, p), q))                                                           \
    F(clamp, smaller(larger(x, p), q))                                                              \
    F(huber, fabs(x) <= p ? x * x / 2 : p * (fabs(x) - p / 2))                                      \
    F(add, x + y)                                                                                   \
    F(sub, x - y)                                                                                   \
    F(mul, x * y)                                                                                   \
    F(div, x / y)                                                                                   \
    F(floor_div, is_float(t) ? floor(x / y) : whole_floor_div(x, y))                                \
    F(remainder, is_float(t) ? x - y * floor(x / y) : y == 0 ? 0 : x - y * whole_floor_div(x, y))   \
    F(fmod, is_float(t) ? fmod(x, y) : whole_fmod(x, y))                                            \
    F(pow, power(x, y, t))                                                                          \
    F(maximum, larger(x, y))                                                                        \
    F(minimum, smaller(x, y))                                                                       \
    F(fmax, fmax(x, y))                                                                             \
    F(fmin, fmin(x, y))                                                                             \
    F(copysign, copysign(x, y))                                                                     \
    F(logaddexp, log(exp(x) + exp(y)))                                                              \
    F(logaddexp2, log2(pow(2, x) + pow(2, y)))                                                      \
    F(xlogy, x * log(y))                                                                            \
    F(hypot, sqrt(x * x + y * y))                                                                   \
    F(relu_backward, y <= 0 ? 0 : x)                                                                \
    F(tanh_backward, x * (1 - y * y))                                                               \
    F(sigmoid_backward, x * y * (1 - y))                                                            \
    F(silu_backward, x * (1 + exp(-y) + y * exp(-y)) / pow(1 + exp(-y), 2))                         \
    F(gelu_backward, x * (erfc(-y / sqrt(2)) / 2 + y * exp(-y * y / 2) / sqrt(8 * atan(1))))        \
    F(gelu_tanh_backward, x * gelu_tanh_slope(y))                                                   \
    F(atan2, atan2(x, y))                                                                           \
    F(eq, x == y)                                                                                   \
    F(ne, x != y)                                                                                   \
    F(lt, x < y)                                                                                    \
    F(le, x <= y)                                                                                   \
    F(gt, x > y)                                                                                    \
    F(ge, x >= y)                                                                                   \
    F(logical_and, x != 0 && y != 0)                                                                \
    F(logical_or, x != 0 || y != 0)                                                                 \
    F(logical_xor, (x != 0) != (y != 0))                                                            \
    F(bitwise_and, (double)(whole(x) & whole(y)))                                                   \
    F(bitwise_or, (double)(whole(x) | whole(y)))                                                    \
    F(bitwise_xor, (double)(whole(x) ^ whole(y)))                                                   \
    F(shift_left, shifted_left(x, y, t))                                                            \
    F(shift_right, shifted_right(x, y, t))                                                          \
    F(where, x != 0 ? y : z)                                                                        \
    F(clamp_t, smaller(larger(x, y), z))                                                            \
    F(lerp, x + z * (y - x))                                                                        \
    F(addcmul, x + p * y * z)                                                                       \
    F(addcdiv, x + p * y / z)                                                                       \
    F(binary_cross_entropy, -z * (y * larger(log(x), -100) + (1 - y) * larger(log(1 - x), -100)))

#define F(name, expression)                                                                                            \
    static double name##_formula(double x, double y, double z, double p, double q, cn_dtype t)                         \
    {                                                                                                                  \
        (void)x, (void)y, (void)z, (void)p, (void)q, (void)t;                                                          \
        return expression;                                                                                             \
    }                                                                                                                  \
    static void name##_reference(const ref_call *c) { elementwise(c, name##_formula); }
FORMULAS
#undef F

static void cast_reference(const ref_call *c)
{
    const cn__cast_attrs *a = c->attrs;
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = as((cn_dtype)a->dtype, c->in[0].v[i]);
}

const ref_entry ref_map[] = {
#define F(name, expression) { #name, name##_reference },
    FORMULAS
#undef F
    { "cast", cast_reference },
    { NULL, NULL },
};

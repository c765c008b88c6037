/* elementary.h: elementary functions for kernels. Names in capitals are generic: EXP(x) is a float for a float x. Only
   kernel files (cpu/isa.h) include this header: there CN__FUSED is whether the processor has a fused multiply-add. */
#ifndef CN_MAP_ELEMENTARY_H
#define CN_MAP_ELEMENTARY_H

#include <math.h>

#include "cpu/isa.h"
#include "gelu.h"

#define LIBM(fn, x)      _Generic((x), float: fn##f, double: fn)(x)
#define LIBM2(fn, x, y)  _Generic((x), float: fn##f, double: fn)(x, y)
#define VECTOR(fn, x)    _Generic((x), float: cn__f32_##fn(x, CN__FUSED), double: fn(x))
#define VECTOR2(fn, x, y) _Generic((x), float: cn__f32_##fn(x, y, CN__FUSED), double: fn(x, y))
#define COMPOSED(fn, x)  _Generic((x), float: cn__f32_##fn(x, CN__FUSED), double: fn##_f64(x))
#define TYPED2(fn, x, y) _Generic((x), float: fn##_f32, double: fn##_f64)(x, y)

#define ABS(x)         LIBM(fabs, x)
#define SQRT(x)        LIBM(sqrt, x)
#define FLOOR(x)       LIBM(floor, x)
#define CEIL(x)        LIBM(ceil, x)
#define ROUND(x)       LIBM(rint, x) /* half to even */
#define TRUNC(x)       LIBM(trunc, x)
#define EXP(x)         VECTOR(exp, x)
#define EXP_DOWN(x)    _Generic((x), float: cn__f32_exp_down(x, CN__FUSED), double: exp(x)) /* x ≤ 0 */
#define EXPM1(x)       VECTOR(expm1, x)
#define LOG(x)         VECTOR(log, x)
#define LOG1P(x)       VECTOR(log1p, x)
#define LOG2(x)        VECTOR(log2, x)
#define SIN(x)         VECTOR(sin, x) /* f32: only near 0, see cn__f32_sine */
#define COS(x)         VECTOR(cos, x)
#define TAN(x)         LIBM(tan, x)
#define ASIN(x)        LIBM(asin, x)
#define ACOS(x)        LIBM(acos, x)
#define ATAN(x)        LIBM(atan, x)
#define SINH(x)        LIBM(sinh, x)
#define COSH(x)        LIBM(cosh, x)
#define TANH(x)        VECTOR(tanh, x)
#define ERF(x)         VECTOR(erf, x)
#define SIGMOID(x)     COMPOSED(sigmoid, x)
#define LOG_SIGMOID(x) COMPOSED(log_sigmoid, x)
#define SILU(x)        COMPOSED(silu, x)
#define GELU(x)        COMPOSED(gelu, x)
#define GELU_TANH(x)   COMPOSED(gelu_tanh, x)
#define MISH(x)        COMPOSED(mish, x)
#define SOFTPLUS(x, p, limit) \
    _Generic((x), float: cn__f32_softplus(x, p, limit, CN__FUSED), double: softplus_f64(x, p, limit))
#define LOGIT(x, eps)  _Generic((x), float: logit_f32, double: logit_f64)(x, eps)
#define CLAMP(x, a, b) _Generic((x), float: clamp_f32, double: clamp_f64)(x, a, b)
#define FMOD(x, y)     LIBM2(fmod, x, y)
#define ATAN2(x, y)    LIBM2(atan2, x, y)
#define COPYSIGN(x, y) LIBM2(copysign, x, y)
#define POW(x, y)      VECTOR2(pow, x, y)
#define FLOOR_DIV(x, y) TYPED2(floor_div, x, y)
#define REMAINDER(x, y) TYPED2(remainder, x, y)

/* NaN if either is */
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

/* ---- what gelu.h, wide.h and vector.h have for f32; far on the left the limits, where the formulas would give NaN
   ---- */

static inline double sigmoid_f64(double x) { return 1 / (1 + exp(-x)); }
static inline double silu_f64(double x) { return x < -800 ? -0.0 : x / (1 + exp(-x)); }
static inline double gelu_f64(double x) { return x < -40 ? -0.0 : 0.5 * x * erfc(-0.70710678118654752440 * x); }
static inline double log_sigmoid_f64(double x) { return (x < 0 ? x : 0) - log1p(exp(-fabs(x))); }
static inline double softplus_f64(double x, double p, double limit)
{
    return x * p > limit ? x : log1p(exp(x * p)) / p;
}
static inline double gelu_tanh_f64(double x)
{
    return x < -40 ? -0.0 : x / (1 + exp(-x * (CN__GELU_A + CN__GELU_B * x * x)));
}
static inline double mish_f64(double x)
{
    double e = exp(x < 20 ? x : 20), n = e * (e + 2);
    return x < -800 ? -0.0 : x * (n / (n + 2));
}

/* ---- functions of either type ---- */

#define E       float
#define NAME(f) f##_f32
#include "elementary_body.h"

#define E       double
#define NAME(f) f##_f64
#include "elementary_body.h"

#endif

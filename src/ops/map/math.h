/* math.h: what the rows of the MAP tables compute with. Capitals are generic: EXP(x) is a float for a float x. */
#ifndef CN_MAP_MATH_H
#define CN_MAP_MATH_H

#include <math.h>

#include "vector.h"

#define LIBM(fn, x)      _Generic((x), float: fn##f, double: fn)(x)
#define LIBM2(fn, x, y)  _Generic((x), float: fn##f, double: fn)(x, y)
#define VECTOR(fn, x)    _Generic((x), float: cn__##fn##_f32, double: fn)(x)
#define TYPED(fn, x)     _Generic((x), float: fn##_f32, double: fn##_f64)(x)
#define TYPED2(fn, x, y) _Generic((x), float: fn##_f32, double: fn##_f64)(x, y)

#define ABS(x)         LIBM(fabs, x)
#define SQRT(x)        LIBM(sqrt, x)
#define FLOOR(x)       LIBM(floor, x)
#define CEIL(x)        LIBM(ceil, x)
#define ROUND(x)       LIBM(rint, x) /* half to even */
#define TRUNC(x)       LIBM(trunc, x)
#define EXP(x)         VECTOR(exp, x)
#define EXPM1(x)       VECTOR(expm1, x)
#define LOG(x)         VECTOR(log, x)
#define LOG1P(x)       VECTOR(log1p, x)
#define LOG2(x)        LIBM(log2, x)
#define SIN(x)         LIBM(sin, x)
#define COS(x)         LIBM(cos, x)
#define TAN(x)         LIBM(tan, x)
#define ASIN(x)        LIBM(asin, x)
#define ACOS(x)        LIBM(acos, x)
#define ATAN(x)        LIBM(atan, x)
#define SINH(x)        LIBM(sinh, x)
#define COSH(x)        LIBM(cosh, x)
#define TANH(x)        VECTOR(tanh, x)
#define ERF(x)         VECTOR(erf, x)
#define MISH(x)        TYPED(mish, x)
#define CLAMP(x, a, b) _Generic((x), float: clamp_f32, double: clamp_f64)(x, a, b)
#define FMOD(x, y)     LIBM2(fmod, x, y)
#define ATAN2(x, y)    LIBM2(atan2, x, y)
#define COPYSIGN(x, y) LIBM2(copysign, x, y)
#define POW(x, y)      LIBM2(pow, x, y)
#define FLOOR_DIV(x, y) TYPED2(floor_div, x, y)
#define REMAINDER(x, y) TYPED2(remainder, x, y)

/* NaN if either is */
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

#define E       float
#define NAME(f) f##_f32
#include "math_body.h"

#define E       double
#define NAME(f) f##_f64
#include "math_body.h"

#endif

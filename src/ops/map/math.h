/* math.h: what the rows of the MAP tables compute with. Capitals are generic: EXP(x) is a float for a float x. */
#ifndef CN_MAP_MATH_H
#define CN_MAP_MATH_H

#include <math.h>
#include <stdint.h>

#define PI 3.14159265358979323846

#define OF_FLOAT(fn, x)     _Generic((x), float: fn##f, double: fn)(x)
#define OF_FLOATS(fn, x, y) _Generic((x), float: fn##f, double: fn)(x, y)

#define ABS(x)      OF_FLOAT(fabs, x)
#define SQRT(x)     OF_FLOAT(sqrt, x)
#define FLOOR(x)    OF_FLOAT(floor, x)
#define CEIL(x)     OF_FLOAT(ceil, x)
#define ROUND(x)    OF_FLOAT(rint, x) /* half to even */
#define TRUNC(x)    OF_FLOAT(trunc, x)
#define EXP(x)      OF_FLOAT(exp, x)
#define EXPM1(x)    OF_FLOAT(expm1, x)
#define LOG(x)      OF_FLOAT(log, x)
#define LOG1P(x)    OF_FLOAT(log1p, x)
#define LOG2(x)     OF_FLOAT(log2, x)
#define SIN(x)      OF_FLOAT(sin, x)
#define COS(x)      OF_FLOAT(cos, x)
#define TAN(x)      OF_FLOAT(tan, x)
#define ASIN(x)     OF_FLOAT(asin, x)
#define ACOS(x)     OF_FLOAT(acos, x)
#define ATAN(x)     OF_FLOAT(atan, x)
#define SINH(x)     OF_FLOAT(sinh, x)
#define COSH(x)     OF_FLOAT(cosh, x)
#define TANH(x)     OF_FLOAT(tanh, x)
#define ERF(x)      OF_FLOAT(erf, x)
#define POW(x, y)   OF_FLOATS(pow, x, y)
#define ATAN2(x, y) OF_FLOATS(atan2, x, y)
#define FMOD(x, y)  OF_FLOATS(fmod, x, y)
#define COPYSIGN(x, y) OF_FLOATS(copysign, x, y)

/* NaN if either is */
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

#define SOFTPLUS(x)    ((x) > 0 ? (x) + LOG1P(EXP(-(x))) : LOG1P(EXP(x)))
#define MISH(x)        OF_REAL(mish, x)
#define FLOOR_DIV(x, y) OF_REALS(floor_div, x, y)
#define REMAINDER(x, y) OF_REALS(remainder, x, y)

#define OF_REAL(f, x)     _Generic((x), float: f##_f32, double: f##_f64)(x)
#define OF_REALS(f, x, y) _Generic((x), float: f##_f32, double: f##_f64)(x, y)

#define E       float
#define NAME(f) f##_f32
#include "math_body.h"

#define E       double
#define NAME(f) f##_f64
#include "math_body.h"

#endif

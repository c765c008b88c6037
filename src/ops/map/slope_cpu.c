/* The loops of the gradients of activations (slope.def). */
#include "ops/map/slope_cpu.h"

#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/slope.h"

/* ---- slopes that take more than one line; those of f32 are in vector.h and gelu.h ---- */

#define OF(slope, v) _Generic((v), float: cn__f32_##slope(v, CN__FUSED), double: slope##_f64(v))

/* s(1 + v(1 - s)) with s = sigmoid(v) */
static inline double silu_slope_f64(double v)
{
    double s = sigmoid_f64(v);
    return s * (1 + v * (1 - s));
}

/* Φ(v) + vφ(v) */
static inline double gelu_slope_f64(double v)
{
    return 0.5 * (1 + erf(v * CN__ROOT_HALF)) + v * exp(-0.5 * v * v) * (0.5 * CN__GELU_SLOPE);
}

/* s(1 + 2v(1 - s)u') with s = sigmoid(2u) = (1 + tanh(u))/2, u = a(v + bv³) */
static inline double gelu_tanh_slope_f64(double v)
{
    const double a = CN__GELU_SLOPE, b = CN__GELU_CUBE;
    double square = v * v, s = sigmoid_f64(2 * a * v * (1 + b * square));
    return s * (1 + 2 * v * (1 - s) * (a * (1 + 3 * b * square)));
}

#define TEMPLATE "ops/map/slope_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

#define SLOPE(name, cost, ...) CN__FILL(cn__loops, slope, name, LOOPS_##cost(REAL, name))
CN__TABLE(slope)
#include "ops/map/slope.def"
CN__TABLE_END
#undef SLOPE

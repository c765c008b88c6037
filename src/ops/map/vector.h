/* vector.h: exp, log and their like for f32, without branches or calls, so that a loop over them becomes vector code.
   Errors stay below 3 units in the last place (exp, log: below 1); zeros, infinities, NaN and results below the normal
   range are as in libm. The polynomials are minimax fits. */
#ifndef CN_MAP_VECTOR_H
#define CN_MAP_VECTOR_H

#include <math.h>

#include "core/dtype.h"

/* e^r - 1 for |r| ≤ log(2)/2 */
static inline float cn__expm1_reduced(float r)
{
    float q = 0x1.6a2254p-10f;
    q = q * r + 0x1.123b02p-7f;
    q = q * r + 0x1.5558f8p-5f;
    q = q * r + 0x1.555490p-3f;
    q = q * r + 0x1.fffffcp-2f;
    return r * r * q + r;
}

/* x = n·log(2) + r. Adding 1.5·2^23 rounds to a whole number and leaves it in the low bits; n·hi is exact. */
static inline int32_t cn__exp_reduce(float x, float *r)
{
    float shifted = x * 0x1.715476p0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
    *r = x - n * 0x1.63p-1f + n * 0x1.bd0106p-13f;
    return (int32_t)(cn__bits_of_f32(shifted) - 0x4b400000u);
}

/* 2^n for -126 ≤ n ≤ 127 */
static inline float cn__power_of_2(int32_t n) { return cn__f32_of_bits((uint32_t)(n + 127) << 23); }

/* In two steps, since 2^n alone may be out of range. */
static inline float cn__exp_f32(float x)
{
    float r, c = x > 89 ? 89 : x;
    c = c < -104 ? -104 : c;
    int32_t n = cn__exp_reduce(c, &r), half = n >> 1;
    return (cn__expm1_reduced(r) + 1) * cn__power_of_2(half) * cn__power_of_2(n - half);
}

/* 2^n·(e^r - 1) + (2^n - 1), computed with n - 1 */
static inline float cn__expm1_f32(float x)
{
    float r, c = x > 89 ? 89 : x;
    c = c < -30 ? -30 : c;
    int32_t n = cn__exp_reduce(c, &r);
    float p = cn__expm1_reduced(r), s = cn__power_of_2(n - 1), y = 2 * (s * p + (s - 0.5f));
    y = n == 0 ? p : y;
    return x == 0 ? x : y;
}

/* x = 2^k·m with √½ ≤ m < √2; log(m) = f - (f²/2 - s(f²/2 + R)) with f = m - 1, s = f/(2 + f) */
static inline float cn__log_f32(float x)
{
    bool tiny = x < 0x1p-126f;
    uint32_t u = cn__bits_of_f32(x * (tiny ? 0x1p23f : 1));
    int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;
    float f = cn__f32_of_bits(u - ((uint32_t)k << 23)) - 1, e = (float)(k - (tiny ? 23 : 0));
    float s = f / (2 + f), z = s * s, h = 0.5f * f * f;
    float q = 0x1.e340b8p-3f;
    q = q * z + 0x1.2436fep-2f;
    q = q * z + 0x1.999a82p-2f;
    q = q * z + 0x1.555554p-1f;
    float y = e * 0x1.62e3p-1f - ((h - (s * (h + q * z) + e * 0x1.2fefa2p-17f)) - f);
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    return x >= 0 ? y : NAN;
}

/* What rounding 1 + x loses is made up for by the quotient (Kahan). */
static inline float cn__log1p_f32(float x)
{
    float u = 1 + x, y = cn__log_f32(u) * (x / (u - 1));
    y = u == 1 ? x : y;
    return u == INFINITY ? u : y;
}

/* t/(t + 2) with t = e^(2|x|) - 1 */
static inline float cn__tanh_f32(float x)
{
    float a = fabsf(x), t = cn__expm1_f32(2 * (a > 10 ? 10 : a));
    return copysignf(t / (t + 2), x);
}

/* x·P(x²) below 1, then 1 - e^P(|x|), and 1 from 4 on */
static inline float cn__erf_f32(float x)
{
    float a = fabsf(x), z = x * x, t = a > 4 ? 4 : a;
    float p = 0x1.496a30p-14f;
    p = p * z - 0x1.a3f700p-11f;
    p = p * z + 0x1.5405b2p-8f;
    p = p * z - 0x1.b7f90ep-6f;
    p = p * z + 0x1.ce2cf8p-4f;
    p = p * z - 0x1.81273ep-2f;
    p = p * z + 0x1.06eba8p-3f;
    float q = -0x1.6c0694p-16f;
    q = q * t + 0x1.ceeaf0p-12f;
    q = q * t - 0x1.1398fap-8f;
    q = q * t + 0x1.9d0bd6p-6f;
    q = q * t - 0x1.bc18d0p-4f;
    q = q * t - 0x1.4434f0p-1f;
    q = q * t - 0x1.212c2cp0f;
    q = q * t + 0x1.8b3f34p-13f;
    return a < 1 ? p * x + x : copysignf(1 - cn__exp_f32(q), x);
}

#endif

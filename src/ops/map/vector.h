/* vector.h: elementary functions of f32, without branches or calls, so that a loop over them becomes vector code.

   `fused` is a constant wherever they are called: whether the machine multiplies and adds in one instruction. Both ways
   every result is within 2 units in the last place of the true one, also where it falls below the normal range; zeros,
   infinities and NaN are as in libm. The polynomials are minimax fits. Functions that need more digits on the way than a
   float has are in wide.h. */
#ifndef CN_MAP_VECTOR_H
#define CN_MAP_VECTOR_H

#include <math.h>

#include "core/dtype.h"

#define CN__INLINE static inline __attribute__((always_inline))

/* a·b + c */
CN__INLINE float cn__muladd_f32(float a, float b, float c, bool fused)
{
    return fused ? __builtin_fmaf(a, b, c) : a * b + c;
}
CN__INLINE double cn__muladd_f64(double a, double b, double c, bool fused)
{
    return fused ? __builtin_fma(a, b, c) : a * b + c;
}
#define MULADD(a, b, c) _Generic((a), float: cn__muladd_f32, double: cn__muladd_f64)(a, b, c, fused)

/* NaN stays. Both comparisons are with x: one with the result of the other is made into branches by gcc. */
CN__INLINE float cn__within(float x, float low, float high)
{
    float y = x < low ? low : x;
    return x > high ? high : y;
}

/* ---- powers of e ---- */

/* e^r - 1 for |r| ≤ log(2)/2 */
CN__INLINE float cn__expm1_reduced(float r, bool fused)
{
    float q = 0x1.9eb31ap-13f;
    q = MULADD(q, r, 0x1.6d3978p-10f);
    q = MULADD(q, r, 0x1.1112bap-7f);
    q = MULADD(q, r, 0x1.5554fap-5f);
    q = MULADD(q, r, 0x1.555554p-3f);
    q = MULADD(q, r, 0.5f);
    return MULADD(r * r, q, r);
}

/* log(2) in two parts, the first so short that its product with a whole number is exact */
#define CN__LN2_HIGH 0x1.63p-1f
#define CN__LN2_LOW  -0x1.bd0106p-13f
#define CN__LOG2_E   0x1.715476p0f

/* Adding it rounds to a whole number, which is then in the low bits. */
#define CN__ROUNDER 0x1.8p23f

/* x = n·log(2) + r */
CN__INLINE int32_t cn__exp_reduce(float x, float *r, bool fused)
{
    float shifted = MULADD(x, CN__LOG2_E, CN__ROUNDER), n = shifted - CN__ROUNDER;
    *r = MULADD(n, -CN__LN2_LOW, MULADD(n, -CN__LN2_HIGH, x));
    return (int32_t)(cn__bits_of_f32(shifted) - cn__bits_of_f32(CN__ROUNDER));
}

/* 2^n for -126 ≤ n ≤ 127 */
CN__INLINE float cn__power_of_2(int32_t n) { return cn__f32_of_bits((uint32_t)(n + 127) << 23); }

/* In two steps, since 2^n alone may be out of range. */
CN__INLINE float cn__f32_exp(float x, bool fused)
{
    float r;
    int32_t n = cn__exp_reduce(cn__within(x, -104, 89), &r, fused), half = n >> 1;
    return (cn__expm1_reduced(r, fused) + 1) * cn__power_of_2(half) * cn__power_of_2(n - half);
}

/* The same in code that is not compiled for fused instructions. */
CN__INLINE float cn__exp_f32(float x) { return cn__f32_exp(x, false); }

/* 2^n·(e^r - 1) + (2^n - 1), computed with n - 1 */
CN__INLINE float cn__f32_expm1(float x, bool fused)
{
    float r;
    int32_t n = cn__exp_reduce(cn__within(x, -30, 89), &r, fused);
    float half = cn__power_of_2(n - 1), y = 2 * MULADD(half, cn__expm1_reduced(r, fused), half - 0.5f);
    return x == 0 ? x : y;
}

/* ---- the logistic function and what is made of it ---- */

/* x/(1 + 2^n·e^r) for -126 ≤ n ≤ 180. Above and below the line stands a factor 2^-k that keeps both in range;
   2^-k + 2^(n-k) is exact in two parts. */
CN__INLINE float cn__f32_logistic(float x, int32_t n, float r, bool fused)
{
    int32_t half = n >> 1, k = half > 0 ? half : 0, a = -k, b = n - k;
    float larger = cn__power_of_2(a > b ? a : b), smaller = cn__power_of_2(a > b ? b : a);
    float sum = larger + smaller, rest = smaller - (sum - larger);
    return x * cn__power_of_2(a) / (sum + MULADD(cn__power_of_2(b), cn__expm1_reduced(r, fused), rest));
}

CN__INLINE float cn__f32_sigmoid(float x, bool fused)
{
    float r;
    int32_t n = cn__exp_reduce(-cn__within(x, -110, 30), &r, fused);
    return cn__f32_logistic(1, n, r, fused);
}

CN__INLINE float cn__f32_silu(float x, bool fused)
{
    float r, least = x < -110 ? -110 : x;
    int32_t n = cn__exp_reduce(-(x > 30 ? 30 : least), &r, fused);
    return cn__f32_logistic(least, n, r, fused);
}

/* x·P(x²) below 0.6, then 1 - 2/(e^(2|x|) + 1) */
CN__INLINE float cn__f32_tanh(float x, bool fused)
{
    float a = fabsf(x), z = x * x, r;
    float q = -0x1.830bfcp-8f;
    q = MULADD(q, z, 0x1.54e01ap-6f);
    q = MULADD(q, z, -0x1.b89edap-5f);
    q = MULADD(q, z, 0x1.1109dcp-3f);
    q = MULADD(q, z, -0x1.55553ep-2f);
    int32_t n = cn__exp_reduce(2 * (a > 9.1f ? 9.1f : a), &r, fused);
    float power = cn__power_of_2(n), far = 1 - 2 / MULADD(power, cn__expm1_reduced(r, fused), power + 1);
    return copysignf(a < 0.6f ? MULADD(a * z, q, a) : far, x);
}

/* ---- logarithm ---- */

/* x = 2^k·m with √½ ≤ m < √2; log(m) = f - (f²/2 - s(f²/2 + R)) with f = m - 1, s = f/(2 + f) */
CN__INLINE float cn__f32_log(float x, bool fused)
{
    bool tiny = x < 0x1p-126f;
    uint32_t u = cn__bits_of_f32(x * (tiny ? 0x1p23f : 1));
    int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;
    float f = cn__f32_of_bits(u - ((uint32_t)k << 23)) - 1, e = (float)(k - (tiny ? 23 : 0));
    float s = f / (2 + f), z = s * s, h = 0.5f * f * f;
    float q = 0x1.e340b8p-3f;
    q = MULADD(q, z, 0x1.2436fep-2f);
    q = MULADD(q, z, 0x1.999a82p-2f);
    q = MULADD(q, z, 0x1.555554p-1f);
    float low = MULADD(e, 0x1.2fefa2p-17f, s * MULADD(q, z, h));
    float y = MULADD(e, 0x1.62e3p-1f, f - (h - low));
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    return x >= 0 ? y : NAN;
}

#endif

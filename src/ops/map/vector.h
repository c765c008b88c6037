/* vector.h: elementary functions of f32, without branches or calls, so that a loop over them becomes vector code.

   `fused` is a constant wherever they are called: whether the machine multiplies and adds in one instruction. Both ways
   every result is within 2 units in the last place of the true one, also where it falls below the normal range; zeros,
   infinities and NaN are as in libm. The polynomials are minimax fits. Functions whose intermediate values
   need more digits than a float has are in wide.h and gelu.h. */
#ifndef CN_MAP_VECTOR_H
#define CN_MAP_VECTOR_H

#include <math.h>

#include "core/dtype.h"
#include "cpu/isa.h"

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

/* NaN stays NaN. Both comparisons are with x: gcc makes a branch of a comparison with the other's result. */
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
#define CN__LN2      0x1.62e43p-1f
#define CN__LOG2_E   0x1.715476p0f

/* Adding it to a float rounds that to a whole number, which is then in the low bits of the sum. */
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

/* The same bits as cn__f32_exp for x ≤ 0, with fewer instructions: 2^(n + 64) is in range for every n. */
CN__INLINE float cn__f32_exp_down(float x, bool fused)
{
    float r;
    const int32_t n = cn__exp_reduce(x < -104 ? -104 : x, &r, fused);
    return (cn__expm1_reduced(r, fused) + 1) * cn__power_of_2(n + 64) * 0x1p-64f;
}

/* 2^n·(e^r - 1) + (2^n - 1), computed with n - 1 */
CN__INLINE float cn__f32_expm1(float x, bool fused)
{
    float r;
    int32_t n = cn__exp_reduce(cn__within(x, -30, 89), &r, fused);
    float half = cn__power_of_2(n - 1), y = 2 * MULADD(half, cn__expm1_reduced(r, fused), half - 0.5f);
    return x == 0 ? x : y;
}

/* (e^r - 1 - r)/r² for |r| ≤ log(2)/2; e^r is then good to 2^-28 */
CN__INLINE float cn__exp_bend(float r, bool fused)
{
    float q = 0x1.6a539cp-10f;
    q = MULADD(q, r, 0x1.123994p-7f);
    q = MULADD(q, r, 0x1.5558acp-5f);
    q = MULADD(q, r, 0x1.555492p-3f);
    return MULADD(q, r, 0x1.fffffcp-2f);
}

/* (e^r - 1)/r */
CN__INLINE float cn__exp_quotient(float r, bool fused) { return MULADD(cn__exp_bend(r, fused), r, 1.0f); }

/* The same for powers of 2: (2^f - 1 - f·log(2))/f² for |f| ≤ 1/2, and (2^f - 1)/f */
CN__INLINE float cn__exp2_bend(float f, bool fused)
{
    float q = 0x1.417b9ep-13f;
    q = MULADD(q, f, 0x1.5f095ep-10f);
    q = MULADD(q, f, 0x1.3b2dd2p-7f);
    q = MULADD(q, f, 0x1.c6af7ap-5f);
    return MULADD(q, f, 0x1.ebfbdcp-3f);
}
CN__INLINE float cn__exp2_quotient(float f, bool fused) { return MULADD(cn__exp2_bend(f, fused), f, CN__LN2); }

/* v = n·log(2) + r. Returns 2^(n + shift), whose exponent is in the low bits after n is rounded. */
CN__INLINE float cn__exp_parts(float v, int32_t shift, float *r, bool fused)
{
    const float rounder = CN__ROUNDER + (float)(127 + shift);
    float shifted = MULADD(v, CN__LOG2_E, rounder), n = shifted - rounder;
    *r = MULADD(n, -CN__LN2_LOW, MULADD(n, -CN__LN2_HIGH, v));
    return cn__f32_of_bits(cn__bits_of_f32(shifted) << 23);
}

/* u = n + f; the result is 2^(n + shift) */
CN__INLINE float cn__exp2_parts(float u, int32_t shift, float *f)
{
    const float rounder = CN__ROUNDER + (float)(127 + shift);
    float shifted = u + rounder;
    *f = u - (shifted - rounder);
    return cn__f32_of_bits(cn__bits_of_f32(shifted) << 23);
}

/* ---- the logistic function and what is made of it ---- */

/* min(|x|, most), or most if x is NaN. Bits of |x| are compared as whole numbers: their minimum is one instruction. */
CN__INLINE float cn__size_within(float x, float most)
{
    int32_t size = (int32_t)(cn__bits_of_f32(x) & 0x7fffffffu), limit = (int32_t)cn__bits_of_f32(most);
    return cn__f32_of_bits((uint32_t)(size < limit ? size : limit));
}

/* x limited to [low, high], where low < 0 < high; NaN becomes one of the limits. As unsigned numbers, the bits of
   floats below low are the greatest. */
CN__INLINE float cn__number_within(float x, float low, float high)
{
    uint32_t u = cn__bits_of_f32(x), least = cn__bits_of_f32(low);
    int32_t i = (int32_t)(u < least ? u : least), most = (int32_t)cn__bits_of_f32(high);
    return cn__f32_of_bits((uint32_t)(i < most ? i : most));
}

/* 1 + e^v overflows before its reciprocal underflows: both are scaled by 2^-32. */
#define CN__SUM_SHIFT -32
#define CN__SUM_SCALE 0x1p-32f

/* 2^-32·(1 + e^v) for -64 ≤ v ≤ 110 */
CN__INLINE float cn__1_and_exp(float v, bool fused)
{
    float r, power = cn__exp_parts(v, CN__SUM_SHIFT, &r, fused);
    return MULADD(power * r, cn__exp_quotient(r, fused), CN__SUM_SCALE) + power;
}

/* max(x, 0) - 2^-32·t for t ≥ 0; a zero has the sign of x */
CN__INLINE float cn__x_or_less(float x, float t, bool fused)
{
    float y = MULADD(t, -CN__SUM_SCALE, x < 0 ? 0 : x);
    return fused ? y : copysignf(y, x);
}

CN__INLINE float cn__f32_sigmoid(float x, bool fused)
{
    return (x == x ? CN__SUM_SCALE : x) / cn__1_and_exp(-cn__number_within(x, -105, 30), fused);
}

/* x/(1 + e^-x) = max(x, 0) - |x|/(1 + e^|x|) */
CN__INLINE float cn__f32_silu(float x, bool fused)
{
    float size = cn__size_within(x, 110);
    return cn__x_or_less(x, size / cn__1_and_exp(size, fused), fused);
}

/* y, or NaN if x is not finite: there a slope is ∞·0, as for f64 and on GPUs. */
CN__INLINE float cn__if_finite(float x, float y, bool fused) { return MULADD(x, 0.0f, y); }

/* s(one + (1 - s)·rise) with s = 1/(1 + e), from 2^-32·e and 2^32·rise. 1 - s is computed as e·s, which is accurate
   also where s is near 1. */
CN__INLINE float cn__slope_of_logistic(float e, float rise, float one, bool fused)
{
    float s = CN__SUM_SCALE / (e + CN__SUM_SCALE);
    return s * MULADD(e * s, rise, one);
}

/* s(1 + x(1 - s)) with s = sigmoid(x) */
CN__INLINE float cn__f32_silu_slope(float x, bool fused)
{
    float c = cn__number_within(x, -105, 30), r, power = cn__exp_parts(-c, CN__SUM_SHIFT, &r, fused);
    float e = MULADD(power * r, cn__exp_quotient(r, fused), power);
    return cn__slope_of_logistic(e, c / CN__SUM_SCALE, cn__if_finite(x, 1, fused), fused);
}

/* a + a³·P(a²) for a < 0.55 and NaN; else 1 - 2/(2^u + 1) with u = 2a·log2(e), which needs few digits there */
CN__INLINE float cn__f32_tanh(float x, bool fused)
{
    float size = fabsf(x), a = cn__size_within(x, 9.1f), z = a * a;
    float q = 0x1.0d4fcap-6f;
    q = MULADD(q, z, -0x1.af7cep-5f);
    q = MULADD(q, z, 0x1.10cefap-3f);
    q = MULADD(q, z, -0x1.555452p-2f);
    float f, power = cn__exp2_parts(a * (2 * CN__LOG2_E), 0, &f);
    float far = 1 - 2 / MULADD(power * f, cn__exp2_quotient(f, fused), power + 1);
    return copysignf(size >= 0.55f ? far : MULADD(size * z, q, size), x);
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

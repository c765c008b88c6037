/* gelu.h: the two forms of gelu for f32, and their slopes. As in vector.h, gelu and gelu_tanh are within 2 units in the
   last place, also for subnormal results. Their intermediate values need more digits than a float has, above all the
   argument of the exponential. With fused multiply-add, which gives the rounding error of a product, a second float
   holds these digits; without it, f64 is used. Slopes pass through 0; their error is at most 5·2^-24. */
#ifndef CN_MAP_GELU_H
#define CN_MAP_GELU_H

#include "wide.h"

/* ---- gelu(x) = x·Φ(x) = max(x, 0) - aΦ(-a) with a = |x| ---- */

#define CN__GELU_END    14.7f /* beyond it both terms of the slope underflow */
#define CN__ROOT_2_PI   0x1.40d932p1f
#define CN__GAUSS_SHIFT 32 /* e^(-a²/2) underflows earlier, so it is scaled by 2^32 */
#define CN__GAUSS_SCALE 0x1p-32f

/* 2^32·e^(-a²/2) = power·e^(r + low). Without fused instructions, a² is split by cutting a to half its digits. */
CN__INLINE float cn__gauss_parts(float a, float *r, float *low, bool fused)
{
    const float rounder = CN__ROUNDER + (127 + CN__GAUSS_SHIFT);
    float high = fused ? a : cn__f32_of_bits(cn__bits_of_f32(a) & 0xfffff000u), z = 0.5f * high * high;
    float rest = fused ? MULADD(0.5f * a, a, -z) : 0.5f * (a + high) * (a - high);
    float shifted = MULADD(z, -CN__LOG2_E, rounder), n = shifted - rounder;
    *r = MULADD(n, -CN__LN2_HIGH, -z);
    *low = MULADD(n, -CN__LN2_LOW, -rest);
    return cn__f32_of_bits(cn__bits_of_f32(shifted) << 23);
}

/* Φ(-a)·e^(a²/2) = Q/(√(2π)·aQ + P). For large a, P matters little, and errors of Q cancel in the quotient. The two
   functions return (Q - 1)/a and (P - 2)/a. */
CN__INLINE float cn__tail_q(float a, bool fused)
{
    float q = 0x1.45cbe8p-9f;
    q = MULADD(q, a, 0x1.e7f096p-6f);
    q = MULADD(q, a, 0x1.5d52ep-3f);
    q = MULADD(q, a, 0x1.21862ep-1f);
    return MULADD(q, a, 0x1.15ccbcp0f);
}
CN__INLINE float cn__tail_p(float a, bool fused)
{
    float p = 0x1.985db4p-8f;
    p = MULADD(p, a, 0x1.31a4b2p-4f);
    p = MULADD(p, a, 0x1.a9bfd2p-2f);
    return MULADD(p, a, 0x1.426b66p0f);
}

/* 1/x with a relative error below 1/8: the bits are subtracted from a constant. */
CN__INLINE float cn__about_1_over(float x) { return cn__f32_of_bits(0x7ef311c7u - cn__bits_of_f32(x)); }

/* The rounding errors of the denominator and of the quotient are added to the argument of the exponential. */
CN__INLINE float cn__f32_gelu_fused(float x)
{
    const bool fused = true;
    float a = cn__size_within(x, CN__GELU_END), r, low, power = cn__gauss_parts(a, &r, &low, fused);
    float w = MULADD(a * a, cn__tail_q(a, fused), a), p = a * cn__tail_p(a, fused);
    float most = MULADD(w, CN__ROOT_2_PI, p), sum = most + 2;
    float sum_rest = (MULADD(w, CN__ROOT_2_PI, -most) + p) + (most - (sum - 2));
    float scaled = power * w, t = scaled / sum, t_rest = MULADD(-t, sum_rest, MULADD(-t, sum, scaled));
    float near = r + low, bent = MULADD(near * near, cn__exp_bend(near, fused), low);
    return cn__x_or_less(x, MULADD(t, MULADD(t_rest, cn__about_1_over(scaled), bent) + r, t), fused);
}

/* In f64, for processors without fused multiply-add: Φ(-a) = e^(-a²/2)·P(a)/Q(a) */
CN__INLINE float cn__f32_gelu_wide(float x)
{
    const bool fused = false;
    float size = fabsf(x);
    double a = size > 14.5f ? 14.5f : size;
    double p = 0x1.d115a4e82609bp-11;
    p = MULADD(p, a, 0x1.7cc144e4ae478p-7);
    p = MULADD(p, a, 0x1.23a6ff9c6254ep-4);
    p = MULADD(p, a, 0x1.005540f63b2d3p-2);
    p = MULADD(p, a, 0x1.03b77cd3978a4p-1);
    p = MULADD(p, a, 0x1.ffffffff45e2fp-2);
    double q = 0x1.2372ea63ac587p-9;
    q = MULADD(q, a, 0x1.dd33d54a7c89ap-6);
    q = MULADD(q, a, 0x1.7218f1f963373p-3);
    q = MULADD(q, a, 0x1.50208c58152b2p-1);
    q = MULADD(q, a, 0x1.725d7cd9b2e0ap0);
    q = MULADD(q, a, 0x1.cff9a65023b26p0);
    q = MULADD(q, a, 1.0);
    return (float)((x >= 0 ? x : 0) - a * cn__wide_exp(-0.5 * a * a, fused) * p / q);
}

CN__INLINE float cn__f32_gelu(float x, bool fused) { return fused ? cn__f32_gelu_fused(x) : cn__f32_gelu_wide(x); }

/* Φ(-a) - aφ(a) for x < 0, and 1 minus that for x ≥ 0 */
CN__INLINE float cn__f32_gelu_slope(float x, bool fused)
{
    float a = cn__size_within(x, CN__GELU_END), high, low;
    float power = cn__gauss_parts(a, &high, &low, fused), r = high + low;
    float q = MULADD(a, cn__tail_q(a, fused), 1.0f), p = MULADD(a, cn__tail_p(a, fused), 2.0f);
    float ratio = q / MULADD(a * q, CN__ROOT_2_PI, p);
    float gauss = MULADD(power * r, cn__exp_quotient(r, fused), power);
    float left = gauss * MULADD(a, -1 / CN__ROOT_2_PI, ratio) * cn__if_finite(x, CN__GAUSS_SCALE, fused);
    return x < 0 ? left : 1 - left;
}

/* ---- gelu_tanh(x) = x/(1 + e^-v) with v = x(a + bx²): (1 + tanh(u))/2 is the logistic function of 2u ---- */

#define CN__GELU_A  1.59576912160573071176 /* √(8/π) */
#define CN__GELU_B  (CN__GELU_A * 0.044715)
#define CN__GELU_A2 (CN__GELU_A * CN__WIDE_LOG2_E) /* for powers of 2 */
#define CN__GELU_B2 (CN__GELU_B * CN__WIDE_LOG2_E)

/* max(x, 0) - c/(1 + 2^(c(a + bc²))) with c = |x|. c² = z + z_rest, a + bc² = w + w_rest, and c·w - n is rounded once.
   The sum 1 + 2^n has two parts, too. */
CN__INLINE float cn__f32_gelu_tanh_fused(float x)
{
    const bool fused = true;
    const float rounder = CN__ROUNDER + (127 + CN__SUM_SHIFT);
    const float a = 0x1.26aecp1f, b = (float)CN__GELU_B2; /* a has so few digits that w - a is exact */
    const float a_rest = (float)(CN__GELU_A2 - a), b_rest = (float)(CN__GELU_B2 - b);
    float c = cn__size_within(x, 10.8f), z = c * c, z_rest = MULADD(c, c, -z);
    float w = MULADD(b, z, a), w_rest = MULADD(b, z, a - w) + MULADD(b, z_rest, MULADD(b_rest, z, a_rest));
    float shifted = MULADD(c, w, rounder), f = MULADD(c, w_rest, MULADD(c, w, rounder - shifted));
    float power = cn__f32_of_bits(cn__bits_of_f32(shifted) << 23);
    float scaled = power * f, sum = power + CN__SUM_SCALE, rest = CN__SUM_SCALE - (sum - power);
    float bent = MULADD(scaled * f, cn__exp2_bend(f, fused), rest);
    return cn__x_or_less(x, c / (MULADD(scaled, CN__LN2, bent) + sum), fused);
}

/* In f64, for processors without fused multiply-add. */
CN__INLINE float cn__f32_gelu_tanh_wide(float x)
{
    const bool fused = false;
    float least = x < -11 ? -11 : x;
    double c = x > 6 ? 6 : least, v = -c * MULADD(c * c, CN__GELU_B, CN__GELU_A);
    return (float)(least / (1 + cn__wide_exp(v, fused)));
}

CN__INLINE float cn__f32_gelu_tanh(float x, bool fused)
{
    return fused ? cn__f32_gelu_tanh_fused(x) : cn__f32_gelu_tanh_wide(x);
}

/* s(1 + x(1 - s)v') with s the logistic function of v: cn__slope_of_logistic */
CN__INLINE float cn__f32_gelu_tanh_slope(float x, bool fused)
{
    float c = cn__number_within(x, -10.8f, 8), z = c * c, f;
    float u = c * MULADD(z, (float)-CN__GELU_B2, (float)-CN__GELU_A2);
    float power = cn__exp2_parts(u, CN__SUM_SHIFT, &f);
    float rise = c * MULADD(z, (float)(3 * CN__GELU_B / CN__SUM_SCALE), (float)(CN__GELU_A / CN__SUM_SCALE));
    float e = MULADD(power * f, cn__exp2_quotient(f, fused), power);
    return cn__slope_of_logistic(e, rise, cn__if_finite(x * x, 1, fused), fused);
}

#endif

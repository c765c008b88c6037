/* wide.h: functions of f32 whose intermediate values need more digits: they are computed in f64, without branches or
   calls, and rounded once. f64 has half as many lanes, but needs fewer steps. As in vector.h, results are within 2
   units in the last place; most are within 0.51. Where a formula would give NaN, the limit is returned: mish(-inf) is
   -0. */
#ifndef CN_MAP_WIDE_H
#define CN_MAP_WIDE_H

#include "vector.h"

CN__INLINE uint64_t cn__bits_of_f64(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

CN__INLINE double cn__f64_of_bits(uint64_t u)
{
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- parts, good to 2^-30 or better ---- */

#define CN__WIDE_LN2     0x1.62e42fefa39efp-1
#define CN__WIDE_LOG2_E  0x1.71547652b82fep0
#define CN__WIDE_ROUNDER 0x1.8p52 /* see CN__ROUNDER */

/* e^x for |x| < 700 */
CN__INLINE double cn__wide_exp(double x, bool fused)
{
    double shifted = MULADD(x, CN__WIDE_LOG2_E, CN__WIDE_ROUNDER), n = shifted - CN__WIDE_ROUNDER;
    double r = MULADD(n, -CN__WIDE_LN2, x), q = 0x1.a032c8b9d3bp-13;
    q = MULADD(q, r, 0x1.6d7296a14395cp-10);
    q = MULADD(q, r, 0x1.111189d6a9ffap-7);
    q = MULADD(q, r, 0x1.5554b098a6804p-5);
    q = MULADD(q, r, 0x1.555554ef0217bp-3);
    q = MULADD(q, r, 0x1.000000262395fp-1);
    q = MULADD(q, r, 1.0);
    q = MULADD(q, r, 1.0);
    return cn__f64_of_bits(cn__bits_of_f64(q) + (cn__bits_of_f64(shifted) << 52));
}

/* 2^x for |x| < 1000 */
CN__INLINE double cn__wide_exp2(double x, bool fused)
{
    double shifted = x + CN__WIDE_ROUNDER, r = x - (shifted - CN__WIDE_ROUNDER), q = 0x1.00f244d26443ap-16;
    q = MULADD(q, r, 0x1.445fc8f613b89p-13);
    q = MULADD(q, r, 0x1.5d8721e9f50dbp-10);
    q = MULADD(q, r, 0x1.3b29ef66fc069p-7);
    q = MULADD(q, r, 0x1.c6b08df5f017ep-5);
    q = MULADD(q, r, 0x1.ebfbe07c4b869p-3);
    q = MULADD(q, r, 0x1.62e42fef7ac3bp-1);
    q = MULADD(q, r, 1.0);
    return cn__f64_of_bits(cn__bits_of_f64(q) + (cn__bits_of_f64(shifted) << 52));
}

/* x = 2^k·m with √½ ≤ m < √2, for normal x > 0; 2^52 + k is a double with k in its low bits */
CN__INLINE double cn__wide_split(double x, double *m)
{
    const uint64_t root = 0x3fe6a09e00000000u, one = 0x3ff0000000000000u, mantissa = 0x000fffffffffffffu;
    uint64_t u = cn__bits_of_f64(x) + (one - root);
    *m = cn__f64_of_bits((u & mantissa) + root);
    return cn__f64_of_bits(u >> 52 | cn__bits_of_f64(0x1p52)) - (0x1p52 + 1023);
}

/* log(1 + x) for finite x > -1; the caller handles NaN. Near 1 + x = 1 the result is computed from x itself. */
CN__INLINE double cn__wide_log1p(double x, bool fused)
{
    double m, k = cn__wide_split(1 + x, &m), f = k == 0 ? x : m - 1;
    double s = f / (2 + f), z = s * s, q = 0x1.e2fa1db06bd01p-3;
    q = MULADD(q, z, 0x1.2438bff2e8b86p-2);
    q = MULADD(q, z, 0x1.999a7ae38c1b4p-2);
    q = MULADD(q, z, 0x1.555554fd6ed5cp-1);
    q = MULADD(q, z, 2.0);
    return MULADD(k, CN__WIDE_LN2, s * q);
}

/* log2(x) for x > 0, finite */
CN__INLINE double cn__wide_log2(double x, bool fused)
{
    double m, k = cn__wide_split(x, &m);
    double s = (m - 1) / (m + 1), z = s * s, q = 0x1.21b32efa00e2fp-2;
    q = MULADD(q, z, 0x1.47952fbf6950bp-2);
    q = MULADD(q, z, 0x1.a61a2fab43ee9p-2);
    q = MULADD(q, z, 0x1.2776c29235039p-1);
    q = MULADD(q, z, 0x1.ec709dc53d3d6p-1);
    q = MULADD(q, z, 0x1.71547652b8251p1);
    return MULADD(s, q, k);
}

/* ---- logarithms and powers ---- */

CN__INLINE float cn__f32_log1p(float x, bool fused)
{
    float y = (float)cn__wide_log1p(x, fused);
    y = x == INFINITY ? x : y;
    y = x == 0 ? x : y;
    y = x == -1 ? -INFINITY : y;
    return x >= -1 ? y : NAN;
}

CN__INLINE float cn__f32_log2(float x, bool fused)
{
    float y = (float)cn__wide_log2(x, fused);
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    return x >= 0 ? y : NAN;
}

/* 2^(y·log2|x|), with the sign of x if y is odd. From 2^24 on every float is even. */
CN__INLINE float cn__f32_pow(float x, float y, bool fused)
{
    double a = fabsf(x), e = y, log = cn__wide_log2(a, fused);
    log = a < INFINITY ? log : a;
    log = a == 0 ? -INFINITY : log;
    double v = ((a == 1) | (e == 0)) ? 0 : e * log, low = v < -200 ? -200 : v;
    double z = cn__wide_exp2(v > 200 ? 200 : low, fused);
    double whole = fabs(e) >= 0x1p24 ? 0 : e, shifted = whole + CN__WIDE_ROUNDER;
    bool is_whole = shifted - CN__WIDE_ROUNDER == whole;
    uint64_t odd = cn__bits_of_f64(shifted) << 63, sign = is_whole ? cn__bits_of_f64(x) & odd : 0;
    z = cn__f64_of_bits(cn__bits_of_f64(z) ^ sign);
    bool undefined = (x < 0) & (a < INFINITY) & !is_whole & (e != 0);
    return (float)(undefined ? (double)NAN : z);
}

/* log(1 + e^(p·x))/p, and x past the limit; log(1 + e^v) is v from 40 on */
CN__INLINE float cn__f32_softplus(float x, float p, float limit, bool fused)
{
    double v = (double)x * p, low = v < -200 ? -200 : v;
    double y = cn__wide_log1p(cn__wide_exp(v > 40 ? 40 : low, fused), fused);
    y = v <= 40 ? y : v;
    return x * p > limit ? x : (float)(y * (1 / (double)p));
}

CN__INLINE float cn__f32_log_sigmoid(float x, bool fused)
{
    float a = fabsf(x);
    double y = cn__wide_log1p(cn__wide_exp(-(double)(a > 200 ? 200 : a), fused), fused);
    return (float)((x > 0 ? 0 : x) - y);
}

/* x·tanh(log(1 + e^x)) = x·n/(n + 2) with n = e^x (e^x + 2); past 20 the factor is 1 */
CN__INLINE float cn__f32_mish(float x, bool fused)
{
    float least = x < -120 ? -120 : x;
    double e = cn__wide_exp(x > 20 ? 20 : least, fused), n = e * (e + 2);
    return (float)(least * (n / (n + 2)));
}

/* ---- the error function ---- */

/* x·P(x²)/Q(x²); 1 from 3.93 on */
CN__INLINE float cn__f32_erf(float x, bool fused)
{
    double c = cn__within(x, -3.93f, 3.93f), z = c * c;
    double p = -0x1.b9c5c60a05f1p-27;
    p = MULADD(p, z, 0x1.36097a494f711p-18);
    p = MULADD(p, z, 0x1.8b7bf38ea09b2p-12);
    p = MULADD(p, z, 0x1.f75bc02373e0bp-9);
    p = MULADD(p, z, 0x1.bc747504dcfcap-5);
    p = MULADD(p, z, 0x1.7b2f3c2f768a4p-3);
    p = MULADD(p, z, 0x1.20dd750d00afbp0);
    double q = 0x1.0624524675ee9p-14;
    q = MULADD(q, z, 0x1.556b3357d2a85p-10);
    q = MULADD(q, z, 0x1.f9c51eeb1c4ap-7);
    q = MULADD(q, z, 0x1.d27b7128ebb75p-4);
    q = MULADD(q, z, 0x1.fd5aec7c79537p-2);
    q = MULADD(q, z, 1.0);
    return (float)(c * p / q);
}

/* ---- sine and cosine ---- */

#define CN__FAR 0x1p21f /* beyond it, arguments are too large for the three parts of π below */

/* sin(x + shift·π) for shift 0 or ½: x = (n - shift)π + r, and n decides the sign. Arguments beyond CN__FAR, also
   infinities, are returned unchanged: a second pass recognises them, because they are greater than 1. */
CN__INLINE float cn__f32_sine(float argument, double shift, bool fused)
{
    double x = argument, shifted = MULADD(x, 0x1.45f306dc9c883p-2, shift) + CN__WIDE_ROUNDER;
    double n = shifted - CN__WIDE_ROUNDER - shift;
    double r = MULADD(n, -0x1.921fb544p1, x);
    r = MULADD(n, -0x1.0b4611a6p-33, r);
    r = MULADD(n, -0x1.3198a2e037073p-68, r);
    double z = r * r, q = -0x1.9a677f0d17d0dp-26;
    q = MULADD(q, z, 0x1.717074a72a7c5p-19);
    q = MULADD(q, z, -0x1.a017d948d5692p-13);
    q = MULADD(q, z, 0x1.11110c48fd64fp-7);
    q = MULADD(q, z, -0x1.5555554765bdfp-3);
    q = MULADD(q, z, 1.0);
    double y = cn__f64_of_bits(cn__bits_of_f64(r * q) ^ cn__bits_of_f64(shifted) << 63);
    return fabsf(argument) < CN__FAR ? (float)y : argument;
}

CN__INLINE float cn__f32_sin(float x, bool fused) { return cn__f32_sine(x, 0, fused); }
CN__INLINE float cn__f32_cos(float x, bool fused) { return cn__f32_sine(x, 0.5, fused); }

#endif

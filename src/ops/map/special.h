/* special.h: functions that libm lacks, in f64, which f32 uses too. Only kernel files (cpu/isa.h) include this header. */
#ifndef CN_MAP_SPECIAL_H
#define CN_MAP_SPECIAL_H

#include <math.h>

#define CN__PI 3.14159265358979323846

/* sin(πx)/(πx), exactly 0 at whole numbers: x = n + r, and sin(πx) = ±sin(πr) */
static inline double cn__sinc(double x)
{
    double n = rint(x), s = sin(CN__PI * (x - n));
    return x == 0 ? 1 : (fmod(n, 2) == 0 ? s : -s) / (CN__PI * x);
}

/* The derivative of log Γ(x). Left of 0 by reflection, then by ψ(x) = ψ(x + 1) - 1/x to where its series is exact. */
static inline double cn__digamma(double x)
{
    static const double series[] = { 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12 };
    double y = 0, s = 0;
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        if (x == trunc(x)) return NAN;
        y = -CN__PI / tan(CN__PI * (x - trunc(x)));
        x = 1 - x;
    }
    for (; x < 10; x++) y -= 1 / x;
    double z = 1 / (x * x);
    for (int i = 0; i < 7; i++) s = s * z + series[i];
    return y + log(x) - 0.5 / x - s * z;
}

/* Hurwitz's ζ(s, q) = Σ (q + k)^-s over k ≥ 0, for q > 0 and s ≥ 2: the first terms, then Euler and Maclaurin's sum. */
static inline double cn__zeta(double s, double q)
{
    /* (2k)!/B(2k) */
    static const double divisor[] = { 12,
                                      -720,
                                      30240,
                                      -1209600,
                                      47900160,
                                      -1.8924375803183791606e9,
                                      7.47242496e10,
                                      -2.950130727918164224e12,
                                      1.1646782814350067249e14,
                                      -4.5979787224074726105e15,
                                      1.8152105401943546773e17,
                                      -7.1661652561756670113e18 };
    double y = 0;
    for (; q <= 9; q++) y += pow(q, -s);
    double power = pow(q, -s), term = power * s / q;
    y += power * (q / (s - 1) + 0.5);
    for (int k = 0; k < 12 && term != 0; k++) {
        y += term / divisor[k];
        term *= (s + 2 * k + 1) / q * ((s + 2 * k + 2) / q);
    }
    return y;
}

/* (-1)^(n + 1) n! ζ(n + 1, x) for n ≥ 1. Left of 0 the terms of ζ on both sides of 0 are summed apart. */
static inline double cn__polygamma(double n, double x)
{
    double s = n + 1, odd = fmod(n, 2) != 0 ? 1 : -1, factorial = exp(lgamma(s)), z;
    if (x == INFINITY) return 0;
    if (x <= 0) {
        if (x == floor(x)) return isinf(x) ? NAN : odd * INFINITY;
        z = cn__zeta(s, x - floor(x)) + odd * (cn__zeta(s, ceil(x) - x) - cn__zeta(s, 1 - x));
    } else {
        z = cn__zeta(s, x);
    }
    return odd * factorial * z;
}

/* A quotient of polynomials (the starting point of PyTorch and Boost), then two of Newton's steps, on erfc near ±1. */
static inline double cn__erfinv(double y)
{
    double size = fabs(y), x, z;
    if (!(size < 1)) return size == 1 ? copysign(INFINITY, y) : NAN;
    if (size <= 0.7) {
        z = y * y;
        x = size * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
            ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
    } else {
        z = sqrt(-log((1 - size) / 2));
        x = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) /
            ((1.637067800 * z + 3.543889200) * z + 1);
    }
    for (int step = 0; step < 2; step++) {
        double off = size <= 0.7 ? erf(x) - size : (1 - size) - erfc(x);
        x -= off / (1.12837916709551257390 * exp(-x * x));
    }
    return copysign(x, y);
}

#endif

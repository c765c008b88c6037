/* Functions that kernels may use and WGSL lacks. */
#include <stdio.h>

#include "gpu/backend.h"

typedef struct function {
    const char *name, *text;
} function;

static const function functions[] = {
    /* WGSL promises nothing about NaN and infinity in arithmetic: bits are looked at. */
    { "isnan", "fn isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }\n" },
    { "isinf", "fn isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }\n" },
    { "isfinite", "fn isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }\n" },
    { "infinity", "fn infinity() -> f32 { var w = 0x7f800000u; return bitcast<f32>(w); }\n" },
    { "not_a_number", "fn not_a_number() -> f32 { var w = 0x7fc00000u; return bitcast<f32>(w); }\n" },

    /* a * b / c and what is left, however large the product; c < 2^31 */
    { "muldiv", "fn muldiv(a: u32, b: u32, c: u32) -> vec2<u32> {\n"
                "    if (a == 0u || b <= 0xffffffffu / a) { return vec2<u32>(a * b / c, a * b % c); }\n"
                "    var q = 0u; var r = 0u;\n    for (var bit = 32u; bit > 0u; bit--) {\n"
                "        q *= 2u; r *= 2u;\n        if (r >= c) { r -= c; q++; }\n"
                "        if (((a >> (bit - 1u)) & 1u) == 0u) { continue; }\n"
                "        q += b / c; r += b % c;\n        if (r >= c) { r -= c; q++; }\n    }\n"
                "    return vec2<u32>(q, r);\n}\n" },

    /* to nearest, ties to even; the f32 that has the narrower type's value */
    { "to_bf16", "fn to_bf16(x: f32) -> f32 {\n    let w = bitcast<u32>(x);\n    if (isnan(x)) { return x; }\n"
                 "    return bitcast<f32>((w + 0x7fffu + ((w >> 16u) & 1u)) & 0xffff0000u);\n}\n" },
    { "to_f16", "fn to_f16(x: f32) -> f32 {\n    let w = bitcast<u32>(x); let a = w & 0x7fffffffu; let sign = w & "
                "0x80000000u;\n    if (a > 0x7f800000u) { return x; }\n"
                "    if (a >= 0x477ff000u) { return bitcast<f32>(sign | 0x7f800000u); }\n"
                "    if (a < 0x38800000u) {\n        let units = round(abs(x) * 16777216.0);\n"
                "        return bitcast<f32>(sign | bitcast<u32>(units * 5.9604644775390625e-8));\n    }\n"
                "    return bitcast<f32>(sign | ((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u));\n}\n" },

    /* whether it is not 0: NaN is not, whatever != says of it */
    { "truth", "fn truth(x: f32) -> bool { return x != 0.0 || isnan(x); }\n" },

    /* NaN stays */
    { "larger", "fn larger(x: f32, y: f32) -> f32 { return select(select(max(x, y), y, isnan(y)), x, isnan(x)); }\n" },
    { "smaller",
      "fn smaller(x: f32, y: f32) -> f32 { return select(select(min(x, y), y, isnan(y)), x, isnan(x)); }\n" },
    { "limit",
      "fn limit(x: f32, low: f32, high: f32) -> f32 { return select(min(max(x, low), high), x, isnan(x)); }\n" },
    { "with_sign",
      "fn with_sign(size: f32, x: f32) -> f32 {\n"
      "    return bitcast<f32>((bitcast<u32>(size) & 0x7fffffffu) | (bitcast<u32>(x) & 0x80000000u));\n"
      "}\n" },

    /* from x to y as t goes from 0 to 1 */
    { "mixed",
      "fn mixed(x: f32, y: f32, t: f32) -> f32 {\n"
      "    return select(y - (y - x) * (1.0 - t), x + t * (y - x), abs(t) < 0.5);\n"
      "}\n" },

    /* a float as a whole number: towards zero, at most what fits; as a byte: the lowest of the
       64-bit whole number, which is 0 from 2^31 on, since floats have 24 bits, and 255 from 2^63 on; 64 bits as 32 */
    { "to_whole",
      "fn to_whole(x: f32) -> i32 {\n"
      "    if (isnan(x)) { return 0; }\n"
      "    if (x >= 2147483648.0) { return 2147483647; }\n"
      "    if (x <= -2147483648.0) { return bitcast<i32>(0x80000000u); }\n"
      "    return i32(x);\n"
      "}\n" },
    { "low_byte",
      "fn low_byte(x: f32) -> i32 {\n"
      "    if (x >= 9223372036854775808.0) { return 255; }\n"
      "    return select(0, to_whole(x), abs(x) < 2147483648.0) & 255;\n"
      "}\n" },
    { "saturated",
      "fn saturated(low: u32, high: u32) -> i32 {\n"
      "    let x = bitcast<i32>(low); let h = bitcast<i32>(high);\n"
      "    return select(select(2147483647, bitcast<i32>(0x80000000u), h < 0), x, (x >> 31u) == h);\n"
      "}\n" },

    /* some GPUs make numbers of exp(NaN) and log(-1), and have log near 1 to 2^-21 only */
    { "exponential", "fn exponential(x: f32) -> f32 { return select(exp(x), x, isnan(x)); }\n" },
    { "logarithm",
      "fn logarithm(x: f32) -> f32 {\n"
      "    if (abs(x - 1.0) < 0.4) { return log1p(x - 1.0); }\n"
      "    if (isnan(x) || x < 0.0) { return not_a_number(); }\n"
      "    return select(select(log(x), x, isinf(x)), -infinity(), x == 0.0);\n"
      "}\n" },
    { "logarithm_2",
      "fn logarithm_2(x: f32) -> f32 {\n"
      "    if (isnan(x) || x < 0.0) { return not_a_number(); }\n"
      "    return select(select(log2(x), x, isinf(x)), -infinity(), x == 0.0);\n"
      "}\n" },

    /* powers of e: x = n log(2) + r, as the CPU has them */
    { "power_of_2", "fn power_of_2(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }\n" },
    { "expm1_reduced",
      "fn expm1_reduced(r: f32) -> f32 {\n"
      "    var q = 0x1.9eb31ap-13f;\n"
      "    q = q * r + 0x1.6d3978p-10f; q = q * r + 0x1.1112bap-7f; q = q * r + 0x1.5554fap-5f;\n"
      "    q = q * r + 0x1.555554p-3f;\n"
      "    return r * r * (q * r + 0.5) + r;\n"
      "}\n" },
    { "expm1",
      "fn expm1(x: f32) -> f32 {\n"
      "    if (x == 0.0 || isnan(x)) { return x; }\n"
      "    if (x > 88.8) { return infinity(); }\n"
      "    let c = max(x, -30.0); let n = round(c * 1.44269504);\n"
      "    let half = power_of_2(i32(n) - 1);\n"
      "    return 2.0 * (half * expm1_reduced(c - n * 0x1.63p-1f + n * 0x1.bd0106p-13f) + (half - 0.5));\n"
      "}\n" },
    { "sigmoid",
      "fn sigmoid(x: f32) -> f32 {\n"
      "    return select(1.0 / (1.0 + exponential(-limit(x, -88.0, 88.0))), 0.0, x < -87.3);\n"
      "}\n" },
    { "silu", "fn silu(x: f32) -> f32 { return larger(x, -110.0) * sigmoid(x); }\n" },
    { "hyperbolic_sine",
      "fn hyperbolic_sine(x: f32) -> f32 {\n"
      "    let a = abs(x); let e = expm1(min(a, 20.0)); let h = exponential(0.5 * a);\n"
      "    return with_sign(select(0.5 * (e + e / (e + 1.0)), 0.5 * h * h, a > 20.0 || isnan(x)), x);\n"
      "}\n" },
    { "hyperbolic_cosine",
      "fn hyperbolic_cosine(x: f32) -> f32 {\n"
      "    let a = abs(x); let e = exp(min(a, 20.0)); let h = exponential(0.5 * a);\n"
      "    return select(0.5 * (e + 1.0 / e), 0.5 * h * h, a > 20.0 || isnan(x));\n"
      "}\n" },
    { "hyperbolic_tangent",
      "fn hyperbolic_tangent(x: f32) -> f32 {\n"
      "    if (isnan(x)) { return x; }\n"
      "    let a = min(abs(x), 9.1); let z = a * a;\n"
      "    var q = -0x1.830bfcp-8f;\n"
      "    q = q * z + 0x1.54e01ap-6f; q = q * z - 0x1.b89edap-5f; q = q * z + 0x1.1109dcp-3f;\n"
      "    q = q * z - 0x1.55553ep-2f;\n"
      "    return with_sign(select(1.0 - 2.0 / (exp(2.0 * a) + 1.0), a * z * q + a, a < 0.6), x);\n"
      "}\n" },

    /* log(1 + x): 1 + x = 2^k m; while k is 0, what counts is x itself */
    { "log1p",
      "fn log1p(x: f32) -> f32 {\n"
      "    if (isnan(x) || x < -1.0) { return not_a_number(); }\n"
      "    if (x == -1.0) { return -infinity(); }\n"
      "    if (isinf(x) || x == 0.0) { return x; }\n"
      "    let u = bitcast<u32>(1.0 + x) + (0x3f800000u - 0x3f3504f3u);\n"
      "    let k = i32(u >> 23u) - 127;\n"
      "    let f = select(bitcast<f32>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0, x, k == 0);\n"
      "    let s = f / (2.0 + f); let z = s * s;\n"
      "    var q = 0x1.e2fa1ep-3f;\n"
      "    q = q * z + 0x1.2438cp-2f; q = q * z + 0x1.999a7ap-2f; q = q * z + 0x1.555554p-1f;\n"
      "    return f32(k) * 0.69314718 + s * (q * z + 2.0);\n"
      "}\n" },
    { "softplus", "fn softplus(x: f32) -> f32 { return larger(x, 0.0) + log1p(exp(-abs(x))); }\n" },

    /* x tanh(log(1 + e^x)) */
    { "mish",
      "fn mish(x: f32) -> f32 {\n"
      "    let e = exp(limit(x, -88.0, 20.0)); let n = e * (e + 2.0);\n"
      "    return larger(x, -120.0) * (n / (n + 2.0));\n"
      "}\n" },

    /* x^y as the CPU has it at the edges; from 2^24 on every float is even */
    { "power",
      "fn power(x: f32, y: f32) -> f32 {\n"
      "    if (y == 0.0 || x == 1.0) { return 1.0; }\n"
      "    if (isnan(x) || isnan(y)) { return not_a_number(); }\n"
      "    let a = abs(x); let size = abs(y);\n"
      "    let whole = size >= 16777216.0 || floor(y) == y;\n"
      "    if (x < 0.0 && !isinf(x) && !whole) { return not_a_number(); }\n"
      "    var r = 1.0;\n"
      "    if (a == 0.0 || isinf(a) || isinf(y)) {\n"
      "        if (a != 1.0) { r = select(0.0, infinity(), (a > 1.0) == (y > 0.0)); }\n"
      "    } else if (whole && size <= 64.0) {\n"
      "        var s = a;\n"
      "        for (var e = u32(size); e > 0u; e >>= 1u) {\n"
      "            if ((e & 1u) == 1u) { r *= s; }\n"
      "            s *= s;\n"
      "        }\n"
      "        if (y < 0.0) { r = 1.0 / r; }\n"
      "    } else {\n"
      "        r = exp2(y * log2(a));\n"
      "    }\n"
      "    let odd = size < 16777216.0 && whole && (i32(y) & 1) == 1;\n"
      "    return select(r, with_sign(r, x), odd);\n"
      "}\n" },

    /* the error function and gelu: quotients of polynomials, the CPU's */
    { "erf",
      "fn erf(x: f32) -> f32 {\n"
      "    let c = limit(x, -3.93, 3.93); let z = c * c;\n"
      "    var p = -0x1.b9c5c6p-27f;\n"
      "    p = p * z + 0x1.36097ap-18f; p = p * z + 0x1.8b7bf4p-12f; p = p * z + 0x1.f75bcp-9f;\n"
      "    p = p * z + 0x1.bc7476p-5f;\n"
      "    p = p * z + 0x1.7b2f3cp-3f; p = p * z + 0x1.20dd76p0f;\n"
      "    var q = 0x1.062452p-14f;\n"
      "    q = q * z + 0x1.556b34p-10f; q = q * z + 0x1.f9c51ep-7f; q = q * z + 0x1.d27b72p-4f;\n"
      "    q = q * z + 0x1.fd5aecp-2f;\n"
      "    return c * p / (q * z + 1.0);\n"
      "}\n" },
    { "gelu",
      "fn gelu(x: f32) -> f32 {\n"
      "    if (isnan(x)) { return x; }\n"
      "    let a = min(abs(x), 14.5);\n"
      "    var p = 0x1.d115a4p-11f;\n"
      "    p = p * a + 0x1.7cc144p-7f; p = p * a + 0x1.23a7p-4f; p = p * a + 0x1.00554p-2f;\n"
      "    p = p * a + 0x1.03b77cp-1f;\n"
      "    p = p * a + 0.5;\n"
      "    var q = 0x1.2372eap-9f;\n"
      "    q = q * a + 0x1.dd33d6p-6f; q = q * a + 0x1.7218f2p-3f; q = q * a + 0x1.50208cp-1f;\n"
      "    q = q * a + 0x1.725d7cp0f;\n"
      "    q = q * a + 0x1.cff9a6p0f;\n"
      "    return max(x, 0.0) - a * exp(-0.5 * a * a) * p / (q * a + 1.0);\n"
      "}\n" },
    { "gelu_slope",
      "fn gelu_slope(x: f32) -> f32 {\n"
      "    let share = select(gelu(x) / x, 0.5, abs(x) < 1e-6);\n"
      "    return share + x * (0.39894228 * exp(-0.5 * x * x));\n"
      "}\n" },
    { "gelu_tanh",
      "fn gelu_tanh(x: f32) -> f32 {\n"
      "    let c = limit(x, -11.0, 11.0);\n"
      "    return larger(x, -11.0) * sigmoid(c * (1.5957691 + 0.071354814 * c * c));\n"
      "}\n" },
    { "gelu_tanh_slope",
      "fn gelu_tanh_slope(x: f32) -> f32 {\n"
      "    let s = sigmoid(x * (1.5957691 + 0.071354814 * x * x));\n"
      "    return s * (1.0 + 2.0 * x * (1.0 - s) * (0.79788456 + 0.10703222 * x * x));\n"
      "}\n" },

    /* sin and cos, which GPUs have to 2^-11 only: x = n pi + r, pi in parts so short that the first products are
       exact; from 2^21 on, where neighbours are a quarter apart, as they have it */
    { "reduced_sine",
      "fn reduced_sine(x: f32, n: f32) -> f32 {\n"
      "    let r = x - n * 3.140625 - n * 0.0009675025939941406 - n * 1.5099067240953445e-7 - n * 5.126688e-12;\n"
      "    let z = r * r;\n"
      "    var q = 2.6348696e-6;\n"
      "    q = q * z - 0.0001982278; q = q * z + 0.0083332425; q = q * z - 0.16666666;\n"
      "    return r + r * (z * q);\n"
      "}\n" },
    { "sine",
      "fn sine(x: f32) -> f32 {\n"
      "    if (!isfinite(x)) { return not_a_number(); }\n"
      "    if (abs(x) >= 2097152.0) { return sin(x); }\n"
      "    let n = round(x * 0.31830989);\n"
      "    return reduced_sine(x, n) * f32(1 - 2 * (i32(n) & 1));\n"
      "}\n" },
    { "cosine",
      "fn cosine(x: f32) -> f32 {\n"
      "    if (!isfinite(x)) { return not_a_number(); }\n"
      "    if (abs(x) >= 2097152.0) { return cos(x); }\n"
      "    let n = round(x * 0.31830989 + 0.5);\n"
      "    return reduced_sine(x, n - 0.5) * f32(1 - 2 * (i32(n) & 1));\n"
      "}\n" },

    /* and back */
    { "arctangent",
      "fn arctangent(x: f32) -> f32 {\n"
      "    let a = abs(x);\n"
      "    let far = a > 2.4142135; let middle = !far && a > 0.41421356;\n"
      "    let t = select(select(a, (a - 1.0) / (a + 1.0), middle), -1.0 / a, far);\n"
      "    let start = select(select(0.0, 0.78539816, middle), 1.5707963, far);\n"
      "    let z = t * t;\n"
      "    var q = 0.08539082;\n"
      "    q = q * z - 0.14028941; q = q * z + 0.19991548; q = q * z - 0.3333329;\n"
      "    return with_sign(start + (t + t * (z * q)), x);\n"
      "}\n" },
    { "angle",
      "fn angle(y: f32, x: f32) -> f32 {\n"
      "    if (isnan(x) || isnan(y)) { return not_a_number(); }\n"
      "    let a = abs(x); let b = abs(y); let most = max(a, b); let least = min(a, b);\n"
      "    var t = 0.0;\n"
      "    if (isinf(least)) { t = 1.0; } else if (most > 0.0 && !isinf(most)) { t = least / most; }\n"
      "    t = arctangent(t);\n"
      "    if (b > a) { t = 1.5707963 - t; }\n"
      "    if (bitcast<i32>(x) < 0) { t = 3.1415927 - t; }\n"
      "    return with_sign(t, y);\n"
      "}\n" },
    { "arcsine_near",
      "fn arcsine_near(x: f32) -> f32 {\n"
      "    let z = x * x;\n"
      "    var q = 0.03832829;\n"
      "    q = q * z + 0.026433369; q = q * z + 0.045020215; q = q * z + 0.07498761; q = q * z + 0.16666673;\n"
      "    return x + x * (z * q);\n"
      "}\n" },
    { "arcsine",
      "fn arcsine(x: f32) -> f32 {\n"
      "    let a = abs(x);\n"
      "    if (isnan(x) || a > 1.0) { return not_a_number(); }\n"
      "    if (a <= 0.5) { return arcsine_near(x); }\n"
      "    return with_sign(1.5707963 - 2.0 * arcsine_near(sqrt(0.5 * (1.0 - a))), x);\n"
      "}\n" },
    { "arccosine",
      "fn arccosine(x: f32) -> f32 {\n"
      "    let a = abs(x);\n"
      "    if (isnan(x) || a > 1.0) { return not_a_number(); }\n"
      "    if (a <= 0.5) { return 1.5707963 - arcsine_near(x); }\n"
      "    let t = 2.0 * arcsine_near(sqrt(0.5 * (1.0 - a)));\n"
      "    return select(t, 3.1415927 - t, x < 0.0);\n"
      "}\n" },

    /* x - y trunc(x / y), exact: x % y divides, and is off by y where the quotient is nearly whole. Eight bits
       at a time. */
    { "modulo",
      "fn modulo(x: f32, y: f32) -> f32 {\n"
      "    let a = bitcast<u32>(x) & 0x7fffffffu; let b = bitcast<u32>(y) & 0x7fffffffu;\n"
      "    if (a >= 0x7f800000u || b == 0u || b > 0x7f800000u) { return not_a_number(); }\n"
      "    if (a < b) { return x; }\n"
      "    let ea = max(a >> 23u, 1u); let eb = max(b >> 23u, 1u);\n"
      "    let mb = (b & 0x7fffffu) | select(0x800000u, 0u, b < 0x800000u);\n"
      "    var m = ((a & 0x7fffffu) | select(0x800000u, 0u, a < 0x800000u)) % mb;\n"
      "    for (var d = ea - eb; d > 0u;) {\n"
      "        let s = min(d, 8u);\n"
      "        m = (m << s) % mb;\n"
      "        d -= s;\n"
      "    }\n"
      "    if (m == 0u) { return with_sign(0.0, x); }\n"
      "    let s = countLeadingZeros(m) - 8u;\n"
      "    var w = (m << s) - 0x800000u;\n"
      "    if (eb > s) { w += (eb - s) << 23u; } else { w = m << (eb - 1u); }\n"
      "    return bitcast<f32>(w | (bitcast<u32>(x) & 0x80000000u));\n"
      "}\n" },
    { "remainder",
      "fn remainder(x: f32, y: f32) -> f32 {\n"
      "    let m = modulo(x, y);\n"
      "    return select(m, m + y, m != 0.0 && !isnan(m) && (m < 0.0) != (y < 0.0));\n"
      "}\n" },
    { "floor_divide",
      "fn floor_divide(x: f32, y: f32) -> f32 {\n"
      "    let sign = bitcast<f32>((bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u);\n"
      "    if (y == 0.0) { return with_sign(select(infinity(), not_a_number(), x == 0.0 || isnan(x)), sign); }\n"
      "    let m = modulo(x, y);\n"
      "    if (isnan(m) || isinf(y)) {\n"
      "        return select(select(0.0, -1.0, m != 0.0 && (m < 0.0) != (y < 0.0)), m, isnan(m));\n"
      "    }\n"
      "    let q = round((x - m) / y) - f32(m != 0.0 && (m < 0.0) != (y < 0.0));\n"
      "    return select(q, with_sign(0.0, sign), q == 0.0);\n"
      "}\n" },

    /* whole numbers: divided by 0 they give 0; shifted too far, nothing, or the sign */
    { "whole_modulo",
      "fn whole_modulo(x: i32, y: i32) -> i32 {\n"
      "    if (y == 0 || y == -1) { return 0; }\n"
      "    return x % y;\n"
      "}\n" },
    { "whole_remainder",
      "fn whole_remainder(x: i32, y: i32) -> i32 {\n"
      "    let m = whole_modulo(x, y);\n"
      "    return select(m, m + y, m != 0 && (m < 0) != (y < 0));\n"
      "}\n" },
    { "whole_floor_divide",
      "fn whole_floor_divide(x: i32, y: i32) -> i32 {\n"
      "    if (y == 0) { return 0; }\n"
      "    if (y == -1) { return -x; }\n"
      "    let m = x % y;\n"
      "    return x / y - i32(m != 0 && (m < 0) != (y < 0));\n"
      "}\n" },
    { "whole_power",
      "fn whole_power(x: i32, y: i32) -> i32 {\n"
      "    if (y < 0) { return select(select(0, select(1, -1, (y & 1) == 1), x == -1), 1, x == 1); }\n"
      "    var r = 1; var s = x;\n"
      "    for (var e = y; e > 0; e >>= 1u) {\n"
      "        if ((e & 1) == 1) { r *= s; }\n"
      "        s *= s;\n"
      "    }\n"
      "    return r;\n"
      "}\n" },
    { "shift_left",
      "fn shift_left(x: i32, y: i32, bits: i32) -> i32 {\n"
      "    if (y < 0 || y >= min(bits, 32)) { return 0; }\n"
      "    return bitcast<i32>(bitcast<u32>(x) << u32(y));\n"
      "}\n" },
    { "shift_right",
      "fn shift_right(x: i32, y: i32, bits: i32) -> i32 {\n"
      "    return x >> select(u32(y), 31u, y < 0 || y >= min(bits, 32));\n"
      "}\n" },

    /* words in the order of the floats they stand for, NaN last; the better of two (word, place), the
       first of equals */
    { "ordered",
      "fn ordered(x: f32) -> u32 {\n"
      "    let w = bitcast<u32>(x);\n"
      "    if (isnan(x)) { return 0xffffffffu; }\n"
      "    if (x == 0.0) { return 0x80000000u; }\n"
      "    return select(w | 0x80000000u, ~w, (w >> 31u) == 1u);\n"
      "}\n" },
    { "first_of",
      "fn first_of(s: vec2<u32>, t: vec2<u32>) -> vec2<u32> {\n"
      "    return select(s, t, t.x > s.x || (t.x == s.x && t.y < s.y));\n"
      "}\n" },

    /* 64 bits as (low, high): products of two words; sums; upper halves of products; shifts; a 2^e to the nearest
       f32 */
    { "multiply",
      "fn multiply(a: u32, b: u32) -> vec2<u32> {\n"
      "    let x = a & 0xffffu; let y = a >> 16u; let u = b & 0xffffu; let v = b >> 16u;\n"
      "    let m = y * u + ((x * u) >> 16u); let n = x * v + (m & 0xffffu);\n"
      "    return vec2<u32>(a * b, y * v + (m >> 16u) + (n >> 16u));\n"
      "}\n" },
    { "add_64",
      "fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
      "    let low = a.x + b.x;\n"
      "    return vec2<u32>(low, a.y + b.y + u32(low < a.x));\n"
      "}\n" },
    { "subtract_64",
      "fn subtract_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
      "    return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));\n"
      "}\n" },
    { "upper_64",
      "fn upper_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
      "    let p = multiply(a.x, b.y); let q = multiply(a.y, b.x);\n"
      "    let m = add_64(vec2<u32>(multiply(a.x, b.x).y, 0u), vec2<u32>(p.x, 0u));\n"
      "    let n = add_64(m, vec2<u32>(q.x, 0u));\n"
      "    let r = add_64(add_64(multiply(a.y, b.y), vec2<u32>(p.y, 0u)), vec2<u32>(q.y, 0u));\n"
      "    return add_64(r, vec2<u32>(n.y, 0u));\n"
      "}\n" },
    { "shift_64",
      "fn shift_64(a: vec2<u32>, s: u32) -> vec2<u32> {\n"
      "    if (s == 0u) { return a; }\n"
      "    if (s >= 32u) { return vec2<u32>(0u, a.x << (s - 32u)); }\n"
      "    return vec2<u32>(a.x << s, (a.y << s) | (a.x >> (32u - s)));\n"
      "}\n" },
    { "nearest_64",
      "fn nearest_64(a: vec2<u32>, e: i32) -> f32 {\n"
      "    if (a.x == 0u && a.y == 0u) { return 0.0; }\n"
      "    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);\n"
      "    let m = shift_64(a, zeros);\n"
      "    let top = m.y >> 8u; let rest = m.y & 255u;\n"
      "    let up = rest > 128u || (rest == 128u && (m.x != 0u || (top & 1u) == 1u));\n"
      "    return bitcast<f32>((u32(190 + e - i32(zeros)) << 23u) + (top - 0x800000u) + u32(up));\n"
      "}\n" },
    { "nearest_signed_64",
      "fn nearest_signed_64(a: vec2<u32>) -> f32 {\n"
      "    if (bitcast<i32>(a.y) >= 0) { return nearest_64(a, 0); }\n"
      "    return -nearest_64(subtract_64(vec2<u32>(0u), a), 0);\n"
      "}\n" },

    /* the words of a f64 as f32, towards zero */
    { "real_of",
      "fn real_of(low: u32, high: u32) -> f32 {\n"
      "    let e = i32((high >> 20u) & 0x7ffu) - 1023;\n"
      "    if (e < -126) { return 0.0; }\n"
      "    if (e > 127) { return bitcast<f32>((high & 0x80000000u) | 0x7f800000u); }\n"
      "    return bitcast<f32>((high & 0x80000000u) | (u32(e + 127) << 23u) | ((high & 0xfffffu) << 3u) | (low >> 29u));\n"
      "}\n" },

    /* a / d and the remainder, for quotients of 32 bits and d below 2^31 */
    { "quotient_64",
      "fn quotient_64(a: vec2<u32>, d: u32) -> vec2<u32> {\n"
      "    var q = 0u; var r = 0u;\n"
      "    for (var k = 0u; k < 64u; k++) {\n"
      "        r = (r << 1u) | ((select(a.x, a.y, k < 32u) >> (31u - (k & 31u))) & 1u);\n"
      "        q = q << 1u;\n"
      "        if (r >= d) { r -= d; q |= 1u; }\n"
      "    }\n"
      "    return vec2<u32>(q, r);\n"
      "}\n" },

    /* start + i (end - start) / (count - 1) towards zero: exact if both ends are whole */
    { "spaced_whole",
      "fn spaced_whole(start: i32, end: i32, real_start: f32, real_end: f32, i: u32, count: u32) -> i32 {\n"
      "    let steps = max(count, 2u) - 1u;\n"
      "    if (real_start != f32(start) || real_end != f32(end)) {\n"
      "        return to_whole(real_start + (real_end - real_start) * (f32(i) / f32(steps)));\n"
      "    }\n"
      "    let down = end < start;\n"
      "    let q = quotient_64(multiply(i, select(u32(end) - u32(start), u32(start) - u32(end), down)), steps);\n"
      "    let floored = select(start + i32(q.x), start - i32(q.x) - i32(q.y > 0u), down);\n"
      "    return floored + i32(floored < 0 && q.y > 0u);\n"
      "}\n" },

    /* random numbers by position (core/philox.h): a block; word i; words 2i and 2i + 1; [0, 1) from a word */
    { "philox",
      "fn philox(seed: vec2<u32>, stream: vec2<u32>, block: u32) -> vec4<u32> {\n"
      "    var key = seed;\n"
      "    var c = vec4<u32>(block, 0u, stream);\n"
      "    for (var k = 0u; k < 10u; k++) {\n"
      "        let p = multiply(0xD2511F53u, c.x); let q = multiply(0xCD9E8D57u, c.z);\n"
      "        c = vec4<u32>(q.y ^ c.y ^ key.x, q.x, p.y ^ c.w ^ key.y, p.x);\n"
      "        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);\n"
      "    }\n"
      "    return c;\n"
      "}\n" },
    { "random_word",
      "fn random_word(seed0: u32, seed1: u32, stream0: u32, stream1: u32, i: u32) -> u32 {\n"
      "    let c = philox(vec2<u32>(seed0, seed1), vec2<u32>(stream0, stream1), i >> 2u);\n"
      "    let pair = select(c.xy, c.zw, (i & 2u) != 0u);\n"
      "    return select(pair.x, pair.y, (i & 1u) != 0u);\n"
      "}\n" },
    { "random_pair",
      "fn random_pair(seed0: u32, seed1: u32, stream0: u32, stream1: u32, i: u32) -> vec2<u32> {\n"
      "    let c = philox(vec2<u32>(seed0, seed1), vec2<u32>(stream0, stream1), i >> 1u);\n"
      "    return select(c.xy, c.zw, (i & 1u) != 0u);\n"
      "}\n" },
    { "unit", "fn unit(word: u32) -> f32 { return f32(word >> 8u) * 0x1p-24f; }\n" },

    /* the same from the upper 53 bits of two, to the nearest f32; whether it is below p */
    { "unit_53", "fn unit_53(w: vec2<u32>) -> f32 { return nearest_64(vec2<u32>(w.y & 0xfffff800u, w.x), -64); }\n" },
    { "unit_53_below",
      "fn unit_53_below(w: vec2<u32>, p: f32) -> bool {\n"
      "    let b = bitcast<u32>(p);\n"
      "    if (isnan(p) || p <= 0.0) { return false; }\n"
      "    if (p >= 1.0) { return true; }\n"
      "    let e = b >> 23u; let m = (b & 0x7fffffu) | 0x800000u;\n"
      "    var limit_64 = vec2<u32>((m >> min(86u - min(e, 86u), 31u)) | 1u, 0u);\n"
      "    if (e >= 86u) { limit_64 = shift_64(vec2<u32>(m, 0u), e - 86u); }\n"
      "    let low = w.y & 0xfffff800u;\n"
      "    return w.x < limit_64.y || (w.x == limit_64.y && low < limit_64.x);\n"
      "}\n" },

    /* whole numbers below a limit (ops/create/draw.h) */
    { "below",
      "fn below(count: vec2<u32>, w: vec2<u32>) -> vec2<u32> {\n"
      "    let middle = add_64(multiply(w.x, count.x), vec2<u32>(multiply(w.y, count.x).y, 0u));\n"
      "    let carry = add_64(multiply(w.y, count.y), vec2<u32>(middle.x, 0u));\n"
      "    return add_64(add_64(multiply(w.x, count.y), vec2<u32>(middle.y, 0u)), vec2<u32>(carry.y, 0u));\n"
      "}\n" },

    /* The normal distribution with the CPU's very bits (ops/create/random.c). What a GPU may do in its own way is
       done here by hand: products and sums are kept apart by a zero that the compiler cannot know, quotients and roots are
       rounded by whole numbers, and the cosine, which the CPU computes in f64, is a polynomial in 64-bit fixed point: for
       each of the 2^24 arguments there are it gives the same f32. */
    { "apart", "fn apart(x: f32, zero: u32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | zero); }\n" },
    { "exact_quotient",
      "fn exact_quotient(x: f32, y: f32) -> f32 {\n"
      "    let a = bitcast<u32>(x); let b = bitcast<u32>(y);\n"
      "    if (x == 0.0) { return x; }\n"
      "    let ma = (a & 0x7fffffu) | 0x800000u; let mb = (b & 0x7fffffu) | 0x800000u;\n"
      "    var q = ma / mb; var r = ma % mb;\n"
      "    for (var k = 0u; k < 3u; k++) {\n"
      "        r = r << 8u;\n"
      "        q = (q << 8u) | (r / mb);\n"
      "        r = r % mb;\n"
      "    }\n"
      "    let over = q >= 0x1000000u;\n"
      "    let m = select(q, q >> 1u, over);\n"
      "    let half = select(2u * r == mb, (q & 1u) == 1u && r == 0u, over);\n"
      "    let more = select(2u * r > mb, (q & 1u) == 1u && r != 0u, over);\n"
      "    let e = ((a >> 23u) & 255u) - ((b >> 23u) & 255u) + 126u + u32(over);\n"
      "    let size = (e << 23u) + (m - 0x800000u) + u32(more || (half && (m & 1u) == 1u));\n"
      "    return bitcast<f32>(size | ((a ^ b) & 0x80000000u));\n"
      "}\n" },
    { "exact_root",
      "fn exact_root(x: f32) -> f32 {\n"
      "    let b = bitcast<u32>(x);\n"
      "    if ((b & 0x7fffffffu) == 0u) { return x; }\n"
      "    let odd = (b >> 23u) & 1u;\n"
      "    let m = (b & 0x7fffffu) | 0x800000u;\n"
      "    let n = shift_64(vec2<u32>(m, 0u), 24u - odd);\n"
      "    var r = clamp(u32(sqrt(f32(m) * select(16777216.0, 8388608.0, odd == 1u))), 0x800000u, 0xffffffu);\n"
      "    for (var k = 0u; k < 8u; k++) {\n"
      "        let s = multiply(r, r); let t = subtract_64(n, s);\n"
      "        if (bitcast<i32>(t.y) < 0) { r -= 1u; } else if (t.y > 0u || t.x > 2u * r) { r += 1u; }\n"
      "    }\n"
      "    let rest = subtract_64(n, multiply(r, r)).x;\n"
      "    return bitcast<f32>(((((b >> 23u) + 127u) / 2u) << 23u) + (r - 0x800000u) + u32(rest > r));\n"
      "}\n" },
    { "exact_log",
      "fn exact_log(x: f32, zero: u32) -> f32 {\n"
      "    let u = bitcast<u32>(x); let k = bitcast<i32>(u - 0x3f3504f3u) >> 23u;\n"
      "    let f = apart(bitcast<f32>(u - (bitcast<u32>(k) << 23u)) - 1.0, zero); let e = f32(k);\n"
      "    let s = exact_quotient(f, apart(2.0 + f, zero)); let z = apart(s * s, zero);\n"
      "    let h = apart(0.5 * f * f, zero);\n"
      "    var q = 0x1.e340b8p-3f;\n"
      "    q = apart(apart(q * z, zero) + 0x1.2436fep-2f, zero);\n"
      "    q = apart(apart(q * z, zero) + 0x1.999a82p-2f, zero);\n"
      "    q = apart(apart(q * z, zero) + 0x1.555554p-1f, zero);\n"
      "    let inner = apart(s * apart(apart(q * z, zero) + h, zero), zero);\n"
      "    let low = apart(apart(e * 0x1.2fefa2p-17f, zero) + inner, zero);\n"
      "    return apart(apart(e * 0x1.62e3p-1f, zero) + apart(f - apart(h - low, zero), zero), zero);\n"
      "}\n" },

    /* cos of 0 to 2 pi: x = pi/2 + r, or 3 pi/2 + r, r in units of 2^-62; its square too; sin(r)/r in units of 2^-64 */
    { "exact_cosine",
      "fn exact_cosine(x: f32) -> f32 {\n"
      "    let b = bitcast<u32>(x);\n"
      "    if (b == 0u) { return 1.0; }\n"
      "    let first = b <= 0x40490fdau;\n"
      "    let turn = select(vec2<u32>(0x321D234Eu, 0x2D97C7F3u), vec2<u32>(0x10B4611Au, 0x6487ED51u), first);\n"
      "    var a = subtract_64(shift_64(vec2<u32>((b & 0x7fffffu) | 0x800000u, 0u), (b >> 23u) - 88u), turn);\n"
      "    let negative = bitcast<i32>(a.y) < 0;\n"
      "    if (negative) { a = subtract_64(vec2<u32>(0u), a); }\n"
      "    let twice = shift_64(a, 1u); let z = upper_64(twice, twice);\n"
      "    var q = vec2<u32>(0x99dfc346u, 0x00000066u);\n"
      "    q = subtract_64(vec2<u32>(0x0e94e550u, 0x00002e2eu), shift_64(upper_64(q, z), 2u));\n"
      "    q = subtract_64(vec2<u32>(0xca46ab49u, 0x000d00beu), shift_64(upper_64(q, z), 2u));\n"
      "    q = subtract_64(vec2<u32>(0x91fac9e0u, 0x02222218u), shift_64(upper_64(q, z), 2u));\n"
      "    q = subtract_64(vec2<u32>(0xecb7be00u, 0x2aaaaaa8u), shift_64(upper_64(q, z), 2u));\n"
      "    q = subtract_64(vec2<u32>(0u), shift_64(upper_64(q, z), 2u));\n"
      "    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);\n"
      "    a = shift_64(a, zeros);\n"
      "    if (q.x != 0u || q.y != 0u) { a = upper_64(a, q); }\n"
      "    let y = nearest_64(a, -62 - i32(zeros));\n"
      "    return select(y, -y, negative != first);\n"
      "}\n" },
    { "normal",
      "fn normal(w: vec2<u32>, zero: u32) -> f32 {\n"
      "    let root = exact_root(apart(-2.0 * exact_log(apart(1.0 - unit(w.x), zero), zero), zero));\n"
      "    return root * exact_cosine(apart(6.28318530717958647692f * unit(w.y), zero));\n"
      "}\n" },

    /* of f64, whose draws have 32 bits each: to some places of f32 */
    { "normal_wide",
      "fn normal_wide(w: vec2<u32>) -> f32 {\n"
      "    var log_u = log(f32(w.x + 1u) * 0x1p-32f);\n"
      "    if (w.x >= 0x80000000u) { log_u = log1p(f32(~w.x) * -0x1p-32f); }\n"
      "    let d = bitcast<i32>(0x40000000u - w.y);\n"
      "    let back = bitcast<i32>(0x80000000u - bitcast<u32>(d));\n"
      "    let near = select(back, d, d <= 0x40000000 && d >= -0x40000000);\n"
      "    return sqrt(-2.0 * log_u) * reduced_sine(f32(near) * 1.4629181e-9, 0.0);\n"
      "}\n" },
};

enum { COUNT = sizeof functions / sizeof *functions };

/* Whether a kernel has a function of that name of its own, which then takes the place of the one here. */
static bool defines(const char *text, const char *name)
{
    char start[48];
    snprintf(start, sizeof start, "fn %s(", name);
    return strstr(text, start) != NULL;
}

void cn__gpu_library(cn__gpu_source *s, const char *text)
{
    bool wanted[COUNT] = { 0 };
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < COUNT; i++) {
            bool now = cn__gpu_mentions(text, functions[i].name);
            for (int k = 0; k < COUNT && !now; k++)
                now = wanted[k] && k != i && cn__gpu_mentions(functions[k].text, functions[i].name);
            now = now && !defines(text, functions[i].name);
            changed |= now && !wanted[i];
            wanted[i] |= now;
        }
    }
    for (int i = 0; i < COUNT; i++)
        if (wanted[i]) cn__gpu_say(s, "%s", functions[i].text);
}

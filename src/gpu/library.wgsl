// Functions that kernels and expressions may use and that WGSL lacks. Each part is one function.

//! part isnan
// WGSL promises nothing about NaN and infinity in arithmetic, so these functions look at the bits.
fn isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

//! part isinf
fn isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }

//! part isfinite
fn isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }

//! part infinity
fn infinity() -> f32 { var w = 0x7f800000u; return bitcast<f32>(w); }

//! part not_a_number
fn not_a_number() -> f32 { var w = 0x7fc00000u; return bitcast<f32>(w); }

//! part muldiv
// The quotient and remainder of a * b / c, however large the product is; c < 2^31.
fn muldiv(a: u32, b: u32, c: u32) -> vec2<u32> {
    if (a == 0u || b <= 0xffffffffu / a) { return vec2<u32>(a * b / c, a * b % c); }
    var q = 0u; var r = 0u;
    for (var bit = 32u; bit > 0u; bit--) {
        q *= 2u; r *= 2u;
        if (r >= c) { r -= c; q++; }
        if (((a >> (bit - 1u)) & 1u) == 0u) { continue; }
        q += b / c; r += b % c;
        if (r >= c) { r -= c; q++; }
    }
    return vec2<u32>(q, r);
}

//! part to_bf16
//! uses isnan
// Rounds to the narrower type, to nearest, ties to even. The result is the f32 that has this value.
fn to_bf16(x: f32) -> f32 {
    let w = bitcast<u32>(x);
    if (isnan(x)) { return x; }
    return bitcast<f32>((w + 0x7fffu + ((w >> 16u) & 1u)) & 0xffff0000u);
}

//! part to_f16
fn to_f16(x: f32) -> f32 {
    let w = bitcast<u32>(x); let a = w & 0x7fffffffu; let sign = w & 0x80000000u;
    if (a > 0x7f800000u) { return x; }
    if (a >= 0x477ff000u) { return bitcast<f32>(sign | 0x7f800000u); }
    if (a < 0x38800000u) {
        let units = round(abs(x) * 16777216.0);
        return bitcast<f32>(sign | bitcast<u32>(units * 5.9604644775390625e-8));
    }
    return bitcast<f32>(sign | ((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u));
}

//! part truth
//! uses isnan
// Whether x is true: not 0. NaN is true, also on GPUs where NaN != 0 is false.
fn truth(x: f32) -> bool { return x != 0.0 || isnan(x); }

//! part larger
//! uses isnan
// The larger and the smaller of two numbers, and a number within limits. NaN stays NaN.
fn larger(x: f32, y: f32) -> f32 { return select(select(max(x, y), y, isnan(y)), x, isnan(x)); }

//! part smaller
//! uses isnan
fn smaller(x: f32, y: f32) -> f32 { return select(select(min(x, y), y, isnan(y)), x, isnan(x)); }

//! part limit
//! uses isnan
fn limit(x: f32, low: f32, high: f32) -> f32 { return select(min(max(x, low), high), x, isnan(x)); }

//! part with_sign
fn with_sign(size: f32, x: f32) -> f32 {
    // Not by masks and "or": llvmpipe with AVX-512 makes a wrong instruction of these.
    return select(abs(size), -abs(size), bitcast<i32>(x) < 0);
}

//! part mixed
// Goes from x to y as t goes from 0 to 1.
fn mixed(x: f32, y: f32, t: f32) -> f32 {
    return select(y - (y - x) * (1.0 - t), x + t * (y - x), abs(t) < 0.5);
}

//! part to_whole
//! uses isnan
// A float as a whole number: towards zero, and at most what fits.
fn to_whole(x: f32) -> i32 {
    if (isnan(x)) { return 0; }
    if (x >= 2147483648.0) { return 2147483647; }
    if (x <= -2147483648.0) { return bitcast<i32>(0x80000000u); }
    return i32(x);
}

//! part low_bits
//! uses isnan to_whole
// A float as a 64-bit whole number, its lowest 16 bits; others are wrong from 2^31 on.
fn low_bits(x: f32) -> i32 {
    if (isnan(x) || abs(x) < 2147483648.0) { return to_whole(x); }
    if (x >= 9223372036854775808.0) { return -1; }
    let word = bitcast<u32>(x);
    let size = i32((word & 0x7fffffu) | 0x800000u) << min(((word >> 23u) & 255u) - 150u, 16u);
    return select(size, -size, x < 0.0);
}

//! part saturated
// The i32 nearest to a 64-bit whole number.
fn saturated(low: u32, high: u32) -> i32 {
    let x = bitcast<i32>(low); let h = bitcast<i32>(high);
    return select(select(2147483647, bitcast<i32>(0x80000000u), h < 0), x, (x >> 31u) == h);
}

//! part exponential
//! uses isnan
// Some GPUs give numbers for exp(NaN) and log(-1), and have an error of 2^-21 in log near 1.
fn exponential(x: f32) -> f32 { return select(exp(x), x, isnan(x)); }

//! part logarithm
//! uses isnan isinf infinity not_a_number log1p
fn logarithm(x: f32) -> f32 {
    if (abs(x - 1.0) < 0.4) { return log1p(x - 1.0); }
    if (isnan(x) || x < 0.0) { return not_a_number(); }
    return select(select(log(x), x, isinf(x)), -infinity(), x == 0.0);
}

//! part logarithm_2
//! uses isnan isinf infinity not_a_number
fn logarithm_2(x: f32) -> f32 {
    if (isnan(x) || x < 0.0) { return not_a_number(); }
    return select(select(log2(x), x, isinf(x)), -infinity(), x == 0.0);
}

//! part power_of_2
// Powers of e, computed as on the CPU: x = n log(2) + r.
fn power_of_2(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }

//! part expm1_reduced
fn expm1_reduced(r: f32) -> f32 {
    var q = 0x1.9eb31ap-13f;
    q = q * r + 0x1.6d3978p-10f; q = q * r + 0x1.1112bap-7f; q = q * r + 0x1.5554fap-5f;
    q = q * r + 0x1.555554p-3f;
    return r * r * (q * r + 0.5) + r;
}

//! part expm1
//! uses isnan infinity power_of_2 expm1_reduced
fn expm1(x: f32) -> f32 {
    if (x == 0.0 || isnan(x)) { return x; }
    if (x > 88.8) { return infinity(); }
    let c = max(x, -30.0); let n = round(c * 1.44269504);
    let half = power_of_2(i32(n) - 1);
    return 2.0 * (half * expm1_reduced(c - n * 0x1.63p-1f + n * 0x1.bd0106p-13f) + (half - 0.5));
}

//! part sigmoid
//! uses limit exponential
fn sigmoid(x: f32) -> f32 {
    return select(1.0 / (1.0 + exponential(-limit(x, -88.0, 88.0))), 0.0, x < -87.3);
}

//! part silu
//! uses larger sigmoid
fn silu(x: f32) -> f32 { return larger(x, -110.0) * sigmoid(x); }

//! part hyperbolic_sine
//! uses isnan with_sign exponential expm1
fn hyperbolic_sine(x: f32) -> f32 {
    let a = abs(x); let e = expm1(min(a, 20.0)); let h = exponential(0.5 * a);
    return with_sign(select(0.5 * (e + e / (e + 1.0)), 0.5 * h * h, a > 20.0 || isnan(x)), x);
}

//! part hyperbolic_cosine
//! uses isnan exponential
fn hyperbolic_cosine(x: f32) -> f32 {
    let a = abs(x); let e = exp(min(a, 20.0)); let h = exponential(0.5 * a);
    return select(0.5 * (e + 1.0 / e), 0.5 * h * h, a > 20.0 || isnan(x));
}

//! part hyperbolic_tangent
//! uses isnan with_sign
fn hyperbolic_tangent(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    let a = min(abs(x), 9.1); let z = a * a;
    var q = -0x1.830bfcp-8f;
    q = q * z + 0x1.54e01ap-6f; q = q * z - 0x1.b89edap-5f; q = q * z + 0x1.1109dcp-3f;
    q = q * z - 0x1.55553ep-2f;
    return with_sign(select(1.0 - 2.0 / (exp(2.0 * a) + 1.0), a * z * q + a, a < 0.6), x);
}

//! part log1p
//! uses isnan isinf infinity not_a_number
// log(1 + x), where 1 + x = 2^k m. While k is 0, the polynomial takes x itself.
fn log1p(x: f32) -> f32 {
    if (isnan(x) || x < -1.0) { return not_a_number(); }
    if (x == -1.0) { return -infinity(); }
    if (isinf(x) || x == 0.0) { return x; }
    let u = bitcast<u32>(1.0 + x) + (0x3f800000u - 0x3f3504f3u);
    let k = i32(u >> 23u) - 127;
    let f = select(bitcast<f32>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0, x, k == 0);
    let s = f / (2.0 + f); let z = s * s;
    var q = 0x1.e2fa1ep-3f;
    q = q * z + 0x1.2438cp-2f; q = q * z + 0x1.999a7ap-2f; q = q * z + 0x1.555554p-1f;
    return f32(k) * 0.69314718 + s * (q * z + 2.0);
}

//! part hyperbolic_arcsine
//! uses isnan with_sign log1p logarithm
// Inverse hyperbolic functions: logarithms of sums, where 1 is left out for log1p.
fn hyperbolic_arcsine(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    let a = abs(x);
    if (a > 10000.0) { return with_sign(logarithm(a) + 0.69314718, x); }
    return with_sign(log1p(a + a * a / (1.0 + sqrt(a * a + 1.0))), x);
}

//! part hyperbolic_arccosine
//! uses isnan not_a_number log1p logarithm
fn hyperbolic_arccosine(x: f32) -> f32 {
    if (isnan(x) || x < 1.0) { return not_a_number(); }
    if (x > 10000.0) { return logarithm(x) + 0.69314718; }
    let t = x - 1.0;
    return log1p(t + sqrt(2.0 * t + t * t));
}

//! part hyperbolic_arctangent
//! uses isnan infinity not_a_number with_sign log1p
fn hyperbolic_arctangent(x: f32) -> f32 {
    let a = abs(x);
    if (isnan(x) || a > 1.0) { return not_a_number(); }
    if (a == 1.0) { return with_sign(infinity(), x); }
    return with_sign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}

//! part log_add_exp
//! uses larger exponential log1p
// Equal infinities differ by 0.
fn log_add_exp(x: f32, y: f32) -> f32 {
    let apart = select(min(abs(x - y), 104.0), 0.0, x == y);
    return larger(x, y) + log1p(exponential(-apart));
}

//! part log_add_exp2
//! uses larger log1p
fn log_add_exp2(x: f32, y: f32) -> f32 {
    let apart = select(min(abs(x - y), 150.0), 0.0, x == y);
    return larger(x, y) + log1p(exp2(-apart)) * 1.44269504;
}

//! part xlogy
//! uses isnan logarithm
fn xlogy(x: f32, y: f32) -> f32 {
    return select(select(x * logarithm(y), 0.0, x == 0.0), y, isnan(y));
}

//! part logit
//! uses isnan infinity logarithm
fn logit(x: f32, eps: f32) -> f32 {
    var w = x;
    if (eps >= 0.0 && x > 1.0 - eps) { w = 1.0 - eps; }
    if (x < eps) { w = eps; }
    if (isnan(w) || w == 1.0) { return select(infinity(), w, isnan(w)); }
    return logarithm(w / (1.0 - w));
}

//! part number_or
//! uses isnan
// y unless one of two numbers is NaN; then the other.
fn number_or(y: f32, a: f32, b: f32) -> f32 { return select(select(y, a, isnan(b)), b, isnan(a)); }

//! part hypotenuse
//! uses isinf isnan infinity not_a_number
fn hypotenuse(x: f32, y: f32) -> f32 {
    if (isinf(x) || isinf(y)) { return infinity(); }
    if (isnan(x) || isnan(y)) { return not_a_number(); }
    let a = max(abs(x), abs(y)); let q = min(abs(x), abs(y)) / max(a, 1e-37);
    return a * sqrt(1.0 + q * q);
}

//! part softplus
//! uses larger log1p
fn softplus(x: f32) -> f32 { return larger(x, 0.0) + log1p(exp(-abs(x))); }

//! part mish
//! uses larger limit
// x tanh(log(1 + e^x))
fn mish(x: f32) -> f32 {
    let e = exp(limit(x, -88.0, 20.0)); let n = e * (e + 2.0);
    return larger(x, -120.0) * (n / (n + 2.0));
}

//! part power
//! uses isnan isinf infinity not_a_number with_sign
// x^y, with the special cases of the CPU. From 2^24 on every float is even.
fn power(x: f32, y: f32) -> f32 {
    if (y == 0.0 || x == 1.0) { return 1.0; }
    if (isnan(x) || isnan(y)) { return not_a_number(); }
    let a = abs(x); let size = abs(y);
    let whole = size >= 16777216.0 || floor(y) == y;
    if (x < 0.0 && !isinf(x) && !whole) { return not_a_number(); }
    var r = 1.0;
    if (a == 0.0 || isinf(a) || isinf(y)) {
        if (a != 1.0) { r = select(0.0, infinity(), (a > 1.0) == (y > 0.0)); }
    } else if (whole && size <= 64.0) {
        var s = a;
        for (var e = u32(size); e > 0u; e >>= 1u) {
            if ((e & 1u) == 1u) { r *= s; }
            s *= s;
        }
        if (y < 0.0) { r = 1.0 / r; }
    } else {
        r = exp2(y * log2(a));
    }
    let odd = size < 16777216.0 && whole && (i32(y) & 1) == 1;
    return select(r, with_sign(r, x), odd);
}

//! part erf
//! uses limit
// The error function and gelu: quotients of polynomials, the same as on the CPU.
fn erf(x: f32) -> f32 {
    let c = limit(x, -3.93, 3.93); let z = c * c;
    var p = -0x1.b9c5c6p-27f;
    p = p * z + 0x1.36097ap-18f; p = p * z + 0x1.8b7bf4p-12f; p = p * z + 0x1.f75bcp-9f;
    p = p * z + 0x1.bc7476p-5f;
    p = p * z + 0x1.7b2f3cp-3f; p = p * z + 0x1.20dd76p0f;
    var q = 0x1.062452p-14f;
    q = q * z + 0x1.556b34p-10f; q = q * z + 0x1.f9c51ep-7f; q = q * z + 0x1.d27b72p-4f;
    q = q * z + 0x1.fd5aecp-2f;
    return c * p / (q * z + 1.0);
}

//! part normal_tail
// The normal distribution beyond a, divided by e^(-a²/2), for 0 <= a <= 14.5.
fn normal_tail(a: f32) -> f32 {
    var p = 0x1.d115a4p-11f;
    p = p * a + 0x1.7cc144p-7f; p = p * a + 0x1.23a7p-4f; p = p * a + 0x1.00554p-2f;
    p = p * a + 0x1.03b77cp-1f;
    p = p * a + 0.5;
    var q = 0x1.2372eap-9f;
    q = q * a + 0x1.dd33d6p-6f; q = q * a + 0x1.7218f2p-3f; q = q * a + 0x1.50208cp-1f;
    q = q * a + 0x1.725d7cp0f;
    q = q * a + 0x1.cff9a6p0f;
    return p / (q * a + 1.0);
}

//! part gelu
//! uses isnan normal_tail
fn gelu(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    let a = min(abs(x), 14.5);
    return max(x, 0.0) - a * exp(-0.5 * a * a) * normal_tail(a);
}

//! part erfc
//! uses isnan normal_tail
// The square of a is split in two, because exp would enlarge its rounding.
fn erfc(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    let a = min(abs(x), 10.2); let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let y = 2.0 * normal_tail(a * 1.41421356) * exp(-high * high) * exp((high - a) * (high + a));
    return select(y, 2.0 - y, x < 0.0);
}

//! part erfinv
//! uses isnan infinity not_a_number with_sign log1p
// By Giles, "Approximating the erfinv function".
fn erfinv(x: f32) -> f32 {
    let a = abs(x);
    if (isnan(x) || a > 1.0) { return not_a_number(); }
    if (a == 1.0) { return with_sign(infinity(), x); }
    let w = -log1p(-x * x);
    var q = 2.81022636e-8;
    if (w < 5.0) {
        let t = w - 2.5;
        q = q * t + 3.43273939e-7; q = q * t - 3.5233877e-6; q = q * t - 4.39150654e-6;
        q = q * t + 0.00021858087; q = q * t - 0.00125372503; q = q * t - 0.00417768164;
        q = q * t + 0.246640727; q = q * t + 1.50140941;
    } else {
        let t = sqrt(w) - 3.0;
        q = -0.000200214257;
        q = q * t + 0.000100950558; q = q * t + 0.00134934322; q = q * t - 0.00367342844;
        q = q * t + 0.00573950773; q = q * t - 0.0076224613; q = q * t + 0.00943887047;
        q = q * t + 1.00167406; q = q * t + 2.83297682;
    }
    return q * x;
}

//! part gelu_slope
//! uses gelu
fn gelu_slope(x: f32) -> f32 {
    let share = select(gelu(x) / x, 0.5, abs(x) < 1e-6);
    return share + x * (0.39894228 * exp(-0.5 * x * x));
}

//! part gelu_tanh
//! uses larger limit sigmoid
fn gelu_tanh(x: f32) -> f32 {
    let c = limit(x, -11.0, 11.0);
    return larger(x, -11.0) * sigmoid(c * (1.5957691 + 0.071354814 * c * c));
}

//! part gelu_tanh_slope
//! uses sigmoid
fn gelu_tanh_slope(x: f32) -> f32 {
    let s = sigmoid(x * (1.5957691 + 0.071354814 * x * x));
    return s * (1.0 + 2.0 * x * (1.0 - s) * (0.79788456 + 0.10703222 * x * x));
}

//! part reduced_sine
// sin and cos, in which GPUs may have an error of 2^-11. x = n pi + r, with pi in parts so short that the first
// products are exact. From 2^21 on, where neighbouring floats are a quarter apart, the result is the driver's.
fn reduced_sine(x: f32, n: f32) -> f32 {
    let r = x - n * 3.140625 - n * 0.0009675025939941406 - n * 1.5099067240953445e-7 - n * 5.126688e-12;
    let z = r * r;
    var q = 2.6348696e-6;
    q = q * z - 0.0001982278; q = q * z + 0.0083332425; q = q * z - 0.16666666;
    return r + r * (z * q);
}

//! part sine_of_turns
//! uses isfinite not_a_number reduced_sine
// sin(pi x). From 2^24 on every float is even.
fn sine_of_turns(x: f32) -> f32 {
    if (!isfinite(x)) { return not_a_number(); }
    if (abs(x) >= 16777216.0) { return 0.0; }
    let n = round(x);
    return reduced_sine((x - n) * 3.14159265, 0.0) * f32(1 - 2 * (i32(n) & 1));
}

//! part log_gamma
//! uses isnan isinf infinity logarithm sine_of_turns
// log|gamma(x)|: near 2 a polynomial, which has its zero there; up to 8 the factors between x and 2; then Stirling's
// series; left of 0 by reflection.
fn log_gamma(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    if (isinf(x) || (x <= 0.0 && floor(x) == x)) { return infinity(); }
    let a = abs(x);
    var y = 0.0;
    if (a < 8.0) {
        var t = a; var above = 1.0; var below = 1.0;
        while (t > 2.5) { t -= 1.0; above *= t; }
        while (t < 1.5) { below *= t; t += 1.0; }
        t -= 2.0;
        if (below == a && a > 0.5) { t = a - 1.0; }
        var q = -0x1.06bbbcp-12f;
        q = q * t + 0x1.2af9d4p-11f; q = q * t - 0x1.374ac2p-10f; q = q * t + 0x1.7956cep-9f;
        q = q * t - 0x1.e40b3p-8f; q = q * t + 0x1.513598p-6f; q = q * t - 0x1.13ep-4f;
        q = q * t + 0x1.4a34ccp-2f; q = q * t + 0x1.b0ee6p-2f;
        y = t * q + logarithm(above) - logarithm(below);
    } else {
        let l = logarithm(a); let z = 1.0 / (a * a);
        y = a * (l - 1.0) - 0.5 * l + 0.91893853 + (0.083333333 - z * (0.0027777778 - z * 0.00079365079)) / a;
    }
    if (x < 0.0) { y = 1.14472989 - logarithm(a) - logarithm(abs(sine_of_turns(a))) - y; }
    return y;
}

//! part digamma
//! uses isnan isinf infinity not_a_number logarithm sine cosine
// The derivative of log(gamma(x)), as on the CPU.
fn digamma(x: f32) -> f32 {
    if (isnan(x)) { return x; }
    if (x == 0.0) { return select(-infinity(), infinity(), bitcast<i32>(x) < 0); }
    if (isinf(x) || (x < 0.0 && floor(x) == x)) { return select(not_a_number(), x, x > 0.0); }
    var y = 0.0; var t = x;
    if (x < 0.0) {
        let turn = (x - round(x)) * 3.14159265;
        y = -3.14159265 * cosine(turn) / sine(turn);
        t = 1.0 - x;
    }
    while (t < 6.0) { y -= 1.0 / t; t += 1.0; }
    let z = 1.0 / (t * t);
    return y + (logarithm(t) - 0.5 / t - z * (0.083333333 - z * (0.0083333333 - z * 0.003968254)));
}

//! part zeta
//! uses power
// The sum of (q + k)^-s, for q > 0 and s >= 2: the first terms, then Euler and Maclaurin's sum.
fn zeta(s: f32, q: f32) -> f32 {
    var y = 0.0; var a = q;
    while (a < 8.0) { y += power(a, -s); a += 1.0; }
    let p = power(a, -s); let z = 1.0 / (a * a);
    let u = (s + 1.0) * (s + 2.0) * z; let v = (s + 3.0) * (s + 4.0) * z; let w = (s + 5.0) * (s + 6.0) * z;
    let series = 8.3333333e-2 - u * (1.3888889e-3 - v * (3.3068783e-5 - w * 8.2671958e-7));
    return y + p * (a / (s - 1.0) + 0.5 + s / a * series);
}

//! part polygamma
//! uses isnan isinf infinity not_a_number zeta
// (-1)^(n + 1) n! zeta(n + 1, x) for n >= 1, as on the CPU.
fn polygamma(x: f32, n: f32) -> f32 {
    if (isnan(x)) { return x; }
    let s = n + 1.0; let odd = select(-1.0, 1.0, (i32(n) & 1) == 1);
    if (isinf(x)) { return select(not_a_number(), 0.0, x > 0.0); }
    if (x <= 0.0 && floor(x) == x) { return odd * infinity(); }
    var y = odd;
    for (var k = 2.0; k <= min(n, 40.0); k += 1.0) { y *= k; }
    if (x > 0.0) { return y * zeta(s, x); }
    return y * (zeta(s, x - floor(x)) + odd * (zeta(s, ceil(x) - x) - zeta(s, 1.0 - x)));
}

//! part sine
//! uses isfinite not_a_number reduced_sine
fn sine(x: f32) -> f32 {
    if (!isfinite(x)) { return not_a_number(); }
    if (abs(x) >= 2097152.0) { return sin(x); }
    let n = round(x * 0.31830989);
    return reduced_sine(x, n) * f32(1 - 2 * (i32(n) & 1));
}

//! part cosine
//! uses isfinite not_a_number reduced_sine
fn cosine(x: f32) -> f32 {
    if (!isfinite(x)) { return not_a_number(); }
    if (abs(x) >= 2097152.0) { return cos(x); }
    let n = round(x * 0.31830989 + 0.5);
    return reduced_sine(x, n - 0.5) * f32(1 - 2 * (i32(n) & 1));
}

//! part arctangent
//! uses with_sign
// The inverse functions.
fn arctangent(x: f32) -> f32 {
    let a = abs(x);
    let far = a > 2.4142135; let middle = !far && a > 0.41421356;
    let t = select(select(a, (a - 1.0) / (a + 1.0), middle), -1.0 / a, far);
    let start = select(select(0.0, 0.78539816, middle), 1.5707963, far);
    let z = t * t;
    var q = 0.08539082;
    q = q * z - 0.14028941; q = q * z + 0.19991548; q = q * z - 0.3333329;
    return with_sign(start + (t + t * (z * q)), x);
}

//! part angle
//! uses isnan isinf not_a_number with_sign arctangent
fn angle(y: f32, x: f32) -> f32 {
    if (isnan(x) || isnan(y)) { return not_a_number(); }
    let a = abs(x); let b = abs(y); let most = max(a, b); let least = min(a, b);
    var t = 0.0;
    if (isinf(least)) { t = 1.0; } else if (most > 0.0 && !isinf(most)) { t = least / most; }
    t = arctangent(t);
    if (b > a) { t = 1.5707963 - t; }
    if (bitcast<i32>(x) < 0) { t = 3.1415927 - t; }
    return with_sign(t, y);
}

//! part arcsine_near
fn arcsine_near(x: f32) -> f32 {
    let z = x * x;
    var q = 0.03832829;
    q = q * z + 0.026433369; q = q * z + 0.045020215; q = q * z + 0.07498761; q = q * z + 0.16666673;
    return x + x * (z * q);
}

//! part arcsine
//! uses isnan not_a_number with_sign arcsine_near
fn arcsine(x: f32) -> f32 {
    let a = abs(x);
    if (isnan(x) || a > 1.0) { return not_a_number(); }
    if (a <= 0.5) { return arcsine_near(x); }
    return with_sign(1.5707963 - 2.0 * arcsine_near(sqrt(0.5 * (1.0 - a))), x);
}

//! part arccosine
//! uses isnan not_a_number arcsine_near
fn arccosine(x: f32) -> f32 {
    let a = abs(x);
    if (isnan(x) || a > 1.0) { return not_a_number(); }
    if (a <= 0.5) { return 1.5707963 - arcsine_near(x); }
    let t = 2.0 * arcsine_near(sqrt(0.5 * (1.0 - a)));
    return select(t, 3.1415927 - t, x < 0.0);
}

//! part modulo
//! uses not_a_number with_sign
// x - y trunc(x / y), exactly: WGSL's x % y divides, and is off by y where the quotient is nearly whole. Eight bits
// of the quotient at a time.
fn modulo(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu; let b = bitcast<u32>(y) & 0x7fffffffu;
    if (a >= 0x7f800000u || b == 0u || b > 0x7f800000u) { return not_a_number(); }
    if (a < b) { return x; }
    let ea = max(a >> 23u, 1u); let eb = max(b >> 23u, 1u);
    let mb = (b & 0x7fffffu) | select(0x800000u, 0u, b < 0x800000u);
    var m = ((a & 0x7fffffu) | select(0x800000u, 0u, a < 0x800000u)) % mb;
    for (var d = ea - eb; d > 0u;) {
        let s = min(d, 8u);
        m = (m << s) % mb;
        d -= s;
    }
    if (m == 0u) { return with_sign(0.0, x); }
    let s = countLeadingZeros(m) - 8u;
    var w = (m << s) - 0x800000u;
    if (eb > s) { w += (eb - s) << 23u; } else { w = m << (eb - 1u); }
    return bitcast<f32>(w | (bitcast<u32>(x) & 0x80000000u));
}

//! part remainder
//! uses isnan modulo
fn remainder(x: f32, y: f32) -> f32 {
    let m = modulo(x, y);
    return select(m, m + y, m != 0.0 && !isnan(m) && (m < 0.0) != (y < 0.0));
}

//! part floor_divide
//! uses isnan isinf infinity not_a_number with_sign modulo
fn floor_divide(x: f32, y: f32) -> f32 {
    let sign = bitcast<f32>((bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u);
    if (y == 0.0) { return with_sign(select(infinity(), not_a_number(), x == 0.0 || isnan(x)), sign); }
    let m = modulo(x, y);
    if (isnan(m) || isinf(y)) {
        return select(select(0.0, -1.0, m != 0.0 && (m < 0.0) != (y < 0.0)), m, isnan(m));
    }
    let q = round((x - m) / y) - f32(m != 0.0 && (m < 0.0) != (y < 0.0));
    return select(q, with_sign(0.0, sign), q == 0.0);
}

//! part whole_modulo
// Whole numbers: a division by 0 gives 0; a shift by too many bits gives 0, or the sign.
fn whole_modulo(x: i32, y: i32) -> i32 {
    if (y == 0 || y == -1) { return 0; }
    return x % y;
}

//! part whole_remainder
//! uses whole_modulo
fn whole_remainder(x: i32, y: i32) -> i32 {
    let m = whole_modulo(x, y);
    return select(m, m + y, m != 0 && (m < 0) != (y < 0));
}

//! part whole_floor_divide
fn whole_floor_divide(x: i32, y: i32) -> i32 {
    if (y == 0) { return 0; }
    if (y == -1) { return -x; }
    let m = x % y;
    return x / y - i32(m != 0 && (m < 0) != (y < 0));
}

//! part whole_power
fn whole_power(x: i32, y: i32) -> i32 {
    if (y < 0) { return select(select(0, select(1, -1, (y & 1) == 1), x == -1), 1, x == 1); }
    var r = 1; var s = x;
    for (var e = y; e > 0; e >>= 1u) {
        if ((e & 1) == 1) { r *= s; }
        s *= s;
    }
    return r;
}

//! part shift_left
fn shift_left(x: i32, y: i32, bits: i32) -> i32 {
    if (y < 0 || y >= min(bits, 32)) { return 0; }
    return bitcast<i32>(bitcast<u32>(x) << u32(y));
}

//! part shift_right
fn shift_right(x: i32, y: i32, bits: i32) -> i32 {
    return x >> select(u32(y), 31u, y < 0 || y >= min(bits, 32));
}

//! part ordered
//! uses isnan
// The words of floats in the order of the floats, NaN last. first_of: the larger of two (word, place), the first of
// equals.
fn ordered(x: f32) -> u32 {
    let w = bitcast<u32>(x);
    if (isnan(x)) { return 0xffffffffu; }
    if (x == 0.0) { return 0x80000000u; }
    return select(w | 0x80000000u, ~w, (w >> 31u) == 1u);
}

//! part first_of
fn first_of(s: vec2<u32>, t: vec2<u32>) -> vec2<u32> {
    return select(s, t, t.x > s.x || (t.x == s.x && t.y < s.y));
}

//! part multiply
// 64-bit numbers as (low, high). multiply: the product of two words; upper_64: the upper half of a product;
// nearest_64: the f32 nearest to a 2^e.
fn multiply(a: u32, b: u32) -> vec2<u32> {
    let x = a & 0xffffu; let y = a >> 16u; let u = b & 0xffffu; let v = b >> 16u;
    let m = y * u + ((x * u) >> 16u); let n = x * v + (m & 0xffffu);
    return vec2<u32>(a * b, y * v + (m >> 16u) + (n >> 16u));
}

//! part add_64
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

//! part subtract_64
fn subtract_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

//! part upper_64
//! uses multiply add_64
fn upper_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let p = multiply(a.x, b.y); let q = multiply(a.y, b.x);
    let m = add_64(vec2<u32>(multiply(a.x, b.x).y, 0u), vec2<u32>(p.x, 0u));
    let n = add_64(m, vec2<u32>(q.x, 0u));
    let r = add_64(add_64(multiply(a.y, b.y), vec2<u32>(p.y, 0u)), vec2<u32>(q.y, 0u));
    return add_64(r, vec2<u32>(n.y, 0u));
}

//! part shift_64
fn shift_64(a: vec2<u32>, s: u32) -> vec2<u32> {
    if (s == 0u) { return a; }
    if (s >= 32u) { return vec2<u32>(0u, a.x << (s - 32u)); }
    return vec2<u32>(a.x << s, (a.y << s) | (a.x >> (32u - s)));
}

//! part nearest_64
//! uses shift_64
fn nearest_64(a: vec2<u32>, e: i32) -> f32 {
    if (a.x == 0u && a.y == 0u) { return 0.0; }
    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
    let m = shift_64(a, zeros);
    let top = m.y >> 8u; let rest = m.y & 255u;
    let up = rest > 128u || (rest == 128u && (m.x != 0u || (top & 1u) == 1u));
    return bitcast<f32>((u32(190 + e - i32(zeros)) << 23u) + (top - 0x800000u) + u32(up));
}

//! part nearest_signed_64
//! uses subtract_64 nearest_64
fn nearest_signed_64(a: vec2<u32>) -> f32 {
    if (bitcast<i32>(a.y) >= 0) { return nearest_64(a, 0); }
    return -nearest_64(subtract_64(vec2<u32>(0u), a), 0);
}

//! part real_of
// The f64 with these words as f32, rounded towards zero.
fn real_of(low: u32, high: u32) -> f32 {
    let e = i32((high >> 20u) & 0x7ffu) - 1023;
    if (e < -126) { return 0.0; }
    if (e > 127) { return bitcast<f32>((high & 0x80000000u) | 0x7f800000u); }
    return bitcast<f32>((high & 0x80000000u) | (u32(e + 127) << 23u) | ((high & 0xfffffu) << 3u) | (low >> 29u));
}

//! part quotient_64
// a / d and the remainder, for quotients of 32 bits and d below 2^31.
fn quotient_64(a: vec2<u32>, d: u32) -> vec2<u32> {
    var q = 0u; var r = 0u;
    for (var k = 0u; k < 64u; k++) {
        r = (r << 1u) | ((select(a.x, a.y, k < 32u) >> (31u - (k & 31u))) & 1u);
        q = q << 1u;
        if (r >= d) { r -= d; q |= 1u; }
    }
    return vec2<u32>(q, r);
}

//! part spaced_whole
//! uses to_whole multiply quotient_64
// start + i (end - start) / (count - 1), rounded towards zero; exact if both ends are whole.
fn spaced_whole(start: i32, end: i32, real_start: f32, real_end: f32, i: u32, count: u32) -> i32 {
    let steps = max(count, 2u) - 1u;
    if (real_start != f32(start) || real_end != f32(end)) {
        return to_whole(real_start + (real_end - real_start) * (f32(i) / f32(steps)));
    }
    let down = end < start;
    let q = quotient_64(multiply(i, select(u32(end) - u32(start), u32(start) - u32(end), down)), steps);
    let floored = select(start + i32(q.x), start - i32(q.x) - i32(q.y > 0u), down);
    return floored + i32(floored < 0 && q.y > 0u);
}

//! part philox
//! uses multiply
// Random numbers by position (core/philox.h): a block of four words; word i; words 2i and 2i + 1; a number in [0, 1)
// from a word.
fn philox(seed: vec2<u32>, stream: vec2<u32>, block: u32) -> vec4<u32> {
    var key = seed;
    var c = vec4<u32>(block, 0u, stream);
    for (var k = 0u; k < 10u; k++) {
        let p = multiply(0xD2511F53u, c.x); let q = multiply(0xCD9E8D57u, c.z);
        c = vec4<u32>(q.y ^ c.y ^ key.x, q.x, p.y ^ c.w ^ key.y, p.x);
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

//! part random_word
//! uses philox
fn random_word(seed0: u32, seed1: u32, stream0: u32, stream1: u32, i: u32) -> u32 {
    let c = philox(vec2<u32>(seed0, seed1), vec2<u32>(stream0, stream1), i >> 2u);
    let pair = select(c.xy, c.zw, (i & 2u) != 0u);
    return select(pair.x, pair.y, (i & 1u) != 0u);
}

//! part random_pair
//! uses philox
fn random_pair(seed0: u32, seed1: u32, stream0: u32, stream1: u32, i: u32) -> vec2<u32> {
    let c = philox(vec2<u32>(seed0, seed1), vec2<u32>(stream0, stream1), i >> 1u);
    return select(c.xy, c.zw, (i & 1u) != 0u);
}

//! part unit
fn unit(word: u32) -> f32 { return f32(word >> 8u) * 0x1p-24f; }

//! part unit_53
//! uses nearest_64
// A number in [0, 1) from the upper 53 bits of two words, to the nearest f32; and whether the exact number is below
// p.
fn unit_53(w: vec2<u32>) -> f32 { return nearest_64(vec2<u32>(w.y & 0xfffff800u, w.x), -64); }

//! part unit_53_below
//! uses isnan shift_64
fn unit_53_below(w: vec2<u32>, p: f32) -> bool {
    let b = bitcast<u32>(p);
    if (isnan(p) || p <= 0.0) { return false; }
    if (p >= 1.0) { return true; }
    let e = b >> 23u; let m = (b & 0x7fffffu) | 0x800000u;
    var limit_64 = vec2<u32>((m >> min(86u - min(e, 86u), 31u)) | 1u, 0u);
    if (e >= 86u) { limit_64 = shift_64(vec2<u32>(m, 0u), e - 86u); }
    let low = w.y & 0xfffff800u;
    return w.x < limit_64.y || (w.x == limit_64.y && low < limit_64.x);
}

//! part below
//! uses multiply add_64
// A whole number below a limit (ops/create/draw.h).
fn below(count: vec2<u32>, w: vec2<u32>) -> vec2<u32> {
    let middle = add_64(multiply(w.x, count.x), vec2<u32>(multiply(w.y, count.x).y, 0u));
    let carry = add_64(multiply(w.y, count.y), vec2<u32>(middle.x, 0u));
    return add_64(add_64(multiply(w.x, count.y), vec2<u32>(middle.y, 0u)), vec2<u32>(carry.y, 0u));
}

//! part apart
// The normal distribution, bit for bit as on the CPU (ops/create/random.c). WGSL leaves some rounding to the driver,
// which these functions avoid: a zero that the compiler cannot know keeps products and sums apart, whole numbers
// round quotients and roots, and the cosine, which the CPU computes in f64, is a polynomial in 64-bit fixed point.
// For each of the 2^24 possible arguments it gives the same f32.
fn apart(x: f32, zero: u32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | zero); }

//! part exact_quotient
fn exact_quotient(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x); let b = bitcast<u32>(y);
    if (x == 0.0) { return x; }
    let ma = (a & 0x7fffffu) | 0x800000u; let mb = (b & 0x7fffffu) | 0x800000u;
    var q = ma / mb; var r = ma % mb;
    for (var k = 0u; k < 3u; k++) {
        r = r << 8u;
        q = (q << 8u) | (r / mb);
        r = r % mb;
    }
    let over = q >= 0x1000000u;
    let m = select(q, q >> 1u, over);
    let half = select(2u * r == mb, (q & 1u) == 1u && r == 0u, over);
    let more = select(2u * r > mb, (q & 1u) == 1u && r != 0u, over);
    let e = ((a >> 23u) & 255u) - ((b >> 23u) & 255u) + 126u + u32(over);
    let size = (e << 23u) + (m - 0x800000u) + u32(more || (half && (m & 1u) == 1u));
    return bitcast<f32>(size | ((a ^ b) & 0x80000000u));
}

//! part exact_root
//! uses multiply subtract_64 shift_64
fn exact_root(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    if ((b & 0x7fffffffu) == 0u) { return x; }
    let odd = (b >> 23u) & 1u;
    let m = (b & 0x7fffffu) | 0x800000u;
    let n = shift_64(vec2<u32>(m, 0u), 24u - odd);
    var r = clamp(u32(sqrt(f32(m) * select(16777216.0, 8388608.0, odd == 1u))), 0x800000u, 0xffffffu);
    for (var k = 0u; k < 8u; k++) {
        let s = multiply(r, r); let t = subtract_64(n, s);
        if (bitcast<i32>(t.y) < 0) { r -= 1u; } else if (t.y > 0u || t.x > 2u * r) { r += 1u; }
    }
    let rest = subtract_64(n, multiply(r, r)).x;
    return bitcast<f32>(((((b >> 23u) + 127u) / 2u) << 23u) + (r - 0x800000u) + u32(rest > r));
}

//! part exact_log
//! uses apart exact_quotient
fn exact_log(x: f32, zero: u32) -> f32 {
    let u = bitcast<u32>(x); let k = bitcast<i32>(u - 0x3f3504f3u) >> 23u;
    let f = apart(bitcast<f32>(u - (bitcast<u32>(k) << 23u)) - 1.0, zero); let e = f32(k);
    let s = exact_quotient(f, apart(2.0 + f, zero)); let z = apart(s * s, zero);
    let h = apart(0.5 * f * f, zero);
    var q = 0x1.e340b8p-3f;
    q = apart(apart(q * z, zero) + 0x1.2436fep-2f, zero);
    q = apart(apart(q * z, zero) + 0x1.999a82p-2f, zero);
    q = apart(apart(q * z, zero) + 0x1.555554p-1f, zero);
    let inner = apart(s * apart(apart(q * z, zero) + h, zero), zero);
    let low = apart(apart(e * 0x1.2fefa2p-17f, zero) + inner, zero);
    return apart(apart(e * 0x1.62e3p-1f, zero) + apart(f - apart(h - low, zero), zero), zero);
}

//! part exact_cosine
//! uses subtract_64 upper_64 shift_64 nearest_64
// cos of 0 to 2 pi: x = pi/2 + r, or 3 pi/2 + r. r and its square are in units of 2^-62, sin(r)/r in units of 2^-64.
fn exact_cosine(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    if (b == 0u) { return 1.0; }
    let first = b <= 0x40490fdau;
    let turn = select(vec2<u32>(0x321D234Eu, 0x2D97C7F3u), vec2<u32>(0x10B4611Au, 0x6487ED51u), first);
    var a = subtract_64(shift_64(vec2<u32>((b & 0x7fffffu) | 0x800000u, 0u), (b >> 23u) - 88u), turn);
    let negative = bitcast<i32>(a.y) < 0;
    if (negative) { a = subtract_64(vec2<u32>(0u), a); }
    let twice = shift_64(a, 1u); let z = upper_64(twice, twice);
    var q = vec2<u32>(0x99dfc346u, 0x00000066u);
    q = subtract_64(vec2<u32>(0x0e94e550u, 0x00002e2eu), shift_64(upper_64(q, z), 2u));
    q = subtract_64(vec2<u32>(0xca46ab49u, 0x000d00beu), shift_64(upper_64(q, z), 2u));
    q = subtract_64(vec2<u32>(0x91fac9e0u, 0x02222218u), shift_64(upper_64(q, z), 2u));
    q = subtract_64(vec2<u32>(0xecb7be00u, 0x2aaaaaa8u), shift_64(upper_64(q, z), 2u));
    q = subtract_64(vec2<u32>(0u), shift_64(upper_64(q, z), 2u));
    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
    a = shift_64(a, zeros);
    if (q.x != 0u || q.y != 0u) { a = upper_64(a, q); }
    let y = nearest_64(a, -62 - i32(zeros));
    return select(y, -y, negative != first);
}

//! part normal
//! uses unit apart exact_root exact_log exact_cosine
fn normal(w: vec2<u32>, zero: u32) -> f32 {
    let root = exact_root(apart(-2.0 * exact_log(apart(1.0 - unit(w.x), zero), zero), zero));
    return root * exact_cosine(apart(6.28318530717958647692f * unit(w.y), zero));
}

//! part normal_wide
//! uses log1p reduced_sine
// The normal distribution of f64, whose draws have 32 bits each: not bit for bit, but with the precision of f32.
fn normal_wide(w: vec2<u32>) -> f32 {
    var log_u = log(f32(w.x + 1u) * 0x1p-32f);
    if (w.x >= 0x80000000u) { log_u = log1p(f32(~w.x) * -0x1p-32f); }
    let d = bitcast<i32>(0x40000000u - w.y);
    let back = bitcast<i32>(0x80000000u - bitcast<u32>(d));
    let near = select(back, d, d <= 0x40000000 && d >= -0x40000000);
    return sqrt(-2.0 * log_u) * reduced_sine(f32(near) * 1.4629181e-9, 0.0);
}

//! part float_key
// The words of floats as whole numbers in the order of the floats: NaN is the largest, -0 equals 0. Some drivers take
// the smallest floats for 0 when they compare floats.
fn float_key(w: u32) -> u32 {
    let a = w & 0x7fffffffu;
    if (a > 0x7f800000u) { return 0xffffffffu; }
    if (a == 0u) { return 0x80000000u; }
    return select(w | 0x80000000u, ~w, a != w);
}

//! part whole_key
// The same for words of whole numbers.
fn whole_key(w: u32) -> u32 { return w ^ 0x80000000u; }

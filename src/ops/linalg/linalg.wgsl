// What the kernels of linear algebra share. A workgroup of 64 invocations, or one invocation, has one matrix; matrices
// lie in scratch memory as they do in tensors, row by row.

//! part bits
// Scratch memory holds words.
fn f(w: u32) -> f32 { return bitcast<f32>(w); }
fn w(x: f32) -> u32 { return bitcast<u32>(x); }

//! part vector_sign
//! uses bits tmp
// 1 or -1: the factor that makes the largest of n components in scratch memory, `step` apart, positive.
fn vector_sign(at: u32, n: u32, step: u32) -> f32 {
    var most = 0.0;
    for (var i = 0u; i < n; i++) { most = max(most, abs(f(tmp(at + i * step)))); }
    for (var i = 0u; i < n; i++) {
        let v = f(tmp(at + i * step));
        if (abs(v) >= 0.9375 * most) { return select(1.0, -1.0, v < 0.0); }
    }
    return 1.0;
}

//! part pair
// Jacobi's pairs of columns, as players of a round-robin tournament meet: in round r of n - 1, n even, the k-th of
// n / 2 pairs, which have no column in common.
fn pair(r: u32, k: u32, n: u32) -> vec2<u32> {
    let p = (r + k) % (n - 1u);
    let q = select((r + n - 1u - k) % (n - 1u), n - 1u, k == 0u);
    return vec2<u32>(min(p, q), max(p, q));
}

//! part rotation
// Cosine and sine of the rotation that makes a symmetric 2 x 2 matrix (a, c; c, b) diagonal.
fn rotation(a: f32, b: f32, c: f32) -> vec2<f32> {
    if (c == 0.0) { return vec2<f32>(1.0, 0.0); }
    let z = (b - a) / (2.0 * c);
    var t = 0.5 / z;
    if (abs(z) < 1e9) { t = select(-1.0, 1.0, z >= 0.0) / (abs(z) + sqrt(1.0 + z * z)); }
    let cosine = inverseSqrt(1.0 + t * t);
    return vec2<f32>(cosine, t * cosine);
}

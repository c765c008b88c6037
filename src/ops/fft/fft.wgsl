// One pass of Stockham's algorithm (fft_body.h): an invocation for each complex element of the result, by the definition.
// par: 0: elements of a signal, n; 1: the radix r; 2: m; 3: s; 4: whether the transform is inverse; 5, 6: where the scratch
// memory that is read, and that is written, begins. r · m · s = n.

//! hole load = complex | real | half | scratch
//! hole store = complex | half | real | scratch

//! kernel fft
//! uses in0 out0 tmp set_tmp par sine cosine load_element
fn each(i: u32) {
    let n = par(0u); let r = par(1u); let m = par(2u); let s = par(3u);
//! if store half
    let stored = n / 2u + 1u;
//! else
    let stored = n;
//! end
    let row = i / stored; let e = i % stored;
    let q = e % s; let j = e / s % r; let p = e / s / r;
    var t = j * p; // the power of e^(-2πi/(r m)) for k = 0; it grows by j m, modulo r m
    var re = 0.0; var im = 0.0;
    for (var k = 0u; k < r; k++) {
        let x = load_element(row, q + s * (p + m * k));
        let angle = 6.283185307179586 * (f32(t) / f32(r * m));
        let wr = cosine(angle);
        let wi = select(-1.0, 1.0, par(4u) != 0u) * sine(angle);
        re += x.x * wr - x.y * wi;
        im += x.x * wi + x.y * wr;
        t += j * m;
        if (t >= r * m) { t -= r * m; }
    }
//! if store real
    out0(i, re);
//! end
//! if store complex
    out0(2u * i, re);
    out0(2u * i + 1u, im);
//! end
//! if store half
    out0(2u * i, re);
    out0(2u * i + 1u, im);
//! end
//! if store scratch
    set_tmp(par(6u) + 2u * i, bitcast<u32>(re));
    set_tmp(par(6u) + 2u * i + 1u, bitcast<u32>(im));
//! end
}

//! part load_element
//! uses in0 tmp par
fn load_element(row: u32, e: u32) -> vec2<f32> {
    let n = par(0u);
//! if load complex
    let at = 2u * (row * n + e);
    return vec2<f32>(in0(at), in0(at + 1u));
//! end
//! if load real
    return vec2<f32>(in0(row * n + e), 0.0);
//! end
//! if load half
    let source = select(n - e, e, 2u * e <= n);
    let at = 2u * (row * (n / 2u + 1u) + source);
    let mirrored = select(in0(at + 1u), -in0(at + 1u), 2u * e > n);
    return vec2<f32>(in0(at), select(mirrored, 0.0, e == 0u || 2u * e == n));
//! end
//! if load scratch
    let at = par(5u) + 2u * (row * n + e);
    return vec2<f32>(bitcast<f32>(tmp(at)), bitcast<f32>(tmp(at + 1u)));
//! end
}

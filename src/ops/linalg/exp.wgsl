// linalg_matrix_exp: a workgroup for each matrix. T = I + X/1·(I + X/2·(… (I + X/12))) for X = A / 2ˢ, then s squares.
// par(0): n; par(1): words of scratch memory of a matrix: X, two matrices T by turns, sums of columns.

//! part product
//! uses par tmp bits
// Element i of the product of two matrices in scratch memory.
fn product(a: u32, b: u32, i: u32) -> f32 {
    let n = par(0u);
    var sum = 0.0;
    for (var k = 0u; k < n; k++) { sum += f(tmp(a + i / n * n + k)) * f(tmp(b + k * n + i % n)); }
    return sum;
}

//! kernel exp
//! uses in0 out0 par tmp set_tmp bits product isfinite
fn kernel(group: u32, local: u32) {
    let n = par(0u); let x = group * par(1u); let sums = x + 3u * n * n; let first = group * n * n;
    for (var c = local; c < n; c += 64u) {
        var sum = 0.0;
        for (var r = 0u; r < n; r++) { sum += abs(in0(first + r * n + c)); }
        set_tmp(sums + c, w(sum));
    }
    storageBarrier();
    var norm = 0.0;
    for (var c = 0u; c < n; c++) { norm = max(norm, f(tmp(sums + c))); }
    var squares = 0u; var scale = 1.0;
    if (isfinite(norm)) { while (norm * scale > 1.4) { squares++; scale *= 0.5; } }
    var t = x + n * n; var other = t + n * n;
    for (var i = local; i < n * n; i += 64u) {
        set_tmp(x + i, w(in0(first + i) * scale));
        set_tmp(t + i, w(select(0.0, 1.0, i / n == i % n)));
    }
    // 12 terms, then squares. Their number differs between workgroups, but Dawn wants barriers outside of such branches.
    for (var step = 0u; step < 142u; step++) {
        storageBarrier();
        if (step < 12u + squares) {
            for (var i = local; i < n * n; i += 64u) {
                if (step < 12u) {
                    set_tmp(other + i, w(product(x, t, i) / f32(12u - step) + select(0.0, 1.0, i / n == i % n)));
                } else {
                    set_tmp(other + i, w(product(t, t, i)));
                }
            }
            let swap = t;
            t = other;
            other = swap;
        }
    }
    for (var i = local; i < n * n; i += 64u) { out0(first + i, f(tmp(t + i))); }
}

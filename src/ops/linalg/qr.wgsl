// linalg_qr: a workgroup for each matrix. Householder's reflections H = I - tau v vᵀ, with LAPACK's signs; v overwrites
// the column below the diagonal, and its first component is 1. Then Q = H(0)·H(1)·…, from the last one on.
// par(0..2): m, n, columns of Q; par(3): words of scratch memory of a matrix: A (m, n), Q (m, q), tau.

//! part reflect
//! uses par tmp set_tmp bits
// Applies reflection k to a column of a matrix in scratch memory, whose rows are `width` apart.
fn reflect(a: u32, k: u32, tau: f32, column: u32, width: u32) {
    let m = par(0u); let n = par(1u);
    var sum = f(tmp(column + k * width));
    for (var i = k + 1u; i < m; i++) { sum += f(tmp(a + i * n + k)) * f(tmp(column + i * width)); }
    sum *= tau;
    set_tmp(column + k * width, w(f(tmp(column + k * width)) - sum));
    for (var i = k + 1u; i < m; i++) {
        set_tmp(column + i * width, w(f(tmp(column + i * width)) - sum * f(tmp(a + i * n + k))));
    }
}

//! kernel qr
//! uses in0 out0? out1? par tmp set_tmp bits reflect
fn kernel(group: u32, local: u32) {
    let m = par(0u); let n = par(1u); let q = par(2u); let last = min(m, n);
    let a = group * par(3u); let b = a + m * n; let taus = b + m * q;
    for (var i = local; i < m * n; i += 64u) { set_tmp(a + i, w(in0(group * m * n + i))); }
    for (var i = local; i < m * q; i += 64u) { set_tmp(b + i, w(select(0.0, 1.0, i / q == i % q))); }
    for (var k = 0u; k < last; k++) {
        storageBarrier();
        let alpha = f(tmp(a + k * n + k));
        var most = 0.0; var sum = 0.0;
        for (var i = k + 1u; i < m; i++) { most = max(most, abs(f(tmp(a + i * n + k)))); }
        let scale = max(most, abs(alpha));
        for (var i = k; i < m; i++) { let x = f(tmp(a + i * n + k)) / select(scale, 1.0, scale == 0.0); sum += x * x; }
        var beta = alpha; var tau = 0.0; var shrink = 1.0;
        if (most > 0.0) {
            beta = select(-1.0, 1.0, alpha < 0.0) * scale * sqrt(sum);
            tau = (beta - alpha) / beta;
            shrink = 1.0 / (alpha - beta);
        }
        storageBarrier();
        for (var i = k + 1u + local; i < m; i += 64u) { set_tmp(a + i * n + k, w(f(tmp(a + i * n + k)) * shrink)); }
        if (local == 0u) {
            set_tmp(a + k * n + k, w(beta));
            set_tmp(taus + k, w(tau));
        }
        storageBarrier();
        for (var j = k + 1u + local; j < n; j += 64u) { reflect(a, k, tau, a + j, n); }
    }
    for (var k = last; k > 0u; k--) {
        storageBarrier();
        for (var j = local; j < q; j += 64u) { reflect(a, k - 1u, f(tmp(taus + k - 1u)), b + j, q); }
    }
    storageBarrier();
    for (var i = local; i < m * q; i += 64u) { out0(group * m * q + i, f(tmp(b + i))); }
    for (var i = local; i < q * n; i += 64u) {
        let keep = i % n >= i / n && i / n < last;
        out1(group * q * n + i, select(0.0, f(tmp(a + i)), keep));
    }
}

// thin_svd: one-sided Jacobi rotations (Hestenes), a workgroup for each matrix. W (m, k), m >= k, is A, or Aᵀ if A is
// wide. Rotations V make the columns of W = A·V orthogonal; their lengths are the singular values. In a round all
// columns are paired, and one invocation rotates each pair. 12 sweeps are more than any matrix in f32 needs.
// par(0): m; par(1): k; par(2): words of scratch memory of a matrix: W, V, lengths, order.
//! hole wide = true | false

//! part turn
//! uses tmp set_tmp bits
// Rotates columns p and q, whose n rows are `width` apart.
fn turn(p: u32, q: u32, n: u32, width: u32, r: vec2<f32>) {
    for (var i = 0u; i < n; i++) {
        let x = f(tmp(p + i * width)); let y = f(tmp(q + i * width));
        set_tmp(p + i * width, w(r.x * x - r.y * y));
        set_tmp(q + i * width, w(r.y * x + r.x * y));
    }
}

//! part complete
//! uses par tmp set_tmp bits
// Replaces a column whose singular value is 0 by a unit vector orthogonal to the columns that come before it in order.
fn complete(W: u32, order: u32, place: u32) {
    let m = par(0u); let k = par(1u); let c = tmp(order + place);
    for (var e = 0u; e < m; e++) {
        for (var i = 0u; i < m; i++) { set_tmp(W + i * k + c, w(select(0.0, 1.0, i == e))); }
        for (var again = 0u; again < 2u; again++) {
            for (var j = 0u; j < place; j++) {
                let other = tmp(order + j);
                var along = 0.0;
                for (var i = 0u; i < m; i++) { along += f(tmp(W + i * k + c)) * f(tmp(W + i * k + other)); }
                for (var i = 0u; i < m; i++) {
                    set_tmp(W + i * k + c, w(f(tmp(W + i * k + c)) - along * f(tmp(W + i * k + other))));
                }
            }
        }
        var sum = 0.0;
        for (var i = 0u; i < m; i++) { let x = f(tmp(W + i * k + c)); sum += x * x; }
        let shrink = inverseSqrt(max(sum, 1e-30));
        for (var i = 0u; i < m; i++) { set_tmp(W + i * k + c, w(f(tmp(W + i * k + c)) * shrink)); }
        if (sum * f32(2u * m) > 1.0) { return; }
    }
}

//! kernel svd
//! uses in0 out0 out1 out2 par tmp set_tmp bits pair rotation vector_sign turn complete isfinite fault
fn kernel(group: u32, local: u32) {
    let m = par(0u); let k = par(1u); let even = k + k % 2u;
    let W = group * par(2u); let V = W + m * k; let lengths = V + k * k; let order = lengths + k;
    for (var i = local; i < m * k; i += 64u) {
        let x = in0(group * m * k + select(i, i % k * m + i / k, {{wide}}));
        if (!isfinite(x)) { fault(i32(group), 1u); }
        set_tmp(W + i, w(x));
    }
    for (var i = local; i < k * k; i += 64u) { set_tmp(V + i, w(select(0.0, 1.0, i / k == i % k))); }
    for (var round = 0u; round < 12u * (even - 1u); round++) {
        storageBarrier();
        for (var i = local; i < even / 2u; i += 64u) {
            let pq = pair(round % (even - 1u), i, even);
            if (pq.y >= k) { continue; }
            var a = 0.0; var b = 0.0; var c = 0.0;
            for (var r = 0u; r < m; r++) {
                let x = f(tmp(W + r * k + pq.x)); let y = f(tmp(W + r * k + pq.y));
                a += x * x; b += y * y; c += x * y;
            }
            if (abs(c) <= 1e-9 * sqrt(a * b)) { continue; }
            let r = rotation(a, b, c);
            turn(W + pq.x, W + pq.y, m, k, r);
            turn(V + pq.x, V + pq.y, k, k, r);
        }
    }
    storageBarrier();
    for (var c = local; c < k; c += 64u) {
        var sum = 0.0;
        for (var i = 0u; i < m; i++) { let x = f(tmp(W + i * k + c)); sum += x * x; }
        set_tmp(lengths + c, w(sqrt(sum)));
        for (var i = 0u; i < m; i++) { set_tmp(W + i * k + c, w(f(tmp(W + i * k + c)) / sqrt(max(sum, 1e-38)))); }
    }
    storageBarrier();
    for (var c = local; c < k; c += 64u) {
        let s = f(tmp(lengths + c));
        var rank = 0u;
        for (var i = 0u; i < k; i++) {
            let other = f(tmp(lengths + i));
            if (other > s || (other == s && i < c)) { rank++; }
        }
        set_tmp(order + rank, c);
        out1(group * k + rank, s);
    }
    storageBarrier();
    if (local == 0u) {
        let least = f(tmp(lengths + tmp(order))) * 1e-6;
        for (var place = 0u; place < k; place++) {
            if (f(tmp(lengths + tmp(order + place))) <= least) { complete(W, order, place); }
        }
    }
    storageBarrier();
    for (var place = local; place < k; place += 64u) {
        let c = tmp(order + place);
        // U is W, or V if A is wide
        let s = vector_sign(select(W, V, {{wide}}) + c, select(m, k, {{wide}}), k);
        for (var i = 0u; i < m; i++) {
            let x = s * f(tmp(W + i * k + c));
//! if wide
            out2(group * k * m + place * m + i, x);
//! else
            out0(group * m * k + i * k + place, x);
//! end
        }
        for (var i = 0u; i < k; i++) {
            let x = s * f(tmp(V + i * k + c));
//! if wide
            out0(group * k * k + i * k + place, x);
//! else
            out2(group * k * k + place * k + i, x);
//! end
        }
    }
}

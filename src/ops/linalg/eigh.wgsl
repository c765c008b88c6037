// linalg_eigh: Jacobi's rotations, a workgroup for each matrix. In a round all columns are paired; the rotations of the
// pairs are computed, then applied to columns of A and V, then to rows of A. 12 sweeps over all pairs are more than any
// matrix in f32 needs. par(0): n; par(1): words of scratch memory of a matrix: A, V, cosine and sine of each pair.
//! hole upper = true | false

//! kernel eigh
//! uses in0 out0 out1 par tmp set_tmp bits pair rotation vector_sign isfinite fault
fn kernel(group: u32, local: u32) {
    let n = par(0u); let even = n + n % 2u;
    let a = group * par(1u); let v = a + n * n; let turns = v + n * n;
    for (var i = local; i < n * n; i += 64u) {
        let row = i / n; let col = i % n;
        let mine = select(row >= col, row <= col, {{upper}});
        let x = in0(group * n * n + select(col * n + row, i, mine));
        if (!isfinite(x)) { fault(i32(group), 1u); }
        set_tmp(a + i, w(x));
        set_tmp(v + i, w(select(0.0, 1.0, row == col)));
    }
    for (var round = 0u; round < 12u * (even - 1u); round++) {
        storageBarrier();
        for (var k = local; k < even / 2u; k += 64u) {
            let pq = pair(round % (even - 1u), k, even);
            var turn = vec2<f32>(1.0, 0.0);
            if (pq.y < n) {
                turn = rotation(f(tmp(a + pq.x * n + pq.x)), f(tmp(a + pq.y * n + pq.y)), f(tmp(a + pq.x * n + pq.y)));
            }
            set_tmp(turns + 2u * k, w(turn.x));
            set_tmp(turns + 2u * k + 1u, w(turn.y));
        }
        for (var side = 0u; side < 3u; side++) {
            // columns of A, columns of V, rows of A
            storageBarrier();
            for (var i = local; i < even / 2u * n; i += 64u) {
                let pq = pair(round % (even - 1u), i / n, even);
                if (pq.y >= n) { continue; }
                let c = f(tmp(turns + i / n * 2u)); let s = f(tmp(turns + i / n * 2u + 1u));
                let base = select(a, v, side == 1u);
                let p = base + select(i % n * n + pq.x, pq.x * n + i % n, side == 2u);
                let q = base + select(i % n * n + pq.y, pq.y * n + i % n, side == 2u);
                let x = f(tmp(p)); let y = f(tmp(q));
                set_tmp(p, w(c * x - s * y));
                set_tmp(q, w(s * x + c * y));
            }
        }
    }
    storageBarrier();
    for (var k = local; k < n; k += 64u) {
        let l = f(tmp(a + k * n + k));
        var rank = 0u;
        for (var i = 0u; i < n; i++) {
            let other = f(tmp(a + i * n + i));
            if (other < l || (other == l && i < k)) { rank++; }
        }
        let s = vector_sign(v + k, n, n);
        out0(group * n + rank, l);
        for (var i = 0u; i < n; i++) { out1(group * n * n + i * n + rank, s * f(tmp(v + i * n + k))); }
    }
}

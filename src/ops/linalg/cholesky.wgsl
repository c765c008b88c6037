// linalg_cholesky: a workgroup for each matrix. Column by column, L is divided by the root of its diagonal element, and
// the rest is updated. par(0): rows of a matrix. Of an upper triangle, rows and columns are exchanged.
//! hole upper = true | false

//! part at
//! uses par
fn at(row: u32, col: u32) -> u32 { return select(row * par(0u) + col, col * par(0u) + row, {{upper}}); }

//! kernel cholesky
//! uses in0 out0 par tmp set_tmp fault bits at
fn kernel(group: u32, local: u32) {
    let n = par(0u); let a = group * n * n;
    for (var i = local; i < n * n; i += 64u) { set_tmp(a + i, w(in0(a + i))); }
    for (var k = 0u; k < n; k++) {
        storageBarrier();
        let d = f(tmp(a + at(k, k)));
        let root = sqrt(select(1.0, d, d > 0.0));
        storageBarrier();
        if (local == 0u) {
            if (!(d > 0.0)) { fault(i32(group), k + 1u); }
            set_tmp(a + at(k, k), w(root));
        }
        for (var i = k + 1u + local; i < n; i += 64u) { set_tmp(a + at(i, k), w(f(tmp(a + at(i, k))) / root)); }
        storageBarrier();
        for (var i = k + 1u + local; i < n; i += 64u) {
            let x = f(tmp(a + at(i, k)));
            for (var j = k + 1u; j <= i; j++) {
                set_tmp(a + at(i, j), w(f(tmp(a + at(i, j))) - x * f(tmp(a + at(j, k)))));
            }
        }
    }
    storageBarrier();
    for (var i = local; i < n * n; i += 64u) {
        let row = i / n; let col = i % n;
        out0(a + at(row, col), select(0.0, f(tmp(a + at(row, col))), col <= row));
    }
}

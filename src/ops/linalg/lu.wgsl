// The factors P·L·U of square matrices, and what linalg_solve, linalg_inv, linalg_det, linalg_slogdet and cofactor make
// of them. Scratch memory holds, for all matrices: L below and U on and above the diagonal; pivots (row k was exchanged
// with row pivot k); right sides, column by column.
// par(0): rows; par(1): where pivots begin; par(2): where right sides begin; par(3): columns of right sides.

//! kernel factor
//! uses in0 par tmp set_tmp bits
// A workgroup for each matrix.
fn kernel(group: u32, local: u32) {
    let n = par(0u); let a = group * n * n;
    for (var i = local; i < n * n; i += 64u) { set_tmp(a + i, w(in0(a + i))); }
    for (var k = 0u; k < n; k++) {
        storageBarrier();
        var best = k;
        for (var i = k + 1u; i < n; i++) {
            if (abs(f(tmp(a + i * n + k))) > abs(f(tmp(a + best * n + k)))) { best = i; }
        }
        storageBarrier();
        if (local == 0u) { set_tmp(par(1u) + group * n + k, best); }
        for (var j = local; j < n; j += 64u) {
            let x = tmp(a + k * n + j);
            set_tmp(a + k * n + j, tmp(a + best * n + j));
            set_tmp(a + best * n + j, x);
        }
        storageBarrier();
        let pivot = f(tmp(a + k * n + k));
        for (var i = k + 1u + local; i < n; i += 64u) {
            let l = f(tmp(a + i * n + k)) / select(pivot, 1.0, pivot == 0.0);
            set_tmp(a + i * n + k, w(l));
            for (var j = k + 1u; j < n; j++) {
                set_tmp(a + i * n + j, w(f(tmp(a + i * n + j)) - l * f(tmp(a + k * n + j))));
            }
        }
    }
}

//! part substitute
//! uses par tmp set_tmp bits
// Solves for the right side that begins at x, which becomes the solution.
fn substitute(matrix: u32, x: u32) {
    let n = par(0u); let a = matrix * n * n;
    for (var k = 0u; k < n; k++) {
        let p = tmp(par(1u) + matrix * n + k); let v = tmp(x + k);
        set_tmp(x + k, tmp(x + p));
        set_tmp(x + p, v);
    }
    for (var i = 0u; i < n; i++) {
        var sum = f(tmp(x + i));
        for (var j = 0u; j < i; j++) { sum -= f(tmp(a + i * n + j)) * f(tmp(x + j)); }
        set_tmp(x + i, w(sum));
    }
    for (var i = n; i > 0u; i--) {
        let row = a + (i - 1u) * n;
        var sum = f(tmp(x + i - 1u));
        for (var j = i; j < n; j++) { sum -= f(tmp(row + j)) * f(tmp(x + j)); }
        set_tmp(x + i - 1u, w(sum / f(tmp(row + i - 1u))));
    }
}

//! part check
//! uses par tmp bits fault
// Reports a singular matrix.
fn check(matrix: u32) {
    let n = par(0u);
    for (var i = 0u; i < n; i++) {
        if (f(tmp(matrix * n * n + i * n + i)) == 0.0) { fault(i32(matrix), i + 1u); }
    }
}

//! part unit
//! uses par set_tmp bits
// The right side for column i of an inverse.
fn unit(x: u32, column: u32) {
    for (var k = 0u; k < par(0u); k++) { set_tmp(x + k, w(select(0.0, 1.0, k == column))); }
}

//! kernel solve
//! uses in1 out0 par tmp set_tmp bits substitute check
fn each(i: u32) {
    let n = par(0u); let cols = par(3u); let matrix = i / cols; let x = par(2u) + i * n;
    let b = matrix * n * cols + i % cols;
    if (i % cols == 0u) { check(matrix); }
    for (var k = 0u; k < n; k++) { set_tmp(x + k, w(in1(b + k * cols))); }
    substitute(matrix, x);
    for (var k = 0u; k < n; k++) { out0(b + k * cols, f(tmp(x + k))); }
}

//! kernel inverse
//! uses out0 par tmp bits substitute check unit
fn each(i: u32) {
    let n = par(0u); let matrix = i / n; let x = par(2u) + i * n;
    if (i % n == 0u) { check(matrix); }
    unit(x, i % n);
    substitute(matrix, x);
    for (var k = 0u; k < n; k++) { out0(matrix * n * n + k * n + i % n, f(tmp(x + k))); }
}

//! part sign
//! uses par tmp
// 1, or -1 if the rows were exchanged an odd number of times.
fn sign_of(matrix: u32) -> f32 {
    let n = par(0u);
    var s = 1.0;
    for (var k = 0u; k < n; k++) { if (tmp(par(1u) + matrix * n + k) != k) { s = -s; } }
    return s;
}

//! part determinant
//! uses par tmp bits sign
fn determinant(matrix: u32) -> f32 {
    let n = par(0u);
    var d = sign_of(matrix);
    for (var k = 0u; k < n; k++) { d *= f(tmp(matrix * n * n + k * n + k)); }
    return d;
}

//! kernel det
//! uses out0 determinant
fn each(i: u32) { out0(i, determinant(i)); }

//! kernel slogdet
//! uses out0 out1 par tmp bits sign infinity
fn each(i: u32) {
    let n = par(0u);
    var s = sign_of(i); var sum = 0.0;
    for (var k = 0u; k < n; k++) {
        let u = f(tmp(i * n * n + k * n + k));
        s *= sign(u);
        sum += log(max(abs(u), 1e-38));
    }
    out0(i, s);
    out1(i, select(sum, -infinity(), s == 0.0));
}

//! kernel mend
//! uses par tmp set_tmp bits
// Replaces zeros on the diagonal of U by a number too small to matter, as the CPU does.
fn each(i: u32) {
    let n = par(0u); let a = i * n * n;
    var most = 0.0;
    for (var k = 0u; k < n; k++) { most = max(most, abs(f(tmp(a + k * n + k)))); }
    for (var k = 0u; k < n; k++) {
        if (f(tmp(a + k * n + k)) == 0.0) { set_tmp(a + k * n + k, w(select(1e-18, most * 1.1920929e-7, most > 0.0))); }
    }
}

//! kernel cofactor
//! uses out0 par tmp bits substitute unit determinant
fn each(i: u32) {
    let n = par(0u); let matrix = i / n; let x = par(2u) + i * n; let d = determinant(matrix);
    unit(x, i % n);
    substitute(matrix, x);
    for (var k = 0u; k < n; k++) { out0(i * n + k, d * f(tmp(x + k))); }
}

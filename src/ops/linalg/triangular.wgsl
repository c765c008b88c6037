// linalg_solve_triangular: an invocation for each column of B, which lies in scratch memory while it becomes X.
// par(0): rows of A; par(1): columns of B.
//! hole upper = true | false
//! hole unit = true | false

//! kernel triangular
//! uses in0 in1 out0 par tmp set_tmp bits
fn each(i: u32) {
    let n = par(0u); let cols = par(1u); let matrix = i / cols; let x = i * n;
    let a = matrix * n * n; let b = matrix * n * cols + i % cols;
    for (var k = 0u; k < n; k++) {
        let row = select(k, n - 1u - k, {{upper}});
        var sum = in1(b + row * cols);
        for (var j = 0u; j < k; j++) {
            let col = select(j, n - 1u - j, {{upper}});
            sum -= in0(a + row * n + col) * f(tmp(x + col));
        }
//! if unit
//! else
        sum /= in0(a + row * n + row);
//! end
        set_tmp(x + row, w(sum));
        out0(b + row * cols, sum);
    }
}

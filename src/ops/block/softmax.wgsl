// softmax and log_softmax along an axis of x (outer, n, inner), par(0..2), and their backward operators. A row of
// rows.wgsl is one of outer · inner; its n elements lie `inner` apart. WGSL promises nothing about infinities, so the
// kernel tests for them: a row that has NaN or +inf, or only -inf, becomes NaN.
//! hole log = true | false

//! part begin_of
//! uses par
fn begin_of(row: u32) -> u32 { return row / par(2u) * par(1u) * par(2u) + row % par(2u); }

//! kernel forward
//! uses in0 store_result par begin_of rows row_max row_sum exp_down isinf not_a_number
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local); let inner = par(2u);
    let stop = select(0u, par(1u), row < par(0u) * inner);
    let at = begin_of(row);
    var top = -3.4028234e38;
    for (var k = lane_of(local); k < stop; k += LANES) {
        let x = in0(at + k * inner);
        top = select(top, x, x > top);
    }
    top = row_max(local, top);
    var sum = 0.0;
    for (var k = lane_of(local); k < stop; k += LANES) { sum += exp_down(in0(at + k * inner) - top); }
    sum = row_sum(local, sum);
    if (isinf(top) || sum == 0.0) { sum = not_a_number(); }
//! if log
    let log_sum = log(sum);
    for (var k = lane_of(local); k < stop; k += LANES) {
        let i = at + k * inner;
        store_result(i, in0(i) - top - log_sum);
    }
//! else
    let scale = 1.0 / sum;
    for (var k = lane_of(local); k < stop; k += LANES) {
        let i = at + k * inner;
        store_result(i, exp_down(in0(i) - top) * scale);
    }
//! end
}

//! kernel backward
//! uses in0 in1 store_result par begin_of rows row_sum exp_down
// in0: the gradient g; in1: the result y. softmax: dx = y (g - sum of g y); log_softmax: dx = g - exp(y) (sum of g).
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local); let inner = par(2u);
    let stop = select(0u, par(1u), row < par(0u) * inner);
    let at = begin_of(row);
    var sum = 0.0;
    for (var k = lane_of(local); k < stop; k += LANES) {
        let i = at + k * inner;
//! if log
        sum += in0(i);
//! else
        sum += in0(i) * in1(i);
//! end
    }
    sum = row_sum(local, sum);
    for (var k = lane_of(local); k < stop; k += LANES) {
        let i = at + k * inner;
//! if log
        store_result(i, in0(i) - exp_down(in1(i)) * sum);
//! else
        store_result(i, in1(i) * (in0(i) - sum));
//! end
    }
}

// layer_norm (centred) and rms_norm with their backward operators, on (rows, n), with the rows of rows.wgsl.
// Forward: a row of rows.wgsl is a row of x. Backward: a workgroup goes through a block of rows, ROWS at a time, and
// computes mean, 1 / deviation and dx of each. Then each invocation sums the block's shares of dweight and dbias for
// some columns. A second launch sums the shares of the blocks in order.
// par(0): rows; par(1): n; argument 0: epsilon.
//! hole centred = true | false
//! hole x = 0 | 1
//! hole blocks = true | false

//! part statistics
//! uses in{{x}} par arg rows row_sum
// (mean, 1 / deviation) of the row that begins at `at`.
const CENTRED = {{centred}};
fn statistics(local: u32, at: u32, stop: u32) -> vec2<f32> {
    let n = f32(par(1u));
    var mean = 0.0;
    if (CENTRED) {
        var sum = 0.0;
        for (var k = lane_of(local); k < stop; k += LANES) { sum += in{{x}}(at + k); }
        mean = row_sum(local, sum) / n;
    }
    var squares = 0.0;
    for (var k = lane_of(local); k < stop; k += LANES) {
        let d = in{{x}}(at + k) - mean;
        squares += d * d;
    }
    return vec2<f32>(mean, 1.0 / sqrt(row_sum(local, squares) / n + arg(0u)));
}

//! kernel forward
//! uses in0 in1=1.0 in2=0.0 store_result par rows statistics
// in1: weight, in2: bias
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local); let n = par(1u);
    let stop = select(0u, n, row < par(0u));
    let s = statistics(local, row * n, stop);
    for (var k = lane_of(local); k < stop; k += LANES) {
        let i = row * n + k;
        store_result(i, (in0(i) - s.x) * s.y * in1(k) + in2(k));
    }
}

//! part back
//! uses in0 in1 in2=1.0 store_result par rows row_sum2 statistics
// in0: the gradient g; in1: x; in2: weight. dx = r (g w - mean(g w) - h mean(g w h)), h = (x - mean) r.
// Returns (mean, r).
fn back(local: u32, at: u32, stop: u32) -> vec2<f32> {
    let s = statistics(local, at, stop);
    var sums = vec2<f32>(0.0, 0.0);
    for (var k = lane_of(local); k < stop; k += LANES) {
        let gw = in0(at + k) * in2(k);
        sums += gw * vec2<f32>(1.0, (in1(at + k) - s.x) * s.y);
    }
    sums = row_sum2(local, sums) / f32(par(1u));
    if (!CENTRED) { sums.x = 0.0; }
    for (var k = lane_of(local); k < stop; k += LANES) {
        let h = (in1(at + k) - s.x) * s.y;
        store_result(at + k, s.y * (in0(at + k) * in2(k) - sums.x - h * sums.y));
    }
    return s;
}

//! kernel backward
//! uses par rows back
// Computes dx alone.
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local);
    let s = back(local, row * par(1u), select(0u, par(1u), row < par(0u)));
}

//! part share
// Stores a block's shares of dweight and dbias: in scratch memory, (blocks, 2, n), or in the results if there is only
// one block.
//! if blocks
//! uses set_tmp par
fn share(block: u32, k: u32, dw: f32, db: f32) {
    set_tmp(2u * block * par(1u) + k, bitcast<u32>(dw));
    set_tmp((2u * block + 1u) * par(1u) + k, bitcast<u32>(db));
}
//! else
//! uses out1? out2?
fn share(block: u32, k: u32, dw: f32, db: f32) {
    out1(k, dw);
    out2(k, db);
}
//! end

//! kernel backward_blocks
//! uses in0 in1 par rows back share
//! workgroup 4096
// par(2): rows of a block, a multiple of ROWS and at most 512.
var<workgroup> found: array<vec2<f32>, 512>;
fn kernel(group: u32, local: u32) {
    let n = par(1u); let first = group * par(2u); let end = min(par(0u), first + par(2u));
    for (var r = 0u; r < par(2u); r += ROWS) {
        let row = first + r + row_of(0u, local);
        let s = back(local, row * n, select(0u, n, row < end));
        if (lane_of(local) == 0u) { found[r + row_of(0u, local)] = s; }
    }
    workgroupBarrier();
    for (var k = local; k < n; k += 256u) {
        var dw = 0.0; var db = 0.0;
        for (var row = first; row < end; row++) {
            let s = found[row - first]; let g = in0(row * n + k);
            dw += g * ((in1(row * n + k) - s.x) * s.y);
            db += g;
        }
        share(group, k, dw, db);
    }
}

//! kernel merge
//! uses out1? out2? par tmp rows row_sum
// Sums the shares of all blocks. A row of rows.wgsl is a column of the shares (blocks, 2 n); par(0): blocks.
fn kernel(group: u32, local: u32) {
    let column = row_of(group, local); let n = par(1u);
    let stop = select(0u, par(0u), column < 2u * n);
    var sum = 0.0;
    for (var k = lane_of(local); k < stop; k += LANES) { sum += bitcast<f32>(tmp(2u * n * k + column)); }
    sum = row_sum(local, sum);
    if (lane_of(local) != 0u || column >= 2u * n) { return; }
    if (column < n) { out1(column, sum); } else { out2(column - n, sum); }
}

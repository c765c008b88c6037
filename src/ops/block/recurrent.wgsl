// recurrent and its backward operator. A workgroup computes tiles of 16 rows of the batch by 16 columns of the state.
// In each step it computes the product with w, in tiles of 16 in workgroup memory, then the gates of its own elements.
// Rows of the batch do not depend on each other, but a step's product needs all columns of the step before. Therefore,
// for small widths, a workgroup has all columns and goes through all steps in one launch, with a storageBarrier between
// steps; for larger widths there is one launch for each step.
// par(0..2): T, B, H; par(3), par(4): first and last + 1 step of this launch; par(5): column tiles of a workgroup.
// The states lie in scratch memory. What products read lies there twice: a step reads one copy and writes the other.
// Where a sequence does not have a step, the results are 0 and the state stays as it is.
//! hole kind = tanh | relu | lstm | gru
//! hole gates = 1 | 3 | 4
//! hole reverse = true | false
//! hole lengths = true | false

//! part shared
//! uses par
const GATES = {{gates}}u;
const REVERSE = {{reverse}};
fn f(w: u32) -> f32 { return bitcast<f32>(w); }
fn w(x: f32) -> u32 { return bitcast<u32>(x); }
fn step_of(s: u32) -> u32 { return select(s, par(0u) - 1u - s, REVERSE); }
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-clamp(x, -80.0, 80.0))); }
fn tanh_(x: f32) -> f32 { return tanh(clamp(x, -20.0, 20.0)); }

//! part steps
//! uses par
// Goes through the steps of this launch. The forward and the backward kernel each define `product` and `finish`.
fn kernel(group: u32, local: u32) {
    let H = par(2u); let tiles = (H + 15u) / 16u; let sets = (tiles + par(5u) - 1u) / par(5u);
    let row0 = group / sets * 16u; let first = group % sets * par(5u);
    for (var s = par(3u); s < par(4u); s++) {
        for (var tile = first; tile < min(tiles, first + par(5u)); tile++) {
            let sum = product(s, row0, tile * 16u, local);
            let b = row0 + local / 16u; let j = tile * 16u + local % 16u;
            if (b < par(1u) && j < H) { finish(s, b, j, sum); }
        }
        storageBarrier();
    }
}

//! part gates
//! uses shared
// Returns h of (b, j) from its GATES values of x and of p. row: number among T·B rows; at: offset of (b, j) in (B, H).
//! if kind tanh
fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, GATES>, p: array<f32, GATES>) -> f32 {
    return tanh_(x[0] + p[0]);
}
//! end
//! if kind relu
fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, GATES>, p: array<f32, GATES>) -> f32 {
    let a = x[0] + p[0];
    return select(a, 0.0, a < 0.0);
}
//! end
//! if kind lstm
//! uses in4 out1 out2 par tmp set_tmp
fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, GATES>, p: array<f32, GATES>) -> f32 {
    let H = par(2u); let mine = 2u * par(1u) * H + at;
    var c = 0.0;
    if (s == 0u) { c = in4(at); } else { c = f(tmp(mine)); }
    let i = sigmoid(x[0] + p[0]); let forget = sigmoid(x[1] + p[1]);
    let g = tanh_(x[2] + p[2]); let o = sigmoid(x[3] + p[3]);
    c = forget * c + i * g;
    set_tmp(mine, w(c));
    out1(row * H + j, c);
    let to = row * 4u * H + j;
    out2(to, i); out2(to + H, forget); out2(to + 2u * H, g); out2(to + 3u * H, o);
    return o * tanh_(c);
}
//! end
//! if kind gru
//! uses out2 par
fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, GATES>, p: array<f32, GATES>) -> f32 {
    let H = par(2u); let to = row * 4u * H + j;
    let r = sigmoid(x[0] + p[0]); let z = sigmoid(x[1] + p[1]); let n = tanh_(x[2] + r * p[2]);
    out2(to, r); out2(to + H, z); out2(to + 2u * H, n); out2(to + 3u * H, p[2]);
    return (1.0 - z) * n + z * h_before(s, at);
}
//! end

//! part skip
//! uses out0 par tmp set_tmp shared
// The results of a step that the sequence of row b does not have.
//! if kind lstm
//! uses in4 out1 out2
//! end
//! if kind gru
//! uses out2
//! end
fn skip(s: u32, row: u32, at: u32, j: u32) {
    let H = par(2u);
    out0(row * H + j, 0.0);
    set_tmp((s + 1u) % 2u * par(1u) * H + at, w(h_before(s, at)));
//! if kind lstm
    if (s == 0u) { set_tmp(2u * par(1u) * H + at, w(in4(at))); }
    out1(row * H + j, 0.0);
    for (var g = 0u; g < 4u; g++) { out2((row * 4u + g) * H + j, 0.0); }
//! end
//! if kind gru
    for (var g = 0u; g < 4u; g++) { out2((row * 4u + g) * H + j, 0.0); }
//! end
}

//! kernel forward
//! uses in0 in1 in2=0.0 in3 out0 par tmp set_tmp shared steps gates
//! if lengths
//! uses in5 fault skip
//! end
//! workgroup 1024
//! repeat g gates
//! workgroup 1024
//! end
// p = h·wᵀ for the gates of (b, j). left: the tile of h; right: the tiles of w, one a gate, not transposed. in2: bias
var<workgroup> left: array<f32, 256>;
var<workgroup> right: array<f32, 256 * GATES>;
fn h_before(s: u32, at: u32) -> f32 {
    if (s == 0u) { return in3(at); }
    return f(tmp(s % 2u * par(1u) * par(2u) + at));
}
fn product(s: u32, row0: u32, column0: u32, local: u32) -> array<f32, GATES> {
    let B = par(1u); let H = par(2u); let y = local / 16u; let x = local % 16u;
    var sum: array<f32, GATES>;
    for (var k0 = 0u; k0 < H; k0 += 16u) {
        let k = k0 + x;
        var v = 0.0;
        if (row0 + y < B && k < H) { v = h_before(s, (row0 + y) * H + k); }
        left[local] = v;
        for (var g = 0u; g < GATES; g++) {
            v = 0.0;
            if (column0 + y < H && k < H) { v = in1((g * H + column0 + y) * H + k); }
            right[g * 256u + x * 16u + y] = v;
        }
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            let h = left[y * 16u + i];
            for (var g = 0u; g < GATES; g++) { sum[g] += h * right[g * 256u + i * 16u + x]; }
        }
        workgroupBarrier();
    }
    return sum;
}
fn finish(s: u32, b: u32, j: u32, of_w: array<f32, GATES>) {
    let B = par(1u); let H = par(2u); let row = step_of(s) * B + b; let at = b * H + j;
//! if lengths
    let n = in5(b);
    if (s == 0u && j == 0u && (n < 1 || n > i32(par(0u)))) { fault(n, par(0u)); }
    if (i32(step_of(s)) >= n) {
        skip(s, row, at, j);
        return;
    }
//! end
    var x: array<f32, GATES>; var p = of_w;
    for (var g = 0u; g < GATES; g++) {
        x[g] = in0((row * GATES + g) * H + j);
        p[g] += in2(g * H + j);
    }
    let h = gates(s, row, at, j, x, p);
    out0(row * H + j, h);
    set_tmp((s + 1u) % 2u * B * H + at, w(h));
}

//! part back
//! uses shared
const FIRST = 0xffffffffu; // there is no step before
// Stores dx and of_h. Returns the part of the gradient of the state before that does not pass through the product.
//! if kind tanh
//! uses in5 out0 out2 par
fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {
    let y = in5(row * par(2u) + j); let d = dh * (1.0 - y * y);
    out0(row * par(2u) + j, d);
    keep_of_h(s, b, j, d);
    return 0.0;
}
fn last(at: u32, dh: f32) { out2(at, dh); }
//! end
//! if kind relu
//! uses in5 out0 out2 par
fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {
    let d = select(0.0, dh, in5(row * par(2u) + j) > 0.0);
    out0(row * par(2u) + j, d);
    keep_of_h(s, b, j, d);
    return 0.0;
}
fn last(at: u32, dh: f32) { out2(at, dh); }
//! end
//! if kind lstm
//! uses in1=0.0 in3 in6 in7 out0 out2 out3 par tmp set_tmp
fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {
    let H = par(2u); let at = b * H + j; let to = row * 4u * H + j;
    let i = in7(to); let forget = in7(to + H); let g = in7(to + 2u * H); let o = in7(to + 3u * H);
    var dc = in1(row * H + j); var c_before = 0.0;
    if (s > 0u) { dc += f(tmp(kept(1u) + at)); }
    if (before != FIRST) { c_before = in6(before); } else { c_before = in3(at); }
    let tc = tanh_(in6(row * H + j));
    let d = dc + dh * o * (1.0 - tc * tc);
    store_gate(s, b, row, j, 0u, d * g * (i * (1.0 - i)));
    store_gate(s, b, row, j, 1u, d * c_before * (forget * (1.0 - forget)));
    store_gate(s, b, row, j, 2u, d * i * (1.0 - g * g));
    store_gate(s, b, row, j, 3u, dh * tc * (o * (1.0 - o)));
    set_tmp(kept(1u) + at, w(d * forget));
    return 0.0;
}
fn store_gate(s: u32, b: u32, row: u32, j: u32, gate: u32, v: f32) {
    out0((row * 4u + gate) * par(2u) + j, v);
    keep_of_h(s, b, gate * par(2u) + j, v);
}
fn last(at: u32, dh: f32) {
    out2(at, dh);
    out3(at, f(tmp(kept(1u) + at)));
}
//! end
//! if kind gru
//! uses in3 in5 in7 out0 out1 out2 par
fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {
    let H = par(2u); let at = b * H + j; let to = row * 4u * H + j;
    let r = in7(to); let z = in7(to + H); let n = in7(to + 2u * H);
    var h = 0.0;
    if (before != FIRST) { h = in5(before); } else { h = in3(at); }
    let d = dh * (1.0 - z) * (1.0 - n * n);
    let dr = d * in7(to + 3u * H) * (r * (1.0 - r)); let dz = dh * (h - n) * (z * (1.0 - z));
    store_gate(s, b, row, j, 0u, dr, dr);
    store_gate(s, b, row, j, 1u, dz, dz);
    store_gate(s, b, row, j, 2u, d, d * r);
    return dh * z;
}
fn store_gate(s: u32, b: u32, row: u32, j: u32, gate: u32, dx: f32, of_h: f32) {
    let to = (row * 3u + gate) * par(2u) + j;
    out0(to, dx);
    out1(to, of_h);
    keep_of_h(s, b, gate * par(2u) + j, of_h);
}
fn last(at: u32, dh: f32) { out2(at, dh); }
//! end

//! part skip_back
//! uses out0 par set_tmp shared back
// The results of a step that the sequence of row b does not have.
//! if kind gru
//! uses out1
//! end
fn skip_back(s: u32, b: u32, j: u32, row: u32) {
    let H = par(2u);
    for (var g = 0u; g < GATES; g++) {
        out0((row * GATES + g) * H + j, 0.0);
//! if kind gru
        out1((row * GATES + g) * H + j, 0.0);
//! end
        keep_of_h(s, b, g * H + j, 0.0);
    }
//! if kind lstm
    if (s == 0u) { set_tmp(kept(1u) + b * H + j, w(0.0)); }
//! end
}

//! kernel backward
//! uses in0 in2 par tmp set_tmp shared steps back
//! if lengths
//! uses in4 skip_back
//! end
//! workgroup 2048
// At (b, j): dh = carried dh of the step after + its of_h·w + g; from dh the gates compute dx and of_h. There is one
// step more than T, without gates: its dh is the gradient of h0. s counts from 0 at the last step. Scratch: of_h (B,
// G·H), twice; carried dh and dc (B, H). of_h: the gradient of h·wᵀ.
// Operands: g, gc, w, first (h0, of an LSTM c0), lengths, y, c, saved.
var<workgroup> left: array<f32, 256>;
var<workgroup> right: array<f32, 256>;
fn product(s: u32, row0: u32, column0: u32, local: u32) -> f32 {
    let B = par(1u); let H = par(2u); let K = GATES * H; let y = local / 16u; let x = local % 16u;
    if (s == 0u) { return 0.0; }
    var sum = 0.0;
    for (var k0 = 0u; k0 < K; k0 += 16u) {
        var v = 0.0;
        if (row0 + y < B && k0 + x < K) { v = f(tmp(s % 2u * B * K + (row0 + y) * K + k0 + x)); }
        left[local] = v;
        v = 0.0;
        if (k0 + y < K && column0 + x < H) { v = in2((k0 + y) * H + column0 + x); }
        right[local] = v;
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) { sum += left[y * 16u + i] * right[i * 16u + x]; }
        workgroupBarrier();
    }
    return sum;
}
fn kept(n: u32) -> u32 { return (2u * GATES + n) * par(1u) * par(2u); }
fn keep_of_h(s: u32, b: u32, k: u32, v: f32) {
    let K = GATES * par(2u);
    set_tmp((s + 1u) % 2u * par(1u) * K + b * K + k, w(v));
}
fn finish(s: u32, b: u32, j: u32, through: f32) {
    let B = par(1u); let H = par(2u); let T = par(0u); let at = b * H + j;
    var dh = through;
    if (s > 0u) { dh += f(tmp(kept(0u) + at)); }
    if (s == T) {
        last(at, dh);
        return;
    }
    let row = step_of(T - 1u - s) * B + b;
    var before = FIRST; // the offset of (b, j) in the step before, if there is one
    if (s + 1u < T) { before = (step_of(T - 2u - s) * B + b) * H + j; }
//! if lengths
    if (i32(step_of(T - 1u - s)) >= in4(b)) {
        skip_back(s, b, j, row);
        set_tmp(kept(0u) + at, w(dh));
        return;
    }
    if (s + 1u < T && i32(step_of(T - 2u - s)) >= in4(b)) { before = FIRST; }
//! end
    let rest = back(s, b, j, row, before, dh + in0(row * H + j));
    set_tmp(kept(0u) + at, w(rest));
}

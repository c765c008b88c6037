// cross_entropy and its backward operator, on logits (outer, classes, inner), with the rows of rows.wgsl.
// Forward: a row is a sample. Its loss and the weight of its target are stored in scratch memory, and a second launch
// sums them; if one workgroup holds all samples, one launch is enough. Backward: the weights of all targets are summed
// first; then each element is computed by itself.
// par(0..3): samples, classes, inner, the ignored class; argument 0: label smoothing s. The holes `target` and `weight`
// are the numbers of these operands.
//! hole target = 1 | 2
//! hole weight = 2 | 3
//! hole ignores = true | false
//! hole mean = true | false
//! hole weighted = true | false
//! hole kept = true | false
//! hole each = true | false

//! part class_of
//! uses in{{target}} in{{weight}}=1.0 par pari
const IGNORES = {{ignores}};
const MEAN = {{mean}};
const WEIGHTED = {{weighted}};
fn target_at(s: u32) -> i32 { return in{{target}}(s); }
fn weight(k: u32) -> f32 { return in{{weight}}(k); }
// The class of a target that counts, or -1.
fn class_of(s: u32) -> i32 {
    let t = target_at(s);
    return select(-1, t, t >= 0 && t < i32(par(1u)) && !(IGNORES && t == pari(3u)));
}

//! part sample
//! uses in0 out1 par pari arg fault class_of rows row_max row_sum row_sum2 exp_down infinity not_a_number isinf
fn lse_of(local: u32, at: u32, stop: u32) -> f32 {
    let inner = par(2u);
    var top = -3.4028234e38;
    for (var k = lane_of(local); k < stop; k += LANES) {
        let x = in0(at + k * inner);
        top = select(top, x, x > top);
    }
    top = row_max(local, top);
    var sum = 0.0;
    for (var k = lane_of(local); k < stop; k += LANES) { sum += exp_down(in0(at + k * inner) - top); }
    sum = row_sum(local, sum);
    if (sum == 0.0) { return -infinity(); }
    return select(top + log(sum), not_a_number(), isinf(top));
}
// (loss, weight) of a row, in its first lane; the other lanes have 0.
// loss = (1 - s) w_t (lse - x_t) + s / C · sum over c of w_c (lse - x_c)
fn sample(group: u32, local: u32) -> vec2<f32> {
    let row = row_of(group, local); let inner = par(2u); let n = par(1u);
    var t = -1;
    if (row < par(0u)) { t = class_of(row); }
    let stop = select(0u, n, t >= 0); // an ignored sample is not read
    let at = row / inner * n * inner + row % inner;
    let lse = lse_of(local, at, stop);
    var smooth_ = vec2<f32>(0.0, 0.0);
    if (arg(0u) > 0.0) {
        for (var k = lane_of(local); k < stop; k += LANES) {
            smooth_ += weight(k) * vec2<f32>(in0(at + k * inner), 1.0);
        }
        smooth_ = row_sum2(local, smooth_);
    }
    if (row >= par(0u) || lane_of(local) != 0u) { return vec2<f32>(0.0, 0.0); }
    if (t < 0) {
        let found = target_at(row);
        if (!(IGNORES && found == pari(3u))) { fault(found, n); }
        out1(row, 0.0);
        return vec2<f32>(0.0, 0.0);
    }
    let w = weight(u32(t));
    var loss = (1.0 - arg(0u)) * w * (lse - in0(at + u32(t) * inner));
    if (arg(0u) > 0.0) { loss += arg(0u) / f32(n) * (smooth_.y * lse - smooth_.x); }
    out1(row, lse);
    return vec2<f32>(loss, w);
}

//! part reduce
//! uses out0 class_of group_sum2 not_a_number
// Sums (loss, weight) of all samples. A mean over no sample is NaN.
fn reduce(local: u32, mine: vec2<f32>) {
    let s = group_sum2(local, mine);
    if (local != 0u) { return; }
    if (!MEAN) { out0(0u, s.x); }
    else if (s.y == 0.0) { out0(0u, not_a_number()); }
    else { out0(0u, s.x / s.y); }
}

//! kernel each
//! uses out0 par rows sample
fn kernel(group: u32, local: u32) {
    let s = sample(group, local); let row = row_of(group, local);
    if (row < par(0u) && lane_of(local) == 0u) { out0(row, s.x); }
}

//! kernel keep
//! uses par set_tmp rows sample
fn kernel(group: u32, local: u32) {
    let s = sample(group, local); let row = row_of(group, local);
    if (row >= par(0u) || lane_of(local) != 0u) { return; }
    set_tmp(2u * row, bitcast<u32>(s.x));
    set_tmp(2u * row + 1u, bitcast<u32>(s.y));
}

//! kernel at_once
//! uses sample reduce
fn kernel(group: u32, local: u32) { reduce(local, sample(group, local)); }

//! kernel from_kept
//! uses par tmp reduce
fn kernel(group: u32, local: u32) {
    var s = vec2<f32>(0.0, 0.0);
    for (var i = local; i < par(0u); i += 256u) {
        s += vec2<f32>(bitcast<f32>(tmp(2u * i)), bitcast<f32>(tmp(2u * i + 1u)));
    }
    reduce(local, s);
}

//! part totals
// (divisor of the loss, sum of the weights of all classes): computed by every workgroup, or read from the launch
// before.
//! if kept
//! uses tmp
fn totals(local: u32) -> vec2<f32> { return vec2<f32>(bitcast<f32>(tmp(0u)), bitcast<f32>(tmp(1u))); }
//! else
//! uses par arg class_of group_sum2
fn totals(local: u32) -> vec2<f32> {
    var s = vec2<f32>(0.0, 0.0);
    if (MEAN) {
        for (var i = local; i < par(0u); i += 256u) {
            let t = class_of(i);
            if (t >= 0) { s.x += weight(u32(t)); }
        }
    }
    if (WEIGHTED && arg(0u) > 0.0) {
        for (var k = local; k < par(1u); k += 256u) { s.y += weight(k); }
    }
    if (MEAN || WEIGHTED) { s = group_sum2(local, s); }
    return vec2<f32>(select(1.0, s.x, MEAN), select(f32(par(1u)), s.y, WEIGHTED));
}
//! end

//! kernel keep_totals
//! uses set_tmp totals
fn kernel(group: u32, local: u32) {
    let s = totals(local);
    if (local != 0u) { return; }
    set_tmp(0u, bitcast<u32>(s.x));
    set_tmp(1u, bitcast<u32>(s.y));
}

//! kernel backward
//! uses in0 in1 in4 out0 par arg class_of totals exp_down
// in0: the gradient g, one for each sample or a single one; in1: logits; in4: lse. par(4): elements, par(5): elements
// of an invocation. dx = g / total ((1 - s) w_t (P - [c = t]) + s / C · (P sum of w - w_c))
fn gradient(s: u32) -> f32 {
//! if each
    return in0(s);
//! else
    return in0(0u);
//! end
}
fn element(i: u32, all: vec2<f32>) -> f32 {
    let n = par(1u); let inner = par(2u);
    let c = i / inner % n; let s = i / (inner * n) * inner + i % inner;
    let t = class_of(s);
    if (t < 0) { return 0.0; }
    let scale = gradient(s) / all.x;
    let hard = scale * (1.0 - arg(0u)) * weight(u32(t)); let soft = scale * arg(0u) / f32(n);
    let v = exp_down(in1(i) - in4(s)) * (hard + soft * all.y) - soft * weight(c);
    return v - select(0.0, hard, c == u32(t));
}
fn kernel(group: u32, local: u32) {
    let all = totals(local);
    for (var k = 0u; k < par(5u); k++) {
        let i = (group * par(5u) + k) * 256u + local;
        if (i < par(4u)) { out0(i, element(i, all)); }
    }
}

// batch_norm and its backward operator, on x (N, C, S), with the rows of rows.wgsl. A row is a part of a channel. For
// each row the moments are summed: the mean and the sum of (x - mean)², in the backward pass also the sums of g and g
// (x - mean). If a channel is one part, the same launch computes the results. Otherwise the kernel `keep` stores the
// moments of the parts in scratch memory, and in a second launch each row merges the moments of its channel before it
// computes its results.
// par(0..3): N, C, S, parts. The elements of a channel are numbered 0 .. N·S - 1. Argument 0: epsilon.
//! hole back = true | false
//! hole merged = true | false

//! part parts
//! uses par
struct Part { c: u32, first: u32, end: u32 }
fn count_of(p: u32) -> u32 {
    let n = par(0u) * par(2u); let each = (n + par(3u) - 1u) / par(3u);
    return min(n, (p + 1u) * each) - min(n, p * each);
}
fn part_of(row: u32) -> Part {
    let n = par(0u) * par(2u); let each = (n + par(3u) - 1u) / par(3u);
    let p = row / par(1u);
    if (p >= par(3u)) { return Part(0u, 0u, 0u); }
    return Part(row % par(1u), min(n, p * each), min(n, (p + 1u) * each));
}
fn place(c: u32, e: u32) -> u32 { return (e / par(2u) * par(1u) + c) * par(2u) + e % par(2u); }

//! part gather
//! uses in0 parts rows row_sum2
// (mean, sum of squares about it, sum of g, sum of g (x - mean))
//! if back
//! uses in1
fn x_at(i: u32) -> f32 { return in1(i); }
fn g_at(i: u32) -> f32 { return in0(i); }
//! else
fn x_at(i: u32) -> f32 { return in0(i); }
fn g_at(i: u32) -> f32 { return 0.0; }
//! end
fn gather(local: u32, p: Part) -> vec4<f32> {
    let n = f32(max(p.end - p.first, 1u));
    var sums = vec2<f32>(0.0, 0.0);
    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {
        let i = place(p.c, e);
        sums += vec2<f32>(x_at(i), g_at(i));
    }
    sums = row_sum2(local, sums);
    let mean = sums.x / n;
    var squares = vec2<f32>(0.0, 0.0);
    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {
        let i = place(p.c, e);
        let d = x_at(i) - mean;
        squares += d * vec2<f32>(d, g_at(i));
    }
    squares = row_sum2(local, squares);
    return vec4<f32>(mean, squares.x, sums.y, squares.y);
}

//! kernel keep
//! uses par set_tmp rows parts gather
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local);
    let m = gather(local, part_of(row));
    if (lane_of(local) != 0u || row >= par(1u) * par(3u)) { return; }
    for (var k = 0u; k < 4u; k++) { set_tmp(4u * row + k, bitcast<u32>(m[k])); }
}

//! part moments
// The moments of a whole channel.
//! if merged
//! uses par tmp parts rows row_sum2
// The parts of a channel lie C rows apart. Squares and products are shifted from the mean of a part to the mean of the
// channel.
fn kept(row: u32, k: u32) -> f32 { return bitcast<f32>(tmp(4u * row + k)); }
fn moments(local: u32, p: Part) -> vec4<f32> {
    var sums = vec2<f32>(0.0, 0.0);
    for (var k = lane_of(local); k < par(3u); k += LANES) {
        let row = k * par(1u) + p.c;
        sums += vec2<f32>(kept(row, 0u) * f32(count_of(k)), kept(row, 2u));
    }
    sums = row_sum2(local, sums);
    let mean = sums.x / f32(max(par(0u) * par(2u), 1u));
    var squares = vec2<f32>(0.0, 0.0);
    for (var k = lane_of(local); k < par(3u); k += LANES) {
        let row = k * par(1u) + p.c;
        let d = kept(row, 0u) - mean;
        squares += vec2<f32>(kept(row, 1u) + d * d * f32(count_of(k)), kept(row, 3u) + d * kept(row, 2u));
    }
    squares = row_sum2(local, squares);
    return vec4<f32>(mean, squares.x, sums.y, squares.y);
}
//! else
//! uses gather parts
fn moments(local: u32, p: Part) -> vec4<f32> { return gather(local, p); }
//! end

//! kernel forward
//! uses in0 in1=1.0 in2=0.0 out1 out2 store_result par arg rows parts moments not_a_number
// in1: weight, in2: bias; out1: mean, out2: variance
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local); let p = part_of(row);
    let m = moments(local, p);
    if (row >= par(1u) * par(3u)) { return; }
    let n = par(0u) * par(2u);
    let variance = m.y / f32(max(n, 1u));
    let scale = 1.0 / sqrt(variance + arg(0u)) * in1(p.c);
    let add = in2(p.c);
    if (row < par(1u) && lane_of(local) == 0u) {
        out1(row, select(m.x, not_a_number(), n == 0u));
        out2(row, select(variance, not_a_number(), n == 0u));
    }
    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {
        let i = place(p.c, e);
        store_result(i, (in0(i) - m.x) * scale + add);
    }
}

//! kernel backward
//! uses in0 in1 in2=1.0 out1? out2? store_result par arg rows parts moments
// dx = w r (g - mean(g) - h mean(g h)), h = (x - mean) r; out1: dweight, out2: dbias
fn kernel(group: u32, local: u32) {
    let row = row_of(group, local); let p = part_of(row);
    let m = moments(local, p);
    if (row >= par(1u) * par(3u)) { return; }
    let n = f32(max(par(0u) * par(2u), 1u));
    let r = 1.0 / sqrt(m.y / n + arg(0u));
    let gh = m.w * r;
    if (row < par(1u) && lane_of(local) == 0u) {
        out1(row, gh);
        out2(row, m.z);
    }
    let scale = r * in2(p.c); let g_mean = m.z / n; let gh_mean = gh * r / n;
    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {
        let i = place(p.c, e);
        store_result(i, scale * (in0(i) - g_mean - (in1(i) - m.x) * gh_mean));
    }
}

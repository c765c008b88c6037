// Average pooling and its backward operator. The parameters are those of pool.wgsl.

//! kernel small
//! uses in0 out0 par windows
// One invocation for each result. It sums each row of the window, then the sums of the rows.
fn each(i: u32) {
    let r = span(0u, i32(i / par(3u) % par(2u))); let c = span(1u, i32(i % par(3u)));
    let plane = i / (par(2u) * par(3u)) * par(0u) * par(1u);
    var sum = 0.0;
    for (var h = r.x; h < r.y; h++) {
        let line = plane + u32(h) * par(1u); var part = 0.0;
        for (var w = c.x; w < c.y; w++) { part += in0(line + u32(w)); }
        sum += part;
    }
    out0(i, sum / (f32(r.w) * f32(c.w)));
}

//! kernel large
//! uses in0 out0 par windows
//! workgroup 256
// One workgroup for each result. Its invocations share the window; their sums are added in pairs.
var<workgroup> sums: array<f32, 64>;
fn kernel(i: u32, local: u32) {
    let r = span(0u, i32(i / par(3u) % par(2u))); let c = span(1u, i32(i % par(3u)));
    let plane = i / (par(2u) * par(3u)) * par(0u) * par(1u);
    var sum = 0.0;
    let width = c.y - c.x; let n = (r.y - r.x) * width;
    for (var k = i32(local); k < n; k += 64) {
        sum += in0(plane + u32(r.x + k / width) * par(1u) + u32(c.x + k % width));
    }
    sums[local] = sum;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half /= 2u) {
        if (local < half) { sums[local] += sums[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) { out0(i, sums[0] / (f32(r.w) * f32(c.w))); }
}

//! kernel backward
//! uses in0 out0 par windows
// One invocation for each element. It adds its shares of the gradients, window after window.
fn each(i: u32) {
    let r = windows(0u, i32(i / par(1u) % par(0u))); let c = windows(1u, i32(i % par(1u)));
    let plane = i / (par(0u) * par(1u)) * par(2u) * par(3u);
    var sum = 0.0;
    for (var h = r.x; h < r.y; h++) {
        let line = plane + u32(h) * par(3u); let count = f32(span(0u, h).w);
        for (var w = c.x; w < c.y; w++) { sum += in0(line + u32(w)) / (count * f32(span(1u, w).w)); }
    }
    out0(i, sum);
}

// Average pooling and its backward operator. The parameters are those of pool.wgsl. axes: 2 for planes, 3 for volumes.
//! hole axes = 2 | 3

//! kernel small
//! uses in0 out0 par windows
// One invocation for each result. It sums each row of the window, then the sums of the rows.
fn each(i: u32) {
    let r = span(1u, i32(i / par(5u) % par(4u))); let c = span(2u, i32(i % par(5u)));
    var plane = i / (par(4u) * par(5u)); var sum = 0.0; var count = f32(r.w) * f32(c.w);
//! if axes 3
    let s = span(0u, i32(plane % par(3u))); let volume = plane / par(3u) * par(0u);
    count *= f32(s.w);
    for (var d = s.x; d < s.y; d++) {
        plane = volume + u32(d);
//! end
    for (var h = r.x; h < r.y; h++) {
        let line = (plane * par(1u) + u32(h)) * par(2u); var part = 0.0;
        for (var w = c.x; w < c.y; w++) { part += in0(line + u32(w)); }
        sum += part;
    }
//! if axes 3
    }
//! end
    out0(i, sum / count);
}

//! kernel large
//! uses in0 out0 par windows
//! workgroup 256
// One workgroup for each result. Its invocations share the window; their sums are added in pairs.
var<workgroup> sums: array<f32, 64>;
fn kernel(i: u32, local: u32) {
    let r = span(1u, i32(i / par(5u) % par(4u))); let c = span(2u, i32(i % par(5u)));
    var plane = i / (par(4u) * par(5u)); var sum = 0.0; var count = f32(r.w) * f32(c.w);
    let width = c.y - c.x; let n = (r.y - r.x) * width;
//! if axes 3
    let s = span(0u, i32(plane % par(3u))); let volume = plane / par(3u) * par(0u);
    count *= f32(s.w);
    for (var d = s.x; d < s.y; d++) {
        plane = volume + u32(d);
//! end
    for (var k = i32(local); k < n; k += 64) {
        sum += in0((plane * par(1u) + u32(r.x + k / width)) * par(2u) + u32(c.x + k % width));
    }
//! if axes 3
    }
//! end
    sums[local] = sum;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half /= 2u) {
        if (local < half) { sums[local] += sums[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) { out0(i, sums[0] / count); }
}

//! kernel backward
//! uses in0 out0 par windows
// One invocation for each element. It adds its shares of the gradients, window after window.
fn each(i: u32) {
    let r = windows(1u, i32(i / par(2u) % par(1u))); let c = windows(2u, i32(i % par(2u)));
    var plane = i / (par(1u) * par(2u)); var sum = 0.0; var deep = 1.0;
//! if axes 3
    let s = windows(0u, i32(plane % par(0u))); let volume = plane / par(0u) * par(3u);
    for (var d = s.x; d < s.y; d++) {
        plane = volume + u32(d);
        deep = f32(span(0u, d).w);
//! end
    for (var h = r.x; h < r.y; h++) {
        let line = (plane * par(4u) + u32(h)) * par(5u); let count = deep * f32(span(1u, h).w);
        for (var w = c.x; w < c.y; w++) { sum += in0(line + u32(w)) / (count * f32(span(2u, w).w)); }
    }
//! if axes 3
    }
//! end
    out0(i, sum);
}

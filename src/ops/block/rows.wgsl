// Reductions over rows, for other shaders. A workgroup of 256 invocations holds ROWS rows; LANES invocations share each
// row. Every invocation must call a reduction, even if its row lies after the last one.
//! hole lanes = 1 | 4 | 16 | 64 | 256
//! hole side = 1 | 2 | 4 | 8 | 16
//! hole beside = true | false

//! part rows
// row_of: the row of an invocation, which may lie after the last one; lane_of: its lane; in_row: the invocation that is
// lane k of the same row. beside true: neighbouring invocations have neighbouring rows; false: neighbouring lanes.
const LANES = {{lanes}}u;
const ROWS = 256u / LANES;
//! if beside
fn lane_of(local: u32) -> u32 { return local / ROWS; }
fn row_of(group: u32, local: u32) -> u32 { return group * ROWS + local % ROWS; }
fn in_row(local: u32, k: u32) -> u32 { return k * ROWS + local % ROWS; }
//! else
fn lane_of(local: u32) -> u32 { return local % LANES; }
fn row_of(group: u32, local: u32) -> u32 { return group * ROWS + local / LANES; }
fn in_row(local: u32, k: u32) -> u32 { return local / LANES * LANES + k; }
//! end

// The reductions merge the lanes in two rounds of SIDE values each, LANES = SIDE². So any number of lanes needs only
// two barriers.

//! part row_sum
//! uses rows
//! if lanes 1
fn row_sum(local: u32, x: f32) -> f32 { return x; }
//! else
//! workgroup 2048
var<workgroup> row_sum_a: array<f32, 256>;
var<workgroup> row_sum_b: array<f32, 256>;
fn row_sum(local: u32, x: f32) -> f32 {
    let lane = lane_of(local);
    row_sum_a[local] = x;
    workgroupBarrier();
    if (lane < {{side}}u) {
        var s = row_sum_a[local];
        for (var k = 1u; k < {{side}}u; k++) { s += row_sum_a[in_row(local, lane + k * {{side}}u)]; }
        row_sum_b[local] = s;
    }
    workgroupBarrier();
    var s = row_sum_b[in_row(local, 0u)];
    for (var k = 1u; k < {{side}}u; k++) { s += row_sum_b[in_row(local, k)]; }
    return s;
}
//! end

//! part row_sum2
//! uses rows
//! if lanes 1
fn row_sum2(local: u32, x: vec2<f32>) -> vec2<f32> { return x; }
//! else
//! workgroup 4096
var<workgroup> row_sum2_a: array<vec2<f32>, 256>;
var<workgroup> row_sum2_b: array<vec2<f32>, 256>;
fn row_sum2(local: u32, x: vec2<f32>) -> vec2<f32> {
    let lane = lane_of(local);
    row_sum2_a[local] = x;
    workgroupBarrier();
    if (lane < {{side}}u) {
        var s = row_sum2_a[local];
        for (var k = 1u; k < {{side}}u; k++) { s += row_sum2_a[in_row(local, lane + k * {{side}}u)]; }
        row_sum2_b[local] = s;
    }
    workgroupBarrier();
    var s = row_sum2_b[in_row(local, 0u)];
    for (var k = 1u; k < {{side}}u; k++) { s += row_sum2_b[in_row(local, k)]; }
    return s;
}
//! end

//! part row_max
//! uses rows
//! if lanes 1
fn row_max(local: u32, x: f32) -> f32 { return x; }
//! else
//! workgroup 2048
var<workgroup> row_max_a: array<f32, 256>;
var<workgroup> row_max_b: array<f32, 256>;
fn row_max(local: u32, x: f32) -> f32 {
    let lane = lane_of(local);
    row_max_a[local] = x;
    workgroupBarrier();
    if (lane < {{side}}u) {
        var s = row_max_a[local];
        for (var k = 1u; k < {{side}}u; k++) {
            let t = row_max_a[in_row(local, lane + k * {{side}}u)];
            s = select(s, t, t > s);
        }
        row_max_b[local] = s;
    }
    workgroupBarrier();
    var s = row_max_b[in_row(local, 0u)];
    for (var k = 1u; k < {{side}}u; k++) {
        let t = row_max_b[in_row(local, k)];
        s = select(s, t, t > s);
    }
    return s;
}
//! end

//! part group_sum2
//! workgroup 4096
// The sum over all 256 invocations of the workgroup.
var<workgroup> group_sum2_a: array<vec2<f32>, 256>;
var<workgroup> group_sum2_b: array<vec2<f32>, 256>;
fn group_sum2(local: u32, x: vec2<f32>) -> vec2<f32> {
    group_sum2_a[local] = x;
    workgroupBarrier();
    if (local < 16u) {
        var s = group_sum2_a[local];
        for (var k = 1u; k < 16u; k++) { s += group_sum2_a[local + k * 16u]; }
        group_sum2_b[local] = s;
    }
    workgroupBarrier();
    var s = group_sum2_b[0];
    for (var k = 1u; k < 16u; k++) { s += group_sum2_b[k]; }
    return s;
}

//! part exp_down
// exp(x) for x ≤ 0. Some GPUs do not promise 0 where exp underflows.
fn exp_down(x: f32) -> f32 { return select(exp(x), 0.0, x < -104.0); }

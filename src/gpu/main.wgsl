// The text around every kernel. P holds the command's words: P[0] is the number of workgroups, P[1] the
// number by which a fault names its step. The first words of slab 0, h0, are the status: the step that found an index
// out of range (0: none), the index, and the size it must be below.
//! hole size = any
//! hole count = any
//! hole updates = true | false
//! hole type = f32 | i32

//! part fault
fn fault(index: i32, size: u32) {
    if (h0[0] == 0u) {
        h0[1] = bitcast<u32>(index);
        h0[2] = size;
        h0[0] = P[1];
    }
}

//! part each
// The kernel of launches that give only `fn each`.
fn kernel(group: u32, local: u32) {
    let i = group * 256u + local;
    if (i < par({{count}}u)) { each(i); }
}

//! part store_result
// The kernel has no epilogue.
fn store_result(i: u32, value: {{type}}) { out0(i, value); }

//! part main
// Workgroups are counted over two axes. Steps that update in place do nothing after a fault.
@compute @workgroup_size({{size}})
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let group = w.x + w.y * n.x;
    if (group >= P[0]) { return; }
//! if updates
    if (h0[0] != 0u) { return; }
//! end
    kernel(group, local);
}

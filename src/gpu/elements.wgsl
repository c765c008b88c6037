// The kernel of elementwise groups. `fn element` is printed from the group's operators; a workgroup of 256 invocations
// calls it for 1024 elements. The bound of the loop is not constant, because the compiler would unroll the loop: the
// program would take twice as long to compile and run no faster.
//! hole joined = true | false
//! hole pairs = true | false
//! hole numel = any
//! hole table = any
//! hole first = any
//! hole stride = any

//! part kernel
fn kernel(group: u32, local: u32) {
//! if joined
    // Which of the joined groups the workgroup belongs to: the first that ends after it. Words from `table` on: how
    // many groups there are, where each ends, in workgroups; from `first` on the words of each group, the first of
    // them its size.
    var low = 0u; var high = P[{{table}}u] - 1u;
    while (low < high) {
        let mid = (low + high) / 2u;
        if (P[{{table}}u + 1u + mid] > group) { high = mid; } else { low = mid + 1u; }
    }
    J = {{first}}u + low * {{stride}}u;
    var begin = 0u;
    if (low > 0u) { begin = P[{{table}}u + low]; }
    let first = (group - begin) * 1024u;
    let end = min(P[J], first + 1024u);
//! else
    let first = group * 1024u;
    let end = min(P[{{numel}}u], first + 1024u);
//! end
//! if pairs
    // Two f16 or bf16 share a word: one invocation computes both.
    for (var k = first + 2u * local; k < end; k += 512u) {
        for (var i = k; i < min(end, k + 2u); i++) { element(i); }
    }
//! else
    for (var i = first + local; i < end; i += 256u) { element(i); }
//! end
}

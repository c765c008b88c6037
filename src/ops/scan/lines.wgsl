// Scans along an axis. The other file of the launch has the part `scan`, which defines: the type State; load(at, i),
// the state of one element (at: its offset, i: its index along the line); merge(a, b), the state of a followed by b;
// store(at, i, s), where s is the state of all elements up to i. par(0): elements after the axis; 1: elements along
// it; 2: whether the scan is reversed.

//! part place
//! uses par
fn place(line: u32, i: u32) -> u32 {
    let inner = par(0u); let n = par(1u);
    return (line / inner * n + select(i, n - 1u - i, par(2u) != 0u)) * inner + line % inner;
}

//! kernel side_by_side
//! uses par place scan
// One invocation for each line.
fn each(line: u32) {
    var s: State;
    for (var i = 0u; i < par(1u); i++) {
        let at = place(line, i); let x = load(at, i);
        if (i == 0u) { s = x; } else { s = merge(s, x); }
        store(at, i, s);
    }
}

//! kernel tiles
//! uses par place scan
//! workgroup 10240
// One workgroup for each line, 1024 elements at a time. Each invocation scans 4 elements; the first 16 invocations each
// scan 16 of the last states; then every invocation merges the state before its own elements into them.
var<workgroup> items: array<State, 1024>;
var<workgroup> ends: array<State, 256>;
fn kernel(line: u32, local: u32) {
    let n = par(1u); var before: State;
    for (var begin = 0u; begin < n; begin += 1024u) {
        let count = min(1024u, n - begin); let first = local * 4u; let stop = min(first + 4u, count);
        for (var e = local; e < count; e += 256u) { items[e] = load(place(line, begin + e), begin + e); }
        workgroupBarrier();
        for (var e = first + 1u; e < stop; e++) { items[e] = merge(items[e - 1u], items[e]); }
        if (first < count) { ends[local] = items[stop - 1u]; }
        workgroupBarrier();
        if (local < 16u) {
            let last = min(local * 16u + 16u, (count + 3u) / 4u);
            for (var e = local * 16u + 1u; e < last; e++) { ends[e] = merge(ends[e - 1u], ends[e]); }
        }
        workgroupBarrier();
        if (first < count) {
            var some = begin > 0u;
            for (var e = 15u; e < local - local % 16u; e += 16u) {
                if (some) { before = merge(before, ends[e]); } else { before = ends[e]; }
                some = true;
            }
            if (local % 16u != 0u) {
                if (some) { before = merge(before, ends[local - 1u]); } else { before = ends[local - 1u]; }
                some = true;
            }
            if (some) { for (var e = first; e < stop; e++) { items[e] = merge(before, items[e]); } }
        }
        workgroupBarrier();
        for (var e = local; e < count; e += 256u) { store(place(line, begin + e), begin + e, items[e]); }
        before = items[count - 1u];
        workgroupBarrier();
    }
}

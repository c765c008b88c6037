// slice_assign: replaces a slice of x along an axis. par(0): elements after the axis; par(1), par(2): the sizes of x
// and of the slice along the axis; par(3): the step; argument 0: where the slice begins.

//! kernel in_place
//! uses raw1 set_raw0 par argu
// The result has x's memory. One invocation for each element of the slice.
fn each(j: u32) {
    let inner = par(0u); let t = j / inner; let n = par(2u);
    set_raw0((t / n * par(1u) + argu(0u) + t % n * par(3u)) * inner + j % inner, raw1(j));
}

//! kernel whole
//! uses raw0 raw1 set_raw0 par argu
// One invocation for each element of the result.
fn each(i: u32) {
    let inner = par(0u); let t = i / inner; let place = t % par(1u);
    let d = place - argu(0u); let n = d / par(3u);
    if (place < argu(0u) || d % par(3u) != 0u || n >= par(2u)) {
        set_raw0(i, raw0(i));
        return;
    }
    set_raw0(i, raw1((t / par(1u) * par(2u) + n) * inner + i % inner));
}

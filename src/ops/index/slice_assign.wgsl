// slice_assign: x with every step-th element along an axis replaced. par(0): elements after the axis, 1: x's size
// along it, 2: the slice's, 3: the step; argument 0: where the slice begins.

//! kernel in_place
//! uses raw1 set_raw0 par argu
// The result has x's memory: only the slice is written.
fn each(j: u32) {
    let inner = par(0u); let t = j / inner; let n = par(2u);
    set_raw0((t / n * par(1u) + argu(0u) + t % n * par(3u)) * inner + j % inner, raw1(j));
}

//! kernel whole
//! uses raw0 raw1 set_raw0 par argu
fn each(i: u32) {
    let inner = par(0u); let t = i / inner; let place = t % par(1u);
    let d = place - argu(0u); let n = d / par(3u);
    if (place < argu(0u) || d % par(3u) != 0u || n >= par(2u)) {
        set_raw0(i, raw0(i));
        return;
    }
    set_raw0(i, raw1((t / par(1u) * par(2u) + n) * inner + i % inner));
}

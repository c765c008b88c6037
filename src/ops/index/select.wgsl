// index_select and embedding: slices along an axis. par(0): elements of a slice, 1: indices, 2: x's size along the
// axis.

//! kernel select
//! uses in1 raw0 set_raw0 par pari fault
fn each(i: u32) {
    let slice = i / par(0u); let t = in1(slice % par(1u));
    if (t < 0 || t >= pari(2u)) {
        fault(t, par(2u));
        set_raw0(i, 0u);
        return;
    }
    set_raw0(i, raw0((slice / par(1u) * par(2u) + u32(t)) * par(0u) + i % par(0u)));
}

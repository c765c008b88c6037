// index_select and embedding: picks slices along an axis, with an invocation for each element of the result. par(0):
// elements after the axis; par(1): indices; par(2): x's size along the axis.

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

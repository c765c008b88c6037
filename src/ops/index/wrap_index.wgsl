// wrap_index: negative indices, which count from the end of an axis of size par(0), are made positive. One invocation
// for each index.

//! kernel wrap_index
//! uses in0 out0 par pari fault
fn each(i: u32) {
    let t = in0(i); let size = pari(0u);
    if (t < -size || t >= size) {
        fault(t, par(0u));
        out0(i, 0);
        return;
    }
    out0(i, select(t, t + size, t < 0));
}

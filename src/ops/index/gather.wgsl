// gather, with an invocation for each element of the result. par(0): elements after the axis; par(1): indices along the
// axis; par(2), par(3): x's size and stride along the axis. outer(o), inner(r): offsets of x along the other axes.
//! hole outer = any
//! hole inner = any

//! kernel gather
//! uses in1 raw0 set_raw0 par pari fault
{{outer}}
{{inner}}
fn each(i: u32) {
    let t = in1(i);
    if (t < 0 || t >= pari(2u)) {
        fault(t, par(2u));
        set_raw0(i, 0u);
        return;
    }
    let at = outer(i / (par(0u) * par(1u))) + inner(i % par(0u));
    set_raw0(i, raw0(at.x + u32(t) * par(3u)));
}

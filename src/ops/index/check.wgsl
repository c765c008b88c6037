// divisor, probability, level, weights: the operand, unchanged; an element that is not allowed is a fault. One
// invocation for each element.

//! kernel check
//! uses in0 out0 fault
fn each(i: u32) {
    let v = in0(i);
    if (!({{allowed}})) { fault(i32(i), 0u); }
    out0(i, v);
}

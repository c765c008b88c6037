// searchsorted, with an invocation for each value. par(0): elements of a sequence; par(1): values of a row.
// Holes: shared: one sequence for all rows. right: the place after equal elements.
//! hole shared = true | false
//! hole right = true | false
//! hole float = true | false

//! part reaches
// Whether an element of the sequence is above v, or equal where that counts. NaN comes after all numbers.
//! if float
//! uses isnan
fn reaches(x: f32, v: f32) -> bool {
    if (isnan(x) || isnan(v)) { return false; }
//! else
fn reaches(x: i32, v: i32) -> bool {
//! end
//! if right
    return x > v;
//! else
    return x >= v;
//! end
}

//! kernel search
//! uses in0 in1 out0 par reaches
fn each(i: u32) {
//! if shared
    let row = 0u;
//! else
    let row = i / par(1u) * par(0u);
//! end
    let v = in1(i);
    var low = 0u;
    var high = par(0u);
    while (low < high) {
        let middle = low + (high - low) / 2u;
        if (reaches(in0(row + middle), v)) { high = middle; } else { low = middle + 1u; }
    }
    out0(i, i32(low));
}

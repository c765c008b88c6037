// slice_backward and slice_add. A piece is every step-th element of the whole along an axis. par(0): elements after
// the axis; 1: size of the whole along it; 2: size of the piece; 3: the step; argument 0: the start of the piece.
// piece(j) and whole(i) are the offsets of elements, from their strides.
//! hole piece = any
//! hole whole = any

//! part in_piece
//! uses par argu
// The index in the piece of element i of the whole, or NONE.
const NONE = 0xffffffffu;
fn in_piece(i: u32) -> u32 {
    let inner = par(0u); let t = i / inner; let c = t % par(1u);
    if (c < argu(0u)) { return NONE; }
    let d = c - argu(0u); let n = d / par(3u);
    if (d % par(3u) != 0u || n >= par(2u)) { return NONE; }
    return (t / par(1u) * par(2u) + n) * inner + i % inner;
}

//! part in_whole
//! uses par argu
fn in_whole(j: u32) -> u32 {
    let inner = par(0u); let t = j / inner; let n = par(2u);
    return (t / n * par(1u) + argu(0u) + t % n * par(3u)) * inner + j % inner;
}

//! part sum
//! uses argu
// Argument 1: whether the piece replaces x, which is zero.
fn sum(x: f32, piece: f32) -> f32 { return select(x + piece, piece, argu(1u) != 0u); }

//! kernel slice_backward
//! uses raw0 set_raw0 par in_piece
{{piece}}
fn each(i: u32) {
    let j = in_piece(i); var w = 0u;
    if (j != NONE) { w = raw0(piece(j)); }
    set_raw0(i, w);
}

//! kernel slice_add_in_place
//! uses in0 in1 out0 par in_whole sum
{{piece}}
fn each(j: u32) {
    let i = in_whole(j);
    out0(i, sum(in0(i), in1(piece(j))));
}

//! kernel slice_add
//! uses in0 in1 out0 par in_piece sum
{{piece}}
{{whole}}
fn each(i: u32) {
    let j = in_piece(i); var v = in0(whole(i));
    if (j != NONE) { v = sum(v, in1(piece(j))); }
    out0(i, v);
}

// cat: a launch copies a few operands. Each operand has a range of invocations. par(0): elements of the result along
// the axis and after it. `at` is the first of an operand's parameters: the end of its range; its elements along the
// axis and after it; the start of its range; its offset along the axis of the result. fromK(j) is the offset of
// element j of operand K.
//! hole copies = any
//! hole choice = any
//! hole from = any
//! hole number = 0 | 1 | 2 | 3 | 4 | 5
//! hole at = any
//! hole raws = any

//! part copy
{{from}}
fn copy{{number}}(j: u32) {
    let own = par({{at}}u + 1u);
    set_raw0(j / own * par(0u) + par({{at}}u + 3u) + j % own, raw{{number}}(from{{number}}(j)));
}

//! part choose
    if (i < par({{at}}u)) {
        copy{{number}}(i - par({{at}}u + 2u));
        return;
    }

//! kernel cat
//! uses set_raw0 par {{raws}}
{{copies}}
fn kernel(group: u32, local: u32) {
    let i = group * 256u + local;
{{choice}}
}

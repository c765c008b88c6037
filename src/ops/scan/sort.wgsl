// What sort and topk load and store, for order.wgsl. par(9): elements after the axis; 10: elements of a line; 11:
// wanted elements; 12: all ones if the largest come first, otherwise 0.
//! hole key = float_key | whole_key

//! part place
//! uses par
fn place(line: u32, i: u32, n: u32) -> u32 {
    let inner = par(9u);
    return (line / inner * n + i) * inner + line % inner;
}

//! part load_given
//! uses raw0 par place {{key}}
fn load(line: u32, i: u32) -> vec2<u32> { return vec2<u32>({{key}}(raw0(place(line, i, par(10u)))) ^ par(12u), i); }

//! part store_given
//! uses raw0 set_raw0 set_raw1 par place
fn store(line: u32, i: u32, p: vec2<u32>) {
    if (i >= par(11u)) { return; }
    let to = place(line, i, par(11u));
    set_raw0(to, raw0(place(line, p.y, par(10u))));
    set_raw1(to, p.y);
}

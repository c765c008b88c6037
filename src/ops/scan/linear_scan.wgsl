// linear_scan, for lines.wgsl. A state s maps h before its elements to h after them: h → s.x h + s.y. Products that
// are multiplied by no h may overflow: 0 times such a product is taken as 0. The first a is not used.

//! part scan
//! uses in0 in1 out0 par
alias State = vec2<f32>;
fn load(at: u32, i: u32) -> State {
    if (i == 0u) { return State(0.0, in1(at)); }
    return State(in0(at + select(0u, par(0u), par(2u) != 0u)), in1(at));
}
fn times(a: f32, b: f32) -> f32 {
    if (a == 0.0 || b == 0.0) { return 0.0; }
    return a * b;
}
fn merge(a: State, b: State) -> State { return State(times(b.x, a.x), times(b.x, a.y) + b.y); }
fn store(at: u32, i: u32, s: State) { out0(at, s.y); }

// cumsum and cumprod, for lines.wgsl.
//! hole type = f32 | i32
//! hole sign = + | *

//! part scan
//! uses in0 out0
alias State = {{type}};
fn load(at: u32, i: u32) -> State { return in0(at); }
fn merge(a: State, b: State) -> State { return a {{sign}} b; }
fn store(at: u32, i: u32, s: State) { out0(at, s); }

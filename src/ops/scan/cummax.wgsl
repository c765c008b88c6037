// cummax and cummin, for lines.wgsl. A state is (word of the largest or smallest element so far, its index). A later
// equal element replaces an earlier one.
//! hole key = float_key | whole_key
//! hole beats = >= | <=
//! hole more = 0 | 1

//! part scan
//! uses raw0 set_raw0 set_raw1 {{key}}
alias State = vec2<u32>;
fn load(at: u32, i: u32) -> State { return State(raw0(at), i); }
fn merge(a: State, b: State) -> State {
    return select(a, b, {{key}}(b.x) + {{more}}u {{beats}} {{key}}(a.x) + {{more}}u);
}
fn store(at: u32, i: u32, s: State) {
    set_raw0(at, s.x);
    set_raw1(at, s.y);
}

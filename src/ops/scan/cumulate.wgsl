// cumsum, cumprod and logcumsumexp, for lines.wgsl.
//! hole type = f32 | i32
//! hole fold = sum | product | log_sum

//! part scan
//! uses in0 out0 {{fold}}
alias State = {{type}};
fn load(at: u32, i: u32) -> State { return in0(at); }
fn merge(a: State, b: State) -> State { return {{fold}}(a, b); }
fn store(at: u32, i: u32, s: State) { out0(at, s); }

//! part sum
fn sum(a: {{type}}, b: {{type}}) -> {{type}} { return a + b; }

//! part product
fn product(a: {{type}}, b: {{type}}) -> {{type}} { return a * b; }

//! part log_sum
//! uses log_add_exp
fn log_sum(a: f32, b: f32) -> f32 { return log_add_exp(a, b); }

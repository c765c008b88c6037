// diagonal_backward: zeros, then the diagonal in its place. par(0): where the diagonal begins; here(i) and there(i)
// say where element i lies in the gradient and in the result.
//! hole here = any
//! hole there = any

//! kernel diagonal
//! uses raw0 set_raw0 par
{{here}}
{{there}}
fn each(i: u32) { set_raw0(par(0u) + there(i), raw0(here(i))); }

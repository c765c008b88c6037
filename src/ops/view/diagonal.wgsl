// diagonal_backward: copies the gradient to the diagonal of zeros. par(0): the offset of the diagonal; here(i) and
// there(i) are the offsets of element i in the gradient and in the result.
//! hole here = any
//! hole there = any

//! kernel diagonal
//! uses raw0 set_raw0 par
{{here}}
{{there}}
fn each(i: u32) { set_raw0(par(0u) + there(i), raw0(here(i))); }

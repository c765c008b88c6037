// Fills a whole result, with an invocation for each element: with zeros, or with a copy of the first operand.

//! kernel zeros
//! uses set_raw0
fn each(i: u32) { set_raw0(i, 0u); }

//! kernel copy
//! uses raw0 set_raw0
fn each(i: u32) { set_raw0(i, raw0(i)); }

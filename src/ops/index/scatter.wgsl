// scatter, scatter_add, scatter_fold, index_copy, index_add and embedding_backward. No two invocations write to the
// same place: one invocation gathers all that is written to a place, in the order of the index.
// Holes: operand: the number of the source; if it is 0, the source is written into zeros. type: folds need numbers,
// copies move words. shared: all lines have the same index. checked: indices out of range are reported.
//! hole fold = set | add | mul | max | min
//! hole type = f32 | i32 | u32
//! hole operand = 0 | 2
//! hole shared = true | false
//! hole checked = true | false
//! hole outer = any
//! hole inner = any

//! part source
//! if type u32
//! uses raw{{operand}}
fn source(i: u32) -> {{type}} { return raw{{operand}}(i); }
//! else
//! uses in{{operand}}
fn source(i: u32) -> {{type}} { return in{{operand}}(i); }
//! end

//! part folded
// What a place has after `a`, and then `b`, was written to it.
//! if fold set
fn folded(a: {{type}}, b: {{type}}) -> {{type}} { return b; }
//! end
//! if fold add
fn folded(a: {{type}}, b: {{type}}) -> {{type}} { return a + b; }
//! end
//! if fold mul
fn folded(a: {{type}}, b: {{type}}) -> {{type}} { return a * b; }
//! end
//! if fold max
//! if type f32
//! uses larger
fn folded(a: f32, b: f32) -> f32 { return larger(a, b); }
//! else
fn folded(a: {{type}}, b: {{type}}) -> {{type}} { return max(a, b); }
//! end
//! end
//! if fold min
//! if type f32
//! uses smaller
fn folded(a: f32, b: f32) -> f32 { return smaller(a, b); }
//! else
fn folded(a: {{type}}, b: {{type}}) -> {{type}} { return min(a, b); }
//! end
//! end

//! part old
// Element i of what is written into.
//! if operand 0
fn old(i: u32) -> {{type}} { return {{type}}(0); }
//! else
//! if type u32
//! uses raw0
fn old(i: u32) -> {{type}} { return raw0(i); }
//! else
//! uses in0
fn old(i: u32) -> {{type}} { return in0(i); }
//! end
//! end

//! kernel looking
//! uses in1 par source old folded
// One invocation for each element of the result. It searches all indices of its line; for few indices. par(0): elements
// after the axis; par(1): x's size along the axis; par(2): indices of a line; par(3): the source's size along the axis.
fn each(i: u32) {
    let inner = par(0u); let size = par(1u); let n = par(2u); let r = i % inner;
    let place = bitcast<i32>(i / inner % size); let o = i / (inner * size);
    var v = old(i);
    for (var a = 0u; a < n; a++) {
//! if shared
        let t = in1(a);
//! else
        let t = in1((o * n + a) * inner + r);
//! end
        if (t == place) { v = folded(v, source((o * par(3u) + a) * inner + r)); }
//! if checked
//! uses fault
        if (place == 0 && (t < 0 || u32(t) >= size)) { fault(t, size); }
//! end
    }
//! if type u32
//! uses set_raw0
    set_raw0(i, v);
//! else
//! uses out0
    out0(i, v);
//! end
}

//! part load_given
//! uses in1 par
// For order.wgsl, which sorts: index i of a line and its position. par(9): elements after the axis; par(10): x's size
// along the axis; par(11): indices of a line. Indices out of range come last.
fn load(line: u32, i: u32) -> vec2<u32> {
//! if shared
    let t = in1(i);
//! else
    let t = in1((line / par(9u) * par(11u) + i) * par(9u) + line % par(9u));
//! end
    if (t >= 0 && u32(t) < par(10u)) { return vec2<u32>(u32(t), i); }
//! if checked
//! uses fault
    fault(t, par(10u));
//! end
    return vec2<u32>(0xffffffffu, i);
}

//! kernel in_order
//! uses par tmp source
// One invocation for each index. The sorted indices lie in scratch memory. Indices that name the same place are
// neighbours: the invocation of the first folds them all, or that of the last one writes. par(0): elements after the
// axis; par(1): indices of a line; par(2): x's size along the axis; par(3), par(4): the strides of x and of the source
// along the axis.
{{outer}}
{{inner}}
fn each(i: u32) {
    let width = par(0u); let n = par(1u); let r = i % width; let p = i / width % n;
    let o = i / (width * n);
//! if shared
    let line = 0u;
//! else
    let line = o * width + r;
//! end
    var w = 2u * (line * n + p);
    let key = tmp(w);
    if (key >= par(2u)) { return; }
    let at = outer(o) + inner(r); let to = at.x + key * par(3u);
//! if type u32
//! uses set_raw0
    if (p + 1u < n && tmp(w + 2u) == key) { return; }
    set_raw0(to, source(at.y + tmp(w + 1u) * par(4u)));
//! else
//! uses out0 old folded
    if (p > 0u && tmp(w - 2u) == key) { return; }
    var v = old(to);
    for (var q = p; q < n && tmp(w) == key; q++) {
        v = folded(v, source(at.y + tmp(w + 1u) * par(4u)));
        w += 2u;
    }
    out0(to, v);
//! end
}

// Functions for pooling: which elements of a plane or volume each window covers. par(0..2): depth, height and width of
// what is pooled, par(3..5): those of the result of pooling. Axis 0 is the depth, which planes do not have, axis 1 the
// height, axis 2 the width.
//   span(axis, o)      window o: (first element, end, step, divisor of an average)
//   windows(axis, i)   only windows [x, y) may contain element i
//! hole windows = adaptive | fixed | unknown

//! part windows
//! if windows adaptive
//! uses par muldiv
// Window i of m windows that divide an axis of n elements evenly. By symmetry also the windows that contain element i
// of m elements.
fn share(i: i32, n: u32, m: u32) -> vec2<i32> {
    let end = muldiv(u32(i) + 1u, n, m);
    return vec2<i32>(i32(muldiv(u32(i), n, m).x), i32(end.x + u32(end.y != 0u)));
}
fn span(axis: u32, o: i32) -> vec4<i32> {
    let s = share(o, par(axis), par(3u + axis));
    return vec4<i32>(s, 1, s.y - s.x);
}
fn windows(axis: u32, i: i32) -> vec2<i32> { return share(i, par(3u + axis), par(axis)); }
//! end
//! if windows fixed
//! uses par pari
// From par(6) on, for each axis: extent of a window, stride, padding, dilation, and how elements are counted: with
// padding (0), without (1), or as the number that follows (2).
fn span(axis: u32, o: i32) -> vec4<i32> {
    let size = pari(axis); let p = 6u + 6u * axis; let step = pari(p + 3u);
    let start = o * pari(p + 1u) - pari(p + 2u);
    let end = min(start + pari(p), size + pari(p + 2u));
    var lo = start; let hi = min(end, size);
    if (start < 0) { lo += (step - 1 - start) / step * step; }
    lo = min(lo, hi);
    var count = end - start;
    if (par(p + 4u) == 1u) { count = max(hi - lo, 1); }
    if (par(p + 4u) == 2u) { count = pari(p + 5u); }
    return vec4<i32>(lo, hi, step, count);
}
fn windows(axis: u32, i: i32) -> vec2<i32> {
    let p = 6u + 6u * axis; let at = i + pari(p + 2u); let stride = pari(p + 1u);
    let before = max(at - pari(p) + 1, 0);
    return vec2<i32>((before + stride - 1) / stride, min(at / stride + 1, pari(3u + axis)));
}
//! end
//! if windows unknown
//! uses pari
// The attributes do not describe the windows: every window may contain the element.
fn windows(axis: u32, i: i32) -> vec2<i32> { return vec2<i32>(0, pari(3u + axis)); }
//! end

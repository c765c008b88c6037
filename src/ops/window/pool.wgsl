// Functions for pooling: which elements of a plane each window covers. par(0..3): height and width of the planes that
// are pooled, then height and width of the result of pooling. Axis 0 is the height, axis 1 the width.
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
    let s = share(o, par(axis), par(2u + axis));
    return vec4<i32>(s, 1, s.y - s.x);
}
fn windows(axis: u32, i: i32) -> vec2<i32> { return share(i, par(2u + axis), par(axis)); }
//! end
//! if windows fixed
//! uses par pari
// From par(4) on, for each axis: extent of a window, stride, padding, dilation, whether padding is excluded.
fn span(axis: u32, o: i32) -> vec4<i32> {
    let size = pari(axis); let p = 4u + 5u * axis; let step = pari(p + 3u);
    let start = o * pari(p + 1u) - pari(p + 2u);
    let end = min(start + pari(p), size + pari(p + 2u));
    var lo = start; let hi = min(end, size);
    if (start < 0) { lo += (step - 1 - start) / step * step; }
    lo = min(lo, hi);
    return vec4<i32>(lo, hi, step, select(end - start, max(hi - lo, 1), par(p + 4u) != 0u));
}
fn windows(axis: u32, i: i32) -> vec2<i32> {
    let p = 4u + 5u * axis; let at = i + pari(p + 2u); let stride = pari(p + 1u);
    let before = max(at - pari(p) + 1, 0);
    return vec2<i32>((before + stride - 1) / stride, min(at / stride + 1, pari(2u + axis)));
}
//! end
//! if windows unknown
//! uses pari
// The attributes do not describe the windows: every window may contain the element.
fn windows(axis: u32, i: i32) -> vec2<i32> { return vec2<i32>(0, pari(2u + axis)); }
//! end

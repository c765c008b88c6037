// Bilinear resizing of planes and its backward operator. par(0..3): height and width of x, then of y.
//! hole corners = true | false

//! part taps
//! uses muldiv
// tap: coordinate o of m lies between the elements lo and hi of n: at o (n - 1) / (m - 1) if corners are aligned,
// otherwise at ((2 o + 1) n - m) / (2 m), computed with whole numbers. An axis that keeps its size is copied. near: only
// coordinates [x, y) may read element i.
struct Tap { lo: u32, hi: u32, weight: f32 }
fn between(lo: u32, n: u32, weight: f32) -> Tap { return Tap(min(lo, n - 1u), min(lo + 1u, n - 1u), weight); }
fn share(t: Tap, i: u32) -> f32 {
    return select(0.0, 1.0 - t.weight, t.lo == i) + select(0.0, t.weight, t.hi == i);
}
//! if corners
fn tap(o: u32, n: u32, m: u32) -> Tap {
    if (n == m) { return Tap(o, o, 0.0); }
    let at = muldiv(o, n - 1u, max(m, 2u) - 1u);
    return between(at.x, n, f32(at.y) / f32(max(m, 2u) - 1u));
}
fn near(i: u32, n: u32, m: u32) -> vec2<u32> {
    if (n == 1u) { return vec2<u32>(0u, m); }
    let end = muldiv(i + 1u, m - 1u, n - 1u).x + 2u;
    return vec2<u32>(muldiv(max(i, 1u) - 1u, m - 1u, n - 1u).x, min(m, end));
}
//! else
fn tap(o: u32, n: u32, m: u32) -> Tap {
    if (n == m) { return Tap(o, o, 0.0); }
    let at = muldiv(2u * o + 1u, n, 2u * m);
    if (at.y >= m) { return between(at.x, n, f32(at.y - m) / f32(2u * m)); }
    if (at.x == 0u) { return between(0u, n, 0.0); }
    return between(at.x - 1u, n, f32(at.y + m) / f32(2u * m));
}
fn near(i: u32, n: u32, m: u32) -> vec2<u32> {
    let low = muldiv(max(2u * i, 1u) - 1u, m, 2u * n).x;
    return vec2<u32>(max(low, 1u) - 1u, min(m, muldiv(2u * i + 3u, m, 2u * n).x + 2u));
}
//! end

//! kernel forward
//! uses in0 out0 par taps
fn each(i: u32) {
    let r = tap(i / par(3u) % par(2u), par(0u), par(2u));
    let c = tap(i % par(3u), par(1u), par(3u)); let left = 1.0 - c.weight;
    let plane = i / (par(2u) * par(3u)) * par(0u) * par(1u);
    let upper = plane + r.lo * par(1u); let lower = plane + r.hi * par(1u);
    let above = left * in0(upper + c.lo) + c.weight * in0(upper + c.hi);
    let below = left * in0(lower + c.lo) + c.weight * in0(lower + c.hi);
    out0(i, (1.0 - r.weight) * above + r.weight * below);
}

//! kernel backward
//! uses in0 out0 par taps
// One invocation for each element. It adds, in order, its shares of the gradients of all results that read it.
fn each(i: u32) {
    let y = i / par(1u) % par(0u); let x = i % par(1u);
    let plane = i / (par(0u) * par(1u)) * par(2u) * par(3u);
    let rows = near(y, par(0u), par(2u)); let columns = near(x, par(1u), par(3u));
    var sum = 0.0;
    for (var h = rows.x; h < rows.y; h++) {
        let r = tap(h, par(0u), par(2u));
        if (r.lo != y && r.hi != y) { continue; }
        for (var w = columns.x; w < columns.y; w++) {
            let c = tap(w, par(1u), par(3u));
            if (c.lo != x && c.hi != x) { continue; }
            sum += share(r, y) * share(c, x) * in0(plane + h * par(3u) + w);
        }
    }
    out0(i, sum);
}

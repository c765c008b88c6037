// pad: the kernel goes through the axes, the last one first. q is the index along the padded axis, then along the axis
// of x; o is the offset in x. `at` is the first of an axis's parameters: its padded size, the margin before it, the
// stride and the size of x; for circular padding also the numbers that are added below the first element and
// subtracted beyond the last.
//! hole type = float | whole | bool
//! hole mode = plain | constant | reflect | replicate | circular
//! hole at = any
//! hole walk = any

//! part constant
//! if type float
//! uses arg
fn constant() -> f32 { return arg(0u); }
//! end
//! if type bool
//! uses argu argh
fn constant() -> i32 { return i32(((argh(0u) & 0x7fffffffu) | argu(0u)) != 0u); }
//! end
//! if type whole
//! uses argu argh
// The whole part of the argument, an f64, from its exponent and its bits.
fn constant() -> i32 {
    let power = (argh(0u) >> 20u) & 0x7ffu;
    if (power < 1023u || power > 1054u) { return select(0, bitcast<i32>(0x80000000u), power > 1054u); }
    let top = (argh(0u) & 0xfffffu) | 0x100000u; let e = power - 1023u;
    var v = top >> (20u - min(e, 20u));
    if (e > 20u) { v = (top << (e - 20u)) | (argu(0u) >> (52u - e)); }
    return select(bitcast<i32>(v), -bitcast<i32>(v), argh(0u) >> 31u == 1u);
}
//! end

//! part axis
    q = i32(t % par({{at}}u)) - pari({{at}}u + 1u); t /= par({{at}}u);
//! if mode constant
    inside = inside && q >= 0 && q < pari({{at}}u + 3u);
//! end
//! if mode reflect
    q = abs(q);
    if (q >= pari({{at}}u + 3u)) { q = 2 * (pari({{at}}u + 3u) - 1) - q; }
//! end
//! if mode replicate
    q = clamp(q, 0, pari({{at}}u + 3u) - 1);
//! end
//! if mode circular
    if (q < 0) { q += pari({{at}}u + 4u); } else if (q >= pari({{at}}u + 3u)) { q -= pari({{at}}u + 5u); }
//! end
    o += bitcast<u32>(q) * par({{at}}u + 2u);

//! kernel pad
//! uses raw0 out0 set_raw0 par pari constant
fn each(i: u32) {
    var t = i; var o = 0u; var q = 0; var inside = true;
{{walk}}
    if (inside) { set_raw0(i, raw0(o)); } else { out0(i, constant()); }
}

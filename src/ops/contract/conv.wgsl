// Convolution and its two gradients. All three are the same product with different parameters:
//
//     out[row, column] = sum over k of a[row, k] · b[k, column]
//
// A column and a k are numbers of four digits: an image or channel, and a place on three axes. The matrix b is never
// stored. Its element is that of the image whose coordinate on each axis is `base + scale · digit of the column + scale
// · digit of k`, or 0 outside the image (checked). Only the last `axes` axes have more than one place. The work is cut
// in one of two ways:
//
//   alone  Each invocation computes some rows of its own columns. All invocations of a workgroup have the same rows,
//          and so read the same elements of a.
//   tiled  A workgroup of 16 × 8 or 16 × 16 invocations loads 16 k of its rows and columns into workgroup memory at a
//          time. Neighbouring invocations read neighbours along k of a, neighbouring columns of b.
//
// Each sum is a variable of its own, because compilers do not keep arrays in registers. If the sums are cut into parts,
// the sums of parts go to scratch memory.
// par(0..4): blocks of rows, blocks of columns, groups, parts, elements of the result; then the numbers of each
// problem, in the order of `struct problem` in conv_gpu.c.
//! hole a = 0 | 1
//! hole b = 0 | 1
//! hole checked = true | false
//! hole axes = 1 | 2 | 3
//! hole tiled = true | false
//! hole parts = true | false
//! hole vector = 1 | 4
//! hole vectors = 1 | 2 | 3 | 4
//! hole columns = 1 | 2 | 4 | 8
//! hole lanes = any
//! hole row_lanes = 1 | 8 | 16
//! hole bytes = any

//! part digits
// digits: the digits of a number, the first in x; missing axes have the digit 0. advance: adds two numbers by digits.
fn digits(k: i32, radix: vec4<i32>) -> vec4<i32> {
    var d = vec4<i32>(); var rest = k;
    { let q = rest / radix.w; d.w = rest - q * radix.w; rest = q; }
//! if axes 1
//! else
    { let q = rest / radix.z; d.z = rest - q * radix.z; rest = q; }
//! end
//! if axes 3
    { let q = rest / radix.y; d.y = rest - q * radix.y; rest = q; }
//! end
    d.x = rest;
    return d;
}
fn advance(m: vec4<i32>, step: vec4<i32>, radix: vec4<i32>) -> vec4<i32> {
    var n = m + step;
//! if axes 1
    if (n.w >= radix.w) { n.w -= radix.w; n.x++; }
//! end
//! if axes 2
    if (n.w >= radix.w) { n.w -= radix.w; n.z++; }
    if (n.z >= radix.z) { n.z -= radix.z; n.x++; }
//! end
//! if axes 3
    if (n.w >= radix.w) { n.w -= radix.w; n.z++; }
    if (n.z >= radix.z) { n.z -= radix.z; n.y++; }
    if (n.y >= radix.y) { n.y -= radix.y; n.x++; }
//! end
    return n;
}

//! part store
//! if parts
//! uses par set_tmp
fn store(part: i32, i: i32, v: f32) { set_tmp(u32(part) * par(4u) + u32(i), bitcast<u32>(v)); }
//! else
//! uses store_result
fn store(part: i32, i: i32, v: f32) { store_result(u32(i), v); }
//! end

//! kernel conv
//! uses in{{a}} in{{b}} par pari digits store
//! workgroup {{bytes}}
const NUMBERS = 41u;
const LANES = {{lanes}};
const ROW_LANES = {{row_lanes}};
const ROWS = {{vector}} * {{vectors}};
//! if vector 1
alias Sum = f32;
//! else
alias Sum = vec4<f32>;
//! end
//! if tiled
const TILE_ROWS = ROWS * ROW_LANES;
var<workgroup> tile_a: array<f32, 16 * (TILE_ROWS + 1)>;
var<workgroup> tile_b: array<f32, 16 * 64>;
//! end
fn a(i: i32) -> f32 { return in{{a}}(u32(i)); }
fn b(i: i32) -> f32 { return in{{b}}(u32(i)); }
fn kernel(group: u32, local: u32) {
    // The rows, columns, group, part and problem of the workgroup.
    var rest = group;
    let row = i32(rest % par(0u)) * ROWS * ROW_LANES; rest /= par(0u);
    let first = i32(rest % par(1u)) * {{columns}} * LANES; rest /= par(1u);
    let g = i32(rest % par(2u)); rest /= par(2u);
    let parts = i32(par(3u)); let part = i32(rest) % parts;
    let problem = 5u + rest / par(3u) * NUMBERS;
    // f, m: radices of the digits of a column and of k; fs, ms: their scales; lim: the size of the image; b, a, o:
    // strides in b, in a, in the result of a row, a group or a digit. Digit 0 is the image or channel, the others are
    // the axes.
    let rows = pari(problem); let columns = pari(problem + 1u); let depth = pari(problem + 2u);
    let f1 = pari(problem + 3u); let f2 = pari(problem + 4u); let f3 = pari(problem + 5u);
    let m1 = pari(problem + 6u); let m2 = pari(problem + 7u); let m3 = pari(problem + 8u);
    let fs1 = pari(problem + 9u); let fs2 = pari(problem + 10u); let fs3 = pari(problem + 11u);
    let ms1 = pari(problem + 12u); let ms2 = pari(problem + 13u); let ms3 = pari(problem + 14u);
    let base1 = pari(problem + 15u); let base2 = pari(problem + 16u); let base3 = pari(problem + 17u);
    let lim1 = pari(problem + 18u); let lim2 = pari(problem + 19u); let lim3 = pari(problem + 20u);
    let bg = pari(problem + 21u); let bf = pari(problem + 22u); let bm = pari(problem + 23u);
    let b1 = pari(problem + 24u); let b2 = pari(problem + 25u); let b3 = pari(problem + 26u);
    let ag = pari(problem + 27u); let arow = pari(problem + 28u); let abase = pari(problem + 29u);
    let am0 = pari(problem + 30u); let am1 = pari(problem + 31u); let am2 = pari(problem + 32u);
    let am3 = pari(problem + 33u);
    let og = pari(problem + 34u); let orow = pari(problem + 35u); let obase = pari(problem + 36u);
    let of0 = pari(problem + 37u); let of1 = pari(problem + 38u); let of2 = pari(problem + 39u);
    let of3 = pari(problem + 40u);
    if (first >= columns) { return; }
    let each = (depth + parts - 1) / parts; let begin = part * each; let end = min(depth, begin + each);
    let radix = vec4<i32>(0, m1, m2, m3);
    let group_b = g * bg; let group_a = g * ag + abase;

    // The offset in b of the image of each column.
//! if tiled
    let x = i32(local) % LANES; let y = i32(local) / LANES;
    let column = i32(local) % 64; let line = i32(local) / 64;
    let own_row = row + y; let own_column = first + x;
    let d0 = digits(min(first + column, columns - 1), vec4<i32>(0, f1, f2, f3));
//! if axes 3
    let q1_0 = d0.y * fs1 + base1;
//! end
//! if axes 1
//! else
    let q2_0 = d0.z * fs2 + base2;
//! end
    let q3_0 = d0.w * fs3 + base3;
//! if axes 3
    let from0 = group_b + d0.x * bf + q1_0 * b1 + q2_0 * b2 + q3_0 * b3;
//! end
//! if axes 2
    let from0 = group_b + d0.x * bf + q2_0 * b2 + q3_0 * b3;
//! end
//! if axes 1
    let from0 = group_b + d0.x * bf + q3_0 * b3;
//! end
//! else
    let own_row = row; let own_column = first + i32(local);
//! repeat j columns
    let d{{j}} = digits(min(own_column + {{j}} * LANES, columns - 1), vec4<i32>(0, f1, f2, f3));
//! if axes 3
    let q1_{{j}} = d{{j}}.y * fs1 + base1;
//! end
//! if axes 1
//! else
    let q2_{{j}} = d{{j}}.z * fs2 + base2;
//! end
    let q3_{{j}} = d{{j}}.w * fs3 + base3;
//! if axes 3
    let from{{j}} = group_b + d{{j}}.x * bf + q1_{{j}} * b1 + q2_{{j}} * b2 + q3_{{j}} * b3;
//! end
//! if axes 2
    let from{{j}} = group_b + d{{j}}.x * bf + q2_{{j}} * b2 + q3_{{j}} * b3;
//! end
//! if axes 1
    let from{{j}} = group_b + d{{j}}.x * bf + q3_{{j}} * b3;
//! end
//! end
//! end

    // The offsets in a of this invocation's rows, and its sums.
//! repeat v vectors
//! repeat i vector
    let r{{v}}_{{i}} = min(own_row + ({{vector}} * {{v}} + {{i}}) * ROW_LANES, rows - 1) * arow;
//! end
//! end
//! repeat j columns
//! repeat v vectors
    var s{{v}}_{{j}} = Sum();
//! end
//! end

//! if tiled
    var m = digits(begin + x, radix); let m_step = digits(16, radix);
    var n = digits(begin + line, radix); let n_step = digits(LANES * ROW_LANES / 64, radix);
    for (var k = begin; k < end; k += 16) {
//! if axes 3
        let w = group_a + m.x * am0 + m.y * am1 + m.z * am2 + m.w * am3;
//! end
//! if axes 2
        let w = group_a + m.x * am0 + m.z * am2 + m.w * am3;
//! end
//! if axes 1
        let w = group_a + m.x * am0 + m.w * am3;
//! end
        let some = k + x < end;
//! repeat i 4
        tile_a[x * (TILE_ROWS + 1) + y + {{i}} * ROW_LANES] = select(0.0, a(select(0, w + r0_{{i}}, some)), some);
//! end
        m = advance(m, m_step, radix);
        for (var i = line; i < 16; i += LANES * ROW_LANES / 64) {
//! if axes 3
        let k1 = n.y * ms1;
//! end
//! if axes 1
//! else
        let k2 = n.z * ms2;
//! end
        let k3 = n.w * ms3;
//! if axes 3
        let shift = n.x * bm + k1 * b1 + k2 * b2 + k3 * b3;
//! end
//! if axes 2
        let shift = n.x * bm + k2 * b2 + k3 * b3;
//! end
//! if axes 1
        let shift = n.x * bm + k3 * b3;
//! end
//! if checked
//! if axes 3
        let ok0 = k + i < end && u32(q1_0 + k1) < u32(lim1) && u32(q2_0 + k2) < u32(lim2) && u32(q3_0 + k3) < u32(lim3);
//! end
//! if axes 2
        let ok0 = k + i < end && u32(q2_0 + k2) < u32(lim2) && u32(q3_0 + k3) < u32(lim3);
//! end
//! if axes 1
        let ok0 = k + i < end && u32(q3_0 + k3) < u32(lim3);
//! end
//! else
        let ok0 = k + i < end;
//! end
        let x0 = select(0.0, b(select(0, from0 + shift, ok0)), ok0);
        tile_b[i * 64 + column] = x0;
        n = advance(n, n_step, radix);
        }
        workgroupBarrier();
        for (var i = 0; i < 16; i++) {
            let at = i * (TILE_ROWS + 1) + y;
            let w0 = vec4<f32>(tile_a[at], tile_a[at + ROW_LANES], tile_a[at + 2 * ROW_LANES],
                               tile_a[at + 3 * ROW_LANES]);
//! repeat j columns
            s0_{{j}} = fma(w0, vec4<f32>(tile_b[i * 64 + x + {{j}} * LANES]), s0_{{j}});
//! end
        }
        workgroupBarrier();
    }
//! else
    var m = digits(begin, radix);
    for (var k = begin; k < end; k++) {
//! if axes 3
        let k1 = m.y * ms1;
//! end
//! if axes 1
//! else
        let k2 = m.z * ms2;
//! end
        let k3 = m.w * ms3;
//! if axes 3
        let shift = m.x * bm + k1 * b1 + k2 * b2 + k3 * b3;
//! end
//! if axes 2
        let shift = m.x * bm + k2 * b2 + k3 * b3;
//! end
//! if axes 1
        let shift = m.x * bm + k3 * b3;
//! end
//! if axes 3
        let w = group_a + m.x * am0 + m.y * am1 + m.z * am2 + m.w * am3;
//! end
//! if axes 2
        let w = group_a + m.x * am0 + m.z * am2 + m.w * am3;
//! end
//! if axes 1
        let w = group_a + m.x * am0 + m.w * am3;
//! end
//! repeat j columns
//! if checked
//! if axes 3
        let ok{{j}} = u32(q1_{{j}} + k1) < u32(lim1) && u32(q2_{{j}} + k2) < u32(lim2) &&
                      u32(q3_{{j}} + k3) < u32(lim3);
//! end
//! if axes 2
        let ok{{j}} = u32(q2_{{j}} + k2) < u32(lim2) && u32(q3_{{j}} + k3) < u32(lim3);
//! end
//! if axes 1
        let ok{{j}} = u32(q3_{{j}} + k3) < u32(lim3);
//! end
        let x{{j}} = select(0.0, b(select(0, from{{j}} + shift, ok{{j}})), ok{{j}});
//! else
        let x{{j}} = b(from{{j}} + shift);
//! end
//! end
//! repeat v vectors
//! if vector 1
        let w{{v}} = a(w + r{{v}}_0);
//! else
        let w{{v}} = vec4<f32>(a(w + r{{v}}_0), a(w + r{{v}}_1), a(w + r{{v}}_2), a(w + r{{v}}_3));
//! end
//! repeat j columns
        s{{v}}_{{j}} = fma(w{{v}}, Sum(x{{j}}), s{{v}}_{{j}});
//! end
//! end
        m = advance(m, vec4<i32>(0, 0, 0, 1), radix);
    }
//! end

    // A loop stores the results, so that `store`, which may be a long epilogue, is compiled only once.
    var sums: array<f32, ROWS * {{columns}}>; var to: array<i32, {{columns}}>;
//! repeat j columns
//! if tiled
    let e{{j}} = digits(own_column + {{j}} * LANES, vec4<i32>(0, f1, f2, f3));
//! else
    let e{{j}} = d{{j}};
//! end
    to[{{j}}] = e{{j}}.x * of0 + e{{j}}.y * of1 + e{{j}}.z * of2 + e{{j}}.w * of3;
//! repeat v vectors
//! if vector 1
    sums[{{j}} * ROWS + {{v}}] = s{{v}}_{{j}};
//! else
//! repeat i 4
    sums[{{j}} * ROWS + 4 * {{v}} + {{i}}] = s{{v}}_{{j}}[{{i}}];
//! end
//! end
//! end
//! end
    for (var j = 0; j < min({{columns}}, (columns - own_column + LANES - 1) / LANES); j++) {
        let first_row = to[j] + g * og + obase + own_row * orow;
        for (var r = 0; r < min(ROWS, (rows - own_row + ROW_LANES - 1) / ROW_LANES); r++) {
            store(part, first_row + r * ROW_LANES * orow, sums[j * ROWS + r]);
        }
    }
}

//! kernel add_parts
//! uses par tmp store_result
// Adds the sums of the parts in order. par(0): parts; par(1): elements of the result.
fn each(i: u32) {
    var sum = 0.0;
    for (var p = 0u; p < par(0u); p++) { sum += bitcast<f32>(tmp(p * par(1u) + i)); }
    store_result(i, sum);
}

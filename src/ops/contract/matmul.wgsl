// matmul in f32, or in i32 for whole numbers: out[row, column] = sum over k of a[row, k] · b[k, column]. The operands
// may have any strides. There are four kernels:
//
//   direct  A workgroup of 8 invocations that run in step keeps 16 × 32 sums in registers. An invocation passes the
//           elements of a that it has read to the others by broadcast, without a barrier. For software devices that run
//           8 invocations as one vector.
//   block   A workgroup of 4 invocations keeps 8 × 32 sums in registers, and shares nothing. For other software devices,
//           where barriers and workgroup memory cost more than reading an element again.
//   tiled   A workgroup of 16 × 16 invocations keeps 64 × 64 sums. It shares slices of a and b, 16 long, in workgroup
//           memory.
//   plain   An invocation computes one sum. For few rows or few columns.
//
// If the inner axis is cut into parts, the sums of parts go to scratch memory, and the kernel add_parts adds them,
// always in the same order. If the result has strides of its own (strided), lies(i) is the offset of element i.
//
// par(0..2): rows, columns, inner axis; 3..6: strides of a's rows and columns, of b's rows and columns; 7: elements of
// the result; 8: parts; 9: length of a part; 10: bit 0 is set if neighbours along k are contiguous in a, bit 1 if in b;
// 11: number of batch axes; from 12 on, for each of them, its size and the strides of a and b.
//! hole type = f32 | i32
//! hole parts = true | false
//! hole strided = true | false
//! hole lies = any

//! part numbers
//! uses par
alias T = {{type}};
fn m() -> u32 { return par(0u); }
fn n() -> u32 { return par(1u); }
fn inner() -> u32 { return par(2u); }
fn a_row() -> u32 { return par(3u); }
fn a_col() -> u32 { return par(4u); }
fn b_row() -> u32 { return par(5u); }
fn b_col() -> u32 { return par(6u); }
fn numel() -> u32 { return par(7u); }
fn parts() -> u32 { return par(8u); }
// The offsets of item `item` of the batch in a and b.
fn first(item: u32) -> vec2<u32> {
    var rest = item; var at = vec2<u32>(0u, 0u);
    for (var d = 0u; d < par(11u); d++) {
        let size = par(12u + 3u * d);
        at += (rest % size) * vec2<u32>(par(13u + 3u * d), par(14u + 3u * d));
        rest /= size;
    }
    return at;
}

//! part finish
// Stores element i of the result.
//! if strided
//! uses out0 par
{{lies}}
fn finish(i: u32, v: {{type}}) { out0(lies(i), v); }
//! else
//! uses store_result
fn finish(i: u32, v: {{type}}) { store_result(i, v); }
//! end

//! part store
//! if parts
//! uses set_tmp
fn store(i: u32, v: {{type}}) { set_tmp(i, bitcast<u32>(v)); }
//! else
//! uses finish
fn store(i: u32, v: {{type}}) { finish(i, v); }
//! end

//! part place
//! uses par numbers
// The work of a workgroup: rows from `row` on, columns from `col` on, [begin, end) of the inner axis.
struct Place { row: u32, col: u32, begin: u32, end: u32, a: u32, b: u32, out: u32 }
fn place(group: u32, height: u32, width: u32) -> Place {
    let across = (n() + width - 1u) / width; let down = (m() + height - 1u) / height;
    let tile = group % (across * down); let rest = group / (across * down);
    let part = rest % parts(); let item = rest / parts(); let at = first(item);
    let begin = part * par(9u);
    return Place((tile / across) * height, (tile % across) * width, begin, min(begin + par(9u), inner()), at.x, at.y,
                 part * numel() + item * m() * n());
}

//! kernel direct
//! uses in0 in1 subgroups numbers place store
// x: the elements of a that this invocation read, one row of 16, two steps along k; y: those of b, four columns. Each
// sum is a variable of its own, because compilers do not keep arrays in registers.
fn kernel(group: u32, local: u32) {
    let p = place(group, 16u, 32u);
    let rows = min(p.row + local + vec2<u32>(0u, 8u), vec2<u32>(m() - 1u));
    let cols = min(p.col + local + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(n() - 1u));
    var a = p.a + rows * a_row() + p.begin * a_col(); var b = p.b + cols * b_col() + p.begin * b_row();
//! repeat r 16
    var s{{r}} = vec4<T>();
//! end
    for (var k = p.begin; k < p.end; k += 2u) {
        let two = k + 1u < p.end;
        let a1 = a + select(0u, a_col(), two); let b1 = b + select(0u, b_row(), two);
        let x0 = in0(a.x); var x2 = in0(a1.x); let x1 = in0(a.y); var x3 = in0(a1.y);
        let y00 = in1(b.x); let y10 = in1(b1.x); let y01 = in1(b.y); let y11 = in1(b1.y);
        let y02 = in1(b.z); let y12 = in1(b1.z); let y03 = in1(b.w); let y13 = in1(b1.w);
        let y0 = vec4<T>(y00, y01, y02, y03); var y1 = vec4<T>(y10, y11, y12, y13);
        x2 = select(T(0), x2, two); x3 = select(T(0), x3, two); y1 = select(vec4<T>(), y1, two);
        s0 += subgroupBroadcast(x0, 0u) * y0 + subgroupBroadcast(x2, 0u) * y1;
        s1 += subgroupBroadcast(x0, 1u) * y0 + subgroupBroadcast(x2, 1u) * y1;
        s2 += subgroupBroadcast(x0, 2u) * y0 + subgroupBroadcast(x2, 2u) * y1;
        s3 += subgroupBroadcast(x0, 3u) * y0 + subgroupBroadcast(x2, 3u) * y1;
        s4 += subgroupBroadcast(x0, 4u) * y0 + subgroupBroadcast(x2, 4u) * y1;
        s5 += subgroupBroadcast(x0, 5u) * y0 + subgroupBroadcast(x2, 5u) * y1;
        s6 += subgroupBroadcast(x0, 6u) * y0 + subgroupBroadcast(x2, 6u) * y1;
        s7 += subgroupBroadcast(x0, 7u) * y0 + subgroupBroadcast(x2, 7u) * y1;
        s8 += subgroupBroadcast(x1, 0u) * y0 + subgroupBroadcast(x3, 0u) * y1;
        s9 += subgroupBroadcast(x1, 1u) * y0 + subgroupBroadcast(x3, 1u) * y1;
        s10 += subgroupBroadcast(x1, 2u) * y0 + subgroupBroadcast(x3, 2u) * y1;
        s11 += subgroupBroadcast(x1, 3u) * y0 + subgroupBroadcast(x3, 3u) * y1;
        s12 += subgroupBroadcast(x1, 4u) * y0 + subgroupBroadcast(x3, 4u) * y1;
        s13 += subgroupBroadcast(x1, 5u) * y0 + subgroupBroadcast(x3, 5u) * y1;
        s14 += subgroupBroadcast(x1, 6u) * y0 + subgroupBroadcast(x3, 6u) * y1;
        s15 += subgroupBroadcast(x1, 7u) * y0 + subgroupBroadcast(x3, 7u) * y1;
        a += 2u * a_col(); b += 2u * b_row();
    }
    var s = array<vec4<T>, 16>(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15);
    for (var r = 0u; r < 16u; r++) {
        for (var c = 0u; c < 4u; c++) {
            let row = p.row + r; let col = p.col + local + 8u * c;
            if (row < m() && col < n()) { store(p.out + row * n() + col, s[r][c]); }
        }
    }
}

//! kernel block
//! uses in0 in1 numbers place store
// x: an element of each of 8 rows; y, z: those of b, eight columns.
fn kernel(group: u32, local: u32) {
    let p = place(group, 8u, 32u); let da = a_col(); let db = b_row();
    let left = p.b + min(p.col + local + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(n() - 1u)) * b_col();
    let right = p.b + min(p.col + local + vec4<u32>(16u, 20u, 24u, 28u), vec4<u32>(n() - 1u)) * b_col();
//! repeat r 8
    let a{{r}} = p.a + min(p.row + {{r}}u, m() - 1u) * a_row();
    var s{{r}} = vec4<T>(); var t{{r}} = vec4<T>();
//! end
    for (var k = p.begin; k < p.end; k++) {
        let l = left + k * db; let r = right + k * db;
        let y = vec4<T>(in1(l.x), in1(l.y), in1(l.z), in1(l.w));
        let z = vec4<T>(in1(r.x), in1(r.y), in1(r.z), in1(r.w));
//! repeat r 8
        let x{{r}} = in0(a{{r}} + k * da);
        s{{r}} += x{{r}} * y; t{{r}} += x{{r}} * z;
//! end
    }
    var s = array<vec4<T>, 16>(s0, t0, s1, t1, s2, t2, s3, t3, s4, t4, s5, t5, s6, t6, s7, t7);
    for (var i = 0u; i < 64u; i++) {
        let row = p.row + i / 8u; let col = p.col + local + 4u * (i % 8u);
        if (row < m() && col < n()) { store(p.out + row * n() + col, s[i / 4u][i % 4u]); }
    }
}

//! kernel tiled
//! uses in0 in1 par numbers place store
//! workgroup 8320
// Slices are (inner axis, 64 rows or columns) with a stride of 65, so that neighbours along either axis write to
// different banks.
var<workgroup> A: array<T, 1040>;
var<workgroup> B: array<T, 1040>;
fn spot(t: u32, along: bool) -> vec2<u32> {
    if (along) { return vec2<u32>(t / 16u, t % 16u); }
    return vec2<u32>(t % 64u, t / 64u);
}
fn kernel(group: u32, local: u32) {
    let p = place(group, 64u, 64u);
    let x = local % 16u; let y = local / 16u;
    var s0 = vec4<T>(); var s1 = vec4<T>(); var s2 = vec4<T>(); var s3 = vec4<T>();
    for (var k = p.begin; k < p.end; k += 16u) {
        for (var j = 0u; j < 4u; j++) {
            let u = spot(local + 256u * j, (par(10u) & 1u) != 0u);
            var v = T(0);
            if (p.row + u.x < m() && k + u.y < p.end) {
                v = in0(p.a + (p.row + u.x) * a_row() + (k + u.y) * a_col());
            }
            A[u.y * 65u + u.x] = v;
            let w = spot(local + 256u * j, (par(10u) & 2u) != 0u);
            v = T(0);
            if (p.col + w.x < n() && k + w.y < p.end) {
                v = in1(p.b + (p.col + w.x) * b_col() + (k + w.y) * b_row());
            }
            B[w.y * 65u + w.x] = v;
        }
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            let at = i * 65u;
            let b = vec4<T>(B[at + x], B[at + x + 16u], B[at + x + 32u], B[at + x + 48u]);
            s0 += A[at + y] * b; s1 += A[at + y + 16u] * b;
            s2 += A[at + y + 32u] * b; s3 += A[at + y + 48u] * b;
        }
        workgroupBarrier();
    }
    var s = array<vec4<T>, 4>(s0, s1, s2, s3);
    for (var r = 0u; r < 4u; r++) {
        for (var c = 0u; c < 4u; c++) {
            let row = p.row + y + 16u * r; let col = p.col + x + 16u * c;
            if (row < m() && col < n()) { store(p.out + row * n() + col, s[r][c]); }
        }
    }
}

//! kernel plain
//! uses in0 in1 par numbers store
// Part p sums elements p, p + parts, .. of the inner axis. If both operands are contiguous along k (par(10) is 3),
// neighbouring invocations compute parts of one sum; otherwise neighbouring elements of the result.
fn each(i: u32) {
    var part = i / numel(); var e = i % numel();
    if (par(10u) == 3u) { part = i % parts(); e = i / parts(); }
    let row = (e / n()) % m(); let at = first(e / (m() * n()));
    let a = at.x + row * a_row(); let b = at.y + (e % n()) * b_col();
    var s = T(0);
    for (var k = part; k < inner(); k += parts()) { s += in0(a + k * a_col()) * in1(b + k * b_row()); }
    store(part * numel() + e, s);
}

//! kernel add_parts
//! uses par tmp finish
// par(0): elements of the result; par(1): parts.
fn each(i: u32) {
    var s = {{type}}(0);
    for (var p = 0u; p < par(1u); p++) { s += bitcast<{{type}}>(tmp(p * par(0u) + i)); }
    finish(i, s);
}

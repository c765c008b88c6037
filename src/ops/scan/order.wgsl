// Sorts lines of pairs (key, index) by a bitonic sort: within tiles in workgroup memory, across tiles in steps over
// scratch memory. Every comparison moves the smaller pair to the front (the first step of each stage compares mirror
// images). So pairs beyond the end of a line, which count as the largest, never move and need no memory.
//
// A tile has 1024 pairs: a part of one line, or several lines. par(0): lines; 1: pairs of a line; 2: pairs of a line
// in a tile, a power of two; 3: parts of a line; 4: pairs of each tile that are stored; 5, 6: where in scratch memory
// pairs come from and go to; 7: pairs of a line there; 8: whether neighbours in memory belong to neighbouring lines.
//
// The other file of the launch has the parts load_given and store_given: `fn load(line: u32, i: u32) -> vec2<u32>`
// returns pair i of a line before sorting, `fn store(line: u32, i: u32, p: vec2<u32>)` stores pair i after sorting.
// Their parameters begin at par(9).
//! hole load = given | scratch
//! hole store = given | scratch
//! hole merge = true | false

//! part load_scratch
//! uses par tmp
fn load(line: u32, i: u32) -> vec2<u32> {
    let w = par(5u) + 2u * (line * par(1u) + i);
    return vec2<u32>(tmp(w), tmp(w + 1u));
}

//! part store_scratch
//! uses par set_tmp
fn store(line: u32, i: u32, p: vec2<u32>) {
    let w = par(6u) + 2u * (line * par(7u) + i);
    set_tmp(w, p.x);
    set_tmp(w + 1u, p.y);
}

//! kernel tile
//! uses par load_{{load}} store_{{store}}
//! workgroup 8192
var<workgroup> pairs: array<vec2<u32>, 1024>;
fn later(p: vec2<u32>, q: vec2<u32>) -> bool { return p.x > q.x || (p.x == q.x && p.y > q.y); }
fn exchange(a: u32, b: u32) {
    let p = pairs[a]; let q = pairs[b];
    if (later(p, q)) {
        pairs[a] = q;
        pairs[b] = p;
    }
}
// Blocks of two halves: the first pair is compared with the last, and so on.
fn mirrored(half: u32, local: u32) {
    for (var c = local; c < 512u; c += 256u) {
        let block = c / half * half * 2u; let r = c % half;
        exchange(block + r, block + 2u * half - 1u - r);
    }
    workgroupBarrier();
}
fn straight(first: u32, local: u32) {
    for (var half = first; half > 0u; half /= 2u) {
        for (var c = local; c < 512u; c += 256u) {
            let a = c / half * half * 2u + c % half;
            exchange(a, a + half);
        }
        workgroupBarrier();
    }
}
//! if merge
// Both halves of each tile are sorted already, and no mirrored step is left.
fn steps(width: u32, local: u32) { straight(width / 2u, local); }
//! else
fn steps(width: u32, local: u32) {
    for (var k = 2u; k <= width; k *= 2u) {
        mirrored(k / 2u, local);
        straight(k / 4u, local);
    }
}
//! end
// The e-th pair that is loaded or stored, as (line of the tile, pair of that line).
fn split(e: u32) -> vec2<u32> {
    let width = par(2u); let rows = 1024u / width;
    return select(vec2<u32>(e / width, e % width), vec2<u32>(e % rows, e / rows), par(8u) != 0u);
}
fn kernel(group: u32, local: u32) {
    let n = par(1u); let width = par(2u); let parts = par(3u);
    let line0 = group / parts * (1024u / width); let part = group % parts;
    for (var e = local; e < 1024u; e += 256u) {
        let at = split(e); let i = part * 1024u + at.y;
        var p = vec2<u32>(0xffffffffu);
        if (line0 + at.x < par(0u) && i < n) { p = load(line0 + at.x, i); }
        pairs[at.x * width + at.y] = p;
    }
    workgroupBarrier();
    steps(width, local);
    for (var e = local; e < 1024u; e += 256u) {
        let at = split(e); let i = part * 1024u + at.y;
        if (line0 + at.x < par(0u) && i < n && at.y < par(4u)) {
            store(line0 + at.x, part * par(4u) + at.y, pairs[at.x * width + at.y]);
        }
    }
}

//! kernel step
//! uses par tmp set_tmp
// One step of a stage whose blocks are longer than a tile. par(0): comparisons of a line, 1: how far apart the
// compared pairs lie, 2: pairs of a line, 3: whether mirror images are compared.
fn each(c: u32) {
    let line = c / par(0u); let t = c % par(0u); let half = par(1u); let r = t % half;
    let start = t / half * half * 2u; let a = start + r;
    let b = select(a + half, start + 2u * half - 1u - r, par(3u) != 0u);
    if (b >= par(2u)) { return; }
    let wa = 2u * (line * par(2u) + a); let wb = 2u * (line * par(2u) + b);
    let ka = tmp(wa); let pa = tmp(wa + 1u); let kb = tmp(wb); let pb = tmp(wb + 1u);
    if (ka < kb || (ka == kb && pa < pb)) { return; }
    set_tmp(wa, kb); set_tmp(wa + 1u, pb);
    set_tmp(wb, ka); set_tmp(wb + 1u, pa);
}

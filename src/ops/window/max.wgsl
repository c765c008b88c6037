// Max pooling and its backward operator. The parameters are those of pool.wgsl. least: the least element, as a word.
// axes: 2 for planes, 3 for volumes.
//! hole axes = 2 | 3
//! hole whole = true | false
//! hole least = 0xff800000u | 0x80000000u | 0xffffff80u | 0xffff8000u | 0u

//! kernel forward
//! uses raw0 out1 set_raw0 par pari windows
// One invocation for each result. Elements are compared by rank: NaN is the largest and -0 equals 0. WGSL promises
// neither for comparisons of floats.
//! if whole
fn rank(word: u32) -> i32 { return bitcast<i32>(word); }
fn replaces(rank: i32, most: i32) -> bool { return rank > most; }
//! else
fn rank(word: u32) -> i32 {
    let size = i32(word & 0x7fffffffu);
    if (size > 0x7f800000) { return 0x7fffffff; }
    return select(size, -size, word >> 31u == 1u);
}
fn replaces(rank: i32, most: i32) -> bool { return rank > most || rank == 0x7fffffff; }
//! end
fn each(i: u32) {
    let r = span(1u, i32(i / par(5u) % par(4u))); let c = span(2u, i32(i % par(5u)));
    let height = pari(1u); let width = pari(2u);
    var plane = i / (par(4u) * par(5u)); var row = 0;
    var best = {{least}}; var most = rank(best);
    var place = min(r.x, height - 1) * width + min(c.x, width - 1);
//! if axes 3
    let s = span(0u, i32(plane % par(3u)));
    plane = plane / par(3u) * par(0u);
    place += min(s.x, pari(0u) - 1) * height * width;
    for (var d = s.x; d < s.y; d += s.z) {
        row = d * height;
//! end
    for (var h = row + r.x; h < row + r.y; h += r.z) {
        for (var w = c.x; w < c.y; w += c.z) {
            let here = h * width + w; let v = raw0(plane * par(1u) * par(2u) + u32(here)); let k = rank(v);
            if (replaces(k, most)) { best = v; most = k; place = here; }
        }
    }
//! if axes 3
    }
//! end
    set_raw0(i, best);
    out1(i, place);
}

//! kernel backward
//! uses in0 in1 store_result par pari windows
// One invocation for each element. It adds, in order, the gradients of the windows whose maximum it was.
fn each(i: u32) {
    let r = windows(1u, i32(i / par(2u) % par(1u))); let c = windows(2u, i32(i % par(2u)));
    var plane = i / (par(1u) * par(2u)); var sum = 0.0;
//! if axes 3
    let here = i32(i % (par(0u) * par(1u) * par(2u)));
    let s = windows(0u, i32(plane % par(0u))); let volume = plane / par(0u) * par(3u);
    for (var d = s.x; d < s.y; d++) {
        plane = volume + u32(d);
//! else
    let here = i32(i % (par(1u) * par(2u)));
//! end
    for (var h = r.x; h < r.y; h++) {
        for (var w = c.x; w < c.y; w++) {
            let at = (plane * par(4u) + u32(h)) * par(5u) + u32(w);
            if (in1(at) == here) { sum += in0(at); }
        }
    }
//! if axes 3
    }
//! end
    store_result(i, sum);
}

// Max pooling and its backward operator. The parameters are those of pool.wgsl. least: the least element, as a word.
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
    let r = span(0u, i32(i / par(3u) % par(2u))); let c = span(1u, i32(i % par(3u)));
    let plane = i / (par(2u) * par(3u)) * par(0u) * par(1u); let width = pari(1u);
    var best = {{least}}; var most = rank(best);
    var place = min(r.x, pari(0u) - 1) * width + min(c.x, width - 1);
    for (var h = r.x; h < r.y; h += r.z) {
        for (var w = c.x; w < c.y; w += c.z) {
            let here = h * width + w; let v = raw0(plane + u32(here)); let k = rank(v);
            if (replaces(k, most)) { best = v; most = k; place = here; }
        }
    }
    set_raw0(i, best);
    out1(i, place);
}

//! kernel backward
//! uses in0 in1 store_result par pari windows
// One invocation for each element. It adds, in order, the gradients of the windows whose maximum it was.
fn each(i: u32) {
    let here = i32(i % (par(0u) * par(1u)));
    let r = windows(0u, here / pari(1u)); let c = windows(1u, here % pari(1u));
    let plane = i / (par(0u) * par(1u)) * par(2u) * par(3u);
    var sum = 0.0;
    for (var h = r.x; h < r.y; h++) {
        for (var w = c.x; w < c.y; w++) {
            let at = plane + u32(h) * par(3u) + u32(w);
            if (in1(at) == here) { sum += in0(at); }
        }
    }
    store_result(i, sum);
}

// randperm: the permutation that the CPU's swaps give, computed without swaps.
//
// For i from n - 1 to 0 the CPU swaps elements i and j(i), where j(i) ≤ i. So result i is the element at j(i) just
// before swap i. If a k > i has j(k) = j(i), the smallest such k was the last swap at j(i), and left there the element
// that was at k before swap k; otherwise the element is j(i) itself. The element at k before swap k is found by going
// from k to the smallest m > k with j(m) = k, and on from m in the same way. Such chains have about log n steps.
//
// Both neighbours are found in the list of the pairs (j(k), k), sorted by a radix sort with digits of 4 bits: an
// invocation counts the digits of its 64 pairs, the counts become running sums, and the pairs move to their places;
// equal pairs keep their order.
//
// par(0): n; 1: chunks of 64 pairs; 2, 3: where in scratch memory pairs come from and go to; 4: the 16 counts of each
// chunk; 5: sums of 128 counts; 6: the lowest bit of the digit; 7: the number of sums.

//! kernel draw
//! uses argu argh set_tmp random_pair below
fn each(i: u32) {
    let w = random_pair(argu(0u), argh(0u), argu(1u), argh(1u), i);
    set_tmp(2u * i, below(vec2<u32>(i + 1u, 0u), w).x);
    set_tmp(2u * i + 1u, i);
}

//! kernel count
//! uses par tmp set_tmp
fn each(i: u32) {
    var counts: array<u32, 16>;
    for (var k = i * 64u; k < min(par(0u), i * 64u + 64u); k++) {
        counts[(tmp(par(2u) + 2u * k) >> par(6u)) & 15u] += 1u;
    }
    for (var d = 0u; d < 16u; d++) { set_tmp(par(4u) + d * par(1u) + i, counts[d]); }
}

//! kernel sum
//! uses par tmp set_tmp
fn each(i: u32) {
    var s = 0u;
    for (var k = i * 128u; k < min(16u * par(1u), i * 128u + 128u); k++) { s += tmp(par(4u) + k); }
    set_tmp(par(5u) + i, s);
}

//! kernel before
//! uses par tmp set_tmp
// Replaces each sum by the total of the sums before it.
fn each(i: u32) {
    var s = 0u;
    for (var k = 0u; k < par(7u); k++) {
        let x = tmp(par(5u) + k);
        set_tmp(par(5u) + k, s);
        s += x;
    }
}

//! kernel spread
//! uses par tmp set_tmp
// Replaces each count by the total of the counts before it.
fn each(i: u32) {
    var s = tmp(par(5u) + i);
    for (var k = i * 128u; k < min(16u * par(1u), i * 128u + 128u); k++) {
        let x = tmp(par(4u) + k);
        set_tmp(par(4u) + k, s);
        s += x;
    }
}

//! kernel move
//! uses par tmp set_tmp
fn each(i: u32) {
    var at: array<u32, 16>;
    for (var d = 0u; d < 16u; d++) { at[d] = tmp(par(4u) + d * par(1u) + i); }
    for (var k = i * 64u; k < min(par(0u), i * 64u + 64u); k++) {
        let j = tmp(par(2u) + 2u * k); let d = (j >> par(6u)) & 15u; let to = par(3u) + 2u * at[d];
        set_tmp(to, j);
        set_tmp(to + 1u, tmp(par(2u) + 2u * k + 1u));
        at[d] += 1u;
    }
}

//! kernel clear
//! uses par set_tmp
fn each(i: u32) { set_tmp(par(3u) + par(0u) + i, 0xffffffffu); }

//! kernel link
//! uses par tmp set_tmp
// Writes for each k the start of its chain: an element, or an index with the highest bit set; and for each index the
// next index of the chain, or all ones.
fn each(i: u32) {
    let n = par(0u); let p = par(2u) + 2u * i; let j = tmp(p); let k = tmp(p + 1u);
    var next = 0xffffffffu; var leads = i == 0u;
    if (i + 1u < n && tmp(p + 2u) == j) { next = tmp(p + 3u); }
    if (i > 0u) { leads = tmp(p - 2u) != j; }
    var start = j;
    if (j == k) { start = k | 0x80000000u; }
    else if (next != 0xffffffffu) { start = next | 0x80000000u; }
    set_tmp(par(3u) + k, start);
    if (leads) { set_tmp(par(3u) + n + j, select(k, next, j == k)); }
}

//! kernel look
//! uses out0 par tmp
fn each(i: u32) {
    let next = par(3u) + par(0u); let start = tmp(par(3u) + i);
    var k = start & 0x7fffffffu;
    if (start != k) {
        var m = tmp(next + k);
        while (m != 0xffffffffu) {
            k = m;
            m = tmp(next + k);
        }
    }
    out0(i, i32(k));
}

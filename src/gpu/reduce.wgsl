// The kernel of reductions. `fn value` computes the elements. LANES invocations share a result: lane l folds elements
// l, l + LANES, .., then states are merged pairwise. Neighbouring invocations read neighbouring memory: if the elements
// of a result lie side by side (rows), they are lanes of one result; otherwise they belong to neighbouring results.
//
// Words from `first` on: results, elements of each, elements after the reduced axes, parts (slices of the elements that
// are reduced separately), elements of a result in all. With parts, a first launch stores states in scratch memory, and
// a second launch merges them.
//! hole state = any
//! hole begin = any
//! hole fold = any
//! hole merge = any
//! hole finish = any
//! hole element = f32 | i32
//! hole result = f32 | i32
//! hole words = any
//! hole word = f32 | i32 | u32
//! hole lanes = 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256
//! hole rows = true | false
//! hole first = any
//! hole from_states = true | false
//! hole to_states = true | false

//! part reducer
alias State = {{state}};
fn begin() -> State { return {{begin}}; }
fn merge(s: State, t: State) -> State { return {{merge}}; }
//! if from_states
fn state(at: u32) -> State {
//! if words 1
    return bitcast<{{word}}>(tmp(at));
//! else
    var s: State;
//! repeat k words
    s[{{k}}] = bitcast<{{word}}>(tmp(at * {{words}}u + {{k}}u));
//! end
    return s;
//! end
}
//! else
fn fold(s: State, x: {{element}}, at: i32) -> State { return {{fold}}; }
//! end
//! if to_states
//! else
fn finish(s: State, count: u32) -> {{result}} { return {{result}}({{finish}}); }
//! end

//! part kernel
const LANES = {{lanes}}u;
const RESULTS = 256u / LANES;
//! if lanes 1
//! else
var<workgroup> shared_states: array<State, 256>;
//! end
fn kernel(group: u32, local: u32) {
//! if rows
    let mine = local / LANES; let lane = local % LANES;
//! else
    let mine = local % RESULTS; let lane = local / RESULTS;
//! end
    let at = group * RESULTS + mine; let slot = lane * RESULTS + mine;
    let n = P[{{first}}u + 1u]; let inner = P[{{first}}u + 2u]; let parts = P[{{first}}u + 3u];
    var best = begin();
    if (at < P[{{first}}u]) {
//! if from_states
        for (var k = lane; k < n; k += LANES) { best = merge(best, state(at * n + k)); }
//! else
        let o = at / parts; let part = at % parts;
        let per = (n + parts - 1u) / parts;
        let stop = min(n, (part + 1u) * per);
        let start = (o / inner) * n * inner + o % inner;
        for (var k = part * per + lane; k < stop; k += LANES) {
            best = fold(best, value(start + k * inner), i32(k));
        }
//! end
    }
//! if lanes 1
//! else
    shared_states[slot] = best;
    workgroupBarrier();
    // The first half is not constant (parts > 0), because the compiler would unroll the loop: see elements.wgsl.
    for (var half = LANES / 2u * min(parts, 1u); half > 0u; half /= 2u) {
        if (lane < half) {
            shared_states[slot] = merge(shared_states[slot], shared_states[slot + half * RESULTS]);
        }
        workgroupBarrier();
    }
    best = shared_states[slot];
//! end
    if (at < P[{{first}}u] && lane == 0u) {
//! if to_states
//! if words 1
        set_tmp(at, bitcast<u32>(best));
//! else
//! repeat k words
        set_tmp(at * {{words}}u + {{k}}u, bitcast<u32>(best[{{k}}]));
//! end
//! end
//! else
        out0(at, finish(best, P[{{first}}u + 4u]));
//! end
    }
}

// ctc_loss and its backward operator. A row of rows.wgsl is a sample; its lanes share the states and go through time
// together. The log-probabilities of the states lie in scratch memory. As on the CPU, the largest of them is subtracted
// from all in each step, and these levels are summed in two floats. The logarithm of probability 0 is NEVER, because
// the kernels must not compute with infinities.
// par(0..5): T, N, C, S (0 for flat targets), labels in all, blank. The holes x (log_probs), targets, frames (input
// lengths) and lengths (target lengths) are the numbers of these operands.
//! hole x = 0 | 1
//! hole targets = 1 | 2
//! hole frames = 2 | 3
//! hole lengths = 3 | 4
//! hole flat = true | false
//! hole zero_infinity = true | false
//! hole checked = true | false

//! part sample
//! uses in{{x}} in{{targets}}=0 in{{frames}} in{{lengths}} par tmp set_tmp rows row_max exp_down
const FLAT = {{flat}};
const ZERO_INFINITY = {{zero_infinity}};
fn x_at(i: u32) -> f32 { return in{{x}}(i); }
fn target_at(i: u32) -> i32 { return in{{targets}}(i); }
fn frames_at(n: u32) -> i32 { return in{{frames}}(n); }
fn length_at(n: u32) -> i32 { return in{{lengths}}(n); }
//! if checked
//! uses fault
fn wrong(index: i32, size: u32) { fault(index, size); }
//! else
fn wrong(index: i32, size: u32) { }
//! end
const NEVER = -1e30;
struct Sample { row: u32, start: u32, length: u32, frames: u32, states: u32, place: u32 }
fn f(w: u32) -> f32 { return bitcast<f32>(w); }
fn w(x: f32) -> u32 { return bitcast<u32>(x); }
fn log_sum(a: f32, b: f32, c: f32) -> f32 {
    let top = max(max(a, b), c);
    if (top < 0.5 * NEVER) { return NEVER; }
    return top + log(exp_down(a - top) + exp_down(b - top) + exp_down(c - top));
}
// acc.x + acc.y + x; y of the result is the rounding error of x
fn add(acc: vec2<f32>, x: f32) -> vec2<f32> {
    let s = acc.x + x; let b = s - acc.x;
    return vec2<f32>(s, acc.y + ((acc.x - (s - b)) + (x - b)));
}
fn places() -> u32 { return 2u * par(4u) + 3u * par(1u); }
fn label_of(s: Sample, i: u32) -> u32 {
    if (i % 2u == 0u) { return par(5u); }
    return u32(target_at(s.start + i / 2u));
}
fn skips(s: Sample, i: u32) -> bool { return i > 1u && i < s.states && label_of(s, i) != label_of(s, i - 2u); }
fn log_prob(s: Sample, t: u32, i: u32) -> f32 {
    let x = x_at((t * par(1u) + s.row) * par(2u) + label_of(s, i));
    return select(x, NEVER, x < NEVER);
}
fn bad(index: i32, size: u32) -> bool { return index < 0 || u32(index) >= size; }
// A sample with an index out of range gets 0 frames.
fn sample_of(group: u32, local: u32) -> Sample {
    var s = Sample(row_of(group, local), 0u, 0u, 0u, 1u, 0u);
    let there = s.row < par(1u); let first = lane_of(local) == 0u;
    var room = par(3u);
    if (FLAT && there) {
        for (var m = 0u; m < s.row; m++) {
            let length = length_at(m);
            if (!bad(length, par(4u) - s.start + 1u)) { s.start += u32(length); }
        }
        room = par(4u) - s.start;
    } else if (there) {
        s.start = s.row * room;
    }
    s.place = 2u * s.start + 3u * s.row;
    if (there) {
        let length = length_at(s.row); let frames = frames_at(s.row);
        if (!bad(length, room + 1u)) { s.length = u32(length); }
        else if (first) { wrong(length, room + 1u); }
        if (!bad(frames, par(0u) + 1u)) { s.frames = u32(frames); }
        else if (first) { wrong(frames, par(0u) + 1u); }
        if (FLAT && first && s.row + 1u == par(1u) && s.length < room) { // labels that belong to no sample
            wrong(i32(s.start + s.length), s.start + s.length);
        }
    }
    var faults = 0.0;
    for (var i = lane_of(local); i < s.length; i += LANES) {
        let t = target_at(s.start + i);
        if (bad(t, par(2u))) {
            wrong(t, par(2u));
            faults = 1.0;
        }
    }
    if (row_max(local, faults) > 0.0) {
        s.length = 0u;
        s.frames = 0u;
    }
    s.states = 2u * s.length + 1u;
    return s;
}
// Step t: computes row `to` of scratch memory from row `before`. Returns the subtracted level. All lanes must call it.
fn alpha_step(local: u32, s: Sample, t: u32, before: u32, to: u32) -> f32 {
    var top = NEVER;
    let stop = select(0u, s.states, t < s.frames);
    for (var i = lane_of(local); i < stop; i += LANES) {
        var v = NEVER;
        if (t == 0u) {
            if (i < 2u) { v = log_prob(s, t, i); }
        } else {
            let at = before + s.place + i;
            var b = NEVER; var c = NEVER;
            if (i > 0u) { b = f(tmp(at - 1u)); }
            if (skips(s, i)) { c = f(tmp(at - 2u)); }
            v = log_sum(f(tmp(at)), b, c) + log_prob(s, t, i);
        }
        set_tmp(to + s.place + i, w(v));
        top = max(top, v);
    }
    return lower(local, s, to, stop, top);
}
fn lower(local: u32, s: Sample, row: u32, stop: u32, mine: f32) -> f32 {
    var top = row_max(local, mine);
    if (top < 0.5 * NEVER) { top = 0.0; }
    for (var i = lane_of(local); i < stop; i += LANES) {
        let at = row + s.place + i;
        set_tmp(at, w(f(tmp(at)) - top));
    }
    storageBarrier();
    return top;
}
// The log of the probability of the target, from the last row: a path ends in the last label or the blank after it.
fn alpha_end(s: Sample, row: u32) -> f32 {
    let at = row + s.place + s.states - 1u;
    var b = NEVER;
    if (s.states > 1u) { b = f(tmp(at - 1u)); }
    return log_sum(f(tmp(at)), b, NEVER);
}

//! kernel forward
//! uses out0 par rows sample infinity
fn kernel(group: u32, local: u32) {
    let s = sample_of(group, local);
    var level = vec2<f32>(0.0, 0.0);
    for (var t = 0u; t < par(0u); t++) {
        level = add(level, alpha_step(local, s, t, (t + 1u) % 2u * places(), t % 2u * places()));
    }
    if (s.row >= par(1u) || lane_of(local) != 0u) { return; }
    var end = select(0.0, NEVER, s.states > 1u); // without frames only the empty target is possible
    if (s.frames > 0u) { end = alpha_end(s, (s.frames - 1u) % 2u * places()); }
    if (end < 0.5 * NEVER) { out0(s.row, select(infinity(), 0.0, ZERO_INFINITY)); }
    else { out0(s.row, -(end + level.x + level.y)); }
}

//! kernel backward
//! uses in0 out0 par tmp set_tmp rows row_sum exp_down sample not_a_number
// dx = -g · the probability of being in a label's states. Rows in scratch memory: alpha of each step; beta, twice; the
// probability of each state; the next state with the same label, with the highest bit set for the first such state.
// Levels (T, N, 2) follow.
fn alpha_row(t: u32) -> u32 { return t * places(); }
fn beta_row(t: u32) -> u32 { return (par(0u) + t % 2u) * places(); }
fn state_row() -> u32 { return (par(0u) + 2u) * places(); }
fn link_row() -> u32 { return (par(0u) + 3u) * places(); }
fn level_at(s: Sample, t: u32) -> u32 { return (par(0u) + 4u) * places() + 2u * (t * par(1u) + s.row); }
fn dx_at(s: Sample, t: u32) -> u32 { return (t * par(1u) + s.row) * par(2u); }
fn link(local: u32, s: Sample) {
    for (var i = 1u + 2u * lane_of(local); i < s.states; i += 2u * LANES) {
        let label = label_of(s, i);
        var before = 1u;
        while (before < i && label_of(s, before) != label) { before += 2u; }
        var next = i + 2u;
        while (next < s.states && label_of(s, next) != label) { next += 2u; }
        set_tmp(link_row() + s.place + i, next | select(0u, 0x80000000u, before == i));
    }
}
fn clear(local: u32, s: Sample, value: f32) {
    if (s.row >= par(1u)) { return; }
    for (var t = 0u; t < par(0u); t++) {
        for (var c = lane_of(local); c < par(2u); c += LANES) {
            out0(dx_at(s, t) + c, select(0.0, value, t < s.frames));
        }
    }
}
fn beta_step(local: u32, s: Sample, t: u32, frames: u32) -> f32 {
    var top = NEVER;
    let stop = select(0u, s.states, t < frames);
    for (var i = lane_of(local); i < stop; i += LANES) {
        var v = select(0.0, NEVER, i + 2u < s.states);
        if (t + 1u < frames) {
            let at = beta_row(t + 1u) + s.place + i;
            var b = NEVER; var c = NEVER;
            if (i + 1u < s.states) { b = f(tmp(at + 1u)) + log_prob(s, t + 1u, i + 1u); }
            if (skips(s, i + 2u)) { c = f(tmp(at + 2u)) + log_prob(s, t + 1u, i + 2u); }
            v = log_sum(f(tmp(at)) + log_prob(s, t + 1u, i), b, c);
        }
        set_tmp(beta_row(t) + s.place + i, w(v));
        top = max(top, v);
    }
    return lower(local, s, beta_row(t), stop, top);
}
fn occupancy(local: u32, s: Sample, t: u32, shift: f32) {
    var blank = 0.0;
    let stop = select(0u, s.states, t < s.frames);
    for (var i = lane_of(local); i < stop; i += LANES) {
        let p = exp_down(f(tmp(alpha_row(t) + s.place + i)) + f(tmp(beta_row(t) + s.place + i)) + shift);
        set_tmp(state_row() + s.place + i, w(p));
        if (label_of(s, i) == par(5u)) { blank += p; }
    }
    blank = row_sum(local, blank);
    storageBarrier();
    if (stop == 0u) { return; }
    let g = -in0(s.row);
    if (lane_of(local) == 0u) { out0(dx_at(s, t) + par(5u), g * blank); }
    for (var i = 1u + 2u * lane_of(local); i < s.states; i += 2u * LANES) {
        let label = label_of(s, i); var link = tmp(link_row() + s.place + i);
        if (label == par(5u) || link < 0x80000000u) { continue; }
        var sum = f(tmp(state_row() + s.place + i));
        for (var k = link & 0x7fffffffu; k < s.states; k = link & 0x7fffffffu) {
            sum += f(tmp(state_row() + s.place + k));
            link = tmp(link_row() + s.place + k);
        }
        out0(dx_at(s, t) + label, g * sum);
    }
}
fn kernel(group: u32, local: u32) {
    var s = sample_of(group, local);
    var level = vec2<f32>(0.0, 0.0); var rest = vec2<f32>(0.0, 0.0);
    for (var t = 0u; t < par(0u); t++) {
        level = add(level, alpha_step(local, s, t, alpha_row(max(t, 1u) - 1u), alpha_row(t)));
        if (s.row < par(1u) && lane_of(local) == 0u) {
            set_tmp(level_at(s, t), w(level.x));
            set_tmp(level_at(s, t) + 1u, w(level.y));
        }
    }
    var end = 0.0;
    if (s.frames > 0u) { end = alpha_end(s, alpha_row(s.frames - 1u)); }
    let never = end < 0.5 * NEVER;
    if (never && !ZERO_INFINITY) { clear(local, s, not_a_number()); } else { clear(local, s, 0.0); }
    rest = add(vec2<f32>(-level.x, -level.y), -end);
    if (never) { s.frames = 0u; }
    link(local, s);
    storageBarrier();
    for (var k = par(0u); k > 0u; k--) {
        let t = k - 1u;
        rest = add(rest, beta_step(local, s, t, s.frames));
        var shift = 0.0;
        if (t < s.frames) {
            shift = (f(tmp(level_at(s, t))) + rest.x) + (f(tmp(level_at(s, t) + 1u)) + rest.y);
        }
        occupancy(local, s, t, shift);
        storageBarrier();
    }
}

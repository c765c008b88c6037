/* ctc_loss on the GPU: a row (rows_gpu.h) is a sample, its lanes share the states, and go through time together; rows of
   log-probabilities lie in scratch memory. As on the CPU they are lowered to a largest of 0 at each step; what was taken away
   is summed in two floats. A probability of 0 is the logarithm NEVER: no infinities are computed with.
   par 0..5: T, N, C, S (of targets in one axis: nothing), all labels, blank. */
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

static const char shared[] =
    "const NEVER = -1e30;\n"
    "struct sample { row: u32, start: u32, length: u32, frames: u32, states: u32, place: u32 }\n"
    "fn f(w: u32) -> f32 { return bitcast<f32>(w); }\n"
    "fn w(x: f32) -> u32 { return bitcast<u32>(x); }\n"
    "fn exp_down(x: f32) -> f32 { return select(exp(x), 0.0, x < -104.0); }\n"
    "fn log_sum(a: f32, b: f32, c: f32) -> f32 {\n"
    "    let top = max(max(a, b), c);\n"
    "    if (top < 0.5 * NEVER) { return NEVER; }\n"
    "    return top + log(exp_down(a - top) + exp_down(b - top) + exp_down(c - top));\n"
    "}\n"
    /* acc.x + acc.y + x, the error of the sum in y */
    "fn add(acc: vec2<f32>, x: f32) -> vec2<f32> {\n"
    "    let s = acc.x + x; let b = s - acc.x;\n"
    "    return vec2<f32>(s, acc.y + ((acc.x - (s - b)) + (x - b)));\n"
    "}\n"
    "fn places() -> u32 { return 2u * par(4u) + 3u * par(1u); }\n"
    "fn label_of(s: sample, i: u32) -> u32 {\n"
    "    if (i % 2u == 0u) { return par(5u); }\n"
    "    return u32(target_at(s.start + i / 2u));\n"
    "}\n"
    "fn skips(s: sample, i: u32) -> bool { return i > 1u && i < s.states && label_of(s, i) != label_of(s, i - 2u); }\n"
    "fn log_prob(s: sample, t: u32, i: u32) -> f32 {\n"
    "    let x = x_at((t * par(1u) + s.row) * par(2u) + label_of(s, i));\n"
    "    return select(x, NEVER, x < NEVER);\n"
    "}\n"
    "fn bad(index: i32, size: u32) -> bool { return index < 0 || u32(index) >= size; }\n"
    /* What is out of range leaves a sample without frames. */
    "fn sample_of(group: u32, local: u32) -> sample {\n"
    "    var s = sample(row_of(group, local), 0u, 0u, 0u, 1u, 0u);\n"
    "    let there = s.row < par(1u); let first = lane_of(local) == 0u;\n"
    "    var room = par(3u);\n"
    "    if (FLAT && there) {\n"
    "        for (var m = 0u; m < s.row; m++) {\n"
    "            let length = length_at(m);\n"
    "            if (!bad(length, par(4u) - s.start + 1u)) { s.start += u32(length); }\n"
    "        }\n"
    "        room = par(4u) - s.start;\n"
    "    } else if (there) {\n"
    "        s.start = s.row * room;\n"
    "    }\n"
    "    s.place = 2u * s.start + 3u * s.row;\n"
    "    if (there) {\n"
    "        let length = length_at(s.row); let frames = frames_at(s.row);\n"
    "        if (!bad(length, room + 1u)) { s.length = u32(length); }\n"
    "        else if (first) { wrong(length, room + 1u); }\n"
    "        if (!bad(frames, par(0u) + 1u)) { s.frames = u32(frames); }\n"
    "        else if (first) { wrong(frames, par(0u) + 1u); }\n"
    "        if (FLAT && first && s.row + 1u == par(1u) && s.length < room) {\n" /* labels that are nobody's */
    "            wrong(i32(s.start + s.length), s.start + s.length);\n"
    "        }\n"
    "    }\n"
    "    var faults = 0.0;\n"
    "    for (var i = lane_of(local); i < s.length; i += LANES) {\n"
    "        let t = target_at(s.start + i);\n"
    "        if (bad(t, par(2u))) {\n"
    "            wrong(t, par(2u));\n"
    "            faults = 1.0;\n"
    "        }\n"
    "    }\n"
    "    if (row_max(local, faults) > 0.0) {\n"
    "        s.length = 0u;\n"
    "        s.frames = 0u;\n"
    "    }\n"
    "    s.states = 2u * s.length + 1u;\n"
    "    return s;\n"
    "}\n"
    /* Step t: row `to` of scratch memory from row `before`; returns what was taken away. All lanes come here. */
    "fn alpha_step(local: u32, s: sample, t: u32, before: u32, to: u32) -> f32 {\n"
    "    var top = NEVER;\n"
    "    let stop = select(0u, s.states, t < s.frames);\n"
    "    for (var i = lane_of(local); i < stop; i += LANES) {\n"
    "        var v = NEVER;\n"
    "        if (t == 0u) {\n"
    "            if (i < 2u) { v = log_prob(s, t, i); }\n"
    "        } else {\n"
    "            let at = before + s.place + i;\n"
    "            var b = NEVER; var c = NEVER;\n"
    "            if (i > 0u) { b = f(tmp(at - 1u)); }\n"
    "            if (skips(s, i)) { c = f(tmp(at - 2u)); }\n"
    "            v = log_sum(f(tmp(at)), b, c) + log_prob(s, t, i);\n"
    "        }\n"
    "        set_tmp(to + s.place + i, w(v));\n"
    "        top = max(top, v);\n"
    "    }\n"
    "    return lower(local, s, to, stop, top);\n"
    "}\n"
    "fn lower(local: u32, s: sample, row: u32, stop: u32, mine: f32) -> f32 {\n"
    "    var top = row_max(local, mine);\n"
    "    if (top < 0.5 * NEVER) { top = 0.0; }\n"
    "    for (var i = lane_of(local); i < stop; i += LANES) {\n"
    "        let at = row + s.place + i;\n"
    "        set_tmp(at, w(f(tmp(at)) - top));\n"
    "    }\n"
    "    storageBarrier();\n"
    "    return top;\n"
    "}\n"
    /* log of the probability of the last row: a path ends in the last label or the blank behind it */
    "fn alpha_end(s: sample, row: u32) -> f32 {\n"
    "    let at = row + s.place + s.states - 1u;\n"
    "    var b = NEVER;\n"
    "    if (s.states > 1u) { b = f(tmp(at - 1u)); }\n"
    "    return log_sum(f(tmp(at)), b, NEVER);\n"
    "}\n";

static const char forward[] =
    "fn wrong(index: i32, size: u32) { fault(index, size); }\n"
    "fn kernel(group: u32, local: u32) {\n"
    "    let s = sample_of(group, local);\n"
    "    var level = vec2<f32>(0.0, 0.0);\n"
    "    for (var t = 0u; t < par(0u); t++) {\n"
    "        level = add(level, alpha_step(local, s, t, (t + 1u) % 2u * places(), t % 2u * places()));\n"
    "    }\n"
    "    if (s.row >= par(1u) || lane_of(local) != 0u) { return; }\n"
    "    var end = select(0.0, NEVER, s.states > 1u);\n" /* in no time, nothing can be said */
    "    if (s.frames > 0u) { end = alpha_end(s, (s.frames - 1u) % 2u * places()); }\n"
    "    if (end < 0.5 * NEVER) { out0(s.row, select(infinity(), 0.0, ZERO_INFINITY)); }\n"
    "    else { out0(s.row, -(end + level.x + level.y)); }\n"
    "}\n";

/* Scratch rows: alpha of each step; two of beta; the probability of each state; the next state with the same label, with the
   highest bit where it is the first; levels (T, N, 2). dx = -g · the probability of a label's states. */
static const char backward[] =
    "fn wrong(index: i32, size: u32) { }\n"
    "fn alpha_row(t: u32) -> u32 { return t * places(); }\n"
    "fn beta_row(t: u32) -> u32 { return (par(0u) + t % 2u) * places(); }\n"
    "fn state_row() -> u32 { return (par(0u) + 2u) * places(); }\n"
    "fn link_row() -> u32 { return (par(0u) + 3u) * places(); }\n"
    "fn level_at(s: sample, t: u32) -> u32 { return (par(0u) + 4u) * places() + 2u * (t * par(1u) + s.row); }\n"
    "fn dx_at(s: sample, t: u32) -> u32 { return (t * par(1u) + s.row) * par(2u); }\n"
    "fn link(local: u32, s: sample) {\n"
    "    for (var i = 1u + 2u * lane_of(local); i < s.states; i += 2u * LANES) {\n"
    "        let label = label_of(s, i);\n"
    "        var before = 1u;\n"
    "        while (before < i && label_of(s, before) != label) { before += 2u; }\n"
    "        var next = i + 2u;\n"
    "        while (next < s.states && label_of(s, next) != label) { next += 2u; }\n"
    "        set_tmp(link_row() + s.place + i, next | select(0u, 0x80000000u, before == i));\n"
    "    }\n"
    "}\n"
    "fn clear(local: u32, s: sample, value: f32) {\n"
    "    if (s.row >= par(1u)) { return; }\n"
    "    for (var t = 0u; t < par(0u); t++) {\n"
    "        for (var c = lane_of(local); c < par(2u); c += LANES) { out0(dx_at(s, t) + c, select(0.0, value, t < s.frames)); }\n"
    "    }\n"
    "}\n"
    "fn beta_step(local: u32, s: sample, t: u32, frames: u32) -> f32 {\n"
    "    var top = NEVER;\n"
    "    let stop = select(0u, s.states, t < frames);\n"
    "    for (var i = lane_of(local); i < stop; i += LANES) {\n"
    "        var v = select(0.0, NEVER, i + 2u < s.states);\n"
    "        if (t + 1u < frames) {\n"
    "            let at = beta_row(t + 1u) + s.place + i;\n"
    "            var b = NEVER; var c = NEVER;\n"
    "            if (i + 1u < s.states) { b = f(tmp(at + 1u)) + log_prob(s, t + 1u, i + 1u); }\n"
    "            if (skips(s, i + 2u)) { c = f(tmp(at + 2u)) + log_prob(s, t + 1u, i + 2u); }\n"
    "            v = log_sum(f(tmp(at)) + log_prob(s, t + 1u, i), b, c);\n"
    "        }\n"
    "        set_tmp(beta_row(t) + s.place + i, w(v));\n"
    "        top = max(top, v);\n"
    "    }\n"
    "    return lower(local, s, beta_row(t), stop, top);\n"
    "}\n"
    "fn occupancy(local: u32, s: sample, t: u32, shift: f32) {\n"
    "    var blank = 0.0;\n"
    "    let stop = select(0u, s.states, t < s.frames);\n"
    "    for (var i = lane_of(local); i < stop; i += LANES) {\n"
    "        let p = exp_down(f(tmp(alpha_row(t) + s.place + i)) + f(tmp(beta_row(t) + s.place + i)) + shift);\n"
    "        set_tmp(state_row() + s.place + i, w(p));\n"
    "        if (label_of(s, i) == par(5u)) { blank += p; }\n"
    "    }\n"
    "    blank = row_sum(local, blank);\n"
    "    storageBarrier();\n"
    "    if (stop == 0u) { return; }\n"
    "    let g = -in0(s.row);\n"
    "    if (lane_of(local) == 0u) { out0(dx_at(s, t) + par(5u), g * blank); }\n"
    "    for (var i = 1u + 2u * lane_of(local); i < s.states; i += 2u * LANES) {\n"
    "        let label = label_of(s, i); var link = tmp(link_row() + s.place + i);\n"
    "        if (label == par(5u) || link < 0x80000000u) { continue; }\n"
    "        var sum = f(tmp(state_row() + s.place + i));\n"
    "        for (var k = link & 0x7fffffffu; k < s.states; k = link & 0x7fffffffu) {\n"
    "            sum += f(tmp(state_row() + s.place + k));\n"
    "            link = tmp(link_row() + s.place + k);\n"
    "        }\n"
    "        out0(dx_at(s, t) + label, g * sum);\n"
    "    }\n"
    "}\n";

static const char backward_kernel[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    var s = sample_of(group, local);\n"
    "    var level = vec2<f32>(0.0, 0.0); var rest = vec2<f32>(0.0, 0.0);\n"
    "    for (var t = 0u; t < par(0u); t++) {\n"
    "        level = add(level, alpha_step(local, s, t, alpha_row(max(t, 1u) - 1u), alpha_row(t)));\n"
    "        if (s.row < par(1u) && lane_of(local) == 0u) {\n"
    "            set_tmp(level_at(s, t), w(level.x));\n"
    "            set_tmp(level_at(s, t) + 1u, w(level.y));\n"
    "        }\n"
    "    }\n"
    "    var end = 0.0;\n"
    "    if (s.frames > 0u) { end = alpha_end(s, alpha_row(s.frames - 1u)); }\n"
    "    let never = end < 0.5 * NEVER;\n"
    "    if (never && !ZERO_INFINITY) { clear(local, s, not_a_number()); } else { clear(local, s, 0.0); }\n"
    "    rest = add(vec2<f32>(-level.x, -level.y), -end);\n"
    "    if (never) { s.frames = 0u; }\n"
    "    link(local, s);\n"
    "    storageBarrier();\n"
    "    for (var k = par(0u); k > 0u; k--) {\n"
    "        let t = k - 1u;\n"
    "        rest = add(rest, beta_step(local, s, t, s.frames));\n"
    "        var shift = 0.0;\n"
    "        if (t < s.frames) { shift = (f(tmp(level_at(s, t))) + rest.x) + (f(tmp(level_at(s, t) + 1u)) + rest.y); }\n"
    "        occupancy(local, s, t, shift);\n"
    "        storageBarrier();\n"
    "    }\n"
    "}\n";

typedef struct sizes {
    int64_t steps, samples, labels, places;
    cn__gpu_rows rows;
} sizes;

/* in: log_probs, targets, lengths of both */
static sizes sizes_of(cn__gpu_call *c, const cn_array *in)
{
    const cn__ctc_attrs *a = c->attrs;
    const int64_t most = in[1].ndim == 1 ? 0 : in[1].shape[1];
    sizes z = { in[0].shape[0], in[0].shape[1], in[1].numel, 0, { 0 } };
    z.places = 2 * z.labels + 3 * z.samples;
    z.rows = cn__gpu_rows_of(z.samples, z.samples ? z.places / z.samples : 1, 1);
    const int64_t params[] = { z.steps, z.samples, in[0].shape[2], most, z.labels, a->blank };
    for (int i = 0; i < 6; i++) cn__gpu_param(c, (uint32_t)params[i]);
    return z;
}

static const char *access_text(cn__gpu_call *c, const cn_array *in, int first)
{
    return cn__gpu_text(c,
                        "const FLAT = %s;\nconst ZERO_INFINITY = %s;\nfn x_at(i: u32) -> f32 { return in%d(i); }\n"
                        "fn target_at(i: u32) -> i32 { return %s; }\nfn frames_at(n: u32) -> i32 { return in%d(n); }\n"
                        "fn length_at(n: u32) -> i32 { return in%d(n); }\n%s",
                        in[1].ndim == 1 ? "true" : "false",
                        ((const cn__ctc_attrs *)c->attrs)->zero_infinity ? "true" : "false", first,
                        !in[1].numel ? "0"
                        : first      ? "in2(i)"
                                     : "in1(i)",
                        first + 2, first + 3, shared);
}

bool cn__gpu_ctc_loss(cn__gpu_call *c)
{
    const sizes z = sizes_of(c, c->in);
    const char *text = cn__gpu_text(c, "%s%s", cn__gpu_piece(access_text(c, c->in, 0)), forward);
    cn__gpu_scratch(c, 2 * z.places + 1);
    return cn__gpu_run_rows(c, &z.rows, cn__gpu_rows_groups(&z.rows), 0, text);
}

bool cn__gpu_ctc_loss_backward(cn__gpu_call *c)
{
    const sizes z = sizes_of(c, c->in + 1);
    const char *text =
        cn__gpu_text(c, "%s%s%s", cn__gpu_piece(access_text(c, c->in + 1, 1)), backward, backward_kernel);
    cn__gpu_scratch(c, (z.steps + 4) * z.places + 2 * z.steps * z.samples + 1);
    return cn__gpu_run_rows(c, &z.rows, cn__gpu_rows_groups(&z.rows), 0, text);
}

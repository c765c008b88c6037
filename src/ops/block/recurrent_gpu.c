/* recurrent on the GPU. A workgroup computes 16 rows of the batch by 16 columns: of each step the product with w, in tiles
   of 16 through workgroup memory, then the gates of its own elements. Rows of the batch know nothing of each other, but a
   step's product needs all columns of the step before. So either (small widths) a workgroup has all columns and goes
   through all steps in one launch, with storageBarrier between them; or there is a launch for each step. The kernel is
   the same: par 0..2: T, B, H; 3, 4: steps of this launch; 5: tiles of 16 columns of a workgroup.

   States lie in scratch memory, two of what products read: a step reads one and writes the other. */
#include "ops/block/block_gpu.h"
#include "ops/block/recurrent.h"

enum { TILE = 16, SIZE = TILE * TILE, SMALL = 64 /* width up to which there is one launch */ };

static const char shared[] = "fn f(w: u32) -> f32 { return bitcast<f32>(w); }\n"
                             "fn w(x: f32) -> u32 { return bitcast<u32>(x); }\n"
                             "fn step_of(s: u32) -> u32 { return select(s, par(0u) - 1u - s, REVERSE); }\n"
                             "fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-clamp(x, -80.0, 80.0))); }\n"
                             "fn tanh_(x: f32) -> f32 { return tanh(clamp(x, -20.0, 20.0)); }\n";

/* p = h·wᵀ for the gates of (b, j): left holds h's tile, right those of w, as they lie. */
static const char forward[] =
    "var<workgroup> left: array<f32, 256>;\n"
    "var<workgroup> right: array<f32, 256 * GATES>;\n"
    "fn h_before(s: u32, at: u32) -> f32 {\n"
    "    if (s == 0u) { return in3(at); }\n"
    "    return f(tmp(s % 2u * par(1u) * par(2u) + at));\n"
    "}\n"
    "fn product(s: u32, row0: u32, column0: u32, local: u32) -> array<f32, GATES> {\n"
    "    let B = par(1u); let H = par(2u); let y = local / 16u; let x = local % 16u;\n"
    "    var sum: array<f32, GATES>;\n"
    "    for (var k0 = 0u; k0 < H; k0 += 16u) {\n"
    "        let k = k0 + x;\n"
    "        var v = 0.0;\n"
    "        if (row0 + y < B && k < H) { v = h_before(s, (row0 + y) * H + k); }\n"
    "        left[local] = v;\n"
    "        for (var g = 0u; g < GATES; g++) {\n"
    "            v = 0.0;\n"
    "            if (column0 + y < H && k < H) { v = in1((g * H + column0 + y) * H + k); }\n"
    "            right[g * 256u + x * 16u + y] = v;\n"
    "        }\n"
    "        workgroupBarrier();\n"
    "        for (var i = 0u; i < 16u; i++) {\n"
    "            let h = left[y * 16u + i];\n"
    "            for (var g = 0u; g < GATES; g++) { sum[g] += h * right[g * 256u + i * 16u + x]; }\n"
    "        }\n"
    "        workgroupBarrier();\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "fn finish(s: u32, b: u32, j: u32, of_w: array<f32, GATES>) {\n"
    "    let B = par(1u); let H = par(2u); let row = step_of(s) * B + b; let at = b * H + j;\n"
    "    var x: array<f32, GATES>; var p = of_w;\n"
    "    for (var g = 0u; g < GATES; g++) {\n"
    "        x[g] = in0((row * GATES + g) * H + j);\n"
    "        p[g] += bias(g * H + j);\n"
    "    }\n"
    "    let h = gates(s, row, at, j, x, p);\n"
    "    out0(row * H + j, h);\n"
    "    set_tmp((s + 1u) % 2u * B * H + at, w(h));\n"
    "}\n";

/* gates: h of (b, j), from x and p, GATES of each. row: among T·B; at: of (b, j) */
static const char *const gates[] = {
    [CN__RNN_TANH] = "fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, 1>, p: array<f32, 1>) -> f32 {\n"
                     "    return tanh_(x[0] + p[0]);\n"
                     "}\n",
    [CN__RNN_RELU] = "fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, 1>, p: array<f32, 1>) -> f32 {\n"
                     "    let a = x[0] + p[0];\n"
                     "    return select(a, 0.0, a < 0.0);\n"
                     "}\n",
    [CN__LSTM] = "fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, 4>, p: array<f32, 4>) -> f32 {\n"
                 "    let H = par(2u); let mine = 2u * par(1u) * H + at;\n"
                 "    var c = 0.0;\n"
                 "    if (s == 0u) { c = in4(at); } else { c = f(tmp(mine)); }\n"
                 "    let i = sigmoid(x[0] + p[0]); let forget = sigmoid(x[1] + p[1]);\n"
                 "    let g = tanh_(x[2] + p[2]); let o = sigmoid(x[3] + p[3]);\n"
                 "    c = forget * c + i * g;\n"
                 "    set_tmp(mine, w(c));\n"
                 "    out1(row * H + j, c);\n"
                 "    let to = row * 4u * H + j;\n"
                 "    out2(to, i); out2(to + H, forget); out2(to + 2u * H, g); out2(to + 3u * H, o);\n"
                 "    return o * tanh_(c);\n"
                 "}\n",
    [CN__GRU] = "fn gates(s: u32, row: u32, at: u32, j: u32, x: array<f32, 3>, p: array<f32, 3>) -> f32 {\n"
                "    let H = par(2u); let to = row * 4u * H + j;\n"
                "    let r = sigmoid(x[0] + p[0]); let z = sigmoid(x[1] + p[1]); let n = tanh_(x[2] + r * p[2]);\n"
                "    out2(to, r); out2(to + H, z); out2(to + 2u * H, n); out2(to + 3u * H, p[2]);\n"
                "    return (1.0 - z) * n + z * h_before(s, at);\n"
                "}\n",
};

static const char forward_kernel[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let H = par(2u); let tiles = (H + 15u) / 16u; let sets = (tiles + par(5u) - 1u) / par(5u);\n"
    "    let row0 = group / sets * 16u; let first = group % sets * par(5u);\n"
    "    for (var s = par(3u); s < par(4u); s++) {\n"
    "        for (var tile = first; tile < min(tiles, first + par(5u)); tile++) {\n"
    "            let sum = product(s, row0, tile * 16u, local);\n"
    "            let b = row0 + local / 16u; let j = tile * 16u + local % 16u;\n"
    "            if (b < par(1u) && j < H) { finish(s, b, j, sum); }\n"
    "        }\n"
    "        storageBarrier();\n"
    "    }\n"
    "}\n";

/* Backwards. At (b, j): dh = what the step after left of it + its of_h·w + g; the gates make dx and of_h of it. Step -1
   has no gates: dh is then the gradient of h0. s counts from 0 at the last step. Scratch: of_h twice (B,G·H), carried dh
   and dc (B,H). */
static const char backward[] =
    "var<workgroup> left: array<f32, 256>;\n"
    "var<workgroup> right: array<f32, 256>;\n"
    "fn product(s: u32, row0: u32, column0: u32, local: u32) -> f32 {\n"
    "    let B = par(1u); let H = par(2u); let K = GATES * H; let y = local / 16u; let x = local % 16u;\n"
    "    if (s == 0u) { return 0.0; }\n"
    "    var sum = 0.0;\n"
    "    for (var k0 = 0u; k0 < K; k0 += 16u) {\n"
    "        var v = 0.0;\n"
    "        if (row0 + y < B && k0 + x < K) { v = f(tmp(s % 2u * B * K + (row0 + y) * K + k0 + x)); }\n"
    "        left[local] = v;\n"
    "        v = 0.0;\n"
    "        if (k0 + y < K && column0 + x < H) { v = in2((k0 + y) * H + column0 + x); }\n"
    "        right[local] = v;\n"
    "        workgroupBarrier();\n"
    "        for (var i = 0u; i < 16u; i++) { sum += left[y * 16u + i] * right[i * 16u + x]; }\n"
    "        workgroupBarrier();\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "fn kept(n: u32) -> u32 { return (2u * GATES + n) * par(1u) * par(2u); }\n"
    "fn keep_of_h(s: u32, b: u32, k: u32, v: f32) {\n"
    "    let K = GATES * par(2u);\n"
    "    set_tmp((s + 1u) % 2u * par(1u) * K + b * K + k, w(v));\n"
    "}\n"
    "fn finish(s: u32, b: u32, j: u32, through: f32) {\n"
    "    let B = par(1u); let H = par(2u); let T = par(0u); let at = b * H + j;\n"
    "    var dh = through;\n"
    "    if (s > 0u) { dh += f(tmp(kept(0u) + at)); }\n"
    "    if (s == T) {\n"
    "        last(at, dh);\n"
    "        return;\n"
    "    }\n"
    "    let row = step_of(T - 1u - s) * B + b;\n"
    "    var before = 0u;\n" /* of the step before, where there is one */
    "    if (s + 1u < T) { before = (step_of(T - 2u - s) * B + b) * H + j; }\n"
    "    let rest = back(s, b, j, row, before, dh + in0(row * H + j));\n"
    "    set_tmp(kept(0u) + at, w(rest));\n"
    "}\n";

/* back: leaves dx and of_h; returns what goes past the product to the step before */
static const char *const backs[] = {
    [CN__RNN_TANH] = "fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {\n"
                     "    let y = in5(row * par(2u) + j); let d = dh * (1.0 - y * y);\n"
                     "    out0(row * par(2u) + j, d);\n"
                     "    keep_of_h(s, b, j, d);\n"
                     "    return 0.0;\n"
                     "}\n"
                     "fn last(at: u32, dh: f32) { out2(at, dh); }\n",
    [CN__RNN_RELU] = "fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {\n"
                     "    let d = select(0.0, dh, in5(row * par(2u) + j) > 0.0);\n"
                     "    out0(row * par(2u) + j, d);\n"
                     "    keep_of_h(s, b, j, d);\n"
                     "    return 0.0;\n"
                     "}\n"
                     "fn last(at: u32, dh: f32) { out2(at, dh); }\n",
    [CN__LSTM] = "fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {\n"
                 "    let H = par(2u); let at = b * H + j; let to = row * 4u * H + j;\n"
                 "    let i = in7(to); let forget = in7(to + H); let g = in7(to + 2u * H); let o = in7(to + 3u * H);\n"
                 "    var dc = of_c(row * H + j); var c_before = 0.0;\n"
                 "    if (s > 0u) { dc += f(tmp(kept(1u) + at)); }\n"
                 "    if (s + 1u < par(0u)) { c_before = in6(before); } else { c_before = in4(at); }\n"
                 "    let tc = tanh_(in6(row * H + j));\n"
                 "    let d = dc + dh * o * (1.0 - tc * tc);\n"
                 "    give(s, b, row, j, 0u, d * g * (i * (1.0 - i)));\n"
                 "    give(s, b, row, j, 1u, d * c_before * (forget * (1.0 - forget)));\n"
                 "    give(s, b, row, j, 2u, d * i * (1.0 - g * g));\n"
                 "    give(s, b, row, j, 3u, dh * tc * (o * (1.0 - o)));\n"
                 "    set_tmp(kept(1u) + at, w(d * forget));\n"
                 "    return 0.0;\n"
                 "}\n"
                 "fn give(s: u32, b: u32, row: u32, j: u32, gate: u32, v: f32) {\n"
                 "    out0((row * 4u + gate) * par(2u) + j, v);\n"
                 "    keep_of_h(s, b, gate * par(2u) + j, v);\n"
                 "}\n"
                 "fn last(at: u32, dh: f32) {\n"
                 "    out2(at, dh);\n"
                 "    out3(at, f(tmp(kept(1u) + at)));\n"
                 "}\n",
    [CN__GRU] = "fn back(s: u32, b: u32, j: u32, row: u32, before: u32, dh: f32) -> f32 {\n"
                "    let H = par(2u); let at = b * H + j; let to = row * 4u * H + j;\n"
                "    let r = in7(to); let z = in7(to + H); let n = in7(to + 2u * H);\n"
                "    var h = 0.0;\n"
                "    if (s + 1u < par(0u)) { h = in5(before); } else { h = in3(at); }\n"
                "    let d = dh * (1.0 - z) * (1.0 - n * n);\n"
                "    let dr = d * in7(to + 3u * H) * (r * (1.0 - r)); let dz = dh * (h - n) * (z * (1.0 - z));\n"
                "    give(s, b, row, j, 0u, dr, dr);\n"
                "    give(s, b, row, j, 1u, dz, dz);\n"
                "    give(s, b, row, j, 2u, d, d * r);\n"
                "    return dh * z;\n"
                "}\n"
                "fn give(s: u32, b: u32, row: u32, j: u32, gate: u32, dx: f32, of_h: f32) {\n"
                "    let to = (row * 3u + gate) * par(2u) + j;\n"
                "    out0(to, dx);\n"
                "    out1(to, of_h);\n"
                "    keep_of_h(s, b, gate * par(2u) + j, of_h);\n"
                "}\n"
                "fn last(at: u32, dh: f32) { out2(at, dh); }\n",
};

typedef struct sizes {
    int64_t kind, gates, steps, batch, width;
} sizes;

/* y: any array (T,B,H) */
static sizes sizes_of(const cn__gpu_call *c, const cn_array *y)
{
    const int64_t kind = ((const cn__recurrent_attrs *)c->attrs)->kind;
    return (sizes){ kind, cn__recurrent_gates(kind), y->shape[0], y->shape[1], y->shape[2] };
}

static const char *constants(cn__gpu_call *c, const sizes *z)
{
    return cn__gpu_text(c, "const GATES = %du;\nconst REVERSE = %s;\n", (int)z->gates,
                        ((const cn__recurrent_attrs *)c->attrs)->reverse ? "true" : "false");
}

/* Steps [0, steps) of a kernel, all in one launch or one in each. */
static bool run_steps(cn__gpu_call *c, const sizes *z, int64_t steps, int bytes, const char *text)
{
    const bool whole = z->width <= SMALL;
    const int64_t tiles = (z->width + TILE - 1) / TILE, rows = (z->batch + TILE - 1) / TILE;
    for (int64_t s = 0; s < steps; s += whole ? steps : 1) {
        const int64_t params[] = { z->steps, z->batch, z->width, s, whole ? steps : s + 1, whole ? tiles : 1 };
        cn__gpu_params_clear(c);
        for (int i = 0; i < 6; i++) cn__gpu_param(c, (uint32_t)params[i]);
        if (!cn__gpu_run_groups(
                c, &(cn__gpu_launch){
                       .code = text, .groups = rows * (whole ? 1 : tiles), .size = SIZE, .group_bytes = bytes }))
            return false;
    }
    return true;
}

bool cn__gpu_recurrent(cn__gpu_call *c)
{
    const sizes z = sizes_of(c, &c->out[0]);
    if (!c->out[0].numel) return true;
    const char *text =
        cn__gpu_text(c, "%s%sfn bias(j: u32) -> f32 { return %s; }\n%s%s%s", cn__gpu_piece(constants(c, &z)), shared,
                     c->in[2].data ? "in2(j)" : "0.0", forward, gates[z.kind], forward_kernel);
    cn__gpu_scratch(c, 3 * z.batch * z.width);
    return run_steps(c, &z, z.steps, (int)(4 * SIZE * (1 + z.gates)), text);
}

/* in: g, gc, w, h0, c0, y, c, saved */
bool cn__gpu_recurrent_backward(cn__gpu_call *c)
{
    const sizes z = sizes_of(c, &c->in[0]);
    if (!c->in[0].numel) return true;
    const char *text =
        cn__gpu_text(c, "%s%sfn of_c(i: u32) -> f32 { return %s; }\n%s%s%s", cn__gpu_piece(constants(c, &z)), shared,
                     c->in[1].data ? "in1(i)" : "0.0", backward, backs[z.kind], forward_kernel);
    cn__gpu_scratch(c, (2 * z.gates + 2) * z.batch * z.width);
    return run_steps(c, &z, z.steps + 1, 4 * SIZE * 2, text);
}

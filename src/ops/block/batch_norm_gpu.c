/* batch_norm on the GPU. A row (rows_gpu.h) is a part of a channel: its mean and sum of squares about it, and on the way
   back the sums of g and g (x - mean). With one part a channel the same launch goes on to the results; otherwise parts leave
   their moments in scratch memory, and a second launch of as many groups merges those of its channel first.
   par 0..3: N, C, S, parts; elements of a channel are counted 0 .. N·S. */
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { MOMENTS = 4, PART = 2048 /* elements of one */, MOST_PARTS = 64 };

static const char shared[] = "struct part { c: u32, first: u32, end: u32 }\n"
                             "fn count_of(p: u32) -> u32 {\n"
                             "    let n = par(0u) * par(2u); let each = (n + par(3u) - 1u) / par(3u);\n"
                             "    return min(n, (p + 1u) * each) - min(n, p * each);\n"
                             "}\n"
                             "fn part_of(row: u32) -> part {\n"
                             "    let n = par(0u) * par(2u); let each = (n + par(3u) - 1u) / par(3u);\n"
                             "    let p = row / par(1u);\n"
                             "    if (p >= par(3u)) { return part(0u, 0u, 0u); }\n"
                             "    return part(row % par(1u), min(n, p * each), min(n, (p + 1u) * each));\n"
                             "}\n"
                             "fn place(c: u32, e: u32) -> u32 {\n"
                             "    return (e / par(2u) * par(1u) + c) * par(2u) + e % par(2u);\n"
                             "}\n";

/* (mean, sum of squares about it, sum of g, sum of g (x - mean)); BACK: x is in1, and g is in0 */
static const char gather[] = "fn gather(local: u32, p: part) -> vec4<f32> {\n"
                             "    let n = f32(max(p.end - p.first, 1u));\n"
                             "    var sums = vec2<f32>(0.0, 0.0);\n"
                             "    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {\n"
                             "        let i = place(p.c, e);\n"
                             "        sums += vec2<f32>(x_at(i), g_at(i));\n"
                             "    }\n"
                             "    sums = row_sum2(local, sums);\n"
                             "    let mean = sums.x / n;\n"
                             "    var squares = vec2<f32>(0.0, 0.0);\n"
                             "    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {\n"
                             "        let i = place(p.c, e);\n"
                             "        let d = x_at(i) - mean;\n"
                             "        squares += d * vec2<f32>(d, g_at(i));\n"
                             "    }\n"
                             "    squares = row_sum2(local, squares);\n"
                             "    return vec4<f32>(mean, squares.x, sums.y, squares.y);\n"
                             "}\n";

static const char keep[] = "fn kernel(group: u32, local: u32) {\n"
                           "    let row = row_of(group, local);\n"
                           "    let m = gather(local, part_of(row));\n"
                           "    if (lane_of(local) != 0u || row >= par(1u) * par(3u)) { return; }\n"
                           "    for (var k = 0u; k < 4u; k++) { set_tmp(4u * row + k, bitcast<u32>(m[k])); }\n"
                           "}\n";

/* Parts of a channel lie C apart. Squares and products are taken to the mean of all. */
static const char merged[] =
    "fn kept(row: u32, k: u32) -> f32 { return bitcast<f32>(tmp(4u * row + k)); }\n"
    "fn moments(local: u32, p: part) -> vec4<f32> {\n"
    "    var sums = vec2<f32>(0.0, 0.0);\n"
    "    for (var k = lane_of(local); k < par(3u); k += LANES) {\n"
    "        let row = k * par(1u) + p.c;\n"
    "        sums += vec2<f32>(kept(row, 0u) * f32(count_of(k)), kept(row, 2u));\n"
    "    }\n"
    "    sums = row_sum2(local, sums);\n"
    "    let mean = sums.x / f32(max(par(0u) * par(2u), 1u));\n"
    "    var squares = vec2<f32>(0.0, 0.0);\n"
    "    for (var k = lane_of(local); k < par(3u); k += LANES) {\n"
    "        let row = k * par(1u) + p.c;\n"
    "        let d = kept(row, 0u) - mean;\n"
    "        squares += vec2<f32>(kept(row, 1u) + d * d * f32(count_of(k)), kept(row, 3u) + d * kept(row, 2u));\n"
    "    }\n"
    "    squares = row_sum2(local, squares);\n"
    "    return vec4<f32>(mean, squares.x, sums.y, squares.y);\n"
    "}\n";

static const char alone[] = "fn moments(local: u32, p: part) -> vec4<f32> { return gather(local, p); }\n";

static const char forward[] = "fn kernel(group: u32, local: u32) {\n"
                              "    let row = row_of(group, local); let p = part_of(row);\n"
                              "    let m = moments(local, p);\n"
                              "    if (row >= par(1u) * par(3u)) { return; }\n"
                              "    let n = par(0u) * par(2u);\n"
                              "    let variance = m.y / f32(max(n, 1u));\n"
                              "    let scale = 1.0 / sqrt(variance + arg(0u)) * weight(p.c);\n"
                              "    let add = bias(p.c);\n"
                              "    if (row < par(1u) && lane_of(local) == 0u) {\n"
                              "        out1(row, select(m.x, not_a_number(), n == 0u));\n"
                              "        out2(row, select(variance, not_a_number(), n == 0u));\n"
                              "    }\n"
                              "    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {\n"
                              "        let i = place(p.c, e);\n"
                              "        put(i, (in0(i) - m.x) * scale + add);\n"
                              "    }\n"
                              "}\n";

/* dx = w r (g - mean(g) - h mean(g h)), h = (x - mean) r */
static const char backward[] = "fn kernel(group: u32, local: u32) {\n"
                               "    let row = row_of(group, local); let p = part_of(row);\n"
                               "    let m = moments(local, p);\n"
                               "    if (row >= par(1u) * par(3u)) { return; }\n"
                               "    let n = f32(max(par(0u) * par(2u), 1u));\n"
                               "    let r = 1.0 / sqrt(m.y / n + arg(0u));\n"
                               "    let gh = m.w * r;\n"
                               "    if (row < par(1u) && lane_of(local) == 0u) { give(row, gh, m.z); }\n"
                               "    let scale = r * weight(p.c); let g_mean = m.z / n; let gh_mean = gh * r / n;\n"
                               "    for (var e = p.first + lane_of(local); e < p.end; e += LANES) {\n"
                               "        let i = place(p.c, e);\n"
                               "        put(i, scale * (in0(i) - g_mean - (in1(i) - m.x) * gh_mean));\n"
                               "    }\n"
                               "}\n";

/* Parts only where channels alone would leave the device idle. */
static int64_t parts_of(int64_t channels, int64_t n)
{
    enum { GROUPS = 512 };
    int64_t parts = n / PART, most = GROUPS / (channels ? channels : 1);
    if (parts > most) parts = most;
    return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

/* access: x_at, g_at, and what `apply`, the last kernel, asks for */
static bool run(cn__gpu_call *c, const char *access, const char *apply)
{
    const int64_t *shape = c->out[0].shape;
    int64_t space = 1;
    for (int d = 2; d < c->out[0].ndim; d++) space *= shape[d];
    const int64_t n = shape[0] * space, parts = parts_of(shape[1], n);
    if (!shape[1] || !access) return access != NULL;
    const cn__gpu_rows r = cn__gpu_rows_of(shape[1] * parts, (n + parts - 1) / parts, space == 1 ? shape[1] : 1);
    cn__gpu_param(c, (uint32_t)shape[0]);
    cn__gpu_param(c, (uint32_t)shape[1]);
    cn__gpu_param(c, (uint32_t)space);
    cn__gpu_param(c, (uint32_t)parts);
    const int64_t groups = cn__gpu_rows_groups(&r);
    if (parts == 1)
        return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s%s%s", shared, access, gather, alone, apply));
    cn__gpu_scratch(c, MOMENTS * shape[1] * parts);
    return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s%s", shared, access, gather, keep)) &&
           cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s%s", shared, access, merged, apply));
}

bool cn__gpu_batch_norm(cn__gpu_call *c)
{
    return run(c,
               cn__gpu_text(c,
                            "fn x_at(i: u32) -> f32 { return in0(i); }\nfn g_at(i: u32) -> f32 { return 0.0; }\n"
                            "fn weight(c: u32) -> f32 { return %s; }\nfn bias(c: u32) -> f32 { return %s; }\n",
                            c->in[1].data ? "in1(c)" : "1.0", c->in[2].data ? "in2(c)" : "0.0"),
               forward);
}

bool cn__gpu_batch_norm_backward(cn__gpu_call *c)
{
    return run(c,
               cn__gpu_text(c,
                            "fn x_at(i: u32) -> f32 { return in1(i); }\nfn g_at(i: u32) -> f32 { return in0(i); }\n"
                            "fn weight(c: u32) -> f32 { return %s; }\nfn give(c: u32, dw: f32, db: f32) { %s %s }\n",
                            c->in[2].data ? "in2(c)" : "1.0", c->out[1].numel ? "out1(c, dw);" : "",
                            c->out[2].numel ? "out2(c, db);" : ""),
               backward);
}

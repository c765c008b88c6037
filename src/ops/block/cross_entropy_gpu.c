/* cross_entropy on the GPU. par 0..3: samples, classes, inner, the class that is ignored. Forward a row (rows_gpu.h) is a
   sample; its loss and the weight of its target wait in scratch memory for a second launch to sum them, unless one
   workgroup holds all samples. Backward every element stands alone, once the weights of all targets are summed. */
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { PER_INVOCATION = 8 };

/* A target that counts, or -1. */
static const char shared[] = "fn class_of(s: u32) -> i32 {\n"
                             "    let t = target_at(s);\n"
                             "    return select(-1, t, t >= 0 && t < i32(par(1u)) && !(IGNORES && t == pari(3u)));\n"
                             "}\n"
                             "fn exp_down(x: f32) -> f32 { return select(exp(x), 0.0, x < -104.0); }\n";

/* (loss, weight) of a row, in its first lane; the others have nothing
   loss = (1 - s) w_t (lse - x_t) + s / C · sum over c of w_c (lse - x_c) */
static const char sample[] =
    "fn lse_of(local: u32, at: u32, stop: u32) -> f32 {\n"
    "    let inner = par(2u);\n"
    "    var top = " CN__GPU_LOWEST ";\n"
    "    for (var k = lane_of(local); k < stop; k += LANES) {\n"
    "        let x = in0(at + k * inner);\n"
    "        top = select(top, x, x > top);\n"
    "    }\n"
    "    top = row_max(local, top);\n"
    "    var sum = 0.0;\n"
    "    for (var k = lane_of(local); k < stop; k += LANES) { sum += exp_down(in0(at + k * inner) - top); }\n"
    "    sum = row_sum(local, sum);\n"
    "    if (sum == 0.0) { return -infinity(); }\n"
    "    return select(top + log(sum), not_a_number(), isinf(top));\n"
    "}\n"
    "fn sample(group: u32, local: u32) -> vec2<f32> {\n"
    "    let row = row_of(group, local); let inner = par(2u); let n = par(1u);\n"
    "    var t = -1;\n"
    "    if (row < par(0u)) { t = class_of(row); }\n"
    "    let stop = select(0u, n, t >= 0); /* rows that do not count cost nothing */\n"
    "    let at = row / inner * n * inner + row % inner;\n"
    "    let lse = lse_of(local, at, stop);\n"
    "    var smooth_ = vec2<f32>(0.0, 0.0);\n"
    "    if (arg(0u) > 0.0) {\n"
    "        for (var k = lane_of(local); k < stop; k += LANES) {\n"
    "            smooth_ += weight(k) * vec2<f32>(in0(at + k * inner), 1.0);\n"
    "        }\n"
    "        smooth_ = row_sum2(local, smooth_);\n"
    "    }\n"
    "    if (row >= par(0u) || lane_of(local) != 0u) { return vec2<f32>(0.0, 0.0); }\n"
    "    if (t < 0) {\n"
    "        let found = target_at(row);\n"
    "        if (!(IGNORES && found == pari(3u))) { fault(found, n); }\n"
    "        out1(row, 0.0);\n"
    "        return vec2<f32>(0.0, 0.0);\n"
    "    }\n"
    "    let w = weight(u32(t));\n"
    "    var loss = (1.0 - arg(0u)) * w * (lse - in0(at + u32(t) * inner));\n"
    "    if (arg(0u) > 0.0) { loss += arg(0u) / f32(n) * (smooth_.y * lse - smooth_.x); }\n"
    "    out1(row, lse);\n"
    "    return vec2<f32>(loss, w);\n"
    "}\n";

static const char each[] = "fn kernel(group: u32, local: u32) {\n"
                           "    let s = sample(group, local); let row = row_of(group, local);\n"
                           "    if (row < par(0u) && lane_of(local) == 0u) { out0(row, s.x); }\n"
                           "}\n";
static const char keep[] = "fn kernel(group: u32, local: u32) {\n"
                           "    let s = sample(group, local); let row = row_of(group, local);\n"
                           "    if (row >= par(0u) || lane_of(local) != 0u) { return; }\n"
                           "    set_tmp(2u * row, bitcast<u32>(s.x));\n"
                           "    set_tmp(2u * row + 1u, bitcast<u32>(s.y));\n"
                           "}\n";
static const char at_once[] = "fn kernel(group: u32, local: u32) { reduce(local, sample(group, local)); }\n";
static const char from_kept[] = "fn kernel(group: u32, local: u32) {\n"
                                "    var s = vec2<f32>(0.0, 0.0);\n"
                                "    for (var i = local; i < par(0u); i += 256u) {\n"
                                "        s += vec2<f32>(bitcast<f32>(tmp(2u * i)), bitcast<f32>(tmp(2u * i + 1u)));\n"
                                "    }\n"
                                "    reduce(local, s);\n"
                                "}\n";
/* The mean of nothing is NaN. */
static const char reduce[] = "fn reduce(local: u32, mine: vec2<f32>) {\n"
                             "    let s = group_sum2(local, mine);\n"
                             "    if (local != 0u) { return; }\n"
                             "    if (!MEAN) { out0(0u, s.x); }\n"
                             "    else if (s.y == 0.0) { out0(0u, not_a_number()); }\n"
                             "    else { out0(0u, s.x / s.y); }\n"
                             "}\n";

/* (what sums are divided by, sum of the weights of all classes) */
static const char totals[] = "fn totals(local: u32) -> vec2<f32> {\n"
                             "    var s = vec2<f32>(0.0, 0.0);\n"
                             "    if (MEAN) {\n"
                             "        for (var i = local; i < par(0u); i += 256u) {\n"
                             "            let t = class_of(i);\n"
                             "            if (t >= 0) { s.x += weight(u32(t)); }\n"
                             "        }\n"
                             "    }\n"
                             "    if (WEIGHTED && arg(0u) > 0.0) {\n"
                             "        for (var k = local; k < par(1u); k += 256u) { s.y += weight(k); }\n"
                             "    }\n"
                             "    if (MEAN || WEIGHTED) { s = group_sum2(local, s); }\n"
                             "    return vec2<f32>(select(1.0, s.x, MEAN), select(f32(par(1u)), s.y, WEIGHTED));\n"
                             "}\n";
static const char keep_totals[] = "fn kernel(group: u32, local: u32) {\n"
                                  "    let s = totals(local);\n"
                                  "    if (local != 0u) { return; }\n"
                                  "    set_tmp(0u, bitcast<u32>(s.x));\n"
                                  "    set_tmp(1u, bitcast<u32>(s.y));\n"
                                  "}\n";
static const char kept_totals[] = "fn totals(local: u32) -> vec2<f32> {\n"
                                  "    return vec2<f32>(bitcast<f32>(tmp(0u)), bitcast<f32>(tmp(1u)));\n"
                                  "}\n";

/* dx = g / total ((1 - s) w_t (P - [c = t]) + s / C · (P sum of w - w_c)); par 4: elements, 5: of each invocation */
static const char backward[] =
    "fn element(i: u32, all: vec2<f32>) -> f32 {\n"
    "    let n = par(1u); let inner = par(2u);\n"
    "    let c = i / inner % n; let s = i / (inner * n) * inner + i % inner;\n"
    "    let t = class_of(s);\n"
    "    if (t < 0) { return 0.0; }\n"
    "    let scale = gradient(s) / all.x;\n"
    "    let hard = scale * (1.0 - arg(0u)) * weight(u32(t)); let soft = scale * arg(0u) / f32(n);\n"
    "    let v = exp_down(in1(i) - in4(s)) * (hard + soft * all.y) - soft * weight(c);\n"
    "    return v - select(0.0, hard, c == u32(t));\n"
    "}\n"
    "fn kernel(group: u32, local: u32) {\n"
    "    let all = totals(local);\n"
    "    for (var k = 0u; k < par(5u); k++) {\n"
    "        let i = (group * par(5u) + k) * 256u + local;\n"
    "        if (i < par(4u)) { out0(i, element(i, all)); }\n"
    "    }\n"
    "}\n";

/* logits, target and weight stand at operands first, first + 1, first + 2 */
static const char *access_text(cn__gpu_call *c, int first)
{
    const cn__loss_attrs *a = c->attrs;
    const bool ignores = a->has_ignore && a->ignore_index >= INT32_MIN && a->ignore_index <= INT32_MAX;
    const bool weighted = c->in[first + 2].data != NULL;
    const char *weight = weighted ? cn__gpu_text(c, "in%d(k)", first + 2) : "1.0";
    return cn__gpu_text(c,
                        "const IGNORES = %s;\nconst MEAN = %s;\nconst WEIGHTED = %s;\n"
                        "fn target_at(s: u32) -> i32 { return in%d(s); }\n"
                        "fn weight(k: u32) -> f32 { return %s; }\n%s",
                        ignores ? "true" : "false", a->reduction == CN_MEAN ? "true" : "false",
                        weighted ? "true" : "false", first + 1, weight ? weight : "", shared);
}

static cn__columns sizes_of(cn__gpu_call *c, int first)
{
    const cn_array *x = &c->in[first];
    const cn__columns s = cn__columns_of(x->ndim, x->shape, cn__class_axis(x->ndim));
    cn__gpu_param(c, (uint32_t)(s.outer * s.inner));
    cn__gpu_param(c, (uint32_t)s.n);
    cn__gpu_param(c, (uint32_t)s.inner);
    cn__gpu_param(c, (uint32_t)((const cn__loss_attrs *)c->attrs)->ignore_index);
    return s;
}

bool cn__gpu_cross_entropy(cn__gpu_call *c)
{
    const cn__columns s = sizes_of(c, 0);
    const int64_t samples = s.outer * s.inner;
    const cn__gpu_rows r = cn__gpu_rows_of(samples, s.n, s.inner);
    const int64_t groups = cn__gpu_rows_groups(&r);
    const char *start = access_text(c, 0);
    if (!start) return false;
    if (((const cn__loss_attrs *)c->attrs)->reduction == CN_NONE)
        return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s", start, sample, each));
    if (groups == 1)
        return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s%s", start, sample, reduce, at_once));
    cn__gpu_scratch(c, 2 * (samples ? samples : 1));
    return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s", start, sample, keep)) &&
           cn__gpu_run_rows(c, &r, 1, 0, cn__gpu_text(c, "%s%s%s", start, reduce, from_kept));
}

/* g, logits, target, weight, lse → dx. Every workgroup sums weights for itself unless that would take longer than the rest. */
bool cn__gpu_cross_entropy_backward(cn__gpu_call *c)
{
    enum { LITTLE = 1 << 16 };
    const cn__loss_attrs *a = c->attrs;
    const cn__columns s = sizes_of(c, 1);
    const int64_t samples = s.outer * s.inner, numel = samples * s.n;
    const int64_t groups = (numel + CN__GPU_ROWS_SIZE * PER_INVOCATION - 1) / (CN__GPU_ROWS_SIZE * PER_INVOCATION);
    const int64_t to_sum = (a->reduction == CN_MEAN ? samples : 0) + (c->in[3].data ? s.n : 0);
    const cn__gpu_rows r = { .rows = CN__GPU_ROWS_SIZE, .lanes = 1 };
    const char *start = cn__gpu_text(c, "%sfn gradient(s: u32) -> f32 { return in0(%s); }\n",
                                     cn__gpu_piece(access_text(c, 1)), a->reduction == CN_NONE ? "s" : "0u");
    if (!start || !numel) return start != NULL;
    const char *sums = totals;
    if (to_sum * groups > 4 * numel + LITTLE) {
        cn__gpu_scratch(c, 2);
        if (!cn__gpu_run_rows(c, &r, 1, 0, cn__gpu_text(c, "%s%s%s", start, totals, keep_totals))) return false;
        sums = kept_totals;
    }
    cn__gpu_param(c, (uint32_t)numel);
    cn__gpu_param(c, PER_INVOCATION);
    return cn__gpu_run_rows(c, &r, groups, 0, cn__gpu_text(c, "%s%s%s", start, sums, backward));
}

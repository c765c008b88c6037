/* layer_norm and rms_norm on the GPU. Rows are shared by lanes (rows_gpu.h); par 0: rows, 1: elements of each.

   On the way back a workgroup goes through a block of rows, a few at once: mean and 1/deviation, then dx; then its
   invocations take columns, and sum the block's shares of dweight and dbias. A second launch sums the blocks in order. */
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { MOST_ROWS = 512, /* of a block: their statistics lie in workgroup memory */ BLOCKS = 128 };

/* (mean, 1 / deviation) of a row, from `at` on */
static const char statistics[] = "fn statistics(local: u32, at: u32, stop: u32) -> vec2<f32> {\n"
                                 "    let n = f32(par(1u));\n    var mean = 0.0;\n"
                                 "    if (CENTRED) {\n"
                                 "        var sum = 0.0;\n"
                                 "        for (var k = lane_of(local); k < stop; k += LANES) { sum += x_at(at + k); }\n"
                                 "        mean = row_sum(local, sum) / n;\n"
                                 "    }\n"
                                 "    var squares = 0.0;\n"
                                 "    for (var k = lane_of(local); k < stop; k += LANES) {\n"
                                 "        let d = x_at(at + k) - mean;\n"
                                 "        squares += d * d;\n"
                                 "    }\n"
                                 "    return vec2<f32>(mean, 1.0 / sqrt(row_sum(local, squares) / n + arg(0u)));\n"
                                 "}\n";

static const char forward[] = "fn x_at(i: u32) -> f32 { return in0(i); }\n"
                              "fn kernel(group: u32, local: u32) {\n"
                              "    let row = row_of(group, local); let n = par(1u);\n"
                              "    let stop = select(0u, n, row < par(0u));\n"
                              "    let s = statistics(local, row * n, stop);\n"
                              "    for (var k = lane_of(local); k < stop; k += LANES) {\n"
                              "        let i = row * n + k;\n"
                              "        put(i, (in0(i) - s.x) * s.y * weight(k) + bias(k));\n"
                              "    }\n"
                              "}\n";

/* dx = r (gw - mean(gw) - h mean(gw h)), h = (x - mean) r */
static const char backward_rows[] = "fn x_at(i: u32) -> f32 { return in1(i); }\n"
                                    "fn back(local: u32, at: u32, stop: u32) -> vec2<f32> {\n"
                                    "    let s = statistics(local, at, stop);\n"
                                    "    var sums = vec2<f32>(0.0, 0.0);\n"
                                    "    for (var k = lane_of(local); k < stop; k += LANES) {\n"
                                    "        let gw = in0(at + k) * weight(k);\n"
                                    "        sums += gw * vec2<f32>(1.0, (in1(at + k) - s.x) * s.y);\n"
                                    "    }\n"
                                    "    sums = row_sum2(local, sums) / f32(par(1u));\n"
                                    "    if (!CENTRED) { sums.x = 0.0; }\n"
                                    "    for (var k = lane_of(local); k < stop; k += LANES) {\n"
                                    "        let h = (in1(at + k) - s.x) * s.y;\n"
                                    "        put(at + k, s.y * (in0(at + k) * weight(k) - sums.x - h * sums.y));\n"
                                    "    }\n"
                                    "    return s;\n"
                                    "}\n";

static const char backward_alone[] = "fn kernel(group: u32, local: u32) {\n"
                                     "    let row = row_of(group, local);\n"
                                     "    let s = back(local, row * par(1u), select(0u, par(1u), row < par(0u)));\n"
                                     "}\n";

/* par 2: rows of a block, a multiple of ROWS */
static const char backward_blocks[] =
    "var<workgroup> found: array<vec2<f32>, 512>;\n"
    "fn kernel(group: u32, local: u32) {\n"
    "    let n = par(1u); let first = group * par(2u); let end = min(par(0u), first + par(2u));\n"
    "    for (var r = 0u; r < par(2u); r += ROWS) {\n"
    "        let row = first + r + row_of(0u, local);\n"
    "        let s = back(local, row * n, select(0u, n, row < end));\n"
    "        if (lane_of(local) == 0u) { found[r + row_of(0u, local)] = s; }\n"
    "    }\n"
    "    workgroupBarrier();\n"
    "    for (var k = local; k < n; k += 256u) {\n"
    "        var dw = 0.0; var db = 0.0;\n"
    "        for (var row = first; row < end; row++) {\n"
    "            let s = found[row - first]; let g = in0(row * n + k);\n"
    "            dw += g * ((in1(row * n + k) - s.x) * s.y);\n"
    "            db += g;\n"
    "        }\n"
    "        share(group, k, dw, db);\n"
    "    }\n"
    "}\n";

/* where a block leaves its shares: (blocks, 2, n) */
static const char to_scratch[] = "fn share(block: u32, k: u32, dw: f32, db: f32) {\n"
                                 "    set_tmp(2u * block * par(1u) + k, bitcast<u32>(dw));\n"
                                 "    set_tmp((2u * block + 1u) * par(1u) + k, bitcast<u32>(db));\n"
                                 "}\n";

static const char to_results[] = "fn share(block: u32, k: u32, dw: f32, db: f32) {\n"
                                 "    give_weight(k, dw);\n"
                                 "    give_bias(k, db);\n"
                                 "}\n";

/* A row is a column of the shares; par 0: blocks */
static const char merge[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let column = row_of(group, local); let n = par(1u);\n"
    "    let stop = select(0u, par(0u), column < 2u * n);\n"
    "    var sum = 0.0;\n"
    "    for (var k = lane_of(local); k < stop; k += LANES) { sum += bitcast<f32>(tmp(2u * n * k + column)); }\n"
    "    sum = row_sum(local, sum);\n"
    "    if (lane_of(local) != 0u || column >= 2u * n) { return; }\n"
    "    if (column < n) { give_weight(column, sum); } else { give_bias(column - n, sum); }\n"
    "}\n";

static const char *weight_text(bool there, int operand, cn__gpu_call *c)
{
    return there ? cn__gpu_text(c, "fn weight(k: u32) -> f32 { return in%d(k); }\n", operand)
                 : "fn weight(k: u32) -> f32 { return 1.0; }\n";
}

/* How rows (of `axes` last axes) and their elements are counted. */
static void sizes_of(const cn_array *x, int64_t axes, int64_t *rows, int64_t *n)
{
    *rows = *n = 1;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - axes ? rows : n) *= x->shape[d];
}

static const char *centred_text(bool centred)
{
    return centred ? "const CENTRED = true;\n" : "const CENTRED = false;\n";
}

bool cn__gpu_norm(cn__gpu_call *c, bool centred)
{
    int64_t rows, n;
    sizes_of(&c->out[0], ((const cn__norm_attrs *)c->attrs)->axes, &rows, &n);
    if (!rows || !n) return true;
    const cn__gpu_rows r = cn__gpu_rows_of(rows, n, 1);
    cn__gpu_param(c, (uint32_t)rows);
    cn__gpu_param(c, (uint32_t)n);
    const char *text = cn__gpu_text(c, "%s%s%sfn bias(k: u32) -> f32 { return %s; }\n%s", centred_text(centred),
                                    statistics, cn__gpu_piece(weight_text(c->in[1].data, 1, c)),
                                    centred && c->in[2].data ? "in2(k)" : "0.0", forward);
    return cn__gpu_run_rows(c, &r, cn__gpu_rows_groups(&r), 0, text);
}

static bool merge_blocks(cn__gpu_call *c, int64_t blocks, int64_t n, const char *give)
{
    const cn__gpu_rows r = cn__gpu_rows_of(2 * n, blocks, 2 * n);
    cn__gpu_params_clear(c);
    cn__gpu_param(c, (uint32_t)blocks);
    cn__gpu_param(c, (uint32_t)n);
    return cn__gpu_run_rows(c, &r, cn__gpu_rows_groups(&r), 0, cn__gpu_text(c, "%s%s", give, merge));
}

/* g, x, weight → dx, dweight, dbias; the latter two are empty where nobody wants them */
bool cn__gpu_norm_backward(cn__gpu_call *c, bool centred)
{
    int64_t rows, n;
    sizes_of(&c->out[0], ((const cn__norm_backward_attrs *)c->attrs)->axes, &rows, &n);
    const bool dw = c->out[1].numel > 0, db = c->n_out > 2 && c->out[2].numel > 0;
    if (!n || (!rows && !dw && !db)) return true;
    const char *start = cn__gpu_text(c, "%s%s%s%s", centred_text(centred), statistics,
                                     cn__gpu_piece(weight_text(c->in[2].data, 2, c)), backward_rows);
    const char *give = cn__gpu_text(c, "fn give_weight(k: u32, v: f32) { %s }\nfn give_bias(k: u32, v: f32) { %s }\n",
                                    dw ? "out1(k, v);" : "", db ? "out2(k, v);" : "");
    const cn__gpu_rows r = cn__gpu_rows_of(rows, n, 1);
    cn__gpu_param(c, (uint32_t)rows);
    cn__gpu_param(c, (uint32_t)n);
    if (!start || !give) return false;
    if (!dw && !db)
        return cn__gpu_run_rows(c, &r, cn__gpu_rows_groups(&r), 0, cn__gpu_text(c, "%s%s", start, backward_alone));

    const int64_t at_once = cn__gpu_rows_at_once(&r), even = (rows + BLOCKS - 1) / BLOCKS;
    int64_t block = (even + at_once - 1) / at_once * at_once;
    block = block > MOST_ROWS ? MOST_ROWS : block < at_once ? at_once : block;
    const int64_t blocks = (rows + block - 1) / block;
    cn__gpu_param(c, (uint32_t)block);
    if (blocks == 1) {
        const char *text = cn__gpu_text(c, "%s%s%s%s", start, give, to_results, backward_blocks);
        return cn__gpu_run_rows(c, &r, 1, MOST_ROWS * 8, text);
    }
    cn__gpu_scratch(c, 2 * n * (blocks ? blocks : 1));
    return cn__gpu_run_rows(c, &r, blocks, MOST_ROWS * 8,
                            cn__gpu_text(c, "%s%s%s", start, to_scratch, backward_blocks)) &&
           merge_blocks(c, blocks, n, give);
}

/* Attention on the GPU, in memory that does not grow with the product of lengths.

   Tiles     A workgroup of 64 invocations, 8 rows of 8, works on tiles of 32 x 32 numbers in workgroup memory: 8 vec4
             a row, those of rows 4 y .. 4 y + 3 at places exchanged by y, so that invocations that read a column of
             vec4 read from different banks. Invocation (y, x) has rows 4 y .. and columns 4 x .. of a tile of scores,
             as a mat4x4 whose i-th vec4 is row i. Heads wider than a tile are taken in parts of 32 columns, zeros
             beyond the end.
   Forward   One workgroup for 32 queries goes through the keys, with the running maximum and sum of each row.
   Backward  One workgroup for 32 queries sums p dp k and p k, from which, and the sum of p dp, comes dq; that sum stays
             in scratch memory for a second launch: one workgroup for 32 keys goes through the queries that see them,
             for dk and dv. Nothing is added to memory: results do not depend on the order of workgroups.
   Slices    Of results, a workgroup has at most some columns in registers; for wider heads there are several. */
#include "core/philox.h"
#include "ops/block/attention_gpu.h"
#include "ops/block/block.h"

enum { TILE = 32, SIZE = 64, TILE_BYTES = TILE * TILE * 4, SLICE = 4, BACKWARD_SLICE = 2 };

/* ---- numbers ---- */

/* par(TQ) .., and from TABLES on for each operand and result: the steps of rows and columns, then size and step of each
   outer axis, the last first. Numbers needed again and again are kept in variables: to fetch one is dear to some
   drivers. Bounds of inner loops are among them, so that compilers leave the loops as they are: unrolled, they take long to
   compile. */
enum { OUTER_MOST = CN_MAX_DIMS - 2, TABLES = 12, TABLE = 2 + 2 * OUTER_MOST };

static const char numbers[] =
    "const TQ = 0u; const TK = 1u; const E = 2u; const EV = 3u; const GROUP = 4u; const OUTER = 5u;\n"
    "const BLOCKS = 6u; const SLICES = 7u; const PARTS = 8u; const STEPS = 9u; const ROUNDS = 10u; const REACH = 11u;\n"
    "var<private> tq: u32; var<private> tk: u32; var<private> reach: u32; var<private> steps: u32;\n"
    "var<private> alpha: f32;\n"
    "var<private> head: u32; var<private> q_at: u32; var<private> k_at: u32; var<private> v_at: u32;\n"
    "var<private> mask_at: u32; var<private> mask_row: u32; var<private> mask_col: u32;\n"
    "fn head_at(table: u32, index: u32) -> u32 {\n"
    "    var at = 0u; var rest = index; let n = par(OUTER);\n"
    "    for (var d = 0u; d < n; d++) {\n"
    "        let size = par(table + 2u + 2u * d);\n"
    "        at += rest % size * par(table + 3u + 2u * d); rest /= size;\n"
    "    }\n"
    "    return at;\n"
    "}\n";

typedef struct sizes {
    int64_t tq, tk, e, ev, heads, kv_heads, group;
    int outer;
    bool causal;
} sizes;

static int64_t parts_of(int64_t n, int64_t part) { return n > part ? (n + part - 1) / part : 1; }

static void common_params(cn__gpu_call *c, const sizes *s, int64_t blocks, int64_t slices, int64_t parts)
{
    const int64_t reach = s->causal ? 1 : INT32_MAX;
    const int64_t values[] = { s->tq,  s->tk,  s->e,  s->ev,    s->group,          s->outer,
                               blocks, slices, parts, TILE / 4, CN__PHILOX_ROUNDS, reach };
    cn__gpu_params_clear(c);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) cn__gpu_param(c, (uint32_t)values[i]);
}

static int64_t stride_of(const cn_array *x, int d) { return d < 0 || x->shape[d] == 1 ? 0 : x->stride[d]; }

static int table_of(int k) { return TABLES + k * TABLE; }

/* x: (outer .., rows, columns), or without columns; heads are counted over the outer axes of `like`, along which x may
   be broadcast */
static void table_param(cn__gpu_call *c, const sizes *s, const cn_array *x, int own, const cn_array *like)
{
    const int first = x->ndim - own - s->outer;
    cn__gpu_param(c, (uint32_t)stride_of(x, x->ndim - own));
    cn__gpu_param(c, own > 1 ? (uint32_t)stride_of(x, x->ndim - 1) : 0);
    for (int d = s->outer - 1; d >= s->outer - OUTER_MOST; d--) {
        cn__gpu_param(c, d < 0 ? 1 : (uint32_t)like->shape[d]);
        cn__gpu_param(c, d < 0 ? 0 : (uint32_t)stride_of(x, first + d));
    }
}

/* ---- pieces of text ---- */

/* Memory that ran out fails the launch; pieces may be printed all the same. */
static const char *piece(const char *text) { return text ? text : ""; }

/* The text for each number below n, in place of #. */
static const char *for_each(cn__gpu_call *c, int n, const char *text)
{
    const char *all = "";
    for (int i = 0; i < n; i++) {
        const char *from = text, *to;
        for (; (to = strchr(from, '#')); from = to + 1)
            all = piece(cn__gpu_text(c, "%s%.*s%d", all, (int)(to - from), from, i));
        all = piece(cn__gpu_text(c, "%s%s", all, from));
    }
    return all;
}

/* Four elements of a row of operand k, whose head begins at `at`, to v; left: columns from col on */
static const char *reader(cn__gpu_call *c, int k, const char *at, const char *row)
{
    return piece(cn__gpu_text(c,
                              "            let across = par(%du); let start = %s + %s * par(%du) + col * across;\n"
                              "            v = vec4<f32>(in%d(start), in%d(start + min(1u, left) * across),\n"
                              "                          in%d(start + min(2u, left) * across),\n"
                              "                          in%d(start + min(3u, left) * across));\n",
                              table_of(k) + 1, at, row, table_of(k), k, k, k, k));
}

/* 32 rows from `first` and columns from `column` on to a tile; left: how many columns follow the first of four */
static const char *loader(cn__gpu_call *c, const char *name, int tile, const char *rows, const char *columns,
                          const char *read)
{
    return piece(cn__gpu_text(c,
                              "fn %s(first: u32, column: u32, local: u32) {\n"
                              "    let columns = par(%s); let rows = %s;\n"
                              "    for (var i = local; i < 256u; i += 64u) {\n"
                              "        let row = first + i / 8u; let col = column + i %% 8u * 4u;\n"
                              "        var v = vec4<f32>();\n"
                              "        if (row < rows && col < columns) {\n"
                              "            let left = columns - col - 1u;\n%s"
                              "            v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(left));\n"
                              "        }\n"
                              "        t[%du + i / 8u * 8u + ((i %% 8u) ^ (i / 32u))] = v;\n"
                              "    }\n"
                              "}\n",
                              name, columns, rows, read, tile * 256));
}

/* dots: rows of tile a times rows of tile b; mix: rows of a times columns of b; added to sums. keep: the four rows of
   an invocation, to a tile. */
static const char products_text[] =
    "fn dots(y: u32, x: u32, a: u32, b: u32, sums: mat4x4<f32>) -> mat4x4<f32> {\n"
    "    var s0 = sums[0]; var s1 = sums[1]; var s2 = sums[2]; var s3 = sums[3];\n"
    "    for (var k = 0u; k < steps; k++) {\n"
    "        let i = a * 256u + y * 32u + (k ^ y); let j = b * 256u + x * 32u + (k ^ x);\n"
    "        let m = mat4x4<f32>(t[j], t[j + 8u], t[j + 16u], t[j + 24u]);\n"
    "        s0 += t[i] * m; s1 += t[i + 8u] * m; s2 += t[i + 16u] * m; s3 += t[i + 24u] * m;\n"
    "    }\n"
    "    return mat4x4<f32>(s0, s1, s2, s3);\n"
    "}\n"
    "fn mix(y: u32, x: u32, a: u32, b: u32, sums: mat4x4<f32>) -> mat4x4<f32> {\n"
    "    var s0 = sums[0]; var s1 = sums[1]; var s2 = sums[2]; var s3 = sums[3];\n"
    "    for (var k = 0u; k < steps; k++) {\n"
    "        let i = a * 256u + y * 32u + (k ^ y); let j = b * 256u + k * 32u + (x ^ k);\n"
    "        let m = mat4x4<f32>(t[j], t[j + 8u], t[j + 16u], t[j + 24u]);\n"
    "        s0 += m * t[i]; s1 += m * t[i + 8u]; s2 += m * t[i + 16u]; s3 += m * t[i + 24u];\n"
    "    }\n"
    "    return mat4x4<f32>(s0, s1, s2, s3);\n"
    "}\n"
    "fn keep(y: u32, x: u32, tile: u32, m: mat4x4<f32>) {\n"
    "    let i = tile * 256u + y * 32u + (x ^ y);\n"
    "    t[i] = m[0]; t[i + 8u] = m[1]; t[i + 16u] = m[2]; t[i + 24u] = m[3];\n"
    "}\n";

/* Four rows of a result, from row `row` on, and their four columns from `col` on. */
static const char *storer(cn__gpu_call *c, const char *name, int out, const char *rows, const char *columns)
{
    return piece(cn__gpu_text(c,
                              "fn %s_row(at: u32, row: u32, col: u32, v: vec4<f32>) {\n"
                              "    let across = par(%du); let to = at + row * par(%du) + col * across;\n"
                              "    let columns = par(%s);\n"
                              "    if (row >= par(%s)) { return; }\n"
                              "    if (col < columns) { out%d(to, v.x); }\n"
                              "    if (col + 1u < columns) { out%d(to + across, v.y); }\n"
                              "    if (col + 2u < columns) { out%d(to + 2u * across, v.z); }\n"
                              "    if (col + 3u < columns) { out%d(to + 3u * across, v.w); }\n"
                              "}\n"
                              "fn %s(at: u32, row: u32, col: u32, m: mat4x4<f32>) {\n"
                              "    %s_row(at, row, col, m[0]); %s_row(at, row + 1u, col, m[1]);\n"
                              "    %s_row(at, row + 2u, col, m[2]); %s_row(at, row + 3u, col, m[3]);\n"
                              "}\n",
                              name, table_of(c->n_in + out) + 1, table_of(c->n_in + out), columns, rows, out, out, out, out, name, name, name, name,
                              name));
}

/* Scores of four keys. UNSEEN instead of -inf, about which WGSL promises nothing; what is seen is LEAST or more. */
static const char scores_text[] =
    "const LEAST = -3.4028e38; const UNSEEN = -3.4028234e38;\n"
    "fn scores(products: vec4<f32>, query: u32, key: u32) -> vec4<f32> {\n"
    "    let n = select(0u, seen(query), query < tq); var s = products * alpha;\n"
    "    if (MASKS) {\n"
    "        if (key < n) { s.x = masked(s.x, query, key); }\n"
    "        if (key + 1u < n) { s.y = masked(s.y, query, key + 1u); }\n"
    "        if (key + 2u < n) { s.z = masked(s.z, query, key + 2u); }\n"
    "        if (key + 3u < n) { s.w = masked(s.w, query, key + 3u); }\n"
    "    }\n"
    "    return select(vec4<f32>(UNSEEN), s, vec4<u32>(key, key + 1u, key + 2u, key + 3u) < vec4<u32>(n));\n"
    "}\n"
    "fn total(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }\n"
    "fn largest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }\n"
    "fn each(m: mat4x4<f32>, f: mat4x4<f32>) -> mat4x4<f32> {\n"
    "    return mat4x4<f32>(m[0] * f[0], m[1] * f[1], m[2] * f[2], m[3] * f[3]);\n"
    "}\n"
    "fn by_rows(m: mat4x4<f32>, v: vec4<f32>) -> mat4x4<f32> {\n"
    "    return mat4x4<f32>(m[0] * v.x, m[1] * v.y, m[2] * v.z, m[3] * v.w);\n"
    "}\n";

/* k: the mask's number among operands; absent, all are seen */
static const char *mask_text(cn__gpu_call *c, int k)
{
    if (!c->in[k].data)
        return "const MASKS = false;\nfn begin_mask() {}\n"
               "fn masked(s: f32, query: u32, key: u32) -> f32 { return s; }\n";
    const char *rule = c->in[k].dtype == CN_BOOL ? "return select(UNSEEN, s, m != 0);"
                                                 : "if (bitcast<u32>(m) == 0xff800000u) { return UNSEEN; }\n"
                                                   "    return select(s + m, LEAST, s + m < LEAST);";
    return piece(cn__gpu_text(c,
                              "const MASKS = true;\n"
                              "fn begin_mask() {\n"
                              "    mask_at = head_at(%du, head); mask_row = par(%du); mask_col = par(%du);\n"
                              "}\n"
                              "fn masked(s: f32, query: u32, key: u32) -> f32 {\n"
                              "    let m = in%d(mask_at + query * mask_row + key * mask_col);\n"
                              "    %s\n"
                              "}\n",
                              table_of(k), table_of(k), table_of(k) + 1, k, rule));
}

/* What dropout multiplies the weights of four keys by: elements of (heads, Tq, Tk), four to a block of Philox. */
static const char dropout_text[] =
    "fn wide_product(a: u32, b: u32) -> vec2<u32> {\n"
    "    let low = (a & 0xffffu) * (b & 0xffffu); let mid = (a >> 16u) * (b & 0xffffu) + (low >> 16u);\n"
    "    let more = (a & 0xffffu) * (b >> 16u) + (mid & 0xffffu);\n"
    "    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (mid >> 16u) + (more >> 16u));\n"
    "}\n"
    "fn random_block(low: u32, high: u32) -> vec4<u32> {\n"
    "    var c = vec4<u32>(low, high, argu(3u), argh(3u)); var key = vec2<u32>(argu(2u), argh(2u));\n"
    "    let rounds = par(ROUNDS);\n"
    "    for (var round = 0u; round < rounds; round++) {\n"
    "        let p = wide_product(0xD2511F53u, c.x); let q = wide_product(0xCD9E8D57u, c.z);\n"
    "        c = vec4<u32>(q.y ^ c.y ^ key.x, q.x, p.y ^ c.w ^ key.y, p.x);\n"
    "        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);\n"
    "    }\n"
    "    return c;\n"
    "}\n"
    "fn factors_of(query: u32, key: u32) -> vec4<f32> {\n"
    "    let row = wide_product(head * tq + query, tk); let low = row.x + key;\n"
    "    let high = row.y + select(0u, 1u, low < key);\n"
    "    let block = (low >> 2u) | (high << 30u); let lane = low & 3u;\n"
    "    var w = random_block(block, high >> 2u);\n"
    "    if (lane != 0u) {\n"
    "        let n = random_block(block + 1u, (high >> 2u) + select(0u, 1u, block == 0xffffffffu));\n"
    "        if (lane == 1u) { w = vec4<u32>(w.yzw, n.x); }\n"
    "        else if (lane == 2u) { w = vec4<u32>(w.zw, n.xy); }\n"
    "        else { w = vec4<u32>(w.w, n.xyz); }\n"
    "    }\n"
    "    let unit = vec4<f32>(w >> vec4<u32>(8u)) * 5.9604644775390625e-8;\n"
    "    let kept = select(0.0, 1.0 / (1.0 - arg(1u)), arg(1u) < 1.0);\n"
    "    return select(vec4<f32>(kept), vec4<f32>(), unit < vec4<f32>(arg(1u)));\n"
    "}\n"
    /* for four queries; the rows go round, so that none is indexed by a variable */
    "fn factors(query: u32, key: u32) -> mat4x4<f32> {\n"
    "    let ones = vec4<f32>(1.0); var m = mat4x4<f32>(ones, ones, ones, ones);\n"
    "    if (!(arg(1u) > 0.0)) { return m; }\n"
    "    for (var i = 0u; i < steps / 2u; i++) { m = mat4x4<f32>(m[1], m[2], m[3], factors_of(query + i, key)); }\n"
    "    return m;\n"
    "}\n";

/* ---- forward ---- */

/* Tiles: 0 queries; 1 keys, then weights; 2 values. %s: declarations of results' sums; the next parts of values; how
   they are stored */
static const char forward_text[] =
    "var<workgroup> t: array<vec4<f32>, 768>;\n"
    "var<workgroup> rows: array<vec4<f32>, 64>;\n"
    "fn weights(s: vec4<f32>, top: f32) -> vec4<f32> {\n"
    "    return select(exp(s - vec4<f32>(top)), vec4<f32>(), s <= vec4<f32>(UNSEEN));\n"
    "}\n"
    "fn finished(v: vec4<f32>, sum: f32) -> vec4<f32> {\n" /* of no weights at all: NaN, as of a softmax of -inf */
    "    return select(v / sum, vec4<f32>(select(not_a_number(), 0.0, tk == 0u)), sum == 0.0);\n"
    "}\n"
    "fn store(at: u32, row: u32, col: u32, m: mat4x4<f32>, sum: vec4<f32>) {\n"
    "    store_rows(at, row, col, mat4x4<f32>(finished(m[0], sum.x), finished(m[1], sum.y), finished(m[2], sum.z),\n"
    "                                         finished(m[3], sum.w)));\n"
    "}\n"
    "fn kernel(group: u32, local: u32) {\n"
    "    let x = local %% 8u; let y = local / 8u;\n"
    "    let first = group %% par(BLOCKS) * 32u; let query = first + 4u * y;\n"
    "    let slice = group / par(BLOCKS) %% par(SLICES) * SLICE;\n"
    "    head = group / par(BLOCKS) / par(SLICES);\n"
    "    begin();\n"
    "    var top = vec4<f32>(UNSEEN); var sum = vec4<f32>();\n"
    "%s"
    "    let n = most_seen(min(first + 31u, par(TQ) - 1u));\n"
    "    for (var key = 0u; key < n; key += 32u) {\n"
    "        var s = mat4x4<f32>();\n"
    "        for (var part = 0u; part < par(PARTS); part++) {\n"
    "            if (key == 0u || par(PARTS) > 1u) { load_q(first, part * 32u, local); }\n"
    "            load_k(key, part * 32u, local);\n"
    "            if (part == 0u) { load_v(key, slice * 32u, local); }\n"
    "            workgroupBarrier();\n"
    "            s = dots(y, x, 0u, 1u, s);\n"
    "            if (part + 1u == par(PARTS)) {\n"
    "                let k = key + 4u * x;\n"
    "                s = mat4x4<f32>(scores(s[0], query, k), scores(s[1], query + 1u, k),\n"
    "                                scores(s[2], query + 2u, k), scores(s[3], query + 3u, k));\n"
    "                rows[local] = vec4<f32>(largest(s[0]), largest(s[1]), largest(s[2]), largest(s[3]));\n"
    "            }\n"
    "            workgroupBarrier();\n"
    "        }\n"
    "        var next = top;\n"
    "        for (var i = 0u; i < 8u; i++) { next = max(next, rows[y * 8u + i]); }\n"
    "        let fade = select(exp(top - next), vec4<f32>(), top <= vec4<f32>(UNSEEN));\n"
    "        top = next;\n"
    "        let w = mat4x4<f32>(weights(s[0], top.x), weights(s[1], top.y), weights(s[2], top.z),\n"
    "                            weights(s[3], top.w));\n"
    "        sum = sum * fade + vec4<f32>(total(w[0]), total(w[1]), total(w[2]), total(w[3]));\n"
    "        keep(y, x, 1u, each(w, factors(query, key + 4u * x)));\n"
    "%s"
    "    }\n"
    "    rows[local] = sum;\n"
    "    workgroupBarrier();\n"
    "    sum = vec4<f32>();\n"
    "    for (var i = 0u; i < 8u; i++) { sum += rows[y * 8u + i]; }\n"
    "    if (x == 0u && slice == 0u) { store_sums(query, top, sum); }\n"
    "    let out_at = head_at(RESULT, head);\n"
    "%s"
    "}\n";

/* The values of part # of a slice; those of the first came with the keys. */
static const char forward_mix[] = "        if (#u > 0u) { load_v(key, (slice + #u) * 32u, local); }\n"
                                  "        workgroupBarrier();\n"
                                  "        o# = mix(y, x, 1u, 2u, by_rows(o#, fade));\n"
                                  "        workgroupBarrier();\n";

/* own: what differs between plain attention and that over a cache */
static bool forward_launch(cn__gpu_call *c, const sizes *s, const char *own)
{
    const int64_t blocks = parts_of(s->tq, TILE), slices = parts_of(s->ev, SLICE * TILE);
    const int parts = (int)parts_of(s->ev < SLICE * TILE ? s->ev : SLICE * TILE, TILE);
    const char *kernel = cn__gpu_text(
        c, forward_text, for_each(c, parts, "    var o# = mat4x4<f32>();\n"), for_each(c, parts, forward_mix),
        for_each(c, parts, "    store(out_at, query, (slice + #u) * 32u + 4u * x, o#, sum);\n"));
    const char *code =
        cn__gpu_text(c, "%sconst SLICE = %du; const RESULT = %du;\n%s%s%s%s%s%s", numbers, SLICE, table_of(c->n_in),
                     scores_text, own, loader(c, "load_q", 0, "tq", "E", reader(c, 0, "q_at", "row")), products_text,
                     storer(c, "store_rows", 0, "TQ", "EV"), piece(kernel));
    return cn__gpu_run_groups(c, &(cn__gpu_launch){ .code = code,
                                                    .groups = s->tq ? s->heads * slices * blocks : 0,
                                                    .size = SIZE,
                                                    .group_bytes = 3 * TILE_BYTES + SIZE * 16 });
}

/* first: q's number among operands */
static sizes sizes_of(const cn__gpu_call *c, int first)
{
    const cn_array *q = &c->in[first], *k = &c->in[first + 1], *v = &c->in[first + 2];
    const int n = q->ndim;
    sizes s = { q->shape[n - 2],
                k->shape[n - 2],
                q->shape[n - 1],
                v->shape[n - 1],
                1,
                1,
                1,
                n - 2,
                ((const cn__attention_attrs *)c->attrs)->causal };
    for (int d = 0; d < n - 2; d++) s.heads *= q->shape[d], s.kv_heads *= k->shape[d];
    if (s.kv_heads) s.group = s.heads / s.kv_heads;
    return s;
}

/* REACH: 1 where a query sees keys up to its own place, else beyond all */
static const char keys_text[] = "fn seen(query: u32) -> u32 { return min(query + reach, tk); }\n"
                                "fn most_seen(query: u32) -> u32 { return min(query + par(REACH), par(TK)); }\n";

bool cn__attention_gpu(cn__gpu_call *c)
{
    const sizes s = sizes_of(c, 0);
    common_params(c, &s, parts_of(s.tq, TILE), parts_of(s.ev, SLICE * TILE), parts_of(s.e, TILE));
    for (int i = 0; i < c->n_in; i++) table_param(c, &s, &c->in[i], 2, i == 1 || i == 2 ? &c->in[1] : &c->in[0]);
    table_param(c, &s, &c->out[0], 2, &c->in[0]);
    const char *own = cn__gpu_text(
        c,
        "%s%s%s%s%s"
        "fn begin() {\n"
        "    let kv = head / par(GROUP);\n"
        "    tq = par(TQ); tk = par(TK); reach = par(REACH); steps = par(STEPS); alpha = arg(0u);\n"
        "    q_at = head_at(%du, head); k_at = head_at(%du, kv); v_at = head_at(%du, kv);\n"
        "    begin_mask();\n"
        "}\n"
        "fn store_sums(row: u32, top: vec4<f32>, sum: vec4<f32>) {\n"
        "    let lse = select(top + log(sum), vec4<f32>(-infinity()), sum == vec4<f32>());\n"
        "    let to = head * tq + row;\n"
        "    if (row < tq) { out1(to, lse.x); }\n"
        "    if (row + 1u < tq) { out1(to + 1u, lse.y); }\n"
        "    if (row + 2u < tq) { out1(to + 2u, lse.z); }\n"
        "    if (row + 3u < tq) { out1(to + 3u, lse.w); }\n"
        "}\n",
        keys_text, mask_text(c, 3), dropout_text, loader(c, "load_k", 1, "tk", "E", reader(c, 1, "k_at", "row")),
        loader(c, "load_v", 2, "tk", "EV", reader(c, 2, "v_at", "row")), table_of(0), table_of(1), table_of(2));
    return forward_launch(c, &s, piece(own));
}

/* (B, T, heads, width) */
static void token_table(cn__gpu_call *c, const cn_array *x)
{
    const int64_t values[TABLE] = { x->stride[1], x->stride[3], x->shape[2], x->stride[2], x->shape[0], x->stride[0] };
    for (int i = 0; i < TABLE; i++) cn__gpu_param(c, (uint32_t)values[i]);
}

bool cn__cached_attention_gpu(cn__gpu_call *c)
{
    const cn_array *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const sizes s = { q->shape[1],
                      k->shape[1],
                      q->shape[3],
                      v->shape[3],
                      q->shape[0] * q->shape[2],
                      k->shape[0] * k->shape[2],
                      k->shape[2] ? q->shape[2] / k->shape[2] : 1,
                      2,
                      true };
    if (!c->out[0].numel) return true;
    common_params(c, &s, parts_of(s.tq, TILE), parts_of(s.ev, SLICE * TILE), parts_of(s.e, TILE));
    for (int i = 0; i < c->n_in; i++) token_table(c, &c->in[i]);
    token_table(c, &c->out[0]);
    const char *read[2];
    for (int i = 0; i < 2; i++) /* cached, or new */
        read[i] = piece(cn__gpu_text(c, "            if (row < used) {\n%s            } else {\n%s            }\n",
                                     reader(c, 3 + i, i ? "values_at" : "keys_at", "row"),
                                     reader(c, 1 + i, i ? "v_at" : "k_at", "(row - used)")));
    const char *own =
        cn__gpu_text(c,
                     "var<private> keys_at: u32; var<private> values_at: u32; var<private> used: u32;\n"
                     "const MASKS = false;\n"
                     "fn masked(s: f32, query: u32, key: u32) -> f32 { return s; }\n"
                     "fn factors(query: u32, key: u32) -> mat4x4<f32> {\n"
                     "    let ones = vec4<f32>(1.0); return mat4x4<f32>(ones, ones, ones, ones);\n"
                     "}\n"
                     "fn seen(query: u32) -> u32 { return min(used + query + 1u, tk); }\n"
                     "fn most_seen(query: u32) -> u32 { return argu(0u) + min(query + 1u, par(TK)); }\n"
                     "fn begin() {\n"
                     "    let kv = head / par(GROUP);\n"
                     "    used = argu(0u); tq = par(TQ); tk = par(TK) + used; steps = par(STEPS); alpha = arg(1u);\n"
                     "    q_at = head_at(%du, head); k_at = head_at(%du, kv); v_at = head_at(%du, kv);\n"
                     "    keys_at = head_at(%du, kv); values_at = head_at(%du, kv);\n"
                     "}\n"
                     "fn store_sums(row: u32, top: vec4<f32>, sum: vec4<f32>) {}\n"
                     "%s%s",
                     table_of(0), table_of(1), table_of(2), table_of(3), table_of(4),
                     loader(c, "load_k", 1, "tk", "E", read[0]), loader(c, "load_v", 2, "tk", "EV", read[1]));
    return forward_launch(c, &s, piece(own));
}

/* ---- backward ---- */

/* Tiles 0 and 1 are the factors of the scores, 2 and 3 those of dp; weights and what becomes of them take the place of
   those of which no more is needed. Both products of a pair are one piece of a loop, and so compiled once. */
static const char backward_text[] =
    "var<workgroup> t: array<vec4<f32>, 1024>;\n"
    "var<private> g_at: u32; var<private> lse_at: u32;\n"
    "var<private> p: mat4x4<f32>; var<private> dp: mat4x4<f32>;\n"
    "fn both_dots(y: u32, x: u32) {\n"
    "    for (var i = 0u; i < steps / 4u; i++) { let s = dots(y, x, 2u * i, 2u * i + 1u, p); p = dp; dp = s; }\n"
    "}\n"
    "fn begin(kv: u32) {\n"
    "    tq = par(TQ); tk = par(TK); reach = par(REACH); steps = par(STEPS); alpha = arg(0u);\n"
    "    g_at = head_at(AT0, head); q_at = head_at(AT1, head); k_at = head_at(AT2, kv); v_at = head_at(AT3, kv);\n"
    "    lse_at = head_at(AT5, head); begin_mask();\n"
    "}\n"
    "fn lse_of(query: u32) -> f32 {\n"
    "    if (query >= tq) { return 0.0; }\n"
    "    let lse = in5(lse_at + query * par(AT5));\n"
    "    return select(lse, not_a_number(), isinf(lse));\n"
    "}\n"
    "fn lse_of_four(query: u32) -> vec4<f32> {\n"
    "    return vec4<f32>(lse_of(query), lse_of(query + 1u), lse_of(query + 2u), lse_of(query + 3u));\n"
    "}\n"
    /* exp(score - lse) of four keys; where nothing is seen at all, lse is -inf and they are NaN */
    "fn probabilities(products: vec4<f32>, query: u32, key: u32, lse: f32) -> vec4<f32> {\n"
    "    let s = scores(products, query, key);\n"
    "    if (isnan(lse)) {\n"
    "        let n = seen(query);\n"
    "        return select(vec4<f32>(), vec4<f32>(lse), vec4<u32>(key, key + 1u, key + 2u, key + 3u) < vec4<u32>(n));\n"
    "    }\n"
    "    return select(exp(s - vec4<f32>(lse)), vec4<f32>(), s <= vec4<f32>(UNSEEN));\n"
    "}\n";

/* dq = scale (sum of p dp k - (sum of p dp) (sum of p k)); u# and w# are these sums for part # of a slice */
static const char queries_text[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let x = local %% 8u; let y = local / 8u;\n"
    "    let first = group %% par(BLOCKS) * 32u; let query = first + 4u * y;\n"
    "    let slice = group / par(BLOCKS) %% par(SLICES) * SLICE;\n"
    "    head = group / par(BLOCKS) / par(SLICES);\n"
    "    begin(head / par(GROUP));\n"
    "    let lse = lse_of_four(query);\n"
    "    var sum = vec4<f32>();\n"
    "%s"
    "    let n = most_seen(min(first + 31u, par(TQ) - 1u));\n"
    "    for (var key = 0u; key < n; key += 32u) {\n"
    "        p = mat4x4<f32>(); dp = mat4x4<f32>();\n"
    "        for (var part = 0u; part < par(PARTS); part++) {\n"
    "            load_q(first, part * 32u, local); load_k(key, part * 32u, local); load_v(key, part * 32u, local);\n"
    "            if (key == 0u || par(PARTS) > 1u) { load_g(first, part * 32u, local); }\n"
    "            workgroupBarrier();\n"
    "            both_dots(y, x);\n"
    "            workgroupBarrier();\n"
    "        }\n"
    "        let k = key + 4u * x;\n"
    "        p = mat4x4<f32>(probabilities(p[0], query, k, lse.x), probabilities(p[1], query + 1u, k, lse.y),\n"
    "                        probabilities(p[2], query + 2u, k, lse.z), probabilities(p[3], query + 3u, k, lse.w));\n"
    "        dp = each(each(dp, factors(query, k)), p);\n"
    "        sum += vec4<f32>(total(dp[0]), total(dp[1]), total(dp[2]), total(dp[3]));\n"
    "        keep(y, x, 0u, dp); keep(y, x, 3u, p);\n"
    "%s"
    "    }\n"
    "    t[local] = sum;\n"
    "    workgroupBarrier();\n"
    "    sum = vec4<f32>();\n"
    "    for (var i = 0u; i < 8u; i++) { sum += t[y * 8u + i]; }\n"
    "    if (x == 0u && slice == 0u) {\n"
    "        let to = head * (par(BLOCKS) * 32u) + query;\n"
    "        set_tmp(to, bitcast<u32>(sum.x)); set_tmp(to + 1u, bitcast<u32>(sum.y));\n"
    "        set_tmp(to + 2u, bitcast<u32>(sum.z)); set_tmp(to + 3u, bitcast<u32>(sum.w));\n"
    "    }\n"
    "    let out_at = head_at(AT6, head);\n"
    "%s"
    "}\n";

static const char queries_mix[] =
    "        if (par(PARTS) > 1u) { load_k(key, (slice + #u) * 32u, local); }\n"
    "        workgroupBarrier();\n"
    "        for (var i = 0u; i < steps / 4u; i++) { let s = mix(y, x, 3u * i, 1u, u#); u# = w#; w# = s; }\n"
    "        workgroupBarrier();\n";

/* dk = sum of dS q, dv = sum of weights g, over the queries of all heads that look at these keys. In registers a tile is
   keys by queries; turned, while it is looked at query by query. */
static const char keys_kernel_text[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let x = local %% 8u; let y = local / 8u;\n"
    "    let first = group %% par(BLOCKS) * 32u; let key = first + 4u * y;\n"
    "    let slice = group / par(BLOCKS) %% par(SLICES) * SLICE; let kv = group / par(BLOCKS) / par(SLICES);\n"
    "%s"
    "    for (var h = 0u; h < par(GROUP); h++) {\n"
    "        head = kv * par(GROUP) + h;\n"
    "        begin(kv);\n"
    "        for (var queries = select(first, 0u, par(REACH) > 1u); queries < par(TQ); queries += 32u) {\n"
    "            p = mat4x4<f32>(); dp = mat4x4<f32>();\n"
    "            for (var part = 0u; part < par(PARTS); part++) {\n"
    "                load_k(first, part * 32u, local); load_q(queries, part * 32u, local);\n"
    "                load_v(first, part * 32u, local); load_g(queries, part * 32u, local);\n"
    "                workgroupBarrier();\n"
    "                both_dots(y, x);\n"
    "                workgroupBarrier();\n"
    "            }\n"
    "            p = transpose(p); dp = transpose(dp);\n"
    "            let query = queries + 4u * x; let lse = lse_of_four(query);\n"
    "            p = mat4x4<f32>(probabilities(p[0], query, key, lse.x), probabilities(p[1], query + 1u, key, lse.y),\n"
    "                            probabilities(p[2], query + 2u, key, lse.z), probabilities(p[3], query + 3u, key, lse.w));\n"
    "            let f = factors(query, key);\n"
    "            dp = each(dp, f);\n"
    "            dp = mat4x4<f32>(slope(p[0], dp[0], query), slope(p[1], dp[1], query + 1u), slope(p[2], dp[2], query + 2u),\n"
    "                             slope(p[3], dp[3], query + 3u));\n"
    "            p = each(p, f);\n"
    "            keep(y, x, 0u, transpose(dp)); keep(y, x, 2u, transpose(p));\n"
    "%s"
    "        }\n"
    "    }\n"
    "    let k_to = head_at(AT7, kv); let v_to = head_at(AT8, kv);\n"
    "%s"
    "}\n"
    "fn slope(p: vec4<f32>, dp: vec4<f32>, query: u32) -> vec4<f32> {\n"
    "    if (query >= tq) { return vec4<f32>(); }\n"
    "    let sum = bitcast<f32>(tmp(head * ((tq + 31u) / 32u * 32u) + query));\n"
    "    return p * (dp - vec4<f32>(sum)) * alpha;\n"
    "}\n";

static const char keys_mix[] =
    "            if (par(PARTS) > 1u) {\n"
    "                load_q(queries, (slice + #u) * 32u, local); load_g(queries, (slice + #u) * 32u, local);\n"
    "            }\n"
    "            workgroupBarrier();\n"
    "            for (var i = 0u; i < steps / 4u; i++) { let s = mix(y, x, 2u * i, 2u * i + 1u, u#); u# = w#; w# = s; }\n"
    "            workgroupBarrier();\n";

static const char sums_declared[] = "    var u# = mat4x4<f32>(); var w# = mat4x4<f32>();\n";

static const char *queries_code(cn__gpu_call *c, const char *common, int parts)
{
    const char *kernel = cn__gpu_text(
        c, queries_text, for_each(c, parts, sums_declared), for_each(c, parts, queries_mix),
        for_each(c, parts,
                 "    store(out_at, query, (slice + #u) * 32u + 4u * x, (u# - by_rows(w#, sum)) * alpha);\n"));
    return cn__gpu_text(c, "%s%s%s%s%s%s%s", common, loader(c, "load_q", 0, "tq", "E", reader(c, 1, "q_at", "row")),
                        loader(c, "load_k", 1, "tk", "E", reader(c, 2, "k_at", "row")),
                        loader(c, "load_g", 2, "tq", "EV", reader(c, 0, "g_at", "row")),
                        loader(c, "load_v", 3, "tk", "EV", reader(c, 3, "v_at", "row")),
                        storer(c, "store", 0, "TQ", "E"), piece(kernel));
}

static const char *keys_code(cn__gpu_call *c, const char *common, int parts)
{
    const char *kernel =
        cn__gpu_text(c, keys_kernel_text, for_each(c, parts, sums_declared), for_each(c, parts, keys_mix),
                     for_each(c, parts,
                              "    store_k(k_to, key, (slice + #u) * 32u + 4u * x, u#);\n"
                              "    store_v(v_to, key, (slice + #u) * 32u + 4u * x, w#);\n"));
    return cn__gpu_text(c, "%s%s%s%s%s%s%s%s", common, loader(c, "load_k", 0, "tk", "E", reader(c, 2, "k_at", "row")),
                        loader(c, "load_q", 1, "tq", "E", reader(c, 1, "q_at", "row")),
                        loader(c, "load_v", 2, "tk", "EV", reader(c, 3, "v_at", "row")),
                        loader(c, "load_g", 3, "tq", "EV", reader(c, 0, "g_at", "row")),
                        storer(c, "store_k", 1, "TK", "E"), storer(c, "store_v", 2, "TK", "EV"), piece(kernel));
}

static void backward_params(cn__gpu_call *c, const sizes *s, int64_t blocks, int64_t slices, int64_t widest)
{
    const cn_array *q = &c->in[1], *k = &c->in[2];
    common_params(c, s, blocks, slices, parts_of(widest, TILE));
    for (int i = 0; i < c->n_in; i++) table_param(c, s, &c->in[i], i == 5 ? 1 : 2, i == 2 || i == 3 ? k : q);
    for (int i = 0; i < c->n_out; i++) table_param(c, s, &c->out[i], 2, i ? k : q);
}

bool cn__attention_backward_gpu(cn__gpu_call *c)
{
    const sizes s = sizes_of(c, 1);
    const int64_t widest = s.e > s.ev ? s.e : s.ev, most = BACKWARD_SLICE * TILE, slices = parts_of(widest, most);
    const int64_t query_blocks = parts_of(s.tq, TILE), key_blocks = parts_of(s.tk, TILE);
    const int parts = (int)parts_of(widest < most ? widest : most, TILE);
    const char *tables = "";
    for (int i = 0; i < c->n_in + c->n_out; i++)
        tables = piece(cn__gpu_text(c, "%sconst AT%d = %du; ", tables, i, table_of(i)));
    const char *common =
        piece(cn__gpu_text(c, "%s%sconst SLICE = %du;\n%s%s%s%s%s%s", numbers, tables, BACKWARD_SLICE, keys_text,
                           scores_text, products_text, mask_text(c, 4), dropout_text, backward_text));
    cn__gpu_scratch(c, s.heads * query_blocks * TILE);
    backward_params(c, &s, query_blocks, slices, widest);
    if (!cn__gpu_run_groups(c, &(cn__gpu_launch){ .name = "attention_backward, queries",
                                                  .code = queries_code(c, common, parts),
                                                  .groups = s.tq ? s.heads * slices * query_blocks : 0,
                                                  .size = SIZE,
                                                  .group_bytes = 4 * TILE_BYTES }))
        return false;
    backward_params(c, &s, key_blocks, slices, widest);
    return cn__gpu_run_groups(c, &(cn__gpu_launch){ .name = "attention_backward, keys",
                                                    .code = keys_code(c, common, parts),
                                                    .groups = s.tk ? s.kv_heads * slices * key_blocks : 0,
                                                    .size = SIZE,
                                                    .group_bytes = 4 * TILE_BYTES });
}

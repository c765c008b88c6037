// Attention, out = softmax(q kᵀ scale + mask) v, and its backward pass. The scores (Tq, Tk) are never stored.
//
//   Tiles     A workgroup has 64 invocations (y, x), 8 by 8. Its tiles of 32 × 32 numbers lie in workgroup memory; a
//             row is 8 vec4. In rows 4 y .. 4 y + 3 vec4 number c stands at place c ^ y, so that invocations that read
//             a column of vec4 read from different banks. Invocation (y, x) computes rows 4 y .. 4 y + 3 and columns
//             4 x .. 4 x + 3 of a tile, a mat4x4 whose i-th vec4 is row i. A head wider than a tile is read in parts of
//             32 columns; the last part is filled up with zeros.
//   Forward   One workgroup for 32 queries goes through the keys, with a running maximum and sum for each row.
//   Backward  Two launches. First, one workgroup for 32 queries sums p dp k, p k and p dp. These sums yield dq; the sum
//             of p dp is stored in scratch memory. Then one workgroup for 32 keys goes through the queries that see
//             these keys, for dk and dv. No workgroup adds to another's results: their order does not matter.
//   Slices    A workgroup holds at most SLICE parts of 32 columns of the result in registers. Wider heads are cut into
//             several slices, with a workgroup for each.
//
// Operands: forward q, k, v, mask; cached q, k, v and the caches of keys and values; backward g, q, k, v, mask, lse.
// Parameters that are read often are copied to variables, because reading one is slow on some drivers. The bounds of
// inner loops are parameters, so that compilers do not unroll the loops: unrolled, the loops take long to compile.
//! hole cached = true | false
//! hole mask = none | bool | float
//! hole parts = 1 | 2 | 3 | 4
//! hole q = 0 | 1
//! hole k = 1 | 2
//! hole v = 2 | 3
//! hole mask_operand = 3 | 4
//! hole result = 4 | 5

//! part numbers
//! uses par
// The numbers of the parameters. From AT0 on, a table for each operand and result: the strides of rows and columns,
// then size and stride of each outer axis, the last axis first.
const TQ = 0u;
const TK = 1u;
const E = 2u;
const EV = 3u;
const GROUP = 4u;
const OUTER = 5u;
const BLOCKS = 6u;
const SLICES = 7u;
const PARTS = 8u;
const STEPS = 9u;
const ROUNDS = 10u;
const REACH = 11u;
var<private> tq: u32;
var<private> tk: u32;
var<private> reach: u32;
var<private> steps: u32;
var<private> alpha: f32;
var<private> head: u32;
var<private> q_at: u32;
var<private> k_at: u32;
var<private> v_at: u32;
var<private> mask_at: u32;
var<private> mask_row: u32;
var<private> mask_col: u32;
const AT0 = 12u;
const AT1 = 26u;
const AT2 = 40u;
const AT3 = 54u;
const AT4 = 68u;
const AT5 = 82u;
const AT6 = 96u;
const AT7 = 110u;
const AT8 = 124u;
// The offset of head number `index`, from the table of an operand or result.
fn head_at(table: u32, index: u32) -> u32 {
    var at = 0u; var rest = index; let n = par(OUTER);
    for (var d = 0u; d < n; d++) {
        let size = par(table + 2u + 2u * d);
        at += rest % size * par(table + 3u + 2u * d); rest /= size;
    }
    return at;
}

//! part tiles
var<workgroup> t: array<vec4<f32>, TILES * 256u>;

//! part products
//! uses numbers tiles
// dots: sums + a bᵀ; mix: sums + a b, for the invocation's rows and columns of the tiles a and b.
// keep: stores the invocation's four rows to a tile.
fn dots(y: u32, x: u32, a: u32, b: u32, sums: mat4x4<f32>) -> mat4x4<f32> {
    var s0 = sums[0]; var s1 = sums[1]; var s2 = sums[2]; var s3 = sums[3];
    for (var k = 0u; k < steps; k++) {
        let i = a * 256u + y * 32u + (k ^ y); let j = b * 256u + x * 32u + (k ^ x);
        let m = mat4x4<f32>(t[j], t[j + 8u], t[j + 16u], t[j + 24u]);
        s0 += t[i] * m; s1 += t[i + 8u] * m; s2 += t[i + 16u] * m; s3 += t[i + 24u] * m;
    }
    return mat4x4<f32>(s0, s1, s2, s3);
}
fn mix(y: u32, x: u32, a: u32, b: u32, sums: mat4x4<f32>) -> mat4x4<f32> {
    var s0 = sums[0]; var s1 = sums[1]; var s2 = sums[2]; var s3 = sums[3];
    for (var k = 0u; k < steps; k++) {
        let i = a * 256u + y * 32u + (k ^ y); let j = b * 256u + k * 32u + (x ^ k);
        let m = mat4x4<f32>(t[j], t[j + 8u], t[j + 16u], t[j + 24u]);
        s0 += m * t[i]; s1 += m * t[i + 8u]; s2 += m * t[i + 16u]; s3 += m * t[i + 24u];
    }
    return mat4x4<f32>(s0, s1, s2, s3);
}
fn keep(y: u32, x: u32, tile: u32, m: mat4x4<f32>) {
    let i = tile * 256u + y * 32u + (x ^ y);
    t[i] = m[0]; t[i + 8u] = m[1]; t[i + 16u] = m[2]; t[i + 24u] = m[3];
}

//! part mask
//! uses numbers
//! if mask none
const MASKS = false;
fn begin_mask() { }
fn masked(s: f32, query: u32, key: u32) -> f32 { return s; }
//! else
//! uses par in{{mask_operand}}
const MASKS = true;
fn begin_mask() {
    mask_at = head_at(AT{{mask_operand}}, head);
    mask_row = par(AT{{mask_operand}});
    mask_col = par(AT{{mask_operand}} + 1u);
}
fn masked(s: f32, query: u32, key: u32) -> f32 {
    let m = in{{mask_operand}}(mask_at + query * mask_row + key * mask_col);
//! if mask bool
    return select(UNSEEN, s, m != 0);
//! else
    if (bitcast<u32>(m) == 0xff800000u) { return UNSEEN; }
    return select(s + m, LEAST, s + m < LEAST);
//! end
}
//! end

//! part scores
//! uses numbers mask keys
// Scores of four keys. A score that does not count is UNSEEN, not -inf, about which WGSL promises nothing. All other
// scores are LEAST or more.
const LEAST = -3.4028e38; const UNSEEN = -3.4028234e38;
fn scores(products: vec4<f32>, query: u32, key: u32) -> vec4<f32> {
    let n = select(0u, seen(query), query < tq); var s = products * alpha;
    if (MASKS) {
        if (key < n) { s.x = masked(s.x, query, key); }
        if (key + 1u < n) { s.y = masked(s.y, query, key + 1u); }
        if (key + 2u < n) { s.z = masked(s.z, query, key + 2u); }
        if (key + 3u < n) { s.w = masked(s.w, query, key + 3u); }
    }
    return select(vec4<f32>(UNSEEN), s, vec4<u32>(key, key + 1u, key + 2u, key + 3u) < vec4<u32>(n));
}
fn total(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn largest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn each(m: mat4x4<f32>, f: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(m[0] * f[0], m[1] * f[1], m[2] * f[2], m[3] * f[3]);
}
fn by_rows(m: mat4x4<f32>, v: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(m[0] * v.x, m[1] * v.y, m[2] * v.z, m[3] * v.w);
}

//! part keys
//! uses par numbers
// seen: how many keys a query sees. With REACH 1 (causal) it sees keys 0 .. query, otherwise all. With caches, the
// first `used` keys are those of the cache.
//! if cached
//! uses argu
var<private> keys_at: u32;
var<private> values_at: u32;
var<private> used: u32;
fn seen(query: u32) -> u32 { return min(used + query + 1u, tk); }
fn most_seen(query: u32) -> u32 { return argu(0u) + min(query + 1u, par(TK)); }
//! else
fn seen(query: u32) -> u32 { return min(query + reach, tk); }
fn most_seen(query: u32) -> u32 { return min(query + par(REACH), par(TK)); }
//! end

//! part dropout
// The dropout mask (heads, Tq, Tk) for four queries and four keys. One block of Philox yields four elements.
//! if cached
fn factors(query: u32, key: u32) -> mat4x4<f32> {
    let ones = vec4<f32>(1.0); return mat4x4<f32>(ones, ones, ones, ones);
}
//! else
//! uses par arg argu argh numbers
fn wide_product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu); let mid = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let more = (a & 0xffffu) * (b >> 16u) + (mid & 0xffffu);
    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (mid >> 16u) + (more >> 16u));
}
fn random_block(low: u32, high: u32) -> vec4<u32> {
    var c = vec4<u32>(low, high, argu(3u), argh(3u)); var key = vec2<u32>(argu(2u), argh(2u));
    let rounds = par(ROUNDS);
    for (var round = 0u; round < rounds; round++) {
        let p = wide_product(0xD2511F53u, c.x); let q = wide_product(0xCD9E8D57u, c.z);
        c = vec4<u32>(q.y ^ c.y ^ key.x, q.x, p.y ^ c.w ^ key.y, p.x);
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}
fn factors_of(query: u32, key: u32) -> vec4<f32> {
    let row = wide_product(head * tq + query, tk); let low = row.x + key;
    let high = row.y + select(0u, 1u, low < key);
    let block = (low >> 2u) | (high << 30u); let lane = low & 3u;
    var w = random_block(block, high >> 2u);
    if (lane != 0u) {
        let n = random_block(block + 1u, (high >> 2u) + select(0u, 1u, block == 0xffffffffu));
        if (lane == 1u) { w = vec4<u32>(w.yzw, n.x); }
        else if (lane == 2u) { w = vec4<u32>(w.zw, n.xy); }
        else { w = vec4<u32>(w.w, n.xyz); }
    }
    let unit = vec4<f32>(w >> vec4<u32>(8u)) * 5.9604644775390625e-8;
    let kept = select(0.0, 1.0 / (1.0 - arg(1u)), arg(1u) < 1.0);
    return select(vec4<f32>(kept), vec4<f32>(), unit < vec4<f32>(arg(1u)));
}
// The rows of m rotate, so that no row is indexed by a variable.
fn factors(query: u32, key: u32) -> mat4x4<f32> {
    let ones = vec4<f32>(1.0); var m = mat4x4<f32>(ones, ones, ones, ones);
    if (!(arg(1u) > 0.0)) { return m; }
    for (var i = 0u; i < steps / 2u; i++) { m = mat4x4<f32>(m[1], m[2], m[3], factors_of(query + i, key)); }
    return m;
}
//! end

// load_*: 32 rows from `first` on and 32 columns from `column` on, to a tile. left: how many columns follow column
// `col`.

//! part load_q
//! uses in{{q}} par numbers tiles
fn load_q(first: u32, column: u32, local: u32) {
    let columns = par(E); let rows = tq;
    for (var i = local; i < 256u; i += 64u) {
        let row = first + i / 8u; let col = column + i % 8u * 4u;
        var v = vec4<f32>();
        if (row < rows && col < columns) {
            let left = columns - col - 1u;
            let across = par(AT{{q}} + 1u); let start = q_at + row * par(AT{{q}}) + col * across;
            v = vec4<f32>(in{{q}}(start), in{{q}}(start + min(1u, left) * across),
                          in{{q}}(start + min(2u, left) * across), in{{q}}(start + min(3u, left) * across));
            v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(left));
        }
        t[TILE_Q * 256u + i / 8u * 8u + ((i % 8u) ^ (i / 32u))] = v;
    }
}

//! part load_k
//! uses in{{k}} par numbers tiles keys
//! if cached
//! uses in3
//! end
fn load_k(first: u32, column: u32, local: u32) {
    let columns = par(E); let rows = tk;
    for (var i = local; i < 256u; i += 64u) {
        let row = first + i / 8u; let col = column + i % 8u * 4u;
        var v = vec4<f32>();
        if (row < rows && col < columns) {
            let left = columns - col - 1u;
//! if cached
            if (row < used) {
                let across = par(AT3 + 1u); let start = keys_at + row * par(AT3) + col * across;
                v = vec4<f32>(in3(start), in3(start + min(1u, left) * across),
                              in3(start + min(2u, left) * across), in3(start + min(3u, left) * across));
            } else {
                let across = par(AT{{k}} + 1u); let start = k_at + (row - used) * par(AT{{k}}) + col * across;
                v = vec4<f32>(in{{k}}(start), in{{k}}(start + min(1u, left) * across),
                              in{{k}}(start + min(2u, left) * across), in{{k}}(start + min(3u, left) * across));
            }
//! else
            let across = par(AT{{k}} + 1u); let start = k_at + row * par(AT{{k}}) + col * across;
            v = vec4<f32>(in{{k}}(start), in{{k}}(start + min(1u, left) * across),
                          in{{k}}(start + min(2u, left) * across), in{{k}}(start + min(3u, left) * across));
//! end
            v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(left));
        }
        t[TILE_K * 256u + i / 8u * 8u + ((i % 8u) ^ (i / 32u))] = v;
    }
}

//! part load_v
//! uses in{{v}} par numbers tiles keys
//! if cached
//! uses in4
//! end
fn load_v(first: u32, column: u32, local: u32) {
    let columns = par(EV); let rows = tk;
    for (var i = local; i < 256u; i += 64u) {
        let row = first + i / 8u; let col = column + i % 8u * 4u;
        var v = vec4<f32>();
        if (row < rows && col < columns) {
            let left = columns - col - 1u;
//! if cached
            if (row < used) {
                let across = par(AT4 + 1u); let start = values_at + row * par(AT4) + col * across;
                v = vec4<f32>(in4(start), in4(start + min(1u, left) * across),
                              in4(start + min(2u, left) * across), in4(start + min(3u, left) * across));
            } else {
                let across = par(AT{{v}} + 1u); let start = v_at + (row - used) * par(AT{{v}}) + col * across;
                v = vec4<f32>(in{{v}}(start), in{{v}}(start + min(1u, left) * across),
                              in{{v}}(start + min(2u, left) * across), in{{v}}(start + min(3u, left) * across));
            }
//! else
            let across = par(AT{{v}} + 1u); let start = v_at + row * par(AT{{v}}) + col * across;
            v = vec4<f32>(in{{v}}(start), in{{v}}(start + min(1u, left) * across),
                          in{{v}}(start + min(2u, left) * across), in{{v}}(start + min(3u, left) * across));
//! end
            v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(left));
        }
        t[TILE_V * 256u + i / 8u * 8u + ((i % 8u) ^ (i / 32u))] = v;
    }
}

// store_*: four rows of a result from `row` on, four columns from `col` on.

//! part store_rows
//! uses out0 par numbers
fn store_rows_row(at: u32, row: u32, col: u32, v: vec4<f32>) {
    let across = par(AT{{result}} + 1u); let to = at + row * par(AT{{result}}) + col * across;
    let columns = par(EV);
    if (row >= par(TQ)) { return; }
    if (col < columns) { out0(to, v.x); }
    if (col + 1u < columns) { out0(to + across, v.y); }
    if (col + 2u < columns) { out0(to + 2u * across, v.z); }
    if (col + 3u < columns) { out0(to + 3u * across, v.w); }
}
fn store_rows(at: u32, row: u32, col: u32, m: mat4x4<f32>) {
    store_rows_row(at, row, col, m[0]); store_rows_row(at, row + 1u, col, m[1]);
    store_rows_row(at, row + 2u, col, m[2]); store_rows_row(at, row + 3u, col, m[3]);
}

//! kernel forward
//! uses par arg numbers tiles products mask scores keys dropout load_q load_k load_v store_rows
//! if cached
//! uses argu
//! end
//! workgroup 13312
const TILES = 3u;
const TILE_Q = 0u;
const TILE_K = 1u;
const TILE_V = 2u;
const SLICE = 4u;
var<workgroup> rows: array<vec4<f32>, 64>;
fn weights(s: vec4<f32>, top: f32) -> vec4<f32> {
    return select(exp(s - vec4<f32>(top)), vec4<f32>(), s <= vec4<f32>(UNSEEN));
}
// A query that sees no key has sum 0: its result is 0.
fn finished(v: vec4<f32>, sum: f32) -> vec4<f32> { return select(v / sum, vec4<f32>(), sum == 0.0); }
fn store(at: u32, row: u32, col: u32, m: mat4x4<f32>, sum: vec4<f32>) {
    store_rows(at, row, col, mat4x4<f32>(finished(m[0], sum.x), finished(m[1], sum.y), finished(m[2], sum.z),
                                         finished(m[3], sum.w)));
}
fn begin() {
    let kv = head / par(GROUP);
//! if cached
    used = argu(0u); tq = par(TQ); tk = par(TK) + used; steps = par(STEPS); alpha = arg(1u);
    q_at = head_at(AT0, head); k_at = head_at(AT1, kv); v_at = head_at(AT2, kv);
    keys_at = head_at(AT3, kv); values_at = head_at(AT4, kv);
//! else
    tq = par(TQ); tk = par(TK); reach = par(REACH); steps = par(STEPS); alpha = arg(0u);
    q_at = head_at(AT0, head); k_at = head_at(AT1, kv); v_at = head_at(AT2, kv);
    begin_mask();
//! end
}
fn store_sums(row: u32, top: vec4<f32>, sum: vec4<f32>) {
//! if cached
//! else
//! uses out1 infinity
    let lse = select(top + log(sum), vec4<f32>(infinity()), sum == vec4<f32>());
    let to = head * tq + row;
    if (row < tq) { out1(to, lse.x); }
    if (row + 1u < tq) { out1(to + 1u, lse.y); }
    if (row + 2u < tq) { out1(to + 2u, lse.z); }
    if (row + 3u < tq) { out1(to + 3u, lse.w); }
//! end
}
// Tiles: 0 queries; 1 keys, later weights; 2 values.
fn kernel(group: u32, local: u32) {
    let x = local % 8u; let y = local / 8u;
    let first = group % par(BLOCKS) * 32u; let query = first + 4u * y;
    let slice = group / par(BLOCKS) % par(SLICES) * SLICE;
    head = group / par(BLOCKS) / par(SLICES);
    begin();
    var top = vec4<f32>(UNSEEN); var sum = vec4<f32>();
//! repeat n parts
    var o{{n}} = mat4x4<f32>();
//! end
    let n = most_seen(min(first + 31u, par(TQ) - 1u));
    for (var key = 0u; key < n; key += 32u) {
        var s = mat4x4<f32>();
        for (var part = 0u; part < par(PARTS); part++) {
            if (key == 0u || par(PARTS) > 1u) { load_q(first, part * 32u, local); }
            load_k(key, part * 32u, local);
            if (part == 0u) { load_v(key, slice * 32u, local); }
            workgroupBarrier();
            s = dots(y, x, 0u, 1u, s);
            if (part + 1u == par(PARTS)) {
                let k = key + 4u * x;
                s = mat4x4<f32>(scores(s[0], query, k), scores(s[1], query + 1u, k),
                                scores(s[2], query + 2u, k), scores(s[3], query + 3u, k));
                rows[local] = vec4<f32>(largest(s[0]), largest(s[1]), largest(s[2]), largest(s[3]));
            }
            workgroupBarrier();
        }
        var next = top;
        for (var i = 0u; i < 8u; i++) { next = max(next, rows[y * 8u + i]); }
        let fade = select(exp(top - next), vec4<f32>(), top <= vec4<f32>(UNSEEN));
        top = next;
        let w = mat4x4<f32>(weights(s[0], top.x), weights(s[1], top.y), weights(s[2], top.z),
                            weights(s[3], top.w));
        sum = sum * fade + vec4<f32>(total(w[0]), total(w[1]), total(w[2]), total(w[3]));
        keep(y, x, 1u, each(w, factors(query, key + 4u * x)));
//! repeat n parts
        if ({{n}}u > 0u) { load_v(key, (slice + {{n}}u) * 32u, local); }
        workgroupBarrier();
        o{{n}} = mix(y, x, 1u, 2u, by_rows(o{{n}}, fade));
        workgroupBarrier();
//! end
    }
    rows[local] = sum;
    workgroupBarrier();
    sum = vec4<f32>();
    for (var i = 0u; i < 8u; i++) { sum += rows[y * 8u + i]; }
    if (x == 0u && slice == 0u) { store_sums(query, top, sum); }
    let out_at = head_at(AT{{result}}, head);
//! repeat n parts
    store(out_at, query, (slice + {{n}}u) * 32u + 4u * x, o{{n}}, sum);
//! end
}

//! part load_g
//! uses in0 par numbers tiles backward
fn load_g(first: u32, column: u32, local: u32) {
    let columns = par(EV); let rows = tq;
    for (var i = local; i < 256u; i += 64u) {
        let row = first + i / 8u; let col = column + i % 8u * 4u;
        var v = vec4<f32>();
        if (row < rows && col < columns) {
            let left = columns - col - 1u;
            let across = par(AT0 + 1u); let start = g_at + row * par(AT0) + col * across;
            v = vec4<f32>(in0(start), in0(start + min(1u, left) * across),
                          in0(start + min(2u, left) * across), in0(start + min(3u, left) * across));
            v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(left));
        }
        t[TILE_G * 256u + i / 8u * 8u + ((i % 8u) ^ (i / 32u))] = v;
    }
}

//! part store_dq
//! uses out0 par numbers
fn store_dq_row(at: u32, row: u32, col: u32, v: vec4<f32>) {
    let across = par(AT6 + 1u); let to = at + row * par(AT6) + col * across;
    let columns = par(E);
    if (row >= par(TQ)) { return; }
    if (col < columns) { out0(to, v.x); }
    if (col + 1u < columns) { out0(to + across, v.y); }
    if (col + 2u < columns) { out0(to + 2u * across, v.z); }
    if (col + 3u < columns) { out0(to + 3u * across, v.w); }
}
fn store_dq(at: u32, row: u32, col: u32, m: mat4x4<f32>) {
    store_dq_row(at, row, col, m[0]); store_dq_row(at, row + 1u, col, m[1]);
    store_dq_row(at, row + 2u, col, m[2]); store_dq_row(at, row + 3u, col, m[3]);
}

//! part store_dk
//! uses out1 par numbers
fn store_dk_row(at: u32, row: u32, col: u32, v: vec4<f32>) {
    let across = par(AT7 + 1u); let to = at + row * par(AT7) + col * across;
    let columns = par(E);
    if (row >= par(TK)) { return; }
    if (col < columns) { out1(to, v.x); }
    if (col + 1u < columns) { out1(to + across, v.y); }
    if (col + 2u < columns) { out1(to + 2u * across, v.z); }
    if (col + 3u < columns) { out1(to + 3u * across, v.w); }
}
fn store_dk(at: u32, row: u32, col: u32, m: mat4x4<f32>) {
    store_dk_row(at, row, col, m[0]); store_dk_row(at, row + 1u, col, m[1]);
    store_dk_row(at, row + 2u, col, m[2]); store_dk_row(at, row + 3u, col, m[3]);
}

//! part store_dv
//! uses out2 par numbers
fn store_dv_row(at: u32, row: u32, col: u32, v: vec4<f32>) {
    let across = par(AT8 + 1u); let to = at + row * par(AT8) + col * across;
    let columns = par(EV);
    if (row >= par(TK)) { return; }
    if (col < columns) { out2(to, v.x); }
    if (col + 1u < columns) { out2(to + across, v.y); }
    if (col + 2u < columns) { out2(to + 2u * across, v.z); }
    if (col + 3u < columns) { out2(to + 3u * across, v.w); }
}
fn store_dv(at: u32, row: u32, col: u32, m: mat4x4<f32>) {
    store_dv_row(at, row, col, m[0]); store_dv_row(at, row + 1u, col, m[1]);
    store_dv_row(at, row + 2u, col, m[2]); store_dv_row(at, row + 3u, col, m[3]);
}

//! part backward
//! uses in5 par arg numbers mask scores keys products
// Tiles 0 and 1 are multiplied to the scores, 2 and 3 to dp. Later p and dp replace tiles that are no longer read. A
// loop computes both products, so that the product is compiled once.
const TILES = 4u;
const SLICE = 2u;
var<private> g_at: u32;
var<private> lse_at: u32;
var<private> p: mat4x4<f32>;
var<private> dp: mat4x4<f32>;
fn both_dots(y: u32, x: u32) {
    for (var i = 0u; i < steps / 4u; i++) { let s = dots(y, x, 2u * i, 2u * i + 1u, p); p = dp; dp = s; }
}
fn begin(kv: u32) {
    tq = par(TQ); tk = par(TK); reach = par(REACH); steps = par(STEPS); alpha = arg(0u);
    g_at = head_at(AT0, head); q_at = head_at(AT1, head); k_at = head_at(AT2, kv); v_at = head_at(AT3, kv);
    lse_at = head_at(AT5, head); begin_mask();
}
fn lse_of(query: u32) -> f32 {
    if (query >= tq) { return 0.0; }
    return in5(lse_at + query * par(AT5));
}
fn lse_of_four(query: u32) -> vec4<f32> {
    return vec4<f32>(lse_of(query), lse_of(query + 1u), lse_of(query + 2u), lse_of(query + 3u));
}
// exp(score - lse) of four keys; 0 for scores that do not count.
fn probabilities(products: vec4<f32>, query: u32, key: u32, lse: f32) -> vec4<f32> {
    let s = scores(products, query, key);
    return select(exp(s - vec4<f32>(lse)), vec4<f32>(), s <= vec4<f32>(UNSEEN));
}

//! kernel backward_queries
//! uses par set_tmp numbers tiles products scores keys dropout backward load_q load_k load_v load_g store_dq
//! workgroup 16384
// dq = scale (sum of p dp k - (sum of p dp) (sum of p k)); u and w are these sums, for each part of a slice.
const TILE_Q = 0u;
const TILE_K = 1u;
const TILE_G = 2u;
const TILE_V = 3u;
fn kernel(group: u32, local: u32) {
    let x = local % 8u; let y = local / 8u;
    let first = group % par(BLOCKS) * 32u; let query = first + 4u * y;
    let slice = group / par(BLOCKS) % par(SLICES) * SLICE;
    head = group / par(BLOCKS) / par(SLICES);
    begin(head / par(GROUP));
    let lse = lse_of_four(query);
    var sum = vec4<f32>();
//! repeat n parts
    var u{{n}} = mat4x4<f32>(); var w{{n}} = mat4x4<f32>();
//! end
    let n = most_seen(min(first + 31u, par(TQ) - 1u));
    for (var key = 0u; key < n; key += 32u) {
        p = mat4x4<f32>(); dp = mat4x4<f32>();
        for (var part = 0u; part < par(PARTS); part++) {
            load_q(first, part * 32u, local); load_k(key, part * 32u, local); load_v(key, part * 32u, local);
            if (key == 0u || par(PARTS) > 1u) { load_g(first, part * 32u, local); }
            workgroupBarrier();
            both_dots(y, x);
            workgroupBarrier();
        }
        let k = key + 4u * x;
        p = mat4x4<f32>(probabilities(p[0], query, k, lse.x), probabilities(p[1], query + 1u, k, lse.y),
                        probabilities(p[2], query + 2u, k, lse.z), probabilities(p[3], query + 3u, k, lse.w));
        dp = each(each(dp, factors(query, k)), p);
        sum += vec4<f32>(total(dp[0]), total(dp[1]), total(dp[2]), total(dp[3]));
        keep(y, x, 0u, dp); keep(y, x, 3u, p);
//! repeat n parts
        if (par(PARTS) > 1u) { load_k(key, (slice + {{n}}u) * 32u, local); }
        workgroupBarrier();
        for (var i = 0u; i < steps / 4u; i++) { let s = mix(y, x, 3u * i, 1u, u{{n}}); u{{n}} = w{{n}}; w{{n}} = s; }
        workgroupBarrier();
//! end
    }
    t[local] = sum;
    workgroupBarrier();
    sum = vec4<f32>();
    for (var i = 0u; i < 8u; i++) { sum += t[y * 8u + i]; }
    if (x == 0u && slice == 0u) {
        let to = head * (par(BLOCKS) * 32u) + query;
        set_tmp(to, bitcast<u32>(sum.x)); set_tmp(to + 1u, bitcast<u32>(sum.y));
        set_tmp(to + 2u, bitcast<u32>(sum.z)); set_tmp(to + 3u, bitcast<u32>(sum.w));
    }
    let out_at = head_at(AT6, head);
//! repeat n parts
    store_dq(out_at, query, (slice + {{n}}u) * 32u + 4u * x, (u{{n}} - by_rows(w{{n}}, sum)) * alpha);
//! end
}

//! kernel backward_keys
//! uses par tmp numbers tiles products scores keys dropout backward load_q load_k load_v load_g store_dk store_dv
//! workgroup 16384
// dk = sum of dS q, dv = sum of weights g, over all queries that attend to these keys. A tile in registers is (keys,
// queries); it is transposed while it is processed query by query.
const TILE_K = 0u;
const TILE_Q = 1u;
const TILE_V = 2u;
const TILE_G = 3u;
fn slope(p: vec4<f32>, dp: vec4<f32>, query: u32) -> vec4<f32> {
    if (query >= tq) { return vec4<f32>(); }
    let sum = bitcast<f32>(tmp(head * ((tq + 31u) / 32u * 32u) + query));
    return p * (dp - vec4<f32>(sum)) * alpha;
}
fn kernel(group: u32, local: u32) {
    let x = local % 8u; let y = local / 8u;
    let first = group % par(BLOCKS) * 32u; let key = first + 4u * y;
    let slice = group / par(BLOCKS) % par(SLICES) * SLICE; let kv = group / par(BLOCKS) / par(SLICES);
//! repeat n parts
    var u{{n}} = mat4x4<f32>(); var w{{n}} = mat4x4<f32>();
//! end
    for (var h = 0u; h < par(GROUP); h++) {
        head = kv * par(GROUP) + h;
        begin(kv);
        for (var queries = select(first, 0u, par(REACH) > 1u); queries < par(TQ); queries += 32u) {
            p = mat4x4<f32>(); dp = mat4x4<f32>();
            for (var part = 0u; part < par(PARTS); part++) {
                load_k(first, part * 32u, local); load_q(queries, part * 32u, local);
                load_v(first, part * 32u, local); load_g(queries, part * 32u, local);
                workgroupBarrier();
                both_dots(y, x);
                workgroupBarrier();
            }
            p = transpose(p); dp = transpose(dp);
            let query = queries + 4u * x; let lse = lse_of_four(query);
            p = mat4x4<f32>(probabilities(p[0], query, key, lse.x), probabilities(p[1], query + 1u, key, lse.y),
                            probabilities(p[2], query + 2u, key, lse.z), probabilities(p[3], query + 3u, key, lse.w));
            let f = factors(query, key);
            dp = each(dp, f);
            dp = mat4x4<f32>(slope(p[0], dp[0], query), slope(p[1], dp[1], query + 1u), slope(p[2], dp[2], query + 2u),
                             slope(p[3], dp[3], query + 3u));
            p = each(p, f);
            keep(y, x, 0u, transpose(dp)); keep(y, x, 2u, transpose(p));
//! repeat n parts
            if (par(PARTS) > 1u) {
                load_q(queries, (slice + {{n}}u) * 32u, local); load_g(queries, (slice + {{n}}u) * 32u, local);
            }
            workgroupBarrier();
            for (var i = 0u; i < steps / 4u; i++) {
                let s = mix(y, x, 2u * i, 2u * i + 1u, u{{n}}); u{{n}} = w{{n}}; w{{n}} = s;
            }
            workgroupBarrier();
//! end
        }
    }
    let k_to = head_at(AT7, kv); let v_to = head_at(AT8, kv);
//! repeat n parts
    store_dk(k_to, key, (slice + {{n}}u) * 32u + 4u * x, u{{n}});
    store_dv(v_to, key, (slice + {{n}}u) * 32u + 4u * x, w{{n}});
//! end
}

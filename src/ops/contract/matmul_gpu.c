/* matmul on the GPU, in f32 (whole numbers in i32). Operands are read as they lie in memory: any strides.

   direct  a group of 8 invocations that run in step keeps 16 × 32 sums in registers: what one of them has read of a goes
           to the others by broadcast, there is no barrier. For drivers that are a CPU and run 8 invocations as a vector.
   tiled   a group of 16 × 16 invocations keeps 64 × 64 sums and shares slices of a and b, 16 long, in workgroup memory.
   plain   an invocation has one sum: for a few rows or a few columns.

   Where there would be too few groups the inner axis is cut into parts: sums of parts go to scratch memory, and a second
   launch adds them, always in the same order. Sizes and strides are parameters: a text serves all shapes. */
#include "gpu/kernel.h"
#include "gpu/variants.h"
#include "ops/contract/contract.h"
#include "ops/view/move.h"

typedef enum form { PLAIN, TILED, DIRECT } form; /* as gpu/variants.c numbers them */

typedef struct product {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    int axes; /* of the batch, the innermost first; neighbours that are walked as one are one */
    int64_t size[CN_MAX_DIMS], a[CN_MAX_DIMS], b[CN_MAX_DIMS];
    int64_t numel, parts;
} product;

/* ---- texts ---- */

/* Names of parameters, and where item `item` of the batch begins in a and b. */
static const char head[] =
    "fn m() -> u32 { return par(0u); }\nfn n() -> u32 { return par(1u); }\nfn inner() -> u32 { return par(2u); }\n"
    "fn a_row() -> u32 { return par(3u); }\nfn a_col() -> u32 { return par(4u); }\n"
    "fn b_row() -> u32 { return par(5u); }\nfn b_col() -> u32 { return par(6u); }\n"
    "fn numel() -> u32 { return par(7u); }\nfn parts() -> u32 { return par(8u); }\n"
    "fn first(item: u32) -> vec2<u32> {\n"
    "    var rest = item; var at = vec2<u32>(0u, 0u);\n"
    "    for (var d = 0u; d < par(11u); d++) {\n"
    "        let size = par(12u + 3u * d);\n"
    "        at += (rest % size) * vec2<u32>(par(13u + 3u * d), par(14u + 3u * d));\n"
    "        rest /= size;\n"
    "    }\n"
    "    return at;\n"
    "}\n";

/* The part of the work that a group has: rows and columns from (row, col) on, of the inner axis begin to end. */
static const char place[] =
    "struct Place { row: u32, col: u32, begin: u32, end: u32, a: u32, b: u32, out: u32 }\n"
    "fn place(group: u32, height: u32, width: u32) -> Place {\n"
    "    let across = (n() + width - 1u) / width; let down = (m() + height - 1u) / height;\n"
    "    let tile = group % (across * down); let rest = group / (across * down);\n"
    "    let part = rest % parts(); let item = rest / parts(); let at = first(item);\n"
    "    let begin = part * par(9u);\n"
    "    return Place((tile / across) * height, (tile % across) * width, begin, min(begin + par(9u), inner()), at.x, at.y,\n"
    "                 part * numel() + item * m() * n());\n"
    "}\n";

/* x: what this invocation read of a, for one row of 16, of two steps along k; y: of b, for four columns. */
static const char direct[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let p = place(group, 16u, 32u);\n"
    "    let rows = min(p.row + local + vec2<u32>(0u, 8u), vec2<u32>(m() - 1u));\n"
    "    let cols = min(p.col + local + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(n() - 1u));\n"
    "    var a = p.a + rows * a_row() + p.begin * a_col(); var b = p.b + cols * b_col() + p.begin * b_row();\n"
    "    var s0 = vec4<T>(); var s1 = vec4<T>(); var s2 = vec4<T>(); var s3 = vec4<T>();\n"
    "    var s4 = vec4<T>(); var s5 = vec4<T>(); var s6 = vec4<T>(); var s7 = vec4<T>();\n"
    "    var s8 = vec4<T>(); var s9 = vec4<T>(); var s10 = vec4<T>(); var s11 = vec4<T>();\n"
    "    var s12 = vec4<T>(); var s13 = vec4<T>(); var s14 = vec4<T>(); var s15 = vec4<T>();\n"
    "    for (var k = p.begin; k < p.end; k += 2u) {\n"
    "        let two = k + 1u < p.end;\n"
    "        let a1 = a + select(0u, a_col(), two); let b1 = b + select(0u, b_row(), two);\n"
    "        let x0 = in0(a.x); var x2 = in0(a1.x); let x1 = in0(a.y); var x3 = in0(a1.y);\n"
    "        let y00 = in1(b.x); let y10 = in1(b1.x); let y01 = in1(b.y); let y11 = in1(b1.y);\n"
    "        let y02 = in1(b.z); let y12 = in1(b1.z); let y03 = in1(b.w); let y13 = in1(b1.w);\n"
    "        let y0 = vec4<T>(y00, y01, y02, y03); var y1 = vec4<T>(y10, y11, y12, y13);\n"
    "        x2 = select(T(0), x2, two); x3 = select(T(0), x3, two); y1 = select(vec4<T>(), y1, two);\n"
    "        s0 += subgroupBroadcast(x0, 0u) * y0 + subgroupBroadcast(x2, 0u) * y1;\n"
    "        s1 += subgroupBroadcast(x0, 1u) * y0 + subgroupBroadcast(x2, 1u) * y1;\n"
    "        s2 += subgroupBroadcast(x0, 2u) * y0 + subgroupBroadcast(x2, 2u) * y1;\n"
    "        s3 += subgroupBroadcast(x0, 3u) * y0 + subgroupBroadcast(x2, 3u) * y1;\n"
    "        s4 += subgroupBroadcast(x0, 4u) * y0 + subgroupBroadcast(x2, 4u) * y1;\n"
    "        s5 += subgroupBroadcast(x0, 5u) * y0 + subgroupBroadcast(x2, 5u) * y1;\n"
    "        s6 += subgroupBroadcast(x0, 6u) * y0 + subgroupBroadcast(x2, 6u) * y1;\n"
    "        s7 += subgroupBroadcast(x0, 7u) * y0 + subgroupBroadcast(x2, 7u) * y1;\n"
    "        s8 += subgroupBroadcast(x1, 0u) * y0 + subgroupBroadcast(x3, 0u) * y1;\n"
    "        s9 += subgroupBroadcast(x1, 1u) * y0 + subgroupBroadcast(x3, 1u) * y1;\n"
    "        s10 += subgroupBroadcast(x1, 2u) * y0 + subgroupBroadcast(x3, 2u) * y1;\n"
    "        s11 += subgroupBroadcast(x1, 3u) * y0 + subgroupBroadcast(x3, 3u) * y1;\n"
    "        s12 += subgroupBroadcast(x1, 4u) * y0 + subgroupBroadcast(x3, 4u) * y1;\n"
    "        s13 += subgroupBroadcast(x1, 5u) * y0 + subgroupBroadcast(x3, 5u) * y1;\n"
    "        s14 += subgroupBroadcast(x1, 6u) * y0 + subgroupBroadcast(x3, 6u) * y1;\n"
    "        s15 += subgroupBroadcast(x1, 7u) * y0 + subgroupBroadcast(x3, 7u) * y1;\n"
    "        a += 2u * a_col(); b += 2u * b_row();\n"
    "    }\n"
    "    var s = array<vec4<T>, 16>(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15);\n"
    "    for (var r = 0u; r < 16u; r++) {\n"
    "        for (var c = 0u; c < 4u; c++) {\n"
    "            let row = p.row + r; let col = p.col + local + 8u * c;\n"
    "            if (row < m() && col < n()) { store(p.out + row * n() + col, s[r][c]); }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* par(10): bit 0, a is read along k by neighbours, else along its rows; bit 1, the same of b and its columns. Slices have
   the inner axis first, in steps of 65, so that neighbours write to different banks either way. */
static const char tiled[] =
    "var<workgroup> A: array<T, 1040>;\nvar<workgroup> B: array<T, 1040>;\n"
    "fn spot(t: u32, along: bool) -> vec2<u32> {\n"
    "    if (along) { return vec2<u32>(t / 16u, t % 16u); }\n"
    "    return vec2<u32>(t % 64u, t / 64u);\n"
    "}\n"
    "fn kernel(group: u32, local: u32) {\n"
    "    let p = place(group, 64u, 64u);\n"
    "    let x = local % 16u; let y = local / 16u;\n"
    "    var s0 = vec4<T>(); var s1 = vec4<T>(); var s2 = vec4<T>(); var s3 = vec4<T>();\n"
    "    for (var k = p.begin; k < p.end; k += 16u) {\n"
    "        for (var j = 0u; j < 4u; j++) {\n"
    "            let u = spot(local + 256u * j, (par(10u) & 1u) != 0u);\n"
    "            var v = T(0);\n"
    "            if (p.row + u.x < m() && k + u.y < p.end) {\n"
    "                v = in0(p.a + (p.row + u.x) * a_row() + (k + u.y) * a_col());\n"
    "            }\n"
    "            A[u.y * 65u + u.x] = v;\n"
    "            let w = spot(local + 256u * j, (par(10u) & 2u) != 0u);\n"
    "            v = T(0);\n"
    "            if (p.col + w.x < n() && k + w.y < p.end) {\n"
    "                v = in1(p.b + (p.col + w.x) * b_col() + (k + w.y) * b_row());\n"
    "            }\n"
    "            B[w.y * 65u + w.x] = v;\n"
    "        }\n"
    "        workgroupBarrier();\n"
    "        for (var i = 0u; i < 16u; i++) {\n"
    "            let at = i * 65u;\n"
    "            let b = vec4<T>(B[at + x], B[at + x + 16u], B[at + x + 32u], B[at + x + 48u]);\n"
    "            s0 += A[at + y] * b; s1 += A[at + y + 16u] * b;\n"
    "            s2 += A[at + y + 32u] * b; s3 += A[at + y + 48u] * b;\n"
    "        }\n"
    "        workgroupBarrier();\n"
    "    }\n"
    "    var s = array<vec4<T>, 4>(s0, s1, s2, s3);\n"
    "    for (var r = 0u; r < 4u; r++) {\n"
    "        for (var c = 0u; c < 4u; c++) {\n"
    "            let row = p.row + y + 16u * r; let col = p.col + x + 16u * c;\n"
    "            if (row < m() && col < n()) { store(p.out + row * n() + col, s[r][c]); }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* Part p takes elements p, p + parts, .. of the inner axis. Neighbours are parts of a sum where both operands lie along k
   (par(10) is 3), neighbours in the result otherwise. */
static const char plain[] =
    "fn each(i: u32) {\n"
    "    var part = i / numel(); var e = i % numel();\n"
    "    if (par(10u) == 3u) { part = i % parts(); e = i / parts(); }\n"
    "    let row = (e / n()) % m(); let at = first(e / (m() * n()));\n"
    "    let a = at.x + row * a_row(); let b = at.y + (e % n()) * b_col();\n"
    "    var s = T(0);\n"
    "    for (var k = part; k < inner(); k += parts()) { s += in0(a + k * a_col()) * in1(b + k * b_row()); }\n"
    "    store(part * numel() + e, s);\n"
    "}\n";

static const char sum_of_parts[] = "fn each(i: u32) {\n"
                                   "    var s = T(0);\n"
                                   "    for (var p = 0u; p < par(1u); p++) { s += bitcast<T>(tmp(p * par(0u) + i)); }\n"
                                   "    finish(i, s);\n"
                                   "}\n";

/* ---- what is to be multiplied ---- */

static void add_axis(product *p, int64_t size, int64_t a, int64_t b)
{
    int last = p->axes - 1;
    if (size == 1) return;
    if (p->axes && a == p->a[last] * p->size[last] && b == p->b[last] * p->size[last]) {
        p->size[last] *= size;
        return;
    }
    p->size[p->axes] = size;
    p->a[p->axes] = a;
    p->b[p->axes++] = b;
}

static product product_of(const cn_array *a, const cn_array *b, const cn_array *c)
{
    product p = { .m = a->shape[a->ndim - 2],
                  .n = b->shape[b->ndim - 1],
                  .k = a->shape[a->ndim - 1],
                  .a_row = a->stride[a->ndim - 2],
                  .a_col = a->stride[a->ndim - 1],
                  .b_row = b->stride[b->ndim - 2],
                  .b_col = b->stride[b->ndim - 1],
                  .numel = c->numel,
                  .parts = 1 };
    for (int d = c->ndim - 3; d >= 0; d--) {
        int da = d - (c->ndim - a->ndim), db = d - (c->ndim - b->ndim);
        add_axis(&p, c->shape[d], da < 0 || a->shape[da] == 1 ? 0 : a->stride[da],
                 db < 0 || b->shape[db] == 1 ? 0 : b->stride[db]);
    }
    /* one b for all: the batch is but more rows */
    if (p.axes && p.b[0] == 0 && (p.m == 1 || p.a[0] == p.m * p.a_row)) {
        if (p.m == 1) p.a_row = p.a[0];
        p.m *= p.size[0];
        p.axes--;
        memmove(p.size, p.size + 1, sizeof *p.size * (size_t)p.axes);
        memmove(p.a, p.a + 1, sizeof *p.a * (size_t)p.axes);
        memmove(p.b, p.b + 1, sizeof *p.b * (size_t)p.axes);
    }
    return p;
}

/* ---- which form ---- */

/* WebGPU does not tell how many invocations run in step. llvmpipe says it in its name, in bits. */
static bool runs_8_in_step(const cn_gpu_info *g)
{
    return g->subgroups && strstr(g->name, "llvmpipe") && (strstr(g->name, "256 bits") || strstr(g->name, "512 bits"));
}

static int64_t tiles_of(const product *p, form f)
{
    int64_t height = f == DIRECT ? 16 : 64, width = f == DIRECT ? 32 : 64, tiles = 1;
    for (int d = 0; d < p->axes; d++) tiles *= p->size[d];
    return tiles * ((p->m + height - 1) / height) * ((p->n + width - 1) / width);
}

/* CAIRN_GPU_MATMUL=plain, tiled or direct: that one, as far as the card can. */
static form form_of(const cn_ctx *ctx, const product *p, const cn_gpu_info *g)
{
    form best = runs_8_in_step(g) ? DIRECT : TILED;
    int64_t tile = best == DIRECT ? 16 * 32 : 64 * 64;
    bool empty = p->numel * 16 < tiles_of(p, best) * tile; /* tiles that would be nearly empty */
    form f = (form)cn__gpu_variant(ctx, "matmul", empty ? PLAIN : best);
    return f == DIRECT ? best : f;
}

/* As many parts as make enough work for the card, none of them short, none of them kept waiting for the memory of all. */
static int64_t parts_of(const product *p, form f, bool software)
{
    enum { MOST = 64, SCRATCH = 1 << 22 };
    int64_t units = f == PLAIN ? p->numel : tiles_of(p, f);
    int64_t enough = f == PLAIN ? (software ? 256 : 65536) : software ? 64 : 256;
    int64_t parts = enough / units, longest = p->k / (f == PLAIN ? 32 : 256);
    if (parts > longest) parts = longest;
    if (parts > MOST) parts = MOST;
    if (parts * p->numel > SCRATCH) parts = SCRATCH / p->numel;
    return parts < 1 ? 1 : parts;
}

/* ---- launches ---- */

enum { NUMBERS = 12 }; /* before those of the batch's axes */

static int64_t size_of_stride(int64_t stride) { return stride < 0 ? -stride : stride; }

static void give(cn__gpu_call *c, const product *p)
{
    int64_t part = (p->k + p->parts - 1) / p->parts;
    bool a_along = size_of_stride(p->a_col) <= size_of_stride(p->a_row);
    bool b_along = size_of_stride(p->b_row) < size_of_stride(p->b_col);
    const int64_t numbers[NUMBERS] = {
        p->m,   p->n, p->k, p->a_row, p->a_col, p->b_row, p->b_col, p->numel, p->parts, part, a_along | b_along << 1,
        p->axes
    };
    for (int i = 0; i < NUMBERS; i++) cn__gpu_param(c, (uint32_t)numbers[i]);
    for (int d = 0; d < p->axes; d++) {
        cn__gpu_param(c, (uint32_t)p->size[d]);
        cn__gpu_param(c, (uint32_t)p->a[d]);
        cn__gpu_param(c, (uint32_t)p->b[d]);
    }
}

/* Element i of the result to its place: where that has strides of its own, nothing is fused behind it. params: how many there
   are already */
static const char *finish_text(cn__gpu_call *c, int params)
{
    const cn_array *out = &c->out[0];
    cn_layout l = { .ndim = out->ndim };
    memcpy(l.shape, out->shape, sizeof l.shape);
    memcpy(l.stride, out->stride, sizeof l.stride);
    if (cn__layout_contiguous(&l)) return "fn finish(i: u32, v: T) { put(i, v); }\n";
    const char *walk = cn__gpu_walk_array(c, "lies", &params, out);
    return cn__gpu_piece(cn__gpu_text(c, "%sfn finish(i: u32, v: T) { out0(lies(i), v); }\n", walk));
}

static bool multiply(cn__gpu_call *c, const product *p, form f, const char *type)
{
    static const char *const bodies[] = { [PLAIN] = plain, [TILED] = tiled, [DIRECT] = direct };
    const char *finish = p->parts > 1 ? "" : finish_text(c, NUMBERS + 3 * p->axes);
    const char *text = cn__gpu_text(c, "alias T = %s;\n%sfn store(i: u32, v: T) { %s; }\n%s%s%s", type, finish,
                                    p->parts > 1 ? "set_tmp(i, bitcast<u32>(v))" : "finish(i, v)", head,
                                    f == PLAIN ? "" : place, bodies[f]);
    if (f == PLAIN) return cn__gpu_each(c, p->parts * p->numel, text);
    return cn__gpu_run_groups(c, &(cn__gpu_launch){ .code = text,
                                                    .groups = p->parts * tiles_of(p, f),
                                                    .size = f == TILED ? 256 : 8,
                                                    .group_bytes = f == TILED ? 2 * 1040 * 4 : 0 });
}

bool cn__matmul_gpu(cn__gpu_call *c)
{
    if (!c->out[0].numel) return true;
    product p = product_of(&c->in[0], &c->in[1], &c->out[0]);
    const char *type = cn_dtype_is_float(c->out[0].dtype) ? "f32" : "i32";
    form f = form_of(c->ctx, &p, c->limits);
    p.parts = parts_of(&p, f, strcmp(c->limits->kind, "software") == 0);
    give(c, &p);
    if (p.parts > 1) cn__gpu_scratch(c, p.parts * p.numel);
    if (!multiply(c, &p, f, type)) return false;
    if (p.parts == 1) return true;
    cn__gpu_params_clear(c);
    cn__gpu_param(c, (uint32_t)p.numel);
    cn__gpu_param(c, (uint32_t)p.parts);
    return cn__gpu_each(c, p.numel, cn__gpu_text(c, "alias T = %s;\n%s%s", type, finish_text(c, 2), sum_of_parts));
}

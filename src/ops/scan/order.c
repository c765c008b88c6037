/* Lines of pairs put in order on the GPU, by a bitonic sort: tiles in workgroup memory, what reaches further in steps
   over scratch memory. Every comparison puts the smaller pair in front (the first of each stage compares mirror images),
   so pairs behind the end of a line, which are taken to be the largest, never move and need no memory. */
#include "ops/scan/order.h"

enum { TILE = 1024, SIZE = 256, MOST_KEPT = TILE / 4 };

/* One launch over tiles: numbers in the order of par(0), par(1), .. */
typedef struct tiles {
    int64_t lines, n, width; /* a tile is one part of a line, or several lines of this width each, a power of two */
    int64_t parts;           /* of a line */
    int64_t keep;            /* pairs of each tile that go on */
    int64_t from, to, to_n;  /* words in scratch memory, and how many pairs a line has there */
    bool merge;              /* the halves of each tile are in order already, and do not cross */
    const char *load, *store;
} tiles;

static const char from_scratch[] =
    "fn load(line: u32, i: u32) -> vec2<u32> {\n"
    "    let w = par(5u) + 2u * (line * par(1u) + i); return vec2<u32>(tmp(w), tmp(w + 1u));\n}\n";
static const char to_scratch[] =
    "fn store(line: u32, i: u32, p: vec2<u32>) {\n"
    "    let w = par(6u) + 2u * (line * par(7u) + i); set_tmp(w, p.x); set_tmp(w + 1u, p.y);\n}\n";

static const char declarations[] =
    "var<workgroup> pairs: array<vec2<u32>, 1024>;\n"
    "fn later(p: vec2<u32>, q: vec2<u32>) -> bool { return p.x > q.x || (p.x == q.x && p.y > q.y); }\n"
    "fn exchange(a: u32, b: u32) {\n"
    "    let p = pairs[a]; let q = pairs[b];\n"
    "    if (later(p, q)) { pairs[a] = q; pairs[b] = p; }\n}\n"
    "fn mirrored(half: u32, local: u32) {\n" /* blocks of two halves: the first with the last, and so on */
    "    for (var c = local; c < 512u; c += 256u) {\n"
    "        let block = c / half * half * 2u; let r = c % half;\n"
    "        exchange(block + r, block + 2u * half - 1u - r);\n    }\n"
    "    workgroupBarrier();\n}\n"
    "fn straight(first: u32, local: u32) {\n"
    "    for (var half = first; half > 0u; half /= 2u) {\n"
    "        for (var c = local; c < 512u; c += 256u) {\n"
    "            let a = c / half * half * 2u + c % half;\n"
    "            exchange(a, a + half);\n        }\n"
    "        workgroupBarrier();\n    }\n}\n"
    /* element e of a tile: x the line within the tile, y the place within its part */
    "fn split(e: u32) -> vec2<u32> {\n    let width = par(2u); let rows = 1024u / width;\n"
    "    return select(vec2<u32>(e / width, e % width), vec2<u32>(e % rows, e / rows), par(8u) != 0u);\n}\n";

static const char tile_kernel[] =
    "fn kernel(group: u32, local: u32) {\n"
    "    let n = par(1u); let width = par(2u); let parts = par(3u);\n"
    "    let line0 = group / parts * (1024u / width); let part = group % parts;\n"
    "    for (var e = local; e < 1024u; e += 256u) {\n"
    "        let at = split(e); let i = part * 1024u + at.y;\n"
    "        var p = vec2<u32>(0xffffffffu);\n"
    "        if (line0 + at.x < par(0u) && i < n) { p = load(line0 + at.x, i); }\n"
    "        pairs[at.x * width + at.y] = p;\n    }\n"
    "    workgroupBarrier();\n"
    "    steps(width, local);\n"
    "    for (var e = local; e < 1024u; e += 256u) {\n"
    "        let at = split(e); let i = part * 1024u + at.y;\n"
    "        if (line0 + at.x < par(0u) && i < n && at.y < par(4u)) {\n"
    "            store(line0 + at.x, part * par(4u) + at.y, pairs[at.x * width + at.y]);\n        }\n    }\n}\n";

static void add_numbers(cn__gpu_call *c, const cn__order *o, const tiles *t)
{
    const int64_t numbers[CN__ORDER_PAR] = { t->lines, t->n,  t->width, t->parts, t->keep,
                                             t->from,  t->to, t->to_n,  o->across };
    cn__gpu_params_clear(c);
    for (int k = 0; k < CN__ORDER_PAR; k++) cn__gpu_param(c, (uint32_t)numbers[k]);
    for (int k = 0; k < CN__ORDER_NUMBERS; k++) cn__gpu_param(c, o->numbers[k]);
}

static bool run_tiles(cn__gpu_call *c, const cn__order *o, const tiles *t)
{
    static const char steps[] =
        "fn steps(width: u32, local: u32) {\n"
        "    for (var k = 2u; k <= width; k *= 2u) { mirrored(k / 2u, local); straight(k / 4u, local); }\n}\n";
    static const char last_steps[] = "fn steps(width: u32, local: u32) { straight(width / 2u, local); }\n";
    int64_t rows = TILE / t->width;
    add_numbers(c, o, t);
    const char *code =
        cn__gpu_text(c, "%s%s%s%s%s%s", declarations, cn__gpu_piece(o->common), t->merge ? last_steps : steps,
                     t->load ? t->load : from_scratch, t->store ? t->store : to_scratch, tile_kernel);
    return cn__gpu_run_groups(c, &(cn__gpu_launch){ .code = code,
                                                    .groups = (t->lines + rows - 1) / rows * t->parts,
                                                    .size = SIZE,
                                                    .group_bytes = TILE * 8 });
}

/* One step of a stage whose blocks are longer than a tile. */
static bool run_step(cn__gpu_call *c, const cn__order *o, int64_t block, int64_t half, bool mirror)
{
    int64_t pairs = (o->n + block - 1) / block * (block / 2);
    const int64_t numbers[] = { pairs, half, o->n, mirror };
    cn__gpu_params_clear(c);
    for (int k = 0; k < 4; k++) cn__gpu_param(c, (uint32_t)numbers[k]);
    return cn__gpu_each(c, o->lines * pairs,
                        "fn each(c: u32) {\n"
                        "    let line = c / par(0u); let t = c % par(0u); let half = par(1u); let r = t % half;\n"
                        "    let start = t / half * half * 2u; let a = start + r;\n"
                        "    let b = select(a + half, start + 2u * half - 1u - r, par(3u) != 0u);\n"
                        "    if (b >= par(2u)) { return; }\n"
                        "    let wa = 2u * (line * par(2u) + a); let wb = 2u * (line * par(2u) + b);\n"
                        "    let ka = tmp(wa); let pa = tmp(wa + 1u); let kb = tmp(wb); let pb = tmp(wb + 1u);\n"
                        "    if (ka < kb || (ka == kb && pa < pb)) { return; }\n"
                        "    set_tmp(wa, kb); set_tmp(wa + 1u, pb); set_tmp(wb, ka); set_tmp(wb + 1u, pa);\n}\n");
}

/* Few are wanted of many: each tile sends its first on, until one tile is left. Two parts of scratch take turns. */
static bool order_first(cn__gpu_call *c, const cn__order *o)
{
    tiles t = { .lines = o->lines, .n = o->n, .width = TILE, .keep = o->keep, .load = o->load };
    int64_t second = 2 * o->lines * ((o->n + TILE - 1) / TILE) * o->keep;
    cn__gpu_scratch(c, 2 * second);
    for (bool odd = false;; odd = !odd) {
        t.parts = (t.n + TILE - 1) / TILE;
        int64_t rest = t.n - (t.parts - 1) * TILE;
        t.to_n = (t.parts - 1) * t.keep + (rest < t.keep ? rest : t.keep);
        t.to = odd ? second : 0;
        t.store = t.parts == 1 ? o->store : NULL;
        if (!run_tiles(c, o, &t)) return false;
        if (t.parts == 1) return true;
        t.n = t.to_n;
        t.from = t.to;
        t.load = NULL;
    }
}

bool cn__gpu_order(cn__gpu_call *c, const cn__order *o)
{
    if (o->lines == 0 || o->n == 0) return true;
    if (o->keep && o->store && o->keep <= MOST_KEPT && o->n > TILE) return order_first(c, o);
    tiles t = { .lines = o->lines, .n = o->n, .width = 1, .keep = TILE, .to_n = o->n, .load = o->load };
    t.parts = (o->n + TILE - 1) / TILE;
    while (t.width < TILE && t.width < o->n) t.width *= 2;
    if (t.parts == 1) t.store = o->store;
    if (!t.store) cn__gpu_scratch(c, 2 * o->lines * o->n);
    if (!run_tiles(c, o, &t)) return false;
    t.load = NULL;
    t.merge = true;
    for (int64_t block = 2 * TILE; block / 2 < o->n; block *= 2) {
        if (!run_step(c, o, block, block / 2, true)) return false;
        for (int64_t half = block / 4; half >= TILE; half /= 2)
            if (!run_step(c, o, block, half, false)) return false;
        if (block >= o->n) t.store = o->store;
        if (!run_tiles(c, o, &t)) return false;
    }
    return true;
}

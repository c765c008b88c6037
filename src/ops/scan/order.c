/* Sorts lines of pairs on the GPU by the launches of order.wgsl, a bitonic sort. */
#include "ops/scan/order.h"

#include <string.h>

#include "gpu/shaders.h"

enum { TILE = 1024, SIZE = 256, MOST_KEPT = TILE / 4 };

/* One launch over tiles. The numbers are par(0), par(1), .. in this order. */
typedef struct tiles {
    int64_t lines, n, width; /* width: pairs of a line in a tile; a tile is a part of one line, or several lines */
    int64_t parts;           /* of a line */
    int64_t keep;            /* pairs of each tile that are stored */
    int64_t from, to, to_n;  /* offsets in scratch memory, and the number of pairs of a line there */
    bool merge;              /* the halves of each tile are already sorted so that only straight steps are left */
    bool load, store;        /* by the caller's shader; otherwise from and to scratch memory */
} tiles;

static void add_numbers(cn_gpu_call *c, const cn__order *o, const tiles *t)
{
    const int64_t numbers[CN__ORDER_PAR] = { t->lines, t->n,  t->width, t->parts, t->keep,
                                             t->from,  t->to, t->to_n,  o->across };
    cn_gpu_params_clear(c);
    for (int k = 0; k < CN__ORDER_PAR; k++) cn_gpu_param(c, numbers[k]);
    for (int k = 0; k < CN__ORDER_NUMBERS; k++) cn_gpu_param(c, o->numbers[k]);
}

static bool run_tiles(cn_gpu_call *c, const cn__order *o, const tiles *t)
{
    enum { OWN = 3 };
    const int64_t rows = TILE / t->width;
    cn_gpu_hole holes[OWN + CN__ORDER_HOLES + 1] = { CN_GPU_TEXT("load", t->load ? "given" : "scratch"),
                                                     CN_GPU_TEXT("store", t->store ? "given" : "scratch"),
                                                     CN_GPU_FLAG("merge", t->merge) };
    memcpy(holes + OWN, o->holes, sizeof o->holes);
    add_numbers(c, o, t);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_order,
                                           .kernel = "tile",
                                           .with = o->shader,
                                           .holes = holes,
                                           .groups = (t->lines + rows - 1) / rows * t->parts,
                                           .size = SIZE });
}

/* One step of a stage whose blocks are longer than a tile. */
static bool run_step(cn_gpu_call *c, const cn__order *o, int64_t block, int64_t half, bool mirror)
{
    const int64_t pairs = (o->n + block - 1) / block * (block / 2);
    cn_gpu_params_clear(c);
    cn_gpu_param(c, pairs);
    cn_gpu_param(c, half);
    cn_gpu_param(c, o->n);
    cn_gpu_param(c, mirror);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_order, .kernel = "step", .each = o->lines * pairs });
}

/* If few pairs of many are wanted, each launch keeps the first pairs of each tile, until one tile is left. Launches use
   two parts of scratch memory in turn. */
static bool order_first(cn_gpu_call *c, const cn__order *o)
{
    tiles t = { .lines = o->lines, .n = o->n, .width = TILE, .keep = o->keep, .load = true };
    int64_t second = 2 * o->lines * ((o->n + TILE - 1) / TILE) * o->keep;
    cn_gpu_scratch(c, 2 * second);
    for (bool odd = false;; odd = !odd) {
        t.parts = (t.n + TILE - 1) / TILE;
        int64_t rest = t.n - (t.parts - 1) * TILE;
        t.to_n = (t.parts - 1) * t.keep + (rest < t.keep ? rest : t.keep);
        t.to = odd ? second : 0;
        t.store = t.parts == 1;
        if (!run_tiles(c, o, &t)) return false;
        if (t.parts == 1) return true;
        t.n = t.to_n;
        t.from = t.to;
        t.load = false;
    }
}

bool cn__gpu_order(cn_gpu_call *c, const cn__order *o)
{
    if (o->lines == 0 || o->n == 0) return true;
    if (o->keep && o->stores && o->keep <= MOST_KEPT && o->n > TILE) return order_first(c, o);
    tiles t = { .lines = o->lines, .n = o->n, .width = 1, .keep = TILE, .to_n = o->n, .load = true };
    t.parts = (o->n + TILE - 1) / TILE;
    while (t.width < TILE && t.width < o->n) t.width *= 2;
    if (t.parts == 1) t.store = o->stores;
    if (!t.store) cn_gpu_scratch(c, 2 * o->lines * o->n);
    if (!run_tiles(c, o, &t)) return false;
    t.load = false;
    t.merge = true;
    for (int64_t block = 2 * TILE; block / 2 < o->n; block *= 2) {
        if (!run_step(c, o, block, block / 2, true)) return false;
        for (int64_t half = block / 4; half >= TILE; half /= 2)
            if (!run_step(c, o, block, half, false)) return false;
        if (block >= o->n) t.store = o->stores;
        if (!run_tiles(c, o, &t)) return false;
    }
    return true;
}

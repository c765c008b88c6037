/* taps_cells.h: the geometry that taps.c and the kernels of taps_cpu.c share: lines of cells and their pixels, tiles of
   rows, and places in scratch. */
#ifndef CN_CONTRACT_TAPS_CELLS_H
#define CN_CONTRACT_TAPS_CELLS_H

#include "cpu/isa.h"
#include "ops/contract/taps.h"

enum {
    CN__TAPS_TILE_ROWS = 6,  /* with two vectors of positions: registers for 12 sums, two of cells, one of weights */
    CN__TAPS_DOT_ROWS = 4,   /* with three taps: registers for 12 sums, four of y, one of cells */
    CN__TAPS_MOST_LANES = 8, /* the most lanes of a vector */
};

/* ---- lines of cells and their pixels ---- */

/* `count` cells from `at` on that have pixels, from `pixel` on. */
typedef struct cn__tap_run {
    int64_t at, count, pixel;
} cn__tap_run;

typedef struct cn__tap_walk {
    const cn__taps *t;
    int64_t at, end;     /* the number of cells done, and of all cells */
    int64_t z, y, x;     /* the next cell */
    int64_t origin[3];   /* pixel of cell 0 */
    int64_t first, last; /* cells with x in [first, last) have a pixel */
} cn__tap_walk;

static inline int64_t cn__tap_origin(const cn__tap_axis *a, int64_t copy)
{
    return a->from + (a->apart ? copy * a->by : 0);
}

static inline cn__tap_walk cn__tap_walk_begin(const cn__taps *t, int64_t copy, int64_t from, int64_t cells)
{
    const cn__tap_axis *a = t->axis;
    const int64_t across = a[2].apart ? a[2].count : 1; /* copies */
    cn__tap_walk w = { .t = t, .end = cells, .z = from / t->plane, .y = from % t->plane / t->line };
    w.x = from % t->line;
    w.origin[0] = a[0].from;
    w.origin[1] = cn__tap_origin(&a[1], copy / across);
    w.origin[2] = cn__tap_origin(&a[2], copy % across);
    w.first = cn__larger(-w.origin[2], 0);
    w.last = cn__larger(a[2].pixels - w.origin[2], w.first);
    return w;
}

/* Moves to the next line, or the part of it that belongs to the walk. Returns false at the end. */
CN__INLINE bool cn__tap_walk_next(cn__tap_walk *w, cn__tap_run *r)
{
    if (w->at >= w->end) return false;
    const cn__tap_axis *a = w->t->axis;
    const int64_t depth = w->z + w->origin[0], height = w->y + w->origin[1];
    const int64_t stop = cn__smaller(w->t->line, w->x + w->end - w->at), first = cn__clamp(w->first, w->x, stop);
    const bool inside = depth >= 0 && depth < a[0].pixels && height >= 0 && height < a[1].pixels;
    r->at = w->at + first - w->x;
    r->count = inside ? cn__clamp(w->last, first, stop) - first : 0;
    r->pixel = (depth * a[1].pixels + height) * a[2].pixels + first + w->origin[2];
    w->at += stop - w->x;
    w->x = 0;
    if (++w->y == a[1].cells) w->y = 0, w->z++;
    return true;
}

/* ---- tiles of rows: all have the same height; the first `higher` ones have one more row ---- */

static inline int64_t cn__tap_tile_rows(const cn__taps *t, int64_t tile) { return t->height + (tile < t->higher); }
static inline int64_t cn__tap_tile_row(const cn__taps *t, int64_t tile)
{
    return t->height * tile + cn__smaller(tile, t->higher);
}

/* ---- scratch: offsets; packed weights or the sums of parts; then, for each thread, cells and the rest of rows ---- */

static inline int64_t cn__taps_numel(const cn__taps *t) { return t->groups * t->rows * t->channels * t->volume; }

static inline size_t cn__taps_offset_bytes(const cn__taps *t)
{
    return ((size_t)(t->slice * t->volume) * sizeof(int64_t) + 63) & ~(size_t)63;
}

static inline void *cn__taps_after_offsets(const cn__taps *t)
{
    return (char *)t->k->scratch + cn__taps_offset_bytes(t);
}

static inline char *cn__taps_own_scratch(const cn__taps *t, int thread)
{
    return (char *)t->k->scratch + t->shared + (size_t)thread * (t->cells + t->rest);
}

/* Reports rows [first, last) of a group of an image as final at positions [from, from + n). */
void cn__taps_done(const cn__taps *t, int64_t group, int64_t first, int64_t last, int64_t from, int64_t n, int thread);

#endif

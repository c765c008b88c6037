/* Reductions at the end of a group. The operand has the shape [outer, reduced, inner]. The order in which elements are
   folded depends on these sizes alone, so neither fusion nor the number of threads changes a bit. */
#include "core/util.h"
#include "cpu/cpu.h"

#define ROW_CHUNK    (64 * CN__TILE) /* elements of a row that are folded into one state */
#define COLUMN_CHUNK 256             /* positions that are folded into one row of states */
#define BAND         4               /* most tiles in a band: long runs read faster, but states must fit the cache */

typedef struct shape3 {
    int64_t outer, reduced, inner;
    int64_t chunks; /* of the reduced range */
    int64_t band;   /* columns that a thread folds at a time; it decides who folds them, never in which order */
    int64_t bands;  /* of the inner range */
    const cn_reducer *r;
} shape3;

static shape3 shape_of(const cn__group *g, int threads)
{
    const int64_t *axes = g->step->attrs; /* begin, end */
    const cn_layout *l = &g->step->space;
    shape3 s = { 1, 1, 1, 1, 1, 1, NULL };
    for (int d = 0; d < l->ndim; d++) *(d < axes[0] ? &s.outer : d < axes[1] ? &s.reduced : &s.inner) *= l->shape[d];
    int64_t chunk = s.inner == 1 ? ROW_CHUNK : COLUMN_CHUNK;
    s.chunks = s.reduced > chunk ? cn__divide_up(s.reduced, chunk) : 1;
    int64_t tiles = BAND; /* fewer if threads would have nothing to do */
    while (tiles > 1 && s.outer * s.chunks * cn__divide_up(s.inner, tiles * CN__TILE) < 3 * (int64_t)threads)
        tiles /= 2;
    s.band = tiles * CN__TILE;
    s.bands = cn__divide_up(s.inner, s.band);
    s.r = g->reducer;
    return s;
}

/* Eight tiles of the operand, of which the last may first hold values of another type. */
static size_t stage_bytes(const cn__group *g) { return 7 * CN__TILE * (size_t)g->reduced.size + CN__REG_BYTES; }

static size_t thread_bytes(const cn__group *g, const shape3 *s)
{
    return cn__group_regs(g) + stage_bytes(g) + ((size_t)s->band * s->r->state + 63) / 64 * 64;
}

size_t cn__reduce_scratch(const cn__group *g, int threads)
{
    shape3 s = shape_of(g, threads);
    size_t partial = s.chunks > 1 ? (size_t)(s.outer * s.inner * s.chunks) * s.r->state : 0;
    return (size_t)threads * thread_bytes(g, &s) + partial + 64;
}

typedef struct job {
    const cn__group *g;
    const cn__run *run;
    char *scratch, *partial, *out;
    shape3 s;
    size_t out_size;
    int64_t units; /* rows, chunks or bands in a part */
} job;

static char *regs_of(const job *j, int thread) { return j->scratch + (size_t)thread * thread_bytes(j->g, &j->s); }

/* Rows of at most a tile: a tile holds several. */
static void fold_short_rows(const job *j, char *regs, char *state, int64_t begin, int64_t end)
{
    const shape3 *s = &j->s;
    int64_t n = s->reduced, in_tile = n ? CN__TILE / n : CN__TILE;
    for (int64_t o = begin; o < end; o += in_tile) {
        int64_t rows = end - o < in_tile ? end - o : in_tile;
        if (n) cn__group_tile(j->g, j->run, regs, o * n, rows * n);
        const char *x = cn__slot_at(j->g, &j->g->reduced, regs, o * n);
        s->r->begin(state, rows);
        if (s->r->rows && n) s->r->rows(state, x, n, rows);
        for (int64_t i = 0; i < rows && n && !s->r->rows; i++)
            s->r->row(state + (size_t)i * s->r->state, x + (size_t)(i * n) * j->g->reduced.size, n, 0);
        s->r->end(state, j->out + (size_t)o * j->out_size, rows);
    }
}

/* One chunk of a row that is longer than a tile. */
static void fold_long_row(const job *j, char *regs, void *state, int64_t o, int64_t chunk)
{
    const shape3 *s = &j->s;
    int64_t at = chunk * ROW_CHUNK, end = chunk + 1 == s->chunks ? s->reduced : at + ROW_CHUNK;
    s->r->begin(state, 1);
    for (; at < end; at += CN__TILE) {
        int64_t n = end - at < CN__TILE ? end - at : CN__TILE, start = o * s->reduced + at;
        cn__group_tile(j->g, j->run, regs, start, n);
        s->r->row(state, cn__slot_at(j->g, &j->g->reduced, regs, start), n, at);
    }
}

/* A tile of the operand: `rows` positions of `width` columns each, from element `start` on. */
static void fold_tile(const job *j, char *regs, char *state, int64_t start, int64_t rows, int64_t width, int64_t at)
{
    cn__group_tile(j->g, j->run, regs, start, rows * width);
    const char *x = cn__slot_at(j->g, &j->g->reduced, regs, start);
    if (rows > 1 && j->s.r->block) {
        j->s.r->block(state, x, width, rows, at);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        j->s.r->columns(state, x + (size_t)(i * width) * j->g->reduced.size, width, at + i);
}

static int64_t band_width(const shape3 *s, int64_t first)
{
    return s->inner - first < s->band ? s->inner - first : s->band;
}

/* Eight positions of `width` columns each, from element `start` on: `in_tile` of them are computed at a time. Those that
   lie contiguous are folded where they are. */
static void fold_eight(const job *j, char *regs, char *state, int64_t start, int64_t in_tile, int64_t width, int64_t at)
{
    const cn__group *g = j->g;
    char *stage = regs + cn__group_regs(g);
    const size_t row = (size_t)width * g->reduced.size;
    const void *rows[8];
    for (int64_t i = 0; i < 8; i += in_tile, stage += CN__TILE * g->reduced.size) {
        int64_t n = cn__smaller(8 - i, in_tile), first = start + i * j->s.inner;
        cn__group_stage(g, regs, stage);
        cn__group_tile(g, j->run, regs, first, n * width);
        const char *x = cn__slot_at(g, &g->reduced, regs, first);
        for (int64_t k = 0; k < n; k++) rows[i + k] = x + (size_t)k * row;
    }
    j->s.r->eight(state, rows, width, at);
}

/* One chunk of the band of columns that begins at `first`, position by position, or eight at a time. If rows are
   short, a tile holds several positions. */
static void fold_columns(const job *j, char *regs, char *state, int64_t o, int64_t first, int64_t chunk)
{
    const shape3 *s = &j->s;
    int64_t width = band_width(s, first), at = s->chunks > 1 ? chunk * COLUMN_CHUNK : 0;
    int64_t end = s->chunks == 1 || chunk + 1 == s->chunks ? s->reduced : at + COLUMN_CHUNK;
    int64_t in_tile = s->inner < CN__TILE ? CN__TILE / s->inner : 1;
    s->r->begin(state, width);
    for (; s->r->eight && in_tile < 8 && at + 8 <= end; at += 8)
        for (int64_t c = 0; c < width; c += CN__TILE)
            fold_eight(j, regs, state + (size_t)c * s->r->state, (o * s->reduced + at) * s->inner + first + c, in_tile,
                       cn__smaller(width - c, CN__TILE), at);
    for (; at < end; at += in_tile) {
        int64_t rows = end - at < in_tile ? end - at : in_tile, start = (o * s->reduced + at) * s->inner + first;
        for (int64_t c = 0; c < width; c += CN__TILE)
            fold_tile(j, regs, state + (size_t)c * s->r->state, start + c, rows,
                      width - c < CN__TILE ? width - c : CN__TILE, at);
    }
}

static void run_rows(void *user, int64_t part, int thread)
{
    const job *j = user;
    const shape3 *s = &j->s;
    char *regs = regs_of(j, thread), *state = regs + cn__group_regs(j->g) + stage_bytes(j->g);
    cn__group_begin(j->g, j->run, regs, j->g->numel);
    int64_t begin = part * j->units, total = s->outer * s->chunks,
            end = begin + j->units < total ? begin + j->units : total;
    if (s->reduced <= CN__TILE) {
        fold_short_rows(j, regs, state, begin, end);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        if (s->chunks > 1) {
            fold_long_row(j, regs, j->partial + (size_t)u * s->r->state, u / s->chunks, u % s->chunks);
            continue;
        }
        fold_long_row(j, regs, state, u, 0);
        s->r->end(state, j->out + (size_t)u * j->out_size, 1);
    }
}

static void run_columns(void *user, int64_t part, int thread)
{
    const job *j = user;
    const shape3 *s = &j->s;
    char *regs = regs_of(j, thread), *state = regs + cn__group_regs(j->g) + stage_bytes(j->g);
    cn__group_begin(j->g, j->run, regs, j->g->numel);
    int64_t begin = part * j->units, total = s->outer * s->bands * s->chunks,
            end = begin + j->units < total ? begin + j->units : total;
    for (int64_t u = begin; u < end; u++) {
        int64_t chunk = u % s->chunks, o = u / s->chunks / s->bands;
        int64_t first = u / s->chunks % s->bands * s->band, width = band_width(s, first);
        if (s->chunks > 1) { /* the states of a band: one row for each chunk */
            char *to =
                j->partial + (size_t)(o * s->inner * s->chunks + first * s->chunks + chunk * width) * s->r->state;
            fold_columns(j, regs, to, o, first, chunk);
            continue;
        }
        fold_columns(j, regs, state, o, first, 0);
        s->r->end(state, j->out + (size_t)(o * s->inner + first) * j->out_size, width);
    }
}

static void merge_chunks(const job *j)
{
    const shape3 *s = &j->s;
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t first = 0; first < s->inner; first += s->band) {
            int64_t width = band_width(s, first);
            char *state = j->partial + (size_t)(o * s->inner * s->chunks + first * s->chunks) * s->r->state;
            for (int64_t c = 1; c < s->chunks; c++)
                s->r->merge(state, state + (size_t)(c * width) * s->r->state, width);
            s->r->end(state, j->out + (size_t)(o * s->inner + first) * j->out_size, width);
        }
    }
}

void cn__reduce_run(const cn__group *g, const cn__run *run, cn__workers *w, char *scratch)
{
    const cn__walk *out = &g->walks[g->step->n_loads];
    job j = { .g = g,
              .run = run,
              .scratch = scratch,
              .out = out->data,
              .s = shape_of(g, cn__workers_count(w)),
              .out_size = out->size,
              .units = 1 };
    const shape3 *s = &j.s;
    j.partial = scratch + (size_t)cn__workers_count(w) * thread_bytes(g, s);
    int64_t total = s->outer * s->chunks * s->bands;
    if (s->outer == 0 || s->inner == 0) return;
    int64_t unit = (s->reduced / s->chunks + 1) * band_width(s, 0);
    int64_t enough = 16384 / (1 + g->n_entries);
    j.units = unit < enough ? enough / unit + 1 : 1;
    int64_t parts = (total + j.units - 1) / j.units;
    cn__work body = s->inner == 1 ? run_rows : run_columns;
    if (parts == 1) body(&j, 0, 0);
    else cn__workers_run(w, parts, body, &j);
    if (s->chunks > 1) merge_chunks(&j);
}

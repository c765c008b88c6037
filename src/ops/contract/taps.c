/* Geometry of cells, cutting the work, and handing it to the kernels of taps_body.h. */
#include "ops/contract/taps.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    SHARES = 16,            /* worth cutting the work into */
    TILE_ROWS = 6,          /* with two vectors of positions: 12 accumulators, two of cells and one of weights */
    DOT_ROWS = 4,           /* with three taps: 12 accumulators, four of y and one of x */
    CHUNK = 1024,           /* positions: about */
    ROUND = 64,             /* positions: a multiple of what any kernel takes at a time */
    MOST_LANES = 8,         /* of a vector */
    SLICE = 320,            /* about as many products in one go: a panel of cells stays in L1 */
    SLICE_BYTES = 1 << 17,  /* of cells: they stay in L2 */
    BLOCK_ROWS = 96,        /* at most, so that the results of a chunk stay in L2 */
    LEAST_ROWS = 24,        /* in a block, where rows are cut for the sake of sharing the work */
    LEAST_POSITIONS = 128,  /* fewer do not fill vectors well */
    LEAST_PRODUCTS = 32,    /* for a tile of results, which is written where it belongs in short pieces */
    LEAST_SUMMED = 512,     /* positions: a sum over fewer is cut short too often */
    LEAST_USE = 24,         /* products for each copy of a cell */
    SMALL_WEIGHT = 1 << 16, /* elements that may be summed up apart for parts of the images */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t round_up(int64_t a, int64_t unit) { return divide_up(a, unit) * unit; }
static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
static size_t aligned(int64_t bytes) { return ((size_t)bytes + 63) & ~(size_t)63; }

/* ---- geometry ---- */

static int64_t shift_of(const cn__tap_axis *a, int64_t tap) { return a->apart ? 0 : tap * a->by; }

static void finish(cn__taps *t)
{
    cn__tap_axis *a = t->axis;
    int64_t outer = 1;
    t->volume = t->copies = 1;
    for (int d = 0; d < 3; d++) {
        a[d].apart = outer > 1;
        a[d].cells = a[d].positions + shift_of(&a[d], a[d].count - 1);
        t->volume *= a[d].count;
        t->copies *= a[d].apart ? a[d].count : 1;
        outer *= a[d].positions;
    }
    t->reach = INT64_MAX;
    for (int d = 0; d < 3; d++)
        if (shift_of(&a[d], a[d].count - 1) > CHUNK) return; /* and products of sizes might not fit an int64_t */
    t->line = a[2].cells;
    t->plane = a[1].cells * t->line;
    t->reach = shift_of(&a[0], a[0].count - 1) * t->plane + shift_of(&a[1], a[1].count - 1) * t->line +
               shift_of(&a[2], a[2].count - 1);
}

static int64_t plane_of(const cn_array *x) { return x->shape[2] * x->shape[3] * x->shape[4]; }

static cn__taps begin(const cn_kernel *k, const cn_array *source, const cn_array *weight, const cn_array *result)
{
    cn__taps t = { .k = k, .f64 = source->dtype == CN_F64, .n = source->shape[0], .weight = weight->data };
    t.size = t.f64 ? sizeof(double) : sizeof(float);
    t.groups = ((const cn__conv_attrs *)k->attrs)->groups;
    t.source = source->data, t.result = result->data;
    t.channels = source->shape[1] / t.groups, t.rows = result->shape[1] / t.groups;
    t.pixels = plane_of(source), t.positions = plane_of(result);
    for (int d = 0; d < 3; d++)
        t.axis[d] = (cn__tap_axis){ .count = weight->shape[2 + d],
                                    .by = ((const cn__conv_attrs *)k->attrs)->dilation[d],
                                    .positions = result->shape[2 + d],
                                    .pixels = source->shape[2 + d] };
    return t;
}

cn__taps cn__taps_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    cn__taps t = begin(k, x, weight, y);
    t.weight_channel = plane_of(weight);
    t.weight_row = t.channels * t.weight_channel;
    for (int d = 0; d < 3; d++) t.axis[d].from = -((const cn__conv_attrs *)k->attrs)->padding[d];
    finish(&t);
    return t;
}

cn__taps cn__taps_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    cn__taps t = begin(k, y, weight, x);
    t.weight_row = plane_of(weight);
    t.weight_channel = t.rows * t.weight_row;
    t.reversed = true;
    for (int d = 0; d < 3; d++) {
        cn__tap_axis *a = &t.axis[d];
        a->from = ((const cn__conv_attrs *)k->attrs)->padding[d] - (a->count - 1) * a->by;
    }
    finish(&t);
    return t;
}

static bool one_to_one(const cn__taps *t) { return t->rows == 1 && t->channels == 1; }

/* Copying must pay: for each cell there are rows·volume products and `copies` copies. One channel to one (depthwise) gains
   in any case: its columns would be used once, and products straight from the image are slowed down by its edges. */
static bool copies_pay(const cn__taps *t)
{
    const int64_t *stride = ((const cn__conv_attrs *)t->k->attrs)->stride;
    const bool near = stride[0] == 1 && stride[1] == 1 && stride[2] == 1 && t->reach <= CHUNK / 2;
    return near && t->volume > 1 && (one_to_one(t) || t->rows * t->volume >= LEAST_USE * t->copies);
}

bool cn__taps_suit(const cn__taps *t)
{
    const bool enough = t->channels * t->volume >= LEAST_PRODUCTS || one_to_one(t);
    return enough && copies_pay(t) && t->positions >= LEAST_POSITIONS;
}

bool cn__taps_suit_weight(const cn__taps *t)
{
    return copies_pay(t) && t->positions >= LEAST_SUMMED && t->n && t->channels;
}

/* ---- lines of cells and the pixels they stand for ---- */

/* `count` cells from `at` on, whose first pixel is `pixel`. */
typedef struct run {
    int64_t at, count, pixel;
} run;

typedef struct walk {
    const cn__taps *t;
    int64_t at, end;     /* cells done, and all */
    int64_t z, y, x;     /* the next cell */
    int64_t origin[3];   /* pixel of cell 0 */
    int64_t first, last; /* x with a pixel */
} walk;

static int64_t origin_of(const cn__tap_axis *a, int64_t copy) { return a->from + (a->apart ? copy * a->by : 0); }

static walk walk_begin(const cn__taps *t, int64_t copy, int64_t from, int64_t cells)
{
    const cn__tap_axis *a = t->axis;
    const int64_t across = a[2].apart ? a[2].count : 1; /* copies */
    walk w = { .t = t, .end = cells, .z = from / t->plane, .y = from % t->plane / t->line, .x = from % t->line };
    w.origin[0] = a[0].from;
    w.origin[1] = origin_of(&a[1], copy / across);
    w.origin[2] = origin_of(&a[2], copy % across);
    w.first = larger(-w.origin[2], 0);
    w.last = larger(a[2].pixels - w.origin[2], w.first);
    return w;
}

/* The next line, or the part of it that is walked. */
static inline __attribute__((always_inline)) bool walk_next(walk *w, run *r)
{
    if (w->at >= w->end) return false;
    const cn__tap_axis *a = w->t->axis;
    const int64_t depth = w->z + w->origin[0], height = w->y + w->origin[1];
    const int64_t stop = smaller(w->t->line, w->x + w->end - w->at), first = clamp(w->first, w->x, stop);
    const bool inside = depth >= 0 && depth < a[0].pixels && height >= 0 && height < a[1].pixels;
    r->at = w->at + first - w->x;
    r->count = inside ? clamp(w->last, first, stop) - first : 0;
    r->pixel = (depth * a[1].pixels + height) * a[2].pixels + first + w->origin[2];
    w->at += stop - w->x;
    w->x = 0;
    if (++w->y == a[1].cells) w->y = 0, w->z++;
    return true;
}

/* ---- cutting ---- */

static int64_t numel_of(const cn__taps *t) { return t->groups * t->rows * t->channels * t->volume; }
static size_t offset_bytes(const cn__taps *t) { return aligned(t->slice * t->volume * (int64_t)sizeof(int64_t)); }

static void cut_channels(cn__taps *t, int64_t products, int64_t bytes)
{
    const int64_t most = larger(smaller(products / t->volume, SLICE_BYTES / bytes), 1);
    t->slice = larger(divide_up(t->channels, larger(divide_up(t->channels, most), 1)), 1);
    t->slices = larger(divide_up(t->channels, t->slice), 1);
}

static void cut_rows(cn__taps *t, int64_t height, int64_t others)
{
    const int64_t wanted = smaller(divide_up(SHARES, larger(others, 1)), t->rows / LEAST_ROWS);
    t->tiles = divide_up(t->rows, height);
    t->height = t->rows / larger(t->tiles, 1);
    t->higher = t->rows % larger(t->tiles, 1);
    t->blocks = clamp(larger(wanted, divide_up(t->rows, BLOCK_ROWS)), 1, larger(t->tiles, 1));
}

static void cut_positions(cn__taps *t)
{
    const int64_t line = 64 / t->size;
    t->chunk = round_up(divide_up(t->positions, divide_up(t->positions, CHUNK)), ROUND);
    t->chunks = divide_up(t->positions, t->chunk);
    t->span = round_up(t->chunk + t->reach, 2 * line) + line; /* odd in cache lines: taps do not displace each other */
}

static cn__taps cut(const cn__taps *given)
{
    cn__taps t = *given;
    cut_positions(&t);
    cut_rows(&t, TILE_ROWS, t.n * t.chunks * t.groups);
    cut_channels(&t, SLICE, t.copies * t.span * t.size);
    t.shared = offset_bytes(&t) + aligned(numel_of(&t) * t.size);
    t.cells = aligned(t.slice * t.copies * t.span * t.size);
    return t;
}

/* Parts of the images where weights are small, and otherwise blocks of rows and slices of channels, of which there are then
   many. */
static cn__taps cut_for_weights(const cn__taps *given)
{
    cn__taps t = *given;
    cut_positions(&t);
    t.parts = numel_of(&t) <= SMALL_WEIGHT ? clamp(t.n, 1, SHARES) : 1;
    t.run = t.chunks > 1 ? 1 : clamp(CHUNK / t.chunk, 1, larger(divide_up(t.n, t.parts), 1));
    cut_rows(&t, DOT_ROWS, t.parts * t.groups);
    cut_channels(&t, INT64_MAX, t.run * t.copies * t.span * t.size);
    t.shared = offset_bytes(&t) + (t.parts > 1 ? aligned(t.parts * numel_of(&t) * t.size) : 0);
    t.cells = aligned(t.run * t.slice * t.copies * t.span * t.size);
    t.rest = aligned(t.run * divide_up(t.tiles, t.blocks) * DOT_ROWS * MOST_LANES * t.size);
    return t;
}

/* Tiles are of equal height, but that the first ones may have a row more. */
static int64_t tile_rows(const cn__taps *t, int64_t tile) { return t->height + (tile < t->higher); }
static int64_t tile_row(const cn__taps *t, int64_t tile) { return t->height * tile + smaller(tile, t->higher); }

/* ---- scratch: offsets; packed weights, or the sums of parts; then of each thread cells, and the rest of rows ---- */

static void *after_offsets(const cn__taps *t) { return (char *)t->k->scratch + offset_bytes(t); }

static char *own_scratch(const cn__taps *t, int thread)
{
    return (char *)t->k->scratch + t->shared + (size_t)thread * (t->cells + t->rest);
}

static size_t all_scratch(const cn__taps *t, int threads) { return t->shared + (size_t)threads * (t->cells + t->rest); }

/* Offsets of a slice's products. */
static void fill_offsets(const cn__taps *t, int64_t *offset)
{
    const cn__tap_axis *a = t->axis;
    for (int64_t i = 0; i < t->slice * t->volume; i++) {
        const int64_t x = i % a[2].count, y = i / a[2].count % a[1].count, z = i / a[2].count / a[1].count % a[0].count;
        const int64_t copy = (a[1].apart ? y : 0) * (a[2].apart ? a[2].count : 1) + (a[2].apart ? x : 0);
        const int64_t shift = shift_of(&a[0], z) * t->plane + shift_of(&a[1], y) * t->line + shift_of(&a[2], x);
        offset[i] = (i / t->volume * t->copies + copy) * t->span + shift;
    }
}

/* Rows [first, last) of a group of an image are final at positions [from, from + n). */
static void tell_done(const cn__taps *t, int64_t group, int64_t first, int64_t last, int64_t from, int64_t n,
                      int thread)
{
    const int64_t plane = t->positions, at = group * t->rows * plane + from;
    if (n == plane) cn_kernel_done(t->k, at + first * plane, at + last * plane, thread);
    else
        for (int64_t r = first; r < last; r++) cn_kernel_done(t->k, at + r * plane, at + r * plane + n, thread);
}

/* ---- kernels, by type and instruction set ---- */

#define T            float
#define BITS         int32_t
#define BYTES        16
#define FMA(x, y, z) ((x) * (y) + (z))
#define NAME(x)      x##_f32
#include "ops/contract/taps_body.h"
#define T            double
#define BITS         int64_t
#define BYTES        16
#define FMA(x, y, z) ((x) * (y) + (z))
#define NAME(x)      x##_f64
#include "ops/contract/taps_body.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define T            float
#define BITS         int32_t
#define BYTES        32
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#define NAME(x)      x##_f32_avx2
#include "ops/contract/taps_body.h"
#define T            double
#define BITS         int64_t
#define BYTES        32
#define FMA(x, y, z) _mm256_fmadd_pd(x, y, z)
#define NAME(x)      x##_f64_avx2
#include "ops/contract/taps_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define PICK(f, t)                                                                                            \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? (t)->f64 ? f##_f64_avx2 : f##_f32_avx2 \
     : (t)->f64                                                      ? f##_f64                                \
                                                                     : f##_f32)
#else
#define PICK(f, t) ((t)->f64 ? f##_f64 : f##_f32)
#endif

/* ---- running ---- */

static void in_parallel(const cn__taps *t, int64_t units, double products, cn_body body)
{
    const double work = products / (double)larger(units, 1), least = 1 << 16;
    cn_parallel(t->k, units, work < least ? (int64_t)(least / (work + 1)) + 1 : 1, body, (void *)t);
}

static double products_of(const cn__taps *t)
{
    return (double)t->n * (double)t->groups * (double)t->positions * (double)t->rows *
           (double)(t->channels * t->volume + 1);
}

size_t cn__taps_scratch(const cn__taps *given, int threads)
{
    const cn__taps t = cut(given);
    return all_scratch(&t, threads);
}

void cn__taps_run(const cn__taps *given)
{
    const cn__taps t = cut(given);
    fill_offsets(&t, t.k->scratch);
    in_parallel(&t, t.groups * t.tiles, (double)numel_of(&t), PICK(pack, &t));
    in_parallel(&t, t.n * t.chunks * t.groups * t.blocks, products_of(&t), PICK(convolve, &t));
}

size_t cn__taps_weigh_scratch(const cn__taps *given, int threads)
{
    const cn__taps t = cut_for_weights(given);
    return all_scratch(&t, threads);
}

void cn__taps_weigh(const cn__taps *given)
{
    const cn__taps t = cut_for_weights(given);
    fill_offsets(&t, t.k->scratch);
    in_parallel(&t, t.parts * t.groups * t.blocks * t.slices, products_of(&t), PICK(weigh, &t));
    if (t.parts > 1) cn_parallel(t.k, numel_of(&t), 4096, PICK(merge, &t), (void *)&t);
}

/* Convolution by taps (see taps.h): computes the geometry of cells, cuts the work, runs the kernels of taps_cpu.c. */
#include "ops/contract/taps.h"

#include "ops/contract/taps_cells.h"
#include "ops/kernels.h"

enum {
    SHARES = 16,            /* about how many units the work is cut into */
    CHUNK = 1024,           /* about how many positions a chunk has */
    ROUND = 64,             /* chunks have a multiple of this: whole vectors for every kernel */
    SLICE = 320,            /* about how many products (channel, tap) a slice has: its cells stay in L1 */
    SLICE_BYTES = 1 << 17,  /* of a slice's cells: they stay in L2 */
    BLOCK_ROWS = 96,        /* the most rows of a block: the results of a chunk stay in L2 */
    LEAST_ROWS = 24,        /* of a block, if rows are cut to share the work */
    LEAST_POSITIONS = 128,  /* fewer positions do not fill vectors well */
    LEAST_PRODUCTS = 32,    /* fewer do not pay for storing a tile of results in short pieces */
    LEAST_SUMMED = 512,     /* positions; a sum over fewer ends too often with a partial vector */
    LEAST_USE = 24,         /* products for each copy of a cell, below which copying does not pay */
    SMALL_WEIGHT = 1 << 16, /* elements; smaller weights get sums of their own for each part of the images */
};

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
        if (shift_of(&a[d], a[d].count - 1) > CHUNK) return; /* products of such sizes may not fit an int64_t */
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

/* True if copying pays: for each cell there are rows·volume products and `copies` copies. It always pays for depthwise
   convolution: columns would be read only once, and products straight from the image are slow at its edges. */
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

/* ---- cutting ---- */


static void cut_channels(cn__taps *t, int64_t products, int64_t bytes)
{
    const int64_t most = cn__larger(cn__smaller(products / t->volume, SLICE_BYTES / bytes), 1);
    t->slice = cn__larger(cn__divide_up(t->channels, cn__larger(cn__divide_up(t->channels, most), 1)), 1);
    t->slices = cn__larger(cn__divide_up(t->channels, t->slice), 1);
}

static void cut_rows(cn__taps *t, int64_t height, int64_t others)
{
    const int64_t wanted = cn__smaller(cn__divide_up(SHARES, cn__larger(others, 1)), t->rows / LEAST_ROWS);
    t->tiles = cn__divide_up(t->rows, height);
    t->height = t->rows / cn__larger(t->tiles, 1);
    t->higher = t->rows % cn__larger(t->tiles, 1);
    t->blocks = cn__clamp(cn__larger(wanted, cn__divide_up(t->rows, BLOCK_ROWS)), 1, cn__larger(t->tiles, 1));
}

static void cut_positions(cn__taps *t)
{
    const int64_t line = 64 / t->size;
    t->chunk = cn__round_up(cn__divide_up(t->positions, cn__divide_up(t->positions, CHUNK)), ROUND);
    t->chunks = cn__divide_up(t->positions, t->chunk);
    /* An odd number of cache lines: the cells of different taps do not evict each other. */
    t->span = cn__round_up(t->chunk + t->reach, 2 * line) + line;
}

static cn__taps cut(const cn__taps *given)
{
    cn__taps t = *given;
    cut_positions(&t);
    cut_rows(&t, CN__TAPS_TILE_ROWS, t.n * t.chunks * t.groups);
    cut_channels(&t, SLICE, t.copies * t.span * t.size);
    t.shared = cn__taps_offset_bytes(&t) + aligned(cn__taps_numel(&t) * t.size);
    t.cells = aligned(t.slice * t.copies * t.span * t.size);
    return t;
}

/* For small weights the images are cut into parts. Large weights have enough blocks of rows and slices of channels. */
static cn__taps cut_for_weights(const cn__taps *given)
{
    cn__taps t = *given;
    cut_positions(&t);
    t.parts = cn__taps_numel(&t) <= SMALL_WEIGHT ? cn__clamp(t.n, 1, SHARES) : 1;
    t.run = t.chunks > 1 ? 1 : cn__clamp(CHUNK / t.chunk, 1, cn__larger(cn__divide_up(t.n, t.parts), 1));
    cut_rows(&t, CN__TAPS_DOT_ROWS, t.parts * t.groups);
    cut_channels(&t, INT64_MAX, t.run * t.copies * t.span * t.size);
    t.shared = cn__taps_offset_bytes(&t) + (t.parts > 1 ? aligned(t.parts * cn__taps_numel(&t) * t.size) : 0);
    t.cells = aligned(t.run * t.slice * t.copies * t.span * t.size);
    t.rest = aligned(t.run * cn__divide_up(t.tiles, t.blocks) * CN__TAPS_DOT_ROWS * CN__TAPS_MOST_LANES * t.size);
    return t;
}

/* ---- scratch: offsets; packed weights or the sums of parts; then, for each thread, cells and the rest of rows ---- */

static size_t all_scratch(const cn__taps *t, int threads) { return t->shared + (size_t)threads * (t->cells + t->rest); }

/* The offsets of a slice's products, one for each (channel, tap). */
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

/* Reports rows [first, last) of a group of an image as final at positions [from, from + n). */
void cn__taps_done(const cn__taps *t, int64_t group, int64_t first, int64_t last, int64_t from, int64_t n, int thread)
{
    const int64_t plane = t->positions, at = group * t->rows * plane + from;
    if (n == plane) cn_kernel_done(t->k, at + first * plane, at + last * plane, thread);
    else
        for (int64_t r = first; r < last; r++) cn_kernel_done(t->k, at + r * plane, at + r * plane + n, thread);
}

/* ---- running ---- */

static void in_parallel(const cn__taps *t, int64_t units, double products, cn_body body)
{
    const double work = products / (double)cn__larger(units, 1), least = 1 << 16;
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
    const cn__taps_kernels *kernels = &given->k->kernels->taps;
    const cn__taps t = cut(given);
    fill_offsets(&t, t.k->scratch);
    in_parallel(&t, t.groups * t.tiles, (double)cn__taps_numel(&t), kernels->pack[t.f64]);
    in_parallel(&t, t.n * t.chunks * t.groups * t.blocks, products_of(&t), kernels->convolve[t.f64]);
}

size_t cn__taps_weigh_scratch(const cn__taps *given, int threads)
{
    const cn__taps t = cut_for_weights(given);
    return all_scratch(&t, threads);
}

void cn__taps_weigh(const cn__taps *given)
{
    const cn__taps_kernels *kernels = &given->k->kernels->taps;
    const cn__taps t = cut_for_weights(given);
    fill_offsets(&t, t.k->scratch);
    in_parallel(&t, t.parts * t.groups * t.blocks * t.slices, products_of(&t), kernels->weigh[t.f64]);
    if (t.parts > 1) cn_parallel(t.k, cn__taps_numel(&t), 4096, kernels->merge[t.f64], (void *)&t);
}

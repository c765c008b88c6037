/* Cuts the work of a convolution into units, and copies images to columns and back (see columns.h). */
#include "ops/contract/columns.h"

#include "cpu/isa.h"
#include "ops/kernels.h"

enum {
    COLUMN_BYTES = 1 << 19, /* of a chunk's columns: they stay in the cache until they are multiplied */
    LEAST_POSITIONS = 128,  /* of a chunk, for any number of channels */
    LEAST_ROWS = 64,        /* of the column matrix of a block of channels */
    BLOCK_CHANNELS = 16,    /* a block has a multiple of this: whole panels of a product for any kernel size */
    WALKS = 16,             /* taps that are prepared at a time */
};

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static cn__conv describe(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    const cn__conv_attrs *a = k->attrs;
    cn__conv c = { .k = k, .a = a, .x = x->data, .weight = weight->data, .y = y->data, .f64 = x->dtype == CN_F64 };
    c.gemm = cn__kernel_gemm(k, x->dtype);
    c.s =
        (cn__conv_sizes){ x->shape[0], a->groups, weight->shape[1], weight->shape[0] / a->groups, { 0 }, { 0 }, { 0 } };
    c.size = c.f64 ? sizeof(double) : sizeof(float);
    c.volume = c.positions = c.pixels = 1;
    c.direct = true;
    for (int d = 0; d < 3; d++) {
        c.pixels *= c.s.in[d] = x->shape[2 + d];
        c.volume *= c.s.kernel[d] = weight->shape[2 + d];
        c.positions *= c.s.out[d] = y->shape[2 + d];
        c.direct &= c.s.kernel[d] == 1 && a->stride[d] == 1 && a->padding[d] == 0;
    }
    c.row = c.s.c * c.volume;
    return c;
}

cn__conv cn__conv_cut(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y, int64_t blocks,
                      cn__conv_product product)
{
    cn__conv c = describe(k, x, weight, y);
    const int64_t channels = cn__larger(c.s.c, 1), least = cn__divide_up(LEAST_ROWS, c.volume);
    c.block = cn__smaller(cn__larger(cn__divide_up(channels, cn__larger(blocks, 1)), least), channels);
    if (c.block < channels) c.block = cn__smaller(cn__divide_up(c.block, BLOCK_CHANNELS) * BLOCK_CHANNELS, channels);
    c.blocks = cn__divide_up(channels, c.block);
    const int64_t fitting = COLUMN_BYTES / c.size / (c.block * c.volume) / LEAST_POSITIONS * LEAST_POSITIONS;
    c.chunk = cn__smaller(cn__larger(fitting, LEAST_POSITIONS), c.positions);
    c.chunks = cn__divide_up(c.positions, c.chunk);
    c.packs = cn__gemm_alone_scratch(c.gemm);
    c.columns = c.direct ? 0 : aligned((size_t)(c.block * c.volume * c.chunk * c.size));
    for (int i = 0; i < 4; i++) { /* a smaller last block or last chunk may need more scratch */
        cn__gemm g = product(&c, i & 1 ? c.s.c - (c.blocks - 1) * c.block : c.block,
                             i & 2 ? c.positions - (c.chunks - 1) * c.chunk : c.chunk);
        const size_t one = cn__gemm_scratch(&g, 1), each = cn__gemm_scratch(&g, 2) - one;
        if (each > c.packs) c.packs = each;
        if (one - each > c.once) c.once = one - each;
    }
    return c;
}

/* A product on one thread uses the `packs` bytes of its thread. A product on all threads needs `once` bytes more. */
size_t cn__conv_scratch(const cn__conv *c, int threads) { return (size_t)threads * (c->columns + c->packs) + c->once; }

void cn__conv_multiply(const cn__conv *c, const cn__gemm *g, int thread)
{
    char *packs = (char *)c->k->scratch + (size_t)cn_threads(c->k) * c->columns;
    if (c->in_turn) cn__gemm_run(g, cn__kernel_workers(c->k), packs);
    else cn__gemm_run_alone(g, packs + (size_t)thread * c->packs);
}

typedef struct units {
    const cn__conv *c;
    cn__conv_unit run;
} units;

static void run_units(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const units *u = user;
    for (int64_t i = begin; i < end; i++) u->run(u->c, i, thread);
}

void cn__conv_run(const cn__conv *c, int64_t n, double work, cn__conv_unit unit)
{
    cn__conv all = *c;
    all.in_turn = n < cn_threads(c->k);
    units u = { &all, unit };
    const double least = 1 << 16;
    if (all.in_turn) run_units(c->k, &u, 0, n, 0);
    else cn_parallel(c->k, n, work < least ? (int64_t)(least / (work + 1)) + 1 : 1, run_units, &u);
}

/* ---- images and columns ---- */

/* A walk through a row of the column matrix: one tap of the kernel, position after position. */
typedef struct walk {
    int64_t left, whole;          /* positions that remain; whole lines among them, after the line that has begun */
    int64_t depth, height, width; /* the next position */
    int64_t shift[3];             /* pixel = position·stride + shift */
    int64_t first[3], last[3];    /* positions [first, last) see a pixel */
} walk;

/* Some lines of y, or a part of one. Each has `run` positions, of which `count` after the first `skip` see pixels;
   those of the first line begin at `pixel`. */
typedef struct lines {
    int64_t lines, run, skip, count, pixel;
} lines;

static walk walk_begin(const cn__conv *c, int64_t tap, int64_t at, int64_t len)
{
    const int64_t *kernel = c->s.kernel, *out = c->s.out;
    const int64_t place[3] = { tap / kernel[2] / kernel[1], tap / kernel[2] % kernel[1], tap % kernel[2] };
    walk w = { .left = len, .depth = at / out[2] / out[1], .height = at / out[2] % out[1], .width = at % out[2] };
    const int64_t begun = w.width ? cn__smaller(out[2] - w.width, len) : 0;
    w.whole = (len - begun) / out[2];
    for (int d = 0; d < 3; d++) {
        const int64_t stride = c->a->stride[d], shift = place[d] * c->a->dilation[d] - c->a->padding[d];
        const int64_t room = c->s.in[d] - 1 - shift;
        w.shift[d] = shift;
        w.first[d] = shift < 0 ? cn__divide_up(-shift, stride) : 0;
        w.last[d] = room < 0 ? 0 : room / stride + 1;
    }
    return w;
}

/* Prepares up to WALKS taps from `tap` on, for all channels: preparing a tap takes divisions. Returns their number. */
static int64_t walks_begin(const cn__conv *c, walk *walks, int64_t tap, int64_t at, int64_t len)
{
    const int64_t n = cn__smaller(WALKS, c->volume - tap);
    for (int64_t i = 0; i < n; i++) walks[i] = walk_begin(c, tap + i, at, len);
    return n;
}

CN__INLINE bool walk_next(const cn__conv *c, walk *w, lines *l)
{
    if (!w->left) return false;
    const int64_t *in = c->s.in, *out = c->s.out, *stride = c->a->stride, y = w->height;
    const bool whole = w->width == 0 && w->whole > 0;
    const int64_t stop = cn__smaller(out[1], y + (whole ? w->whole : 1));
    const int64_t alike = y < w->first[1] ? w->first[1] : y < w->last[1] ? w->last[1] : stop;
    const int64_t end = cn__smaller(out[2], w->width + w->left), first = cn__clamp(w->first[2], w->width, end);
    const bool inside = w->depth >= w->first[0] && w->depth < w->last[0] && y >= w->first[1] && y < w->last[1];
    *l = (lines){ .lines = cn__smaller(alike, stop) - y, .run = end - w->width, .skip = first - w->width };
    if (inside) l->count = cn__clamp(w->last[2], first, end) - first;
    if (l->count)
        l->pixel = ((w->depth * stride[0] + w->shift[0]) * in[1] + y * stride[1] + w->shift[1]) * in[2] +
                   first * stride[2] + w->shift[2];
    w->left -= l->lines * l->run;
    w->whole -= whole ? l->lines : 0;
    w->width = 0;
    w->height += l->lines;
    if (w->height == out[1]) w->height = 0, w->depth++;
    return true;
}

/* True for a convolution of planes with stride 1 whose result has the same size. Then position p sees pixel p + offset,
   and a row of columns is the shifted plane, with zeros where the pixel lies outside the plane. */
static bool keeps_size(const cn__conv *c)
{
    bool is = c->s.in[0] == 1 && c->s.kernel[0] == 1;
    for (int d = 0; d < 3; d++) is &= c->s.in[d] == c->s.out[d] && c->a->stride[d] == 1;
    return is;
}

/* A shifted plane: positions [first, last) see pixels, except for `gap` positions of each line, from `edge` on. */
typedef struct moved {
    int64_t offset, first, last, edge, gap;
} moved;

static moved moved_by(const cn__conv *c, int64_t tap, int64_t at, int64_t len)
{
    const int64_t down = tap / c->s.kernel[2] * c->a->dilation[1] - c->a->padding[1], width = c->s.in[2];
    const int64_t right = tap % c->s.kernel[2] * c->a->dilation[2] - c->a->padding[2];
    moved m = { .offset = down * width + right };
    m.first = cn__clamp(-m.offset, at, at + len);
    m.last = cn__clamp(c->pixels - m.offset, m.first, at + len);
    m.gap = cn__smaller(right < 0 ? -right : right, width);
    m.edge = right < 0 ? 0 : width - m.gap;
    return m;
}

#define EVENS_f32 0, 2, 5, 7
#define LOW_f32   0, 4, 1, 5
#define HIGH_f32  2, 6, 3, 7
#define EVENS_f64 0, 3
#define LOW_f64   0, 2
#define HIGH_f64  1, 3
#define TEMPLATE  "ops/contract/columns_body.h"
#define TYPES     CN__FLOAT_TYPES
#include "cpu/each_type.h"

char *cn__conv_columns(const cn__conv *c, char *image, int64_t at, int thread)
{
    return c->direct ? image + at * c->size : (char *)c->k->scratch + (size_t)thread * c->columns;
}

char *cn__conv_gather(const cn__conv *c, char *image, int64_t channels, int64_t at, int64_t len, int thread)
{
    void *to = cn__conv_columns(c, image, at, thread), *from = image;
    if (c->direct) return to;
    const bool whole = keeps_size(c);
    if (c->f64) (whole ? gather_moved_f64 : gather_f64)(c, to, from, channels, at, len);
    else (whole ? gather_moved_f32 : gather_f32)(c, to, from, channels, at, len);
    return to;
}

void cn__conv_scatter(const cn__conv *c, char *image, int64_t channels, int64_t at, int64_t len, int thread)
{
    void *from = cn__conv_columns(c, image, at, thread), *to = image;
    if (c->direct) return;
    const bool whole = keeps_size(c);
    if (c->f64) (whole ? scatter_moved_f64 : scatter_f64)(c, from, to, channels, at, len);
    else (whole ? scatter_moved_f32 : scatter_f32)(c, from, to, channels, at, len);
}

void cn__conv_thin_y(const cn__conv *c, void *y, const void *image, const void *weight, int64_t at, int64_t len)
{
    if (c->f64) thin_y_f64(c, y, image, weight, at, len);
    else thin_y_f32(c, y, image, weight, at, len);
}

void cn__conv_thin_x(const cn__conv *c, const void *y, void *image, const void *weight, int64_t channels)
{
    if (c->f64) thin_x_f64(c, y, image, weight, channels);
    else thin_x_f32(c, y, image, weight, channels);
}

void cn__conv_thin_w(const cn__conv *c, const void *y, const void *image, void *weight, int64_t channels)
{
    if (c->f64) thin_w_f64(c, y, image, weight, channels);
    else thin_w_f32(c, y, image, weight, channels);
}

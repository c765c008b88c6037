/* Convolution by patches (see patches.h): permutes images to patches and back, and multiplies. */
#include "ops/contract/patches.h"

#include <string.h>

#include "cpu/isa.h"
#include "ops/kernels.h"

enum {
    SOME_BYTES = 1 << 22, /* of the patches and positions that are permuted at a time */
    CHANNELS = 8,         /* of x that one part copies back: several taps fill the cache lines of a patch */
    OUTPUTS = 16,         /* channels of y that one part turns: a cache line of f32 */
    LEAST_RUN = 32,       /* bytes of a line of a patch; shorter ones are slower to copy than to gather as columns */
    FEW_POSITIONS = 32,   /* columns of so few positions are worse than short lines */
    LEAST_COPIED = 1 << 14,
};

cn__patches cn__patches_of(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    const cn__conv_attrs *a = k->attrs;
    cn__patches p = { .k = k, .x = x->data, .weight = weight->data, .y = y->data };
    p.size = x->dtype == CN_F64 ? sizeof(double) : sizeof(float);
    p.gemm = cn__kernel_gemm(k, x->dtype);
    p.n = x->shape[0], p.c = x->shape[1], p.o = y->shape[1];
    p.pixels = p.positions = 1;
    int64_t volume = 1;
    bool apart = true; /* no pixel is seen twice */
    for (int d = 0; d < 3; d++) {
        p.pixels *= p.in[d] = x->shape[2 + d];
        p.positions *= p.out[d] = y->shape[2 + d];
        volume *= p.kernel[d] = weight->shape[2 + d];
        apart &= p.kernel[d] == a->stride[d] && a->padding[d] == 0 && (a->dilation[d] == 1 || p.kernel[d] == 1);
    }
    p.row = p.c * volume;
    const bool pays = p.kernel[2] * p.size >= LEAST_RUN || p.positions <= FEW_POSITIONS;
    p.suits = apart && pays && a->groups == 1 && volume > 1 && p.o > 1 && p.n > 0 && p.positions > 0 && p.row > 0;
    if (p.suits) p.some = cn__clamp(SOME_BYTES / (p.positions * (p.row + p.o) * p.size), 1, p.n);
    return p;
}

/* ---- images and patches ---- */

/* Some images that are copied to patches or back. */
typedef struct copying {
    const cn__patches *p;
    int64_t first; /* image */
    char *patches; /* of the first image and those behind it */
    char *turned;  /* y of these images: (n·positions, o), or (o, n·positions) for the gradient of the weight */
} copying;

/* Copies n runs of `run` bytes. A constant size needs no call of memcpy. */
CN__INLINE void copy_each(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, size_t run)
{
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, run);
}

static void copy_runs(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, size_t run)
{
    switch (run) {
    case 4: copy_each(to, to_step, from, from_step, n, 4); break;
    case 8: copy_each(to, to_step, from, from_step, n, 8); break;
    case 16: copy_each(to, to_step, from, from_step, n, 16); break;
    case 32: copy_each(to, to_step, from, from_step, n, 32); break;
    case 64: copy_each(to, to_step, from, from_step, n, 64); break;
    default: copy_each(to, to_step, from, from_step, n, run);
    }
}

/* Copies channels [begin, end) of the patches of one line of positions, (z, y) of image n of some. */
static void copy_band(const copying *s, int64_t n, int64_t z, int64_t y, int64_t begin, int64_t end, bool back)
{
    const cn__patches *p = s->p;
    const int64_t *kernel = p->kernel, *in = p->in, lines = kernel[0] * kernel[1];
    const int64_t run = kernel[2] * p->size, patch = p->row * p->size;
    char *patches = s->patches + ((n * p->out[0] + z) * p->out[1] + y) * p->out[2] * patch;
    char *image = p->x + (s->first + n) * p->c * p->pixels * p->size;
    for (int64_t c = begin; c < end; c++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t plane = z * kernel[0] + i / kernel[1], line = y * kernel[1] + i % kernel[1];
            char *seen = patches + (c * lines + i) * run;
            char *pixels = image + (((c * in[0] + plane) * in[1] + line) * in[2]) * p->size;
            if (back) copy_runs(pixels, run, seen, patch, p->out[2], (size_t)run);
            else copy_runs(seen, patch, pixels, run, p->out[2], (size_t)run);
        }
}

/* To patches. A part is some lines of positions. */
static void gather(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const copying *s = user;
    const int64_t *out = s->p->out;
    for (int64_t i = begin; i < end; i++)
        copy_band(s, i / out[1] / out[0], i / out[1] % out[0], i % out[1], 0, s->p->c, false);
}

static bool has_rest(const cn__patches *p)
{
    bool rest = false;
    for (int d = 0; d < 3; d++) rest |= p->in[d] != p->out[d] * p->kernel[d];
    return rest;
}

/* From patches. A part is some blocks of channels of an image. Pixels that belong to no patch become 0. */
static void scatter(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const copying *s = user;
    const cn__patches *p = s->p;
    const int64_t blocks = cn__divide_up(p->c, CHANNELS);
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / blocks, first = i % blocks * CHANNELS, last = cn__smaller(first + CHANNELS, p->c);
        const int64_t from = ((s->first + n) * p->c + first) * p->pixels, numel = (last - first) * p->pixels;
        if (has_rest(p)) memset(p->x + from * p->size, 0, (size_t)(numel * p->size));
        for (int64_t z = 0; z < p->out[0]; z++)
            for (int64_t y = 0; y < p->out[1]; y++) copy_band(s, n, z, y, first, last, true);
        cn_kernel_done(k, from, from + numel, thread);
    }
}

typedef float four __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));

/* Transposes a square of 4x4 floats: two rounds interleave the first two rows with the last two. */
CN__INLINE void turn_square(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    four x[4], y[4];
    for (int i = 0; i < 4; i++) x[i] = *(const four *)(const void *)(from + i * from_row);
    for (int i = 0; i < 2; i++) {
        y[2 * i] = __builtin_shufflevector(x[i], x[i + 2], 0, 4, 1, 5);
        y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 2], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(four *)(void *)(to + 2 * i * to_row) = __builtin_shufflevector(y[i], y[i + 2], 0, 4, 1, 5);
        *(four *)(void *)(to + (2 * i + 1) * to_row) = __builtin_shufflevector(y[i], y[i + 2], 2, 6, 3, 7);
    }
}

/* y(o, p) = turned(p, o)ᵀ for `outputs` channels of an image: f32 by squares, what remains element by element. */
static void turn(const cn__patches *p, char *y, const char *turned, int64_t outputs)
{
    const int64_t size = p->size, line = p->positions * size, row = p->o * size;
    const bool squares = size == sizeof(float);
    const int64_t o4 = squares ? outputs - outputs % 4 : 0, p4 = squares ? p->positions - p->positions % 4 : 0;
    for (int64_t q = 0; q < p4; q += 4)
        for (int64_t o = 0; o < o4; o += 4)
            turn_square(y + o * line + q * size, line, turned + q * row + o * size, row);
    for (int64_t q = 0; q < p->positions; q++) {
        const int64_t first = q < p4 ? o4 : 0;
        copy_runs(y + first * line + q * size, line, turned + q * row + first * size, size, outputs - first,
                  (size_t)size);
    }
}

/* y(n, o, p) from turned (n·p, o). A part is some blocks of channels of an image. */
static void turn_y(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const copying *s = user;
    const cn__patches *p = s->p;
    const int64_t blocks = cn__divide_up(p->o, OUTPUTS);
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / blocks, first = i % blocks * OUTPUTS, count = cn__smaller(OUTPUTS, p->o - first);
        const int64_t at = ((s->first + n) * p->o + first) * p->positions;
        turn(p, p->y + at * p->size, s->turned + (n * p->positions * p->o + first) * p->size, count);
        cn_kernel_done(k, at, at + count * p->positions, thread);
    }
}

/* turned (o, n·p) from y(n, o, p), for channels [begin, end). */
static void join_y(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const copying *s = user;
    const cn__patches *p = s->p;
    const int64_t some = cn__smaller(p->some, p->n - s->first), line = p->positions * p->size;
    for (int64_t o = begin; o < end; o++)
        copy_runs(s->turned + o * some * line, line, p->y + (s->first * p->o + o) * line, p->o * line, some,
                  (size_t)line);
}

static void copy_all(const copying *s, cn_body body, int64_t parts, int64_t elements)
{
    cn_parallel(s->p->k, parts, cn__divide_up(LEAST_COPIED, elements), body, (void *)s);
}

static void gather_all(const copying *s, int64_t some)
{
    const cn__patches *p = s->p;
    copy_all(s, gather, some * p->out[0] * p->out[1], p->out[2] * p->row);
}

/* ---- products ---- */

static cn__gemm y_product(const cn__patches *p, int64_t some)
{
    return (cn__gemm){ .kernel = p->gemm,
                       .m = some * p->positions,
                       .n = p->o,
                       .k = p->row,
                       .a_row = p->row,
                       .a_col = 1,
                       .b_row = 1,
                       .b_col = p->row,
                       .c_row = p->o,
                       .c_col = 1 };
}

static cn__gemm x_product(const cn__patches *p, int64_t some)
{
    return (cn__gemm){ .kernel = p->gemm,
                       .m = p->positions,
                       .n = p->row,
                       .k = p->o,
                       .a_row = 1,
                       .a_col = p->positions,
                       .b_row = p->row,
                       .b_col = 1,
                       .c_row = p->row,
                       .c_col = 1,
                       .batch_dims = 1,
                       .batch_shape = { some },
                       .a_batch = { p->o * p->positions },
                       .c_batch = { p->positions * p->row } };
}

static cn__gemm weight_product(const cn__patches *p, int64_t some)
{
    return (cn__gemm){ .kernel = p->gemm,
                       .m = p->o,
                       .n = p->row,
                       .k = some * p->positions,
                       .a_row = some * p->positions,
                       .a_col = 1,
                       .b_row = p->row,
                       .b_col = 1,
                       .c_row = p->row,
                       .c_col = 1 };
}

/* ---- scratch: patches; y turned; what a product needs ---- */

static size_t patch_bytes(const cn__patches *p)
{
    return (size_t)cn__round_up(p->some * p->positions * p->row * p->size, 64);
}

static size_t y_bytes(const cn__patches *p)
{
    return (size_t)cn__round_up(p->some * p->positions * p->o * p->size, 64);
}

/* The last images may be fewer, and their product may need more scratch. */
static size_t scratch_of(const cn__patches *p, int threads, cn__gemm (*product)(const cn__patches *, int64_t))
{
    const cn__gemm g = product(p, p->some), last = product(p, (p->n - 1) % p->some + 1);
    const size_t a = cn__gemm_scratch(&g, threads), b = cn__gemm_scratch(&last, threads);
    return patch_bytes(p) + y_bytes(p) + (a > b ? a : b);
}

size_t cn__patches_y_scratch(const cn__patches *p, int threads) { return scratch_of(p, threads, y_product); }

size_t cn__patches_x_scratch(const cn__patches *p, int threads) { return scratch_of(p, threads, x_product); }

size_t cn__patches_weight_scratch(const cn__patches *p, int threads) { return scratch_of(p, threads, weight_product); }

static copying begin(const cn__patches *p)
{
    char *scratch = p->k->scratch;
    return (copying){ .p = p, .patches = scratch, .turned = scratch + patch_bytes(p) };
}

static void multiply(const copying *s, const cn__gemm *g)
{
    cn__gemm_run(g, cn__kernel_workers(s->p->k), s->turned + y_bytes(s->p));
}

/* ---- the three operators ---- */

void cn__patches_y(const cn__patches *p)
{
    for (copying s = begin(p); s.first < p->n; s.first += p->some) {
        const int64_t some = cn__smaller(p->some, p->n - s.first);
        gather_all(&s, some);
        cn__gemm g = y_product(p, some);
        g.a = s.patches;
        g.b = p->weight;
        g.c = s.turned;
        multiply(&s, &g);
        copy_all(&s, turn_y, some * cn__divide_up(p->o, OUTPUTS), OUTPUTS * p->positions);
    }
}

void cn__patches_x(const cn__patches *p)
{
    for (copying s = begin(p); s.first < p->n; s.first += p->some) {
        const int64_t some = cn__smaller(p->some, p->n - s.first);
        cn__gemm g = x_product(p, some);
        g.a = p->y + s.first * p->o * p->positions * p->size;
        g.b = p->weight;
        g.c = s.patches;
        multiply(&s, &g);
        copy_all(&s, scatter, some * cn__divide_up(p->c, CHANNELS), CHANNELS * p->pixels);
    }
}

void cn__patches_weight(const cn__patches *p)
{
    for (copying s = begin(p); s.first < p->n; s.first += p->some) {
        const int64_t some = cn__smaller(p->some, p->n - s.first);
        gather_all(&s, some);
        copy_all(&s, join_y, p->o, some * p->positions);
        cn__gemm g = weight_product(p, some);
        g.accumulate = s.first > 0;
        g.a = s.turned;
        g.b = s.patches;
        g.c = p->weight;
        multiply(&s, &g);
    }
}

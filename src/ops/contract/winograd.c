/* Convolution by Winograd's squares (see winograd.h): bands of squares, and the products. */
#include "ops/contract/winograd.h"

#include <string.h>

#include "ops/kernels.h"

enum {
    PLACES = 16, /* of a transformed square */
    TAPS = 9,
    APART = 16,           /* elements between the matrices of two places: equal sets of the cache would collide */
    SOME_BYTES = 1 << 18, /* of the transformed squares at a time, of source and result: they stay in L2 */
    LEAST_SQUARES = 64,   /* at a time, so that reading the weight pays */
    MOST_ACROSS = 1 << 9, /* squares in a line; longer lines are left to other kernels */
    SHARES = 8,           /* about how many units the work is cut into */
    PART_SQUARES = 128,   /* of a part of the gradient of the weight, if there are more than LEAST_PARTS */
    LEAST_PARTS = 4,
    SUMS_BYTES = 1 << 24,   /* of the sums that are formed apart */
    SLICE = 384,            /* channels that are multiplied at a time */
    CHANNELS = 16,          /* that one part packs, or turns */
    LEAST_COPIED = 1 << 13, /* elements that a part copies */
};

/* ---- geometry ---- */

/* Lines [first, first + lines) of squares in a plane of an image. They see lines of the source from 2·first - before. */
typedef struct band {
    int64_t plane, first, lines;
} band;

static int64_t all_bands(const cn__winograd *w) { return w->planes * w->bands; }

static band band_at(const cn__winograd *w, int64_t index)
{
    band b = { .plane = index / w->bands, .first = index % w->bands * w->lines };
    b.lines = cn__smaller(w->lines, w->tall - b.first);
    return b;
}

/* The first element of a plane that has `channels` channels of so many pixels. */
static int64_t plane_start(const cn__winograd *w, int64_t plane, int64_t channels, const int64_t size[2])
{
    const int64_t pixels = size[0] * size[1];
    return (plane / w->deep * channels * w->deep + plane % w->deep) * pixels;
}

static int64_t band_start(const cn__winograd *w, const band *b)
{
    return plane_start(w, b->plane, w->outputs, w->out) + 2 * b->first * w->out[1];
}

/* The positions of a band. */
static int64_t band_numel(const cn__winograd *w, const band *b)
{
    return (cn__smaller(2 * (b->first + b->lines), w->out[0]) - 2 * b->first) * w->out[1];
}

static int64_t most_squares(const cn__winograd *w) { return w->some * w->lines * w->across; }

static void cut(cn__winograd *w)
{
    const int64_t all = w->planes * w->tall * w->across;
    int64_t wanted = SOME_BYTES / (PLACES * (w->channels + w->pitch) * (int64_t)sizeof(float));
    wanted = cn__smaller(cn__larger(wanted, LEAST_SQUARES), cn__divide_up(all, SHARES));
    w->bands = cn__divide_up(w->tall, cn__clamp(wanted / w->across, 1, w->tall));
    w->lines = cn__divide_up(w->tall, w->bands);
    w->bands = cn__divide_up(w->tall, w->lines);
    w->some = cn__clamp(wanted / (w->lines * w->across), 1, all_bands(w));
    w->high = 2 * w->lines + 2;
    w->wide = cn__larger(2 * w->across + 2, w->before[1] + w->in[1]);
    const int64_t sums = PLACES * w->channels * w->panels * w->gemm->width * (int64_t)sizeof(float);
    const int64_t parts = cn__clamp(all / PART_SQUARES, LEAST_PARTS, SHARES);
    w->parts = cn__smaller(cn__smaller(parts, all_bands(w)), SUMS_BYTES / sums);
}

/* Unused lanes of the last panel, and positions of the last squares that there are not, cost as much as others. */
static bool pays(const cn__winograd *w)
{
    const int64_t lanes = w->gemm->lanes, positions = 4 * w->tall * w->across;
    return w->channels >= lanes && 4 * w->outputs >= 3 * w->pitch && 2 * w->out[0] * w->out[1] >= positions &&
           w->planes * w->tall * w->across >= LEAST_SQUARES && w->across <= MOST_ACROSS;
}

static cn__winograd begin(const cn_kernel *k, const cn_array *source, const cn_array *weight, const cn_array *result,
                          bool backward)
{
    const cn__conv_attrs *a = k->attrs;
    cn__winograd w = { .k = k, .backward = backward };
    if (source->dtype != CN_F32 || a->groups != 1 || weight->shape[2] != 1 || a->padding[0] != 0) return w;
    for (int d = 0; d < 3; d++)
        if (a->stride[d] != 1 || a->dilation[d] != 1 || (d && (weight->shape[2 + d] != 3 || a->padding[d] > 2)))
            return w;
    w.gemm = cn__kernel_gemm(k, source->dtype);
    w.source = source->data, w.weight = weight->data, w.result = result->data;
    w.deep = source->shape[2], w.planes = source->shape[0] * w.deep;
    w.channels = source->shape[1], w.outputs = result->shape[1];
    for (int d = 0; d < 2; d++) {
        w.in[d] = source->shape[3 + d], w.out[d] = result->shape[3 + d];
        w.before[d] = backward ? 2 - a->padding[1 + d] : a->padding[1 + d];
    }
    w.tall = cn__divide_up(w.out[0], 2), w.across = cn__divide_up(w.out[1], 2);
    const int64_t rest = w.outputs % w.gemm->width, lanes = w.gemm->lanes;
    w.pitch = w.outputs - rest + (rest > lanes ? w.gemm->width : rest ? lanes : 0);
    w.panels = cn__divide_up(w.outputs, w.gemm->width);
    w.suits = pays(&w);
    if (w.suits) cut(&w);
    w.suits = w.suits && w.high * w.wide * w.channels <= INT32_MAX && 4 * w.lines * w.across * w.pitch < INT32_MAX;
    w.weighs = w.suits && w.parts >= LEAST_PARTS;
    return w;
}

/* The operator conv may ask for plain sums. */
cn__winograd cn__winograd_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    const bool plain = k->op == &cn__op_conv && ((const cn__conv_attrs *)k->attrs)->size[0] == CN__CONV_PLAIN;
    return plain ? (cn__winograd){ .k = k } : begin(k, x, weight, y, false);
}

cn__winograd cn__winograd_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    return begin(k, y, weight, x, true);
}

/* ---- scratch: places of pixels; the transformed weight, or sums; then, for each thread, bands and squares ---- */

static int64_t aligned(int64_t numel) { return cn__round_up(numel, 16); }

/* Blocks of channels of a panel, which one part packs or turns; all of them. */
static int64_t blocks(const cn__winograd *w) { return cn__divide_up(w->channels, CHANNELS); }
static int64_t all_blocks(const cn__winograd *w) { return w->panels * blocks(w); }

/* Places of pixels in a copied band, and of positions in one with even sides; whether blocks of the weight's gradient
   are finite. */
static int64_t place_numel(const cn__winograd *w)
{
    return aligned(w->high * w->in[1]) + aligned(2 * w->lines * w->out[1]) + aligned(all_blocks(w));
}
static int32_t *pixel_places(const cn__winograd *w) { return w->k->scratch; }
static int32_t *position_places(const cn__winograd *w) { return pixel_places(w) + aligned(w->high * w->in[1]); }
static int32_t *finite_blocks(const cn__winograd *w) { return position_places(w) + aligned(2 * w->lines * w->out[1]); }

/* Elements: of a panel of the weight or of its gradient, for one place; of a copied band; of positions, with even sides,
   and one more behind them. */
static int64_t panel_numel(const cn__winograd *w) { return w->channels * w->gemm->width; }
static int64_t weight_numel(const cn__winograd *w) { return PLACES * w->panels * panel_numel(w); }
static int64_t source_numel(const cn__winograd *w) { return aligned(w->high * w->wide * w->channels); }
static int64_t result_numel(const cn__winograd *w) { return aligned((4 * w->lines * w->across + 1) * w->pitch); }

/* Elements of one place of all squares: (squares, channels); (squares, pitch); (panels, squares, width). */
static int64_t seen_numel(const cn__winograd *w) { return aligned(most_squares(w) * w->channels) + APART; }
static int64_t sum_numel(const cn__winograd *w) { return aligned(most_squares(w) * w->pitch) + APART; }
static int64_t packed_numel(const cn__winograd *w) { return most_squares(w) * w->panels * w->gemm->width + APART; }

/* One thread's memory. */
typedef struct own {
    float *source, *result, *seen, *sums;
} own;

/* All places of the source; a panel of the weight's taps; what pack and turn_sums need. */
static int64_t most_seen(const cn__winograd *w)
{
    const int64_t turned = (PLACES + TAPS) * CHANNELS * w->gemm->width;
    return cn__larger(PLACES * seen_numel(w), cn__larger(TAPS * panel_numel(w), turned));
}

static int64_t own_numel(const cn__winograd *w, int64_t sums)
{
    return source_numel(w) + result_numel(w) + most_seen(w) + PLACES * sums;
}

static own own_of(const cn__winograd *w, int64_t shared, int64_t sums, int thread)
{
    own o = { .source = (float *)w->k->scratch + place_numel(w) + shared + thread * own_numel(w, sums) };
    o.result = o.source + source_numel(w);
    o.seen = o.result + result_numel(w);
    o.sums = o.seen + most_seen(w);
    return o;
}

static void fill_places(const cn__winograd *w)
{
    int32_t *pixel = pixel_places(w), *position = position_places(w);
    for (int64_t y = 0; y < w->high; y++)
        for (int64_t x = 0; x < w->in[1]; x++) *pixel++ = (int32_t)((y * w->wide + x) * w->channels);
    for (int64_t y = 0; y < 2 * w->lines; y++)
        for (int64_t x = 0; x < w->out[1]; x++) *position++ = (int32_t)((2 * y * w->across + x) * w->pitch);
}

/* ---- squares ---- */

/* Copies the pixels that a band sees: (lines, pixels, channels), with zeros around the image. */
static void spread(const cn__winograd *w, const band *b, float *to)
{
    const int64_t line = w->wide * w->channels, left = w->before[1] * w->channels, pixels = w->in[1] * w->channels;
    const int64_t top = 2 * b->first - w->before[0];
    const int64_t low = cn__clamp(top, 0, w->in[0]), high = cn__clamp(top + 2 * b->lines + 2, low, w->in[0]);
    for (int64_t y = 0; y < 2 * b->lines + 2; y++) {
        float *at = to + y * line;
        const bool inside = top + y >= low && top + y < high;
        memset(at, 0, sizeof(float) * (size_t)(inside ? left : line));
        if (inside) memset(at + left + pixels, 0, sizeof(float) * (size_t)(line - left - pixels));
    }
    const int64_t from = plane_start(w, b->plane, w->channels, w->in) + low * w->in[1];
    w->gemm->spread(to + (low - top) * line + left, pixel_places(w), w->source + from, w->deep * w->in[0] * w->in[1],
                    w->channels, (high - low) * w->in[1]);
}

/* Copies and transforms the sources of bands [first, end) to (places, squares, channels); returns the squares. */
static int64_t see(const cn__winograd *w, int64_t first, int64_t end, const own *o)
{
    const int64_t line = w->wide * w->channels, place = seen_numel(w);
    cn__gemm_squares s = { .form = CN__SQUARE_SOURCE,
                           .n = w->channels,
                           .count = w->across,
                           .from_y = line,
                           .from_x = w->channels,
                           .from_next = 2 * w->channels,
                           .to_y = 4 * place,
                           .to_x = place,
                           .to_next = w->channels };
    int64_t squares = 0;
    for (int64_t i = first; i < end; i++) {
        const band b = band_at(w, i);
        spread(w, &b, o->source);
        for (int64_t y = 0; y < b.lines; y++, squares += w->across) {
            s.from = o->source + 2 * y * line;
            s.to = o->seen + squares * w->channels;
            w->gemm->squares(&s);
        }
    }
    return squares;
}

/* ---- result = source · weight ---- */

/* Packs channels [first, first + n) of a panel of the weight: (taps, n, width). The kernel is reversed for the gradient of
   the input. */
static void pack_taps(const cn__winograd *w, float *to, int64_t panel, int64_t first, int64_t n)
{
    const int64_t width = w->gemm->width, cols = cn__smaller(width, w->outputs - panel * width);
    const int64_t in = w->backward ? w->outputs * TAPS : TAPS, out = w->backward ? TAPS : w->channels * TAPS;
    const float *const from = w->weight + first * in + panel * width * out;
    for (int64_t t = 0; t < TAPS; t++)
        w->gemm->pack_b(to + t * n * width, from + (w->backward ? TAPS - 1 - t : t), n, cols, in, out);
}

/* Packs and transforms some blocks of the weight: (places, panels, channels, width). */
static void pack(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const cn__winograd *w = user;
    const int64_t width = w->gemm->width, place = w->panels * panel_numel(w);
    float *const taps = own_of(w, weight_numel(w), sum_numel(w), thread).seen;
    for (int64_t i = begin; i < end; i++) {
        const int64_t panel = i / blocks(w), first = i % blocks(w) * CHANNELS;
        const int64_t n = cn__smaller(CHANNELS, w->channels - first);
        pack_taps(w, taps, panel, first, n);
        w->gemm->squares(&(cn__gemm_squares){ .form = CN__SQUARE_WEIGHT,
                                              .n = n * width,
                                              .count = 1,
                                              .from = taps,
                                              .from_y = 3 * n * width,
                                              .from_x = n * width,
                                              .to = w->packed + panel * panel_numel(w) + first * width,
                                              .to_y = 4 * place,
                                              .to_x = place });
    }
}

static void multiply(const cn__winograd *w, const own *o, int64_t squares)
{
    const int64_t width = w->gemm->width;
    cn__gemm_runs g = { .m = squares, .runs = 1, .a_row = w->channels, .a_col = 1, .c_row = w->pitch };
    for (int64_t at = 0; at < PLACES; at++)
        for (int64_t panel = 0; panel < w->panels; panel++)
            for (int64_t c = 0; c < w->channels; c += SLICE) {
                g.n = cn__smaller(width, w->outputs - panel * width);
                g.k = cn__smaller(SLICE, w->channels - c);
                g.a = o->seen + at * seen_numel(w) + c;
                g.b = w->packed + (at * w->panels + panel) * panel_numel(w) + c * width;
                g.c = o->sums + at * sum_numel(w) + panel * width;
                g.add = c > 0;
                w->gemm->multiply_runs(&g);
            }
}

/* Reports the positions of a band as final, for all outputs. */
static void band_done(const cn__winograd *w, const band *b, int thread)
{
    const int64_t at = band_start(w, b), n = band_numel(w, b), positions = w->deep * w->out[0] * w->out[1];
    if (n == positions) cn_kernel_done(w->k, at, at + w->outputs * n, thread);
    else
        for (int64_t i = 0; i < w->outputs; i++)
            cn_kernel_done(w->k, at + i * positions, at + i * positions + n, thread);
}

/* A band as a plain sum: what the taps of one line of the kernel see is contiguous. */
static void sum_band(const cn__winograd *w, const band *b, const own *o)
{
    const int64_t width = w->gemm->width, line = w->wide * w->channels;
    cn__gemm_runs g = { .m = w->out[1],
                        .k = 3 * w->channels,
                        .runs = 3,
                        .a_row = w->channels,
                        .a_col = 1,
                        .a_run = line,
                        .b = o->seen,
                        .c_row = w->pitch };
    spread(w, b, o->source);
    for (int64_t panel = 0; panel < w->panels; panel++) {
        pack_taps(w, o->seen, panel, 0, w->channels);
        g.n = cn__smaller(width, w->outputs - panel * width);
        for (int64_t y = 0; y < 2 * b->lines; y++) {
            g.a = o->source + y * line;
            g.c = o->result + y * w->out[1] * w->pitch + panel * width;
            w->gemm->multiply_runs(&g);
        }
    }
}

/* Transforms the sums of a band, from square `first` on. Squares go from right to left: in a line of odd length the last
   one writes to the next line, which is written afterwards. */
static void finish(const cn__winograd *w, const band *b, const own *o, int64_t first, int thread)
{
    const int64_t place = sum_numel(w);
    cn__gemm_squares s = { .form = CN__SQUARE_RESULT,
                           .n = w->pitch,
                           .count = w->across,
                           .from_y = 4 * place,
                           .from_x = place,
                           .from_next = -w->pitch,
                           .to_y = w->out[1] * w->pitch,
                           .to_x = w->pitch,
                           .to_next = -2 * w->pitch };
    bool finite = true;
    for (int64_t y = 0; y < b->lines; y++) {
        s.from = o->sums + (first + (y + 1) * w->across - 1) * w->pitch;
        s.to = o->result + (2 * y * w->out[1] + 2 * (w->across - 1)) * w->pitch;
        finite &= w->gemm->squares(&s);
    }
    if (!finite) sum_band(w, b, o);
    w->gemm->collect(w->result + band_start(w, b), w->deep * w->out[0] * w->out[1], o->result, w->pitch,
                     band_numel(w, b), w->outputs);
    band_done(w, b, thread);
}

static void convolve(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const cn__winograd *w = user;
    const own o = own_of(w, weight_numel(w), sum_numel(w), thread);
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * w->some, last = cn__smaller(first + w->some, all_bands(w));
        multiply(w, &o, see(w, first, last, &o));
        for (int64_t j = first, squares = 0; j < last; j++) {
            const band b = band_at(w, j);
            finish(w, &b, &o, squares, thread);
            squares += b.lines * w->across;
        }
    }
}

size_t cn__winograd_scratch(const cn__winograd *w, int threads)
{
    return sizeof(float) * (size_t)(place_numel(w) + weight_numel(w) + threads * own_numel(w, sum_numel(w)));
}

void cn__winograd_run(const cn__winograd *given)
{
    bool made;
    cn__winograd w = *given;
    const size_t bytes = sizeof(float) * (size_t)weight_numel(&w);
    float *const kept = cn__kernel_form(w.k, 1, CN__FORM_SQUARES, w.backward, bytes, &made);
    w.packed = kept ? kept : (float *)w.k->scratch + place_numel(&w);
    fill_places(&w);
    if (!kept || !made)
        cn_parallel(w.k, all_blocks(&w), cn__divide_up(LEAST_COPIED, TAPS * CHANNELS * w.gemm->width), pack, &w);
    cn_parallel(w.k, cn__divide_up(all_bands(&w), w.some), 1, convolve, &w);
}

/* ---- weight = sum over squares of sourceᵀ · result ---- */

static float *part_sums(const cn__winograd *w, int64_t part)
{
    return (float *)w->k->scratch + place_numel(w) + part * weight_numel(w);
}

/* Copies and transforms the results of bands [first, end) to (places, panels, squares, width). */
static void pack_results(const cn__winograd *w, int64_t first, int64_t end, int64_t squares, const own *o)
{
    const int64_t width = w->gemm->width, place = packed_numel(w), line = 2 * w->across * w->pitch;
    cn__gemm_squares s = { .form = CN__SQUARE_GRADIENT,
                           .count = w->across,
                           .from_y = line,
                           .from_x = w->pitch,
                           .from_next = 2 * w->pitch,
                           .to_y = 4 * place,
                           .to_x = place,
                           .to_next = width };
    for (int64_t i = first, square = 0; i < end; i++) {
        const band b = band_at(w, i);
        const int64_t n = band_numel(w, &b);
        if (n != 4 * b.lines * w->across || w->outputs != w->pitch)
            memset(o->result, 0, sizeof(float) * (size_t)result_numel(w));
        w->gemm->spread(o->result, position_places(w), w->result + band_start(w, &b), w->deep * w->out[0] * w->out[1],
                        w->outputs, n);
        for (int64_t y = 0; y < b.lines; y++, square += w->across)
            for (int64_t panel = 0; panel < w->panels; panel++) {
                s.n = cn__smaller(width, w->pitch - panel * width);
                s.from = o->result + 2 * y * line + panel * width;
                s.to = o->sums + (panel * squares + square) * width;
                w->gemm->squares(&s);
            }
    }
}

/* Sums the bands of some parts. */
static void weigh(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const cn__winograd *w = user;
    const own o = own_of(w, w->parts * weight_numel(w), packed_numel(w), thread);
    const int64_t width = w->gemm->width;
    for (int64_t part = begin; part < end; part++) {
        const int64_t low = all_bands(w) * part / w->parts, high = all_bands(w) * (part + 1) / w->parts;
        for (int64_t first = low; first < high; first += w->some) {
            const int64_t last = cn__smaller(first + w->some, high), squares = see(w, first, last, &o);
            pack_results(w, first, last, squares, &o);
            cn__gemm_runs g = {
                .m = w->channels, .k = squares, .runs = 1, .a_row = 1, .a_col = w->channels, .c_row = width
            };
            g.add = first > low;
            for (int64_t at = 0; at < PLACES; at++)
                for (int64_t panel = 0; panel < w->panels; panel++) {
                    g.n = cn__smaller(width, w->outputs - panel * width);
                    g.a = o.seen + at * seen_numel(w);
                    g.b = o.sums + at * packed_numel(w) + panel * squares * width;
                    g.c = part_sums(w, part) + (at * w->panels + panel) * panel_numel(w);
                    w->gemm->multiply_runs(&g);
                }
        }
    }
}

/* weight(outputs, channels, taps) from the sums, for some blocks. */
static void turn_sums(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k;
    const cn__winograd *w = user;
    const int64_t width = w->gemm->width;
    float *const sums = own_of(w, w->parts * weight_numel(w), packed_numel(w), thread).seen;
    for (int64_t i = begin; i < end; i++) {
        const int64_t panel = i / blocks(w), first = i % blocks(w) * CHANNELS;
        const int64_t n = cn__smaller(CHANNELS, w->channels - first);
        float *const taps = sums + PLACES * n * width; /* (n, taps, width) */
        w->gemm->sum(&(cn__gemm_sum){ .m = PLACES,
                                      .n = n * width,
                                      .count = w->parts,
                                      .from = part_sums(w, 0) + panel * panel_numel(w) + first * width,
                                      .from_row = w->panels * panel_numel(w),
                                      .step = weight_numel(w),
                                      .c = sums,
                                      .c_row = n * width,
                                      .c_col = 1 });
        finite_blocks(w)[i] = w->gemm->squares(&(cn__gemm_squares){ .form = CN__SQUARE_SUMS,
                                                                    .n = cn__smaller(width, w->pitch - panel * width),
                                                                    .count = n,
                                                                    .from = sums,
                                                                    .from_y = 4 * n * width,
                                                                    .from_x = n * width,
                                                                    .from_next = width,
                                                                    .to = taps,
                                                                    .to_y = 3 * width,
                                                                    .to_x = width,
                                                                    .to_next = TAPS * width });
        w->gemm->collect(w->weight + (panel * width * w->channels + first) * TAPS, w->channels * TAPS, taps, width,
                         n * TAPS, cn__smaller(width, w->outputs - panel * width));
    }
}

size_t cn__winograd_weigh_scratch(const cn__winograd *w, int threads)
{
    const int64_t own = own_numel(w, packed_numel(w));
    return sizeof(float) * (size_t)(place_numel(w) + w->parts * weight_numel(w) + threads * own);
}

bool cn__winograd_weigh(const cn__winograd *w)
{
    fill_places(w);
    cn_parallel(w->k, w->parts, 1, weigh, (void *)w);
    cn_parallel(w->k, all_blocks(w), cn__divide_up(LEAST_COPIED, TAPS * CHANNELS * w->gemm->width), turn_sums,
                (void *)w);
    bool finite = true;
    for (int64_t i = 0; i < all_blocks(w); i++) finite &= finite_blocks(w)[i];
    return finite;
}

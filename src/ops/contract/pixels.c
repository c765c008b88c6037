/* Convolution by pixels (see pixels.h): the geometry of phases and bands, and the products. */
#include "ops/contract/pixels.h"

#include <string.h>

#include "ops/kernels.h"

enum {
    SHARES = 16,            /* about how many units the work is cut into */
    BAND_BYTES = 3 << 17,   /* of a band, source and result: it stays in L2 */
    MOST_BYTES = 1 << 21,   /* of a band of one line; longer lines are left to other kernels */
    SOME_BYTES = 1 << 21,   /* of the bands that are copied at a time for the gradient of the weight */
    LEAST_LINES = 4,        /* of a band that is cut to share the work */
    MANY_OUTPUTS = 48,      /* for which bands may have fewer lines */
    LEAST_BANDS = 8,        /* fewer are left to kernels that share a single product */
    LEAST_CHANNELS = 8,     /* of the source at stride 1: taps take fewer in less time */
    LEAST_POSITIONS = 128,  /* of all images; fewer do not pay for packing the weight */
    SLICE = 384,            /* elements of the runs that are multiplied at a time */
    MOST_REACH = 1 << 7,    /* pixels of padding, and of a dilated kernel */
    LEAST_COPIED = 1 << 13, /* elements that a part copies */
    LEAST_WORK = 1 << 16,   /* products of a part */
};

/* ---- phases ---- */

/* Along one axis: place `first + q·step` of the result, for q < count, sees the pixel `from + q·by + j·apart` of the
   source through tap `tap + j·tap_by`, for j < taps. */
typedef struct phase {
    int64_t first, step, count, from, by;
    int64_t taps, apart, tap, tap_by;
    int64_t before; /* taps of the phases before this one */
} phase;

static int64_t phases(const cn__pixels *p, int d) { return p->backward ? p->a->stride[d] : 1; }

/* The phase of a place of the result. */
static int64_t phase_of(const cn__pixels *p, int d, int64_t place)
{
    return p->backward ? (place + p->a->padding[d]) % p->a->stride[d] : 0;
}

static phase phase_at(const cn__pixels *p, int d, int64_t at)
{
    const int64_t stride = p->a->stride[d], padding = p->a->padding[d], dilation = p->a->dilation[d];
    const int64_t taps = p->kernel[d], out = p->out[d];
    if (!p->backward)
        return (phase){
            .step = 1, .count = out, .from = -padding, .by = stride, .taps = taps, .apart = dilation, .tap_by = 1
        };
    /* Pixel x sees tap t from position (x + padding - t·dilation) / stride, if that is whole. Taps are in descending
       order, so that positions ascend. */
    phase h = { .first = (at + stride - padding % stride) % stride, .step = stride, .by = 1 };
    h.count = h.first < out ? (out - 1 - h.first) / stride + 1 : 0;
    int64_t every = 1, least = taps;
    while (every * dilation % stride) every++;
    for (int64_t t = cn__smaller(every, taps) - 1; t >= 0; t--) {
        const int64_t other = t * dilation % stride, n = (taps - 1 - t) / every + 1;
        if (other == at) least = t, h.taps = n;
        else if (other < at) h.before += n;
    }
    h.tap = least + (h.taps - 1) * every;
    h.tap_by = -every;
    h.apart = every * dilation / stride;
    h.from = (h.first + padding - h.tap * dilation) / stride;
    return h;
}

/* The q of a phase whose places are below `end`. */
static int64_t count_below(const phase *h, int64_t end)
{
    return end <= h->first ? 0 : cn__smaller(h->count, (end - 1 - h->first) / h->step + 1);
}

/* ---- bands ---- */

/* Lines [first, end) of plane z of the result; item: the image and the group. They see lines [low, high) of the
   source. */
typedef struct band {
    int64_t item, z, first, end, low, high;
} band;

/* The pixels that places [first, end) of an axis see. */
static void seen_by(const cn__pixels *p, int d, int64_t first, int64_t end, int64_t *low, int64_t *high)
{
    *low = INT64_MAX, *high = INT64_MIN;
    for (int64_t f = 0; f < phases(p, d); f++) {
        const phase h = phase_at(p, d, f);
        const int64_t q = count_below(&h, first), stop = count_below(&h, end);
        if (q == stop || !h.taps) continue;
        *low = cn__smaller(*low, h.from + q * h.by);
        *high = cn__larger(*high, h.from + (stop - 1) * h.by + (h.taps - 1) * h.apart + 1);
    }
    if (*high < *low) *low = *high = 0;
}

static band band_at(const cn__pixels *p, int64_t index)
{
    band b = { .item = index / p->bands / p->out[0], .z = index / p->bands % p->out[0] };
    b.first = index % p->bands * p->lines;
    b.end = cn__smaller(b.first + p->lines, p->out[1]);
    seen_by(p, 1, b.first, b.end, &b.low, &b.high);
    return b;
}

/* The first position of a band in the result, for its first output; and how many positions it has. */
static int64_t band_start(const cn__pixels *p, const band *b)
{
    return b->item * p->outputs * p->positions + (b->z * p->out[1] + b->first) * p->out[2];
}
static int64_t band_numel(const cn__pixels *p, const band *b) { return (b->end - b->first) * p->out[2]; }

static int64_t source_numel(const cn__pixels *p) { return p->deep * p->high * p->wide * p->channels; }
static int64_t result_numel(const cn__pixels *p) { return p->lines * p->out[2] * p->pitch; }

static void set_lines(cn__pixels *p, int64_t lines)
{
    const int64_t reach = (p->kernel[1] - 1) * p->a->dilation[1], stride = p->a->stride[1];
    p->lines = lines;
    p->bands = cn__divide_up(p->out[1], lines);
    p->high = p->backward ? (lines - 1 + reach) / stride + 2 : (lines - 1) * stride + reach + 1;
}

static bool fits(const cn__pixels *p, int64_t bytes) { return (source_numel(p) + result_numel(p)) * p->size <= bytes; }

static int64_t all_bands(const cn__pixels *p) { return p->n * p->groups * p->out[0] * p->bands; }

static void cut(cn__pixels *p)
{
    int64_t high;
    seen_by(p, 2, 0, p->out[2], &p->low, &high);
    p->low = cn__smaller(p->low, 0);
    p->wide = cn__larger(high, p->in[2]) - p->low;
    p->deep = p->kernel[0];
    int64_t lines = p->out[1];
    for (set_lines(p, lines); lines > 1; set_lines(p, lines)) {
        const bool enough = all_bands(p) >= SHARES || lines < 2 * LEAST_LINES;
        if (enough && fits(p, BAND_BYTES)) break;
        lines = cn__divide_up(lines, 2);
    }
    /* Of few and small pictures, bands have fewer lines: many outputs pay for pixels that are copied more often. */
    while (lines > 1 && all_bands(p) < LEAST_BANDS && p->outputs >= MANY_OUTPUTS)
        set_lines(p, lines = cn__divide_up(lines, 2));
}

/* Whether products are wide enough: unused lanes of the last panel cost as much as others. At stride 1 taps compete, and
   otherwise columns, which are slower. */
static bool pays(const cn__pixels *p, bool strided)
{
    if (strided) return 4 * p->outputs >= 3 * p->pitch;
    return 8 * p->outputs >= 7 * p->pitch && p->channels >= LEAST_CHANNELS;
}

static cn__pixels begin(const cn_kernel *k, const cn_array *source, const cn_array *weight, const cn_array *result,
                        bool backward)
{
    cn__pixels p = { .k = k, .a = k->attrs, .source = source->data, .weight = weight->data, .result = result->data };
    p.backward = backward;
    p.size = source->dtype == CN_F64 ? sizeof(double) : sizeof(float);
    p.gemm = cn__kernel_gemm(k, source->dtype);
    p.n = source->shape[0], p.groups = p.a->groups;
    p.channels = source->shape[1] / p.groups, p.outputs = result->shape[1] / p.groups;
    p.volume = p.pixels = p.positions = 1;
    bool near = true, seen = true; /* seen: every pixel is, and not only those of some phases */
    int64_t apart = 1;             /* the volume of a kernel that sees every pixel once */
    for (int d = 0; d < 3; d++) {
        p.pixels *= p.in[d] = source->shape[2 + d];
        p.positions *= p.out[d] = result->shape[2 + d];
        p.volume *= p.kernel[d] = weight->shape[2 + d];
        near &=
            p.a->padding[d] <= MOST_REACH && p.kernel[d] <= MOST_REACH && p.a->dilation[d] <= MOST_REACH / p.kernel[d];
        seen &= p.kernel[d] >= p.a->stride[d];
        apart *= seen ? p.a->stride[d] : 1;
    }
    p.weight_in = backward ? p.outputs * p.volume : p.volume;
    p.weight_out = backward ? p.volume : p.channels * p.volume;
    const int64_t rest = p.outputs % p.gemm->width, lanes = p.gemm->lanes;
    p.pitch = p.outputs - rest + (rest > lanes ? p.gemm->width : rest ? lanes : 0);
    p.panels = cn__divide_up(p.outputs, p.gemm->width);
    const bool enough = p.n * cn__smaller(p.positions, p.pixels) >= LEAST_POSITIONS && p.channels && p.outputs;
    p.suits = near && seen && p.volume > apart && enough && pays(&p, apart > 1);
    if (!p.suits) return p;
    cut(&p);
    for (int d = 0; d < 3; d++)
        for (int64_t f = 0; f < phases(&p, d); f++) p.gaps |= phase_at(&p, d, f).taps == 0;
    p.suits = fits(&p, p.lines > 1 ? BAND_BYTES : MOST_BYTES) && all_bands(&p) >= LEAST_BANDS;
    return p;
}

cn__pixels cn__pixels_forward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    return begin(k, x, weight, y, false);
}

cn__pixels cn__pixels_backward(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    return begin(k, y, weight, x, true);
}

/* ---- scratch: places of pixels; the packed weight or bands and sums; then, for each thread, a band ---- */

static size_t aligned(int64_t bytes) { return (size_t)cn__round_up(bytes, 64); }

/* Places of pixels in a padded source, and of positions in a panel. */
static size_t pixel_bytes(const cn__pixels *p) { return aligned(p->high * p->in[2] * (int64_t)sizeof(int32_t)); }
static size_t place_bytes(const cn__pixels *p)
{
    return pixel_bytes(p) + aligned(p->lines * p->out[2] * (int64_t)sizeof(int32_t));
}

static size_t weight_bytes(const cn__pixels *p)
{
    return aligned(p->groups * p->volume * p->channels * p->panels * p->gemm->width * p->size);
}

static size_t source_bytes(const cn__pixels *p) { return aligned(source_numel(p) * p->size); }
static size_t result_bytes(const cn__pixels *p) { return aligned(result_numel(p) * p->size); }

/* The same in panels. */
static size_t panel_bytes(const cn__pixels *p)
{
    return aligned(p->lines * p->out[2] * p->panels * p->gemm->width * p->size);
}

static int32_t *position_places(const cn__pixels *p)
{
    return (int32_t *)(void *)((char *)p->k->scratch + pixel_bytes(p));
}

static void fill_places(const cn__pixels *p)
{
    int32_t *pixel = p->k->scratch, *position = position_places(p);
    for (int64_t i = 0; i < p->high * p->in[2]; i++)
        pixel[i] = (int32_t)((i / p->in[2] * p->wide + i % p->in[2]) * p->channels);
    for (int64_t i = 0; i < p->lines * p->out[2]; i++) position[i] = (int32_t)(i * p->gemm->width);
}

/* Copies what a band sees: (planes, lines, pixels, channels), with zeros where there is no pixel. */
static void spread(const cn__pixels *p, const band *b, char *to)
{
    const phase h = phase_at(p, 0, phase_of(p, 0, b->z));
    const int64_t plane = h.from + (b->z - h.first) / h.step * h.by;
    const int64_t low = cn__clamp(b->low, 0, p->in[1]), high = cn__clamp(b->high, low, p->in[1]);
    memset(to, 0, (size_t)(source_numel(p) * p->size));
    for (int64_t j = 0; j < h.taps && low < high; j++) {
        const int64_t z = plane + j * h.apart, at = (j * p->high + low - b->low) * p->wide - p->low;
        if (z < 0 || z >= p->in[0]) continue;
        const char *from = p->source + (b->item * p->channels * p->pixels + (z * p->in[1] + low) * p->in[2]) * p->size;
        p->gemm->spread(to + at * p->channels * p->size, p->k->scratch, from, p->pixels, p->channels,
                        (high - low) * p->in[2]);
    }
}

/* ---- result = source · weight ---- */

/* Elements of the packed weight before those of a phase, for each channel and output: it lies phase by phase. */
static int64_t taps_before(const cn__pixels *p, const phase h[3])
{
    return (h[0].before * p->kernel[1] + h[0].taps * h[1].before) * p->kernel[2] + h[0].taps * h[1].taps * h[2].before;
}

static char *packed_phase(const cn__pixels *p, const phase h[3], int64_t group, int64_t panel)
{
    const int64_t rows = h[0].taps * h[1].taps * h[2].taps * p->channels;
    const int64_t before = (group * p->volume + taps_before(p, h)) * p->channels * p->panels;
    return p->packed + (before + panel * rows) * p->gemm->width * p->size;
}

/* Packs the taps of a phase one after the other: a panel has rows (taps, channels). */
static void pack_phase(const cn__pixels *p, const phase h[3], int64_t group, int64_t panel)
{
    const int width = p->gemm->width;
    char *to = packed_phase(p, h, group, panel);
    const char *from =
        p->weight + (group * p->volume * p->channels * p->outputs + panel * width * p->weight_out) * p->size;
    const int64_t taps = h[0].taps * h[1].taps * h[2].taps, cols = cn__smaller(width, p->outputs - panel * width);
    for (int64_t i = 0; i < taps; i++, to += p->channels * width * p->size) {
        const int64_t z = h[0].tap + i / h[2].taps / h[1].taps * h[0].tap_by,
                      y = h[1].tap + i / h[2].taps % h[1].taps * h[1].tap_by,
                      x = h[2].tap + i % h[2].taps * h[2].tap_by;
        p->gemm->pack_b(to, from + ((z * p->kernel[1] + y) * p->kernel[2] + x) * p->size, p->channels, cols,
                        p->weight_in, p->weight_out);
    }
}

static int64_t all_phases(const cn__pixels *p) { return phases(p, 0) * phases(p, 1) * phases(p, 2); }

static void pick_phase(const cn__pixels *p, int64_t at, phase h[3])
{
    h[0] = phase_at(p, 0, at / phases(p, 2) / phases(p, 1));
    h[1] = phase_at(p, 1, at / phases(p, 2) % phases(p, 1));
    h[2] = phase_at(p, 2, at % phases(p, 2));
}

static void pack(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const cn__pixels *p = user;
    for (int64_t i = begin; i < end; i++) {
        phase h[3];
        pick_phase(p, i % all_phases(p), h);
        pack_phase(p, h, i / all_phases(p) / p->panels, i / all_phases(p) % p->panels);
    }
}

/* Multiplies some runs, from `tap` on, by their part of a panel: for each line of a phase in a band. */
static void multiply_lines(const cn__pixels *p, const band *b, const phase h[3], const int64_t tap[3], cn__gemm_runs g,
                           const char *source, char *result)
{
    const int64_t stop = count_below(&h[1], b->end);
    for (int64_t q = count_below(&h[1], b->first); q < stop; q++) {
        const int64_t line = tap[0] * p->high + h[1].from + q * h[1].by + tap[1] * h[1].apart - b->low;
        const int64_t pixel = h[2].from + tap[2] * h[2].apart - p->low;
        const int64_t to = (h[1].first + q * h[1].step - b->first) * p->out[2] + h[2].first;
        g.a = source + (line * p->wide + pixel) * p->channels * p->size;
        g.c = result + to * p->pitch * p->size;
        p->gemm->multiply_runs(&g);
    }
}

/* All positions of a phase in a band. Runs of several lines of the kernel are multiplied at once if they are short. */
static void multiply_phase(const cn__pixels *p, const band *b, const phase h[3], const char *source, char *result)
{
    const int width = p->gemm->width;
    const bool joined = h[2].apart == 1 || h[2].taps == 1; /* the taps of a line see contiguous pixels */
    const int64_t run = joined ? h[2].taps * p->channels : p->channels, across = joined ? 1 : h[2].taps;
    const int64_t down = joined ? cn__clamp(SLICE / run, 1, h[1].taps) : 1;
    cn__gemm_runs g = { .m = h[2].count,
                        .k = run,
                        .a_row = h[2].by * p->channels,
                        .a_col = 1,
                        .a_run = h[1].apart * p->wide * p->channels,
                        .c_row = h[2].step * p->pitch };
    for (int64_t panel = 0; panel < p->panels; panel++) {
        const char *weight = packed_phase(p, h, b->item % p->groups, panel);
        g.n = cn__smaller(width, p->outputs - panel * width);
        for (int64_t z = 0; z < h[0].taps; z++)
            for (int64_t y = 0; y < h[1].taps; y += down)
                for (int64_t x = 0; x < across; x++) {
                    g.runs = cn__smaller(down, h[1].taps - y);
                    g.b = weight + ((z * h[1].taps + y) * h[2].taps + x) * p->channels * width * p->size;
                    g.add = z || y || x;
                    multiply_lines(p, b, h, (const int64_t[]){ z, y, x }, g, source, result + panel * width * p->size);
                }
    }
}

/* Reports the lines of a band as final, for all outputs. */
static void band_done(const cn__pixels *p, const band *b, int thread)
{
    const int64_t at = band_start(p, b), n = band_numel(p, b);
    if (n == p->positions) cn_kernel_done(p->k, at, at + p->outputs * n, thread);
    else
        for (int64_t o = 0; o < p->outputs; o++)
            cn_kernel_done(p->k, at + o * p->positions, at + o * p->positions + n, thread);
}

static void convolve_band(const cn__pixels *p, const band *b, char *source, char *result, int thread)
{
    const int64_t in_plane = phases(p, 1) * phases(p, 2), first = phase_of(p, 0, b->z) * in_plane;
    spread(p, b, source);
    if (p->gaps) memset(result, 0, result_bytes(p));
    for (int64_t f = first; f < first + in_plane; f++) {
        phase h[3];
        pick_phase(p, f, h);
        if (h[0].taps && h[1].taps && h[2].taps && h[2].count) multiply_phase(p, b, h, source, result);
    }
    p->gemm->collect(p->result + band_start(p, b) * p->size, p->positions, result, p->pitch, band_numel(p, b),
                     p->outputs);
    band_done(p, b, thread);
}

static void convolve(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__pixels *p = user;
    const size_t shared = place_bytes(p) + weight_bytes(p), own = source_bytes(p) + result_bytes(p);
    char *source = (char *)k->scratch + shared + (size_t)thread * own;
    for (int64_t i = begin; i < end; i++) {
        const band b = band_at(p, i);
        convolve_band(p, &b, source, source + source_bytes(p), thread);
    }
}

/* How many bands form a part of the work. */
static int64_t grain(const cn__pixels *p)
{
    const double taps = (double)p->volume / (double)all_phases(p);
    const double work = (double)(p->lines * p->out[2]) * (double)p->outputs * (double)p->channels * taps;
    return work < LEAST_WORK ? (int64_t)(LEAST_WORK / (work + 1)) + 1 : 1;
}

size_t cn__pixels_scratch(const cn__pixels *p, int threads)
{
    return place_bytes(p) + weight_bytes(p) + (size_t)threads * (source_bytes(p) + result_bytes(p));
}

/* All that decides the order of taps: of the phases, which a convolution itself does not have. */
static uint64_t phases_key(const cn__pixels *p)
{
    uint64_t key = p->backward;
    for (int d = 0; d < 3 && p->backward; d++)
        key = (key << 10) + ((uint64_t)p->a->stride[d] << 32) + (uint64_t)p->a->dilation[d];
    return key;
}

void cn__pixels_run(const cn__pixels *given)
{
    bool made;
    cn__pixels with = *given, *const p = &with;
    char *const kept = cn__kernel_form(p->k, 1, CN__FORM_PIXELS, phases_key(p), weight_bytes(p), &made);
    p->packed = kept ? kept : (char *)p->k->scratch + place_bytes(p);
    fill_places(p);
    const int64_t packs = p->groups * p->panels * all_phases(p);
    const int64_t numel = p->groups * p->volume * p->channels * p->panels * p->gemm->width;
    if (!kept || !made) cn_parallel(p->k, packs, cn__divide_up(LEAST_COPIED, cn__divide_up(numel, packs)), pack, p);
    cn_parallel(p->k, all_bands(p), grain(p), convolve, p);
}

/* ---- weight = sum over positions of sourceᵀ · result ---- */

/* How the gradient of the weight is cut. A strip is what one line of the kernel sees: rows (taps, channels), or
   (channels) of a single tap where taps do not see contiguous pixels. */
typedef struct weighing {
    const cn__pixels *p;
    int64_t group;
    int64_t bands, some, first, count; /* bands of a group; at a time; the first of this time, and how many */
    int64_t strips, rows, block, blocks;
    char *sources, *results, *sums; /* sums (panels, taps·channels, width) */
} weighing;

static weighing weighing_of(const cn__pixels *p)
{
    const bool joined = p->a->dilation[2] == 1 || p->kernel[2] == 1;
    weighing w = { .p = p,
                   .bands = p->n * p->out[0] * p->bands,
                   .rows = joined ? p->kernel[2] * p->channels : p->channels };
    w.strips = p->volume * p->channels / w.rows;
    w.some = cn__clamp((int64_t)(SOME_BYTES / (source_bytes(p) + panel_bytes(p))), 1, w.bands);
    const int64_t wanted = cn__divide_up(SHARES, w.strips * p->panels);
    w.block = cn__round_up(cn__divide_up(w.rows, wanted), p->gemm->rows);
    w.blocks = cn__divide_up(w.rows, w.block);
    return w;
}

static band weighed_band(const weighing *w, int64_t i)
{
    band b = band_at(w->p, w->first + i);
    b.item = b.item * w->p->groups + w->group;
    return b;
}

/* Copies the sources of some bands, and packs their results. */
static void copy_bands(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const weighing *w = user;
    const cn__pixels *p = w->p;
    for (int64_t i = begin; i < end; i++) {
        const band b = weighed_band(w, i);
        const int64_t at = band_start(p, &b), n = band_numel(p, &b), width = p->gemm->width;
        char *to = w->results + (size_t)i * panel_bytes(p);
        spread(p, &b, w->sources + (size_t)i * source_bytes(p));
        if (p->outputs % width) memset(to, 0, panel_bytes(p));
        for (int64_t o = 0; o < p->outputs; o += width)
            p->gemm->spread(to + o * n * p->size, position_places(p), p->result + (at + o * p->positions) * p->size,
                            p->positions, cn__smaller(width, p->outputs - o), n);
    }
}

/* Adds some bands to the sums of some rows of a strip and a panel of outputs. */
static void weigh(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const weighing *w = user;
    const cn__pixels *p = w->p;
    const int64_t width = p->gemm->width, across = w->rows == p->channels ? p->kernel[2] : 1;
    for (int64_t at = begin; at < end; at++) {
        const int64_t row = at % w->blocks * w->block, strip = at / w->blocks % w->strips,
                      panel = at / w->blocks / w->strips;
        const int64_t x = strip % across, y = strip / across % p->kernel[1], z = strip / across / p->kernel[1];
        cn__gemm_runs g = { .m = cn__smaller(w->block, w->rows - row),
                            .n = cn__smaller(width, p->outputs - panel * width),
                            .k = p->out[2],
                            .a_row = 1,
                            .a_col = p->a->stride[2] * p->channels,
                            .a_run = p->a->stride[1] * p->wide * p->channels,
                            .c_row = width };
        g.c = w->sums + ((panel * w->strips + strip) * w->rows + row) * width * p->size;
        const int64_t from =
            ((z * p->high + y * p->a->dilation[1]) * p->wide + x * p->a->dilation[2]) * p->channels + row;
        for (int64_t i = 0; i < w->count; i++) {
            const band b = weighed_band(w, i);
            g.runs = b.end - b.first;
            g.a = w->sources + (size_t)i * source_bytes(p) + from * p->size;
            g.b = w->results + (size_t)i * panel_bytes(p) + panel * g.runs * p->out[2] * width * p->size;
            g.add = w->first + i > 0;
            p->gemm->multiply_runs(&g);
        }
    }
}

/* weight(outputs, channels, taps) from the sums, for some channels of a panel. */
static void turn_sums(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const weighing *w = user;
    const cn__pixels *p = w->p;
    const int64_t width = p->gemm->width, row = p->channels * p->volume;
    for (int64_t i = begin * p->volume; i < end * p->volume; i++) {
        const int64_t o = i / row * width, n = cn__smaller(width, p->outputs - o), at = i % row;
        const int64_t from = i / row * row + at % p->volume * p->channels + at / p->volume;
        const char *sums = w->sums + from * width * p->size;
        char *to = p->weight + ((w->group * p->outputs + o) * row + at) * p->size;
        if (p->size == sizeof(float))
            for (int64_t q = 0; q < n; q++) ((float *)(void *)to)[q * row] = ((const float *)(const void *)sums)[q];
        else
            for (int64_t q = 0; q < n; q++) ((double *)(void *)to)[q * row] = ((const double *)(const void *)sums)[q];
    }
}

size_t cn__pixels_weigh_scratch(const cn__pixels *p)
{
    const weighing w = weighing_of(p);
    return place_bytes(p) + (size_t)w.some * (source_bytes(p) + panel_bytes(p)) +
           aligned(p->volume * p->channels * p->panels * p->gemm->width * p->size);
}

void cn__pixels_weigh(const cn__pixels *p)
{
    weighing w = weighing_of(p);
    w.sources = (char *)p->k->scratch + place_bytes(p);
    w.results = w.sources + (size_t)w.some * source_bytes(p);
    w.sums = w.results + (size_t)w.some * panel_bytes(p);
    fill_places(p);
    for (w.group = 0; w.group < p->groups; w.group++) {
        for (w.first = 0; w.first < w.bands; w.first += w.count) {
            w.count = cn__smaller(w.some, w.bands - w.first);
            cn_parallel(p->k, w.count, cn__divide_up(LEAST_COPIED, source_numel(p)), copy_bands, &w);
            cn_parallel(p->k, w.strips * w.blocks * p->panels, 1, weigh, &w);
        }
        cn_parallel(p->k, p->panels * p->channels, cn__divide_up(LEAST_COPIED, p->gemm->width * p->volume), turn_sums,
                    &w);
    }
}

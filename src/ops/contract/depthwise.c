/* Depthwise convolution (see depthwise.h): cuts planes into bands. */
#include "ops/contract/depthwise.h"

#include "ops/kernels.h"

enum {
    BAND_BYTES = 1 << 15, /* of the cells of a band: they stay in L1 or near it */
    MOST_BYTES = 1 << 20, /* of the cells of one line */
    MOST_STRIDE = 16,     /* phases of an axis */
    MOST_REACH = 1 << 12, /* cells */
    LEAST_COLUMNS = 512,  /* of a strip, if a line is cut to share the work */
    SHARES = 16,          /* about how many units the work is cut into */
    LEAST_WORK = 1 << 15, /* products of a part */
    MOST_LANES = 16,      /* of a vector; the last ones of a run may compute more than there is */
    AT_A_TIME = 4,        /* vectors */
};

static cn__depth_axis axis_of(const cn__conv_attrs *a, int d, const cn_array *x, const cn_array *w, const cn_array *y)
{
    cn__depth_axis s = { .in = x->shape[2 + d], .out = y->shape[2 + d], .taps = w->shape[2 + d] };
    s.stride = a->stride[d], s.dilation = a->dilation[d], s.padding = a->padding[d];
    s.reach = s.dilation <= MOST_REACH ? (s.taps - 1) * s.dilation / s.stride : MOST_REACH + 1;
    return s;
}

static int64_t cells_numel(const cn__depthwise *d) { return d->y.stride * d->x.stride * d->phase; }

static void set_band(cn__depthwise *d, int64_t lines, int64_t columns)
{
    d->lines = lines, d->columns = columns;
    d->bands = cn__divide_up(d->y.out, lines), d->strips = cn__divide_up(d->x.out, columns);
    d->pitch = columns + d->x.reach;
    d->phase = (lines + d->y.reach) * d->pitch;
}

/* Bands of some lines; of parts of a line if lines are few and long. */
static void cut(cn__depthwise *d, int64_t size)
{
    int64_t lines = d->y.out, columns = d->x.out;
    for (set_band(d, lines, columns); lines > 1 && cells_numel(d) * size > BAND_BYTES; set_band(d, lines, columns))
        lines = cn__divide_up(lines, 2);
    while (lines == 1 && columns >= 2 * LEAST_COLUMNS && d->planes * d->bands * d->strips < SHARES) {
        columns = cn__divide_up(columns, 2);
        set_band(d, lines, columns);
    }
    const int64_t more = (AT_A_TIME + 1) * MOST_LANES;
    d->cells = (size_t)cn__round_up((cells_numel(d) + more) * size, 64);
    d->result = (size_t)cn__round_up((d->lines * d->pitch + more) * size, 64);
}

cn__depthwise cn__depthwise_of(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    const cn__conv_attrs *a = k->attrs;
    cn__depthwise d = {
        .k = k, .f64 = x->dtype == CN_F64, .channels = x->shape[1], .planes = x->shape[0] * x->shape[1]
    };
    const bool alone = a->groups == x->shape[1] && y->shape[1] == x->shape[1];
    if (!alone || !y->numel || x->shape[2] != 1 || weight->shape[2] != 1 || a->padding[0] != 0) return d;
    d.y = axis_of(a, 1, x, weight, y);
    d.x = axis_of(a, 2, x, weight, y);
    const bool near = d.y.stride <= MOST_STRIDE && d.x.stride <= MOST_STRIDE && d.y.reach <= MOST_REACH &&
                      d.x.reach <= MOST_REACH && d.y.padding <= MOST_REACH && d.x.padding <= MOST_REACH;
    if (!near || d.y.taps > CN__DEPTHWISE_TAPS || d.x.taps > CN__DEPTHWISE_TAPS / d.y.taps) return d;
    cut(&d, d.f64 ? sizeof(double) : sizeof(float));
    d.suits = d.cells <= MOST_BYTES;
    return d;
}

size_t cn__depthwise_scratch(const cn__depthwise *d, int threads) { return (size_t)threads * (d->cells + d->result); }

void cn__depthwise_run(const cn__depthwise *d)
{
    const double work = (double)(d->lines * d->columns) * (double)(d->y.taps * d->x.taps + 4);
    cn_parallel(d->k, d->planes * d->bands * d->strips, work < LEAST_WORK ? (int64_t)(LEAST_WORK / work) + 1 : 1,
                d->k->kernels->depthwise.convolve[d->f64], (void *)d);
}

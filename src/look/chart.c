/* Computes a line chart: its ranges, ticks and smoothing, and the position of everything on a picture. */
#include <math.h>

#include "core/errors.h"
#include "look/chart.h"
#include "look/text.h"

/* ---- points ---- */

static cn__spot point_of(const cn__chart *c, const cn_series *s, int64_t i)
{
    cn__spot p = { s->x ? s->x[i] : (double)i, s->y[i] };
    if (!isfinite(p.x) || !isfinite(p.y) || (c->x.log && p.x <= 0) || (c->y.log && p.y <= 0)) p.x = p.y = NAN;
    return p;
}

cn__walker cn__chart_walk(const cn__chart *c, int series, bool smoothed)
{
    const cn_series *s = &c->series[series];
    return (cn__walker){ .chart = c, .series = s, .smooth = smoothed && !s->exact ? c->desc.smooth : 0 };
}

/* An exponential moving average, divided by the sum of its weights: the first values are not biased towards 0. */
bool cn__walker_next(cn__walker *w, cn__spot *p)
{
    if (w->i >= w->series->n) return false;
    *p = point_of(w->chart, w->series, w->i++);
    if (w->smooth > 0 && !isnan(p->y)) {
        w->mean = w->smooth * w->mean + (1 - w->smooth) * p->y;
        w->weight = w->smooth * w->weight + (1 - w->smooth);
        p->y = w->mean / w->weight;
    }
    return true;
}

/* ---- ranges ---- */

static void stretch(cn__scale *a, double value)
{
    if (!(value >= a->low)) a->low = value;
    if (!(value <= a->high)) a->high = value;
}

/* Adds a margin. A range of a single value becomes a range around it. */
static void widen(cn__scale *a, double part)
{
    if (a->log) {
        const double f = a->high > a->low ? pow(a->high / a->low, part) : part > 0 ? 2 : 1.5;
        a->low /= f;
        a->high *= f;
        return;
    }
    const double range = a->high - a->low;
    const double pad = range > 0 ? range * part : a->high != 0 ? fabs(a->high) * 0.1 : 0.5;
    a->low -= pad;
    a->high += pad;
}

static bool find_ranges(cn_ctx *ctx, const char *who, cn__chart *c)
{
    int64_t points = 0, finite = 0;
    c->x.low = c->x.high = c->y.low = c->y.high = NAN;
    for (int s = 0; s < c->n; s++) {
        points += c->series[s].n;
        for (int64_t i = 0; i < c->series[s].n; i++) {
            const cn__spot p = point_of(c, &c->series[s], i);
            if (isnan(p.x)) continue;
            finite++;
            stretch(&c->x, p.x);
            stretch(&c->y, p.y);
        }
    }
    if (!finite)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be at least one point that is %s, got none of %lld", who,
                        c->x.log || c->y.log ? "finite and positive" : "finite", (long long)points);
    for (int i = 0; i < c->desc.n_lines; i++) {
        const double y = c->desc.lines[i].y;
        if (isfinite(y) && (!c->y.log || y > 0)) stretch(&c->y, y);
    }
    const double range = c->y.high - c->y.low;
    if (!isfinite(range) || !isfinite(c->x.high - c->x.low))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the range of the points is too large for a double", who);
    if (c->desc.y_low != 0 || c->desc.y_high != 0) c->y.low = c->desc.y_low, c->y.high = c->desc.y_high;
    else widen(&c->y, 0.05);
    if (!(c->x.high > c->x.low)) widen(&c->x, 0);
    return true;
}

static bool check(cn_ctx *ctx, const char *who, const cn_series *series, int n, const cn_curve_desc *d)
{
    if (!series || n < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be at least 1 series, got %d", who, series ? n : 0);
    for (int i = 0; i < n; i++)
        if (series[i].n < 0 || (series[i].n > 0 && !series[i].y))
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: series %d: n must be ≥ 0, and 0 if y is NULL; got %lld", who, i,
                            (long long)series[i].n);
    if (!(d->smooth >= 0 && d->smooth < 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: smooth must be ≥ 0 and below 1, got %g", who, d->smooth);
    if (d->n_lines < 0 || (d->n_lines && !d->lines))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: n_lines must be ≥ 0, and 0 if lines is NULL; got %d", who,
                        d->n_lines);
    const bool range = d->y_low != 0 || d->y_high != 0;
    if (range && !(isfinite(d->y_low) && isfinite(d->y_high) && d->y_low < d->y_high && (!d->log_y || d->y_low > 0)))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: y_low must be finite%s and below y_high, got %g and %g", who,
                        d->log_y ? ", above 0" : "", d->y_low, d->y_high);
    return true;
}

bool cn__chart_open(cn_ctx *ctx, const char *who, const cn_series *series, int n, const cn_curve_desc *desc,
                    cn__chart *c)
{
    static const cn_curve_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    if (!check(ctx, who, series, n, desc)) return false;
    *c = (cn__chart){ .series = series, .n = n, .desc = *desc, .x.log = desc->log_x, .y.log = desc->log_y };
    return find_ranges(ctx, who, c);
}

bool cn__chart_size(cn_ctx *ctx, const char *who, cn__chart *c)
{
    if (!c->desc.width) c->desc.width = 960;
    if (!c->desc.height) c->desc.height = 540;
    const int w = c->desc.width, h = c->desc.height;
    return (w >= 120 && w <= 8192 && h >= 90 && h <= 8192) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the size must be 120 by 90 to 8192 by 8192 pixels, got %d by %d", who, w,
                    h);
}

double cn__scale_at(const cn__scale *a, double value)
{
    if (a->log) return log(value / a->low) / log(a->high / a->low);
    return (value - a->low) / (a->high - a->low);
}

unsigned cn__chart_color(const cn__chart *c, int series)
{
    static const unsigned palette[] = {
        0x2f6fdb, 0xe8743b, 0x19a974, 0xc8437a, 0x7b52c7, 0x8a6d3b, 0x13a4b4, 0xb59f00
    };
    const unsigned own = c->series[series].color & 0xffffff;
    return own ? own : palette[(unsigned)series % (sizeof palette / sizeof *palette)];
}

/* ---- ticks ---- */

static double round_step(double least)
{
    const double ten = pow(10, floor(log10(least)));
    for (int i = 0; i < 3; i++) {
        static const double nice[] = { 1, 2, 5 };
        if (nice[i] * ten >= least * 0.999999) return nice[i] * ten;
    }
    return 10 * ten;
}

/* Prints 2500000 as 2.5M, 0.00002 as 2e-05. size: the largest number of the axis. step: the distance between labels. */
static void print_tick(char *out, size_t room, double value, double size, double step)
{
    static const struct {
        double from, unit;
        const char *sign;
    } units[] = { { 1e15, 0, "" },   { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" },
                  { 1e4, 1e3, "k" }, { 1e-4, 1, "" },   { 0, 0, "" } };
    int u = 0;
    char number[32];
    while (size < units[u].from) u++;
    if (units[u].unit == 0) {
        snprintf(number, 16, "%.3g", value);
        for (char *c = number; *c; c++)
            if (*c == ',') *c = '.';
        snprintf(out, room, "%s", number);
        return;
    }
    int decimals = 0;
    for (double s = step / units[u].unit; decimals < 9 && fabs(s - nearbyint(s)) > 1e-6 * s; s *= 10) decimals++;
    const bool zero = fabs(value) < step * 1e-6;
    snprintf(out, room, "%s%s", cn__decimal_text(zero ? 0 : value / units[u].unit, zero ? 0 : decimals, number),
             zero ? "" : units[u].sign);
}

static void add_tick(cn__scale *a, double value, double size, double step)
{
    if (a->n == CN__MOST_TICKS) return;
    a->tick[a->n] = value;
    print_tick(a->label[a->n++], sizeof *a->label, value, size, step);
}

static void linear_ticks(cn__scale *a, int about)
{
    const double step = round_step((a->high - a->low) / about), size = fmax(fabs(a->low), fabs(a->high));
    const double slack = step * 1e-9;
    for (double k = ceil((a->low - slack) / step); k * step <= a->high + slack && a->n < CN__MOST_TICKS; k++)
        add_tick(a, k * step, size, step);
}

static void decade_ticks(cn__scale *a, int every, bool between)
{
    const int first = (int)floor(log10(a->low)), last = (int)ceil(log10(a->high));
    for (int k = first; k <= last; k++)
        for (int i = 0; i < (between ? 3 : 1); i++) {
            static const double nice[] = { 1, 2, 5 };
            const double value = nice[i] * pow(10, k);
            if (k % every == 0 && value >= a->low * 0.999999 && value <= a->high * 1.000001)
                add_tick(a, value, value, value);
        }
}

void cn__chart_ticks(cn__scale *a, int about)
{
    a->n = 0;
    if (about < 2) about = 2;
    if (a->log) {
        const double decades = log10(a->high / a->low);
        int every = 1;
        while (decades / every > about) every++;
        decade_ticks(a, every, decades * 2.5 <= about);
        if (a->n >= 2) return;
        a->n = 0;
    }
    linear_ticks(a, about);
}

/* ---- the picture ---- */

enum { INK = 0x22272e, SOFT = 0x5b646e, RULE = 0xe4e7ea, FAINT = 0xf2f4f5, AXIS = 0x9aa3ab, MARK = 0x6b7580 };
enum { TITLE = 20, NAME = 14, TICK = 13 };

typedef struct picture {
    cn_ctx *ctx;
    cn__chart *c;
    cn__canvas *on;
    double left, right, top, bottom; /* edges of the plot */
    cn__vec line;                    /* of cn__spot: points of the present line */
    bool failed;
} picture;

static double x_at(const picture *p, double x) { return p->left + cn__scale_at(&p->c->x, x) * (p->right - p->left); }
static double y_at(const picture *p, double y) { return p->bottom - cn__scale_at(&p->c->y, y) * (p->bottom - p->top); }

static void straight(picture *p, unsigned color, double x0, double y0, double x1, double y1)
{
    p->on->line(p->on, &(cn__stroke){ color, 1, 1, 0 }, (cn__spot[]){ { x0, y0 }, { x1, y1 } }, 2);
}

static bool given(const char *text) { return text && *text; }

/* Draws the names of the series in rows under the title, or only measures them. Returns where they end. */
static double legend(picture *p, double y, bool draw)
{
    const cn__chart *c = p->c;
    double x = p->left;
    bool any = false;
    for (int i = 0; i < c->n; i++) {
        const char *name = c->series[i].name;
        if (!given(name)) continue;
        const double width = 30 + p->on->text_width(name, NAME, false);
        if (any && x + width > p->right) x = p->left, y += 22;
        if (draw) {
            p->on->line(p->on, &(cn__stroke){ cn__chart_color(c, i), 3, 1, 0 },
                        (cn__spot[]){ { x + 2, y + 11.5 }, { x + 20, y + 11.5 } }, 2);
            p->on->text(p->on, &(cn__label){ name, x + 28, y + 16, NAME, SOFT, CN__LEFT, false, false, false });
        }
        x += width + 22;
        any = true;
    }
    return any ? y + 22 : y;
}

static void lay_out(picture *p)
{
    const cn_curve_desc *d = &p->c->desc;
    double widest = 0;
    p->bottom = d->height - 34 - (given(d->x_label) ? 24 : 0);
    cn__chart_ticks(&p->c->y, (int)((p->bottom - 60) / 52));
    for (int i = 0; i < p->c->y.n; i++) widest = fmax(widest, p->on->text_width(p->c->y.label[i], TICK, false));
    p->left = 22 + (given(d->y_label) ? 24 : 0) + widest + 10;
    p->right = d->width - 30;
    p->top = legend(p, 18 + (given(d->title) ? 34 : 0), false) + 12;
    cn__chart_ticks(&p->c->x, (int)((p->right - p->left) / 95));
}

static void draw_frame(picture *p)
{
    const cn_curve_desc *d = &p->c->desc;
    for (int i = 0; i < p->c->x.n; i++) {
        const double x = floor(x_at(p, p->c->x.tick[i])) + 0.5;
        straight(p, FAINT, x, p->top, x, p->bottom);
        straight(p, AXIS, x, p->bottom, x, p->bottom + 5);
        p->on->text(p->on,
                    &(cn__label){ p->c->x.label[i], x, p->bottom + 21, TICK, SOFT, CN__MIDDLE, false, false, false });
    }
    for (int i = 0; i < p->c->y.n; i++) {
        const double y = floor(y_at(p, p->c->y.tick[i])) + 0.5;
        straight(p, RULE, p->left, y, p->right, y);
        p->on->text(
            p->on, &(cn__label){ p->c->y.label[i], p->left - 10, y + 4.5, TICK, SOFT, CN__RIGHT, false, false, false });
    }
    straight(p, AXIS, p->left, floor(p->bottom) + 0.5, p->right, floor(p->bottom) + 0.5);
    if (given(d->title))
        p->on->text(p->on, &(cn__label){ d->title, p->left, 38, TITLE, INK, CN__LEFT, true, false, false });
    if (given(d->x_label))
        p->on->text(p->on, &(cn__label){ d->x_label, (p->left + p->right) / 2, d->height - 14, NAME, SOFT, CN__MIDDLE,
                                         false, false, false });
    if (given(d->y_label))
        p->on->text(p->on, &(cn__label){ d->y_label, 28, (p->top + p->bottom) / 2, NAME, SOFT, CN__MIDDLE, false, true,
                                         false });
    legend(p, 18 + (given(d->title) ? 34 : 0), true);
}

/* ---- lines of data ---- */

static void gather(picture *p, cn__spot s)
{
    if (p->failed || !cn__push(&p->ctx->memory, &p->line, &s, sizeof s)) p->failed = true;
}

/* Reduces the points in one column of pixels to the first, the lowest and highest in their order, and the last. */
typedef struct column {
    int64_t at, n, low_at, high_at;
    cn__spot first, low, high, last;
} column;

static void gather_column(picture *p, column *k)
{
    if (!k->n) return;
    gather(p, k->first);
    const bool low_first = k->low_at < k->high_at;
    const int64_t one = low_first ? k->low_at : k->high_at, two = low_first ? k->high_at : k->low_at;
    if (one > 0) gather(p, low_first ? k->low : k->high);
    if (two > one && two > 0 && two < k->n - 1) gather(p, low_first ? k->high : k->low);
    if (k->n > 1 && one < k->n - 1) gather(p, k->last);
    k->n = 0;
}

static void add_to_column(picture *p, column *k, cn__spot s)
{
    const int64_t at = (int64_t)floor(s.x);
    if (k->n && at != k->at) gather_column(p, k);
    if (!k->n) *k = (column){ .at = at, .first = s, .low = s, .high = s };
    if (s.y > k->low.y) k->low = s, k->low_at = k->n;
    if (s.y < k->high.y) k->high = s, k->high_at = k->n;
    k->last = s;
    k->n++;
}

static void draw_series(picture *p, int series, bool smoothed, const cn__stroke *stroke)
{
    const bool many = p->c->series[series].n > 4 * (int64_t)p->c->desc.width;
    cn__walker w = cn__chart_walk(p->c, series, smoothed);
    column k = { 0 };
    cn__spot s;
    p->line.n = 0;
    for (bool more = true; more;) {
        more = cn__walker_next(&w, &s);
        if (more && !isnan(s.y)) {
            const cn__spot at = { x_at(p, s.x),
                                  fmin(fmax(y_at(p, s.y), p->top), p->bottom) }; /* outside of the range: on its edge */
            if (many) add_to_column(p, &k, at);
            else gather(p, at);
            continue;
        }
        gather_column(p, &k);
        if (p->line.n && !p->failed) p->on->line(p->on, stroke, p->line.v, p->line.n);
        p->line.n = 0;
    }
}

static void draw_lines(picture *p)
{
    const cn_curve_desc *d = &p->c->desc;
    for (int i = 0; i < d->n_lines; i++) {
        const double y = floor(y_at(p, d->lines[i].y)) + 0.5;
        if (!isfinite(y) || y < p->top - 0.5 || y > p->bottom + 0.5) continue;
        p->on->line(p->on, &(cn__stroke){ MARK, 1.5, 1, 6 }, (cn__spot[]){ { p->left, y }, { p->right, y } }, 2);
        if (given(d->lines[i].label))
            p->on->text(p->on, &(cn__label){ d->lines[i].label, p->right - 4, y - 6, TICK, MARK, CN__RIGHT, false,
                                             false, true });
    }
}

static bool draw_data(picture *p)
{
    for (int i = 0; i < p->c->n; i++)
        if (p->c->desc.smooth > 0 && !p->c->series[i].exact)
            draw_series(p, i, false, &(cn__stroke){ cn__chart_color(p->c, i), 1.2, 0.28, 0 });
    draw_lines(p);
    for (int i = 0; i < p->c->n; i++) draw_series(p, i, true, &(cn__stroke){ cn__chart_color(p->c, i), 2.2, 1, 0 });
    return !p->failed || cn__no_memory(p->ctx, "curve");
}

bool cn__chart_draw(cn_ctx *ctx, cn__chart *c, cn__canvas *on)
{
    picture p = { .ctx = ctx, .c = c, .on = on };
    lay_out(&p);
    if (p.bottom - p.top < 40 || p.right - p.left < 60)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "curve: %d by %d pixels are too small: the texts leave no room for the plot", c->desc.width,
                        c->desc.height);
    draw_frame(&p);
    const bool ok = draw_data(&p);
    cn__vec_free(&ctx->memory, &p.line, sizeof(cn__spot));
    return ok;
}

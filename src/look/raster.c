/* Draws a chart as pixels. A line covers all points within half its width, with antialiased edges. */
#include <errno.h>
#include <math.h>

#include "core/call.h"
#include "core/errors.h"
#include "core/png_write.h"
#include "look/chart.h"
#include "look/font.h"
#include "look/text.h"

typedef struct raster {
    cn__canvas canvas;
    int width, height;
    unsigned char *rgb;  /* height, width, 3 */
    unsigned char *mask; /* height, width: how much of each pixel the present line covers */
    int x0, y0, x1, y1;  /* bounds of the mask that is not 0 */
} raster;

/* ---- coverage ---- */

static double between(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double distance(double x, double y, cn__spot a, cn__spot b)
{
    const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    const double t = length2 > 0 ? between(((x - a.x) * dx + (y - a.y) * dy) / length2, 0, 1) : 0;
    return hypot(x - a.x - t * dx, y - a.y - t * dy);
}

/* Bounds of the pixels in row y that may lie within `reach` of the segment. */
static void span_of(double y, cn__spot a, cn__spot b, double reach, double *from, double *to)
{
    const double dy = b.y - a.y;
    double t0 = 0, t1 = 1;
    if (fabs(dy) > 1e-9) {
        const double s = (y - reach - a.y) / dy, e = (y + reach - a.y) / dy;
        t0 = between(fmin(s, e), 0, 1);
        t1 = between(fmax(s, e), 0, 1);
    }
    const double x0 = a.x + t0 * (b.x - a.x), x1 = a.x + t1 * (b.x - a.x);
    *from = fmin(x0, x1) - reach;
    *to = fmax(x0, x1) + reach;
}

static int inside(double x, int size) { return (int)between(x, 0, size); }

static void cover(raster *r, cn__spot a, cn__spot b, double width)
{
    const double reach = width / 2 + 1;
    const int y0 = inside(floor(fmin(a.y, b.y) - reach), r->height),
              y1 = inside(ceil(fmax(a.y, b.y) + reach), r->height);
    for (int y = y0; y < y1; y++) {
        double from, to;
        span_of(y + 0.5, a, b, reach, &from, &to);
        const int x0 = inside(floor(from), r->width), x1 = inside(ceil(to), r->width);
        unsigned char *row = r->mask + (size_t)y * (size_t)r->width;
        for (int x = x0; x < x1; x++) {
            const double part = between(width / 2 + 0.5 - distance(x + 0.5, y + 0.5, a, b), 0, fmin(width, 1));
            const unsigned char m = (unsigned char)(part * 255 + 0.5);
            if (m > row[x]) row[x] = m;
        }
        if (x0 < r->x0) r->x0 = x0;
        if (x1 > r->x1) r->x1 = x1;
    }
    if (y0 < r->y0) r->y0 = y0;
    if (y1 > r->y1) r->y1 = y1;
}

static void begin_cover(raster *r) { r->x0 = r->width, r->y0 = r->height, r->x1 = r->y1 = 0; }

/* Blends the color where the mask is set, and clears the mask. */
static void paint(raster *r, unsigned color, double opacity)
{
    const double ink[3] = { color >> 16 & 0xff, color >> 8 & 0xff, color & 0xff };
    for (int y = r->y0; y < r->y1; y++)
        for (int x = r->x0; x < r->x1; x++) {
            const size_t at = (size_t)y * (size_t)r->width + (size_t)x;
            const double part = r->mask[at] / 255.0 * opacity;
            r->mask[at] = 0;
            for (int k = 0; k < 3 && part > 0; k++) {
                unsigned char *p = &r->rgb[3 * at + (size_t)k];
                *p = (unsigned char)(*p + (ink[k] - *p) * part + 0.5);
            }
        }
}

/* ---- lines ---- */

static void cover_dashes(raster *r, const cn__stroke *s, cn__spot a, cn__spot b)
{
    const double length = hypot(b.x - a.x, b.y - a.y);
    for (double at = 0; at < length; at += 2 * s->dash) {
        const double end = fmin(at + s->dash, length), from = at / length, to = end / length;
        cover(r, (cn__spot){ a.x + from * (b.x - a.x), a.y + from * (b.y - a.y) },
              (cn__spot){ a.x + to * (b.x - a.x), a.y + to * (b.y - a.y) }, s->width);
    }
}

static void raster_line(cn__canvas *on, const cn__stroke *s, const cn__spot *p, size_t n)
{
    raster *r = (raster *)on;
    begin_cover(r);
    if (n == 1) cover(r, p[0], p[0], s->width * 2);
    for (size_t i = 0; i + 1 < n; i++) {
        if (s->dash > 0) cover_dashes(r, s, p[i], p[i + 1]);
        else cover(r, p[i], p[i + 1], s->width);
    }
    paint(r, s->color, s->opacity);
}

/* ---- letters ---- */

static const char *letter(uint32_t c) { return cn__font[c >= ' ' && c <= '~' ? c - ' ' : 95]; }
static int letter_width(const char *g) { return (int)strcspn(g, "|"); }
static double unit_of(double size) { return size * 0.104; }

static double raster_width(const char *text, double size, bool bold)
{
    double units = 0;
    for (int n; *text; text += n) units += letter_width(letter(cn__letter_next(text, &n))) + 1;
    return (units - 1) * unit_of(size) + (bold ? 1 : 0);
}

static bool marked(const char *g, int width, int x, int y)
{
    const size_t at = (size_t)y * (size_t)(width + 1) + (size_t)x;
    return x >= 0 && x < width && y >= 0 && at < strlen(g) && g[at] == '#';
}

/* The coordinate system of a text: its origin, and the unit steps along and down. */
typedef struct pen {
    cn__spot origin, along, down;
    double width;
} pen;

static cn__spot pen_at(const pen *p, double x, double y)
{
    return (cn__spot){ p->origin.x + x * p->along.x + y * p->down.x, p->origin.y + x * p->along.y + y * p->down.y };
}

/* Joins a mark to its neighbours to the right and below. Diagonal neighbours are joined only if no other marks do. */
static void cover_mark(raster *r, const pen *p, const char *g, int width, int x, int y, double shift)
{
    const bool right = marked(g, width, x + 1, y), below = marked(g, width, x, y + 1),
               left = marked(g, width, x - 1, y);
    const cn__spot here = pen_at(p, shift + x, y);
    cover(r, here, here, p->width);
    if (right) cover(r, here, pen_at(p, shift + x + 1, y), p->width);
    if (below) cover(r, here, pen_at(p, shift + x, y + 1), p->width);
    if (marked(g, width, x + 1, y + 1) && !right && !below) cover(r, here, pen_at(p, shift + x + 1, y + 1), p->width);
    if (marked(g, width, x - 1, y + 1) && !left && !below) cover(r, here, pen_at(p, shift + x - 1, y + 1), p->width);
}

static void cover_text(raster *r, const pen *p, const char *text)
{
    double shift = 0.5;
    for (int n; *text; text += n) {
        const char *g = letter(cn__letter_next(text, &n));
        const int width = letter_width(g);
        for (int y = 0; y < 9; y++)
            for (int x = 0; x < width; x++)
                if (marked(g, width, x, y)) cover_mark(r, p, g, width, x, y, shift);
        shift += width + 1;
    }
}

static void raster_text(cn__canvas *on, const cn__label *l)
{
    raster *r = (raster *)on;
    const double u = unit_of(l->size), w = raster_width(l->text, l->size, l->bold);
    const double back = l->anchor == CN__LEFT ? 0 : l->anchor == CN__MIDDLE ? w / 2 : w;
    pen p = { .along = { u, 0 }, .down = { 0, u }, .width = l->size * (l->bold ? 0.135 : 0.095) };
    p.origin = (cn__spot){ l->x - back, l->y - 6.5 * u };
    if (l->upwards) {
        p.along = (cn__spot){ 0, -u };
        p.down = (cn__spot){ u, 0 };
        p.origin = (cn__spot){ l->x - 6.5 * u, l->y + back };
    }
    if (l->halo) {
        pen rim = p;
        rim.width += 5;
        begin_cover(r);
        cover_text(r, &rim, l->text);
        paint(r, 0xffffff, 1);
    }
    begin_cover(r);
    cover_text(r, &p, l->text);
    paint(r, l->color, 1);
}

/* ---- the file ---- */

static bool write_file(cn_ctx *ctx, const char *path, const raster *r)
{
    FILE *f = fopen(path, "wb");
    if (!f) return cn__fail(ctx, CN_BAD_FILE, "curve_png: cannot write '%s': %s", path, strerror(errno));
    bool ok = cn__png_write(ctx, f, r->rgb, 3, r->width, r->height);
    ok &= fclose(f) == 0;
    return ok || cn__fail(ctx, CN_BAD_FILE, "curve_png: cannot write '%s': %s", path, strerror(errno));
}

bool cn_curve_png(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc)
{
    cn__chart c;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return false;
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "curve_png: path is NULL");
    if (!cn__chart_open(ctx, "curve_png", series, n, desc, &c) || !cn__chart_size(ctx, "curve_png", &c)) return false;
    raster r = { .canvas = { raster_line, raster_text, raster_width }, .width = c.desc.width, .height = c.desc.height };
    const size_t pixels = (size_t)r.width * (size_t)r.height;
    r.rgb = cn__alloc(ctx, 3 * pixels);
    r.mask = cn__alloc(ctx, pixels);
    bool ok = r.rgb && r.mask;
    if (ok) memset(r.rgb, 0xff, 3 * pixels);
    ok = ok && cn__chart_draw(ctx, &c, &r.canvas) && write_file(ctx, path, &r);
    cn__free(ctx, r.rgb, 3 * pixels);
    cn__free(ctx, r.mask, pixels);
    return ok;
}

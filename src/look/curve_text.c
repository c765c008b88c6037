/* Prints a chart as text: with braille, eight dots to a character, or with one letter for each series. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/call.h"
#include "core/errors.h"
#include "look/chart.h"
#include "look/text.h"

enum { MOST_WIDTH = 300, MOST_HEIGHT = 100 };

typedef struct text {
    char *out;
    size_t size, n;
} text;

__attribute__((format(printf, 2, 3))) static void print(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = t->n < t->size ? t->size - t->n : 0;
    int n = vsnprintf(room ? t->out + t->n : NULL, room, format, list);
    va_end(list);
    if (n > 0) t->n += (size_t)n;
}

/* One character of the plot. */
typedef struct cell {
    unsigned char dots;   /* of braille */
    unsigned char series; /* the last series drawn here, + 1; 0: none */
    bool line;            /* a horizontal line crosses it */
} cell;

typedef struct plot {
    const cn__chart *c;
    int width, height; /* characters */
    int across, down;  /* dots of a character */
    bool braille, ascii, color;
    cell *cells;
} plot;

static void set_dot(plot *p, int x, int y, int series)
{
    static const unsigned char bit[4][2] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
    if (x < 0 || y < 0 || x >= p->width * p->across || y >= p->height * p->down) return;
    cell *k = &p->cells[y / p->down * p->width + x / p->across];
    if (p->braille) k->dots |= bit[y % 4][x % 2];
    k->series = (unsigned char)(series + 1);
}

/* Draws a line of dots, one for each step along its longer side. */
static void join(plot *p, int x0, int y0, int x1, int y1, int series)
{
    const int dx = abs(x1 - x0), dy = abs(y1 - y0), n = dx > dy ? dx : dy;
    for (int i = 0; i <= n; i++) {
        const double t = n ? (double)i / n : 0;
        set_dot(p, (int)lround(x0 + t * (x1 - x0)), (int)lround(y0 + t * (y1 - y0)), series);
    }
}

static int dot_at(const cn__scale *a, double value, int dots)
{
    const double at = cn__scale_at(a, value);
    return (int)lround((at < 0 ? 0 : at > 1 ? 1 : at) * (dots - 1));
}

static void draw_series(plot *p, int series)
{
    cn__walker w = cn__chart_walk(p->c, series, true);
    cn__spot s;
    int x = 0, y = 0;
    for (bool begun = false; cn__walker_next(&w, &s); begun = !isnan(s.y)) {
        if (isnan(s.y)) continue;
        const int to_x = dot_at(&p->c->x, s.x, p->width * p->across);
        const int to_y = p->height * p->down - 1 - dot_at(&p->c->y, s.y, p->height * p->down);
        join(p, begun ? x : to_x, begun ? y : to_y, to_x, to_y, series);
        x = to_x, y = to_y;
    }
}

static void draw_lines(plot *p)
{
    for (int i = 0; i < p->c->desc.n_lines; i++) {
        const double at = cn__scale_at(&p->c->y, p->c->desc.lines[i].y);
        if (!(at >= 0 && at <= 1)) continue;
        const int row = p->height - 1 - (int)lround(at * (p->height - 1));
        for (int x = 0; x < p->width; x++) p->cells[row * p->width + x].line = true;
    }
}

/* ---- print ---- */

static char sign_of(int series) { return "*o+x#@%&"[series % 8]; }

static void print_color(text *t, const plot *p, int series)
{
    static const int codes[] = { 34, 33, 32, 35, 36, 31 };
    if (p->color) print(t, "\033[%dm", codes[series % 6]);
}

static void print_cell(text *t, const plot *p, const cell *k)
{
    if (!k->series) {
        print(t, "%s", !k->line ? " " : p->ascii ? "-" : "╌");
        return;
    }
    print_color(t, p, k->series - 1);
    if (p->braille) print(t, "%c%c%c", 0xe2, 0xa0 | k->dots >> 6, 0x80 | (k->dots & 0x3f));
    else print(t, "%c", sign_of(k->series - 1));
    if (p->color) print(t, "\033[0m");
}

/* The label of the row; "" if it has none. */
static const char *row_label(const plot *p, int row)
{
    const cn__scale *a = &p->c->y;
    for (int i = 0; i < a->n; i++)
        if (p->height - 1 - (int)lround(cn__scale_at(a, a->tick[i]) * (p->height - 1)) == row) return a->label[i];
    return "";
}

static void print_x_labels(text *t, const plot *p, int margin)
{
    const cn__scale *a = &p->c->x;
    int at = 0;
    print(t, "%*s", margin + 2, "");
    for (int i = 0; i < a->n; i++) {
        const int n = (int)strlen(a->label[i]), middle = dot_at(a, a->tick[i], p->width);
        const int begin = middle - n / 2 < 0 ? 0 : middle - n / 2;
        if (begin < at + (at > 0) || begin + n > p->width + 1) continue;
        print(t, "%*s%s", begin - at, "", a->label[i]);
        at = begin + n;
    }
    if (p->c->desc.x_label) print(t, "  %s", p->c->desc.x_label);
    print(t, "\n");
}

static void print_legend(text *t, const plot *p, int margin)
{
    bool any = false;
    for (int i = 0; i < p->c->n; i++) {
        if (!p->c->series[i].name) continue;
        print(t, "%*s", any ? 3 : margin + 2, "");
        print_color(t, p, i);
        if (p->braille) print(t, "⠤⠤");
        else print(t, "%c", sign_of(i));
        print(t, "%s %s", p->color ? "\033[0m" : "", p->c->series[i].name);
        any = true;
    }
    for (int i = 0; i < p->c->desc.n_lines; i++) {
        if (!p->c->desc.lines[i].label) continue;
        print(t, "%*s%s %s", any ? 3 : margin + 2, "", p->ascii ? "--" : "╌╌", p->c->desc.lines[i].label);
        any = true;
    }
    if (any) print(t, "\n");
}

static void print_plot(text *t, const plot *p)
{
    int margin = 0;
    for (int i = 0; i < p->c->y.n; i++)
        if ((int)strlen(p->c->y.label[i]) > margin) margin = (int)strlen(p->c->y.label[i]);
    if (p->c->desc.title) print(t, "%*s%s\n", margin + 2, "", p->c->desc.title);
    for (int y = 0; y < p->height; y++) {
        const char *label = row_label(p, y);
        print(t, "%*s %s", margin, label, p->ascii ? *label ? "+" : "|" : *label ? "┤" : "│");
        for (int x = 0; x < p->width; x++) print_cell(t, p, &p->cells[y * p->width + x]);
        print(t, "\n");
    }
    print(t, "%*s %s", margin, "", p->ascii ? "+" : "└");
    for (int x = 0; x < p->width; x++) print(t, "%s", p->ascii ? "-" : "─");
    print(t, "\n");
    print_x_labels(t, p, margin);
    print_legend(t, p, margin);
}

size_t cn_curve_text(cn_ctx *ctx, const cn_series *series, int n, const cn_curve_desc *desc, char *out, size_t size)
{
    cn__chart c;
    if (!out) size = 0;
    if (size) out[0] = 0;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !cn__chart_open(ctx, "curve_text", series, n, desc, &c)) return 0;
    plot p = { .c = &c, .width = c.desc.width ? c.desc.width : 60, .height = c.desc.height ? c.desc.height : 12 };
    if (p.width < 8 || p.width > MOST_WIDTH || p.height < 3 || p.height > MOST_HEIGHT) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "curve_text: the size must be 8 by 3 to %d by %d characters, got %d by %d",
                 MOST_WIDTH, MOST_HEIGHT, p.width, p.height);
        return 0;
    }
    p.ascii = c.desc.ascii;
    p.color = c.desc.color;
    p.braille = !p.ascii && (n == 1 || p.color);
    p.across = p.braille ? 2 : 1;
    p.down = p.braille ? 4 : 1;
    const size_t bytes = sizeof *p.cells * (size_t)p.width * (size_t)p.height;
    p.cells = cn__alloc(ctx, bytes);
    if (!p.cells) return 0;
    cn__chart_ticks(&c.x, p.width / 12);
    cn__chart_ticks(&c.y, p.height / 3);
    draw_lines(&p);
    for (int i = 0; i < n; i++) draw_series(&p, i);
    text t = { out, size, 0 };
    print_plot(&t, &p);
    cn__free(ctx, p.cells, bytes);
    return t.n;
}

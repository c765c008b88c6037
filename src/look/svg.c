/* Draws a chart as SVG. */
#include <errno.h>

#include "core/call.h"
#include "core/errors.h"
#include "look/chart.h"
#include "look/text.h"

typedef struct svg {
    cn__canvas canvas;
    FILE *f;
} svg;

static void write_number(FILE *f, double x)
{
    char text[32];
    cn__decimal_text(x, 2, text);
    char *end = text + strlen(text);
    while (end[-1] == '0') *--end = 0;
    if (end[-1] == '.') end[-1] = 0;
    fputs(strcmp(text, "-0") == 0 ? "0" : text, f);
}

static void write_attribute(FILE *f, const char *name, double x)
{
    fprintf(f, " %s=\"", name);
    write_number(f, x);
    fputc('"', f);
}

/* Characters that XML does not allow, and bytes that are not UTF-8, become '?'. */
static void write_text(FILE *f, const char *s)
{
    for (int n; *s; s += n) {
        const uint32_t c = cn__letter_next(s, &n);
        if (c == '<') fputs("&lt;", f);
        else if (c == '>') fputs("&gt;", f);
        else if (c == '&') fputs("&amp;", f);
        else if (c == '"') fputs("&quot;", f);
        else if (c == '\t' || c == '\n' || c == '\r') fputc(' ', f);
        else if (c < 0x20 || c == 0xfffd || c == 0xfffe || c == 0xffff) fputc('?', f);
        else fwrite(s, 1, (size_t)n, f);
    }
}

static void svg_line(cn__canvas *on, const cn__stroke *s, const cn__spot *p, size_t n)
{
    FILE *f = ((svg *)on)->f;
    fprintf(f, "<path fill=\"none\" stroke=\"#%06x\"", s->color);
    write_attribute(f, "stroke-width", s->width);
    if (s->opacity < 1) write_attribute(f, "stroke-opacity", s->opacity);
    if (s->dash > 0) {
        write_attribute(f, "stroke-dasharray", s->dash);
    } else if (s->width > 1) {
        fputs(" stroke-linecap=\"round\" stroke-linejoin=\"round\"", f);
    }
    fputs(" d=\"M", f);
    for (size_t i = 0; i < n || i < 2; i++) { /* one point: a line to itself, whose round ends form a dot */
        const cn__spot *q = &p[i < n ? i : n - 1];
        if (i) fputc(i == 1 ? 'L' : ' ', f);
        write_number(f, q->x);
        fputc(' ', f);
        write_number(f, q->y);
    }
    fputs("\"/>\n", f);
}

static void svg_text(cn__canvas *on, const cn__label *l)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    FILE *f = ((svg *)on)->f;
    fprintf(f, "<text fill=\"#%06x\" text-anchor=\"%s\"", l->color, anchors[l->anchor]);
    write_attribute(f, "font-size", l->size);
    write_attribute(f, "x", l->x);
    write_attribute(f, "y", l->y);
    if (l->bold) fputs(" font-weight=\"600\"", f);
    if (l->halo) fputs(" stroke=\"#fff\" stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\"", f);
    if (l->upwards) {
        fputs(" transform=\"rotate(-90 ", f);
        write_number(f, l->x);
        fputc(' ', f);
        write_number(f, l->y);
        fputs(")\"", f);
    }
    fputc('>', f);
    write_text(f, l->text);
    fputs("</text>\n", f);
}

/* An estimate for common fonts, rather too wide: the font of the viewer is not known. */
static double svg_width(const char *text, double size, bool bold)
{
    return cn__text_columns(text) * size * (bold ? 0.62 : 0.57);
}

bool cn_curve_svg(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc)
{
    cn__chart c;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return false;
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "curve_svg: path is NULL");
    if (!cn__chart_open(ctx, "curve_svg", series, n, desc, &c) || !cn__chart_size(ctx, "curve_svg", &c)) return false;
    svg s = { .canvas = { svg_line, svg_text, svg_width }, .f = fopen(path, "w") };
    if (!s.f) return cn__fail(ctx, CN_BAD_FILE, "curve_svg: cannot write '%s': %s", path, strerror(errno));
    const int width = c.desc.width, height = c.desc.height;
    fprintf(s.f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\"", width,
            height, width, height);
    fputs(" font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif\">\n", s.f);
    fprintf(s.f, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
    const bool drawn = cn__chart_draw(ctx, &c, &s.canvas);
    fputs("</svg>\n", s.f);
    bool ok = !ferror(s.f);
    ok &= fclose(s.f) == 0;
    if (!ok) cn__fail(ctx, CN_BAD_FILE, "curve_svg: cannot write '%s': %s", path, strerror(errno));
    return drawn && ok;
}

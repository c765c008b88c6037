/* Curves: pictures are decoded again and looked at pixel by pixel; SVG is walked tag by tag; charts of characters are compared as
   they are. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/look.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/scratch.h"

static unsigned char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    unsigned char *text = calloc(1, 1 << 22);
    *n = f ? fread(text, 1, (1 << 22) - 1, f) : 0;
    if (f) fclose(f);
    return text;
}

/* ---- a reader of PNG: one IDAT, fixed codes ---- */

typedef struct bits {
    const unsigned char *p, *end;
    unsigned hold;
    int n;
    bool bad;
} bits;

static unsigned take(bits *b, int n)
{
    unsigned x = 0;
    for (int i = 0; i < n; i++) {
        if (!b->n) {
            if (b->p == b->end) b->bad = true;
            b->hold = b->bad ? 0 : *b->p++;
            b->n = 8;
        }
        x |= (b->hold & 1) << i;
        b->hold >>= 1;
        b->n--;
    }
    return x;
}

static unsigned take_code(bits *b, int n)
{
    unsigned x = 0;
    for (int i = 0; i < n; i++) x = x << 1 | take(b, 1);
    return x;
}

static unsigned take_symbol(bits *b)
{
    unsigned c = take_code(b, 7);
    if (c < 24) return 256 + c;
    c = c << 1 | take(b, 1);
    if (c < 192) return c - 48;
    if (c < 200) return 280 + c - 192;
    return 144 + ((c << 1 | take(b, 1)) - 400);
}

static size_t inflate(const unsigned char *p, size_t n, unsigned char *out, size_t room)
{
    static const int length[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const int length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    bits b = { .p = p, .end = p + n };
    size_t at = 0;
    if (take(&b, 1) != 1 || take(&b, 2) != 1) return 0;
    while (!b.bad) {
        const unsigned s = take_symbol(&b);
        if (s == 256) return at;
        if (s < 256) {
            if (at == room) return 0;
            out[at++] = (unsigned char)s;
            continue;
        }
        if (s > 285) return 0;
        const size_t many = (size_t)length[s - 257] + take(&b, length_bits[s - 257]);
        const unsigned d = take_code(&b, 5);
        const size_t back = d < 4 ? d + 1 : ((2u + (d & 1)) << (d / 2 - 1)) + 1 + take(&b, (int)d / 2 - 1);
        if (back > at || at + many > room) return 0;
        for (size_t i = 0; i < many; i++, at++) out[at] = out[at - back];
    }
    return 0;
}

static uint32_t big(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t crc32(const unsigned char *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

typedef struct image {
    int width, height;
    unsigned char *rows; /* each begins with its filter */
} image;

static unsigned pixel(const image *m, int x, int y)
{
    const unsigned char *p = m->rows + (size_t)y * ((size_t)m->width * 3 + 1) + 1 + 3 * (size_t)x;
    return (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
}

static bool read_data(image *m, const unsigned char *p, size_t n)
{
    const size_t bytes = ((size_t)m->width * 3 + 1) * (size_t)m->height;
    uint32_t a = 1, b = 0;
    m->rows = calloc(1, bytes);
    if (n < 6 || (p[0] * 256 + p[1]) % 31 || inflate(p + 2, n - 6, m->rows, bytes) != bytes) return false;
    for (size_t i = 0; i < bytes; i++) a = (a + m->rows[i]) % 65521, b = (b + a) % 65521;
    return big(p + n - 4) == (b << 16 | a);
}

static image read_png(const char *path)
{
    size_t n, at = 8;
    image m = { 0 };
    unsigned char *p = read_whole(path, &n);
    bool ok = n > 60 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8), ended = false;
    while (ok && at + 12 <= n) {
        const uint32_t bytes = big(p + at);
        ok = bytes <= n - at - 12 && crc32(p + at + 4, bytes + 4) == big(p + at + 8 + bytes);
        if (!ok) break;
        if (!memcmp(p + at + 4, "IHDR", 4))
            m.width = (int)big(p + at + 8), m.height = (int)big(p + at + 12), ok = p[at + 16] == 8 && p[at + 17] == 2;
        if (!memcmp(p + at + 4, "IDAT", 4)) ok = read_data(&m, p + at + 8, bytes);
        ended = !memcmp(p + at + 4, "IEND", 4);
        at += bytes + 12;
    }
    check(ok && ended && at == n, "%s is a PNG: at byte %zu of %zu", path, at, n);
    free(p);
    if (!m.rows) m.rows = calloc(1, ((size_t)m.width * 3 + 1) * (size_t)m.height + 16);
    return m;
}

typedef struct box {
    int n, x0, x1, y0, y1;
} box;

/* Where the color stands. */
static box find(const image *m, unsigned color)
{
    box b = { 0, 1 << 20, -1, 1 << 20, -1 };
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++) {
            if (pixel(m, x, y) != color) continue;
            b.n++;
            if (x < b.x0) b.x0 = x;
            if (x > b.x1) b.x1 = x;
            if (y < b.y0) b.y0 = y;
            if (y > b.y1) b.y1 = y;
        }
    return b;
}

static int in_columns(const image *m, unsigned color, int x0, int x1, int y0)
{
    int n = 0;
    for (int y = y0; y < m->height; y++)
        for (int x = x0; x < x1; x++) n += pixel(m, x, y) == color;
    return n;
}

/* ---- pictures ---- */

enum { RED = 0xff0000, GREEN = 0x00a000, MARK = 0x6b7580 };

static void lines_are_where_they_belong(cn_ctx *cn)
{
    check_group("PNG");
    double flat[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, steps[] = { 0, 0, 0, 0, NAN, INFINITY, 2, 2, 2, 2 };
    const cn_series s[] = { { .y = flat, .n = 10, .color = RED }, { .y = steps, .n = 10, .color = GREEN } };
    check(cn_curve_png(cn, "a.png", s, 2, &(cn_curve_desc){ .width = 400, .height = 300 }), "drawn: %s", cn_error(cn));
    image m = read_png("a.png");
    check(m.width == 400 && m.height == 300, "%d by %d", m.width, m.height);
    check(pixel(&m, 0, 0) == 0xffffff && pixel(&m, 399, 299) == 0xffffff, "on white");
    const box red = find(&m, RED), green = find(&m, GREEN);
    check(red.n > 300 && red.y1 - red.y0 <= 2 && red.x1 - red.x0 > 300, "the flat line is flat: %d pixels, %d..%d",
          red.n, red.y0, red.y1);
    check(abs((green.y0 + green.y1) - (red.y0 + red.y1)) <= 2 && green.y1 - green.y0 > 150,
          "it is halfway between the others");
    const int gap0 = red.x0 + (red.x1 - red.x0) * 4 / 9, gap1 = red.x0 + (red.x1 - red.x0) * 5 / 9;
    check(in_columns(&m, GREEN, gap0, gap1, 0) == 0 && in_columns(&m, RED, gap0, gap1, 0) > 30,
          "what is not finite is a gap");
    check(in_columns(&m, GREEN, red.x0, gap0 - 20, (red.y0 + red.y1) / 2) > 50, "0 is below 1");
    free(m.rows);
}

static void smoothing_and_lines(cn_ctx *cn)
{
    check_group("smoothing");
    enum { N = 20000 };
    static double y[N];
    for (int i = 0; i < N; i++) y[i] = i % 2 ? 1 : -1;
    y[5000] = 9; /* one point among 20,000 is still seen */
    const cn_curve_line mark = { 4, "a level of 4" };
    const cn_series s = { .name = "noise", .y = y, .n = N, .color = RED };
    const cn_curve_desc d = {
        .title = "Title", .lines = &mark, .n_lines = 1, .smooth = 0.99, .x_label = "step", .y_label = "loss"
    };
    check(cn_curve_png(cn, "b.png", &s, 1, &d), "drawn: %s", cn_error(cn));
    image m = read_png("b.png");
    check(m.width == 960 && m.height == 540, "the default size: %d by %d", m.width, m.height);
    const box marks = find(&m, MARK);
    const int top = 90; /* below the legend */
    int strong = 0, highest = 540;
    for (int py = top; py < 540; py++)
        for (int px = 0; px < 960; px++) {
            const unsigned c = pixel(&m, px, py);
            strong += c == RED;
            if ((c >> 16) == 0xff && (c & 0xff) < 0xf0 && py < highest) highest = py;
        }
    check(marks.n > 300, "the line to compare with is there: %d pixels", marks.n);
    check(strong > 700, "the smoothed line is strong: %d pixels", strong);
    check(highest < marks.y0 - 80, "the highest point is at %d, above the mark at %d", highest, marks.y0);
    size_t n;
    free(read_whole("b.png", &n));
    check(n < 200000, "%zu bytes for 1.5 MB of pixels", n);
    free(m.rows);
    cn_series exact = s;
    exact.exact = true;
    cn_curve_png(cn, "c.png", &exact, 1, &d);
    m = read_png("c.png");
    check(find(&m, RED).n > 20000, "exact series are not smoothed: %d", find(&m, RED).n);
    free(m.rows);
}

static void odd_data(cn_ctx *cn)
{
    check_group("odd data");
    const double one[] = { 0.25 }, same[] = { 7, 7, 7 }, none[] = { NAN, INFINITY }, tiny[] = { 1e-9, 2e-9, 1.5e-9 };
    const double huge[] = { 1e12, 3e12 }, wide[] = { 1e-6, 1, 1e6 }, negative[] = { -1, -2 }, far[] = { 1e308, -1e308 };
    const struct {
        const char *name;
        cn_series s;
        cn_curve_desc d;
        bool ok;
    } cases[] = {
        { "one point", { .y = one, .n = 1, .color = RED }, { 0 }, true },
        { "one value", { .y = same, .n = 3, .color = RED }, { 0 }, true },
        { "no finite point", { .y = none, .n = 2 }, { 0 }, false },
        { "no point", { .y = one, .n = 0 }, { 0 }, false },
        { "no values", { .n = 3 }, { 0 }, false },
        { "tiny", { .y = tiny, .n = 3, .color = RED }, { 0 }, true },
        { "huge", { .y = huge, .n = 2, .color = RED }, { 0 }, true },
        { "logarithms", { .y = wide, .n = 3, .color = RED }, { .log_y = true }, true },
        { "logarithms of one", { .y = one, .n = 1, .color = RED }, { .log_y = true }, true },
        { "logarithms of negatives", { .y = negative, .n = 2 }, { .log_y = true }, false },
        { "a range too large", { .y = far, .n = 2 }, { 0 }, false },
        { "a range given", { .y = wide, .n = 3, .color = RED }, { .y_low = -1, .y_high = 2 }, true },
        { "a range upside down", { .y = wide, .n = 3 }, { .y_low = 2, .y_high = 1 }, false },
        { "smooth of 1", { .y = same, .n = 3 }, { .smooth = 1 }, false },
        { "too small", { .y = same, .n = 3 }, { .width = 20, .height = 20 }, false },
        { "no room", { .y = same, .n = 3 }, { .width = 120, .height = 90, .title = "x", .x_label = "y" }, false },
    };
    char text[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cn_error_clear(cn);
        const bool png = cn_curve_png(cn, "odd.png", &cases[i].s, 1, &cases[i].d);
        check(png == cases[i].ok && png == !cn_failed(cn), "PNG of %s: %s", cases[i].name, cn_error(cn));
        if (png) {
            image m = read_png("odd.png");
            check(find(&m, RED).n > 3, "%s is seen: %d pixels", cases[i].name, find(&m, RED).n);
            free(m.rows);
        }
        cn_error_clear(cn);
        check(cn_curve_svg(cn, "odd.svg", &cases[i].s, 1, &cases[i].d) == cases[i].ok, "SVG of %s: %s", cases[i].name,
              cn_error(cn));
        size_t n;
        char *svg = (char *)read_whole("odd.svg", &n);
        if (cases[i].ok)
            check(!strstr(svg, "nan") && !strstr(svg, "inf"), "%s: no odd numbers in the file", cases[i].name);
        free(svg);
        if (cases[i].d.width) continue;
        cn_error_clear(cn);
        check((cn_curve_text(cn, &cases[i].s, 1, &cases[i].d, text, sizeof text) > 0) == cases[i].ok, "text of %s: %s",
              cases[i].name, cn_error(cn));
    }
    cn_error_clear(cn);
    check(!cn_curve_png(cn, "no/such/folder.png", &(cn_series){ .y = same, .n = 3 }, 1, NULL) &&
              cn_error_code(cn) == CN_BAD_FILE,
          "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_curve_svg(cn, NULL, NULL, 0, NULL) && !cn_curve_png(cn, "x", NULL, 0, NULL) &&
              !cn_curve_png(NULL, "x", NULL, 0, NULL),
          "nothing given");
    cn_error_clear(cn);
}

/* ---- SVG: every tag is closed, every attribute quoted, nothing else stands where it must not ---- */

static int walk_svg(const char *p, char *words, size_t room)
{
    char open[16][16];
    int depth = 0, tags = 0;
    size_t n = 0;
    for (; *p; p++) {
        if (*p != '<') {
            if (*p == '&' && strncmp(p, "&lt;", 4) && strncmp(p, "&gt;", 4) && strncmp(p, "&amp;", 5) &&
                strncmp(p, "&quot;", 6))
                return -1;
            if (n + 1 < room && !isspace((unsigned char)*p)) words[n++] = *p;
            continue;
        }
        tags++;
        const bool closing = p[1] == '/';
        int length = 0;
        p += 1 + closing;
        while (isalpha((unsigned char)p[length])) length++;
        if (!length || length > 15 || depth > 14) return -2;
        if (closing && (!depth || strncmp(open[--depth], p, (size_t)length))) return -3;
        if (!closing) snprintf(open[depth++], 16, "%.*s", length, p);
        bool quoted = false;
        for (p += length; *p && (*p != '>' || quoted); p++) {
            if (*p == '"') quoted = !quoted;
            else if (*p == '<') return -4;
            else if (!quoted && !isalnum((unsigned char)*p) && !strchr(" =-:/", *p)) return -5;
        }
        if (*p != '>') return -6;
        if (p[-1] == '/' && !closing) depth--;
    }
    words[n] = 0;
    return depth ? -7 : tags;
}

static void svg_is_well_formed(cn_ctx *cn)
{
    check_group("SVG");
    double train[100], validation[10], x[10];
    for (int i = 0; i < 100; i++) train[i] = 3 * exp(-i / 30.0) + 0.1 * sin(i * 5.0);
    for (int i = 0; i < 10; i++) x[i] = 10 * i, validation[i] = 3 * exp(-i / 3.0) + 0.2;
    train[50] = NAN;
    const cn_series s[] = { { .name = "train & \"more\"", .y = train, .n = 100 },
                            { .name = "validation <x>", .x = x, .y = validation, .n = 10, .color = GREEN } };
    const cn_curve_line mark = { 3.2, "unigram entropy 3.2" };
    const cn_curve_desc d = {
        .title = "a < b \x01\xff é", .x_label = "step", .y_label = "loss", .lines = &mark, .n_lines = 1, .smooth = 0.5
    };
    check(cn_curve_svg(cn, "a.svg", s, 2, &d), "written: %s", cn_error(cn));
    size_t n;
    char *svg = (char *)read_whole("a.svg", &n), *words = calloc(1, n + 1);
    const int tags = walk_svg(svg, words, n);
    check(tags > 40, "well-formed: %d", tags);
    check(strstr(words, "train&amp;&quot;more&quot;") && strstr(words, "validation&lt;x&gt;") &&
              strstr(words, "a&lt;b??é") && strstr(words, "unigramentropy3.2"),
          "texts: %s", words);
    int faint = 0, green = 0;
    for (const char *c = svg; (c = strstr(c, "stroke-opacity=\"0.28\"")); c++) faint++;
    for (const char *c = svg; (c = strstr(c, "stroke=\"#00a000\"")); c++) green++;
    check(faint == 3, "raw lines are faint: two pieces of the first, one of the second: %d", faint);
    check(green == 3, "legend, raw and smoothed: %d", green);
    check(strstr(svg, "stroke-dasharray=\"6\"") != NULL, "the line to compare with is dashed");
    check(!strncmp(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"540\"", 60), "its size");
    free(svg);
    free(words);
}

/* ---- text ---- */

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void text_is_exact(cn_ctx *cn)
{
    check_group("text");
    const double up[] = { 0, 1, 2, 3 }, down[] = { 3, 2, 1, 0 };
    const cn_series s[] = { { .name = "up", .y = up, .n = 4 }, { .name = "down", .y = down, .n = 4 } };
    const cn_curve_line mark = { 1.5, "middle" };
    const cn_curve_desc d = { .title = "Both",
                              .lines = &mark,
                              .n_lines = 1,
                              .width = 16,
                              .height = 7,
                              .ascii = true,
                              .y_low = 0.0,
                              .y_high = 3 };
    char text[4096], part[20];
    const size_t n = cn_curve_text(cn, s, 2, &d, text, sizeof text);
    const char *want = "   Both\n"
                       "  |oo            **\n"
                       "  |  oo        **  \n"
                       "2 +    ooo  ***    \n"
                       "  |-------oo-------\n"
                       "  |    ***  ooo    \n"
                       "  |  **        oo  \n"
                       "0 +**            oo\n"
                       "  +----------------\n";
    check(n == strlen(text), "its length: %zu", n);
    check(!strncmp(text, want, strlen(want)), "two lines that cross:\n%s", text);
    check(strstr(text, "* up   o down   -- middle\n") != NULL, "legend: %s", text);
    check(count_lines(text) == 11, "%d lines", count_lines(text));
    check(cn_curve_text(cn, s, 2, &d, part, sizeof part) == n && strlen(part) == 19 && !strncmp(part, text, 19),
          "a part of it");
    for (const char *c = text; *c; c++) check((unsigned char)*c < 0x80, "ASCII only");
    cn_curve_desc braille = { .width = 8, .height = 3, .y_low = 0.0, .y_high = 3 };
    cn_curve_text(cn, s, 1, &braille, text, sizeof text);
    check(strstr(text, "⣀⠤⠒⠉") || strstr(text, "⡠") || strstr(text, "⠔"), "dots of braille: %s", text);
    braille.color = true;
    cn_curve_text(cn, s, 2, &braille, text, sizeof text);
    check(strstr(text, "\033[34m") && strstr(text, "\033[33m") && strstr(text, "\033[0m"), "in colors");
    check(!cn_curve_text(cn, s, 2, &(cn_curve_desc){ .width = 3 }, text, sizeof text) &&
              cn_error_code(cn) == CN_BAD_ARGUMENT && !text[0],
          "%s", cn_error(cn));
    cn_error_clear(cn);
}

/* ---- memory that runs out ---- */

static bool draw(cn_ctx *cn, int kind)
{
    double y[3000];
    char text[8192];
    for (int i = 0; i < 3000; i++) y[i] = sin(i * 0.01);
    const cn_series s = { .name = "sine", .y = y, .n = 3000 };
    if (kind == 0)
        return cn_curve_png(cn, "m.png", &s, 1, &(cn_curve_desc){ .width = 300, .height = 200, .smooth = 0.5 });
    if (kind == 1) return cn_curve_svg(cn, "m.svg", &s, 1, &(cn_curve_desc){ .smooth = 0.5 });
    return cn_curve_text(cn, &s, 1, NULL, text, sizeof text) > 0;
}

static void memory_may_run_out(void)
{
    check_group("memory");
    for (int kind = 0; kind < 3; kind++) {
        int64_t failed = 0;
        for (bool reached = true; reached;) {
            faulty f = { 0 };
            cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
            f.calls = 0;
            f.fail_at = failed + 1;
            const bool ok = draw(cn, kind);
            reached = f.calls >= f.fail_at;
            check(ok == !reached, "kind %d, allocation %lld: false and an error go together", kind, (long long)failed);
            if (reached)
                check(cn_error_code(cn) == CN_NO_MEMORY, "kind %d, allocation %lld: %s", kind, (long long)failed,
                      cn_error(cn));
            failed += reached;
            cn_close(cn);
            check(f.blocks == 0, "kind %d: %lld blocks leak", kind, (long long)f.blocks);
        }
        check(failed >= 1, "kind %d: %lld allocations made to fail", kind, (long long)failed);
    }
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    lines_are_where_they_belong(cn);
    smoothing_and_lines(cn);
    odd_data(cn);
    svg_is_well_formed(cn);
    text_is_exact(cn);
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    memory_may_run_out();
    return finish();
}

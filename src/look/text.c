/* The width of text in columns, and numbers with a decimal point in every locale. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look/text.h"

uint32_t cn__letter_next(const char *s, int *n)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *u = (const unsigned char *)s;
    *n = 1;
    if (u[0] < 0x80) return u[0];
    const int length = u[0] >= 0xf8 ? 0 : u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : u[0] >= 0xc0 ? 2 : 0;
    uint32_t c = length ? u[0] & (0x7fu >> length) : 0;
    for (int i = 1; i < length; i++) {
        if ((u[i] & 0xc0) != 0x80) return 0xfffd;
        c = c << 6 | (u[i] & 0x3f);
    }
    if (!length || c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0xfffd;
    *n = length;
    return c;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool within(uint32_t c, const range *r, int n)
{
    for (int i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last) return true;
    return false;
}

int cn__utf8_columns(uint32_t c)
{
    static const range none[] = { { 0x300, 0x36f }, { 0x200b, 0x200f }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f } };
    static const range wide[] = { { 0x1100, 0x115f }, { 0x2e80, 0xa4cf },   { 0xac00, 0xd7a3 },
                                  { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
                                  { 0xffe0, 0xffe6 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd } };
    if (within(c, none, sizeof none / sizeof *none)) return 0;
    return within(c, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

int cn__text_columns(const char *s)
{
    int columns = 0;
    for (int n; *s; s += n) columns += cn__utf8_columns(cn__letter_next(s, &n));
    return columns;
}

static bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

int cn__text_fit(char *out, size_t size, const char *s, int columns, bool utf8)
{
    const char *more = utf8 ? "…" : "~";
    const bool cut = cn__text_columns(s) > columns;
    const int room = cut ? columns - 1 : columns;
    int used = 0;
    size_t at = 0;
    for (int n; *s; s += n) {
        const uint32_t c = cn__letter_next(s, &n);
        const bool plain = is_control(c) || c == 0xfffd || (c >= 0x80 && !utf8);
        const int width = plain ? 1 : cn__utf8_columns(c);
        if (used + width > room || at + (size_t)n + 4 > size) break;
        used += width;
        if (plain) out[at++] = is_control(c) ? ' ' : '?';
        else memcpy(out + at, s, (size_t)n), at += (size_t)n;
    }
    if (cut && columns > 0 && at + 4 <= size) {
        memcpy(out + at, more, strlen(more));
        at += strlen(more);
        used++;
    }
    if (size) out[at] = 0;
    return used;
}

/* Replaces the decimal separator of the locale by a point. */
static void fix_point(char *s)
{
    char *to = s;
    for (const char *c = s; *c; c++) {
        if (isalnum((unsigned char)*c) || *c == '+' || *c == '-') *to++ = *c;
        else if (to == s || to[-1] != '.') *to++ = '.';
    }
    *to = 0;
}

const char *cn__number_text(double x, char out[32])
{
    if (isnan(x)) return strcpy(out, "nan");
    if (isinf(x)) return strcpy(out, x > 0 ? "inf" : "-inf");
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break; /* strtod uses the same locale as snprintf */
    }
    fix_point(out);
    return out;
}

const char *cn__decimal_text(double x, int decimals, char out[32])
{
    if (!(fabs(x) < 1e17)) return cn__number_text(x, out);
    snprintf(out, 32, "%.*f", decimals, x);
    fix_point(out);
    return out;
}

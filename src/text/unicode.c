/* Reads UTF-8, and finds the kind of a code point in a table of ranges. */
#include "text/unicode.h"

#include <stdbool.h>

#define SPACE  CN__RUNE_SPACE
#define LETTER CN__RUNE_LETTER
#define NUMBER CN__RUNE_NUMBER

/* Sorted. A code point outside of all ranges is CN__RUNE_OTHER. */
static const struct range {
    uint32_t first, last;
    uint8_t kind;
} ranges[] = {
#define RANGE(first, last, kind) { first, last, kind },
#include "text/unicode_ranges.def"
#undef RANGE
};

cn__rune_kind cn__kind_of(uint32_t code)
{
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < code) low = middle + 1;
        else high = middle;
    }
    bool inside = low < sizeof ranges / sizeof *ranges && ranges[low].first <= code;
    return inside ? (cn__rune_kind)ranges[low].kind : CN__RUNE_OTHER;
}

/* The allowed range of the second byte: it excludes overlong forms, surrogates, and code points above U+10FFFF. */
static void second_byte(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
}

cn__rune cn__utf8_next(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return (cn__rune){ s[0], 1, CN__UTF8_WHOLE };
    if (s[0] < 0xC2 || s[0] > 0xF4) return (cn__rune){ 0, 1, CN__UTF8_BAD };
    int length = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    uint32_t code = s[0] & (0x7Fu >> length);
    unsigned char low, high;
    second_byte(s[0], &low, &high);
    for (int i = 1; i < length; i++, low = 0x80, high = 0xBF) {
        if ((size_t)i == n) return (cn__rune){ 0, (uint8_t)i, CN__UTF8_BEGUN };
        if (s[i] < low || s[i] > high) return (cn__rune){ 0, (uint8_t)i, CN__UTF8_BAD };
        code = code << 6 | (s[i] & 0x3Fu);
    }
    return (cn__rune){ code, (uint8_t)length, CN__UTF8_WHOLE };
}

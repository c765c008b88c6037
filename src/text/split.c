/* Splits a text into pieces by the pattern of GPT-2, without a regular-expression engine. */
#include "text/split.h"

#include <stdbool.h>
#include <string.h>

#include "text/unicode.h"

/* One character: its kind and its length in bytes. */
typedef struct character {
    cn__rune_kind kind;
    size_t n;
} character;

static character read_character(const char *text, size_t n)
{
    unsigned char c = (unsigned char)*text;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return (character){ CN__RUNE_LETTER, 1 };
    if (c == ' ') return (character){ CN__RUNE_SPACE, 1 };
    cn__rune r = cn__utf8_next(text, n);
    if (r.state != CN__UTF8_WHOLE) return (character){ CN__RUNE_OTHER, 1 };
    return (character){ cn__kind_of(r.code), r.n };
}

/* The length of 's 't 'm 'd 're 've 'll; 0: none of them. */
static size_t contraction(const char *text, size_t n)
{
    if (n >= 2 && text[0] == '\'' && strchr("stmd", text[1]) && text[1]) return 2;
    if (n < 3 || text[0] != '\'') return 0;
    bool two = memcmp(text + 1, "re", 2) == 0 || memcmp(text + 1, "ve", 2) == 0 || memcmp(text + 1, "ll", 2) == 0;
    return two ? 3 : 0;
}

static size_t run_of(cn__rune_kind kind, const char *text, size_t n)
{
    size_t at = 0;
    while (at < n) {
        character c = read_character(text + at, n - at);
        if (c.kind != kind) break;
        at += c.n;
    }
    return at;
}

size_t cn__space_run(const char *text, size_t n) { return run_of(CN__RUNE_SPACE, text, n); }

/* A run of spaces leaves its last space to the next piece, unless it is the only one or the text ends. */
static size_t spaces(const char *text, size_t n)
{
    size_t at = 0, last = 0;
    while (at < n) {
        character c = read_character(text + at, n - at);
        if (c.kind != CN__RUNE_SPACE) return last > 0 ? last : at;
        last = at;
        at += c.n;
    }
    return at;
}

size_t cn__split_next(const char *text, size_t n)
{
    size_t short_form = contraction(text, n);
    if (short_form) return short_form;
    size_t lead = text[0] == ' ' && n > 1;
    character c = read_character(text + lead, n - lead);
    return c.kind == CN__RUNE_SPACE ? spaces(text, n) : lead + run_of(c.kind, text + lead, n - lead);
}

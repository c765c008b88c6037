/* text/unicode.h: reads UTF-8 one character at a time, and tells whether a character is a letter, number or space. */
#ifndef CN_TEXT_UNICODE_H
#define CN_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum cn__utf8_state {
    CN__UTF8_WHOLE, /* a complete character */
    CN__UTF8_BEGUN, /* the text ends inside a character */
    CN__UTF8_BAD,   /* not UTF-8 */
} cn__utf8_state;

typedef struct cn__rune {
    uint32_t code; /* if WHOLE */
    uint8_t n;     /* length in bytes; BAD: the bytes that one U+FFFD replaces */
    uint8_t state;
} cn__rune;

cn__rune cn__utf8_next(const char *text, size_t n); /* n > 0 */

typedef enum cn__rune_kind { CN__RUNE_OTHER, CN__RUNE_SPACE, CN__RUNE_LETTER, CN__RUNE_NUMBER } cn__rune_kind;
cn__rune_kind cn__kind_of(uint32_t code);

#endif

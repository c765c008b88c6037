/* text/unicode.h: UTF-8 one character at a time, and what GPT-2's pattern asks of a character. */
#ifndef CN_TEXT_UNICODE_H
#define CN_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum cn__utf8_state {
    CN__UTF8_WHOLE, /* a character */
    CN__UTF8_BEGUN, /* the text ends within what may become one */
    CN__UTF8_BAD,   /* never one */
} cn__utf8_state;

typedef struct cn__rune {
    uint32_t code; /* WHOLE */
    uint8_t n;     /* bytes it takes; BAD: those that one U+FFFD stands for */
    uint8_t state;
} cn__rune;

cn__rune cn__utf8_next(const char *text, size_t n); /* n > 0 */
int cn__utf8_put(uint32_t code, char out[4]);       /* how many bytes; a code point that exists */

typedef enum cn__rune_kind { CN__RUNE_OTHER, CN__RUNE_SPACE, CN__RUNE_LETTER, CN__RUNE_NUMBER } cn__rune_kind;
cn__rune_kind cn__kind_of(uint32_t code);

#endif

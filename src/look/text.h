/* look/text.h: text in columns, and numbers whatever the locale says about decimal points. */
#ifndef CN_LOOK_TEXT_H
#define CN_LOOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next character of UTF-8, *n bytes long. What is no UTF-8 gives 0xFFFD, a byte at a time. */
uint32_t cn__letter_next(const char *s, int *n);
int cn__utf8_columns(uint32_t c);    /* 0: combining; 2: wide */
int cn__text_columns(const char *s); /* of the whole */

/* Copies what fits into `columns`; control characters become spaces; without utf8, what is no ASCII becomes '?'. Cut text ends in
   an ellipsis. Returns the columns used. */
int cn__text_fit(char *out, size_t size, const char *s, int columns, bool utf8);

/* The shortest decimal that reads back as x; "nan", "inf", "-inf". At least 32 bytes. */
const char *cn__number_text(double x, char out[32]);
/* x with so many decimals, at most 9; a point, always. */
const char *cn__decimal_text(double x, int decimals, char out[32]);

#endif

/* look/text.h: the width of text in columns, and numbers with a decimal point in every locale. */
#ifndef CN_LOOK_TEXT_H
#define CN_LOOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next character of UTF-8, *n bytes long. A byte that is not UTF-8 is returned as 0xFFFD. */
uint32_t cn__letter_next(const char *s, int *n);
int cn__utf8_columns(uint32_t c);    /* 0: combining; 2: wide */
int cn__text_columns(const char *s); /* of the whole */

/* Copies the text that fits into `columns`. Control characters become spaces; without utf8, characters outside of ASCII
   become '?'. A text that is cut ends in an ellipsis. Returns the columns used. */
int cn__text_fit(char *out, size_t size, const char *s, int columns, bool utf8);

/* The shortest decimal that reads back as x; "nan", "inf", "-inf". */
const char *cn__number_text(double x, char out[32]);
/* x with so many decimals, at most 9. */
const char *cn__decimal_text(double x, int decimals, char out[32]);

#endif

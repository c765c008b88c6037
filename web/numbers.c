/* In the place of C's strtod, which computes with numbers of 128 bits, 14 kB of code: JavaScript reads numbers as well. */
#include <stdlib.h>

double cairnNumber(const char *text, char **end); /* numbers.js */

double strtod(const char *restrict text, char **restrict end) { return cairnNumber(text, end); }

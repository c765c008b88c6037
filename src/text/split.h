/* text/split.h: splits a text into pieces as GPT-2 does. Each piece is encoded by itself.

   The pattern, as a regular expression with Unicode properties:
       's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
   A byte that is not UTF-8 counts as a character that is neither letter, number nor space. */
#ifndef CN_TEXT_SPLIT_H
#define CN_TEXT_SPLIT_H

#include <stddef.h>

#define CN__GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

size_t cn__split_next(const char *text, size_t n); /* length of the first piece in bytes; n > 0 */
size_t cn__space_run(const char *text, size_t n);  /* length of the white space at the beginning */

#endif

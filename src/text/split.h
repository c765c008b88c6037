/* text/split.h: GPT-2's cutting of a text into pieces that are encoded one by one.

   The pattern, in regular expressions with Unicode properties:
       's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
   A byte that is not UTF-8 counts as a character that is neither letter, number nor space. */
#ifndef CN_TEXT_SPLIT_H
#define CN_TEXT_SPLIT_H

#include <stddef.h>

#define CN__GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

size_t cn__split_next(const char *text, size_t n); /* bytes of the first piece; n > 0 */
size_t cn__space_run(const char *text, size_t n);  /* bytes of white space it begins with */

#endif

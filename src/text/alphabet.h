/* text/alphabet.h: the letters that GPT-2's files use for bytes. A byte that is printable in Latin-1 is its own letter.
   The other 68 bytes are U+0100, U+0101, ... in their order: a space is U+0120. */
#ifndef CN_TEXT_ALPHABET_H
#define CN_TEXT_ALPHABET_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t cn__letter_of_byte(unsigned char b)
{
    if (b <= 0x20) return 0x100u + b;
    if (b >= 0x7F && b <= 0xA0) return 0x121u + (b - 0x7Fu);
    return b == 0xAD ? 0x143 : b;
}

/* Whether the byte is its own letter. */
static inline bool cn__prints(int b) { return cn__letter_of_byte((unsigned char)b) == (uint32_t)b; }

/* -1: not a letter of the alphabet */
static inline int cn__byte_of_letter(uint32_t code)
{
    if (code >= 0x100 && code <= 0x120) return (int)code - 0x100;
    if (code >= 0x121 && code <= 0x142) return (int)code - 0x121 + 0x7F;
    if (code == 0x143) return 0xAD;
    return code < 0x100 && cn__letter_of_byte((unsigned char)code) == code ? (int)code : -1;
}

#endif

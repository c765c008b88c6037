/* draw.h: whole numbers below a limit from random words. */
#ifndef CN_OPS_CREATE_DRAW_H
#define CN_OPS_CREATE_DRAW_H

#include <stdint.h>

/* ⌊r·limit / 2^64⌋, where r has the 64 bits hi, lo: below limit, and as uniform as 2^64 values allow */
static inline uint64_t cn__below(uint64_t limit, uint32_t hi, uint32_t lo)
{
    uint64_t a = (uint32_t)limit, b = limit >> 32;
    uint64_t middle = (lo * a >> 32) + hi * a, carry = (uint32_t)middle + lo * b;
    return hi * b + (middle >> 32) + (carry >> 32);
}

#endif

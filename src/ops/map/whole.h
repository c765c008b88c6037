/* whole.h: arithmetic of whole numbers that never traps or overflows, unlike C's. Division by 0 gives 0. */
#ifndef CN_MAP_WHOLE_H
#define CN_MAP_WHOLE_H

#include "core/dtype.h"

/* A plain number as a P; for whole numbers rounded towards zero and limited to the range of int64_t. */
#define PLAIN(P, v) _Generic((P)0, float: (float)(v), double: (v), int64_t: cn__whole(v))
static inline int64_t cn__whole(double v) { return cn__load_i64(CN_F64, &v); }

static inline bool cn__negative(int64_t x) { return x < 0; }

/* x / -1 overflows for the smallest x; here the result is x */
static inline int64_t cn__divide(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

/* the sign of x */
static inline int64_t cn__modulo(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

/* the sign of y */
static inline int64_t cn__remainder(int64_t x, int64_t y)
{
    int64_t m = cn__modulo(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

static inline int64_t cn__floor_divide(int64_t x, int64_t y)
{
    int64_t m = cn__modulo(x, y);
    return cn__divide(x, y) - (m != 0 && (m < 0) != (y < 0));
}

/* 1 / x^-y rounded towards zero, for a negative y */
static inline int64_t cn__power(int64_t x, int64_t y)
{
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)x;
    for (; y; y >>= 1, square *= square)
        if (y & 1) result *= square;
    return (int64_t)result;
}

/* A shift by a negative number, or by `bits` or more, gives 0; a right shift gives 0 or -1, by the sign of x. */
static inline int64_t cn__shift_left(int64_t x, int64_t y, int64_t bits)
{
    return y < 0 || y >= bits ? 0 : (int64_t)((uint64_t)x << y);
}
static inline int64_t cn__shift_right(int64_t x, int64_t y, int64_t bits)
{
    return x >> (y < 0 || y >= bits ? 63 : y);
}

#endif

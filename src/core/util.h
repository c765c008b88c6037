/* core/util.h: small helpers that many files need. */
#ifndef CN_CORE_UTIL_H
#define CN_CORE_UTIL_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t cn__smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cn__larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t cn__clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* For a ≥ 0 and unit > 0. Neither function overflows if its result fits. */
static inline int64_t cn__divide_up(int64_t a, int64_t unit) { return a / unit + (a % unit != 0); }
static inline int64_t cn__round_up(int64_t a, int64_t unit) { return cn__divide_up(a, unit) * unit; }
static inline size_t cn__round_up_bytes(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

#endif

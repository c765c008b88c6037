/* elementary_body.h: functions of a float type E. elementary.h includes it twice, with E and NAME(f) defined. */

/* The limits must not be NaN; x may be. */
static inline E NAME(clamp)(E x, E low, E high)
{
    E y = x < low ? low : x;
    return y > high ? high : y;
}

/* The result has the sign of the divisor, as in Python. */
static inline E NAME(remainder)(E x, E y)
{
    E m = FMOD(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

/* The floor of the exact quotient; x / y may round up to a whole number above it. */
static inline E NAME(floor_div)(E x, E y)
{
    if (y == 0) return x / y;
    E m = FMOD(x, y), q = (x - m) / y;
    if (m != 0 && (m < 0) != (y < 0)) q -= 1;
    if (q == 0) return COPYSIGN((E)0, x / y);
    E f = FLOOR(q);
    return q - f > (E)0.5 ? f + 1 : f;
}

#undef E
#undef NAME

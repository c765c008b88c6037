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

/* Equal infinities differ by 0, so they need no case of their own. */
static inline E NAME(log_add_exp)(E x, E y)
{
    E apart = x == y ? 0 : ABS(x - y);
    return MAX(x, y) + LOG1P(EXP(-apart));
}

static inline E NAME(log_add_exp2)(E x, E y)
{
    E apart = x == y ? 0 : ABS(x - y);
    return MAX(x, y) + LOG1P(EXP(apart * (E)-0.69314718055994530942)) * (E)1.44269504088896340736;
}

/* eps < 0: no limits */
static inline E NAME(logit)(E x, E eps)
{
    E within = eps < 0 ? x : x < eps ? eps : x > 1 - eps ? 1 - eps : x;
    return LOG(within / (1 - within));
}

#undef E
#undef NAME

/* Template: sums, maxima and exponentials over rows and columns, for one element type T. Other templates include it;
   T, NAME(f), EXP(x) and EXP_DOWN(x) must be defined.
   A block of SUMMED elements is summed in T, in lanes of so few elements that T is exact enough. The sums of blocks are
   added in f64. The order depends on n alone. */
#define SUMMED 512

/* The vectors have a fixed size, because compilers split a loop over lanes. Functions work on two vectors at a time. */
typedef T NAME(lanes) __attribute__((vector_size(CN__LANES * sizeof(T))));
typedef T NAME(loose) __attribute__((vector_size(CN__LANES * sizeof(T)), aligned(sizeof(T)), may_alias));

static inline double NAME(fold)(const NAME(lanes) * two)
{
    const NAME(lanes) both = two[0] + two[1];
    double s = 0;
    for (int j = 0; j < CN__LANES; j++) s += both[j];
    return s;
}

/* sum of (x - shift) (y - shift); if y is NULL, of x - shift */
CN__INLINE double NAME(sum_exactly)(const T *x, const T *y, T shift, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - (double)shift;
        s += y ? d * (y[i] - (double)shift) : d;
    }
    return s;
}

/* The same for n at most SUMMED and a multiple of 2 CN__LANES. */
CN__INLINE double NAME(sum_block)(const T *x, const T *y, T shift, int64_t n)
{
    NAME(lanes) s[2] = { { 0 }, { 0 } };
    const NAME(loose) *p = (const void *)x, *q = (const void *)y;
    for (int64_t i = 0; i < n / CN__LANES; i += 2)
        for (int j = 0; j < 2; j++) {
            const NAME(lanes) d = p[i + j] - shift;
            s[j] += y ? d * (q[i + j] - shift) : d;
        }
    const double sum = NAME(fold)(s);
    return isfinite(sum) ? sum : NAME(sum_exactly)(x, y, shift, n); /* T may have overflowed */
}

CN__INLINE double NAME(sum_about)(const T *x, const T *y, T shift, int64_t n)
{
    const int64_t whole = n - n % (2 * CN__LANES);
    double s = 0;
    for (int64_t i = 0; i < whole; i += SUMMED)
        s += NAME(sum_block)(x + i, y ? y + i : NULL, shift, whole - i < SUMMED ? whole - i : SUMMED);
    return s + NAME(sum_exactly)(x + whole, y ? y + whole : NULL, shift, n - whole);
}

static inline double NAME(row_sum)(const T *x, int64_t n) { return NAME(sum_about)(x, NULL, 0, n); }
static inline double NAME(row_dot)(const T *x, const T *y, int64_t n) { return NAME(sum_about)(x, y, 0, n); }
/* sum of (x - mean)² */
static inline double NAME(row_squares)(const T *x, T mean, int64_t n) { return NAME(sum_about)(x, x, mean, n); }

/* a = b where b is larger; NaN in b is skipped */
static inline void NAME(keep_larger)(NAME(lanes) * a, const NAME(loose) * b)
{
    typedef __typeof__(*a > *b) bits;
    const bits larger = *b > *a;
    *a = (NAME(lanes))(((bits)*b & larger) | ((bits)*a & ~larger));
}

/* The largest element; NaN is skipped. */
static inline T NAME(row_max)(const T *x, int64_t n)
{
    const NAME(loose) *p = (const void *)x;
    const int64_t whole = n / CN__LANES;
    NAME(lanes) m[2] = { (NAME(lanes)){ 0 } - (T)INFINITY, (NAME(lanes)){ 0 } - (T)INFINITY };
    int64_t at = 0;
    for (; at + 2 <= whole; at += 2)
        for (int j = 0; j < 2; j++) NAME(keep_larger)(&m[j], &p[at + j]);
    if (at < whole) NAME(keep_larger)(&m[0], &p[at]);
    NAME(keep_larger)(&m[0], (const void *)&m[1]);
    m[1] = __builtin_shufflevector(m[0], m[0], 4, 5, 6, 7, 0, 1, 2, 3);
    NAME(keep_larger)(&m[0], (const void *)&m[1]);
    T max = m[0][0];
    for (int j = 1; j < CN__LANES / 2; j++) max = m[0][j] > max ? m[0][j] : max;
    for (int64_t i = whole * CN__LANES; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

/* y = exp(x - shift); y may be x */
static inline void NAME(row_exp)(const T *x, T shift, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = EXP(x[i] - shift);
}

/* The same if no x exceeds the shift. */
static inline void NAME(row_exp_down)(const T *x, T shift, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = EXP_DOWN(x[i] - shift);
}

/* sum of exp(x - shift); no x may exceed the shift */
static inline double NAME(row_sum_exp)(const T *x, T shift, int64_t n)
{
    T part[256];
    double s = 0;
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        NAME(row_exp_down)(x + i, shift, part, m);
        s += NAME(row_sum)(part, m);
    }
    return s;
}

/* log(sum of exp(x)); -inf if there are no elements, or only -inf */
static inline double NAME(row_lse)(const T *x, int64_t n)
{
    T m = NAME(row_max)(x, n);
    if (m == (T)-INFINITY) return n ? NAME(row_sum)(x, n) : -INFINITY; /* the sum is -inf, or NaN if an x is */
    return m + log(NAME(row_sum_exp)(x, m, n));
}

/* The same for columns: `width` neighbouring columns of n elements, `step` apart. */
static inline void NAME(columns_max)(const T *x, int64_t n, int64_t step, int width, T *m)
{
    for (int j = 0; j < width; j++) m[j] = -INFINITY;
    for (int64_t i = 0; i < n; i++, x += step)
        for (int j = 0; j < width; j++) m[j] = x[j] > m[j] ? x[j] : m[j];
}

static inline void NAME(columns_sum_exp)(const T *x, int64_t n, int64_t step, int width, const T *shift, double *s)
{
    T part[CN__COLUMNS];
    for (int j = 0; j < width; j++) s[j] = 0;
    for (int64_t i = 0; i < n; i++, x += step) {
        for (int j = 0; j < width; j++) part[j] = EXP_DOWN(x[j] - shift[j]);
        for (int j = 0; j < width; j++) s[j] += part[j];
    }
}

/* Sums over contiguous elements, for one T. Several running sums side by side: independent, so they vectorise, and in
   an order fixed by n alone. Include with T, NAME(f) and EXP defined. */

static inline double NAME(fold)(const double *lane)
{
    double s = 0;
    for (int j = 0; j < CN__LANES; j++) s += lane[j];
    return s;
}

static inline T NAME(row_max)(const T *x, int64_t n)
{
    T m[CN__LANES];
    for (int j = 0; j < CN__LANES; j++) m[j] = -INFINITY;
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (; i < n; i++) m[0] = x[i] > m[0] ? x[i] : m[0];
    for (int j = 1; j < CN__LANES; j++) m[0] = m[j] > m[0] ? m[j] : m[0];
    return m[0];
}

static inline double NAME(row_sum)(const T *x, int64_t n)
{
    double s[CN__LANES] = { 0 };
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) s[j] += x[i + j];
    for (; i < n; i++) s[0] += x[i];
    return NAME(fold)(s);
}

static inline double NAME(row_dot)(const T *x, const T *y, int64_t n)
{
    double s[CN__LANES] = { 0 };
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) s[j] += (double)x[i + j] * y[i + j];
    for (; i < n; i++) s[0] += (double)x[i] * y[i];
    return NAME(fold)(s);
}

/* sum of (x - mean)² */
static inline double NAME(row_squares)(const T *x, double mean, int64_t n)
{
    double s[CN__LANES] = { 0 };
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) s[j] += (x[i + j] - mean) * (x[i + j] - mean);
    for (; i < n; i++) s[0] += (x[i] - mean) * (x[i] - mean);
    return NAME(fold)(s);
}

/* y = exp(x - shift); y may be x */
static inline void NAME(row_exp)(const T *x, T shift, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = EXP(x[i] - shift);
}

/* sum of exp(x - shift) */
static inline double NAME(row_sum_exp)(const T *x, T shift, int64_t n)
{
    T part[256];
    double s = 0;
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        NAME(row_exp)(x + i, shift, part, m);
        s += NAME(row_sum)(part, m);
    }
    return s;
}

/* log(sum of exp(x)); -inf where nothing, or only -inf, is summed */
static inline double NAME(row_lse)(const T *x, int64_t n)
{
    T m = NAME(row_max)(x, n);
    if (m == (T)-INFINITY) return n ? NAME(row_sum)(x, n) : -INFINITY; /* the sum: -inf, or NaN */
    return m + log(NAME(row_sum_exp)(x, m, n));
}

/* The same down columns: x[0..n) at a distance of `step`, for `width` columns side by side. */
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
        for (int j = 0; j < width; j++) part[j] = EXP(x[j] - shift[j]);
        for (int j = 0; j < width; j++) s[j] += part[j];
    }
}

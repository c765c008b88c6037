/* Template: average pooling for one element type T, with sums in f64. average.c includes it through cpu/each_type.h,
   which defines T and NAME. A window always covers an element: padding is at most half of it. */

/* The sum so far, and the elements of the window in one plane. */
static inline double NAME(sum_of)(double sum, const T *plane, int64_t width, cn__span r, cn__span c)
{
    for (int64_t h = r.lo; h < r.hi; h++)
        for (int64_t w = c.lo; w < c.hi; w++) sum += plane[h * width + w];
    return sum;
}

static void NAME(average)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    const int64_t area = p->ih * p->iw;
    T *y = k->out[0].data;
    cn__pool_row at = cn__pool_row_of(p, begin);
    for (int64_t row = begin; row < end; row++, cn__pool_next(p, &at)) {
        cn__span s = p->slabs[at.d], r = p->rows[at.h];
        const T *plane = (const T *)k->in[0].data + (at.volume * p->id + s.lo) * area;
        const double lines = (double)s.count * (double)r.count;
        for (int64_t j = 0; j < p->ow; j++) {
            cn__span c = p->cols[j];
            double sum = NAME(sum_of)(0, plane, p->iw, r, c);
            for (int64_t d = 1; d < s.hi - s.lo; d++) sum = NAME(sum_of)(sum, plane + d * area, p->iw, r, c);
            y[row * p->ow + j] = (T)(sum / (lines * (double)c.count));
        }
    }
}

static void NAME(average_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    const int64_t area = p->ih * p->iw, rows = p->od * p->oh;
    for (int64_t volume = begin; volume < end; volume++) {
        T *x = (T *)k->out[0].data + volume * p->id * area;
        const T *g = (const T *)k->in[0].data + volume * rows * p->ow;
        for (int64_t i = 0; i < p->id * area; i++) x[i] = 0;
        cn__pool_row at = { volume, 0, 0 };
        for (int64_t i = 0; i < rows; i++, cn__pool_next(p, &at)) {
            cn__span s = p->slabs[at.d], r = p->rows[at.h];
            const double lines = (double)s.count * (double)r.count;
            for (int64_t j = 0; j < p->ow; j++) {
                cn__span c = p->cols[j];
                T share = (T)(g[i * p->ow + j] / (lines * (double)c.count));
                for (int64_t d = s.lo; d < s.hi; d++)
                    for (int64_t h = r.lo; h < r.hi; h++)
                        for (int64_t w = c.lo; w < c.hi; w++) x[d * area + h * p->iw + w] += share;
            }
        }
    }
}

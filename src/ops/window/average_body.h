/* Template: average pooling for one element type T, with sums in f64. average.c includes it through cpu/each_type.h,
   which defines T and NAME. */
static void NAME(average)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    T *y = k->out[0].data;
    for (int64_t row = begin; row < end; row++) {
        const T *volume = (const T *)k->in[0].data + row / (p->od * p->oh) * p->id * p->ih * p->iw;
        cn__span s = p->slabs[row / p->oh % p->od], r = p->rows[row % p->oh];
        for (int64_t j = 0; j < p->ow; j++) {
            cn__span c = p->cols[j];
            double sum = 0;
            for (int64_t d = s.lo; d < s.hi; d++)
                for (int64_t h = d * p->ih + r.lo; h < d * p->ih + r.hi; h++)
                    for (int64_t w = c.lo; w < c.hi; w++) sum += volume[h * p->iw + w];
            y[row * p->ow + j] = (T)(sum / ((double)s.count * (double)r.count * (double)c.count));
        }
    }
}

static void NAME(average_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    const int64_t elements = p->id * p->ih * p->iw, rows = p->od * p->oh;
    for (int64_t volume = begin; volume < end; volume++) {
        T *x = (T *)k->out[0].data + volume * elements;
        const T *g = (const T *)k->in[0].data + volume * rows * p->ow;
        for (int64_t i = 0; i < elements; i++) x[i] = 0;
        for (int64_t i = 0; i < rows; i++) {
            cn__span s = p->slabs[i / p->oh], r = p->rows[i % p->oh];
            for (int64_t j = 0; j < p->ow; j++) {
                cn__span c = p->cols[j];
                T share = (T)(g[i * p->ow + j] / ((double)s.count * (double)r.count * (double)c.count));
                for (int64_t d = s.lo; d < s.hi; d++)
                    for (int64_t h = d * p->ih + r.lo; h < d * p->ih + r.hi; h++)
                        for (int64_t w = c.lo; w < c.hi; w++) x[h * p->iw + w] += share;
            }
        }
    }
}

/* Template: average pooling for one element type T, with sums in f64. average.c includes it through cpu/each_type.h,
   which defines T and NAME. */
static void NAME(average)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    T *y = k->out[0].data;
    for (int64_t row = begin; row < end; row++) {
        const T *plane = (const T *)k->in[0].data + row / p->oh * p->ih * p->iw;
        cn__span r = p->rows[row % p->oh];
        for (int64_t j = 0; j < p->ow; j++) {
            cn__span c = p->cols[j];
            double sum = 0;
            for (int64_t h = r.lo; h < r.hi; h++)
                for (int64_t w = c.lo; w < c.hi; w++) sum += plane[h * p->iw + w];
            y[row * p->ow + j] = (T)(sum / ((double)r.count * (double)c.count));
        }
    }
}

static void NAME(average_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    for (int64_t plane = begin; plane < end; plane++) {
        T *x = (T *)k->out[0].data + plane * p->ih * p->iw;
        const T *g = (const T *)k->in[0].data + plane * p->oh * p->ow;
        for (int64_t i = 0; i < p->ih * p->iw; i++) x[i] = 0;
        for (int64_t i = 0; i < p->oh; i++) {
            cn__span r = p->rows[i];
            for (int64_t j = 0; j < p->ow; j++) {
                cn__span c = p->cols[j];
                T share = (T)(g[i * p->ow + j] / ((double)r.count * (double)c.count));
                for (int64_t h = r.lo; h < r.hi; h++)
                    for (int64_t w = c.lo; w < c.hi; w++) x[h * p->iw + w] += share;
            }
        }
    }
}

/* Max pooling for elements of type T. */

/* A NaN is larger than everything, as in PyTorch. */
static void NAME(max)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__pool *p = user;
    T *y = k->out[0].data;
    int64_t *at = k->out[1].data;
    for (int64_t row = begin; row < end; row++) {
        const T *plane = (const T *)k->in[0].data + row / p->oh * p->ih * p->iw;
        cn__span r = p->rows[row % p->oh];
        for (int64_t j = 0; j < p->ow; j++) {
            cn__span c = p->cols[j];
            T best = -(T)INFINITY;
            int64_t place = (r.lo < p->ih ? r.lo : p->ih - 1) * p->iw + (c.lo < p->iw ? c.lo : p->iw - 1);
            for (int64_t h = r.lo; h < r.hi; h += r.step) {
                for (int64_t w = c.lo; w < c.hi; w += c.step) {
                    T v = plane[h * p->iw + w];
                    bool larger = (v > best) | (v != v); /* no branch: it could not be foretold */
                    best = larger ? v : best;
                    place = larger ? h * p->iw + w : place;
                }
            }
            y[row * p->ow + j] = best;
            at[row * p->ow + j] = place;
        }
    }
}

static void NAME(max_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const sizes *s = user;
    for (int64_t plane = begin; plane < end; plane++) {
        T *x = (T *)k->out[0].data + plane * s->in;
        const T *g = (const T *)k->in[0].data + plane * s->out;
        const int64_t *at = (const int64_t *)k->in[1].data + plane * s->out;
        for (int64_t i = 0; i < s->in; i++) x[i] = 0;
        for (int64_t i = 0; i < s->out; i++)
            if (at[i] >= 0 && at[i] < s->in) x[at[i]] += g[i];
    }
}
#undef T
#undef NAME

/* Template: bilinear resizing for one element type T. interpolate.c includes it through cpu/each_type.h, which defines
   T and NAME. */
static void NAME(resize)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const resize *z = user;
    for (int64_t row = begin; row < end; row++) {
        tap r = z->rows[row % z->oh];
        const T *plane = (const T *)k->in[0].data + row / z->oh * z->ih * z->iw;
        const T *upper = plane + r.lo * z->iw, *lower = plane + r.hi * z->iw;
        T *y = (T *)k->out[0].data + row * z->ow, down = (T)r.weight, up = 1 - down;
        for (int64_t j = 0; j < z->ow; j++) {
            tap c = z->cols[j];
            T right = (T)c.weight, left = 1 - right;
            y[j] = up * (left * upper[c.lo] + right * upper[c.hi]) + down * (left * lower[c.lo] + right * lower[c.hi]);
        }
    }
}

static void NAME(resize_backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const resize *z = user;
    for (int64_t p = begin; p < end; p++) {
        T *x = (T *)k->out[0].data + p * z->ih * z->iw;
        const T *g = (const T *)k->in[0].data + p * z->oh * z->ow;
        for (int64_t i = 0; i < z->ih * z->iw; i++) x[i] = 0;
        for (int64_t i = 0; i < z->oh; i++) {
            tap r = z->rows[i];
            T *upper = x + r.lo * z->iw, *lower = x + r.hi * z->iw, down = (T)r.weight, up = 1 - down;
            for (int64_t j = 0; j < z->ow; j++) {
                tap c = z->cols[j];
                T v = g[i * z->ow + j], right = (T)c.weight, left = 1 - right;
                upper[c.lo] += up * left * v;
                upper[c.hi] += up * right * v;
                lower[c.lo] += down * left * v;
                lower[c.hi] += down * right * v;
            }
        }
    }
}

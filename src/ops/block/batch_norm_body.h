/* batch_norm for one T, on (N, C, S); a chunk is a few channels. */

/* Sums over a row, about the shift: of x - shift, (x - shift)², and with g: of g, g (x - shift). */
static void NAME(add_moments)(moments *m, const T *x, const T *g, int64_t n)
{
    double s[4][CN__LANES] = { { 0 } };
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) {
            const double d = x[i + j] - m->shift, u = g ? g[i + j] : 0;
            s[0][j] += d, s[1][j] += d * d, s[2][j] += u, s[3][j] += u * d;
        }
    for (; i < n; i++) {
        const double d = x[i] - m->shift, u = g ? g[i] : 0;
        m->x += d, m->xx += d * d, m->g += u, m->gx += u * d;
    }
    for (int j = 0; j < CN__LANES && n >= CN__LANES; j++)
        m->x += s[0][j], m->xx += s[1][j], m->g += s[2][j], m->gx += s[3][j];
}

/* Every image gives a row to each channel; x's first element of a channel is its shift, against cancellation. */
static void NAME(gather_moments)(const image *im, const T *x, const T *g, int64_t begin, int64_t end, moments *m)
{
    for (int64_t c = begin; c < end; c++) m[c - begin] = (moments){ .shift = im->count ? x[c * im->s] : 0 };
    for (int64_t n = 0; n < im->n; n++)
        for (int64_t c = begin; c < end; c++) {
            const int64_t at = (n * im->c + c) * im->s;
            NAME(add_moments)(&m[c - begin], x + at, g ? g + at : NULL, im->s);
        }
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const image *im = user;
    const T *x = k->in[0].data, *w = k->in[1].data, *b = k->in[2].data;
    T *y = k->out[0].data, mean[CHANNELS], scale[CHANNELS], add[CHANNELS];
    moments m[CHANNELS];
    NAME(gather_moments)(im, x, NULL, begin, end, m);
    for (int64_t c = begin, j = 0; c < end; c++, j++) {
        const channel h = channel_of(im, &m[j]);
        ((T *)k->out[1].data)[c] = mean[j] = (T)h.mean;
        ((T *)k->out[2].data)[c] = (T)h.var;
        scale[j] = (T)h.r * (w ? w[c] : 1);
        add[j] = b ? b[c] : 0;
    }
    for (int64_t n = 0; n < im->n; n++)
        for (int64_t c = begin, j = 0; c < end; c++, j++) {
            const int64_t at = (n * im->c + c) * im->s;
            for (int64_t i = at; i < at + im->s; i++) y[i] = (x[i] - mean[j]) * scale[j] + add[j];
        }
}

/* h = (x - mean) r;  dweight = sum of g h,  dbias = sum of g,  dx = w r (g - mean(g) - h mean(g h)) */
static void NAME(backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const image *im = user;
    const T *g = k->in[0].data, *x = k->in[1].data, *w = k->in[2].data;
    T *dx = k->out[0].data, mean[CHANNELS], scale[CHANNELS], g_mean[CHANNELS], gh_mean[CHANNELS];
    moments m[CHANNELS];
    NAME(gather_moments)(im, x, g, begin, end, m);
    for (int64_t c = begin, j = 0; c < end; c++, j++) {
        const channel h = channel_of(im, &m[j]);
        if (k->out[1].numel) ((T *)k->out[1].data)[c] = (T)h.gh;
        if (k->out[2].numel) ((T *)k->out[2].data)[c] = (T)m[j].g;
        mean[j] = (T)h.mean;
        scale[j] = (T)h.r * (w ? w[c] : 1);
        g_mean[j] = (T)(m[j].g / im->count);
        gh_mean[j] = (T)(h.gh * h.r / im->count);
    }
    for (int64_t n = 0; n < im->n; n++)
        for (int64_t c = begin, j = 0; c < end; c++, j++) {
            const int64_t at = (n * im->c + c) * im->s;
            for (int64_t i = at; i < at + im->s; i++)
                dx[i] = scale[j] * (g[i] - g_mean[j] - (x[i] - mean[j]) * gh_mean[j]);
        }
}

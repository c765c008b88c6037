/* Template: batch_norm for one element type T, on (N, C, S); a chunk is some channels. batch_norm_cpu.c includes it
   through cpu/each_type.h, which defines T and NAME. */

/* Adds one element to m: x - shift, (x - shift)², and with g also g and g (x - shift). */
CN__INLINE void NAME(add_one)(moments *m, const T *x, const T *g)
{
    const double d = *x - m->shift, u = g ? *g : 0;
    m->x += d, m->xx += d * d, m->g += u, m->gx += u * d;
}

/* Adds n elements, one after the other. */
static void NAME(add_exactly)(moments *m, const T *x, const T *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++) NAME(add_one)(m, x + i, g ? g + i : NULL);
}

/* The same for n a multiple of LANES and at most BLOCK. Each lane sums so few elements that sums in T are exact enough.
   The vectors have a fixed size, because compilers split a loop over lanes. */
typedef T NAME(lanes) __attribute__((vector_size(LANES * sizeof(T) / 2)));
typedef T NAME(loose) __attribute__((vector_size(LANES * sizeof(T) / 2), aligned(sizeof(T)), may_alias));

static void NAME(add_block)(moments *m, const T *x, const T *g, int64_t n)
{
    NAME(lanes) s[4][2];
    for (int k = 0; k < 4; k++) s[k][0] = s[k][1] = (NAME(lanes)){ 0 };
    const T shift = (T)m->shift;
    const NAME(loose) *p = (const void *)x, *q = (const void *)g;
    if (g)
        for (int64_t i = 0; i < n / LANES; i++)
            for (int j = 0; j < 2; j++) {
                const NAME(lanes) d = p[2 * i + j] - shift, u = q[2 * i + j];
                s[0][j] += d, s[1][j] += d * d, s[2][j] += u, s[3][j] += u * d;
            }
    else
        for (int64_t i = 0; i < n / LANES; i++)
            for (int j = 0; j < 2; j++) {
                const NAME(lanes) d = p[2 * i + j] - shift;
                s[0][j] += d, s[1][j] += d * d;
            }
    double sum[4] = { 0 };
    for (int k = 0; k < (g ? 4 : 2); k++) {
        const NAME(lanes) both = s[k][0] + s[k][1];
        for (int j = 0; j < LANES / 2; j++) sum[k] += both[j];
    }
    if (isfinite(sum[1]) && isfinite(sum[2]) && isfinite(sum[3]))
        m->x += sum[0], m->xx += sum[1], m->g += sum[2], m->gx += sum[3];
    else NAME(add_exactly)(m, x, g, n); /* T may have overflowed */
}

static void NAME(add_moments)(moments *m, const T *x, const T *g, int64_t n)
{
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += BLOCK) {
        const int64_t some = whole - i < BLOCK ? whole - i : BLOCK;
        NAME(add_block)(m, x + i, g ? g + i : NULL, some);
    }
    NAME(add_exactly)(m, x + whole, g ? g + whole : NULL, n - whole);
}

/* An estimate of a channel's mean, the mean of its first few elements. Sums about it suffer less cancellation. */
static double NAME(shift_of)(const T *x, int64_t n)
{
    double sum = 0;
    if (n > LANES) n = LANES;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return isfinite(sum) ? (T)(sum / (double)n) : 0;
}

/* Prefetches a row. The rows of a channel lie too far apart for the hardware to predict the next one. */
static void NAME(fetch_row)(const cn__batch_image *im, const T *x, const T *g, int64_t at)
{
    for (int64_t i = at; i < at + im->s; i += 64 / (int64_t)sizeof(T)) {
        __builtin_prefetch(x + i);
        if (g) __builtin_prefetch(g + i);
    }
}

/* m: the moments of channels [begin, end); each image has one row of S elements for each channel */
static void NAME(gather_moments)(const cn__batch_image *im, const T *x, const T *g, int64_t begin, int64_t end,
                                 moments *m)
{
    for (int64_t c = begin; c < end; c++) {
        const double shift = im->count > 0 ? NAME(shift_of)(x + c * im->s, im->s) : 0;
        m[c - begin] = (moments){ .shift = shift };
    }
    for (int64_t n = 0; n < im->n; n++)
        for (int64_t c = begin; c < end; c++) {
            const int64_t at = (n * im->c + c) * im->s;
            if (end - begin == 1 && n + 1 < im->n) NAME(fetch_row)(im, x, g, at + im->c * im->s);
            if (im->s == 1) NAME(add_one)(&m[c - begin], x + at, g ? g + at : NULL);
            else NAME(add_moments)(&m[c - begin], x + at, g ? g + at : NULL, im->s);
        }
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__batch_image *im = user;
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
    const cn__batch_image *im = user;
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

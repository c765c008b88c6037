/* fft_body.h: discrete Fourier transforms of elements of type T.

   A pass of Stockham's algorithm with radix r turns x into y. With r m s = length · width and w = e^(-2πi/(r m)):
       y[q + s (r p + j)] = w^(j p) Σk x[q + s (p + m k)] w^(j k m)       j, k < r; p < m; q < s
   s begins as the number of signals side by side and grows by r with each pass. `roots` holds the powers of e^(-2πi/N);
   `step` is N / (r m), so that w^t is roots[t · step]. */

typedef struct NAME(array) {
    T *re, *im;
} NAME(array);

typedef struct NAME(pass) {
    NAME(array) x, y, roots;
    int64_t r, m, s, step;
} NAME(pass);

/* roots[t] = e^(-2πi t/n), from products of two exact roots: few calls of sin and cos. */
static void NAME(fill_roots)(NAME(array) roots, int64_t n)
{
    double re[256], im[256];
    for (int64_t t = 0; t < 256 && t < n; t++) {
        re[t] = cos(2 * PI * (double)t / (double)n);
        im[t] = -sin(2 * PI * (double)t / (double)n);
    }
    for (int64_t begin = 0; begin < n; begin += 256) {
        const double c = cos(2 * PI * (double)begin / (double)n), s = -sin(2 * PI * (double)begin / (double)n);
        for (int64_t t = 0; t < 256 && begin + t < n; t++) {
            roots.re[begin + t] = (T)(c * re[t] - s * im[t]);
            roots.im[begin + t] = (T)(c * im[t] + s * re[t]);
        }
    }
}

/* y[q] = (re + i im) · w */
#define STORE(j, real, imag) yr[(j)*s + q] = (real)*wr[j] - (imag)*wi[j], yi[(j)*s + q] = (real)*wi[j] + (imag)*wr[j]

static void NAME(pass_2)(const NAME(pass) * a, int64_t p, const T *wr, const T *wi)
{
    const int64_t s = a->s, far = a->m * s;
    const T *restrict xr = a->x.re + p * s, *restrict xi = a->x.im + p * s;
    T *restrict yr = a->y.re + 2 * p * s, *restrict yi = a->y.im + 2 * p * s;
    CN__INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        yr[q] = xr[q] + xr[q + far];
        yi[q] = xi[q] + xi[q + far];
        STORE(1, xr[q] - xr[q + far], xi[q] - xi[q + far]);
    }
}

static void NAME(pass_3)(const NAME(pass) * a, int64_t p, const T *wr, const T *wi)
{
    const int64_t s = a->s, far = a->m * s;
    const T half = (T)0.5, sine = (T)0.86602540378443864676;
    const T *restrict xr = a->x.re + p * s, *restrict xi = a->x.im + p * s;
    T *restrict yr = a->y.re + 3 * p * s, *restrict yi = a->y.im + 3 * p * s;
    CN__INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const T sum_r = xr[q + far] + xr[q + 2 * far], sum_i = xi[q + far] + xi[q + 2 * far];
        const T ur = xr[q] - half * sum_r, ui = xi[q] - half * sum_i;
        const T vr = sine * (xi[q + far] - xi[q + 2 * far]), vi = sine * (xr[q + 2 * far] - xr[q + far]);
        yr[q] = xr[q] + sum_r;
        yi[q] = xi[q] + sum_i;
        STORE(1, ur + vr, ui + vi);
        STORE(2, ur - vr, ui - vi);
    }
}

static void NAME(pass_4)(const NAME(pass) * a, int64_t p, const T *wr, const T *wi)
{
    const int64_t s = a->s, far = a->m * s;
    const T *restrict xr = a->x.re + p * s, *restrict xi = a->x.im + p * s;
    T *restrict yr = a->y.re + 4 * p * s, *restrict yi = a->y.im + 4 * p * s;
    CN__INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const T ar = xr[q] + xr[q + 2 * far], ai = xi[q] + xi[q + 2 * far];
        const T br = xr[q] - xr[q + 2 * far], bi = xi[q] - xi[q + 2 * far];
        const T cr = xr[q + far] + xr[q + 3 * far], ci = xi[q + far] + xi[q + 3 * far];
        const T dr = xi[q + far] - xi[q + 3 * far], di = xr[q + 3 * far] - xr[q + far]; /* -i times the difference */
        yr[q] = ar + cr;
        yi[q] = ai + ci;
        STORE(1, br + dr, bi + di);
        STORE(2, ar - cr, ai - ci);
        STORE(3, br - dr, bi - di);
    }
}

static void NAME(pass_5)(const NAME(pass) * a, int64_t p, const T *wr, const T *wi)
{
    const int64_t s = a->s, far = a->m * s;
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410; /* cos 72°, cos 144° */
    const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;  /* sin 72°, sin 144° */
    const T *restrict xr = a->x.re + p * s, *restrict xi = a->x.im + p * s;
    T *restrict yr = a->y.re + 5 * p * s, *restrict yi = a->y.im + 5 * p * s;
    CN__INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const T t1r = xr[q + far] + xr[q + 4 * far], t1i = xi[q + far] + xi[q + 4 * far];
        const T t2r = xr[q + 2 * far] + xr[q + 3 * far], t2i = xi[q + 2 * far] + xi[q + 3 * far];
        const T t3r = xr[q + far] - xr[q + 4 * far], t3i = xi[q + far] - xi[q + 4 * far];
        const T t4r = xr[q + 2 * far] - xr[q + 3 * far], t4i = xi[q + 2 * far] - xi[q + 3 * far];
        const T a1r = xr[q] + c1 * t1r + c2 * t2r, a1i = xi[q] + c1 * t1i + c2 * t2i;
        const T a2r = xr[q] + c2 * t1r + c1 * t2r, a2i = xi[q] + c2 * t1i + c1 * t2i;
        const T b1r = s1 * t3i + s2 * t4i, b1i = -(s1 * t3r + s2 * t4r); /* -i times the sum */
        const T b2r = s2 * t3i - s1 * t4i, b2i = s1 * t4r - s2 * t3r;
        yr[q] = xr[q] + t1r + t2r;
        yi[q] = xi[q] + t1i + t2i;
        STORE(1, a1r + b1r, a1i + b1i);
        STORE(2, a2r + b2r, a2i + b2i);
        STORE(3, a2r - b2r, a2i - b2i);
        STORE(4, a1r - b1r, a1i - b1i);
    }
}
#undef STORE

/* Any radix, by the definition. */
static void NAME(pass_any)(const NAME(pass) * a, int64_t p)
{
    const int64_t s = a->s, r = a->r, m = a->m;
    for (int64_t j = 0; j < r; j++) {
        T *restrict yr = a->y.re + (r * p + j) * s, *restrict yi = a->y.im + (r * p + j) * s;
        for (int64_t q = 0; q < s; q++) yr[q] = yi[q] = 0;
        for (int64_t k = 0; k < r; k++) {
            const T *restrict xr = a->x.re + (p + m * k) * s, *restrict xi = a->x.im + (p + m * k) * s;
            const int64_t t = j * (p + m * k) % (r * m) * a->step;
            const T wr = a->roots.re[t], wi = a->roots.im[t];
            CN__INDEPENDENT
            for (int64_t q = 0; q < s; q++) {
                yr[q] += xr[q] * wr - xi[q] * wi;
                yi[q] += xr[q] * wi + xi[q] * wr;
            }
        }
    }
}

static void NAME(one_pass)(const NAME(pass) * a)
{
    for (int64_t p = 0; p < a->m; p++) {
        T wr[5], wi[5];
        for (int64_t j = 0; j < a->r && a->r <= 5; j++) {
            wr[j] = a->roots.re[j * p * a->step];
            wi[j] = a->roots.im[j * p * a->step];
        }
        switch (a->r) {
        case 2: NAME(pass_2)(a, p, wr, wi); break;
        case 3: NAME(pass_3)(a, p, wr, wi); break;
        case 4: NAME(pass_4)(a, p, wr, wi); break;
        case 5: NAME(pass_5)(a, p, wr, wi); break;
        default: NAME(pass_any)(a, p);
        }
    }
}

/* The memory of a call: tables, and for each thread two arrays of signals. */
typedef struct NAME(memory) {
    NAME(array) roots;           /* of order `length`, or 2 · length if halved */
    NAME(array) chirp, spectrum; /* Bluestein: e^(-iπ t²/n), and the transform of its conjugate over `length` */
    NAME(array) x, y;
} NAME(memory);

static NAME(array) NAME(take)(T **from, int64_t n)
{
    NAME(array) a = { *from, *from + n };
    *from += 2 * n;
    return a;
}

static NAME(memory) NAME(memory_of)(const cn_kernel *k, const cn__fft_job *j, int thread)
{
    T *at = k->scratch, *own = at + cn__fft_table_size(j) + thread * cn__fft_thread_size(j);
    NAME(memory) m = { .roots = NAME(take)(&at, j->halved ? 2 * j->length : j->length) };
    if (j->chirped) {
        m.chirp = NAME(take)(&at, j->n);
        m.spectrum = NAME(take)(&at, j->length);
    }
    m.x = NAME(take)(&own, j->length * j->together);
    m.y = NAME(take)(&own, j->length * j->together);
    return m;
}

/* Transforms `width` signals that lie side by side in m->x, which has the result in the end. */
static void NAME(transform)(const cn__fft_job *j, NAME(memory) * m, int64_t width)
{
    int64_t rest = j->length, s = width;
    for (int i = 0; i < j->radices; i++) {
        const int64_t r = j->radix[i], step = (j->halved ? 2 : 1) * (s / width);
        rest /= r;
        NAME(one_pass)(&(NAME(pass)){ m->x, m->y, m->roots, r, rest, s, step });
        s *= r;
        const NAME(array) swap = m->x;
        m->x = m->y;
        m->y = swap;
    }
}

/* x[t] *= factor[t] for t < n, for all signals. */
static void NAME(multiply)(NAME(array) x, NAME(array) factor, int64_t n, int64_t width)
{
    for (int64_t t = 0; t < n; t++) {
        const T fr = factor.re[t], fi = factor.im[t];
        CN__INDEPENDENT
        for (int64_t q = t * width; q < (t + 1) * width; q++) {
            const T re = x.re[q] * fr - x.im[q] * fi;
            x.im[q] = x.re[q] * fi + x.im[q] * fr;
            x.re[q] = re;
        }
    }
}

/* Bluestein: Y[k] = chirp[k] Σt (x[t] chirp[t]) conj(chirp[k - t]), a convolution by transforms of a power of 2. */
static void NAME(transform_chirped)(const cn__fft_job *j, NAME(memory) * m, int64_t width)
{
    NAME(multiply)(m->x, m->chirp, j->n, width);
    const size_t rest = sizeof(T) * (size_t)((j->length - j->n) * width);
    memset(m->x.re + j->n * width, 0, rest);
    memset(m->x.im + j->n * width, 0, rest);
    NAME(transform)(j, m, width);
    NAME(multiply)(m->x, m->spectrum, j->length, width);
    m->x = (NAME(array)){ m->x.im, m->x.re }; /* the inverse transform is the transform with the parts exchanged */
    NAME(transform)(j, m, width);
    m->x = (NAME(array)){ m->x.im, m->x.re };
    NAME(multiply)(m->x, m->chirp, j->n, width);
}

static void NAME(fill_tables)(const cn_kernel *k, const cn__fft_job *j)
{
    NAME(memory) m = NAME(memory_of)(k, j, 0);
    NAME(fill_roots)(m.roots, j->halved ? 2 * j->length : j->length);
    if (!j->chirped) return;
    const int64_t n = j->n, length = j->length;
    const T scale = (T)(1 / (double)length);
    for (int64_t t = 0; t < length; t++) m.x.re[t] = m.x.im[t] = 0;
    for (int64_t t = 0, square = 0; t < n; t++) { /* square: t² modulo 2n */
        m.chirp.re[t] = (T)cos(PI * (double)square / (double)n);
        m.chirp.im[t] = (T)-sin(PI * (double)square / (double)n);
        const int64_t mirrored = t ? length - t : 0;
        m.x.re[t] = m.x.re[mirrored] = m.chirp.re[t] * scale;
        m.x.im[t] = m.x.im[mirrored] = -m.chirp.im[t] * scale;
        square = (square + 2 * t + 1) % (2 * n);
    }
    NAME(transform)(j, &m, 1);
    memcpy(m.spectrum.re, m.x.re, sizeof(T) * (size_t)length);
    memcpy(m.spectrum.im, m.x.im, sizeof(T) * (size_t)length);
}

/* ---- reading and writing signals: elements [begin, end) of signal q. Inverse transforms have the parts exchanged ---- */

typedef struct NAME(signal) {
    const cn__fft_job *j;
    const NAME(memory) * m;
    const T *in;
    T *out;
    int64_t q, width;
} NAME(signal);

static void NAME(load)(const NAME(signal) * s, int64_t begin, int64_t end)
{
    const int64_t n = s->j->n, width = s->width, q = s->q;
    const T *in = s->in;
    T *re = s->j->inverse ? s->m->x.im : s->m->x.re, *im = s->j->inverse ? s->m->x.re : s->m->x.im;
    if (s->j->kind == CN__FFT_COMPLEX || s->j->halved) {
        for (int64_t t = begin; t < end; t++) {
            re[t * width + q] = in[2 * t];
            im[t * width + q] = in[2 * t + 1];
        }
    } else if (s->j->kind == CN__FFT_REAL_IN) {
        for (int64_t t = begin; t < end; t++) {
            re[t * width + q] = in[t];
            im[t * width + q] = 0;
        }
    } else { /* the second half of the spectrum of a real signal is the conjugate of the first, reversed */
        for (int64_t t = begin; t < end; t++) {
            const int64_t from = 2 * t <= n ? t : n - t;
            const bool real = t == 0 || 2 * t == n;
            re[t * width + q] = in[2 * from];
            im[t * width + q] = real ? 0 : 2 * t < n ? in[2 * from + 1] : -in[2 * from + 1];
        }
    }
}

/* With z[t] = x[2t] + i x[2t + 1], h = n/2, and w = e^(-2πi/n): the spectra of the even and of the odd elements are
   E[k] = (X[k] + conj X[h - k])/2 and O[k] = (X[k] - conj X[h - k])/2 · w^-k, and Z = E + i O. Twice that: an inverse
   transform of n elements is not divided by 2. */
static void NAME(load_halved)(const NAME(signal) * s, int64_t begin, int64_t end)
{
    const NAME(memory) *m = s->m;
    for (int64_t k = begin; k < end; k++) {
        const T *a = s->in + 2 * k, *b = s->in + 2 * (s->j->length - k);
        const T ai = k ? a[1] : 0, bi = k ? b[1] : 0; /* the first and the last are real */
        const T er = a[0] + b[0], ei = ai - bi, dr = a[0] - b[0], di = ai + bi;
        const T wr = m->roots.re[k], wi = -m->roots.im[k];
        const T or = dr * wr - di * wi, oi = dr * wi + di * wr;
        m->x.im[k * s->width + s->q] = er - oi; /* the parts are exchanged */
        m->x.re[k * s->width + s->q] = ei + or ;
    }
}

static void NAME(store)(const NAME(signal) * s, int64_t begin, int64_t end)
{
    const int64_t width = s->width, q = s->q;
    const T *re = s->j->inverse ? s->m->x.im : s->m->x.re, *im = s->j->inverse ? s->m->x.re : s->m->x.im;
    const bool real = s->j->kind == CN__FFT_REAL_OUT && !s->j->halved;
    for (int64_t t = begin; t < end && real; t++) s->out[t] = re[t * width + q];
    for (int64_t t = begin; t < end && !real; t++) {
        s->out[2 * t] = re[t * width + q];
        s->out[2 * t + 1] = im[t * width + q];
    }
}

/* X[k] = E[k] + w^k O[k], from Z = E + i O. */
static void NAME(store_halved)(const NAME(signal) * s, int64_t begin, int64_t end)
{
    const NAME(memory) *m = s->m;
    const int64_t h = s->j->length;
    const T half = (T)0.5;
    for (int64_t k = begin; k < end; k++) {
        const int64_t a = (k < h ? k : 0) * s->width + s->q, b = (k ? h - k : 0) * s->width + s->q;
        const T er = half * (m->x.re[a] + m->x.re[b]), ei = half * (m->x.im[a] - m->x.im[b]);
        const T or = half * (m->x.im[a] + m->x.im[b]), oi = half * (m->x.re[b] - m->x.re[a]);
        const T wr = m->roots.re[k], wi = m->roots.im[k];
        s->out[2 * k] = er + (or *wr - oi * wi);
        s->out[2 * k + 1] = ei + (or *wi + oi * wr);
    }
}

/* Calls fn for n elements of `width` signals: a few elements of all signals at a time, because signals lie side by side
   on one side of the copy and one after the other on the other side. */
static void NAME(each_signal)(NAME(signal) s, void (*fn)(const NAME(signal) *, int64_t, int64_t), int64_t n,
                              int64_t in_row, int64_t out_row)
{
    const NAME(signal) first = s;
    for (int64_t begin = 0; begin < n; begin += 16)
        for (s.q = 0; s.q < s.width; s.q++) {
            s.in = first.in + s.q * in_row;
            s.out = first.out + s.q * out_row;
            fn(&s, begin, cn__smaller(begin + 16, n));
        }
}

/* Blocks [begin, end) of `together` signals. */
static void NAME(blocks)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__fft_job *j = user;
    const int64_t half = j->n / 2 + 1;
    const int64_t in_row = j->kind == CN__FFT_COMPLEX ? 2 * j->n : j->kind == CN__FFT_REAL_IN ? j->n : 2 * half;
    const int64_t out_row = j->kind == CN__FFT_COMPLEX ? 2 * j->n : j->kind == CN__FFT_REAL_IN ? 2 * half : j->n;
    const int64_t loaded = j->halved ? j->length : j->n, stored = j->kind == CN__FFT_REAL_IN ? half : loaded;
    for (int64_t block = begin; block < end; block++) {
        NAME(memory) m = NAME(memory_of)(k, j, thread);
        const int64_t first = block * j->together, width = cn__smaller(j->together, j->rows - first);
        const NAME(signal)
            s = { j, &m, (const T *)k->in[0].data + first * in_row, (T *)k->out[0].data + first * out_row, 0, width };
        const bool packed = j->halved && j->kind == CN__FFT_REAL_OUT,
                   unpacked = j->halved && j->kind == CN__FFT_REAL_IN;
        NAME(each_signal)(s, packed ? NAME(load_halved) : NAME(load), loaded, in_row, out_row);
        if (j->chirped) NAME(transform_chirped)(j, &m, width);
        else NAME(transform)(j, &m, width);
        NAME(each_signal)(s, unpacked ? NAME(store_halved) : NAME(store), stored, in_row, out_row);
    }
}

static void NAME(run)(const cn_kernel *k, const cn__fft_job *j)
{
    if (j->rows == 0) return;
    NAME(fill_tables)(k, j);
    const int64_t work = 1 + 32768 / (j->length * j->together);
    cn_parallel(k, cn__divide_up(j->rows, j->together), work, NAME(blocks), (void *)j);
}

/* Template: the gates of recurrent layers for one element type T, for some rows of the batch and some units.
   recurrent_cpu.c includes it through cpu/each_type.h, which defines T and NAME. n is the number of units. */

enum { NAME(block) = 16 }; /* units; loops of so many have no rest */

/* Row `row` of step t of an array (steps, batch, width). */
static T *NAME(rows_at)(const cn_array *x, int64_t t, int64_t row)
{
    return (T *)x->data + (t * x->shape[1] + row) * x->shape[2];
}

/* A row of the state before time t: that of the step before, or the first state. */
static const T *NAME(before)(const cn__recurrent *r, const cn_array *all, const cn_array *first, int64_t t, int64_t row)
{
    const int64_t last = r->reverse ? t + 1 : t - 1;
    if (last < 0 || last >= r->steps || !cn__recurrent_has(r, last, row))
        return (const T *)first->data + row * r->width;
    return NAME(rows_at)(all, last, row);
}

/* A row of the state that step number s reads. */
static T *NAME(state_at)(const cn__recurrent *r, int64_t s, int64_t row)
{
    return (T *)(void *)r->state + (s % 2 * r->batch + row) * r->state_row;
}

static T *NAME(product_at)(const cn__recurrent *r, int64_t part, int64_t row)
{
    return (T *)(void *)r->product + (part * r->batch + row) * r->product_row;
}

static void NAME(clear)(T *to, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[j] = 0;
}

static void NAME(copy)(T *restrict to, const T *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[j] = x[j];
}

static void NAME(add_row)(T *restrict to, const T *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[j] += x[j];
}

/* A row of one step: operands and results of some units. H: elements between the gates of x, b and saved */
typedef struct NAME(row) {
    int64_t n, H;
    const T *x, *b, *p, *before; /* before: c of an LSTM, h of a GRU */
    T *y, *h, *c, *saved;        /* h: a copy of y, for the next product */
} NAME(row);

CN__INLINE void NAME(plain_some)(const NAME(row) * q, int64_t at, int64_t n, const bool is_tanh)
{
    const T *x = q->x + at, *b = q->b + at, *p = q->p + at;
    T *restrict const y = q->y + at, *restrict const h = q->h + at;
    CN__INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        const T a = x[j] + (p[j] + b[j]);
        h[j] = y[j] = is_tanh ? TANH(a) : a < 0 ? 0 : a;
    }
}

CN__INLINE void NAME(lstm_some)(const NAME(row) * q, int64_t at, int64_t n)
{
    const int64_t H = q->H, N = q->n;
    const T *x = q->x + at, *b = q->b + at, *p = q->p + at, *before = q->before + at;
    T *restrict const y = q->y + at, *restrict const h = q->h + at, *restrict const c = q->c + at;
    T *restrict const gates = q->saved + at;
    CN__INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        const T i = SIGMOID(x[j] + (p[j] + b[j])), f = SIGMOID(x[H + j] + (p[N + j] + b[H + j]));
        const T g = TANH(x[2 * H + j] + (p[2 * N + j] + b[2 * H + j]));
        const T o = SIGMOID(x[3 * H + j] + (p[3 * N + j] + b[3 * H + j])), now = f * before[j] + i * g;
        gates[j] = i, gates[H + j] = f, gates[2 * H + j] = g, gates[3 * H + j] = o;
        c[j] = now;
        h[j] = y[j] = o * TANH(now);
    }
}

CN__INLINE void NAME(gru_some)(const NAME(row) * q, int64_t at, int64_t n)
{
    const int64_t H = q->H, N = q->n;
    const T *x = q->x + at, *b = q->b + at, *p = q->p + at, *before = q->before + at;
    T *restrict const y = q->y + at, *restrict const h = q->h + at, *restrict const saved = q->saved + at;
    CN__INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        const T r = SIGMOID(x[j] + (p[j] + b[j])), z = SIGMOID(x[H + j] + (p[N + j] + b[H + j]));
        const T of_h = p[2 * N + j] + b[2 * H + j], in = TANH(x[2 * H + j] + r * of_h);
        saved[j] = r, saved[H + j] = z, saved[2 * H + j] = in, saved[3 * H + j] = of_h;
        h[j] = y[j] = (1 - z) * in + z * before[j];
    }
}

CN__INLINE void NAME(some_units)(const NAME(row) * q, int64_t kind, int64_t at, int64_t n)
{
    if (kind == CN__LSTM) NAME(lstm_some)(q, at, n);
    else if (kind == CN__GRU) NAME(gru_some)(q, at, n);
    else if (kind == CN__RNN_TANH) NAME(plain_some)(q, at, n, true);
    else NAME(plain_some)(q, at, n, false);
}

/* The units of a row in blocks. The last block overlaps the one before it, so that no loop has a rest. */
static void NAME(row_units)(const NAME(row) * q, int64_t kind)
{
    if (q->n < NAME(block)) NAME(some_units)(q, kind, 0, q->n);
    else
        for (int64_t at = 0; at < q->n; at += NAME(block))
            NAME(some_units)(q, kind, cn__smaller(at, q->n - NAME(block)), NAME(block));
}

/* in: x, w, b, h0, c0, lengths; out: y, c, saved */
static void NAME(forward)(const cn_kernel *k, const cn__recurrent *r, int64_t s, int64_t part, int64_t begin,
                          int64_t end)
{
    const int64_t u = cn__recurrent_unit(r, part), t = cn__recurrent_step(r, s);
    const bool lstm = r->kind == CN__LSTM, gru = r->kind == CN__GRU;
    NAME(row) q = { .n = cn__recurrent_unit(r, part + 1) - u, .H = r->width };
    q.b = (const T *)r->bias + u;
    for (int64_t i = begin; i < end; i++) {
        q.h = NAME(state_at)(r, s + 1, i) + u;
        q.y = NAME(rows_at)(&k->out[0], t, i) + u;
        q.c = lstm ? NAME(rows_at)(&k->out[1], t, i) + u : NULL;
        q.saved = lstm || gru ? NAME(rows_at)(&k->out[2], t, i) + u : NULL;
        if (!cn__recurrent_has(r, t, i)) {
            NAME(clear)(q.y, q.n);
            if (q.c) NAME(clear)(q.c, q.n);
            for (int g = 0; q.saved && g < 4; g++) NAME(clear)(q.saved + g * q.H, q.n);
            NAME(copy)(q.h, NAME(state_at)(r, s, i) + u, q.n);
            continue;
        }
        q.x = NAME(rows_at)(&k->in[0], t, i) + u;
        q.p = NAME(product_at)(r, part, i);
        q.before = lstm ? NAME(before)(r, &k->out[1], &k->in[4], t, i) + u : NAME(state_at)(r, s, i) + u;
        NAME(row_units)(&q, r->kind);
    }
}

/* ---- backward */

/* A row of one step. The gradient of this step's state is g + (dh + rest): g comes from above, dh from the product.
   of_h: the gradient of h·wᵀ + b, for the next product. rest: on return the part of the gradient of the state before
   that does not pass through h·wᵀ. */
typedef struct NAME(back_row) {
    int64_t n, H;
    const T *g, *gc, *y, *c, *saved, *before, *dh; /* gc: the gradient of c, or NULL */
    T *rest, *dc, *dx, *of_h, *kept;               /* kept: of_h as a result of the operator, of a GRU */
} NAME(back_row);

static void NAME(plain_back)(const NAME(back_row) * q, bool is_tanh)
{
    const T *g = q->g, *dh = q->dh, *y = q->y;
    T *restrict const dx = q->dx, *restrict const of_h = q->of_h, *restrict const rest = q->rest;
    CN__INDEPENDENT
    for (int64_t j = 0; j < q->n; j++) {
        const T slope = is_tanh ? 1 - y[j] * y[j] : y[j] > 0;
        of_h[j] = dx[j] = (g[j] + (dh[j] + rest[j])) * slope;
        rest[j] = 0;
    }
}

/* The last block overlaps the one before it, as in row_units. */
static void NAME(tanhs)(T *restrict to, const T *x, int64_t n)
{
    if (n < NAME(block))
        for (int64_t j = 0; j < n; j++) to[j] = TANH(x[j]);
    else
        for (int64_t at = 0; at < n; at += NAME(block)) {
            const int64_t first = cn__smaller(at, n - NAME(block));
            for (int64_t j = first; j < first + NAME(block); j++) to[j] = TANH(x[j]);
        }
}

static void NAME(lstm_back)(const NAME(back_row) * q)
{
    enum { SOME = 64 };
    const int64_t H = q->H;
    if (q->gc) NAME(add_row)(q->dc, q->gc, q->n);
    for (int64_t at = 0; at < q->n; at += SOME) {
        const int64_t n = cn__smaller(SOME, q->n - at);
        const T *gates = q->saved + at, *before = q->before + at, *above = q->g + at, *dh = q->dh + at;
        T tc[SOME], *restrict const dc = q->dc + at, *restrict const dx = q->dx + at;
        T *restrict const of_h = q->of_h + at, *restrict const rest = q->rest + at;
        NAME(tanhs)(tc, q->c + at, n);
        CN__INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            const T i = gates[j], f = gates[H + j], g = gates[2 * H + j], o = gates[3 * H + j];
            const T e = above[j] + (dh[j] + rest[j]), d = dc[j] + e * o * (1 - tc[j] * tc[j]);
            of_h[j] = dx[j] = d * g * (i * (1 - i));
            of_h[H + j] = dx[H + j] = d * before[j] * (f * (1 - f));
            of_h[2 * H + j] = dx[2 * H + j] = d * i * (1 - g * g);
            of_h[3 * H + j] = dx[3 * H + j] = e * tc[j] * (o * (1 - o));
            dc[j] = d * f;
            rest[j] = 0;
        }
    }
}

/* of_h differs from dx in n, where r scales pₙ. */
static void NAME(gru_back)(const NAME(back_row) * q)
{
    const int64_t H = q->H;
    const T *gates = q->saved, *before = q->before, *above = q->g, *dh = q->dh;
    T *restrict const dx = q->dx, *restrict const kept = q->kept, *restrict const rest = q->rest;
    T *restrict const of_h = q->of_h;
    CN__INDEPENDENT
    for (int64_t j = 0; j < q->n; j++) {
        const T r = gates[j], z = gates[H + j], n = gates[2 * H + j], e = above[j] + (dh[j] + rest[j]);
        const T d = e * (1 - z) * (1 - n * n);
        of_h[j] = kept[j] = dx[j] = d * gates[3 * H + j] * (r * (1 - r));
        of_h[H + j] = kept[H + j] = dx[H + j] = e * (before[j] - n) * (z * (1 - z));
        dx[2 * H + j] = d;
        of_h[2 * H + j] = kept[2 * H + j] = d * r;
        rest[j] = e * z;
    }
}

/* A row whose sequence does not have this step: its gradients stay as they are. */
static void NAME(skip_back)(const NAME(back_row) * q, int64_t gates)
{
    NAME(add_row)(q->rest, q->dh, q->n);
    for (int64_t g = 0; g < gates; g++) {
        NAME(clear)(q->dx + g * q->H, q->n);
        NAME(clear)(q->of_h + g * q->H, q->n);
        if (q->kept) NAME(clear)(q->kept + g * q->H, q->n);
    }
}

/* in: g, gc, w, first, lengths, y, c, saved; out: dx, kept, dh0, dc0. The rest of dh lies in dh0, dc in dc0. */
static void NAME(backward)(const cn_kernel *k, const cn__recurrent *r, int64_t s, int64_t part, int64_t begin,
                           int64_t end)
{
    const int64_t u = cn__recurrent_unit(r, part), H = r->width, t = cn__recurrent_step(r, r->steps - 1 - s);
    const bool lstm = r->kind == CN__LSTM, gru = r->kind == CN__GRU;
    NAME(back_row) q = { .n = cn__recurrent_unit(r, part + 1) - u, .H = H };
    for (int64_t i = begin; i < end; i++) {
        T *const dh = NAME(product_at)(r, part, i);
        q.dh = dh;
        q.rest = (T *)k->out[2].data + i * H + u;
        q.dc = lstm ? (T *)k->out[3].data + i * H + u : NULL;
        if (s == 0) {
            NAME(clear)(q.rest, q.n);
            if (q.dc) NAME(clear)(q.dc, q.n);
            NAME(clear)(dh, q.n);
        }
        if (s == r->steps) {
            NAME(add_row)(q.rest, q.dh, q.n);
            continue;
        }
        q.dx = NAME(rows_at)(&k->out[0], t, i) + u;
        q.kept = gru ? NAME(rows_at)(&k->out[1], t, i) + u : NULL;
        q.of_h = NAME(state_at)(r, s + 1, i) + u;
        if (!cn__recurrent_has(r, t, i)) {
            NAME(skip_back)(&q, r->gates);
            continue;
        }
        q.g = NAME(rows_at)(&k->in[0], t, i) + u;
        q.gc = k->in[1].data ? NAME(rows_at)(&k->in[1], t, i) + u : NULL;
        q.y = NAME(rows_at)(&k->in[5], t, i) + u;
        q.saved = lstm || gru ? NAME(rows_at)(&k->in[7], t, i) + u : NULL;
        q.c = lstm ? NAME(rows_at)(&k->in[6], t, i) + u : NULL;
        q.before = lstm || gru ? NAME(before)(r, &k->in[lstm ? 6 : 5], &k->in[3], t, i) + u : NULL;
        if (lstm) NAME(lstm_back)(&q);
        else if (gru) NAME(gru_back)(&q);
        else NAME(plain_back)(&q, r->kind == CN__RNN_TANH);
    }
}

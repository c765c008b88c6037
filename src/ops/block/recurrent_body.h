/* Template: recurrent layers for one element type T: batch rows [begin, end) through all steps. Rows do not depend on
   each other. recurrent_cpu.c includes it through cpu/each_type.h, which defines T and NAME. */
#include "ops/block/product_body.h"

/* Row `row` of step t of an array (steps, batch, width). */
static T *NAME(rows_at)(const cn_array *x, int64_t t, int64_t row)
{
    return (T *)x->data + (t * x->shape[1] + row) * x->shape[2];
}

/* A row of the state before step number s: that of the step before, or the first state. */
static const T *NAME(before)(const cn__recurrent *r, const cn_array *all, const cn_array *first, int64_t s, int64_t row)
{
    return s > 0 ? NAME(rows_at)(all, cn__recurrent_step(r, s - 1), row) : (const T *)first->data + row * r->width;
}

static T NAME(bias_at)(const T *b, int64_t j) { return b ? b[j] : 0; }

/* y: on entry h·wᵀ, on return h */
static void NAME(plain_row)(const cn__recurrent *r, const T *x, const T *b, T *y)
{
    const int64_t H = r->width;
    for (int64_t j = 0; j < H; j++) y[j] = x[j] + (y[j] + NAME(bias_at)(b, j));
    if (r->kind == CN__RNN_TANH)
        for (int64_t j = 0; j < H; j++) y[j] = TANH(y[j]);
    else
        for (int64_t j = 0; j < H; j++) y[j] = y[j] < 0 ? 0 : y[j];
}

/* gates: on entry h·wᵀ, on return i f g o */
static void NAME(lstm_row)(int64_t H, const T *x, const T *b, const T *restrict c_before, T *restrict gates,
                           T *restrict c, T *restrict y)
{
    for (int64_t j = 0; j < 4 * H; j++) gates[j] = x[j] + (gates[j] + NAME(bias_at)(b, j));
    for (int64_t j = 0; j < 2 * H; j++) gates[j] = SIGMOID(gates[j]);
    for (int64_t j = 2 * H; j < 3 * H; j++) gates[j] = TANH(gates[j]);
    for (int64_t j = 3 * H; j < 4 * H; j++) gates[j] = SIGMOID(gates[j]);
    for (int64_t j = 0; j < H; j++) {
        c[j] = gates[H + j] * c_before[j] + gates[j] * gates[2 * H + j];
        y[j] = gates[3 * H + j] * TANH(c[j]);
    }
}

/* gates: on entry h·wᵀ, on return r z n and pₙ */
static void NAME(gru_row)(int64_t H, const T *x, const T *b, const T *restrict h_before, T *restrict gates,
                          T *restrict y)
{
    T *r = gates, *z = gates + H, *n = gates + 2 * H, *of_h = gates + 3 * H;
    for (int64_t j = 0; j < 2 * H; j++) gates[j] = SIGMOID(x[j] + (gates[j] + NAME(bias_at)(b, j)));
    for (int64_t j = 0; j < H; j++) {
        of_h[j] = n[j] + NAME(bias_at)(b, 2 * H + j);
        n[j] = TANH(x[2 * H + j] + r[j] * of_h[j]);
        y[j] = (1 - z[j]) * n[j] + z[j] * h_before[j];
    }
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__recurrent *r = user;
    const cn_array *x = &k->in[0], *h0 = &k->in[3], *c0 = &k->in[4], *y = &k->out[0], *c = &k->out[1];
    const cn_array *product = r->kind == CN__LSTM || r->kind == CN__GRU ? &k->out[2] : y;
    const int64_t H = r->width, GH = r->gates * H;
    const NAME(matrix) w = r->packed ? (NAME(matrix)){ r->packed, 0, 0, H }
                                     : NAME(transposed)((NAME(matrix)){ k->in[1].data, H, 1, 0 });
    const T *b = k->in[2].data;
    for (int64_t s = 0; s < r->steps; s++) {
        const int64_t t = cn__recurrent_step(r, s);
        const T *h = NAME(before)(r, y, h0, s, begin);
        NAME(product)
        (r->gemm, scratch_at(r, thread), false, end - begin, GH, H, (NAME(matrix)){ h, H, 1, 0 }, w,
         NAME(rows_at)(product, t, begin), product->shape[2], 1);
        for (int64_t i = begin; i < end; i++) {
            const T *xi = NAME(rows_at)(x, t, i);
            T *to = NAME(rows_at)(product, t, i), *yi = NAME(rows_at)(y, t, i);
            if (r->kind == CN__LSTM)
                NAME(lstm_row)(H, xi, b, NAME(before)(r, c, c0, s, i), to, NAME(rows_at)(c, t, i), yi);
            else if (r->kind == CN__GRU) NAME(gru_row)(H, xi, b, NAME(before)(r, y, h0, s, i), to, yi);
            else NAME(plain_row)(r, xi, b, yi);
        }
    }
}

/* ---- backward. dh and dc: on entry the gradients of this step's states, on return those of the states before, without
   the part of dh that passes through h·wᵀ, which is added later. */

static void NAME(plain_back)(const cn__recurrent *r, const T *y, T *restrict dh, T *restrict dx)
{
    for (int64_t j = 0; j < r->width; j++) {
        const T slope = r->kind == CN__RNN_TANH ? 1 - y[j] * y[j] : y[j] > 0;
        dx[j] = dh[j] * slope;
        dh[j] = 0;
    }
}

static void NAME(lstm_back)(int64_t H, const T *gates, const T *c_before, const T *c, T *restrict dh, T *restrict dc,
                            T *restrict dx)
{
    for (int64_t j = 0; j < H; j++) {
        const T i = gates[j], f = gates[H + j], g = gates[2 * H + j], o = gates[3 * H + j], tc = TANH(c[j]);
        const T d = dc[j] + dh[j] * o * (1 - tc * tc);
        dx[j] = d * g * (i * (1 - i));
        dx[H + j] = d * c_before[j] * (f * (1 - f));
        dx[2 * H + j] = d * i * (1 - g * g);
        dx[3 * H + j] = dh[j] * tc * (o * (1 - o));
        dc[j] = d * f;
        dh[j] = 0;
    }
}

/* of_h: the gradient of h·wᵀ + b. It differs from dx in n, where r scales pₙ. */
static void NAME(gru_back)(int64_t H, const T *gates, const T *h_before, T *restrict dh, T *restrict dx,
                           T *restrict of_h)
{
    for (int64_t j = 0; j < H; j++) {
        const T r = gates[j], z = gates[H + j], n = gates[2 * H + j], d = dh[j] * (1 - z) * (1 - n * n);
        of_h[j] = dx[j] = d * gates[3 * H + j] * (r * (1 - r));
        of_h[H + j] = dx[H + j] = dh[j] * (h_before[j] - n) * (z * (1 - z));
        dx[2 * H + j] = d;
        of_h[2 * H + j] = d * r;
        dh[j] *= z;
    }
}

static void NAME(add_row)(T *restrict to, const T *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[j] += x[j];
}

/* One row of one step. */
static void NAME(back_row)(const cn__recurrent *r, const cn_kernel *k, int64_t s, int64_t i, T *dh, T *dc)
{
    const int64_t H = r->width, t = cn__recurrent_step(r, s);
    const cn_array *y = &k->in[5], *c = &k->in[6], *saved = &k->in[7];
    T *dx = NAME(rows_at)(&k->out[0], t, i);
    NAME(add_row)(dh, NAME(rows_at)(&k->in[0], t, i), H);
    if (r->kind == CN__LSTM) {
        if (k->in[1].data) NAME(add_row)(dc, NAME(rows_at)(&k->in[1], t, i), H);
        NAME(lstm_back)
        (H, NAME(rows_at)(saved, t, i), NAME(before)(r, c, &k->in[4], s, i), NAME(rows_at)(c, t, i), dh, dc, dx);
    } else if (r->kind == CN__GRU)
        NAME(gru_back)
        (H, NAME(rows_at)(saved, t, i), NAME(before)(r, y, &k->in[3], s, i), dh, dx, NAME(rows_at)(&k->out[1], t, i));
    else NAME(plain_back)(r, NAME(rows_at)(y, t, i), dh, dx);
}

static void NAME(backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__recurrent *r = user;
    const int64_t H = r->width, GH = r->gates * H;
    T *dh = (T *)k->out[2].data + begin * H, *dc = r->kind == CN__LSTM ? (T *)k->out[3].data + begin * H : NULL;
    const NAME(matrix) w =
        r->packed ? (NAME(matrix)){ r->packed, 0, 0, GH } : (NAME(matrix)){ k->in[2].data, H, 1, 0 };
    for (int64_t j = 0; j < (end - begin) * H; j++) dh[j] = 0;
    for (int64_t j = 0; dc && j < (end - begin) * H; j++) dc[j] = 0;
    for (int64_t s = r->steps - 1; s >= 0; s--) {
        for (int64_t i = begin; i < end; i++)
            NAME(back_row)(r, k, s, i, dh + (i - begin) * H, dc ? dc + (i - begin) * H : NULL);
        const T *d = NAME(rows_at)(&k->out[r->kind == CN__GRU], cn__recurrent_step(r, s), begin);
        const NAME(matrix) of_h = { d, GH, 1, 0 };
        NAME(product)(r->gemm, scratch_at(r, thread), true, end - begin, H, GH, of_h, w, dh, H, 1);
    }
}

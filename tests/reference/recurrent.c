/* Recurrent layers from their definitions, one number at a time. */
#include <math.h>
#include <stdlib.h>

#include "ops/block/recurrent.h"
#include "support/reference.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

typedef struct sizes {
    int64_t kind, gates, T, B, H;
    bool reverse;
    const double *lengths; /* NULL: all steps */
} sizes;

static sizes sizes_of(const ref_call *c, const ref_tensor *y, const ref_tensor *lengths)
{
    const cn__recurrent_attrs *a = c->attrs;
    return (sizes){ a->kind,    cn__recurrent_gates(a->kind),        y->shape[0], y->shape[1], y->shape[2],
                    a->reverse, lengths->present ? lengths->v : NULL };
}

static int64_t time_of(const sizes *z, int64_t s) { return z->reverse ? z->T - 1 - s : s; }

/* Whether the sequence of row b has step number s. */
static bool has(const sizes *z, int64_t s, int64_t b) { return !z->lengths || (double)time_of(z, s) < z->lengths[b]; }

/* Element (time, b, j) of the state before step s: of the first state if the sequence has no step before. */
static double before(const sizes *z, const ref_tensor *all, const ref_tensor *first, int64_t s, int64_t b, int64_t j)
{
    return s > 0 && has(z, s - 1, b) ? all->v[(time_of(z, s - 1) * z->B + b) * z->H + j] : first->v[b * z->H + j];
}

/* in: x, w, b, h0, c0, lengths; out: y, c, saved, which are 0 where a sequence does not have a step */
void ref_recurrent(const ref_call *call)
{
    const sizes z = sizes_of(call, &call->out[0], &call->in[5]);
    const ref_tensor *x = &call->in[0], *w = &call->in[1], *bias = &call->in[2], *h0 = &call->in[3], *c0 = &call->in[4];
    for (int64_t s = 0; s < z.T; s++)
        for (int64_t b = 0; b < z.B; b++)
            for (int64_t j = 0; j < z.H; j++) {
                const int64_t row = time_of(&z, s) * z.B + b;
                if (!has(&z, s, b)) {
                    call->out[0].v[row * z.H + j] = 0;
                    if (z.kind == CN__LSTM) call->out[1].v[row * z.H + j] = 0;
                    for (int64_t g = 0; z.gates > 1 && g < 4; g++) call->out[2].v[(row * 4 + g) * z.H + j] = 0;
                    continue;
                }
                double of_x[4] = { 0 }, of_h[4] = { 0 };
                for (int64_t g = 0; g < z.gates; g++) {
                    const int64_t k = g * z.H + j;
                    of_x[g] = x->v[row * z.gates * z.H + k];
                    of_h[g] = bias->present ? bias->v[k] : 0;
                    for (int64_t i = 0; i < z.H; i++)
                        of_h[g] += before(&z, &call->out[0], h0, s, b, i) * w->v[k * z.H + i];
                }
                double *y = call->out[0].v + row * z.H + j, *saved = call->out[2].v + row * 4 * z.H + j;
                if (z.kind == CN__RNN_TANH) *y = tanh(of_x[0] + of_h[0]);
                if (z.kind == CN__RNN_RELU) *y = fmax(of_x[0] + of_h[0], 0);
                if (z.kind == CN__LSTM) {
                    const double i = sigmoid(of_x[0] + of_h[0]), f = sigmoid(of_x[1] + of_h[1]),
                                 g = tanh(of_x[2] + of_h[2]), o = sigmoid(of_x[3] + of_h[3]);
                    const double c = f * before(&z, &call->out[1], c0, s, b, j) + i * g;
                    saved[0] = i, saved[z.H] = f, saved[2 * z.H] = g, saved[3 * z.H] = o;
                    call->out[1].v[row * z.H + j] = c;
                    *y = o * tanh(c);
                }
                if (z.kind == CN__GRU) {
                    const double r = sigmoid(of_x[0] + of_h[0]), u = sigmoid(of_x[1] + of_h[1]),
                                 n = tanh(of_x[2] + r * of_h[2]);
                    saved[0] = r, saved[z.H] = u, saved[2 * z.H] = n, saved[3 * z.H] = of_h[2];
                    *y = (1 - u) * n + u * before(&z, &call->out[0], h0, s, b, j);
                }
            }
}

/* in: g, gc, w, first, lengths, y, c, saved; out: dx, d(h·wᵀ), dh0, dc0. Gradients of one row of the batch at a time. */
void ref_recurrent_backward(const ref_call *call)
{
    const sizes z = sizes_of(call, &call->in[0], &call->in[4]);
    const ref_tensor *in = call->in, *w = &in[2];
    double *dh = calloc((size_t)(2 * z.H + 1), sizeof *dh), *dc = dh + z.H;
    double *of_h = calloc((size_t)(z.gates * z.H + 1), sizeof *of_h);
    for (int64_t b = 0; b < z.B; b++) {
        for (int64_t j = 0; j < 2 * z.H; j++) dh[j] = 0;
        for (int64_t s = z.T - 1; s >= 0; s--) {
            const int64_t row = time_of(&z, s) * z.B + b;
            double *dx = call->out[0].v + row * z.gates * z.H;
            if (!has(&z, s, b)) {
                for (int64_t k = 0; k < z.gates * z.H; k++) {
                    dx[k] = 0;
                    if (z.kind == CN__GRU) call->out[1].v[row * 3 * z.H + k] = 0;
                }
                continue;
            }
            for (int64_t j = 0; j < z.H; j++) {
                const double d = dh[j] + in[0].v[row * z.H + j], y = in[5].v[row * z.H + j];
                const double *gate = in[7].present ? in[7].v + row * 4 * z.H + j : NULL;
                dh[j] = 0;
                if (z.kind == CN__RNN_TANH) dx[j] = d * (1 - y * y);
                if (z.kind == CN__RNN_RELU) dx[j] = y > 0 ? d : 0;
                if (z.kind == CN__LSTM) {
                    const double i = gate[0], f = gate[z.H], g = gate[2 * z.H], o = gate[3 * z.H],
                                 t = tanh(in[6].v[row * z.H + j]);
                    const double all = dc[j] + (in[1].present ? in[1].v[row * z.H + j] : 0) + d * o * (1 - t * t);
                    dx[j] = all * g * i * (1 - i);
                    dx[z.H + j] = all * before(&z, &in[6], &in[3], s, b, j) * f * (1 - f);
                    dx[2 * z.H + j] = all * i * (1 - g * g);
                    dx[3 * z.H + j] = d * t * o * (1 - o);
                    dc[j] = all * f;
                }
                if (z.kind == CN__GRU) {
                    const double r = gate[0], u = gate[z.H], n = gate[2 * z.H], p = gate[3 * z.H];
                    const double dn = d * (1 - u) * (1 - n * n);
                    dx[j] = dn * p * r * (1 - r);
                    dx[z.H + j] = d * (before(&z, &in[5], &in[3], s, b, j) - n) * u * (1 - u);
                    dx[2 * z.H + j] = dn;
                    dh[j] = d * u;
                }
                for (int64_t g = 0; g < z.gates; g++) of_h[g * z.H + j] = dx[g * z.H + j];
                if (z.kind == CN__GRU) {
                    of_h[2 * z.H + j] *= gate[0];
                    for (int64_t g = 0; g < 3; g++) call->out[1].v[row * 3 * z.H + g * z.H + j] = of_h[g * z.H + j];
                }
            }
            for (int64_t j = 0; j < z.H; j++)
                for (int64_t k = 0; k < z.gates * z.H; k++) dh[j] += of_h[k] * w->v[k * z.H + j];
        }
        for (int64_t j = 0; j < z.H; j++) {
            call->out[2].v[b * z.H + j] = dh[j];
            if (z.kind == CN__LSTM) call->out[3].v[b * z.H + j] = dc[j];
        }
    }
    free(dh), free(of_h);
}

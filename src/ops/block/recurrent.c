/* recurrent: one direction of a recurrent layer over a whole sequence, and its backward operator.
   In each step, with p = h·wᵀ + b,

       RNN    h = tanh(x + p), or relu
       LSTM   i f g o = x + p;  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(c)
       GRU    r z n = x, and p;  n = tanh(xₙ + σ(r) pₙ);  h = (1 - σ(z)) n + σ(z) h

   x (T,B,G·H) is the input's part of the gates, with its bias. The results are h and c of every step, and the values
   that the backward operator reads: the gates of an LSTM; r, z, n and pₙ of a GRU; nothing of an RNN. The gradient of w
   is one product over all steps.
   lengths (B): row b of the batch has steps 0 to lengths[b] - 1. Its state passes by the others, whose results are 0:
   in reverse, the first state is that before step lengths[b] - 1. */
#include <math.h>

#include "ops/block/block_gpu.h"
#include "ops/block/recurrent.h"
#include "ops/kernels.h"

/* ---- shapes */

static cn_meta meta_of(cn_dtype dtype, cn_dims shape)
{
    cn_meta m = { dtype, { .ndim = shape.n } };
    for (int d = 0; d < shape.n; d++) m.layout.shape[d] = shape.v[d];
    return m;
}

static cn_meta nothing(cn_dtype dtype) { return meta_of(dtype, CN_DIMS(0)); }

static bool is_shaped(cn_infer *i, const char *what, const cn_meta *m, cn_dims shape)
{
    const cn_meta wanted = meta_of(CN_F32, shape);
    return cn__expect_shape(i, what, m, &wanted.layout);
}

/* w (G·H,H), the first state (B,H), lengths (B) */
static bool check_parts(cn_infer *i, const cn_meta *w, const cn_meta *first, const cn_meta *lengths, int64_t batch,
                        int64_t width)
{
    const cn__recurrent_attrs *a = i->attrs;
    if (!is_shaped(i, "the weight", w, CN_DIMS(cn__recurrent_gates(a->kind) * width, width)) ||
        !is_shaped(i, "the first state", first, CN_DIMS(batch, width)))
        return false;
    if (!lengths) return true;
    if (lengths->dtype != CN_I64 && lengths->dtype != CN_I32)
        return cn_infer_fail(i, CN_BAD_DTYPE, "lengths must be i64 or i32, got %s", cn_dtype_name(lengths->dtype));
    return is_shaped(i, "lengths", lengths, CN_DIMS(batch));
}

static bool infer(cn_infer *i)
{
    const cn__recurrent_attrs *a = i->attrs;
    const cn_meta *x = i->in[0];
    const int64_t gates = cn__recurrent_gates(a->kind), *size = x->layout.shape;
    char s[96];
    if (x->layout.ndim != 3 || size[2] % gates != 0 || size[0] < 1)
        return cn_infer_fail(i, CN_BAD_SHAPE, "gates must be (T, B, %lld H) with T ≥ 1, got %s", (long long)gates,
                             cn__shape_text(&x->layout, s, sizeof s));
    const int64_t width = size[2] / gates;
    if (!check_parts(i, i->in[1], i->in[3], i->in[5], size[1], width)) return false;
    if (a->kind == CN__LSTM && !is_shaped(i, "c0", i->in[4], CN_DIMS(size[1], width))) return false;
    if (i->in[2] && !is_shaped(i, "the bias", i->in[2], CN_DIMS(size[2]))) return false;
    i->out[0] = meta_of(x->dtype, CN_DIMS(size[0], size[1], width));
    i->out[1] = a->kind == CN__LSTM ? i->out[0] : nothing(x->dtype);
    i->out[2] = gates > 1 ? meta_of(x->dtype, CN_DIMS(size[0], size[1], 4 * width)) : nothing(x->dtype);
    return true;
}

/* in: g, gc, w, first (h0, of an LSTM c0), lengths, y, c, saved */
static bool backward_infer(cn_infer *i)
{
    const cn__recurrent_attrs *a = i->attrs;
    const cn_meta *g = i->in[0];
    char s[96];
    if (g->layout.ndim != 3)
        return cn_infer_fail(i, CN_BAD_SHAPE, "the gradient must be (T, B, H), got %s",
                             cn__shape_text(&g->layout, s, sizeof s));
    const int64_t steps = g->layout.shape[0], batch = g->layout.shape[1], width = g->layout.shape[2];
    const int64_t gates = cn__recurrent_gates(a->kind);
    const cn_dims all = CN_DIMS(steps, batch, width), one = CN_DIMS(batch, width);
    if (!check_parts(i, i->in[2], i->in[3], i->in[4], batch, width)) return false;
    if (!is_shaped(i, "output", i->in[5], all)) return false;
    if (i->in[1] && !is_shaped(i, "the gradient of cells", i->in[1], all)) return false;
    if (a->kind == CN__LSTM && !is_shaped(i, "cells", i->in[6], all)) return false;
    if (gates > 1 && !is_shaped(i, "saved", i->in[7], CN_DIMS(steps, batch, 4 * width))) return false;
    i->out[0] = meta_of(g->dtype, CN_DIMS(steps, batch, gates * width));
    i->out[1] = a->kind == CN__GRU ? i->out[0] : nothing(g->dtype);
    i->out[2] = meta_of(g->dtype, one);
    i->out[3] = a->kind == CN__LSTM ? i->out[2] : nothing(g->dtype);
    return true;
}

/* ---- in simpler operators */

/* The tensors of every step, in the order of time. */
typedef struct steps {
    cn_ctx *ctx;
    int64_t n;
    cn_tensor **y, **c, **saved;
} steps;

static bool steps_begin(steps *s, cn_ctx *ctx, int64_t n)
{
    *s = (steps){ ctx, n, cn__block_new(&ctx->memory, 3 * (size_t)n * sizeof(cn_tensor *)), NULL, NULL };
    if (!s->y) return cn__no_memory(ctx, "recurrent");
    s->c = s->y + n, s->saved = s->c + n;
    return true;
}

static void steps_end(steps *s) { cn__block_free(&s->ctx->memory, s->y, 3 * (size_t)s->n * sizeof(cn_tensor *)); }

static cn_tensor *empty(cn_tensor *like) { return cn_zeros(like->ctx, cn__dtype(like), CN_DIMS(0)); }

/* Gate number k of (B,G·H). */
static cn_tensor *gate(cn_tensor *all, int64_t k, int64_t width) { return cn_narrow(all, 1, k * width, width); }

/* Rows (B,W) of a where the sequence has time t, else rows of b; a, if all sequences have it. */
static cn_tensor *choose(cn_tensor *lengths, int64_t t, cn_tensor *a, cn_tensor *b)
{
    return lengths ? cn_where(cn_unsqueeze(cn_gt_s(lengths, (double)t), 1), a, b) : a;
}

static cn_tensor *nought(cn_tensor *like) { return cn_zeros(like->ctx, cn__dtype(like), CN_DIMS(1, 1)); }

static void define_step(const cn__recurrent *r, cn_tensor *x, cn_tensor *p, cn_tensor **h, cn_tensor **c,
                        cn_tensor **saved)
{
    const int64_t H = r->width;
    cn_tensor *a = cn_add(x, p);
    if (r->kind == CN__RNN_TANH) *h = cn_tanh(a);
    else if (r->kind == CN__RNN_RELU) *h = cn_relu(a);
    else if (r->kind == CN__LSTM) {
        cn_tensor *g[4] = { cn_sigmoid(gate(a, 0, H)), cn_sigmoid(gate(a, 1, H)), cn_tanh(gate(a, 2, H)),
                            cn_sigmoid(gate(a, 3, H)) };
        *c = cn_add(cn_mul(g[1], *c), cn_mul(g[0], g[2]));
        *h = cn_mul(g[3], cn_tanh(*c));
        *saved = cn_cat(g, 4, 1);
    } else {
        cn_tensor *reset = cn_sigmoid(gate(a, 0, H)), *z = cn_sigmoid(gate(a, 1, H)), *of_h = gate(p, 2, H);
        cn_tensor *n = cn_tanh(cn_add(gate(x, 2, H), cn_mul(reset, of_h)));
        *h = cn_add(cn_mul(cn_rsub_s(z, 1), n), cn_mul(z, *h));
        *saved = cn_cat((cn_tensor *[]){ reset, z, n, of_h }, 4, 1);
    }
}

static void define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    (void)args;
    const cn__recurrent_attrs *a = attrs;
    const cn__recurrent r = {
        .kind = a->kind, .steps = cn_size(in[0], 0), .width = cn_size(in[1], 1), .reverse = a->reverse
    };
    steps s;
    if (!steps_begin(&s, ctx, r.steps)) return;
    cn_tensor *h = in[3], *c = in[4];
    for (int64_t k = 0; k < r.steps; k++) {
        const int64_t t = cn__recurrent_step(&r, k);
        cn_tensor *h_before = h, *c_before = c, *zero = in[5] ? nought(in[0]) : NULL;
        s.saved[t] = NULL;
        define_step(&r, cn_select(in[0], 0, t), cn_linear(h, in[1], in[2]), &h, &c, &s.saved[t]);
        s.y[t] = choose(in[5], t, h, zero), s.c[t] = c ? choose(in[5], t, c, zero) : NULL;
        if (s.saved[t]) s.saved[t] = choose(in[5], t, s.saved[t], zero);
        h = choose(in[5], t, h, h_before), c = c ? choose(in[5], t, c, c_before) : NULL;
    }
    out[0] = cn_stack(s.y, (int)r.steps, 0);
    out[1] = r.kind == CN__LSTM ? cn_stack(s.c, (int)r.steps, 0) : empty(in[0]);
    out[2] = r.kind == CN__LSTM || r.kind == CN__GRU ? cn_stack(s.saved, (int)r.steps, 0) : empty(in[0]);
    steps_end(&s);
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    cn_tensor *out[CN_MAX_OUT] = { 0 };
    define(ctx, in, attrs, args, out);
    return out[0];
}

/* Derivatives from the value a: a (1 - a) and 1 - a². */
static cn_tensor *sigmoid_slope(cn_tensor *a) { return cn_mul(a, cn_rsub_s(a, 1)); }
static cn_tensor *tanh_slope(cn_tensor *a) { return cn_rsub_s(cn_square(a), 1); }

/* dx and of_h: the gradients of x and of h·wᵀ in one step, as in recurrent_body.h. before: the state before, c of an
   LSTM */
static void define_back(const cn__recurrent *r, cn_tensor *saved, cn_tensor *before, cn_tensor *y, cn_tensor *c,
                        cn_tensor **dh, cn_tensor **dc, cn_tensor **dx, cn_tensor **of_h)
{
    cn_tensor *g[4] = { 0 }, *d[4];
    if (saved) cn_chunk(saved, 4, 1, g, 4);
    if (r->kind == CN__LSTM) {
        cn_tensor *tc = cn_tanh(c), *all = cn_add(*dc, cn_mul(cn_mul(*dh, g[3]), tanh_slope(tc)));
        d[0] = cn_mul(cn_mul(all, g[2]), sigmoid_slope(g[0]));
        d[1] = cn_mul(cn_mul(all, before), sigmoid_slope(g[1]));
        d[2] = cn_mul(cn_mul(all, g[0]), tanh_slope(g[2]));
        d[3] = cn_mul(cn_mul(*dh, tc), sigmoid_slope(g[3]));
        *dc = cn_mul(all, g[1]);
        *dh = NULL;
        *dx = *of_h = cn_cat(d, 4, 1);
    } else if (r->kind == CN__GRU) {
        d[2] = cn_mul(cn_mul(*dh, cn_rsub_s(g[1], 1)), tanh_slope(g[2]));
        d[0] = cn_mul(cn_mul(d[2], g[3]), sigmoid_slope(g[0]));
        d[1] = cn_mul(cn_mul(*dh, cn_sub(before, g[2])), sigmoid_slope(g[1]));
        *dh = cn_mul(*dh, g[1]);
        *dx = cn_cat(d, 3, 1);
        d[2] = cn_mul(d[2], g[0]);
        *of_h = cn_cat(d, 3, 1);
    } else {
        cn_tensor *slope = r->kind == CN__RNN_TANH ? tanh_slope(y) : cn_cast(cn_gt_s(y, 0), cn__dtype(y));
        *dx = *of_h = cn_mul(*dh, slope);
        *dh = NULL;
    }
}

/* in: g, gc, w, first (h0, of an LSTM c0), lengths, y, c, saved */
static void backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    (void)args;
    const cn__recurrent_attrs *a = attrs;
    const cn__recurrent r = {
        .kind = a->kind, .steps = cn_size(in[0], 0), .width = cn_size(in[2], 1), .reverse = a->reverse
    };
    const bool lstm = r.kind == CN__LSTM, saves = lstm || r.kind == CN__GRU;
    steps s;
    if (!steps_begin(&s, ctx, r.steps)) return;
    cn_tensor *dh = cn_zeros_like(in[3]), *dc = lstm ? cn_zeros_like(in[3]) : NULL, *lengths = in[4];
    for (int64_t k = r.steps - 1; k >= 0; k--) {
        const int64_t t = cn__recurrent_step(&r, k), last = k > 0 ? cn__recurrent_step(&r, k - 1) : 0;
        cn_tensor *dh_after = dh, *dc_after = dc, *before = in[3], *zero = lengths ? nought(in[0]) : NULL;
        if (k > 0) before = choose(lengths, last, cn_select(in[lstm ? 6 : 5], 0, last), before);
        dh = cn_add(dh, cn_select(in[0], 0, t));
        if (in[1]) dc = cn_add(dc, cn_select(in[1], 0, t));
        define_back(&r, saves ? cn_select(in[7], 0, t) : NULL, before, cn_select(in[5], 0, t),
                    lstm ? cn_select(in[6], 0, t) : NULL, &dh, &dc, &s.y[t], &s.c[t]);
        s.y[t] = choose(lengths, t, s.y[t], zero), s.c[t] = choose(lengths, t, s.c[t], zero);
        cn_tensor *through = cn_matmul(s.c[t], in[2]);
        dh = choose(lengths, t, dh ? cn_add(dh, through) : through, dh_after);
        if (lstm) dc = choose(lengths, t, dc, dc_after);
    }
    out[0] = cn_stack(s.y, (int)r.steps, 0);
    out[1] = r.kind == CN__GRU ? cn_stack(s.c, (int)r.steps, 0) : empty(in[0]);
    out[2] = dh;
    out[3] = lstm ? dc : empty(in[0]);
    steps_end(&s);
}

/* ---- the operators */

/* The states before every step, (T,B,H). Those of steps that a sequence does not have do not matter. */
static cn_tensor *states_before(cn_tensor *h0, cn_tensor *y, cn_tensor *lengths, bool reverse)
{
    const int64_t steps = cn_size(y, 0);
    cn_tensor *first = cn_unsqueeze(h0, 0);
    if (steps == 1) return first;
    cn_tensor *others = cn_narrow(y, 0, reverse ? 1 : 0, steps - 1);
    if (lengths && reverse) {
        cn_tensor *next = cn_unsqueeze(cn_arange(h0->ctx, CN_I64, 1, (double)steps, 1), 1); /* (T - 1,1) */
        others = cn_where(cn_unsqueeze(cn_gt(lengths, next), 2), others, first);
    }
    return cn_cat(reverse ? (cn_tensor *[]){ others, first } : (cn_tensor *[]){ first, others }, 2, 0);
}

static cn_tensor *flat(cn_tensor *x)
{
    return x ? cn_reshape(x, CN_DIMS(cn_size(x, 0) * cn_size(x, 1), cn_size(x, 2))) : NULL;
}

static void grad(cn_grad_call *g)
{
    const cn__recurrent_attrs *a = g->attrs;
    if (g->out_grad[2]) {
        cn__grad_by_definition(g, define);
        return;
    }
    cn_tensor *out[CN_MAX_OUT], *dy = g->out_grad[0] ? g->out_grad[0] : cn_zeros_like(g->out[0]);
    const bool lstm = a->kind == CN__LSTM, saves = lstm || a->kind == CN__GRU;
    cn_tensor *in[8] = { dy,
                         lstm ? g->out_grad[1] : NULL,
                         g->in[1],
                         g->in[lstm ? 4 : 3],
                         g->in[5],
                         g->out[0],
                         lstm ? g->out[1] : NULL,
                         saves ? g->out[2] : NULL };
    if (!cn_apply_n(&cn__op_recurrent_backward, in, 8, g->attrs, g->args, out)) return;
    cn_tensor *of_h = out[a->kind == CN__GRU];
    if (g->needs[0]) g->in_grad[0] = out[0];
    if (g->needs[1]) {
        cn_tensor *h = states_before(g->in[3], g->out[0], g->in[5], a->reverse);
        g->in_grad[1] = cn_matmul(cn_transpose(flat(of_h), 0, 1), flat(h));
    }
    if (g->needs[2]) g->in_grad[2] = cn_sum(of_h, CN_DIMS(0, 1), false);
    if (g->needs[3]) g->in_grad[3] = out[2];
    if (g->needs[4]) g->in_grad[4] = lstm ? out[3] : cn_zeros_like(g->in[4]);
}

#define KIND(kind, reverse) \
    .attrs = &(const cn__recurrent_attrs) { kind, reverse }
#define WITH(T, B)     CN_IDX_FROM(1, (T) + 1, B) /* lengths */
#define PLAIN(T, B, H) CN_S(T, B, H), CN_S(H, H), CN_S(H), CN_S(B, H), CN_ABSENT
#define LONG(T, B, H)  CN_S(T, B, 4 * H), CN_S(4 * H, H), CN_S(4 * H), CN_S(B, H), CN_S(B, H)
#define GATED(T, B, H) CN_S(T, B, 3 * H), CN_S(3 * H, H), CN_S(3 * H), CN_S(B, H), CN_ABSENT

const cn_op cn__op_recurrent = {
    .call =
        "_recurrent(Tensor gates, Tensor weight, Tensor? bias, Tensor h0, Tensor? c0, "
        "Tensor? lengths, rnn_tanh|rnn_relu|lstm|gru mode, bool reverse) -> (Tensor output, Tensor cells, Tensor saved)",
    .name = "recurrent",
    .doc = "A layer of an RNN, LSTM or GRU over a sequence: all states, from the input's part of the gates, w, b, h0, "
           "c0, lengths.",
    .kind = CN_BLOCK,
    .n_in = 6,
    .n_out = 3,
    .optional = 4 | 16 | 32,
    .free_dtype = 32,
    .not_differentiable = 32,
    .checks_index = true,
    .fault = "recurrent: a length must be from 1 to {size}, got {index}",
    .attr_size = sizeof(cn__recurrent_attrs),
    .infer = infer,
    .grad = grad,
    .compose = compose,
    .cpu = cn__recurrent_cpu,
    .gpu = cn__gpu_recurrent,
    .scratch = cn__recurrent_scratch,
    CN_CASES(
        { CN_IN(PLAIN(3, 2, 4), CN_ABSENT), KIND(CN__RNN_TANH, 0) },
        { CN_IN(PLAIN(4, 1, 3), CN_ABSENT), KIND(CN__RNN_RELU, 1) },
        { CN_IN(LONG(3, 2, 3), CN_ABSENT), KIND(CN__LSTM, 0) }, { CN_IN(LONG(2, 3, 1), CN_ABSENT), KIND(CN__LSTM, 1) },
        { CN_IN(GATED(3, 2, 3), CN_ABSENT), KIND(CN__GRU, 0) }, { CN_IN(GATED(2, 3, 2), CN_ABSENT), KIND(CN__GRU, 1) },
        { CN_IN(CN_S(2, 2, 8), CN_S(8, 2), CN_ABSENT, CN_S(2, 2), CN_S(2, 2), CN_ABSENT), KIND(CN__LSTM, 0) },
        { CN_IN(CN_S(2, 2, 6), CN_S(6, 2), CN_ABSENT, CN_S(2, 2), CN_ABSENT, CN_ABSENT), KIND(CN__GRU, 0) },
        { CN_IN(LONG(1, 1, 2), CN_ABSENT), KIND(CN__LSTM, 0) }, { CN_IN(GATED(2, 0, 2), CN_ABSENT), KIND(CN__GRU, 0) },
        { CN_IN(LONG(3, 37, 5), CN_ABSENT), KIND(CN__LSTM, 0) },
        { CN_IN(GATED(3, 33, 7), CN_ABSENT), KIND(CN__GRU, 1) },
        { CN_IN(LONG(3, 2, 67), CN_ABSENT), KIND(CN__LSTM, 1), .no_gradient_check = true /* too many weights */ },
        { CN_IN(GATED(2, 17, 67), CN_ABSENT), KIND(CN__GRU, 0), .no_gradient_check = true },
        { CN_IN(PLAIN(3, 3, 2), WITH(3, 3)), KIND(CN__RNN_TANH, 0) },
        { CN_IN(PLAIN(3, 3, 2), WITH(3, 3)), KIND(CN__RNN_RELU, 1) },
        { CN_IN(LONG(3, 3, 2), WITH(3, 3)), KIND(CN__LSTM, 0) },
        { CN_IN(LONG(4, 3, 2), WITH(4, 3)), KIND(CN__LSTM, 1) },
        { CN_IN(GATED(3, 3, 2), WITH(3, 3)), KIND(CN__GRU, 0) },
        { CN_IN(GATED(4, 3, 2), WITH(4, 3)), KIND(CN__GRU, 1) },
        { CN_IN(LONG(7, 19, 23), WITH(7, 19)), KIND(CN__LSTM, 1), .no_gradient_check = true },
        { CN_IN(LONG(5, 3, 67), WITH(5, 3)), KIND(CN__LSTM, 1), .no_gradient_check = true },
        { CN_IN(GATED(7, 19, 23), WITH(7, 19)), KIND(CN__GRU, 0), .no_gradient_check = true }),
};

#define SPARE(...) CN_RANGE(0.1, 0.9, __VA_ARGS__) /* saved gates */
#define BACK_PLAIN(T, B, H, lengths) \
    CN_S(T, B, H), CN_ABSENT, CN_S(H, H), CN_S(B, H), lengths, SPARE(T, B, H), CN_ABSENT, CN_ABSENT
#define BACK_LONG(T, B, H, lengths) \
    CN_S(T, B, H), CN_S(T, B, H), CN_S(4 * H, H), CN_S(B, H), lengths, CN_S(T, B, H), CN_S(T, B, H), SPARE(T, B, 4 * H)
#define BACK_GATED(T, B, H, lengths) \
    CN_S(T, B, H), CN_ABSENT, CN_S(3 * H, H), CN_S(B, H), lengths, CN_S(T, B, H), CN_ABSENT, SPARE(T, B, 4 * H)

static void backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, backward_define); }

const cn_op cn__op_recurrent_backward = {
    .call = "_recurrent_backward(Tensor grad, Tensor? grad_cells, Tensor weight, Tensor first, Tensor? lengths, "
            "Tensor output, Tensor? cells, Tensor? saved, rnn_tanh|rnn_relu|lstm|gru mode, bool reverse) -> "
            "(Tensor gates, Tensor recurrent, Tensor h0, Tensor c0)",
    .name = "recurrent_backward",
    .doc = "Gradients of recurrent to its gates and first states, from g, gc, w, h0 or c0, lengths and the results.",
    .kind = CN_BLOCK,
    .n_in = 8,
    .n_out = 4,
    .optional = 2 | 16 | 64 | 128,
    .free_dtype = 16,
    .not_differentiable = 16,
    .attr_size = sizeof(cn__recurrent_attrs),
    .infer = backward_infer,
    .grad = backward_grad,
    .cpu = cn__recurrent_backward_cpu,
    .gpu = cn__gpu_recurrent_backward,
    .scratch = cn__recurrent_backward_scratch,
    CN_CASES(
        { CN_IN(BACK_PLAIN(3, 2, 4, CN_ABSENT)), KIND(CN__RNN_TANH, 0) },
        { CN_IN(BACK_PLAIN(4, 1, 3, CN_ABSENT)), KIND(CN__RNN_RELU, 1) },
        { CN_IN(BACK_LONG(3, 2, 3, CN_ABSENT)), KIND(CN__LSTM, 0) },
        { CN_IN(BACK_LONG(2, 3, 1, CN_ABSENT)), KIND(CN__LSTM, 1) },
        { CN_IN(BACK_GATED(3, 2, 3, CN_ABSENT)), KIND(CN__GRU, 0) },
        { CN_IN(BACK_GATED(2, 3, 2, CN_ABSENT)), KIND(CN__GRU, 1) },
        { CN_IN(CN_S(2, 2, 2), CN_ABSENT, CN_S(8, 2), CN_S(2, 2), CN_ABSENT, CN_S(2, 2, 2), CN_S(2, 2, 2),
                SPARE(2, 2, 8)),
          KIND(CN__LSTM, 0) },
        { CN_IN(BACK_LONG(1, 1, 2, CN_ABSENT)), KIND(CN__LSTM, 0) },
        { CN_IN(BACK_GATED(2, 0, 2, CN_ABSENT)), KIND(CN__GRU, 0) },
        { CN_IN(BACK_LONG(3, 37, 5, CN_ABSENT)), KIND(CN__LSTM, 0) },
        { CN_IN(BACK_GATED(3, 33, 7, CN_ABSENT)), KIND(CN__GRU, 1) },
        { CN_IN(BACK_LONG(3, 2, 67, CN_ABSENT)), KIND(CN__LSTM, 1), .no_gradient_check = true /* too many weights */ },
        { CN_IN(BACK_GATED(2, 17, 67, CN_ABSENT)), KIND(CN__GRU, 0), .no_gradient_check = true },
        { CN_IN(BACK_PLAIN(3, 3, 2, WITH(3, 3))), KIND(CN__RNN_TANH, 0) },
        { CN_IN(BACK_PLAIN(3, 3, 2, WITH(3, 3))), KIND(CN__RNN_RELU, 1) },
        { CN_IN(BACK_LONG(3, 3, 2, WITH(3, 3))), KIND(CN__LSTM, 0) },
        { CN_IN(BACK_LONG(4, 3, 2, WITH(4, 3))), KIND(CN__LSTM, 1) },
        { CN_IN(BACK_GATED(3, 3, 2, WITH(3, 3))), KIND(CN__GRU, 0) },
        { CN_IN(BACK_GATED(4, 3, 2, WITH(4, 3))), KIND(CN__GRU, 1) },
        { CN_IN(BACK_LONG(7, 19, 23, WITH(7, 19))), KIND(CN__LSTM, 1), .no_gradient_check = true },
        { CN_IN(BACK_LONG(5, 3, 67, WITH(5, 3))), KIND(CN__LSTM, 1), .no_gradient_check = true },
        { CN_IN(BACK_GATED(7, 19, 23, WITH(7, 19))), KIND(CN__GRU, 0), .no_gradient_check = true }),
};

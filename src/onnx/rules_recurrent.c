/* Rules of LSTM, GRU and RNN: inputs of all steps are multiplied at once, then step follows step. The operator
   `recurrent` runs all steps of the usual layers; layers with peepholes, limits or other activations are composed. */
#include "onnx/rules.h"
#include "ops/block/recurrent.h"

enum { MOST_GATES = 4 };

typedef struct activation {
    char name[20];
    double alpha, beta;
} activation;

typedef struct layer {
    int gates; /* 4, 3 or 1 */
    int64_t steps, batch, hidden;
    double clip;
    bool coupled;     /* LSTM: input_forget */
    bool reset_first; /* GRU: linear_before_reset */
    bool quantised;   /* weights are whole numbers; what they are multiplied with is rounded to 256 numbers */
    activation act[3];
    cn_tensor *all;            /* recurrent weights of all gates, (hidden, gates · hidden) */
    cn_tensor *all_scale;      /* of quantised ones */
    cn_tensor *r[MOST_GATES];  /* of each gate, (hidden, hidden) */
    cn_tensor *rb[MOST_GATES]; /* recurrent biases (hidden), or NULL */
    cn_tensor *peephole[3];    /* of i, o, f; or NULL */
} layer;

static void lower(const char *from, char out[20])
{
    int n = 0;
    for (; from[n] && n < 19; n++) out[n] = from[n] >= 'A' && from[n] <= 'Z' ? (char)(from[n] - 'A' + 'a') : from[n];
    out[n] = 0;
}

static cn_tensor *activated(onnx_call *c, const activation *a, cn_tensor *x)
{
    const struct {
        const char *name;
        cn_tensor *(*op)(cn_tensor *x);
    } plain[] = { { "sigmoid", cn_sigmoid }, { "tanh", cn_tanh }, { "relu", cn_relu }, { "softsign", cn_softsign } };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(a->name, plain[i].name)) return plain[i].op(x);
    if (!strcmp(a->name, "softplus")) return cn_softplus(x, 1, 20);
    if (!strcmp(a->name, "affine")) return cn_add_s(cn_mul_s(x, a->alpha), a->beta);
    if (!strcmp(a->name, "leakyrelu")) return cn_leaky_relu(x, a->alpha);
    if (!strcmp(a->name, "elu")) return cn_elu(x, a->alpha);
    if (!strcmp(a->name, "scaledtanh")) return cn_mul_s(cn_tanh(cn_mul_s(x, a->beta)), a->alpha);
    if (!strcmp(a->name, "hardsigmoid")) return cn_clamp(cn_add_s(cn_mul_s(x, a->alpha), a->beta), 0, 1);
    if (!strcmp(a->name, "thresholdedrelu")) return cn_where(cn_ge_s(x, a->alpha), x, cn_zeros_like(x));
    FAIL(CN_UNSUPPORTED, "the activation %s is not supported", a->name);
    return NULL;
}

/* The activations of one direction: those named, with their numbers, or the usual ones. */
static bool read_activations(onnx_call *c, const char *const *usual, int n, int direction, activation *out)
{
    const onnx_attr *names = cn__onnx_attr(c, "activations"), *alpha = cn__onnx_attr(c, "activation_alpha"),
                    *beta = cn__onnx_attr(c, "activation_beta");
    for (int i = 0; i < n; i++) {
        const int at = direction * n + i;
        if (names && at >= names->n_strings) return FAIL(CN_BAD_ARGUMENT, "activations must have a name for each gate");
        lower(names ? names->strings[at].v : usual[i], out[i].name);
        const char *a = out[i].name;
        out[i].alpha = !strcmp(a, "hardsigmoid") ? 0.2 : !strcmp(a, "leakyrelu") ? 0.01 : 1;
        out[i].beta = !strcmp(a, "hardsigmoid") ? 0.5 : !strcmp(a, "affine") ? 0 : 1;
        if (alpha && at < alpha->n_floats) out[i].alpha = (double)alpha->floats[at];
        if (beta && at < beta->n_floats) out[i].beta = (double)beta->floats[at];
    }
    return true;
}

/* ---- quantised weights ---- */

/* x as whole numbers times *scale, as an unsigned byte can mean them: from the smallest to the largest element, with 0
   among them. */
static cn_tensor *rounded(cn_tensor *x, cn_tensor **scale_out)
{
    cn_tensor *high = cn_maximum_s(cn_max(x, CN_ALL, false), 0), *low = cn_minimum_s(cn_min(x, CN_ALL, false), 0);
    cn_tensor *span = cn_sub(high, low);
    cn_tensor *scale = cn_div_s(cn_where(cn_eq_s(span, 0), cn_ones_like(span), span), 255);
    cn_tensor *zero = cn_round(cn_clamp(cn_neg(cn_div(low, scale)), 0, 255));
    cn_tensor *q = cn_clamp(cn_add(cn_round(cn_div(x, scale)), zero), 0, 255);
    *scale_out = scale;
    return cn_cast(cn_sub(q, zero), CN_I32);
}

/* Input i of direction d, a weight: whole numbers (inputs, gates · hidden) without their zero point, which is input
   `scale` + 1. */
static cn_tensor *whole_weight(onnx_call *c, int i, int d, int scale)
{
    cn_tensor *from[] = { IN(i), IN(scale + 1) }, *w = cn__onnx_derived_from(c, d * 4 + i, from, 2);
    if (w) return w;
    w = cn_cast(cn_select(from[0], 0, d), CN_I32);
    if (from[1]) w = cn_sub(w, cn_cast(cn_select(from[1], 0, d), CN_I32));
    return cn__onnx_derive(c, d * 4 + i, from, 2, w);
}

/* x · w, both quantised, where x is quantised here, as a whole. */
static cn_tensor *quantised_product(cn_tensor *x, cn_tensor *w, cn_tensor *scale)
{
    cn_tensor *of_x, *q = rounded(x, &of_x);
    return cn_mul(cn_cast(cn_matmul(q, w), CN_F32), cn_mul(of_x, scale));
}

/* ---- steps ---- */

static cn_tensor *limited(const layer *l, cn_tensor *x) { return l->clip > 0 ? cn_clamp(x, -l->clip, l->clip) : x; }

static cn_tensor *recurrent(const layer *l, int gate, cn_tensor *h)
{
    cn_tensor *y = cn_matmul(h, l->r[gate]);
    return l->rb[gate] ? cn_add(y, l->rb[gate]) : y;
}

/* One step: x holds the inputs of the gates (batch, gates · hidden), multiplied already. */
static bool run_step(onnx_call *c, const layer *l, cn_tensor *x, cn_tensor **h, cn_tensor **cell)
{
    cn_tensor *g[MOST_GATES];
    for (int i = 0; i < l->gates; i++) g[i] = cn_narrow(x, 1, i * l->hidden, l->hidden);
    if (l->gates == 1) {
        *h = activated(c, &l->act[0], limited(l, cn_add(g[0], recurrent(l, 0, *h))));
        return *h != NULL;
    }
    if (l->gates == 3) { /* z, r, h */
        cn_tensor *z = activated(c, &l->act[0], limited(l, cn_add(g[0], recurrent(l, 0, *h))));
        cn_tensor *r = activated(c, &l->act[0], limited(l, cn_add(g[1], recurrent(l, 1, *h))));
        cn_tensor *past = l->reset_first ? cn_mul(r, recurrent(l, 2, *h)) : recurrent(l, 2, cn_mul(r, *h));
        cn_tensor *next = activated(c, &l->act[1], limited(l, cn_add(g[2], past)));
        *h = cn_add(next, cn_mul(z, cn_sub(*h, next)));
        return *h != NULL;
    }
    /* i, o, f, c; peepholes look at the cell */
    cn_tensor *past = l->quantised ? quantised_product(*h, l->all, l->all_scale) : cn_matmul(*h, l->all);
    for (int i = 0; i < 4; i++) {
        cn_tensor *of_gate = cn_narrow(past, 1, i * l->hidden, l->hidden);
        g[i] = cn_add(g[i], l->rb[i] ? cn_add(of_gate, l->rb[i]) : of_gate);
    }
    if (l->peephole[0]) g[0] = cn_add(g[0], cn_mul(l->peephole[0], *cell));
    if (l->peephole[2]) g[2] = cn_add(g[2], cn_mul(l->peephole[2], *cell));
    cn_tensor *i = activated(c, &l->act[0], limited(l, g[0]));
    cn_tensor *f = l->coupled ? cn_rsub_s(i, 1) : activated(c, &l->act[0], limited(l, g[2]));
    cn_tensor *next = activated(c, &l->act[1], limited(l, g[3]));
    *cell = cn_add(cn_mul(f, *cell), cn_mul(i, next));
    if (l->peephole[1]) g[1] = cn_add(g[1], cn_mul(l->peephole[1], *cell));
    cn_tensor *o = activated(c, &l->act[0], limited(l, g[1]));
    *h = cn_mul(o, activated(c, &l->act[2], *cell));
    return *h != NULL;
}

/* The weights of one direction: W x of all steps (steps, batch, gates · hidden) is returned, the rest is in l. */
static cn_tensor *open_layer(onnx_call *c, layer *l, cn_tensor *x, int d)
{
    cn_tensor *b = HAS(3) ? cn_select(IN(3), 0, d) : NULL;
    cn_tensor *p = l->gates == 4 && HAS(7) ? cn_select(IN(7), 0, d) : NULL;
    const int64_t all = l->gates * l->hidden;
    l->all = l->quantised ? whole_weight(c, 2, d, 10) : cn_transpose(cn_select(IN(2), 0, d), 0, 1);
    if (l->quantised) l->all_scale = cn_select(IN(10), 0, d);
    for (int g = 0; g < l->gates; g++) {
        l->r[g] = cn_narrow(l->all, 1, g * l->hidden, l->hidden);
        l->rb[g] = b ? cn_narrow(b, 0, all + g * l->hidden, l->hidden) : NULL;
    }
    for (int g = 0; g < 3; g++) l->peephole[g] = p ? cn_narrow(p, 0, g * l->hidden, l->hidden) : NULL;
    cn_tensor *wb = b ? cn_narrow(b, 0, 0, all) : NULL;
    if (!l->quantised) return cn_linear(x, cn_select(IN(1), 0, d), wb);
    cn_tensor *y = quantised_product(x, whole_weight(c, 1, d, 8), cn_select(IN(8), 0, d));
    return wb ? cn_add(y, wb) : y;
}

/* ---- all steps at once ---- */

/* Which operator runs such a layer; false: none. */
static bool is_usual(onnx_call *c, const layer *l, cn__recurrent_kind *kind)
{
    if (l->clip > 0 || l->coupled || l->quantised || !l->steps || (l->gates == 4 && HAS(7))) return false;
    *kind = l->gates == 4                     ? CN__LSTM
            : l->gates == 3                   ? CN__GRU
            : !strcmp(l->act[0].name, "relu") ? CN__RNN_RELU
                                              : CN__RNN_TANH;
    if (l->gates == 1) return !strcmp(l->act[0].name, "relu") || !strcmp(l->act[0].name, "tanh");
    return !strcmp(l->act[0].name, "sigmoid") && !strcmp(l->act[1].name, "tanh") &&
           (l->gates == 4 ? !strcmp(l->act[2].name, "tanh") : l->reset_first);
}

/* Blocks of rows in PyTorch's order of gates: i f g o from i o f c, r z n from z r h. */
static cn_tensor *reordered(const layer *l, cn_tensor *w)
{
    static const int orders[][MOST_GATES] = { [1] = { 0 }, [3] = { 1, 0, 2 }, [4] = { 0, 2, 3, 1 } };
    cn_tensor *part[MOST_GATES];
    if (!w || l->gates == 1) return w;
    for (int g = 0; g < l->gates; g++) part[g] = cn_narrow(w, 0, orders[l->gates][g] * l->hidden, l->hidden);
    return cn_cat(part, l->gates, 0);
}

/* (steps, batch, hidden) → (batch, hidden): the state after the last step of each sequence. */
static cn_tensor *last_state(const layer *l, cn_tensor *all, bool back, cn_tensor *lengths, cn_tensor *first)
{
    if (!lengths) return cn_select(all, 0, back ? 0 : -1);
    cn_tensor *at = back ? cn_zeros_like(lengths) : cn_maximum_s(cn_sub_s(lengths, 1), 0);
    at = cn_expand(cn_reshape(at, CN_DIMS(1, l->batch, 1)), CN_DIMS(1, l->batch, l->hidden));
    return cn_where(cn_unsqueeze(cn_gt_s(lengths, 0), 1), cn_select(cn_gather(all, 0, at), 0, 0), first);
}

/* Direction d of input i, or its part of gates · hidden rows, reordered; number k of what the node derives. */
static cn_tensor *usual_weight(onnx_call *c, const layer *l, int i, int d, int part, int k)
{
    cn_tensor *w = IN(i), *made = cn__onnx_derived_from(c, d * 4 + k, &w, 1);
    if (made || !w) return made;
    const int64_t all = l->gates * l->hidden;
    cn_tensor *rows = cn_select(w, 0, d);
    return cn__onnx_derive(c, d * 4 + k, &w, 1, reordered(l, part < 0 ? rows : cn_narrow(rows, 0, part * all, all)));
}

static cn_tensor *run_usual(onnx_call *c, const layer *l, cn__recurrent_kind kind, cn_tensor *x, int d, bool back,
                            cn_tensor *lengths, cn_tensor **h, cn_tensor **cell)
{
    cn_tensor *out[3];
    cn_tensor *gates = cn_linear(x, usual_weight(c, l, 1, d, -1, 0), usual_weight(c, l, 3, d, 0, 2));
    cn_tensor *in[6] = { gates, usual_weight(c, l, 2, d, -1, 1), usual_weight(c, l, 3, d, 1, 3), *h, *cell, lengths };
    if (!gates || !in[1] || !cn_apply_n(&cn__op_recurrent, in, 6, &(cn__recurrent_attrs){ kind, back }, NULL, out))
        return NULL;
    *h = last_state(l, out[0], back, lengths, *h);
    if (*cell) *cell = last_state(l, out[1], back, lengths, *cell);
    return out[0];
}

/* One direction: results of all steps (steps, batch, hidden), and the last state. */
static cn_tensor *run_direction(onnx_call *c, layer *l, cn_tensor *x, int d, bool back, cn_tensor *lengths,
                                cn_tensor **h, cn_tensor **cell)
{
    cn__recurrent_kind kind;
    if (is_usual(c, l, &kind)) return run_usual(c, l, kind, x, d, back, lengths, h, cell);
    cn_tensor *gates = open_layer(c, l, x, d);
    cn_tensor **out = cn__onnx_run_new(c->run, (size_t)l->steps + 1, sizeof *out);
    if (!gates || !out) return NULL;
    for (int64_t i = 0; i < l->steps; i++) {
        const int64_t t = back ? l->steps - 1 - i : i;
        cn_tensor *old_h = *h, *old_cell = *cell;
        if (!cn__onnx_work(c->run, 1) || !run_step(c, l, cn_select(gates, 0, t), h, cell)) return NULL;
        out[t] = *h;
        if (!lengths) continue;
        cn_tensor *live = cn_unsqueeze(cn_gt_s(lengths, (double)t), 1); /* steps beyond a sequence change nothing */
        out[t] = cn_where(live, *h, cn_zeros_like(*h));
        *h = cn_where(live, *h, old_h);
        if (*cell) *cell = cn_where(live, *cell, old_cell);
    }
    return l->steps ? cn_stack(out, (int)l->steps, 0) : cn_zeros(c->ctx, cn_type(x), CN_DIMS(0, l->batch, l->hidden));
}

static cn_tensor *start(onnx_call *c, const layer *l, int input, int d, cn_tensor *x, bool batch_first)
{
    if (!HAS(input)) return cn_zeros(c->ctx, cn_type(x), CN_DIMS(l->batch, l->hidden));
    return cn_select(IN(input), batch_first, d);
}

static bool run_layer(onnx_call *c, layer *l, const char *const *usual, int n_activations)
{
    cn_tensor *x = IN(0), *w = IN(1), *r = IN(2), *y[2], *h[2], *cell[2] = { NULL, NULL };
    if (!x || !w || !r) return false;
    if (cn_ndim(x) != 3 || cn_ndim(w) != 3 || cn_ndim(r) != 3) return FAIL(CN_BAD_SHAPE, "X, W and R must have 3 axes");
    const char *direction = TEXT("direction", "forward");
    const bool batch_first = c->version >= 14 && INT("layout", 0), both = *direction == 'b';
    if (batch_first) x = cn_transpose(x, 0, 1);
    l->steps = cn_size(x, 0);
    l->batch = cn_size(x, 1);
    l->hidden = cn_size(r, l->quantised ? 1 : 2);
    l->clip = FLOAT("clip", 0);
    if (cn_size(w, 0) != 1 + both || cn_size(r, 0) != 1 + both ||
        cn_size(w, l->quantised ? 2 : 1) != l->gates * l->hidden || l->steps > INT32_MAX)
        return FAIL(CN_BAD_SHAPE, "W and R must be (%d, %d · hidden, ...)", 1 + both, l->gates);
    cn_tensor *lengths = IN(4);
    for (int d = 0; d < 1 + both; d++) {
        const bool back = *direction == 'r' || d == 1;
        if (!read_activations(c, usual, n_activations, d, l->act)) return false;
        h[d] = start(c, l, 5, d, x, batch_first);
        if (l->gates == 4) cell[d] = start(c, l, 6, d, x, batch_first);
        if (!(y[d] = run_direction(c, l, x, d, back, lengths, &h[d], &cell[d]))) return false;
    }
    const int at = batch_first ? 2 : 1, state_at = batch_first ? 1 : 0;
    for (int d = 0; d < 1 + both && batch_first; d++) y[d] = cn_transpose(y[d], 0, 1);
    return GIVE(cn_stack(y, 1 + both, at)) && GIVE_AT(1, cn_stack(h, 1 + both, state_at)) &&
           (l->gates != 4 || GIVE_AT(2, cn_stack(cell, 1 + both, state_at)));
}

bool cn__onnx_lstm(onnx_call *c)
{
    static const char *const usual[] = { "Sigmoid", "Tanh", "Tanh" };
    layer l = { .gates = 4, .coupled = INT("input_forget", 0) != 0 };
    return run_layer(c, &l, usual, 3);
}
bool cn__onnx_dynamic_quantize_lstm(onnx_call *c)
{
    static const char *const usual[] = { "Sigmoid", "Tanh", "Tanh" };
    layer l = { .gates = 4, .coupled = INT("input_forget", 0) != 0, .quantised = true };
    if (!HAS(8) || !HAS(10)) return FAIL(CN_BAD_ARGUMENT, "the scales of its weights are absent");
    return run_layer(c, &l, usual, 3);
}
bool cn__onnx_gru(onnx_call *c)
{
    static const char *const usual[] = { "Sigmoid", "Tanh" };
    layer l = { .gates = 3, .reset_first = INT("linear_before_reset", 0) != 0 };
    return run_layer(c, &l, usual, 2);
}
bool cn__onnx_rnn(onnx_call *c)
{
    static const char *const usual[] = { "Tanh" };
    layer l = { .gates = 1 };
    return run_layer(c, &l, usual, 1);
}

/* RNN, LSTM and GRU over sequences. One matrix product computes the input's share of the gates for all steps; the
   operator `recurrent` does the rest, step by step.
   A projection needs no kernel of its own. The state that is carried from step to step is q = σ(o) tanh(c), before the
   projection h = q·w_hrᵀ: since h·w_hhᵀ = q·(w_hh·w_hr)ᵀ, the operator gets the product of both weights, and one product
   projects q of all steps. Only h0 is given as h: its share is added to the gates of the first step. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"
#include "ops/block/recurrent.h"

/* One direction of one layer. */
typedef struct cell {
    cn_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh, *weight_hr; /* weight_hr: of a projection */
    cn_tensor *h, *c; /* states after the last step of the present forward */
} cell;

typedef struct recurrent {
    cn__recurrent_kind kind;
    int64_t in, hidden, proj; /* proj: 0 if there is no projection */
    int layers, directions;
    double dropout;
    bool batch_first;
    cell *cells; /* layers * directions; in a layer the forward direction comes first */
    size_t cells_bytes;
} recurrent;

/* ---- forward ---- */

/* The width of y and h. */
static int64_t width_of(const recurrent *r) { return r->proj ? r->proj : r->hidden; }

/* The operands of one forward, as (T,B,I) and (L·D,B,H). */
typedef struct operands {
    cn_tensor *x, *h0, *c0;
    cn_tensor *lengths; /* (B), i64, or NULL */
    bool batched;       /* the user's x had a batch axis */
} operands;

static bool wrong_shape(cn_module *m, const char *what, cn_tensor *t, const char *wanted)
{
    char text[96];
    return cn__fail(cn_module_context(m), CN_BAD_SHAPE, "%s must be %s, got %s", what, wanted,
                    cn__shape_text(cn__layout(t), text, sizeof text));
}

/* The first state: the user's, or zeros if there is none. */
static cn_tensor *first_state(cn_module *m, const operands *g, cn_tensor *users, const char *what, int64_t width)
{
    const recurrent *r = cn_module_data(m);
    const int64_t cells = r->layers * r->directions, batch = cn_size(g->x, 1);
    if (!users) return cn_zeros(cn_module_context(m), cn_type(r->cells[0].weight_hh), CN_DIMS(cells, batch, width));
    cn_tensor *state = g->batched || cn_ndim(users) != 2 ? users : cn_unsqueeze(users, 1);
    if (!state) return NULL;
    const bool same = g->batched || cn_ndim(users) == 2; /* x and the state both have a batch axis, or neither has */
    if (same && cn_ndim(state) == 3 && cn_size(state, 0) == cells && cn_size(state, 1) == batch &&
        cn_size(state, 2) == width)
        return state;
    char wanted[96];
    if (g->batched)
        snprintf(wanted, sizeof wanted, "[%lld,%lld,%lld]", (long long)cells, (long long)batch, (long long)width);
    else snprintf(wanted, sizeof wanted, "[%lld,%lld]", (long long)cells, (long long)width);
    wrong_shape(m, what, users, wanted);
    return NULL;
}

/* (T,1): the numbers of the steps */
static cn_tensor *times(cn_tensor *x)
{
    const int64_t steps = cn_size(x, 0);
    return cn_reshape(cn_arange(x->ctx, CN_I64, 0, (double)steps, 1), CN_DIMS(steps, 1));
}

static bool read_lengths(cn_module *m, cn_tensor *lengths, operands *g)
{
    if (!lengths) return true;
    const cn_dtype t = cn_type(lengths);
    char wanted[64];
    if (t != CN_I64 && t != CN_I32 && t != CN_U8 && t != CN_I8)
        return cn__fail(cn_module_context(m), CN_BAD_DTYPE, "lengths must be whole numbers, got %s", cn_dtype_name(t));
    if (!g->batched)
        return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT, "lengths need a batch: x must have 3 axes, got 2");
    snprintf(wanted, sizeof wanted, "[%lld], one for each sequence", (long long)cn_size(g->x, 1));
    if (cn_ndim(lengths) != 1 || cn_size(lengths, 0) != cn_size(g->x, 1))
        return wrong_shape(m, "lengths", lengths, wanted);
    g->lengths = cn_cast(lengths, CN_I64);
    /* What lies behind the ends must not reach the gradient of weight_ih, not even NaN. */
    cn_tensor *inside = cn_unsqueeze(cn_gt(g->lengths, times(g->x)), 2);
    g->x = cn_where(inside, g->x, cn_zeros(g->x->ctx, cn_type(g->x), CN_DIMS(1)));
    return g->x != NULL;
}

static bool read_operands(cn_module *m, cn_tensor *x, const cn_rnn_call *c, operands *g)
{
    const recurrent *r = cn_module_data(m);
    const bool lstm = r->kind == CN__LSTM;
    if (c->c0 && !lstm) return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT, "only an LSTM has a c0");
    *g = (operands){ .batched = cn_ndim(x) == 3 };
    if ((cn_ndim(x) != 2 && !g->batched) || cn_size(x, -1) != r->in) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "[%s,%lld], or [steps,%lld] without a batch",
                 r->batch_first ? "batch,steps" : "steps,batch", (long long)r->in, (long long)r->in);
        return wrong_shape(m, "x", x, wanted);
    }
    g->x = !g->batched ? cn_unsqueeze(x, 1) : r->batch_first ? cn_transpose(x, 0, 1) : x;
    if (!g->x) return false;
    if (cn_size(g->x, 0) == 0) return wrong_shape(m, "x", x, "a sequence of at least one step");
    if (!read_lengths(m, c->lengths, g)) return false;
    /* Before the first step, a projected state is part of the gates; zeros need not be added. */
    g->h0 = r->proj && !c->h0 ? NULL : first_state(m, g, c->h0, "h0", width_of(r));
    g->c0 = lstm ? first_state(m, g, c->c0, "c0", r->hidden) : NULL;
    return (g->h0 || (r->proj && !c->h0)) && (g->c0 || !lstm);
}

/* Adds h0·w_hhᵀ to the gates (T,B,4H) of each sequence's first step. */
static cn_tensor *add_first(const cell *p, const operands *g, cn_tensor *gates, cn_tensor *h0, bool reverse)
{
    cn_tensor *of_h0 = cn_matmul(h0, cn_transpose(p->weight_hh, 0, 1)), *is_first;
    const int64_t first = reverse ? cn_size(gates, 0) - 1 : 0;
    if (g->lengths && reverse) is_first = cn_eq(times(gates), cn_sub_s(g->lengths, 1));
    else is_first = cn_eq_s(times(gates), (double)first);
    return cn_add(gates, cn_where(cn_unsqueeze(is_first, 2), of_h0, cn_zeros(gates->ctx, cn_type(of_h0), CN_DIMS(1))));
}

/* (T,B,H) -> (B,H): the states after each sequence's last step */
static cn_tensor *last_of(const operands *g, cn_tensor *all, bool reverse)
{
    if (reverse) return cn_select(all, 0, 0);
    if (!g->lengths) return cn_select(all, 0, -1);
    const int64_t batch = cn_size(all, 1);
    cn_tensor *last = cn_reshape(cn_sub_s(g->lengths, 1), CN_DIMS(1, batch, 1));
    return cn_select(cn_gather(all, 0, cn_expand(last, CN_DIMS(1, batch, cn_size(all, 2)))), 0, 0);
}

/* (T,B,I) -> (T,B,H); sets the cell's last states */
static cn_tensor *run_cell(const recurrent *r, int at, const operands *g, cn_tensor *x)
{
    cell *p = &r->cells[at];
    const bool reverse = at % r->directions == 1;
    cn_tensor *gates = cn_linear(x, p->weight_ih, p->bias_ih), *out[3];
    cn_tensor *h0 = g->h0 ? cn_select(g->h0, 0, at) : NULL, *w = p->weight_hh;
    if (r->proj) {
        if (h0) gates = add_first(p, g, gates, h0, reverse);
        w = cn_matmul(w, p->weight_hr);
        h0 = cn_zeros(x->ctx, cn_type(w), CN_DIMS(cn_size(x, 1), r->hidden));
    }
    cn_tensor *in[6] = { gates, w, p->bias_hh, h0, g->c0 ? cn_select(g->c0, 0, at) : NULL, g->lengths };
    if (!gates || !cn_apply_n(&cn__op_recurrent, in, 6, &(cn__recurrent_attrs){ r->kind, reverse }, NULL, out))
        return NULL;
    cn_tensor *y = r->proj ? cn_matmul(out[0], cn_transpose(p->weight_hr, 0, 1)) : out[0];
    p->h = last_of(g, y, reverse);
    p->c = g->c0 ? last_of(g, out[1], reverse) : NULL;
    return y;
}

static cn_tensor *run_layer(const recurrent *r, int layer, const operands *g, cn_tensor *x)
{
    if (r->directions == 1) return run_cell(r, layer, g, x);
    cn_tensor *both[2] = { run_cell(r, 2 * layer, g, x), run_cell(r, 2 * layer + 1, g, x) };
    return cn_cat(both, 2, 2);
}

/* (L·D,B,H): the last h, or c, of all cells; without a batch axis if x had none */
static cn_tensor *last_states(cn_module *m, const operands *g, bool of_c)
{
    const recurrent *r = cn_module_data(m);
    cn_ctx *ctx = cn_module_context(m);
    const int n = r->layers * r->directions;
    const size_t bytes = (size_t)n * sizeof(cn_tensor *);
    cn_tensor **all = cn__alloc(ctx, bytes);
    if (!all) return NULL;
    for (int i = 0; i < n; i++) all[i] = of_c ? r->cells[i].c : r->cells[i].h;
    cn_tensor *states = cn_stack(all, n, 0);
    cn__free(ctx, all, bytes);
    return g->batched ? states : cn_squeeze(states, CN_DIMS(1));
}

/* out: y, h_n, c_n */
static bool run(cn_module *m, cn_tensor *x, const cn_rnn_call *c, cn_tensor **out, int n_out)
{
    const recurrent *r = cn_module_data(m);
    operands g;
    if (!read_operands(m, x, c, &g)) return false;
    cn_tensor *y = g.x;
    for (int layer = 0; layer < r->layers; layer++) {
        if (layer > 0) y = cn_dropout(y, r->dropout, cn_module_training(m));
        y = y ? run_layer(r, layer, &g, y) : NULL;
    }
    if (n_out > 0) out[0] = !g.batched ? cn_squeeze(y, CN_DIMS(1)) : r->batch_first ? cn_transpose(y, 0, 1) : y;
    for (int k = 1; k < n_out; k++) out[k] = last_states(m, &g, k == 2);
    return !cn_failed(cn_module_context(m));
}

/* in: x, h0, c0; out: y, h_n, c_n */
static bool forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const bool lstm = ((const recurrent *)cn_module_data(m))->kind == CN__LSTM;
    const int most = lstm ? 3 : 2;
    if (n_out > most)
        return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT, "forward returns at most %d tensors; got room for %d",
                        most, n_out);
    if (n_in != 1 && n_in != most)
        return cn__fail(cn_module_context(m), CN_BAD_ARGUMENT, "forward accepts x, or x with %s; got %d operands",
                        lstm ? "h0 and c0" : "h0", n_in);
    return run(m, in[0], &(cn_rnn_call){ .h0 = n_in > 1 ? in[1] : NULL, .c0 = n_in > 2 ? in[2] : NULL }, out, n_out);
}

/* ---- makers ---- */

static void describe(const cn_module *m, char *out, size_t size)
{
    const recurrent *r = cn_module_data(m);
    int n = snprintf(out, size, "%lld, %lld", (long long)r->in, (long long)r->hidden);
    if (r->proj) n += snprintf(out + n, size - (size_t)n, ", proj_size %lld", (long long)r->proj);
    if (r->layers > 1) n += snprintf(out + n, size - (size_t)n, ", %d layers", r->layers);
    if (r->directions > 1) n += snprintf(out + n, size - (size_t)n, ", bidirectional");
    if (r->cells && !r->cells[0].bias_ih) n += snprintf(out + n, size - (size_t)n, ", no bias");
    if (r->dropout > 0) snprintf(out + n, size - (size_t)n, ", dropout %g", r->dropout);
}

static void destroy(cn_module *m)
{
    const recurrent *r = cn_module_data(m);
    cn__free(cn_module_context(m), r->cells, r->cells_bytes);
}

static const cn_module_type types[] = {
    { .name = "RNN",
      .forward_all = forward,
      .data_bytes = sizeof(recurrent),
      .describe = describe,
      .destroy = destroy },
    { .name = "LSTM",
      .forward_all = forward,
      .data_bytes = sizeof(recurrent),
      .describe = describe,
      .destroy = destroy },
    { .name = "GRU",
      .forward_all = forward,
      .data_bytes = sizeof(recurrent),
      .describe = describe,
      .destroy = destroy },
};

cn_tensor *cn_rnn_forward(cn_module *m, cn_tensor *x, const cn_rnn_call *desc, cn_tensor **h_n, cn_tensor **c_n)
{
    const cn_rnn_call c = desc ? *desc : (cn_rnn_call){ 0 };
    cn_tensor *out[3] = { NULL }, *states[3] = { c.h0, c.c0, c.lengths };
    const char *const names[3] = { "h0", "c0", "lengths" };
    if (h_n) *h_n = NULL;
    if (c_n) *c_n = NULL;
    CN__CALL call = cn__enter_forward(m, &x, 1, (const char *[]){ "x" }, __func__);
    if (!call.ctx) return NULL;
    const cn_module_type *type = cn_module_type_of(m);
    if (type != &types[0] && type != &types[1] && type != &types[2]) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "rnn_forward: the module must be an RNN, LSTM or GRU, got a %s",
                 type->name);
        return NULL;
    }
    for (int k = 0; k < 3; k++)
        if (states[k] && !cn__of_context(call.ctx, states[k], "rnn_forward", names[k])) return NULL;
    const bool lstm = ((const recurrent *)cn_module_data(m))->kind == CN__LSTM;
    if (c_n && !lstm) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "rnn_forward: only an LSTM has a c_n; pass NULL");
        return NULL;
    }
    if (!run(m, x, &c, out, c_n ? 3 : h_n ? 2 : 1)) return NULL;
    if (h_n) *h_n = out[1];
    if (c_n) *c_n = out[2];
    return out[0];
}

static cn_tensor *add_param(cn_module *m, const char *what, int layer, bool reverse, cn_dims shape, double bound)
{
    char name[64];
    snprintf(name, sizeof name, "%s_l%d%s", what, layer, reverse ? "_reverse" : "");
    return cn_module_param(m, name, cn__uniform(cn_module_context(m), shape, bound));
}

static void fill_cell(cn_module *m, int at, bool bias)
{
    const recurrent *r = cn_module_data(m);
    const int layer = at / r->directions;
    const bool reverse = at % r->directions == 1;
    const int64_t rows = cn__recurrent_gates(r->kind) * r->hidden, state = width_of(r);
    const int64_t in = layer ? state * r->directions : r->in;
    const double bound = r->hidden > 0 ? 1 / sqrt((double)r->hidden) : 0;
    cell *p = &r->cells[at];
    p->weight_ih = add_param(m, "weight_ih", layer, reverse, CN_DIMS(rows, in), bound);
    p->weight_hh = add_param(m, "weight_hh", layer, reverse, CN_DIMS(rows, state), bound);
    if (bias) {
        p->bias_ih = add_param(m, "bias_ih", layer, reverse, CN_DIMS(rows), bound);
        p->bias_hh = add_param(m, "bias_hh", layer, reverse, CN_DIMS(rows), bound);
    }
    if (r->proj) p->weight_hr = add_param(m, "weight_hr", layer, reverse, CN_DIMS(r->proj, r->hidden), bound);
}

static bool check_options(cn_ctx *ctx, const char *name, bool lstm, int64_t in, int64_t hidden, const cn_rnn_desc *d)
{
    if (in < 1 || hidden < 1 || in > INT32_MAX || hidden > INT32_MAX)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: in and hidden must be > 0 and at most %d, got %lld and %lld", name,
                        INT32_MAX, (long long)in, (long long)hidden);
    if (d->num_layers < 0 || d->num_layers > CN__MAX_LAYERS)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: num_layers must be from 0 to %d, got %d", name, CN__MAX_LAYERS,
                        d->num_layers);
    if (!(d->dropout >= 0 && d->dropout <= 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dropout must be from 0 to 1, got %g", name, d->dropout);
    if (d->proj_size != 0 && !lstm)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: proj_size must be 0, got %lld; only an LSTM has a projection", name,
                        (long long)d->proj_size);
    if (d->proj_size < 0 || d->proj_size >= hidden)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: proj_size must be ≥ 0 and less than hidden, got %lld and %lld", name,
                        (long long)d->proj_size, (long long)hidden);
    return true;
}

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, cn__recurrent_kind kind, int64_t in, int64_t hidden,
                       const cn_rnn_desc *desc)
{
    const cn_rnn_desc d = desc ? *desc : (cn_rnn_desc){ 0 };
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || !check_options(ctx, type->name, kind == CN__LSTM, in, hidden, &d)) return NULL;
    cn_module *m = cn_module_new(ctx, type);
    recurrent *r = cn_module_data(m);
    if (!r) return NULL;
    *r = (recurrent){ .kind = kind,
                      .in = in,
                      .hidden = hidden,
                      .proj = d.proj_size,
                      .layers = d.num_layers ? d.num_layers : 1,
                      .directions = d.bidirectional ? 2 : 1,
                      .dropout = d.dropout,
                      .batch_first = d.batch_first };
    const int n = r->layers * r->directions;
    r->cells_bytes = (size_t)n * sizeof(cell);
    r->cells = cn__alloc(ctx, r->cells_bytes);
    cn_scope s = cn_scope_begin(ctx);
    for (int i = 0; i < n && r->cells; i++) fill_cell(m, i, !d.no_bias);
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

cn_module *cn_nn_rnn(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc)
{
    return make(ctx, &types[0], desc && desc->relu ? CN__RNN_RELU : CN__RNN_TANH, in, hidden, desc);
}
cn_module *cn_nn_lstm(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc)
{
    return make(ctx, &types[1], CN__LSTM, in, hidden, desc);
}
cn_module *cn_nn_gru(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc)
{
    return make(ctx, &types[2], CN__GRU, in, hidden, desc);
}

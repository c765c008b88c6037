/* RNNCell, LSTMCell and GRUCell: one step of an RNN, LSTM or GRU, by the operator `recurrent` over one step. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"
#include "ops/block/recurrent.h"

typedef struct cell {
    cn__recurrent_kind kind;
    int64_t in, hidden;
    cn_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} cell;

static bool fits(cn_module *m, const char *what, cn_tensor *t, int axes, int64_t batch, int64_t width)
{
    if (cn_ndim(t) == axes && cn_size(t, -1) == width && (axes < 2 || cn_size(t, 0) == batch)) return true;
    char text[96];
    return cn__fail(cn_module_context(m), CN_BAD_SHAPE, "%s must be [%s%lld], got %s", what, axes > 1 ? "batch," : "",
                    (long long)width, cn__shape_text(cn__layout(t), text, sizeof text));
}

/* in: x (B,I) or (I), h, c; out: h, c */
static bool forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const cell *l = cn_module_data(m);
    cn_ctx *ctx = cn_module_context(m);
    const int states = l->kind == CN__LSTM ? 2 : 1, axes = cn_ndim(in[0]) == 1 ? 1 : 2;
    const char *const names[] = { "x", "h", "c" };
    if ((n_in != 1 && n_in != 1 + states) || n_out > states)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "forward accepts x, or x with %s, and returns %s; got %d operands and %d results",
                        states > 1 ? "h and c" : "h", states > 1 ? "h and c" : "h", n_in, n_out);
    const int64_t batch = axes > 1 ? cn_size(in[0], 0) : 1;
    for (int k = 0; k < n_in; k++) {
        if (!in[k]) return false;
        if (!fits(m, names[k], in[k], axes, batch, k ? l->hidden : l->in)) return false;
    }
    cn_tensor *x = cn_reshape(in[0], CN_DIMS(1, batch, l->in)), *state[2] = { NULL, NULL }, *all[3];
    for (int k = 0; k < states; k++)
        state[k] = n_in > 1 ? cn_reshape(in[1 + k], CN_DIMS(batch, l->hidden))
                            : cn_zeros(ctx, cn_type(l->weight_hh), CN_DIMS(batch, l->hidden));
    cn_tensor *to[6] = { cn_linear(x, l->weight_ih, l->bias_ih), l->weight_hh, l->bias_hh, state[0], state[1], NULL };
    if (cn_failed(ctx) || !cn_apply_n(&cn__op_recurrent, to, 6, &(cn__recurrent_attrs){ l->kind, 0 }, NULL, all))
        return false;
    for (int k = 0; k < n_out; k++)
        out[k] = axes > 1 ? cn_select(all[k], 0, 0) : cn_reshape(all[k], CN_DIMS(l->hidden));
    return !cn_failed(ctx);
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const cell *l = cn_module_data(m);
    snprintf(out, size, "%lld, %lld%s", (long long)l->in, (long long)l->hidden, l->bias_ih ? "" : ", no bias");
}

static const cn_module_type types[] = {
    { .name = "RNNCell", .forward_all = forward, .data_bytes = sizeof(cell), .describe = describe },
    { .name = "LSTMCell", .forward_all = forward, .data_bytes = sizeof(cell), .describe = describe },
    { .name = "GRUCell", .forward_all = forward, .data_bytes = sizeof(cell), .describe = describe },
};

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, cn__recurrent_kind kind, int64_t in, int64_t hidden,
                       bool bias)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (in < 1 || hidden < 1 || in > INT32_MAX || hidden > INT32_MAX) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: in and hidden must be > 0 and at most %d, got %lld and %lld", type->name,
                 INT32_MAX, (long long)in, (long long)hidden);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    if (!m) return NULL;
    const int64_t rows = cn__recurrent_gates(kind) * hidden;
    const double bound = 1 / sqrt((double)hidden);
    cn_scope s = cn_scope_begin(ctx);
    cell *l = cn_module_data(m);
    *l = (cell){ .kind = kind, .in = in, .hidden = hidden };
    l->weight_ih = cn_module_param(m, "weight_ih", cn__uniform(ctx, CN_DIMS(rows, in), bound));
    l->weight_hh = cn_module_param(m, "weight_hh", cn__uniform(ctx, CN_DIMS(rows, hidden), bound));
    if (bias) l->bias_ih = cn_module_param(m, "bias_ih", cn__uniform(ctx, CN_DIMS(rows), bound));
    if (bias) l->bias_hh = cn_module_param(m, "bias_hh", cn__uniform(ctx, CN_DIMS(rows), bound));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}

cn_module *cn_nn_rnn_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc)
{
    return make(ctx, &types[0], desc && desc->relu ? CN__RNN_RELU : CN__RNN_TANH, in, hidden, !desc || !desc->no_bias);
}
cn_module *cn_nn_lstm_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc)
{
    return make(ctx, &types[1], CN__LSTM, in, hidden, !desc || !desc->no_bias);
}
cn_module *cn_nn_gru_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc)
{
    return make(ctx, &types[2], CN__GRU, in, hidden, !desc || !desc->no_bias);
}

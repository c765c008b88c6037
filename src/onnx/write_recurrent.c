/* How recurrent layers are written. The operator `recurrent` gets gates that a linear layer has computed for all steps;
   ONNX's LSTM, GRU and RNN multiply by that layer's weight themselves. So the two calls become one node, and a linear
   layer that nobody else reads is left out. */
#include "onnx/put.h"
#include "ops/block/recurrent.h"

/* Blocks of rows in ONNX's order of gates: i o f g of an LSTM, z r n of a GRU. */
static onnx_val *reordered(onnx_put *c, onnx_val *x, int64_t kind, int64_t width)
{
    static const int lstm[] = { 0, 3, 1, 2 }, gru[] = { 1, 0, 2 };
    const int *order = kind == CN__LSTM ? lstm : gru;
    const int n = (int)cn__recurrent_gates(kind);
    onnx_val *parts[4];
    if (n == 1) return x;
    for (int i = 0; i < n; i++) parts[i] = cn__put_slice(c, x, 0, order[i] * width, (order[i] + 1) * width, 1);
    return cn__put_join(c, 0, parts, n);
}

/* The input and weight of the linear layer before, or gates that are not multiplied: an identity. */
static void read_input(onnx_put *c, int64_t rows, onnx_val **x, onnx_val **w, onnx_val **b)
{
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    onnx_step *before = cn__onnx_step(c->w->trace, c->step->from[0]);
    *b = NULL;
    if (before->kind == ONNX_CALL && !strcmp(before->op->name, "linear")) {
        onnx_put linear = { c->w, before, NULL };
        *x = cn__put_operand(&linear, 0);
        *w = cn__put_operand(&linear, 1);
        if (cn__put_has(&linear, 2)) *b = cn__put_operand(&linear, 2);
        return;
    }
    onnx_val *zeros = EMIT("Expand", cn__put_number(c, t, 0), cn__put_wholes(c, (int64_t[]){ rows, rows }, 2));
    *x = OF(0);
    *w = EMIT("EyeLike", zeros);
}

/* (1,2·rows): both biases */
static onnx_val *biases(onnx_put *c, onnx_val *of_input, int64_t kind, int64_t width)
{
    const int64_t rows = cn__recurrent_gates(kind) * width;
    if (!of_input && !cn__put_has(c, 2)) return NULL;
    onnx_val *none = cn__put_filled(c, cn__put_meta(c, 0)->dtype, CN_DIMS(rows), 0);
    onnx_val *parts[2] = { of_input ? reordered(c, of_input, kind, width) : none,
                           cn__put_has(c, 2) ? reordered(c, OF(2), kind, width) : none };
    return cn__put_unsqueeze(c, cn__put_join(c, 0, parts, 2), 0);
}

bool cn__write_recurrent(onnx_put *c)
{
    const cn__recurrent_attrs *a = c->step->attrs;
    const int64_t width = cn__put_meta(c, 1)->layout.shape[1], rows = cn__recurrent_gates(a->kind) * width;
    onnx_val *x, *w, *b, *out[3];
    read_input(c, rows, &x, &w, &b);
    b = biases(c, b, a->kind, width);
    onnx_val *in[7] = { x, cn__put_unsqueeze(c, reordered(c, w, a->kind, width), 0),
                        cn__put_unsqueeze(c, reordered(c, OF(1), a->kind, width), 0), b };
    if (cn__put_has(c, 5)) in[4] = cn__put_cast(c, OF(5), CN_I32);
    in[5] = cn__put_unsqueeze(c, OF(3), 0);
    if (a->kind == CN__LSTM && cn__put_has(c, 4)) in[6] = cn__put_unsqueeze(c, OF(4), 0);
    cn__put_int(c, "hidden_size", width);
    if (a->reverse) cn__put_text(c, "direction", "reverse");
    if (a->kind == CN__GRU) cn__put_int(c, "linear_before_reset", 1);
    if (a->kind == CN__RNN_RELU) cn__put_texts(c, "activations", (const char *[]){ "Relu" }, 1);
    const bool lstm = a->kind == CN__LSTM;
    if (!cn__put_nodes(c, lstm ? "LSTM" : a->kind == CN__GRU ? "GRU" : "RNN", in, 7, out, lstm ? 3 : 1)) return false;
    if (lstm && cn__put_wanted(c, 1)) {
        out[2]->last = true;
        out[2]->steps = a->reverse ? 0 : cn__put_result(c, 0)->layout.shape[0] - 1;
        cn__put_give(c, 1, out[2]);
    }
    return GIVE(cn__put_squeeze(c, out[0], 1));
}

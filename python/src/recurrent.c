/* The recurrence of RNN, LSTM and GRU layers, which cairn.nn.modules.rnn builds its layers on. */
#include "call.h"
#include "ops/block/recurrent.h"

static const char *const names[] = { "gates", "weight", "bias", "h0", "c0", "lengths", "mode", "reverse" };
enum { OPERANDS = 6, PARAMETERS = 8 };
static PyObject *interned[PARAMETERS];
static const parameters described = { "_recurrent", PARAMETERS, PARAMETERS, 2, false, names, interned };

static PyObject *recurrent(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *given)
{
    (void)module;
    static const char *const modes[] = { "rnn_tanh", "rnn_relu", "lstm", "gru" };
    static const char *const results[] = { "output", "cells" };
    PyObject *a[PARAMETERS] = { 0 }, *list;
    cn_tensor *in[OPERANDS], *out[CN_MAX_OUT] = { 0 };
    int mode = CN__LSTM;
    bool reverse = false;
    call k;
    if (bind_arguments(&described, 0, args, n, given, a, &list) || call_begin(&k, described.function, a, OPERANDS)) {
        Py_XDECREF(list);
        return NULL;
    }
    k.list = list;
    for (int i = 0; i < OPERANDS; i++)
        if (take_tensor(&k, a[i], names[i], i == 2 || i > 3, a, OPERANDS, &in[i])) goto failed;
    if (a[6] && take_choice(&k, a[6], names[6], modes, 4, &mode)) goto failed;
    if (a[7] && take_bool(&k, a[7], names[7], &reverse)) goto failed;
    const cn__recurrent_attrs attrs = { mode, reverse };
    if (!cn_apply_n(&cn__op_recurrent, in, OPERANDS, &attrs, NULL, out)) out[0] = NULL;
    return many_results(&k, described.function, results, out, 2);
failed:
    call_end(&k);
    return NULL;
}

PyMethodDef recurrent_functions[] = {
    { "_recurrent", (PyCFunction)(void (*)(void))recurrent, METH_FASTCALL | METH_KEYWORDS,
      "(gates, weight, bias, h0, c0, lengths, mode, reverse): all states of a layer, and all cells of an LSTM's." },
    { 0 },
};

/* RNN, LSTM, GRU and their cells against PyTorch's results and gradients (reference/make_recurrent.py), and what they
   refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/named_cases.h"

static cn_module *make_module(cn_ctx *cn, const named_case *c)
{
    const int64_t in = (int64_t)named_option(c, "size"), hidden = (int64_t)named_option(c, "hidden");
    const bool no_bias = !named_option(c, "bias"), relu = named_option(c, "relu");
    const cn_rnn_desc d = { .num_layers = (int)named_option(c, "layers"),
                            .no_bias = no_bias,
                            .batch_first = named_option(c, "batch_first"),
                            .bidirectional = named_option(c, "bidirectional"),
                            .relu = relu,
                            .dropout = named_option(c, "dropout"),
                            .proj_size = (int64_t)named_option(c, "proj") };
    const cn_rnn_cell_desc e = { .no_bias = no_bias, .relu = relu };
    if (strcmp(c->name, "rnn") == 0) return cn_nn_rnn(cn, in, hidden, &d);
    if (strcmp(c->name, "lstm") == 0) return cn_nn_lstm(cn, in, hidden, &d);
    if (strcmp(c->name, "gru") == 0) return cn_nn_gru(cn, in, hidden, &d);
    if (strcmp(c->name, "rnn_cell") == 0) return cn_nn_rnn_cell(cn, in, hidden, &e);
    if (strcmp(c->name, "lstm_cell") == 0) return cn_nn_lstm_cell(cn, in, hidden, &e);
    if (strcmp(c->name, "gru_cell") == 0) return cn_nn_gru_cell(cn, in, hidden, &e);
    return NULL;
}

static void test_case(cn_ctx *cn, const named_case *c)
{
    const bool f32 = named_option(c, "f32");
    const double relative = f32 ? 1e-5 : 1e-9;
    cn_set_default_dtype(cn, f32 ? CN_F32 : CN_F64);
    cn_module *m = make_module(cn, c);
    if (!check(m != NULL, "%s (%s) is made: %s", c->name, c->options, cn_error(cn))) return;
    check(cn_module_load(m, c->d, &(cn_module_load_desc){ .prefix = "p." }), "%s (%s): %s", c->name, c->options,
          cn_error(cn));
    cn_module_train(m, named_option(c, "train"));
    cn_tensor *in[3] = { NULL }, *out[3] = { NULL };
    int n_in = 0, n_out = 0;
    for (cn_tensor *t; n_in < 3 && (t = named_get(c, "in", n_in)); n_in++) in[n_in] = cn_param(t);
    while (n_out < 3 && named_get(c, "out", n_out)) n_out++;
    cn_tensor *lengths = cn_dict_get(c->d, "m.lengths");
    if (lengths)
        out[0] = cn_rnn_forward(m, in[0], &(cn_rnn_call){ in[1], in[2], lengths }, &out[1], n_out > 2 ? &out[2] : NULL);
    check(lengths ? out[0] != NULL : cn_forward_all(m, in, n_in, out, n_out), "%s (%s): %s", c->name, c->options,
          cn_error(cn));
    check(cn_backward(named_loss(out, n_out)), "%s (%s): %s", c->name, c->options, cn_error(cn));
    for (int k = 0; k < n_out; k++) {
        char name[16];
        snprintf(name, sizeof name, "out.%d", k);
        named_check(c, name, out[k], relative);
    }
    named_check_gradients(c, m, in, n_in, relative);
    if (n_in == 1 && !lengths) named_check(c, "out.0", cn_forward(m, in[0]), relative);
    for (int k = 0; k < n_in; k++) cn_release(in[k]);
    cn_module_free(m);
    cn_error_clear(cn);
}

static void stored_cases(void)
{
    int cases = 0;
    FILE *f = named_open(CAIRN_SOURCE_DIR "/tests/reference/recurrent.bin", &cases);
    for (int k = 0; f && k < cases; k++) {
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 5 });
        named_case c;
        if (named_next(f, cn, &c)) {
            check_group(c.name);
            test_case(cn, &c);
            named_free(&c);
        }
        cn_close(cn);
    }
    check(cases > 50, "%d cases", cases);
    if (f) fclose(f);
}

/* ---- first values, names, dropout ---- */

static void first_values(cn_ctx *cn)
{
    check_group("first values");
    cn_module *m = cn_nn_lstm(cn, 30, 25, &(cn_rnn_desc){ .num_layers = 2, .bidirectional = true });
    const char *expected[] = { "weight_ih_l0",       "weight_hh_l0",         "bias_ih_l0",
                               "bias_hh_l0",         "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                               "bias_ih_l0_reverse", "bias_hh_l0_reverse",   "weight_ih_l1" };
    cn_named_list named = cn_module_named(m);
    check(named.n == 16, "%d parameters", named.n);
    for (int i = 0; i < 9 && i < named.n; i++)
        check(strcmp(named.v[i].name, expected[i]) == 0, "name %d is %s", i, named.v[i].name);
    check(cn_size(cn_module_get(m, "weight_ih_l1"), 1) == 50, "a second layer sees both directions");
    cn_tensor *w = cn_module_get(m, "weight_ih_l0");
    const double high = cn_item(cn_max(w, CN_ALL, false)), low = cn_item(cn_min(w, CN_ALL, false));
    check(high <= 0.2 && high > 0.19 && low >= -0.2 && low < -0.19, "uniform within 1/5: %g to %g", low, high);
    char text[4096];
    check(cn_summary(m, cn_ones(cn, CN_F32, CN_DIMS(7, 3, 30)), text, sizeof text) &&
              strstr(text, "LSTM(30, 25, 2 layers, bidirectional)") && strstr(text, "(7,3,50)"),
          "\n%s", text);
    cn_module_free(m);
}

static void dropout(cn_ctx *cn)
{
    check_group("dropout");
    cn_module *m = cn_nn_gru(cn, 8, 16, &(cn_rnn_desc){ .num_layers = 2, .dropout = 0.5 });
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(5, 4, 8));
    float a[320], b[320];
    cn_read(cn_forward(m, x), a, sizeof a), cn_read(cn_forward(m, x), b, sizeof b);
    check(memcmp(a, b, sizeof a) != 0, "while training two forwards differ");
    cn_module_train(m, false);
    cn_read(cn_forward(m, x), a, sizeof a), cn_read(cn_forward(m, x), b, sizeof b);
    check(memcmp(a, b, sizeof a) == 0, "and after that they do not");
    cn_module_free(m);
}

/* ---- training: plans, speed of the graph ---- */

static void training_step(cn_ctx *cn, cn_module *m, cn_optim *o, cn_tensor *x)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *y = cn_forward(m, x);
    cn_backward(cn_mean(cn_square(y), CN_ALL, false));
    cn_step(o);
    cn_scope_end(cn, s);
}

static void plans(cn_ctx *cn)
{
    check_group("plans");
    cn_module *m = cn_nn_lstm(cn, 8, 16, &(cn_rnn_desc){ .num_layers = 2 });
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(10, 4, 8)));
    cn_optim *o = cn_sgd(cn, cn_parameters(m), &(cn_sgd_desc){ .lr = 0.1 });
    cn_eval_all(cn); /* the first values are not part of a step */
    training_step(cn, m, o, x);
    const cn_counters before = cn_count(cn);
    training_step(cn, m, o, x);
    const cn_counters after = cn_count(cn);
    check(after.plan_misses == before.plan_misses, "%lld plans are made for the second step",
          (long long)(after.plan_misses - before.plan_misses));
    check(after.kernels - before.kernels < 40, "%lld kernels for 2 layers of 10 steps, however many steps there are",
          (long long)(after.kernels - before.kernels));
    cn_release(x);
    cn_optim_free(o), cn_module_free(m);
}

/* ---- refusals ---- */

static void refused(cn_ctx *cn, bool ok, cn_code code, const char *words)
{
    check(!ok && cn_error_code(cn) == code && strstr(cn_error(cn), words), "%s: %s", words, cn_error(cn));
    cn_error_clear(cn);
}

static void refusals(cn_ctx *cn)
{
    check_group("refusals");
    refused(cn, cn_nn_gru(cn, 3, 4, &(cn_rnn_desc){ .proj_size = 2 }), CN_BAD_ARGUMENT,
            "GRU: proj_size must be 0, got 2; only an LSTM has a projection");
    refused(cn, cn_nn_lstm(cn, 3, 4, &(cn_rnn_desc){ .proj_size = 4 }), CN_BAD_ARGUMENT,
            "LSTM: proj_size must be ≥ 0 and less than hidden, got 4 and 4");
    refused(cn, cn_nn_lstm(cn, 3, 4, &(cn_rnn_desc){ .proj_size = -1 }), CN_BAD_ARGUMENT, "got -1 and 4");
    refused(cn, cn_nn_gru(cn, 3, 0, NULL), CN_BAD_ARGUMENT,
            "GRU: in and hidden must be > 0 and at most 2147483647, got 3 and 0");
    refused(cn, cn_nn_rnn(cn, 3, 4, &(cn_rnn_desc){ .num_layers = -1 }), CN_BAD_ARGUMENT,
            "RNN: num_layers must be from 0 to 4096, got -1");
    refused(cn, cn_nn_rnn(cn, 3, 4, &(cn_rnn_desc){ .dropout = 1.5 }), CN_BAD_ARGUMENT,
            "RNN: dropout must be from 0 to 1, got 1.5");
    refused(cn, cn_nn_gru_cell(cn, 0, 4, NULL), CN_BAD_ARGUMENT,
            "GRUCell: in and hidden must be > 0 and at most 2147483647, got 0 and 4");
    cn_module *m = cn_nn_lstm(cn, 3, 4, NULL);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(5, 2, 3)), *h = cn_ones(cn, CN_F32, CN_DIMS(1, 2, 4)), *out[4];
    refused(cn, cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(5, 2, 7))), CN_BAD_SHAPE,
            "x must be [steps,batch,3], or [steps,3] without a batch, got [5,2,7]");
    refused(cn, cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(3))), CN_BAD_SHAPE, "got [3]");
    refused(cn, cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(0, 2, 3))), CN_BAD_SHAPE, "at least one step, got [0,2,3]");
    refused(cn, cn_forward_all(m, CN_TENSORS(x, h), out, 1), CN_BAD_ARGUMENT,
            "forward accepts x, or x with h0 and c0; got 2 operands");
    refused(cn, cn_forward_all(m, CN_TENSORS(x, h, cn_ones(cn, CN_F32, CN_DIMS(2, 2, 4))), out, 1), CN_BAD_SHAPE,
            "c0 must be [1,2,4], got [2,2,4]");
    refused(cn, cn_forward_all(m, CN_TENSORS(cn_select(x, 1, 0), h, h), out, 1), CN_BAD_SHAPE,
            "h0 must be [1,4], got [1,2,4]");
    refused(cn, cn_forward_all(m, &x, 1, out, 4), CN_BAD_ARGUMENT, "forward returns at most 3 tensors; got room for 4");
    cn_module *cell = cn_nn_lstm_cell(cn, 3, 4, NULL);
    cn_tensor *row = cn_ones(cn, CN_F32, CN_DIMS(2, 3));
    refused(cn, cn_forward(cell, cn_ones(cn, CN_F32, CN_DIMS(2, 5))), CN_BAD_SHAPE, "x must be [batch,3], got [2,5]");
    refused(cn, cn_forward_all(cell, CN_TENSORS(row, row), out, 2), CN_BAD_ARGUMENT, "got 2 operands and 2 results");
    refused(cn, cn_forward_all(cell, CN_TENSORS(row, row, row), out, 2), CN_BAD_SHAPE,
            "h must be [batch,4], got [2,3]");
    check(cn_nn_lstm(NULL, 3, 4, NULL) == NULL && !cn_failed(cn), "NULL in, NULL out");
    refused(cn, cn_forward(m, NULL), CN_BAD_ARGUMENT, "x must not be NULL");
    cn_module_free(m), cn_module_free(cell);
}

/* ---- sequences of different lengths ---- */

static cn_tensor *whole(cn_ctx *cn, int64_t a, int64_t b)
{
    return cn_from(cn, CN_I64, CN_DIMS(2), (int64_t[]){ a, b });
}

/* What x has behind the ends is not read, not even if it is NaN. */
static void ends_are_not_read(cn_ctx *cn)
{
    check_group("behind the ends");
    cn_module *m = cn_nn_rnn(cn, 3, 4, &(cn_rnn_desc){ .num_layers = 2, .bidirectional = true });
    float grads[2][12], states[2][32];
    for (int k = 0; k < 2; k++) {
        cn_tensor *a = cn_full(cn, CN_F32, CN_DIMS(3, 3), 0.5), *b = cn_full(cn, CN_F32, CN_DIMS(5, 3), 0.25);
        cn_tensor *x = cn_pad_sequence(CN_TENSORS(a, b), false, k ? NAN : 9);
        cn_tensor *h, *y = cn_rnn_forward(m, x, &(cn_rnn_call){ .lengths = whole(cn, 3, 5) }, &h, NULL);
        cn_zero_grad(cn_module_get(m, "weight_ih_l0"));
        cn_backward(named_loss((cn_tensor *[]){ y, h }, 2));
        cn_read(cn_grad_of(cn_module_get(m, "weight_ih_l0")), grads[k], sizeof grads[k]);
        cn_read(h, states[k], sizeof states[k]);
    }
    check(memcmp(grads[0], grads[1], sizeof grads[0]) == 0 && memcmp(states[0], states[1], sizeof states[0]) == 0 &&
              isfinite(grads[0][0]),
          "results do not depend on what follows a sequence: %s", cn_error(cn));
    cn_module_free(m);
}

static void lengths_refused(cn_ctx *cn)
{
    check_group("lengths");
    cn_module *m = cn_nn_gru(cn, 3, 4, NULL), *linear = cn_nn_linear(cn, 3, 4, NULL);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(5, 2, 3)), *c;
    refused(cn, cn_rnn_forward(m, x, &(cn_rnn_call){ .lengths = cn_ones(cn, CN_I64, CN_DIMS(3)) }, NULL, NULL),
            CN_BAD_SHAPE, "lengths must be [2], one for each sequence, got [3]");
    refused(cn, cn_rnn_forward(m, x, &(cn_rnn_call){ .lengths = cn_ones(cn, CN_F32, CN_DIMS(2)) }, NULL, NULL),
            CN_BAD_DTYPE, "lengths must be whole numbers, got f32");
    refused(cn, cn_rnn_forward(m, cn_select(x, 1, 0), &(cn_rnn_call){ .lengths = whole(cn, 1, 2) }, NULL, NULL),
            CN_BAD_ARGUMENT, "lengths need a batch");
    refused(cn, cn_rnn_forward(m, x, &(cn_rnn_call){ .c0 = x }, NULL, NULL), CN_BAD_ARGUMENT, "only an LSTM has a c0");
    refused(cn, cn_rnn_forward(m, x, NULL, NULL, &c), CN_BAD_ARGUMENT, "only an LSTM has a c_n");
    refused(cn, cn_rnn_forward(linear, x, NULL, NULL, NULL), CN_BAD_ARGUMENT,
            "must be an RNN, LSTM or GRU, got a Linear");
    for (int64_t bad = 0; bad < 7; bad += 6)
        refused(cn, cn_eval(cn_rnn_forward(m, x, &(cn_rnn_call){ .lengths = whole(cn, 2, bad) }, NULL, NULL)),
                CN_BAD_ARGUMENT, bad ? "recurrent: a length must be from 1 to 5, got 6" : "from 1 to 5, got 0");
    cn_module_free(m), cn_module_free(linear);
}

static void padding(cn_ctx *cn)
{
    check_group("pad_sequence");
    cn_tensor *a = cn_param(cn_full(cn, CN_F32, CN_DIMS(2, 3), 1)), *b = cn_full(cn, CN_F32, CN_DIMS(4, 3), 2);
    cn_tensor *y = cn_pad_sequence(CN_TENSORS(a, b), false, 7);
    float v[24];
    check(cn_size(y, 0) == 4 && cn_size(y, 1) == 2 && cn_read(y, v, sizeof v), "(T,n,..): %s", cn_error(cn));
    check(v[0] == 1 && v[3] == 2 && v[6] == 1 && v[12] == 7 && v[15] == 2 && v[18] == 7 && v[23] == 2, "values");
    check(cn_backward(cn_sum(cn_square(y), CN_ALL, false)) && cn_item(cn_sum(cn_grad_of(a), CN_ALL, false)) == 12,
          "gradients: %s", cn_error(cn));
    y = cn_pad_sequence(CN_TENSORS(a, b), true, 0);
    check(cn_size(y, 0) == 2 && cn_size(y, 1) == 4, "batch_first");
    refused(cn, cn_pad_sequence(CN_TENSORS(a, cn_ones(cn, CN_F32, CN_DIMS(2, 4))), false, 0), CN_BAD_SHAPE,
            "equal sizes but for their first axis; got f32 [2,3] and, as number 1, f32 [2,4]");
    refused(cn, cn_pad_sequence(CN_TENSORS(cn_ones(cn, CN_F32, CN_SCALAR)), false, 0), CN_BAD_SHAPE, "pad_sequence");
    cn_release(a);
}

/* ---- memory that runs out ---- */

static bool forward_and_backward(cn_ctx *cn)
{
    cn_module *m = cn_nn_lstm(cn, 3, 4, &(cn_rnn_desc){ .num_layers = 2, .bidirectional = true, .dropout = 0.2 });
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(3, 2, 3)), *out[3];
    if (!cn_forward_all(m, &x, 1, out, 3) || !cn_backward(named_loss(out, 3))) return false;
    return cn_eval_all(cn) && cn_grad_of(cn_module_get(m, "weight_hh_l0")) && !cn_failed(cn);
}

static void out_of_memory(void)
{
    check_group("out of memory");
    int64_t n = 1;
    for (bool done = false; !done && n < 5000; n++) {
        faulty f = { .fail_at = n };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (cn) {
            bool ok = forward_and_backward(cn);
            check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(cn));
            done = ok && f.calls < n;
            cn_close(cn);
        }
        check(f.blocks == 0, "allocation %lld: %lld blocks left", (long long)n, (long long)f.blocks);
    }
    check(n > 20 && n < 5000, "%lld allocations", (long long)n);
}

int main(void)
{
    stored_cases();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    first_values(cn);
    dropout(cn);
    plans(cn);
    refusals(cn);
    ends_are_not_read(cn);
    lengths_refused(cn);
    padding(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    out_of_memory();
    return finish();
}

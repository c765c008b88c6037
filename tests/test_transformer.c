/* MultiheadAttention and transformers against PyTorch's results and gradients (reference/make_recurrent.py), and what
   they refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/named_cases.h"

/* ---- what was stored ---- */

static cn_module *make_module(cn_ctx *cn, const named_case *c)
{
    const int64_t width = (int64_t)named_option(c, "width"), heads = (int64_t)named_option(c, "heads");
    const bool no_bias = !named_option(c, "bias"), batch_first = named_option(c, "batch_first");
    const double dropout = named_option(c, "dropout");
    const cn_multihead_desc a = { .kdim = (int64_t)named_option(c, "kdim"),
                                  .vdim = (int64_t)named_option(c, "vdim"),
                                  .dropout = dropout,
                                  .no_bias = no_bias,
                                  .batch_first = batch_first,
                                  .add_bias_kv = named_option(c, "bias_kv"),
                                  .add_zero_attn = named_option(c, "zero") };
    const cn_transformer_desc t = { .dim_feedforward = (int64_t)named_option(c, "inner"),
                                    .dropout = dropout,
                                    .layer_norm_eps = named_option(c, "eps"),
                                    .gelu = named_option(c, "gelu"),
                                    .norm_first = named_option(c, "norm_first"),
                                    .batch_first = batch_first,
                                    .no_bias = no_bias,
                                    .num_layers = (int)named_option(c, "layers"),
                                    .final_norm = named_option(c, "norm"),
                                    .decoder_layers = (int)named_option(c, "layers") + 1 };
    if (strcmp(c->name, "attention") == 0) return cn_nn_multihead_attention(cn, width, heads, &a);
    if (strcmp(c->name, "encoder_layer") == 0) return cn_nn_transformer_encoder_layer(cn, width, heads, &t);
    if (strcmp(c->name, "decoder_layer") == 0) return cn_nn_transformer_decoder_layer(cn, width, heads, &t);
    if (strcmp(c->name, "encoder") == 0) return cn_nn_transformer_encoder(cn, width, heads, &t);
    if (strcmp(c->name, "decoder") == 0) return cn_nn_transformer_decoder(cn, width, heads, &t);
    if (strcmp(c->name, "transformer") == 0) return cn_nn_transformer(cn, width, heads, &t);
    return NULL;
}

static void call_module(const named_case *c, cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out)
{
    const bool causal = named_option(c, "causal"), two = strncmp(c->name, "decoder", 7) == 0;
    const cn_mha_desc call = { .key_padding_mask = cn_dict_get(c->d, "m.key_padding_mask"),
                               .attn_mask = cn_dict_get(c->d, "m.attn_mask"),
                               .is_causal = causal,
                               .per_head = named_option(c, "per_head") };
    const cn_transformer_masks masks = { .src_mask = cn_dict_get(c->d, "m.src_mask"),
                                         .tgt_mask = cn_dict_get(c->d, "m.tgt_mask"),
                                         .memory_mask = cn_dict_get(c->d, "m.memory_mask"),
                                         .src_key_padding_mask = cn_dict_get(c->d, "m.src_key_padding_mask"),
                                         .tgt_key_padding_mask = cn_dict_get(c->d, "m.tgt_key_padding_mask"),
                                         .memory_key_padding_mask = cn_dict_get(c->d, "m.memory_key_padding_mask"),
                                         .src_is_causal = causal && strncmp(c->name, "encoder", 7) == 0,
                                         .tgt_is_causal = causal };
    if (strcmp(c->name, "attention") == 0)
        out[0] = cn_attention_forward(m, in[0], in[n_in / 2], in[n_in - 1], &call,
                                      named_option(c, "weights") ? &out[1] : NULL);
    else if (strcmp(c->name, "transformer") == 0) out[0] = cn_transformer_forward(m, in[0], in[1], &masks);
    else out[0] = two ? cn_decoder_forward(m, in[0], in[1], &masks) : cn_encoder_forward(m, in[0], &masks);
}

static bool has_masks(const named_case *c)
{
    for (int64_t i = 0; i < cn_dict_count(c->d); i++)
        if (strncmp(cn_dict_name(c->d, i), "m.", 2) == 0) return true;
    return named_option(c, "causal");
}

/* The plain calls, without masks, give the same. */
static void call_plainly(const named_case *c, cn_module *m, cn_tensor *const *in, int n_in, double relative)
{
    cn_tensor *out[2] = { NULL };
    if (has_masks(c) || named_option(c, "per_head")) return;
    if (strcmp(c->name, "attention") == 0 && n_in == 2) return;
    const int n_out = named_option(c, "weights") ? 2 : 1;
    check(cn_forward_all(m, in, n_in, out, n_out), "%s (%s): %s", c->name, c->options, cn_error(cn_module_context(m)));
    named_check(c, "out.0", out[0], relative);
    if (n_out > 1) named_check(c, "out.1", out[1], relative);
    if (n_in == 1) named_check(c, "out.0", cn_forward(m, in[0]), relative);
}

static void test_case(cn_ctx *cn, const named_case *c)
{
    const bool f32 = named_option(c, "f32"), graded = named_get(c, "gi", 0);
    const double relative = f32 ? 1e-5 : 1e-9;
    cn_set_default_dtype(cn, f32 ? CN_F32 : CN_F64);
    cn_module *m = make_module(cn, c);
    if (!check(m != NULL, "%s (%s) is made: %s", c->name, c->options, cn_error(cn))) return;
    check(cn_module_load(m, c->d, &(cn_module_load_desc){ .prefix = "p." }), "%s (%s): %s", c->name, c->options,
          cn_error(cn));
    cn_module_train(m, named_option(c, "train"));
    cn_tensor *in[3] = { NULL }, *out[2] = { NULL };
    int n_in = 0;
    for (cn_tensor *t; n_in < 3 && (t = named_get(c, "in", n_in)); n_in++) in[n_in] = cn_param(t);
    call_module(c, m, in, n_in, out);
    const int n_out = named_get(c, "out", 1) ? 2 : 1;
    if (graded) check(cn_backward(named_loss(out, n_out)), "%s (%s): %s", c->name, c->options, cn_error(cn));
    named_check(c, "out.0", out[0], relative);
    if (n_out > 1) named_check(c, "out.1", out[1], relative);
    if (graded) named_check_gradients(c, m, in, n_in, relative);
    call_plainly(c, m, in, n_in, relative);
    for (int k = 0; k < n_in; k++) cn_release(in[k]);
    cn_module_free(m);
    cn_error_clear(cn);
}

static void stored_cases(const char *path, int least)
{
    int cases = 0;
    FILE *f = named_open(path, &cases);
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
    check(cases >= least, "%d cases", cases);
    if (f) fclose(f);
}

/* ---- first values ---- */

/* All zero, or uniform within `bound`. */
static void is_spread(cn_module *m, const char *name, double bound)
{
    cn_tensor *t = cn_module_get(m, name);
    const double high = cn_item(cn_max(t, CN_ALL, false)), low = cn_item(cn_min(t, CN_ALL, false));
    check(t && high <= bound && low >= -bound && (bound == 0 || (high > 0.9 * bound && low < -0.9 * bound)),
          "%s within %g: %g to %g", name, bound, low, high);
}

static void first_values(cn_ctx *cn)
{
    check_group("first values");
    cn_module *m = cn_nn_multihead_attention(cn, 24, 3, NULL);
    is_spread(m, "in_proj_weight", sqrt(6.0 / 96));
    is_spread(m, "in_proj_bias", 0);
    is_spread(m, "out_proj.weight", 1 / sqrt(24.0));
    is_spread(m, "out_proj.bias", 0);
    cn_module *k = cn_nn_multihead_attention(cn, 24, 3, &(cn_multihead_desc){ .kdim = 16 });
    is_spread(k, "k_proj_weight", sqrt(6.0 / 40));
    is_spread(k, "v_proj_weight", sqrt(6.0 / 48));
    cn_module *t = cn_nn_transformer(cn, 24, 3, &(cn_transformer_desc){ .num_layers = 1, .dim_feedforward = 40 });
    is_spread(t, "encoder.layers.0.linear1.weight", sqrt(6.0 / 64));
    is_spread(t, "decoder.layers.0.multihead_attn.out_proj.weight", sqrt(6.0 / 48));
    is_spread(t, "decoder.layers.0.multihead_attn.out_proj.bias", 0);
    cn_module *l = cn_nn_transformer_encoder_layer(cn, 24, 3, NULL);
    check(cn_size(cn_module_get(l, "linear1.weight"), 0) == 2048, "2048 in between");
    is_spread(l, "linear1.weight", 1 / sqrt(24.0));
    check(cn_item(cn_min(cn_module_get(l, "norm2.weight"), CN_ALL, false)) == 1, "norms begin with ones");
    cn_module *e = cn_nn_transformer_encoder(cn, 8, 2, &(cn_transformer_desc){ .dim_feedforward = 8 });
    check(cn_module_find(e, "layers.5") && !cn_module_find(e, "layers.6") && !cn_module_find(e, "norm"), "six layers");
    char text[8192];
    check(cn_summary(e, cn_ones(cn, CN_F32, CN_DIMS(5, 2, 8)), text, sizeof text) && strstr(text, "(5,2,8)"), "\n%s",
          text);
    cn_module_free(m), cn_module_free(k), cn_module_free(t), cn_module_free(l), cn_module_free(e);
}

/* ---- dropout ---- */

static void dropout(cn_ctx *cn)
{
    check_group("dropout");
    cn_module *m =
        cn_nn_transformer_encoder_layer(cn, 8, 2, &(cn_transformer_desc){ .dim_feedforward = 16, .dropout = 0.4 });
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(5, 4, 8));
    float a[160], b[160];
    cn_read(cn_forward(m, x), a, sizeof a), cn_read(cn_forward(m, x), b, sizeof b);
    check(memcmp(a, b, sizeof a) != 0, "while training two forwards differ");
    cn_module_train(m, false);
    cn_read(cn_forward(m, x), a, sizeof a), cn_read(cn_forward(m, x), b, sizeof b);
    check(memcmp(a, b, sizeof a) == 0, "and after that they do not");
    cn_module_free(m);
}

/* A sequence that is all padding, as in PyTorch: 0, the bias of the projection, with gradients that are finite; NaN if
   weights are asked for. Its neighbours are not affected. */
static void nothing_to_see(cn_ctx *cn)
{
    check_group("nothing to see");
    cn_module *m = cn_nn_multihead_attention(cn, 4, 2, &(cn_multihead_desc){ .batch_first = true });
    const bool padding[6] = { false, false, true, true, true, true };
    cn_tensor *x = cn_param(cn_randn(cn, CN_F32, CN_DIMS(2, 3, 4)));
    const cn_mha_desc call = { .key_padding_mask = cn_from(cn, CN_BOOL, CN_DIMS(2, 3), padding) };
    cn_tensor *plain = cn_keep(cn_attention_forward(m, x, x, x, &call, NULL)), *weights = NULL;
    float y[24], g[24];
    check(cn_backward(cn_sum(cn_square(plain), CN_ALL, false)), "%s", cn_error(cn));
    cn_read(plain, y, sizeof y), cn_read(cn_grad_of(x), g, sizeof g);
    for (int i = 0; i < 24; i++)
        check((y[i] == 0) == (i >= 12) && (g[i] == 0) == (i >= 12) && isfinite(g[i]), "element %d is %g, gradient %g",
              i, (double)y[i], (double)g[i]);
    cn_read(cn_attention_forward(m, x, x, x, &call, &weights), y, sizeof y);
    for (int i = 0; i < 24; i++) check(isnan(y[i]) == (i >= 12), "with weights, element %d is %g", i, (double)y[i]);
    cn_release(plain), cn_release(x);
    cn_module_free(m);
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
    refused(cn, cn_nn_multihead_attention(cn, 10, 3, NULL), CN_BAD_ARGUMENT,
            "embed_dim must be > 0 and a multiple of num_heads, got 10 and 3 heads");
    refused(cn, cn_nn_multihead_attention(cn, 4, 2, &(cn_multihead_desc){ .dropout = -1 }), CN_BAD_ARGUMENT,
            "dropout must be from 0 to 1, got -1");
    refused(cn, cn_nn_transformer_encoder(cn, 10, 3, NULL), CN_BAD_ARGUMENT,
            "embed_dim must be > 0 and a multiple of num_heads, got 10 and 3 heads");
    refused(cn, cn_nn_transformer_decoder(cn, 4, 2, &(cn_transformer_desc){ .num_layers = -2 }), CN_BAD_ARGUMENT,
            "the number of layers must be from 0 to 4096, got -2");
    cn_module *m = cn_nn_multihead_attention(cn, 4, 2, NULL);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(3, 2, 4)), *y = cn_ones(cn, CN_F32, CN_DIMS(5, 2, 4)), *out[3];
    refused(cn, cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(3, 2, 5))), CN_BAD_SHAPE, "q must be [3,2,4], got [3,2,5]");
    refused(cn, cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(4))), CN_BAD_SHAPE,
            "q must be [steps,batch,4] or [steps,4], got [4]");
    refused(cn, cn_attention_forward(m, x, y, x, NULL, NULL), CN_BAD_SHAPE, "v must be [5,2,4], got [3,2,4]");
    refused(cn, cn_attention_forward(m, x, cn_select(y, 1, 0), y, NULL, NULL), CN_BAD_SHAPE,
            "k must be [steps,2,4], got [5,4]");
    refused(cn,
            cn_attention_forward(m, x, y, y, &(cn_mha_desc){ .attn_mask = cn_ones(cn, CN_F32, CN_DIMS(5, 3)) }, NULL),
            CN_BAD_SHAPE, "attn_mask must be [3,5] or [4,3,5], got [5,3]");
    refused(cn,
            cn_attention_forward(m, x, y, y, &(cn_mha_desc){ .key_padding_mask = cn_ones(cn, CN_BOOL, CN_DIMS(5, 2)) },
                                 NULL),
            CN_BAD_SHAPE, "key_padding_mask must be [2,5], got [5,2]");
    refused(cn,
            cn_attention_forward(m, x, y, y, &(cn_mha_desc){ .attn_mask = cn_ones(cn, CN_I64, CN_DIMS(3, 5)) }, NULL),
            CN_BAD_DTYPE, "bool or of a floating type");
    refused(cn, cn_forward_all(m, CN_TENSORS(x, y), out, 1), CN_BAD_ARGUMENT, "got 2 operands and 1 results");
    refused(cn, cn_encoder_forward(m, x, NULL), CN_BAD_ARGUMENT,
            "must be a TransformerEncoder or one of its layers, got a MultiheadAttention");
    cn_module *d = cn_nn_transformer_decoder_layer(cn, 4, 2, NULL);
    refused(cn, cn_attention_forward(d, x, x, x, NULL, NULL), CN_BAD_ARGUMENT,
            "must be a MultiheadAttention, got a TransformerDecoderLayer");
    refused(cn, cn_forward(d, x), CN_BAD_ARGUMENT, "forward accepts tgt and memory");
    refused(cn, cn_attention_forward(m, x, NULL, x, NULL, NULL), CN_BAD_ARGUMENT, "k must not be NULL");
    refused(cn, cn_decoder_forward(d, x, NULL, NULL), CN_BAD_ARGUMENT, "memory must not be NULL");
    refused(cn, cn_transformer_forward(NULL, x, x, NULL), CN_BAD_ARGUMENT, "the module must not be NULL");
    cn_module_free(m), cn_module_free(d);
}

/* ---- training ---- */

static void training_step(cn_ctx *cn, cn_module *m, cn_optim *o, cn_tensor *x)
{
    cn_scope s = cn_scope_begin(cn);
    cn_backward(
        cn_mean(cn_square(cn_encoder_forward(m, x, &(cn_transformer_masks){ .src_is_causal = true })), CN_ALL, false));
    cn_step(o);
    cn_scope_end(cn, s);
}

static void plans(cn_ctx *cn)
{
    check_group("plans");
    cn_module *m = cn_nn_transformer_encoder(
        cn, 8, 2, &(cn_transformer_desc){ .dim_feedforward = 16, .num_layers = 2, .dropout = 0.1 });
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(10, 4, 8)));
    cn_optim *o = cn_sgd(cn, cn_parameters(m), &(cn_sgd_desc){ .lr = 0.1 });
    for (int i = 0; i < 2; i++) training_step(cn, m, o, x); /* in the first, equal zeros and ones still share memory */
    const int64_t before = cn_count(cn).plan_misses;
    training_step(cn, m, o, x);
    check(cn_count(cn).plan_misses == before, "%lld plans are made for another step",
          (long long)(cn_count(cn).plan_misses - before));
    cn_release(x);
    cn_optim_free(o), cn_module_free(m);
}

/* ---- memory that runs out ---- */

static bool forward_and_backward(cn_ctx *cn)
{
    const cn_transformer_desc d = { .dim_feedforward = 6, .num_layers = 1, .dropout = 0.2, .batch_first = true };
    const bool padding[6] = { false, false, true, false, false, false };
    cn_module *m = cn_nn_transformer(cn, 4, 2, &d);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(2, 3, 4)), *mask = cn_from(cn, CN_BOOL, CN_DIMS(2, 3), padding),
              *weights;
    cn_tensor *y =
        cn_transformer_forward(m, x, x, &(cn_transformer_masks){ .src_key_padding_mask = mask, .tgt_is_causal = true });
    y = cn_attention_forward(cn_module_find(m, "encoder.layers.0.self_attn"), y, x, x, NULL, &weights);
    if (!y || !cn_backward(named_loss(CN_TENSORS(y, weights)))) return false;
    return cn_eval_all(cn) && cn_grad_of(cn_module_get(m, "encoder.layers.0.linear1.weight")) && !cn_failed(cn);
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
    stored_cases(CAIRN_SOURCE_DIR "/tests/reference/transformer.bin", 50);
    stored_cases(CAIRN_SOURCE_DIR "/tests/reference/further_keys.bin", 6);
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    first_values(cn);
    dropout(cn);
    nothing_to_see(cn);
    refusals(cn);
    plans(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    out_of_memory();
    return finish();
}

/* Modules as ONNX files: what is written is read back and gives the same results, for several sizes of the batch; what
   was read is written as it was; misuse, lack of memory, files that stay whole. A folder as argument: the files, and the
   inputs and results of each, are left there for onnx/check_written.py.

       build/tests/test_onnx_write [FOLDER]
       build/tests/test_onnx_write --again LIST

   LIST has a line for each file that is read and written again: how, the file, the new file, an .npz file of inputs. How:
   `as_read`; `apart`, all weights in another file; `traced`, from the operators that a forward calls. Prints a line for
   each: "written", or the error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/onnx.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/onnx_write.h"
#include "support/scratch.h"

enum { MOST = 8 };

static cn_ctx *cn;
static const char *folder; /* or NULL */

/* ---- comparing ---- */

static double difference(cn_tensor *a, cn_tensor *b)
{
    const cn_dims x = cn_shape(a), y = cn_shape(b);
    if (x.n != y.n || memcmp(x.v, y.v, sizeof *x.v * (size_t)x.n) != 0 || cn_type(a) != cn_type(b)) return INFINITY;
    return cn_numel(a) ? cn_item(cn_max(cn_abs(cn_sub(cn_cast(a, CN_F64), cn_cast(b, CN_F64))), CN_ALL, false)) : 0;
}

static void leave(const char *name, int batch, cn_tensor *const *in, int n_in, cn_tensor *const *out, int n_out)
{
    char path[600], entry[32];
    cn_dict *d = cn_dict_new(cn);
    for (int i = 0; i < n_in; i++) snprintf(entry, sizeof entry, "in_%d", i), cn_dict_set(d, entry, in[i]);
    for (int i = 0; i < n_out; i++) snprintf(entry, sizeof entry, "out_%d", i), cn_dict_set(d, entry, out[i]);
    snprintf(path, sizeof path, "%s/%s@%d.npz", folder, name, batch);
    check(cn_save(d, path), "%s: %s", path, cn_error(cn));
    cn_dict_free(d);
}

/* Runs the module and the file that was written of it. */
static void compare(const char *name, cn_module *m, cn_module *file, cn_tensor *const *in, int n_in, int n_out,
                    int batch)
{
    cn_tensor *want[MOST] = { NULL }, *got[MOST] = { NULL };
    const bool ok = cn_forward_all(m, in, n_in, want, n_out) && cn_forward_all(file, in, n_in, got, n_out);
    if (!check(ok, "%s, %d samples: %s", name, batch, cn_error(cn))) {
        cn_error_clear(cn);
        return;
    }
    for (int i = 0; i < n_out; i++) {
        const double d = difference(want[i], got[i]);
        check(d <= 1e-5, "%s, %d samples: result %d differs by %g", name, batch, i, d);
    }
    if (folder) leave(name, batch, in, n_in, want, n_out);
}

/* x with n samples along an axis; -1: it has none. */
static cn_tensor *with_batch(cn_tensor *x, int axis, int64_t n)
{
    if (axis < 0 || cn_size(x, axis) == n) return x;
    cn_tensor *at = cn_remainder_s(cn_arange(cn, CN_I64, 0, (double)n, 1), (double)cn_size(x, axis));
    return cn_index_select(x, axis, at);
}

typedef struct example {
    const char *name;
    cn_module *m;
    cn_tensor *in[MOST];
    int n_in, n_out;
    const int *axes; /* of the batch; NULL: 0 */
    int opset;
    bool fixed;
} example;

static cn_module *written(const example *e)
{
    char path[600];
    const cn_onnx_options o = { .opset = e->opset, .n_outputs = e->n_out, .batch_axes = e->axes };
    snprintf(path, sizeof path, "%s/%s.onnx", folder ? folder : ".", e->name);
    const bool training = cn_module_training(e->m);
    const bool ok = cn_onnx_save(e->m, e->in, e->n_in, path, &o);
    check(ok, "%s is written: %s", e->name, cn_error(cn));
    check(cn_module_training(e->m) == training, "%s: its mode stays", e->name);
    cn_error_clear(cn);
    cn_module *file = ok ? cn_onnx_load(cn, path) : NULL;
    check(!ok || file, "%s is read: %s", e->name, cn_error(cn));
    cn_error_clear(cn);
    return file;
}

static void try_example(const example *e)
{
    check_group(e->name);
    cn_module *file = written(e);
    cn_module_train(e->m, false);
    for (int k = 0; k < 3 && file; k++) {
        cn_tensor *in[MOST];
        static const int64_t sizes[] = { 0, 1, 5 }; /* 0: as it is */
        for (int i = 0; i < e->n_in; i++) {
            const int axis = e->axes ? e->axes[i] : 0;
            in[i] = k ? with_batch(e->in[i], axis, sizes[k]) : e->in[i];
            cn_eval(in[i]);
        }
        if (k && e->fixed) break;
        compare(e->name, e->m, file, in, e->n_in, e->n_out, (int)sizes[k]);
    }
    cn_module_free(file);
}

/* ---- the layers of test_transfer, with PyTorch's values ---- */

#define CONV(...)     (&(cn_nn_conv_desc){ __VA_ARGS__ })
#define INSTANCE(...) (&(cn_nn_instance_norm_desc){ __VA_ARGS__ })
#define RNN(...)      (&(cn_rnn_desc){ __VA_ARGS__ })
#define BLOCK(...)    (&(cn_transformer_desc){ __VA_ARGS__ })

static cn_module *cnn(cn_ctx *ctx)
{
    return cn_nn_sequential(ctx, cn_nn_conv2d(ctx, 1, 4, 3, CONV(.padding = 1, .no_bias = true)),
                            cn_nn_batch_norm2d(ctx, 4, NULL), cn_nn_relu(ctx), cn_nn_max_pool2d(ctx, 2, NULL),
                            cn_nn_conv2d(ctx, 4, 6, 2, NULL), cn_nn_group_norm(ctx, 2, 6, NULL), cn_nn_silu(ctx),
                            cn_nn_adaptive_avg_pool2d(ctx, 1, 1), cn_nn_flatten(ctx, 1, -1),
                            cn_nn_linear(ctx, 6, 3, NULL));
}

static const struct {
    const char *name;
} layers[] = {
#define LAYER(case_, maker) { case_ },
#include "reference/transfer.def"
#undef LAYER
};

static cn_module *make(const char *name)
{
#define LAYER(case_, maker) \
    if (strcmp(name, case_) == 0) return maker;
#include "reference/transfer.def"
#undef LAYER
    return NULL;
}

/* Which axis is the batch: layers of sequences have it second, and states of recurrent layers too. */
static const int *axes_of(const char *name)
{
    static const int second[] = { 1, 1, 1 }, cells[] = { 0, 0, 0 }, states[] = { 0, 1 };
    static const struct {
        const char *name;
        const int *axes;
    } known[] = { { "rnn", second },           { "rnn_relu", second },      { "lstm", second },
                  { "gru", states },           { "rnn_cell", cells },       { "multihead_attention", second },
                  { "encoder_layer", second }, { "decoder_layer", second }, { "encoder", second },
                  { "transformer", second } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return known[i].axes;
    return NULL;
}

static void test_layers(int opset)
{
    cn_dict *values = cn_load(cn, CAIRN_SOURCE_DIR "/tests/reference/transfer.safetensors");
    if (!check(values != NULL, "%s", cn_error(cn))) return;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char entry[128], name[64];
        cn_scope s = cn_scope_begin(cn);
        example e = { .m = make(layers[i].name), .axes = axes_of(layers[i].name), .opset = opset };
        snprintf(name, sizeof name, opset ? "%s_%d" : "%s", layers[i].name, opset);
        e.name = name;
        snprintf(entry, sizeof entry, "%s/state/", layers[i].name);
        check(cn_module_load(e.m, values, &(cn_module_load_desc){ .prefix = entry }), "%s", cn_error(cn));
        for (; e.n_in < MOST; e.n_in++) {
            snprintf(entry, sizeof entry, "%s/in/%d", layers[i].name, e.n_in);
            if (!(e.in[e.n_in] = cn_dict_get(values, entry))) break;
        }
        for (; e.n_out < MOST; e.n_out++) {
            snprintf(entry, sizeof entry, "%s/out/%d", layers[i].name, e.n_out);
            if (!cn_dict_get(values, entry)) break;
        }
        try_example(&e);
        cn_module_free(e.m);
        cn_scope_end(cn, s);
    }
    cn_dict_free(values);
}

/* ---- models ---- */

static cn_tensor *tokens(int64_t batch, int64_t steps)
{
    return cn_remainder_s(cn_reshape(cn_arange(cn, CN_I64, 0, (double)(batch * steps), 1), CN_DIMS(batch, steps)), 11);
}

static void test_models(int opset)
{
    char name[3][32];
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%s_%d", (const char *[]){ "gpt", "vision", "text" }[i], opset);
    cn_module *gpt = cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = 11, .context = 16, .layers = 2, .heads = 4, .width = 32 });
    try_example(&(example){ name[0], gpt, { tokens(1, 12) }, 1, 1, NULL, opset, false });
    cn_module_free(gpt);
    cn_module *vision = cn_nn_sequential(
        cn, cn_nn_conv2d(cn, 3, 8, 3, CONV(.padding = 1, .stride = 2)), cn_nn_batch_norm2d(cn, 8, NULL),
        cn_nn_hardswish(cn), cn_nn_conv2d(cn, 8, 8, 3, CONV(.groups = 8, .padding = 1)), cn_nn_relu6(cn),
        cn_nn_upsample(cn, &(cn_nn_upsample_desc){ .scale = 2, .mode = CN_UPSAMPLE_BILINEAR }),
        cn_nn_avg_pool2d(cn, 2, NULL), cn_nn_adaptive_avg_pool2d(cn, 3, 3), cn_nn_flatten(cn, 1, -1),
        cn_nn_dropout(cn, 0.5), cn_nn_linear(cn, 72, 5, NULL), cn_nn_log_softmax(cn, -1));
    try_example(
        &(example){ name[1], vision, { cn_randn(cn, CN_F32, CN_DIMS(2, 3, 16, 16)) }, 1, 1, NULL, opset, false });
    cn_module_free(vision);
    cn_module *text = cn_nn_sequential(cn, cn_nn_embedding(cn, 11, 6, NULL),
                                       cn_nn_lstm(cn, 6, 7, RNN(.batch_first = true, .bidirectional = true)),
                                       cn_nn_linear(cn, 14, 3, NULL));
    try_example(&(example){ name[2], text, { tokens(3, 5) }, 1, 1, NULL, opset, false });
    cn_module_free(text);
}

/* ---- batches that cannot be free ---- */

static cn_tensor *by_size(cn_module *m, cn_tensor *x)
{
    (void)m;
    return cn_size(x, 0) > 2 ? cn_relu(x) : cn_tanh(x);
}

/* Sums over the batch, and sizes that are made of it. */
static cn_tensor *over_batch(cn_module *m, cn_tensor *x)
{
    (void)m;
    cn_tensor *centred = cn_sub(x, cn_mean(x, CN_DIMS(0), true));
    cn_tensor *gram = cn_matmul(centred, cn_transpose(centred, 0, 1));
    cn_tensor *scaled = cn_div_s(gram, (double)cn_size(x, 0));
    cn_tensor *flat = cn_reshape(scaled, CN_DIMS(-1)),
              *ids = cn_arange(cn_context(x), CN_F32, 0, (double)cn_size(x, 0), 1);
    return cn_cat(CN_TENSORS(flat, ids, cn_zeros(cn_context(x), CN_F32, CN_DIMS(cn_size(x, 0)))), 0);
}

/* It reads a number on the way. */
static cn_tensor *looking(cn_module *m, cn_tensor *x)
{
    (void)m;
    cn_tensor *y = cn_exp(x);
    return cn_item(cn_sum(y, CN_ALL, false)) > 0 ? cn_sub(y, cn_mean(y, CN_DIMS(1), true)) : x;
}

static void test_batches(void)
{
    static const cn_module_type fixed = { .name = "BySize", .forward = by_size },
                                free_size = { .name = "OverBatch", .forward = over_batch },
                                looks = { .name = "Looking", .forward = looking };
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 3));
    cn_module *m = cn_module_new(cn, &fixed), *n = cn_module_new(cn, &free_size), *l = cn_module_new(cn, &looks);
    try_example(&(example){ "by_size", m, { x }, 1, 1, NULL, 0, true });
    try_example(&(example){ "over_batch", n, { x }, 1, 1, NULL, 0, false });
    try_example(&(example){ "looking", l, { x }, 1, 1, NULL, 0, false });
    cn_module_free(m);
    cn_module_free(n);
    cn_module_free(l);
}

/* ---- what was read from a file ---- */

static bool read_file(const char *path, onnx_bytes *out)
{
    FILE *f = fopen(path, "rb");
    out->n = 0;
    if (!f) return false;
    for (int ch; (ch = fgetc(f)) != EOF;) {
        const unsigned char byte = (unsigned char)ch;
        onnx_raw(out, &byte, 1);
    }
    return fclose(f) == 0;
}

static bool write_bytes(const char *path, const onnx_bytes *b)
{
    FILE *f = fopen(path, "wb");
    return f && fwrite(b->v, 1, b->n, f) == b->n && fclose(f) == 0;
}

static bool has_text(const onnx_bytes *b, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= b->n; i++)
        if (!memcmp(b->v + i, text, n)) return true;
    return false;
}

/* y = x·w + b, with documentation, metadata and a field that nobody knows. */
static onnx_bytes documented(void)
{
    onnx_bytes g = { 0 }, pair = { 0 };
    onnx_node_text(&g, 1, "MatMul x w -> h", NULL);
    onnx_node_text(&g, 1, "Add h b -> y", NULL);
    onnx_text_field(&g, 2, "a graph");
    onnx_text_field(&g, 10, "its documentation");
    onnx_text_field(&g, 77, "unknown");
    onnx_floats_tensor(&g, 5, "w", (const int[]){ 2, 3, -2 }, (const float[]){ 1, 2, 3, 4, 5, 6 });
    onnx_floats_tensor(&g, 5, "b", (const int[]){ 3, -2 }, (const float[]){ 7, 8, 9 });
    onnx_value_info(&g, 11, "x", 1, (const int[]){ -1, 2, -2 });
    onnx_value_info(&g, 12, "y", 1, (const int[]){ -1, 3, -2 });
    onnx_bytes model = onnx_model_of(&g, 13);
    onnx_text_field(&pair, 1, "author");
    onnx_text_field(&pair, 2, "nobody");
    onnx_message(&model, 14, &pair);
    return model;
}

static void test_imported(void)
{
    check_group("a file that was read");
    onnx_bytes bytes = documented(), again = { 0 };
    check(write_bytes("read.onnx", &bytes), "the file");
    cn_module *m = cn_onnx_load(cn, "read.onnx");
    if (!check(m != NULL, "%s", cn_error(cn))) return;
    check(cn_onnx_save(m, NULL, 0, "same.onnx", NULL) && read_file("same.onnx", &again), "%s", cn_error(cn));
    check(again.n == bytes.n && !memcmp(again.v, bytes.v, bytes.n), "unchanged weights: the same bytes");
    cn_no_grad_begin(cn);
    cn_assign(cn_module_get(m, "b"), cn_full(cn, CN_F32, CN_DIMS(3), 0.5));
    cn_no_grad_end(cn);
    for (int external = 0; external < 2; external++) {
        const cn_onnx_options o = { .external_data = external };
        check(cn_onnx_save(m, NULL, 0, "tuned.onnx", &o) && read_file("tuned.onnx", &again), "%s", cn_error(cn));
        check(has_text(&again, "its documentation") && has_text(&again, "unknown") && has_text(&again, "nobody"),
              "documentation, metadata and unknown fields stay");
        check(access("tuned.onnx.data", F_OK) == (external ? 0 : -1), "data in a file of its own");
        cn_module *tuned = cn_onnx_load(cn, "tuned.onnx");
        cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(4, 2)), *y = tuned ? cn_forward(tuned, x) : NULL;
        check(y && cn_get(y, CN_DIMS(3, 1)) == 7.5, "the new bias: %s", cn_error(cn));
        /* data in another file become data in this one */
        check(!tuned || cn_onnx_save(tuned, NULL, 0, "whole.onnx", NULL), "%s", cn_error(cn));
        cn_module *whole = cn_onnx_load(cn, "whole.onnx");
        check(whole && cn_get(cn_forward(whole, x), CN_DIMS(3, 1)) == 7.5, "as one file: %s", cn_error(cn));
        cn_module_free(tuned);
        cn_module_free(whole);
    }
    /* with a new layer behind it, it is a module as any other */
    cn_module *both = cn_nn_sequential(cn, m, cn_nn_linear(cn, 3, 2, NULL));
    try_example(&(example){ "imported_and_head", both, { cn_randn(cn, CN_F32, CN_DIMS(2, 2)) }, 1, 1, NULL, 0, false });
    cn_module_free(both);
    onnx_free(&bytes);
    onnx_free(&again);
}

/* ---- external data ---- */

static void test_external(void)
{
    check_group("external data");
    cn_module *m = cn_nn_linear(cn, 5, 4, NULL);
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 5));
    check(cn_onnx_save(m, &x, 1, "apart.onnx", &(cn_onnx_options){ .external_data = true }), "%s", cn_error(cn));
    struct stat st;
    check(stat("apart.onnx.data", &st) == 0 && st.st_size >= 96, "the data have a file");
    cn_module *r = cn_onnx_load(cn, "apart.onnx");
    check(r && difference(cn_forward(m, x), cn_forward(r, x)) <= 1e-6, "%s", cn_error(cn));
    cn_module_free(r);
    cn_module_free(m);
}

/* ---- names, misuse, refusals ---- */

static bool refused(bool ok, cn_code code, const char *words)
{
    const bool right = !ok && cn_error_code(cn) == code && strstr(cn_error(cn), words);
    check(right, "it says \"%s\", got: %s", words, cn_error(cn));
    cn_error_clear(cn);
    return right;
}

static cn_tensor *strange(cn_module *m, cn_tensor *x)
{
    (void)m;
    return cn_add(cn_lgamma(x), cn_lgamma(cn_erfinv(x)));
}

static void test_names(void)
{
    check_group("names and misuse");
    static const cn_module_type type = { .name = "Strange", .forward = strange };
    cn_module *m = cn_nn_linear(cn, 3, 2, NULL), *s = cn_module_new(cn, &type);
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 3));
    const char *in[] = { "pixels" }, *out[] = { "scores" }, *taken[] = { "weight" };
    cn_onnx_options o = { .input_names = in, .output_names = out, .graph_name = "classifier", .doc = "a test" };
    check(cn_onnx_save(m, &x, 1, "named.onnx", &o), "%s", cn_error(cn));
    cn_module *r = cn_onnx_load(cn, "named.onnx");
    cn_onnx_port port = { 0 };
    check(r && cn_onnx_inputs(r, &port, 1) == 1 && !strcmp(port.name, "pixels") && port.shape[0] == -1 &&
              !strcmp(port.symbols[0], "batch"),
          "the input has its name, and its batch is symbolic");
    check(r && cn_onnx_outputs(r, &port, 1) == 1 && !strcmp(port.name, "scores"), "so has the result");
    check(r && cn_module_get(r, "weight") && cn_module_get(r, "bias"), "parameters have theirs");
    cn_module_free(r);
    o = (cn_onnx_options){ .fixed_batch = true };
    check(cn_onnx_save(m, &x, 1, "named.onnx", &o) && (r = cn_onnx_load(cn, "named.onnx")) != NULL &&
              cn_onnx_inputs(r, &port, 1) == 1 && port.shape[0] == 2,
          "a fixed batch: %s", cn_error(cn));
    cn_module_free(r);
    o = (cn_onnx_options){ .input_names = taken };
    refused(cn_onnx_save(m, &x, 1, "no.onnx", &o), CN_BAD_ARGUMENT, "\"weight\" twice");
    o = (cn_onnx_options){ .opset = 12 };
    refused(cn_onnx_save(m, &x, 1, "no.onnx", &o), CN_BAD_ARGUMENT, "from 13 to 24, got 12");
    o = (cn_onnx_options){ .n_outputs = -1 };
    refused(cn_onnx_save(m, &x, 1, "no.onnx", &o), CN_BAD_ARGUMENT, "at most");
    refused(cn_onnx_save(m, &x, 1, NULL, NULL), CN_BAD_ARGUMENT, "path");
    refused(cn_onnx_save(m, NULL, 0, "no.onnx", NULL), CN_BAD_ARGUMENT, "1 or more inputs");
    refused(cn_onnx_save(m, &(cn_tensor *){ NULL }, 1, "no.onnx", NULL), CN_BAD_ARGUMENT, "inputs");
    refused(cn_onnx_save(s, &x, 1, "no.onnx", NULL), CN_UNSUPPORTED, "lgamma (2), erfinv (1)");
    refused(cn_onnx_save(m, &x, 1, "missing/no.onnx", NULL), CN_BAD_FILE, "missing/no.onnx");
    if (access("/dev/full", W_OK) == 0)
        refused(cn_onnx_save(m, &x, 1, "/dev/full", NULL), CN_BAD_FILE, "/dev/full: No space");
    refused(cn_onnx_save_graph(cn, NULL, "no.onnx", NULL), CN_BAD_ARGUMENT, "graph");
    cn_onnx_graph g = { .outputs = &x, .n_outputs = 1, .n_named = 1 };
    refused(cn_onnx_save_graph(cn, &g, "no.onnx", NULL), CN_BAD_ARGUMENT, "named tensors");
    check(access("no.onnx", F_OK) != 0, "no file is left");
    check(!cn_onnx_save(NULL, &x, 1, "no.onnx", NULL) && !cn_onnx_trace_begin(NULL), "NULL");
    cn_onnx_trace_end(cn); /* there is none */
    cn_module_free(m);
    cn_module_free(s);
}

/* ---- files stay whole ---- */

static void test_whole(void)
{
    check_group("files stay whole");
    onnx_bytes old = { 0 }, now = { 0 };
    cn_module *m = cn_nn_linear(cn, 3, 2, NULL);
    static const cn_module_type type = { .name = "Strange", .forward = strange };
    cn_module *s = cn_module_new(cn, &type);
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 3));
    check(cn_onnx_save(m, &x, 1, "kept.onnx", NULL) && read_file("kept.onnx", &old), "%s", cn_error(cn));
    check(!cn_onnx_save(s, &x, 1, "kept.onnx", NULL), "it cannot be written");
    cn_error_clear(cn);
    check(read_file("kept.onnx", &now) && now.n == old.n && !memcmp(now.v, old.v, old.n), "the old file is unchanged");
    onnx_free(&old);
    onnx_free(&now);
    cn_module_free(m);
    cn_module_free(s);
}

static int files_beside(const char *name)
{
    char command[128];
    snprintf(command, sizeof command, "ls %s.tmp-* 2>/dev/null | wc -l", name);
    FILE *f = popen(command, "r");
    int n = -1;
    if (!f || fscanf(f, "%d", &n) != 1) n = -1;
    if (f) pclose(f);
    return n;
}

/* Every allocation of writing fails once. */
static void test_memory(void)
{
    check_group("lack of memory");
    bool done = false;
    for (int64_t at = 1; at < 100000 && !done; at += at < 400 ? 1 : 7) {
        faulty f = { .fail_at = at };
        cn_ctx *ctx = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (!ctx) continue;
        cn_module *m = cn_nn_sequential(ctx, cn_nn_linear(ctx, 3, 4, NULL), cn_nn_gelu(ctx), cn_nn_flatten(ctx, 1, -1));
        cn_tensor *x = cn_ones(ctx, CN_F32, CN_DIMS(2, 3));
        const bool ok = m && x && cn_onnx_save(m, &x, 1, "memory.onnx", NULL);
        check(ok || cn_error_code(ctx) == CN_NO_MEMORY, "call %d: %s", (int)at, cn_error(ctx));
        done = ok && f.calls < at;
        cn_close(ctx);
        check(f.blocks == 0 && f.bytes == 0, "call %d: %d blocks are left", (int)at, (int)f.blocks);
    }
    check(done, "it ends");
    check(files_beside("memory.onnx") == 0, "no temporary file is left");
}

/* Every allocation of writing a file that was read fails once: the new file is complete, or the old one stays. */
static void test_memory_again(void)
{
    check_group("lack of memory, of a file that was read");
    onnx_bytes bytes = documented(), now = { 0 };
    check(write_bytes("again.onnx", &bytes), "the file");
    bool done = false;
    for (int64_t at = 1; at < 100000 && !done; at++) {
        faulty f = { .fail_at = at };
        check(write_bytes("old.onnx", &bytes), "an old file");
        cn_ctx *ctx = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (!ctx) continue;
        cn_module *m = cn_onnx_load(ctx, "again.onnx");
        cn_tensor *b = m ? cn_module_get(m, "b") : NULL;
        if (b) cn_assign(b, cn_full(ctx, CN_F32, CN_DIMS(3), 2));
        const bool ok = b && cn_onnx_save(m, NULL, 0, "old.onnx", NULL);
        check(ok || cn_error_code(ctx) == CN_NO_MEMORY, "call %d: %s", (int)at, cn_error(ctx));
        check(ok || (read_file("old.onnx", &now) && now.n == bytes.n && !memcmp(now.v, bytes.v, now.n)),
              "call %d: the old file stays", (int)at);
        done = ok && f.calls < at;
        cn_close(ctx);
        check(f.blocks == 0 && f.bytes == 0, "call %d: %d blocks are left", (int)at, (int)f.blocks);
    }
    check(done, "it ends");
    check(files_beside("old.onnx") == 0, "no temporary file is left");
    onnx_free(&bytes);
    onnx_free(&now);
}

/* ---- files of others ---- */

static cn_module *inner_model; /* of the module below */
static bool forward_inner(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    (void)m;
    return cn_forward_all(inner_model, in, n_in, out, n_out);
}

static bool trace_again(cn_module *m, const char *inputs, const char *path)
{
    static const cn_module_type type = { .name = "Outer", .forward_all = forward_inner };
    cn_module *outer = cn_module_new(cn, &type);
    inner_model = cn_module_child(outer, "model", m);
    cn_dict *d = cn_load(cn, inputs);
    cn_tensor *in[16];
    int n = 0;
    char entry[32];
    for (; n < 16 && d; n++) {
        snprintf(entry, sizeof entry, "in_%d", n);
        if (!(in[n] = cn_dict_get(d, entry))) break;
    }
    const bool ok =
        d && cn_onnx_save(outer, in, n, path, &(cn_onnx_options){ .n_outputs = cn_onnx_outputs(m, NULL, 0) });
    cn_dict_free(d);
    cn_module_free(outer);
    return ok;
}

static int write_again(const char *list)
{
    FILE *f = fopen(list, "r");
    char how[16], from[500], to[500], inputs[500];
    while (f && fscanf(f, "%15s %499s %499s %499s", how, from, to, inputs) == 4) {
        cn_scope s = cn_scope_begin(cn);
        cn_module *m = cn_onnx_load(cn, from);
        const bool traced = !strcmp(how, "traced");
        bool ok = m != NULL;
        if (ok && traced) ok = trace_again(m, inputs, to);
        else if (ok) ok = cn_onnx_save(m, NULL, 0, to, &(cn_onnx_options){ .external_data = !strcmp(how, "apart") });
        printf("%s\n", ok ? "written" : cn_error(cn));
        cn_error_clear(cn);
        if (!traced) cn_module_free(m);
        cn_scope_end(cn, s);
    }
    if (f) fclose(f);
    cn_close(cn);
    return f ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--again")) {
        cn = cn_open(&(cn_desc){ .seed = 1 });
        return cn ? write_again(argv[2]) : 1;
    }
    folder = argc > 1 ? argv[1] : NULL;
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .seed = 1 });
    if (!check(cn != NULL, "a context")) return finish();
    test_layers(0);
    test_layers(13);
    test_layers(23);
    for (int opset = 13; opset <= 24; opset++) test_models(opset);
    test_batches();
    test_imported();
    test_external();
    test_names();
    test_whole();
    if (!folder) test_memory();
    if (!folder) test_memory_again();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}

/* ONNX files as modules: names, shapes, training, bodies and functions, files beside the model; files that were made to
   do harm. test_onnx_cases.c runs the suite of the package `onnx`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/onnx_write.h"
#include "support/scratch.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }
#define SINGLE \
    (const int[]) { -2 }

static cn_ctx *cn;

static bool said(cn_code code, const char *message)
{
    const bool ok = cn_error_code(cn) == code && strstr(cn_error(cn), message);
    if (!ok) printf("       %s: %s\n", cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
    return ok;
}

static cn_module *load(onnx_bytes *model)
{
    cn_module *m = cn_onnx_load_memory(cn, model->v, model->n);
    onnx_free(model);
    return m;
}

static bool is(cn_tensor *t, const double *want, int64_t n, double tolerance)
{
    double got[64];
    if (!t || cn_numel(t) != n || n > 64 || !cn_read_f64(t, got, n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance)) return false;
    return true;
}

/* ---- a layer: y = relu(x · wᵀ + b) ---- */

static const float w_values[] = { 1, -1, 0.5f, 2, 0, -0.5f }, b_values[] = { 0.25f, -0.5f };

static onnx_bytes layer_model(void)
{
    onnx_bytes g = { 0 }, attributes = { 0 };
    onnx_int_attribute(&attributes, "transB", 1);
    onnx_node_text(&g, 1, "Gemm x fc.weight fc.bias -> h", &attributes);
    onnx_node_text(&g, 1, "Relu h -> y", NULL);
    onnx_floats_tensor(&g, 5, "fc.weight", SIZES(2, 3), w_values);
    onnx_floats_tensor(&g, 5, "fc.bias", SIZES(2), b_values);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, 3));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, 2));
    return onnx_model_of(&g, 13);
}

static void test_layer(void)
{
    check_group("a layer");
    onnx_bytes bytes = layer_model();
    cn_module *m = load(&bytes);
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    check(!cn_module_training(m), "training mode is off");
    cn_named_list named = cn_module_named(m);
    check(named.n == 2 && !strcmp(named.v[0].name, "fc.weight") && !named.v[0].buffer, "parameters have their names");
    check(cn_module_get(m, "fc.bias") != NULL && cn_module_count(m) == 8, "a name with a dot is found");
    const float x_values[] = { 1, 2, 3, -1, 0, 1 };
    const double want[] = { 0.75, 0, 0, 0 };
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 3), x_values);
    check(is(cn_forward(m, x), want, 4, 1e-6), "forward");
    check(is(cn_forward(m, cn_narrow(x, 0, 0, 1)), want, 2, 1e-6), "another batch size");
    cn_onnx_port port;
    check(cn_onnx_inputs(m, &port, 1) == 1 && !strcmp(port.name, "x") && port.ndim == 2 && port.shape[0] == -1 &&
              !strcmp(port.symbols[0], "n") && port.shape[1] == 3 && !strcmp(port.type, "float"),
          "the input is described");
    check(!strcmp(cn_onnx_reads(m, "fc.weight"), "x") && !cn_onnx_reads(m, "nobody"), "what a layer reads");
    check(cn_onnx_outputs(m, &port, 1) == 1 && !strcmp(port.name, "y"), "the result is described");
    cn_module_free(m);
}

static void test_training(void)
{
    check_group("training");
    onnx_bytes bytes = layer_model();
    cn_module *m = load(&bytes);
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(32, 3))), *target = cn_keep(cn_abs(cn_narrow(x, 1, 0, 2)));
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adam_desc){ .lr = 0.05 });
    double first = 0, last = 0;
    for (int i = 0; i < 60; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_optim_zero_grad(opt);
        cn_tensor *loss = cn_mean(cn_square(cn_sub(cn_forward(m, x), target)), CN_ALL, false);
        cn_backward(loss);
        cn_step(opt);
        last = cn_item(loss);
        if (!i) first = last;
        cn_scope_end(cn, s);
    }
    check(!cn_failed(cn) && last < 0.7 * first, "the loss falls from %g to %g: %s", first, last, cn_error(cn));
    cn_dict *d = cn_dict_new(cn);
    check(cn_module_save(m, d, "") && cn_dict_get(d, "fc.weight"), "its state is saved");
    bytes = layer_model();
    cn_module *other = load(&bytes);
    check(cn_module_load(other, d, NULL), "and loaded: %s", cn_error(cn));
    check(cn_allclose(cn_forward(m, x), cn_forward(other, x), 0, 0, false), "both give the same");
    cn_release(x);
    cn_release(target);
    cn_module_free(other);
    cn_module_free(m);
}

static void test_given_weights(void)
{
    check_group("weights that are given");
    onnx_bytes bytes = layer_model();
    cn_module *m = cn_onnx_load_with(cn, NULL, &(cn_onnx_load_desc){ bytes.v, bytes.n, .no_weights = true });
    onnx_free(&bytes);
    if (!check(m && cn_module_named(m).n == 0, "it loads without weights: %s", cn_error(cn))) return;
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(2, 3));
    cn_tensor *w[] = { cn_full(cn, CN_F32, CN_DIMS(4, 3), 0.5), cn_ones(cn, CN_F32, CN_DIMS(4)) };
    cn_onnx_value in = { .tensor = x }, out[] = { { .name = "y" }, { .name = "h" } };
    check(cn_onnx_run_with(m, w, 2, &in, 1, out, 1), "it runs: %s", cn_error(cn));
    check(cn_size(out[0].tensor, 1) == 4 && cn_get(out[0].tensor, CN_DIMS(1, 3)) == 2.5, "a last layer of other sizes");
    check(cn_onnx_run_with(m, w, 2, &in, 1, out, 2) && cn_size(out[1].tensor, 1) == 4, "a value inside the graph");
    check(!cn_onnx_run(m, &in, 1, out, 1) && strstr(cn_error(cn), "without its 2 weights"), "none: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_onnx_run_with(m, w, 1, &in, 1, out, 1) && strstr(cn_error(cn), "2 weights"), "one: %s", cn_error(cn));
    cn_error_clear(cn);
    out[0].name = "nobody";
    check(!cn_onnx_run_with(m, w, 2, &in, 1, out, 1) && cn_error_code(cn) == CN_NOT_FOUND, "a name: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
}

/* ---- shapes that are computed: y = reshape(x, (shape(x)[0], -1)) ---- */

static void test_shapes(void)
{
    check_group("shapes");
    onnx_bytes g = { 0 }, attributes = { 0 };
    onnx_node_text(&g, 1, "Shape x -> s", NULL);
    onnx_node_text(&g, 1, "Gather s zero -> n", NULL);
    onnx_node_text(&g, 1, "Unsqueeze n zero1 -> n1", NULL);
    onnx_int_attribute(&attributes, "axis", 0);
    onnx_node_text(&g, 1, "Concat n1 rest -> to", &attributes);
    onnx_node_text(&g, 1, "Reshape x to -> y", NULL);
    onnx_wholes_tensor(&g, 5, "zero", SINGLE, (const int64_t[]){ 0 });
    onnx_wholes_tensor(&g, 5, "zero1", SIZES(1), (const int64_t[]){ 0 });
    onnx_wholes_tensor(&g, 5, "rest", SIZES(1), (const int64_t[]){ -1 });
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, -1, -1));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, -1));
    onnx_bytes bytes = onnx_model_of(&g, 13);
    cn_module *m = load(&bytes);
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    check(cn_parameters(m).n == 0, "shapes are no parameters");
    for (int i = 0; i < 6; i++) {
        const int64_t n = 2 + i / 2 % 2, k = 3 + i % 2;
        cn_tensor *y = cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(n, k, 4)));
        check(y && cn_ndim(y) == 2 && cn_size(y, 0) == n && cn_size(y, 1) == 4 * k, "run %d: %s", i, cn_error(cn));
    }
    cn_module_free(m);
}

/* A batch of 1 in the file: x (1, 4) → (1, 2, 2). */
static void test_batch(void)
{
    check_group("a batch in a shape");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Reshape x to -> y", NULL);
    onnx_wholes_tensor(&g, 5, "to", SIZES(3), (const int64_t[]){ 1, -1, 2 });
    onnx_value_info(&g, 11, "x", 1, SIZES(1, 4));
    onnx_value_info(&g, 12, "y", 1, SIZES(1, 2, 2));
    onnx_bytes bytes = onnx_model_of(&g, 13);
    cn_module *m = load(&bytes);
    for (int64_t n = 1; m && n < 4; n++) {
        cn_tensor *y = cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(n, 4)));
        check(y && cn_size(y, 0) == n && cn_size(y, 1) == 2, "%d samples: %s", (int)n, cn_error(cn));
    }
    cn_module_free(m);
}

/* ---- Loop: y = x · 2^trips, and all that x was ---- */

static void test_loop(void)
{
    check_group("Loop");
    onnx_bytes body = { 0 }, g = { 0 }, a = { 0 }, attributes = { 0 };
    onnx_node_text(&body, 1, "Identity cond -> more", NULL);
    onnx_node_text(&body, 1, "Mul v two -> w", NULL); /* two is of the graph around it */
    onnx_node_text(&body, 1, "Identity w -> row", NULL);
    onnx_value_info(&body, 11, "i", 7, SINGLE);
    onnx_value_info(&body, 11, "cond", 9, SINGLE);
    onnx_value_info(&body, 11, "v", 1, SIZES(2));
    onnx_value_info(&body, 12, "more", 9, SINGLE);
    onnx_value_info(&body, 12, "w", 1, SIZES(2));
    onnx_value_info(&body, 12, "row", 1, SIZES(2));
    onnx_text_field(&a, 1, "body");
    onnx_message(&a, 6, &body);
    onnx_number(&a, 20, 5);
    onnx_message(&attributes, 5, &a);
    onnx_node_text(&g, 1, "Loop trips _ x -> y rows", &attributes);
    onnx_floats_tensor(&g, 5, "two", SINGLE, (const float[]){ 2 });
    onnx_value_info(&g, 11, "trips", 7, SINGLE);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    onnx_value_info(&g, 12, "rows", 1, SIZES(-1, 2));
    onnx_bytes bytes = onnx_model_of(&g, 13);
    cn_module *m = load(&bytes);
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    const int64_t trips = 3;
    cn_onnx_value in[] = { { .name = "x", .tensor = cn_from(cn, CN_F32, CN_DIMS(2), (const float[]){ 1, -1 }) },
                           { .name = "trips", .tensor = cn_from(cn, CN_I64, CN_SCALAR, &trips) } };
    cn_onnx_value out[] = { { .name = "rows" }, { .name = "y" } };
    check(cn_onnx_run(m, in, 2, out, 2), "it runs: %s", cn_error(cn));
    check(is(out[1].tensor, (const double[]){ 8, -8 }, 2, 0), "what is carried");
    check(is(out[0].tensor, (const double[]){ 2, -2, 4, -4, 8, -8 }, 6, 0), "what is collected");
    in[1].tensor = cn_from(cn, CN_I64, CN_SCALAR, &(const int64_t){ 0 });
    check(cn_onnx_run(m, in, 2, out, 2) && cn_size(out[0].tensor, 0) == 0, "no trip: %s", cn_error(cn));
    cn_module_free(m);
}

/* ---- a function of the file, with an attribute of its call: y = leaky(x, alpha) ---- */

static void test_function(void)
{
    check_group("functions");
    onnx_bytes f = { 0 }, ref = { 0 }, node = { 0 }, set = { 0 }, g = { 0 }, attributes = { 0 }, alpha = { 0 };
    onnx_text_field(&f, 1, "Slope");
    onnx_text_field(&f, 4, "a");
    onnx_text_field(&f, 5, "b");
    onnx_text_field(&f, 6, "slope");
    onnx_text_field(&ref, 1, "alpha");
    onnx_text_field(&ref, 21, "slope");
    onnx_number(&ref, 20, 1);
    onnx_message(&node, 5, &ref);
    onnx_node_text(&f, 7, "LeakyRelu a -> b", &node);
    onnx_number(&set, 2, 16);
    onnx_message(&f, 9, &set);
    onnx_text_field(&f, 10, "mine");
    onnx_text_field(&alpha, 1, "slope");
    onnx_float(&alpha, 2, 0.5f);
    onnx_number(&alpha, 20, 1);
    onnx_message(&attributes, 5, &alpha);
    onnx_node_text(&g, 1, "mine.Slope x -> y", &attributes);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    onnx_bytes bytes = onnx_model_of(&g, 16);
    onnx_message(&bytes, 25, &f);
    cn_module *m = load(&bytes);
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2), (const float[]){ 2, -2 });
    check(is(cn_forward(m, x), (const double[]){ 2, -1 }, 2, 0), "it is called with its attribute: %s", cn_error(cn));
    cn_module_free(m);
}

/* ---- data beside the model ---- */

static onnx_bytes external_model(const char *location, const char *offset)
{
    onnx_bytes g = { 0 }, t = { 0 }, place = { 0 }, at = { 0 };
    onnx_node_text(&g, 1, "Add x w -> y", NULL);
    onnx_number(&t, 1, 4);
    onnx_number(&t, 2, 1);
    onnx_text_field(&t, 8, "w");
    onnx_text_field(&place, 1, "location");
    onnx_text_field(&place, 2, location);
    onnx_message(&t, 13, &place);
    onnx_text_field(&at, 1, "offset");
    onnx_text_field(&at, 2, offset);
    onnx_message(&t, 13, &at);
    onnx_number(&t, 14, 1);
    onnx_message(&g, 5, &t);
    onnx_value_info(&g, 11, "x", 1, SIZES(4));
    onnx_value_info(&g, 12, "y", 1, SIZES(4));
    return onnx_model_of(&g, 13);
}

static bool write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(data, 1, n, f) == n;
    if (f) fclose(f);
    return ok;
}

static cn_module *load_external(const char *location, const char *offset)
{
    onnx_bytes bytes = external_model(location, offset);
    check(write_file("model.onnx", bytes.v, bytes.n), "the model is written");
    onnx_free(&bytes);
    return cn_onnx_load(cn, "model.onnx");
}

static void test_external(void)
{
    check_group("data beside the model");
    const float data[] = { 9, 9, 1, 2, 3, 4 };
    check(write_file("weights.bin", data, sizeof data), "the data are written");
    cn_module *m = load_external("weights.bin", "8");
    check(m && is(cn_forward(m, cn_zeros(cn, CN_F32, CN_DIMS(4))), (const double[]){ 1, 2, 3, 4 }, 4, 0),
          "they are used: %s", cn_error(cn));
    cn_module_free(m);
    check(!load_external("weights.bin", "12") && said(CN_BAD_FILE, "needs 16 bytes"), "beyond the end");
    check(!load_external("weights.bin", "18446744073709551616") && said(CN_BAD_FILE, "must be a number"),
          "no such number");
    check(!load_external("../weights.bin", "8") && said(CN_BAD_FILE, "model's folder"),
          "a path that leaves the folder");
    check(!load_external("a/../../weights.bin", "8") && said(CN_BAD_FILE, "model's folder"), "the same, hidden");
    check(!load_external("/etc/hostname", "0") && said(CN_BAD_FILE, "model's folder"), "an absolute path");
    check(!load_external("", "0") && said(CN_BAD_FILE, "model's folder"), "no path");
    check(!load_external(".", "0") && said(CN_BAD_FILE, "no file"), "a folder");
    check(!load_external("none.bin", "0") && said(CN_BAD_FILE, "none.bin"), "no such file");
    if (!symlink("/etc/passwd", "link.bin"))
        check(!load_external("link.bin", "0") && said(CN_BAD_FILE, "a link leads out"), "a link out of the folder");
    onnx_bytes bytes = external_model("weights.bin", "8");
    check(!load(&bytes) && said(CN_BAD_FILE, "model's folder"), "a model from memory has no folder");
}

/* ---- errors ---- */

static void test_missing(void)
{
    check_group("operators that are missing");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Foo x -> a", NULL);
    onnx_node_text(&g, 1, "Relu a -> b", NULL);
    onnx_node_text(&g, 1, "mine.Bar b -> c", NULL);
    onnx_node_text(&g, 1, "Foo c -> y", NULL);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    onnx_bytes bytes = onnx_model_of(&g, 13);
    check(!load(&bytes) && said(CN_UNSUPPORTED, "3 nodes need operators that are missing: Foo (2), mine.Bar (1)"),
          "all are named");
}

static void test_wrong_graphs(void)
{
    check_group("graphs that are wrong");
    const char *nodes[] = { "Relu z -> y", "Relu x -> x", "Relu x -> z" };
    const char *messages[] = { "\"z\" is used but not defined", "\"x\" is defined twice",
                               "\"y\" is used but not defined" };
    for (int i = 0; i < 3; i++) {
        onnx_bytes g = { 0 };
        onnx_node_text(&g, 1, nodes[i], NULL);
        onnx_value_info(&g, 11, "x", 1, SIZES(2));
        onnx_value_info(&g, 12, "y", 1, SIZES(2));
        onnx_bytes bytes = onnx_model_of(&g, 13);
        check(!load(&bytes) && said(CN_BAD_FILE, messages[i]), "%s", nodes[i]);
    }
    check(!cn_onnx_load_memory(cn, "", 0) && said(CN_BAD_FILE, "no graph"), "an empty file");
    check(!cn_onnx_load(cn, "/no/such/file.onnx") && said(CN_BAD_FILE, "no/such"), "no file");
}

static void test_run_errors(void)
{
    check_group("errors of a run");
    onnx_bytes bytes = layer_model();
    cn_module *m = load(&bytes);
    cn_onnx_value in = { .name = "x", .tensor = cn_ones(cn, CN_F32, CN_DIMS(1, 3)) }, out = { .name = "y" };
    check(!cn_onnx_run(m, NULL, 0, &out, 1) && said(CN_BAD_ARGUMENT, "input \"x\" is missing"), "no input");
    in.name = "z";
    check(!cn_onnx_run(m, &in, 1, &out, 1) && said(CN_NOT_FOUND, "z"), "another name");
    in = (cn_onnx_value){ .tensor = cn_ones(cn, CN_I64, CN_DIMS(1, 3)) };
    check(!cn_onnx_run(m, &in, 1, &out, 1) && said(CN_BAD_DTYPE, "must be of type f32, got i64"), "another type");
    in.tensor = cn_ones(cn, CN_F32, CN_DIMS(1, 4));
    check(!cn_onnx_run(m, &in, 1, &out, 1) && said(CN_BAD_SHAPE, "ONNX node"), "another shape");
    in.tensor = cn_ones(cn, CN_F32, CN_DIMS(1, 3));
    out.name = "no";
    check(!cn_onnx_run(m, &in, 1, &out, 1) && said(CN_NOT_FOUND, "no"), "another result");
    cn_module *other = cn_nn_linear(cn, 2, 2, NULL);
    check(!cn_onnx_run(other, &in, 1, &out, 1) && said(CN_BAD_ARGUMENT, "must come from cn_onnx_load"),
          "another module");
    check(!cn_onnx_inputs(other, NULL, 0) && said(CN_BAD_ARGUMENT, "must come from cn_onnx_load"),
          "another module's inputs");
    cn_module_free(m);
    cn_module_free(other);
}

/* ---- files that were made to do harm ---- */

static void test_nested(void)
{
    check_group("nested graphs");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Identity x -> y", NULL);
    for (int i = 0; i < 10000; i++) {
        onnx_bytes a = { 0 }, attributes = { 0 }, outer = { 0 };
        onnx_text_field(&a, 1, "then_branch");
        onnx_message(&a, 6, &g);
        onnx_message(&attributes, 5, &a);
        onnx_node_text(&outer, 1, "If x -> y", &attributes);
        g = outer;
    }
    onnx_bytes bytes = onnx_model_of(&g, 13);
    check(!load(&bytes) && said(CN_BAD_FILE, "nest deeper"), "10,000 of them");
}

/* Loads and, if that worked, runs: an error or a result. */
static void try_bytes(const unsigned char *v, size_t n)
{
    cn_scope s = cn_scope_begin(cn);
    cn_module *m = cn_onnx_load_memory(cn, v, n);
    check((m != NULL) == !cn_failed(cn), "a module or an error");
    cn_error_clear(cn);
    cn_tensor *y = m ? cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(2, 3))) : NULL;
    if (m) check((y != NULL) == !cn_failed(cn), "a result or an error");
    if (y) cn_eval(y);
    cn_error_clear(cn);
    cn_module_free(m);
    cn_scope_end(cn, s);
}

static void test_damaged(void)
{
    check_group("damaged files");
    onnx_bytes bytes = layer_model();
    for (size_t n = 0; n < bytes.n; n++) try_bytes(bytes.v, n);
    for (size_t i = 0; i < bytes.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes.v[i] ^= (unsigned char)(1 << bit);
            try_bytes(bytes.v, bytes.n);
            bytes.v[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t i = 0; i < bytes.n; i++) {
        const unsigned char was = bytes.v[i];
        for (int k = 0; k < 2; k++) {
            bytes.v[i] = k ? 0xff : 0;
            try_bytes(bytes.v, bytes.n);
        }
        bytes.v[i] = was;
    }
    onnx_free(&bytes);
}

/* Every allocation of loading and running fails once. */
static void test_memory(void)
{
    check_group("lack of memory");
    onnx_bytes bytes = layer_model();
    bool done = false;
    for (int64_t at = 1; at < 100000 && !done; at++) {
        faulty f = { .fail_at = at };
        cn_ctx *ctx = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (!ctx) continue;
        cn_module *m = cn_onnx_load_memory(ctx, bytes.v, bytes.n);
        cn_tensor *y = m ? cn_forward(m, cn_ones(ctx, CN_F32, CN_DIMS(2, 3))) : NULL;
        const bool ok = y && cn_eval(y);
        check(ok || cn_error_code(ctx) == CN_NO_MEMORY, "call %d: %s", (int)at, cn_error(ctx));
        done = ok && f.calls < at;
        cn_close(ctx);
        check(f.blocks == 0 && f.bytes == 0, "call %d: %d blocks are left", (int)at, (int)f.blocks);
    }
    check(done, "it ends");
    onnx_free(&bytes);
}

static void test_print(void)
{
    check_group("printing");
    char text[2000];
    const char *path = "layer.onnx";
    onnx_bytes bytes = layer_model();
    check(write_file(path, bytes.v, bytes.n), "the model is written");
    onnx_free(&bytes);
    const size_t n = cn_onnx_print(cn, path, text, sizeof text);
    check(n == strlen(text) && strstr(text, "x: float [n,3]") && strstr(text, "Gemm (1)") && strstr(text, "8 numbers"),
          "what is in it: %s", text);
    check(cn_onnx_print(cn, path, NULL, 0) == n, "the length alone");
    check(cn_onnx_print(cn, "/no/such.onnx", text, sizeof text) == 0 && said(CN_BAD_FILE, "such.onnx"), "no file");
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    if (!check(cn != NULL, "a context")) return finish();
    test_layer();
    test_training();
    test_given_weights();
    test_shapes();
    test_batch();
    test_loop();
    test_function();
    test_external();
    test_missing();
    test_wrong_graphs();
    test_run_errors();
    test_nested();
    test_damaged();
    test_memory();
    test_print();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}

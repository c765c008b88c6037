/* cairn convert: a model file of Cairn or GPT-2 becomes an ONNX file, and an ONNX file becomes a model file again.

   The texts of a model file tell its kind, its options and its tokenizer. They travel as metadata of the ONNX file, under
   names that begin with "cairn/". */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define TEXTS   "cairn/"
#define NUMBERS "number/" /* a whole number, which no forward reads: it is a tensor of the model file */

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end);
}

/* ---- to ONNX ---- */

/* A model, and what its file says about it. */
typedef struct subject {
    cn_ctx *cn;
    const char *path;
    cn_dict *file, *texts; /* texts: the metadata to write */
    cn_module *model;
    cn_dtype dtype;             /* of the input */
    cn_dims shape;              /* of an example of it */
    const char *input, *output; /* their names */
} subject;

/* The states of a training have a slash in their names; so have options and classes, which belong to the model. */
static bool travels(const char *name)
{
    return !strchr(name, '/') || !strncmp(name, "option/", 7) || !strncmp(name, "class/", 6);
}

static bool add_text(subject *c, const char *prefix, const char *name, const char *value)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%s%s%.250s", TEXTS, prefix, name);
    return cn_dict_set_text(c->texts, whole, value);
}

static bool add_texts(subject *c)
{
    bool ok = true;
    for (int64_t i = 0; i < cn_dict_texts(c->file) && ok; i++) {
        const char *name = cn_dict_text_name(c->file, i);
        if (travels(name)) ok = add_text(c, "", name, cn_dict_text(c->file, name));
    }
    const cn_named_list named = cn_module_named(c->model);
    for (int i = 0; i < named.n && ok; i++) {
        if (cn_type(named.v[i].tensor) != CN_I64 || cn_ndim(named.v[i].tensor)) continue;
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, cn_item_i64(named.v[i].tensor));
        ok = add_text(c, NUMBERS, named.v[i].name, number);
    }
    return ok;
}

/* A tokenizer.json beside the model travels as well. */
static bool add_tokenizer(subject *c)
{
    if (cn_dict_text(c->file, "tokenizer.json")) return true;
    char *folder = folder_of(c->path), *path = join_path(folder, "tokenizer.json");
    text t = { 0 };
    bool ok = !is_file(path) || (read_file(path, &t) == DONE && add_text(c, "", "tokenizer.json", t.bytes));
    free(folder), free(path), free(t.bytes);
    return ok;
}

static int open_text(subject *c, const settings *s)
{
    const int code = open_gpt(c->cn, s, c->path, c->file, &c->model);
    if (code != DONE) return code;
    const cn_gpt_desc *config = cn_gpt_config(c->model);
    c->dtype = CN_I64;
    c->shape = CN_DIMS(2, config->context < 5 ? config->context : 5);
    c->input = "ids";
    c->output = "logits";
    char heads[32];
    snprintf(heads, sizeof heads, "%" PRId64, config->heads);
    const bool ok = add_text(c, "", "model", "gpt") && add_text(c, "", "heads", heads) && add_tokenizer(c);
    return ok ? DONE : fail_in(c->cn);
}

static int open_table(subject *c)
{
    settings *trained = settings_in(c->file, "train mlp");
    int64_t inputs = 0;
    c->model = trained ? mlp_in(c->cn, c->file, trained) : NULL;
    c->output = trained && flag_of(trained, "classes") ? "logits" : "value";
    c->input = "row";
    if (c->model && cn_dict_whole(c->file, "inputs", &inputs)) c->shape = CN_DIMS(2, inputs);
    if (trained) free_settings(trained);
    free(trained);
    return c->model ? DONE : FAILED;
}

static int open_images(subject *c)
{
    settings *trained = settings_in(c->file, "train cnn");
    int64_t channels = 0, height = 0, width = 0;
    c->model = trained ? cnn_in(c->cn, c->file, trained) : NULL;
    c->input = "image";
    c->output = "logits";
    if (c->model && cn_dict_whole(c->file, "channels", &channels) && cn_dict_whole(c->file, "height", &height) &&
        cn_dict_whole(c->file, "width", &width))
        c->shape = CN_DIMS(2, channels, height, width);
    if (trained) free_settings(trained);
    free(trained);
    return c->model ? DONE : FAILED;
}

static int open_subject(subject *c, const settings *s)
{
    const char *kind = model_kind(c->file);
    if (!kind) return fail("%s: the file does not name the kind of its model (gpt, mlp or cnn)", c->path);
    if (!strcmp(kind, "gpt")) return open_text(c, s);
    if (!strcmp(kind, "mlp")) return open_table(c);
    if (!strcmp(kind, "cnn")) return open_images(c);
    return fail("%s: the kind of the model must be gpt, mlp or cnn, got '%.20s'", c->path, kind);
}

/* The batch may vary; of a text, also the time. Two traces tell which sizes of the graph follow. */
static bool write_model(const subject *c, int opset, const char *out)
{
    static const char *const symbols[] = { "batch", "time" };
    const bool is_text = c->dtype == CN_I64 && c->shape.v[1] >= 5;
    cn_dims more = c->shape;
    more.v[0] += 3;
    if (is_text) more.v[1] -= 2; /* the context may be no longer */
    cn_tensor *x[2] = { cn_zeros(c->cn, c->dtype, c->shape), cn_zeros(c->cn, c->dtype, more) }, *y[2];
    if (!x[0] || !x[1] || !cn_eval(x[0]) || !cn_eval(x[1]) || !cn_onnx_trace_begin(c->cn)) return false;
    const cn_named_list named = cn_module_named(c->model);
    const cn_onnx_options options = { .opset = opset,
                                      .input_names = &c->input,
                                      .output_names = &c->output,
                                      .texts = c->texts,
                                      .symbols = symbols,
                                      .n_symbols = 2 };
    for (int i = 0; i < 2; i++) y[i] = cn_forward(c->model, x[i]);
    const cn_onnx_graph graph = { .inputs = &x[0],
                                  .n_inputs = 1,
                                  .outputs = &y[0],
                                  .n_outputs = 1,
                                  .other_inputs = &x[1],
                                  .other_outputs = &y[1],
                                  .named = named.v,
                                  .n_named = named.n };
    const bool ok = y[0] && y[1] && cn_onnx_save_graph(c->cn, &graph, out, &options);
    cn_onnx_trace_end(c->cn);
    return ok;
}

static int to_onnx(cn_ctx *cn, const settings *s, const char *path, const char *out)
{
    subject c = { .cn = cn, .path = path, .file = cn_load(cn, path), .texts = cn_dict_new(cn), .dtype = CN_F32 };
    int code = c.file && c.texts ? open_subject(&c, s) : fail_in(cn);
    if (code == DONE && !add_texts(&c)) code = fail_in(cn);
    if (code == DONE) cn_module_train(c.model, false);
    if (code == DONE && !write_model(&c, (int)whole_of(s, "opset"), out)) code = fail_in(cn);
    return code;
}

/* ---- from ONNX ---- */

/* The texts of the model file. Of another program's file, its metadata as they are. */
static bool take_texts(cn_ctx *cn, const cn_dict *metadata, cn_dict *to)
{
    bool ok = true;
    for (int64_t i = 0; i < cn_dict_texts(metadata) && ok; i++) {
        const char *name = cn_dict_text_name(metadata, i), *value = cn_dict_text(metadata, name);
        const bool own = !strncmp(name, TEXTS, strlen(TEXTS));
        const char *rest = own ? name + strlen(TEXTS) : name;
        if (!own || strncmp(rest, NUMBERS, strlen(NUMBERS))) {
            ok = cn_dict_set_text(to, rest, value);
            continue;
        }
        const int64_t number = strtoll(value, NULL, 10);
        cn_tensor *t = cn_from(cn, CN_I64, CN_SCALAR, &number);
        rest += strlen(NUMBERS);
        ok = cn_dict_get(to, rest) || cn_dict_set(to, rest, t);
    }
    return ok;
}

static int from_onnx(cn_ctx *cn, const char *path, const char *out)
{
    cn_module *m = cn_onnx_load(cn, path);
    cn_dict *metadata = cn_dict_new(cn), *d = cn_dict_new(cn);
    const bool ok = m && metadata && d && cn_module_save(m, d, "") && cn_onnx_texts(m, metadata) &&
                    take_texts(cn, metadata, d) && cn_save(d, out);
    return ok ? DONE : fail_in(cn);
}

int convert(settings *s)
{
    const char *out = s->second;
    char *path = find_model(s->argument);
    if (!path) return FAILED;
    const bool in_onnx = ends_in(path, ".onnx"), out_onnx = ends_in(out, ".onnx");
    const bool out_tensors = ends_in(out, ".safetensors") || ends_in(out, ".npz");
    int code = DONE;
    if (in_onnx == out_onnx || (!out_onnx && !out_tensors))
        code = usage("one of the two files must be an .onnx file, and OUT .onnx, .safetensors or .npz; got %s and %s",
                     path, out);
    if (code == DONE) code = may_write(s, out, false);
    cn_ctx *cn = code == DONE ? cn_open(&(cn_desc){ .device = "cpu", .threads = 1 }) : NULL;
    if (code == DONE && !cn) code = fail("out of memory");
    if (code == DONE) {
        cn_no_grad_begin(cn);
        code = out_onnx ? to_onnx(cn, s, path, out) : from_onnx(cn, path, out);
    }
    if (code == DONE && !flag_of(s, "quiet")) printf("%s: written from %s\n", out, path);
    cn_close(cn);
    free(path);
    return code;
}

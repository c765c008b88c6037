/* cairn run: runs an ONNX model on arrays of NumPy. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST = 64 };

/* "NAME=FILE": the name, or NULL if there is none, and the file. The name is freed by the caller. */
static const char *file_of(const char *word, char **name)
{
    const char *equals = strchr(word, '=');
    *name = equals ? copy_text(word) : NULL;
    if (*name) (*name)[equals - word] = 0;
    return equals ? equals + 1 : word;
}

static bool read_inputs(cn_ctx *cn, const settings *s, cn_onnx_value *in, char **names, int *n)
{
    char **words;
    *n = items_of(s, "input", &words);
    if (*n > MOST) return fail("at most %d inputs are allowed, got %d", MOST, *n) == DONE;
    for (int i = 0; i < *n; i++) {
        const char *path = file_of(words[i], &names[i]);
        cn_dict *d = cn_load(cn, path);
        if (!d) return fail_in(cn) == DONE;
        if (cn_dict_count(d) != 1)
            return fail("%s: it must have one array, got %d", path, (int)cn_dict_count(d)) == DONE;
        in[i] = (cn_onnx_value){ .name = names[i], .tensor = cn_dict_at(d, 0) };
    }
    return true;
}

static int write_result(cn_ctx *cn, const cn_onnx_value *result, const char *path)
{
    if (!result->tensor) return fail("%s: the result is a sequence, which cannot be written", path);
    cn_dict *d = cn_dict_new(cn);
    if (!cn_dict_set(d, "arr_0", result->tensor) || !cn_save(d, path)) return fail_in(cn);
    return DONE;
}

static void show_result(const char *name, cn_tensor *t)
{
    char text[2000];
    print_clean(stdout, name, strlen(name)); /* a name of the file may hold anything */
    printf(": %s [", t ? cn_dtype_name(cn_type(t)) : "a sequence");
    for (int i = 0; t && i < cn_ndim(t); i++) printf(i ? ",%" PRId64 : "%" PRId64, cn_size(t, i));
    printf("]\n");
    if (!t) return;
    cn_print(t, text, sizeof text);
    printf("%s\n", text);
}

static int run_on(cn_ctx *cn, const settings *s, cn_module *m, const cn_onnx_value *in, int n_in, char **names)
{
    char **words;
    const int n_out = items_of(s, "output", &words);
    cn_onnx_port ports[MOST];
    cn_onnx_value out[MOST] = { 0 };
    const int all = cn_onnx_outputs(m, ports, MOST);
    if (n_out > MOST || all > MOST) return fail("at most %d results are allowed", MOST);
    const char *paths[MOST];
    for (int i = 0; i < n_out; i++) {
        paths[i] = file_of(words[i], &names[i]);
        out[i].name = names[i];
    }
    if (!cn_onnx_run(m, in, n_in, out, n_out ? n_out : all)) return fail_in(cn);
    int code = DONE;
    for (int i = 0; i < n_out && code == DONE; i++) code = write_result(cn, &out[i], paths[i]);
    for (int i = 0; i < all && !n_out; i++) show_result(ports[i].name, out[i].tensor);
    return cn_failed(cn) ? fail_in(cn) : code;
}

int run_model(settings *s)
{
    char *in_names[MOST] = { NULL }, *out_names[MOST] = { NULL };
    cn_onnx_value in[MOST];
    int n_in, code = FAILED;
    cn_ctx *cn = open_context(s);
    if (!cn) return FAILED;
    cn_no_grad_begin(cn);
    cn_module *m = cn_onnx_load(cn, s->argument);
    if (!m) code = fail_in(cn);
    else if (read_inputs(cn, s, in, in_names, &n_in)) code = run_on(cn, s, m, in, n_in, out_names);
    for (int i = 0; i < MOST; i++) free(in_names[i]), free(out_names[i]);
    cn_close(cn);
    return code;
}

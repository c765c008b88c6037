/* cairn info: lists the content of a file. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static int show_tokenizer(cn_ctx *cn, const char *path)
{
    static const char *const kinds[] = { "bytes", "characters", "byte pairs" };
    cn_tokenizer *t = cn_tokenizer_load(cn, path);
    if (!t) return fail_in(cn);
    const int64_t n = cn_token_count(t);
    int64_t special = 0;
    printf("tokenizer of %s, %" PRId64 " tokens\n", kinds[cn_tokenizer_kind_of(t)], n);
    for (int32_t i = 0; i < n; i++) special += cn_token_is_special(t, i);
    if (special) printf("special:");
    for (int32_t i = 0; special && i < n; i++) {
        size_t length;
        const char *text = cn_token_is_special(t, i) ? cn_token_text(t, i, &length) : NULL;
        if (!text) continue;
        printf(" %d '", (int)i);
        print_clean(stdout, text, length);
        putchar('\'');
    }
    if (special) putchar('\n');
    printf("the last ones:");
    for (int32_t i = n > 12 ? (int32_t)n - 12 : 0; i < n; i++) {
        size_t length;
        const char *text = cn_token_text(t, i, &length);
        if (!text) continue;
        printf(" '");
        for (size_t k = 0; k < length; k++)
            if (text[k] == '\n') printf("\\n");
            else if (length == 1 && (unsigned char)text[k] > 127) printf("\\x%02x", (unsigned char)text[k]);
            else print_clean(stdout, text + k, 1);
        putchar('\'');
    }
    putchar('\n');
    return DONE;
}

static int show_dict(cn_ctx *cn, const char *path)
{
    cn_dict *d = cn_load(cn, path);
    if (!d) return fail_in(cn);
    const size_t n = cn_dict_print(d, NULL, 0);
    char *text = need(n + 1);
    cn_dict_print(d, text, n + 1);
    print_clean(stdout, text, n);
    free(text);
    return DONE;
}

static int show_onnx(cn_ctx *cn, const char *path)
{
    const size_t n = cn_onnx_print(cn, path, NULL, 0);
    if (!n) return fail_in(cn);
    char *text = need(n + 1);
    cn_onnx_print(cn, path, text, n + 1);
    print_clean(stdout, text, n);
    free(text);
    return DONE;
}

static bool is_onnx(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && !strcmp(dot, ".onnx");
}

/* A tokenizer is JSON; the other files begin with a length or a signature. */
static bool is_json(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    unsigned char c[9];
    const size_t n = fread(c, 1, sizeof c, f);
    fclose(f);
    size_t at = 0;
    while (at < n && strchr(" \t\r\n", c[at])) at++;
    return at < n && c[at] == '{' && !(n == 9 && c[8] == '{' && c[7] == 0);
}

int info(settings *s)
{
    char *path = find_model(s->argument);
    if (!path) return FAILED;
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    int code = cn ? DONE : fail("out of memory");
    if (code == DONE && is_folder(s->argument)) printf("%s\n", path);
    if (code == DONE)
        code = is_onnx(path) ? show_onnx(cn, path) : is_json(path) ? show_tokenizer(cn, path) : show_dict(cn, path);
    cn_close(cn);
    free(path);
    return code;
}

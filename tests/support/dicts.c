#include "support/dicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"

static void put(cn_dict *d, const char *name, cn_tensor *t) { cn_dict_set(d, name, t); }

cn_dict *dict_of_everything(cn_ctx *cn, bool with_bf16)
{
    static const cn_dims shapes[] = {
        { 0, { 0 } },       { 1, { 3 } },    { 1, { 0 } },
        { 3, { 2, 3, 4 } }, { 2, { 0, 5 } }, { 8, { 1, 2, 1, 3, 1, 2, 1, 1 } },
    };
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    for (int t = 0; t < CN_DTYPES; t++) {
        if (t == CN_BF16 && !with_bf16) continue;
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            char name[64];
            snprintf(name, sizeof name, "layer.%zu.%s", k, cn_dtype_name((cn_dtype)t));
            int64_t n = 1;
            for (int i = 0; i < shapes[k].n; i++) n *= shapes[k].v[i];
            cn_tensor *v = cn_reshape(cn_arange(cn, CN_F32, -3.0, -3.0 + (double)n, 1.0), shapes[k]);
            put(d, name, cn_cast(cn_mul_s(v, 0.75), (cn_dtype)t));
        }
    }
    cn_tensor *base = cn_reshape(cn_arange(cn, CN_F32, 0, 12, 1), CN_DIMS(3, 4));
    put(d, "view", cn_transpose(base, 0, 1));
    put(d, "pending", cn_exp(base));
    put(d, "number", cn_scalar(cn, CN_F64, 2.5));
    put(d, "", cn_scalar(cn, CN_I32, 7));
    put(d, "größe \"quoted\" \\ / 🙂", base);
    cn_scope_end(cn, s);
    cn_dict_set_text(d, "empty text", "");
    cn_dict_set_text(d, "text", "line\n\ttab \"quotes\" \\ \x01 ünïcode 重み 🙂");
    cn_dict_set_number(d, "rate", 0.1);
    return d;
}

static bool same_bytes(cn_tensor *a, cn_tensor *b)
{
    size_t n = (size_t)cn_numel(a) * cn_dtype_size(cn_type(a));
    char *x = malloc(n + 1), *y = malloc(n + 1);
    bool same = cn_read(a, x, n) && cn_read(b, y, n) && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

static const char *tensors_differ(cn_tensor *a, cn_tensor *b)
{
    if (!b) return "missing";
    if (cn_type(a) != cn_type(b)) return "another type";
    cn_dims x = cn_shape(a), y = cn_shape(b);
    if (x.n != y.n || memcmp(x.v, y.v, sizeof *x.v * (size_t)x.n)) return "another shape";
    return same_bytes(a, b) ? NULL : "other numbers";
}

const char *dicts_differ(const cn_dict *a, const cn_dict *b, bool same_order)
{
    static char words[256];
    if (!a || !b) return "no dict";
    if (cn_dict_count(a) != cn_dict_count(b) || cn_dict_texts(a) != cn_dict_texts(b))
        return "another number of entries";
    for (int64_t i = 0; i < cn_dict_count(a); i++) {
        const char *name = cn_dict_name(a, i);
        const char *why = tensors_differ(cn_dict_at(a, i), cn_dict_get(b, name));
        if (!why && same_order && strcmp(name, cn_dict_name(b, i))) why = "elsewhere in the order";
        if (!why) continue;
        snprintf(words, sizeof words, "tensor \"%s\": %s", name, why);
        return words;
    }
    for (int64_t i = 0; i < cn_dict_texts(a); i++) {
        const char *name = cn_dict_text_name(a, i), *text = cn_dict_text(b, name);
        if (text && !strcmp(cn_dict_text(a, name), text)) continue;
        snprintf(words, sizeof words, "text \"%s\"", name);
        return words;
    }
    return NULL;
}

double dict_touch(const cn_dict *d)
{
    double sum = 0;
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_tensor *t = cn_dict_at(d, i);
        size_t n = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
        unsigned char *bytes = malloc(n + 1);
        if (cn_read(t, bytes, n))
            for (size_t k = 0; k < n; k++) sum += bytes[k];
        free(bytes);
    }
    size_t size = cn_dict_print(d, NULL, 0) + 1;
    char *text = malloc(size);
    sum += (double)cn_dict_print(d, text, size);
    free(text);
    return sum;
}

unsigned char *file_read(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    unsigned char *data = malloc((size_t)n + 1);
    *bytes = fread(data, 1, (size_t)n, f);
    fclose(f);
    return data;
}

bool file_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, bytes, f) == bytes;
    if (f) ok = fclose(f) == 0 && ok;
    return ok;
}

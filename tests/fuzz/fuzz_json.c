/* Any bytes as JSON. What is read is written and read again, and must be the same tree. */
#include <string.h>

#include "fuzz.h"
#include "io/json.h"

static void write_value(cn__out *o, const cn__json *j)
{
    bool object = j->type == CN__JSON_OBJECT;
    switch (j->type) {
    case CN__JSON_NULL: cn__out_plain(o, "null"); break;
    case CN__JSON_BOOL: cn__out_plain(o, j->is_true ? "true" : "false"); break;
    case CN__JSON_TEXT: cn__out_text(o, j->text, j->n); break;
    case CN__JSON_NUMBER:
        if (j->is_whole && j->whole) cn__out_whole(o, j->whole);
        else cn__out_number(o, j->number);
        break;
    default:
        cn__out_plain(o, object ? "{" : "[");
        for (uint32_t i = 0; i < j->n; i++) {
            if (i) cn__out_plain(o, ",");
            if (object) cn__out_text(o, j->v[i].key, j->v[i].key_bytes), cn__out_plain(o, ":");
            write_value(o, &j->v[i]);
        }
        cn__out_plain(o, object ? "}" : "]");
    }
}

static bool same(const cn__json *a, const cn__json *b)
{
    if (a->type != b->type || a->key_bytes != b->key_bytes || (a->key && memcmp(a->key, b->key, a->key_bytes)))
        return false;
    if (a->type == CN__JSON_BOOL) return a->is_true == b->is_true;
    if (a->type == CN__JSON_NUMBER) return !memcmp(&a->number, &b->number, sizeof a->number);
    if (a->type == CN__JSON_NULL) return true;
    if (a->n != b->n) return false;
    if (a->type == CN__JSON_TEXT) return !memcmp(a->text, b->text, a->n);
    for (uint32_t i = 0; i < a->n; i++) {
        if (!same(&a->v[i], &b->v[i])) return false;
        bool found = a->type == CN__JSON_ARRAY || cn__json_get_n(a, a->v[i].key, a->v[i].key_bytes) == &a->v[i];
        fuzz_require(found, "every key is found");
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn__bump memory = { 0 };
    const cn__json *j = cn__json_read(cn, &memory, (const char *)data, bytes, "fuzz");
    fuzz_require((j != NULL) == !cn_failed(cn), "a tree or an error");
    if (j) {
        cn__out o = { .ctx = cn };
        write_value(&o, j);
        const cn__json *again = cn__json_read(cn, &memory, o.text.v, o.text.n, "again");
        fuzz_require(again && same(j, again), "a tree changed on its way through text");
        cn__out_free(&o);
    }
    cn__bump_free(&cn->memory, &memory);
    cn_close(cn);
    return 0;
}

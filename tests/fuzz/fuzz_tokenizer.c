/* Any bytes as a tokenizer.json; if they are one, any bytes as text: there and back again. If not, they are trained on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/text.h"

static void try_text(const cn_tokenizer *t, const char *text, size_t n, bool lossless)
{
    int64_t count = cn_encode(t, text, n, NULL, 0);
    if (count < 0) return; /* a byte without a token */
    int32_t *ids = malloc(((size_t)count + 1) * sizeof *ids);
    if (cn_encode(t, text, n, ids, count) != count) abort();
    int64_t bytes = cn_decode(t, ids, count, NULL, 0);
    char *back = malloc((size_t)bytes + 1), whole[1 << 12];
    if (cn_decode(t, ids, count, back, bytes + 1) != bytes) abort();
    if (lossless && ((size_t)bytes != n || memcmp(back, text, n) != 0)) abort();
    cn_decoder d = { .tokenizer = t };
    for (int64_t i = 0; i < count; i++)
        if (cn_decode_next(&d, ids[i], whole, sizeof whole) < 0) abort();
    cn_decode_end(&d, whole, sizeof whole);
    free(back);
    free(ids);
}

static void try_and_free(cn_tokenizer *t, const char *text, size_t n, bool lossless)
{
    if (t) try_text(t, text, n, lossless);
    cn_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cn_ctx *cn; /* one for all: opening it takes longer than all the rest */
    if (!cn) cn = cn_open(&(cn_desc){ .threads = 1 });
    const char *text = (const char *)data;
    cn_tokenizer *t = cn_tokenizer_parse(cn, text, size);
    if ((t != NULL) == cn_failed(cn)) abort();
    cn_error_clear(cn);
    if (t) {
        static const char mixed[] = "a b <s> \xF0\x9F\x98\x80 it's  12\n";
        try_text(t, text, size, false);
        cn_tokenizer_allow_special(t, false);
        try_and_free(t, mixed, strlen(mixed), false);
    } else {
        cn_bpe_desc desc = { .no_split = size & 1, .special = (const char *[]){ "<s>" }, .n_special = 1 };
        try_and_free(cn_bpe_train(cn, text, size, 300, &desc), text, size, true);
        try_and_free(cn_tokenizer_characters(cn, text, size / 2, NULL), text, size, false);
    }
    cn_error_clear(cn);
    return 0;
}

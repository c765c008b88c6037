/* Writing tokenizer.json, so that Hugging Face's tokenizers reads it and gives the same tokens. */
#include "io/files.h"
#include "io/json.h"
#include "text/split.h"
#include "text/tokenizer.h"

typedef struct writer {
    const cn_tokenizer *t;
    cn__out out;
    cn__vec spelled; /* of char */
} writer;

static void words(writer *w, const char *text) { cn__out_word(&w->out, text); }

static void flag(writer *w, const char *key, bool value)
{
    words(w, ", ");
    cn__out_text(&w->out, key, strlen(key));
    words(w, value ? ": true" : ": false");
}

/* A token as files write it: literally, or its bytes in letters. */
static bool spell(writer *w, const cn__token *token, const char **text, size_t *n)
{
    *text = cn__token_bytes(w->t, token);
    *n = token->n;
    if (token->flags & CN__TOKEN_LITERAL) return true;
    if (!cn__vec_reserve(&w->out.ctx->memory, &w->spelled, 2 * *n + 1, 1))
        return cn__no_memory(w->out.ctx, "tokenizer_save");
    *n = cn__spell_bytes(*text, *n, w->spelled.v);
    *text = w->spelled.v;
    return true;
}

/* In order of their numbers, which is the order they get them back in. */
static void write_added(writer *w)
{
    words(w, "  \"added_tokens\": [");
    const char *before = "\n    { \"id\": ";
    for (size_t i = 0; i < w->t->tokens.n; i++) {
        const cn__token *token = cn__token_at(w->t, (int64_t)i);
        if (!token || !(token->flags & CN__TOKEN_ADDED)) continue;
        words(w, before);
        cn__out_whole(&w->out, (int64_t)i);
        words(w, ", \"content\": ");
        cn__out_text(&w->out, cn__token_bytes(w->t, token), token->n);
        flag(w, "single_word", false);
        flag(w, "lstrip", token->flags & CN__TOKEN_STRIP_LEFT);
        flag(w, "rstrip", token->flags & CN__TOKEN_STRIP_RIGHT);
        flag(w, "normalized", token->flags & CN__TOKEN_LATE);
        flag(w, "special", token->flags & CN__TOKEN_SPECIAL);
        words(w, " }");
        before = ",\n    { \"id\": ";
    }
    words(w, "\n  ],\n");
}

static void write_pipeline(writer *w)
{
    words(w, "  \"normalizer\": null,\n  \"pre_tokenizer\": { ");
    if (w->t->kind == CN_TOKENS_CHARACTERS) {
        words(w, "\"type\": \"Split\", \"pattern\": { \"Regex\": \"[\\\\s\\\\S]\" }, "
                 "\"behavior\": \"Isolated\", \"invert\": false },\n"
                 "  \"post_processor\": null,\n  \"decoder\": { \"type\": \"Fuse\" },\n");
        return;
    }
    words(w, "\"type\": \"ByteLevel\"");
    flag(w, "add_prefix_space", w->t->add_prefix_space);
    flag(w, "trim_offsets", true);
    flag(w, "use_regex", w->t->split);
    words(w, " },\n  \"post_processor\": null,\n  \"decoder\": { \"type\": \"ByteLevel\"");
    flag(w, "add_prefix_space", true);
    flag(w, "trim_offsets", true);
    flag(w, "use_regex", true);
    words(w, " },\n");
}

static bool write_vocabulary(writer *w)
{
    words(w, "    \"vocab\": {");
    const char *before = "\n      ";
    for (size_t i = 0; i < w->t->tokens.n; i++) {
        const cn__token *token = cn__token_at(w->t, (int64_t)i);
        if (!token || !(token->flags & CN__TOKEN_IN_MODEL)) continue;
        const char *text;
        size_t n;
        if (!spell(w, token, &text, &n)) return false;
        words(w, before);
        cn__out_text(&w->out, text, n);
        words(w, ": ");
        cn__out_whole(&w->out, (int64_t)i);
        before = ",\n      ";
    }
    words(w, "\n    }");
    return true;
}

static bool write_unknown(writer *w)
{
    words(w, "    \"unk_token\": ");
    if (w->t->unknown < 0) return cn__out_word(&w->out, "null,\n");
    const char *text;
    size_t n;
    if (!spell(w, cn__token_at(w->t, w->t->unknown), &text, &n)) return false;
    cn__out_text(&w->out, text, n);
    return cn__out_word(&w->out, ",\n");
}

static bool write_part(writer *w, int32_t id)
{
    const char *text;
    size_t n;
    if (!spell(w, cn__token_at(w->t, id), &text, &n)) return false;
    return cn__out_text(&w->out, text, n);
}

static bool write_merges(writer *w)
{
    words(w, "    \"merges\": [");
    const cn__merge *m = w->t->merges.v;
    for (size_t i = 0; i < w->t->merges.n; i++) {
        words(w, i ? ",\n      [" : "\n      [");
        if (!write_part(w, m[i].left)) return false;
        words(w, ", ");
        if (!write_part(w, m[i].right)) return false;
        words(w, "]");
    }
    words(w, w->t->merges.n ? "\n    ],\n" : "],\n");
    return true;
}

static bool write_model(writer *w)
{
    bool characters = w->t->kind == CN_TOKENS_CHARACTERS;
    words(w, "  \"model\": {\n    \"type\": ");
    words(
        w,
        characters
            ? "\"WordLevel\",\n"
            : "\"BPE\",\n    \"dropout\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null");
    if (!characters) {
        flag(w, "fuse_unk", w->t->fuse_unknown);
        flag(w, "byte_fallback", false);
        flag(w, "ignore_merges", w->t->ignore_merges);
        words(w, ",\n");
    }
    if (!write_unknown(w)) return false;
    if (!characters && !write_merges(w)) return false;
    if (!write_vocabulary(w)) return false;
    words(w, "\n  }\n}\n");
    return true;
}

static bool write_all(writer *w)
{
    words(w, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    write_added(w);
    write_pipeline(w);
    return write_model(w) && !w->out.failed;
}

bool cn_tokenizer_save(const cn_tokenizer *t, const char *path)
{
    if (!t || !path || cn_failed(t->object.ctx)) return false;
    cn_ctx *ctx = t->object.ctx;
    writer w = { .t = t, .out = { .ctx = ctx } };
    cn__sink to;
    bool ok = write_all(&w) && cn__sink_open(&to, ctx, path) &&
              cn__sink_close(&to, cn__sink_put(&to, w.out.text.v, w.out.text.n));
    cn__vec_free(&ctx->memory, &w.spelled, 1);
    cn__out_free(&w.out);
    return ok;
}

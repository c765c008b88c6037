/* Writes tokenizer.json. Hugging Face's library tokenizers reads it and returns the same tokens. */
#include "io/files.h"
#include "io/json.h"
#include "text/split.h"
#include "text/tokenizer.h"

typedef struct writer {
    const cn_tokenizer *t;
    cn__out out;
    cn__vec spelled; /* of char */
} writer;

static void append(writer *w, const char *text) { cn__out_plain(&w->out, text); }

static void append_flag(writer *w, const char *key, bool value)
{
    append(w, ", ");
    cn__out_text(&w->out, key, strlen(key));
    append(w, value ? ": true" : ": false");
}

/* The text of a token in a file: literal, or with its bytes spelled as letters. */
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

/* In the order of their numbers: Hugging Face numbers added tokens in the order of the file. */
static void write_added(writer *w)
{
    append(w, "  \"added_tokens\": [");
    const char *before = "\n    { \"id\": ";
    for (size_t i = 0; i < w->t->tokens.n; i++) {
        const cn__token *token = cn__token_at(w->t, (int64_t)i);
        if (!token || !(token->flags & CN__TOKEN_ADDED)) continue;
        append(w, before);
        cn__out_whole(&w->out, (int64_t)i);
        append(w, ", \"content\": ");
        cn__out_text(&w->out, cn__token_bytes(w->t, token), token->n);
        append_flag(w, "single_word", false);
        append_flag(w, "lstrip", token->flags & CN__TOKEN_STRIP_LEFT);
        append_flag(w, "rstrip", token->flags & CN__TOKEN_STRIP_RIGHT);
        append_flag(w, "normalized", token->flags & CN__TOKEN_LATE);
        append_flag(w, "special", token->flags & CN__TOKEN_SPECIAL);
        append(w, " }");
        before = ",\n    { \"id\": ";
    }
    append(w, "\n  ],\n");
}

static void write_pipeline(writer *w)
{
    append(w, "  \"normalizer\": null,\n  \"pre_tokenizer\": { ");
    if (w->t->kind == CN_TOKENS_CHARACTERS) {
        append(w, "\"type\": \"Split\", \"pattern\": { \"Regex\": \"[\\\\s\\\\S]\" }, "
                  "\"behavior\": \"Isolated\", \"invert\": false },\n"
                  "  \"post_processor\": null,\n  \"decoder\": { \"type\": \"Fuse\" },\n");
        return;
    }
    append(w, "\"type\": \"ByteLevel\"");
    append_flag(w, "add_prefix_space", w->t->add_prefix_space);
    append_flag(w, "trim_offsets", true);
    append_flag(w, "use_regex", w->t->split);
    append(w, " },\n  \"post_processor\": null,\n  \"decoder\": { \"type\": \"ByteLevel\"");
    append_flag(w, "add_prefix_space", true);
    append_flag(w, "trim_offsets", true);
    append_flag(w, "use_regex", true);
    append(w, " },\n");
}

static bool write_vocabulary(writer *w)
{
    append(w, "    \"vocab\": {");
    const char *before = "\n      ";
    for (size_t i = 0; i < w->t->tokens.n; i++) {
        const cn__token *token = cn__token_at(w->t, (int64_t)i);
        if (!token || !(token->flags & CN__TOKEN_IN_MODEL)) continue;
        const char *text;
        size_t n;
        if (!spell(w, token, &text, &n)) return false;
        append(w, before);
        cn__out_text(&w->out, text, n);
        append(w, ": ");
        cn__out_whole(&w->out, (int64_t)i);
        before = ",\n      ";
    }
    append(w, "\n    }");
    return true;
}

static bool write_unknown(writer *w)
{
    append(w, "    \"unk_token\": ");
    if (w->t->unknown < 0) return cn__out_plain(&w->out, "null,\n");
    const char *text;
    size_t n;
    if (!spell(w, cn__token_at(w->t, w->t->unknown), &text, &n)) return false;
    cn__out_text(&w->out, text, n);
    return cn__out_plain(&w->out, ",\n");
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
    append(w, "    \"merges\": [");
    const cn__merge *m = w->t->merges.v;
    for (size_t i = 0; i < w->t->merges.n; i++) {
        append(w, i ? ",\n      [" : "\n      [");
        if (!write_part(w, m[i].left)) return false;
        append(w, ", ");
        if (!write_part(w, m[i].right)) return false;
        append(w, "]");
    }
    append(w, w->t->merges.n ? "\n    ],\n" : "],\n");
    return true;
}

static bool write_model(writer *w)
{
    bool characters = w->t->kind == CN_TOKENS_CHARACTERS;
    append(w, "  \"model\": {\n    \"type\": ");
    append(
        w,
        characters
            ? "\"WordLevel\",\n"
            : "\"BPE\",\n    \"dropout\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null");
    if (!characters) {
        append_flag(w, "fuse_unk", w->t->fuse_unknown);
        append_flag(w, "byte_fallback", false);
        append_flag(w, "ignore_merges", w->t->ignore_merges);
        append(w, ",\n");
    }
    if (!write_unknown(w)) return false;
    if (!characters && !write_merges(w)) return false;
    if (!write_vocabulary(w)) return false;
    append(w, "\n  }\n}\n");
    return true;
}

static bool write_all(writer *w)
{
    append(w, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    write_added(w);
    write_pipeline(w);
    return write_model(w) && !w->out.failed;
}

bool cn_tokenizer_save(const cn_tokenizer *t, const char *path)
{
    CN__CALL call = cn__call_quietly(t, &cn__tokenizer_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx || cn_failed(ctx)) return false;
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "tokenizer_save: path must not be NULL");
    writer w = { .t = t, .out = { .ctx = ctx } };
    cn__sink to;
    bool ok = write_all(&w) && cn__sink_open(&to, ctx, path) &&
              cn__sink_close(&to, cn__sink_write(&to, w.out.text.v, w.out.text.n));
    cn__vec_free(&ctx->memory, &w.spelled, 1);
    cn__out_free(&w.out);
    return ok;
}

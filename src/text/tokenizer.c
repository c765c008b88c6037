/* Tokenizers of bytes and of characters, special tokens, and functions that look up tokens. */
#include "text/tokenizer.h"

#include "core/errors.h"
#include "io/json.h"
#include "text/unicode.h"

void cn_tokenizer_free(cn_tokenizer *t) { cn__free_by_program(t, &cn__tokenizer_type, __func__); }

cn_tokenizer *cn_tokenizer_bytes(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn_tokenizer *t = cn__tokenizer_new(call.ctx, CN_TOKENS_BYTES);
    if (!t) return NULL;
    for (int b = 0; b < 256; b++) {
        if (!cn__token_insert(t, b, &(char){ (char)b }, 1, CN__TOKEN_IN_MODEL)) {
            cn_tokenizer_free(t);
            return NULL;
        }
    }
    cn__index_bytes(t);
    return t;
}

/* ---- characters ---- */

enum { CODES = 0x110000 };

static void mark_codes(uint64_t *seen, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        cn__rune r = cn__utf8_next(text + at, n - at);
        if (r.state == CN__UTF8_WHOLE) seen[r.code / 64] |= 1ull << r.code % 64;
        at += r.n;
    }
}

static bool insert_characters(cn_tokenizer *t, const uint64_t *seen)
{
    for (uint32_t code = 0; code < CODES; code++) {
        if (!seen[code / 64]) code |= 63; /* skips 64 code points */
        if (!(seen[code / 64] >> code % 64 & 1)) continue;
        char text[4];
        size_t n = (size_t)cn__utf8_encode(code, text);
        if (cn__token_find(t, text, n, true) >= 0) continue; /* the unknown token has this name */
        if (!cn__token_insert(t, (int64_t)t->tokens.n, text, n, CN__TOKEN_LITERAL | CN__TOKEN_IN_MODEL)) return false;
    }
    return true;
}

static bool is_utf8(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        cn__rune r = cn__utf8_next(text + at, n - at);
        if (r.state != CN__UTF8_WHOLE) return false;
        at += r.n;
    }
    return true;
}

cn_tokenizer *cn_tokenizer_characters(cn_ctx *ctx, const char *text, size_t n, const char *unknown)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (n > 0 && !text) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "tokenizer_characters: n must be 0 if text is NULL, got %zu", n);
        return NULL;
    }
    if (!unknown) unknown = "<unk>";
    if (!*unknown || !is_utf8(unknown, strlen(unknown))) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "tokenizer_characters: the name of the unknown token must be UTF-8 and not empty");
        return NULL;
    }
    cn_tokenizer *t = cn__tokenizer_new(ctx, CN_TOKENS_CHARACTERS);
    uint64_t *seen = t ? cn__alloc(ctx, CODES / 8) : NULL;
    if (seen) mark_codes(seen, text, n);
    bool ok = seen && cn__token_insert(t, 0, unknown, strlen(unknown), CN__TOKEN_LITERAL | CN__TOKEN_IN_MODEL) &&
              insert_characters(t, seen);
    cn__free(ctx, seen, CODES / 8);
    if (!ok) {
        cn_tokenizer_free(t);
        return NULL;
    }
    t->unknown = 0;
    return t;
}

/* ---- look up ---- */

static bool is_tokenizer(const cn_tokenizer *t, const char *who)
{
    return cn__object_fits(t, &cn__tokenizer_type, who);
}

cn_tokenizer_kind cn_tokenizer_kind_of(const cn_tokenizer *t)
{
    return is_tokenizer(t, __func__) ? t->kind : CN_TOKENS_BYTES;
}

int64_t cn_token_count(const cn_tokenizer *t) { return is_tokenizer(t, __func__) ? (int64_t)t->tokens.n : 0; }

const char *cn_token_text(const cn_tokenizer *t, int32_t id, size_t *n)
{
    const cn__token *token = is_tokenizer(t, __func__) ? cn__token_at(t, id) : NULL;
    if (n) *n = token ? token->n : 0;
    return token ? cn__token_bytes(t, token) : NULL;
}

int32_t cn_token_id(const cn_tokenizer *t, const char *text, size_t n)
{
    if (!is_tokenizer(t, __func__) || !text) return -1;
    int32_t id = cn__token_find(t, text, n, true);
    return id >= 0 ? id : cn__token_find(t, text, n, false);
}

bool cn_token_is_special(const cn_tokenizer *t, int32_t id)
{
    const cn__token *token = is_tokenizer(t, __func__) ? cn__token_at(t, id) : NULL;
    return token && token->flags & CN__TOKEN_SPECIAL;
}

/* ---- special tokens ---- */

static int32_t refuse(cn_tokenizer *t, const char *why)
{
    cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "tokenizer_add_special: the text %s", why);
    return -1;
}

static int32_t make_special(cn_tokenizer *t, int32_t id)
{
    const cn__token *token = cn__token_at(t, id);
    if (!(token->flags & CN__TOKEN_ADDED) && !cn__token_add(t, id)) return -1;
    ((cn__token *)t->tokens.v)[id].flags |= CN__TOKEN_LITERAL | CN__TOKEN_ADDED | CN__TOKEN_SPECIAL;
    return id;
}

int32_t cn_tokenizer_add_special(cn_tokenizer *t, const char *text)
{
    CN__CALL call = cn__call_object(t, &cn__tokenizer_type);
    if (!call.ctx) return -1;
    if (!text) return refuse(t, "is NULL; it must be UTF-8 and not empty");
    size_t n = strlen(text);
    if (n == 0 || !is_utf8(text, n)) return refuse(t, "must be UTF-8 and not empty");
    /* Files spell bytes as letters. A special token must not look like such a spelling, nor replace a single byte. */
    size_t bytes = 0;
    bool spelled = t->kind != CN_TOKENS_CHARACTERS && cn__spelled_bytes(text, n, NULL, &bytes);
    if (spelled && (bytes == 1 || bytes != n))
        return refuse(t, "must not be a single byte, nor look like bytes that a file spells as letters");
    int32_t id = cn__token_find(t, text, n, true);
    if (id < 0 && spelled) id = cn__token_find(t, text, n, false);
    if (id < 0) {
        id = (int32_t)t->tokens.n;
        if (!cn__token_insert(t, id, text, n, CN__TOKEN_LITERAL)) return -1;
    }
    return make_special(t, id);
}

void cn_tokenizer_allow_special(cn_tokenizer *t, bool allow)
{
    CN__CALL call = cn__call_object(t, &cn__tokenizer_type);
    if (call.ctx) t->no_special = !allow;
}

/* Decodes tokens to text: all at once, or token by token in whole characters. */
#include "core/errors.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

static const cn__token *known(const cn_tokenizer *t, int32_t id)
{
    const cn__token *token = cn__token_at(t, id);
    if (!token)
        cn__fail(t->object.ctx, CN_BAD_INDEX, "decode: token %d does not exist; the tokenizer has %zu", (int)id,
                 t->tokens.n);
    return token;
}

static bool refuse_output(cn_ctx *ctx, const char *out, int64_t room)
{
    if (room >= 0 && (room == 0 || out)) return false;
    cn__fail(ctx, CN_BAD_ARGUMENT, "decode: room must be ≥ 0, and 0 if out is NULL; got %lld", (long long)room);
    return true;
}

int64_t cn_decode(const cn_tokenizer *t, const int32_t *ids, int64_t n, char *out, int64_t room)
{
    CN__CALL call = cn__call_object(t, &cn__tokenizer_type);
    if (!call.ctx || refuse_output(call.ctx, out, room)) return -1;
    if (n < 0 || (n > 0 && !ids)) {
        cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "decode: n must be ≥ 0, and 0 if ids is NULL; got %lld", (long long)n);
        return -1;
    }
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const cn__token *token = known(t, ids[i]);
        if (!token) return -1;
        int64_t fits = room - count < token->n ? room - count : token->n;
        if (fits > 0) memcpy(out + count, cn__token_bytes(t, token), (size_t)fits);
        count += token->n;
    }
    if (count < room) out[count] = 0;
    return count;
}

/* ---- token by token ---- */

typedef struct sink {
    char *out;
    int64_t room, count;
} sink;

static void append(sink *s, const char *bytes, int n)
{
    for (int i = 0; i < n; i++, s->count++)
        if (s->count < s->room) s->out[s->count] = bytes[i];
}

/* Appends the whole characters of the text, and U+FFFD for bytes that are not UTF-8. Returns the bytes it used: all but
   an incomplete character at the end. */
static size_t append_whole(sink *s, const char *text, size_t n)
{
    size_t at = 0;
    while (at < n) {
        cn__rune r = cn__utf8_next(text + at, n - at);
        if (r.state == CN__UTF8_BEGUN) break;
        if (r.state == CN__UTF8_WHOLE) append(s, text + at, r.n);
        else append(s, "\xEF\xBF\xBD", 3);
        at += r.n;
    }
    return at;
}

/* First completes a character that earlier tokens have begun, byte by byte, then reads the rest of the text. */
static void feed(cn_decoder *d, sink *s, const char *text, size_t n)
{
    size_t at = 0;
    while (d->waiting > 0 && at < n) {
        d->held[d->waiting++] = (unsigned char)text[at++];
        size_t used = append_whole(s, (const char *)d->held, (size_t)d->waiting);
        memmove(d->held, d->held + used, (size_t)d->waiting - used);
        d->waiting -= (int)used;
    }
    at += append_whole(s, text + at, n - at);
    if (at == n) return;
    memcpy(d->held, text + at, n - at);
    d->waiting = (int)(n - at);
}

int64_t cn_decode_next(cn_decoder *d, int32_t id, char *out, int64_t room)
{
    CN__CALL call = cn__call_object(d ? d->tokenizer : NULL, &cn__tokenizer_type);
    if (!call.ctx || refuse_output(call.ctx, out, room)) return -1;
    const cn__token *token = known(d->tokenizer, id);
    if (!token) return -1;
    if (d->waiting < 0 || d->waiting > 3) {
        cn__fail(d->tokenizer->object.ctx, CN_BAD_ARGUMENT,
                 "decode: the decoder was not initialised; set it to { .tokenizer = t }");
        return -1;
    }
    cn_decoder next = *d;
    sink s = { out, room, 0 };
    feed(&next, &s, cn__token_bytes(d->tokenizer, token), token->n);
    if (s.count <= room) *d = next;
    return s.count;
}

int64_t cn_decode_end(cn_decoder *d, char *out, int64_t room)
{
    CN__CALL call = cn__call_object(d ? d->tokenizer : NULL, &cn__tokenizer_type);
    if (!call.ctx || refuse_output(call.ctx, out, room)) return -1;
    sink s = { out, room, 0 };
    if (d->waiting > 0) append(&s, "\xEF\xBF\xBD", 3);
    if (s.count <= room) d->waiting = 0;
    return s.count;
}

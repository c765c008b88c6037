/* The vocabulary of a tokenizer: its tokens by number and by text, and its merges. */
#include "text/tokenizer.h"

#include "core/errors.h"
#include "io/json.h"
#include "text/alphabet.h"
#include "text/unicode.h"

static void destroy(void *self)
{
    cn_tokenizer *t = self;
    cn__memory *m = &t->object.ctx->memory;
    cn__vec_free(m, &t->tokens, sizeof(cn__token));
    cn__vec_free(m, &t->bytes, 1);
    cn__vec_free(m, &t->slots, sizeof(int32_t));
    cn__vec_free(m, &t->merges, sizeof(cn__merge));
    cn__vec_free(m, &t->pairs, sizeof(cn__merge));
    cn__vec_free(m, &t->added, sizeof(int32_t));
}

const cn__object_type cn__tokenizer_type = { "tokenizer", destroy };

cn_tokenizer *cn__tokenizer_new(cn_ctx *ctx, cn_tokenizer_kind kind)
{
    cn_tokenizer *t = ctx ? cn__object_new(ctx, sizeof *t, &cn__tokenizer_type) : NULL;
    if (!t) return NULL;
    t->kind = kind;
    t->unknown = -1;
    for (int b = 0; b < 256; b++) t->byte_id[b] = -1;
    return t;
}

static bool reserve(cn_tokenizer *t, cn__vec *v, size_t n, size_t element)
{
    if (cn__vec_reserve(&t->object.ctx->memory, v, n, element)) return true;
    return cn__no_memory(t->object.ctx, "tokenizer");
}

const cn__token *cn__token_at(const cn_tokenizer *t, int64_t id)
{
    if (id < 0 || (size_t)id >= t->tokens.n) return NULL;
    const cn__token *token = (const cn__token *)t->tokens.v + id;
    return token->flags & CN__TOKEN_HERE ? token : NULL;
}

/* ---- by text ---- */

/* The slot of the text, or the free slot where it belongs. */
static int32_t *slot_of(const cn_tokenizer *t, const char *text, size_t n, bool literal)
{
    int32_t *slots = t->slots.v;
    for (size_t i = cn__hash(&t->object.ctx->hash_key, text, n);; i++) {
        int32_t *s = &slots[i & (t->slots.n - 1)];
        if (*s == 0) return s;
        const cn__token *token = (const cn__token *)t->tokens.v + (*s - 1);
        bool same_kind = literal == ((token->flags & CN__TOKEN_LITERAL) != 0);
        if (same_kind && token->n == n && memcmp(cn__token_bytes(t, token), text, n) == 0) return s;
    }
}

int32_t cn__token_find(const cn_tokenizer *t, const char *text, size_t n, bool literal)
{
    return t->slots.n ? *slot_of(t, text, n, literal) - 1 : -1;
}

/* A token that is there. */
static const cn__token *known_token(const cn_tokenizer *t, int32_t id) { return (const cn__token *)t->tokens.v + id; }

static void index_token(cn_tokenizer *t, int32_t id)
{
    const cn__token *token = known_token(t, id);
    *slot_of(t, cn__token_bytes(t, token), token->n, token->flags & CN__TOKEN_LITERAL) = id + 1;
}

/* At most half of the slots are in use, even if each token is replaced once. */
static bool reserve_slots(cn_tokenizer *t, size_t tokens)
{
    size_t wanted = t->slots.n ? t->slots.n : 64;
    while (wanted < 4 * tokens) wanted *= 2;
    if (wanted == t->slots.n) return true;
    if (!reserve(t, &t->slots, wanted, sizeof(int32_t))) return false;
    t->slots.n = wanted;
    memset(t->slots.v, 0, wanted * sizeof(int32_t));
    for (size_t i = 0; i < t->tokens.n; i++)
        if (cn__token_at(t, (int64_t)i)) index_token(t, (int32_t)i);
    return true;
}

static bool copy_text(cn_tokenizer *t, const char *text, size_t n, uint32_t *at)
{
    if (n >= UINT32_MAX - t->bytes.n)
        return cn__fail(t->object.ctx, CN_UNSUPPORTED, "tokenizer: the texts of all tokens have more than 4 GiB");
    if (!reserve(t, &t->bytes, t->bytes.n + n + 1, 1)) return false;
    *at = (uint32_t)t->bytes.n;
    char *to = (char *)t->bytes.v + t->bytes.n;
    if (n) memcpy(to, text, n);
    to[n] = 0;
    t->bytes.n += n + 1;
    return true;
}

bool cn__token_insert(cn_tokenizer *t, int64_t id, const char *text, size_t n, uint32_t flags)
{
    if (id < 0 || id >= INT32_MAX)
        return cn__fail(t->object.ctx, CN_BAD_ARGUMENT,
                        "tokenizer: the number of a token must be 0 to 2^31 - 2, got %lld", (long long)id);
    size_t count = (size_t)id < t->tokens.n ? t->tokens.n : (size_t)id + 1;
    uint32_t at = 0;
    if (!reserve(t, &t->tokens, count, sizeof(cn__token)) || !reserve_slots(t, count) || !copy_text(t, text, n, &at))
        return false;
    cn__token *tokens = t->tokens.v;
    if (count > t->tokens.n) memset(tokens + t->tokens.n, 0, (count - t->tokens.n) * sizeof *tokens);
    t->tokens.n = count;
    tokens[id] = (cn__token){ at, (uint32_t)n, flags | CN__TOKEN_HERE };
    index_token(t, (int32_t)id);
    return true;
}

/* The slot of the old text stays. It leads to a token with another text, so a search for the old text skips it. */
bool cn__token_replace(cn_tokenizer *t, int32_t id, const char *text, size_t n, uint32_t flags)
{
    uint32_t at = 0;
    if (!copy_text(t, text, n, &at)) return false;
    ((cn__token *)t->tokens.v)[id] = (cn__token){ at, (uint32_t)n, flags | CN__TOKEN_HERE };
    index_token(t, id);
    return true;
}

bool cn__token_add(cn_tokenizer *t, int32_t id)
{
    if (!reserve(t, &t->added, t->added.n + 1, sizeof(int32_t))) return false;
    const cn__token *token = known_token(t, id);
    int32_t *added = t->added.v;
    size_t i = t->added.n++;
    for (; i > 0 && known_token(t, added[i - 1])->n < token->n; i--) added[i] = added[i - 1];
    added[i] = id;
    t->starts_added[(unsigned char)*cn__token_bytes(t, token)] = true;
    return true;
}

void cn__index_bytes(cn_tokenizer *t)
{
    for (int b = 0; b < 256; b++) t->byte_id[b] = cn__token_find(t, &(char){ (char)b }, 1, false);
}

bool cn__spelled_bytes(const char *text, size_t n, char *out, size_t *out_n)
{
    *out_n = 0;
    for (size_t at = 0; at < n;) {
        cn__rune r = cn__utf8_next(text + at, n - at);
        int byte = r.state == CN__UTF8_WHOLE ? cn__byte_of_letter(r.code) : -1;
        if (byte < 0) return false;
        if (out) out[*out_n] = (char)byte;
        ++*out_n;
        at += r.n;
    }
    return true;
}

size_t cn__spell_bytes(const char *bytes, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) at += (size_t)cn__utf8_encode(cn__letter_of_byte((unsigned char)bytes[i]), out + at);
    return at;
}

/* ---- merges ---- */

static bool reserve_pair(cn_tokenizer *t)
{
    size_t wanted = t->pairs.n ? t->pairs.n : 64;
    while (wanted < 2 * (t->merges.n + 1)) wanted *= 2;
    if (wanted == t->pairs.n) return true;
    if (!reserve(t, &t->pairs, wanted, sizeof(cn__merge))) return false;
    t->pairs.n = wanted;
    cn__merge *pairs = t->pairs.v, *merges = t->merges.v;
    for (size_t i = 0; i < wanted; i++) pairs[i].left = -1;
    for (size_t i = 0; i < t->merges.n; i++) *cn__pair_slot(t, merges[i].left, merges[i].right) = merges[i];
    return true;
}

bool cn__merge_insert(cn_tokenizer *t, int32_t left, int32_t right, int32_t result)
{
    if (t->merges.n >= UINT32_MAX) return cn__fail(t->object.ctx, CN_UNSUPPORTED, "tokenizer: more than 2^32 merges");
    if (!reserve_pair(t) || !reserve(t, &t->merges, t->merges.n + 1, sizeof(cn__merge))) return false;
    cn__merge m = { left, right, result, (uint32_t)t->merges.n };
    ((cn__merge *)t->merges.v)[t->merges.n++] = m;
    *cn__pair_slot(t, left, right) = m;
    return true;
}

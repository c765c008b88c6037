/* Encodes text to tokens. Added tokens are found first; the model encodes the text between them, with BPE piece by
   piece. */
#include "core/errors.h"
#include "text/split.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

/* A token of the present piece, in a linked list in the order of the text. */
typedef struct symbol {
    int32_t id; /* -1: merged into the symbol before it */
    uint32_t prev, next;
} symbol;

typedef struct encoder {
    const cn_tokenizer *t;
    cn__memory *memory;
    int32_t *out;
    int64_t room, count;
    cn__vec symbols;
    cn__vec heap;     /* of uint64_t: rank of a merge and place of its left symbol; smallest first */
    cn__vec prefixed; /* of char: a copy of the text with a space before it */
} encoder;

static void emit(encoder *e, int32_t id)
{
    if (e->count < e->room) e->out[e->count] = id;
    e->count++;
}

static bool reserve(encoder *e, cn__vec *v, size_t n, size_t element)
{
    return cn__vec_reserve(e->memory, v, n, element) || cn__no_memory(e->t->object.ctx, "encode");
}

/* ---- BPE ---- */

static void heap_push(cn__vec *heap, uint64_t key)
{
    uint64_t *h = heap->v;
    size_t i = heap->n++;
    for (; i > 0 && h[(i - 1) / 2] > key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = key;
}

static uint64_t heap_pop(cn__vec *heap)
{
    uint64_t *h = heap->v, top = h[0], last = h[--heap->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && h[child + 1] < h[child]) child++;
        if (last <= h[child]) break;
        h[i] = h[child];
    }
    h[i] = last;
    return top;
}

/* The merge of the symbol at `at` with the next symbol; NULL: they do not merge. */
static const cn__merge *merge_at(const encoder *e, uint32_t at)
{
    const symbol *s = e->symbols.v;
    if (s[at].id < 0 || s[at].next >= e->symbols.n) return NULL;
    const cn__merge *m = cn__pair_slot(e->t, s[at].id, s[s[at].next].id);
    return m->left < 0 ? NULL : m;
}

static void push_merge(encoder *e, uint32_t at)
{
    const cn__merge *m = merge_at(e, at);
    if (m) heap_push(&e->heap, (uint64_t)m->rank << 32 | at);
}

/* Merges until no two neighbours merge. An entry of the heap whose rank has changed is out of date and skipped. */
static void merge_all(encoder *e)
{
    symbol *s = e->symbols.v;
    for (uint32_t i = 0; i < e->symbols.n; i++) push_merge(e, i);
    while (e->heap.n > 0) {
        uint64_t key = heap_pop(&e->heap);
        uint32_t at = (uint32_t)key;
        const cn__merge *m = merge_at(e, at);
        if (!m || m->rank != key >> 32) continue;
        uint32_t gone = s[at].next;
        s[at].id = m->result;
        s[at].next = s[gone].next;
        s[gone].id = -1;
        if (s[at].next < e->symbols.n) s[s[at].next].prev = at;
        if (at > 0) push_merge(e, s[at].prev);
        push_merge(e, at);
    }
}

/* Makes a symbol of each byte. There are fewer than n merges, and each pushes at most two more, so that the heap never
   holds 3 n entries. */
static bool begin_piece(encoder *e, const char *text, size_t n)
{
    const cn_tokenizer *t = e->t;
    if (n > INT32_MAX)
        return cn__fail(t->object.ctx, CN_UNSUPPORTED, "encode: a piece must have at most 2^31 - 1 bytes, got %zu", n);
    if (!reserve(e, &e->symbols, n, sizeof(symbol)) || !reserve(e, &e->heap, 3 * n, sizeof(uint64_t))) return false;
    symbol *s = e->symbols.v;
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = t->byte_id[(unsigned char)text[i]];
        bool unknown = id < 0;
        if (unknown && t->unknown < 0)
            return cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "encode: the tokenizer has no token for byte 0x%02X",
                            (unsigned)(unsigned char)text[i]);
        if (unknown && t->fuse_unknown && count > 0 && s[count - 1].id == t->unknown) continue;
        s[count] = (symbol){ unknown ? t->unknown : id, count ? count - 1 : 0, count + 1 };
        count++;
    }
    e->symbols.n = count;
    e->heap.n = 0;
    return true;
}

static bool encode_piece(encoder *e, const char *text, size_t n)
{
    if (e->t->ignore_merges) {
        int32_t id = cn__token_find(e->t, text, n, false);
        if (id >= 0) return emit(e, id), true;
    }
    if (!begin_piece(e, text, n)) return false;
    if (e->t->merges.n > 0) merge_all(e);
    const symbol *s = e->symbols.v;
    for (uint32_t i = 0; i < e->symbols.n; i = s[i].next) emit(e, s[i].id);
    return true;
}

static bool encode_pieces(encoder *e, const char *text, size_t n)
{
    if (e->t->add_prefix_space && text[0] != ' ') {
        if (!reserve(e, &e->prefixed, n + 1, 1)) return false;
        char *copy = e->prefixed.v;
        copy[0] = ' ';
        memcpy(copy + 1, text, n);
        text = copy;
        n++;
    }
    if (!e->t->split) return encode_piece(e, text, n);
    for (size_t at = 0, piece; at < n; at += piece) {
        piece = cn__split_next(text + at, n - at);
        if (!encode_piece(e, text + at, piece)) return false;
    }
    return true;
}

/* ---- bytes and characters ---- */

static bool encode_bytes(encoder *e, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) emit(e, e->t->byte_id[(unsigned char)text[i]]);
    return true;
}

static bool encode_characters(encoder *e, const char *text, size_t n)
{
    for (size_t at = 0, step; at < n; at += step) {
        cn__rune r = cn__utf8_next(text + at, n - at);
        bool whole = r.state == CN__UTF8_WHOLE;
        step = whole ? r.n : 1;
        int32_t id = whole ? cn__token_find(e->t, text + at, step, true) : -1;
        emit(e, id < 0 ? e->t->unknown : id);
    }
    return true;
}

static bool encode_model(encoder *e, const char *text, size_t n)
{
    if (n == 0) return true;
    switch (e->t->kind) {
    case CN_TOKENS_BYTES: return encode_bytes(e, text, n);
    case CN_TOKENS_CHARACTERS: return encode_characters(e, text, n);
    case CN_TOKENS_BPE: break;
    }
    return encode_pieces(e, text, n);
}

/* ---- added tokens ---- */

/* Where the white space at the end of the text begins. */
static size_t trailing_space(const char *text, size_t n)
{
    size_t start = n;
    while (start > 0) {
        size_t back = start - 1;
        while (back > 0 && start - back < 4 && ((unsigned char)text[back] & 0xC0) == 0x80) back--;
        if (cn__space_run(text + back, start - back) != start - back) break;
        start = back;
    }
    return start;
}

/* The longest added token at the beginning of the text; -1: none. */
static int32_t added_at(const cn_tokenizer *t, const char *text, size_t n, bool late)
{
    const int32_t *added = t->added.v;
    if (!t->starts_added[(unsigned char)*text]) return -1;
    for (size_t i = 0; i < t->added.n; i++) {
        const cn__token *token = cn__token_at(t, added[i]);
        if (((token->flags & CN__TOKEN_LATE) != 0) != late) continue;
        if (t->no_special && token->flags & CN__TOKEN_SPECIAL) continue;
        if (token->n <= n && memcmp(cn__token_bytes(t, token), text, token->n) == 0) return added[i];
    }
    return -1;
}

cn__match cn__next_added(const cn_tokenizer *t, const char *text, size_t n, size_t from, bool late)
{
    for (size_t at = from; at < n; at++) {
        int32_t id = added_at(t, text + at, n - at, late);
        if (id < 0) continue;
        const cn__token *token = cn__token_at(t, id);
        cn__match m = { id, at, at + token->n };
        if (token->flags & CN__TOKEN_STRIP_LEFT) m.from = from + trailing_space(text + from, at - from);
        if (token->flags & CN__TOKEN_STRIP_RIGHT) m.to += cn__space_run(text + m.to, n - m.to);
        return m;
    }
    return (cn__match){ -1, n, n };
}

static bool encode_part(encoder *e, const char *text, size_t n, bool late)
{
    for (size_t at = 0;;) {
        cn__match m = cn__next_added(e->t, text, n, at, late);
        bool ok = late ? encode_model(e, text + at, m.from - at) : encode_part(e, text + at, m.from - at, true);
        if (!ok) return false;
        if (m.id < 0) return true;
        emit(e, m.id);
        at = m.to;
    }
}

int64_t cn_encode(const cn_tokenizer *t, const char *text, size_t n, int32_t *out, int64_t room)
{
    CN__CALL call = cn__call_object(t, &cn__tokenizer_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return -1;
    if (n > 0 && !text) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "encode: n must be 0 if text is NULL, got %zu", n);
        return -1;
    }
    if (room < 0 || (room > 0 && !out)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "encode: room must be ≥ 0, and 0 if out is NULL; got %lld", (long long)room);
        return -1;
    }
    encoder e = { .t = t, .memory = &ctx->memory, .out = out, .room = room };
    bool ok = n == 0 || (t->added.n > 0 ? encode_part(&e, text, n, false) : encode_model(&e, text, n));
    cn__vec_free(e.memory, &e.symbols, sizeof(symbol));
    cn__vec_free(e.memory, &e.heap, sizeof(uint64_t));
    cn__vec_free(e.memory, &e.prefixed, 1);
    return ok ? e.count : -1;
}

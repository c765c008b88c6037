/* text/tokenizer.h: what a tokenizer is inside.

   Tokens have numbers and texts, which are bytes. Files of byte-level BPE write bytes in letters, one a byte
   (alphabet.h); such tokens are kept as the bytes they mean. Other tokens are literal: their text is what the file
   says. */
#ifndef CN_TEXT_TOKENIZER_H
#define CN_TEXT_TOKENIZER_H

#include "cairn/text.h"
#include "core/object.h"

typedef enum cn__token_flags {
    CN__TOKEN_HERE = 1, /* numbers may have holes */
    CN__TOKEN_LITERAL = 2,
    CN__TOKEN_ADDED = 4,       /* found in a text before anything else is done with it */
    CN__TOKEN_SPECIAL = 8,     /* added, and may be turned off */
    CN__TOKEN_STRIP_LEFT = 16, /* takes the white space beside it */
    CN__TOKEN_STRIP_RIGHT = 32,
    CN__TOKEN_LATE = 64,      /* looked for in what the other added tokens leave ("normalized") */
    CN__TOKEN_IN_MODEL = 128, /* stands in the model's vocabulary, not only among the added ones */
} cn__token_flags;

typedef struct cn__token {
    uint32_t at, n; /* text, in bytes */
    uint32_t flags;
} cn__token;

/* Two tokens beside each other become one; the merge with the lowest rank is done first. */
typedef struct cn__merge {
    int32_t left, right, result;
    uint32_t rank;
} cn__merge;

struct cn_tokenizer {
    cn__object object;
    cn_tokenizer_kind kind;
    bool add_prefix_space, split;
    bool ignore_merges; /* a piece that is a token is that token, whatever the merges say */
    bool fuse_unknown;  /* unknown bytes in a row are one token */
    bool no_special;
    int32_t unknown;        /* -1: none */
    int32_t byte_id[256];   /* -1: no token is this byte */
    bool starts_added[256]; /* an added token begins with this byte */
    cn__vec tokens;         /* of cn__token, by number */
    cn__vec bytes;          /* of char: texts of tokens, a 0 after each */
    cn__vec slots;          /* of int32_t: number + 1 by text, open addressing; n is their number, a power of two */
    cn__vec merges;         /* of cn__merge, by rank */
    cn__vec pairs;          /* of cn__merge by left and right, open addressing; a free one has left -1 */
    cn__vec added;          /* of int32_t: added tokens, the longest first */
};

/* vocabulary.c */
cn_tokenizer *cn__tokenizer_new(cn_ctx *ctx, cn_tokenizer_kind kind); /* without tokens */
bool cn__token_put(cn_tokenizer *t, int64_t id, const char *text, size_t n,
                   uint32_t flags); /* the number must be free */
bool cn__token_replace(cn_tokenizer *t, int32_t id, const char *text, size_t n, uint32_t flags);
bool cn__token_add(cn_tokenizer *t, int32_t id); /* a token with CN__TOKEN_ADDED joins those that are looked for */
int32_t cn__token_find(const cn_tokenizer *t, const char *text, size_t n, bool literal); /* -1: none */
const cn__token *cn__token_at(const cn_tokenizer *t, int64_t id);                        /* NULL: none */
/* A token as files of byte-level BPE write it: true, and the bytes it means, if it is all letters of the alphabet. */
bool cn__spelled_bytes(const char *text, size_t n, char *out, size_t *out_n);     /* out: n bytes, or NULL */
size_t cn__spell_bytes(const char *bytes, size_t n, char *out);                   /* out: 2 n bytes */
bool cn__merge_put(cn_tokenizer *t, int32_t left, int32_t right, int32_t result); /* with the next rank */
void cn__bytes_ready(cn_tokenizer *t); /* byte_id, once all tokens are there */

/* encode.c */
typedef struct cn__match {
    int32_t id;      /* -1: none */
    size_t from, to; /* with the white space that the token takes */
} cn__match;
/* The first added token from a place on, the longest if several begin there; late ones have a turn of their own. */
cn__match cn__next_added(const cn_tokenizer *t, const char *text, size_t n, size_t from, bool late);

static inline const char *cn__token_bytes(const cn_tokenizer *t, const cn__token *token)
{
    return (const char *)t->bytes.v + token->at;
}

static inline uint64_t cn__pair_hash(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

/* The slot of the pair, or the free one where it would go. */
static inline cn__merge *cn__pair_slot(const cn_tokenizer *t, int32_t left, int32_t right)
{
    cn__merge *slots = t->pairs.v;
    for (size_t i = cn__pair_hash(left, right);; i++) {
        cn__merge *m = &slots[i & (t->pairs.n - 1)];
        if (m->left < 0 || (m->left == left && m->right == right)) return m;
    }
}

#endif

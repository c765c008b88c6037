/* text/tokenizer.h: the struct behind a tokenizer, its tokens and its merges.

   A token has a number and a text, which is a sequence of bytes. Files of byte-level BPE spell a byte as a letter
   (alphabet.h); in memory, such a token has the bytes that the letters stand for. All other tokens are literal: their
   text is the text in the file. */
#ifndef CN_TEXT_TOKENIZER_H
#define CN_TEXT_TOKENIZER_H

#include "cairn/text.h"
#include "core/object.h"

typedef enum cn__token_flags {
    CN__TOKEN_HERE = 1, /* the token exists: numbers may have holes */
    CN__TOKEN_LITERAL = 2,
    CN__TOKEN_ADDED = 4,       /* found in a text before the model sees it */
    CN__TOKEN_SPECIAL = 8,     /* added; cn_tokenizer_allow_special(t, false) turns it off */
    CN__TOKEN_STRIP_LEFT = 16, /* removes the white space before it; RIGHT: after it */
    CN__TOKEN_STRIP_RIGHT = 32,
    CN__TOKEN_LATE = 64,      /* searched for between the other added tokens ("normalized" in files) */
    CN__TOKEN_IN_MODEL = 128, /* in the model's vocabulary, not only among the added tokens */
} cn__token_flags;

typedef struct cn__token {
    uint32_t at, n; /* where its text begins in `bytes`, and its length */
    uint32_t flags;
} cn__token;

/* Two neighbouring tokens become one. The merge with the lowest rank is applied first. */
typedef struct cn__merge {
    int32_t left, right, result;
    uint32_t rank;
} cn__merge;

struct cn_tokenizer {
    cn__object object;
    cn_tokenizer_kind kind;
    bool add_prefix_space, split;
    bool ignore_merges;     /* a piece that equals a token becomes that token without merges */
    bool fuse_unknown;      /* a run of unknown bytes becomes one token */
    bool no_special;        /* special tokens are not searched for */
    int32_t unknown;        /* token for unknown bytes or characters; -1: none */
    int32_t byte_id[256];   /* token of each byte; -1: none */
    bool starts_added[256]; /* an added token begins with this byte */
    cn__vec tokens;         /* of cn__token, by number */
    cn__vec bytes;          /* of char: texts of tokens, each ended by 0 */
    cn__vec slots;          /* of int32_t: hash table from text to number + 1, open addressing; n is a power of two */
    cn__vec merges;         /* of cn__merge, by rank */
    cn__vec pairs;          /* of cn__merge: hash table by left and right, open addressing; left is -1 in a free slot */
    cn__vec added;          /* of int32_t: added tokens, longest first */
};

/* vocabulary.c */
cn_tokenizer *cn__tokenizer_new(cn_ctx *ctx, cn_tokenizer_kind kind); /* without tokens */
bool cn__token_insert(cn_tokenizer *t, int64_t id, const char *text, size_t n,
                      uint32_t flags); /* no token has the number yet */
bool cn__token_replace(cn_tokenizer *t, int32_t id, const char *text, size_t n, uint32_t flags);
bool cn__token_add(cn_tokenizer *t, int32_t id);                                         /* adds the token to `added` */
int32_t cn__token_find(const cn_tokenizer *t, const char *text, size_t n, bool literal); /* -1: none */
const cn__token *cn__token_at(const cn_tokenizer *t, int64_t id);                        /* NULL: none */
/* The bytes that letters of the alphabet stand for. False: the text has other letters. */
bool cn__spelled_bytes(const char *text, size_t n, char *out, size_t *out_n);        /* out: n bytes, or NULL */
size_t cn__spell_bytes(const char *bytes, size_t n, char *out);                      /* out: 2 n bytes */
bool cn__merge_insert(cn_tokenizer *t, int32_t left, int32_t right, int32_t result); /* its rank is the next one */
void cn__index_bytes(cn_tokenizer *t); /* fills in byte_id, once all tokens are there */

/* encode.c */
typedef struct cn__match {
    int32_t id;      /* -1: none */
    size_t from, to; /* with the white space that the token removes */
} cn__match;
/* The first added token at or after `from`; the longest if several begin at the same place. Tokens with
   CN__TOKEN_LATE are found with late, the others without. */
cn__match cn__next_added(const cn_tokenizer *t, const char *text, size_t n, size_t from, bool late);

static inline const char *cn__token_bytes(const cn_tokenizer *t, const cn__token *token)
{
    return (const char *)t->bytes.v + token->at;
}

static inline uint64_t cn__pair_hash(const cn__hash_key *key, int32_t left, int32_t right)
{
    return cn__hash_number(key, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

/* The slot of the pair, or the free slot where it belongs. */
static inline cn__merge *cn__pair_slot(const cn_tokenizer *t, int32_t left, int32_t right)
{
    cn__merge *slots = t->pairs.v;
    for (size_t i = cn__pair_hash(&t->object.ctx->hash_key, left, right);; i++) {
        cn__merge *m = &slots[i & (t->pairs.n - 1)];
        if (m->left < 0 || (m->left == left && m->right == right)) return m;
    }
}

extern const cn__object_type cn__tokenizer_type; /* vocabulary.c */

#endif

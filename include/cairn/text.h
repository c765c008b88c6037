/* cairn/text.h: tokenizers: text to numbers and back.

       cn_tokenizer *t = cn_tokenizer_load(cn, "tokenizer.json");          or cn_bpe_train(cn, text, n, 8000, NULL)
       int64_t n = cn_encode(t, text, strlen(text), NULL, 0);              how many tokens
       int32_t *ids = malloc((size_t)n * sizeof *ids);
       cn_encode(t, text, strlen(text), ids, n);

       cn_decoder d = { .tokenizer = t };                                  printing what a model says, token by token
       char words[256];
       int64_t got = cn_decode_next(&d, id, words, sizeof words);          whole characters only
       fwrite(words, 1, (size_t)got, stdout);

   Kinds      Bytes: 256 tokens. Characters: the code points of a text, and one token for all others. BPE: byte pairs as
              in GPT-2, trained here or read from Hugging Face's tokenizer.json or GPT-2's vocab.json and merges.txt.
   Any bytes  A text need not be UTF-8. With bytes and BPE, cn_decode gives back exactly what cn_encode was given (but for
              a space put in front, and white space beside tokens that strip it, where the file asks for that).
   Special    Tokens such as <|endoftext|> are found in the text, unless cn_tokenizer_allow_special says no: then a text
              that spells one out is text like any other.
   Files      Tokens are those of Hugging Face's encode with add_special_tokens=False: what a file says of truncation,
              padding and post-processors is not read, and not saved again.
   Ownership  A tokenizer belongs to its context, or until cn_tokenizer_free. Texts of tokens live as long as it.
   Errors     NULL, false or -1, and an error in the context. What a tokenizer.json asks for and Cairn does not have is
              CN_UNSUPPORTED and named: other models, normalizers, patterns. */
#ifndef CAIRN_TEXT_H
#define CAIRN_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_tokenizer cn_tokenizer;
typedef enum cn_tokenizer_kind { CN_TOKENS_BYTES, CN_TOKENS_CHARACTERS, CN_TOKENS_BPE } cn_tokenizer_kind;

/* ---- making ---- */

CN_API cn_tokenizer *cn_tokenizer_bytes(cn_ctx *ctx); /* token i is byte i */

/* The characters found in the text, in the order of their code points, after the token for all others: token 0.
   unknown: what that one is called; NULL: "<unk>". Bytes that are not UTF-8 are all others. */
CN_API cn_tokenizer *cn_tokenizer_characters(cn_ctx *ctx, const char *text, size_t n, const char *unknown);

typedef struct cn_bpe_desc {
    int64_t min_frequency;       /* a pair must be seen that often to be merged; 0: 2 */
    const char *const *special;  /* tokens that are never merged nor cut; they come first */
    int n_special;
    bool add_prefix_space;       /* a text is encoded as if it began with a space */
    bool no_split;               /* merge across words: no cutting by GPT-2's pattern first */
} cn_bpe_desc;
/* Special tokens, 256 bytes, then merges until there are vocab_size tokens or no pair is frequent enough: the most
   frequent pair first, of equally frequent ones that with the smaller numbers. The same text gives the same tokenizer.
   Special tokens that stand in the text are left out of it. */
CN_API cn_tokenizer *cn_bpe_train(cn_ctx *ctx, const char *text, size_t n, int64_t vocab_size, const cn_bpe_desc *desc);

/* ---- files ---- */

CN_API cn_tokenizer *cn_tokenizer_load(cn_ctx *ctx, const char *path);            /* tokenizer.json */
CN_API cn_tokenizer *cn_tokenizer_parse(cn_ctx *ctx, const char *json, size_t n); /* the same, in memory */
CN_API cn_tokenizer *cn_tokenizer_load_pair(cn_ctx *ctx, const char *vocab_json, const char *merges_txt);
CN_API bool cn_tokenizer_save(const cn_tokenizer *t, const char *path); /* tokenizer.json; whole or not at all */
CN_API void cn_tokenizer_free(cn_tokenizer *t);

/* ---- what there is ---- */

CN_API cn_tokenizer_kind cn_tokenizer_kind_of(const cn_tokenizer *t);
CN_API int64_t cn_token_count(const cn_tokenizer *t); /* the largest number + 1 */
/* Ended by 0; n may be NULL. NULL: no such token. */
CN_API const char *cn_token_text(const cn_tokenizer *t, int32_t id, size_t *n);
/* Of the token that is this text; -1: none. */
CN_API int32_t cn_token_id(const cn_tokenizer *t, const char *text, size_t n);
CN_API bool cn_token_is_special(const cn_tokenizer *t, int32_t id);

/* A special token under a new number, or an old one made special. Its number; -1: an error. */
CN_API int32_t cn_tokenizer_add_special(cn_tokenizer *t, const char *text);
CN_API void cn_tokenizer_allow_special(cn_tokenizer *t, bool allow);

/* ---- text to tokens and back ---- */

/* How many tokens the text has, the first `room` of them in out (NULL with room 0). -1: an error. */
CN_API int64_t cn_encode(const cn_tokenizer *t, const char *text, size_t n, int32_t *out, int64_t room);
/* How many bytes the tokens have, the first `room` of them in out, a 0 after them if there is room. -1: an error. */
CN_API int64_t cn_decode(const cn_tokenizer *t, const int32_t *ids, int64_t n, char *out, int64_t room);

/* Token by token. What comes out is always UTF-8: a character waits until it is whole, and bytes that cannot become one
   come out as U+FFFD. Each call gives the number of bytes; if they are more than `room`, nothing was done: call again with
   more. */
typedef struct cn_decoder {
    const cn_tokenizer *tokenizer;
    int waiting;            /* bytes of a character begun */
    unsigned char held[4];
} cn_decoder;
CN_API int64_t cn_decode_next(cn_decoder *d, int32_t id, char *out, int64_t room);
CN_API int64_t cn_decode_end(cn_decoder *d, char *out, int64_t room); /* what still waits; ready for the next text */

#ifdef __cplusplus
}
#endif
#endif

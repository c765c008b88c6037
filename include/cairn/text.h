/* cairn/text.h: tokenizers, which encode text to numbers and decode it again.

       cn_tokenizer *t = cn_tokenizer_load(cn, "tokenizer.json");          or cn_bpe_train(cn, text, n, 8000, NULL)
       int64_t n = cn_encode(t, text, strlen(text), NULL, 0);              the number of tokens
       int32_t *ids = malloc((size_t)n * sizeof *ids);
       cn_encode(t, text, strlen(text), ids, n);

       cn_decoder d = { .tokenizer = t };                                  to print a model's answer, token by token
       char text[256];
       int64_t n = cn_decode_next(&d, id, text, sizeof text);              whole characters only
       fwrite(text, 1, (size_t)n, stdout);

   Kinds      Bytes: 256 tokens. Characters: the code points of a text, and one token for all others. BPE: byte pairs as
              in GPT-2, trained here or read from Hugging Face's tokenizer.json or GPT-2's vocab.json and merges.txt.
   Any bytes  A text need not be UTF-8. With bytes and BPE, cn_decode returns exactly the bytes that cn_encode received.
              Exceptions are a space before the text, and white space beside tokens that strip it, if the file has them.
   Special    Tokens such as <|endoftext|> are found in the text. After cn_tokenizer_allow_special(t, false) they are
              not: a text that contains one is encoded like any other text.
   Files      Tokens are those of Hugging Face's encode with add_special_tokens=False. Truncation, padding and
              post-processors in a file are not read, and not saved.
   Ownership  A tokenizer belongs to its context, until cn_tokenizer_free. Texts of tokens live as long as it does.
   Errors     Functions return NULL, false or -1 and set the error of the context. A model, normalizer or pattern in a
              tokenizer.json that Cairn does not have is CN_UNSUPPORTED; the message names it. */
#ifndef CAIRN_TEXT_H
#define CAIRN_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_tokenizer cn_tokenizer;
typedef enum cn_tokenizer_kind { CN_TOKENS_BYTES, CN_TOKENS_CHARACTERS, CN_TOKENS_BPE } cn_tokenizer_kind;

/* ---- create ---- */

CN_API cn_tokenizer *cn_tokenizer_bytes(cn_ctx *ctx); /* token i is byte i */

/* Token 0 stands for unknown characters, and for bytes that are not UTF-8. The characters of the text follow, in the
   order of their code points. unknown: the name of token 0; NULL: "<unk>". */
CN_API cn_tokenizer *cn_tokenizer_characters(cn_ctx *ctx, const char *text, size_t n, const char *unknown);

typedef struct cn_bpe_desc {
    int64_t min_frequency;       /* a pair that occurs less often is not merged; 0: 2 */
    const char *const *special;  /* tokens that are never merged or split; they have the first numbers */
    int n_special;
    bool add_prefix_space;       /* a text is encoded as if it began with a space */
    bool no_split;               /* merge across words: do not split by GPT-2's pattern first */
} cn_bpe_desc;
/* Tokens are the special tokens, 256 bytes, then merges, until there are vocab_size tokens or no pair is frequent
   enough. The most frequent pair is merged first; of equally frequent pairs, the one with the smaller numbers. The same
   text always gives the same tokenizer. Special tokens in the text are skipped. */
CN_API cn_tokenizer *cn_bpe_train(cn_ctx *ctx, const char *text, size_t n, int64_t vocab_size, const cn_bpe_desc *desc);

/* ---- files ---- */

CN_API cn_tokenizer *cn_tokenizer_load(cn_ctx *ctx, const char *path);            /* tokenizer.json */
CN_API cn_tokenizer *cn_tokenizer_parse(cn_ctx *ctx, const char *json, size_t n); /* the same, in memory */
CN_API cn_tokenizer *cn_tokenizer_load_pair(cn_ctx *ctx, const char *vocab_json, const char *merges_txt);
CN_API bool cn_tokenizer_save(const cn_tokenizer *t, const char *path); /* tokenizer.json; complete, or not at all */
CN_API void cn_tokenizer_free(cn_tokenizer *t);

/* ---- look up ---- */

CN_API cn_tokenizer_kind cn_tokenizer_kind_of(const cn_tokenizer *t);
CN_API int64_t cn_token_count(const cn_tokenizer *t); /* the largest number + 1 */
/* The text of a token, ended by 0; n (may be NULL) receives its length. NULL: no such token. */
CN_API const char *cn_token_text(const cn_tokenizer *t, int32_t id, size_t *n);
/* The token with this text; -1: none. */
CN_API int32_t cn_token_id(const cn_tokenizer *t, const char *text, size_t n);
CN_API bool cn_token_is_special(const cn_tokenizer *t, int32_t id);

/* Adds a special token, or makes an existing token special. Returns its number; -1: an error. */
CN_API int32_t cn_tokenizer_add_special(cn_tokenizer *t, const char *text);
CN_API void cn_tokenizer_allow_special(cn_tokenizer *t, bool allow);

/* ---- text to tokens and back ---- */

/* Returns the number of tokens and writes the first `room` of them to out, which may be NULL if room is 0. -1: an
   error. */
CN_API int64_t cn_encode(const cn_tokenizer *t, const char *text, size_t n, int32_t *out, int64_t room);
/* Returns the number of bytes of the tokens and writes the first `room` of them to out, and a 0 if it fits. -1: an
   error. */
CN_API int64_t cn_decode(const cn_tokenizer *t, const int32_t *ids, int64_t n, char *out, int64_t room);

/* Token by token. The output is always UTF-8: a character waits until it is complete, and bytes that are not UTF-8
   become U+FFFD. Each call returns the number of bytes. If that is more than `room`, nothing was done: call again with
   more room. */
typedef struct cn_decoder {
    const cn_tokenizer *tokenizer;
    int waiting;            /* bytes of an incomplete character, in held */
    unsigned char held[4];
} cn_decoder;
CN_API int64_t cn_decode_next(cn_decoder *d, int32_t id, char *out, int64_t room);
CN_API int64_t cn_decode_end(cn_decoder *d, char *out, int64_t room); /* the rest; a new text may follow */

#ifdef __cplusplus
}
#endif
#endif

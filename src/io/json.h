/* io/json.h: reads JSON strictly into a tree, and writes JSON.

       cn__bump memory = { 0 };
       const cn__json *root = cn__json_read(ctx, &memory, text, bytes, "tokenizer.json");   NULL: an error is set
       const cn__json *vocab = cn__json_get(root, "vocab");                                 NULL: no such key
       for (uint32_t i = 0; vocab && i < vocab->n; i++) use(vocab->v[i].key, vocab->v[i].whole);
       cn__bump_free(&ctx->memory, &memory);                                                frees the tree

   The reader accepts RFC 8259 and nothing else. The text must be UTF-8 without a byte-order mark. These are errors: a
   lone surrogate, a key that occurs twice in an object, a number too large for a double, and text after the value.
   Errors name line and column. The tree copies what it needs, so the text may be freed. */
#ifndef CN_IO_JSON_H
#define CN_IO_JSON_H

#include "core/context.h"
#include "core/errors.h"

#define CN__JSON_DEPTH 128 /* how deep objects and arrays may nest */

typedef enum cn__json_type {
    CN__JSON_NULL,
    CN__JSON_BOOL,
    CN__JSON_NUMBER,
    CN__JSON_TEXT,
    CN__JSON_ARRAY,
    CN__JSON_OBJECT,
} cn__json_type;

/* The hash table of an object with many members: number of the member + 1, open addressing; 0 is free. */
typedef struct cn__json_index {
    cn__hash_key key;
    uint32_t slots[];
} cn__json_index;

typedef struct cn__json {
    uint8_t type;  /* cn__json_type */
    bool is_true;  /* BOOL */
    bool is_whole; /* NUMBER: it has no point and no exponent, and fits an int64_t */
    uint32_t n;    /* TEXT: bytes; ARRAY, OBJECT: members */
    uint32_t key_bytes;
    const char *key;             /* of a member of an object; ended by 0, and may contain 0 */
    const cn__json_index *index; /* OBJECT with many members; or NULL */
    union {
        const struct cn__json *v; /* ARRAY, OBJECT: the members in the order of the text */
        const char *text;         /* TEXT: ended by 0, and may contain 0 */
        int64_t whole;            /* NUMBER with is_whole */
    };
    double number; /* NUMBER: the nearest double */
    size_t at;     /* where it begins in the text, with its key */
} cn__json;

const cn__json *cn__json_read(cn_ctx *ctx, cn__bump *memory, const char *text, size_t bytes, const char *name);

/* NULL if object is NULL, is not an object, or has no such key. */
const cn__json *cn__json_get(const cn__json *object, const char *key);
const cn__json *cn__json_get_n(const cn__json *object, const char *key, size_t key_bytes);

/* NULL unless it is a text without a 0 in it. */
const char *cn__json_text(const cn__json *j);

size_t cn__utf8_valid(const char *text, size_t bytes); /* length of the valid UTF-8 at the beginning */
int cn__utf8_encode(uint32_t code, char out[4]);       /* of a valid code point; returns the number of bytes */

/* A text to which JSON is appended. After an error the text does not change, and every call returns false. */
typedef struct cn__out {
    cn_ctx *ctx;
    cn__vec text; /* of char; not ended by 0 */
    bool failed;
} cn__out;
bool cn__out_append(cn__out *o, const char *bytes, size_t n);
bool cn__out_plain(cn__out *o, const char *text);              /* unquoted: brackets, commas */
bool cn__out_text(cn__out *o, const char *text, size_t bytes); /* quoted; not UTF-8: an error */
bool cn__out_whole(cn__out *o, int64_t value);
bool cn__out_number(cn__out *o, double value); /* reads back as the same double; NaN and infinity are errors */
void cn__out_free(cn__out *o);

#endif

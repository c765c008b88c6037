/* io/json.h: JSON read strictly into a tree, and written.

       cn__bump memory = { 0 };
       const cn__json *root = cn__json_read(ctx, &memory, text, bytes, "tokenizer.json");   NULL: an error stands
       const cn__json *vocab = cn__json_get(root, "vocab");                                 NULL: no such key
       for (uint32_t i = 0; vocab && i < vocab->n; i++) use(vocab->v[i].key, vocab->v[i].whole);
       cn__bump_free(&ctx->memory, &memory);                                                the tree is gone

   Strict: RFC 8259 and nothing else. Text must be UTF-8, without byte order mark; a lone surrogate, a key that stands
   twice in an object, a number too large for a double and anything after the value are errors. They say line and column.
   The tree copies what it needs: the text read may go. */
#ifndef CN_IO_JSON_H
#define CN_IO_JSON_H

#include "core/context.h"
#include "core/errors.h"

#define CN__JSON_DEPTH 128 /* objects and arrays inside one another */

typedef enum cn__json_type {
    CN__JSON_NULL,
    CN__JSON_BOOL,
    CN__JSON_NUMBER,
    CN__JSON_TEXT,
    CN__JSON_ARRAY,
    CN__JSON_OBJECT,
} cn__json_type;

typedef struct cn__json {
    uint8_t type;  /* cn__json_type */
    bool is_true;  /* BOOL */
    bool is_whole; /* NUMBER: written without point and exponent, and an int64_t holds it */
    uint32_t n;    /* TEXT: bytes; ARRAY, OBJECT: members */
    uint32_t key_bytes;
    const char *key;       /* in an object; ended by 0, which may also stand inside */
    const uint32_t *slots; /* OBJECT with many members: open addressing, number + 1, 0 is free */
    union {
        const struct cn__json *v; /* ARRAY, OBJECT: the members in the order of the text */
        const char *text;         /* TEXT: ended by 0, which may also stand inside */
        int64_t whole;            /* NUMBER, if it is whole */
    };
    double number; /* NUMBER: the nearest double */
    size_t at;     /* where in the text it begins, with its key */
} cn__json;

const cn__json *cn__json_read(cn_ctx *ctx, cn__bump *memory, const char *text, size_t bytes, const char *who);

/* NULL where object is NULL, not an object, or has no such key. */
const cn__json *cn__json_get(const cn__json *object, const char *key);
const cn__json *cn__json_get_n(const cn__json *object, const char *key, size_t key_bytes);

/* NULL unless it is a text without a 0 inside. */
const char *cn__json_text(const cn__json *j);

/* The first byte of what is not UTF-8, or bytes. */
size_t cn__utf8_valid(const char *text, size_t bytes);

/* Writing: a text that grows. After an error it stays as it is and every call returns false. */
typedef struct cn__out {
    cn_ctx *ctx;
    cn__vec text; /* of char; not ended by 0 */
    bool failed;
} cn__out;
bool cn__out_put(cn__out *o, const char *bytes, size_t n);
bool cn__out_word(cn__out *o, const char *word);               /* as it is: brackets, commas */
bool cn__out_text(cn__out *o, const char *text, size_t bytes); /* quoted; not UTF-8: an error */
bool cn__out_whole(cn__out *o, int64_t value);
bool cn__out_number(cn__out *o, double value); /* reads back as the same double; NaN or infinite: an error */
void cn__out_free(cn__out *o);

#endif

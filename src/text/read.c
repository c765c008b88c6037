/* Reads Hugging Face's tokenizer.json, and GPT-2's older pair of files vocab.json and merges.txt. A feature that a file
   needs and Cairn does not have is an error that names it. */
#include <stdarg.h>
#include <stdio.h>

#include "io/files.h"
#include "io/json.h"
#include "text/split.h"
#include "text/tokenizer.h"

typedef struct reader {
    cn_ctx *ctx;
    const char *name; /* of the file, for errors */
    cn_tokenizer *t;
    size_t limit;            /* of the numbers of tokens: holes are allowed, but not a gigabyte of them */
    cn__vec spelled, joined; /* of char */
} reader;

__attribute__((format(printf, 3, 4))) static bool refuse(const reader *r, cn_code code, const char *message, ...)
{
    char text[256];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    return cn__fail(r->ctx, code, "tokenizer: %.200s: %s", r->name, text);
}

static bool reserve(const reader *r, cn__vec *v, size_t n)
{
    return cn__vec_reserve(&r->ctx->memory, v, n, 1) || cn__no_memory(r->ctx, "tokenizer");
}

/* ---- fields ---- */

static bool is_absent(const cn__json *j) { return !j || j->type == CN__JSON_NULL; }

/* The text of a field; `absent` if there is no such field, "" if it is not a text. */
static const char *text_of(const cn__json *object, const char *key, const char *absent)
{
    const cn__json *j = cn__json_get(object, key);
    const char *text = is_absent(j) ? absent : cn__json_text(j);
    return text ? text : "";
}

static bool is_text(const cn__json *object, const char *key, const char *text)
{
    return strcmp(text_of(object, key, ""), text) == 0;
}

static bool read_flag(const reader *r, const cn__json *object, const char *key, bool absent, bool *flag)
{
    const cn__json *j = cn__json_get(object, key);
    *flag = is_absent(j) ? absent : j->is_true;
    return is_absent(j) || j->type == CN__JSON_BOOL || refuse(r, CN_BAD_FILE, "%s must be true or false", key);
}

/* A field that must be absent, "" or false: its feature is not implemented. */
static bool must_be_empty(const reader *r, const cn__json *object, const char *key)
{
    const cn__json *j = cn__json_get(object, key);
    bool empty = is_absent(j) || (j->type == CN__JSON_BOOL && !j->is_true) || (j->type == CN__JSON_TEXT && j->n == 0);
    return empty || refuse(r, CN_UNSUPPORTED, "the model's %s is not implemented", key);
}

/* ---- tokens ---- */

/* Finds a token by its text in the file: by the bytes that its letters stand for, or as a literal. */
static int32_t find_written(reader *r, const char *text, size_t n)
{
    if (r->t->kind == CN_TOKENS_CHARACTERS) return cn__token_find(r->t, text, n, true);
    if (!reserve(r, &r->spelled, n)) return -1;
    size_t bytes;
    bool spelled = cn__spelled_bytes(text, n, r->spelled.v, &bytes);
    return spelled ? cn__token_find(r->t, r->spelled.v, bytes, false) : cn__token_find(r->t, text, n, true);
}

static bool check_number(const reader *r, const cn__json *id)
{
    bool good = id && id->type == CN__JSON_NUMBER && id->is_whole && id->whole >= 0;
    if (!good) return refuse(r, CN_BAD_FILE, "the number of a token must be a whole number ≥ 0");
    if ((uint64_t)id->whole < r->limit) return true;
    return refuse(r, CN_BAD_FILE, "token number %lld is too large for this vocabulary; it must be below %zu",
                  (long long)id->whole, r->limit);
}

static bool read_token(reader *r, const cn__json *entry)
{
    if (!check_number(r, entry)) return false;
    if (cn__token_at(r->t, entry->whole))
        return refuse(r, CN_BAD_FILE, "two tokens have the number %lld", (long long)entry->whole);
    if (!reserve(r, &r->spelled, entry->key_bytes)) return false;
    size_t bytes;
    if (r->t->kind != CN_TOKENS_CHARACTERS && cn__spelled_bytes(entry->key, entry->key_bytes, r->spelled.v, &bytes))
        return cn__token_insert(r->t, entry->whole, r->spelled.v, bytes, CN__TOKEN_IN_MODEL);
    return cn__token_insert(r->t, entry->whole, entry->key, entry->key_bytes, CN__TOKEN_IN_MODEL | CN__TOKEN_LITERAL);
}

static bool read_vocabulary(reader *r, const cn__json *vocab)
{
    if (!vocab || vocab->type != CN__JSON_OBJECT) return refuse(r, CN_BAD_FILE, "vocab is missing or not an object");
    for (uint32_t i = 0; i < vocab->n; i++)
        if (!read_token(r, &vocab->v[i])) return false;
    cn__index_bytes(r->t);
    return true;
}

static bool read_unknown(reader *r, const cn__json *model)
{
    const cn__json *unknown = cn__json_get(model, "unk_token");
    if (is_absent(unknown)) return true;
    if (unknown->type != CN__JSON_TEXT) return refuse(r, CN_BAD_FILE, "unk_token must be a text");
    r->t->unknown = find_written(r, unknown->text, unknown->n);
    return r->t->unknown >= 0 || refuse(r, CN_BAD_FILE, "unk_token is not in the vocabulary");
}

/* ---- merges ---- */

static bool read_merge(reader *r, const char *left, size_t n_left, const char *right, size_t n_right)
{
    if (n_left == 0 || n_right == 0)
        return refuse(r, CN_BAD_FILE, "merge %zu must be two tokens, and neither may be empty", r->t->merges.n);
    if (!reserve(r, &r->joined, n_left + n_right)) return false;
    char *joined = r->joined.v;
    if (!joined) return false; /* n_left and n_right are above 0: it is there */
    memcpy(joined, left, n_left);
    memcpy(joined + n_left, right, n_right);
    int32_t a = find_written(r, left, n_left), b = find_written(r, right, n_right);
    int32_t made = find_written(r, joined, n_left + n_right);
    if (a >= 0 && b >= 0 && made >= 0) return cn__merge_insert(r->t, a, b, made);
    return refuse(r, CN_BAD_FILE, "merge %zu (\"%.40s\"): one of its tokens is not in the vocabulary", r->t->merges.n,
                  left);
}

/* "left right" */
static bool read_merge_line(reader *r, const char *line, size_t n)
{
    const char *gap = memchr(line, ' ', n);
    size_t left = gap ? (size_t)(gap - line) : n, right = gap ? n - left - 1 : 0;
    if (!gap || memchr(gap + 1, ' ', right))
        return refuse(r, CN_BAD_FILE, "merge %zu (\"%.*s\") must be two tokens with a space between them",
                      r->t->merges.n, (int)(n < 40 ? n : 40), line);
    return read_merge(r, line, left, gap + 1, right);
}

static bool read_merges(reader *r, const cn__json *merges)
{
    if (!merges || merges->type != CN__JSON_ARRAY) return refuse(r, CN_BAD_FILE, "merges are missing or not an array");
    for (uint32_t i = 0; i < merges->n; i++) {
        const cn__json *m = &merges->v[i], *two = m->type == CN__JSON_ARRAY && m->n == 2 ? m->v : NULL;
        bool ok;
        if (m->type == CN__JSON_TEXT) ok = read_merge_line(r, m->text, m->n);
        else if (two && two[0].type == CN__JSON_TEXT && two[1].type == CN__JSON_TEXT)
            ok = read_merge(r, two[0].text, two[0].n, two[1].text, two[1].n);
        else ok = refuse(r, CN_BAD_FILE, "merge %u must be two tokens", (unsigned)i);
        if (!ok) return false;
    }
    return true;
}

/* ---- added tokens ---- */

static bool read_added_flags(const reader *r, const cn__json *a, uint32_t *flags)
{
    bool special, late, left, right, single;
    if (!read_flag(r, a, "special", false, &special) || !read_flag(r, a, "normalized", !special, &late) ||
        !read_flag(r, a, "lstrip", false, &left) || !read_flag(r, a, "rstrip", false, &right) ||
        !read_flag(r, a, "single_word", false, &single))
        return false;
    if (single) return refuse(r, CN_UNSUPPORTED, "an added token with single_word is not implemented");
    *flags = CN__TOKEN_ADDED | CN__TOKEN_LITERAL | (special ? CN__TOKEN_SPECIAL : 0) | (late ? CN__TOKEN_LATE : 0) |
             (left ? CN__TOKEN_STRIP_LEFT : 0) | (right ? CN__TOKEN_STRIP_RIGHT : 0);
    return true;
}

static bool read_added_token(reader *r, const cn__json *a)
{
    const cn__json *id = cn__json_get(a, "id"), *text = cn__json_get(a, "content");
    uint32_t flags = 0;
    if (!text || text->type != CN__JSON_TEXT || text->n == 0)
        return refuse(r, CN_BAD_FILE, "the content of an added token must be a text that is not empty");
    if (!check_number(r, id) || !read_added_flags(r, a, &flags)) return false;
    if (!reserve(r, &r->spelled, text->n)) return false; /* find_written cannot fail then */
    const cn__token *old = cn__token_at(r->t, id->whole);
    int32_t same = cn__token_find(r->t, text->text, text->n, true);
    if (same < 0) same = find_written(r, text->text, text->n);
    if ((old || same >= 0) && same != id->whole)
        return refuse(r, CN_BAD_FILE, "the added token \"%.40s\" is not token %lld of the vocabulary", text->text,
                      (long long)id->whole);
    if (old && old->flags & CN__TOKEN_ADDED)
        return refuse(r, CN_BAD_FILE, "the token \"%.40s\" is added twice", text->text);
    bool ok = old ? cn__token_replace(r->t, same, text->text, text->n, flags | (old->flags & CN__TOKEN_IN_MODEL))
                  : cn__token_insert(r->t, id->whole, text->text, text->n, flags);
    return ok && cn__token_add(r->t, (int32_t)id->whole);
}

static bool read_added(reader *r, const cn__json *added)
{
    if (is_absent(added)) return true;
    if (added->type != CN__JSON_ARRAY) return refuse(r, CN_BAD_FILE, "added_tokens must be an array");
    for (uint32_t i = 0; i < added->n; i++)
        if (!read_added_token(r, &added->v[i])) return false;
    return true;
}

/* ---- the steps before and after the model ---- */

static bool refuse_part(const reader *r, const char *part, const cn__json *j)
{
    return refuse(r, CN_UNSUPPORTED, "the %s %.60s is not implemented", part, text_of(j, "type", "without a type"));
}

/* The parts of a Sequence, or a single part. */
typedef struct parts {
    const cn__json *v;
    uint32_t n;
} parts;

static parts parts_of(const cn__json *j, const char *key)
{
    if (is_absent(j)) return (parts){ 0 };
    const cn__json *list = is_text(j, "type", "Sequence") ? cn__json_get(j, key) : NULL;
    return list && list->type == CN__JSON_ARRAY ? (parts){ list->v, list->n } : (parts){ j, 1 };
}

/* GPT-2's pattern, in the two forms that files use. */
static bool is_gpt2_pattern(const cn__json *split)
{
    const cn__json *pattern = cn__json_get(split, "pattern");
    return is_text(pattern, "Regex", CN__GPT2_PATTERN) ||
           is_text(pattern, "Regex", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");
}

/* The pattern matches every character. So "Isolated", and "Removed" of what does not match, keep the same pieces. */
static bool keeps_matches(const cn__json *split)
{
    const cn__json *invert = cn__json_get(split, "invert");
    bool inverted = !is_absent(invert) && invert->is_true;
    return is_text(split, "behavior", inverted ? "Removed" : "Isolated");
}

static bool read_pre_tokenizer(reader *r, const cn__json *j)
{
    cn_tokenizer *t = r->t;
    parts p = parts_of(j, "pretokenizers");
    bool byte_level = false;
    for (uint32_t i = 0; i < p.n; i++) {
        const cn__json *part = &p.v[i];
        if (byte_level) return refuse(r, CN_UNSUPPORTED, "a pre_tokenizer after ByteLevel is not implemented");
        if (is_text(part, "type", "Split")) {
            if (!is_gpt2_pattern(part) || !keeps_matches(part))
                return refuse(r, CN_UNSUPPORTED,
                              "the pre_tokenizer Split is implemented for the pattern of GPT-2 only");
            t->split = true;
        } else if (is_text(part, "type", "ByteLevel")) {
            bool prefix, regex;
            if (!read_flag(r, part, "add_prefix_space", true, &prefix) ||
                !read_flag(r, part, "use_regex", true, &regex))
                return false;
            if (prefix && t->split)
                return refuse(r, CN_UNSUPPORTED,
                              "a space before every text (Split, then add_prefix_space) is not implemented");
            t->add_prefix_space = prefix;
            t->split |= regex;
            byte_level = true;
        } else {
            return refuse_part(r, "pre_tokenizer", part);
        }
    }
    return byte_level ||
           refuse(r, CN_UNSUPPORTED, "the model BPE without the pre_tokenizer ByteLevel is not implemented");
}

static bool read_decoder(const reader *r, const cn__json *j, const char *type)
{
    parts p = parts_of(j, "decoders");
    for (uint32_t i = 0; i < p.n; i++)
        if (!is_text(&p.v[i], "type", type)) return refuse_part(r, "decoder", &p.v[i]);
    return true;
}

static bool read_normalizer(const reader *r, const cn__json *j)
{
    parts p = parts_of(j, "normalizers");
    return p.n == 0 || refuse_part(r, "normalizer", p.v);
}

/* ---- models ---- */

/* Without merges, and token i is byte i. */
static bool is_bytes(const cn_tokenizer *t)
{
    bool same = t->merges.n == 0 && t->unknown < 0 && !t->add_prefix_space && !t->split;
    for (int b = 0; b < 256 && same; b++) same = t->byte_id[b] == b;
    return same;
}

static bool read_bpe(reader *r, const cn__json *root, const cn__json *model)
{
    cn_tokenizer *t = r->t;
    if (!read_pre_tokenizer(r, cn__json_get(root, "pre_tokenizer")) ||
        !read_decoder(r, cn__json_get(root, "decoder"), "ByteLevel") || !must_be_empty(r, model, "dropout") ||
        !must_be_empty(r, model, "continuing_subword_prefix") || !must_be_empty(r, model, "end_of_word_suffix") ||
        !must_be_empty(r, model, "byte_fallback") || !read_flag(r, model, "fuse_unk", false, &t->fuse_unknown) ||
        !read_flag(r, model, "ignore_merges", false, &t->ignore_merges))
        return false;
    if (!read_vocabulary(r, cn__json_get(model, "vocab")) || !read_unknown(r, model) ||
        !read_merges(r, cn__json_get(model, "merges")))
        return false;
    if (is_bytes(t)) t->kind = CN_TOKENS_BYTES;
    return true;
}

/* WordLevel with words of one character: the form in which Cairn saves a tokenizer of characters. */
static bool read_characters(reader *r, const cn__json *root, const cn__json *model)
{
    const cn__json *split = cn__json_get(root, "pre_tokenizer");
    bool single = is_text(split, "type", "Split") && is_text(cn__json_get(split, "pattern"), "Regex", "[\\s\\S]") &&
                  keeps_matches(split);
    if (!single) return refuse(r, CN_UNSUPPORTED, "the model WordLevel is implemented for single characters only");
    r->t->kind = CN_TOKENS_CHARACTERS;
    if (!read_decoder(r, cn__json_get(root, "decoder"), "Fuse") || !read_vocabulary(r, cn__json_get(model, "vocab")) ||
        !read_unknown(r, model))
        return false;
    return r->t->unknown >= 0 || refuse(r, CN_BAD_FILE, "the model has no unk_token");
}

static bool read_root(reader *r, const cn__json *root)
{
    const cn__json *model = cn__json_get(root, "model"), *added = cn__json_get(root, "added_tokens");
    const cn__json *vocab = cn__json_get(model, "vocab");
    if (!model || model->type != CN__JSON_OBJECT)
        return refuse(r, CN_BAD_FILE,
                      "not a tokenizer.json: it has no model (a vocab.json is loaded with cn_tokenizer_load_pair)");
    r->limit = 2 * ((vocab ? vocab->n : 0) + (size_t)(added && added->type == CN__JSON_ARRAY ? added->n : 0)) + 65536;
    bool bpe = strcmp(text_of(model, "type", cn__json_get(model, "merges") ? "BPE" : ""), "BPE") == 0;
    if (!bpe && !is_text(model, "type", "WordLevel")) return refuse_part(r, "model", model);
    if (!read_normalizer(r, cn__json_get(root, "normalizer"))) return false;
    return (bpe ? read_bpe(r, root, model) : read_characters(r, root, model)) && read_added(r, added);
}

/* ---- files ---- */

static cn_tokenizer *finish(reader *r, bool ok)
{
    cn__vec_free(&r->ctx->memory, &r->spelled, 1);
    cn__vec_free(&r->ctx->memory, &r->joined, 1);
    if (ok) return r->t;
    cn_tokenizer_free(r->t);
    return NULL;
}

static cn_tokenizer *parse(cn_ctx *ctx, const char *json, size_t n, const char *name)
{
    cn__bump memory = { 0 };
    const cn__json *root = cn__json_read(ctx, &memory, json, n, name);
    reader r = { .ctx = ctx, .name = name, .t = root ? cn__tokenizer_new(ctx, CN_TOKENS_BPE) : NULL };
    bool ok = r.t && read_root(&r, root);
    cn__bump_free(&ctx->memory, &memory);
    return finish(&r, ok);
}

cn_tokenizer *cn_tokenizer_parse(cn_ctx *ctx, const char *json, size_t n)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (call.ctx && json) return parse(ctx, json, n, "tokenizer.json");
    if (call.ctx) cn__fail(ctx, CN_BAD_ARGUMENT, "tokenizer_parse: json must not be NULL");
    return NULL;
}

cn_tokenizer *cn_tokenizer_load(cn_ctx *ctx, const char *path)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (call.ctx && !path) cn__fail(ctx, CN_BAD_ARGUMENT, "tokenizer_load: path must not be NULL");
    cn__content *file = call.ctx && path ? cn__content_open(ctx, path) : NULL;
    if (!file) return NULL;
    cn_tokenizer *t = parse(ctx, (const char *)file->data, file->bytes, path);
    cn__content_release(file);
    return t;
}

static bool read_merge_lines(reader *r, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        const char *line = text + at, *end = memchr(line, '\n', n - at);
        size_t bytes = end ? (size_t)(end - line) : n - at;
        at += bytes + 1;
        if (bytes > 0 && line[bytes - 1] == '\r') bytes--;
        bool version = bytes >= 8 && memcmp(line, "#version", 8) == 0;
        if (bytes > 0 && !version && !read_merge_line(r, line, bytes)) return false;
    }
    return true;
}

static bool read_pair(reader *r, const char *vocab_path, const cn__content *vocab, const char *merges_path,
                      const cn__content *merges)
{
    cn__bump memory = { 0 };
    r->name = vocab_path;
    const cn__json *root = cn__json_read(r->ctx, &memory, (const char *)vocab->data, vocab->bytes, vocab_path);
    r->limit = root ? 2 * (size_t)root->n + 65536 : 0;
    bool ok = root && read_vocabulary(r, root);
    cn__bump_free(&r->ctx->memory, &memory);
    r->name = merges_path;
    return ok && read_merge_lines(r, (const char *)merges->data, merges->bytes);
}

cn_tokenizer *cn_tokenizer_load_pair(cn_ctx *ctx, const char *vocab_json, const char *merges_txt)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!vocab_json || !merges_txt) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "tokenizer_load_pair: paths must not be NULL");
        return NULL;
    }
    cn__content *vocab = cn__content_open(ctx, vocab_json);
    cn__content *merges = vocab ? cn__content_open(ctx, merges_txt) : NULL;
    reader r = { .ctx = ctx, .t = merges ? cn__tokenizer_new(ctx, CN_TOKENS_BPE) : NULL };
    bool ok = r.t && read_pair(&r, vocab_json, vocab, merges_txt, merges);
    if (vocab) cn__content_release(vocab);
    if (merges) cn__content_release(merges);
    static const char end[] = "<|endoftext|>"; /* the only special token of GPT-2; the files do not name it */
    if (ok) r.t->split = true;
    if (ok && cn_token_id(r.t, end, strlen(end)) >= 0) ok = cn_tokenizer_add_special(r.t, end) >= 0;
    return finish(&r, ok);
}

/* Tokenizers: against what Hugging Face's package made of difficult texts (reference/tokenizer), there and back again with any
   bytes, files that are damaged or ask for too much, and memory that runs out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/text.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/scratch.h"
#include "text/split.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

/* ---- files ---- */

typedef struct text {
    char *v;
    size_t n;
} text;

static text read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    text t = { 0 };
    if (!check(f != NULL, "%s can be read", path)) return t;
    fseek(f, 0, SEEK_END);
    t.n = (size_t)ftell(f);
    rewind(f);
    t.v = calloc(t.n + 1, 1);
    check(fread(t.v, 1, t.n, f) == t.n, "%s was read", path);
    fclose(f);
    return t;
}

static text read_reference(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/reference/tokenizer/%s", CAIRN_SOURCE_DIR, name);
    return read_file(path);
}

static cn_tokenizer *load_reference(cn_ctx *cn, const char *name)
{
    text t = read_reference(name);
    cn_tokenizer *made = cn_tokenizer_parse(cn, t.v, t.n);
    check(made != NULL, "%s: %s", name, cn_error(cn));
    free(t.v);
    return made;
}

static void write_file(const char *path, const char *words)
{
    FILE *f = fopen(path, "wb");
    fputs(words, f);
    fclose(f);
}

/* ---- against the reference ---- */

typedef struct ids {
    int64_t n;
    int32_t v[4096];
} ids;

static void encode(const cn_tokenizer *t, const char *s, size_t n, ids *out)
{
    out->n = cn_encode(t, s, n, out->v, 4096);
}

static bool same_ids(const ids *a, const ids *b)
{
    return a->n == b->n && a->n >= 0 && memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v) == 0;
}

static const char *parse_ids(const char *at, ids *out)
{
    for (out->n = 0; *at && *at != ':' && *at != '\n';) {
        char *end;
        out->v[out->n++] = (int32_t)strtol(at, &end, 10);
        at = *end == ' ' ? end + 1 : end;
    }
    return at;
}

static int hex_digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

static void decodes_to(const cn_tokenizer *t, const ids *in, const char *s, size_t n, const char *who)
{
    char back[8192];
    int64_t got = cn_decode(t, in->v, in->n, back, sizeof back);
    check(got == (int64_t)n && memcmp(back, s, n) == 0 && back[n] == 0,
          "%s: decoding gives the text back: %lld bytes of %zu", who, (long long)got, n);
}

/* One line: the text in hexadecimal : its tokens : its tokens when special ones are taken as text. */
static const char *one_case(cn_tokenizer *t, const char *at, const char *name, int number, bool lossless)
{
    static ids want, got;
    char s[4096], who[64];
    size_t n = 0;
    for (; *at != ':'; at += 2) s[n++] = (char)(hex_digit(at[0]) << 4 | hex_digit(at[1]));
    for (int allow = 1; allow >= 0; allow--) {
        at = parse_ids(at + 1, &want);
        cn_tokenizer_allow_special(t, allow);
        encode(t, s, n, &got);
        snprintf(who, sizeof who, "%s, line %d%s", name, number, allow ? "" : ", special as text");
        check(same_ids(&want, &got), "%s: %lld tokens, not %lld: \"%.*s\"", who, (long long)got.n, (long long)want.n,
              (int)n, s);
        if (lossless) decodes_to(t, &got, s, n, who);
    }
    return at + 1;
}

static int cases_of(cn_tokenizer *t, const char *name, bool lossless)
{
    text cases = read_reference(name);
    int number = 0;
    for (const char *at = cases.v; at < cases.v + cases.n;) at = one_case(t, at, name, ++number, lossless);
    check(number > 100, "%s has cases: %d", name, number);
    cn_tokenizer_allow_special(t, true);
    free(cases.v);
    return number;
}

static void tokens_are_those_of_the_reference(void)
{
    check_group("reference");
    cn_ctx *cn = cn_open(NULL);
    static const struct {
        const char *json, *cases;
        bool lossless;
    } file[] = { { "gpt2.json", "gpt2.cases", true },
                 { "whole.json", "whole.cases", true },
                 { "prefix.json", "prefix.cases", false } };
    int number = 0;
    for (int i = 0; i < 3; i++) {
        cn_tokenizer *t = load_reference(cn, file[i].json);
        if (!t) continue;
        number += cases_of(t, file[i].cases, file[i].lossless);
        /* What Cairn writes of it, read again, is the same tokenizer. */
        check(cn_tokenizer_save(t, "again.json"), "saving %s: %s", file[i].json, cn_error(cn));
        cn_tokenizer *again = cn_tokenizer_load(cn, "again.json");
        if (check(again != NULL, "%s saved and loaded: %s", file[i].json, cn_error(cn)))
            cases_of(again, file[i].cases, file[i].lossless);
    }
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    printf("%d texts have the reference's tokens\n", number);
    cn_close(cn);
}

static void training_is_that_of_the_reference(void)
{
    check_group("training");
    cn_ctx *cn = cn_open(NULL);
    text corpus = read_reference("corpus.txt"), cases = read_reference("trained.cases");
    cn_tokenizer *t = cn_bpe_train(cn, corpus.v, corpus.n, 700,
                                   &(cn_bpe_desc){ .special = (const char *[]){ "<|endoftext|>" }, .n_special = 1 });
    check(t && cn_token_count(t) == 700, "700 tokens: %lld: %s", (long long)cn_token_count(t), cn_error(cn));
    int32_t made = 257;
    for (char *at = cases.v; t && at < cases.v + cases.n; made++) {
        int32_t left = (int32_t)strtol(at, &at, 10), right = (int32_t)strtol(at, &at, 10);
        at++;
        size_t n, a, b;
        const char *token = cn_token_text(t, made, &n), *x = cn_token_text(t, left, &a),
                   *y = cn_token_text(t, right, &b);
        check(token && n == a + b && !memcmp(token, x, a) && !memcmp(token + a, y, b),
              "merge %d is \"%s\" + \"%s\", not \"%s\"", made - 257, x, y, token);
    }
    check(made == 700, "%d merges", made - 257);
    free(corpus.v);
    free(cases.v);
    cn_close(cn);
}

/* ---- there and back again ---- */

static size_t draw_bytes(char *s, size_t most)
{
    static const char *const bits[] = { "the ",
                                        " the",
                                        "é",
                                        "日本",
                                        "😀",
                                        "'s",
                                        "\n\n",
                                        "  ",
                                        "12",
                                        "\xF0\x9F",
                                        "\x80",
                                        "\xED\xA0\x80",
                                        "\xC0\xAF",
                                        "\xF4\x90\x80\x80",
                                        "<|endoftext|>",
                                        "\xE2\x80\x83" };
    size_t n = 0, wanted = draw(most - 16);
    while (n < wanted) {
        const char *bit = bits[draw(16)];
        if (draw(2)) s[n++] = (char)draw(256);
        else memcpy(s + n, bit, strlen(bit)), n += strlen(bit);
    }
    return n;
}

static void any_bytes_come_back(void)
{
    check_group("round trip");
    cn_ctx *cn = cn_open(NULL);
    text corpus = read_reference("corpus.txt");
    cn_tokenizer *t[4] = { cn_tokenizer_bytes(cn), cn_bpe_train(cn, corpus.v, corpus.n, 600, NULL),
                           cn_bpe_train(cn, corpus.v, 4000, 400,
                                        &(cn_bpe_desc){ .no_split = true, .min_frequency = 3 }),
                           load_reference(cn, "gpt2.json") };
    static ids got;
    char s[1024];
    for (int i = 0; i < (test_is_quick() ? 400 : 4000); i++) {
        size_t n = draw_bytes(s, sizeof s);
        for (int k = 0; k < 4; k++) {
            encode(t[k], s, n, &got);
            decodes_to(t[k], &got, s, n, "random bytes");
        }
    }
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    encode(t[0], "a\0\xFF", 3, &got);
    check(got.n == 3 && got.v[0] == 'a' && got.v[1] == 0 && got.v[2] == 255, "token i of the bytes is byte i");
    free(corpus.v);
    cn_close(cn);
}

static void a_space_in_front(void)
{
    check_group("add_prefix_space");
    cn_ctx *cn = cn_open(NULL);
    const char words[] = "cat the cat<s>cat the hat<s> cat";
    cn_tokenizer *t =
        cn_bpe_train(cn, words, strlen(words), 300,
                     &(cn_bpe_desc){ .add_prefix_space = true, .special = (const char *[]){ "<s>" }, .n_special = 1 });
    int32_t cat = cn_token_id(t, " cat", 4), got[4];
    check(cat > 0, "every cat was seen behind a space");
    check(cn_encode(t, "cat<s>cat", 9, got, 4) == 3 && got[0] == cat && got[1] == 0 && got[2] == cat,
          "each part gets a space");
    cn_close(cn);
}

static void characters(void)
{
    check_group("characters");
    cn_ctx *cn = cn_open(NULL);
    const char words[] = "héllo wörld\n日本😀 a\xFF\0z";
    cn_tokenizer *t = cn_tokenizer_characters(cn, words, sizeof words - 1, NULL);
    check(cn_tokenizer_kind_of(t) == CN_TOKENS_CHARACTERS && cn_token_count(t) == 17, "%lld tokens",
          (long long)cn_token_count(t));
    check(!strcmp(cn_token_text(t, 0, NULL), "<unk>"), "token 0 is for all others");
    int32_t got[8] = { 0 };
    check(cn_encode(t, "日x\xFF\0", 4 + 2, got, 8) == 4 && got[0] == cn_token_id(t, "日", 3) && got[1] == 0 &&
              got[2] == 0 && got[3] == 1,
          "known, unknown, not UTF-8, zero: %d %d %d %d", got[0], got[1], got[2], got[3]);
    bool rising = true;
    for (int32_t i = 2; i < 17; i++) rising &= strcmp(cn_token_text(t, i - 1, NULL), cn_token_text(t, i, NULL)) < 0;
    check(rising, "in the order of code points");
    cn_tokenizer *q = cn_tokenizer_characters(cn, "a?b", 3, "?");
    check(cn_token_count(q) == 3 && cn_encode(q, "?x", 2, got, 8) == 2 && got[0] == 0 && got[1] == 0,
          "a character may be the unknown one");
    check(!cn_tokenizer_characters(cn, "a", 1, "\xFF") && cn_error_code(cn) == CN_BAD_ARGUMENT, "its name is UTF-8");
    cn_close(cn);
}

static void same_tokenizer(const cn_tokenizer *a, const cn_tokenizer *b, const char *who)
{
    static ids x, y;
    char s[512];
    check(cn_token_count(a) == cn_token_count(b) && cn_tokenizer_kind_of(a) == cn_tokenizer_kind_of(b),
          "%s: as many tokens, of one kind", who);
    for (int32_t i = 0; i < cn_token_count(a); i++) {
        size_t n, m;
        const char *p = cn_token_text(a, i, &n), *q = cn_token_text(b, i, &m);
        check(n == m && (p == q || (p && q && memcmp(p, q, n) == 0)) &&
                  cn_token_is_special(a, i) == cn_token_is_special(b, i),
              "%s: token %d is the same", who, i);
    }
    for (int i = 0; i < 200; i++) {
        size_t n = draw_bytes(s, sizeof s);
        encode(a, s, n, &x);
        encode(b, s, n, &y);
        check(same_ids(&x, &y), "%s: the same tokens for random bytes", who);
    }
}

static void files_hold_every_kind(void)
{
    check_group("save and load");
    cn_ctx *cn = cn_open(NULL);
    text corpus = read_reference("corpus.txt");
    const char *special[] = { "<|endoftext|>", "日 x" };
    cn_tokenizer *t[5] = {
        cn_tokenizer_bytes(cn), cn_tokenizer_characters(cn, corpus.v, corpus.n, "\"?\\\n"),
        cn_bpe_train(cn, corpus.v, corpus.n, 500, &(cn_bpe_desc){ .special = special, .n_special = 2 }),
        cn_bpe_train(cn, corpus.v, 3000, 300, &(cn_bpe_desc){ .no_split = true, .add_prefix_space = true }),
        cn_tokenizer_bytes(cn)
    };
    check(cn_tokenizer_add_special(t[4], "<end>") == 256, "special tokens come after the bytes");
    check(cn_tokenizer_add_special(t[1], "<end>") == cn_token_count(t[1]) - 1, "and after characters");
    for (int i = 0; i < 5; i++) {
        char who[32];
        snprintf(who, sizeof who, "tokenizer %d", i);
        check(cn_tokenizer_save(t[i], "kind.json"), "%s: %s", who, cn_error(cn));
        text first = read_file("kind.json");
        /* Others give numbers to added tokens that are not in the vocabulary as they like. */
        check(i != 2 || strstr(first.v, "\"<|endoftext|>\": 0,"), "%s: trained special tokens are in the vocabulary",
              who);
        cn_tokenizer *again = cn_tokenizer_load(cn, "kind.json");
        if (!check(again != NULL, "%s: %s", who, cn_error(cn))) break;
        same_tokenizer(t[i], again, who);
        cn_tokenizer_save(again, "kind.json");
        text second = read_file("kind.json");
        check(first.n == second.n && memcmp(first.v, second.v, first.n) == 0, "%s: saved again, the same file", who);
        free(first.v);
        free(second.v);
        cn_tokenizer_free(again);
    }
    check(!cn_tokenizer_save(t[0], "no/such/folder/t.json") && cn_error_code(cn) == CN_BAD_FILE, "nowhere to save: %s",
          cn_error(cn));
    check(!cn_tokenizer_save(t[0], "kind.json"), "nothing is saved while an error stands");
    check(load_reference(cn, "prefix.json") != NULL, "but things are loaded");
    cn_error_clear(cn);
    check(!cn_tokenizer_load(cn, "absent.json") && cn_error_code(cn) == CN_BAD_FILE, "nothing to load: %s",
          cn_error(cn));
    free(corpus.v);
    cn_close(cn);
}

static void the_older_pair(void)
{
    check_group("vocab.json and merges.txt");
    cn_ctx *cn = cn_open(NULL);
    write_file("vocab.json",
               "{\"h\":0,\"e\":1,\"l\":2,\"Ġ\":3,\"he\":4,\"ll\":5,\"hell\":6,\"Ġhe\":7,\"<|endoftext|>\":9}");
    write_file("merges.txt", "#version: 0.2\nh e\r\nl l\nhe ll\nĠ he\n\n");
    cn_tokenizer *t = cn_tokenizer_load_pair(cn, "vocab.json", "merges.txt");
    static ids got;
    encode(t, "hell hello<|endoftext|>", 9, &got);
    check(got.n == 3 && got.v[0] == 6 && got.v[1] == 3 && got.v[2] == 6, "%lld tokens: %s", (long long)got.n,
          cn_error(cn));
    encode(t, "e<|endoftext|>", 14, &got);
    check(got.n == 2 && got.v[1] == 9 && cn_token_is_special(t, 9), "<|endoftext|> is special");
    check(cn_token_count(t) == 10 && !cn_token_text(t, 8, NULL), "numbers may have holes");
    check(cn_encode(t, "x", 1, NULL, 0) == -1 && cn_error_code(cn) == CN_BAD_ARGUMENT && strstr(cn_error(cn), "0x78"),
          "a byte without a token: %s", cn_error(cn));
    static const char *const bad[] = { "h e l\n", "h\n", "h x\n", "e h\n", " h\n", "h \n" };
    for (int i = 0; i < 6; i++) {
        cn_error_clear(cn);
        write_file("merges.txt", bad[i]);
        check(!cn_tokenizer_load_pair(cn, "vocab.json", "merges.txt") && cn_error_code(cn) == CN_BAD_FILE,
              "\"%s\" is no merge: %s", bad[i], cn_error(cn));
    }
    cn_close(cn);
}

/* ---- room, special tokens, refusals ---- */

static void counts_are_whole_when_room_is_short(void)
{
    check_group("room");
    cn_ctx *cn = cn_open(NULL);
    cn_tokenizer *t = load_reference(cn, "gpt2.json");
    const char s[] = "The quick brown fox jumps over the lazy dog";
    int32_t all[64], part[64];
    int64_t n = cn_encode(t, s, strlen(s), all, 64);
    for (int64_t room = 0; room <= n; room++) {
        for (int i = 0; i < 64; i++) part[i] = -7;
        check(cn_encode(t, s, strlen(s), part, room) == n && part[room] == -7 && !memcmp(part, all, (size_t)room * 4),
              "room for %lld tokens", (long long)room);
    }
    char text[64];
    for (int64_t room = 0; room < 60; room++) {
        memset(text, '#', sizeof text);
        int64_t got = cn_decode(t, all, n, text, room), fits = room < 43 ? room : 43;
        check(got == 43 && !memcmp(text, s, (size_t)fits) && text[fits] == (room > 43 ? 0 : '#'), "room for %lld bytes",
              (long long)room);
    }
    check(cn_encode(t, "", 0, NULL, 0) == 0 && cn_encode(t, NULL, 0, NULL, 0) == 0 &&
              cn_decode(t, NULL, 0, NULL, 0) == 0,
          "nothing is nothing");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

static void special_tokens(void)
{
    check_group("special tokens");
    cn_ctx *cn = cn_open(NULL);
    cn_tokenizer *t = load_reference(cn, "gpt2.json");
    int32_t chat = cn_tokenizer_add_special(t, "<|chat|>"), tensor = cn_token_id(t, "tensor", 6), got[8];
    check(chat == 1000 && cn_token_is_special(t, chat) && cn_token_id(t, "<|chat|>", 8) == chat, "a new one: %d", chat);
    check(cn_tokenizer_add_special(t, "<|chat|>") == chat && cn_token_count(t) == 1001, "the same one again");
    check(cn_tokenizer_add_special(t, "tensor") == tensor && tensor > 0 && cn_token_is_special(t, tensor),
          "an old token made special: %d", tensor);
    check(cn_encode(t, "<|chat|>tensor", 14, got, 8) == 2 && got[0] == chat && got[1] == tensor, "both are found");
    cn_tokenizer_allow_special(t, false);
    check(cn_encode(t, "<|chat|>tensor", 14, got, 8) > 3 && got[0] != chat, "or not");
    static const char *const bad[] = { "", "x", "\xFF", "Ġthe", "é" };
    for (int i = 0; i < 5; i++) {
        cn_error_clear(cn);
        check(cn_tokenizer_add_special(t, bad[i]) == -1 && cn_error_code(cn) == CN_BAD_ARGUMENT,
              "\"%s\" cannot be one: %s", bad[i], cn_error(cn));
    }
    cn_error_clear(cn);
    cn_tokenizer_save(t, "special.json");
    cn_tokenizer *again = cn_tokenizer_load(cn, "special.json");
    cn_tokenizer_allow_special(again, false);
    if (check(again != NULL, "saved and loaded: %s", cn_error(cn))) same_tokenizer(t, again, "with special tokens");
    cn_close(cn);
}

static void refused(cn_ctx *cn, bool refused, cn_code code, const char *message, const char *what)
{
    check(refused && cn_error_code(cn) == code && strstr(cn_error(cn), message), "%s: refused as %s with \"%s\": %s %s",
          what, cn_code_name(code), message, cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
}

static void wrong_arguments(void)
{
    check_group("arguments");
    cn_ctx *cn = cn_open(NULL);
    cn_tokenizer *t = cn_tokenizer_bytes(cn);
    char c[8];
    int32_t bad[2] = { 65, 256 };
    refused(cn, cn_decode(t, bad, 2, c, 8) == -1, CN_BAD_INDEX, "256", "a number that is no token");
    bad[1] = -1;
    refused(cn, cn_decode(t, bad, 2, c, 8) == -1, CN_BAD_INDEX, "-1", "a negative one");
    refused(cn, cn_decode(t, NULL, 2, c, 8) == -1, CN_BAD_ARGUMENT, "n must be", "no tokens");
    refused(cn, cn_decode(t, bad, 1, NULL, 8) == -1, CN_BAD_ARGUMENT, "room must be", "no place");
    refused(cn, cn_encode(t, NULL, 2, NULL, 0) == -1, CN_BAD_ARGUMENT, "text is NULL", "no text");
    refused(cn, cn_encode(t, "a", 1, NULL, 3) == -1, CN_BAD_ARGUMENT, "room must be", "no place for tokens");
    refused(cn, cn_encode(t, "a", 1, bad, -3) == -1, CN_BAD_ARGUMENT, "-3", "negative room");
    refused(cn, !cn_bpe_train(cn, "abc", 3, 255, NULL), CN_BAD_ARGUMENT, "255", "too few tokens");
    refused(
        cn,
        !cn_bpe_train(cn, "abc", 3, 300, &(cn_bpe_desc){ .special = (const char *[]){ "<s>", "<s>" }, .n_special = 2 }),
        CN_BAD_ARGUMENT, "twice", "a special token twice");
    refused(cn, !cn_bpe_train(cn, "abc", 3, 300, &(cn_bpe_desc){ .special = (const char *[]){ NULL }, .n_special = 1 }),
            CN_BAD_ARGUMENT, "is NULL", "no special token");
    cn_decoder d = { .tokenizer = t };
    refused(cn, cn_decode_next(&d, 999, c, 8) == -1, CN_BAD_INDEX, "999", "streaming what is no token");
    check(cn_encode(NULL, "a", 1, NULL, 0) == -1 && cn_decode(NULL, bad, 1, c, 8) == -1 &&
              !cn_token_text(NULL, 0, NULL) && cn_token_id(NULL, "a", 1) == -1 && !cn_tokenizer_save(NULL, "x") &&
              cn_token_count(NULL) == 0 && !cn_tokenizer_load(cn, NULL) && !cn_tokenizer_bytes(NULL),
          "NULL in, nothing out");
    cn_tokenizer *none = cn_bpe_train(cn, NULL, 0, 300, NULL);
    check(none && cn_token_count(none) == 256, "no text: no merges: %s", cn_error(cn));
    cn_close(cn);
}

#define LEVEL       "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
#define BPE(fields) "{" LEVEL ",\"model\":{\"type\":\"BPE\"," fields "}}"
#define ADDED(fields) \
    "{" LEVEL ",\"added_tokens\":[" fields "],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"<s>\":1},\"merges\":[]}}"

static const struct {
    const char *json;
    cn_code code;
    const char *message;
} hostile[] = {
    { "", CN_BAD_FILE, "" },
    { "{", CN_BAD_FILE, "" },
    { "[]", CN_BAD_FILE, "no model" },
    { "{}", CN_BAD_FILE, "no model" },
    { "{\"model\":3}", CN_BAD_FILE, "no model" },
    { "{\"a\":0,\"b\":1}", CN_BAD_FILE, "load_pair" },
    { "{\"model\":{\"type\":\"Unigram\"}}", CN_UNSUPPORTED, "Unigram" },
    { "{\"model\":{\"type\":\"WordPiece\"}}", CN_UNSUPPORTED, "WordPiece" },
    { "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", CN_UNSUPPORTED, "WordLevel" },
    { "{\"model\":{\"type\":7}}", CN_UNSUPPORTED, "model" },
    { "{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\"}}", CN_UNSUPPORTED, "normalizer NFC" },
    { "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"}]},\"model\":{\"type\":\"BPE\"}}",
      CN_UNSUPPORTED, "Lowercase" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", CN_UNSUPPORTED, "ByteLevel" },
    { "{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"type\":\"BPE\"}}", CN_UNSUPPORTED, "Metaspace" },
    { "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}]},\"model\":{\"type\":\"BPE\"}}",
      CN_UNSUPPORTED, "Digits" },
    { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\"}},\"model\":{\"type\":\"BPE\"}}",
      CN_UNSUPPORTED, "Split" },
    { "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":1},\"model\":{\"type\":\"BPE\"}}", CN_BAD_FILE,
      "use_regex" },
    { "{" LEVEL ",\"decoder\":{\"type\":\"WordPiece\"},\"model\":{\"type\":\"BPE\"}}", CN_UNSUPPORTED,
      "decoder WordPiece" },
    { BPE("\"dropout\":0.1"), CN_UNSUPPORTED, "dropout" },
    { BPE("\"byte_fallback\":true"), CN_UNSUPPORTED, "byte_fallback" },
    { BPE("\"end_of_word_suffix\":\"</w>\""), CN_UNSUPPORTED, "end_of_word_suffix" },
    { BPE("\"continuing_subword_prefix\":\"##\""), CN_UNSUPPORTED, "continuing_subword_prefix" },
    { BPE("\"merges\":[]"), CN_BAD_FILE, "vocab is missing" },
    { BPE("\"vocab\":{}"), CN_BAD_FILE, "merges are missing" },
    { BPE("\"vocab\":[],\"merges\":[]"), CN_BAD_FILE, "vocab is missing" },
    { BPE("\"vocab\":{\"a\":\"b\"},\"merges\":[]"), CN_BAD_FILE, "number" },
    { BPE("\"vocab\":{\"a\":-1},\"merges\":[]"), CN_BAD_FILE, "number" },
    { BPE("\"vocab\":{\"a\":1.5},\"merges\":[]"), CN_BAD_FILE, "number" },
    { BPE("\"vocab\":{\"a\":2000000000},\"merges\":[]"), CN_BAD_FILE, "2000000000" },
    { BPE("\"vocab\":{\"a\":9000000000},\"merges\":[]"), CN_BAD_FILE, "9000000000" },
    { BPE("\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]"), CN_BAD_FILE, "two tokens" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[\"a\"]"), CN_BAD_FILE, "merge 0" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[\"a b\"]"), CN_BAD_FILE, "merge 0" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[[\"a\"]]"), CN_BAD_FILE, "merge 0" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[[\"a\",\"a\"]]"), CN_BAD_FILE, "merge 0" },
    { BPE("\"vocab\":{\"a\":1,\"aa\":2},\"merges\":[[\"a\",\"a\"],[\"a\",3]]"), CN_BAD_FILE, "merge 1" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":{}"), CN_BAD_FILE, "merges" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[\" a\"]"), CN_BAD_FILE, "two tokens" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[],\"unk_token\":\"?\""), CN_BAD_FILE, "unk_token" },
    { BPE("\"vocab\":{\"a\":1},\"merges\":[],\"unk_token\":1"), CN_BAD_FILE, "unk_token" },
    { ADDED("{\"id\":1}"), CN_BAD_FILE, "content" },
    { ADDED("{\"id\":5,\"content\":\"\"}"), CN_BAD_FILE, "content" },
    { ADDED("{\"content\":\"x\"}"), CN_BAD_FILE, "number" },
    { ADDED("{\"id\":99999999,\"content\":\"x\"}"), CN_BAD_FILE, "99999999" },
    { ADDED("{\"id\":1,\"content\":\"x\"}"), CN_BAD_FILE, "not token 1" },
    { ADDED("{\"id\":5,\"content\":\"<s>\"}"), CN_BAD_FILE, "not token 5" },
    { ADDED("{\"id\":5,\"content\":\"x\",\"single_word\":true}"), CN_UNSUPPORTED, "single_word" },
    { ADDED("{\"id\":5,\"content\":\"x\",\"special\":\"yes\"}"), CN_BAD_FILE, "special" },
    { ADDED("{\"id\":1,\"content\":\"<s>\"},{\"id\":1,\"content\":\"<s>\"}"), CN_BAD_FILE, "twice" },
    { ADDED("7"), CN_BAD_FILE, "content" },
};

static void files_that_ask_for_too_much(void)
{
    check_group("hostile files");
    cn_ctx *cn = cn_open(NULL);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        cn_tokenizer *t = cn_tokenizer_parse(cn, hostile[i].json, strlen(hostile[i].json));
        refused(cn, !t, hostile[i].code, hostile[i].message, hostile[i].json);
    }
    const char *fine[] = {
        ADDED("{\"id\":1,\"content\":\"<s>\"}"),
        BPE("\"vocab\":{\"a\":1,\"aa\":2},\"merges\":[\"a a\"],\"unk_token\":\"a\",\"dropout\":null,\"byte_fallback\":false"),
        "{" LEVEL ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}",
        ("{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
         "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}")
    };
    for (int i = 0; i < 4; i++)
        check(cn_tokenizer_parse(cn, fine[i], strlen(fine[i])) != NULL, "%s: %s", fine[i], cn_error(cn));
    cn_close(cn);
}

static void bytes_without_a_token(void)
{
    check_group("unk_token");
    cn_ctx *cn = cn_open(NULL);
    static const int32_t want[2][4] = { { 1, 0, 0, 2 }, { 1, 0, 2 } };
    for (int fuse = 0; fuse < 2; fuse++) {
        char json[512];
        int n = snprintf(json, sizeof json,
                         "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"type\":"
                         "\"BPE\",\"vocab\":{\"?\":0,\"a\":1,\"aa\":2},\"merges\":[\"a a\"],\"unk_token\":\"?\","
                         "\"fuse_unk\":%s}}",
                         fuse ? "true" : "false");
        int32_t got[4];
        cn_tokenizer *t = cn_tokenizer_parse(cn, json, (size_t)n);
        check(cn_encode(t, "axyaa", 5, got, 4) == 4 - fuse && !memcmp(got, want[fuse], (4 - fuse) * sizeof *got),
              "x and y are %s: %s", fuse ? "one unknown token" : "two unknown tokens", cn_error(cn));
    }
    cn_close(cn);
}

/* Every beginning of a file, and files with bytes changed: an error or a tokenizer, never worse. */
static void damaged_files(void)
{
    check_group("damaged files");
    cn_ctx *cn = cn_open(NULL);
    text t = read_reference("prefix.json");
    size_t step = test_is_quick() ? 61 : 3;
    for (size_t n = 0; n + 2 < t.n; n += step) {
        check(!cn_tokenizer_parse(cn, t.v, n) && cn_failed(cn), "the first %zu bytes are no tokenizer", n);
        cn_error_clear(cn);
    }
    int fine = 0, tries = test_is_quick() ? 200 : 3000;
    for (int i = 0; i < tries; i++) {
        char *copy = malloc(t.n);
        memcpy(copy, t.v, t.n);
        for (uint64_t k = draw(3) + 1; k > 0; k--)
            copy[draw(t.n)] = draw(2) ? (char)draw(256) : "0129\",:[]{}"[draw(11)];
        cn_tokenizer *made = cn_tokenizer_parse(cn, copy, t.n);
        check((made != NULL) == !cn_failed(cn), "a tokenizer or an error: %s", cn_error(cn));
        fine += made != NULL;
        cn_encode(made, copy, t.n, NULL, 0);
        cn_tokenizer_free(made);
        cn_error_clear(cn);
        free(copy);
    }
    printf("%d of %d damaged files still were tokenizers\n", fine, tries);
    free(t.v);
    cn_close(cn);
}

/* ---- token by token ---- */

static void stream(const cn_tokenizer *t, const char *s, size_t n, text *out)
{
    cn_decoder d = { .tokenizer = t };
    static ids all;
    encode(t, s, n, &all);
    out->v = calloc(3 * n + 8, 1);
    for (int64_t i = 0; i < all.n; i++) {
        char *to = out->v + out->n;
        int64_t need = cn_decode_next(&d, all.v[i], NULL, 0);
        int64_t got = need ? cn_decode_next(&d, all.v[i], to, need) : 0;
        check(got == need, "the same number of bytes when there is room: %lld, %lld", (long long)need, (long long)got);
        out->n += (size_t)got;
    }
    out->n += (size_t)cn_decode_end(&d, out->v + out->n, 8);
}

static void characters_are_printed_whole(void)
{
    check_group("streaming");
    /* What comes out as U+FFFD, and how often: as in Python's decode("utf-8", "replace"). */
    static const struct {
        const char *in, *out;
    } pairs[] = { { "plain", "plain" },
                  { "é日😀", "é日😀" },
                  { "\xF0\x9F", "�" },
                  { "\xF0\x9F"
                    "a",
                    "�a" },
                  { "\x80\x80", "��" },
                  { "\xED\xA0\x80", "���" },
                  { "\xC0\xAF", "��" },
                  { "\xE2\x82\xC3\xA9", "�é" },
                  { "\xF4\x90\x80\x80", "����" },
                  { "\xF0\x9F\x98\xF0\x9F\x98\x80", "�😀" },
                  { "\xE2\xE2\x82\xAC", "�€" },
                  { "x\xFF\xFEy", "x��y" },
                  { "\xF1\x80\x80\xE1\x80\xC2", "���" } };
    cn_ctx *cn = cn_open(NULL);
    cn_tokenizer *kinds[2] = { cn_tokenizer_bytes(cn), load_reference(cn, "gpt2.json") };
    for (size_t i = 0; i < 2 * sizeof pairs / sizeof *pairs; i++) {
        text out = { 0 };
        const char *in = pairs[i / 2].in, *want = pairs[i / 2].out;
        stream(kinds[i % 2], in, strlen(in), &out);
        check(out.n == strlen(want) && memcmp(out.v, want, out.n) == 0, "text %zu gives \"%s\", not \"%.*s\"", i / 2,
              want, (int)out.n, out.v);
        free(out.v);
    }
    cn_decoder d = { .tokenizer = kinds[0] };
    char c[8];
    check(cn_decode_next(&d, 0xF0, c, 8) == 0 && cn_decode_next(&d, 0x9F, c, 8) == 0 &&
              cn_decode_next(&d, 0x98, c, 8) == 0 && cn_decode_next(&d, 0x80, c, 3) == 4 &&
              cn_decode_next(&d, 0x80, c, 8) == 4 && memcmp(c, "😀", 4) == 0 && cn_decode_end(&d, c, 8) == 0,
          "a character waits until it is whole and has room");
    for (int i = 0; i < 500; i++) { /* bytes and pieces of them: the same text */
        char s[256];
        size_t n = draw_bytes(s, sizeof s);
        text a = { 0 }, b = { 0 };
        stream(kinds[0], s, n, &a);
        stream(kinds[1], s, n, &b);
        check(a.n == b.n && memcmp(a.v, b.v, a.n) == 0, "however it is cut");
        free(a.v);
        free(b.v);
    }
    cn_close(cn);
}

/* ---- memory ---- */

static bool work(cn_ctx *cn, const text *corpus, const text *json)
{
    const char *special[] = { "<s>", "<t>" };
    cn_tokenizer *t = cn_bpe_train(cn, corpus->v, 3000, 320,
                                   &(cn_bpe_desc){ .add_prefix_space = true, .special = special, .n_special = 2 });
    cn_tokenizer *c = t ? cn_tokenizer_characters(cn, corpus->v, corpus->n, NULL) : NULL;
    bool ok = c && cn_encode(t, corpus->v, corpus->n, NULL, 0) > 0 && cn_tokenizer_save(t, "fault.json") &&
              cn_tokenizer_load(cn, "fault.json") && cn_tokenizer_parse(cn, json->v, json->n) &&
              cn_tokenizer_save(c, "fault.json") && cn_tokenizer_load(cn, "fault.json") &&
              cn_tokenizer_load_pair(cn, "fault_vocab.json", "fault_merges.txt");
    return ok;
}

static void every_allocation_fails_once(void)
{
    check_group("memory");
    text corpus = read_reference("corpus.txt"), json = read_reference("prefix.json");
    write_file("fault_vocab.json", "{\"h\":0,\"e\":1,\"he\":2,\"<|endoftext|>\":3}");
    write_file("fault_merges.txt", "h e\n");
    int64_t n = 1;
    for (bool reached = true; reached; n++) {
        faulty f = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        f.calls = 0;
        f.fail_at = n;
        bool ok = work(cn, &corpus, &json);
        reached = f.calls >= n;
        check(ok == !reached, "allocation %lld: it fails when memory does, and only then: %s", (long long)n,
              cn_error(cn));
        check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: the error is about memory: %s", (long long)n,
              cn_error(cn));
        cn_error_clear(cn);
        check(ok || work(cn, &corpus, &json), "allocation %lld: then it works: %s", (long long)n, cn_error(cn));
        cn_close(cn);
        check(f.blocks == 0 && f.bytes == 0, "allocation %lld: nothing leaks: %lld blocks", (long long)n,
              (long long)f.blocks);
    }
    printf("%lld allocations made to fail, one at a time\n", (long long)(n - 2));
    check(n > 30, "it allocates at all: %lld", (long long)n);
    free(corpus.v);
    free(json.v);
}

static void nothing_grows(void)
{
    text corpus = read_reference("corpus.txt"), json = read_reference("prefix.json");
    faulty f = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
    size_t bytes = 0;
    /* The memory of the last thousand or so freed objects is kept, to tell their use after free. */
    for (int i = 0; i < 2000; i++) cn_tokenizer_free(cn_tokenizer_bytes(cn));
    for (int i = 0; i < 200; i++) {
        cn_tokenizer *t = cn_tokenizer_parse(cn, json.v, json.n), *u = cn_bpe_train(cn, corpus.v, 500, 270, NULL);
        check(cn_encode(t, corpus.v, corpus.n, NULL, 0) > 0 && cn_tokenizer_save(u, "grows.json"), "%s", cn_error(cn));
        cn_tokenizer_free(t);
        cn_tokenizer_free(u);
        if (i == 3) bytes = f.bytes;
    }
    check(!REUSES_HANDLES || f.bytes == bytes, "%zu bytes after 4 turns, %zu after 200", bytes, f.bytes);
    static const char small[] = BPE("\"vocab\":{\"a\":1,\"aa\":2},\"merges\":[\"a a\"]");
    for (int i = 0; i < 5000; i++) cn_tokenizer_free(cn_tokenizer_parse(cn, small, strlen(small)));
    check(!REUSES_HANDLES || f.bytes == bytes, "%zu bytes before 5000 small ones, %zu after", bytes, f.bytes);
    cn_close(cn);
    free(corpus.v);
    free(json.v);
}

/* An apostrophe begins a short form only before its letters: a byte 0 is a mark like others. */
static void pieces_after_an_apostrophe(void)
{
    static const struct {
        const char *text;
        size_t n, piece;
    } rows[] = { { "'s!", 3, 2 }, { "'ll!", 4, 3 }, { "'\0!", 3, 3 }, { "'\0", 2, 2 }, { "'", 1, 1 },
                 { "'x", 2, 1 },  { "'l", 2, 1 },   { "'re", 2, 1 },  { "'d", 2, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(cn__split_next(rows[i].text, rows[i].n) == rows[i].piece, "row %zu: a piece of %zu bytes", i,
              cn__split_next(rows[i].text, rows[i].n));
}

int main(void)
{
    if (!enter_scratch()) return finish();
    tokens_are_those_of_the_reference();
    training_is_that_of_the_reference();
    any_bytes_come_back();
    a_space_in_front();
    pieces_after_an_apostrophe();
    characters();
    files_hold_every_kind();
    the_older_pair();
    counts_are_whole_when_room_is_short();
    special_tokens();
    wrong_arguments();
    files_that_ask_for_too_much();
    bytes_without_a_token();
    damaged_files();
    characters_are_printed_whole();
    every_allocation_fails_once();
    nothing_grows();
    return finish();
}

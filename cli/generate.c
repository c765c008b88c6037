/* cairn generate: writes text with a model, token by token. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

typedef struct writer {
    cn_ctx *cn;
    cn_module *model;
    cn_tokenizer *tokenizer;
    bool clean; /* the output is a terminal: print no control characters */
} writer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_bytes(const writer *w, const char *text, size_t n)
{
    if (w->clean) print_clean(stdout, text, n);
    else fwrite(text, 1, n, stdout);
    fflush(stdout);
}

int open_gpt(cn_ctx *cn, const settings *s, const char *path, cn_dict *file, cn_module **model)
{
    const char *kind = cn_dict_text(file, "model");
    if (kind && strcmp(kind, "gpt"))
        return fail("%s: the model must be a gpt, got a %.20s, which writes no text", path, kind);
    cn_gpt_desc desc = { .heads = given(s, "heads")             ? whole_of(s, "heads")
                                  : cn_dict_text(file, "heads") ? 0
                                                                : heads_beside(path) };
    *model = cn_gpt_from(cn, file, &desc);
    return *model ? DONE : fail("%s: %s", path, cn_error(cn));
}

int open_writer(cn_ctx *cn, const settings *s, const char *path, cn_module **model, cn_tokenizer **tokenizer)
{
    char *self = NULL;
    cn_dict *file = path ? cn_load(cn, path) : NULL;
    *tokenizer = NULL;
    int code = path ? (file ? DONE : fail_in(cn)) : open_bundle(cn, &self, &file, tokenizer);
    if (!path) path = program;
    if (code == DONE) code = open_gpt(cn, s, path, file, model);
    if (code == DONE && (!*tokenizer || given(s, "tokenizer"))) *tokenizer = find_tokenizer(cn, s, path, file);
    cn_dict_free(file);
    if (code == DONE && !*tokenizer) code = cn_failed(cn) ? fail_in(cn) : FAILED;
    const int64_t tokens = code == DONE ? cn_token_count(*tokenizer) : 0;
    if (code == DONE && tokens > cn_gpt_config(*model)->vocab)
        code = fail("%s: the tokenizer has %" PRId64 " tokens, but the model has %" PRId64, path, tokens,
                    cn_gpt_config(*model)->vocab);
    free(self);
    return code;
}

/* The text of the prompt; may be empty. */
static int read_prompt(const settings *s, text *t)
{
    if (given(s, "prompt") && given(s, "prompt-file"))
        return usage("--prompt and --prompt-file exclude each other: give one, not both");
    if (given(s, "prompt-file")) return read_file(text_of(s, "prompt-file"), t);
    t->bytes = copy_text(given(s, "prompt") ? text_of(s, "prompt") : "");
    t->n = strlen(t->bytes);
    return DONE;
}

/* Without a prompt: the token after which texts begin. */
static int32_t beginning(const cn_tokenizer *t)
{
    const int32_t end = cn_token_id(t, "<|endoftext|>", 13), line = cn_token_id(t, "\n", 1);
    return end >= 0 ? end : line >= 0 ? line : 0;
}

static int feed(const writer *w, cn_sampler *sampler, const text *t)
{
    int32_t *ids = NULL, first = beginning(w->tokenizer);
    int64_t n = 0;
    if (t->n && !encode_text(w->cn, w->tokenizer, t->bytes, t->n, &ids, &n)) return free(ids), fail_in(w->cn);
    const bool ok = cn_sampler_feed(sampler, n ? ids : &first, n ? n : 1);
    free(ids);
    return ok ? DONE : fail_in(w->cn);
}

static int stream(const writer *w, cn_sampler *sampler, int64_t tokens)
{
    cn_decoder decoder = { .tokenizer = w->tokenizer };
    size_t room = 256;
    char *text = need(room);
    int code = DONE;
    for (int64_t i = 0; i < tokens && code == DONE; i++) {
        const int64_t id = cn_sampler_next(sampler);
        if (id < 0) code = fail_in(w->cn);
        if (id < 0 || id >= cn_token_count(w->tokenizer))
            continue; /* the vocabulary is padded with tokens that have no text */
        int64_t got = cn_decode_next(&decoder, (int32_t)id, text, (int64_t)room);
        if (got > (int64_t)room) {
            text = grow(text, room = (size_t)got);
            got = cn_decode_next(&decoder, (int32_t)id, text, (int64_t)room);
        }
        if (got < 0) code = fail_in(w->cn);
        else print_bytes(w, text, (size_t)got);
        if (ferror(stdout)) code = fail("cannot write to the standard output");
    }
    const int64_t rest = code == DONE ? cn_decode_end(&decoder, text, (int64_t)room) : 0;
    if (rest > 0 && rest <= (int64_t)room) print_bytes(w, text, (size_t)rest);
    free(text);
    return code;
}

static int write_text(const writer *w, const settings *s, const text *prompt)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t seed = given(s, "seed") ? (uint64_t)whole_of(s, "seed") : (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec;
    cn_seed(w->cn, seed);
    cn_sampler_desc desc = { .temperature = number_of(s, "temperature"),
                             .greedy = flag_of(s, "greedy"),
                             .top_k = whole_of(s, "top-k"),
                             .top_p = number_of(s, "top-p"),
                             .seed = seed };
    cn_sampler *sampler = cn_sampler_new(w->model, &desc);
    if (!sampler) return fail_in(w->cn);
    const int64_t tokens = whole_of(s, "tokens");
    print_bytes(w, prompt->bytes, prompt->n);
    int code = feed(w, sampler, prompt);
    const double began = now();
    if (code == DONE) code = stream(w, sampler, tokens);
    const double seconds = now() - began;
    if (isatty(STDOUT_FILENO)) putchar('\n');
    if (code == DONE && flag_of(s, "verbose"))
        fprintf(stderr, "cairn: %" PRId64 " tokens in %.2f s, %.1f tokens/s, seed %" PRIu64 "\n", tokens, seconds,
                (double)tokens / (seconds > 0 ? seconds : 1), seed);
    cn_sampler_free(sampler);
    return code;
}

int generate(settings *s)
{
    text prompt = { 0 };
    int code = read_prompt(s, &prompt);
    const bool bundled = is_bundle();
    char *path = code == DONE && !bundled ? find_model(s->argument) : NULL;
    writer w = { .cn = path || (bundled && code == DONE) ? open_context(s) : NULL, .clean = isatty(STDOUT_FILENO) };
    if (code == DONE && !w.cn) code = FAILED;
    if (code == DONE && flag_of(s, "verbose")) fprintf(stderr, "cairn: %s\n", path ? path : program);
    if (code == DONE) code = open_writer(w.cn, s, path, &w.model, &w.tokenizer);
    cn_profile *p = code == DONE && given(s, "profile") ? cn_profile_begin(w.cn, NULL) : NULL;
    if (code == DONE) code = write_text(&w, s, &prompt);
    if (code == DONE) code = end_profile(w.cn, s, p, stderr);
    cn_close(w.cn);
    free(path), free(prompt.bytes);
    return code;
}

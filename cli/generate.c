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

static int open_model(writer *w, const settings *s, const char *path)
{
    cn_dict *file = cn_load(w->cn, path);
    if (!file) return fail_in(w->cn);
    const char *kind = cn_dict_text(file, "model");
    if (kind && strcmp(kind, "gpt"))
        return fail("%s: the model must be a gpt, got a %.20s, which writes no text", path, kind);
    cn_gpt_desc desc = { .heads = given(s, "heads")             ? whole_of(s, "heads")
                                  : cn_dict_text(file, "heads") ? 0
                                                                : heads_beside(path) };
    w->model = cn_gpt_from(w->cn, file, &desc);
    if (!w->model) return fail("%s: %s", path, cn_error(w->cn));
    cn_dict_free(file);
    w->tokenizer = find_tokenizer(w->cn, s, path);
    if (!w->tokenizer) return cn_failed(w->cn) ? fail_in(w->cn) : FAILED;
    const int64_t tokens = cn_token_count(w->tokenizer), vocab = cn_gpt_config(w->model)->vocab;
    if (tokens > vocab)
        return fail("%s: the tokenizer has %" PRId64 " tokens, but the model has %" PRId64, path, tokens, vocab);
    return DONE;
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
    char *path = code == DONE ? find_model(s->argument) : NULL;
    writer w = { .cn = path ? open_context(s) : NULL, .clean = isatty(STDOUT_FILENO) };
    if (code == DONE && !w.cn) code = FAILED;
    if (code == DONE && flag_of(s, "verbose")) fprintf(stderr, "cairn: %s\n", path);
    if (code == DONE) code = open_model(&w, s, path);
    cn_profile *p = code == DONE && given(s, "profile") ? cn_profile_begin(w.cn, NULL) : NULL;
    if (code == DONE) code = write_text(&w, s, &prompt);
    if (code == DONE) code = end_profile(w.cn, s, p, stderr);
    cn_close(w.cn);
    free(path), free(prompt.bytes);
    return code;
}

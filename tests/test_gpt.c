/* The GPT: names, files, sampling with caches against the whole forward. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/scratch.h"

enum { VOCAB = 29, CONTEXT = 200, LAYERS = 2, HEADS = 3, WIDTH = 24 };

static cn_module *small_gpt(cn_ctx *cn)
{
    cn_module *m = cn_nn_gpt(
        cn, &(cn_gpt_desc){ .vocab = VOCAB, .context = CONTEXT, .layers = LAYERS, .heads = HEADS, .width = WIDTH });
    cn_no_grad_begin(cn); /* far from the small initial values, so that mistakes show */
    cn_params p = cn_parameters(m);
    for (int i = 0; i < p.n; i++) cn_assign(p.v[i], cn_add(p.v[i], cn_mul_s(cn_randn_like(p.v[i]), 0.3)));
    cn_no_grad_end(cn);
    cn_eval_all(cn);
    return m;
}

static void fill(int32_t *tokens, int n)
{
    for (int i = 0; i < n; i++) tokens[i] = (i * i + 3 * i + 1) % VOCAB;
}

static void names(cn_ctx *cn)
{
    check_group("names");
    cn_module *m = small_gpt(cn);
    static const char *const expected[] = { "wte.weight",
                                            "wpe.weight",
                                            "h.0.ln_1.weight",
                                            "h.0.ln_1.bias",
                                            "h.0.attn.c_attn.weight",
                                            "h.0.attn.c_attn.bias",
                                            "h.0.attn.c_proj.weight",
                                            "h.0.attn.c_proj.bias",
                                            "h.0.ln_2.weight",
                                            "h.0.ln_2.bias",
                                            "h.0.mlp.c_fc.weight",
                                            "h.0.mlp.c_fc.bias",
                                            "h.0.mlp.c_proj.weight",
                                            "h.0.mlp.c_proj.bias" };
    cn_named_list named = cn_module_named(m);
    check(named.n == 2 + 12 * LAYERS + 2, "%d names", named.n);
    for (int i = 0; i < 14; i++) check(strcmp(named.v[i].name, expected[i]) == 0, "name %d is %s", i, named.v[i].name);
    cn_tensor *w = cn_module_get(m, "h.1.attn.c_attn.weight");
    check(w && cn_size(w, 0) == WIDTH && cn_size(w, 1) == 3 * WIDTH, "(in, out)");
    cn_module_free(m);
}

/* The logits after the last of n tokens, by the whole forward. */
static void whole(cn_module *m, const int32_t *tokens, int n, float *out)
{
    cn_ctx *cn = cn_module_context(m);
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *logits = cn_forward(m, cn_from(cn, CN_I32, CN_DIMS(1, n), tokens));
    cn_read(cn_contiguous(cn_select(cn_select(logits, 0, 0), 0, n - 1)), out, VOCAB * sizeof(float));
    cn_scope_end(cn, s);
}

static double largest_difference(const float *a, const float *b)
{
    double d = 0;
    for (int i = 0; i < VOCAB; i++) d = fmax(d, fabs((double)a[i] - b[i]));
    return b ? d : INFINITY;
}

static void caches(cn_ctx *cn)
{
    check_group("caches");
    cn_module *m = small_gpt(cn);
    cn_module_train(m, false);
    cn_sampler *s = cn_sampler_new(m, NULL);
    int32_t tokens[3 * CONTEXT];
    fill(tokens, 3 * CONTEXT);
    float expected[VOCAB];
    check(cn_sampler_logits(s) == NULL, "nothing before a token");
    int used = 0;
    static const int pieces[] = {
        1, 1, 5, 30, 27, 1, 64, 70, 1
    }; /* over the lengths of the caches, up to the context */
    for (int i = 0; i < 9; i++) {
        check(cn_sampler_feed(s, tokens + used, pieces[i]), "%d more: %s", pieces[i], cn_error(cn));
        used += pieces[i];
        whole(m, tokens, used, expected);
        check(largest_difference(expected, cn_sampler_logits(s)) < 1e-4, "after %d tokens: %g", used,
              largest_difference(expected, cn_sampler_logits(s)));
    }
    check(used == CONTEXT && cn_sampler_used(s) == CONTEXT, "%d used", used);
    check(cn_sampler_feed(s, tokens + used, 1) && cn_sampler_used(s) == CONTEXT / 2 + 1,
          "a full context goes on with half");
    whole(m, tokens + CONTEXT / 2, CONTEXT / 2 + 1, expected);
    check(largest_difference(expected, cn_sampler_logits(s)) < 1e-4, "and is right");
    cn_sampler_reset(s);
    check(cn_sampler_feed(s, tokens, 3 * CONTEXT), "more than the context at once: %s", cn_error(cn));
    const int64_t rest = cn_sampler_used(s);
    whole(m, tokens + 3 * CONTEXT - rest, (int)rest, expected);
    check(largest_difference(expected, cn_sampler_logits(s)) < 1e-4, "%d of them count", (int)rest);
    cn_sampler_free(s);
    cn_module_free(m);
}

/* With one token there is no choice: it is token 0, and it counts as soon as it is drawn. */
static void a_token_that_waits(cn_ctx *cn)
{
    check_group("waiting");
    cn_module *m = cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = 1, .context = 8, .layers = 1, .heads = 1, .width = 4 });
    cn_sampler *s = cn_sampler_new(m, NULL);
    check(cn_sampler_feed(s, (int32_t[]){ 0, 0 }, 2) && cn_sampler_used(s) == 2, "two tokens: %s", cn_error(cn));
    for (int i = 3; i <= 8; i++)
        check(cn_sampler_next(s) == 0 && cn_sampler_used(s) == i, "%d tokens: %d used", i, (int)cn_sampler_used(s));
    cn_sampler_free(s);
    cn_module_free(m);
}

static void plans(cn_ctx *cn)
{
    check_group("plans");
    cn_module *m = small_gpt(cn);
    cn_sampler *s = cn_sampler_new(m, NULL);
    cn_sampler_feed(s, (int32_t[]){ 1 }, 1);
    cn_sampler_next(s), cn_sampler_next(s);
    const int64_t misses = cn_count(cn).plan_misses;
    for (int i = 0; i < 40; i++) cn_sampler_next(s);
    check(cn_count(cn).plan_misses == misses, "%lld plans for tokens 3 to 42",
          (long long)(cn_count(cn).plan_misses - misses));
    const cn_counters before = cn_count(cn);
    for (int i = 0; i < 10; i++) cn_sampler_next(s);
    const cn_counters after = cn_count(cn);
    check(after.evaluations - before.evaluations == 10, "one evaluation a token: %lld",
          (long long)(after.evaluations - before.evaluations));
    check(after.live_bytes == before.live_bytes && after.handles == before.handles, "nothing grows");
    cn_sampler_free(s);
    cn_module_free(m);
}

static void write_text(cn_module *m, const cn_sampler_desc *d, int32_t *out, int n)
{
    cn_sampler *s = cn_sampler_new(m, d);
    cn_sampler_feed(s, (int32_t[]){ 3, 1 }, 2);
    for (int i = 0; i < n; i++) out[i] = (int32_t)cn_sampler_next(s);
    cn_sampler_free(s);
}

static void draws(cn_ctx *cn)
{
    check_group("draws");
    cn_module *m = small_gpt(cn);
    enum { N = 50 };
    int32_t a[N], b[N];
    write_text(m, &(cn_sampler_desc){ .seed = 4 }, a, N);
    write_text(m, &(cn_sampler_desc){ .seed = 4 }, b, N);
    check(memcmp(a, b, sizeof a) == 0, "the same seed, the same text");
    write_text(m, &(cn_sampler_desc){ .seed = 5 }, b, N);
    check(memcmp(a, b, sizeof a) != 0, "another seed, another text");
    write_text(m, &(cn_sampler_desc){ .greedy = true }, a, N);
    write_text(m, &(cn_sampler_desc){ .top_k = 1, .seed = 7 }, b, N);
    check(memcmp(a, b, sizeof a) == 0, "the best of one is the best");
    write_text(m, &(cn_sampler_desc){ .top_p = 1e-6, .seed = 7 }, b, N);
    check(memcmp(a, b, sizeof a) == 0, "a small share is the best alone");
    write_text(m, &(cn_sampler_desc){ .temperature = 1e-4, .seed = 7 }, b, N);
    check(memcmp(a, b, sizeof a) == 0, "hardly any temperature");
    float logits[VOCAB];
    whole(m, (int32_t[]){ 3, 1 }, 2, logits);
    int best = 0;
    for (int i = 1; i < VOCAB; i++) best = logits[i] > logits[best] ? i : best;
    check(a[0] == best, "greedy is the largest logit");
    cn_module_free(m);
}

/* Drawn often, tokens come as often as softmax says, cut to top_k and top_p. */
static void frequencies(cn_ctx *cn, cn_sampler_desc d)
{
    enum { DRAWS = 4000 };
    cn_module *m = small_gpt(cn);
    float logits[VOCAB];
    const int32_t start[2] = { 3, 1 };
    whole(m, start, 2, logits);
    double p[VOCAB], all = 0, share = 0;
    int order[VOCAB], count[VOCAB] = { 0 }, kept = 0;
    for (int i = 0; i < VOCAB; i++) all += p[i] = exp(logits[i] / d.temperature), order[i] = i;
    for (int i = 0; i < VOCAB; i++)
        for (int j = i + 1; j < VOCAB; j++)
            if (p[order[j]] > p[order[i]]) {
                const int t = order[i];
                order[i] = order[j];
                order[j] = t;
            }
    if (d.top_k) {
        all = 0;
        for (int i = 0; i < VOCAB; i++) all += i < d.top_k ? p[order[i]] : (p[order[i]] = 0);
    }
    while (kept < VOCAB && (!d.top_p || share < d.top_p * all) && p[order[kept]] > 0) share += p[order[kept++]];
    cn_sampler *s = cn_sampler_new(m, &d);
    for (int i = 0; i < DRAWS; i++) {
        cn_sampler_reset(s);
        cn_sampler_feed(s, start, 2);
        count[cn_sampler_next(s)]++;
    }
    for (int i = 0; i < VOCAB; i++) {
        const int t = order[i];
        const double expected = i < kept ? p[t] / share : 0, sigma = sqrt(expected * (1 - expected) / DRAWS);
        check(fabs((double)count[t] / DRAWS - expected) <= 4.5 * sigma + 1e-12, "token %d: %d of %d, expected %.4f", t,
              count[t], DRAWS, expected);
    }
    cn_sampler_free(s);
    cn_module_free(m);
}

static void files(cn_ctx *cn)
{
    check_group("files");
    cn_module *m = small_gpt(cn);
    int32_t tokens[20];
    fill(tokens, 20);
    float expected[VOCAB], got[VOCAB];
    whole(m, tokens, 20, expected);
    cn_dict *own = cn_dict_new(cn), *other = cn_dict_new(cn);
    check(cn_gpt_save(m, own), "saved");
    cn_module *again = cn_gpt_from(cn, own, NULL);
    check(again && cn_gpt_config(again)->heads == HEADS, "heads are in the file: %s", cn_error(cn));
    whole(again, tokens, 20, got);
    check(memcmp(expected, got, sizeof got) == 0, "the same model");
    cn_module_save(m, other,
                   "transformer."); /* as Hugging Face saves the whole of it, with masks and the tied output */
    cn_dict_set(other, "transformer.h.0.attn.bias", cn_ones(cn, CN_BOOL, CN_DIMS(1, 1, 4, 4)));
    cn_dict_set(other, "lm_head.weight", cn_module_get(m, "wte.weight"));
    cn_module *theirs = cn_gpt_from(cn, other, &(cn_gpt_desc){ .heads = HEADS });
    check(theirs != NULL, "loaded: %s", cn_error(cn));
    whole(theirs, tokens, 20, got);
    check(memcmp(expected, got, sizeof got) == 0, "with the prefix");
    cn_dict *part = cn_dict_new(cn);
    cn_dict_set(part, "wte.weight", cn_module_get(m, "wte.weight"));
    check(!cn_gpt_from(cn, part, NULL) && cn_error_code(cn) == CN_NOT_FOUND, "a part: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_dict_set(part, "wpe.weight", cn_module_get(m, "wpe.weight"));
    cn_dict_set(part, "h.0.ln_1.weight", cn_module_get(m, "h.0.ln_1.weight"));
    check(!cn_gpt_from(cn, part, &(cn_gpt_desc){ .heads = HEADS }) && cn_failed(cn), "a larger part: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_gpt_from(cn, own, &(cn_gpt_desc){ .heads = 5 }) && cn_failed(cn), "heads that do not fit: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m), cn_module_free(again), cn_module_free(theirs);
}

/* A file that Hugging Face's transformers wrote, with its answers (tests/reference/make_gpt2.py). */
static void hugging_face(cn_ctx *cn)
{
    check_group("Hugging Face");
    cn_dict *file = cn_load(cn, CAIRN_SOURCE_DIR "/tests/reference/gpt2.safetensors");
    cn_module *m = cn_gpt_from(cn, file, &(cn_gpt_desc){ .heads = 4 });
    if (!check(m != NULL, "loaded: %s", cn_error(cn))) return;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *tokens = cn_dict_get(file, "check.tokens"), *greedy = cn_dict_get(file, "check.greedy");
    cn_tensor *logits = cn_select(cn_forward(m, tokens), 0, 0);
    const double worst = cn_item(cn_max(cn_abs(cn_sub(logits, cn_dict_get(file, "check.logits"))), CN_ALL, false));
    check(worst < 2e-5, "logits differ by %g", worst);
    cn_sampler *sampler = cn_sampler_new(m, &(cn_sampler_desc){ .greedy = true });
    cn_sampler_feed(sampler, cn_data(tokens), cn_numel(tokens));
    for (int64_t i = 0; i < cn_numel(greedy); i++) {
        const int64_t token = cn_sampler_next(sampler);
        check(token == (int64_t)cn_get(greedy, CN_DIMS(i)), "token %d is %d", (int)i, (int)token);
    }
    cn_scope_end(cn, s);
    cn_sampler_free(sampler);
    cn_module_free(m);
    cn_dict_free(file);
}

static void refusals(cn_ctx *cn)
{
    check_group("refusals");
    cn_module *m = small_gpt(cn);
    check(!cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = 3 }) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_forward(m, cn_zeros(cn, CN_I64, CN_DIMS(1, CONTEXT + 1))) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_forward(m, cn_zeros(cn, CN_I64, CN_DIMS(4))) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_sampler_new(m, &(cn_sampler_desc){ .temperature = -1 }) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_sampler_new(m, &(cn_sampler_desc){ .top_p = 1.5 }) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_sampler *s = cn_sampler_new(m, NULL);
    check(cn_sampler_next(s) == -1 && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_sampler_feed(s, (int32_t[]){ VOCAB }, 1) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_module *linear = cn_nn_linear(cn, 2, 2, NULL);
    check(!cn_gpt_config(linear) && !cn_sampler_new(linear, NULL) && cn_failed(cn), "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_sampler_free(s);
    cn_module_free(m);
}

static void learns(cn_ctx *cn)
{
    check_group("learns");
    cn_module *m = cn_nn_gpt(
        cn, &(cn_gpt_desc){
                .vocab = VOCAB, .context = 32, .layers = 2, .heads = 2, .width = 32, .dropout = 0.05, .untied = true });
    check(cn_module_get(m, "lm_head.weight") != NULL, "an output of its own");
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adamw_desc){ .lr = 3e-3 });
    int32_t tokens[8 * 33], x[8 * 32], y[8 * 32];
    double first = 0, last = 0;
    for (int step = 0; step < 100; step++) {
        for (int i = 0; i < 8 * 33; i++) tokens[i] = (i % 33 * 3 + i / 33 * 5 + step) % VOCAB; /* counts by threes */
        for (int i = 0; i < 8 * 32; i++) x[i] = tokens[i / 32 * 33 + i % 32], y[i] = tokens[i / 32 * 33 + i % 32 + 1];
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *loss =
            cn_gpt_loss(m, cn_from(cn, CN_I32, CN_DIMS(8, 32), x), cn_from(cn, CN_I32, CN_DIMS(8, 32), y));
        cn_backward(loss);
        cn_step(opt);
        last = cn_item(loss);
        if (step == 0) first = last;
        cn_scope_end(cn, s);
    }
    check(fabs(first - log(VOCAB)) < 0.2, "at first it knows nothing: %g", first);
    check(last < 0.3, "in the end it counts: %g", last);
    cn_sampler *s = cn_sampler_new(m, &(cn_sampler_desc){ .greedy = true });
    cn_sampler_feed(s, (int32_t[]){ 1, 4, 7 }, 3);
    for (int i = 0; i < 5; i++) {
        const int64_t token = cn_sampler_next(s);
        check(token == 10 + 3 * i, "it goes on with %lld", (long long)token);
    }
    check(cn_module_training(m), "sampling leaves the mode");
    cn_sampler_reset(s);
    int32_t prompt[7] = { 1, 4, 7, 10, 13, 16, 19 };
    cn_sampler_feed(s, prompt, 7);
    float expected[VOCAB];
    cn_module_train(m, false);
    whole(m, prompt, 7, expected);
    check(largest_difference(expected, cn_sampler_logits(s)) < 1e-4, "and leaves nothing out, though dropout is on: %g",
          largest_difference(expected, cn_sampler_logits(s)));
    cn_sampler_free(s);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 11 });
    names(cn);
    caches(cn);
    a_token_that_waits(cn);
    plans(cn);
    draws(cn);
    check_group("frequencies");
    frequencies(cn, (cn_sampler_desc){ .temperature = 1, .seed = 1 });
    frequencies(cn, (cn_sampler_desc){ .temperature = 1.7, .top_k = 6, .seed = 2 });
    frequencies(cn, (cn_sampler_desc){ .temperature = 2, .top_p = 0.6, .seed = 3 });
    files(cn);
    hugging_face(cn);
    refusals(cn);
    learns(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}

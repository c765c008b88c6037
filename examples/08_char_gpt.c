/* 08: a language model. A small GPT learns from a text which letter comes next, then it writes text of its own. A few
   seconds of training give syllables and short words, but no meaning.

   Run it:  build/example_08_char_gpt [text] [steps]       a longer text and more steps give better results */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"

enum { CONTEXT = 32, BATCH = 16, WRITTEN = 300 };

/* The text for training if the file is missing or too short: repeated until it is long enough. */
static const char spare[] = "A cairn is a heap of stones, left where a path is hard to find. Nobody builds it alone: "
                            "whoever comes by adds a stone, and whoever comes next finds the way.\n";

static char *read_text(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *n = text && f ? fread(text, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    bool enough = *n >= 2000;
    printf("%s: %zu bytes%s\n", path, *n, enough ? "" : "; too short: a built-in text is used");
    for (*n = enough ? *n : 0; text && !enough && *n < 10000; *n += sizeof spare - 1)
        memcpy(text + *n, spare, sizeof spare - 1);
    return text;
}

/* The loss of a model that knows only how often each letter occurs: the entropy -Σ p log p, in nats. */
static double letter_entropy(cn_ctx *cn, const int32_t *tokens, int64_t n, int64_t vocab)
{
    cn_tensor *ids = cn_from(cn, CN_I32, CN_DIMS(n), tokens), *ones = cn_ones(cn, CN_F32, CN_DIMS(n));
    cn_tensor *p = cn_div_s(cn_scatter_add(cn_zeros(cn, CN_F32, CN_DIMS(vocab)), 0, ids, ones), (double)n);
    return -cn_item(cn_sum(cn_mul(p, cn_log(cn_add_s(p, 1e-12))), CN_ALL, false));
}

static cn_loader *windows(cn_ctx *cn, const int32_t *tokens, int64_t n, int64_t stride, bool shuffle)
{
    cn_tokens_desc desc = { .type = CN_TOKEN_I32, .context = CONTEXT, .stride = stride };
    return cn_loader_new(cn_dataset_token_array(cn, tokens, n, &desc),
                         &(cn_loader_desc){ .batch = BATCH, .shuffle = shuffle, .drop_last = shuffle });
}

static void train(cn_ctx *cn, cn_module *gpt, cn_loader *loader, int64_t steps)
{
    cn_optim *opt = cn_adamw(cn, cn_parameters(gpt), &(cn_adamw_desc){ .lr = 5e-3, .weight_decay = 0.1 });
    int64_t warm = steps / 10 + 1;
    cn_schedule_linear_desc up = { .start_factor = 0.05, .total_iters = warm };
    cn_schedule *parts[] = { cn_schedule_linear(opt, &up), cn_schedule_cosine(opt, steps - warm + 1, 1e-4) };
    cn_schedule *schedule = cn_schedule_sequential(opt, parts, 2, &warm);
    cn_progress *bar = cn_progress_new(cn, &(cn_progress_desc){ .total = steps, .out = stdout, .lines = 20 });
    cn_batch b;
    for (cn_scope s = cn_scope_begin(cn); steps-- > 0; cn_scope_end(cn, s)) {
        if (!cn_loader_next(loader, &b) && !cn_loader_next(loader, &b)) break; /* the first false ends an epoch */
        cn_tensor *loss = cn_gpt_loss(gpt, b.x, b.y);
        cn_backward(loss);
        cn_clip_grad_norm(cn_optim_params(opt), 1, NULL);
        cn_step(opt);
        cn_schedule_step(schedule);
        cn_progress_step(bar, 1, "loss %.3f", cn_item(loss));
    }
    cn_progress_finish(bar);
}

static double evaluate(cn_ctx *cn, cn_module *gpt, cn_loader *loader)
{
    double sum = 0, n = 0;
    cn_batch b;
    cn_no_grad_begin(cn);
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s), n += (double)b.n)
        sum += (double)b.n * cn_item(cn_gpt_loss(gpt, b.x, b.y));
    cn_no_grad_end(cn);
    return sum / n;
}

/* Continues the prompt and prints the result. */
static void write_text(cn_module *gpt, cn_tokenizer *letters, const char *prompt, double temperature)
{
    cn_sampler *sampler = cn_sampler_new(gpt, &(cn_sampler_desc){ .temperature = temperature, .seed = 5 });
    int32_t ids[WRITTEN];
    char text[8 * WRITTEN];
    int64_t n = cn_encode(letters, prompt, strlen(prompt), ids, WRITTEN);
    cn_sampler_feed(sampler, ids, n);
    while (n < WRITTEN) ids[n++] = (int32_t)cn_sampler_next(sampler);
    bool ok = cn_decode(letters, ids, n, text, sizeof text) > 0;
    printf("\n-- temperature %g --\n%s\n", temperature, ok ? text : "");
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 600;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    size_t bytes;
    char *text = read_text(argc > 1 ? argv[1] : "docs/design.md", &bytes);
    cn_tokenizer *letters = cn_tokenizer_characters(cn, text, bytes, NULL);
    int64_t n = cn_encode(letters, text, bytes, NULL, 0), vocab = cn_token_count(letters), learnt = n * 9 / 10;
    int32_t *tokens = malloc((size_t)(n > 0 ? n : 1) * sizeof *tokens);
    cn_encode(letters, text, bytes, tokens, n);

    cn_gpt_desc shape = { .vocab = vocab, .context = CONTEXT, .layers = 2, .heads = 4, .width = 64 };
    cn_module *gpt = cn_nn_gpt(cn, &shape);
    printf("%d letters, %d different; a GPT of %d parameters\n", (int)n, (int)vocab, (int)cn_module_count(gpt));
    cn_loader *rest = windows(cn, tokens + learnt, n - learnt, 0, false); /* the last tenth is for the test */
    double before = evaluate(cn, gpt, rest);
    train(cn, gpt, windows(cn, tokens, learnt, 7, true), steps);
    double after = evaluate(cn, gpt, rest), blind = letter_entropy(cn, tokens, n, vocab);
    printf("\nloss on the last tenth of the text, which was not used for training: %.3f before, %.3f after\n", before,
           after);
    printf("for comparison: %.3f if all letters were equally likely, %.3f from the letters' frequencies\n",
           log((double)vocab), blind);
    write_text(gpt, letters, "The ", 0.5);
    write_text(gpt, letters, "The ", 1);

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && (steps < 200 || after < blind - 0.5);
    cn_close(cn);
    free(text);
    free(tokens);
    return !ok;
}
